"""Safetensors files and their shard indexes, by their headers alone; no tensor is read.

Source: the safetensors format description: u64 little-endian header size N, N bytes of JSON, then the data, which the tensors' offsets
cover without holes. So a shard that was cut off shows in its header.
"""

import posixpath
from collections.abc import Mapping
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.recorders.files import opened
from countermark.recorders.shape import Node

MAX_HEADER_BYTES = 100_000_000
MAX_INDEX_BYTES = 64 << 20
SUFFIX = ".safetensors"
INDEX_SUFFIX = ".safetensors.index.json"


def tensor_names(path: Path, name: str) -> frozenset[str]:
    """The tensors of one file. An `InputError` when the header is not one, or does not cover the file's bytes exactly."""
    with opened(path, name) as file:
        size_bytes = file.seek(0, 2)
        file.seek(0)
        header_bytes = int.from_bytes(file.read(8), "little")
        if size_bytes < 10 or not 2 <= header_bytes <= min(MAX_HEADER_BYTES, size_bytes - 8):
            raise _damaged(name, f"its header would have {header_bytes} bytes in a file of {size_bytes}")
        header = Node(jsontext.loads(file.read(header_bytes), name, limit=MAX_HEADER_BYTES), name)
    tensors = [tensor for tensor in header.members() if tensor != "__metadata__"]
    covered = 0
    for begin, end in sorted(_offsets(header[tensor]["data_offsets"]) for tensor in tensors):
        if begin != covered or end < begin:
            raise _damaged(name, f"no tensor, or more than one, covers byte {covered} of its data")
        covered = end
    if covered != size_bytes - 8 - header_bytes:
        raise _damaged(name, f"its tensors cover {covered} bytes of data, and it holds {size_bytes - 8 - header_bytes}")
    return frozenset(tensors)


def check_index(index: Node, folder: str, shards: Mapping[str, frozenset[str] | None]) -> tuple[int, int]:
    """Compare a shard index with the shards in its `folder`; how many tensors it names, and how many of them were found.

    `shards` gives the tensors of each file by its name, `None` where its content is not here. A shard or tensor that the index
    names and nothing holds is an `InputError`.
    """
    weight_map, found = index["weight_map"].texts(), 0
    if not weight_map:
        raise index["weight_map"].error("the index names no tensor", "download the index again")
    for tensor, shard in weight_map.items():
        name = posixpath.normpath(posixpath.join(folder, shard))
        at = index["weight_map"][tensor]
        if name not in shards:
            raise at.error(f"the index names {shard}, which is not there", "download the missing shard", Code.UNREADABLE)
        tensors = shards[name]
        if tensors is None:
            continue
        if tensor not in tensors:
            raise at.error(
                f"{shard} does not hold tensor {tensor}", "download index and shards of one revision", Code.SUBJECT_CONTRADICTION
            )
        found += 1
    return len(weight_map), found


def _offsets(node: Node) -> tuple[int, int]:
    ends = [item.count() for item in node.items()]
    if len(ends) != 2:
        raise node.error("a tensor has two offsets, its begin and its end", "download the file again")
    return ends[0], ends[1]


def _damaged(name: str, what: str) -> InputError:
    return InputError(Code.UNREADABLE, f"not a whole safetensors file: {what}", at=Location(name), fix="download the file again")
