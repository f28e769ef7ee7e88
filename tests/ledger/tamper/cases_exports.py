"""Cases 10, 16, 50 to 54, 60 to 62 and 64 in an export: files that were changed, that are missing, and histories that the log signed."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from insider import leaf_of, replace_leaf, sign_again
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.envelope import PAYLOAD_TYPE
from countermark.ledger.entry_bundle import decode_bundle, encode_bundle
from countermark.ledger.export import export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.incarnation import Incarnation
from countermark.ledger.leaf import EntryKind, Leaf
from countermark.ledger.note import Checkpoint
from countermark.ledger.submission import WITHHOLD_TYPE, Submission

from .cases_admission import NUMBER_BODIES
from .cases_entries import twice_and_signed
from .cases_history import append_believing, rejection_without_flag
from .cases_outside import policy_of
from .lab import Lab, Look, asked, case, of_report, refused


def export_of(box: Box, folder: Path) -> Path:
    """The export of a ledger in `folder`."""
    with box.reader() as reader:
        export(reader, folder)
    return folder


def _checked(box: Box, folder: Path, **options: Any) -> Look:
    chosen = ExportOptions(**{"keys": box.keys} | options)
    return lambda: of_report(audit_export(folder, box.log.vkey, chosen))


def _spoilt(lab: Lab, spoil: Callable[[Path], object], *, large: bool = False, **options: Any) -> Look:
    """A good export of which `spoil` changes files."""
    box = lab.large() if large else lab.small()
    folder = export_of(box, lab.space() / "out")
    spoil(folder)
    return _checked(box, folder, **options)


def _of_an_insider(lab: Lab, spoil: Callable[[Box], object], **options: Any) -> Look:
    """A good export of a ledger that somebody with the log's key has spoilt."""
    box = lab.small()
    spoil(box)
    box.forget()
    return _checked(box, export_of(box, lab.space() / "out"), **options)


def _write(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def _remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


@case(Code.INCOMPLETE, "", "SCHEMA is missing")
def case_53_an_export_without_its_schema(lab: Lab) -> Look:
    return _spoilt(lab, _remove("SCHEMA"))


@case(Code.UNSUPPORTED, "", "SCHEMA names no layout that this version knows")
def case_61_an_export_of_a_layout_to_come(lab: Lab) -> Look:
    return _spoilt(lab, _write("SCHEMA", b"https://countermark.dev/schema/export/v2\n"))


@case(Code.INCOMPLETE, "", "checkpoint is missing: nothing has been published here")
def case_53_an_export_without_its_checkpoint(lab: Lab) -> Look:
    return _spoilt(lab, _remove("checkpoint"))


@case(Code.MALFORMED, "", "checkpoint: ")
def case_53_an_export_whose_checkpoint_is_no_file(lab: Lab) -> Look:
    def link(folder: Path) -> None:
        (folder / "checkpoint").rename(folder.parent / "elsewhere")
        (folder / "checkpoint").symlink_to(folder.parent / "elsewhere")

    return _spoilt(lab, link)


@case(Code.MALFORMED, "", "checkpoint: it is no file")
def case_53_an_export_whose_checkpoint_never_ends(lab: Lab) -> Look:
    def pipe(folder: Path) -> None:
        (folder / "checkpoint").unlink()
        os.mkfifo(folder / "checkpoint")

    return _spoilt(lab, pipe)


@case(Code.MALFORMED, "", "SCHEMA: more than 256 bytes")
def case_63_a_file_of_an_export_longer_than_is_read(lab: Lab) -> Look:
    return _spoilt(lab, _write("SCHEMA", b"x" * 257))


@case(Code.INCOMPLETE, "", "tile/entries/000 is missing")
def case_53_a_bundle_of_entries_is_missing(lab: Lab) -> Look:
    return _spoilt(lab, _remove("tile/entries/000"), large=True)


@case(Code.INCOMPLETE, "", "tile/0/000 is missing")
def case_53_a_tile_of_an_export_is_missing(lab: Lab) -> Look:
    return _spoilt(lab, _remove("tile/0/000"), large=True)


@case(Code.INCOMPLETE, "", "the root cannot be worked out without the missing entries")
def case_53_entries_and_their_hashes_are_missing(lab: Lab) -> Look:
    def remove(folder: Path) -> None:
        (folder / "tile/entries/000").unlink()
        (folder / "tile/0/000").unlink()

    return _spoilt(lab, remove, large=True)


@case(Code.TAMPERED, "", "tile/0/000 does not hold the hashes of the entries")
def case_54_a_tile_of_an_export(lab: Lab) -> Look:
    return _spoilt(lab, lambda folder: _flip(folder / "tile/0/000", 40), large=True)


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@case(Code.TAMPERED, "", "the entries do not hash to the root that was signed")
def case_54_a_leaf_of_an_export(lab: Lab) -> Look:
    return _spoilt(lab, lambda folder: _flip(folder / "tile/entries/000.p/9", 60))


@case(Code.UNSUPPORTED, "entry 0", "leaf version 3 is not known", exits=ExitCode.TAMPERED)
def case_61_a_leaf_to_come_in_an_export(lab: Lab) -> Look:
    return _spoilt(lab, lambda folder: _version(folder / "tile/entries/000.p/9"))


def _version(path: Path) -> None:
    leaves = decode_bundle(path.read_bytes(), 9)
    path.write_bytes(encode_bundle([b"\3" + leaves[0][1:], *leaves[1:]]))


@case(Code.TAMPERED, "", "tile/0/000.p/9 is not the beginning of tile/0/000.p/10")
def case_54_a_tile_of_an_earlier_head(lab: Lab) -> Look:
    box, folder = lab.small(), lab.space() / "out"
    export_of(box, folder)
    box.append(box.passed(1))
    export_of(box, folder)
    _flip(folder / "tile/0/000.p/9", 3)
    return _checked(box, folder)


@case(Code.MALFORMED, "", "tile/0/007 belongs to nothing that the checkpoint covers", exits=ExitCode.YES)
def case_54_a_file_too_many(lab: Lab) -> Look:
    return _spoilt(lab, _write("tile/0/007", b"x"))


@case(Code.INCOMPLETE, "", "no keys are given, so no signature was verified")
def case_10_an_auditor_of_an_export_without_keys(lab: Lab) -> Look:
    return _spoilt(lab, lambda folder: None, keys={})


@case(Code.UNTRUSTED, "", "checkpoint: the witnesses of this checkpoint are no quorum")
def case_30_an_export_that_no_witness_has_seen(lab: Lab) -> Look:
    box = lab.small()
    return _checked(box, export_of(box, lab.space() / "out"), policy=policy_of(box))


@case(Code.MALFORMED, "", "alice: ")
def case_25_a_note_of_another_form_that_is_held(lab: Lab) -> Look:
    return _spoilt(lab, lambda folder: None, held={"alice": "nonsense"})


@case(Code.SPLIT_VIEW, "", "at 5 entries the export has another root than a checkpoint held elsewhere")
def case_07_an_export_beside_another_history(lab: Lab) -> Look:
    box = lab.small()
    held = {"alice": box.log.sign(Checkpoint(box.log.vkey.name, 5, bytes(32)))}
    return _checked(box, export_of(box, lab.space() / "out"), held=held)


@case(Code.CLOCK, "entry 9", "the entry was admitted before its predecessor")
def case_50_a_time_that_runs_backwards_in_an_export(lab: Lab) -> Look:
    def spoil(box: Box) -> None:
        box.clock.now -= 10_000
        append_believing(box, admitted_ms=0)

    return _of_an_insider(lab, spoil)


@case(Code.TAMPERED, "entry 9", "the leaf does not name the newest notice before it")
def case_64_a_chain_of_notices_that_leaves_one_out_in_an_export(lab: Lab) -> Look:
    return _of_an_insider(lab, lambda box: append_believing(box, last_notice=bytes(32)))


@case(Code.TAMPERED, "entry 9", "the notice flag is not what the payload calls for")
def case_64_a_rejection_that_was_not_flagged_in_an_export(lab: Lab) -> Look:
    return _of_an_insider(lab, rejection_without_flag)


@case(Code.DUPLICATE, "entry 9", "the entry repeats an earlier one")
def case_16_an_entry_twice_and_signed_in_an_export(lab: Lab) -> Look:
    return _of_an_insider(lab, twice_and_signed)


@case(Code.TAMPERED, "entry 8", "the size of the payload is not what was admitted")
def case_03_the_size_of_a_payload_in_an_export(lab: Lab) -> Look:
    return _of_an_insider(lab, lambda box: _leaf(box, 8, lambda leaf: {"payload_len": leaf.payload_len + 1}))


def _leaf(box: Box, index: int, change: Callable[[Leaf], dict[str, Any]]) -> None:
    """Another leaf, signed by the log's owner."""
    leaf = Leaf.decode(leaf_of(box, index))
    replace_leaf(box, index, replace(leaf, **change(leaf)).encode())
    sign_again(box)


@case(Code.TAMPERED, "entry 9", "entry 0, and no other, is the genesis")
def case_60_a_second_genesis_in_an_export(lab: Lab) -> Look:
    def spoil(box: Box) -> None:
        box.append(box.document("policy: two"))
        _leaf(box, 9, lambda leaf: {"payload_type": Leaf.decode(leaf_of(box, 0)).payload_type})

    return _of_an_insider(lab, spoil)


@case(Code.TAMPERED, "entry 0", "entry 0 names another log or key")
def case_60_an_entry_0_of_another_log_in_an_export(lab: Lab) -> Look:
    """The files are those of one log, and their checkpoint is signed with the key of another."""
    box = lab.small()
    folder = export_of(box, lab.space() / "out")
    stranger = replace(box, log=type(box.log)("other.example/log", box.log._private))
    (folder / "checkpoint").write_text(stranger.log.sign(Checkpoint("other.example/log", 9, box.head.root)))
    return _checked(stranger, folder)


@case(Code.TAMPERED, "entry 0", "entry 0 does not say what this log is")
def case_60_an_entry_0_that_says_nothing_in_an_export(lab: Lab) -> Look:
    """Entry 0 is a document; the log's owner has signed that this is the whole log."""
    box = lab.small()
    document = box.append(box.document("no genesis"))[0]
    folder, digest = export_of(box, lab.space() / "out"), Leaf.decode(leaf_of(box, document)).payload_sha256
    path = folder / "tile/entries/000.p/10"
    leaves = decode_bundle(path.read_bytes(), 10)
    path.write_bytes(encode_bundle([replace(Leaf.decode(leaves[0]), payload_sha256=digest).encode(), *leaves[1:]]))
    return _checked(box, folder)


@case(Code.ROLLBACK, "entry 9", "ledger.incarnation: ")
def case_13_a_new_incarnation_in_an_export(lab: Lab) -> Look:
    def spoil(box: Box) -> None:
        lost = Checkpoint(box.log.vkey.name, 11, bytes(32))
        box.append(Incarnation.make(9, lost, "note", "the disk is gone").sign(box.operator))

    return _of_an_insider(lab, spoil)


def _payload_of(box: Box, index: int) -> str:
    digest = Leaf.decode(leaf_of(box, index)).payload_sha256.hex()
    return f"payload/{digest[:2]}/{digest}"


@case(Code.INCOMPLETE, "entry 5", "the payload or bundle is missing")
def case_52_a_payload_of_an_export_that_nobody_withheld(lab: Lab) -> Look:
    box = lab.small()
    folder = export_of(box, lab.space() / "out")
    (folder / _payload_of(box, 5)).unlink()
    return _checked(box, folder)


@case(Code.WITHHELD, "entry 5", "the payload was withheld")
def case_51_a_payload_of_an_export_that_was_withheld(lab: Lab) -> Look:
    box = lab.small()
    name = _payload_of(box, 5)
    notice = json.dumps({"payload": f"payload:sha256:{name[-64:]}", "reason": "personal data"}).encode()
    box.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, notice, box.operator))
    folder = export_of(box, lab.space() / "out")
    (folder / name).unlink()
    return _checked(box, folder)


@case(Code.MALFORMED, "entry 9", "it was signed as a statement: NaN is not JSON")
def case_42_a_number_in_an_export_that_readers_read_differently(lab: Lab) -> Look:
    return _of_an_insider(lab, lambda box: box.append(Submission.sign(EntryKind.ATTESTATION, PAYLOAD_TYPE, NUMBER_BODIES[2], box.operator)))


@case(Code.TAMPERED, "entry 5", "the payload or bundle is not what was signed")
def case_01_a_bit_of_a_payload_in_an_export(lab: Lab) -> Look:
    box = lab.small()
    folder = export_of(box, lab.space() / "out")
    _flip(folder / _payload_of(box, 5), 100)
    return _checked(box, folder)


@case(Code.MALFORMED, "entry 5", "payload/")
def case_01_a_payload_of_an_export_that_is_no_file(lab: Lab) -> Look:
    box = lab.small()
    path = export_of(box, lab.space() / "out") / _payload_of(box, 5)
    path.rename(path.parent.parent.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent.parent.parent / "elsewhere")
    return _checked(box, path.parent.parent.parent)


def _exporting(box: Box, folder: Path) -> Callable[[], object]:
    return partial(export_of, box, folder)


@case(Code.LEDGER_TAMPERED, "", "the entries do not hash to the root that was signed")
def case_04_a_ledger_that_was_changed_is_not_published(lab: Lab) -> Look:
    """The right edge and entry 0 are whole, so that the ledger opens; what a leaf was exchanged for, or that it is gone, shows late."""
    swapped, gone, unreadable = lab.large(), lab.large(), lab.large()
    swapped.edit("UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 21) WHERE idx = 20")
    gone.edit("DELETE FROM entry WHERE idx = 20")
    unreadable.edit("UPDATE entry SET leaf = x'00' WHERE idx = 20")
    return refused(
        (_exporting(swapped, lab.space() / "out"), "the entries do not hash to the root that was signed"),
        (_exporting(gone, lab.space() / "out"), "entry 20 is missing or no leaf"),
        (_exporting(unreadable, lab.space() / "out"), "entry 20 cannot be read"),
    )


@case(Code.ROLLBACK, "", "11 entries have been published, and the ledger has 9")
def case_13_a_ledger_behind_its_export_is_not_published(lab: Lab) -> Look:
    box, folder = lab.small(), lab.space() / "out"
    older = box.copy(lab.space())
    box.append(box.passed(1), box.passed(2))
    export_of(box, folder)
    older.forget()
    return asked(_exporting(older, folder))


@case(Code.SPLIT_VIEW, "", "at 10 entries the ledger has another root than the one that was published")
def case_14_a_ledger_beside_its_export_is_not_published(lab: Lab) -> Look:
    box, folder = lab.small(), lab.space() / "out"
    twin = box.copy(lab.space())
    box.append(box.passed(1))
    export_of(box, folder)
    twin.forget()
    twin.append(twin.passed(2), twin.passed(3))
    return asked(_exporting(twin, folder))


@case(Code.UNTRUSTED, "", "the checkpoint bears a bad signature in the name of ")
def case_27_an_export_whose_checkpoint_was_spoilt_is_not_continued(lab: Lab) -> Look:
    box = lab.small()
    folder = export_of(box, lab.space() / "out")
    (folder / "checkpoint").write_text(box.head.note.replace("\n9\n", "\n8\n"))
    return asked(_exporting(box, folder))


@case(Code.TAMPERED, "", "it is not what was published")
def case_54_a_published_file_that_was_changed_is_not_written_over(lab: Lab) -> Look:
    box = lab.small()
    folder = export_of(box, lab.space() / "out")
    _flip(folder / _payload_of(box, 5), 100)
    box.append(box.passed(1))
    return asked(_exporting(box, folder))
