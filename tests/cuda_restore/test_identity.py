"""Identity, storage key, salts and context digests, against the vectors of the format page."""

from dataclasses import replace
from typing import Any

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.geometry import Layout, ReusePolicy
from countermark.cuda_restore.identity import (
    ContextSalt,
    Identity,
    PublicationSchema,
    context_digest,
    restorable_tokens,
    revision_identity,
    salt_of,
)
from countermark.cuda_restore.topology import GroupTopology, RecurrentState, topology_of, topology_sha256
from countermark.cuda_restore.wire import Fields


def test_vectors_of_the_format_page() -> None:
    assert context_digest("example-salt", range(256)) == "48d654f3c868821bff533d509e637d12f6101515b26e7e1a294a71f76f2d7710"
    assert revision_identity("org/model", "0" * 40) == "d16e7d4a2bdb238a4c256c22cd5dd2dfd98cbe8fc7d3e3a635e89458bc9b54ad"


@pytest.mark.parametrize("tokens", [[], [1] * 255, [1] * 257, [-1] * 256, [2**32] * 256])
def test_a_context_is_whole_chunks_of_u32(tokens: list[int]) -> None:
    with pytest.raises(InputError):
        context_digest("salt", tokens)


def test_wire_round_trip(identity: Identity) -> None:
    assert Identity.parse(Fields.of(identity.wire(), "i.json")) == identity
    bare = replace(identity, record_schema=(), cp_kv_cache_interleave_size=None)
    assert bare.wire().keys() == identity.wire().keys() - {"record_schema", "cp_kv_cache_interleave_size"}
    assert Identity.parse(Fields.of(bare.wire(), "i.json")) == bare


def test_all_ranks_and_generations_agree_on_the_salt_but_not_on_the_key(identity: Identity) -> None:
    rank_0 = identity.at_rank(0, 0)
    assert identity.storage_key != rank_0.storage_key
    for generation in ContextSalt:
        assert salt_of(identity, generation) == salt_of(rank_0, generation)
    assert len({salt_of(identity, generation) for generation in ContextSalt}) == len(ContextSalt)
    assert salt_of(identity, ContextSalt.TEXT_V1) == rank_0.storage_key


def test_a_request_salt_separates_tenants_or_is_refused(identity: Identity) -> None:
    salts = {salt_of(identity, ContextSalt.REQUEST_SCOPE_V3, request) for request in ("", "a" * 64, "b" * 64)}
    assert len(salts) == 3
    with pytest.raises(InputError, match="request-scope"):
        salt_of(identity, ContextSalt.MULTIMODAL_V2, "a" * 64)


def test_rank(identity: Identity) -> None:
    assert identity.rank == 1
    assert replace(identity, tp_degree=1, tp_shard_rank=-1).rank == 0
    with pytest.raises(InputError, match="-1"):
        _ = replace(identity, tp_shard_rank=-1).rank


def test_two_ranks_of_one_dcp_rank_have_different_keys(identity: Identity) -> None:
    """TP4/DCP2: the cross restore of defect 27."""
    cache = replace(identity, tp_degree=4, dcp_degree=2)
    assert cache.at_rank(0, 0).storage_key != cache.at_rank(2, 0).storage_key


@pytest.mark.parametrize(
    ("prompt", "block", "span"),
    [(131_073, 256, 131_072), (131_072, 256, 130_816), (2_305, 2_304, 2_304), (1, 256, 0), (0, 256, 0), (600, 64, 512)],
)
def test_one_live_token_always_stays(prompt: int, block: int, span: int) -> None:
    assert restorable_tokens(prompt, block) == span


def test_publication_modes_have_names() -> None:
    assert [schema.publication_mode for schema in PublicationSchema] == [
        "snapshot-v1",
        "page-tail-cow-v1",
        "page-tail-cow-v2",
        "tail-cow-v1",
    ]


def test_topology_digest_shows_replication(layout: Layout) -> None:
    """A recurrent group taken for a sharded one (defect 4) has another digest, hence another storage key."""
    groups = topology_of(layout)
    sharded = (*groups[:2], replace(groups[2], dcp_shard_count=2))
    assert topology_sha256(groups) != topology_sha256(sharded)
    assert sharded[2].logical_tokens_per_block == 2 * groups[2].logical_tokens_per_block
    assert replace(groups[2], dcp_replicated=True).wire(2)["dcp_replicated"] is True


STATE = RecurrentState(tokens_per_state=256)
GROUP = GroupTopology(spec="full", block_size=256, storage_block_size=256, page_size_bytes=1, layers=("a",))


@pytest.mark.parametrize(
    "change",
    [
        {"block_size": 0},
        {"dcp_replicated": True, "dcp_shard_count": 2},
        {"recurrent_state": STATE},
        {"reuse_policy": ReusePolicy.RECURRENT_ALIGN},
        {"reuse_policy": ReusePolicy.RECURRENT_ALIGN, "recurrent_state": replace(STATE, mamba_cache_mode="all")},
    ],
)
def test_topologies_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        replace(GROUP, **change)
    assert caught.value.code is Code.SCHEMA_INVALID
