"""Write the golden snapshot from the format page alone, with nothing of countermark in it.

It was run once; its output is checked in as bytes. If our writer and our reader make the same mistake, they agree with each other but
not with these files. Run it as `python make_golden.py FOLDER`.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

TOKENS = 768
OBJECT_BYTES = 2048
BLOCK_COUNTS = [3, 2, 1]
TOPOLOGY = [
    {
        "group": 0,
        "spec": "full",
        "block_size": 256,
        "storage_block_size": 256,
        "page_size_bytes": 1536,
        "dcp_replicated": False,
        "dcp_shard_count": 1,
        "logical_tokens_per_block": 256,
        "reuse_policy": "full",
        "reuse_window_tokens": None,
        "eagle": False,
        "layers": ["model.layers.0.k", "model.layers.0.v"],
    },
    {
        "group": 1,
        "spec": "sliding",
        "block_size": 256,
        "storage_block_size": 256,
        "page_size_bytes": 640,
        "dcp_replicated": False,
        "dcp_shard_count": 1,
        "logical_tokens_per_block": 256,
        "reuse_policy": "sliding",
        "reuse_window_tokens": 256,
        "eagle": False,
        "layers": ["model.layers.10.attn", "model.layers.2.attn"],
    },
    {
        "group": 2,
        "spec": "recurrent_align",
        "block_size": 2304,
        "storage_block_size": 2304,
        "page_size_bytes": 1301,
        "dcp_replicated": False,
        "dcp_shard_count": 1,
        "logical_tokens_per_block": 2304,
        "reuse_policy": "recurrent_align",
        "reuse_window_tokens": None,
        "eagle": False,
        "layers": ["model.layers.1.state"],
        "recurrent_state": {
            "mamba_cache_mode": "align",
            "tokens_per_state": 2304,
            "num_speculative_blocks": 0,
            "num_prefill_checkpoint_blocks": 0,
        },
    },
]
LAYOUT = [
    {
        "block_size": 256,
        "layers": [
            {"name": "model.layers.0.k", "dtype": "bfloat16", "page_shape": [256, 2], "bytes_per_page": 1024},
            {"name": "model.layers.0.v", "dtype": "bfloat16", "page_shape": [256, 1], "bytes_per_page": 512},
        ],
        "reuse_policy": "full",
        "reuse_window_tokens": None,
    },
    {
        "block_size": 256,
        "layers": [
            {"name": "model.layers.10.attn", "dtype": "uint8", "page_shape": [384], "bytes_per_page": 384},
            {"name": "model.layers.2.attn", "dtype": "float8_e4m3fn", "page_shape": [256], "bytes_per_page": 256},
        ],
        "reuse_policy": "sliding",
        "reuse_window_tokens": 256,
    },
    {
        "block_size": 2304,
        "layers": [{"name": "model.layers.1.state", "dtype": "int8", "page_shape": [1301], "bytes_per_page": 1301}],
        "reuse_policy": "recurrent_align",
        "reuse_window_tokens": None,
    },
]


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def page(group: int, layer: str, number: int, size: int) -> bytes:
    """The bytes of one page: a hash counter, so that no two pages and no two halves of a page are alike."""
    seed = f"{group}/{layer}/{number}".encode()
    return b"".join(hashlib.sha256(seed + struct.pack("<I", count)).digest() for count in range(-(-size // 32)))[:size]


def main(folder: Path) -> None:
    layout = compact(LAYOUT)
    header = compact({"schema": "sparkcache-hybrid-pages/v1", "layout_sha256": sha256(layout), "block_counts": BLOCK_COUNTS})
    stream = b"SPHP1\x00" + struct.pack("<I", len(header)) + header
    for group, count in enumerate(BLOCK_COUNTS):
        layers: Any = LAYOUT[group]["layers"]
        for layer in sorted(layers, key=lambda entry: entry["name"]):
            for number in range(count):
                stream += page(group, layer["name"], number, layer["bytes_per_page"])

    identity = {
        "target_checkpoint": sha256(b"hf-revision-v1\x00golden/target\x00" + b"a" * 40),
        "draft_checkpoint": sha256(b"hf-revision-v1\x00golden/draft\x00" + b"b" * 40),
        "quantization_layout": "golden-layout:manager-pages-v2:" + sha256(compact(TOPOLOGY)),
        "rope_layout": "neox",
        "tp_degree": 2,
        "dcp_degree": 1,
        "cp_kv_cache_interleave_size": 1,
        "chunk_tokens": 256,
        "dcp_shard_rank": 0,
        "tp_shard_rank": 1,
        "boundary_hidden_policy": "live_forward",
        "draft_kv_policy": "separate",
        "record_schema": ["target_ckv", "logical_positions"],
    }
    salt = "sparkcache-context-v2-multimodal:" + sha256(compact({**identity, "tp_shard_rank": 0}))
    tokens = struct.pack(f"<{TOKENS}I", *(number * 7 % 32000 for number in range(TOKENS)))
    context = sha256(salt.encode() + b"\x00" + tokens)

    objects = []
    (folder / "chunks").mkdir(parents=True, exist_ok=True)
    for start in range(0, len(stream), OBJECT_BYTES):
        part = stream[start : start + OBJECT_BYTES]
        (folder / "chunks" / f"{sha256(part)}.spcc").write_bytes(part)
        objects.append({"sha256": sha256(part), "bytes": len(part), "encoded_start": start, "encoded_end": start + len(part)})
    manifest = {
        "schema": "sparkcache-page-snapshot-manifest/v2",
        "format_abi": 1,
        "storage_mode": "block_pages_v1",
        "identity": identity,
        "context_digest": context,
        "committed_tokens": TOKENS,
        "logical_chunk_tokens": 256,
        "logical_chunk_count": TOKENS // 256,
        "snapshot_encoded_bytes": len(stream),
        "snapshot_object_bytes": OBJECT_BYTES,
        "snapshot_objects": objects,
        "snapshot_sha256": sha256(stream),
    }
    manifest["metadata_sha256"] = sha256(compact(manifest))
    (folder / "layouts").mkdir(exist_ok=True)
    (folder / "layouts" / f"{sha256(layout)}.json").write_bytes(layout)
    home = folder / "manifests" / sha256(compact(identity))
    home.mkdir(parents=True, exist_ok=True)
    (home / f"{context}.json").write_bytes(compact(manifest))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
