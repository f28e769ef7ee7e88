"""What a policy demands of an image: a capability in a scope, or a contract."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from countermark.attestations.codes import Code, Status
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.catalogue import Capability, suggest
from countermark.contracts.scope import COUNT_LEAVES, DIMENSIONS, Leaves, Value, describe, expand, leaves_of

ANY: Final = "any"
HOUR_NS: Final = 3600 * 1_000_000_000
DAY_NS: Final = 24 * HOUR_NS
_MAX_POINTS: Final = 1024
_TEXT_ARGUMENTS: Final = ("platform", "system", "publication_mode", "settings")


@dataclass(frozen=True, slots=True)
class EvidenceRules:
    """What evidence must be to count. `max_age_ns` is counted from the end of the observation; None: any age."""

    signed_by: str = "qualifier"
    basis: frozenset[str] = frozenset({"measured"})
    max_age_ns: int | None = 90 * DAY_NS
    min_runs: int = 1
    min_boots: int = 1
    accept: frozenset[Status] = frozenset({Status.QUALIFIED})

    @property
    def max_age_text(self) -> str:
        """The greatest age in words of a policy."""
        if self.max_age_ns is None:
            return "none"
        days, rest = divmod(self.max_age_ns, DAY_NS)
        return f"{self.max_age_ns // HOUR_NS}h" if rest else f"{days}d"


@dataclass(frozen=True, slots=True)
class CapabilityRequirement:
    """A capability at each of `points`, every one of which must be covered. `any` lists the dimensions that were left open."""

    id: str
    location: Location
    capability: Capability
    points: tuple[Leaves, ...]
    any: tuple[str, ...]
    evidence: EvidenceRules

    def __str__(self) -> str:
        """The capability and its points, in words for people."""
        places = "; ".join(filter(None, map(describe, self.points)))
        return f"{self.capability.id} at {places}" if places else self.capability.id


@dataclass(frozen=True, slots=True)
class ContractRequirement:
    """A contract, of at least a version, that must hold in the repository the image was built from."""

    id: str
    location: Location
    contract: str
    min_version: int | None = None

    def __str__(self) -> str:
        return f"contract {self.contract}" + (f" version {self.min_version} or later" if self.min_version else "")


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A requirement whose condition the profile does not meet. It counts neither as evaluated nor as satisfied."""

    id: str
    location: Location
    capability: str
    why: str

    def __str__(self) -> str:
        return self.capability


Requirement: TypeAlias = CapabilityRequirement | ContractRequirement


@dataclass(frozen=True, slots=True)
class Demand:
    """The dimensions that a requirement names: each leaf with the values that must all be covered, and those left open as `any`."""

    leaves: Mapping[str, tuple[Value, ...]]
    any: tuple[str, ...]

    def points(self) -> tuple[Leaves, ...]:
        """Every combination of the values."""
        return tuple(dict(zip(self.leaves, values, strict=True)) for values in itertools.product(*self.leaves.values()))

    def unnamed(self, capability: Capability) -> tuple[str, ...]:
        """The dimensions that the capability must have named and that are neither named nor `any`. `topology` is named by TP and DCP."""
        return tuple(missing for dimension in capability.must_name for missing in self._missing(dimension))

    def _missing(self, dimension: str) -> tuple[str, ...]:
        wanted = ("tp", "dcp") if dimension == "topology" else leaves_of(dimension)
        lacking = tuple(leaf for leaf in wanted if leaf not in self.leaves and leaf not in self.any and dimension not in self.any)
        return (dimension,) if len(lacking) == len(wanted) else lacking


def read_demand(scope: Mapping[str, JsonValue], at: Location) -> Demand:
    """Read the `scope` of a requirement whose references to a profile are resolved. `InputError` for values of another form."""
    leaves: dict[str, tuple[Value, ...]] = {}
    for dimension, value in scope.items():
        for leaf, values in _demanded(dimension, value, at).items():
            if leaves.setdefault(leaf, values) != values:
                raise _invalid(f"{leaf} is demanded twice, as {leaves[leaf][0]} and as {values[0]}", "name it once", at)
    left_open = tuple(dimension for dimension, value in scope.items() if value == ANY)
    for dimension in left_open:
        named = [leaf for leaf in leaves_of(dimension) if leaf in leaves]
        if named:
            raise _invalid(f"{dimension} is any, yet {named[0]} is named", "name it or leave it open", at)
    if math.prod(map(len, leaves.values())) > _MAX_POINTS:
        raise InputError(Code.TOO_LARGE, f"more than {_MAX_POINTS} combinations", at=at, fix="split the requirement, or demand fewer")
    return Demand(leaves, left_open)


def _demanded(dimension: str, value: JsonValue, at: Location) -> dict[str, tuple[Value, ...]]:
    if value == ANY:
        return {}
    values = value if isinstance(value, list) else [value]
    found = [expand(dimension, item) for item in values]
    if not found or not all(found):
        raise _invalid(f"{value!r} is not a value of {dimension}", "write it as the documents page does", at)
    return {leaf: tuple(item[leaf] for item in found) for leaf in found[0]}


def parse_require(text: str) -> dict[str, JsonValue]:
    """Read `CAPABILITY@k=v,k=v` of the command line as a requirement object of a ReleasePolicy; `InputError` for anything else.

    Keys are dimensions; values are integers, `TP4/DCP1`, `repository@revision`, text, or `any`.
    """
    at = Location("--require")
    capability, mark, rest = text.partition("@")
    pairs = [part.partition("=") for part in rest.split(",")] if mark else []
    scope: dict[str, JsonValue] = {}
    for name, equals, value in pairs:
        if not equals or not value:
            raise _invalid(f"{text!r} is not of the form CAPABILITY@k=v,k=v", "write it like restore.correctness@tp=4,dcp=1", at)
        if name not in DIMENSIONS:
            raise InputError(Code.UNKNOWN_NAME, f"{name!r} is no dimension of a scope", at=at, fix=suggest(name, DIMENSIONS))
        if name in scope:
            raise InputError(Code.DUPLICATE_KEY, f"{name} stands twice in {text!r}", at=at, fix="give --require once for each value")
        scope[name] = _argument(name, value, at)
    return {"id": capability[:64], "capability": capability, **({"scope": scope} if scope else {})}


def _argument(name: str, text: str, at: Location) -> JsonValue:
    if text == ANY or name in ("topology", *_TEXT_ARGUMENTS):
        return text
    if name in ("model", "draft"):
        repository, _, revision = text.rpartition("@")
        return {"repository": repository, "revision": revision}
    if name not in COUNT_LEAVES:
        raise _invalid(f"{name} cannot be given on the command line", "write a policy file", at)
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise _invalid(f"{name} is a whole number, not {text!r}", "give digits only", at)
    return int(text)


def format_require(capability: str, scope: Mapping[str, JsonValue]) -> str:
    """The inverse of `parse_require`, for people."""
    pairs = [f"{name}={_shown(value)}" for name, value in scope.items()]
    return f"{capability}@{','.join(pairs)}" if pairs else capability


def _shown(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"{value.get('repository')}@{value.get('revision')}"
    return str(value)


def _invalid(message: str, fix: str, at: Location) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=at, fix=fix)
