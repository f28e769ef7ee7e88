"""`import` of many texts: in portions, by several processes, taken up again, and never more in memory than is in hand."""

import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from countermark.actions import admission, envelopes
from countermark.actions.appending import sign
from countermark.actions.envelopes import read_texts
from countermark.actions.importing import ImportResult, import_files
from countermark.actions.init import initialise
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CannotTellError
from countermark.attestations.predicate_types import TEST_RESULT
from countermark.attestations.statement import Statement, Subject

MANY = 40


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(admission, "_CHUNK_TEXTS", 7)
    return initialise(tmp_path / "box").workspace


def signed(workspace: Workspace, count: int = MANY) -> list[str]:
    """As many test results, each of an image of its own."""
    signer = workspace.signer("builder", None)
    subjects = [Subject.of(Digest.of(DigestKind.OCI_MANIFEST, b"image %d" % number)) for number in range(count)]
    return [sign(Statement((subject,), TEST_RESULT, {"result": "PASSED", "configuration": []}), signer).to_json() for subject in subjects]


def take(workspace: Workspace, lines: list[str], workers: int = 1) -> ImportResult:
    file = workspace.ledger.parent / "some.intoto.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return import_files(workspace, [str(file)], lambda done: None, workers)


def spoilt(lines: list[str]) -> list[str]:
    """A signature of another statement, half a text, an empty line, and something twice."""
    return [*lines[:9], lines[9].replace('"sig": "', '"sig": "AAAA'), *lines[10:20], lines[20][:80], "", *lines[21:], lines[3]]


def told(result: ImportResult) -> tuple[list[tuple[int, str, bool]], list[tuple[Code, str]]]:
    """The receipts, and of each refused text why and where."""
    receipts = [(receipt.index, str(receipt.payload), receipt.duplicate) for receipt in result.receipts]
    return receipts, [(item.finding.code, str(item.finding.location).partition(" ")[0]) for item in result.refused]


def test_several_processes_find_what_one_finds_in_the_same_order(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = spoilt(signed(workspace))
    twin = workspace.ledger.parent.with_name("twin")
    shutil.copytree(workspace.ledger.parent, twin)
    alone = told(take(workspace, lines))
    monkeypatch.setenv("XDG_STATE_HOME", str(twin / "state"))
    shared = told(take(Workspace.at(str(twin / "countermark.db")), lines, workers=2))
    assert shared[0] == alone[0]
    assert [index for index, _, _ in shared[0]] == [*range(1, MANY - 1), 4]
    assert [code for code, _ in shared[1]] == [Code.SIG_INVALID, Code.SCHEMA_INVALID]
    assert [place.rpartition("/")[2].partition(":")[2] for _, place in shared[1]] == ["10", "21:1:13"]


def test_an_import_is_taken_up_where_it_ended(workspace: Workspace) -> None:
    lines = signed(workspace)
    take(workspace, lines[:23])
    result = take(workspace, lines)
    assert [receipt.index for receipt in result.receipts] == list(range(1, MANY + 1))
    assert [receipt.duplicate for receipt in result.receipts] == [True] * 23 + [False] * (MANY - 23)
    with open_reader(workspace) as ledger:
        assert ledger.head.size == MANY + 1


def test_what_came_before_a_process_died_is_in_the_ledger_and_it_is_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines = signed(workspace)
    take(workspace, lines[:5])
    monkeypatch.setattr(admission, "_start", sys.exit)
    with pytest.raises(CannotTellError, match="ended unexpectedly") as caught:
        take(workspace, lines, workers=2)
    assert (caught.value.code, caught.value.exit) == (Code.INCOMPLETE, ExitCode.CANNOT_TELL)
    with open_reader(workspace) as ledger:
        assert ledger.head.size == 6
    caplog.clear()


def test_a_line_that_is_too_long_ends_its_file_and_keeps_what_came_before(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = signed(workspace, 10)
    monkeypatch.setattr(envelopes, "MAX_ENVELOPE", 4000)
    result = take(workspace, [*lines[:8], "x" * 4001, *lines[8:]])
    assert [receipt.index for receipt in result.receipts] == list(range(1, 9))
    assert [(item.finding.code, item.exit) for item in result.refused] == [(Code.TOO_LARGE, ExitCode.INVALID)]
    assert str(result.refused[0].finding.location).endswith("some.intoto.jsonl:9")


def test_a_line_of_a_stream_is_read_when_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as source:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        texts = read_texts("-")
        source.write(b'{"one": 1}\n')
        assert next(texts) == ("-:1", b'{"one": 1}')
        source.write(b'\n{"two": 2}')
        source.close()
        assert list(texts) == [("-:3", b'{"two": 2}')]
