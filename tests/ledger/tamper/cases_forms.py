"""Cases 23 to 36, 48, 49, 55, 61 and 62: texts and bytes that are of no form which a note, key, policy, proof, leaf or tile has."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.anchor import Anchor
from countermark.ledger.cosignature import ED25519_COSIGNATURE, ML_DSA_44_COSIGNATURE, Cosigner, CosignerKey
from countermark.ledger.entry_bundle import decode_bundle, encode_bundle
from countermark.ledger.genesis import Genesis
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import MAX_LEAF_BYTES, NO_HASH, EntryKind, Leaf, LeafSignature
from countermark.ledger.note import ED25519_TYPE, Checkpoint, CheckpointSigner, VerifierKey, open_checkpoint
from countermark.ledger.proof_file import HEADER, MAX_PROOF_BYTES, GrowthFile, InclusionFile
from countermark.ledger.signed_note import MAX_NOTE_BYTES, SignatureLine, SignedNote, key_id
from countermark.ledger.tiles import TileReader, entries_path, split_tile, tile_path, tiles_completed
from countermark.ledger.witness_policy import MAX_LINES, MAX_POLICY_BYTES, WitnessPolicy

from .lab import Lab, Look, case, refused

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)
PUBLIC = PRIVATE.public_key().public_bytes_raw()
LOG = CheckpointSigner("log.example/nine", PRIVATE)
HEAD = Checkpoint(LOG.vkey.name, 3, bytes([7]) * 32)
NOTE = LOG.sign(HEAD)
WITNESS = Cosigner("witness.example/one", Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32))
OTHER = Cosigner("witness.example/two", MLDSA44PrivateKey.from_seed_bytes(bytes([2]) * 32))
HASH = base64.b64encode(bytes([5]) * 32).decode()


def _vkey(name: str, kind: int, public: bytes, wrong: bytes = b"") -> str:
    return f"{name}+{(wrong or key_id(name, kind, public)).hex()}+{base64.b64encode(bytes((kind,)) + public).decode()}"


@case(Code.MALFORMED, "", "a signature line holds a key ID and no signature")
def case_25_a_signature_line_of_another_form(lab: Lab) -> Look:
    del lab
    empty = f"\N{EM DASH} {LOG.vkey.name} {base64.b64encode(LOG.vkey.key_id).decode()}\n"
    spaced = f"\N{EM DASH} a\N{NO-BREAK SPACE}b {base64.b64encode(bytes(68)).decode()}\n"
    forms = ((empty, "a key ID and no signature"), (spaced, "cannot be the name of a log or key"))
    return refused(*((partial(open_checkpoint, NOTE + line, LOG.vkey), said) for line, said in forms))


@case(Code.MALFORMED, "", "is longer than")
def case_63_a_note_longer_than_is_read(lab: Lab) -> Look:
    del lab
    lines = "".join(f"\N{EM DASH} w{number} {base64.b64encode(bytes(2000)).decode()}\n" for number in range(30))
    return refused((partial(open_checkpoint, NOTE + lines, LOG.vkey), f"is longer than {MAX_NOTE_BYTES}"))


@case(Code.MALFORMED, "", "is not a verifier key of the form NAME+HEX8+BASE64")
def case_28_the_key_of_a_log_that_is_none(lab: Lab) -> Look:
    del lab
    forms = (
        ("x", "is not a verifier key of the form"),
        ("x+00112233+", "is not a verifier key of the form"),
        (f"x+0011223+{HASH}", "is not a verifier key of the form"),
        (_vkey("x", ED25519_TYPE, PUBLIC[:-1]), "an ed25519 public key is 32 bytes, not 31"),
        (_vkey("x", ED25519_TYPE, PUBLIC, wrong=b"\0\1\2\3"), "the key ID 00010203 is not that of the key x"),
        (_vkey("x y", ED25519_TYPE, PUBLIC), "cannot be the name of a log or key"),
        (str(LOG.vkey).replace("+", "+" + "0", 1), "is not a verifier key of the form"),
    )
    return refused(*((partial(VerifierKey.parse, text), said) for text, said in forms))


@case(Code.UNSUPPORTED, "", "is not of type ed25519", exits=ExitCode.INVALID)
def case_32_the_key_of_a_witness_as_that_of_a_log(lab: Lab) -> Look:
    del lab
    return refused((partial(VerifierKey.parse, str(WITNESS.vkey)), "is not of type ed25519 (0x01)"))


@case(Code.UNSUPPORTED, "", "is of type 0x01", exits=ExitCode.INVALID)
def case_32_the_key_of_a_log_as_that_of_a_witness(lab: Lab) -> Look:
    del lab
    return refused((partial(CosignerKey.parse, str(LOG.vkey)), "is of type 0x01"))


@case(Code.UNSUPPORTED, "", "anyone can sign for this ed25519 key", exits=ExitCode.INVALID)
def case_49_a_log_or_witness_for_which_anyone_can_sign(lab: Lab) -> Look:
    del lab
    weak = bytes([1]) + bytes(31)
    kinds = ((VerifierKey, ED25519_TYPE), (CosignerKey, ED25519_COSIGNATURE))
    return refused(*((partial(kind.parse, _vkey("x", number, weak)), "anyone can sign for this") for kind, number in kinds))


@case(Code.MALFORMED, "", "a witness key of type 0x04 is 32 bytes, not 31")
def case_30_the_key_of_a_witness_that_is_none(lab: Lab) -> Look:
    del lab
    forms = (
        (_vkey("x", ED25519_COSIGNATURE, PUBLIC[:-1]), "a witness key of type 0x04 is 32 bytes, not 31"),
        (_vkey("x", ML_DSA_44_COSIGNATURE, PUBLIC), "a witness key of type 0x06 is 1312 bytes, not 32"),
        (_vkey("x", ED25519_COSIGNATURE, PUBLIC, wrong=bytes(4)), "the key ID 00000000 is not that of the key x"),
    )
    return refused(*((partial(CosignerKey.parse, text), said) for text, said in forms))


@case(Code.MALFORMED, "", "the cosignature of witness.example/one is 71 bytes long")
def case_30_a_cosignature_of_another_form(lab: Lab) -> Look:
    del lab
    note, line = SignedNote.parse(NOTE), WITNESS.sign(HEAD, 1_796_000_000)
    cut = SignatureLine(line.name, line.key_id, line.signature[:-1])
    longer = SignatureLine(line.name, line.key_id, line.signature + b"\0")
    far = Cosigner("x" * 256, MLDSA44PrivateKey.from_seed_bytes(bytes([3]) * 32))
    return refused(
        (lambda: list(WITNESS.vkey.cosignatures(replace(note, lines=(*note.lines, cut)))), "is 71 bytes long"),
        (lambda: list(WITNESS.vkey.cosignatures(replace(note, lines=(*note.lines, longer)))), "is 73 bytes long"),
        (partial(WITNESS.sign, HEAD, 0), "0 is no time of a cosignature"),
        (partial(WITNESS.sign, HEAD, 2**63), "is no time of a cosignature"),
        (partial(far.sign, HEAD, 1), "a name of 256 bytes does not fit"),
    )


@case(Code.UNTRUSTED, "", "the checkpoint is about the log 'other.example/log'")
def case_29_no_log_signs_for_another(lab: Lab) -> Look:
    del lab
    return refused((partial(LOG.sign, replace(HEAD, origin="other.example/log")), "is about the log 'other.example/log'"))


def _policies() -> Sequence[tuple[bytes, str]]:
    log, one, two = f"log {LOG.vkey}\n", f"witness one {WITNESS.vkey}\n", f"witness two {OTHER.vkey}\n"
    quorum, both = "quorum none\n", log + one + two
    texts = (
        (both, "a policy has exactly one quorum line"),
        (both + quorum * 2, "a policy has exactly one quorum line"),
        (log + log + quorum, "two log lines have one key"),
        (one + f"witness again {WITNESS.vkey}\n" + quorum, "two witness lines have one key"),
        (one + f"witness one {OTHER.vkey}\n" + quorum, "the name 'one' is taken"),
        (f"witness none {OTHER.vkey}\n" + quorum, "the name 'none' is taken"),
        (both + "group one 1 two\n" + quorum, "the name 'one' is taken"),
        (both + "group g 1 three\n" + quorum, "'three' is no witness or group of a line above"),
        (both + "group g 1 one one\n" + quorum, "'one' is a member twice"),
        (both + "group g 1 one\ngroup h 1 one\n" + quorum, "'one' is a member twice"),
        *(
            (both + f"group g {count} one two\n" + quorum, "is not all, any, or a number from 1 to 2")
            for count in ("0", "3", "-1", "+1", "01")
        ),
        (both + "quorum three\n", "'three' is no witness or group of a line above"),
        (both + "group g 1\n" + quorum, "a line is log, witness, group or quorum"),
        (both + "nonsense\n" + quorum, "a line is log, witness, group or quorum"),
        (both.replace("\n", "\r\n") + quorum, "control characters other than tab and newline"),
        ("log x\n" + quorum, "is not a verifier key"),
        ("#\n" * (MAX_LINES + 1) + quorum, "it is longer than any policy"),
        ("#" * MAX_POLICY_BYTES + "\n" + quorum, "it is longer than any policy"),
    )
    return [*((text.encode(), said) for text, said in texts), (b"log \xff\nquorum none\n", "a verifier key is UTF-8")]


@case(Code.MALFORMED, "", "a policy has exactly one quorum line")
def case_31_a_policy_of_another_form(lab: Lab) -> Look:
    """Above all one in which a witness would count twice, or which asks for more or less than it seems to."""
    del lab
    return refused(*((partial(WitnessPolicy.parse, data, "policy"), said) for data, said in _policies()))


@case(Code.UNTRUSTED, "", "the policy names no log")
def case_29_a_policy_that_names_no_log(lab: Lab) -> Look:
    del lab
    policy = WitnessPolicy.parse(f"witness one {WITNESS.vkey}\nquorum none\n".encode(), "policy")
    return refused((partial(policy.open, NOTE), "the policy names no log"))


@case(Code.MALFORMED, "", "a proof begins with the line ")
def case_34_a_proof_file_of_another_form(lab: Lab) -> Look:
    del lab
    large = base64.b64encode(bytes(65_536)).decode()
    inclusion: list[tuple[str | bytes, str]] = [
        (f"c2sp.org/tlog-proof@v2\nindex 0\n\n{NOTE}", "a proof begins with the line "),
        (f"{HEADER}\nextra {large}\nindex 0\n\n{NOTE}", "the extra line is empty or too long"),
        (f"{HEADER}\nextra \nindex 0\n\n{NOTE}", "the extra line is empty or too long"),
        (f"{HEADER}\n{HASH}\n\n{NOTE}", "a proof has an index line"),
        (f"{HEADER}\nindex 07\n\n{NOTE}", "'07' is not an index"),
        (f"{HEADER}\nindex 0\n{HASH[:-2]}B=\n\n{NOTE}", "a hash of the proof is not in canonical base64"),
        (f"{HEADER}\nindex 0\n{base64.b64encode(bytes(31)).decode()}\n\n{NOTE}", "a hash of the proof is not 32 bytes"),
        (f"{HEADER}\nindex 0\n" + f"{HASH}\n" * 64 + f"\n{NOTE}", "a proof has at most 63 hashes, not 64"),
        (HEADER + "x" * MAX_PROOF_BYTES, "is longer than"),
        (b"\xff", "a proof is UTF-8"),
        (f"{HEADER}\nindex 0\n", "a proof is lines, an empty line, and a checkpoint"),
    ]
    growth: list[tuple[str | bytes, str]] = [(f"index 0\n\n{NOTE}", "a proof of growth begins with the line old SIZE")]
    looks: list[tuple[Callable[[], object], str]] = [(partial(InclusionFile.parse, _bytes(text)), said) for text, said in inclusion]
    return refused(*looks, *((partial(GrowthFile.parse, _bytes(text)), said) for text, said in growth))


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


@case(Code.MALFORMED, "", "an entry bundle ends within a length")
def case_55_an_entry_bundle_of_another_form(lab: Lab) -> Look:
    del lab
    data = encode_bundle([b"one", b"two"])
    return refused(
        (partial(decode_bundle, data + b"\0", 2), "an entry bundle ends within a length"),
        (partial(decode_bundle, data[:-1], 2), "holds 2 entries of 9 bytes where 2 entries belong"),
        (partial(decode_bundle, data, 1), "holds 2 entries of 10 bytes where 1 entries belong"),
    )


@case(Code.MALFORMED, "", "a full tile is 8192 bytes, not 8191")
def case_21_a_tile_or_a_place_in_one_that_cannot_be(lab: Lab) -> Look:
    del lab
    few = TileReader(300, lambda level, index: bytes(8192), lambda start, stop: [bytes(32)] * (stop - start - 1))
    cut = TileReader(300, lambda level, index: bytes(8192), lambda start, stop: [bytes(31)] * (stop - start))
    return refused(
        (partial(split_tile, bytes(8191)), "a full tile is 8192 bytes, not 8191"),
        (lambda: list(tiles_completed(5, 4)), "a tree cannot grow from 5 to 4 entries"),
        (partial(tile_path, 64, 0), "there is no tile level 64"),
        (partial(entries_path, 0, 256), "there is no tile 0 of width 256"),
        (partial(few.node, 0, 300), "a tree of 300 entries has no full subtree 300 at level 0"),
        (partial(few.node, 0, 299), "the store gave 43 values where the tree has 44 hashes"),
        (partial(cut.node, 0, 299), "the store gave 44 values where the tree has 44 hashes of 32 bytes"),
    )


SIGNATURE = LeafSignature(1, bytes([4]) * 32, bytes(64))
LEAF = Leaf(EntryKind.ATTESTATION, False, 5, NO_HASH, "text/plain", 3, bytes([6]) * 32, NO_HASH, (SIGNATURE,))


def _changed(at: int, value: bytes) -> bytes:
    data = LEAF.encode()
    return data[:at] + value + data[at + len(value) :]


@case(Code.MALFORMED, "", "a leaf is at most 65535 bytes long, not 65536")
def case_62_a_leaf_of_another_form(lab: Lab) -> Look:
    """Each as it would stand in the log; those that no bytes can express as they would be made."""
    del lab
    data = LEAF.encode()
    count = len(data) - len(SIGNATURE.encode()) - 1
    none, many = data[:count] + b"\0", data[:count] + b"\x11" + SIGNATURE.encode() * 17
    empty = data[:-66] + b"\0\0"
    large = tuple(replace(SIGNATURE, key_sha256=bytes([number]) * 32, signature=bytes(30_000)) for number in range(3))
    other = (replace(SIGNATURE, algorithm=2), SIGNATURE)
    decoded = (
        (data.ljust(MAX_LEAF_BYTES + 1, b"\0"), "a leaf is at most 65535 bytes long, not 65536"),
        (data[:-1], "ends too early"),
        (data[:10], "ends too early"),
        (data + b"\0", "a leaf is not in its canonical form"),
        (none, "a leaf holds 1 to 16 signatures, not 0"),
        (many, "a leaf holds 1 to 16 signatures, not 17"),
        (data[:count] + b"\2" + b"".join(each.encode() for each in other), "are not strictly sorted"),
        (empty, "a signature is 1 to 65535 bytes long, not 0"),
        (_changed(3, b"\x80"), "admitted_ms 9223372036854775813 is not from 0 to 2**63 - 1"),
        (_changed(54, b"\x80"), "payload_len 9223372036854775811 is not from 0 to 2**63 - 1"),
        (_changed(44, b"\xff"), "a payload type is not UTF-8"),
        (data[:43] + b"\0" + data[54:], "a payload type is 1 to 255 bytes long"),
    )
    made: list[tuple[dict[str, Any], str]] = [
        ({"signatures": large}, "a leaf is at most 65535 bytes long"),
        ({"prev_notice": bytes(31)}, "prev_notice is 31 bytes long, not 32"),
        ({"payload_type": "\ud800"}, "a payload type holds a lone surrogate"),
    ]
    looks: list[tuple[Callable[[], object], str]] = [(partial(Leaf.decode, each), said) for each, said in decoded]
    return refused(*looks, *((partial(replace, LEAF, **fields), said) for fields, said in made))


@case(Code.UNSUPPORTED, "", "leaf version 2 is not known to this version", exits=ExitCode.INVALID)
def case_61_a_leaf_with_something_to_come(lab: Lab) -> Look:
    """Its version, its kind, a flag, or the algorithm of a signature."""
    del lab
    algorithm = len(LEAF.encode()) - len(SIGNATURE.encode())
    forms = (
        (0, b"\2", "leaf version 2"),
        (1, b"\7", "entry kind 7"),
        (2, b"\2", "leaf flags 2"),
        (algorithm, b"\x63", "signature algorithm 99"),
    )
    return refused(*((partial(Leaf.decode, _changed(at, value)), f"{said} is not known") for at, value, said in forms))


@case(Code.SCHEMA_INVALID, "", "a key event has the fields", exits=ExitCode.INVALID)
def case_48_a_key_event_of_another_form(lab: Lab) -> Look:
    del lab
    good: dict[str, Any] = {"event": "retire", "principal": "bob", "role": "any", "spki": HASH}
    forms: list[tuple[dict[str, Any], str]] = [
        ({"more": 1}, "a key event has the fields"),
        ({"event": "lend"}, "event 'lend' is none of"),
        ({"reason": 1}, "reason must be a text"),
        ({"since_index": 3}, "only of a revoked key"),
        ({"principal": ""}, "principal must be a text"),
        ({"role": 1}, "role must be a text"),
        ({"since_ms": -1}, "since_ms must be an integer from 0 on"),
        ({"since_ms": True}, "since_ms must be an integer from 0 on"),
        ({"spki": "!"}, "spki is not base64"),
        ({"spki": HASH[:-2] + "B="}, "spki is not in canonical base64"),
    ]
    return refused(*((partial(KeyEvent.parse, json.dumps(good | changed).encode()), said) for changed, said in forms))


@case(Code.SCHEMA_INVALID, "", "the genesis must have exactly the fields", exits=ExitCode.INVALID)
def case_60_an_entry_0_of_another_form(lab: Lab) -> Look:
    del lab
    fields = json.loads(Genesis.make(LOG.vkey, "file:sha256:00", 1).encode())
    forms = ({"more": 1}, "the genesis must have exactly the fields"), ({"incarnation": "xy"}, "the incarnation is not hexadecimal")
    return refused(*((partial(Genesis.parse, json.dumps(fields | changed).encode()), said) for changed, said in forms))


@case(Code.SCHEMA_INVALID, "", "it does not have the fields of an anchor", exits=ExitCode.INVALID)
def case_58_an_anchor_of_another_form(lab: Lab) -> Look:
    del lab
    fields = json.loads(Anchor(HEAD.origin, HEAD.size, HEAD.root, NOTE, 1_796_000_000_000).encode())
    forms: list[tuple[dict[str, Any], str]] = [
        ({"more": 1}, "it does not have the fields of an anchor"),
        ({"root": "AB"}, "it does not have the fields of an anchor"),
        ({"size": "3"}, "size must be an integer and written a time"),
        ({"written": 5}, "size must be an integer and written a time"),
    ]
    return refused(*((partial(Anchor.decode, json.dumps(fields | changed).encode(), "anchor"), said) for changed, said in forms))
