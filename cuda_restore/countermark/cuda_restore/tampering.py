"""How a fault gets between authentication and placement: the hand that the engine's one door for it lets in."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.device import Bytes
from countermark.cuda_restore.faults import Contents, Fault
from countermark.cuda_restore.spans import SpanTable


@dataclass(frozen=True, slots=True, eq=False)
class Tampering:
    """An `Interference` that moves pages, replaces their bytes, or does nothing but name a fault that happens elsewhere.

    `homes` is the page table of the rank's arena in stream order. `moved` gives for each page the one whose home it goes to, and
    `replaced` new bytes for some pages.
    """

    fault: str
    homes: NDArray[np.void]
    moved: NDArray[np.int64]
    replaced: Mapping[int, Bytes]

    @classmethod
    def of(cls, fault: Fault, homes: NDArray[np.void], stored: Contents, foreign: Contents, rank: int) -> "Tampering":
        """What the fault does to one rank.

        Pages that merely change places on a rank are placed by wrong spans, as a broken plan would place them. What comes twice, or from
        another rank, is no matter of one launch's spans, so there the bytes are replaced.
        """
        sources = fault.sources(stored.shape[:-1])
        contents = fault.contents(stored, foreign).reshape(-1, stored.shape[-1])
        own = np.arange(sources.size).reshape(sources.shape)[rank].ravel()
        arriving = sources[rank].ravel()
        if (np.sort(arriving) == own).all():
            moved = np.empty(len(own), np.int64)
            moved[arriving - own[0]] = np.arange(len(own))
            arriving = own
        else:
            moved = np.arange(len(own))
        changed = np.flatnonzero((contents[arriving] != stored.reshape(contents.shape)[own]).any(axis=1))
        return cls(fault.name, homes, moved, {int(page): contents[arriving[page]] for page in changed})

    @classmethod
    def none(cls, fault: str, homes: NDArray[np.void]) -> "Tampering":
        """Nothing but the name, for a fault that happens elsewhere."""
        return cls(fault, homes, np.arange(len(homes)), {})

    def disturb(self, index: int, payload: Bytes, spans: SpanTable) -> SpanTable:  # noqa: ARG002 - every object alike
        """Replace and move the parts of pages that lie in the object."""
        starts = self.homes["start"].astype(np.int64)
        by_start = np.argsort(starts)
        pages = by_start[np.searchsorted(starts[by_start], spans.destination, side="right") - 1]
        offsets = spans.destination - starts[pages]
        for page, offset, source, size in zip(pages.tolist(), offsets.tolist(), spans.source.tolist(), spans.sizes.tolist(), strict=True):
            if page in self.replaced:
                payload[source : source + size] = self.replaced[page][offset : offset + size]
        return SpanTable.of(spans.source, starts[self.moved[pages]] + offsets, spans.sizes, alignment=spans.alignment)
