"""The release policy: which images may be asked about, whom to trust, and what must be shown.

A policy is read together with the catalogue and the profile it refers to, so that a requirement is either whole or an error: a policy
that would silently ask less than it says is never evaluated.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from countermark.attestations.codes import Code, Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import API_VERSION, Document
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import JsonValue
from countermark.contracts.catalogue import Capability, Catalogue, suggest
from countermark.contracts.condition import unmet
from countermark.contracts.profile import Profile
from countermark.contracts.requirement import (
    DAY_NS,
    HOUR_NS,
    CapabilityRequirement,
    ContractRequirement,
    Demand,
    EvidenceRules,
    NotApplicable,
    Requirement,
    format_require,
    parse_require,
    read_demand,
)

_OPTION: Final = "--require"
_MAX_AGE_NS: Final = 36_500 * DAY_NS
_NEVER_WAIVE: Final = (Code.IMAGE_REJECTED, Code.SIG_INVALID, Code.LEDGER_TAMPERED, Code.SUBJECT_UNKNOWN, Code.SCHEMA_INVALID)
_OF_THE_IMAGE: Final = frozenset({*_NEVER_WAIVE, Code.SUBJECT_KIND, Code.SUBJECT_MISMATCH})
"""What no policy can let be waived: it is true of the image itself, and hides how its requirements stand."""


@dataclass(frozen=True, slots=True)
class WaiverRules:
    """What may be waived under a policy: of its requirements, by id; but for some codes; for so many days at most."""

    policy: str
    requirements: frozenset[str]
    waivable: frozenset[str]
    never: frozenset[Code]
    max_days: int

    @classmethod
    def of(cls, document: Document) -> Self:
        """Build from a validated ReleasePolicy, whatever it refers to."""
        spec: dict[str, Any] = document.spec
        requirements = frozenset(item["id"] for item in spec["requires"])
        never = frozenset(map(Code, spec["never_waive"])) | _OF_THE_IMAGE
        return cls(document.id, requirements, frozenset(spec["waivable"]), never, spec["waiver_max_days"])


@dataclass(frozen=True, slots=True)
class ReleasePolicy:
    """A policy whose every reference is resolved. `trust` is a path as the policy writes it, relative to its file."""

    id: str
    version: int
    digest: Digest
    channel: str
    kinds: frozenset[DigestKind]
    platform: str | None
    trust: str
    requires: tuple[Requirement | NotApplicable, ...]
    waivers: WaiverRules
    catalogue: Catalogue
    profile: Profile | None

    @classmethod
    def of(cls, document: Document, catalogue: Catalogue, profile: Profile | None = None, *, adhoc: bool = False) -> Self:
        """Build from a validated ReleasePolicy; `adhoc` when the document is one that `adhoc_document` wrote.

        `InputError` for every mistake in it, `NothingError` when it requires nothing.
        """
        spec: dict[str, Any] = document.spec
        if not spec["requires"]:
            raise NothingError(
                Code.NOTHING_EVALUATED, "the policy requires nothing", at=document.at("/spec/requires"), fix="add a requirement to it"
            )
        requires = tuple(_Reader(document, catalogue, profile, adhoc).requirement(n, item) for n, item in enumerate(spec["requires"]))
        _check_ids(document, [item.id for item in requires])
        return cls(
            document.id,
            document.version,
            document.digest,
            spec["channel"],
            frozenset(DigestKind(kind) for kind in spec["subject"]["kinds"]),
            spec["subject"].get("platform"),
            spec["trust"],
            requires,
            WaiverRules.of(document),
            catalogue,
            profile,
        )


def adhoc_document(requires: Sequence[str], *, trust: str, base: Document | None = None) -> bytes:
    """The policy that `--require` texts stand for, as the bytes of a ReleasePolicy, to be loaded, printed and digested like a file.

    With a `base` policy its kinds, trust and evidence rules hold, and the given requirements alone are asked; without, all kinds of
    image may be asked about, evidence is what policies ask by default, and `trust` is the path of the trust policy.
    """
    items = [parse_require(text) for text in requires]
    for n, item in enumerate(items):
        if n and any(other["id"] == item["id"] for other in items[:n]):
            item["id"] = f"{str(item['id'])[:59]}.{n + 1}"
    default: dict[str, Any] = {
        "channel": "adhoc",
        "subject": {"kinds": [str(kind) for kind in DigestKind if kind.is_oci]},
        "trust": trust,
        "never_waive": [str(code) for code in _NEVER_WAIVE],
        "waiver_max_days": 0,
    }
    spec = {**(base.spec if base else default), "requires": items, "waivable": []}
    metadata = {"id": base.id, "version": base.version} if base else {"id": "adhoc", "version": 1}
    document = {"apiVersion": API_VERSION, "kind": "ReleasePolicy", "metadata": metadata, "spec": spec}
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _check_ids(document: Document, ids: Sequence[str]) -> None:
    for n, name in enumerate(ids):
        if name in ids[:n]:
            at = document.at(f"/spec/requires/{n}/id")
            raise InputError(Code.DUPLICATE_KEY, f"two requirements have the id {name!r}", at=at, fix="give each its own")
    for n, name in enumerate(document.spec["waivable"]):
        if name not in ids:
            at = document.at(f"/spec/waivable/{n}")
            raise InputError(Code.UNKNOWN_NAME, f"no requirement has the id {name!r}", at=at, fix=suggest(name, tuple(ids)))


@dataclass(frozen=True, slots=True)
class _Reader:
    document: Document
    catalogue: Catalogue
    profile: Profile | None
    adhoc: bool

    def requirement(self, n: int, item: Mapping[str, Any]) -> Requirement | NotApplicable:
        pointer = f"/spec/requires/{n}"
        if "contract" in item:
            return ContractRequirement(item["id"], self.document.at(pointer), item["contract"], item.get("min_version"))
        capability = self.catalogue.get(item["capability"], self.document.at(f"{pointer}/capability"))
        why = unmet(item.get("when", {}), self.profile, lambda name: self.document.at(f"{pointer}/when/{name}"))
        if why is not None:
            return NotApplicable(item["id"], self.document.at(pointer), capability.id, why)
        demand = self.demand(f"{pointer}/scope", item.get("scope", {}), capability)
        where = Location(f"{_OPTION} {format_require(capability.id, item.get('scope', {}))}") if self.adhoc else self.document.at(pointer)
        return CapabilityRequirement(item["id"], where, capability, demand.points(), demand.any, self.evidence(pointer, item))

    def demand(self, pointer: str, scope: Mapping[str, JsonValue], capability: Capability) -> Demand:
        resolved = {name: self.resolve(value, f"{pointer}/{name}") for name, value in scope.items()}
        demand = read_demand(resolved, self.document.at(pointer))
        missing = demand.unnamed(capability)
        if missing and not self.adhoc:
            raise InputError(
                Code.SCHEMA_INVALID,
                f"{capability.id} must name {', '.join(missing)}",
                at=self.document.at(pointer),
                fix=f"add {missing[0]} to its scope, or write {missing[0]}: any",
            )
        return Demand(demand.leaves, (*demand.any, *missing))

    def resolve(self, value: JsonValue, pointer: str) -> JsonValue:
        """The value itself, or what a `$profile.NAME` stands for."""
        if not isinstance(value, str) or not value.startswith("$profile."):
            return value
        at = self.document.at(pointer)
        if self.profile is None:
            raise InputError(Code.UNKNOWN_NAME, f"the policy asks for {value}, and there is no profile", at=at, fix="give --profile FILE")
        return self.profile.value(value.removeprefix("$profile."), at)

    def evidence(self, pointer: str, item: Mapping[str, Any]) -> EvidenceRules:
        rules: dict[str, Any] = {**self.document.spec.get("evidence", {}), **item.get("evidence", {})}
        default = EvidenceRules()
        where = pointer if "max_age" in item.get("evidence", {}) else "/spec"
        return EvidenceRules(
            rules.get("signed_by", default.signed_by),
            frozenset(rules.get("basis", default.basis)),
            self.max_age(rules["max_age"], f"{where}/evidence/max_age") if "max_age" in rules else default.max_age_ns,
            rules.get("min_runs", default.min_runs),
            rules.get("min_boots", default.min_boots),
            frozenset(map(Status, rules.get("accept", default.accept))),
        )

    def max_age(self, text: str, pointer: str) -> int | None:
        """Nanoseconds of `90d` or `36h`; None for `none`."""
        if text == "none":
            return None
        age = int(text[:-1]) * (DAY_NS if text.endswith("d") else HOUR_NS) if len(text) < 12 else _MAX_AGE_NS + 1
        if age > _MAX_AGE_NS:
            at = self.document.at(pointer)
            raise InputError(Code.BAD_NUMBER, f"{text} is more than a hundred years", at=at, fix="write none where age does not matter")
        return age
