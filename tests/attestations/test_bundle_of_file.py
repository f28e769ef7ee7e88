"""Bundles that sign a file: the file or its digest must be the one that was signed, by the one who is believed."""

import random
from hashlib import sha256
from pathlib import Path

import pytest
from bundles import SIGNER, STATEMENT, encoded, expecting, modern, put, root_of
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from local_certificates import spki
from local_sigstore import ISSUER, SAN, Json, SigningKey, p256

from countermark.attestations.bundle_trust import BundleTrust
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, RefusedError
from countermark.attestations.keys import PublicKey
from countermark.attestations.signed_file import Artifact
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.verifier import KeyTrust
from countermark.cli.app import run

DATA = b"weights"

# A changed serial number may be negative, of which cryptography warns before the certificate is refused.
pytestmark = pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(DATA)
    return path


def believing(*keys: SigningKey) -> BundleVerifier:
    return BundleVerifier(root_of(modern()), BundleTrust(keys=KeyTrust(tuple(PublicKey(spki(private.public_key())) for private in keys))))


def digest(data: bytes = DATA) -> Artifact:
    return Artifact.of(f"sha256:{sha256(data).hexdigest()}")


def test_keyless_by_file_and_by_digest(file: Path) -> None:
    bundle = encoded(modern().sign_file(DATA))
    for artifact in (Artifact.of(str(file)), digest()):
        proven = expecting(modern()).verify_file(bundle, "bundle", artifact)
        assert (proven.identity, proven.artifact.raw) == (SIGNER, sha256(DATA).digest())
        assert (proven.log is not None, len(proven.times)) == (True, 1)


def test_managed_key(file: Path) -> None:
    private = p256()
    bundle = encoded(modern().sign_file(DATA, key=private, managed=True))
    assert believing(p256(), private).verify_file(bundle, "bundle", digest()).key.spki == spki(private.public_key())
    with pytest.raises(RefusedError, match="no key"):
        believing(p256()).verify_file(bundle, "bundle", Artifact.of(str(file)))


@pytest.mark.parametrize(
    "private", [ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP384R1())], ids=["ed25519", "P-384"]
)
def test_a_key_that_signs_no_sha256_needs_the_file(private: SigningKey, file: Path) -> None:
    bundle = modern().sign_file(DATA, key=private, managed=True)
    bundle["verificationMaterial"]["tlogEntries"] = []
    assert believing(private).verify_file(encoded(bundle), "bundle", Artifact.of(str(file))).log is None
    with pytest.raises(CannotTellError):
        believing(private).verify_file(encoded(bundle), "bundle", digest())


@pytest.mark.parametrize("managed", [False, True])
def test_another_file_is_refused_also_where_no_digest_is_stated(managed: bool) -> None:
    private = p256()
    bundle = modern().sign_file(DATA, key=private, managed=managed)
    verifier = believing(private) if managed else expecting(modern())
    with pytest.raises(RefusedError) as caught:
        verifier.verify_file(encoded(bundle), "bundle", digest(b"other"))
    assert caught.value.code is Code.SUBJECT_MISMATCH
    del bundle["messageSignature"]["messageDigest"]
    assert verifier.verify_file(encoded(bundle), "bundle", digest()).artifact == digest().digest
    with pytest.raises(RefusedError) as caught:
        verifier.verify_file(encoded(bundle), "bundle", digest(b"other"))
    assert caught.value.code is Code.SIG_INVALID


def test_a_statement_is_no_file_and_a_file_no_statement() -> None:
    with pytest.raises(InputError, match="holds an attestation"):
        expecting(modern()).verify_file(encoded(modern().sign(STATEMENT)), "bundle", digest())
    with pytest.raises(InputError, match="signs a file"):
        expecting(modern()).verify(encoded(modern().sign_file(DATA)), "bundle")
    both = {**modern().sign_file(DATA), "dsseEnvelope": modern().sign(STATEMENT)["dsseEnvelope"]}
    with pytest.raises(InputError, match="never both"):
        expecting(modern()).verify_file(encoded(both), "bundle", digest())


def test_another_digest_algorithm_and_an_empty_signature() -> None:
    bundle = modern().sign_file(DATA)
    for path, value in ((("messageSignature", "messageDigest", "algorithm"), "SHA2_512"), (("messageSignature", "signature"), "")):
        with pytest.raises(InputError):
            expecting(modern()).verify_file(encoded(put(bundle, path, value)), "bundle", digest())


def _passes(root: bytes, bundle: bytes, managed: PublicKey | None) -> bool:
    try:
        trusted = SigstoreRoot.parse(root, "root")
        trust = BundleTrust(keys=KeyTrust((managed,))) if managed else None
        verifier = BundleVerifier(trusted, trust) if trust else BundleVerifier(trusted, expecting(modern())._trust)
        verifier.verify_file(bundle, "bundle", digest())
    except CountermarkError:
        return False
    return True


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("share", [40, pytest.param(None, marks=pytest.mark.slow)])
def test_no_changed_byte_of_a_bundle_passes(managed: bool, share: int | None) -> None:
    """Some bytes of the JSON text, all in `make test-extended`. Timestamps are in `test_bundle_bytes`, hints are unread."""
    private = p256()
    bundle: Json = modern().sign_file(DATA, key=private, managed=managed)
    key = PublicKey(spki(private.public_key())) if managed else None
    good, root = encoded(bundle), modern().root_bytes()
    assert _passes(root, good, key)
    places = range(len(good)) if share is None else random.Random(7).sample(range(len(good)), share)
    passed = [at for at in places if _passes(root, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], key)]
    stamp = str(bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]["signedTimestamp"]).encode()
    apart = [stamp, *([b"whose?"] if managed else [])]
    spans = [range(good.index(text), good.index(text) + len(text)) for text in apart]
    assert [at for at in passed if not any(at in span for span in spans)] == []


def test_the_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    Path("b.json").write_bytes(encoded(modern().sign_file(DATA)))
    Path("s.json").write_bytes(encoded(modern().sign(STATEMENT)))
    Path("root.json").write_bytes(modern().root_bytes())
    who = ["--certificate-identity", SAN, "--certificate-oidc-issuer", ISSUER, "--trusted-root", "root.json"]

    def verify(*arguments: str) -> int:
        return run(["verify", "bundle", *arguments, *who])

    assert verify("b.json", "--artifact", "model.bin") == 0
    assert verify("b.json", "--artifact", f"sha256:{'ab' * 32}") == 1
    assert verify("b.json", "--artifact", "nowhere.bin") == 3
    assert verify("b.json", "--artifact", "model.bin", "--type", "https://example.com/x/v1") == 1
    assert verify("s.json", "--artifact", "model.bin") == 1
    assert verify("b.json") == 3
