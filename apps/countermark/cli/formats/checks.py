"""What was to be evaluated, as checks that every format can show: invariants, requirements, documents."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from countermark.attestations.codes import ExitCode, Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.cli.report import Check
from countermark.contracts.decision import Decision, Mode, Result

if TYPE_CHECKING:  # the gate needs neither, and is asked often
    from countermark.contracts.adapters.reading import EvidenceReading
    from countermark.contracts.verdict import ContractVerdict

_OF_EXIT: Final = {ExitCode.YES: Outcome.PASS, ExitCode.NO: Outcome.FAIL, ExitCode.NOTHING: Outcome.NOT_RUN}


def contract_checks(verdict: "ContractVerdict") -> Iterator[Check]:
    """One check for each invariant. What a verdict finds of an invariant that was held against nothing stands at the invariant."""
    contract = verdict.contract
    for judgement in verdict.judgements:
        invariant, result = judgement.invariant, judgement.result
        found = result.findings or tuple(finding for finding in verdict.findings if finding.location == invariant.at)
        yield Check(f"{contract.id}@{contract.version}", f"{invariant.id} ({invariant.checker.name})", result.outcome, found)


def decision_checks(decision: Decision) -> Iterator[Check]:
    """One check for each requirement; one that applies and is not satisfied is a finding at its line of the policy, waived or not."""
    for result in decision.requirements:
        denied = result.evaluated and not result.satisfied
        yield Check(str(decision.subject), result.id, result.outcome, (_finding(decision, result),) if denied else ())


def _finding(decision: Decision, result: Result) -> Finding:
    return Finding(
        result.code,
        result.outcome,
        result.fix,
        Severity.WARN if decision.mode is Mode.WARN or result.waived_by else Severity.BLOCK,
        location=result.location,
        subject=str(decision.subject),
        required=result.required,
        observed=result.observed,
        evidence=tuple(str(item.payload) for item in result.evidence if item.used),
        waived_by=_waiver(decision, result),
    )


def _waiver(decision: Decision, result: Result) -> str | None:
    """The waiver with its end, who approved it, and why."""
    for item in decision.waivers:
        if item.waiver and item.used and item.waiver.requirement == result.id:
            waiver = item.waiver
            by = ", ".join(item.approved_by)
            return f"{waiver.name} until {waiver.expires}, approved by {by}; {waiver.ticket}: {waiver.reason}"
    return result.waived_by


def reading_check(reading: "EvidenceReading", findings: tuple[Finding, ...]) -> Check:
    """One check for a document with the findings in it: that it holds together and claims something."""
    return Check(reading.schema, reading.root.name, _OF_EXIT.get(reading.exit, Outcome.ERROR), findings)
