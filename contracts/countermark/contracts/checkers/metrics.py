"""Rules about numbers and roll-ups of records: they follow from the data beside them (QA-12, QA-15, RE-10)."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, pointer_join
from countermark.contracts.checkers.parameters import choice, group, many, objects, operand, pointer, pointers, texts, whole
from countermark.contracts.checkers.records import Block, RecordChecker, integer, real, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown

_RELATIVE = 1e-9
_FUNCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "sum": math.fsum,
    "mean": statistics.fmean,
    "median": statistics.median,
}


def elements(block: Block, pointer: str) -> list[Found]:
    """The values of a vector: the elements of one list or object, or all that a pointer with `*` finds."""
    found = block.find(pointer)
    if len(found) == 1 and isinstance(found[0].value, dict | list):
        keys = found[0].value if isinstance(found[0].value, dict) else range(len(found[0].value))
        return [it for key in keys for it in block.find(pointer_join(pointer, key))]
    return found


def values(block: Block, parameter: str) -> list[Found]:
    """What a parameter points at, the elements of a list one by one; `NothingError` for a pointer that finds nothing."""
    block.all(parameter)
    return [it for place in texts(block.given.get(parameter)) for it in elements(block, place)]


class RankVectors(RecordChecker):
    """Counts the entries of vectors over ranks, and recomputes what is derived from them."""

    name = "metric.rank-vectors"
    rule = "Every vector over ranks has an entry for each rank, and what is said of it can be recomputed from it."
    ids = ("QA-12", "BM-28")
    parameters = record_fields(
        "vectors",
        "world",
        vectors=many("vectors: lists, objects by rank, or pointers with `*`", pointer("a vector")),
        world=operand("the number of ranks"),
        aggregates=many(
            "numbers that are a function of a vector",
            group(
                "one number",
                "value",
                "of",
                "is",
                value=pointer("the number"),
                of=pointer("the vector"),
                **{"is": choice("what it is", *_FUNCTIONS)},
            ),
        ),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each vector that is not whole, and one for each number that does not follow."""
        world = integer(block.operand("world"))
        for vector in texts(block.given["vectors"]):
            found = [it for it in elements(block, vector) if it.value is not None]
            if not found:
                required, fix = f"a value for each of {world} ranks", "record the value of every rank"
                yield self.violation(block.at(vector), required=required, observed="none", fix=fix, outcome=Outcome.INCONCLUSIVE)
            elif len(found) != world:
                fix = "record the value of every rank"
                yield self.violation(block.at(vector), required=f"{world} ranks", observed=f"{len(found)} ranks", fix=fix)
        for aggregate in objects(block.given.get("aggregates")):
            yield from self._aggregate(replace(block, given=aggregate), str(aggregate["is"]), str(aggregate["of"]))

    def _aggregate(self, block: Block, function: str, vector: str) -> Iterator[Finding]:
        value, values = block.one("value"), [real(it) for it in elements(block, vector)]
        made = _FUNCTIONS[function](values) if values else None
        if made is not None and not math.isclose(real(value), made, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
            yield self.violation(value.at, required=f"{made}, the {function} of {vector}", observed=shown(value.value), fix="recompute it")


class Residual(RecordChecker):
    """Adds up the named phases of a time."""

    name = "timing.residual"
    rule = "The named phases of a time add up to it but for a small share."
    ids = ("RE-10", "BM-26")
    parameters = record_fields(
        "total",
        "phases",
        total=pointer("the whole time"),
        phases=pointers("the phases: numbers, or objects of numbers"),
        limit_percent=whole("the share that may be in no phase; 5 by default", minimum=0, maximum=100),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """A warning for a share in no phase, and a finding for phases that are longer than the whole."""
        total = block.one("total")
        block.all("phases")
        parts = [it for pointer in texts(block.given["phases"]) for it in elements(block, pointer)]
        named, time = math.fsum(real(it) for it in parts), real(total)
        limit = block.given.get("limit_percent", 5)
        share = (time - named) * 100 / time if time > 0 else 0.0
        if named > time * (1 + 1e-3):
            yield self.violation(
                total.at, required=f"at least {named:.3f}, the sum of the phases", observed=shown(total.value), fix="measure the whole"
            )
        elif isinstance(limit, int) and share > limit:
            required = f"at most {limit} % in no phase"
            observed = f"{time - named:.3f} of {time:.3f}, {share:.1f} %"
            yield self.violation(
                total.at, required=required, observed=observed, fix="measure what lies between the phases", severity=Severity.WARN
            )


class AggregateConsistent(RecordChecker):
    """Recomputes roll-ups."""

    name = "quality.aggregate-consistent"
    rule = "A summary boolean is what the data beside it gives."
    ids = ("QA-15",)
    parameters = record_fields(
        "rollup",
        "of",
        "is",
        rollup=pointer("the summary"),
        of=pointers("what it sums up"),
        **{
            "is": choice(
                "when it is true: all are true, any is, the lists are empty, or the values are equal", "all", "any", "empty", "equal"
            )
        },
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when the summary says something else."""
        rollup = block.one("rollup")
        made = _rolled_up(block.all("of"), str(block.given["is"]))
        if rollup.value is not made:
            required = f"{'true' if made else 'false'}, recomputed from {', '.join(texts(block.given['of']))}"
            yield self.violation(
                rollup.at, required=required, observed=shown(rollup.value), fix="recompute the summary; what did not run is not a fail"
            )


def _rolled_up(found: Sequence[Found], rule: str) -> bool:
    values: list[JsonValue] = [it.value for it in found]
    if rule == "empty":
        return all(value in ([], {}, None) for value in values)
    if rule == "equal":
        return all(same(value, values[0]) for value in values)
    return all(value is True for value in values) if rule == "all" else any(value is True for value in values)


class QualityGate(RecordChecker):
    """Reads the condition under which numbers may be quoted."""

    name = "quality.gate"
    rule = "No number is quoted when the quality condition behind it failed, or a verdict has no reason."
    parameters = record_fields(
        "numbers",
        "condition",
        numbers=pointers("the numbers that are quoted"),
        condition=pointer("the quality condition, which must be true"),
        reason=pointer("the reason of the verdict, which must say something"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for the condition, and one for a reason that is missing."""
        numbers, condition = block.all("numbers"), block.one("condition")
        if condition.value is not True:
            lines = ", ".join(str(it.at.line) for it in numbers)
            required = f"true, because numbers are quoted (line {lines})"
            yield self.violation(condition.at, required=required, observed=shown(condition.value), fix="do not quote them")
        reason = block.maybe("reason")
        if "reason" in block.given and not (reason and isinstance(reason.value, str) and reason.value.strip()):
            yield self.violation(block.place("reason"), required="a reason", observed="none", fix="record why the verdict was reached")


class MinSample(RecordChecker):
    """Counts the samples behind a rate."""

    name = "metric.min-sample"
    rule = "A rate rests on at least the stated number of samples."
    parameters = record_fields(
        "samples", "least", samples=pointers("the numbers of samples"), least=whole("how many are needed", minimum=1)
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each rate that rests on fewer; on none at all, it is no rate."""
        least = block.given["least"]
        for found in block.all("samples"):
            if isinstance(least, int) and integer(found) < least:
                required, fix = f"{least} samples or more", "measure more often, or call it a single observation"
                outcome = Outcome.INCONCLUSIVE if integer(found) > 0 else Outcome.FAIL
                yield self.violation(found.at, required=required, observed=str(found.value), fix=fix, outcome=outcome)
