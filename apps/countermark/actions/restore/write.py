"""`restore write`: a snapshot from a user's arrays or of the bundled oracle, and the plan that qualifies it."""

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import yaml
from numpy.lib.npyio import NpzFile

from countermark.actions.new_files import write_new
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import API_VERSION, read_file
from countermark.attestations.errors import InputError, Location
from countermark.attestations.jsontext import loads
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.geometry import Geometry, Layout
from countermark.cuda_restore.identity import Identity
from countermark.cuda_restore.oracle_prompt import OracleShape, write_prompt
from countermark.cuda_restore.oracle_snapshot import publish_oracle
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.restore_plan import KIND
from countermark.cuda_restore.store import CHUNKS
from countermark.cuda_restore.wire import Fields
from countermark.cuda_restore.writer import layers_in_order, write_snapshot
from countermark.recorders.recording import Progress, silent

ORACLE_BYTES_MAX: Final = 1024 * 1024 * 1024
"""The largest cache of the oracle that is written; it is made in memory."""


@dataclass(frozen=True, slots=True)
class Written:
    """The manifests that were published, in rank order, and the folder of their objects."""

    manifests: tuple[LoadedManifest, ...]
    chunks: Path


@dataclass(frozen=True, slots=True)
class ArraySource:
    """One rank's cache as files: an `.npz` whose arrays are named `GROUP/LAYER`, the layout and the identity as JSON."""

    arrays: Path
    layout: Path
    identity: Path
    committed_tokens: int
    context_digest: str


def write_oracle(root: Path, shape: OracleShape, codeword: str, *, object_bytes: int) -> Written:
    """Publish the bundled oracle's cache of its own prompt, one manifest a rank; a restore of it must answer `codeword`.

    Raises `InputError` TOO_LARGE before anything is made when the cache, which is held whole, would exceed `ORACLE_BYTES_MAX`.
    """
    size = 2 * shape.layers * shape.pages * shape.page_bytes * shape.ranks
    if size > ORACLE_BYTES_MAX:
        message = f"an oracle of {shape.ranks} ranks and {shape.tokens} tokens takes {size} bytes; {ORACLE_BYTES_MAX} are allowed"
        raise InputError(Code.TOO_LARGE, message, fix="write fewer ranks or tokens")
    _make(root)
    return Written(publish_oracle(root, shape, write_prompt(shape, codeword), object_bytes=object_bytes), root / CHUNKS)


def write_arrays(root: Path, source: ArraySource, *, object_bytes: int, progress: Progress = silent) -> Written:
    """Publish one rank's cache from arrays. Only their bytes count, so a type that numpy does not know is given as bytes.

    Raises `InputError` when the files do not fit each other, `RefusedError` when the context has another manifest already.
    """
    layout = Layout.parse(read_file(source.layout), str(source.layout))
    value = loads(read_file(source.identity), str(source.identity))
    identity = Identity.parse(Fields.of(value, str(source.identity)))
    with _open_arrays(source.arrays) as opened:
        layers = _Layers(opened, source.arrays)
        geometry = Geometry(identity, source.committed_tokens, layout, _block_counts(layout, layers))
        _make(root)
        payload = _told(layers_in_order(geometry, layers), geometry.payload_bytes, progress)
        return Written((write_snapshot(root, geometry, source.context_digest, payload, object_bytes=object_bytes),), root / CHUNKS)


def write_plan(path: Path, written: Written, *, device: str, image: Digest | None) -> None:
    """Write the plan that qualifies a snapshot on one device; `InputError` when the file exists."""
    write_new(path, plan_text(path.parent, written.manifests, written.chunks, device=device, image=image))


def plan_text(
    folder: Path,
    manifests: Sequence[LoadedManifest],
    chunks: Path,
    *,
    device: str = "cpu",
    image: Digest | None = None,
    faults: Sequence[str] | None = None,
) -> bytes:
    """A RestorePlan in YAML. Its paths are relative to `folder`, where it is to lie; `faults` are all of them when left out."""
    first = manifests[0].manifest
    ranks: list[JsonValue] = [
        {
            "rank": one.manifest.identity.rank,
            "manifest": os.path.relpath(one.path, folder),
            "chunks": os.path.relpath(chunks, folder),
            "device": device,
        }
        for one in manifests
    ]
    spec: dict[str, JsonValue] = {
        **({"image": str(image)} if image else {}),
        "context_digest": first.context_digest,
        "committed_tokens": first.committed_tokens,
        "ranks": ranks,
        "faults": "all" if faults is None else list(faults),
    }
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"id": f"context-{first.context_digest[:12]}", "version": 1},
        "spec": spec,
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


class _Layers(Mapping[tuple[int, str], memoryview]):
    """The arrays of a file by group number and layer name, each read when it is asked for."""

    def __init__(self, opened: NpzFile, path: Path) -> None:
        self._opened, self._path = opened, path
        self._names = {self._key(name): name for name in opened.files}

    def __getitem__(self, key: tuple[int, str]) -> memoryview:
        try:
            array = self._opened[self._names[key]]
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise self._refuse(f"{self._names[key]!r} is no array that can be read: {error}") from None
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _key(self, name: str) -> tuple[int, str]:
        group, _, layer = name.partition("/")
        if not (group.isascii() and group.isdecimal() and layer):
            raise self._refuse(f"{name!r} does not say which layer it is")
        return int(group), layer

    def _refuse(self, message: str) -> InputError:
        fix = "name each array GROUP/LAYER, as in 0/model.layers.0.k, and save it without objects"
        return InputError(Code.SCHEMA_INVALID, message, at=Location(str(self._path)), fix=fix)


@contextmanager
def _open_arrays(path: Path) -> Iterator[NpzFile]:
    with ExitStack() as opened:
        try:
            found = np.load(opened.enter_context(path.open("rb")), allow_pickle=False)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            message = f"this is no .npz file of arrays: {error}"
            raise InputError(Code.UNREADABLE, message, at=Location(str(path)), fix="save the layers with numpy.savez") from None
        if not isinstance(found, NpzFile):
            raise InputError(Code.SCHEMA_INVALID, "this is one array", at=Location(str(path)), fix="save the layers with numpy.savez")
        yield opened.enter_context(found)


def _block_counts(layout: Layout, layers: Mapping[tuple[int, str], memoryview]) -> tuple[int, ...]:
    """How many blocks each group's first array holds; 1 for a layer that is missing, which is complained about later, by name."""
    first = [layers.get((number, group.layers[0].name)) for number, group in enumerate(layout.groups)]
    sizes = zip(layout.groups, first, strict=True)
    return tuple(max(found.nbytes // group.layers[0].bytes_per_page, 1) if found is not None else 1 for group, found in sizes)


def _told(pieces: Iterator[memoryview], total: int, progress: Progress) -> Iterator[memoryview]:
    done = 0
    for piece in pieces:
        yield piece
        done += piece.nbytes
        progress(done, total)


def _make(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or "it cannot be made"
        raise InputError(Code.UNREADABLE, why, at=Location(str(root)), fix="choose a folder that can be written") from None
