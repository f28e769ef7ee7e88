"""The bundled oracle as a snapshot: its layout, its identity on each rank, its context digest, and publishing its cache.

Keys and values are layers of their own, `00.k` and `00.v`, so that exchanging them is exchanging two layers.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.cuda_restore.geometry import Geometry, Group, Layer, Layout
from countermark.cuda_restore.identity import (
    CHUNK_TOKENS,
    BoundaryHiddenPolicy,
    ContextSalt,
    DraftKvPolicy,
    Identity,
    context_digest,
    manager_pages_layout,
    revision_identity,
    salt_of,
)
from countermark.cuda_restore.manifest import Manifest
from countermark.cuda_restore.oracle import KEY, VALUE, Cache, Oracle
from countermark.cuda_restore.oracle_prompt import SPARK, WORDS, OracleShape, Prompt, write_prompt
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.topology import topology_of, topology_sha256
from countermark.cuda_restore.writer import write_snapshot

GROUP: Final = 0
"""All layers of the oracle are in one group."""

_REPOSITORY: Final = "countermark/oracle"
_SUFFIX: Final = {KEY: "k", VALUE: "v"}


def layout_of(shape: OracleShape) -> Layout:
    """One group of keys and values by turns, in pages of `page_tokens` tokens."""
    page = (shape.page_tokens, shape.head_dim)
    names = [f"{layer:02d}.{_SUFFIX[kind]}" for layer in range(shape.layers) for kind in (KEY, VALUE)]
    return Layout((Group(shape.page_tokens, tuple(Layer(name, "bfloat16", page, shape.page_bytes) for name in names)),))


def identity_of(shape: OracleShape, rank: int) -> Identity:
    """The identity of the oracle's cache on one rank. Another size of the network is another checkpoint."""
    checkpoint = revision_identity(_REPOSITORY, f"1-{shape.layers}-{shape.head_dim}")
    return Identity(
        target_checkpoint=checkpoint,
        draft_checkpoint=revision_identity("none", "none"),
        quantization_layout=manager_pages_layout("bf16", topology_sha256(topology_of(layout_of(shape)))),
        rope_layout="none",
        tp_degree=shape.ranks,
        dcp_degree=1,
        cp_kv_cache_interleave_size=1,
        dcp_shard_rank=0,
        tp_shard_rank=rank,
        boundary_hidden_policy=BoundaryHiddenPolicy.LIVE_FORWARD,
        draft_kv_policy=DraftKvPolicy.SEPARATE,
        record_schema=("target_ckv", "logical_positions"),
    )


def geometry_of(shape: OracleShape, rank: int) -> Geometry:
    """The pages of one rank."""
    return Geometry(identity_of(shape, rank), shape.tokens, layout_of(shape), (shape.pages,))


def digest_of(shape: OracleShape, prompt: Prompt) -> str:
    """The context digest of a prompt, which all ranks share."""
    return context_digest(salt_of(identity_of(shape, 0), ContextSalt.REQUEST_SCOPE_V3), prompt.tokens)


def publish_oracle(root: Path, shape: OracleShape, prompt: Prompt, *, object_bytes: int) -> tuple[LoadedManifest, ...]:
    """Prefill the prompt and publish every rank's cache under `root`; the manifests in rank order."""
    return publish_caches(root, shape, prompt, Oracle(shape).prefill(prompt), object_bytes=object_bytes)


def publish_caches(root: Path, shape: OracleShape, prompt: Prompt, caches: list[Cache], *, object_bytes: int) -> tuple[LoadedManifest, ...]:
    """Publish these caches as those of the prompt, whatever they hold."""
    digest = digest_of(shape, prompt)
    return tuple(
        write_snapshot(root, geometry_of(shape, rank), digest, [np.ascontiguousarray(cache).data], object_bytes=object_bytes)
        for rank, cache in enumerate(caches)
    )


def as_cache(shape: OracleShape, pages: NDArray[np.uint8]) -> Cache:
    """One rank's pages, in the order of the stream, as the cache that the network reads."""
    return pages.reshape(shape.layers, 2, shape.pages, shape.page_bytes)


def known_prompt(manifest: Manifest) -> tuple[OracleShape, Prompt] | None:
    """The shape and prompt of a snapshot that holds the oracle's own cache; nothing for any other snapshot.

    A snapshot says which context it is about by a digest alone, so only the prompts that the oracle writes by itself are known.
    """
    shape = OracleShape(ranks=max(manifest.identity.tp_degree, 2), tokens=max(manifest.committed_tokens, 2 * CHUNK_TOKENS))
    if manifest.identity.storage_key != identity_of(shape, max(manifest.identity.tp_shard_rank, 0)).storage_key:
        return None
    prompts = (write_prompt(shape, word) for word in WORDS if word != SPARK)
    return next(((shape, prompt) for prompt in prompts if digest_of(shape, prompt) == manifest.context_digest), None)
