"""The faults that a qualification must be able to see: every row of the study's detection matrix, one or more faults each.

Under each of them every object has its SHA-256, every byte is placed, and the device counts no error. A fault says which rungs of the
ladder must notice it; one that does not proves that the rung is blind, so its pass is worth nothing. Nothing but a qualification makes
a fault, and a disturbed restore names it in its trace.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.cuda_restore.oracle import KEY, VALUE
from countermark.cuda_restore.rungs import Rung

Sources = NDArray[np.int64]
"""Which page's bytes come to lie in each page, by number: [rank, layer, key or value, page]. Undisturbed, it counts up."""

Contents = NDArray[np.uint8]
"""The bytes of every page: [rank, layer, key or value, page, byte]."""

RANK: Final = 1
LAYER: Final = 1
OTHER: Final = 0
"""The rank and layer of faults that have one place, and the other of each for those that mix two up."""


class Way(StrEnum):
    """How a fault comes about."""

    MISPLACED = "misplaced"
    """Authentic pages go to wrong places."""

    DAMAGED = "damaged"
    """Bytes change between authentication and placement."""

    REFILLED = "refilled"
    """A staging slot is refilled before its copy has run."""

    EXCHANGED = "exchanged"
    """The authentic snapshot of another prompt is restored."""

    SHORTENED = "shortened"
    """Everything lies right, and the server believes that it has fewer tokens."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. Of the three details, the one that its way needs is there."""

    name: str
    way: Way
    rungs: tuple[Rung, ...] = (Rung.READBACK, Rung.ORACLE)
    misplace: Callable[[Sources], None] | None = None
    damage: Callable[[Contents, Contents], None] | None = None
    lost_pages: int = 0
    """How much shorter the server believes the context to be; none is one token."""

    def sources(self, shape: tuple[int, ...]) -> Sources:
        """Where the bytes of every page come from, for contents of that shape without the bytes."""
        order = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        if self.misplace:
            self.misplace(order)
        return order

    def contents(self, stored: Contents, foreign: Contents) -> Contents:
        """The bytes of every page after the damage; `foreign` is the same for another prompt."""
        damaged = stored.copy()
        if self.damage:
            self.damage(damaged, foreign)
        return damaged


def faults_named(names: tuple[str, ...] | None) -> tuple[Fault, ...]:
    """The faults of these names, in the order of the matrix; all of them when no names are given. `InputError` for an unknown one."""
    known = {fault.name: fault for fault in FAULTS}
    for name in names or ():
        if name not in known:
            raise InputError(Code.UNKNOWN_NAME, f"there is no fault {name!r}", fix=f"use {', '.join(known)}")
    return tuple(fault for fault in FAULTS if names is None or fault.name in names)


def _pair(pages: int) -> list[int]:
    """Two pages in the middle of a layer."""
    return [pages // 4, pages - 1 - pages // 4]


def _swap(order: Sources, one: int, two: int) -> None:
    order[..., [one, two]] = order[..., [two, one]]


def _swap_pages(order: Sources) -> None:
    _swap(order, *_pair(order.shape[-1]))


def _swap_first_page(order: Sources) -> None:
    _swap(order, 0, _pair(order.shape[-1])[1])


def _roll(order: Sources) -> None:
    order[...] = np.roll(order, 1, axis=-1)


def _mix_ranks(order: Sources) -> None:
    order[[OTHER, RANK]] = order[[RANK, OTHER]]


def _copy_layer(order: Sources) -> None:
    order[..., OTHER, :, :] = order[..., LAYER, :, :]


def _swap_keys_and_values(order: Sources) -> None:
    order[[KEY, VALUE]] = order[[VALUE, KEY]]


def _duplicate_page(order: Sources) -> None:
    one, two = _pair(order.shape[-1])
    order[:, one] = order[:, two]


def _stale_tail(contents: Contents, foreign: Contents) -> None:
    contents[..., -1, :] = foreign[..., -1, :]


def _stale_tail_once(contents: Contents, foreign: Contents) -> None:
    _stale_tail(contents[RANK, LAYER], foreign[RANK, LAYER])


def _truncated_tail(contents: Contents, _: Contents) -> None:
    contents[..., -1, contents.shape[-1] // 2 :] = 0


def _zero_page(contents: Contents, _: Contents) -> None:
    contents[RANK, LAYER, :, _pair(contents.shape[-2])[0]] = 0


def _shift_16_bytes(contents: Contents, _: Contents) -> None:
    page = contents[RANK, LAYER, KEY, _pair(contents.shape[-2])[0]]
    page[:] = np.roll(page, 16)


def _flip(bit: int) -> Callable[[Contents, Contents], None]:
    """Flip a bit in the low byte of a number in the middle of a page of values, where no needle stands."""

    def flip(contents: Contents, _: Contents) -> None:
        contents[RANK, LAYER, VALUE, _pair(contents.shape[-2])[1], contents.shape[-1] // 4 * 2] ^= 1 << bit

    return flip


def _misplaced(name: str, misplace: Callable[[Sources], None]) -> Fault:
    return Fault(name, Way.MISPLACED, misplace=misplace)


def _damaged(name: str, damage: Callable[[Contents, Contents], None], *rungs: Rung) -> Fault:
    return Fault(name, Way.DAMAGED, rungs or (Rung.READBACK, Rung.ORACLE), damage=damage)


FAULTS: Final = (
    _misplaced("page-swap", lambda order: _swap_pages(order[RANK, LAYER])),
    _misplaced("block-table-swap", _swap_pages),
    _misplaced("block-table-swap-of-a-needle", _swap_first_page),
    _misplaced("page-swap-of-keys", lambda order: _swap_pages(order[RANK, LAYER, KEY])),
    _misplaced("off-by-one-page", _roll),
    _misplaced("off-by-one-page-in-one-layer", lambda order: _roll(order[RANK, LAYER])),
    _misplaced("rank-mix-up", _mix_ranks),
    _misplaced("rank-mix-up-in-one-layer", lambda order: _mix_ranks(order[:, LAYER])),
    _misplaced("wrong-layer", _copy_layer),
    _misplaced("wrong-layer-on-one-rank", lambda order: _copy_layer(order[RANK])),
    _damaged("stale-tail", _stale_tail),
    _damaged("stale-tail-in-one-layer", _stale_tail_once),
    _damaged("truncated-tail", _truncated_tail),
    _misplaced("keys-and-values-swapped", lambda order: _swap_keys_and_values(order[RANK, LAYER])),
    Fault("slab-reuse", Way.REFILLED),
    _damaged("zero-page", _zero_page),
    _misplaced("duplicate-page", lambda order: _duplicate_page(order[RANK, LAYER])),
    _damaged("shift-of-16-bytes", _shift_16_bytes),
    _damaged("bit-flip-after-authentication", _flip(7), Rung.READBACK),
    _damaged("mantissa-flip-after-authentication", _flip(0), Rung.READBACK),
    Fault("other-prompt", Way.EXCHANGED, (Rung.ORACLE,)),
    Fault("one-token-short", Way.SHORTENED, (Rung.ORACLE,)),
    Fault("one-page-short", Way.SHORTENED, (Rung.ORACLE,), lost_pages=1),
)
"""All faults, in the order of the matrix."""
