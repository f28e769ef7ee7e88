"""Rules about model identities: which bytes a model and its draft are (catalogue GC-08, GC-09)."""

import re
from collections.abc import Iterator

from countermark.attestations.codes import Status
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.parameters import many, operand, pointer, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.pins import ValueType, referred, same, shown

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?:@.*)?")
_NONE = "none"


def _revision(found: Found | None) -> str | None:
    """The revision that is written, alone or behind `repository@`, if it is a whole one."""
    value = referred(found.value, ValueType.REVISION) if found else None
    form = ValueType.REVISION.form
    return value if isinstance(value, str) and form and form.fullmatch(value) else None


class ModelPinned(RecordChecker):
    """Demands a repository, a whole revision and, where asked for, a digest over the files."""

    name = "model.revision-pinned"
    rule = "The model is named by repository, whole revision and a digest of its files that is not the digest of their index."
    ids = ("GC-08",)
    parameters = record_fields(
        "revision",
        repository=pointer("the repository"),
        revision=pointer("the revision, alone or as repository@revision"),
        manifest=pointer("the digest over all files"),
        index=operand("the digest of the index file: a pointer, or a fact"),
        status=pointer("the status of the record, which an unpinned model makes untrue if it is `qualified`"),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each part of the identity that is missing, cut short or of another kind."""
        unpinned = [*self._repository(block), *self._pinned(block), *self._manifest(block)]
        yield from unpinned
        status = block.maybe("status") if unpinned else None
        if status and status.value == Status.QUALIFIED:
            fix = "pin the model, or lower the status"
            yield self.violation(status.at, required="a pinned model under this status", observed=shown(status.value), fix=fix)

    def _repository(self, block: Block) -> Iterator[Finding]:
        if "repository" not in block.given:
            return
        found = block.maybe("repository")
        if not (found and isinstance(found.value, str) and _REPOSITORY.fullmatch(found.value)):
            observed = shown(found.value) if found else "nothing"
            yield self.violation(
                block.place("repository"), required="owner/name of the model", observed=observed, fix="record the repository"
            )

    def _pinned(self, block: Block) -> Iterator[Finding]:
        found = block.maybe("revision")
        if _revision(found) is None:
            observed = shown(found.value) if found else "nothing"
            yield self.violation(
                block.place("revision"), required=ValueType.REVISION.words, observed=observed, fix="record the whole revision"
            )

    def _manifest(self, block: Block) -> Iterator[Finding]:
        if "manifest" not in block.given:
            return
        found, form = block.maybe("manifest"), ValueType.SHA256.form
        if not (found and isinstance(found.value, str) and form and form.fullmatch(found.value)):
            observed = shown(found.value) if found else "nothing"
            yield self.violation(
                block.place("manifest"), required=ValueType.SHA256.words, observed=observed, fix="record a digest over all files"
            )
        elif "index" in block.given and same(found.value, (index := block.operand("index")).value):
            required, fix = "a digest over all files", "record the digest of the list of all files and their digests"
            observed = f"{found.value}, the digest of the index file at {index.at.file}:{index.at.line}"
            yield self.violation(found.at, required=required, observed=observed, fix=fix)


class DraftPinned(RecordChecker):
    """Demands that a draft is pinned by itself, and compares the revisions that records give for it."""

    name = "draft.revision-pinned"
    rule = "A draft is pinned apart from its target with the number of its tokens, and at one revision everywhere."
    ids = ("GC-09",)
    parameters = record_fields(
        "repository",
        "revision",
        repository=pointer("the draft's repository; `none` says that there was no draft"),
        revision=pointer("the draft's revision"),
        target_repository=pointer("the target's repository"),
        target_revision=pointer("the target's revision"),
        tokens=pointer("how many tokens the draft proposes"),
        others=many("facts that hold the draft's revision elsewhere, also as name=value", text("a fact")),
    )

    def applies(self, block: Block) -> bool:
        """A record that says there was no draft has nothing to pin."""
        repository = block.maybe("repository")
        return not (repository and repository.value == _NONE)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each part that is missing or confused, and one for each other revision."""
        revision = block.maybe("revision")
        pinned = _revision(revision)
        if pinned is None:
            observed = shown(revision.value) if revision else "nothing"
            yield self.violation(
                block.place("revision"), required=ValueType.REVISION.words, observed=observed, fix="record the whole revision"
            )
        repository = block.one("repository")
        target = (block.maybe("target_repository"), block.maybe("target_revision"))
        if all(part and same(part.value, own.value) for part, own in zip(target, (repository, revision), strict=True) if own):
            required, fix = "another artifact than the target", "record the draft that was used"
            yield self.violation(repository.at, required=required, observed=shown(repository.value), fix=fix)
        yield from self._tokens(block)
        for name in texts(block.given.get("others")):
            for other in block.case.fact(name):
                value = str(other.value).rpartition("=")[2]
                if pinned and value != pinned:
                    required = f"{pinned}, as for the same draft at {block.place('revision').file}:{block.place('revision').line}"
                    yield self.violation(other.at, required=required, observed=shown(other.value), fix="pin one revision of the draft")

    def _tokens(self, block: Block) -> Iterator[Finding]:
        if "tokens" not in block.given:
            return
        found = block.maybe("tokens")
        if not (found and isinstance(found.value, int) and not isinstance(found.value, bool) and found.value > 0):
            observed = shown(found.value) if found else "nothing"
            yield self.violation(block.place("tokens"), required="how many tokens it proposes", observed=observed, fix="record the number")
