"""The bundled oracle, published once and restored as often as there is something to show: undisturbed, and under every fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from countermark.attestations.errors import CountermarkError
from countermark.cuda_restore.device import Bytes, Device, DeviceKind
from countermark.cuda_restore.faults import Fault, Way
from countermark.cuda_restore.oracle import Answer, Oracle
from countermark.cuda_restore.oracle_prompt import FILLERS, OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import as_cache, geometry_of, publish_caches
from countermark.cuda_restore.readback import bad_pages, by_reference, pages_of, read_back
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.reference import page_homes
from countermark.cuda_restore.request import Advance, RestoreRequest, unwatched
from countermark.cuda_restore.result import PageReadBack
from countermark.cuda_restore.rungs import Rung
from countermark.cuda_restore.session import RankSession, open_session
from countermark.cuda_restore.slab_reuse import StaleSlot, restore_without_waiting
from countermark.cuda_restore.slabs import read_slab, slabs_of
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
    def why(self) -> str | None:
        """Why the codeword was not answered; nothing when it was."""
        errors = [str(rank.error) for rank in self.ranks if rank.error]
        if errors or self.answer is None:
            return errors[0] if errors else "no answer"
        return self.answer.why

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

    def __init__(self, device: Device, root: Path, shape: OracleShape, codeword: str = "red", *, advance: Advance = unwatched) -> None:
        self._device, self._chunks, self._shape, self._advance = device, root / CHUNKS, shape, advance
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

    @property
    def foreign_manifests(self) -> tuple[LoadedManifest, ...]:
        """Those of the prompt with one token changed."""
        return self._others

    def run(self, fault: Fault | None = None) -> Trial:
        """Restore every rank into poison, under the fault if there is one, read it back and ask the oracle."""
        ranks = tuple(self._restore(rank, fault) for rank in range(self._shape.ranks))
        answer = None if any(rank.error for rank in ranks) else self._ask(ranks, fault)
        self._advance(trial_bytes(self._shape))
        return Trial(fault.name if fault else None, ranks, answer, self._prompt.codeword)

    @contextmanager
    def poisoned(self, rank: int, *, foreign: bool = False) -> Iterator[RankSession]:
        """A session for one rank's snapshot, or for that of the changed prompt, with nothing in its cache."""
        loaded = (self._others if foreign else self._manifests)[rank]
        with open_session(self._device, loaded, self._chunks, geometry_of(self._shape, rank)) as opened:
            session = by_reference(opened)
            session.poison()
            yield session

    def damage_an_object(self, rank: int) -> None:
        """Change one stored byte of a rank's second object for good; run nothing but what must fail after that."""
        path = self._chunks / self._manifests[rank].manifest.objects[1].file_name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def _ask(self, ranks: tuple[RankTrial, ...], fault: Fault | None) -> Answer:
        tokens = self._shape.tokens
        if fault and fault.way is Way.SHORTENED:
            tokens -= fault.lost_pages * self._shape.page_tokens or 1
        return self._oracle.answer(self._prompt, [as_cache(self._shape, rank.pages) for rank in ranks], tokens=tokens)

    def _restore(self, rank: int, fault: Fault | None) -> RankTrial:
        with self.poisoned(rank, foreign=fault is not None and fault.way is Way.EXCHANGED) as session:
            if fault and fault.way is Way.REFILLED and self._device.info.kind is DeviceKind.CPU:
                trace = restore_without_waiting(session, fault.name)
                return _look(session, trace, read_back(session))
            result = session.restore(self._interference(fault, session, rank) if fault else None)
            if result.read_back is None:
                return RankTrial(result.trace, result.error, (), np.empty(0, np.uint8))
            return _look(session, result.trace, result.read_back)

    def _interference(self, fault: Fault, session: RankSession, rank: int) -> Tampering | StaleSlot:
        if fault.way is Way.REFILLED:
            return StaleSlot(fault.name, _slabs(self._chunks, session.request))
        homes = page_homes(session.request.arena, session.request.blocks)
        return Tampering.of(fault, homes, self._stored, self._foreign, rank)


def trial_bytes(shape: OracleShape) -> int:
    """The page bytes that one trial restores, over all ranks."""
    return sum(geometry_of(shape, rank).payload_bytes for rank in range(shape.ranks))


def _look(session: RankSession, trace: Trace, found: PageReadBack) -> RankTrial:
    return RankTrial(trace, None, bad_pages(session, found), pages_of(session))


def _slabs(chunks: Path, request: RestoreRequest) -> list[Bytes]:
    """Every slab of a small snapshot, authenticated."""
    slabs = slabs_of(request.loaded.manifest.objects, request.bounds)
    found = [np.empty(slab.size_bytes, np.uint8) for slab in slabs]
    with Folder.at(chunks) as folder:
        for slab, data in zip(slabs, found, strict=True):
            read_slab(folder, slab, data.data)
    return found
