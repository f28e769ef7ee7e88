"""in-toto Statement v1: subjects by digest, a predicate type, a predicate.

Source of the rules: in-toto attestation framework, spec/v1/statement.md and digest_set.md. Unknown fields are ignored and unknown
digest algorithms take no part in matching; both stay in the stored bytes, which are never re-serialised.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import rfc8785

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_SUBJECTS = 1024
MAX_DIGESTS = 32

_LENGTHS = {"sha256": (64,), "gitCommit": (40, 64), "gitTree": (40, 64)}
_GIT_KINDS = {"gitCommit": DigestKind.GIT_COMMIT, "gitTree": DigestKind.GIT_TREE}
_OCI_LEVELS = {"index": DigestKind.OCI_INDEX, "manifest": DigestKind.OCI_MANIFEST, "config": DigestKind.OCI_CONFIG}
_SHA256_KINDS = {str(kind): kind for kind in DigestKind if not kind.is_git and not kind.is_oci}
_LEVEL_OF = {kind: level for level, kind in _OCI_LEVELS.items()}


@dataclass(frozen=True, slots=True)
class Subject:
    """A ResourceDescriptor used as a subject: at least one digest, keyed by its in-toto algorithm name.

    What a `sha256` is of stands in an annotation: `ociLevel` (index, manifest, config) or `digestKind` (any other digest kind).
    """

    digests: Mapping[str, str]
    name: str | None = None
    uri: str | None = None
    annotations: Mapping[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def of(cls, digest: Digest, *, name: str | None = None, uri: str | None = None, **annotations: JsonValue) -> Self:
        """The descriptor of a typed digest."""
        if digest.kind.is_oci:
            annotations["ociLevel"] = _LEVEL_OF[digest.kind]
        elif not digest.kind.is_git:
            annotations["digestKind"] = str(digest.kind)
        return cls({digest.algorithm: digest.hex}, name, uri, annotations)

    @property
    def typed(self) -> tuple[Digest, ...]:
        """The digests whose kind is known; a bare `sha256` without annotation is not among them."""
        return tuple(Digest(kind, self.digests[algorithm]) for algorithm, kind in self.kinds())

    def kinds(self) -> Iterator[tuple[str, DigestKind]]:
        """The algorithms of the digests whose kind is known, each with the kind."""
        for algorithm in self.digests:
            kind = self._sha256_kind() if algorithm == "sha256" else _GIT_KINDS.get(algorithm)
            if kind:
                yield algorithm, kind

    def may_be(self, digest: Digest) -> bool:
        """Whether this is `digest`: the same kind, or the same hex where the descriptor does not say of what it is the hash."""
        same_hex = self.digests.get(digest.algorithm) == digest.hex
        return digest in self.typed or (same_hex and all(known.hex != digest.hex for known in self.typed))

    def _sha256_kind(self) -> DigestKind | None:
        level, kind = self.annotations.get("ociLevel"), self.annotations.get("digestKind")
        if isinstance(level, str):
            return _OCI_LEVELS.get(level)
        return _SHA256_KINDS.get(kind) if isinstance(kind, str) else None

    def to_json(self) -> dict[str, JsonValue]:
        """The ResourceDescriptor object; absent fields are left out."""
        fields: dict[str, JsonValue] = {"digest": dict(self.digests)}
        optional: dict[str, JsonValue] = {"name": self.name, "uri": self.uri, "annotations": dict(self.annotations) or None}
        fields.update((name, value) for name, value in optional.items() if value is not None)
        return fields


@dataclass(frozen=True, slots=True)
class Statement:
    """One typed claim about one or more subjects; it applies to each subject alone."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: JsonValue

    @classmethod
    def parse(cls, payload: bytes, source: str) -> Self:
        """Read a Statement v1 strictly from its bytes; `InputError` names the field that is wrong."""
        value = jsontext.loads(payload, source)
        reader = _Reader(payload, source)
        if not isinstance(value, dict) or value.get("_type") != STATEMENT_TYPE:
            raise reader.error("/_type", f"this is not a Statement: _type must be {STATEMENT_TYPE}", "sign an in-toto Statement v1")
        subjects, predicate_type, predicate = value.get("subject"), value.get("predicateType"), value.get("predicate")
        if not isinstance(subjects, list) or not 1 <= len(subjects) <= MAX_SUBJECTS:
            raise reader.error("/subject", f"subject must be a list of 1 to {MAX_SUBJECTS} descriptors", "name what the claim is about")
        if not isinstance(predicate_type, str) or not predicate_type:
            raise reader.error("/predicateType", "predicateType must be a URI", "name the type of the claim")
        if not isinstance(predicate, dict | None):
            raise reader.error("/predicate", "predicate must be an object or absent", "wrap the claim in an object")
        return cls(tuple(reader.subject(item, f"/subject/{n}") for n, item in enumerate(subjects)), predicate_type, predicate)

    def encode(self) -> bytes:
        """The bytes to sign: RFC 8785 canonical JSON, so that the same claim is the same payload. No floats are signed."""
        value = {
            "_type": STATEMENT_TYPE,
            "subject": [subject.to_json() for subject in self.subjects],
            "predicateType": self.predicate_type,
            "predicate": self.predicate,
        }
        return canonical(value)


def canonical(value: Mapping[str, object] | Sequence[object]) -> bytes:
    """RFC 8785 bytes of a value that holds no floats, whose text form readers disagree about."""
    waiting: list[object] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, float):
            raise InputError(Code.BAD_NUMBER, f"{node} is a float, which is never signed", fix="write an integer with a unit, or a string")
        if isinstance(node, Mapping):
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # its own recursive type does not take Mapping
    except rfc8785.CanonicalizationError as error:
        raise InputError(Code.BAD_NUMBER, str(error), fix="keep integers below 2^53 and text in Unicode") from None


class _Reader:
    """Checks the subjects; looks up lines only when there is something to report."""

    def __init__(self, payload: bytes, source: str) -> None:
        self.payload = payload
        self.source = source

    def error(self, pointer: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
        return InputError(code, message, at=Location(self.source, pointer=pointer), fix=fix)

    def subject(self, item: JsonValue, pointer: str) -> Subject:
        fields = item if isinstance(item, dict) else {}
        digests, name, uri = fields.get("digest"), fields.get("name"), fields.get("uri")
        annotations = fields.get("annotations") or {}
        if not isinstance(digests, dict) or not 1 <= len(digests) <= MAX_DIGESTS:
            raise self.error(f"{pointer}/digest", f"a subject needs 1 to {MAX_DIGESTS} digests", "identify it by digest")
        if not isinstance(name, str | None) or not isinstance(uri, str | None) or not isinstance(annotations, dict):
            raise self.error(pointer, "name and uri must be text, annotations an object", "mend the descriptor")
        return Subject({key: self._digest(key, text, pointer) for key, text in digests.items()}, name, uri, annotations)

    def _digest(self, algorithm: str, text: JsonValue, pointer: str) -> str:
        lengths = _LENGTHS.get(algorithm)
        if not isinstance(text, str) or (lengths and (len(text) not in lengths or text.strip("0123456789abcdef"))):
            wanted = f"{' or '.join(map(str, lengths))} lower-case hex digits" if lengths else "text"
            raise self.error(f"{pointer}/digest/{algorithm}", f"a {algorithm} digest is {wanted}", "give the full digest", Code.BAD_DIGEST)
        return text
