"""Backup and restore: whole or not at all, never below what somebody holds, and a new incarnation that every audit shows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_box import Box, raw

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, TamperError
from countermark.attestations.schema import problems
from countermark.ledger.backup import Manifest, back_up, manifest_path
from countermark.ledger.incarnation import Incarnation
from countermark.ledger.leaf import EntryKind
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.restore import Candidate, candidate, install
from countermark.ledger.submission import INCARNATION_TYPE, Submission
from countermark.ledger.write import LedgerWriter

WRITTEN_MS = 1_796_000_000_123


def backed_up(box: Box, name: str = "one.bak") -> Path:
    target = box.folder.parent / name
    back_up(box.path, target, box.head, WRITTEN_MS)
    return target


def lose(box: Box) -> None:
    for path in box.folder.glob("countermark.db*"):
        path.unlink()


def restored(box: Box, backup: Path, *held: str) -> Candidate:
    with candidate(backup, box.path, box.log.vkey, held, box.anchor) as found:
        if found.lost is None:
            install(found.path, box.path)
        return found


def test_a_backup_is_the_ledger(small: Box) -> None:
    small.append(small.passed(1))
    backup = backed_up(small)
    head, audit = small.head, small.audit()
    manifest = Manifest.read(backup)
    assert (manifest.origin, manifest.size, manifest.root, manifest.note) == (head.origin, head.size, head.root, head.note)
    assert manifest.written == WRITTEN_MS
    assert problems("backup", json.loads(manifest_path(backup).read_text())) == []
    assert sorted(path.name for path in small.folder.parent.iterdir()) == ["one.bak", "one.bak.manifest", "small"]
    lose(small)
    found = restored(small, backup)
    assert (found.lost, found.findings) == (None, ())
    assert (small.head, small.audit()) == (head, audit)
    assert sorted(path.name for path in small.folder.iterdir() if "restoring" in path.name) == []
    assert small.append(small.passed(2)) == [head.size]


def test_a_backup_while_somebody_writes(small: Box) -> None:
    """What is only in the write-ahead log is in the backup too."""
    with small.writer() as writer:
        writer.append([small.passed(1)])
        backup = backed_up(small)
        writer.append([small.passed(2)])
    assert Manifest.read(backup).size == small.head.size - 1


def test_a_backup_overwrites_nothing(small: Box, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("mine", "link"):
        with pytest.raises(InputError):
            back_up(small.path, tmp_path / name, small.head, WRITTEN_MS)
    with pytest.raises(CountermarkError):
        back_up(small.path, tmp_path / "no" / "folder", small.head, WRITTEN_MS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "mine", "small"]
    assert (tmp_path / "mine").read_text() == "x"


def test_a_damaged_ledger_is_not_backed_up(small: Box, tmp_path: Path) -> None:
    head = small.head
    small.edit("UPDATE entry SET leaf_hash = x'00' WHERE idx = 8")
    with pytest.raises(CountermarkError):
        back_up(small.path, tmp_path / "x.bak", head, WRITTEN_MS)
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_a_standing_ledger_is_not_replaced(small: Box) -> None:
    backup = backed_up(small)
    with pytest.raises(InputError):
        restored(small, backup)
    small.path.unlink()
    small.path.with_name("countermark.db-wal").write_bytes(b"")
    with pytest.raises(InputError, match="-wal"):
        restored(small, backup)
    assert not small.path.exists()


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _edited(backup: Path, sql: str) -> None:
    """A backup that was changed with care: the guards put back, the manifest made to match."""
    connection = raw(backup)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(sql)
    for _, text in triggers:
        connection.execute(text)
    connection.close()
    fields = json.loads(manifest_path(backup).read_text())
    import hashlib

    fields |= {"sha256": hashlib.sha256(backup.read_bytes()).hexdigest(), "bytes": backup.stat().st_size}
    manifest_path(backup).write_text(json.dumps(fields))


def _manifest(backup: Path, **changed: object) -> None:
    fields = json.loads(manifest_path(backup).read_text())
    manifest_path(backup).write_text(json.dumps(fields | changed))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        pytest.param(lambda b: _flip(b, 9000), TamperError, id="a bit of the file"),
        pytest.param(lambda b: b.write_bytes(b.read_bytes()[:-1]), TamperError, id="cut off"),
        pytest.param(lambda b: b.write_bytes(b""), TamperError, id="empty"),
        pytest.param(lambda b: manifest_path(b).unlink(), CannotTellError, id="no manifest"),
        pytest.param(lambda b: manifest_path(b).write_text("{"), InputError, id="half a manifest"),
        pytest.param(lambda b: manifest_path(b).write_bytes(b"\xff"), InputError, id="no text"),
        pytest.param(lambda b: _manifest(b, more=1), InputError, id="another field"),
        pytest.param(lambda b: _manifest(b, size=True), InputError, id="no number"),
        pytest.param(lambda b: _manifest(b, size=5), TamperError, id="another size"),
        pytest.param(lambda b: _manifest(b, schema="v2"), InputError, id="another version"),
        pytest.param(lambda b: _manifest(b, note="x"), InputError, id="no note"),
        pytest.param(lambda b: _edited(b, "UPDATE payload SET data = x'00' WHERE rowid = 3"), TamperError, id="a payload"),
        pytest.param(lambda b: _edited(b, "DELETE FROM subject"), TamperError, id="derived rows"),
        pytest.param(lambda b: _edited(b, "DELETE FROM payload WHERE rowid = 3"), CannotTellError, id="a payload gone"),
        pytest.param(lambda b: _edited(b, "DELETE FROM entry WHERE idx = 8"), TamperError, id="the last entry"),
    ],
)
def test_a_spoilt_backup_is_not_restored(small: Box, spoil: Callable[[Path], None], error: type[CountermarkError]) -> None:
    backup = backed_up(small)
    spoil(backup)
    lose(small)
    before = sorted(small.folder.rglob("*"))
    with pytest.raises(error) as caught:
        restored(small, backup)
    assert type(caught.value) is error
    assert caught.value.fix
    assert sorted(small.folder.rglob("*")) == before


def test_an_old_backup_is_a_rollback(small: Box) -> None:
    backup = backed_up(small)
    small.append(small.passed(1))
    newer = small.head.note
    lose(small)
    lost = restored(small, backup).lost
    assert lost is not None
    assert lost.size == 10
    small.forget()
    assert restored(small, backup, newer).lost == lost
    assert not small.path.exists()


def test_a_backup_of_another_history_is_refused(small: Box, tmp_path: Path) -> None:
    forked = small.copy(tmp_path / "forked")
    forked.forget()
    forked.append(forked.passed(7))
    small.append(small.passed(1))
    backup = tmp_path / "fork.bak"
    back_up(forked.path, backup, forked.head, WRITTEN_MS)
    lose(small)
    with pytest.raises(TamperError) as caught:
        restored(small, backup)
    assert caught.value.code is Code.SPLIT_VIEW


def test_another_log_is_refused(small: Box) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    backup = backed_up(small)
    lose(small)
    key = CheckpointSigner(small.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    with pytest.raises(CountermarkError) as caught, candidate(backup, small.path, key, (), small.anchor):
        pass
    assert caught.value.code is Code.UNTRUSTED


def begun_again(box: Box, backup: Path) -> int:
    with candidate(backup, box.path, box.log.vkey, (), box.anchor) as found:
        assert found.lost
        assert found.lost_note
        entry = Incarnation.make(found.manifest.size, found.lost, found.lost_note, "the disk died").sign(box.operator)
        with LedgerWriter.open(found.path, box.log, box.anchor, box.clock) as writer:
            index = writer.append_incarnation(entry).index
        install(found.path, box.path)
    return index


def test_a_new_incarnation_goes_on_and_every_audit_shows_it(small: Box, tmp_path: Path) -> None:
    backup = backed_up(small)
    small.append(small.passed(1), small.passed(2))
    lost = small.head.note
    lose(small)
    assert begun_again(small, backup) == 9
    assert small.append(small.passed(3)) == [10]
    report = small.audit()
    assert (report.exit, [finding.code for finding in report.findings]) == (ExitCode.TAMPERED, [Code.ROLLBACK])
    (finding,) = report.findings
    assert finding.subject == "entry 9"
    assert "entries 9 to 10 of the one before are lost: the disk died" in str(finding.observed)
    with small.reader() as reader:
        assert [entry.index for entry in reader.notices()][-1] == 9
        told = Incarnation.parse(reader.entry(9).payload)
    assert (told.lost.size, told.note) == (11, lost)

    from countermark.ledger.audit import audit
    from countermark.ledger.export import export
    from countermark.ledger.export_audit import ExportOptions, audit_export

    held = audit(small.path, small.keys, anchor=small.anchor, held={"an auditor": lost})
    assert {finding.code for finding in held.findings} == {Code.ROLLBACK, Code.SPLIT_VIEW}
    with small.reader() as reader:
        export(reader, tmp_path / "out")
    assert [item.code for item in audit_export(tmp_path / "out", small.log.vkey, ExportOptions(small.keys)).findings] == [Code.ROLLBACK]


def test_an_ordinary_append_below_the_anchor_stays_refused(small: Box) -> None:
    older = shutil.copytree(small.folder, small.folder.with_name("older"))
    small.append(small.passed(1))
    lose(small)
    for path in Path(older).glob("countermark.db*"):
        shutil.copy(path, small.folder)
    with pytest.raises(TamperError) as caught:
        small.append(small.passed(2))
    assert caught.value.code is Code.ROLLBACK


def test_an_incarnation_is_what_it_says_or_nothing(small: Box) -> None:
    made = Incarnation.make(5, Checkpoint("log.example/one", 7, bytes(32)), "note", "why")
    assert Incarnation.parse(made.encode()) == made
    fields = json.loads(made.encode())
    for changed in ({"more": 1}, {"reason": ""}, {"lost_size": -1}, {"lost_size": True}, {"lost_root": "AB"}, {"incarnation": "00"}):
        with pytest.raises(InputError):
            Incarnation.parse(json.dumps(fields | changed).encode())
    with pytest.raises(InputError):
        small.append(Submission.sign(EntryKind.INCARNATION, INCARNATION_TYPE, b"{}", small.operator))
