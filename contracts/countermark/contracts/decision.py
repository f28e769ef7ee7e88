"""A decision: what was asked, of which ledger, what came out and why. Its core is canonical bytes, so equal inputs give equal ids."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from countermark.attestations.codes import Code, ExitCode, Outcome, Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import Location
from countermark.attestations.findings import location_json
from countermark.attestations.statement import canonical
from countermark.attestations.times import Instant
from countermark.contracts.weighed import Weighed, WeighedWaiver


class Verdict(StrEnum):
    """The answer of a gate."""

    ALLOW = "ALLOW"
    DENY = "DENY"


class Mode(StrEnum):
    """Whether a DENY stops a release, or is only told. The mode is part of the decision."""

    ENFORCE = "enforce"
    WARN = "warn"


@dataclass(frozen=True, slots=True, order=True)
class Identified:
    """A document by id, version and digest of its bytes."""

    id: str
    version: int
    digest: Digest

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page."""
        return {"id": self.id, "version": self.version, "digest": str(self.digest)}


@dataclass(frozen=True, slots=True)
class DecisionHead:
    """The ledger at the moment of the decision. `root` is hex; `protected_to` is the size that somebody else holds a checkpoint of."""

    origin: str
    size: int
    root: str
    notices: int
    protected_to: int | None

    @property
    def unprotected(self) -> int:
        """Entries whose removal nobody else could notice yet."""
        return self.size - (self.protected_to or 0)

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page."""
        return {"origin": self.origin, "size": self.size, "root": self.root, "notices": self.notices, "protected_to": self.protected_to}


@dataclass(frozen=True, slots=True)
class Result:
    """A requirement and its answer. `required` and `observed` are for people; `fix` is an action, empty where none is needed.

    `evidence` stands in the order of the ledger. `codes` are all that apply, where they are more than `code`. `waived_by` names the waiver
    that lets a release go on though the requirement fails; it stays failed, and `next_expiry` is then the end of the waiver.
    """

    id: str
    status: Status
    code: Code
    outcome: Outcome
    required: str
    observed: str
    location: Location
    fix: str
    capability: str | None = None
    any: tuple[str, ...] = ()
    evidence: tuple[Weighed, ...] = ()
    waived_by: str | None = None
    next_expiry: Instant | None = None
    codes: tuple[Code, ...] = ()

    @property
    def every_code(self) -> tuple[Code, ...]:
        """All codes that apply, the first of them first."""
        return tuple(dict.fromkeys((self.code, *self.codes)))

    @property
    def evaluated(self) -> bool:
        """Whether the requirement applied."""
        return self.outcome is not Outcome.NOT_APPLICABLE

    @property
    def satisfied(self) -> bool:
        """Whether it holds; only `pass` does."""
        return self.outcome is Outcome.PASS

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page; optional fields that say nothing are left out."""
        every = [str(code) for code in self.every_code]
        optional = {
            "capability": self.capability,
            "codes": every if len(every) > 1 else None,
            "waived_by": self.waived_by,
            "next_expiry": str(self.next_expiry) if self.next_expiry else None,
        }
        return {
            "id": self.id,
            "status": str(self.status),
            "code": str(self.code),
            "outcome": str(self.outcome),
            "required": self.required,
            "observed": self.observed,
            "any": list(self.any),
            "evidence": [item.to_json() for item in self.evidence],
            "location": location_json(_named(self.location)),
            "fix": self.fix,
            **{name: value for name, value in optional.items() if value is not None},
        }


def _named(at: Location) -> Location:
    """The location without the folders above its file: where the policy lay is no input of a decision."""
    return at if at.file.startswith("--") else replace(at, file=at.file.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Inputs:
    """The documents that a decision was made by."""

    policy: Identified
    trust: Identified
    catalogue: Identified
    profile: Identified | None = None
    contract_verdicts: tuple[Identified, ...] = ()
    waivers: tuple[Identified, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object of the documents page."""
        return {
            "policy": self.policy.to_json(),
            "trust": self.trust.to_json(),
            "catalogue": self.catalogue.to_json(),
            **({"profile": self.profile.to_json()} if self.profile else {}),
            "contract_verdicts": [item.to_json() for item in self.contract_verdicts],
            "waivers": [item.to_json() for item in self.waivers],
        }


@dataclass(frozen=True)
class Decision:
    """The core of a decision/v1, a pure function of its inputs."""

    mode: Mode
    subject: Digest
    channel: str
    inputs: Inputs
    head: DecisionHead
    effective_time: Instant
    requirements: tuple[Result, ...]
    notes: tuple[str, ...]
    checkers: Mapping[str, int]
    waivers: tuple[WeighedWaiver, ...] = ()

    @property
    def evaluated(self) -> int:
        """How many requirements applied."""
        return sum(result.evaluated for result in self.requirements)

    @property
    def satisfied(self) -> int:
        """How many of them hold."""
        return sum(result.satisfied for result in self.requirements)

    @property
    def verdict(self) -> Verdict:
        """ALLOW when all requirements that applied hold or are waived, and at least one holds: what is waived shows nothing."""
        return Verdict.ALLOW if self.satisfied and not self.denied else Verdict.DENY

    @property
    def denied(self) -> tuple[Result, ...]:
        """The requirements that apply, do not hold and are not waived."""
        return tuple(result for result in self.requirements if result.evaluated and not result.satisfied and result.waived_by is None)

    @property
    def waived(self) -> tuple[Result, ...]:
        """The requirements that do not hold and are waived."""
        return tuple(result for result in self.requirements if result.waived_by is not None)

    @property
    def exit(self) -> ExitCode:
        """What the process exits with. In warn mode a DENY is told and recorded, and stops nothing."""
        if not self.evaluated:
            return ExitCode.NOTHING
        return ExitCode.YES if self.verdict is Verdict.ALLOW or self.mode is Mode.WARN else ExitCode.NO

    @property
    def next_expiry(self) -> Instant | None:
        """When the answer can first change by age alone."""
        return min((result.next_expiry for result in self.requirements if result.next_expiry), default=None)

    def core(self) -> dict[str, Any]:
        """The `core` object of decision/v1."""
        return {
            "verdict": str(self.verdict),
            "mode": str(self.mode),
            "subject": str(self.subject),
            "inputs": self.inputs.to_json(),
            "ledger": self.head.to_json(),
            "effective_time": str(self.effective_time),
            "evaluated": self.evaluated,
            "satisfied": self.satisfied,
            "requirements": [result.to_json() for result in self.requirements],
            **({"waivers": [waiver.to_json() for waiver in self.waivers]} if self.waivers else {}),
            "notes": list(self.notes),
            "checkers": dict(self.checkers),
        }

    @cached_property
    def core_bytes(self) -> bytes:
        """The RFC 8785 bytes of the core: equal for equal inputs."""
        return canonical(self.core())

    @property
    def id(self) -> str:
        """The first 26 characters of the lower-case base32 of SHA-256 of the core."""
        return core_id(self.core_bytes)


def core_id(core: bytes) -> str:
    """The id of a decision by the RFC 8785 bytes of its core."""
    return base64.b32encode(hashlib.sha256(core).digest()).decode()[:26].lower()
