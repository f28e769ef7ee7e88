"""Rules about numbers that stand beside each other: geometry and limits (catalogue FM-05, GC-16)."""

from collections.abc import Iterator
from dataclasses import replace

from countermark.attestations.findings import Finding
from countermark.contracts.checkers.parameters import flag, group, many, objects, operand
from countermark.contracts.checkers.records import Block, RecordChecker, integer, real, record_fields
from countermark.contracts.locators.base import Found

_NUMBERS = ("tokens", "unit", "chunks", "prompt", "bytes", "object_bytes", "objects")


class GeometryDivides(RecordChecker):
    """Recomputes token and byte counts from their units."""

    name = "config.geometry-divides"
    rule = "Token counts are whole chunks of the declared unit, and the counts of chunks and objects follow from the sizes."
    ids = ("FM-05",)
    parameters = record_fields(
        tokens=operand("tokens that are stored or restored"),
        unit=operand("tokens of one chunk; a record that has none declares no geometry"),
        chunks=operand("the number of chunks"),
        prompt=operand("tokens of the prompt that they are the reusable part of"),
        bytes=operand("bytes of the whole stream"),
        object_bytes=operand("bytes of one object"),
        objects=operand("the number of objects"),
    )

    def applies(self, block: Block) -> bool:
        """A record without a unit declares no geometry, so there is none to break."""
        return self._declared(block, "unit", "tokens") or self._declared(block, "object_bytes", "bytes", "objects")

    @staticmethod
    def _declared(block: Block, unit: str, *needed: str) -> bool:
        it = block.given.get(unit)
        is_missing = isinstance(it, str) and it.startswith("/") and block.maybe(unit) is None
        return it is not None and not is_missing and all(name in block.given for name in needed)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each number that does not follow from the others."""
        values = {name: block.operand(name) for name in _NUMBERS if name in block.given}
        numbers = {name: integer(found) for name, found in values.items()}
        tokens, unit = numbers.get("tokens"), numbers.get("unit")
        if tokens is not None and unit:
            if tokens % unit:
                yield self._wrong(values["tokens"], f"a multiple of {unit}")
            if "chunks" in numbers and numbers["chunks"] != -(-tokens // unit):
                yield self._wrong(values["chunks"], f"{tokens} / {unit} = {-(-tokens // unit)}")
            prompt = numbers.get("prompt")
            if prompt is not None and tokens not in (prompt // unit * unit, (prompt - 1) // unit * unit):
                yield self._wrong(values["tokens"], f"{prompt // unit * unit}, the whole chunks of a prompt of {prompt}")
        size, each = numbers.get("bytes"), numbers.get("object_bytes")
        if size is not None and each and "objects" in numbers and numbers["objects"] != -(-size // each):
            yield self._wrong(values["objects"], f"{size} / {each}, rounded up: {-(-size // each)}")

    def _wrong(self, found: Found, required: str) -> Finding:
        return self.violation(found.at, required=required, observed=str(found.value), fix="record the number that follows from the others")


class LimitsOrdered(RecordChecker):
    """Compares limits with each other, and what was tested with what is configured."""

    name = "config.limits-ordered"
    rule = "Of each pair of limits, the lower one is not above the higher one."
    ids = ("GC-16",)
    parameters = record_fields(
        "order",
        order=many(
            "pairs of limits",
            group(
                "one pair",
                "low",
                "high",
                low=operand("what is lower"),
                high=operand("what is higher"),
                strict=flag("whether they may not be equal"),
            ),
        ),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each pair in the wrong order."""
        for pair in objects(block.given["order"]):
            own = replace(block, given=pair)
            low, high = own.operand("low"), own.operand("high")
            strict = pair.get("strict") is True
            if real(low) > real(high) or (strict and real(low) == real(high)):
                limit = f"{'below' if strict else 'at most'} {high.value}, which stands at {high.at.file}:{high.at.line}"
                yield self.violation(low.at, required=limit, observed=str(low.value), fix="lower this, or raise the other")
