"""A transparency log of the tests' own: RFC 6962 tree, C2SP checkpoint, entries as Rekor v2 gives them, or with a promise as Rekor v1."""

import base64
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from local_certificates import spki

LogKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def tree_hash(hashed: list[bytes]) -> bytes:
    """RFC 6962, 2.1, over leaf hashes."""
    if len(hashed) == 1:
        return hashed[0]
    split = 1 << (len(hashed) - 1).bit_length() - 1
    return sha256(b"\x01" + tree_hash(hashed[:split]) + tree_hash(hashed[split:])).digest()


def audit_path(index: int, hashed: list[bytes]) -> list[bytes]:
    """RFC 6962, 2.1.1."""
    if len(hashed) == 1:
        return []
    split = 1 << (len(hashed) - 1).bit_length() - 1
    if index < split:
        return [*audit_path(index, hashed[:split]), tree_hash(hashed[split:])]
    return [*audit_path(index - split, hashed[split:]), tree_hash(hashed[:split])]


@dataclass(slots=True)
class Log:
    """A log by its origin. `earlier` entries of another shard come before, so that outer and proven index differ."""

    origin: str = "log.example.test"
    key: LogKey = field(default_factory=ed25519.Ed25519PrivateKey.generate)
    earlier: int = 0
    leaves: list[bytes] = field(default_factory=list)

    @property
    def id(self) -> bytes:
        """C2SP signed-note key id for Ed25519, the hash of the SPKI for ECDSA."""
        public = self.key.public_key()
        if isinstance(public, ed25519.Ed25519PublicKey):
            return sha256(self.origin.encode() + b"\n\x01" + public.public_bytes_raw()).digest()
        return sha256(spki(public)).digest()

    def append(self, body: dict[str, Any], *, promised: datetime | None = None) -> dict[str, Any]:
        """Log an entry and give it with its proof; with a promise of that time if there is one."""
        canonical = rfc8785.dumps(body)
        self.leaves.append(sha256(b"\x00" + canonical).digest())
        index = len(self.leaves) - 1
        entry: dict[str, Any] = {
            "logIndex": str(index + self.earlier),
            "logId": {"keyId": b64(self.id)},
            "kindVersion": {"kind": body["kind"], "version": body["apiVersion"]},
            "inclusionProof": {
                "logIndex": str(index),
                "rootHash": b64(tree_hash(self.leaves)),
                "treeSize": str(len(self.leaves)),
                "hashes": [b64(node) for node in audit_path(index, self.leaves)],
                "checkpoint": {"envelope": self.checkpoint()},
            },
            "canonicalizedBody": b64(canonical),
        }
        return entry if promised is None else entry | self._promise(entry, int(promised.timestamp()))

    def checkpoint(self) -> str:
        """The signed note of the tree as it is."""
        note = f"{self.origin}\n{len(self.leaves)}\n{b64(tree_hash(self.leaves))}\n"
        return f"{note}\n— {self.origin} {b64(self.id[:4] + self._sign(note.encode()))}\n"

    def _promise(self, entry: dict[str, Any], seconds: int) -> dict[str, Any]:
        promise = {
            "body": entry["canonicalizedBody"],
            "integratedTime": seconds,
            "logID": self.id.hex(),
            "logIndex": int(entry["logIndex"]),
        }
        signature = b64(self._sign(rfc8785.dumps(promise)))
        return {"integratedTime": str(seconds), "inclusionPromise": {"signedEntryTimestamp": signature}}

    def _sign(self, data: bytes) -> bytes:
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            return self.key.sign(data)
        return self.key.sign(data, ec.ECDSA(hashes.SHA256()))
