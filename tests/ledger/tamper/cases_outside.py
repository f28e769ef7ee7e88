"""Cases 30 to 33, 37, 53 to 56: cosignatures, proof files and exports that were moved, mixed, cut off or are too old."""

from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from ledger_box import Box

from countermark.actions.proofs import check_proof
from countermark.attestations.codes import Code
from countermark.ledger.cosignature import MAX_TIME_S, Cosigner
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.proof_file import InclusionFile
from countermark.ledger.signed_note import SignatureLine, SignedNote
from countermark.ledger.witness_policy import WitnessPolicy

from .lab import Lab, Look, all_of, asked, audited, case, of_report

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2)]
WITNESSES = [Cosigner(f"witness.example/w{number}", key) for number, key in enumerate(KEYS, 1)]
TIME_S = 1_796_000_100


def policy_of(box: Box, quorum: str = "all") -> WitnessPolicy:
    """Who believes the log, and both witnesses together (or any of them)."""
    lines = [f"log {box.log.vkey}", *(f"witness W{number} {witness.vkey}" for number, witness in enumerate(WITNESSES, 1))]
    return WitnessPolicy.parse("\n".join([*lines, f"group both {quorum} W1 W2", "quorum both", ""]).encode(), "policy")


def head_of(box: Box) -> Checkpoint:
    return Checkpoint(box.log.vkey.name, box.head.size, box.head.root)


def note_with(box: Box, *lines: SignatureLine) -> str:
    note = SignedNote.parse(box.head.note)
    return str(SignedNote(note.text, (*note.lines, *lines)))


def _opened(box: Box, *lines: SignatureLine, quorum: str = "all") -> Look:
    policy, note = policy_of(box, quorum), note_with(box, *lines)
    return asked(lambda: policy.open(note))


@case(Code.UNTRUSTED, "", "bears a bad cosignature in the name of witness.example/w1")
def case_30_a_cosignature_of_another_log_or_size(lab: Lab) -> Look:
    box = lab.small()
    head = head_of(box)
    others = (Checkpoint("other.example/log", head.size, head.root), Checkpoint(head.origin, head.size + 1, head.root))
    first = (*others, Checkpoint(head.origin, head.size, bytes(32)))
    return all_of(*(_opened(box, WITNESSES[0].sign(other, TIME_S), WITNESSES[1].sign(head, TIME_S)) for other in first))


@case(Code.UNTRUSTED, "entry 8", "bears a bad cosignature in the name of witness.example/w1")
def case_30_a_cosignature_of_another_log_in_the_ledger(lab: Lab) -> Look:
    """Its row says what its line says, and only who knows the witness can tell."""
    box = lab.small()
    head = head_of(box)
    line = WITNESSES[0].sign(Checkpoint("other.example/log", head.size, head.root), TIME_S)
    row = (head.size, head.root, line.name, line.key_id, TIME_S, str(line).rstrip("\n"))
    box.edit("INSERT INTO cosignature VALUES (?, ?, ?, ?, ?, ?)", values=row)
    return audited(box, witnesses=policy_of(box))


@case(Code.UNTRUSTED, "", "the witnesses of this checkpoint are no quorum: witness.example/w1")
def case_31_one_witness_twice(lab: Lab) -> Look:
    box = lab.small()
    return _opened(box, WITNESSES[0].sign(head_of(box), TIME_S), WITNESSES[0].sign(head_of(box), TIME_S + 1))


@case(Code.MALFORMED, "", "two witness lines have one key")
def case_31_one_key_under_two_names(lab: Lab) -> Look:
    box = lab.small()
    twin = Cosigner("witness.example/twin", KEYS[0])
    text = f"log {box.log.vkey}\nwitness A {WITNESSES[0].vkey}\nwitness B {twin.vkey}\ngroup g all A B\nquorum g\n"
    return asked(lambda: WitnessPolicy.parse(text.encode(), "policy"))


@case(Code.UNTRUSTED, "", "the witnesses of this checkpoint are no quorum: none")
def case_32_a_plain_signature_as_a_cosignature(lab: Lab) -> Look:
    """The type is in the key ID, so that the line belongs to another key."""
    box = lab.small()
    name = WITNESSES[0].vkey.name
    plain = SignedNote.parse(CheckpointSigner(name, KEYS[0]).sign(Checkpoint(name, 9, bytes(32))))
    own = SignatureLine(name, plain.lines[0].key_id, KEYS[0].sign(SignedNote.parse(box.head.note).text.encode()))
    return _opened(box, own, quorum="any")


@case(Code.UNTRUSTED, "", "the checkpoint is not signed by ")
def case_32_a_cosignature_as_the_signature_of_the_log(lab: Lab) -> Look:
    box = lab.small()
    as_witness = Cosigner(box.log.vkey.name, box.log._private).sign(head_of(box), TIME_S)
    note = str(SignedNote(SignedNote.parse(box.head.note).text, (as_witness,)))
    return asked(lambda: policy_of(box).open(note))


@case(Code.MALFORMED, "", "names a time beyond 2**63 - 1")
def case_33_a_time_that_is_no_time(lab: Lab) -> Look:
    box = lab.small()
    line = WITNESSES[0].sign(head_of(box), MAX_TIME_S)
    beyond = SignatureLine(line.name, line.key_id, (MAX_TIME_S + 1).to_bytes(8) + line.signature[8:])
    return _opened(box, beyond, quorum="any")


@case(Code.UNTRUSTED, "", "bears a bad cosignature in the name of witness.example/w1")
def case_33_a_time_that_was_changed(lab: Lab) -> Look:
    box = lab.small()
    line = WITNESSES[0].sign(head_of(box), TIME_S)
    later = SignatureLine(line.name, line.key_id, (TIME_S + 1).to_bytes(8) + line.signature[8:])
    return _opened(box, later, quorum="any")


def proof_of(lab: Lab, box: Box, index: int, change: Callable[[InclusionFile], InclusionFile]) -> Path:
    with box.reader() as reader:
        found = reader.prove(index)
    path = lab.space() / "entry.tlog-proof"
    path.write_bytes(change(InclusionFile(found.index, found.hashes, found.note, found.leaf)).encode())
    return path


def logs_only(box: Box) -> WitnessPolicy:
    return WitnessPolicy.parse(f"log {box.log.vkey}\nquorum none\n".encode(), "policy")


@case(Code.TAMPERED, "", "and this is another")
def case_37_a_good_proof_beside_another_payload(lab: Lab) -> Look:
    box = lab.small()
    path = proof_of(lab, box, 5, lambda proof: proof)
    with box.reader() as reader:
        path.with_name("payload.json").write_bytes(reader.entry(4).payload)
    return asked(lambda: check_proof(path, logs_only(box), payload=path.with_name("payload.json")))


@case(Code.TAMPERED, "", "the proof does not place this leaf at entry 4 of the tree of 9")
def case_34_a_proof_file_for_another_entry(lab: Lab) -> Look:
    box = lab.small()
    path = proof_of(lab, box, 5, lambda proof: InclusionFile(4, proof.hashes, proof.note, proof.extra))
    return asked(lambda: check_proof(path, logs_only(box)))


def exported(lab: Lab, box: Box) -> Path:
    folder = lab.space() / "out"
    with box.reader() as reader:
        export(reader, folder)
    return folder


def _checked(box: Box, folder: Path, **held: str) -> Look:
    return lambda: of_report(audit_export(folder, box.log.vkey, ExportOptions(box.keys, held)))


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@case(Code.INCOMPLETE, "")
def case_53_a_checkpoint_newer_than_the_tiles(lab: Lab) -> Look:
    box = lab.small()
    folder = exported(lab, box)
    box.append(box.passed(1), box.passed(2))
    (folder / "checkpoint").write_text(box.head.note)
    return _checked(box, folder)


@case(Code.TAMPERED, "")
def case_54_a_file_that_differs_from_an_earlier_mirror(lab: Lab) -> Look:
    box = lab.large()
    folder = exported(lab, box)
    _change(folder / "tile/0/000", lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:])
    return _checked(box, folder)


@case(Code.TAMPERED, "entry 5")
def case_54_a_payload_that_was_changed(lab: Lab) -> Look:
    box = lab.small()
    folder = exported(lab, box)
    with box.reader() as reader:
        name = reader.entry(5).digest.hex
    (path,) = folder.rglob(f"{name}*")
    _change(path, lambda data: data[:-1] + b" ")
    return _checked(box, folder)


@case(Code.MALFORMED, "")
def case_55_an_entry_bundle_with_trailing_bytes(lab: Lab) -> Look:
    box = lab.small()
    folder = exported(lab, box)
    (path,) = (folder / "tile/entries").rglob("9")
    _change(path, lambda data: data + b"\0\0")
    return _checked(box, folder)


@case(Code.ROLLBACK, "", "the export has 9 entries; a checkpoint held elsewhere says 11")
def case_56_an_export_that_is_behind_what_the_auditor_holds(lab: Lab) -> Look:
    """To an auditor who remembers, an old head is no old head but a rollback."""
    box = lab.small()
    folder = exported(lab, box)
    box.append(box.passed(1), box.passed(2))
    return _checked(box, folder, alice=box.head.note)
