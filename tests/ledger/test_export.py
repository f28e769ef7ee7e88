"""Exports: another reader reads them, every byte of them is checked, and what was published never changes."""

import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from ledger_box import Box, varied
from tiled_log import check_proof, read_log

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, TamperError
from countermark.ledger.audit_report import AuditReport
from countermark.ledger.export import Exported, export
from countermark.ledger.export_audit import ExportOptions, audit_export
from countermark.ledger.leaf import EntryKind
from countermark.ledger.note import Checkpoint, CheckpointSigner
from countermark.ledger.proof_file import InclusionFile
from countermark.ledger.submission import WITHHOLD_TYPE, Submission

_KILLED = """
import os, sys
from pathlib import Path
from countermark.ledger.export import export
from countermark.ledger.read import LedgerReader

left, real = int(sys.argv[4]), Path.replace

def replace(self, target):
    global left
    left -= 1
    return os._exit(9) if left < 0 else real(self, target)

Path.replace = replace
with LedgerReader.open(Path(sys.argv[1]), anchor=Path(sys.argv[2])) as reader:
    export(reader, Path(sys.argv[3]))
"""
"""Exports, and ends when a given number of files have got their names."""


def exported(box: Box, folder: Path, *, payloads: bool = True) -> Exported:
    with box.reader() as reader:
        return export(reader, folder, payloads=payloads)


def audited(box: Box, folder: Path, *held: str, hash_only: bool = False) -> AuditReport:
    return audit_export(folder, box.log.vkey, ExportOptions(box.keys, {note: note for note in held}, hash_only=hash_only))


def blocking(report: AuditReport) -> set[Code]:
    return {finding.code for finding in report.findings if finding.severity is Severity.BLOCK}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def out(small: Box, tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    exported(small, folder)
    return folder


def test_a_reader_of_the_specifications_reads_it(large: Box, tmp_path: Path) -> None:
    """256 entries and more: full and partial tiles, and a second level."""
    exported(large, tmp_path / "out")
    entries = read_log(tmp_path / "out", str(large.log.vkey))
    with large.reader() as reader:
        assert entries == [reader.entry(index).leaf.encode() for index in range(reader.head.size)]
        proof = reader.prove(257)
        file = InclusionFile(257, proof.hashes, proof.note, proof.leaf).encode()
        assert check_proof(file, str(large.log.vkey)) == (257, entries[257])
    for leaf in entries:
        digest = leaf[44 + leaf[43] + 8 :][:32].hex()
        assert sha256((tmp_path / "out" / "payload" / digest[:2] / digest).read_bytes()).hexdigest() == digest


def test_it_verifies_and_is_complete(small: Box, out: Path) -> None:
    report = audited(small, out)
    assert (report.exit, report.findings, report.evaluated) == (ExitCode.YES, (), small.head.size)
    assert report.notices == small.audit().notices


def test_going_on_writes_only_what_is_new(small: Box, out: Path) -> None:
    before = files_of(out)
    assert exported(small, out).written == 0
    small.append(*(small.passed(number) for number in range(300)))
    done = exported(small, out)
    after = files_of(out)
    assert (done.before, done.checkpoint.size) == (9, 309)
    assert {name for name in before if before[name] != after[name]} == {"checkpoint"}
    assert audited(small, out).findings == ()
    assert len(read_log(out, str(small.log.vkey))) == 309


def test_an_interrupted_export_goes_on(small: Box, out: Path) -> None:
    """Files that no checkpoint covers yet may be torn: they are written again."""
    whole = files_of(out)
    (out / "checkpoint").unlink()
    (out / "tile" / "0" / "000.p" / "9").write_bytes(b"")
    next((out / "payload").rglob("??*/*")).unlink()
    (out / ".unfinished").write_bytes(b"half")
    assert blocking(audited(small, out)) == {Code.INCOMPLETE}
    exported(small, out)
    assert files_of(out) == whole


def test_a_killed_export_leaves_the_old_one_or_the_new_one(large: Box, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(large, out)
    large.append(*(large.passed(number) for number in range(2000, 2400)))
    old, new = large.head.size - 400, large.head.size
    for allowed in (0, 1, 57, 402, 405):
        done = subprocess.run([sys.executable, "-c", _KILLED, large.path, large.anchor, out, str(allowed)], check=False)
        assert done.returncode in (0, 9)
        assert len(read_log(out, str(large.log.vkey))) in (old, new)
        assert not blocking(audited(large, out))
    exported(large, out)
    assert audited(large, out).findings == ()


def test_every_byte_is_checked(small: Box, out: Path) -> None:
    """One bit in a place chosen at random, in each file of the export in turn, many times."""
    chance = random.Random(20261202)
    whole = files_of(out)
    for name, data in whole.items():
        for _ in range(12):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (out / name).write_bytes(changed)
            report = audited(small, out)
            assert report.exit not in (ExitCode.YES, ExitCode.NOTHING), name
            assert blocking(report), name
        for changed_data in (data[:-1], data + b"\0", b""):
            (out / name).write_bytes(changed_data)
            assert blocking(audited(small, out)), name
        (out / name).unlink()
        assert blocking(audited(small, out)) == {Code.INCOMPLETE}, name
        (out / name).write_bytes(data)
    assert audited(small, out).findings == ()


def test_tiles_of_smaller_heads_are_checked_too(small: Box, out: Path) -> None:
    small.append(small.passed(1), small.passed(2))
    exported(small, out)
    for name in ("tile/0/000.p/9", "tile/entries/000.p/9"):
        data = (out / name).read_bytes()
        for at in (0, len(data) - 1):
            (out / name).write_bytes(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
            assert blocking(audited(small, out)), name
        (out / name).write_bytes(data[:-1])
        assert blocking(audited(small, out)), name
        (out / name).write_bytes(data)
    (out / "tile" / "0" / "007").write_bytes(b"x")
    report = audited(small, out)
    assert [finding.severity for finding in report.findings] == [Severity.WARN]


def test_what_others_hold(small: Box, out: Path) -> None:
    note = small.head.note
    small.append(small.passed(1))
    newer = small.head.note
    assert audited(small, out, note).protected_to == 9
    assert blocking(audited(small, out, newer)) == {Code.ROLLBACK}
    forged = small.log.sign(Checkpoint(small.log.vkey.name, 5, bytes(32)))
    assert blocking(audited(small, out, forged)) == {Code.SPLIT_VIEW}
    assert blocking(audited(small, out, "nonsense")) == {Code.MALFORMED}


def test_another_key_is_another_log(small: Box, out: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    stranger = CheckpointSigner(small.log.vkey.name, Ed25519PrivateKey.generate()).vkey
    report = audit_export(out, stranger, ExportOptions(small.keys))
    assert (report.exit, blocking(report)) == (ExitCode.NO, {Code.UNTRUSTED})


def test_signers_must_be_known(small: Box, out: Path) -> None:
    assert blocking(audit_export(out, small.log.vkey, ExportOptions())) == {Code.INCOMPLETE}
    assert audit_export(out, small.log.vkey, ExportOptions(hash_only=True)).exit is ExitCode.YES
    one = {raw: key for raw, key in small.keys.items() if key == small.operator.public}
    assert blocking(audit_export(out, small.log.vkey, ExportOptions(one))) == {Code.UNTRUSTED}


def test_the_published_never_changes(small: Box, out: Path) -> None:
    small.append(small.passed(1))
    for name in ("tile/0/000.p/9", "tile/entries/000.p/9"):
        data = (out / name).read_bytes()
        (out / name).write_bytes(data[:-1] + b"\0")
        (out / name).write_bytes(data)
    payload = next(path for path in (out / "payload").rglob("??*/*") if path.is_file())
    payload.write_bytes(b"another")
    with pytest.raises(TamperError) as caught:
        exported(small, out)
    assert caught.value.code is Code.TAMPERED


def test_a_ledger_behind_or_beside_the_export_is_refused(small: Box, tmp_path: Path) -> None:
    older = small.copy(tmp_path / "older")
    small.append(small.passed(1))
    exported(small, tmp_path / "out")
    older.forget()
    with pytest.raises(TamperError) as caught:
        exported(older, tmp_path / "out")
    assert caught.value.code is Code.ROLLBACK
    older.append(older.passed(2), older.passed(3))
    with pytest.raises(TamperError) as caught:
        exported(older, tmp_path / "out")
    assert caught.value.code is Code.SPLIT_VIEW


def test_places_that_are_no_export(small: Box, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    for place in ("file", "full"):
        with pytest.raises(InputError):
            exported(small, tmp_path / place)
    assert files_of(tmp_path / "full") == {"mine": b"x"}
    exported(small, tmp_path / "bare", payloads=False)
    with pytest.raises(InputError):
        exported(small, tmp_path / "bare")
    assert audited(small, tmp_path / "bare", hash_only=True).findings[0].code is Code.INCOMPLETE  # entry 0 says what the log is
    assert blocking(audited(small, tmp_path / "bare")) == {Code.INCOMPLETE}


def test_links_are_not_followed(small: Box, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()
    exported(small, out)
    shutil.rmtree(out / "tile" / "0")
    (out / "checkpoint").unlink()
    (out / "tile" / "0").symlink_to(victim)
    with pytest.raises(CountermarkError):
        exported(small, out)
    assert not list(victim.iterdir())
    (out / "tile" / "0").unlink()
    exported(small, out)
    data = (out / "checkpoint").read_bytes()
    (tmp_path / "elsewhere").write_bytes(data)
    (out / "checkpoint").unlink()
    (out / "checkpoint").symlink_to(tmp_path / "elsewhere")
    assert audited(small, out).exit is ExitCode.INVALID


def test_two_exports_at_once_do_not_meet(small: Box, tmp_path: Path) -> None:
    from countermark.ledger.export_files import SCHEMA_TEXT, ExportFolder

    with ExportFolder.claimed(tmp_path / "out", SCHEMA_TEXT), pytest.raises(CannotTellError) as caught:
        exported(small, tmp_path / "out")
    assert caught.value.code is Code.LEDGER_LOCKED


def test_a_damaged_ledger_is_not_published(small: Box, tmp_path: Path) -> None:
    small.edit("UPDATE payload SET data = x'00' WHERE rowid = 3")
    with pytest.raises(CountermarkError):
        exported(small, tmp_path / "out")
    assert not (tmp_path / "out" / "checkpoint").exists()


def test_a_damaged_leaf_is_not_published(large: Box, tmp_path: Path) -> None:
    """The right edge and entry 0 are intact, so that only the root of all leaves shows it."""
    large.edit("UPDATE entry SET leaf = (SELECT leaf FROM entry WHERE idx = 21) WHERE idx = 20")
    with pytest.raises(TamperError):
        exported(large, tmp_path / "out", payloads=False)
    assert not (tmp_path / "out" / "checkpoint").exists()


def test_withheld_payloads_leave_the_export(small: Box, out: Path) -> None:
    small.append(small.passed(5))
    exported(small, out)
    with small.reader() as reader:
        digest = reader.entry(9).leaf.payload_sha256
    notice = json.dumps({"payload": f"payload:sha256:{digest.hex()}", "reason": "personal data"}).encode()
    small.append(Submission.sign(EntryKind.WITHHOLD, WITHHOLD_TYPE, notice, small.operator))
    small.edit("DELETE FROM payload WHERE sha256 = ?", values=(digest,))
    exported(small, out)
    assert not (out / "payload" / digest.hex()[:2] / digest.hex()).exists()
    report = audited(small, out)
    assert (report.exit, [finding.code for finding in report.findings]) == (ExitCode.YES, [Code.WITHHELD])


def test_an_export_of_strange_entries(small: Box, out: Path) -> None:
    """Every sort of entry has come through, with bundle and stranger's signature."""
    assert replace(audited(small, out), findings=()).evaluated == len(varied(small)) + 1
