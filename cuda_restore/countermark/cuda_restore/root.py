"""The signed root of a snapshot: the predicate `snapshot/v1`, made from rank manifests and held against them.

A manifest's self-digest proves nothing about who wrote it. A signed statement over the digest of every rank's manifest file does, and
`restore qualify` goes no further without one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location, NothingError, RefusedError
from countermark.attestations.located import JsonValue, pointer_join
from countermark.cuda_restore.geometry import check_tokens
from countermark.cuda_restore.identity import CHUNK_TOKENS
from countermark.cuda_restore.manifest import SCHEMA
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.wire import Fields, placed, refusal

_GIT_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_KEYS = ("schema", "context_digest", "committed_tokens", "topology", "ranks", "layout_sha256", "publication_mode")
_OPTIONAL = ("model", "draft")


@dataclass(frozen=True, slots=True)
class Revision:
    """A model repository at a full revision; `none` twice states that there is none."""

    repository: str
    revision: str

    def __post_init__(self) -> None:
        if (self.repository, self.revision) != ("none", "none") and not _GIT_ID.match(self.revision):
            message = f"{self.revision!r} is not the 40 or 64 hex digits of a revision"
            raise refusal("revision", "/revision", message, "write the full revision, never a branch", Code.BAD_DIGEST)

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read `{repository, revision}`."""
        fields.exact(("repository", "revision"))
        with placed(fields.source, fields.pointer):
            return cls(fields.text("repository"), fields.text("revision"))

    def to_json(self) -> dict[str, JsonValue]:
        """The object of a Scope."""
        return {"repository": self.repository, "revision": self.revision}


@dataclass(frozen=True, slots=True)
class RankRoot:
    """One rank's manifest: digests of its file, of its content without the self-digest, and of its stream; sizes in bytes."""

    rank: int
    manifest: Digest
    self_digest: Digest | None
    stream: Digest
    encoded_bytes: int
    objects: int

    @classmethod
    def of(cls, loaded: LoadedManifest) -> Self:
        """What a manifest that was read says."""
        found = loaded.manifest
        return cls(found.identity.rank, loaded.digest, found.self_digest, found.stream, found.encoded_bytes, len(found.objects))

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read one element of `ranks`."""
        fields.exact(("rank", "manifest", "self", "stream", "encoded_bytes", "objects"))
        for name, least in (("rank", 0), ("encoded_bytes", 1), ("objects", 1)):
            if fields.integer(name) < least:
                raise fields.refuse(name, f"{name} is {fields.integer(name)}, less than {least}", "record the manifest again")
        return cls(
            rank=fields.integer("rank"),
            manifest=_digest(fields, "manifest", DigestKind.FILE),
            self_digest=None if fields.members["self"] is None else _digest(fields, "self", DigestKind.MANIFEST_SELF),
            stream=_digest(fields, "stream", DigestKind.STREAM),
            encoded_bytes=fields.integer("encoded_bytes"),
            objects=fields.integer("objects"),
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The element of `ranks`."""
        return {
            "rank": self.rank,
            "manifest": str(self.manifest),
            "self": str(self.self_digest) if self.self_digest else None,
            "stream": str(self.stream),
            "encoded_bytes": self.encoded_bytes,
            "objects": self.objects,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRoot:
    """The predicate `snapshot/v1`. `pp` is 1 for every snapshot of this format; `None` is "not recorded"."""

    context_digest: str
    committed_tokens: int
    tp: int
    dcp: int
    publication_mode: str
    ranks: tuple[RankRoot, ...]
    layout_sha256: str | None = None
    model: Revision | None = None
    draft: Revision | None = None

    def __post_init__(self) -> None:
        if self.tp < 1 or self.dcp < 1 or self.tp % self.dcp:
            raise refusal("root", "/topology", f"TP {self.tp} is not a multiple of DCP {self.dcp}", "write the degrees of the manifests")
        numbers = [rank.rank for rank in self.ranks]
        if not numbers:
            raise refusal("root", "/ranks", "no rank is listed", "record at least one rank manifest")
        for place, number in enumerate(numbers):
            if not 0 <= number < self.tp or number in numbers[:place]:
                message = f"rank {number} stands twice, or is none of {self.tp}"
                raise refusal("root", f"/ranks/{place}/rank", message, "list each rank of the topology once")

    @classmethod
    def of(
        cls,
        loaded: Sequence[LoadedManifest],
        *,
        layout_sha256: str | None = None,
        model: Revision | None = None,
        draft: Revision | None = None,
    ) -> Self:
        """The root of rank manifests that were read, in rank order. `InputError` when they are not of one snapshot."""
        if not loaded:
            raise NothingError(Code.NOTHING_EVALUATED, "no manifest was given", fix="name the manifest of each rank")
        first = loaded[0].manifest
        for other in loaded[1:]:
            _check_siblings(loaded[0], other)
        return cls(
            context_digest=first.context_digest,
            committed_tokens=first.committed_tokens,
            tp=first.identity.tp_degree,
            dcp=first.identity.dcp_degree,
            publication_mode=first.identity.publication_schema.publication_mode,
            ranks=tuple(sorted(map(RankRoot.of, loaded), key=lambda rank: rank.rank)),
            layout_sha256=layout_sha256,
            model=model,
            draft=draft,
        )

    @classmethod
    def parse(cls, value: JsonValue, source: str, pointer: str = "") -> Self:
        """Read the predicate of a verified statement; `pointer` is its place in the statement."""
        fields = Fields.of(value, source, pointer).exact(_KEYS, _OPTIONAL)
        fields.constant("schema", SCHEMA)
        degrees = fields.child("topology").exact(("tp", "dcp", "pp"))
        degrees.constant("pp", 1)
        tokens = fields.integer("committed_tokens")
        check_tokens(tokens, CHUNK_TOKENS, source, pointer_join(pointer, "committed_tokens"))
        ranks = tuple(RankRoot.parse(rank) for rank in fields.children("ranks"))
        with placed(source, pointer):
            return cls(
                context_digest=fields.sha256("context_digest"),
                committed_tokens=tokens,
                tp=degrees.integer("tp"),
                dcp=degrees.integer("dcp"),
                publication_mode=fields.text("publication_mode"),
                ranks=ranks,
                layout_sha256=None if fields.members["layout_sha256"] is None else fields.sha256("layout_sha256"),
                model=_revision(fields, "model"),
                draft=_revision(fields, "draft"),
            )

    def to_json(self) -> dict[str, JsonValue]:
        """The predicate."""
        return {
            "schema": SCHEMA,
            "context_digest": self.context_digest,
            "committed_tokens": self.committed_tokens,
            "topology": {"tp": self.tp, "dcp": self.dcp, "pp": 1},
            "publication_mode": self.publication_mode,
            "layout_sha256": self.layout_sha256,
            "model": self.model.to_json() if self.model else None,
            "draft": self.draft.to_json() if self.draft else None,
            "ranks": [rank.to_json() for rank in self.ranks],
        }

    @property
    def subjects(self) -> tuple[Digest, ...]:
        """What the statement is about: the manifest file of each rank."""
        return tuple(rank.manifest for rank in self.ranks)

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """The ranks of the topology that the root does not list; a restore of all ranks needs there to be none."""
        return tuple(sorted(set(range(self.tp)) - {rank.rank for rank in self.ranks}))

    def check(self, loaded: LoadedManifest) -> RankRoot:
        """The entry for a manifest that was read. `RefusedError` when it is not listed, or the root says otherwise of it."""
        found = next((rank for rank in self.ranks if rank.manifest == loaded.digest), None)
        if found is None:
            raise _mismatch(loaded, f"{loaded.digest} is not listed in the signed root")
        told, read = _facts(self, found), _facts(SnapshotRoot.of([loaded]), RankRoot.of(loaded))
        for name, value in told.items():
            if value is not None and value != read[name]:
                raise _mismatch(loaded, f"{name} is {read[name]} in the manifest and {value} in the signed root")
        return found

    def check_layout(self, layout_sha256: str) -> None:
        """Check the layout digest of a stream header; a root that records none says nothing against it."""
        if self.layout_sha256 not in (None, layout_sha256):
            message = f"the stream has layout {layout_sha256}, the signed root {self.layout_sha256}"
            raise RefusedError(Code.SUBJECT_MISMATCH, message, fix="restore a snapshot that was signed, or record it")


def _facts(root: SnapshotRoot, rank: RankRoot) -> dict[str, str | int | None]:
    """What a root says of one rank, by name."""
    return {
        "rank": rank.rank,
        "self": str(rank.self_digest) if rank.self_digest else None,
        "stream": str(rank.stream),
        "encoded_bytes": rank.encoded_bytes,
        "objects": rank.objects,
        "context_digest": root.context_digest,
        "committed_tokens": root.committed_tokens,
        "tp": root.tp,
        "dcp": root.dcp,
        "publication_mode": root.publication_mode,
    }


def _check_siblings(first: LoadedManifest, other: LoadedManifest) -> None:
    """Check that two manifests are of one context in one cache; only the shard ranks may differ."""
    one, two = first.manifest, other.manifest
    facts = (
        ("/identity", one.identity.at_rank(-1, -1), two.identity.at_rank(-1, -1)),
        ("/context_digest", one.context_digest, two.context_digest),
        ("/committed_tokens", one.committed_tokens, two.committed_tokens),
    )
    for pointer, wanted, found in facts:
        if wanted != found:
            message = f"this differs from {first.path}"
            raise refusal(str(other.path), pointer, message, "record the ranks of one snapshot together")


def _digest(fields: Fields, name: str, kind: DigestKind) -> Digest:
    with placed(fields.source, pointer_join(fields.pointer, name)):
        found = Digest.parse(fields.text(name))
        if found.kind is not kind:
            raise InputError(Code.BAD_DIGEST, f"{found} is no digest of kind {kind}", fix=f"write {kind}:sha256:HEX64")
        return found


def _revision(fields: Fields, name: str) -> Revision | None:
    return Revision.parse(fields.child(name)) if fields.members.get(name) is not None else None


def _mismatch(loaded: LoadedManifest, message: str) -> RefusedError:
    return RefusedError(
        Code.SUBJECT_MISMATCH, message, at=Location(str(loaded.path)), fix="restore a snapshot that was signed, or record it"
    )
