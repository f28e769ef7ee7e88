"""What docker itself writes: `docker save` archives, and the JSON of `docker image inspect`.

A docker archive has no registry manifest, so the only digest it proves is the image ID, the hash of the config. Inspect output proves
nothing: whatever it says is recorded as reported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import NothingError
from countermark.recorders.image_store import Member, Store
from countermark.recorders.oci import Image, Layer, contradiction, document, platform_text, read_config
from countermark.recorders.shape import Node

_HEX64 = re.compile(r"[0-9a-f]{64}\Z")
_ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})\Z")
_REPO_DIGEST = re.compile(r"[^\s@]+@sha256:([0-9a-f]{64})\Z")
_KIND_OF_MEDIA_TYPE = {
    "application/vnd.oci.image.index.v1+json": DigestKind.OCI_INDEX,
    "application/vnd.docker.distribution.manifest.list.v2+json": DigestKind.OCI_INDEX,
    "application/vnd.oci.image.manifest.v1+json": DigestKind.OCI_MANIFEST,
    "application/vnd.docker.distribution.manifest.v2+json": DigestKind.OCI_MANIFEST,
}


def is_archive(store: Store) -> bool:
    """Whether the store is what `docker save` writes."""
    return store.member("manifest.json") is not None


def archive_images(store: Store) -> list[Image]:
    """Every image of a docker archive: the image ID from the config's bytes, layers compared with what the config says of them."""
    images = [_archived(store, entry) for entry in document(store, "manifest.json").items()]
    if not images:
        raise NothingError(Code.NOTHING_EVALUATED, f"{store.name} holds no image", fix="docker save the image again")
    return list({image.config: image for image in images}.values())


def check_archive_agrees(store: Store, images: list[Image]) -> None:
    """Refuse an archive whose docker half names a config that its OCI half does not: two readers would load two images."""
    known = {image.config.hex for image in images}
    for entry in document(store, "manifest.json").items():
        config, path = _config(store, entry["Config"])
        if config.sha256 not in known:
            raise contradiction(store, path, "manifest.json names an image that index.json does not")


@dataclass(frozen=True, slots=True)
class Reported:
    """What `docker image inspect` says of one image; nothing of it is proven."""

    subject: Digest
    platform: str | None
    labels: dict[str, str]
    published: list[str]


def inspected(entry: Node, asked: Digest | None) -> Reported:
    """Read one element of inspect output.

    `Id` is the image ID, except where docker keeps images in containerd: there it is a registry digest, and says of which kind only
    in newer versions (`Descriptor`). Where it does not say, `asked` may; otherwise the kind is unknown, an `InputError`.
    `RepoDigests` name a manifest or an index, never which, so they stay references and become no aliases.
    """
    found = _ID.match(entry["Id"].text())
    if not found:
        raise entry["Id"].error(
            "an image ID is sha256: and 64 hex digits", "give the whole output of docker image inspect", Code.BAD_DIGEST
        )
    published = [item.text() for item in entry["RepoDigests"].items()]
    subject = Digest(_reported_kind(entry, found[1], published, asked), found[1])
    fields = {"os": entry["Os"].value, "architecture": entry["Architecture"].value, "variant": entry["Variant"].value}
    platform = platform_text(Node(fields, entry.source, entry.pointer))
    return Reported(subject, platform, entry["Config"]["Labels"].texts() if entry["Config"] else {}, published)


def _reported_kind(entry: Node, hexed: str, published: list[str], asked: Digest | None) -> DigestKind:
    descriptor = entry["Descriptor"]
    if descriptor and descriptor["digest"].text() == f"sha256:{hexed}":
        kind = _KIND_OF_MEDIA_TYPE.get(descriptor["mediaType"].text())
        if kind is None:
            raise descriptor["mediaType"].error("the kind of the image is not known", "docker save the image and record the archive")
        return kind
    registry = {found[1] for text in published if (found := _REPO_DIGEST.match(text))}
    if hexed not in registry:
        return DigestKind.OCI_CONFIG
    if asked and asked.hex == hexed and asked.kind in (DigestKind.OCI_INDEX, DigestKind.OCI_MANIFEST):
        return asked.kind
    raise entry["Id"].error(
        "the ID is a registry digest (images are kept in containerd), and whether of an index or a manifest is not said",
        f"say which: --digest oci-index:sha256:{hexed} or --digest oci-manifest:sha256:{hexed}; or record the docker save archive",
        Code.SUBJECT_KIND,
    )


def _archived(store: Store, entry: Node) -> Image:
    member, path = _config(store, entry["Config"])
    platform, labels, diffs = read_config(document(store, path, member))
    layers = [(item.text(), _present(store, item)) for item in entry["Layers"].items()]
    if len(layers) != len(diffs):
        raise contradiction(store, path, f"manifest.json names {len(layers)} layers, the config {len(diffs)}; they are not one image")
    notes = [note for (name, layer), diff in zip(layers, diffs, strict=True) for note in _check_layer(store, name, layer, diff)]
    config = Digest(DigestKind.OCI_CONFIG, member.sha256)
    return Image((), None, config, platform, labels, tuple(Layer(layer.sha256, layer.size_bytes) for _, layer in layers), tuple(notes))


def _check_layer(store: Store, name: str, layer: Member, diff: str) -> Iterator[str]:
    if layer.sha256 == diff:
        return
    if not layer.is_gzip:
        raise contradiction(store, name, f"the layer hashes to sha256:{layer.sha256}; the config says sha256:{diff}")
    yield f"layer {name} is compressed and was not compared with the config's sha256:{diff}"


def _config(store: Store, name: Node) -> tuple[Member, str]:
    path = name.text()
    member = _present(store, name)
    stem = PurePosixPath(path).name.removesuffix(".json")
    if _HEX64.match(stem) and stem != member.sha256:
        raise contradiction(store, path, f"the config hashes to sha256:{member.sha256}, not to its name")
    return member, path


def _present(store: Store, name: Node) -> Member:
    member = store.member(name.text())
    if member is None:
        raise name.error(f"{name.text()} is not in the archive", "docker save the image again", Code.UNREADABLE)
    return member
