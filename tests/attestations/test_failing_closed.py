"""Whatever a library raises while it verifies is a refusal; what is no error of a library goes on as it is."""

import base64
from typing import Any

import pytest
from bundles import STATEMENT, encoded, instance, modern
from cryptography.hazmat.primitives.serialization import Encoding
from sigstore.models import TrustedRoot
from sigstore_models.trustroot import v1

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.sigstore_trust import SigstoreRoot
from countermark.attestations.trusted_time import verified_timestamps


@pytest.mark.parametrize("error", [ValueError("bad"), KeyError("keyid"), TypeError(), RecursionError()])
def test_every_exception_is_a_refusal(error: Exception) -> None:
    with pytest.raises(RefusedError) as caught, failing_closed("a library", "bundle"):
        raise error
    assert caught.value.code is Code.SIG_INVALID


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), GeneratorExit()])
def test_the_end_of_the_program_is_none(error: BaseException) -> None:
    with pytest.raises(type(error)), failing_closed("a library", "bundle"):
        raise error


def _with_odd_name() -> dict[str, Any]:
    """A trust root whose timestamp authority has a name that cryptography reads and OpenSSL does not: the type of a text is unheard of."""
    root = modern().trusted_root()
    anchor = modern().timestamps.root
    issuer = anchor.issuer.public_bytes()
    odd = anchor.public_bytes(Encoding.DER).replace(issuer, issuer.replace(b"\x0c\x0cexample.test", b"\x4c\x0cexample.test"), 1)
    root["timestampAuthorities"][0]["certChain"]["certificates"][-1]["rawBytes"] = base64.b64encode(odd).decode()
    return root


def test_a_panic_of_a_library_in_rust_is_a_refusal() -> None:
    """It is no `Exception`; rfc3161-client panics when OpenSSL does not read a certificate that it gave to it."""
    bundle = modern().sign(STATEMENT)
    signature = base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"])
    token = base64.b64decode(bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]["signedTimestamp"])
    authorities = TrustedRoot(v1.TrustedRoot.from_json(encoded(_with_odd_name()))).get_timestamp_authorities()
    with pytest.raises(RefusedError):
        verified_timestamps([token], signature, authorities, "bundle")


class TestRoots:
    """A trust root is read to its end before anything is verified under it."""

    def refused(self, root: dict[str, Any], match: str) -> None:
        with pytest.raises(InputError, match=match):
            SigstoreRoot.parse(encoded(root), "root")

    def test_a_certificate_that_the_next_did_not_issue(self) -> None:
        root = modern().trusted_root()
        for authority in (*root["certificateAuthorities"], *root["timestampAuthorities"]):
            chain = authority["certChain"]["certificates"]
            chain.reverse()
            self.refused(root, "issue")
            chain.reverse()
        SigstoreRoot.parse(encoded(root), "root")

    def test_bytes_that_are_no_certificate(self) -> None:
        root = modern().trusted_root()
        root["certificateAuthorities"][0]["certChain"]["certificates"][0]["rawBytes"] = "AAAA"
        self.refused(root, "not a usable trust root")

    def test_base64_that_two_readers_read_differently(self) -> None:
        root = modern().trusted_root()
        root["tlogs"][0]["publicKey"]["rawBytes"] += "!"
        self.refused(root, "base64")

    def test_a_log_of_another_hash(self) -> None:
        root = modern().trusted_root()
        root["tlogs"][0]["hashAlgorithm"] = "SHA2_512"
        self.refused(root, "SHA2_256")

    def test_a_key_of_a_log_in_another_encoding(self) -> None:
        """The same point, in the hybrid form of X9.62."""
        root = instance().trusted_root()
        raw = base64.b64decode(root["tlogs"][0]["publicKey"]["rawBytes"])
        point = raw[-65:]
        hybrid = raw[:-65] + bytes([6 | point[-1] & 1]) + point[1:]
        root["tlogs"][0]["publicKey"]["rawBytes"] = base64.b64encode(hybrid).decode()
        self.refused(root, "canonical")
