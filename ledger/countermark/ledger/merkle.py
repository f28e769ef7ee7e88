"""The Merkle tree of the log: roots, frontiers, inclusion and consistency proofs (RFC 9162 section 2.1, equal to RFC 6962's).

Write MTH(D[a:b]) for the root over the leaves a, a+1, ..., b-1. A range of one leaf is its leaf hash. A longer range of n leaves is
cut at k, the largest power of two *smaller than* n, and its root is the node over the roots of the two sides:

    MTH(D[a:b]) = SHA-256(0x01 || MTH(D[a:a+k]) || MTH(D[a+k:b]))

The left side is therefore always perfect (2**h leaves), and so only the right edge of a tree is ragged. Two things follow.

* The roots of perfect subtrees never change when the tree grows. They are all that has to be stored, and `HashReader.node` names
  them by (level, index).
* Any range that a cut produces is a row of perfect subtrees, largest first, one for each 1 bit of its length. Its root is a fold of
  these from the right. For the whole tree that row is the `Frontier`.

Both kinds of proof are a walk down from the root along the cuts. Proving writes down the side not taken at each cut; checking walks
the same cuts back up and hashes these sides in again. `_walk` is that walk, and prover and checker both stand on it: what a proof
must contain, how many hashes and on which side each, follows from the sizes alone and is never read from the proof.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Protocol, Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, TamperError

HASH_BYTES = 32
EMPTY_ROOT: bytes = sha256(b"").digest()


def leaf_hash(leaf: bytes) -> bytes:
    """SHA-256(0x00 || leaf). The prefix differs from that of a node, so that no node can be passed off as a leaf."""
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right), over two 32-byte hashes."""
    return sha256(b"\x01" + left + right).digest()


class HashReader(Protocol):
    """Where stored hashes come from."""

    def node(self, level: int, index: int) -> bytes:
        """The root of the perfect subtree over the 2**level leaves that begin at leaf index * 2**level."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """The roots of the perfect subtrees of a tree of `size` leaves, largest first: all that is needed to append and to know the root."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def push(self, node: bytes, leaves: int = 1) -> Self:
        """The frontier after one more leaf hash, or after the root of a perfect subtree of `leaves` leaves, a power of two that divides
        the size. As when adding 1 in binary, every trailing 1 bit of the size is one merge of equals.
        """
        peaks, carry = list(self.peaks), self.size // leaves
        while carry & 1:
            node = node_hash(peaks.pop(), node)
            carry >>= 1
        return type(self)(self.size + leaves, (*peaks, node))

    def root(self) -> bytes:
        """MTH(D[0:size]); the hash of nothing for the empty tree."""
        return _fold(self.peaks) if self.peaks else EMPTY_ROOT

    def encode(self) -> bytes:
        """The peaks, largest first, 32 bytes each; the size is kept beside them."""
        return b"".join(self.peaks)

    @classmethod
    def decode(cls, size: int, data: bytes) -> Self:
        """The frontier that `encode` wrote for a tree of `size`. `InputError` MALFORMED if `data` cannot be that."""
        if size < 0 or len(data) != size.bit_count() * HASH_BYTES:
            raise _malformed(f"{len(data)} bytes are not the frontier of a tree of {size} entries")
        return cls(size, tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)))


def root_at(size: int, read: HashReader) -> bytes:
    """The root of the tree as it was at `size`; `read` may know a larger tree. `InputError` MALFORMED for a negative size."""
    if size < 0:
        raise _malformed(f"a tree cannot have {size} entries")
    return _range_root(0, size, read) if size else EMPTY_ROOT


def inclusion_proof(index: int, size: int, read: HashReader) -> list[bytes]:
    """The hashes that lead from leaf `index` up to the root at `size`, lowest first. `InputError` MALFORMED for no such leaf."""
    if not 0 <= index < size:
        raise _malformed(f"a tree of {size} entries has no entry {index}")
    return [_range_root(side.start, side.stop, read) for side in _walk(index, index + 1, size).sides]


def check_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes) -> None:
    """Return only if the leaf hash `leaf` is leaf `index` of the tree with this size and root; else `TamperError` TAMPERED.

    The proof must consist of exactly the hashes that this position calls for (RFC 9162 section 2.1.3.2).
    """
    if not 0 <= index < size:
        raise TamperError(Code.TAMPERED, f"a tree of {size} entries has no entry {index}", fix="ask for a proof against a newer checkpoint")
    sides = _walk(index, index + 1, size).sides
    if len(proof) != len(sides) or not _are_hashes([leaf, root, *proof]):
        raise TamperError(Code.TAMPERED, f"the proof for entry {index} of {size} must be {len(sides)} hashes of 32 bytes", fix=_NEW_PROOF)
    node = leaf
    for side, sibling in zip(sides, proof, strict=True):
        node = node_hash(sibling, node) if side.is_left else node_hash(node, sibling)
    if node != root:
        raise TamperError(Code.TAMPERED, f"the proof does not place this leaf at entry {index} of the tree of {size}", fix=_NEW_PROOF)


def consistency_proof(old: int, new: int, read: HashReader) -> list[bytes]:
    """The hashes which show that the tree at `old` is the beginning of the tree at `new`. `InputError` MALFORMED unless 0 <= old <= new.

    Empty when the sizes are equal, and for old = 0: every tree begins with nothing, and RFC 9162 defines no proof of it.
    """
    _check_sizes(old, new)
    if old in (0, new):
        return []
    edge, sides = _walk(0, old, new)
    shared = [_range_root(edge, old, read)] if edge else []
    return shared + [_range_root(side.start, side.stop, read) for side in sides]


def check_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Return only if `proof` shows that the tree (old, old_root) is the beginning of the tree (new, new_root).

    `InputError` MALFORMED for sizes or a number of hashes that no proof can have; `TamperError` SPLIT_VIEW when the two roots cannot
    be reconciled. With old = 0 or old = new the proof must be empty (RFC 9162 section 2.1.4.2 and C2SP tlog-witness).
    """
    _check_sizes(old, new)
    if not _are_hashes([old_root, new_root, *proof]):
        raise _malformed("a root or a hash of the consistency proof is not 32 bytes")
    if old in (0, new):
        _check_trivial(old, new, old_root, new_root, proof)
        return
    edge, sides = _walk(0, old, new)
    known = [] if edge else [old_root]
    hashes = [*known, *proof]
    if len(hashes) != 1 + len(sides):
        raise _malformed(f"a consistency proof from {old} to {new} is {1 + len(sides) - len(known)} hashes, not {len(proof)}")
    old_node = new_node = hashes[0]
    for side, sibling in zip(sides, hashes[1:], strict=True):
        if side.is_left:
            old_node = node_hash(sibling, old_node)
            new_node = node_hash(sibling, new_node)
        else:
            new_node = node_hash(new_node, sibling)
    if old_node != old_root or new_node != new_root:
        raise _split_view(old, new)


class _Side(NamedTuple):
    """A range of leaves that the walk passed by, and whether it lies to the left of it."""

    start: int
    stop: int
    is_left: bool


class _Walk(NamedTuple):
    """Where the range starts at which a walk ended, and the sides not taken, from the bottom up."""

    start: int
    sides: list[_Side]


def _walk(known_start: int, known_stop: int, size: int) -> _Walk:
    """Go down from D[0:size] towards the leaf before `known_stop`, until the range lies within the known D[known_start:known_stop].

    For an inclusion proof the one leaf is known. For a consistency proof the old tree is known: the walk ends at the last and smallest
    of its perfect subtrees, D[start:known_stop], and everything older joins from the left on the way back up. When the old tree is
    perfect itself, that subtree is all of it (start = 0) and its hash is the old root, which the checker has already.
    """
    start, stop = 0, size
    sides: list[_Side] = []
    while start < known_start or known_stop < stop:
        cut = start + _largest_power_below(stop - start)
        if known_stop <= cut:
            sides.append(_Side(cut, stop, is_left=False))
            stop = cut
        else:
            sides.append(_Side(start, cut, is_left=True))
            start = cut
    sides.reverse()
    return _Walk(start, sides)


def _largest_power_below(count: int) -> int:
    return 1 << ((count - 1).bit_length() - 1)


def _range_root(start: int, stop: int, read: HashReader) -> bytes:
    """MTH(D[start:stop]) of a non-empty range that cuts produce."""
    return _fold([read.node(level, index) for level, index in _perfect_subtrees(start, stop)])


def _perfect_subtrees(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """(level, index) of the perfect subtrees in a row that make up such a range, largest first."""
    while start < stop:
        level = (stop - start).bit_length() - 1
        yield level, start >> level
        start += 1 << level


def _fold(roots: Sequence[bytes]) -> bytes:
    """The root over a row of perfect subtrees, largest first: the two smallest are joined first, as the cuts demand."""
    node = roots[-1]
    for left in reversed(roots[:-1]):
        node = node_hash(left, node)
    return node


def _check_trivial(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Consistency where nothing has to be proven: from the empty tree, or between equal sizes."""
    if proof:
        raise _malformed(f"a consistency proof from {old} to {new} must be empty")
    claims = ((old, old_root), (new, new_root))
    if any(size == 0 and root != EMPTY_ROOT for size, root in claims) or (old == new and old_root != new_root):
        raise _split_view(old, new)


def _check_sizes(old: int, new: int) -> None:
    if not 0 <= old <= new:
        raise _malformed(f"a tree of {old} entries cannot be the beginning of a tree of {new}")


def _are_hashes(values: Iterable[bytes]) -> bool:
    return all(len(value) == HASH_BYTES for value in values)


_NEW_PROOF = "get the proof again from the ledger; if it fails again, the ledger or the checkpoint was altered"


def _malformed(message: str) -> InputError:
    return InputError(Code.MALFORMED, message, fix="use sizes, indexes and hashes as the ledger printed them")


def _split_view(old: int, new: int) -> TamperError:
    return TamperError(
        Code.SPLIT_VIEW,
        f"the tree of {old} entries is not the beginning of the tree of {new}",
        fix="keep both checkpoints: together they are the evidence that the log showed two histories",
    )
