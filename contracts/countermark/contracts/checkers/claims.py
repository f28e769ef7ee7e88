"""Rules about what documents say: no more than the records do, and the whole of it (catalogue GC-45, GC-46)."""

import re
from collections.abc import Iterator, Mapping

from countermark.attestations.codes import Code, Status
from countermark.attestations.errors import Location, NothingError
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import choice, fields, group, many, objects, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, blocks
from countermark.contracts.claims.rank import RANK
from countermark.contracts.locators.base import decoded
from countermark.contracts.locators.prose import Claim, claims
from countermark.contracts.pins import shown

_WORDS = {str(status): status for status in Status}
_LEAST_PREFIX = 7
_SECTIONS = ("Conditions", "Measurement", "Result", "Conclusion", "Limitations")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)


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
                known[digest] = Status.REJECTED if rejected else max((status, before or status), key=RANK.__getitem__)
        return known

    def _exceeding(self, claim: Claim, words: Mapping[str, Status], known: Mapping[str, Status]) -> Iterator[Finding]:
        meant = [digest for digest in known if len(claim.digest) >= _LEAST_PREFIX and digest.startswith(claim.digest)]
        if len(meant) != 1 and len(claim.digest) != 64:
            return
        derived = known[meant[0]] if meant else None
        if RANK[words[claim.word]] > (RANK[derived] if derived else 0):
            required = f"at most {derived}, which the records give {claim.digest}" if derived else f"a record of {claim.digest}"
            fix = f"write {derived or 'unqualified'}, or record the evidence"
            yield self.violation(claim.at, required=required, observed=shown(claim.word), fix=fix, code=Code.CLAIM_EXCEEDS)


class FiveSections(Checker):
    """Looks for the parts of an evidence document."""

    name = "claim.five-sections"
    rule = "An evidence document has conditions, measurement, result, conclusion and limitations, and none of them is empty."
    ids = ("GC-46",)
    parameters = fields(
        documents=many("paths or globs of Markdown documents", text("a path or glob"), minimum=0),
        records=many(
            "records with these parts",
            group(
                "one kind of record",
                "file",
                "sections",
                file=text("path or glob"),
                each=pointer("the blocks with the parts"),
                sections=pointers("the parts"),
            ),
        ),
        sections=many("names of the headings; the five by default", text("a heading")),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each part that is missing or empty."""
        wanted = texts(given.get("sections")) or list(_SECTIONS)
        patterns = texts(given.get("documents"))
        paths = dict.fromkeys(path for pattern in patterns for path in case.tree.glob(pattern))
        if patterns and not paths:
            raise NothingError(Code.NOTHING_EVALUATED, f"no file matches {' or '.join(patterns)}", at=case.at, fix="correct the paths")
        found = [block for entry in objects(given.get("records")) for block in blocks(case, entry)]
        in_documents = [finding for path in paths for finding in self._document(path, decoded(case.tree.read(path), path), wanted)]
        in_records = [finding for block in found for finding in self._record(block)]
        return Result(len(paths) + len(found), (*in_documents, *in_records))

    def _document(self, path: str, page: str, wanted: list[str]) -> Iterator[Finding]:
        headings = list(_HEADING.finditer(page))
        ends = [*(heading.start() for heading in headings[1:]), len(page)]
        bodies = {heading[2].strip().lower(): (heading, page[heading.end() : end]) for heading, end in zip(headings, ends, strict=True)}
        for name in wanted:
            heading, body = bodies.get(name.lower(), (None, ""))
            if not body.strip():
                line = page.count("\n", 0, heading.start(2)) + 1 if heading else 1
                observed = "an empty one" if heading else "none"
                yield self.violation(Location(path, line), required=f"a section {name}", observed=observed, fix=f"write the {name.lower()}")

    def _record(self, block: Block) -> Iterator[Finding]:
        for name in texts(block.given["sections"]):
            found = block.find(name)
            if not found or found[0].value in (None, "", [], {}):
                fix = "write it; what was not observed is said, not left out"
                yield self.violation(block.at(name), required=f"{name}", observed="nothing", fix=fix)
