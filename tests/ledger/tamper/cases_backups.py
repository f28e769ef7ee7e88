"""Cases 1, 13, 14, 57 and 58 in a backup: what was copied, what its manifest says, and what may be put back."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode
from countermark.ledger.backup import back_up, manifest_path
from countermark.ledger.note import CheckpointSigner
from countermark.ledger.restore import candidate, install

from .cases_forms import PRIVATE
from .lab import Lab, Look, Seen, asked, case, refused

WRITTEN_MS = 1_796_000_000_123


def backed_up(lab: Lab) -> tuple[Box, Path]:
    """A ledger that is lost, and its backup of nine entries."""
    box, backup = lab.small(), lab.space() / "one.bak"
    back_up(box.path, backup, box.head, WRITTEN_MS)
    for path in box.folder.glob("countermark.db*"):
        path.unlink()
    return box, backup


def restoring(box: Box, backup: Path, *held: str) -> Callable[[], object]:
    """Put a backup back, see what was found, and lose it again."""

    def question() -> object:
        try:
            with candidate(backup, box.path, box.log.vkey, held, box.anchor) as found:
                if found.lost is None:
                    install(found.path, box.path)
                return found
        finally:
            for path in box.folder.glob("countermark.db*"):
                path.unlink()

    return question


def spoilt(lab: Lab, spoil: Callable[[Path], object]) -> Callable[[], object]:
    box, backup = backed_up(lab)
    spoil(backup)
    return restoring(box, backup)


def _said(**changed: object) -> Callable[[Path], object]:
    """Change the manifest."""

    def spoil(backup: Path) -> None:
        fields = json.loads(manifest_path(backup).read_text())
        manifest_path(backup).write_text(json.dumps(fields | changed))

    return spoil


def _edited(sql: str) -> Callable[[Path], object]:
    """Change the copy with care: guards put back, manifest made to match."""

    def spoil(backup: Path) -> None:
        db = raw(backup)
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(sql)
        for _, text in triggers:
            db.execute(text)
        db.close()
        _said(sha256=hashlib.sha256(backup.read_bytes()).hexdigest(), bytes=backup.stat().st_size)(backup)

    return spoil


@case(Code.OK)
def case_13_a_backup_is_put_back(lab: Lab) -> Look:
    return asked(restoring(*backed_up(lab)))


@case(Code.TAMPERED, "", "the backup has the SHA-256 ")
def case_01_a_bit_of_a_backup(lab: Lab) -> Look:
    def flip(backup: Path) -> None:
        data = bytearray(backup.read_bytes())
        data[9000] ^= 1
        backup.write_bytes(data)

    return refused((spoilt(lab, flip), "the backup has the SHA-256 "), (spoilt(lab, _said(bytes=8192)), "the backup has the SHA-256 "))


@case(Code.INCOMPLETE, "", "the backup has no manifest")
def case_13_a_backup_without_its_manifest(lab: Lab) -> Look:
    return asked(spoilt(lab, lambda backup: manifest_path(backup).unlink()))


@case(Code.SCHEMA_INVALID, "", "it does not have the fields of a backup's manifest", exits=ExitCode.INVALID)
def case_13_a_manifest_of_another_form(lab: Lab) -> Look:
    forms: list[dict[str, object]] = [{"more": 1}, {"size": True}, {"root": "AB"}, {"sha256": "x"}, {"schema": "v2"}]
    return refused(*((spoilt(lab, _said(**changed)), "does not have the fields of a backup's manifest") for changed in forms))


@case(Code.TAMPERED, "", "the manifest is not what its note says")
def case_13_a_manifest_that_says_another_head_than_its_note(lab: Lab) -> Look:
    forms: list[dict[str, object]] = [{"size": 5}, {"root": "00" * 32}, {"origin": "other.example/log"}]
    return refused(*((spoilt(lab, _said(**changed)), "the manifest is not what its note says") for changed in forms))


@case(Code.TAMPERED, "", "the backup ends at 9 entries, and its manifest says 1")
def case_13_a_manifest_of_an_older_backup(lab: Lab) -> Look:
    """What it says is signed; it is about less than what lies beside it."""
    with lab.small().reader() as reader:
        (note,) = reader.row("SELECT note FROM checkpoint WHERE size = 1") or ("",)
        root = reader.root_at(1).hex()
    return asked(spoilt(lab, _said(size=1, root=root, note=note)))


@case(Code.TAMPERED, "", "the backup does not verify: TAMPERED ledger.payload")
def case_02_a_payload_in_a_backup(lab: Lab) -> Look:
    return asked(spoilt(lab, _edited("UPDATE payload SET data = x'00' WHERE rowid = 3")))


@case(Code.INCOMPLETE, "", "the backup does not verify: INCOMPLETE ledger.payload")
def case_52_a_payload_that_a_backup_lacks(lab: Lab) -> Look:
    return asked(spoilt(lab, _edited("DELETE FROM payload WHERE rowid = 3")))


@case(Code.UNTRUSTED, "", "the checkpoint is not signed by ")
def case_29_a_backup_of_another_log(lab: Lab) -> Look:
    box, backup = backed_up(lab)
    return asked(restoring(replace(box, log=CheckpointSigner(box.log.vkey.name, PRIVATE)), backup))


@case(Code.ROLLBACK, "", "entries are lost")
def case_13_a_backup_below_what_somebody_holds(lab: Lab) -> Look:
    """The anchor's word, or that of a checkpoint held; it is for the caller to say whether the log goes on."""
    box, backup = lab.small(), lab.space() / "one.bak"
    back_up(box.path, backup, box.head, WRITTEN_MS)
    box.append(box.passed(1))
    note = box.head.note
    for path in box.folder.glob("countermark.db*"):
        path.unlink()

    def look() -> Seen:
        found = restoring(box, backup, note)()
        lost = getattr(found, "lost", None)
        behind = [item.code for item in getattr(found, "findings", ()) if item.code is Code.ROLLBACK]
        return Seen(ExitCode.TAMPERED, ((Code.ROLLBACK, "", "entries are lost"),)) if lost and behind else Seen(ExitCode.YES)

    return look


@case(Code.SPLIT_VIEW, "", "the backup does not verify: SPLIT_VIEW ledger.anchor")
def case_14_a_backup_of_another_history(lab: Lab) -> Look:
    box, backup = lab.small(), lab.space() / "fork.bak"
    twin = box.copy(lab.space())
    twin.forget()
    twin.append(twin.passed(7))
    back_up(twin.path, backup, twin.head, WRITTEN_MS)
    box.append(box.passed(1))
    for path in box.folder.glob("countermark.db*"):
        path.unlink()
    return asked(restoring(box, backup))


@case(Code.UNREADABLE, "", "a ledger stands here", exits=ExitCode.INVALID)
def case_57_a_ledger_that_stands_is_not_replaced(lab: Lab) -> Look:
    """Nor one of which the write-ahead log is left: entries may be in it that the backup lacks."""
    box, backup = backed_up(lab)
    log = box.path.with_name(f"{box.path.name}-wal")

    def ask(there: Path) -> object:
        there.write_bytes(b"")
        return restoring(box, backup)()

    return refused((partial(ask, box.path), "a ledger stands here"), (partial(ask, log), "a ledger stands here"))


@case(Code.LEDGER_TAMPERED, "", "the copy does not continue the ledger that was copied")
def case_57_a_copy_of_another_ledger_is_no_backup(lab: Lab) -> Look:
    """The file was exchanged between the look at its head and the copy."""
    box, other = lab.small(), lab.small()
    other.append(other.passed(1))
    head = replace(box.head, size=10, root=bytes(32))
    return refused(
        (lambda: back_up(other.path, lab.space() / "x.bak", head, WRITTEN_MS), "the copy does not continue"),
        (lambda: back_up(box.path, lab.space() / "x.bak", other.head, WRITTEN_MS), "the copy does not continue"),
    )


@case(Code.INCOMPLETE, "", "a part of the copy is still in its write-ahead log")
def case_58_a_copy_that_is_not_whole_is_not_installed(lab: Lab) -> Look:
    """Somebody has it open, so that its last pages stay beside it."""
    box, backup = backed_up(lab)
    copy = box.path.with_name("copy.db")

    def question() -> None:
        shutil.copyfile(backup, copy)
        holder = raw(copy)
        holder.execute("PRAGMA journal_mode = WAL")
        holder.execute("BEGIN")
        holder.execute("SELECT count(*) FROM entry").fetchone()
        try:
            install(copy, box.path)
        finally:
            holder.close()
            for path in box.folder.glob("co*.db*"):
                path.unlink()

    return asked(question)


@case(Code.UNREADABLE, "", "No such file or directory", exits=ExitCode.CANNOT_TELL)
def case_13_a_place_where_no_ledger_can_stand(lab: Lab) -> Look:
    box, backup = backed_up(lab)
    nowhere = replace(box, folder=box.folder / "no" / "folder")
    copy = lab.space() / "copy.db"
    shutil.copyfile(backup, copy)
    return refused(
        (lambda: restoring(nowhere, backup)(), "No such file or directory"),
        (lambda: install(copy, nowhere.path), "No such file or directory"),
    )
