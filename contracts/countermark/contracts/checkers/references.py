"""Rules about what records point at: it is here with the stated bytes, it is raw, and a path is bound to a commit.

A reference whose target is not here is not evaluated: never a pass, and never a mismatch. (Catalogue GC-43, QA-23, and the checkers
without a number of section 12.)
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator

from countermark.attestations.codes import Code, Outcome, Severity, Status
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.contracts.checkers.base import Case, Checker, Parameters, Result
from countermark.contracts.checkers.parameters import fields, many, pointer, pointers, table, text, texts
from countermark.contracts.checkers.records import Block, RecordChecker, record_fields
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.locators.sums import ChecksumList, Entry
from countermark.contracts.pins import ValueType, shown

_WILD = re.compile(r"[*?]")
_COMMIT = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])")
_PROSE = (".md", ".rst", ".txt", ".html", ".adoc")


def target(case: Case, folder: str, path: str) -> str | None:
    """The path of a reference in the repository, counted from `folder`; none for what is not here."""
    if "://" in path or path.startswith("/") or _WILD.search(path):
        return None
    full = posixpath.normpath(posixpath.join(folder, path.partition("#")[0]))
    return full if not full.startswith("..") and case.tree.glob(full) else None


def _folder(block: Block) -> str:
    """What paths count from: the `root` of the parameters, or the folder of the record."""
    return str(block.given["root"]) if "root" in block.given else posixpath.dirname(block.record.path)


class RefsResolve(RecordChecker):
    """Looks up the files that a record names."""

    name = "evidence.refs-resolve"
    rule = "Every file that a record names is here and has the bytes that the record states."
    ids = ("GC-43",)
    parameters = record_fields(
        path=pointers("the paths"),
        sha256=pointer("the SHA-256 of a file, in the same block as its path"),
        bytes=pointer("the size of a file, in the same block as its path"),
        names=pointer("an object of paths with their SHA-256"),
        root=text("the folder that paths count from; the record's own by default", pattern="^[^/].*$|^$"),
    )

    def applies(self, block: Block) -> bool:
        """Without a pointer to paths there is nothing to look up."""
        return not {"path", "names"}.isdisjoint(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for each file that is not here or has other bytes."""
        for found in block.all("path"):
            yield from self._file(block, str(found.value), found, block.maybe("sha256"), block.maybe("bytes"))
        names = block.one("names") if "names" in block.given else None
        for name, found in (
            zip(names.value, block.find(f"{block.given['names']}/*"), strict=True) if names and isinstance(names.value, dict) else ()
        ):
            yield from self._file(block, name, found, found, None)

    def _file(self, block: Block, name: str, named: Found, sha256: Found | None, size: Found | None) -> Iterator[Finding]:
        path = target(block.case, _folder(block), name)
        if path is None:
            fix = "add the file, or say that it is not published; until then it is not evaluated"
            yield self.violation(
                named.at, required=f"the file {name}", observed="not here", fix=fix, outcome=Outcome.NOT_RUN, code=Code.REF_NOT_HERE
            )
            return
        data = block.case.tree.read(path)
        made = hashlib.sha256(data).hexdigest()
        if sha256 and str(sha256.value).removeprefix("sha256:") != made:
            yield self.violation(sha256.at, required=f"{made}, of {path}", observed=shown(sha256.value), fix="record the file as it is")
        if size and size.value != len(data):
            yield self.violation(size.at, required=f"{len(data)}, of {path}", observed=shown(size.value), fix="record the file as it is")


class RawRetained(RecordChecker):
    """Reads what was kept of the raw material."""

    name = "evidence.raw-retained"
    rule = "Raw material is kept with size and hash, and what was not kept caps the status."
    ids = ("QA-23",)
    parameters = record_fields(
        "raw",
        "status",
        raw=pointers("the raw artefacts: objects with `sha256` and `bytes`"),
        retained=pointers("where the record says whether something was kept: booleans, or a location that may be `unavailable`"),
        status=pointer("the status"),
        words=table("what words of the record's own mean", text("a status")),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """A warning for an artefact without size or hash, and a finding for a status above what was kept."""
        for found in block.all("raw"):
            value = found.value if isinstance(found.value, dict) else {}
            for key in ("sha256", "bytes"):
                if value.get(key) in (None, ""):
                    fix = f"record the {key} of the artefact"
                    yield self.violation(found.at, required=key, observed="nothing", fix=fix, severity=Severity.WARN)
        status, words = block.one("status"), block.given.get("words")
        meant = words.get(str(status.value), status.value) if isinstance(words, dict) else status.value
        lost = [it for it in block.all("retained") if it.value in (False, None, "", "unavailable")]
        if lost and meant == Status.QUALIFIED:
            required = f"at most research-only, because of line {lost[0].at.line}"
            yield self.violation(
                status.at, required=required, observed=shown(status.value), fix="lower the status, or publish the raw material"
            )


class EvidenceRoot(RecordChecker):
    """Follows references until they end."""

    name = "evidence.root"
    rule = "A chain of references ends in a raw artefact, neither in a text for people nor in a circle."
    parameters = record_fields(
        "record",
        record=pointer("what the record rests on"),
        root=text("the folder that paths count from; the record's own by default", pattern="^[^/].*$|^$"),
        prose=many("endings of the names of texts for people; `.md` and its like by default", text("an ending")),
    )

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a chain that ends in prose or nowhere."""
        found = block.one("record")
        seen = [block.record.path]
        name = str(found.value)
        endings = tuple(texts(block.given.get("prose"))) or _PROSE
        while True:
            if name.partition("#")[0].endswith(endings):
                yield self._no_root(found, f"{name}, a text for people")
                return
            path = target(block.case, _folder(block), name)
            if path is None:
                fix = "add the file; until then nobody can tell where the chain ends"
                required = f"the file {name}"
                yield self.violation(
                    found.at, required=required, observed="not here", fix=fix, outcome=Outcome.NOT_RUN, code=Code.REF_NOT_HERE
                )
                return
            if not path.endswith(".json"):
                return
            if path in seen:
                yield self._no_root(found, f"a circle through {path}")
                return
            seen.append(path)
            following = self._following(block, path)
            if following is None:
                return
            name = following

    @staticmethod
    def _following(block: Block, path: str) -> str | None:
        values = block.case.files.parsed(path, LOCATORS["json"]).find(str(block.given["record"]))
        return next((it.value for it in values if isinstance(it, Found) and isinstance(it.value, str)), None)

    def _no_root(self, found: Found, observed: str) -> Finding:
        fix = "name the raw artefact with its digest"
        return self.violation(found.at, required="a raw artefact", observed=observed, fix=fix)


class CommitBound(RecordChecker):
    """Reads paths and digests of files that change with their repository."""

    name = "path.commit-bound"
    rule = "A path in a record stands beside the commit at which it resolves, and one path has one digest."
    parameters = record_fields(
        path=pointer("the path"),
        digest=pointer("the digest of the file"),
        commit=pointer("the commit at which the path resolves"),
        others=many("facts with the digest of the same file in other records", text("a fact")),
    )

    def applies(self, block: Block) -> bool:
        """There is something to bind."""
        return not {"path", "digest"}.isdisjoint(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a file that nothing binds, and one for each other digest of it."""
        path, digest = block.maybe("path"), block.maybe("digest")
        named = digest or path or block.one("path" if "path" in block.given else "digest")
        commit = block.maybe("commit")
        bound = commit is not None and ValueType.COMMIT.form is not None and ValueType.COMMIT.form.fullmatch(str(commit.value))
        if path is None:
            yield self._unbound(named, "the path of the file and its commit")
        elif not bound and not _COMMIT.search(str(path.value)):
            yield self._unbound(named, f"the commit at which {path.value} is this file")
        for name in texts(block.given.get("others")):
            for other in block.case.fact(name):
                if digest and other.value != digest.value:
                    required = f"{shown(digest.value)}, as for the same path at {digest.at.file}:{digest.at.line}"
                    yield self.violation(other.at, required=required, observed=shown(other.value), fix="bind each digest to its commit")

    def _unbound(self, found: Found, required: str) -> Finding:
        return self.violation(found.at, required=required, observed=shown(found.value), fix="record path, commit and digest together")


class ChecksumLists(Checker):
    """Hashes the files of checksum lists."""

    name = "checksum.list"
    rule = "Every entry of a checksum list is a file that is here and has that digest, once."
    parameters = fields(
        "files",
        files=many("paths or globs of the lists", text("a path or glob"), minimum=0),
        root=text("the folder that the entries count from; the list's own by default", pattern="^[^/].*$|^$"),
    )

    def check(self, case: Case, given: Parameters) -> Result:
        """One finding for each entry that is wrong, not here or there twice."""
        paths = [path for pattern in texts(given["files"]) for path in case.tree.glob(pattern)]
        if given["files"] and not paths:
            missing = " or ".join(texts(given["files"]))
            return Result(0, (self._not_here(case.at, f"a list that matches {missing}"),))
        entries: list[tuple[str, Entry]] = []
        for path in paths:
            listed = case.files.parsed(path, LOCATORS["sums"])
            assert isinstance(listed, ChecksumList)
            folder = str(given["root"]) if "root" in given else posixpath.dirname(path)
            entries.extend((folder, entry) for entry in listed.entries)
        seen: dict[tuple[str, str], Location] = {}
        return Result(len(entries), tuple(finding for folder, entry in entries for finding in self._entry(case, folder, entry, seen)))

    def _entry(self, case: Case, folder: str, entry: Entry, seen: dict[tuple[str, str], Location]) -> Iterator[Finding]:
        key = (entry.at.file, entry.path.removeprefix("./"))
        if key in seen:
            required = f"one entry for {entry.path}; the first is at line {seen[key].line}"
            yield self.violation(entry.at, required=required, observed="another", fix="keep one")
            return
        seen[key] = entry.at
        path = target(case, folder, entry.path)
        if path is None:
            yield self._not_here(entry.at, f"the file {entry.path}")
        elif (made := hashlib.sha256(case.tree.read(path)).hexdigest()) != entry.digest:
            yield self.violation(entry.at, required=f"{made}, of {path}", observed=entry.digest, fix="write the list anew")

    def _not_here(self, at: Location, required: str) -> Finding:
        fix = "add the file, or take it off the list"
        return self.violation(at, required=required, observed="not here", fix=fix, outcome=Outcome.NOT_RUN, code=Code.REF_NOT_HERE)
