"""Small snapshots on disk with known pages, and a device with an arena to restore them into."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from countermark.cuda_restore.arena import POISON, Arena, BlockTable
from countermark.cuda_restore.device import Buffer, Bytes, Device, Stream
from countermark.cuda_restore.engine import restore
from countermark.cuda_restore.geometry import Geometry, Group, Layer, Layout, ReusePolicy
from countermark.cuda_restore.identity import (
    BoundaryHiddenPolicy,
    ContextSalt,
    DraftKvPolicy,
    Identity,
    context_digest,
    manager_pages_layout,
    revision_identity,
    salt_of,
)
from countermark.cuda_restore.pool import open_ring
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.request import Authenticate, Interference, RestoreRequest
from countermark.cuda_restore.result import RestoreResult
from countermark.cuda_restore.slabs import DEFAULT_BOUNDS, Bounds
from countermark.cuda_restore.staging import StagingRing
from countermark.cuda_restore.store import CHUNKS
from countermark.cuda_restore.topology import topology_of, topology_sha256
from countermark.cuda_restore.trace import Recorder
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

Pages = Mapping[tuple[int, str], bytes]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published snapshot, where its store is, and the pages of every layer by group and name."""

    loaded: LoadedManifest
    root: Path
    geometry: Geometry
    pages: Pages

    @property
    def chunks(self) -> Path:
        return self.root / CHUNKS

    def object_path(self, index: int) -> Path:
        return self.chunks / self.loaded.manifest.objects[index].file_name

    def expected(self, arena: Arena, blocks: BlockTable) -> Bytes:
        """The arena as it must be after a restore over poison; written page by page, knowing nothing of spans."""
        memory = np.full(arena.size_bytes, POISON, np.uint8)
        for (group, name), data in self.pages.items():
            layer = [one.name for one in arena.layout.groups[group].layers].index(name)
            tensor = arena.tensors[group][layer]
            for page, block in enumerate(blocks.groups[group]):
                start = tensor.start + int(block) * tensor.stride
                source = data[page * tensor.bytes_per_page : (page + 1) * tensor.bytes_per_page]
                memory[start : start + tensor.bytes_per_page] = np.frombuffer(source, np.uint8)
        return memory


def small_layout() -> Layout:
    """Keys and values, a sliding group and a recurrent one; pages of 512, 256, 96 and 160 bytes."""
    return Layout(
        (
            Group(64, (Layer("0.k", "bfloat16", (64, 4), 512), Layer("0.v", "bfloat16", (64, 2), 256))),
            Group(256, (Layer("1.attn", "uint8", (96,), 96),), ReusePolicy.SLIDING, 256),
            Group(512, (Layer("2.state", "float32", (8, 5), 160),), ReusePolicy.RECURRENT_ALIGN),
        )
    )


def identity_of(layout: Layout, *, rank: int = 0, ranks: int = 1) -> Identity:
    """One rank of `ranks`, without DCP."""
    return Identity(
        target_checkpoint=revision_identity("org/target", "a" * 40),
        draft_checkpoint=revision_identity("org/draft", "b" * 40),
        quantization_layout=manager_pages_layout("bf16", topology_sha256(topology_of(layout))),
        rope_layout="neox",
        tp_degree=ranks,
        dcp_degree=1,
        cp_kv_cache_interleave_size=1,
        dcp_shard_rank=0,
        tp_shard_rank=rank,
        boundary_hidden_policy=BoundaryHiddenPolicy.LIVE_FORWARD,
        draft_kv_policy=DraftKvPolicy.SEPARATE,
        record_schema=("target_ckv", "logical_positions"),
    )


def make_pages(geometry: Geometry, seed: str = "") -> Pages:
    """Bytes for every layer, no two pages alike."""
    return {
        (number, layer.name): hashlib.shake_256(f"{seed}/{number}/{layer.name}".encode()).digest(count * layer.bytes_per_page)
        for number, (group, count) in enumerate(zip(geometry.layout.groups, geometry.block_counts, strict=True))
        for layer in group.layers
    }


def publish(root: Path, geometry: Geometry, *, object_bytes: int = 1024, seed: str = "", first_token: int = 0) -> Snapshot:
    """Write a snapshot of made-up pages; `first_token` makes another context."""
    tokens = range(first_token, first_token + geometry.committed_tokens)
    context = context_digest(salt_of(geometry.identity, ContextSalt.MULTIMODAL_V2), tokens)
    pages = make_pages(geometry, f"{seed}/{geometry.identity.rank}")
    root.mkdir(exist_ok=True)
    loaded = write_snapshot(root, geometry, context, layers_in_order(geometry, pages), object_bytes=object_bytes)
    return Snapshot(loaded, root, geometry, pages)


def small_snapshot(root: Path, *, rank: int = 0, ranks: int = 1, object_bytes: int = 1024, seed: str = "") -> Snapshot:
    """512 tokens: 8, 2 and 1 blocks, 6,496 bytes of pages, seven objects of 1 KiB."""
    layout = small_layout()
    geometry = Geometry(identity_of(layout, rank=rank, ranks=ranks), 512, layout, (8, 2, 1))
    return publish(root, geometry, object_bytes=object_bytes, seed=seed)


@dataclass(frozen=True, slots=True)
class Bench:
    """A poisoned arena on a device, ready for a restore of one snapshot."""

    device: Device
    stream: Stream
    ring: StagingRing
    destination: Buffer
    request: RestoreRequest

    def poison(self) -> None:
        self.device.fill(self.destination, POISON, self.stream)

    def restore(self, *, interference: Interference | None = None, recorder: Recorder | None = None) -> RestoreResult:
        prerequisite = self.device.record(self.stream)
        try:
            return restore(self.request, self.ring, prerequisite=prerequisite, interference=interference, recorder=recorder)
        finally:
            self.device.release(prerequisite)

    def memory(self) -> Bytes:
        return self.device.read(self.destination, 0, self.destination.size, self.stream)


@contextmanager
def bench(
    snapshot: Snapshot,
    device: Device,
    *,
    bounds: Bounds = DEFAULT_BOUNDS,
    authenticate: Authenticate = Authenticate.OBJECT,
    spare_blocks: int = 3,
    seed: int = 1,
    page_alignment_bytes: int = 1,
    ring_type: type[StagingRing] | None = None,
) -> Iterator[Bench]:
    """Allocate an arena with some spare blocks, poison it, and open the slots. The device stays open."""
    counts = snapshot.geometry.block_counts
    capacities = [count + 1 + spare_blocks for count in counts]
    arena = Arena.of(snapshot.geometry.layout, capacities, page_alignment_bytes=page_alignment_bytes)
    blocks = BlockTable.shuffled(counts, capacities, seed)
    stream, destination = device.new_stream(), device.allocate(arena.size_bytes)
    request = RestoreRequest(
        loaded=snapshot.loaded,
        chunks=snapshot.chunks,
        arena=arena,
        blocks=blocks,
        destination=destination,
        bounds=bounds,
        authenticate=authenticate,
    )
    with open_ring(device, snapshot.loaded.manifest, arena, blocks, bounds, ring_type or StagingRing) as ring:
        ready = Bench(device, stream, ring, destination, request)
        ready.poison()
        yield ready
