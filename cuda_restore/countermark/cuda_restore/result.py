"""What a restore on one rank came to: verified, or recompute and why."""

from dataclasses import dataclass
from enum import StrEnum

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError, RefusedError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.events import Failed, FaultInjected, Recompute, Requested
from countermark.cuda_restore.occupancy import high_water
from countermark.cuda_restore.page_digest import DigestKey, Digests
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.slabs import Bounds
from countermark.cuda_restore.timing import Phase, Stopwatch, Timing
from countermark.cuda_restore.trace import Trace


class RestoreOutcome(StrEnum):
    """The only two ends of a restore."""

    VERIFIED = "verified"
    RECOMPUTE = "recompute"


class StreamDigest(StrEnum):
    """How the digest of the whole stream is known: hashed in a pass of its own, by the objects that cover it, or not, with a reason."""

    VERIFIED = "verified"
    IMPLIED = "implied"
    WAIVED = "waived"


@dataclass(frozen=True, slots=True)
class Counters:
    """`source_bytes` counts the authenticated objects, header included; `slabs` those planned; `launches` those submitted."""

    source_bytes: int = 0
    slabs: int = 0
    launches: int = 0
    device_error: int = 0

    def to_json(self) -> dict[str, int]:
        """The object `counters` of `restore-run/v1`."""
        return {
            "source_bytes": self.source_bytes,
            "slabs": self.slabs,
            "launches": self.launches,
            "device_error": self.device_error,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PageReadBack:
    """The digests of pages as they lie in the destination, under a key drawn after they were placed; shape (pages, 2)."""

    key: DigestKey
    digests: Digests


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RestoreResult:
    """One rank's restore. `error` is why it must be recomputed; sizes are bytes, `timing` is microseconds."""

    outcome: RestoreOutcome
    rank: int
    manifest: Digest
    placed_bytes: int
    objects: int
    counters: Counters
    timing: Timing
    trace: Trace
    error: CountermarkError | None = None
    read_back: PageReadBack | None = None

    @property
    def verified(self) -> bool:
        """Whether every byte was authenticated and placed, and nobody disturbed the run on purpose."""
        return self.outcome is RestoreOutcome.VERIFIED and self.fault is None

    @property
    def structural(self) -> Outcome:
        """The outcome as a check of structure; it says nothing about meaning."""
        return Outcome.PASS if self.outcome is RestoreOutcome.VERIFIED else Outcome.FAIL

    @property
    def fault(self) -> str | None:
        """The fault that was injected, if one was."""
        return next((event.fault for event in self.trace.events if isinstance(event, FaultInjected)), None)

    @property
    def failure(self) -> Failed | None:
        """Where the restore failed, if it did."""
        return next((event for event in self.trace.events if isinstance(event, Failed)), None)

    @property
    def bytes_per_second(self) -> int:
        """Verified bytes of the stream, header included, by the whole time of the restore; 0 when nothing was restored."""
        restored = self.counters.source_bytes if self.outcome is RestoreOutcome.VERIFIED else 0
        return restored * 1_000_000 // max(self.timing.total, 1)

    def demand_verified(self) -> None:
        """Raise `RefusedError` RECOMPUTE (exit 1) unless the prefix may be used."""
        if self.verified:
            return
        why = self.error.message if self.error else f"the fault {self.fault} was injected"
        raise RefusedError(Code.RECOMPUTE, f"rank {self.rank}: {why}", at=self.error.at if self.error else None, fix="recompute the prefix")

    def finding(self) -> Finding | None:
        """Why the prefix must be recomputed, as a finding; none for a verified restore."""
        if self.error is None:
            return None
        failed = self.failure
        place = f" object {failed.object}" if failed and failed.object is not None else ""
        return Finding(
            Code.RECOMPUTE,
            Outcome.FAIL,
            self.error.fix,
            checker="restore.verified-or-recompute",
            location=self.error.at,
            subject=f"rank {self.rank}{place}",
            required="every byte authenticated and placed",
            observed=f"{self.error.message} [{self.error.code}]",
        )

    def to_json(
        self, *, image: Digest | None = None, stream_digest: StreamDigest = StreamDigest.IMPLIED, waiver: str | None = None
    ) -> dict[str, JsonValue]:
        """The element of `ranks` in `restore-run/v1`. A recomputed prefix implies no stream digest; give a waiver for it."""
        marks = high_water(self.trace)
        return {
            "rank": self.rank,
            "image": str(image) if image else None,
            "manifest": str(self.manifest),
            "structural": str(self.structural),
            "bytes": self.counters.source_bytes if self.outcome is RestoreOutcome.VERIFIED else 0,
            "objects": self.objects,
            **self._stream_digest(stream_digest, waiver),
            "readers_max": marks.readers,
            "retained_bytes_max": marks.retained_bytes,
            "counters": dict(self.counters.to_json()),
            "timing": dict(self.timing.to_json()),
        }

    def _stream_digest(self, known: StreamDigest, waiver: str | None) -> dict[str, JsonValue]:
        if self.outcome is RestoreOutcome.RECOMPUTE:
            known, waiver = StreamDigest.WAIVED, waiver or "the prefix is recomputed"
        return {"stream_digest": str(known), **({"waiver": waiver} if waiver else {})}


def requested(loaded: LoadedManifest, bounds: Bounds, batch: int) -> Requested:
    """The first event of the restore of a manifest that was looked up."""
    found = loaded.manifest
    return Requested(
        found.identity.rank, loaded.digest, len(found.objects), found.encoded_bytes, bounds.readers, bounds.retained_bytes, batch
    )


def not_begun(first: Requested, error: CountermarkError, *, index: int | None = None) -> RestoreResult:
    """The result of a restore that failed before it could begin: at look-up, or while memory was allocated for it.

    `first` is the request as far as it is known; `index` is the object that could not be used, if it was one.
    """
    events = (first, Failed(Phase.LOOKUP, index, str(error.code)), Recompute())
    return RestoreResult(
        outcome=RestoreOutcome.RECOMPUTE,
        rank=first.rank,
        manifest=first.manifest,
        placed_bytes=0,
        objects=first.objects,
        counters=Counters(),
        timing=Stopwatch().stop(readers_read_ns=0, readers_hash_ns=0),
        trace=Trace(events),
        error=error,
    )
