"""Checkpoints: a log written by another program, every strictness that Python's own parsers lack, and keys that prove nothing."""

import base64
import json
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CountermarkError, InputError, RefusedError, TamperError
from countermark.ledger.merkle import EMPTY_ROOT, Frontier, leaf_hash
from countermark.ledger.note import Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint
from countermark.ledger.signed_note import MAX_SIGNATURE_LINES

TESSERA = json.loads((Path(__file__).parents[1] / "data" / "c2sp" / "tessera_log.json").read_text())
TESSERA_KEY = VerifierKey.parse(TESSERA["vkey"])
# The verifier key and note that the documentation of Go's sumdb/note package gives as its example.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = b"If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
GO_SIGNATURE = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="

ORIGIN = "log.example/one"
SIGNER = CheckpointSigner(ORIGIN, Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
KEY = SIGNER.vkey
CHECKPOINT = Checkpoint(ORIGIN, 7, sha256(b"root").digest())
NOTE = SIGNER.sign(CHECKPOINT)
BODY, _, LINE = NOTE.rpartition("\n\n")
BODY += "\n"
ROOT = base64.b64encode(CHECKPOINT.root).decode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def signed(body: str, *, key: CheckpointSigner = SIGNER) -> str:
    """A note whose signature holds, over whatever text."""
    signature = key._private.sign(body.encode("utf-8", "surrogatepass"))
    return f"{body}\n— {key.vkey.name} {b64(key.vkey.key_id + signature)}\n"


def code_of(note: str | bytes, key: VerifierKey = KEY) -> Code:
    with pytest.raises(CountermarkError) as caught:
        open_checkpoint(note, key)
    assert caught.value.exit in (ExitCode.INVALID, ExitCode.NO, ExitCode.TAMPERED)
    assert caught.value.fix
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.code


def signer(name: str, seed: int) -> CheckpointSigner:
    return CheckpointSigner(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


def test_the_checkpoints_of_another_program_open() -> None:
    frontier = Frontier()
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in TESSERA["entries_hex"]]
    for size, note in enumerate(TESSERA["checkpoints"]):
        checkpoint = open_checkpoint(note, TESSERA_KEY)
        assert checkpoint == Checkpoint("example.com/log/testdata", size, frontier.root())
        assert note.startswith(checkpoint.body() + "\n")
        if size < len(leaves):
            frontier = frontier.push(leaves[size])
    assert frontier.size == 15


def test_the_example_of_go() -> None:
    key = VerifierKey.parse(GO_KEY)
    assert (key.name, str(key)) == ("PeterNeumann", GO_KEY)
    signature = base64.b64decode(GO_SIGNATURE)
    assert signature[:4] == key.key_id
    assert key.verify(GO_TEXT, signature[4:])
    assert not key.verify(GO_TEXT + b" ", signature[4:])


def test_the_bytes_of_a_note() -> None:
    """Written out from the two specifications, with the key ID and signature made by hand."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = private.public_key().public_bytes_raw()
    key_id = sha256(b"log.example/one\n\x01" + public).digest()[:4]
    body = f"log.example/one\n7\n{ROOT}\n"
    assert f"{body}\n\N{EM DASH} log.example/one {b64(key_id + private.sign(body.encode()))}\n" == NOTE
    assert str(KEY) == f"log.example/one+{key_id.hex()}+{b64(bytes([1]) + public)}"
    assert open_checkpoint(NOTE, KEY) == open_checkpoint(NOTE.encode(), KEY) == CHECKPOINT
    assert VerifierKey.parse(str(KEY)) == KEY


@pytest.mark.parametrize(
    "size", ["007", "00", "+7", "-7", " 7", "7 ", "７", "1_0", "0x7", "7.0", "7e0", "", "٧", "9223372036854775808", "9" * 5000]
)
def test_a_size_is_plain_decimal(size: str) -> None:
    """Tamper case 23. The signature holds each time, so that only the form can be the reason."""
    assert code_of(signed(f"{ORIGIN}\n{size}\n{ROOT}\n")) is Code.MALFORMED


def test_the_limits_of_a_size() -> None:
    for size, root in ((0, EMPTY_ROOT), (2**63 - 1, CHECKPOINT.root)):
        checkpoint = Checkpoint(ORIGIN, size, root)
        assert open_checkpoint(SIGNER.sign(checkpoint), KEY) == checkpoint
    for size, root in ((-1, CHECKPOINT.root), (2**63, CHECKPOINT.root), (0, CHECKPOINT.root), (1, b""), (1, bytes(33))):
        with pytest.raises(InputError) as caught:
            Checkpoint(ORIGIN, size, root)
        assert caught.value.code is Code.MALFORMED


def test_a_root_is_canonical_base64() -> None:
    """Tamper case 24: the last digit before "=" has two spare bits, and Python ignores them."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = alphabet.index(ROOT[42])
    tails = [ROOT[:42] + alphabet[last ^ spare] + "=" for spare in (1, 2, 3)]
    assert {base64.b64decode(tail) for tail in tails} == {CHECKPOINT.root}
    url_safe = "-" + ROOT[1:], "_" + ROOT[1:]
    for root in (
        *tails,
        *url_safe,
        ROOT[:-1],
        ROOT + "=",
        ROOT + "\r",
        " " + ROOT,
        ROOT[:20] + " " + ROOT[20:],
        "é" + ROOT[1:],
        "",
        b64(bytes(31)),
        b64(bytes(33)),
    ):
        assert code_of(signed(f"{ORIGIN}\n7\n{root}\n")) is Code.MALFORMED


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        "\n\n",
        BODY,
        BODY + "\n",
        BODY + LINE,
        NOTE[:-1],
        NOTE + "\n",
        NOTE + "more\n",
        "\n" + NOTE,
        NOTE.replace("\n", "\r\n"),
        NOTE.replace("\n\n", "\n\r\n"),
        NOTE.replace("— ", "- "),
        NOTE.replace("— ", "\N{EN DASH} "),
        NOTE.replace("— ", "—"),
        NOTE.replace("— ", "—  "),
        NOTE.replace("— ", " — "),
        NOTE.replace("=\n", "= \n"),
        NOTE.replace("\n\n", "\n\n\n"),
        NOTE.replace("\n7\n", "\n7\t\n"),
        "\ufeff" + NOTE.replace("\n7\n", "\n7\x00\n"),
        BODY + "\n— name AAAAAA==\n",
        BODY + "\n— name\u00a0x " + b64(bytes(68)) + "\n",
        BODY + "\n— name+x " + b64(bytes(68)) + "\n",
        BODY + "\n—  " + b64(bytes(68)) + "\n",
        NOTE + "— other ????\n",
        NOTE + "— other\n",
        NOTE + "— other QR==\n",
        NOTE + "— oth\x01er " + b64(bytes(68)) + "\n",
        NOTE.replace("log", "\ud800log"),
        signed(f"{ORIGIN}\n7\n{ROOT}\nextension\n"),
        signed(f"{ORIGIN}\n7\n"),
        signed(f"\n7\n{ROOT}\n"),
        signed(f"{ORIGIN} two\n7\n{ROOT}\n"),
        signed(f"{ORIGIN}\n\n7\n{ROOT}\n"),
        signed(f"{ORIGIN}\n7\n{ROOT}\n\n"),
        signed(f"{ORIGIN}\x0b\n7\n{ROOT}\n"),
        signed(f"{ORIGIN}\n0\n{ROOT}\n"),
    ],
)
def test_a_note_of_another_form_is_malformed(note: str) -> None:
    """Tamper case 25, and extension lines."""
    assert code_of(note) is Code.MALFORMED


@pytest.mark.parametrize(
    "data", [b"\xff" + NOTE.encode(), NOTE.encode().replace("—".encode(), b"\xe2\x80"), NOTE.encode("utf-16"), b"\x00"]
)
def test_a_note_is_utf8(data: bytes) -> None:
    """Tamper case 25."""
    assert code_of(data) is Code.MALFORMED


def test_a_note_by_unknown_keys_is_untrusted() -> None:
    """Tamper case 26: another key under the same name."""
    assert code_of(signed(BODY, key=signer(ORIGIN, 9))) is Code.UNTRUSTED
    assert code_of(signed(BODY, key=signer("witness.example", 9))) is Code.UNTRUSTED


def test_lines_by_unknown_keys_are_ignored() -> None:
    others = [signed(BODY, key=signer(f"w{n}.example/é", n)).rpartition("\n\n")[2] for n in range(1, 17)]
    note = BODY + "\n" + "".join(others[:8]) + LINE + "".join(others[8:])
    assert open_checkpoint(note, KEY) == CHECKPOINT
    assert open_checkpoint(NOTE + "— other AAAAAAA=\n", KEY) == CHECKPOINT


def test_a_bad_signature_by_the_known_key_spoils_the_note() -> None:
    """Tamper case 27: also beside a good one, and whatever its length."""
    good = base64.b64decode(LINE.split(" ")[2])
    for bad in (good[:4] + bytes(64), good[:-1], good + b"\x00", good[:4] + b"x", good[:-1] + bytes([good[-1] ^ 0x80])):
        line = f"— {ORIGIN} {b64(bad)}\n"
        for note in (f"{BODY}\n{line}", NOTE + line, f"{BODY}\n{line}{LINE}"):
            assert code_of(note) is Code.UNTRUSTED
    assert open_checkpoint(NOTE + LINE, KEY) == CHECKPOINT


def test_every_changed_digit_of_the_text_is_seen() -> None:
    for changed in (NOTE.replace("\n7\n", "\n8\n"), NOTE.replace(ROOT, b64(bytes(32))), NOTE.replace(f"{ORIGIN}\n", f"{ORIGIN}x\n", 1)):
        assert code_of(changed) is Code.UNTRUSTED


def test_a_key_id_alone_or_a_name_alone_is_no_match() -> None:
    """Tamper case 28: the four bytes of the known key's ID under another name, and the known name with other four bytes."""
    signature = base64.b64decode(LINE.split(" ")[2])
    for line in (f"— log.example/two {b64(signature)}\n", f"— {ORIGIN} {b64(bytes(4) + signature[4:])}\n"):
        assert code_of(f"{BODY}\n{line}") is Code.UNTRUSTED
        assert open_checkpoint(NOTE + line, KEY) == CHECKPOINT


def test_a_checkpoint_of_another_log_is_untrusted() -> None:
    """Tamper case 29: the right key signed the text, but the text is about another origin."""
    assert code_of(signed(f"log.example/two\n7\n{ROOT}\n")) is Code.UNTRUSTED
    with pytest.raises(RefusedError) as caught:
        SIGNER.sign(Checkpoint("log.example/two", 7, CHECKPOINT.root))
    assert caught.value.code is Code.UNTRUSTED


def test_notes_are_bounded() -> None:
    """Tamper case 63."""
    other = "— w.example " + b64(bytes(68)) + "\n"
    assert open_checkpoint(NOTE + other * (MAX_SIGNATURE_LINES - 1), KEY) == CHECKPOINT
    assert code_of(NOTE + other * MAX_SIGNATURE_LINES) is Code.MALFORMED
    assert code_of(NOTE + other * 10_000) is Code.MALFORMED
    assert code_of(NOTE + "— w.example " + b64(bytes(49_200)) + "\n") is Code.MALFORMED
    assert code_of("x" * 100_000_000) is Code.MALFORMED


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300)))
def test_arbitrary_input_is_refused_in_order(note: bytes | str) -> None:
    with pytest.raises((InputError, RefusedError)):
        open_checkpoint(note, KEY)


@given(st.integers(0, len(NOTE.encode()) - 1), st.integers(0, 4), st.binary(max_size=4))
def test_no_edit_of_a_note_gives_another_checkpoint(at: int, cut: int, new: bytes) -> None:
    data = NOTE.encode()
    edited = data[:at] + new + data[at + cut :]
    try:
        assert open_checkpoint(edited, KEY) == CHECKPOINT
    except (InputError, RefusedError, TamperError):
        assert edited != data
    else:
        assert edited == data


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u2003b", "a\u00a0", "a\x7f\x00", "\ud800"])
def test_names_that_would_break_a_line(name: str) -> None:
    for make in (lambda: VerifierKey.of(name, KEY.public), lambda: Checkpoint(name, 7, CHECKPOINT.root), lambda: signer(name, 1)):
        with pytest.raises(InputError) as caught:
            make()
        assert caught.value.code is Code.MALFORMED


def test_no_part_of_a_verifier_key_will_do() -> None:
    """The mangling test of the Go package, on its example key: no proper substring and no next character."""
    for start in range(len(GO_KEY)):
        for stop in range(start + 1, len(GO_KEY) + 1):
            if stop - start < len(GO_KEY):
                with pytest.raises(InputError):
                    VerifierKey.parse(GO_KEY[start:stop])
        with pytest.raises(InputError):
            VerifierKey.parse(GO_KEY[:start] + chr(ord(GO_KEY[start]) + 1) + GO_KEY[start + 1 :])


def test_a_verifier_key_has_one_form() -> None:
    name, key_id, data = GO_KEY.split("+", 2)
    for text in (
        f"{name}+{key_id.upper()}+{data}",
        GO_KEY + "\n",
        f"{name}++{data}",
        f"{name}+{key_id}",
        name,
        "",
        f"{name}+{key_id}+{data}==",
    ):
        with pytest.raises(InputError) as caught:
            VerifierKey.parse(text)
        assert caught.value.code is Code.MALFORMED
    other_type = bytes([4]) + KEY.public
    with pytest.raises(InputError) as unsupported:
        VerifierKey.parse(f"x+{sha256(b'x' + bytes([10]) + other_type).hexdigest()[:8]}+{b64(other_type)}")
    assert unsupported.value.code is Code.UNSUPPORTED
    for wrong_length in (KEY.public[:-1], KEY.public + b"\x00", b""):
        with pytest.raises(InputError) as malformed:
            VerifierKey.of("x", wrong_length)
        assert malformed.value.code is Code.MALFORMED


P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
SQRT_MINUS_1 = pow(2, (P - 1) // 4, P)


def square_roots(value: int) -> list[int]:
    root = pow(value, (P + 3) // 8, P)
    return [r for r in (root, -root % P, root * SQRT_MINUS_1 % P, -root * SQRT_MINUS_1 % P) if r * r % P == value % P]


def small_order_keys() -> list[bytes]:
    """Every encoding of a point whose order divides 8, from the curve -x^2 + y^2 = 1 + d x^2 y^2 itself, the non-canonical ones too.

    Order 1 and 2 have y = 1 and -1, order 4 has y = 0. Doubling a point of order 8 must give y = 0, so there y^2 = -x^2, that is
    d y^4 + 2 y^2 = 1. A coordinate below 19 has a second spelling, y + p, that still fits in 255 bits.
    """
    of_order_8 = {y for root in square_roots(1 + D) for square in [(root - 1) * pow(D, -1, P) % P] for y in square_roots(square)}
    assert len(of_order_8) == 2
    spellings = [0, 1, P - 1, P, P + 1, *of_order_8]
    return [(y | sign << 255).to_bytes(32, "little") for y in spellings for sign in (0, 1)]


@pytest.mark.parametrize("public", small_order_keys())
def test_keys_for_which_anyone_can_sign_are_refused(public: bytes) -> None:
    """Tamper case 49."""
    with pytest.raises(InputError) as caught:
        VerifierKey.of(ORIGIN, public)
    assert caught.value.code in (Code.UNSUPPORTED, Code.MALFORMED)


def test_why_weak_keys_are_refused() -> None:
    """With the neutral element as key, one made-up signature holds for every text, and the cryptography package says so."""
    neutral = (1).to_bytes(32, "little")
    for text in (b"one", b"two"):
        Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), text)


def test_a_signer_does_not_show_its_key() -> None:
    assert bytes(range(32)).hex() not in repr(SIGNER) + str(SIGNER)
