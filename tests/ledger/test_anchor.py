"""The anchor: what the ledger was, remembered outside it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode, Severity
from countermark.attestations.errors import CannotTellError, InputError, TamperError
from countermark.ledger.anchor import Anchor, AnchorFile, default_path

READING = """
import sys
from pathlib import Path
from countermark.ledger.anchor import Anchor
sizes = [Anchor.read(Path(sys.argv[1])).size for _ in range(3000)]
assert sizes == sorted(sizes)
print("ok", end="")
"""


def test_each_append_moves_the_anchor(small: Box) -> None:
    before = Anchor.read(small.anchor)
    small.append(small.passed(1))
    after = Anchor.read(small.anchor)
    assert before is not None
    assert after is not None
    with small.reader() as reader:
        assert (after.size, after.root, after.note) == (reader.head.size, reader.head.root, reader.head.note)
        assert reader.head.anchored == after.size == before.size + 1


def test_the_fields_are_those_of_the_documents_page(small: Box) -> None:
    assert list(json.loads(small.anchor.read_bytes())) == ["origin", "size", "root", "note", "written"]


def test_nothing_but_the_anchor_is_left_beside_it(small: Box) -> None:
    assert [path.name for path in small.anchor.parent.iterdir()] == [small.anchor.name]


def test_the_default_place_is_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = default_path("example.org/log")
    assert path.parent == tmp_path / "countermark"
    assert path != default_path("example.org_log")
    assert default_path("\udcff odd").name.endswith(".anchor")


def test_an_absent_anchor_is_a_finding_and_no_failure(small: Box) -> None:
    small.forget()
    with small.writer() as writer:
        writer.append([small.passed(1)])
        assert [finding.severity for finding in writer.findings] == [Severity.INFO]
    assert small.anchor.exists()
    small.forget()
    report = small.audit()
    assert (report.exit, [finding.checker for finding in report.findings]) == (ExitCode.YES, ["ledger.anchor"])
    with small.reader() as reader:
        assert reader.head.anchored is None


def test_an_older_copy_of_the_folder_is_a_rollback(small: Box, tmp_path: Path) -> None:
    older = small.copy(tmp_path / "older")
    small.append(small.passed(1))
    older.anchor.write_bytes(small.anchor.read_bytes())
    for act in (lambda: older.head, lambda: older.append(older.passed(2))):
        with pytest.raises(TamperError) as caught:
            act()
        assert caught.value.code is Code.ROLLBACK
    report = older.audit()
    assert report.exit is ExitCode.TAMPERED
    assert [finding.code for finding in report.findings] == [Code.ROLLBACK]


def test_of_two_copies_that_append_the_second_is_refused(small: Box, tmp_path: Path) -> None:
    other = small.copy(tmp_path / "other")
    small.append(small.passed(1))
    other.append(other.passed(2))
    other.anchor.write_bytes(small.anchor.read_bytes())
    for act in (lambda: other.head, lambda: other.append(other.passed(3))):
        with pytest.raises(TamperError) as caught:
            act()
        assert caught.value.code is Code.SPLIT_VIEW
    assert [finding.code for finding in other.audit().findings] == [Code.SPLIT_VIEW]


def test_an_anchor_that_is_behind_is_brought_forward(small: Box) -> None:
    behind = small.anchor.read_bytes()
    small.append(small.passed(1))
    small.anchor.write_bytes(behind)
    assert small.audit().exit is ExitCode.YES
    small.append(small.passed(1))
    anchor = Anchor.read(small.anchor)
    assert anchor is not None
    assert anchor.size == small.head.size


@pytest.mark.parametrize(
    "change",
    [{"size": 10_000}, {"root": "00" * 32}, {"origin": "other.example/log"}, {"note": "x"}, {"size": "1"}, {"root": "xx"}, {"more": 1}],
)
def test_an_anchor_that_the_log_did_not_sign_accuses_nobody(small: Box, change: dict[str, Any]) -> None:
    fields = {**json.loads(small.anchor.read_bytes()), **change}
    small.anchor.write_text(json.dumps(fields))
    for act in (lambda: small.head, lambda: small.append(small.passed(1))):
        with pytest.raises(CannotTellError):
            act()
    assert small.audit().exit in (ExitCode.INVALID, ExitCode.CANNOT_TELL)


def test_two_writers_never_write_to_one_file(small: Box) -> None:
    with small.writer() as one, small.writer() as two:
        for number in range(4):
            one.append([small.passed(10 + number)])
            first = small.anchor.stat().st_ino
            two.append([small.passed(20 + number)])
            assert small.anchor.stat().st_ino != first
        anchor = Anchor.read(small.anchor)
        assert anchor is not None
        assert anchor.size == small.head.size
    assert [path.name for path in small.anchor.parent.iterdir()] == [small.anchor.name]


def test_one_writer_overwrites_its_own_file(small: Box) -> None:
    with small.writer() as writer:
        writer.append([small.passed(1)])
        before = small.anchor.stat()
        for number in range(2, 120):
            writer.append([small.passed(number)])
            anchor = Anchor.read(small.anchor)
            assert anchor is not None
            assert anchor.size == 8 + 1 + number
        after = small.anchor.stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)


def test_an_anchor_that_somebody_took_away_while_we_write_is_said_and_made_again(small: Box) -> None:
    with small.writer() as writer:
        writer.append([small.passed(1)])
        small.forget()
        writer.append([small.passed(2)])
        assert [finding.checker for finding in writer.findings] == ["anchor"]
    assert small.head.anchored == small.head.size


def test_an_older_anchor_put_back_while_we_write_is_seen(small: Box) -> None:
    older = small.anchor.read_bytes()
    with small.writer() as writer:
        writer.append([small.passed(1)])
        small.anchor.write_bytes(older)
        writer.append([small.passed(2)])
    anchor = Anchor.read(small.anchor)
    assert anchor is not None
    assert anchor.size == small.head.size


def test_an_anchor_is_never_read_half_written(small: Box) -> None:
    command = [sys.executable, "-c", READING, str(small.anchor)]
    with small.writer() as writer:
        writer.append([small.passed(0)])
        reading = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        number = 1
        while reading.poll() is None:
            writer.append([small.passed(number)])
            number += 1
        assert reading.stdout is not None
        assert reading.stdout.read() == "ok"
        reading.stdout.close()
    assert reading.returncode == 0


def test_an_anchor_that_cannot_be_read_or_written_is_said(tmp_path: Path, small: Box) -> None:
    anchor = Anchor.read(small.anchor)
    assert anchor is not None
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CannotTellError):
        AnchorFile(tmp_path / "file" / "log.anchor").write(anchor)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotTellError):
        Anchor.read(tmp_path / "folder")
    with pytest.raises(InputError):
        Anchor.decode(b"[]", "-")
