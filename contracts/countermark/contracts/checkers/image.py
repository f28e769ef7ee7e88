"""Rules about image identities: one image on every rank, each digest of a declared kind, and labels that are hearsay."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import choice, fields, flag, group, many, operand, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, integer, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import same, shown

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_REFERENCE = re.compile(r"[^@\s]+@sha256:([0-9a-f]{64})")
_FORMS = {
    "manifest": "sha256: and 64 hex digits, alone or behind name@",
    "index": "sha256: and 64 hex digits, alone or behind name@",
    "config": "sha256: and 64 hex digits, never behind name@",
    "reference": "name@sha256: and 64 hex digits",
}


class RanksEqual(RecordChecker):
    """Compares what the ranks of one run report of their image."""

    name = "image.ranks-equal"
    rule = "Every rank reports its image, and all of them the same one."
    ids = ("ID-03",)
    parameters = record_fields(
        "world",
        images=pointers("the image of each rank"),
        world=operand("the number of ranks"),
        wheels=pointers("the digest of the installed package on each rank"),
        excepted=group(
            "texts that take a rank out of the comparison",
            "at",
            "says",
            at=pointer("the texts"),
            says=text("regular expression of such a text"),
        ),
    )

    def applies(self, block: Block) -> bool:
        """One rank alone has nobody to differ from."""
        return integer(block.operand("world")) > 1 and not {"images", "wheels", "excepted"}.isdisjoint(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each rank that differs, one for ranks that do not report, and one for each text that excepts a rank."""
        world = integer(block.operand("world"))
        for parameter in ("images", "wheels"):
            if parameter in block.given:
                yield from self._equal(block, parameter, world)
        excepted = block.given.get("excepted")
        if isinstance(excepted, dict):
            says = block.case.expression(str(excepted["says"]))
            for found in block.find(str(excepted["at"])):
                if says.search(str(found.value)):
                    required, fix = "every rank compared", "compare the image of every rank"
                    yield self.violation(found.at, required=required, observed=shown(found.value), fix=fix, outcome=Outcome.INCONCLUSIVE)

    def _equal(self, block: Block, parameter: str, world: int) -> Iterator[Finding]:
        found = [it for pointer in texts(block.given[parameter]) for it in block.find(pointer) if it.value is not None]
        if not found:
            required, fix = f"the {parameter} of {world} ranks", f"record the {parameter} of every rank"
            yield self.violation(block.place(parameter), required=required, observed="none", fix=fix, outcome=Outcome.INCONCLUSIVE)
            return
        if len(found) != world:
            fix = f"record the {parameter} of every rank"
            yield self.violation(found[0].at, required=f"{world} ranks", observed=f"{len(found)} ranks", fix=fix)
        most = Counter(shown(it.value) for it in found).most_common(1)[0][0]
        for it in found:
            if shown(it.value) != most:
                yield self.violation(
                    it.at, required=f"{most}, as on other ranks", observed=shown(it.value), fix="run one image on every rank"
                )


class IdKind(Checker):
    """Holds image digests against the kinds that the contract declares for them."""

    name = "image.id-kind"
    rule = "Every image digest is of its declared kind, no digest is of two kinds, and what is pulled is named by digest."
    ids = ("ID-04",)
    parameters = fields(
        facts=table("the kind of each fact", choice("a kind", *_FORMS)),
        aliases=many("pairs of manifest and config digest of one image", many("manifest, then config", text("a digest"), minimum=2)),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each value of another form, and one for each digest that stands for two kinds."""
        declared = given.get("facts")
        kinds: Mapping[str, JsonValue] = declared if isinstance(declared, dict) else {}
        facts = [(str(kind), Found(it.value, it.at)) for name, kind in kinds.items() for it in case.fact(name) if it.value is not None]
        pins = [(str(pin.type), Found(pin.value, pin.at)) for pin in case.terms.pins.values() if pin.type.is_oci]
        malformed = [finding for kind, found in facts for finding in self._malformed(kind, found)]
        return Result(len(facts) + len(pins), (*malformed, *self._two_kinds([*pins, *facts], given.get("aliases"))))

    def _malformed(self, kind: str, found: Found) -> Iterator[Finding]:
        value = found.value if isinstance(found.value, str) else ""
        bare, reference = _DIGEST.fullmatch(value), _REFERENCE.fullmatch(value)
        if not (reference if kind == "reference" else bare or (reference and kind != "config")):
            fix = "name the image by its digest" if kind == "reference" else f"write the digest of the {kind}"
            yield self.violation(found.at, required=_FORMS[kind], observed=shown(found.value), fix=fix)

    def _two_kinds(self, typed: Sequence[tuple[str, Found]], aliases: JsonValue) -> Iterator[Finding]:
        first: dict[str, tuple[str, str]] = {}
        for pair in aliases if isinstance(aliases, list) else ():
            for kind, digest in zip(("manifest", "config"), texts(pair), strict=False):
                first[digest.rpartition(":")[2]] = (kind, "an alias of the contract")
        for kind, found in typed:
            digest = str(found.value).rpartition(":")[2]
            side = "config" if kind == "config" else "manifest"
            known, where = first.setdefault(digest, (side, f"{found.at.file}:{found.at.line}"))
            if known != side and len(digest) == 64:
                required, fix = f"a digest of the {side}", "record both digests of the image, each as what it is"
                yield self.violation(found.at, required=required, observed=f"{digest}, the {known} in {where}", fix=fix)


class LabelNotEvidence(RecordChecker):
    """Compares labels, which images inherit from lower layers, with what really runs."""

    name = "label.not-evidence"
    rule = "No label is read as the identity of what runs: where one differs, the record says that it is inherited."
    ids = ("ID-10",)
    parameters = record_fields(
        "labels",
        "active",
        labels=pointers("the labels: values, or texts of the form name=value"),
        active=operand("what really runs: a pointer, or a fact"),
        inherited=flag("whether the record says that these labels are inherited; then a difference is information"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each label that names something else."""
        active = block.operand("active")
        severity = Severity.INFO if block.given.get("inherited") is True else Severity.BLOCK
        for label in block.all("labels"):
            value = label.value.rpartition("=")[2] if isinstance(label.value, str) else label.value
            if not same(value, active.value):
                required = f"{shown(active.value)}, which runs by {active.at.file}:{active.at.line}"
                fix = "record what runs, and say of the label that it is inherited"
                yield self.violation(label.at, required=required, observed=shown(label.value), fix=fix, severity=severity)
