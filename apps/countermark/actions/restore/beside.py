"""What lies beside a manifest: the folder of its objects, and the layout documents of the store that it is in."""

from pathlib import Path

from countermark.attestations.codes import Code
from countermark.attestations.documents import read_file
from countermark.attestations.errors import InputError, Location
from countermark.cuda_restore.geometry import Layout
from countermark.cuda_restore.identity import Identity
from countermark.cuda_restore.store import CHUNKS, LAYOUTS
from countermark.cuda_restore.topology import topology_of, topology_sha256


def find_chunks(manifest: Path) -> Path | None:
    """The folder `chunks` beside the manifest, or that of the store whose `manifests/KEY/` it lies in; nothing when there is neither."""
    places = (manifest.resolve().parent, *manifest.resolve().parents[2:3])
    return next((place / CHUNKS for place in places if (place / CHUNKS).is_dir()), None)


def chunks_of(manifest: Path, given: Path | None) -> Path:
    """The folder of a manifest's objects: the one given, or the one that is found. `InputError` when there is none."""
    found = given or find_chunks(manifest)
    if found is None:
        message = "no folder of objects lies beside this manifest"
        raise InputError(Code.UNREADABLE, message, at=Location(str(manifest)), fix="give it with --chunks DIR")
    return found


def read_layout(path: Path) -> Layout:
    """A layout document: the JSON list of groups."""
    return Layout.parse(read_file(path), str(path))


def find_layout_for(manifest: Path, identity: Identity) -> Layout | None:
    """The one layout of the manifest's store that has the page topology of the identity.

    Nothing when there is none, or several: the stream header names the layout by its digest, but that is in the payload.
    """
    chunks = find_chunks(manifest)
    files = sorted((chunks.parent / LAYOUTS).glob("*.json")) if chunks else []
    found = [layout for layout in map(read_layout, files) if topology_sha256(topology_of(layout)) == identity.topology_sha256]
    return found[0] if len(found) == 1 else None
