"""`bench.recompute` and `bench.denominator-declared` (catalogue BM-08, BM-05): a value follows from its operands, and they decide which
definition it has.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from countermark.attestations.codes import Outcome
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.parameters import Schema, choice, operand, pointer, pointers, table, whole
from countermark.contracts.checkers.records import Block, RecordChecker, real, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import shown

_RELATIVE = 1e-9

Definition = tuple[tuple[str, ...], Callable[..., float]]
DEFINITIONS: Mapping[str, Definition] = {
    "decode.excl-first": (("completion", "wall", "ttft"), lambda completion, wall, ttft: (completion - 1) / (wall - ttft)),
    "decode.all": (("completion", "wall", "ttft"), lambda completion, wall, ttft: completion / (wall - ttft)),
    "e2e.request": (("completion", "wall"), lambda completion, wall: completion / wall),
    "prefill.ttft": (("prompt", "ttft"), lambda prompt, ttft: prompt / ttft),
    "restore.bytes": (("bytes", "seconds"), lambda size, seconds: size / seconds),
}
_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}


def _operand_fields() -> dict[str, Schema]:
    return {
        "completion": pointer("completion tokens"),
        "prompt": pointer("prompt tokens"),
        "wall": pointer("the whole time in seconds"),
        "ttft": pointer("the time to the first token in seconds"),
        "bytes": pointer("bytes that were moved"),
        "seconds": pointer("the time that it took"),
    }


def _made(block: Block, name: str) -> float | None:
    """What the operands give under a definition; none when they make no number. `NothingError` when one is not recorded."""
    operands, formula = DEFINITIONS[name]
    values = [real(block.one(operand)) for operand in operands]
    try:
        return formula(*values)
    except ZeroDivisionError:
        return None


def _fits(value: float, made: float | None, decimals: int | None) -> bool:
    if made is None:
        return False
    if decimals is not None:
        return abs(value - made) <= 0.5 * math.pow(10, -decimals) * (1 + 1e-6)
    return math.isclose(value, made, rel_tol=_RELATIVE)


def _fitting(block: Block, value: float, decimals: int | None) -> list[str]:
    """The definitions that the operands at hand give the value under."""
    possible = [
        name for name, (operands, _) in DEFINITIONS.items() if all(operand in block.given and block.maybe(operand) for operand in operands)
    ]
    return [name for name in possible if _fits(value, _made(block, name), decimals)]


class Recompute(RecordChecker):
    """Recomputes values and summaries from their operands."""

    name = "bench.recompute"
    rule = "Every value is what its operands give under its definition."
    ids = ("BM-08",)
    parameters = record_fields(
        "value",
        value=pointer("the value"),
        definition=choice("how it is computed", *DEFINITIONS),
        decimals=whole("digits behind the point of a value that was rounded", minimum=0, maximum=9),
        statistic=choice("the statistic, where the value is one over others", *_STATISTICS),
        of=pointers("the values that the statistic is over"),
        **_operand_fields(),
    )

    def applies(self, block: Block) -> bool:
        """There is a definition, or a statistic over other values."""
        return "definition" in block.given or {"statistic", "of"} <= set(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a value that its operands do not give; one where an operand is not recorded."""
        value, decimals = block.one("value"), block.given.get("decimals")
        digits = decimals if isinstance(decimals, int) else None
        if "definition" in block.given:
            name = str(block.given["definition"])
            missing = [operand for operand in DEFINITIONS[name][0] if block.maybe(operand) is None]
            for operand in missing:
                fix = f"record the {operand}, or do not derive a rate"
                at = block.place(operand) if operand in block.given else value.at
                yield self.violation(
                    at, required=f"{operand}, an operand of {name}", observed="nothing", fix=fix, outcome=Outcome.INCONCLUSIVE
                )
            if not missing and not _fits(real(value), made := _made(block, name), digits):
                others = _fitting(block, real(value), digits)
                required = f"{made}, as {name}" + (f"; it is what {' and '.join(others)} gives" if others else "")
                yield self.violation(
                    value.at, required=required, observed=shown(value.value), fix="recompute it, or name the definition that it follows"
                )
        if "statistic" in block.given:
            yield from self._summary(block, value, digits)

    def _summary(self, block: Block, value: Found, digits: int | None) -> Iterator[Finding]:
        name = str(block.given["statistic"])
        made = _STATISTICS[name]([real(found) for found in block.all("of")])
        if not _fits(real(value), made, digits):
            yield self.violation(value.at, required=f"{made}, the {name} of its values", observed=shown(value.value), fix="recompute it")


class DenominatorDeclared(RecordChecker):
    """Reads the definition of a metric, and lets the operands decide whether it is the right one."""

    name = "bench.denominator-declared"
    rule = "A metric has a definition from the closed list, the operands agree with it, and no part exceeds its whole."
    ids = ("BM-05",)
    parameters = record_fields(
        declared=operand("the definition as it is stated: a pointer, or a fact"),
        words=table("which definition a text means", choice("a definition", *DEFINITIONS)),
        value=pointer("a value to try it on"),
        decimals=whole("digits behind the point of a value that was rounded", minimum=0, maximum=9),
        part=pointer("a count"),
        whole=pointer("the count that it is a part of"),
        **_operand_fields(),
    )

    def applies(self, block: Block) -> bool:
        """There is a definition, or a part with its whole."""
        return "declared" in block.given or {"part", "whole"} <= set(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a definition that is none, or that the operands contradict, and one for a part that exceeds its whole."""
        if "declared" in block.given:
            yield from self._definition(block)
        if "part" in block.given:
            part, of = block.one("part"), block.one("whole")
            if real(part) > real(of):
                required = f"at most {of.value}, which it is a part of (line {of.at.line})"
                fix = "say what is counted in this number and not in the other"
                yield self.violation(part.at, required=required, observed=shown(part.value), fix=fix)

    def _definition(self, block: Block) -> Iterator[Finding]:
        declared, words = block.operand("declared"), block.given.get("words")
        name = words.get(str(declared.value), declared.value) if isinstance(words, dict) else declared.value
        if not isinstance(name, str) or name not in DEFINITIONS:
            fix = "name the definition, or map this text to it in the contract"
            yield self.violation(declared.at, required=f"one of {', '.join(DEFINITIONS)}", observed=shown(declared.value), fix=fix)
        elif "value" in block.given:
            value, decimals = block.one("value"), block.given.get("decimals")
            fitting = _fitting(block, real(value), decimals if isinstance(decimals, int) else None)
            if name not in fitting:
                required = (
                    f"{' or '.join(fitting) or 'a definition that gives the value'}, by the operands at {value.at.file}:{value.at.line}"
                )
                yield self.violation(declared.at, required=required, observed=name, fix="state the definition that the operands follow")
