"""Rules about records that compare two runs (catalogue BM-01, 06, 16, 17, 34 to 37, QA-20): the same but for what is declared."""

from collections import Counter
from collections.abc import Iterator

from countermark.attestations.codes import Outcome
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, pointer_join
from countermark.contracts.checkers.metrics import values
from countermark.contracts.checkers.parameters import many, number_or_pointer, pointer, pointers, texts
from countermark.contracts.checkers.records import Block, RecordChecker, missing, real, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown


def _pairs(block: Block) -> Iterator[tuple[Found, Found]]:
    """The values of both sides in their order; a side that has more gives its last again, so that none goes unseen."""
    base, candidate = values(block, "base"), values(block, "candidate")
    for number in range(max(len(base), len(candidate)) if base and candidate else 0):
        yield base[min(number, len(base) - 1)], candidate[min(number, len(candidate) - 1)]


class SameDeployment(RecordChecker):
    """Compares the deployments of receipts."""

    name = "bench.same-deployment"
    rule = "The receipts of one claim are all of one deployment."
    ids = ("BM-01",)
    parameters = record_fields(
        "deployments", deployments=pointers("the deployment of each receipt: image, model, draft, topology and settings, or their digest")
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each that is another than the first, and one where there is nothing to compare."""
        found = block.all("deployments")
        if len(found) < 2:
            yield self.violation(found[0].at, required="several receipts", observed="one", fix="name the receipts that the claim rests on")
        for it in found:
            if it.value is None or not same(it.value, found[0].value):
                required = f"the deployment of line {found[0].at.line}"
                yield self.violation(it.at, required=required, observed=shown(it.value), fix="measure all of it on one deployment")


class _Sides(RecordChecker):
    """A rule about values of a base and of a candidate that must be equal, each recorded."""

    what = "the value of the base"
    outcome = Outcome.FAIL

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each value that is not recorded or differs."""
        for base, candidate in _pairs(block):
            for it in (base, candidate):
                if it.value is None:
                    yield self.violation(it.at, required="a recorded value", observed="nothing", fix="record it", outcome=self.outcome)
                elif it.value == "":
                    yield self.violation(it.at, required="a recorded value", observed="an empty text", fix="record what it was")
            if None not in (base.value, candidate.value) and not same(base.value, candidate.value):
                required = f"{shown(base.value)}, {self.what} (line {base.at.line})"
                fix, observed = "measure both alike", shown(candidate.value)
                yield self.violation(candidate.at, required=required, observed=observed, fix=fix, outcome=self.outcome)


def _sides(base: str, candidate: str) -> dict[str, dict[str, JsonValue]]:
    return {"base": pointers(base), "candidate": pointers(candidate)}


class OneDenominator(_Sides):
    """Compares two definitions."""

    name = "bench.one-denominator"
    rule = "Base and candidate have one metric definition."
    ids = ("BM-06",)
    what = "the definition of the base"
    parameters = record_fields("base", "candidate", **_sides("the definition of the base", "the definition of the candidate"))


class SameInputs(_Sides):
    """Compares digests of inputs."""

    name = "bench.same-inputs"
    rule = "Base and candidate were given the same prompts by the same tokenizer and template."
    ids = ("BM-16",)
    what = "the input of the base"
    parameters = record_fields(
        "base", "candidate", **_sides("digests of prompts, tokenizer and template of the base", "the same of the candidate, in this order")
    )


class SamplingParams(_Sides):
    """Compares sampling parameters."""

    name = "bench.sampling-params"
    rule = "The sampling parameters of base and candidate are recorded and equal."
    ids = ("BM-17",)
    what = "the parameter of the base"
    parameters = record_fields("base", "candidate", **_sides("the parameters of the base", "those of the candidate, in this order"))


class HardwareIdentity(_Sides):
    """Compares hardware."""

    name = "bench.hardware-identity"
    rule = "Base and candidate ran on the same hardware, recorded down to driver and firmware."
    ids = ("BM-36",)
    what = "the hardware of the base"
    outcome = Outcome.INCONCLUSIVE
    parameters = record_fields("base", "candidate", **_sides("facts of the hardware of the base", "those of the candidate, in this order"))


class OneVariable(RecordChecker):
    """Lists what differs between two runs."""

    name = "bench.one-variable"
    rule = "Two runs differ in their declared variable and in nothing else that is recorded."
    ids = ("BM-34",)
    parameters = record_fields(
        "base",
        "candidate",
        "variable",
        base=pointer("the settings of the base"),
        candidate=pointer("the settings of the candidate"),
        variable=many("pointers below the settings of what is declared to differ", pointer("a field, or an object with all below it")),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each other field that differs, and one where the variable does not."""
        base, candidate = block.one("base"), block.one("candidate")
        left, right = dict(_leaves(base.value)), dict(_leaves(candidate.value))
        differing = [it for it in dict.fromkeys((*left, *right)) if not same(left.get(it), right.get(it))]
        variable = texts(block.given["variable"])
        declared = [it for it in differing if any(it == name or it.startswith(f"{name}/") for name in variable)]
        for name in variable:
            if not any(it == name or it.startswith(f"{name}/") for it in differing):
                yield self.violation(candidate.at, required=f"another {name}", observed="the same", fix="declare what was varied")
        for it in differing:
            if it not in declared:
                at = block.at(texts(block.given["candidate"])[0] + it)
                fix = "measure both alike, or declare it as the variable"
                yield self.violation(at, required=f"{it} {shown(left.get(it))}", observed=shown(right.get(it)), fix=fix)


def _leaves(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    waiting = [(pointer, value)]
    while waiting:
        here, node = waiting.pop(0)
        children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        below = [(pointer_join(here, key), child) for key, child in children]
        waiting += below
        if not below:
            yield here, node


class DistinctInputs(RecordChecker):
    """Compares the documents of a comparison."""

    name = "bench.distinct-inputs"
    rule = "Base and candidate are two documents, and not one."
    ids = ("BM-35",)
    parameters = record_fields("base", "candidate", base=pointers("digests of the base"), candidate=pointers("digests of the candidate"))

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each candidate that is the base."""
        base = [it.value for it in values(block, "base")]
        for it in values(block, "candidate"):
            if any(same(it.value, other) for other in base):
                yield self.violation(it.at, required="another document", observed=shown(it.value), fix="compare with the other run")


class RegressionThreshold(RecordChecker):
    """Compares a threshold with the noise of a testbed."""

    name = "bench.regression-threshold"
    rule = "A regression threshold is not below the noise that was measured on the testbed."
    ids = ("BM-37",)
    parameters = record_fields(
        "threshold", "noise", threshold=number_or_pointer("the threshold"), noise=pointer("the measured noise, in the same unit")
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a threshold that noise alone exceeds, and one for a noise that is none."""
        stated, noise = block.given["threshold"], block.one("noise")
        if real(noise) < 0:
            yield self.violation(noise.at, required="a noise from 0", observed=shown(noise.value), fix="measure the noise of the testbed")
        threshold = Found(stated, block.case.at) if isinstance(stated, int) else block.one("threshold")
        if real(threshold) < real(noise):
            required, fix = f"at least {shown(noise.value)} (line {noise.at.line})", "raise the threshold, or quieten the testbed"
            yield self.violation(threshold.at, required=required, observed=shown(threshold.value), fix=fix, outcome=Outcome.INCONCLUSIVE)


class Comparable(RecordChecker):
    """Asks all that a comparison must keep to at once."""

    name = "bench.comparable"
    rule = "Two records have the same settings and the same cells, all of them reported, and are of different inputs."
    ids = ("QA-20",)
    parameters = record_fields(
        "base",
        "candidate",
        "same",
        "cells",
        "inputs",
        base=pointer("the record of the base"),
        candidate=pointer("the record of the candidate"),
        same=many("pointers below a record of what must be equal", pointer("a setting")),
        cells=pointer("the cells below a record"),
        inputs=pointer("the digest of the document below a record"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each setting that differs, each cell that only one has, and for one document given twice."""
        for setting in texts(block.given["same"]):
            base, candidate = self._both(block, setting)
            if not same(base.value, candidate.value):
                required = f"{shown(base.value)}, as the base has it (line {base.at.line})"
                yield self.violation(candidate.at, required=required, observed=shown(candidate.value), fix="measure both alike")
        base, candidate = self._both(block, str(block.given["cells"]))
        left, right = (Counter(map(str, it.value)) if isinstance(it.value, list | dict) else Counter() for it in (base, candidate))
        for cell in sorted((left - right) + (right - left)):
            fix = "report every cell of both"
            yield self.violation(candidate.at, required=f"cell {cell} in both", observed="in one", fix=fix)
        base, candidate = self._both(block, str(block.given["inputs"]))
        if same(base.value, candidate.value):
            yield self.violation(
                candidate.at, required="another document", observed=shown(candidate.value), fix="compare with the other run"
            )

    def _both(self, block: Block, below: str) -> tuple[Found, Found]:
        sides = []
        for side in ("base", "candidate"):
            place = f"{block.given[side]}{below}"
            found = [it for it in block.find(place) if it.value is not None]
            if not found:
                raise missing(block.at(place))
            sides.append(found[0])
        return sides[0], sides[1]
