"""Our verdicts on bundles beside those of `@sigstore/verify`, the verifier in JavaScript, which shares no code with what ours rests on.

COUNTERMARK_SIGSTORE_JS names a folder with `node_modules` in which @sigstore/verify, @sigstore/bundle and @sigstore/protobuf-specs are
installed; `node`, or what COUNTERMARK_NODE names, must be 22.22 or later. Bundles of sigstore-conformance join where its checkout is named.
Where the two differ, the case stands below with the reason; a case that we pass and it refuses has no place there.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import pytest
from bundles import REAL, SIGNER, STATEMENT, encoded, instance, modern, put
from cryptography.hazmat.primitives.asymmetric import ec
from flips import flips
from local_certificates import spki
from local_sigstore import SAN, Json, LocalSigstore, p256

from countermark.attestations.bundle import Bundle
from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.certificate import Leaf
from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import PublicKey
from countermark.attestations.signed_file import Artifact
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.trust import Identity
from countermark.attestations.verifier import KeyTrust

PACKAGES = os.environ.get("COUNTERMARK_SIGSTORE_JS", "")
CONFORMANCE = os.environ.get("COUNTERMARK_SIGSTORE_CONFORMANCE", "")
CLIENT = Path(__file__).parents[1] / "support" / "sigstore_js.cjs"
MODEL = Path(__file__).parents[1] / "data" / "model_signing"
OLDEST: Final = (22, 22)
BEACON = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
CONFORMANCE_SIGNER = Identity(f"{BEACON}extremely-dangerous-oidc-beacon.yml@refs/heads/main", "https://token.actions.githubusercontent.com")
DIFFERENCES = {
    "intoto-with-custom-trust-root": "ours rests on the sigstore package, which reads no log entries of kind intoto",
    "trust-root-tsa-validity-end-inclusive": "the sigstore package takes the end of an authority's validity as excluded",
    "trust-root-tlog-missing-validity-start_fail": "a bad one; the JavaScript verifier takes a missing start for the beginning of time",
}
"""Cases that `@sigstore/verify` passes and we refuse, and why."""


@cache
def node() -> str | None:
    """A Node that the package runs on, if there is one."""
    found = shutil.which(os.environ.get("COUNTERMARK_NODE", "node"))
    if found is None:
        return None
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(map(int, re.findall(r"\d+", told)[:2]))
    return found if version >= OLDEST else None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PACKAGES or node() is None, reason="COUNTERMARK_SIGSTORE_JS names no folder with @sigstore/verify, or Node is older than 22.22"
    ),
    pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning"),
]


@dataclass(frozen=True, slots=True)
class Case:
    """A bundle and what both verifiers are asked: under this root, is it by this identity or key, over this file."""

    name: str
    bundle: bytes
    root: bytes
    identity: Identity | None = None
    key: PublicKey | None = None
    file: Path | None = None

    def ours(self) -> bool:
        """Our verdict."""
        try:
            trust = BundleTrust(ExpectedIdentity(self.identity)) if self.identity else BundleTrust()
            if self.key:
                trust = BundleTrust(keys=KeyTrust((self.key,)))
            verifier = BundleVerifier(SigstoreRoot.parse(self.root, "root"), trust)
            if self.file and b'"messageSignature"' in self.bundle:
                verifier.verify_file(self.bundle, self.name, Artifact.of(str(self.file)))
            else:
                verifier.verify(self.bundle, self.name)
        except CountermarkError:
            return False
        return True

    def asked(self) -> dict[str, object]:
        """The case as the client in JavaScript reads it."""
        return {
            "bundle": json.loads(self.bundle),
            "root": json.loads(self.root),
            "identity": {"san": self.identity.san, "issuer": self.identity.issuer} if self.identity else None,
            "key": self.key.to_pem().decode() if self.key else None,
            "artifact": base64.b64encode(self.file.read_bytes()).decode() if self.file else None,
        }


def public_root() -> bytes:
    """The public instance's root, as the sigstore package ships it."""
    store = resources.files("sigstore").joinpath("_store", "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev", "trusted_root.json")
    return store.read_bytes()


def published() -> Iterator[Case]:
    """PEP 740 attestations, each as the bundle that it was made from, and a model that model-signing signed."""
    for path in REAL:
        bundle = Bundle.parse(path.read_bytes(), path.name)
        assert bundle.certificate
        identity = Leaf.parse(bundle.certificate, path.name).identity
        yield Case(path.name, bundle.text.encode(), public_root(), identity)
        yield Case(f"{path.name} by another", bundle.text.encode(), public_root(), SIGNER)
    signed, key = (MODEL / name for name in ("model.sig", "key.pub"))
    yield Case("a model", signed.read_bytes(), public_root(), key=PublicKey.from_pem(key.read_bytes(), str(key)))
    yield Case("a model by another", signed.read_bytes(), public_root(), key=PublicKey(spki(p256().public_key())))


def _local(name: str, sigstore: LocalSigstore, bundle: Json, identity: Identity | None = SIGNER, key: PublicKey | None = None) -> Case:
    return Case(name, encoded(bundle), sigstore.root_bytes(), None if key else identity, key)


def local() -> Iterator[Case]:
    """Bundles of our own instances, good ones and bad ones."""
    good, old, forged = modern().sign(STATEMENT), instance().sign(STATEMENT, promised=timedelta(seconds=3)), LocalSigstore().sign(STATEMENT)
    yield _local("good", modern(), good)
    yield _local("good with a promise", instance(), old)
    yield _local("good with a timestamp without certificate", modern(), modern().sign(STATEMENT, embed=False))
    yield _local("another name", modern(), good, Identity(SAN + "x", SIGNER.issuer))
    yield _local("another issuer", modern(), good, Identity(SAN, SIGNER.issuer + "/"))
    yield _local("another instance", modern(), forged)
    yield _local("no certificate timestamp", modern(), modern().sign(STATEMENT, sct=False))
    yield _local("too late", modern(), modern().sign(STATEMENT, stamped=timedelta(minutes=11)))
    yield _local("no time", modern(), modern().sign(STATEMENT, stamped=None))
    yield _local("a P-384 key", modern(), modern().sign(STATEMENT, key=ec.generate_private_key(ec.SECP384R1())))
    other = modern().sign(STATEMENT)
    for part in ("certificate", "tlogEntries", "timestampVerificationData"):
        yield _local(f"swapped {part}", modern(), put(good, ("verificationMaterial", part), other["verificationMaterial"][part]))
    yield _local("swapped envelope", modern(), put(good, ("dsseEnvelope",), other["dsseEnvelope"]))
    yield _local("no signatures", modern(), put(good, ("dsseEnvelope", "signatures"), []))
    private = p256()
    known, stranger = PublicKey(spki(private.public_key())), PublicKey(spki(p256().public_key()))
    for logged, sigstore in (("", modern()), ("dsse", instance()), ("hashedrekord", modern())):
        bundle = sigstore.sign_with_key(STATEMENT, private, logged=logged)
        yield _local(f"a key, logged {logged or 'nowhere'}", sigstore, bundle, key=known)
        yield _local(f"another key, logged {logged or 'nowhere'}", sigstore, bundle, key=stranger)
    yield _local("a key's bundle as an identity's", modern(), modern().sign_with_key(STATEMENT, private))
    yield _local("an identity's bundle as a key's", modern(), modern().sign(STATEMENT, key=private), key=known)


def conformance() -> Iterator[Case]:
    """The bundles of sigstore-conformance that can be read as JSON."""
    for folder in sorted(Path(CONFORMANCE, "test/assets/bundle-verify").glob("*/")):
        text, key, root = (folder / name for name in ("bundle.sigstore.json", "key.pub", "trusted_root.json"))
        own, san, issuer = (folder / name for name in ("artifact", "identity", "issuer"))
        try:
            json.loads(text.read_bytes())
            known = PublicKey.from_pem(key.read_bytes(), str(key)) if key.exists() else None
        except (ValueError, CountermarkError):
            continue
        identity = Identity(
            san.read_text().strip() if san.exists() else CONFORMANCE_SIGNER.san,
            issuer.read_text().strip() if issuer.exists() else CONFORMANCE_SIGNER.issuer,
        )
        file = own if own.exists() else folder.parent / "a.txt"
        trusted = root.read_bytes() if root.exists() else public_root()
        yield Case(folder.name, text.read_bytes(), trusted, None if known else identity, known, file)


def verdicts(cases: list[Case]) -> list[str]:
    """What `@sigstore/verify` says of each: nothing where it passes, else why not."""
    program = node()
    assert program
    asked = json.dumps([case.asked() for case in cases])
    answer = subprocess.run([program, str(CLIENT), PACKAGES], input=asked, capture_output=True, text=True, check=True, timeout=300)
    return [str(item) for item in json.loads(answer.stdout)]


def test_no_flipped_bundle_passes_ours_alone() -> None:
    """The other way round it may: the JavaScript verifier reads over fields that it does not know."""
    bundles = [(modern(), modern().sign(STATEMENT)), (instance(), instance().sign(STATEMENT, promised=timedelta(seconds=3)))]
    changed = [(sigstore, text) for sigstore, bundle in bundles for _, text in flips(encoded(bundle), 1000) if _is_json(text)]
    cases = [Case(str(number), text, sigstore.root_bytes(), SIGNER) for number, (sigstore, text) in enumerate(changed)]
    assert len(cases) > 500
    assert [case.name for case, answer in zip(cases, verdicts(cases), strict=True) if case.ours() and answer] == []


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("source", [published, local, pytest.param(conformance, id="conformance")])
def test_both_say_the_same(source: Callable[[], Iterator[Case]]) -> None:
    cases = list(source())
    if source is conformance and not CONFORMANCE:
        pytest.skip("COUNTERMARK_SIGSTORE_CONFORMANCE names no checkout of sigstore-conformance")
    found = {case.name: (case.ours(), answer) for case, answer in zip(cases, verdicts(cases), strict=True)}
    assert {name: answer for name, (ours, answer) in found.items() if ours and answer} == {}, "we pass what it refuses"
    stricter = {name for name, (ours, answer) in found.items() if not ours and not answer}
    assert stricter == DIFFERENCES.keys() & found.keys()
    assert any(ours for ours, _ in found.values())
    assert not all(ours for ours, _ in found.values())
