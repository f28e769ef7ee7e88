"""The closed vocabulary of a restore's trace: what can happen, and what is said about it.

An event stands before the act that it allows (`submitted` before the slab is queued) or behind the fact that it states
(`authenticated`), so an order of events is an order of acts. There are no times. Digests are typed, so none can be shortened.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from countermark.attestations.digests import Digest
from countermark.cuda_restore.timing import Phase


@dataclass(frozen=True, slots=True)
class Requested:
    """The beginning. No slab is placed before the `batch` slabs around it are authenticated; `retained_bytes` bounds host memory."""

    name: ClassVar = "requested"
    rank: int
    manifest: Digest
    objects: int
    encoded_bytes: int
    readers: int
    retained_bytes: int
    batch: int


@dataclass(frozen=True, slots=True)
class FaultInjected:
    """This run was disturbed on purpose, by the fault of that name; it can prove only that the fault is caught."""

    name: ClassVar = "fault-injected"
    fault: str


@dataclass(frozen=True, slots=True)
class ManifestReread:
    """The manifest file was read again and is what was looked up."""

    name: ClassVar = "manifest-reread"
    manifest: Digest


@dataclass(frozen=True, slots=True)
class ReadBegun:
    """A reader has slot number `slot` for a slab, and begins to read an object of `bytes`, which belongs to that slab, into it."""

    name: ClassVar = "read-begun"
    object: int
    slab: int
    slot: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Authenticated:
    """An object has the SHA-256 that the manifest promises."""

    name: ClassVar = "authenticated"
    object: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class HeaderParsed:
    """The stream header was read from the first object."""

    name: ClassVar = "header-parsed"
    layout: Digest
    header_bytes: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The span tables exist, and write each of `bytes` destination bytes exactly once."""

    name: ClassVar = "planned"
    slabs: int
    spans: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """The placement is open: whatever it writes runs after the prerequisite event."""

    name: ClassVar = "ordered"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A slab goes to the device: one copy, one launch."""

    name: ClassVar = "submitted"
    slab: int
    spans: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Discarded:
    """A slab's slot is returned with nothing placed from it."""

    name: ClassVar = "discarded"
    slab: int


@dataclass(frozen=True, slots=True)
class Completed:
    """Every slab was waited for; the device counted `placed_bytes` and set `device_error`, 0 when nothing was refused."""

    name: ClassVar = "completed"
    source_bytes: int
    slabs: int
    launches: int
    placed_bytes: int
    device_error: int


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The digests of that many pages were read back from the destination."""

    name: ClassVar = "read-back"
    pages: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The restore cannot be verified: in which phase, at which object if at one, and the code or the kind of the interruption."""

    name: ClassVar = "failed"
    phase: Phase
    object: int | None
    cause: str


@dataclass(frozen=True, slots=True)
class Aborted:
    """The placement ended early, after everything that had been submitted was waited for."""

    name: ClassVar = "aborted"


@dataclass(frozen=True, slots=True)
class Verified:
    """The end: every byte authenticated and placed."""

    name: ClassVar = "verified"


@dataclass(frozen=True, slots=True)
class Recompute:
    """The end: nothing of the prefix may be used."""

    name: ClassVar = "recompute"


TraceEvent: TypeAlias = (
    Requested
    | FaultInjected
    | ManifestReread
    | ReadBegun
    | Authenticated
    | HeaderParsed
    | Planned
    | Ordered
    | Submitted
    | Discarded
    | Completed
    | ReadBack
    | Failed
    | Aborted
    | Verified
    | Recompute
)
Terminal: TypeAlias = Verified | Recompute
