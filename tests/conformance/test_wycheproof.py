"""Wycheproof's vectors for every algorithm that is verified here: what it calls valid verifies, what it calls invalid does not.

The checkout is named by COUNTERMARK_WYCHEPROOF. `acceptable` vectors may go either way. An invalid signature must be refused whatever the
key; a key that is not accepted (RSA under 2048 bits, an exotic encoding) refuses every signature. One RSA key is used in two forms, and
`verify` says in which a signature holds: a ledger's leaf is bound to that.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from countermark.attestations.errors import CountermarkError
from countermark.attestations.keys import Algorithm, PublicKey

ROOT = os.environ.get("COUNTERMARK_WYCHEPROOF", "")
VECTORS = Path(ROOT, "testvectors_v1")
FILES = {
    "ed25519_test.json": Algorithm.ED25519,
    "ecdsa_secp256r1_sha256_test.json": Algorithm.ECDSA_P256_SHA256,
    "ecdsa_secp384r1_sha384_test.json": Algorithm.ECDSA_P384_SHA384,
    "mldsa_65_verify_test.json": Algorithm.ML_DSA_65,
    "rsa_signature_2048_sha256_test.json": Algorithm.RSA_PKCS1V15_SHA256,
    "rsa_signature_3072_sha256_test.json": Algorithm.RSA_PKCS1V15_SHA256,
    "rsa_signature_4096_sha256_test.json": Algorithm.RSA_PKCS1V15_SHA256,
    "rsa_signature_8192_sha256_test.json": Algorithm.RSA_PKCS1V15_SHA256,
    "rsa_pss_2048_sha256_mgf1_32_test.json": Algorithm.RSA_PSS_SHA256,
    "rsa_pss_3072_sha256_mgf1_32_test.json": Algorithm.RSA_PSS_SHA256,
    "rsa_pss_4096_sha256_mgf1_32_test.json": Algorithm.RSA_PSS_SHA256,
}
OTHER_FORMS = ("rsa_pss_2048_sha256_mgf1_0_test.json", "rsa_pss_2048_sha256_mgf1sha1_20_test.json", "rsa_signature_2048_sha512_test.json")
"""Forms of RSA that are not accepted here."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not VECTORS.is_dir(), reason="COUNTERMARK_WYCHEPROOF names no checkout of Wycheproof"),
]


def _key(group: dict[str, Any]) -> PublicKey | None:
    """The key of a group; none where it is none, or is not accepted here."""
    try:
        if isinstance(group.get("publicKey"), str):
            raw = MLDSA65PublicKey.from_public_bytes(bytes.fromhex(group["publicKey"]))
            return PublicKey(raw.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
        return PublicKey.from_pem(bytes.fromhex(group["publicKeyDer"]), "vector")
    except (CountermarkError, ValueError, UnsupportedAlgorithm):
        return None


def _verifies_as(key: PublicKey | None, test: dict[str, Any]) -> Algorithm | None:
    try:
        return key.verify(bytes.fromhex(test["msg"]), bytes.fromhex(test["sig"])) if key else None
    except CountermarkError:
        return None


@pytest.mark.parametrize("name", FILES)
def test_none_is_wrong(name: str) -> None:
    groups = json.loads((VECTORS / name).read_text())["testGroups"]
    wrong: list[int] = []
    seen: Counter[str] = Counter()
    for group in groups:
        key = _key(group)
        for test in group["tests"]:
            if test.get("ctx"):
                continue  # a context string, which DSSE and our log never use
            passes, result = _verifies_as(key, test) is FILES[name], test["result"]
            seen[result] += 1
            if (result == "invalid" and passes) or (result == "valid" and not passes):
                wrong.append(test["tcId"])
    assert wrong == []
    assert seen["valid"] or seen["acceptable"]
    assert seen.total() >= 30


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_what_is_signed_in_a_form_that_is_not_accepted_is_refused(name: str) -> None:
    groups = json.loads((VECTORS / name).read_text())["testGroups"]
    valid = [(_key(group), test) for group in groups for test in group["tests"] if test["result"] == "valid"]
    assert valid
    assert {_verifies_as(key, test) for key, test in valid} == {None}
