"""The page topology whose digest ends the `quantization_layout` of a cache of whole pages.

It holds what the stream layout does not: how a group is shared out under DCP. A recurrent group taken for a sharded one doubles the
page width and restores the wrong state with every hash right, so the facts enter the identity. (Format page 2.4, defect 4.)
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.geometry import Layout, ReusePolicy
from countermark.cuda_restore.wire import canonical, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """How a recurrent group keeps its states."""

    mamba_cache_mode: str = "align"
    tokens_per_state: int
    num_speculative_blocks: int = 0
    num_prefill_checkpoint_blocks: int = 0

    def wire(self) -> dict[str, JsonValue]:
        """The state as the topology digest sees it."""
        return {
            "mamba_cache_mode": self.mamba_cache_mode,
            "tokens_per_state": self.tokens_per_state,
            "num_speculative_blocks": self.num_speculative_blocks,
            "num_prefill_checkpoint_blocks": self.num_prefill_checkpoint_blocks,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopology:
    """One KV group as the server's cache manager knows it. Sizes are tokens and bytes; `dcp_shard_count` is 1 when replicated."""

    spec: str
    block_size: int
    storage_block_size: int
    page_size_bytes: int
    layers: tuple[str, ...]
    dcp_replicated: bool = False
    dcp_shard_count: int = 1
    reuse_policy: ReusePolicy = ReusePolicy.FULL
    reuse_window_tokens: int | None = None
    eagle: bool = False
    recurrent_state: RecurrentState | None = None

    def __post_init__(self) -> None:
        sizes = (self.block_size, self.storage_block_size, self.page_size_bytes, self.dcp_shard_count)
        if min(sizes) < 1:
            raise _refuse("", "block, page and shard counts are positive", "write what the cache manager reports")
        if self.dcp_replicated and self.dcp_shard_count != 1:
            message = f"a replicated group is shared by {self.dcp_shard_count} ranks"
            raise _refuse("/dcp_shard_count", message, "count one shard for a replicated group")
        recurrent = self.reuse_policy is ReusePolicy.RECURRENT_ALIGN
        if recurrent != (self.recurrent_state is not None):
            raise _refuse("/recurrent_state", f"a {self.reuse_policy} group", "describe the state of recurrent groups, and only theirs")
        if self.recurrent_state and self.recurrent_state.mamba_cache_mode != "align":
            raise _refuse(
                "/recurrent_state/mamba_cache_mode", "states can be reused in mode align only", "serve with mamba_cache_mode align"
            )

    @property
    def logical_tokens_per_block(self) -> int:
        """The tokens of the context that one block of every rank of the group holds together."""
        return self.block_size * self.dcp_shard_count

    def wire(self, group: int) -> dict[str, JsonValue]:
        """The entry of group number `group`."""
        state: dict[str, JsonValue] = {"recurrent_state": self.recurrent_state.wire()} if self.recurrent_state else {}
        return state | {
            "group": group,
            "spec": self.spec,
            "block_size": self.block_size,
            "storage_block_size": self.storage_block_size,
            "page_size_bytes": self.page_size_bytes,
            "dcp_replicated": self.dcp_replicated,
            "dcp_shard_count": self.dcp_shard_count,
            "logical_tokens_per_block": self.logical_tokens_per_block,
            "reuse_policy": str(self.reuse_policy),
            "reuse_window_tokens": self.reuse_window_tokens,
            "eagle": self.eagle,
            "layers": [*sorted(self.layers)],
        }


def topology_sha256(groups: Sequence[GroupTopology]) -> str:
    """The topology digest, 64 hex digits."""
    return hashlib.sha256(canonical([group.wire(number) for number, group in enumerate(groups)])).hexdigest()


def topology_of(layout: Layout) -> tuple[GroupTopology, ...]:
    """The topology of a layout none of whose groups is shared under DCP, as our own writer makes them."""
    return tuple(
        GroupTopology(
            spec=str(group.reuse_policy),
            block_size=group.block_size,
            storage_block_size=group.block_size,
            page_size_bytes=group.bytes_per_block,
            layers=tuple(layer.name for layer in group.layers),
            reuse_policy=group.reuse_policy,
            reuse_window_tokens=group.reuse_window_tokens,
            recurrent_state=_state(group.reuse_policy, group.block_size),
        )
        for group in layout.groups
    )


def _state(policy: ReusePolicy, tokens: int) -> RecurrentState | None:
    return RecurrentState(tokens_per_state=tokens) if policy is ReusePolicy.RECURRENT_ALIGN else None


def _refuse(pointer: str, message: str, fix: str) -> InputError:
    return refusal("topology", pointer, message, fix)
