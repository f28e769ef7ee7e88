"""Typed digests: what was hashed is part of the identity, so an image ID can never be read as a registry digest."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location


class DigestKind(StrEnum):
    """What the hashed bytes are."""

    OCI_INDEX = "oci-index"
    OCI_MANIFEST = "oci-manifest"
    OCI_CONFIG = "oci-config"
    GIT_COMMIT = "git-commit"
    GIT_TREE = "git-tree"
    SOURCE_TREE = "source-tree"
    FILE = "file"
    MANIFEST_SELF = "manifest-self"
    STREAM = "stream"
    OBJECT = "object"
    PROMPT_TEXT = "prompt-text"
    PROMPT_TOKENS = "prompt-tokens"
    RESPONSE_RAW = "response-raw"
    RESPONSE_NORMALISED = "response-normalised"
    PAYLOAD = "payload"
    SPKI = "spki"

    @property
    def is_git(self) -> bool:
        """Whether the digest is a git object id, whose hash algorithm shows in its length only."""
        return self in (DigestKind.GIT_COMMIT, DigestKind.GIT_TREE)

    @property
    def is_oci(self) -> bool:
        """Whether the digest names an image at one of its three levels."""
        return self in (DigestKind.OCI_INDEX, DigestKind.OCI_MANIFEST, DigestKind.OCI_CONFIG)


_BARE = re.compile(r"sha256:([0-9a-f]{1,63})\Z")
_HEX = re.compile(r"[0-9a-f]+\Z")
_IMAGE_REFERENCE = re.compile(r"[\w.-]+(?::\d+)?(?:/[\w.-]+)*(?::[\w.-]+)?\Z")


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A digest and the kind of thing it names. Equal only when kind and hex are equal. Always full length."""

    kind: DigestKind
    hex: str

    def __post_init__(self) -> None:
        lengths = (40, 64) if self.kind.is_git else (64,)
        if len(self.hex) not in lengths or not _HEX.match(self.hex):
            raise InputError(
                Code.BAD_DIGEST,
                f"{self.hex!r} is not the {' or '.join(map(str, lengths))} lower-case hex digits of a {self.kind}",
                fix="give the full digest; a prefix is a search term, never an identity",
            )

    @classmethod
    def parse(cls, text: str, *, at: Location | None = None) -> Self:
        """Read `KIND:sha256:HEX64` or `git-commit:HEX`; an `InputError` says which part is wrong."""
        kind_text, _, rest = text.partition(":")
        try:
            kind = DigestKind(kind_text)
        except ValueError:
            raise _not_a_digest(text, at) from None
        algorithm, _, hexed = rest.rpartition(":")
        if algorithm != ("" if kind.is_git else "sha256"):
            form = f"{kind}:HEX" if kind.is_git else f"{kind}:sha256:HEX64"
            raise InputError(Code.BAD_DIGEST, f"{text!r} is not of the form {form}", at=at, fix=f"write it as {form}")
        try:
            return cls(kind, hexed)
        except InputError as error:
            raise InputError(error.code, error.message, at=at, fix=error.fix) from None

    @classmethod
    def stated(cls, value: object) -> Self | None:
        """The digest that a value states; none for what is not the text of one."""
        try:
            return cls.parse(value) if isinstance(value, str) else None
        except InputError:
            return None

    @classmethod
    def of(cls, kind: DigestKind, data: bytes) -> Self:
        """The SHA-256 of `data`, typed."""
        return cls(kind, hashlib.sha256(data).hexdigest())

    @property
    def algorithm(self) -> str:
        """The name of the algorithm in an in-toto DigestSet."""
        return {DigestKind.GIT_COMMIT: "gitCommit", DigestKind.GIT_TREE: "gitTree"}.get(self.kind, "sha256")

    @property
    def raw(self) -> bytes:
        """The digest's bytes."""
        return bytes.fromhex(self.hex)

    def __str__(self) -> str:
        return f"{self.kind}:{self.hex}" if self.kind.is_git else f"{self.kind}:sha256:{self.hex}"


def _not_a_digest(text: str, at: Location | None) -> InputError:
    if _IMAGE_REFERENCE.match(text) and not text.startswith("sha256:"):
        return InputError(
            Code.TAG_NOT_DIGEST, f"{text!r} is a name or tag, not a digest", at=at, fix="resolve it and give KIND:sha256:HEX64"
        )
    bare = _BARE.match(text)
    if bare and len(bare[1]) != 64:
        message = f"{text!r} has {len(bare[1])} of 64 hex digits"
        return InputError(Code.BAD_DIGEST, message, at=at, fix="give the full digest; `countermark search` finds it by its beginning")
    kinds = " ".join(DigestKind)
    return InputError(Code.BAD_DIGEST, f"{text!r} does not begin with a digest kind ({kinds})", at=at, fix="write it as KIND:sha256:HEX64")
