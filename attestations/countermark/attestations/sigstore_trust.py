"""The trust root of a sigstore instance: its certificate authorities, logs and timestamp authorities.

Source of the format: sigstore protobuf-specs, `sigstore_trustroot.proto`. Nothing is fetched: the root is a file that the user names, or
the copy of the public instance's root that is part of the sigstore package. Its digest is reported with every verdict, since a root is
taken on trust.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import decode_base64
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.failing_closed import first_line
from countermark.attestations.located import walk

if TYPE_CHECKING:  # sigstore costs 0.4 s to import, so that only commands that read bundles pay for it
    from sigstore.models import TrustedRoot
    from sigstore_models.trustroot.v1 import TransparencyLogInstance

PUBLIC_ROOT = "the public sigstore instance, as shipped with the sigstore package"
MAX_ROOT = 4 * 1024 * 1024

_BYTES = ("/rawBytes", "/keyId")
"""The fields in base64. The library reads over junk in them."""

_SHIPPED = ("_store", "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev", "trusted_root.json")


@dataclass(frozen=True, slots=True)
class SigstoreRoot:
    """A trust root as the sigstore library reads it, with the digest of its bytes."""

    library: "TrustedRoot"
    digest: Digest
    source: str

    @classmethod
    def public(cls) -> Self:
        """The root of the public instance; `CannotTellError` when the sigstore package has none."""
        file = resources.files("sigstore").joinpath(*_SHIPPED)
        if not file.is_file():
            fix = "give --trusted-root with a trusted_root.json"
            raise CannotTellError(Code.UNTRUSTED, "the sigstore package holds no trust root", fix=fix)
        return cls.parse(file.read_bytes(), PUBLIC_ROOT)

    @classmethod
    def load(cls, path: Path) -> Self:
        """The root of a `trusted_root.json`."""
        return cls.parse(read_file(path, limit=MAX_ROOT), str(path))

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read a root strictly; `InputError` names what is wrong or missing."""
        from sigstore.errors import Error
        from sigstore.models import TrustedRoot
        from sigstore_models.trustroot import v1

        value = jsontext.loads(data, source, limit=MAX_ROOT)
        for pointer, node in walk(value):
            if pointer.endswith(_BYTES):
                decode_base64(node, source, pointer)
        try:
            inner = v1.TrustedRoot.from_json(json.dumps(value))
            library = TrustedRoot(inner)
            for authority in (*inner.certificate_authorities, *inner.timestamp_authorities):
                _check_chain([certificate.raw_bytes for certificate in authority.cert_chain.certificates])
            for log in (*inner.tlogs, *inner.ctlogs):
                _check_log(log)
        except (ValueError, UnsupportedAlgorithm, Error) as error:
            raise _malformed(source, first_line(error)) from None
        for name in ("tlogs", "certificate_authorities", "ctlogs"):
            if not getattr(inner, name):
                raise _malformed(source, f"it names no {name.replace('_', ' ')}")
        return cls(library, Digest.of(DigestKind.FILE, data), source)

    @property
    def log_ids(self) -> frozenset[bytes]:
        """The ids of the transparency logs that are believed."""
        logs = self.library._inner.tlogs  # noqa: SLF001  # the library shows keys, but no ids
        return frozenset(log.log_id.key_id for log in logs)


def _check_chain(chain: Sequence[bytes]) -> None:
    """`ValueError` unless each certificate is issued by the next, and the last one by itself where it says so.

    The library takes every certificate of the root for an anchor and verifies none of them, so that a damaged one would go unseen.
    """
    try:
        certificates = [x509.load_der_x509_certificate(der) for der in chain]
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from None
    last = certificates[-1:]
    issuers = [*certificates[1:], *(anchor for anchor in last if anchor.issuer == anchor.subject)]
    for certificate, issuer in zip(certificates, issuers, strict=False):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (InvalidSignature, TypeError, UnsupportedAlgorithm):
            raise ValueError("a certificate is not issued by the one after it") from None


def _check_log(log: "TransparencyLogInstance") -> None:
    """`ValueError` for a tree of another hash than RFC 6962's, which nothing here could verify, and for a key in a form of its own.

    OpenSSL reads one point of a curve in several encodings; RFC 5480, 2.2, has one that all must take.
    """
    if log.hash_algorithm != "SHA2_256":
        raise ValueError(f"a log hashes with {log.hash_algorithm}, and only SHA2_256 is verified")
    raw = log.public_key.raw_bytes
    key = load_der_public_key(raw) if raw else None
    if isinstance(key, ec.EllipticCurvePublicKey) and key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != raw:
        raise ValueError("the key of a log is not in its canonical form")


def _malformed(source: str, what: str) -> InputError:
    return InputError(
        Code.SCHEMA_INVALID, f"this is not a usable trust root: {what}", at=Location(source), fix="give a trusted_root.json of version 0.1"
    )
