"""Rules about the numbers in the record of a run (catalogue BM-07, 09, 10, 24, 25, 27, 29, 41)."""

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.metrics import values
from countermark.contracts.checkers.parameters import choice, flag, operand, pointer, pointers, table
from countermark.contracts.checkers.records import Block, RecordChecker, integer, real, record_fields
from countermark.contracts.measurements.definitions import DEFINITIONS
from countermark.contracts.measurements.estimate import Summary
from countermark.contracts.pins import shown

_POPULATIONS: Final = ("prompt", "request", "rank", "run", "boot")
_MEMORY: Final = ("allocation", "weights", "peak")


class UnitConsistent(RecordChecker):
    """Looks the unit of a metric up."""

    name = "bench.unit-consistent"
    rule = "The unit is that of the metric's definition."
    ids = ("BM-07",)
    parameters = record_fields(
        "definition",
        "unit",
        definition=operand("the definition: a pointer, or a fact"),
        unit=pointer("the unit"),
        words=table("which definition a text means", choice("a definition", *DEFINITIONS)),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a definition that is none, or for another unit."""
        declared, unit, words = block.operand("definition"), block.one("unit"), block.given.get("words")
        name = words.get(str(declared.value), declared.value) if isinstance(words, dict) else declared.value
        if name not in DEFINITIONS:
            yield self.violation(declared.at, required=f"one of {', '.join(DEFINITIONS)}", observed=shown(name), fix="name the definition")
        elif unit.value != DEFINITIONS[str(name)].unit:
            required = f"{DEFINITIONS[str(name)].unit}, the unit of {name}"
            yield self.violation(unit.at, required=required, observed=shown(unit.value), fix="state the unit of the definition")


class StatisticNamed(RecordChecker):
    """Reads which statistic over which population."""

    name = "bench.statistic-named"
    rule = "A summary names its statistic and the population that it is over."
    ids = ("BM-09",)
    parameters = record_fields(
        "statistic", "population", statistic=pointer("the statistic"), population=pointer("what one sample is, or how it is put in words")
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that is missing or is no word of the list."""
        statistic, population = block.maybe("statistic"), block.maybe("population")
        word = str(statistic.value) if statistic else ""
        named = word in ("median", "mean", "min", "max") or (word[:1] == "p" and word[1:].replace(".", "", 1).isdecimal())
        if not named:
            at = statistic.at if statistic else block.place("statistic")
            yield self.violation(at, required="median, mean, min, max or pXX", observed=word or "nothing", fix="name the statistic")
        if population is None or population.value not in _POPULATIONS:
            at = population.at if population else block.place("population")
            observed = shown(population.value) if population else "nothing"
            yield self.violation(at, required=f"one of {', '.join(_POPULATIONS)}", observed=observed, fix="say what one sample is")


class PercentileSupport(RecordChecker):
    """Counts the samples behind a percentile."""

    name = "bench.percentile-support"
    rule = "A percentile rests on ten samples beyond it."
    ids = ("BM-10",)
    parameters = record_fields(
        "percentile",
        "samples",
        percentile=operand("the percentile, between 0 and 100: a number, a pointer, or a fact"),
        samples=operand("the number of samples: a number, a pointer, or a fact"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for too few samples, and one for a percentile that is none."""
        percentile, samples = block.operand("percentile"), block.operand("samples")
        rank = real(percentile)
        if not 0 < rank < 100:
            yield self.violation(percentile.at, required="between 0 and 100", observed=shown(percentile.value), fix="name a percentile")
            return
        needed = Summary("percentile", Fraction(str(rank))).samples_needed
        if integer(samples) < needed:
            fix, outcome = "measure more, or quote a lower percentile", Outcome.INCONCLUSIVE
            yield self.violation(samples.at, required=f"{needed} samples", observed=shown(samples.value), fix=fix, outcome=outcome)


class CoverageExact(RecordChecker):
    """Compares declared cells with those that are there."""

    name = "bench.coverage-exact"
    rule = "The cells that are reported are exactly those that were declared, each once."
    ids = ("BM-24",)
    parameters = record_fields("declared", "present", declared=pointers("the declared cells"), present=pointers("the reported cells"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each cell that is missing, extra or there twice."""
        declared, present = values(block, "declared"), values(block, "present")
        wanted, found = (Counter(str(it.value) for it in items) for items in (declared, present))
        for it in {str(it.value): it for it in declared}.values():
            if not found[str(it.value)]:
                yield self.violation(
                    it.at, required=f"a result for {shown(it.value)}", observed="none", fix="measure it, or do not declare it"
                )
        for it in {str(it.value): it for it in present}.values():
            if not wanted[str(it.value)] or found[str(it.value)] > 1:
                observed = f"{shown(it.value)}, {found[str(it.value)]} times"
                yield self.violation(
                    it.at, required="each declared cell once", observed=observed, fix="report the declared cells, each once"
                )


class FiniteNumbers(RecordChecker):
    """Reads numbers strictly."""

    name = "bench.finite-numbers"
    rule = "Every measured number is finite and above zero, and a count is an integer."
    ids = ("BM-25",)
    parameters = record_fields("numbers", numbers=pointers("the numbers"), counts=flag("whether they are counts; false by default"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that is none."""
        for it in values(block, "numbers"):
            number = it.value if isinstance(it.value, int | float) and not isinstance(it.value, bool) else None
            whole_wanted = block.given.get("counts") is True
            if number is None or not number > 0 or (whole_wanted and not isinstance(number, int)):
                required = "an integer above 0" if whole_wanted else "a number above 0"
                yield self.violation(it.at, required=required, observed=shown(it.value), fix="record the number as it was measured")


class BytesPlausible(RecordChecker):
    """Multiplies the bytes in flight."""

    name = "bench.bytes-plausible"
    rule = "The bytes that are in flight at once stay within the memory bound."
    ids = ("BM-27",)
    parameters = record_fields(
        "bytes",
        "objects",
        "readers",
        "bound",
        bytes=pointer("bytes of all objects"),
        objects=pointer("the number of objects"),
        readers=operand("objects in flight at once"),
        bound=operand("the memory bound in bytes"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """A warning when objects of the mean size alone exceed the bound, and a finding where there are none."""
        total, objects = integer(block.one("bytes")), integer(block.one("objects"))
        readers, bound = integer(block.operand("readers")), integer(block.operand("bound"))
        if objects < 1:
            yield self.violation(block.place("objects"), required="an object", observed=str(objects), fix="record how many there are")
        elif readers * total > bound * objects:
            observed = f"{readers} objects of {total / objects:.0f} bytes"
            at, fix = block.place("bytes"), "correct the record, or the bound"
            yield self.violation(at, required=f"at most {bound} bytes", observed=observed, fix=fix, severity=Severity.WARN)


class MemoryKinds(RecordChecker):
    """Keeps memory figures of several kinds apart."""

    name = "bench.memory-kinds"
    rule = "Allocation, weights and peak are different figures, each named, and never added up."
    ids = ("BM-29",)
    parameters = record_fields(
        "kinds",
        "amounts",
        kinds=pointers("the kind of each figure"),
        amounts=pointers("the figures, in the same order"),
        total=pointer("a total"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each figure of no kind, and one for a total of several kinds."""
        kinds, amounts = values(block, "kinds"), values(block, "amounts")
        for it in kinds:
            if it.value not in _MEMORY:
                yield self.violation(it.at, required=f"one of {', '.join(_MEMORY)}", observed=shown(it.value), fix="name the kind")
        if len(kinds) != len(amounts):
            yield self.violation(
                kinds[0].at, required=f"{len(amounts)} kinds", observed=f"{len(kinds)}", fix="name the kind of each figure"
            )
        total = block.maybe("total")
        if total and len({str(it.value) for it in kinds}) > 1 and math.isclose(real(total), math.fsum(map(real, amounts))):
            yield self.violation(
                total.at, required="no sum of several kinds", observed=shown(total.value), fix="report each figure by itself"
            )


class HonestTokenCount(RecordChecker):
    """Counts the tokens of an output again."""

    name = "bench.honest-token-count"
    rule = "The stated number of tokens is that of the output, with one end token at most, and the first streamed token is its first."
    ids = ("BM-41",)
    parameters = record_fields(
        "stated",
        "tokens",
        stated=pointer("the stated number of completion tokens"),
        tokens=pointer("the token ids of the raw output"),
        eos=operand("the id of the end token"),
        first=pointer("the id of the first streamed token"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that differs."""
        stated, tokens = block.one("stated"), [integer(it) for it in values(block, "tokens")]
        if integer(stated) != len(tokens):
            required = f"{len(tokens)}, the tokens of the output"
            yield self.violation(stated.at, required=required, observed=shown(stated.value), fix="count the tokens of the raw output")
        if "eos" in block.given and tokens.count(integer(block.operand("eos"))) > 1:
            yield self.violation(
                block.place("tokens"), required="one end token at most", observed="several", fix="stop at the first end token"
            )
        first = block.maybe("first")
        if first and tokens[:1] != [first.value]:
            yield self.violation(
                first.at, required=f"{tokens[0] if tokens else 'a token'}", observed=shown(first.value), fix="stream real tokens"
            )
