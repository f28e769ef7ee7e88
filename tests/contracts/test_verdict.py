"""The verdict over a whole repository: outcome, exit code, findings in order, and the predicate that is signed."""

import json
from collections.abc import Mapping
from typing import ClassVar

import pytest

from countermark.attestations.codes import Code, ExitCode, Outcome, Severity
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import contract_outcome
from countermark.attestations.schema import problems
from countermark.contracts.checkers import registry
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.verdict import ContractVerdict

from .small_repository import COMMIT, CONTRACT, FILES, MANIFEST, SOURCE_SHA256, MemoryTree, edited, lines, small_contract, verdict_on

OTHER = COMMIT.replace("5", "6", 1)


def consistent(verdict: ContractVerdict) -> bool:
    """What is signed conforms to its schema, and whoever recomputes the outcome gets the one that is stated."""
    predicate = verdict.predicate()
    return problems("contract-verdict", predicate) == [] and contract_outcome(predicate) == predicate["outcome"]


def test_a_repository_that_keeps_its_contract_passes() -> None:
    verdict = verdict_on(MemoryTree(FILES))
    assert (verdict.outcome, verdict.exit, verdict.evaluated, verdict.of) == (Outcome.PASS, ExitCode.YES, 2, 2)
    assert (verdict.findings, verdict.not_evaluated) == ((), ())


def test_the_predicate_is_exactly_the_documented_one() -> None:
    verdict = verdict_on(MemoryTree(FILES))
    assert verdict.predicate() == {
        "contract": {"id": "small", "version": 1, "digest": str(small_contract().digest)},
        "outcome": "pass",
        "evaluated": 2,
        "of": 2,
        "pins": {
            "engine": {"commit": COMMIT, "source_sha256": SOURCE_SHA256},
            "image": {"manifest": MANIFEST},
            "geometry": {"tokens": 256},
        },
        "binds_image": ["engine"],
        "findings": [],
        "checkers": {"pins.agree": 1, "pins.full-length": 1},
    }
    assert consistent(verdict)
    again = json.dumps(verdict_on(MemoryTree(FILES)).predicate())
    assert json.dumps(verdict.predicate()) == again


def test_one_digit_in_one_place_is_one_finding_with_majority_place_and_fix() -> None:
    verdict = verdict_on(edited("profiles/two.yaml", COMMIT, OTHER))
    assert (verdict.outcome, verdict.exit, verdict.evaluated) == (Outcome.FAIL, ExitCode.NO, 2)
    (finding,) = verdict.findings
    assert finding == Finding(
        Code.CONTRACT_VIOLATED,
        Outcome.FAIL,
        "set /source/commit to the pinned commit",
        checker="pins.agree",
        location=Location("profiles/two.yaml", 3, 3, "/source/commit"),
        required=f"{COMMIT} (3 of 4 places)",
        observed=OTHER,
    )
    assert consistent(verdict)


def test_a_digest_in_prose_is_held_to_the_pin_that_it_is_most_like() -> None:
    (finding,) = verdict_on(edited("docs/QUICKSTART.md", COMMIT, OTHER)).findings
    assert (finding.required, finding.observed) == (f"{COMMIT} (3 of 4 places)", OTHER)
    (finding,) = verdict_on(edited("docs/QUICKSTART.md", MANIFEST[-8:], "00000000")).findings
    assert finding.required == f"{MANIFEST} (4 of 5 places)"
    unlike = COMMIT[::-1]
    (finding,) = verdict_on(edited("docs/QUICKSTART.md", COMMIT, unlike)).findings
    assert (finding.required, finding.observed) == ("the value of a pin", unlike)


def test_a_number_in_quotes_is_a_finding_and_not_a_match() -> None:
    (finding,) = verdict_on(edited("builder/pins.json", "256\n", '"256"\n')).findings
    assert (finding.required, finding.observed) == ("256 (an integer) (0 of 1 places)", "256")


def test_any_known_value_of_a_typed_source_is_held_to_type_and_content() -> None:
    text = CONTRACT.replace("json: /engine/commit, is: engine.commit", "json: /*/*, is: any-known")
    assert verdict_on(MemoryTree(FILES), text).exit is ExitCode.YES
    slip = json.dumps({"engine": {"commit": OTHER, "source_sha256": SOURCE_SHA256}, "geometry": {"tokens": 257}}).encode()
    verdict = verdict_on(MemoryTree({**FILES, "builder/pins.json": slip}), text)
    assert [(finding.required, finding.observed) for finding in verdict.findings] == [
        (f"{COMMIT} (3 of 4 places)", OTHER),
        ("256 (an integer) (0 of 1 places)", "257 (an integer)"),
        ("the value of a pin", "257 (an integer)"),
    ]


def test_nine_digits_where_forty_are_demanded_are_a_finding_of_both_rules() -> None:
    verdict = verdict_on(edited("profiles/one.yaml", COMMIT, COMMIT[:9]))
    assert [(finding.checker, finding.observed) for finding in verdict.findings] == [
        ("pins.agree", COMMIT[:9]),
        ("pins.full-length", COMMIT[:9]),
    ]
    assert verdict.findings[1].required == "the 40 or 64 lower-case hex digits of a git commit"
    assert verdict.findings[1].fix == f"write the whole commit {COMMIT}"


def test_a_contract_that_most_places_contradict_is_told_so() -> None:
    verdict = verdict_on(MemoryTree(FILES), CONTRACT.replace(f"commit: {COMMIT}", f"commit: {OTHER}"))
    assert lines(verdict) == [
        "builder/pins.json:3",
        "contract.yaml:7",
        "docs/QUICKSTART.md:3",
        "profiles/one.yaml:3",
        "profiles/two.yaml:3",
    ]
    places = [finding for finding in verdict.findings if finding.location and finding.location.file != "contract.yaml"]
    assert {finding.required for finding in places} == {f"{OTHER} (0 of 4 places)"}
    assert all(finding.fix.endswith("to the pinned commit, or pin the other value at contract.yaml:7") for finding in places)
    (own,) = [finding for finding in verdict.findings if finding not in places]
    assert own.required == f"{COMMIT} (4 of 4 places)"
    assert own.observed == f"{OTHER}, so the contract disagrees with most places"


def test_a_single_place_does_not_outvote_its_pin() -> None:
    assert lines(verdict_on(edited("builder/pins.json", SOURCE_SHA256, SOURCE_SHA256[::-1]))) == ["builder/pins.json:4"]


def test_a_value_that_is_gone_is_said_at_its_file_and_is_no_success() -> None:
    verdict = verdict_on(edited("profiles/two.yaml", "commit:", "tag:"))
    assert (verdict.exit, verdict.outcome, lines(verdict)) == (ExitCode.NOTHING, Outcome.ERROR, ["profiles/two.yaml:2"])
    assert (verdict.evaluated, verdict.of) == (0, 2)
    assert verdict.not_evaluated == ("agree (pins.agree): not-run", "whole (pins.full-length): not-run")


def test_no_place_that_matches_is_nothing_evaluated() -> None:
    verdict = verdict_on(MemoryTree({}))
    assert (verdict.exit, verdict.outcome, verdict.evaluated) == (ExitCode.NOTHING, Outcome.ERROR, 0)
    assert lines(verdict) == [f"contract.yaml:{line}" for line in range(15, 21)]
    assert consistent(verdict)


def test_a_rule_without_a_place_is_named_and_no_success() -> None:
    head, rest = CONTRACT.split("  places:\n")
    places = "    - {file: builder/pins.json, json: /geometry/tokens, is: geometry.tokens}\n"
    text = f"{head}  places:\n{places}{rest[rest.index('  invariants:') :]}"
    verdict = verdict_on(MemoryTree(FILES), text)
    assert (verdict.exit, verdict.outcome, verdict.evaluated, verdict.of) == (ExitCode.NOTHING, Outcome.INCONCLUSIVE, 1, 2)
    assert verdict.not_evaluated == ("whole (pins.full-length): not-applicable",)
    assert [(finding.code, finding.outcome) for finding in verdict.findings] == [(Code.NOTHING_EVALUATED, Outcome.NOT_APPLICABLE)]
    assert consistent(verdict)


def test_a_file_that_cannot_be_parsed_is_an_error_and_the_others_are_judged_still() -> None:
    files = {**FILES, "builder/pins.json": b'{"engine":\n', "profiles/one.yaml": FILES["profiles/one.yaml"].replace(b"5ec6", b"6ec6")}
    verdict = verdict_on(MemoryTree(files))
    assert verdict.exit is ExitCode.INVALID
    assert lines(verdict) == ["builder/pins.json:2", "profiles/one.yaml:3"]
    assert [finding.outcome for finding in verdict.findings] == [Outcome.ERROR, Outcome.FAIL]
    assert consistent(verdict)


def test_findings_are_in_reading_order_and_none_stands_twice() -> None:
    files = {path: data.replace(COMMIT.encode(), OTHER[:9].encode()) for path, data in FILES.items()}
    files["profiles/two.yaml"] = b"\xff"
    verdict = verdict_on(MemoryTree(files))
    places = ["builder/pins.json:3", "docs/QUICKSTART.md:3", "profiles/one.yaml:3"]
    assert lines(verdict, "pins.full-length") == places
    assert lines(verdict, "pins.agree") == sorted([*places, "contract.yaml:7"])
    assert lines(verdict) == sorted(lines(verdict))
    assert len(set(verdict.findings)) == len(verdict.findings)
    assert [finding.checker for finding in verdict.findings if finding.location and finding.location.file == "profiles/two.yaml"] == [None]


class _Scripted(Checker):
    """Says what it is told to."""

    name = "test.scripted"
    version = 3
    rule = "The test decides."
    parameters: ClassVar[Mapping[str, JsonValue]] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["says"],
        "properties": {"says": {"type": "string", "description": "an outcome, or `warn`, or `raise`"}},
    }

    def check(self, case: Case, given: Parameters) -> Result:
        del case
        says = str(given["says"])
        if says == "raise":
            raise InputError(Code.UNREADABLE, "no such file", at=Location("x.json", 1), fix="add it")
        if says == "warn":
            return Result(1, (Finding(Code.CONTRACT_VIOLATED, Outcome.FAIL, "look at it", Severity.WARN, self.name),))
        return Result(1, () if says == "pass" else (Finding(Code.CONTRACT_VIOLATED, Outcome(says), "mend it", checker=self.name),))


@pytest.mark.parametrize(
    ("says", "exit_code", "outcome", "evaluated"),
    [
        ("pass", ExitCode.YES, Outcome.PASS, 3),
        ("warn", ExitCode.YES, Outcome.PASS, 3),
        ("fail", ExitCode.NO, Outcome.FAIL, 3),
        ("inconclusive", ExitCode.CANNOT_TELL, Outcome.INCONCLUSIVE, 3),
        ("error", ExitCode.INVALID, Outcome.INCONCLUSIVE, 2),
        ("raise", ExitCode.INVALID, Outcome.INCONCLUSIVE, 2),
        ("skipped", ExitCode.NOTHING, Outcome.INCONCLUSIVE, 2),
        ("not-run", ExitCode.NOTHING, Outcome.INCONCLUSIVE, 2),
    ],
)
def test_only_a_pass_of_every_invariant_is_a_yes(
    monkeypatch: pytest.MonkeyPatch, says: str, exit_code: ExitCode, outcome: Outcome, evaluated: int
) -> None:
    monkeypatch.setattr(registry, "CHECKERS", {**registry.CHECKERS, _Scripted.name: _Scripted()})
    verdict = verdict_on(MemoryTree(FILES), f"{CONTRACT}    - {{id: told, check: test.scripted, with: {{says: {says}}}}}\n")
    assert (verdict.exit, verdict.outcome, verdict.evaluated, verdict.of) == (exit_code, outcome, evaluated, 3)
    assert verdict.predicate()["checkers"] == {"pins.agree": 1, "pins.full-length": 1, "test.scripted": 3}
    assert consistent(verdict)


def test_parameters_are_held_against_the_schema_of_their_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "CHECKERS", {**registry.CHECKERS, _Scripted.name: _Scripted()})
    with pytest.raises(InputError) as caught:
        small_contract(f"{CONTRACT}    - {{id: told, check: test.scripted, with: {{say: pass}}}}\n")
    assert "write 'says'" in str(caught.value)
    assert caught.value.at
    assert (caught.value.at.line, caught.value.exit) == (24, ExitCode.INVALID)
