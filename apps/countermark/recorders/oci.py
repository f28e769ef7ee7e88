"""OCI layouts: from `index.json` down to indexes, manifests and configs, each believed only when its bytes hash to its descriptor.

Source: OCI image-spec 1.1 (image-layout, descriptor, image-index, manifest, config) and the Docker distribution media types. What a
document is follows from its media type *and* its shape; a document that could be read as two kinds is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError, RefusedError
from countermark.recorders.image_store import MAX_DOCUMENT_BYTES, Member, Store
from countermark.recorders.shape import Node

MAX_INDEX_DEPTH = 8
MAX_DESCRIPTORS = 4096

_SHA256 = re.compile(r"sha256:([0-9a-f]{64})\Z")
_PLATFORM_PART = re.compile(r"[a-z0-9][a-z0-9_]*\Z")


class Shape(StrEnum):
    """The kinds of document that an image is described by."""

    INDEX = "index"
    MANIFEST = "manifest"
    CONFIG = "config"


_SHAPES = {
    "application/vnd.oci.image.index.v1+json": Shape.INDEX,
    "application/vnd.docker.distribution.manifest.list.v2+json": Shape.INDEX,
    "application/vnd.oci.image.manifest.v1+json": Shape.MANIFEST,
    "application/vnd.docker.distribution.manifest.v2+json": Shape.MANIFEST,
    "application/vnd.oci.image.config.v1+json": Shape.CONFIG,
    "application/vnd.docker.container.image.v1+json": Shape.CONFIG,
}
_IMAGES = frozenset(media_type for media_type, shape in _SHAPES.items() if shape is not Shape.CONFIG)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A media type, digest and size that a document names. `platform` and `is_image` (an index or manifest, and no attestation or
    signature of one) are what the naming document says."""

    media_type: str
    sha256: str
    size_bytes: int
    platform: str | None
    is_image: bool
    at: Node

    @classmethod
    def read(cls, node: Node) -> "Descriptor":
        """Read a descriptor; only SHA-256 digests are taken."""
        media_type, digest, size_bytes = node["mediaType"].text(), node["digest"], node["size"].count()
        annotations = node["annotations"].texts()
        platform = platform_text(node["platform"]) if node["platform"] else None
        is_image = media_type in _IMAGES and "vnd.docker.reference.type" not in annotations and platform != "unknown/unknown"
        return cls(media_type, sha256_of(digest), size_bytes, platform, is_image, node)

    @property
    def path(self) -> str:
        """Where a layout keeps the blob."""
        return f"blobs/sha256/{self.sha256}"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer blob as the manifest names it: SHA-256 in hex and size."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Index:
    """An index blob above an image, and how many images it names in all."""

    digest: Digest
    images: int


@dataclass(frozen=True, slots=True)
class Image:
    """One image found from bytes: the indexes above it (outermost first), its manifest unless there is none, its config."""

    indexes: tuple[Index, ...]
    manifest: Digest | None
    config: Digest
    platform: str | None
    labels: dict[str, str]
    layers: tuple[Layer, ...]
    notes: tuple[str, ...] = ()

    @property
    def digests(self) -> tuple[Digest, ...]:
        """All digests of the image, from the outermost index to the config."""
        return (*(index.digest for index in self.indexes), *((self.manifest,) if self.manifest else ()), self.config)


def is_layout(store: Store) -> bool:
    """Whether the store holds an OCI image layout."""
    return store.member("oci-layout") is not None and store.member("index.json") is not None


def layout_images(store: Store) -> list[Image]:
    """Every image of a layout, its documents hashed and its layers present; what is not an image is left out with a note."""
    version = document(store, "oci-layout")["imageLayoutVersion"].text()
    if not version.startswith("1."):
        raise InputError(
            Code.UNSUPPORTED, f"layout version {version} is not known", at=Location(store.name), fix="write the layout as version 1.0.0"
        )
    reader = _LayoutReader(store)
    found = list(reader.below(document(store, "index.json"), (), 0))
    if not found:
        raise NothingError(
            Code.NOTHING_EVALUATED,
            f"the layout holds no image{reader.missing()}",
            at=Location(store.name),
            fix="copy the image again, complete",
        )
    return list({image.digests: image for image in found}.values())


def document(store: Store, path: str, member: Member | None = None) -> Node:
    """The JSON document at `path`, parsed strictly."""
    found, name = member or store.member(path), f"{store.name}/{path}"
    if found is None or found.document is None:
        raise InputError(
            Code.UNREADABLE,
            f"there is no JSON document of at most {MAX_DOCUMENT_BYTES} bytes here",
            at=Location(name),
            fix="give an OCI layout, an OCI or docker archive, or `docker image inspect` JSON",
        )
    return Node(jsontext.loads(found.document, name), name)


def read_config(node: Node) -> tuple[str | None, dict[str, str], tuple[str, ...]]:
    """Platform, labels and the SHA-256 of each uncompressed layer (diff ids), as an image config says them."""
    platform = platform_text(node)
    labels = node["config"]["Labels"].texts() if node["config"] else {}
    diffs = node["rootfs"]["diff_ids"].items() if node["rootfs"] else []
    return platform, labels, tuple(sha256_of(item) for item in diffs)


def platform_text(node: Node) -> str | None:
    """`os/arch`, with the variant where it says more than the default (`arm64` is always `v8`); `None` where either is not said."""
    if not node["os"].value or not node["architecture"].value:
        return None
    parts = [node["os"].text(), node["architecture"].text(), *([node["variant"].text()] if node["variant"].value else [])]
    if parts[1:] == ["arm64", "v8"]:
        parts.pop()
    if not all(_PLATFORM_PART.match(part) for part in parts):
        raise node.error(f"{'/'.join(parts)} is not a platform", "the image is damaged; build it again")
    return "/".join(parts)


def sha256_of(node: Node) -> str:
    """The hex of a digest `sha256:HEX64`."""
    found = _SHA256.match(node.text())
    if not found:
        raise node.error(f"{node.text()[:80]!r} is not sha256: and 64 hex digits", "copy the image with SHA-256 digests", Code.BAD_DIGEST)
    return found[1]


def contradiction(store: Store, path: str, message: str) -> RefusedError:
    """The refusal of bytes that are not what another document says of them."""
    return RefusedError(
        Code.SUBJECT_CONTRADICTION, message, at=Location(f"{store.name}/{path}"), fix="do not use these bytes; copy the image again"
    )


class _LayoutReader:
    """Walks the descriptors of one layout; remembers how many it saw and which blobs were not there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = 0
        self._visited: set[tuple[str, tuple[Index, ...]]] = set()
        self._absent: list[str] = []

    def missing(self) -> str:
        return f"; not there: {' '.join(self._absent[:4])}" if self._absent else ""

    def below(self, node: Node, above: tuple[Index, ...], depth: int) -> Iterator[Image]:
        if depth > MAX_INDEX_DEPTH:
            raise node.error(f"indexes nest deeper than {MAX_INDEX_DEPTH}", "point the layout at the image itself", Code.TOO_LARGE)
        _check_shape(node, Shape.INDEX)
        for descriptor in [Descriptor.read(item) for item in node["manifests"].items()]:
            self._seen += 1
            if self._seen > MAX_DESCRIPTORS:
                raise node.error(f"more than {MAX_DESCRIPTORS} descriptors", "give a layout of fewer images", Code.TOO_LARGE)
            if descriptor.is_image and (descriptor.sha256, above) not in self._visited:
                self._visited.add((descriptor.sha256, above))
                yield from self._named(descriptor, above, depth)

    def _named(self, descriptor: Descriptor, above: tuple[Index, ...], depth: int) -> Iterator[Image]:
        member = self._blob(descriptor)
        if member is None:
            self._absent.append(f"sha256:{descriptor.sha256}")
            return
        node = document(self._store, descriptor.path, member)
        shape = _SHAPES[descriptor.media_type]
        _check_shape(node, shape)
        if shape is Shape.INDEX:
            images = sum(Descriptor.read(item).is_image for item in node["manifests"].items())
            index = Index(Digest(DigestKind.OCI_INDEX, descriptor.sha256), images)
            yield from self.below(node, (*above, index), depth + 1)
        elif _SHAPES.get(node["config"]["mediaType"].text()) is Shape.CONFIG:
            yield self._image(node, descriptor, above)

    def _image(self, manifest: Node, descriptor: Descriptor, above: tuple[Index, ...]) -> Image:
        config = Descriptor.read(manifest["config"])
        member = self._blob(config)
        if member is None:
            raise self._lacking(config, "the config")
        platform, labels, diffs = read_config(document(self._store, config.path, member))
        layers = [Descriptor.read(item) for item in manifest["layers"].items()]
        if diffs and len(diffs) != len(layers):
            raise contradiction(
                self._store, descriptor.path, f"the manifest names {len(layers)} layers, its config {len(diffs)}; they are not one image"
            )
        notes = [note for layer in layers for note in self._check_layer(layer)]
        if descriptor.platform not in (None, platform):
            notes.append(f"the index calls the manifest {descriptor.platform}, its config says {platform}; the config is recorded")
        return Image(
            above,
            Digest(DigestKind.OCI_MANIFEST, descriptor.sha256),
            Digest(DigestKind.OCI_CONFIG, config.sha256),
            platform,
            labels,
            tuple(Layer(layer.sha256, layer.size_bytes) for layer in layers),
            tuple(notes),
        )

    def _check_layer(self, layer: Descriptor) -> Iterator[str]:
        if self._blob(layer) is None:
            if "foreign" not in layer.media_type and "nondistributable" not in layer.media_type:
                raise self._lacking(layer, "a layer")
            yield f"layer sha256:{layer.sha256} is kept elsewhere by its licence; its bytes were not seen"

    def _blob(self, descriptor: Descriptor) -> Member | None:
        member = self._store.member(descriptor.path)
        found = (member.sha256, member.size_bytes) if member else None
        if found and found != (descriptor.sha256, descriptor.size_bytes):
            promised = f"sha256:{descriptor.sha256} of {descriptor.size_bytes} bytes"
            raise contradiction(self._store, descriptor.path, f"{promised} is promised; found sha256:{found[0]} of {found[1]} bytes")
        return member

    def _lacking(self, descriptor: Descriptor, what: str) -> InputError:
        return descriptor.at.error(
            f"{what}, sha256:{descriptor.sha256}, is not in the layout", "copy the image again, complete", Code.UNREADABLE
        )


def _check_shape(node: Node, promised: Shape) -> None:
    """Refuse a document that is not plainly what its descriptor promises: version 2, its own media type, and its members must agree."""
    if node["schemaVersion"].count() != 2:
        raise node["schemaVersion"].error("only schema version 2 is read", "copy the image in OCI or docker v2 format", Code.UNSUPPORTED)
    own = _SHAPES.get(node["mediaType"].text()) if node["mediaType"] else promised
    members = node.members()
    shapes = [Shape.INDEX] if "manifests" in members else []
    shapes += [Shape.MANIFEST] if "layers" in members or "config" in members else []
    if own is not promised or shapes != [promised]:
        raise node.error(
            f"the document is not plainly the {promised} that its descriptor promises", "do not use this image; build it again"
        )
