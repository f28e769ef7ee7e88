"""Rules about source revisions: one triple describes one revision, and evidence is of the revision that was built (ID-01, GC-02)."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, group, many, objects, operand, pointer, text, texts
from countermark.contracts.checkers.records import Block, Record, RecordChecker, blocks, record_fields, records
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import Pin, referred, same, shown
from countermark.contracts.pins import ValueType as Kind
from countermark.contracts.terms import lookup

_LEAVES = ("commit", "tree", "source_sha256")
_TREE = re.compile(rb"tree ([0-9a-f]+)\n")


class PinConsistent(Checker):
    """Demands whole triples, and recomputes them from a recorded commit object."""

    name = "source.pin-consistent"
    rule = "Commit, tree and source digest stand together, and describe one revision that was clean when it was recorded."
    ids = ("ID-01",)
    parameters = fields(
        pins=many("pins that are whole triples", text("a pin")),
        attestations=text("path or glob of source/v1 predicates that the pins are recomputed from"),
        records=many(
            "records that state a triple",
            group(
                "one record",
                "file",
                *_LEAVES,
                file=text("path or glob"),
                each=pointer("the blocks with a triple"),
                commit=pointer("the commit"),
                tree=pointer("the tree"),
                source_sha256=pointer("the digest of the deployable source"),
            ),
        ),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each leaf that a triple lacks, and one for each that another statement of the commit contradicts."""
        pins = [self._pin(case, name) for name in texts(given.get("pins"))]
        stated = [block for entry in objects(given.get("records")) for block in blocks(case, entry)]
        proven = records(case, str(given["attestations"])) if "attestations" in given else []
        findings = [
            *(finding for name, leaves in pins for finding in self._incomplete(case, name, leaves)),
            *(finding for block in stated for finding in self._stated(block)),
            *self._contradicting([leaves for _, leaves in pins], stated),
            *(finding for it in proven for finding in self._proven(it)),
            *(finding for _, leaves in pins for finding in self._pinned(leaves, proven)),
        ]
        return Result(len(pins) + len(stated) + len(proven), tuple(findings))

    def _pin(self, case: Case, name: str) -> tuple[str, Mapping[str, Pin]]:
        own = {pin.leaf: pin for pin in case.terms.pins.values() if pin.name.rpartition(".")[0] == name}
        if not own:
            lookup(name, {pin.rpartition(".")[0]: pin for pin in case.terms.pins}, "pin", case.at)
        return name, own

    def _incomplete(self, case: Case, name: str, leaves: Mapping[str, Pin]) -> Iterator[Finding]:
        at = next(iter(leaves.values())).at if leaves else case.at
        for leaf in _LEAVES:
            if leaf not in leaves:
                yield self.violation(at, required=f"{name}.{leaf}", observed="no such leaf", fix=f"pin the {leaf} of {name}")

    def _stated(self, block: Block) -> Iterator[Finding]:
        for leaf in _LEAVES:
            found = block.maybe(leaf)
            form = Kind.SHA256.form if leaf == "source_sha256" else Kind.COMMIT.form
            if found is None:
                yield self.violation(block.place(leaf), required=f"a {leaf}", observed="nothing", fix=f"record the {leaf}")
            elif not (isinstance(found.value, str) and form and form.fullmatch(found.value)):
                yield self.violation(found.at, required=f"the whole {leaf}", observed=shown(found.value), fix=f"write the whole {leaf}")

    def _contradicting(self, pins: Sequence[Mapping[str, Pin]], stated: Sequence[Block]) -> Iterator[Finding]:
        """Of statements about one commit, the later that differ from the first."""
        known: dict[JsonValue, dict[str, Found]] = {}
        for leaves in pins:
            if "commit" in leaves:
                known[leaves["commit"].value] = {leaf: Found(pin.value, pin.at) for leaf, pin in leaves.items()}
        for block in stated:
            here = {leaf: found for leaf in _LEAVES if (found := block.maybe(leaf))}
            commit = here["commit"].value if "commit" in here else None
            first = known.setdefault(commit, here) if isinstance(commit, str) else here
            for leaf, found in here.items():
                if leaf in first and not same(found.value, first[leaf].value):
                    at = first[leaf].at
                    required = f"{shown(first[leaf].value)}, as for the same commit at {at.file}:{at.line}"
                    yield self.violation(found.at, required=required, observed=shown(found.value), fix=f"record the {leaf} of this commit")

    def _proven(self, it: Record) -> Iterator[Finding]:
        attested = _Attested(it)
        commit, tree, dirty = attested.one("/commit"), attested.one("/tree"), attested.one("/dirty")
        raw = attested.object()
        algorithm = hashlib.sha256 if len(str(commit.value).rpartition(":")[2]) == 64 else hashlib.sha1
        made = algorithm(b"commit %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()
        inside = _TREE.match(raw)
        for found, value in ((commit, f"git-commit:{made}"), (tree, f"git-tree:{inside[1].decode() if inside else ''}")):
            if found.value != value:
                required = f"{value}, which the recorded commit object gives"
                yield self.violation(found.at, required=required, observed=shown(found.value), fix="record the source again")
        if dirty.value is not False:
            fix = "commit the changes, and record the commit"
            yield self.violation(dirty.at, required="a clean tree", observed="uncommitted changes", fix=fix)

    def _pinned(self, leaves: Mapping[str, Pin], proven: Sequence[Record]) -> Iterator[Finding]:
        if not proven or "commit" not in leaves:
            return
        own = [it for it in map(_Attested, proven) if it.one("/commit").value == f"git-commit:{leaves['commit'].value}"]
        if not own:
            pin = leaves["commit"]
            yield self.violation(pin.at, required="a recorded source of this commit", observed=str(pin.value), fix="record the source")
        for it in own:
            digests = {str(found.value).rpartition(":")[2] for found in it.all("/source_trees/*/digest")}
            for leaf, values in (("tree", {str(it.one("/tree").value).rpartition(":")[2]}), ("source_sha256", digests)):
                if leaf in leaves and leaves[leaf].value not in values:
                    required = f"{' or '.join(sorted(values)) or 'none'}, as recorded in {it.record.path}"
                    yield self.violation(
                        leaves[leaf].at, required=required, observed=shown(leaves[leaf].value), fix=f"pin the {leaf} of the commit"
                    )


class _Attested:
    """A source/v1 predicate, alone or in its statement."""

    def __init__(self, it: Record) -> None:
        self.record = it
        self.base = "/predicate" if it.find("/predicate") else ""

    def all(self, pointer: str) -> list[Found]:
        return self.record.find(self.base + pointer)

    def one(self, pointer: str) -> Found:
        found = self.all(pointer)
        if not found:
            at = self.record.at(self.base + pointer)
            raise InputError(Code.SCHEMA_INVALID, f"no source/v1: {pointer} is missing", at=at, fix="give what `record source` wrote")
        return found[0]

    def object(self) -> bytes:
        found = self.one("/object")
        try:
            return base64.b64decode(str(found.value), validate=True)
        except binascii.Error:
            raise InputError(Code.SCHEMA_INVALID, "the commit object is no base64", at=found.at, fix="record the source again") from None


class EvaluatedVsHead(RecordChecker):
    """Compares the revision that evidence is of with the revision that the image was built from."""

    name = "source.evaluated-vs-head"
    rule = "The evaluated revision is the one that the image was built from, and the head of the documents is recorded apart."
    ids = ("GC-02",)
    parameters = record_fields(
        "evaluated",
        "built",
        evaluated=pointer("the revision that was evaluated"),
        built=operand("the revision that the image was built from: a pointer, or a fact of another record"),
        head=pointer("the revision that holds the record, which may differ"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding when the two differ, or either is not a whole revision."""
        evaluated, built = block.one("evaluated"), block.operand("built")
        for found in (evaluated, built, *([block.one("head")] if "head" in block.given else [])):
            form = Kind.COMMIT.form
            value = referred(found.value, Kind.COMMIT)
            if not (isinstance(value, str) and form and form.fullmatch(value)):
                yield self.violation(found.at, required="a whole revision", observed=shown(found.value), fix="write the whole revision")
        if not same(referred(evaluated.value, Kind.COMMIT), referred(built.value, Kind.COMMIT)):
            required = f"{shown(evaluated.value)}, which was evaluated (line {evaluated.at.line})"
            fix = "evaluate an image of this revision, or name the revision that was evaluated"
            yield self.violation(built.at, required=required, observed=shown(built.value), fix=fix)
