"""The controls of a capability, recomputed from what a receipt rests on.

A control is a question that the raw operands of a run must answer: was the answer exact, were all ranks structurally verified. It is
`pass` or `fail` only where those operands are in the statements; otherwise it is not recorded, which is `None` here.
"""

from collections.abc import Callable, Mapping
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import quality_outcome, roll_up
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.measurements.judged import judged
from countermark.contracts.quality.judged import shown_of_check
from countermark.contracts.quality.rules import NORMALISE, normalised

Recompute = Callable[[Mapping[str, JsonValue], str, int | None], Outcome | None]


def control(predicate_type: str, predicate: Mapping[str, JsonValue], name: str, *, ranks: int | None = None) -> Outcome | None:
    """What a statement shows of one control; None where it shows nothing.

    `ranks` is how many ranks the topology has that a pass is claimed for, where that is known.
    """
    known = PredicateName.from_uri(predicate_type)
    return _BY_TYPE[known](predicate, name, ranks) if known in _BY_TYPE else None


def worst(outcomes: list[Outcome | None]) -> Outcome | None:
    """The outcome of a control that several statements show: any fail is fail; None where none shows it."""
    shown = [outcome for outcome in outcomes if outcome is not None]
    return roll_up(shown) if shown else None


def reported(value: JsonValue) -> Outcome | None:
    """A stored control; None for `not-recorded`. A word that is none of ours is an error, never silence."""
    if value == "not-recorded" or value is None:
        return None
    return Outcome(value) if isinstance(value, str) and value in set(Outcome) else Outcome.ERROR


def _of_restore_run(run: Mapping[str, JsonValue], name: str, topology_ranks: int | None) -> Outcome | None:
    if name in _RUNGS:
        return _rung(run, _RUNGS[name])
    if name in _LIVE:
        return _live(run, name)
    if name == "all-ranks-structural":
        return _all_ranks(_objects(run.get("ranks")), topology_ranks)
    if name == "one-image":
        images = [rank.get("image") for rank in _objects(run.get("ranks"))]
        used = as_object(run.get("tuple")).get("image")
        return None if None in (*images, used) else _passes(set(map(str, images)) == {str(used)})
    answer = as_object(run.get("answer"))
    if name == "exact-answer" and answer:
        stated = _word(answer.get("outcome"))
        shown = exact_answer(answer.get("required"), answer.get("raw"), answer.get("normalisation"), None)
        return shown if stated is Outcome.PASS else stated
    return None


_RUNGS: Final = {"signed-root": "1-signed-root", "coverage": "2-coverage", "readback": "3-readback"}
_LIVE: Final = frozenset({"recompute-control", "negative-control", "restore-happened"})


def _rung(run: Mapping[str, JsonValue], name: str) -> Outcome | None:
    """A rung and the faults it must have caught; one that the plan left out shows nothing."""
    rung = as_object(as_object(run.get("rungs")).get(name))
    outcome = _word(rung.get("outcome")) if rung else Outcome.NOT_RUN
    faults = [_word(fault.get("outcome")) for fault in _objects(rung.get("controls"))]
    return None if outcome is Outcome.NOT_RUN else roll_up([outcome, *faults])


def _live(run: Mapping[str, JsonValue], name: str) -> Outcome | None:
    """What the questions to a served model came to; a rung that was not run asked none, whatever stands in it."""
    rung = as_object(as_object(run.get("rungs")).get("5-live"))
    asked = [_word(item.get("outcome")) for item in _objects(rung.get("controls")) if item.get("fault") == name]
    return worst([*asked]) if rung and _word(rung.get("outcome")) is not Outcome.NOT_RUN else None


def _all_ranks(ranks: list[Mapping[str, JsonValue]], topology_ranks: int | None) -> Outcome:
    """Every rank placed its bytes, and every rank is there: each number from 0 once, up to those of the topology."""
    if not ranks:
        return Outcome.ERROR
    numbers = [number for rank in ranks if type(number := rank.get("rank")) is int]
    whole = _passes(sorted(numbers) == list(range(topology_ranks or len(ranks)))) if len(numbers) == len(ranks) else Outcome.ERROR
    return roll_up([whole, *(_word(rank.get("structural")) for rank in ranks)])


def _of_source(source: Mapping[str, JsonValue], name: str, _ranks: int | None) -> Outcome | None:
    """Whether the work tree was the commit. One that does not say is not clean."""
    return _passes(source.get("dirty") is False and source.get("dirty_paths") == 0) if name == "clean-source" else None


_OVER_ALL: Final = ("exact-answer", "raw-bytes")
"""The controls that every check of a report must show; others are the one check of that id."""


def _of_quality_report(report: Mapping[str, JsonValue], name: str, _ranks: int | None) -> Outcome | None:
    """A check of that id, compared by its texts; for an answer or raw bytes all checks, each by the digest of its raw response."""
    checks = _objects(report.get("checks"))
    if name == "quality-passed":
        again = [shown_of_check(check, strict=False) for check in checks if check.get("outcome") == "pass"]
        return roll_up([quality_outcome(dict(report)), *(outcome for outcome in again if outcome)])
    shown = [_check(check, name) for check in checks if name in _OVER_ALL or check.get("id") == name]
    if Outcome.FAIL in shown:
        return Outcome.FAIL
    return None if None in shown or not shown else worst(shown)


def _check(check: Mapping[str, JsonValue], name: str) -> Outcome | None:
    """What one check shows. An output contract takes the raw bytes: what passes only once it is normalised has been repaired."""
    stated = _word(check.get("outcome"))
    if stated is not Outcome.PASS:
        return stated
    observed, response = check.get("observed"), check.get("response")
    if name not in _OVER_ALL and response is None:
        exact = check.get("rule") == "exact" and isinstance(observed, str)
        return _passes(observed == check.get("required")) if exact else None
    shown = shown_of_check(check, strict=name == "raw-bytes")
    if shown is None and check.get("rule") == "exact":
        steps: JsonValue = ["none"] if name == "raw-bytes" else check.get("normalisation")
        return exact_answer(check.get("required"), response, steps, observed)
    return shown


def _of_benchmark_run(run: Mapping[str, JsonValue], name: str, _ranks: int | None) -> Outcome | None:
    """A control as the run's operands give it; a run that contradicts itself shows nothing but that."""
    found = judged(run)
    return Outcome.ERROR if found is None or found.contradictions else found.controls.get(name)


_BY_TYPE: Final[dict[PredicateName | None, Recompute]] = {
    PredicateName.RESTORE_RUN: _of_restore_run,
    PredicateName.QUALITY_REPORT: _of_quality_report,
    PredicateName.BENCHMARK_RUN: _of_benchmark_run,
    PredicateName.SOURCE: _of_source,
}


def exact_answer(required: JsonValue, raw: JsonValue, normalisation: JsonValue, text: JsonValue) -> Outcome | None:
    """Whether the response with the digest `raw` is exactly what was required, under the declared normalisation.

    Equality is judged on the raw bytes: on `text` where it is what was hashed, or else on the digest alone, which suffices when
    nothing is normalised. Otherwise the response itself is not in the ledger, and nothing is shown.
    """
    steps = [str(step) for step in as_list(normalisation)]
    if not isinstance(required, str) or not isinstance(raw, str) or not steps or not set(steps) <= NORMALISE.keys():
        return None
    if isinstance(text, str) and _response(text) == raw:
        return _passes(normalised(text, steps) == normalised(required, steps))
    return _passes(_response(required) == raw) if set(steps) == {"none"} else None


def _response(text: str) -> str:
    return str(Digest.of(DigestKind.RESPONSE_RAW, text.encode()))


def _passes(holds: bool) -> Outcome:
    return Outcome.PASS if holds else Outcome.FAIL


def _word(value: JsonValue) -> Outcome:
    return Outcome(value) if isinstance(value, str) and value in set(Outcome) else Outcome.ERROR


def _objects(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    return [as_object(item) for item in as_list(value)]
