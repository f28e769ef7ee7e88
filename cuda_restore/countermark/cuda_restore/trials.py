"""The bundled oracle, published once and restored as often as there is something to show: undisturbed, and under every fault."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from countermark.attestations.errors import CountermarkError
from countermark.cuda_restore.destination import Destination, poisoned
from countermark.cuda_restore.device import Bytes, Device, DeviceKind
from countermark.cuda_restore.faults import Fault, Way
from countermark.cuda_restore.geometry import Layout
from countermark.cuda_restore.oracle import Answer, Oracle
from countermark.cuda_restore.oracle_prompt import FILLERS, OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import as_cache, geometry_of, publish_caches
from countermark.cuda_restore.reader import LoadedManifest, read_object
from countermark.cuda_restore.reference import differing_pages, expected_digests
from countermark.cuda_restore.result import PageReadBack
from countermark.cuda_restore.rungs import Rung
from countermark.cuda_restore.slab_reuse import StaleSlot, restore_without_waiting
from countermark.cuda_restore.store import CHUNKS, Folder
from countermark.cuda_restore.tampering import Tampering
from countermark.cuda_restore.trace import Trace

OBJECTS: Final = 8
"""About how many objects the oracle's stream is cut into, so that slots are reused and pages straddle objects."""


@dataclass(frozen=True, slots=True, eq=False)
class RankTrial:
    """What one rank's restore left: pages that differ from what is stored, by number in stream order, and all their bytes.

    With an `error` the engine itself refused, and there is nothing to look at.
    """

    trace: Trace
    error: CountermarkError | None
    bad_pages: tuple[int, ...]
    pages: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One restore of all ranks, and what the oracle made of it; no answer when a rank has an error."""

    fault: str | None
    ranks: tuple[RankTrial, ...]
    answer: Answer | None
    codeword: str

    @property
    def seen_by(self) -> set[Rung]:
        """The rungs that notice something."""
        seen = {Rung.COVERAGE} if any(rank.error for rank in self.ranks) else set()
        if any(rank.bad_pages for rank in self.ranks):
            seen.add(Rung.READBACK)
        if self.answer and self.answer.word != self.codeword:
            seen.add(Rung.ORACLE)
        return seen


class Trials:
    """The oracle's snapshot of every rank in a store, beside it that of the same prompt with one token changed, and a device."""

    def __init__(self, device: Device, root: Path, shape: OracleShape, codeword: str = "red") -> None:
        self._device, self._root, self._shape = device, root, shape
        self._oracle, self._prompt = Oracle(shape), write_prompt(shape, codeword)
        stored = self._oracle.prefill(self._prompt)
        self._stored = np.stack(stored)
        self._foreign = np.stack(self._oracle.prefill(write_prompt(shape, codeword, episode=1)))
        filler = next(position for position, token in enumerate(self._prompt.tokens) if token < FILLERS)
        changed = self._prompt.changed_at(filler)
        object_bytes = stored[0].size // OBJECTS
        self._manifests = publish_caches(root, shape, self._prompt, stored, object_bytes=object_bytes)
        self._others = publish_caches(root, shape, changed, self._oracle.prefill(changed), object_bytes=object_bytes)

    @property
    def manifests(self) -> tuple[LoadedManifest, ...]:
        """The oracle's manifests, in rank order."""
        return self._manifests

    def run(self, fault: Fault | None = None) -> Trial:
        """Restore every rank into poison, under the fault if there is one, read it back and ask the oracle."""
        ranks = tuple(self._restore(rank, fault) for rank in range(self._shape.ranks))
        answer = None if any(rank.error for rank in ranks) else self._ask(ranks, fault)
        return Trial(fault.name if fault else None, ranks, answer, self._prompt.codeword)

    def _ask(self, ranks: tuple[RankTrial, ...], fault: Fault | None) -> Answer:
        tokens = self._shape.tokens
        if fault and fault.way is Way.SHORTENED:
            tokens -= fault.lost_pages * self._shape.page_tokens or 1
        return self._oracle.answer(self._prompt, [as_cache(self._shape, rank.pages) for rank in ranks], tokens=tokens)

    def _restore(self, rank: int, fault: Fault | None) -> RankTrial:
        loaded = (self._others if fault and fault.way is Way.EXCHANGED else self._manifests)[rank]
        geometry = geometry_of(self._shape, rank)
        with poisoned(self._device, geometry.layout, geometry.block_counts, seed=rank) as destination:
            if fault and fault.way is Way.REFILLED and self._device.info.kind is DeviceKind.CPU:
                return self._refill(destination, loaded, fault)
            result = destination.restore(loaded, self._root / CHUNKS, self._interference(fault, destination, rank) if fault else None)
            if result.read_back is None:
                return RankTrial(result.trace, result.error, (), np.empty(0, np.uint8))
            return self._look(destination, loaded, result.trace, result.read_back)

    def _interference(self, fault: Fault, destination: Destination, rank: int) -> Tampering | StaleSlot:
        if fault.way is Way.REFILLED:
            return StaleSlot(fault.name, _objects(self._root / CHUNKS, self._manifests[rank]))
        return Tampering.of(fault, destination.homes, self._stored, self._foreign, rank)

    def _refill(self, destination: Destination, loaded: LoadedManifest, fault: Fault) -> RankTrial:
        request = destination.request(loaded, self._root / CHUNKS)
        trace = restore_without_waiting(request, self._device, prerequisite=destination.poisoned, fault=fault.name)
        return self._look(destination, loaded, trace, destination.read_back())

    def _look(self, destination: Destination, loaded: LoadedManifest, trace: Trace, found: PageReadBack) -> RankTrial:
        bad = bad_pages(loaded, self._root / CHUNKS, destination.arena.layout, found)
        return RankTrial(trace, None, bad, destination.pages())


def bad_pages(loaded: LoadedManifest, chunks: Path, layout: Layout, found: PageReadBack) -> tuple[int, ...]:
    """The pages, by number in stream order, that were read back with other digests than the stored ones have."""
    with Folder.at(chunks) as folder:
        expected = expected_digests(loaded.manifest, folder, layout, found.key)
    return tuple(differing_pages(expected, found.digests))


def _objects(chunks: Path, loaded: LoadedManifest) -> list[Bytes]:
    """Every object of a small snapshot, authenticated."""
    with Folder.at(chunks) as folder:
        found = [np.empty(descriptor.size_bytes, np.uint8) for descriptor in loaded.manifest.objects]
        for descriptor, data in zip(loaded.manifest.objects, found, strict=True):
            read_object(folder, descriptor, data.data)
    return found
