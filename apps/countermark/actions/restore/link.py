"""`restore qualify --link`: the same run as a step of an in-toto supply chain.

A link says which files a step read and which it wrote. A layout that has a step of this name, done by the qualifier's key, then
verifies with `verify layout`. Source of the format: in-toto specification 1.0, and the DSSE envelope that the in-toto package reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import load_der_public_key

from countermark.actions.new_files import write_new
from countermark.attestations.codes import Code
from countermark.attestations.envelope import PAYLOAD_TYPE, Envelope, Signature
from countermark.attestations.errors import InputError, Location
from countermark.attestations.keys import PublicKey, Signer
from countermark.attestations.located import JsonValue
from countermark.attestations.statement import canonical

STEP: Final = "restore-qualify"
PRODUCTS: Final = "products"
_KEYID_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Link:
    """What the step read and wrote: files by name, the read ones by the SHA-256 in hex, the written ones by their bytes."""

    materials: Mapping[str, str]
    products: Mapping[str, bytes]
    byproducts: Mapping[str, JsonValue]

    def content(self) -> dict[str, JsonValue]:
        """The link that is signed."""
        return {
            "_type": "link",
            "name": STEP,
            "command": [],
            "materials": {name: {"sha256": hexed} for name, hexed in sorted(self.materials.items())},
            "products": {name: {"sha256": sha256(data).hexdigest()} for name, data in sorted(self.products.items())},
            "byproducts": dict(self.byproducts),
            "environment": {},
        }


def check_folder(folder: Path) -> None:
    """`InputError` unless the folder for the link is new or empty: known before the run, not behind it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(Code.UNREADABLE, "it is there already and not empty", at=Location(str(folder)), fix="give a new folder")


def write_link(folder: Path, link: Link, signer: Signer) -> tuple[Path, ...]:
    """Write the products below `folder`, and beside them the signed link under the name that in-toto looks for."""
    keyid = layout_keyid(signer.public)
    path = folder / f"{STEP}.{keyid[:_KEYID_DIGITS]}.link"
    files = {folder / PRODUCTS / name: data for name, data in link.products.items()}
    files[path] = _signed(link, signer, keyid).encode()
    (folder / PRODUCTS).mkdir(parents=True, exist_ok=True)
    for target, data in files.items():
        write_new(target, data)
    return (path, *sorted(files.keys() - {path}))


def layout_keyid(key: PublicKey) -> str:
    """The key id that in-toto computes for a key, by which a layout names it; ours is the SHA-256 of the SPKI."""
    from securesystemslib.signer import SSlibKey

    return str(SSlibKey.from_crypto(load_der_public_key(key.spki)).keyid)


def _signed(link: Link, signer: Signer, keyid: str) -> str:
    envelope = Envelope(canonical(link.content()), PAYLOAD_TYPE, (), "the link just made")
    return Envelope(envelope.payload, PAYLOAD_TYPE, (Signature(signer.sign(envelope.pae()), keyid),), envelope.source).to_json()
