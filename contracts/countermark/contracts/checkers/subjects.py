"""Rules about what evidence is of, and that it stays there: subjects, transfer and scope (QA-11, QA-18, GC-47, `evidence.subject`)."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import (
    Schema,
    fields,
    flag,
    group,
    many,
    objects,
    operand,
    pointer,
    pointers,
    table,
    text,
    texts,
)
from countermark.contracts.checkers.records import Block, RecordChecker, blocks, record, record_fields
from countermark.contracts.checkers.references import target
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import ValueType, referred, same, shown

_ALIASES: Schema = many(
    "pairs of manifest and config digest of one image, proven elsewhere", many("manifest, then config", text("a digest"), minimum=2)
)
_KINDS = {"image": ValueType.MANIFEST, "commit": ValueType.COMMIT, "model": ValueType.REVISION}


class Subject(Checker):
    """Reads which image, commit and model a record names."""

    name = "evidence.subject"
    rule = "A record names the image, commit and model that it is about in full, and describes one thing in one way."
    parameters = fields(
        records=many(
            "records, and where they name what they are about",
            group(
                "one kind of record",
                "file",
                file=text("path or glob"),
                each=pointer("the blocks that have a subject"),
                image=pointer("the image"),
                commit=pointer("the source commit"),
                model=pointer("the model's revision"),
                described=flag("whether the image must have a record of its own among `images`"),
            ),
        ),
        images=many(
            "records that describe an image", group("one kind", "file", "image", file=text("path or glob"), image=pointers("the image"))
        ),
        same=many(
            "values that are the same wherever their key is",
            group(
                "one kind of record",
                "file",
                "key",
                "value",
                file=text("path or glob"),
                each=pointer("the blocks with key and value"),
                key=pointer("what identifies the thing"),
                value=pointer("what is said of it"),
            ),
        ),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each part of a subject that is missing or cut short, and one for each second description."""
        named = [block for entry in objects(given.get("records")) for block in blocks(case, entry)]
        keyed = [block for entry in objects(given.get("same")) for block in blocks(case, entry)]
        images = {found.value for entry in objects(given.get("images")) for block in blocks(case, entry) for found in block.all("image")}
        subjects = [finding for block in named for finding in self._subject(block)]
        described = [finding for block in named if block.given.get("described") is True for finding in self._described(block, images)]
        return Result(len(named) + len(keyed), (*subjects, *described, *self._same(keyed)))

    def _subject(self, block: Block) -> Iterator[Finding]:
        for part, kind in _KINDS.items():
            if part not in block.given:
                continue
            found = block.maybe(part)
            value = referred(found.value, kind) if found else None
            if not (isinstance(value, str) and kind.form and kind.form.fullmatch(value)):
                observed = shown(found.value) if found else "nothing"
                yield self.violation(
                    block.place(part), required=f"the {part} that this is about", observed=observed, fix=f"record the whole {part}"
                )

    def _described(self, block: Block, images: set[JsonValue]) -> Iterator[Finding]:
        found = block.maybe("image")
        if found and found.value not in images:
            fix = "publish the record of this image; until then nothing is known of it"
            yield self.violation(
                found.at,
                required="a record that describes this image",
                observed=f"{shown(found.value)}, which none here describes",
                fix=fix,
                outcome=Outcome.NOT_RUN,
                code=Code.REF_NOT_HERE,
            )

    def _same(self, keyed: Sequence[Block]) -> Iterator[Finding]:
        """Of values under one key, each that differs from another is told: which of them is right no rule can say."""
        by_key: dict[str, list[Found]] = {}
        for block in keyed:
            by_key.setdefault(shown(block.one("key").value), []).append(block.one("value"))
        for key, values in by_key.items():
            for value in values:
                other = next((it for it in values if not same(it.value, value.value)), None)
                if other:
                    required = f"{shown(other.value)}, as for the same {key[:16]}… at {other.at.file}:{other.at.line}"
                    yield self.violation(value.at, required=required, observed=shown(value.value), fix="describe the thing in one way")


def _alias(one: JsonValue, other: JsonValue, aliases: JsonValue) -> bool:
    """Whether two digests are of one image: equal, or a pair of the contract's aliases."""
    digests = {str(value).rpartition("@")[2].rpartition(":")[2] for value in (one, other)}
    pairs = [texts(pair) for pair in aliases] if isinstance(aliases, list) else []
    return len(digests) == 1 or any(digests == {digest.rpartition(":")[2] for digest in pair} for pair in pairs)


class NoTransfer(RecordChecker):
    """Compares what evidence is of with what it is claimed for."""

    name = "evidence.no-transfer"
    rule = "Evidence is claimed for exactly what it is of, and what is carried over from a predecessor is marked as not transferable."
    ids = ("QA-18",)
    parameters = record_fields(
        evidence=pointer("what the evidence is of"),
        claimed=operand("what it is claimed for: a pointer, or a fact"),
        bridge=pointer("the text that says why the two are one, which is no evidence"),
        predecessor=pointer("a section about a predecessor"),
        transferable=pointer("the mark of that section, which must be false"),
        aliases=_ALIASES,
    )

    def applies(self, block: Block) -> bool:
        """There is a claim, or a section about a predecessor."""
        return "claimed" in block.given or ("predecessor" in block.given and block.maybe("predecessor") is not None)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for the claim, one for the text that bridges it, and one for a predecessor without a mark."""
        if "claimed" in block.given:
            evidence, claimed = block.one("evidence"), block.operand("claimed")
            if not _alias(evidence.value, claimed.value, block.given.get("aliases")):
                required = f"{shown(evidence.value)}, which the evidence is of (line {evidence.at.line})"
                yield self._transferred(claimed, required, "collect evidence of this one, or claim it for the other")
                bridge = block.maybe("bridge")
                if bridge:
                    yield self._transferred(
                        bridge, "a comparison of the two by their bytes", "record the trees or files that were compared"
                    )
        mark = block.maybe("transferable")
        if "predecessor" in block.given and block.maybe("predecessor") and (mark is None or mark.value is not False):
            at = mark.at if mark else block.place("predecessor")
            fix = "mark the section as not transferable"
            yield self.violation(at, required="false", observed=shown(mark.value) if mark else "no mark", fix=fix, code=Code.CLAIM_TRANSFER)

    def _transferred(self, found: Found, required: str, fix: str) -> Finding:
        return self.violation(found.at, required=required, observed=shown(found.value), fix=fix, code=Code.CLAIM_TRANSFER)


class ClaimNoTransfer(RecordChecker):
    """Opens the receipts that a claim cites."""

    name = "claim.no-transfer"
    rule = "A claim cites receipts of its own image only."
    ids = ("GC-47",)
    parameters = record_fields(
        "image",
        "cites",
        "cited_image",
        image=operand("the image of the claim: a pointer, or a fact"),
        cites=pointers("the paths of the receipts"),
        cited_image=pointer("the image in a receipt"),
        root=text("the folder that paths count from; the record's own by default", pattern="^[^/].*$|^$"),
        aliases=_ALIASES,
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each receipt of another image, and one for each that is not here."""
        image = block.operand("image")
        folder = str(block.given["root"]) if "root" in block.given else posixpath.dirname(block.record.path)
        for cited in block.all("cites"):
            path = target(block.case, folder, str(cited.value))
            if path is None:
                fix = "add the receipt; until then the claim rests on nothing here"
                yield self.violation(
                    cited.at,
                    required="a receipt that is here",
                    observed=shown(cited.value),
                    fix=fix,
                    outcome=Outcome.NOT_RUN,
                    code=Code.REF_NOT_HERE,
                )
                continue
            own = Block(block.case, record(block.case, path), "", block.given).one("cited_image")
            if not _alias(image.value, own.value, block.given.get("aliases")):
                required = f"a receipt of {shown(image.value)}"
                observed = f"{cited.value}, of {shown(own.value)}"
                yield self.violation(
                    cited.at, required=required, observed=observed, fix="cite receipts of this image", code=Code.CLAIM_TRANSFER
                )


class ScopeCovered(RecordChecker):
    """Compares the dimensions of a claim with those of the evidence."""

    name = "claim.scope-covered"
    rule = "One piece of evidence covers every dimension that a claim names, each with exactly the claimed values."
    ids = ("QA-11",)
    parameters = record_fields(
        "dimensions",
        "evidence",
        dimensions=table("pointers to what the claim says, by dimension", pointer("the value, or the list of values")),
        evidence=group(
            "the evidence",
            "file",
            "dimensions",
            file=text("path or glob"),
            each=pointer("its blocks"),
            dimensions=table("pointers to what was tested, by dimension", pointer("the value, or the list of values")),
        ),
    )

    def applies(self, block: Block) -> bool:
        """A claim that names no dimension claims nothing."""
        return any(block.find(str(pointer)) for pointer in _pointers(block.given).values())

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each dimension in which the nearest evidence falls short."""
        entry = block.given["evidence"]
        tested = list(blocks(block.case, entry)) if isinstance(entry, dict) else []
        claimed = {
            name: found[0]
            for name, pointer in _pointers(block.given).items()
            if (found := block.find(pointer)) and found[0].value is not None
        }
        short = [(it, [name for name in claimed if not _covered(claimed[name], it, name)]) for it in tested]
        nearest = min(short, key=lambda pair: len(pair[1]), default=None)
        if nearest is None:
            yield self.violation(
                block.at(), required="evidence of this claim", observed="none", fix="collect the evidence", code=Code.CLAIM_EXCEEDS
            )
            return
        for name in nearest[1]:
            claim = claimed[name]
            own = nearest[0].find(_pointers(nearest[0].given).get(name, ""))
            observed = (
                f"{name} {shown(claim.value)}; the nearest evidence, {nearest[0].record.path}, has {shown(own[0].value) if own else 'none'}"
            )
            fix = "test what is claimed, or claim what was tested"
            yield self.violation(claim.at, required=f"evidence at this {name}", observed=observed, fix=fix, code=Code.CLAIM_EXCEEDS)


def _pointers(given: Parameters) -> Mapping[str, str]:
    dimensions = given.get("dimensions")
    return {name: str(pointer) for name, pointer in dimensions.items()} if isinstance(dimensions, dict) else {}


def _covered(claimed: Found, evidence: Block, name: str) -> bool:
    """Whether each claimed value is a tested one; what was not recorded covers nothing."""
    pointer = _pointers(evidence.given).get(name)
    tested = [it.value for it in evidence.find(pointer)] if pointer is not None else []
    values = [part for value in tested for part in (value if isinstance(value, list) else [value])]
    wanted = claimed.value if isinstance(claimed.value, list) else [claimed.value]
    return all(any(same(want, value) for value in values) for want in wanted)
