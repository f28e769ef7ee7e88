"""Whose cache this is: the identity that every snapshot carries, the storage key it hashes to, and the digest of a context.

A persisted page is usable only by the same target and draft checkpoint, the same layout and the same place in the rank grid. All of
that is one wire object; `storage_key` is the SHA-256 of its canonical JSON, so a new field moves every stored entry out of sight, on
purpose. (Format page 2.3, 2.4, 2.10.)
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.wire import Fields, canonical, placed, refusal

CHUNK_TOKENS = 256
RECORD_KINDS = ("target_ckv", "sparse_indexer", "mtp_draft_kv", "boundary_hidden", "logical_positions")

_REQUIRED = (
    "target_checkpoint",
    "draft_checkpoint",
    "quantization_layout",
    "rope_layout",
    "tp_degree",
    "dcp_degree",
    "chunk_tokens",
    "dcp_shard_rank",
    "tp_shard_rank",
    "boundary_hidden_policy",
    "draft_kv_policy",
)
_OPTIONAL = ("cp_kv_cache_interleave_size", "record_schema", "publication_schema")
_MANAGER_PAGES = re.compile(r".+:manager-pages-v2:(?P<topology>[0-9a-f]{64})\Z", re.DOTALL)
_U32_END = 2**32


class BoundaryHiddenPolicy(StrEnum):
    """Where the hidden state at the boundary comes from after a restore."""

    PERSISTED = "persisted"
    LIVE_FORWARD = "live_forward"


class DraftKvPolicy(StrEnum):
    """Whether the draft model's KV lies beside the target's or in files of its own."""

    SEPARATE = "separate"
    COLOCATED_TARGET = "colocated_target"


class PublicationSchema(StrEnum):
    """How contexts are published, in the spelling of the wire. The empty one is a whole snapshot and is left out of the wire."""

    SNAPSHOT = ""
    PAGE_TAIL_COW_V1 = "page-tail-cow-v1"
    PAGE_TAIL_COW_V2 = "page-tail-cow-v2"
    ROW_TAIL_COW_V1 = "tail-cow-v1"

    @property
    def publication_mode(self) -> str:
        """The name of this mode in scopes and in `snapshot/v1`, where a whole snapshot needs a name."""
        return self.value or "snapshot-v1"


class ContextSalt(StrEnum):
    """The generation of a context digest's salt. Each generation makes every older entry miss, on purpose."""

    TEXT_V1 = ""
    MULTIMODAL_V2 = "sparkcache-context-v2-multimodal:"
    REQUEST_SCOPE_V3 = "sparkcache-context-v3-request-scope:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of one rank's cache. Checkpoints are SHA-256 in hex; a shard rank of -1 means "not one shard".

    `cp_kv_cache_interleave_size` is `None` for caches written before the field existed: absent and 1 are different storage keys.
    """

    target_checkpoint: str
    draft_checkpoint: str
    quantization_layout: str
    rope_layout: str
    tp_degree: int
    dcp_degree: int
    dcp_shard_rank: int
    tp_shard_rank: int
    boundary_hidden_policy: BoundaryHiddenPolicy
    draft_kv_policy: DraftKvPolicy
    cp_kv_cache_interleave_size: int | None = None
    chunk_tokens: int = CHUNK_TOKENS
    record_schema: tuple[str, ...] = ()
    publication_schema: PublicationSchema = PublicationSchema.SNAPSHOT

    def __post_init__(self) -> None:
        self._check_degrees()
        self._check_ranks()
        self._check_records()
        if self.chunk_tokens != CHUNK_TOKENS:
            raise _refuse("chunk_tokens", f"chunk_tokens is {self.chunk_tokens}, not {CHUNK_TOKENS}", "publish 256-token chunks")

    def _check_degrees(self) -> None:
        interleave = self.cp_kv_cache_interleave_size
        for name, value in (("tp_degree", self.tp_degree), ("dcp_degree", self.dcp_degree), ("cp_kv_cache_interleave_size", interleave)):
            if value is not None and value < 1:
                raise _refuse(name, f"{name} is {value}; it counts from 1", "write the degree of the server that made the cache")
        if self.tp_degree % self.dcp_degree:
            raise _refuse("dcp_degree", f"TP {self.tp_degree} is not a multiple of DCP {self.dcp_degree}", "choose a DCP that divides TP")
        if self.chunk_tokens % self.dcp_degree:
            raise _refuse(
                "dcp_degree", f"{self.chunk_tokens} tokens are not a multiple of DCP {self.dcp_degree}", "choose a DCP that divides 256"
            )

    def _check_ranks(self) -> None:
        shards = (("tp_shard_rank", self.tp_shard_rank, self.tp_degree), ("dcp_shard_rank", self.dcp_shard_rank, self.dcp_degree))
        for name, rank, degree in shards:
            if not -1 <= rank < degree:
                raise _refuse(name, f"{name} is {rank}, outside -1 … {degree - 1}", "write the rank that wrote the cache, or -1")

    def _check_records(self) -> None:
        if not self.record_schema:
            return
        if len(set(self.record_schema)) != len(self.record_schema):
            raise _refuse("record_schema", "record_schema names a record twice", "name each record once")
        for number, name in enumerate(self.record_schema):
            if name not in RECORD_KINDS:
                raise _refuse(f"record_schema/{number}", f"{name!r} is no record", f"use {', '.join(RECORD_KINDS)}", Code.UNKNOWN_NAME)
        if "logical_positions" not in self.record_schema:
            raise _refuse("record_schema", "record_schema lacks logical_positions", "every cache stores the positions of its rows")

    @classmethod
    def parse(cls, fields: Fields) -> Self:
        """Read the wire object. Optional fields are emitted only when they say something, so an empty one is refused."""
        fields.exact(_REQUIRED, _OPTIONAL)
        given = fields.members.keys()
        interleave = fields.integer("cp_kv_cache_interleave_size") if "cp_kv_cache_interleave_size" in given else None
        records = fields.texts("record_schema") if "record_schema" in given else ()
        if "record_schema" in given and not records:
            raise fields.refuse("record_schema", "record_schema is empty", "leave it out when it names no record")
        schema = fields.choice("publication_schema", PublicationSchema) if "publication_schema" in given else PublicationSchema.SNAPSHOT
        with placed(fields.source, fields.pointer):
            return cls(
                target_checkpoint=fields.sha256("target_checkpoint"),
                draft_checkpoint=fields.sha256("draft_checkpoint"),
                quantization_layout=fields.text("quantization_layout"),
                rope_layout=fields.text("rope_layout"),
                tp_degree=fields.integer("tp_degree"),
                dcp_degree=fields.integer("dcp_degree"),
                cp_kv_cache_interleave_size=interleave,
                chunk_tokens=fields.integer("chunk_tokens"),
                dcp_shard_rank=fields.integer("dcp_shard_rank"),
                tp_shard_rank=fields.integer("tp_shard_rank"),
                boundary_hidden_policy=fields.choice("boundary_hidden_policy", BoundaryHiddenPolicy),
                draft_kv_policy=fields.choice("draft_kv_policy", DraftKvPolicy),
                record_schema=records,
                publication_schema=schema,
            )

    def wire(self) -> dict[str, JsonValue]:
        """The wire object, without the fields that say nothing."""
        fields: dict[str, JsonValue] = {name: getattr(self, name) for name in _REQUIRED}
        if self.cp_kv_cache_interleave_size is not None:
            fields["cp_kv_cache_interleave_size"] = self.cp_kv_cache_interleave_size
        if self.record_schema:
            fields["record_schema"] = list(self.record_schema)
        if self.publication_schema:
            fields["publication_schema"] = str(self.publication_schema)
        return fields

    @property
    def storage_key(self) -> str:
        """SHA-256 in hex of the wire object; the name of the folder that holds this identity's manifests."""
        return hashlib.sha256(canonical(self.wire())).hexdigest()

    @property
    def topology_sha256(self) -> str | None:
        """The topology digest that a block-page layout ends with; `None` when the layout is of another form."""
        found = _MANAGER_PAGES.match(self.quantization_layout)
        return found["topology"] if found else None

    @property
    def interleave(self) -> int:
        """Tokens in a row on one DCP rank before the next rank's turn."""
        return self.cp_kv_cache_interleave_size or 1

    @property
    def rank(self) -> int:
        """The rank whose pages these are, from 0. Raises `InputError` when a sharded cache does not say."""
        if self.tp_shard_rank < 0 and self.tp_degree > 1:
            raise _refuse("tp_shard_rank", "tp_shard_rank is -1 in a cache of several ranks", "publish each rank under its own identity")
        return max(self.tp_shard_rank, 0)

    def at_rank(self, tp_shard_rank: int, dcp_shard_rank: int) -> "Identity":
        """The same cache on another rank."""
        return replace(self, tp_shard_rank=tp_shard_rank, dcp_shard_rank=dcp_shard_rank)


def manager_pages_layout(profile_layout: str, topology_sha256: str) -> str:
    """The `quantization_layout` of a cache of whole pages: the profile's layout and the digest of the page topology."""
    return f"{profile_layout}:manager-pages-v2:{topology_sha256}"


def revision_identity(repository: str, revision: str) -> str:
    """The checkpoint identity, SHA-256 in hex, of a model repository at one revision."""
    return hashlib.sha256(b"\0".join((b"hf-revision-v1", repository.encode(), revision.encode()))).hexdigest()


def salt_of(identity: Identity, generation: ContextSalt, request_salt_sha256: str = "") -> str:
    """The salt of a context digest: the storage key of rank 0, so that the scheduler and all ranks agree.

    The format page names the namespace of the third generation, not how a request's cache salt enters it; here its fingerprint
    follows the storage key after a colon.
    """
    if request_salt_sha256 and generation is not ContextSalt.REQUEST_SCOPE_V3:
        raise InputError(Code.SCHEMA_INVALID, "only the request-scope salt honours a request's cache salt", fix="use REQUEST_SCOPE_V3")
    rank_0 = identity.at_rank(min(identity.tp_shard_rank, 0), min(identity.dcp_shard_rank, 0))
    suffix = f":{request_salt_sha256}" if request_salt_sha256 else ""
    return f"{generation}{rank_0.storage_key}{suffix}"


def context_digest(salt: str, token_ids: Sequence[int]) -> str:
    """SHA-256 in hex of the ASCII salt, a zero byte and the token ids as little-endian u32. At least one whole chunk of tokens."""
    if not token_ids or len(token_ids) % CHUNK_TOKENS:
        raise InputError(
            Code.SCHEMA_INVALID,
            f"{len(token_ids)} tokens are not a positive multiple of {CHUNK_TOKENS}",
            fix="cut the prefix at a boundary",
        )
    for token in token_ids:
        if not 0 <= token < _U32_END:
            raise InputError(Code.BAD_NUMBER, f"token id {token} is not an unsigned 32-bit integer", fix="give the ids of the tokenizer")
    return hashlib.sha256(salt.encode("ascii") + b"\0" + struct.pack(f"<{len(token_ids)}I", *token_ids)).hexdigest()


def restorable_tokens(prompt_tokens: int, block_tokens: int = CHUNK_TOKENS) -> int:
    """How many tokens of a prompt a restore may cover: whole blocks and chunks, with at least one token left to compute."""
    span = max(prompt_tokens - 1, 0) // block_tokens * block_tokens
    return span // CHUNK_TOKENS * CHUNK_TOKENS


def _refuse(name: str, message: str, fix: str, code: Code = Code.SCHEMA_INVALID) -> InputError:
    return refusal("identity", f"/{name}", message, fix, code)
