"""RFC 3161 timestamps over a signature.

The rfc3161-client package verifies a token; this says which tokens are taken. The sigstore library passes over a timestamp that does
not verify as long as another time source remains, so that a bundle could carry any claim: here all must verify.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from countermark.attestations.codes import Code
from countermark.attestations.errors import Location, RefusedError
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.times import Instant

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse
    from sigstore._internal.trust import CertificateAuthority

MAX_TIMESTAMPS = 32

# RFC 5652, 5.1 and 5.3: of signed data that are not plain data, and of its one signer, named by issuer and serial number.
_VERSIONS = (3, 1)


@dataclass(frozen=True, slots=True)
class VerifiedTime:
    """When a signature existed at the latest, and who says so: `timestamp-authority` or `transparency-log`."""

    at: Instant
    by: str


def verified_timestamps(
    tokens: Iterable[bytes], signature: bytes, authorities: "Iterable[CertificateAuthority]", source: str
) -> tuple[VerifiedTime, ...]:
    """The times of DER `TimeStampResp` tokens over `signature`; `RefusedError` when one does not verify or comes twice."""
    distinct = list(tokens)
    if len(set(distinct)) != len(distinct) or len(distinct) > MAX_TIMESTAMPS:
        raise _refused(source, f"timestamps are distinct and at most {MAX_TIMESTAMPS}")
    known = list(authorities)
    return tuple(_verified(token, signature, known, source) for token in distinct)


def _verified(token: bytes, signature: bytes, authorities: "list[CertificateAuthority]", source: str) -> VerifiedTime:
    from rfc3161_client import decode_timestamp_response

    try:
        response = decode_timestamp_response(token)
    except ValueError:
        raise _refused(source, "this is not a timestamp response") from None
    versions = (response.signed_data.version, *(signer.version for signer in response.signed_data.signer_infos))
    if versions != _VERSIONS:
        raise _refused(source, "the timestamp is not one signature of the form that RFC 3161 prescribes")
    for authority in authorities:
        if _issued(authority, response, signature, source):
            return VerifiedTime(Instant.of(response.tst_info.gen_time), "timestamp-authority")
    raise _refused(source, "no timestamp authority of the trust root made this timestamp over this signature")


def _issued(authority: "CertificateAuthority", response: "TimeStampResponse", signature: bytes, source: str) -> bool:
    from rfc3161_client import VerifierBuilder

    chain = authority.certificates(allow_expired=True)
    if len(chain) < 2:
        return False
    verifier = VerifierBuilder(tsa_certificate=chain[0], intermediates=chain[1:-1], roots=[chain[-1]]).build()
    try:
        with failing_closed("rfc3161-client", source):
            verifier.verify_message(response, signature)
    except RefusedError:
        return False
    end, made = authority.validity_period_end, response.tst_info.gen_time
    return authority.validity_period_start <= made and (end is None or made <= end)


def _refused(source: str, message: str) -> RefusedError:
    at = Location(source, pointer="/verificationMaterial/timestampVerificationData")
    return RefusedError(Code.SIG_INVALID, message, at=at, fix="give the bundle as its signer made it")
