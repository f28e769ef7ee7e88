"""A quality report judged again from the raw responses that are at hand: what contradicts itself, and the outcome of each check.

The report states outcomes and no roll-up. A stated outcome that the raw response does not give is a contradiction, as is a pass that
nobody can compute because no raw response is named.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.quality.rules import RAW, Ruled, hold, is_bounded

Responses = Mapping[str, bytes]
"""Raw responses that are at hand, by the hex of their SHA-256."""
Check = Mapping[str, JsonValue]
_RAN: Final = frozenset({"pass", "fail"})
_DID_NOT_RUN: Final = frozenset({"skipped", "not-run"})


def contradictions(report: Mapping[str, JsonValue], responses: Responses) -> Iterator[Broken]:
    """Everything in a report that speaks against something else in it."""
    used, scope = as_object(report.get("tuple")), as_object(report.get("scope"))
    if used.get("image") != scope.get("image"):
        yield Broken(
            checker="evidence.subject",
            pointer="/scope/image",
            required=f"{used.get('image')}, the image of the tuple",
            observed=str(scope.get("image")),
            fix="name one image in tuple and scope",
        )
    checks = [as_object(check) for check in as_list(report.get("checks"))]
    yield from _ids(checks)
    for number, check in enumerate(checks):
        at = f"/checks/{number}"
        yield from _skipped(check, checks[:number], at)
        yield from _raw(check, at, responses, measured=report.get("basis") == "measured")


def _ids(checks: list[dict[str, JsonValue]]) -> Iterator[Broken]:
    for repeated, times in Counter(str(check.get("id")) for check in checks).items():
        if times > 1:
            yield Broken(
                checker="quality.verdict-closed",
                pointer="/checks",
                required=f"{repeated} once",
                observed=f"{times} times",
                fix="give each check an id of its own",
            )


def _skipped(check: Check, before: list[dict[str, JsonValue]], at: str) -> Iterator[Broken]:
    """BM-32: a check that did not run names the check before it that stopped the run; one that ran names none."""
    outcome, cause = check.get("outcome"), check.get("cause")
    stopped = {str(item.get("id")) for item in before if item.get("outcome") != "pass"}
    if (outcome == "skipped" and cause not in stopped) or (outcome in _RAN and cause is not None):
        required = "the earlier check that stopped the run" if outcome == "skipped" else "no cause, for the check ran"
        yield Broken(
            checker="quality.skipped-declared",
            pointer=f"{at}/cause",
            required=required,
            observed=str(cause) if cause is not None else "not recorded",
            fix="name the check that stopped the run, and mark as skipped what did not run",
        )


def _raw(check: Check, at: str, responses: Responses, *, measured: bool) -> Iterator[Broken]:
    """BM-33: the outcome is that of the raw response."""
    observed, response, outcome = check.get("observed"), check.get("response"), check.get("outcome")
    if isinstance(observed, str) and isinstance(response, str) and outcome in _RAN and _digest(observed.encode()) != response:
        yield _contract(f"{at}/observed", f"the raw response, {response}", "a text with another digest", "copy the response as it came")
        return
    if outcome in _DID_NOT_RUN and response is not None:
        yield _contract(f"{at}/response", f"no response, for the check is {outcome}", str(response), "mark the check as it was")
    raw = raw_response(check, responses)
    if raw is None:
        if measured and outcome == "pass" and response is None:
            yield _contract(f"{at}/response", "the digest of the raw response of a pass", "not recorded", "keep every raw response")
        return
    found = ruled(check, raw)
    if found.outcome is Outcome.ERROR or (outcome in _RAN and outcome != found.outcome):
        reason = f": {found.why}" if found.why else ""
        required = f"{found.outcome}, by {check.get('rule')} over the raw response{reason}"
        yield _contract(f"{at}/outcome", required, str(outcome), "judge the raw response, without repair")


def _contract(pointer: str, required: str, observed: str, fix: str) -> Broken:
    return Broken(
        checker="quality.output-contract", pointer=pointer, required=required, observed=observed, fix=fix, code=Code.RECORD_CONTRADICTED
    )


def raw_response(check: Check, responses: Responses) -> bytes | None:
    """The raw response of a check: a file at hand with its digest, or the text that the report holds where that has it."""
    observed, response = check.get("observed"), check.get("response")
    if not isinstance(response, str):
        return None
    kept = responses.get(response.rpartition(":")[2])
    if kept is not None and _digest(kept) == response:
        return kept
    return observed.encode() if isinstance(observed, str) and _digest(observed.encode()) == response else None


def ruled(check: Check, raw: bytes) -> Ruled:
    """What the check's own rule says of a raw response, under its declared normalisation."""
    steps = tuple(map(str, as_list(check.get("normalisation"))))
    return hold(str(check.get("rule")), str(check.get("required")), raw, steps)


def shown_of_check(check: Check, *, strict: bool) -> Outcome | None:
    """What one check shows to somebody who has the report alone; none where the report does not hold the raw response.

    A `strict` reader takes the raw bytes and ignores any normalisation, so that a repaired answer is no pass. Rules that may run for ever
    are not evaluated, and show nothing.
    """
    raw, rule, required = raw_response(check, {}), str(check.get("rule")), str(check.get("required"))
    if raw is None or not is_bounded(rule, required):
        return None
    steps = RAW if strict else tuple(map(str, as_list(check.get("normalisation"))))
    return hold(rule, required, raw, steps).outcome


def _digest(data: bytes) -> str:
    return str(Digest.of(DigestKind.RESPONSE_RAW, data))
