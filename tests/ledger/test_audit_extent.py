"""How much of a ledger an audit reads, in how many processes, and what it says of the rest."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_box import Box

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import CannotTellError, InputError, NothingError, RefusedError, TamperError
from countermark.ledger.audit import audit
from countermark.ledger.audit_entries import Portion, PortionAudit, Scope, Stored
from countermark.ledger.audit_report import VOCABULARY, AuditReport, Findings, name_entries, write_record
from countermark.ledger.merkle import leaf_hash
from countermark.ledger.submission import Submission, leaf_signature


def audited(box: Box, since: int = 0, workers: int = 1, *, signatures: bool = True, derived: bool = True) -> AuditReport:
    return audit(box.path, box.keys, anchor=box.anchor, since=since, workers=workers, signatures=signatures, derived=derived)


def unsound(box: Box, number: int) -> Submission:
    """A submission whose signature is over other bytes."""
    return replace(box.passed(number), signatures=(leaf_signature(box.second, b"other bytes"),))


@pytest.mark.parametrize(("workers", "portion"), [(1, 1 << 22), (1, 10_000), (2, 1 << 22), (3, 10_000)])
def test_the_answer_does_not_depend_on_the_number_of_workers(
    large: Box, workers: int, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countermark.ledger.audit._WORTH_PROCESSES", 0)
    monkeypatch.setattr("countermark.ledger.audit_pass._PORTION_BYTES", portion)
    places = large.append(*(unsound(large, number) if number % 3 else large.passed(number) for number in range(2000, 2300)))
    large.edit("UPDATE payload SET size = 1 WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = 40)")
    large.edit("UPDATE subject SET name = 'other' WHERE idx = 270")
    report = audited(large, workers=workers)
    bad = [index for number, index in enumerate(places, 2000) if number % 3]
    assert [(finding.code, finding.subject) for finding in report.findings] == [
        (Code.TAMPERED, "entry 40"),
        (Code.TAMPERED, "entry 270"),
        (Code.TAMPERED, "entries 256-511"),
        (Code.UNTRUSTED, name_entries(bad)),
    ]


def test_what_came_of_a_portion_travels_although_its_keys_do_not() -> None:
    scope = Scope(0, {}, lambda _data: None, signatures=True, derived=True)
    stored = Stored(0, b"no leaf", b"", b"", b"", 1, 0, None, None)
    audited = PortionAudit.of(Portion([stored], None, (), {}), scope)
    assert pickle.loads(pickle.dumps(audited)).hashes == audited.hashes == [leaf_hash(b"no leaf")]
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(scope)


@pytest.mark.parametrize("since", [1, 11, 255, 256, 300])
def test_entries_before_are_not_read_and_that_is_said(large: Box, since: int) -> None:
    large.append(*(large.passed(number) for number in range(3000, 3060)))
    size = large.head.size
    for index in (0, 5, since - 1, since, size - 1):
        large.edit(f"UPDATE payload SET size = size + 1 WHERE sha256 = (SELECT payload_sha256 FROM entry WHERE idx = {index})")
    report = audited(large, since)
    assert (report.evaluated, report.of, report.exit) == (size - since, size - since, ExitCode.TAMPERED)
    assert report.left_out == (f"payloads, signatures and rows of entries before {since}",)
    seen = {0, size - 1, *(index for index in (5, since) if index >= since)}
    assert [finding.subject for finding in report.findings] == [name_entries(seen)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET leaf_hash = zeroblob(32) WHERE idx = 3",
        "UPDATE entry SET kind = 2 WHERE idx = 3",
        "UPDATE head SET frontier = zeroblob(length(frontier))",
        "DELETE FROM checkpoint WHERE size = 1",
        "UPDATE tile SET root = zeroblob(32)",
        "DELETE FROM subject WHERE idx = 250",
    ],
)
def test_the_tree_is_that_of_all_entries_and_the_rows_those_of_the_tile(large: Box, change: str) -> None:
    assert audited(large, 256 - 4).exit is ExitCode.YES
    large.edit(change)
    assert audited(large, 256 - 4).exit is ExitCode.TAMPERED


def test_an_audit_of_no_entry_is_no_yes(small: Box) -> None:
    for since in (small.head.size, 1000):
        report = audited(small, since)
        assert (report.exit, report.evaluated, report.of) == (ExitCode.NOTHING, 0, 0)


def test_only_an_audit_of_everything_is_put_on_record(small: Box) -> None:
    for report in (audited(small, 1), audited(small, signatures=False), audited(small, derived=False)):
        assert report.exit is ExitCode.YES
        assert report.left_out
        with pytest.raises(RefusedError):
            write_record(report, small.path, "alice", 7)


def test_a_ledger_is_protected_up_to_the_newest_note_that_it_continues(small: Box, large: Box) -> None:
    older = small.head.note
    small.append(small.passed(1), small.passed(2))
    newer = small.head.note
    small.append(small.passed(3))
    foreign = large.head.note
    report = audit(small.path, small.keys, anchor=small.anchor, held={"old": older, "bob": newer, "alice": newer})
    assert (report.exit, report.protected_to, report.held_by) == (ExitCode.YES, 11, ("alice", "bob"))
    spoilt = audit(small.path, small.keys, anchor=small.anchor, held={"old": older, "other": foreign})
    assert (spoilt.exit, spoilt.protected_to, spoilt.held_by) == (ExitCode.NO, 9, ("old",))


@pytest.mark.parametrize("error", [TamperError, InputError, RefusedError, CannotTellError, NothingError])
@given(st.sampled_from(list(Code)))
def test_whatever_a_check_meets_is_told_in_the_words_of_an_audit(error: type[TamperError], code: Code) -> None:
    findings = Findings()
    findings.error(error(code, "it went wrong"), "database", "")
    (found,) = findings.result()
    assert found.code in VOCABULARY
    assert found.code == code or code not in VOCABULARY


def test_a_range_is_named_without_counting_it() -> None:
    findings = Findings()
    findings.extend(Code.ROLLBACK, "held", "gone", range(9, 2**62))
    findings.extend(Code.ROLLBACK, "held", "gone", [7, 8, 3])
    findings.extend(Code.ROLLBACK, "anchor", "gone", range(0))
    assert [finding.subject for finding in findings.result()] == [f"entries 3, 7-{2**62 - 1}"]


def test_hashes_alone_hold_the_derived_rows_to_their_hash(small: Box) -> None:
    small.edit("UPDATE subject SET name = 'another' WHERE idx = 6")
    alone = audited(small, signatures=False, derived=False)
    assert [(finding.checker, finding.code) for finding in alone.findings] == [("ledger.index-digest", Code.TAMPERED)]
    assert alone.left_out == ("signatures of entries", "whether derived rows and notice flags follow from the payloads")
    assert {finding.checker for finding in audited(small, signatures=False).findings} == {"ledger.index-digest", "ledger.derived"}
