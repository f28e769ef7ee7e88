"""A small snapshot of three groups, on disk and as values, for the tests of the restore engine."""

import hashlib
from pathlib import Path

import pytest

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
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.topology import topology_of, topology_sha256
from countermark.cuda_restore.writer import layers_in_order, write_snapshot

TOKENS = 512


@pytest.fixture(scope="session")
def layout() -> Layout:
    """Full, sliding and recurrent layers; pages of 512, 256, 96 and 160 bytes."""
    return Layout(
        (
            Group(128, (Layer("0.k", "bfloat16", (128, 2), 512), Layer("0.v", "torch.bfloat16", (128,), 256))),
            Group(256, (Layer("1.attn", "uint8", (96,), 96),), ReusePolicy.SLIDING, 256),
            Group(512, (Layer("2.state", "float32", (8, 5), 160),), ReusePolicy.RECURRENT_ALIGN),
        )
    )


@pytest.fixture(scope="session")
def identity(layout: Layout) -> Identity:
    """Rank 1 of TP2."""
    return Identity(
        target_checkpoint=revision_identity("org/target", "a" * 40),
        draft_checkpoint=revision_identity("org/draft", "b" * 40),
        quantization_layout=manager_pages_layout("bf16", topology_sha256(topology_of(layout))),
        rope_layout="neox",
        tp_degree=2,
        dcp_degree=1,
        cp_kv_cache_interleave_size=1,
        dcp_shard_rank=0,
        tp_shard_rank=1,
        boundary_hidden_policy=BoundaryHiddenPolicy.LIVE_FORWARD,
        draft_kv_policy=DraftKvPolicy.SEPARATE,
        record_schema=("target_ckv", "logical_positions"),
    )


@pytest.fixture(scope="session")
def geometry(identity: Identity, layout: Layout) -> Geometry:
    """512 tokens: four, two and one blocks."""
    return Geometry(identity, TOKENS, layout, (4, 2, 1))


@pytest.fixture(scope="session")
def context(identity: Identity) -> str:
    """The digest of the tokens 0 to 511."""
    return context_digest(salt_of(identity, ContextSalt.MULTIMODAL_V2), range(TOKENS))


@pytest.fixture
def layer_pages(geometry: Geometry) -> dict[tuple[int, str], bytes]:
    """Every layer's pages, no two of them alike."""
    return {
        (number, layer.name): hashlib.shake_256(f"{number}/{layer.name}".encode()).digest(count * layer.bytes_per_page)
        for number, (group, count) in enumerate(zip(geometry.layout.groups, geometry.block_counts, strict=True))
        for layer in group.layers
    }


@pytest.fixture
def snapshot(tmp_path: Path, geometry: Geometry, context: str, layer_pages: dict[tuple[int, str], bytes]) -> LoadedManifest:
    """The snapshot published under `tmp_path` in objects of 1,000 bytes."""
    return write_snapshot(tmp_path, geometry, context, layers_in_order(geometry, layer_pages), object_bytes=1000)
