"""Cosignatures of both types, and policies that say which of them are enough."""

import itertools
import struct
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError, RefusedError
from countermark.ledger.cosignature import MAX_TIME_S, Cosigner, CosignerKey, cosigned_message
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.signed_note import SignatureLine, SignedNote, key_id
from countermark.ledger.witness_policy import WitnessPolicy

LOG = CheckpointSigner("log.example/one", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
HEAD = Checkpoint("log.example/one", 7, bytes(range(32)))
NOTE = SignedNote.parse(LOG.sign(HEAD))
WITNESSES = [Cosigner(f"witness.example/w{n}", Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32)) for n in range(1, 5)]
WITNESSES.append(Cosigner("witness.example/w5", MLDSA44PrivateKey.from_seed_bytes(bytes([5]) * 32)))
KEYS = "".join(f"witness W{n} {witness.vkey}\n" for n, witness in enumerate(WITNESSES, 1))
LOG_LINE = f"log {LOG.vkey}\n"


def cosigned(*numbers: int, note: SignedNote = NOTE) -> SignedNote:
    return SignedNote(note.text, (*note.lines, *(WITNESSES[n - 1].sign(HEAD, 1_679_315_147 + n) for n in numbers)))


def policy(text: str) -> WitnessPolicy:
    return WitnessPolicy.parse(text.encode(), "policy")


def test_the_two_messages() -> None:
    """Written out from C2SP tlog-cosignature."""
    body = "log.example/one\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    assert cosigned_message(4, "w", 1679315147, HEAD) == f"cosignature/v1\ntime 1679315147\n{body}".encode()
    fields = struct.pack(">12sB1sQB15sQQ32s", b"subtree/v1\n\0", 1, b"w", 1679315147, 15, b"log.example/one", 0, 7, HEAD.root)
    assert cosigned_message(6, "w", 1679315147, HEAD) == fields


@pytest.mark.parametrize("number", [1, 5])
def test_a_cosignature_holds_for_its_checkpoint_alone(number: int) -> None:
    """Tamper cases 30 to 33."""
    witness = WITNESSES[number - 1]
    note = cosigned(number)
    (found,) = witness.vkey.cosignatures(SignedNote.parse(str(note)))
    assert found.time_s == 1_679_315_147 + number
    line = note.lines[1]
    for other in (
        Checkpoint("log.example/two", 7, HEAD.root),
        Checkpoint(HEAD.origin, 8, HEAD.root),
        Checkpoint(HEAD.origin, 7, bytes(32)),
    ):
        with pytest.raises(RefusedError):
            list(witness.vkey.cosignatures(SignedNote(other.body(), (line,))))
    for at in (0, 7, 8, len(line.signature) - 1):
        changed = bytearray(line.signature)
        changed[at] ^= 1
        with pytest.raises(CountermarkError):
            list(witness.vkey.cosignatures(SignedNote(note.text, (SignatureLine(line.name, line.key_id, bytes(changed)),))))
    for signature in (line.signature[:-1], line.signature + b"\0", (2**63).to_bytes(8) + line.signature[8:]):
        with pytest.raises(InputError):
            list(witness.vkey.cosignatures(SignedNote(note.text, (SignatureLine(line.name, line.key_id, signature),))))


def test_a_plain_signature_is_no_cosignature_nor_the_reverse() -> None:
    """Tamper case 32: the type is part of the key ID, so that the same key has two."""
    private = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    plain = CheckpointSigner(WITNESSES[0].vkey.name, private).vkey
    assert plain.key_id != WITNESSES[0].vkey.key_id
    assert list(WITNESSES[0].vkey.cosignatures(NOTE)) == []
    named = SignatureLine(WITNESSES[0].vkey.name, WITNESSES[0].vkey.key_id, private.sign(NOTE.text.encode()))
    with pytest.raises(InputError):
        list(WITNESSES[0].vkey.cosignatures(SignedNote(NOTE.text, (named,))))


def test_keys_are_written_and_read() -> None:
    for witness in WITNESSES:
        assert CosignerKey.parse(str(witness.vkey)) == witness.vkey
    for text in (str(LOG.vkey), str(WITNESSES[0].vkey)[:-4], str(WITNESSES[0].vkey).replace("w1", "w2"), "x", ""):
        with pytest.raises(InputError):
            CosignerKey.parse(text)
    small_order = bytes([1]) + bytes(31)
    with pytest.raises(InputError) as caught:
        CosignerKey("w", key_id("w", 4, small_order), 4, small_order)
    assert caught.value.code is Code.UNSUPPORTED
    for time_s in (0, -1, MAX_TIME_S + 1):
        with pytest.raises(InputError):
            WITNESSES[0].sign(HEAD, time_s)
    with pytest.raises(InputError):
        Cosigner("n" * 256, MLDSA44PrivateKey.generate()).sign(HEAD, 1)


def test_the_policy_of_the_specification() -> None:
    """Two levels of groups: every set of witnesses against the rule said again."""
    groups = "group X 2 W1 W2 W3\ngroup Y any W4 W5\ngroup both all X Y\nquorum both\n"
    rule = policy(f"# who is believed\n{LOG_LINE}\n{KEYS}{groups}")
    for count in range(6):
        for numbers in itertools.combinations(range(1, 6), count):
            enough = len({1, 2, 3} & set(numbers)) >= 2 and bool({4, 5} & set(numbers))
            note = str(cosigned(*numbers))
            if enough:
                assert rule.open(note).names == tuple(WITNESSES[n - 1].vkey.name for n in numbers)
            else:
                with pytest.raises(RefusedError) as caught:
                    rule.open(note)
                assert caught.value.code is Code.UNTRUSTED


def test_one_witness_counts_once() -> None:
    """Tamper case 31: two lines by one key, at two times."""
    rule = policy(f"{LOG_LINE}{KEYS}group g 2 W1 W2\nquorum g\n")
    twice = SignedNote(NOTE.text, (*NOTE.lines, WITNESSES[0].sign(HEAD, 5), WITNESSES[0].sign(HEAD, 6)))
    with pytest.raises(RefusedError):
        rule.open(str(twice))


def test_who_signed_the_checkpoint() -> None:
    other = CheckpointSigner("log.example/one", Ed25519PrivateKey.generate())
    assert policy(f"log {other.vkey}\n{LOG_LINE}quorum none\n").open(str(NOTE)).checkpoint == HEAD
    assert policy(f"{LOG_LINE}log {other.vkey}\nquorum none\n").open(str(NOTE)).checkpoint == HEAD
    for text in ("quorum none\n", f"log {other.vkey}\nquorum none\n"):
        with pytest.raises(RefusedError):
            policy(text).open(str(NOTE))
    bad = SignatureLine(LOG.vkey.name, LOG.vkey.key_id, bytes(64))
    with pytest.raises(RefusedError):
        policy(f"{LOG_LINE}quorum none\n").open(str(SignedNote(NOTE.text, (*NOTE.lines, bad))))


def test_a_bad_line_of_a_known_witness_rejects_the_note() -> None:
    """Tamper case 27, also where the quorum could do without that witness."""
    rule = policy(f"{LOG_LINE}{KEYS}quorum W1\n")
    line = WITNESSES[1].sign(HEAD, 9)
    bad = SignatureLine(line.name, line.key_id, line.signature[:-1] + bytes((line.signature[-1] ^ 1,)))
    with pytest.raises(RefusedError):
        rule.open(str(SignedNote(NOTE.text, (*cosigned(1).lines, bad))))
    unknown = SignatureLine("stranger.example", line.key_id, bad.signature)
    assert rule.open(str(SignedNote(NOTE.text, (*cosigned(1).lines, unknown)))).names == ("witness.example/w1",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        LOG_LINE,
        "quorum none\nquorum none\n",
        "quorum W1\n",
        "quorum\n",
        "quorum none none\n",
        f"{KEYS}group g 0 W1\nquorum g\n",
        f"{KEYS}group g 3 W1 W2\nquorum g\n",
        f"{KEYS}group g -1 W1\nquorum g\n",
        f"{KEYS}group g 01 W1\nquorum g\n",
        f"{KEYS}group g some W1\nquorum g\n",
        f"{KEYS}group g all\nquorum g\n",
        f"{KEYS}group g all W1 W1\nquorum g\n",
        f"{KEYS}group g all W1\ngroup h all W1 W2\nquorum h\n",
        f"{KEYS}group g all h\ngroup h all W1\nquorum g\n",
        f"{KEYS}group g all g\nquorum g\n",
        f"{KEYS}group none all W1\nquorum none\n",
        f"{KEYS}group g all none\nquorum g\n",
        f"{KEYS}group W1 all W2\nquorum W1\n",
        f"{KEYS}witness W9 {WITNESSES[0].vkey}\nquorum none\n",
        f"{KEYS}witness W1 {Cosigner('x', Ed25519PrivateKey.generate()).vkey}\nquorum none\n",
        f"{KEYS}witness none {Cosigner('x', Ed25519PrivateKey.generate()).vkey}\nquorum none\n",
        f"{LOG_LINE}{LOG_LINE}quorum none\n",
        f"log {WITNESSES[0].vkey}\nquorum none\n",
        f"witness W {LOG.vkey}\nquorum none\n",
        "log x\nquorum none\n",
        f"log {LOG.vkey} url more\nquorum none\n",
        "logs x\nquorum none\n",
        f"{LOG_LINE}quorum none\r\n",
        f"{LOG_LINE}\x0cquorum none\n",
        "quorum none\n" * 5000,
    ],
)
def test_what_is_no_policy(text: str) -> None:
    with pytest.raises(InputError) as caught:
        policy(text)
    assert caught.value.code in (Code.MALFORMED, Code.UNSUPPORTED)
    assert str(caught.value).startswith("policy")


def test_white_space_comments_and_names_of_any_octets() -> None:
    name = b"\xe2\x84\xaa\xff"
    data = (
        f"\t {LOG_LINE}\n   # a comment \xff\n".encode("latin-1")
        + b"witness  "
        + name
        + f"\t{WITNESSES[0].vkey}  https://w.example/ \n".encode()
    )
    rule = WitnessPolicy.parse(data + b" quorum " + name + b" ", "policy")
    assert rule.open(str(cosigned(1))).names == ("witness.example/w1",)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_policy_or_an_error(data: bytes) -> None:
    for text in (data, KEYS.encode() + b"quorum " + data):
        with suppress(InputError):
            assert WitnessPolicy.parse(text, "policy").satisfied(witness.vkey for witness in WITNESSES)
