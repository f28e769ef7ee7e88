"""What keeps a benchmark run from being more than a measurement: the rules that a claim about a serving image must meet.

A run may break any of them and still be recorded, for it is what was measured. It then bears no passing receipt. Rules that the catalogue
marks `I` leave a claim inconclusive, since nothing speaks against the image; those marked `B` break it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import roll_up
from countermark.contracts.measurements.broken import Broken
from countermark.contracts.measurements.estimate import ALPHA, attainable, can_reach, known_method, pairs_needed
from countermark.contracts.measurements.run import BenchmarkRun

MIN_BOOTS: Final = 3
"""Server starts that a claim rests on (catalogue BM-11)."""
MIN_REPEATS: Final = 3
"""Runs of one task: one for each boot, or a task that ran once would speak for all of them."""
BAND: Final = Fraction(1, 10)
"""How far the output of one task may lie from its median (catalogue BM-14)."""
MIN_SECONDS: Final = 10
"""What a measured cell lasts at least (catalogue BM-23)."""
_SAMPLING: Final = ("temperature", "top_p", "seed", "max_tokens", "ignore_eos")
_INCONCLUSIVE: Final = Outcome.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Quality:
    """What is known of the quality report that a run names: attached or not, and its outcome where the report itself is at hand."""

    attached: bool
    outcome: Outcome | None = None


def limits(run: BenchmarkRun, quality: Quality) -> Iterator[Broken]:
    """Every rule that the run does not meet."""
    yield from _deployment(run)
    yield from _repeated(run)
    yield from _samples(run)
    yield from _lengths(run)
    yield from _requests(run)
    yield from _quality(quality)
    yield from _recorded(run)


def controls(run: BenchmarkRun, quality: Quality) -> dict[str, Outcome]:
    """The controls of the capability `decode.rate`, but for a quality report that is not at hand, which shows nothing."""
    shown: dict[str, Outcome] = {
        "repeats": Outcome.PASS if run.repeats_seen >= MIN_REPEATS else _INCONCLUSIVE,
        "boots": Outcome.PASS if run.boots_seen >= MIN_BOOTS else _INCONCLUSIVE,
        "output-band": _band(run),
        "interval": _INCONCLUSIVE if any(True for _ in _samples(run)) else Outcome.PASS,
    }
    if not quality.attached:
        return {"quality-passed": _INCONCLUSIVE, **shown}
    return {"quality-passed": quality.outcome, **shown} if quality.outcome else shown


def _deployment(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-03, BM-04: which runtime, which target and which draft."""
    used = as_object(run.stated.get("tuple"))
    if not used.get("source"):
        yield _lacking("bench.execution-revision", "/tuple/source", "the executed runtime revision, beside the image")
    model, draft = as_object(used.get("model")), as_object(used.get("draft"))
    cells = [as_object(cell) for cell in as_list(as_object(run.stated.get("scope")).get("cells"))]
    for name, found in (("model", model), ("draft", draft)):
        if not found.get("revision"):
            yield _lacking(
                "bench.target-draft-pinned", f"/tuple/{name}", f"the {name} at one revision; a draft of `none` where there is none"
            )
    if model and model.get("revision") == draft.get("revision"):
        yield _lacking("bench.target-draft-pinned", "/tuple/draft", "another revision than the target's")
    if not cells or any(cell.get("draft_tokens") is None for cell in cells):
        yield _lacking("bench.target-draft-pinned", "/scope/cells", "draft_tokens in every cell, 0 where there is no draft")


def _repeated(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-11."""
    seen = (
        ("/boots", run.boots_seen, MIN_BOOTS, "server starts"),
        ("/repeats_of_identical_task", run.repeats_seen, MIN_REPEATS, "runs of"),
    )
    for pointer, found, least, what in seen:
        if found < least:
            yield _few("bench.repetitions", pointer, f"{least} {what}{' each task' if what == 'runs of' else ''}", str(found))


def _samples(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-10, BM-12, BM-13: are there enough samples, and is there an interval over them that can be computed again."""
    n = len(run.samples() or [])
    if not can_reach(n, ALPHA):
        best = f"n = {n}, which reaches p = {float(attainable(n)):.3f} at best"
        yield _few("bench.attainable-significance", "/summary/n", f"{pairs_needed()} samples, to reach p = {float(ALPHA):.2f}", best)
    if n < run.summary.samples_needed:
        yield _few("bench.percentile-support", "/summary/n", f"{run.summary.samples_needed} samples for this percentile", f"n = {n}")
    if run.interval is None:
        yield _few("bench.uncertainty", "/summary/interval", "an interval", "none: this is a point observation")
    elif not known_method(run.interval.method):
        yield _few("bench.uncertainty", "/summary/interval/method", "a method that can be computed again", run.interval.method)


def _lengths(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-14: what one task produced is about as long every time."""
    if _band(run) is Outcome.PASS:
        return
    outside = [(task, lengths) for task, lengths in _outputs(run).items() if not _within(lengths)]
    observed = "; ".join(f"{task}: {', '.join(map(str, lengths))}" for task, lengths in outside[:4]) or "no task was repeated"
    yield Broken(
        checker="bench.output-length-band",
        pointer="/observations",
        required="each task several times, its output within 90 to 110 % of its median",
        observed=observed,
        fix="repeat each task, with outputs of one length, or compare no rates",
        outcome=_INCONCLUSIVE,
        code=Code.EVIDENCE_INCONCLUSIVE,
    )


def _band(run: BenchmarkRun) -> Outcome:
    lengths = list(_outputs(run).values())
    shown = [Outcome.PASS if len(found) > 1 and _within(found) else _INCONCLUSIVE for found in lengths]
    return roll_up(shown) if shown else _INCONCLUSIVE


def _outputs(run: BenchmarkRun) -> dict[str, list[int]]:
    return {task: [item.completion_tokens for item in items] for task, items in run.tasks.items()}


def _within(lengths: list[int]) -> bool:
    middle = Fraction(median(lengths))
    return all(abs(length - middle) <= BAND * middle for length in lengths)


def _requests(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-15, BM-22, BM-23: no request failed, all ended in one way, and it lasted long enough behind a warm-up."""
    failed = [item for item in run.observations if not item.finished]
    if failed:
        yield _breaks("bench.errors-zero", "/observations", "no request that failed or was cancelled", f"{len(failed)}: {failed[0].id}, …")
    reasons = sorted({item.finish for item in run.finished})
    if len(reasons) > 1:
        yield _breaks("bench.stop-reason", "/observations", "one way in which all requests ended", " and ".join(reasons))
    seconds = sum((item.wall for item in run.observations), Fraction(0))
    if seconds < MIN_SECONDS:
        yield _breaks("bench.duration-warmup", "/observations", f"{MIN_SECONDS} s of measured time", f"{float(seconds):.3f} s")
    if as_object(run.stated.get("conditions")).get("warmup_requests") is None:
        yield _lacking("bench.duration-warmup", "/conditions/warmup_requests", "how many requests came before the first that counts")


def _quality(quality: Quality) -> Iterator[Broken]:
    """BM-31."""
    if not quality.attached:
        yield _lacking("bench.quality-attached", "/quality", "the quality report of the same deployment")
    elif quality.outcome is None:
        yield Broken(
            checker="bench.quality-attached",
            pointer="/quality",
            required="the quality report itself",
            observed="named by its payload, and not at hand",
            fix="record it, and endorse the run in that ledger; or give the file of its statement beside the run",
            outcome=Outcome.NOT_RUN,
            code=Code.REF_NOT_HERE,
        )
    elif quality.outcome is not Outcome.PASS:
        yield _breaks(
            "bench.quality-attached", "/quality", "a quality report that passes; no rate is ranked without one", str(quality.outcome)
        )


def _recorded(run: BenchmarkRun) -> Iterator[Broken]:
    """BM-17, BM-19, BM-36, BM-38, BM-39: what has to be known before two runs can ever be compared."""
    conditions, harness = as_object(run.stated.get("conditions")), as_object(run.stated.get("harness"))
    hardware, observed = as_object(as_object(run.stated.get("scope")).get("hardware")), as_object(run.stated.get("observed"))
    yield from _all_there("bench.sampling-params", "/conditions", conditions, _SAMPLING, "the sampling parameters")
    yield from _all_there("bench.harness-pinned", "/harness", harness, ("version", "digest", "command_sha256"), "the program that measured")
    if not hardware.get("accelerator") or not hardware.get("system"):
        yield _few("bench.hardware-identity", "/scope/hardware", "system and accelerator", "not recorded")
    if not observed.get("to"):
        yield _lacking("bench.date-window", "/observed", "when it was measured; without it no policy with an age accepts it")
    if conditions.get("cache_state") == "unknown":
        yield Broken(
            checker="bench.cache-state",
            pointer="/conditions/cache_state",
            required="cold or warm",
            observed="unknown",
            fix="record what the caches held",
            outcome=_INCONCLUSIVE,
            code=Code.EVIDENCE_INCONCLUSIVE,
            severity=Severity.WARN,
        )


def _all_there(checker: str, pointer: str, fields: dict[str, JsonValue], names: tuple[str, ...], what: str) -> Iterator[Broken]:
    missing = [name for name in names if fields.get(name) is None]
    if missing:
        yield _lacking(checker, pointer, f"{what}: {', '.join(missing)}")


def _lacking(checker: str, pointer: str, required: str) -> Broken:
    return _breaks(checker, pointer, required, "not recorded")


def _breaks(checker: str, pointer: str, required: str, observed: str) -> Broken:
    fix = "record it in the next run" if observed == "not recorded" else "measure again, and claim nothing from this run"
    return Broken(checker=checker, pointer=pointer, required=required, observed=observed, fix=fix, code=Code.CLAIM_EXCEEDS)


def _few(checker: str, pointer: str, required: str, observed: str) -> Broken:
    return Broken(
        checker=checker,
        pointer=pointer,
        required=required,
        observed=observed,
        fix="measure more often, or call it a point observation",
        outcome=_INCONCLUSIVE,
        code=Code.RUNS_TOO_FEW,
    )
