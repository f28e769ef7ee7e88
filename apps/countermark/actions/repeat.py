"""`explain DECISION`: a recorded decision, and whether the same inputs give it again today."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countermark.actions.evidence import Gatherer
from countermark.actions.gate import Decider, Documents
from countermark.actions.past_decisions import PastDecision
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.keys import read_key_file
from countermark.attestations.located import JsonValue, walk
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.attestations.trust import TrustPolicy
from countermark.contracts.decision import Decision, Mode
from countermark.ledger.read import LedgerReader


@dataclass(frozen=True, slots=True)
class Repeated:
    """A recorded decision and its repetition. `differences` are the pointers at which the two cores differ.

    `documents` are those that were recorded with it, the policy alone with its bytes.
    """

    past: PastDecision
    again: Decision
    differences: tuple[str, ...]
    documents: Documents

    @property
    def id(self) -> str:
        """The id of the recorded one."""
        return self.past.id


def is_decision(text: str) -> bool:
    """Whether `text` names a decision rather than an image: its id, or a statement's payload digest."""
    return text.startswith("payload:") or (len(text) == 26 and text.isalnum() and text == text.lower())


def repeat(workspace: Workspace, text: str, read_key: Callable[[str], bytes] | None = None) -> Repeated:
    """Find a recorded decision, and make it again from the inputs that were recorded with it, at the head that it names.

    `read_key` gives the key files that its trust policy names, by default those in the folder of the trust policy of today.
    """
    with open_reader(workspace) as reader:
        past = _find(reader, workspace.trust(), text)
        core: Any = past.core
        trust = recorded_trust(reader, past, workspace.trust_file.parent, read_key)
        policy = past.policy(reader)
        documents = Documents(policy, trust, (past.bytes_of(reader, "policy"),), adhoc=False)
        reader.rewind(core["ledger"]["size"])
        override = "AT_OVERRIDE" in core["notes"]
        subject, instant = Digest.parse(core["subject"]), Instant.parse(core["effective_time"])
        again = Decider(Gatherer(reader, trust), policy, instant, mode=Mode(core["mode"]), at_override=override).decide(subject)
    return Repeated(past, again, _differences(core, again.core()), documents)


def _find(reader: LedgerReader, trust: TrustPolicy, text: str) -> PastDecision:
    for record in Gatherer(reader, trust).statements(reader.statements(PredicateName.DECISION.uri)):
        past = PastDecision.of(record)
        if text in (str(record.payload), past.id):
            return past
    raise InputError(Code.REF_NOT_HERE, f"no decision {text} is recorded here", fix="see `countermark query decisions`")


def recorded_trust(reader: LedgerReader, past: PastDecision, folder: Path, read_key: Callable[[str], bytes] | None = None) -> TrustPolicy:
    """The trust policy as recorded, as if it lay in a folder. Its key files are read again; their fingerprints are in the policy."""
    document = past.document(reader, "trust", "TrustPolicy", str(folder / "trust.yaml"))
    return TrustPolicy.of(document, read_key or (lambda name: read_key_file(folder / name)))


def _differences(first: Mapping[str, JsonValue], second: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The pointers of the values that only one side has, or that differ; collections are compared by their members."""
    one, two = _leaves(first), _leaves(second)
    return tuple(sorted(pointer for pointer in {**one, **two} if one.get(pointer) != two.get(pointer)))


def _leaves(core: Mapping[str, JsonValue]) -> dict[str, str]:
    return {pointer: repr(value) for pointer, value in walk({**core}) if not isinstance(value, dict | list) or not value}
