"""`explain DECISION`: a recorded decision, and whether the same inputs give it again today."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from countermark.actions.evidence import Gatherer
from countermark.actions.gate import decide_at
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import load_document, read_structured
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.keys import read_key_file
from countermark.attestations.located import walk
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import canonical
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.decision import Decision, Mode, core_id
from countermark.contracts.evidence import Record
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.profile import Profile
from countermark.ledger.read import LedgerReader
from countermark.ledger.submission import DOCUMENT_TYPE


@dataclass(frozen=True, slots=True)
class Repeated:
    """A recorded decision and its repetition. `differences` are the pointers at which the two cores differ."""

    id: str
    record: Record
    core: dict[str, Any]
    again: Decision
    differences: tuple[str, ...]


def is_decision(text: str) -> bool:
    """Whether `text` names a decision rather than an image: its id, or a statement's payload digest."""
    return text.startswith("payload:") or (len(text) == 26 and text.isalnum() and text == text.lower())


def repeat(workspace: Workspace, text: str) -> Repeated:
    """Find a recorded decision, and make it again from the inputs that were recorded with it, at the head that it names."""
    with open_reader(workspace) as reader:
        record, core = _find(reader, workspace.trust(), text)
        inputs = core["inputs"]
        trust = _trust(reader, workspace, inputs["trust"])
        policy = _policy(reader, core, _profile(reader, core["inputs"].get("profile"), record.index))
        reader.rewind(core["ledger"]["size"])
        override = "AT_OVERRIDE" in core["notes"]
        subject, instant = Digest.parse(core["subject"]), Instant.parse(core["effective_time"])
        again = decide_at(reader, subject, policy, trust, instant, mode=Mode(core["mode"]), at_override=override)
    return Repeated(core_id(canonical(core)), record, core, again, _differences(core, again.core()))


def _find(reader: LedgerReader, trust: TrustPolicy, text: str) -> tuple[Record, dict[str, Any]]:
    for record in Gatherer(reader, trust).statements(reader.statements(PredicateName.DECISION.uri)):
        predicate: Any = record.statement.predicate
        if text in (str(record.payload), core_id(canonical(predicate["core"]))):
            return record, predicate["core"]
    raise InputError(Code.REF_NOT_HERE, f"no decision {text} is recorded here", fix="see `countermark query decisions`")


def _trust(reader: LedgerReader, workspace: Workspace, named: dict[str, Any]) -> TrustPolicy:
    """The trust policy as recorded; its keys are read from beside the ledger, and their fingerprints are in the policy."""
    folder = workspace.trust_file.parent
    document = load_document(_recorded(reader, named), "trust.yaml", "TrustPolicy")
    return TrustPolicy.of(document, lambda name: read_key_file(folder / name))


def _policy(reader: LedgerReader, core: dict[str, Any], profile: Profile | None) -> ReleasePolicy:
    inputs = core["inputs"]
    catalogue = Catalogue.of(load_document(_recorded(reader, inputs["catalogue"]), "catalogue.yaml", "CapabilityCatalog"))
    places = [result["location"]["file"] for result in core["requirements"]]
    adhoc = any(place.startswith("--require") for place in places)
    source = "--require" if adhoc or not places else places[0]
    document = load_document(_recorded(reader, inputs["policy"]), source, "ReleasePolicy")
    return ReleasePolicy.of(document, catalogue, profile, adhoc=adhoc)


def _profile(reader: LedgerReader, named: dict[str, Any] | None, decision: int) -> Profile | None:
    """The profile as recorded: a Profile, or a file of the maintainers' own with the last ProfileMap of its name before the decision."""
    if named is None:
        return None
    data = _recorded(reader, named)
    located = read_structured(data, "profile")
    if isinstance(located.value, dict) and located.value.get("kind") == "Profile":
        return Profile.of(load_document(data, "profile", "Profile"))
    documents = [entry for entry in reader.notices() if entry.leaf.payload_type == DOCUMENT_TYPE and entry.index < decision]
    for entry in reversed(documents):
        with suppress(InputError):
            field_map = load_document(entry.payload, "profile map", "ProfileMap")
            if (field_map.id, field_map.version) == (named["id"], named["version"]):
                return Profile.mapped(data, located, field_map)
    raise _incomplete(reader, f"the ProfileMap {named['id']}@{named['version']}")


def _incomplete(reader: LedgerReader, what: str) -> CannotTellError:
    fix = "decide again with `gate --record`"
    return CannotTellError(Code.INCOMPLETE, f"the ledger does not hold {what}", at=Location(str(reader.path)), fix=fix)


def _recorded(reader: LedgerReader, named: dict[str, Any]) -> bytes:
    """The bytes of a document that `gate --record` kept: its digest is also that of its entry's payload."""
    digest = Digest.parse(named["digest"])
    if digest.kind is not DigestKind.FILE or not reader.find_payload(digest.raw):
        raise _incomplete(reader, f"{named['id']}@{named['version']} ({digest})")
    return reader.payload(digest.raw)


def _differences(first: dict[str, Any], second: dict[str, Any]) -> tuple[str, ...]:
    """The pointers of the values that only one side has, or that differ; collections are compared by their members."""
    one, two = _leaves(first), _leaves(second)
    return tuple(sorted(pointer for pointer in {**one, **two} if one.get(pointer) != two.get(pointer)))


def _leaves(core: dict[str, Any]) -> dict[str, str]:
    return {pointer: repr(value) for pointer, value in walk(core) if not isinstance(value, dict | list) or not value}
