"""Decision bundles: `explain DECISION -o bundle=FILE`, and the report of `verify bundle FILE`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import UsageError
from countermark.attestations.findings import Finding
from countermark.cli.report import Report

if TYPE_CHECKING:
    from countermark.actions.decision_bundle import CheckedDecision
    from countermark.actions.repeat import Repeated
    from countermark.actions.workspace import Workspace

_FORM = "bundle"


def bundles_asked(outputs: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files of `-o bundle=FILE`, and the other outputs, which are printed."""
    parts = [(form, path, text) for text in outputs for form, _, path in [text.partition("=")]]
    if any(form == _FORM and not path for form, path, _ in parts):
        raise UsageError(Code.UNREADABLE, "a bundle is a file, and none is named", fix="write -o bundle=FILE")
    return [Path(path) for form, path, _ in parts if form == _FORM], [text for form, _, text in parts if form != _FORM]


def packed(workspace: "Workspace", repeated: "Sequence[Repeated]", bundles: Sequence[Path]) -> list[str]:
    """Write each bundle that was asked for, of the one decision that was named; what to say of them."""
    from countermark.actions.decision_bundle import pack_decision

    if bundles and len(repeated) != 1:
        raise UsageError(Code.UNKNOWN_NAME, "a bundle holds one decision", fix="ask for one decision with -o bundle=FILE")
    for path in bundles:
        pack_decision(workspace, repeated[0], path)
    return [f"everything to make it again lies in {path}: countermark verify bundle {path}" for path in bundles]


def refuse_bundles(bundles: Sequence[Path]) -> None:
    """`UsageError` where an image is explained, since only a recorded decision can be made again elsewhere."""
    if bundles:
        message = "only a recorded decision has a bundle"
        raise UsageError(Code.UNKNOWN_NAME, message, fix="record it with `gate --record`, then explain the decision by its id")


def checked_report(files: Sequence[str], trust: Path | None, other_options: Sequence[str]) -> Report:
    """Check the one decision bundle that is named."""
    from countermark.actions.decision_bundle import check_decision
    from countermark.cli.progress import count_progress

    if len(files) != 1 or other_options:
        message = f"a decision bundle is checked alone, and takes no option but --trust: {', '.join([*files, *other_options])}"
        raise UsageError(Code.UNKNOWN_NAME, message, fix="check it by itself")
    with count_progress("auditing") as told:
        return _report(check_decision(Path(files[0]), trust, told))


def _report(checked: "CheckedDecision") -> Report:
    from countermark.cli.render_repeated import repeated_json, repeated_text

    audit, again = checked.audit, checked.repeated
    return Report(
        exit=checked.exit,
        evaluated=1 if again else 0,
        of=1,
        findings=tuple(_findings(checked)),
        not_evaluated=() if again else ("the decision, since its ledger does not hold",),
        ledger={"origin": audit.origin, "size": audit.size, "root": audit.root.hex(), "notices": audit.notices},
        extra={"decisions": [repeated_json(again)] if again else [], "trust": _trust(checked)},
        text="\n".join([*([repeated_text(again)] if again else []), *_lines(checked)]),
    )


def _lines(checked: "CheckedDecision") -> Iterator[str]:
    yield f"the bundle holds {checked.audit.size} entries, root {checked.audit.root.hex()}"
    policy = f"{checked.trust.id}@{checked.trust.version} ({checked.trust.digest})"
    if checked.own_trust:
        yield f"whom to believe says the bundle's own trust policy {policy}: compare it with yours, or give --trust FILE"
    else:
        yield f"judged by the trust policy {policy}"


def _trust(checked: "CheckedDecision") -> dict[str, object]:
    policy = checked.trust
    return {"id": policy.id, "version": policy.version, "digest": str(policy.digest), "own": checked.own_trust}


def _findings(checked: "CheckedDecision") -> Iterator[Finding]:
    """Those of the audit, but that this machine has no anchor for a copy, and each place where the decision comes out otherwise."""
    for finding in checked.audit.findings:
        if not (finding.severity is Severity.INFO and finding.checker == "ledger.anchor"):
            yield finding
    for pointer in checked.repeated.differences if checked.repeated else ():
        observed = f"the decision made again differs at {pointer}"
        fix = "see with -o json what it was and is; the program or the record is another"
        yield Finding(Code.RECORD_CONTRADICTED, Outcome.FAIL, observed=observed, checker="decision.repeated", fix=fix)
