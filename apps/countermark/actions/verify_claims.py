"""`verify claims`: which texts say more of an image than the ledger's records bear, as the gate judges them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from countermark.actions.catalogue import load_catalogue
from countermark.actions.gate import Asked
from countermark.actions.queries.candidates import images
from countermark.actions.queries.judged_by import documents, told
from countermark.actions.queries.view import View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations import jsontext
from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, NothingError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue, pointer_parts
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.claims.judge import judge
from countermark.contracts.claims.quoted import Quoted
from countermark.contracts.claims.reading import Meaning, TextReading, read_text
from countermark.contracts.claims.records import SUFFIXES, read_record
from countermark.contracts.decision import DecisionHead, Result
from countermark.contracts.policy import ReleasePolicy
from countermark.recorders.files import read_bytes

_PROSE: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt"})
_TEXTS: Final = _PROSE | SUFFIXES
_MAX_BYTES: Final = 4 << 20
_PLAIN: Final = "service.startup"
"""A capability whose scope names nothing: asked for alone, it shows the rules of evidence and leaves nothing open."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A text, its findings, and the digests in it that no record names."""

    reading: TextReading
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]

    @property
    def of(self) -> int:
        """How many statements about images it makes: claims, numbers, and images that it names."""
        return sum(map(len, (self.reading.claims, self.reading.numbers, self.reading.mentions, self.reading.mistakes)))

    @property
    def evaluated(self) -> int:
        """How many of them were held against the ledger."""
        return self.of - len(self.unknown) - len(self.reading.mistakes)

    @property
    def outcome(self) -> Outcome:
        """The worst of its findings; a text that says nothing of an image was not evaluated."""
        found = {finding.outcome for finding in self.findings}
        return next((it for it in (Outcome.ERROR, Outcome.FAIL) if it in found), Outcome.PASS if self.evaluated else Outcome.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class JudgedClaims:
    """All texts, at one head and effective time; `notes` say under what the answer holds."""

    texts: tuple[JudgedText, ...]
    head: DecisionHead
    effective_time: str
    notes: tuple[str, ...]

    @property
    def exit(self) -> ExitCode:
        """0 no text says more; 1 one does; 3 a marker cannot be read; 5 none says anything of an image."""
        codes = {Outcome.ERROR: ExitCode.INVALID, Outcome.FAIL: ExitCode.NO, Outcome.PASS: ExitCode.YES}
        return ExitCode.first_of(codes[text.outcome] for text in self.texts if text.outcome in codes)


def verify_claims(workspace: Workspace, paths: Sequence[Path], asked: Asked) -> JudgedClaims:
    """Hold every text against the ledger; `asked` is the policy, if any, whose rules of evidence count, and the times.

    Raises what the gate raises, `InputError` for a text that cannot be read, and `NothingError` where there is none.
    """
    texts = {str(path): read_bytes(path, _MAX_BYTES) for path in text_files(paths)}
    catalogue = load_catalogue()
    trust = documents(workspace, replace(asked, requires=(_PLAIN,))).trust
    with open_view(workspace, When.of(asked), trust) as view:
        known = Known(view)
        readings = [_reader(path)(data, path, known.meaning, catalogue.capabilities) for path, data in texts.items()]
        by = documents(workspace, replace(asked, requires=_asks(readings, catalogue)))
        answers = Answers(view, by.policy, _asks(readings, catalogue))
        judged = tuple(_judged(reading, answers, known) for reading in readings)
        return JudgedClaims(judged, view.head, str(view.effective_time), tuple(told(by, by.policy.requires[0])))


def _reader(path: str) -> Callable[[bytes, str, Meaning, Mapping[str, object]], TextReading]:
    return read_record if Path(path).suffix.lower() in SUFFIXES else read_text


def _asks(readings: Sequence[TextReading], catalogue: Catalogue) -> tuple[str, ...]:
    """All that must be asked of an image: each capability in whatever scope, and what the texts name."""
    named = (ask for reading in readings for claim in reading.claims for group in claim.asks for ask in group)
    return tuple(dict.fromkeys([_PLAIN, *catalogue.capabilities, *named]))


def _judged(reading: TextReading, answers: "Answers", known: "Known") -> JudgedText:
    findings = judge(reading, answers.of, known.recorded, known.images)
    told = {finding.subject for finding in findings}
    unknown = [mention for mention in reading.mentions if not any(image in known.images or str(image) in told for image in mention.images)]
    return JudgedText(reading, findings, tuple(f"{mention.at.file}:{mention.at.line}: {mention.quoted}" for mention in unknown))


def text_files(paths: Sequence[Path]) -> list[Path]:
    """The texts that paths name: a file as it is; a folder for the prose and the records below it, hidden folders left out."""
    found = [file for path in paths for file in (sorted(_below(path)) if path.is_dir() else [path])]
    if not found:
        where = ", ".join(map(str, paths))
        raise NothingError(
            Code.NOTHING_EVALUATED, f"no text for people in {where}", fix=f"name files, or a folder with {', '.join(sorted(_TEXTS))}"
        )
    return list(dict.fromkeys(found))


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root) / name for name in files if Path(name).suffix.lower() in _TEXTS)


class Answers:
    """What the gate answers about each image, asked once for everything that any text needs."""

    def __init__(self, view: View, policy: ReleasePolicy, asks: Sequence[str]) -> None:
        self._view, self._policy, self._asks = view, policy, asks
        self._found: dict[Digest, Mapping[str, Result]] = {}

    def of(self, image: Digest) -> Mapping[str, Result]:
        """The result of everything that is asked, by how it is asked."""
        if image not in self._found:
            results = self._view.decide(image, self._policy).requirements
            self._found[image] = dict(zip(self._asks, results, strict=True))
        return self._found[image]


class Known:
    """What the ledger knows by the digests that a text quotes."""

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def images(self) -> tuple[Digest, ...]:
        """Every image that a record names."""
        return images(self._view)

    def meaning(self, quoted: Quoted) -> Sequence[Digest]:
        """The images that a quoted digest may mean; one that no record names counts where the text writes it as an image is written."""
        found = [image for image in self.images if image.hex.startswith(quoted.hex) and quoted.kind in (None, image.kind)]
        if found or not quoted.whole or not (quoted.typed or quoted.marked):
            return found
        if quoted.kind is None and self._view.reader.kinds_of(quoted.hex):
            return ()
        return (quoted.typed or Digest(DigestKind.OCI_MANIFEST, quoted.hex),)

    def recorded(self, digest: Digest, pointer: str) -> JsonValue:
        """The value at a pointer of a recorded statement, or of a recorded file, whose signature counts.

        `InputError` when nothing of that digest is recorded, when it has no such value, or when nobody who is trusted signed it.
        """
        indices = [index for index in self._view.reader.find_payload(bytes.fromhex(digest.hex)) if index < self._view.head.size]
        entries, _ = self._view.entries(indices)
        if not entries:
            raise InputError(Code.REF_NOT_HERE, f"no entry of the ledger holds {digest}", fix="record it, or name what is recorded")
        if all(self._view.signed(entry).code is not Code.OK for entry in entries):
            signed = self._view.signed(entries[0])
            raise InputError(signed.code, f"{digest} is signed by {signed}, which does not count", fix="have it signed by who may")
        return _at(jsontext.loads(entries[0].payload, str(digest)), pointer, digest)


def _at(value: JsonValue, pointer: str, digest: Digest) -> JsonValue:
    for part in pointer_parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise InputError(Code.REF_NOT_HERE, f"{digest} has nothing at {pointer}", fix="correct the pointer")
    return value
