"""The bytes that everything is measured on: one context of 131,072 tokens, published as our snapshot and as plain safetensors files.

Six layers of 64 KiB pages and one recurrent state that fills up to exactly the size asked for. The bytes are random, so nothing that
compresses or deduplicates on the way looks faster than it is.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from countermark.attestations.codes import Code
from countermark.attestations.errors import UsageError
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
from countermark.cuda_restore.manifest import OBJECT_BYTES_MAX
from countermark.cuda_restore.reader import LoadedManifest, load_manifest
from countermark.cuda_restore.stream import StreamLayout
from countermark.cuda_restore.topology import topology_of, topology_sha256
from countermark.cuda_restore.writer import write_snapshot

WHOLE_BYTES: Final = 813_068_464
"""One rank's share of 131,072 tokens in the published runs that the engine is compared with."""

OBJECT_BYTES: Final = {"macro": OBJECT_BYTES_MAX, "chunk": 1_588_032}
"""Of `WHOLE_BYTES`: 13 objects as a flat snapshot has them, and 512, one for 256 tokens."""

PAGE_BYTES: Final = 64 * 1024
TOKENS: Final = 131_072
_LAYERS, _BLOCK_TOKENS, _CHUNK_TOKENS = 6, 64, 256
_PIECE_BYTES: Final = 8 * 1024 * 1024
_SEED: Final = 20_261_202


@dataclass(frozen=True, slots=True)
class DataSet:
    """A snapshot under `root`, and beside it the same objects as safetensors files, in the same order."""

    root: Path
    loaded: LoadedManifest
    tensors: tuple[Path, ...]

    @classmethod
    def open(cls, root: Path) -> Self:
        """The data set that was generated under `root`."""
        manifest = next(root.glob("manifests/*/*.json"))
        return cls(root, load_manifest(manifest), tuple(sorted(root.glob("tensors/*.safetensors"))))

    @property
    def chunks(self) -> Path:
        """The folder of objects."""
        return self.root / "chunks"

    @property
    def encoded_bytes(self) -> int:
        """The bytes of all objects."""
        return self.loaded.manifest.encoded_bytes

    @property
    def objects(self) -> tuple[tuple[Path, int, str], ...]:
        """Path, bytes and hex SHA-256 of every object in stream order."""
        return tuple((self.chunks / one.file_name, one.size_bytes, one.digest.hex) for one in self.loaded.manifest.objects)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that anybody reads."""
        return (self.loaded.path, *(path for path, _, _ in self.objects), *self.tensors)


def generate(root: Path, encoded_bytes: int, object_bytes: int) -> DataSet:
    """Write the data set under `root`, synced to disk. `UsageError` when so few bytes hold no chunk of tokens."""
    geometry = _geometry(encoded_bytes)
    context = context_digest(salt_of(geometry.identity, ContextSalt.MULTIMODAL_V2), range(geometry.committed_tokens))
    root.mkdir(parents=True)
    loaded = write_snapshot(root, geometry, context, _random(geometry.payload_bytes), object_bytes=object_bytes)
    (root / "tensors").mkdir()
    for one in loaded.manifest.objects:
        _wrap(root / "chunks" / one.file_name, root / "tensors" / f"{one.index:04d}.safetensors", one.index, one.size_bytes)
    return DataSet.open(root)


def _geometry(encoded_bytes: int) -> Geometry:
    per_block = _LAYERS * PAGE_BYTES
    fitting = encoded_bytes // per_block * _BLOCK_TOKENS // _CHUNK_TOKENS * _CHUNK_TOKENS
    if not fitting:
        least = per_block * _CHUNK_TOKENS // _BLOCK_TOKENS
        raise UsageError(Code.BAD_NUMBER, f"{encoded_bytes} bytes hold no pages", fix=f"measure at least {2 * least} bytes")
    tokens = min(TOKENS, fitting)
    smallest = StreamLayout.of(_with_state(tokens, 1)).encoded_bytes
    if smallest > encoded_bytes:  # the header took what the state needs
        smallest = StreamLayout.of(_with_state(tokens := tokens - _CHUNK_TOKENS, 1)).encoded_bytes
    return _with_state(tokens, 1 + encoded_bytes - smallest)


def _with_state(tokens: int, state_bytes: int) -> Geometry:
    pages = tuple(Layer(f"{layer:02d}.kv", "bfloat16", (_BLOCK_TOKENS, 512), PAGE_BYTES) for layer in range(_LAYERS))
    state = Layer("state", "uint8", (state_bytes,), state_bytes)
    layout = Layout((Group(_BLOCK_TOKENS, pages), Group(_CHUNK_TOKENS, (state,), ReusePolicy.RECURRENT_ALIGN)))
    return Geometry(_identity(layout), tokens, layout, (tokens // _BLOCK_TOKENS, 1))


def _identity(layout: Layout) -> Identity:
    return Identity(
        target_checkpoint=revision_identity("bench/target", "a" * 40),
        draft_checkpoint=revision_identity("bench/draft", "b" * 40),
        quantization_layout=manager_pages_layout("bf16", topology_sha256(topology_of(layout))),
        rope_layout="neox",
        tp_degree=1,
        dcp_degree=1,
        cp_kv_cache_interleave_size=1,
        dcp_shard_rank=0,
        tp_shard_rank=0,
        boundary_hidden_policy=BoundaryHiddenPolicy.LIVE_FORWARD,
        draft_kv_policy=DraftKvPolicy.SEPARATE,
        record_schema=("target_ckv", "logical_positions"),
    )


def _random(size: int) -> Iterator[bytes]:
    draw = np.random.default_rng(_SEED)
    for start in range(0, size, _PIECE_BYTES):
        yield draw.bytes(min(_PIECE_BYTES, size - start))


def _wrap(source: Path, target: Path, index: int, size: int) -> None:
    """One safetensors file with one tensor of bytes: the length of the header, the header, the bytes. The name is new in every file."""
    header = json.dumps({f"object.{index:04d}": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with source.open("rb") as data, target.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        shutil.copyfileobj(data, file, _PIECE_BYTES)
        file.flush()
        os.fsync(file.fileno())
