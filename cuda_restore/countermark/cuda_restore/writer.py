"""Write a snapshot: layout and objects first, each synced, the manifest last.

A manifest's name therefore appears only when everything it names is on stable storage: a writer killed at any instant leaves a store
in which the context is either absent or whole.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, RefusedError
from countermark.cuda_restore.geometry import Geometry
from countermark.cuda_restore.manifest import (
    OBJECT_BYTES_MAX,
    Manifest,
    ObjectDescriptor,
    check_context_digest,
    check_object_bytes,
    check_pages_identity,
)
from countermark.cuda_restore.publish import Draft, make_folder, publish_bytes, publishing, writing
from countermark.cuda_restore.reader import LoadedManifest, read_object
from countermark.cuda_restore.store import CHUNKS, LAYOUTS, MANIFESTS, Folder
from countermark.cuda_restore.stream import StreamLayout, header_of

Bytes: TypeAlias = bytes | bytearray | memoryview


def write_snapshot(
    root: Path, geometry: Geometry, context_digest: str, payload: Iterable[Bytes], *, object_bytes: int = OBJECT_BYTES_MAX
) -> LoadedManifest:
    """Publish one rank's snapshot of a context under `root`, which must exist.

    `payload` is the stream behind its header, in pieces of any size; `layers_in_order` makes it from arrays. The same snapshot again is
    no error. Raises `RefusedError` when the context has another manifest already, `InputError` when the pieces do not fill the geometry
    or the disk fails; nothing is published then.
    """
    check_pages_identity(geometry.identity)
    check_context_digest(context_digest)
    check_object_bytes(object_bytes)
    with writing(root), ExitStack() as opened:
        store = opened.enter_context(Folder.at(root))
        opened.enter_context(publishing(store))
        chunks = opened.enter_context(make_folder(store, CHUNKS))
        layouts = opened.enter_context(make_folder(store, LAYOUTS))
        manifests = opened.enter_context(make_folder(store, MANIFESTS))
        folder = opened.enter_context(make_folder(manifests, geometry.identity.storage_key))
        manifest = _write_objects(chunks, geometry, context_digest, payload, object_bytes)
        if not publish_bytes(layouts, f"{geometry.layout.sha256}.json", geometry.layout.encode()):
            raise _refuse("the store has another document under this layout's digest", "remove the damaged layout document")
        return _publish_manifest(folder, manifest)


def layers_in_order(geometry: Geometry, layers: Mapping[tuple[int, str], Bytes]) -> Iterator[memoryview]:
    """The payload from each layer's pages, keyed by group number and layer name. Raises `InputError` for a layer that is missing,
    unknown or of another size."""
    wanted = {
        (number, layer.name): count * layer.bytes_per_page
        for number, (group, count) in enumerate(zip(geometry.layout.groups, geometry.block_counts, strict=True))
        for layer in group.layers
    }
    if layers.keys() != wanted.keys():
        odd = sorted(layers.keys() ^ wanted.keys())
        raise _refuse(f"the arrays and the layout differ in {odd}", "give one array for each layer of the layout")
    for key, size in wanted.items():
        view = memoryview(layers[key])
        if view.nbytes != size:
            raise _refuse(f"layer {key} has {view.nbytes} bytes, its pages take {size}", "give all pages of the layer, and only them")
        yield view.cast("B")


def _write_objects(chunks: Folder, geometry: Geometry, context_digest: str, payload: Iterable[Bytes], object_bytes: int) -> Manifest:
    """Write every object of the stream and describe them; the folder is synced once, at the end."""
    encoded_bytes = StreamLayout.of(geometry).encoded_bytes
    sink = _ObjectSink(chunks, object_bytes)
    try:
        sink.write(memoryview(header_of(geometry).encode()))
        for piece in payload:
            sink.write(memoryview(piece).cast("B"))
            if sink.position > encoded_bytes:
                break
        if sink.position != encoded_bytes:
            more = "more than" if sink.position > encoded_bytes else f"{sink.position} of"
            raise _refuse(f"the pieces and the header hold {more} {encoded_bytes} bytes", "give exactly the pages of the geometry")
        sink.finish()
    finally:
        sink.discard()
    os.fsync(chunks.fd)
    return Manifest(
        identity=geometry.identity,
        context_digest=context_digest,
        committed_tokens=geometry.committed_tokens,
        encoded_bytes=encoded_bytes,
        object_bytes=object_bytes,
        objects=tuple(sink.objects),
        stream=sink.stream_digest,
    )


class _ObjectSink:
    """Takes the stream in pieces and turns it into objects of one size, hashing each and the whole on the way."""

    def __init__(self, chunks: Folder, object_bytes: int) -> None:
        self.objects: list[ObjectDescriptor] = []
        self.position = 0
        self._chunks = chunks
        self._object_bytes = object_bytes
        self._stream = hashlib.sha256()
        self._object = hashlib.sha256()
        self._start = 0
        self._draft: Draft | None = None

    @property
    def stream_digest(self) -> Digest:
        return Digest(DigestKind.STREAM, self._stream.hexdigest())

    def write(self, data: memoryview) -> None:
        while data:
            part = data[: self._start + self._object_bytes - self.position]
            self._draft = self._draft or Draft(self._chunks)
            self._draft.write(part)
            self._stream.update(part)
            self._object.update(part)
            self.position += len(part)
            data = data[len(part) :]
            if self.position == self._start + self._object_bytes:
                self.finish()

    def finish(self) -> None:
        """Publish the object begun, if there is one."""
        if self._draft is None:
            return
        digest = Digest(DigestKind.OBJECT, self._object.hexdigest())
        described = ObjectDescriptor(len(self.objects), digest, self._start, self.position - self._start)
        self._draft.sync()
        if not self._draft.link(described.file_name) and not _is_whole(self._chunks, described):
            self._draft.replace(described.file_name)
        self.discard()
        self.objects.append(described)
        self._object = hashlib.sha256()
        self._start = self.position

    def discard(self) -> None:
        """Remove the temporary file, if there is one."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = None


def _is_whole(chunks: Folder, described: ObjectDescriptor) -> bool:
    """Whether the object that has this name also has its content; a damaged one may be replaced."""
    try:
        read_object(chunks, described, memoryview(bytearray(described.size_bytes)))
    except InputError:
        return False
    return True


def _publish_manifest(folder: Folder, manifest: Manifest) -> LoadedManifest:
    """Publish the manifest after reading it back: what our own reader refuses is not published."""
    name = f"{manifest.context_digest}.json"
    path = folder.path / name
    data = manifest.encode()
    loaded = LoadedManifest(Manifest.parse(data, str(path)), Digest.of(DigestKind.FILE, data), path)
    if not publish_bytes(folder, name, data):
        message = "the context has another manifest already, and manifests do not change"
        raise RefusedError(Code.DUPLICATE, message, at=Location(str(path)), fix="write to another root, or remove the context first")
    return loaded


def _refuse(message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, fix=fix)
