"""A supply chain of the tests' own, made with the in-toto package: an owner's layout, one step, its link and its product."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from in_toto.models.layout import Inspection, Layout, Step
from in_toto.models.link import Link
from in_toto.models.metadata import Envelope, Metablock, Metadata
from securesystemslib.signer import CryptoSigner
from signing import pem

from countermark.actions.clock import now
from countermark.attestations.times import Instant

OWNER, BUILDER, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (11, 12, 13))
DAY_NS = 24 * 60 * 60 * 1_000_000_000
PRODUCT = b"what the step made\n"


def signer(private: Ed25519PrivateKey) -> CryptoSigner:
    return CryptoSigner(private)


def described(private: Ed25519PrivateKey) -> dict[str, Any]:
    """A key as a layout lists it."""
    key = signer(private).public_key
    return {**key.to_dict(), "keyid": key.keyid}


@dataclass(slots=True)
class Chain:
    """The files of a supply chain in one folder: `root.layout`, `links/`, `products/`, and the owner's public key."""

    folder: Path
    dsse: bool = True
    days: int = 30
    threshold: int = 1
    functionaries: tuple[Ed25519PrivateKey, ...] = (BUILDER,)
    inspect: tuple[str, ...] = ()
    change: Callable[[Layout], None] = field(default=lambda layout: None)

    def write(self) -> "Chain":
        """Make everything anew."""
        for name in ("links", "products"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "products" / "engine.bin").write_bytes(PRODUCT)
        (self.folder / "owner.pub").write_bytes(pem(OWNER))
        self.sign(self.layout(), OWNER, self.folder / "root.layout")
        for functionary in self.functionaries:
            self.write_link(functionary)
        return self

    def layout(self) -> Layout:
        """One step, `build`, that makes `engine.bin` and nothing else."""
        layout = Layout()
        layout.expires = str(Instant(now().ns + self.days * DAY_NS).whole_seconds())  # in-toto itself asks the machine's clock
        layout.keys = {described(private)["keyid"]: described(private) for private in self.functionaries}
        step = Step(name="build", threshold=self.threshold, pubkeys=list(layout.keys))
        step.expected_products = [["CREATE", "engine.bin"], ["DISALLOW", "*"]]
        layout.steps = [step]
        layout.inspect = [Inspection(name=f"look {n}", run=[sys.executable, "-c", code]) for n, code in enumerate(self.inspect)]
        self.change(layout)
        return layout

    def write_link(self, functionary: Ed25519PrivateKey, product: bytes = PRODUCT, **fields: Any) -> Path:
        """The link of the step, named as in-toto looks for it."""
        link = Link(name="build", products={"engine.bin": {"sha256": sha256(product).hexdigest()}}, **fields)
        path = self.folder / "links" / f"build.{described(functionary)['keyid'][:8]}.link"
        self.sign(link, functionary, path)
        return path

    def sign(self, content: Any, private: Ed25519PrivateKey, path: Path) -> None:
        metadata: Metadata = Envelope.from_signable(content) if self.dsse else Metablock(signed=content, signatures=[])
        metadata.create_signature(signer(private))
        path.write_text(json.dumps(metadata.to_dict()), encoding="utf-8")
