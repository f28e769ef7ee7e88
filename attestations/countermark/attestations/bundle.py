"""Sigstore bundles and PEP 740 attestations, read strictly into one form.

Source of the formats: sigstore protobuf-specs, `sigstore_bundle.proto` (versions 0.1 to 0.3), and PEP 740. The sigstore library takes
duplicate keys, junk inside base64, numbers like `+5` and field names in two spellings. A bundle is therefore read here first and must
come back from the library's model as it was written; what the library then verifies is what was read, never the original text.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.envelope import MAX_ENVELOPE, PAYLOAD_TYPE, Envelope
from countermark.attestations.errors import InputError, Location
from countermark.attestations.failing_closed import first_line
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.signed_file import FileSignature

if TYPE_CHECKING:
    from sigstore_models.bundle.v1 import Bundle as Model

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"

_MEDIA_TYPES = (MEDIA_TYPE, *(f"application/vnd.dev.sigstore.bundle+json;version=0.{minor}" for minor in (1, 2, 3)))
_PEP740 = {"version", "verification_material", "envelope"}


@dataclass(frozen=True, slots=True)
class Bundle:
    """One signature over one statement or file with what is needed to verify it: a certificate or the hint at a key, log entries,
    timestamps.

    `content` is the statement's envelope, or the signature over a file. `text` is the bundle as the library gets it; `certificate` is
    the leaf in DER, none when a managed key signed; `digest` is of the bytes as they came.
    """

    content: Envelope | FileSignature
    certificate: bytes | None
    model: "Model"
    text: str
    digest: Digest
    source: str

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read a bundle; `InputError` for anything that two readers could read differently."""
        from sigstore_models.bundle.v1 import Bundle as Model

        reader = _Reader(source)
        value = reader.normal(jsontext.loads(data, source, limit=MAX_ENVELOPE))
        envelope = None if "messageSignature" in value else reader.envelope(value)
        text = json.dumps(value)
        try:
            model = Model.from_json(text)
        except ValueError as error:
            raise reader.error("", f"this is not a sigstore bundle: {first_line(error)}", "give a bundle of version 0.1 to 0.3") from None
        reader.check_same(value, model.to_dict(), "")
        return cls(
            envelope or reader.file_signature(value, model), reader.leaf(model), model, text, Digest.of(DigestKind.FILE, data), source
        )

    @property
    def envelope(self) -> Envelope:
        """The envelope of the statement; `InputError` UNSUPPORTED for a bundle that signs a file."""
        if isinstance(self.content, FileSignature):
            message = "this bundle signs a file and holds no attestation"
            at = Location(self.source, pointer="/messageSignature")
            raise InputError(Code.UNSUPPORTED, message, at=at, fix="give the file with --artifact, or a bundle with a DSSE envelope")
        return self.content

    @property
    def signature(self) -> bytes:
        """The one signature."""
        return self.content.signature if isinstance(self.content, FileSignature) else self.content.signatures[0].sig


@dataclass(frozen=True, slots=True)
class _Reader:
    source: str

    def error(self, pointer: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
        return InputError(code, message, at=Location(self.source, pointer=pointer or None), fix=fix)

    def normal(self, value: JsonValue) -> dict[str, JsonValue]:
        """The bundle with what its JSON may leave out; a PEP 740 attestation as the bundle that it was made from."""
        if not isinstance(value, dict):
            raise self.error("", "this is not a sigstore bundle", "give a bundle of version 0.1 to 0.3")
        if "verification_material" in value:
            value = self._of_pep740(value)
        if value.get("mediaType") not in _MEDIA_TYPES:
            message = f"bundles of media type {value.get('mediaType')!r} are not read"
            raise self.error("/mediaType", message, "give a bundle of version 0.1 to 0.3", Code.UNSUPPORTED)
        if "messageSignature" in value and "dsseEnvelope" in value:
            raise self.error("/messageSignature", "a bundle signs a statement or a file, never both", "give the bundle as it was made")
        material = _without_nulls(as_object(value.get("verificationMaterial")))
        material.setdefault("tlogEntries", [])
        if isinstance(material.get("publicKey"), dict):
            material["publicKey"] = {"hint": "", **as_object(material["publicKey"])}
        return {**value, "verificationMaterial": material}

    def _of_pep740(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        material, envelope = as_object(value["verification_material"]), as_object(value.get("envelope"))
        fields = (set(value), set(material), set(envelope), type(value.get("version")), value.get("version"))
        if fields != (_PEP740, {"certificate", "transparency_entries"}, {"statement", "signature"}, int, 1):
            raise self.error("", "this is not a PEP 740 attestation of version 1", "give the attestation object as it was published")
        return {
            "mediaType": MEDIA_TYPE,
            "verificationMaterial": {
                "certificate": {"rawBytes": material["certificate"]},
                "tlogEntries": material["transparency_entries"],
            },
            "dsseEnvelope": {
                "payload": envelope["statement"],
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": envelope["signature"]}],
            },
        }

    def envelope(self, value: dict[str, JsonValue]) -> Envelope:
        """The envelope, put back into the bundle in the standard alphabet: the library decodes the URL-safe one wrongly."""
        envelope = Envelope.from_json(value.get("dsseEnvelope"), self.source)
        if len(envelope.signatures) != 1:
            message = f"a bundle holds exactly one signature, this one {len(envelope.signatures)}"
            raise self.error("/dsseEnvelope/signatures", message, "give one bundle a signature")
        fields = dict(as_object(value["dsseEnvelope"]))
        signature = dict(as_object(as_list(fields["signatures"])[0]))
        signature["sig"] = base64.b64encode(envelope.signatures[0].sig).decode()
        fields |= {"payload": base64.b64encode(envelope.payload).decode(), "signatures": [signature]}
        value["dsseEnvelope"] = fields
        return envelope

    def file_signature(self, value: Mapping[str, JsonValue], model: "Model") -> FileSignature:
        """The signature over a file, and the SHA-256 that is stated beside it."""
        signed = model.message_signature
        if signed is None or not signed.signature:
            raise self.error("/messageSignature/signature", "there is no signature", "give a bundle that was signed")
        stated = as_object(as_object(value.get("messageSignature")).get("messageDigest"))
        if not stated or signed.message_digest is None:
            return FileSignature(signed.signature, None)
        if stated.get("algorithm") != "SHA2_256":
            message = f"digests of {stated.get('algorithm')!r} are not read"
            raise self.error("/messageSignature/messageDigest/algorithm", message, "give a bundle over a SHA-256", Code.UNSUPPORTED)
        return FileSignature(signed.signature, signed.message_digest.digest)

    def check_same(self, read: JsonValue, kept: JsonValue, pointer: str) -> None:
        """Refuse what the model took for something else than it says: junk, other spellings, fields of another name."""
        if isinstance(read, dict) and isinstance(kept, dict) and read.keys() == kept.keys():
            for name, child in read.items():
                self.check_same(child, kept[name], f"{pointer}/{name}")
        elif isinstance(read, list) and isinstance(kept, list) and len(read) == len(kept):
            for number, (child, other) in enumerate(zip(read, kept, strict=True)):
                self.check_same(child, other, f"{pointer}/{number}")
        elif read != kept:
            raise self.error(pointer, "this is not in its canonical form", "write base64 and integers as a sigstore client does")

    def leaf(self, model: "Model") -> bytes | None:
        """The signing certificate. Certificates beside it are refused: they would be bytes that nothing verifies."""
        material = model.verification_material
        if material.x509_certificate_chain is None:
            return material.certificate.raw_bytes if material.certificate else None
        certificates = material.x509_certificate_chain.certificates
        if len(certificates) != 1:
            pointer = "/verificationMaterial/x509CertificateChain/certificates"
            raise self.error(pointer, "a bundle holds the signing certificate alone", "leave out authorities; they stand in the trust root")
        return certificates[0].raw_bytes


def _without_nulls(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Protobuf's JSON may write an absent field as null."""
    return {name: child for name, child in value.items() if child is not None}
