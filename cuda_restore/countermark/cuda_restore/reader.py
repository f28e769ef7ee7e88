"""Load a manifest, authenticate its objects, and check a whole snapshot without placing a byte."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.cuda_restore.geometry import Layout
from countermark.cuda_restore.manifest import MANIFEST_BYTES_MAX, Manifest, ObjectDescriptor
from countermark.cuda_restore.store import LAYOUTS, MANIFESTS, PIECE_BYTES, Folder, OpenFile
from countermark.cuda_restore.stream import HEAD_BYTES_MAX, StreamHeader, StreamLayout
from countermark.cuda_restore.wire import refusal


@dataclass(frozen=True, slots=True)
class LoadedManifest:
    """A manifest, the digest of the file it was read from, and where that was."""

    manifest: Manifest
    digest: Digest
    path: Path


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    """A snapshot all of whose objects have the promised digests, as has the stream they make; the layout only when it was given."""

    header: StreamHeader
    header_bytes: int
    layout: StreamLayout | None


def load_manifest(path: Path) -> LoadedManifest:
    """Read the manifest file at `path`, which must not be a link. Raises `InputError`."""
    with Folder.at(path.parent) as folder:
        return _load(folder, path.name, path)


def reload_manifest(loaded: LoadedManifest) -> LoadedManifest:
    """Read the file again: it must be the very bytes that were looked up, or the restore has another root than was admitted."""
    again = load_manifest(loaded.path)
    if again.digest != loaded.digest:
        message = f"the manifest was {loaded.digest} when it was looked up and is {again.digest} now"
        raise refusal(str(loaded.path), "", message, "look the context up again", Code.BAD_DIGEST)
    return again


def find_manifest(root: Path, storage_key: str, context_digest: str) -> LoadedManifest:
    """Look a context up in a store. The file must be about the identity and context that its path names."""
    with Folder.at(root) as store, store.folder(MANIFESTS) as manifests, manifests.folder(storage_key) as folder:
        name = f"{context_digest}.json"
        loaded = _load(folder, name, folder.path / name)
    found = loaded.manifest
    for pointer, told, wanted in (
        ("/identity", found.identity.storage_key, storage_key),
        ("/context_digest", found.context_digest, context_digest),
    ):
        if told != wanted:
            raise refusal(str(loaded.path), pointer, f"the manifest is for {told}, its path for {wanted}", "recompute the prefix")
    return loaded


def find_layout(chunks: Path, layout_sha256: str) -> Layout:
    """The layout document that a stream header names, kept beside the folder of objects; its bytes must have that digest."""
    with Folder.at(chunks.resolve().parent) as root, root.folder(LAYOUTS) as folder, folder.open(f"{layout_sha256}.json") as file:
        data = _small(file)
    found = hashlib.sha256(data).hexdigest()
    if found != layout_sha256:
        message = f"the document has SHA-256 {found}, its name promises {layout_sha256}"
        raise refusal(str(file.path), "", message, "give the layout of the cache to be filled", Code.BAD_DIGEST)
    return Layout.parse(data, str(file.path))


def read_object(chunks: Folder, descriptor: ObjectDescriptor, into: memoryview) -> None:
    """Read one object into `into`, which has its size, and authenticate it. On an `InputError` the bytes must not be used."""
    with chunks.open(descriptor.file_name, descriptor.size_bytes) as file:
        found = hashlib.sha256()
        for piece in file.pieces(into):
            found.update(piece)
    descriptor.authenticate(found.hexdigest())


def read_head(chunks: Folder, manifest: Manifest) -> bytes:
    """The front of the stream, at most as long as a header may be, from the first object after all of that was authenticated."""
    head = bytearray()
    for piece in _pieces(chunks, manifest.objects[0]):
        head += piece[: HEAD_BYTES_MAX - len(head)]
    return bytes(head)


def check_snapshot(manifest: Manifest, chunks: Folder, layout: Layout | None = None) -> CheckedSnapshot:
    """Read every object: each has its digest, together they have the stream's, and the header fits. Retains a few MiB."""
    head = read_head(chunks, manifest)
    source = manifest.objects[0].file_name
    header, header_bytes = StreamHeader.decode(head, source)
    stream = hashlib.sha256()
    for descriptor in manifest.objects:
        for piece in _pieces(chunks, descriptor):
            stream.update(piece)
    if stream.hexdigest() != manifest.stream.hex:
        message = f"the stream has SHA-256 {stream.hexdigest()}, the manifest promises {manifest.stream.hex}"
        raise refusal("stream", "", message, "discard the snapshot and recompute the prefix", Code.BAD_DIGEST)
    return CheckedSnapshot(header, header_bytes, StreamLayout.read(head, manifest, layout, source) if layout else None)


def _pieces(chunks: Folder, descriptor: ObjectDescriptor) -> Iterator[memoryview]:
    """An object piece by piece in one buffer. One that turns out wrong raises behind its last piece: use none before the end."""
    buffer = memoryview(bytearray(min(PIECE_BYTES, descriptor.size_bytes)))
    found = hashlib.sha256()
    with chunks.open(descriptor.file_name, descriptor.size_bytes) as file:
        for start in range(0, descriptor.size_bytes, PIECE_BYTES):
            piece = buffer[: descriptor.size_bytes - start]
            file.read_into(piece, start)
            found.update(piece)
            yield piece
    descriptor.authenticate(found.hexdigest())


def _load(folder: Folder, name: str, path: Path) -> LoadedManifest:
    with folder.open(name) as file:
        data = _small(file)
    return LoadedManifest(Manifest.parse(data, str(path)), Digest.of(DigestKind.FILE, data), path)


def _small(file: OpenFile) -> bytes:
    if file.size_bytes > MANIFEST_BYTES_MAX:
        message = f"{file.size_bytes} bytes; a document of this format has at most {MANIFEST_BYTES_MAX}"
        raise refusal(str(file.path), "", message, "publish with larger objects", Code.TOO_LARGE)
    return file.read_all()
