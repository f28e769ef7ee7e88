"""From payload bytes to the rows by which an entry is found, and to whether it is a notice.

A pure function of what was signed: the writer stores what it gives, the auditor calls it again and compares. It is total, because an
audit must get through any payload; what is not a statement has no rows.

A *notice* is an entry whose absence could turn a no into a yes. Its flag is in the leaf and notices are chained by hash, so the gate
reads all of them whatever the derived rows say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from countermark.attestations import jsontext
from countermark.attestations.codes import Outcome
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import MAX_PAYLOAD, is_statement_type
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.outcomes import outcome_of
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.ledger.key_event import KeyEvent
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import DOCUMENT_TYPE
from countermark.ledger.travelling import Travelling

UNKNOWN_KIND: Final = "unknown"
"""The kind of a digest that the statement gives no kind to, as a foreign one does with a bare `sha256`."""

_ALWAYS_READ: Final = frozenset({EntryKind.KEY_EVENT, EntryKind.POLICY, EntryKind.INCARNATION})
_ALWAYS_NOTICE: Final = frozenset(
    name.uri for name in (PredicateName.REJECTION, PredicateName.RETRACTION, PredicateName.SUPERSESSION, PredicateName.CONTRACT_VERDICT)
)
"""Of the verdicts of one contract the last counts, so that each may be what turns an earlier yes into a no."""

_IMAGE: Final = PredicateName.IMAGE.uri


class SubjectRow(NamedTuple):
    """A digest by which an entry is found. `role` says how the entry refers to it: subject, tuple, alias, component, rests-on, key,
    document."""

    pos: int
    kind: str
    digest: bytes
    role: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Derived(Travelling):
    """What follows from the bytes of a payload. `unreadable` says why one that was signed as a statement is no strict JSON: two readers
    could read two things."""

    notice: bool
    subjects: tuple[SubjectRow, ...] = ()
    predicate_type: str | None = None
    key_event: KeyEvent | None = None
    unreadable: str | None = None


def derive(kind: EntryKind, payload_type: str, payload: bytes, read: Statement | None = None) -> Derived:
    """The derived rows of an entry. What its signer did not sign as a statement is none, even if its bytes read as one: a kept file.

    `read` is what the caller parsed of these very bytes, so that they are not parsed again.
    """
    if kind is EntryKind.ATTESTATION:
        return _of_payload(payload, read) if is_statement_type(payload_type) else Derived(notice=False)
    notice = kind in _ALWAYS_READ
    if kind is EntryKind.KEY_EVENT:
        return _of_key_event(payload, notice)
    if payload_type == DOCUMENT_TYPE:
        digest = Digest.of(DigestKind.FILE, payload)
        return Derived(notice, _rows([(digest.kind, digest.raw, "document", None)]))
    return Derived(notice)


def _of_key_event(payload: bytes, notice: bool) -> Derived:
    try:
        event = KeyEvent.parse(payload)
    except InputError:
        return Derived(notice)
    rows = _rows([(DigestKind.SPKI, event.key_sha256, "key", event.principal)])
    return Derived(notice, rows, key_event=event)


def _of_payload(payload: bytes, read: Statement | None) -> Derived:
    try:
        statement = read or Statement.parse(payload, "payload")
    except InputError:
        # It can neither deny nor allow anything; admission refuses it, but for the legacy layouts and links that share the media type.
        return Derived(notice=False, unreadable=_unreadable(payload))
    return Derived(_is_notice(statement), _rows(_references(statement)), statement.predicate_type)


def _unreadable(payload: bytes) -> str | None:
    try:
        jsontext.loads(payload, "payload", limit=MAX_PAYLOAD)
    except InputError as error:
        return error.message
    return None


def _is_notice(statement: Statement) -> bool:
    if statement.predicate_type in _ALWAYS_NOTICE:
        return True
    if statement.predicate_type == _IMAGE:
        predicate = as_object(statement.predicate)
        return bool(as_list(predicate.get("aliases")) or _components(predicate))
    return outcome_of(statement.predicate_type, statement.predicate) not in (None, Outcome.PASS)


_Reference = tuple[str, bytes, str, str | None]


def _rows(references: "Iterator[_Reference] | list[_Reference]") -> tuple[SubjectRow, ...]:
    unique = dict.fromkeys(references)
    return tuple(SubjectRow(pos, str(kind), digest, role, name) for pos, (kind, digest, role, name) in enumerate(unique))


def _references(statement: Statement) -> Iterator[_Reference]:
    for subject in statement.subjects:
        yield from _of_subject(subject)
    predicate = as_object(statement.predicate)
    for name, member in as_object(predicate.get("tuple")).items():
        yield from _reference(member, "tuple", name)
    for item in as_list(predicate.get("rests_on")):
        yield from _reference(item, "rests-on", None)
    if statement.predicate_type == _IMAGE:
        for alias in as_list(predicate.get("aliases")):
            yield from _reference(as_object(alias).get("digest"), "alias", None)
        for name, component in _components(predicate).items():
            for field in ("commit", "tree"):
                yield from _reference(as_object(component).get(field), "component", name)


def _of_subject(subject: Subject) -> Iterator[_Reference]:
    name = subject.name or subject.uri
    typed = {subject.digests[algorithm]: str(kind) for algorithm, kind in subject.kinds()}
    for hexed in subject.digests.values():
        try:
            digest = bytes.fromhex(hexed)
        except ValueError:
            continue
        yield typed.get(hexed, UNKNOWN_KIND), digest, "subject", name


def _reference(value: JsonValue, role: str, name: str | None) -> Iterator[_Reference]:
    """A typed digest, or a model by repository and revision."""
    if isinstance(value, dict):
        repository, revision = value.get("repository"), value.get("revision")
        value, name = f"{DigestKind.GIT_COMMIT}:{revision}", repository if isinstance(repository, str) else name
    digest = Digest.stated(value)
    if digest:
        yield digest.kind, digest.raw, role, name


def _components(predicate: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return as_object(as_object(predicate.get("built_from")).get("components"))


def withheld(kind: EntryKind, payload: bytes) -> bytes | None:
    """The SHA-256 of the payload that a withhold notice (kind 4) says was erased on purpose."""
    if kind is not EntryKind.WITHHOLD:
        return None
    try:
        named = Digest.stated(as_object(jsontext.loads(payload, "withhold notice")).get("payload"))
    except InputError:
        return None
    return named.raw if named else None
