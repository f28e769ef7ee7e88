"""Two people, a stranger, and trust policies over them."""

from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from signing import pem, public

from countermark.attestations.trust import TrustPolicy

ALICE, BOB, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))
ANYTHING = "https://example.com/anything/v1"


def key(name: str, private: Ed25519PrivateKey, **more: Any) -> dict[str, Any]:
    return {"file": f"{name}.pub", "spki_sha256": public(private).fingerprint.hex, **more}


def trust_policy(folder: Path, **changes: Any) -> TrustPolicy:
    """A policy of alice and bob with `changes` in its spec, written to `folder` and loaded."""
    spec = {
        "single_operator": False,
        "principals": {"alice": {"keys": [key("alice", ALICE)]}, "bob": {"keys": [key("bob", BOB)]}},
        "roles": {"builder": {"any_of": ["alice", "bob"]}, "approver": {"threshold": {"k": 2, "of": ["alice", "bob"]}}},
        "makes": {"builder": ["source", ANYTHING], "approver": ["waiver"]},
        "separate": [],
        "logs": [],
    } | changes
    for name, private in (("alice", ALICE), ("bob", BOB)):
        (folder / f"{name}.pub").write_bytes(pem(private))
    document = {"apiVersion": "countermark.dev/v1", "kind": "TrustPolicy", "metadata": {"id": "t", "version": 1}, "spec": spec}
    path = folder / "trust.yaml"
    path.write_text(yaml.safe_dump(document))
    return TrustPolicy.load(path)
