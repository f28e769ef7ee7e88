"""What the tests of bundles share: one local instance, a statement, verifiers, the real attestations, and texts with one byte changed."""

import copy
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from local_log import Log
from local_sigstore import ISSUER, SAN, Json, LocalSigstore, p256

from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.certificate import Leaf
from countermark.attestations.located import pointer_join
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.trust import Identity

REAL = sorted(path for path in (Path(__file__).parents[1] / "data" / "pep740").iterdir() if path.suffix != ".md")
SIGNER = Identity(SAN, ISSUER)
STATEMENT = json.dumps(
    {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"gitCommit": "a" * 40}}],
        "predicateType": "https://example.com/anything/v1",
        "predicate": {"n": 1},
    }
).encode()


@cache
def instance() -> LocalSigstore:
    """An instance whose log promises, and has earlier shards, as Rekor v1 does."""
    return LocalSigstore(Log(key=p256(), earlier=1000))


@cache
def modern() -> LocalSigstore:
    """An instance with an Ed25519 log, as Rekor v2 has."""
    return LocalSigstore()


def promised(**changes: Any) -> Json:
    """A bundle with the log's promise for its time."""
    return instance().sign(STATEMENT, **{"promised": timedelta(seconds=3), "stamped": None, **changes})


def root_of(sigstore: LocalSigstore) -> SigstoreRoot:
    return SigstoreRoot.parse(sigstore.root_bytes(), "trusted_root.json")


def expecting(sigstore: LocalSigstore, identity: Identity = SIGNER) -> BundleVerifier:
    return BundleVerifier(root_of(sigstore), BundleTrust(ExpectedIdentity(identity)))


@cache
def public_root() -> SigstoreRoot:
    return SigstoreRoot.public()


def expecting_own(data: bytes) -> BundleVerifier:
    """A verifier under the public root that believes whoever the certificate names."""
    certificate = Bundle.parse(data, "real").certificate
    assert certificate is not None
    return BundleVerifier(public_root(), BundleTrust(ExpectedIdentity(Leaf.parse(certificate, "real").identity)))


def encoded(bundle: Json) -> bytes:
    return json.dumps(bundle).encode()


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy of `value` with another value at `path`."""
    changed = copy.deepcopy(value)
    target = changed
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = new
    return changed


def texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text of a JSON value with its path."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, child in children:
        yield from texts(child, (*path, part))
    if isinstance(value, str):
        yield path, value


def changed_texts(value: Any, stride: int) -> Iterator[tuple[str, bytes]]:
    """The JSON with one character of one text changed: in each text the first, the last and every `stride`-th; with its pointer."""
    for path, text in texts(value):
        pointer = ""
        for part in path:
            pointer = pointer_join(pointer, part)
        for at in sorted({0, len(text) - 1, *range(stride // 2, len(text), stride)}) if text else ():
            other = "B" if text[at] == "A" else chr(ord(text[at]) ^ 1) if text[at].isalnum() else "A"
            yield pointer, encoded(put(value, path, text[:at] + other + text[at + 1 :]))
