"""From a path to the one image that was meant: what kind of thing lies there, which images it holds, which of them was asked for."""

import re
from collections.abc import Callable
from pathlib import Path

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, Location, NothingError, UsageError
from countermark.recorders import docker, oci
from countermark.recorders.docker import Reported
from countermark.recorders.files import FileKind, kind_of, opened, read_bytes
from countermark.recorders.image_store import DirectoryStore, Store, TarStore
from countermark.recorders.oci import Image
from countermark.recorders.recording import Progress, silent
from countermark.recorders.shape import Node

MAX_INSPECT_BYTES = 16 << 20

_BARE = re.compile(r"sha256:([0-9a-f]{64})\Z")
_REFERENCE = re.compile(r"[a-z0-9][\w.-]*(?::\d+)?(?:/[\w.-]+)*(?::[\w.-]+)?(@sha256:[0-9a-f]{64})?\Z")
_PACKED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_MAX_LISTED = 16


def open_source(path: Path, progress: Progress = silent) -> Store | Node:
    """The store of bytes at `path`, or the parsed output of `docker image inspect`."""
    kind = kind_of(path)
    if kind is None:
        raise _not_there(str(path))
    if kind is FileKind.FOLDER:
        return DirectoryStore(path, progress)
    with opened(path) as file:
        start = file.read(64)
    if start.lstrip()[:1] in (b"[", b"{"):
        return Node(jsontext.loads(read_bytes(path, MAX_INSPECT_BYTES), str(path)), str(path))
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            raise InputError(Code.UNSUPPORTED, f"{name} archives are not read", at=Location(str(path)), fix="unpack it to a plain .tar")
    return TarStore(path, progress)


def images_in(store: Store) -> list[Image]:
    """Every image of an OCI layout or docker archive. An archive that is both must say the same in both."""
    archive = isinstance(store, TarStore) and docker.is_archive(store)
    if oci.is_layout(store):
        images = oci.layout_images(store)
        if archive:
            docker.check_archive_agrees(store, images)
        return images
    if archive:
        return docker.archive_images(store)
    raise InputError(
        Code.UNREADABLE,
        "this is neither an OCI layout (oci-layout and index.json) nor a docker archive (manifest.json)",
        at=Location(store.name),
        fix="make one: docker save -o FILE IMAGE, or skopeo copy SOURCE oci:DIR",
    )


def choose(store: Store, images: list[Image], digest: Digest | str | None, platform: str | None) -> tuple[Digest, Image]:
    """The image asked for and the digest it was asked by; without one, its manifest, or its config where it has no manifest."""
    if digest is None:
        matching = [(image.manifest or image.config, image) for image in images]
    else:
        wanted = _matcher(digest)
        matching = [(found, image) for image in images for found in image.digests if wanted(found)]
    matching = [(found, image) for found, image in matching if platform in (None, image.platform)]
    if len({(found, image.config) for found, image in matching}) == 1:
        return max(matching, key=lambda pair: len(pair[1].indexes))
    raise _no_choice(Location(store.name), [(image.platform, image.digests) for image in images], len(matching), digest, platform)


def choose_reported(source: Node, digest: Digest | str | None) -> Reported:
    """The image asked for in the output of `docker image inspect`."""
    entries = source.items() if isinstance(source.value, list) else [source]
    if not entries:
        raise NothingError(Code.NOTHING_EVALUATED, "docker inspected no image", at=source.at, fix="docker image inspect IMAGE > FILE")
    wanted, typed = _matcher(digest), _typed(digest)
    found = [docker.inspected(entry, typed) for entry in entries]
    matching = [reported for reported in found if digest is None or wanted(reported.subject)]
    if len(matching) == 1:
        return matching[0]
    raise _no_choice(source.at, [(reported.platform, (reported.subject,)) for reported in found], len(matching), digest, None)


def _no_choice(
    at: Location, there: list[tuple[str | None, tuple[Digest, ...]]], matching: int, digest: Digest | str | None, platform: str | None
) -> InputError:
    listing = "; ".join(f"{known or 'no platform'} {' '.join(map(str, digests))}" for known, digests in there[:_MAX_LISTED])
    asked = " ".join(str(part) for part in (digest, platform) if part)
    fix = "choose one with --digest KIND:sha256:HEX64 or --platform OS/ARCH"
    if matching:
        return InputError(Code.SUBJECT_UNKNOWN, f"{matching} images answer to {asked or 'no choice'}: {listing}", at=at, fix=fix)
    typed = _typed(digest)
    other = [found for _, digests in there for found in digests if typed and found.hex == typed.hex and found.kind is not typed.kind]
    if other:
        return InputError(Code.SUBJECT_KIND, f"{asked} is not of that kind: these bytes are {other[0]}", at=at, fix=f"ask for {other[0]}")
    return InputError(Code.SUBJECT_UNKNOWN, f"no image here is {asked}; there is: {listing}", at=at, fix=fix)


def _matcher(digest: Digest | str | None) -> Callable[[Digest], bool]:
    if isinstance(digest, str) and (bare := _BARE.match(digest)):
        return lambda found: found.hex == bare[1]
    typed = _typed(digest)
    if typed and not typed.kind.is_oci:
        raise UsageError(
            Code.SUBJECT_KIND, f"{typed} is not the digest of an image", fix="give an oci-index, oci-manifest or oci-config digest"
        )
    return lambda found: found == typed


def _typed(digest: Digest | str | None) -> Digest | None:
    if isinstance(digest, str):
        return None if _BARE.match(digest) else Digest.parse(digest)
    return digest


def _not_there(text: str) -> CountermarkError:
    """A path that does not exist may have been meant as a registry reference."""
    reference = _REFERENCE.match(text)
    if not reference or not set(text) & set("/:@") or text.endswith((".tar", ".gz", ".tgz", ".json")):
        return InputError(Code.UNREADABLE, "there is no such file or folder", at=Location(text), fix="check the path")
    fix = f"fetch it first: skopeo copy docker://{text} oci:DIR, or docker save -o FILE.tar {text}; then record that"
    if reference[1]:
        return CannotTellError(Code.UNSUPPORTED, f"{text} is no path here, and registries are not read in this version", fix=fix)
    return CannotTellError(
        Code.TAG_NOT_DIGEST, f"{text} is no path here, and a tag names no one image: registries are not read in this version", fix=fix
    )
