"""The trust root of a sigstore instance: its certificate authorities, logs and timestamp authorities.

Source of the format: sigstore protobuf-specs, `sigstore_trustroot.proto`. Nothing is fetched: the root is a file that the user names, or
the copy of the public instance's root that is part of the sigstore package. Its digest is reported with every verdict, since a root is
taken on trust.
"""

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import read_file
from countermark.attestations.errors import CannotTellError, InputError, Location
from countermark.attestations.failing_closed import first_line

if TYPE_CHECKING:  # sigstore costs 0.4 s to import, so that only commands that read bundles pay for it
    from sigstore.models import TrustedRoot

PUBLIC_ROOT = "the public sigstore instance, as shipped with the sigstore package"
MAX_ROOT = 4 * 1024 * 1024

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
        try:
            inner = v1.TrustedRoot.from_json(json.dumps(value))
            library = TrustedRoot(inner)
        except (ValueError, Error) as error:
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


def _malformed(source: str, what: str) -> InputError:
    return InputError(
        Code.SCHEMA_INVALID, f"this is not a usable trust root: {what}", at=Location(source), fix="give a trusted_root.json of version 0.1"
    )
