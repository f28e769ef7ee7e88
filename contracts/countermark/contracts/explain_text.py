"""A decision as text: verdict first and last, one block for each requirement that does not hold, what was required before what was seen.

No colour and no wrapping here; what signed statements say is shown without control characters, since a terminal obeys those.
"""

from collections.abc import Iterator
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.contracts.decision import Decision, Mode, Result, Verdict
from countermark.contracts.weighed import Weighed, WeighedWaiver

_MARKS: Final = {Outcome.PASS: "✓", Outcome.NOT_APPLICABLE: "-"}
_SHORT_HEX: Final = 12
_SHOWN_EVIDENCE: Final = 4


def explain(decision: Decision, *, report: str = "") -> str:
    """The text of a decision. `report` names the file that holds it as JSON, where there is one."""
    parts = (_head(decision), *_blocks(decision), *_unused_waivers(decision), *_notes(decision), _tail(decision, report))
    return "\n".join(map(plain, parts)) + "\n"


def plain(text: str) -> str:
    """The text on one line, with everything that is not printable as its escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _head(decision: Decision) -> str:
    policy = decision.inputs.policy
    subject = f"{decision.subject.kind}:sha256:{decision.subject.hex[:_SHORT_HEX]}…"
    counts = f"evaluated {decision.evaluated}, satisfied {decision.satisfied}"
    counts += f", waived {len(decision.waived)}" if decision.waived else ""
    return f"{decision.verdict}  {subject}  policy {policy.id}@{policy.version}  {counts}"


def _blocks(decision: Decision) -> Iterator[str]:
    used = {item.waiver.requirement: item for item in decision.waivers if item.waiver and item.used}
    for result in decision.requirements:
        asked = [result.capability] if result.capability and result.capability != result.id else []
        yield f"{_MARKS.get(result.outcome, '✗')} {'  '.join([result.id, *asked, str(result.status)])}  [{', '.join(result.every_code)}]"
        yield from (f"    {name:<9} {text}" for name, text in _lines(result, used.get(result.id)) if text)


def _lines(result: Result, waiver: WeighedWaiver | None) -> Iterator[tuple[str, str]]:
    yield "required", result.required
    yield "observed", result.observed
    yield from (("evidence", text) for text in _evidence(result))
    yield "note", f"left open: {', '.join(result.any)}" if result.any else ""
    yield from (("waived", text) for text in _waived(waiver))
    yield "expires", str(result.next_expiry.whole_seconds()) if result.next_expiry else ""
    yield "fix", result.fix
    yield "policy", ":".join(str(part) for part in (result.location.file, result.location.line) if part is not None)


def _waived(weighed: WeighedWaiver | None) -> Iterator[str]:
    """The waiver by which a release goes on, with all that a person must know to object to it."""
    waiver = weighed.waiver if weighed else None
    if weighed and waiver:
        covered = ", ".join(waiver.codes)
        yield f"by {waiver.name} until {waiver.expires}, for {covered} (entry {weighed.index}); it stays failed"
        yield f"asked by {waiver.requested_by}, approved by {', '.join(weighed.approved_by)}; {waiver.ticket}: {waiver.reason}"


def _unused_waivers(decision: Decision) -> Iterator[str]:
    for weighed in decision.waivers:
        if not weighed.used:
            name = f"{weighed.waiver.name} for {weighed.waiver.requirement}" if weighed.waiver else f"{weighed.payload.hex[:_SHORT_HEX]}…"
            yield f"! waiver {name} (entry {weighed.index}) changes nothing: {'; '.join(weighed.why)}"


def _evidence(result: Result) -> Iterator[str]:
    """What the answer rests on; where it rests on nothing, what was considered and why it does not do."""
    used = [item for item in result.evidence if item.used]
    shown = used or list(result.evidence)
    yield from (_weighed(item, result.observed) for item in shown[:_SHOWN_EVIDENCE])
    if len(shown) > _SHOWN_EVIDENCE:
        yield f"and {len(shown) - _SHOWN_EVIDENCE} more"


def _weighed(item: Weighed, observed: str) -> str:
    why = f": {item.why}" if item.why and item.why not in observed else ""
    return f"{item.payload.hex[:_SHORT_HEX]}… (entry {item.index}) by {item.signer}{why}"


def _notes(decision: Decision) -> Iterator[str]:
    for note in decision.notes:
        name, _, count = note.partition(":")
        yield f"note {note}: {NOTES[name].format(count)}"


NOTES: Final = {
    "SINGLE_OPERATOR": "the trust policy says that one person holds all roles; nobody else has answered for this",
    "AT_OVERRIDE": "judged for a time that was given, not for now",
    "QUARANTINED_REJECTIONS": "{} rejections of this image were refused on entry and do not count; look at them",
    "ALL_WAIVED": "all that applies is waived and nothing holds; what is waived shows nothing, so there is no ALLOW",
    "WAIVERS_OF_OTHER_IMAGES": "{} more waivers of this policy name other images and change nothing here; `waiver list` shows them",
    "UNPROTECTED_TAIL": "nobody else is known to hold a checkpoint over the newest {} entries; `ledger checkpoint` prints one",
}


def _tail(decision: Decision, report: str) -> str:
    warned = decision.mode is Mode.WARN and decision.verdict is Verdict.DENY
    parts = [
        f"verdict {decision.verdict}",
        *(["mode warn: told, not enforced"] if warned else []),
        f"exit {int(decision.exit)}",
        *([f"report {report}"] if report else []),
        f"ledger {decision.head.origin} size {decision.head.size}",
        f"at {decision.effective_time}",
        f"decision {decision.id}",
    ]
    return " · ".join(parts)
