"""`claim.within-evidence` (catalogue GC-45): no document says more of an image than its records do."""

from collections.abc import Iterator, Mapping

from countermark.attestations.codes import Code, Status
from countermark.attestations.errors import NothingError
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import choice, fields, group, many, objects, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, blocks
from countermark.contracts.locators.base import decoded
from countermark.contracts.locators.prose import Claim, claims
from countermark.contracts.pins import shown

_RANK = {
    Status.REJECTED: 0,
    Status.UNSUPPORTED: 0,
    Status.UNQUALIFIED: 0,
    Status.IMPLEMENTED: 1,
    Status.RESEARCH_ONLY: 2,
    Status.QUALIFIED: 3,
}
_WORDS = {str(status): status for status in Status}
_LEAST_PREFIX = 7


class WithinEvidence(Checker):
    """Compares the status words of documents with the statuses of records."""

    name = "claim.within-evidence"
    rule = "A document gives no image a higher status than the records of that image do."
    ids = ("GC-45",)
    parameters = fields(
        "documents",
        "records",
        documents=many("paths or globs of texts for people", text("a path or glob"), minimum=0),
        records=many(
            "the records that statuses come from; one that rejects an image settles it",
            group(
                "one kind of record",
                "file",
                "image",
                "status",
                file=text("path or glob"),
                each=pointer("the blocks with image and status"),
                image=pointer("the image"),
                status=pointers("its statuses: words, or objects of words"),
            ),
        ),
        words=table("what further words mean, in records and documents", choice("a status", *_WORDS)),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each word that promises more than the records hold."""
        own = given.get("words")
        words = {**_WORDS, **{word: Status(str(status)) for word, status in (own.items() if isinstance(own, dict) else ())}}
        known = self._statuses([block for entry in objects(given["records"]) for block in blocks(case, entry)], words)
        patterns = texts(given["documents"])
        paths = dict.fromkeys(path for pattern in patterns for path in case.tree.glob(pattern))
        if patterns and not paths:
            raise NothingError(Code.NOTHING_EVALUATED, f"no file matches {' or '.join(patterns)}", at=case.at, fix="correct the paths")
        said = [claim for path in paths for claim in claims(decoded(case.tree.read(path), path), path, words)]
        return Result(len(paths), tuple(finding for claim in said for finding in self._exceeding(claim, words, known)))

    @staticmethod
    def _statuses(found: list[Block], words: Mapping[str, Status]) -> dict[str, Status]:
        """The status of each image by its hex digits: rejected where a record says so, else the highest that one gives."""
        known: dict[str, Status] = {}
        for block in found:
            digest = str(block.one("image").value).rpartition(":")[2]
            stated = [part for it in block.all("status") for part in (it.value.values() if isinstance(it.value, dict) else [it.value])]
            statuses = [words[word] for word in stated if isinstance(word, str) and word in words]
            for status in statuses:
                before = known.get(digest)
                rejected = Status.REJECTED in (status, before)
                known[digest] = Status.REJECTED if rejected else max((status, before or status), key=_RANK.__getitem__)
        return known

    def _exceeding(self, claim: Claim, words: Mapping[str, Status], known: Mapping[str, Status]) -> Iterator[Finding]:
        meant = [digest for digest in known if len(claim.digest) >= _LEAST_PREFIX and digest.startswith(claim.digest)]
        if len(meant) != 1 and len(claim.digest) != 64:
            return
        derived = known[meant[0]] if meant else None
        if _RANK[words[claim.word]] > (_RANK[derived] if derived else 0):
            required = f"at most {derived}, which the records give {claim.digest}" if derived else f"a record of {claim.digest}"
            fix = f"write {derived or 'unqualified'}, or record the evidence"
            yield self.violation(claim.at, required=required, observed=shown(claim.word), fix=fix, code=Code.CLAIM_EXCEEDS)
