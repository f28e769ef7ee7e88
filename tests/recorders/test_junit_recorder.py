"""`record tests`: what ran, what failed, what was skipped and why; nothing of it on a report's own word."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError, InputError, NothingError
from countermark.attestations.schema import problems
from countermark.recorders import junit
from countermark.recorders.junit import read_report, record_tests

from .builders import Json, sha256

IMAGE = Digest.parse("oci-config:sha256:" + "a" * 64)

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="0.1" hostname="vm">
<testcase classname="tests.test_x" name="test_ok" time="0.001" />
<testcase classname="tests.test_x" name="test_bad[&lt;&amp;&gt;]"><failure message="assert 0">trace</failure></testcase>
<testcase classname="tests.test_x" name="test_setup"><error message="failed on setup">trace</error></testcase>
<testcase classname="tests.test_x" name="test_gpu"><skipped type="pytest.skip" message="no gpu">/x/test_x.py:9: no gpu</skipped></testcase>
</testsuite></testsuites>"""


def report(tmp_path: Path, data: bytes) -> Path:
    (tmp_path / "junit.xml").write_bytes(data)
    return tmp_path / "junit.xml"


def predicate_of(tmp_path: Path, data: bytes) -> Json:
    predicate = record_tests(report(tmp_path, data), IMAGE).predicate
    assert problems("test-result", predicate) == []
    return dict(predicate)


def suite(cases: str, **declared: int | str) -> bytes:
    attributes = "".join(f' {name}="{value}"' for name, value in declared.items())
    return f"<testsuite{attributes}>{cases}</testsuite>".encode()


def refused(tmp_path: Path, error: type[CountermarkError], code: Code, data: bytes) -> CountermarkError:
    with pytest.raises(error) as caught:
        record_tests(report(tmp_path, data), IMAGE)
    assert (caught.value.code, bool(caught.value.fix)) == (code, True), str(caught.value)
    return caught.value


def test_a_report_of_pytest(tmp_path: Path) -> None:
    recording = record_tests(report(tmp_path, PYTEST), IMAGE)
    assert recording.predicate_name == "https://in-toto.io/attestation/test-result/v0.1"
    assert recording.subjects[0].typed == (IMAGE,)
    assert recording.predicate == {
        "result": "FAILED",
        "configuration": [{"name": "junit.xml", "annotations": {"digestKind": "file"}, "digest": {"sha256": sha256(PYTEST)}}],
        "passedTests": ["tests.test_x::test_ok"],
        "warnedTests": ["tests.test_x::test_gpu (skipped: no gpu)"],
        "failedTests": ["tests.test_x::test_bad[<&>]", "tests.test_x::test_setup"],
    }


def test_results(tmp_path: Path) -> None:
    passed, skipped, failed = '<testcase name="a"/>', '<testcase name="b"><skipped/></testcase>', '<testcase name="c"><failure/></testcase>'
    assert predicate_of(tmp_path, suite(passed))["result"] == "PASSED"
    assert predicate_of(tmp_path, suite(passed + skipped))["result"] == "WARNED"
    assert predicate_of(tmp_path, suite(passed + skipped + failed))["result"] == "FAILED"
    only = record_tests(report(tmp_path, suite(skipped)), IMAGE)
    assert only.predicate["result"] == "WARNED"
    assert only.predicate["warnedTests"] == ["b (skipped: no reason given)"]
    assert only.notes


def test_a_subject_of_any_kind(tmp_path: Path) -> None:
    commit = Digest.parse("git-commit:" + "b" * 40)
    assert record_tests(report(tmp_path, PYTEST), commit).subjects[0].digests == {"gitCommit": "b" * 40}


def test_a_test_that_ran_twice_is_listed_once_by_its_worst_run(tmp_path: Path) -> None:
    runs = ['<testcase name="a"/>', '<testcase name="a"><failure/></testcase>', '<testcase name="a"><error/></testcase>']
    cases = "".join([*runs, '<testcase name="b"/>', '<testcase name="b"/>'])
    for tests in (2, 5):
        predicate = predicate_of(tmp_path, suite(cases, tests=tests, failures=1, errors=1, skipped=0))
        assert (predicate["failedTests"], predicate["passedTests"]) == (["a"], ["b"])


def test_reasons_are_one_short_line(tmp_path: Path) -> None:
    cases = f'<testcase name="a"><skipped>why\n  not {"x" * 500}</skipped></testcase>'
    (warned,) = predicate_of(tmp_path, suite(cases))["warnedTests"]
    assert warned.startswith("a (skipped: why not xxx")
    assert len(warned) < 330


def test_disabled_tests_of_other_tools_are_not_passes(tmp_path: Path) -> None:
    cases = '<testcase name="a" status="run" result="completed"/><testcase name="b" status="notrun" result="suppressed"/>'
    for skipped in (0, 1):
        predicate = predicate_of(tmp_path, suite(cases, tests=2, disabled=1, skipped=skipped))
        assert (predicate["passedTests"], predicate["warnedTests"]) == (["a"], ["b (skipped: no reason given)"])


def test_reruns_and_output_are_not_failures(tmp_path: Path) -> None:
    case = '<testcase name="a"><flakyFailure message="x"/><system-out>&lt;failure/&gt;</system-out></testcase>'
    cases = f'{case}<properties><property name="p"/></properties>'
    assert predicate_of(tmp_path, suite(cases, tests=1, failures=0))["result"] == "PASSED"


@pytest.mark.parametrize(
    "declared",
    [
        {"tests": 2},
        {"tests": 0},
        {"failures": 1},
        {"errors": 1},
        {"skipped": 1},
        {"tests": -1},
        {"tests": "one"},
        {"tests": "1.0"},
        {"tests": "9" * 40},
    ],
)
def test_counts_that_contradict_the_cases(tmp_path: Path, declared: dict[str, int | str]) -> None:
    inner = suite('<testcase name="a"/>', **declared)
    assert refused(tmp_path, InputError, Code.RECORD_CONTRADICTED, inner).at
    refused(tmp_path, InputError, Code.RECORD_CONTRADICTED, b"<testsuites>\n" + inner + b"</testsuites>")


def test_hidden_failures_are_counted(tmp_path: Path) -> None:
    refused(tmp_path, InputError, Code.RECORD_CONTRADICTED, suite('<testcase name="a"><failure/></testcase>', tests=1, failures=0))
    refused(tmp_path, InputError, Code.RECORD_CONTRADICTED, b'<testsuites tests="7">' + suite('<testcase name="a"/>') + b"</testsuites>")


def test_nothing_ran(tmp_path: Path) -> None:
    for data in (b"<testsuites/>", suite("", tests=0), b"<testsuites><testsuite/></testsuites>"):
        refused(tmp_path, NothingError, Code.NOTHING_EVALUATED, data)
    refused(tmp_path, InputError, Code.RECORD_CONTRADICTED, suite("", tests=5))


ENTITIES = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
@pytest.mark.parametrize(
    "doctype", [f"<!DOCTYPE x [{ENTITIES}]>", '<!DOCTYPE x SYSTEM "file:///etc/passwd">', '<!DOCTYPE x [<!ENTITY e SYSTEM "x">]>']
)
def test_entities_are_refused_before_they_are_declared(tmp_path: Path, encoding: str, doctype: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>{doctype}<testsuite><testcase name="&b;"/></testsuite>'
    assert "DOCTYPE" in str(refused(tmp_path, InputError, Code.UNREADABLE, text.encode(encoding)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not XML",
        b"<testsuite>",
        b"<testsuite/><testsuite/>",
        b"<html/>",
        b"<testcase name='a'/>",
        b"<testsuite><testcase name='&undeclared;'/></testsuite>",
        b"<testsuite a='1' a='2'/>",
        b'<?xml version="1.0" encoding="klingon"?><testsuite/>',
        b"\xff\xfe\x00",
        b"<testsuite>\x00</testsuite>",
        PYTEST[:-20],
    ],
)
def test_what_is_not_a_report(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, InputError, Code.UNREADABLE, data)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(tmp_path, InputError, Code.TOO_LARGE, b"<testsuite>" * 100_000)
    refused(tmp_path, InputError, Code.SCHEMA_INVALID, suite("<testcase/>"))
    monkeypatch.setattr(junit, "MAX_REPORT_BYTES", 100)
    refused(tmp_path, InputError, Code.TOO_LARGE, PYTEST)
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError):
            record_tests(path, IMAGE)


@given(st.data())
def test_no_bytes_crash_the_reader_or_turn_a_failure_into_a_pass(data: st.DataObject) -> None:
    changed = bytearray(PYTEST)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CountermarkError):
        cases = read_report(bytes(changed), "r")
        assert sum(case.failed for case in cases) == 2
