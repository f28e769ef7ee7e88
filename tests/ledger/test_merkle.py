"""The tree, its frontier and its proofs against the definitions of RFC 9162, written out here once more and naively."""

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import CountermarkError, InputError, TamperError
from countermark.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_at,
)

# The eight leaves of the Certificate Transparency test tree, and its roots at sizes 1 to 8.
CT_LEAVES = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
CT_ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
CT_INCLUSION = {
    (0, 1): (),
    (0, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (2, 3): ("fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",),
}
CT_CONSISTENCY = {
    (1, 1): (),
    (1, 8): CT_INCLUSION[0, 8],
    (6, 8): (
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
    (2, 5): (
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ),
}


def leaf(index: int) -> bytes:
    return leaf_hash(b"%d" % index)


@cache
def mth(start: int, stop: int) -> bytes:
    """RFC 9162 section 2.1.1 over leaf(start) to leaf(stop - 1)."""
    if stop - start < 2:
        return leaf(start) if stop > start else sha256(b"").digest()
    cut = start + split(stop - start)
    return sha256(b"\x01" + mth(start, cut) + mth(cut, stop)).digest()


def split(count: int) -> int:
    power = 1
    while power * 2 < count:
        power *= 2
    return power


def path(index: int, start: int, stop: int) -> list[bytes]:
    """PATH of RFC 9162 section 2.1.3.1."""
    if stop - start == 1:
        return []
    cut = start + split(stop - start)
    return [*path(index, start, cut), mth(cut, stop)] if index < cut else [*path(index, cut, stop), mth(start, cut)]


def subproof(old: int, start: int, stop: int, *, whole: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 9162 section 2.1.4.1."""
    if old == stop:
        return [] if whole else [mth(start, stop)]
    cut = start + split(stop - start)
    if old <= cut:
        return [*subproof(old, start, cut, whole=whole), mth(cut, stop)]
    return [*subproof(old, cut, stop, whole=False), mth(start, cut)]


def rfc_inclusion_holds(index: int, size: int, hashed: bytes, proof: Sequence[bytes], root: bytes) -> bool:
    """RFC 9162 section 2.1.3.2, step by step."""
    if index >= size:
        return False
    fn, sn, r = index, size - 1, hashed
    for p in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == root


def rfc_consistency_holds(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162 section 2.1.4.2, step by step, for 0 < old < new."""
    if not proof:
        return False
    hashes = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = hashes[0]
    for c in hashes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == old_root and sr == new_root and sn == 0


class Reference:
    """A `HashReader` that works every node out from its definition."""

    def node(self, level: int, index: int) -> bytes:
        return mth(index << level, (index + 1) << level)


READ = Reference()


def accepts(check: Callable[[], None]) -> bool:
    """Whether a check returns; only the two documented errors are a refusal."""
    try:
        check()
    except (TamperError, InputError):
        return False
    return True


def mutations(proof: Sequence[bytes]) -> list[list[bytes]]:
    """A proof with one element or one bit altered: each bit flipped, each hash dropped, doubled, cut short, and any two exchanged."""
    flipped = [(n, (int.from_bytes(h) ^ 1 << bit).to_bytes(32)) for n, h in enumerate(proof) for bit in range(256)]
    changed = [[*proof[:n], other, *proof[n + 1 :]] for n, other in flipped]
    changed += [[*proof[:n], *proof[n + 1 :]] for n in range(len(proof))]
    changed += [[*proof[:n], hashed, *proof[n:]] for n, hashed in enumerate(proof)]
    changed += [[*proof[:n], hashed[:-1], *proof[n + 1 :]] for n, hashed in enumerate(proof)]
    changed += [[*proof, bytes(32)], [bytes(32), *proof]]
    for first, second in combinations(range(len(proof)), 2):
        exchanged = list(proof)
        exchanged[first], exchanged[second] = proof[second], proof[first]
        changed.append(exchanged)
    return changed


def test_ct_roots() -> None:
    frontier = Frontier()
    assert frontier.root() == EMPTY_ROOT == sha256(b"").digest()
    for text, root in zip(CT_LEAVES, CT_ROOTS, strict=True):
        frontier = frontier.push(leaf_hash(bytes.fromhex(text)))
        assert frontier.root().hex() == root


class CtTree:
    """The hashes of the Certificate Transparency test tree, from frontiers of its parts."""

    def node(self, level: int, index: int) -> bytes:
        frontier = Frontier()
        for text in CT_LEAVES[index << level : (index + 1) << level]:
            frontier = frontier.push(leaf_hash(bytes.fromhex(text)))
        return frontier.root()


def test_ct_proofs() -> None:
    for (index, size), proof in CT_INCLUSION.items():
        made = inclusion_proof(index, size, CtTree())
        assert [h.hex() for h in made] == list(proof)
        check_inclusion(index, size, leaf_hash(bytes.fromhex(CT_LEAVES[index])), made, bytes.fromhex(CT_ROOTS[size - 1]))
    for (old, new), proof in CT_CONSISTENCY.items():
        made = consistency_proof(old, new, CtTree())
        assert [h.hex() for h in made] == list(proof)
        check_consistency(old, new, bytes.fromhex(CT_ROOTS[old - 1]), bytes.fromhex(CT_ROOTS[new - 1]), made)


def test_frontier_and_root_at_agree_with_the_definition() -> None:
    frontier = Frontier()
    for size in range(301):
        assert frontier.size == size
        assert frontier.root() == mth(0, size) == root_at(size, READ)
        assert Frontier.decode(size, frontier.encode()) == frontier
        frontier = frontier.push(leaf(size))


@pytest.mark.parametrize(("size", "length"), [(0, 32), (1, 0), (3, 32), (3, 65), (8, 96), (-1, 32), (2**63, 0)])
def test_frontier_of_another_length_is_malformed(size: int, length: int) -> None:
    with pytest.raises(InputError) as caught:
        Frontier.decode(size, bytes(length))
    assert caught.value.code is Code.MALFORMED


def test_every_inclusion_proof_is_the_one_of_the_rfc_and_checks() -> None:
    for size in range(1, 65):
        for index in range(size):
            proof = inclusion_proof(index, size, READ)
            assert proof == path(index, 0, size)
            check_inclusion(index, size, leaf(index), proof, mth(0, size))


def test_every_consistency_proof_is_the_one_of_the_rfc_and_checks() -> None:
    for new in range(65):
        for old in range(new + 1):
            proof = consistency_proof(old, new, READ)
            assert proof == (subproof(old, 0, new) if old else [])
            check_consistency(old, new, mth(0, old), mth(0, new), proof)


def test_no_altered_inclusion_proof_checks() -> None:
    for size in range(1, 10):
        for index in range(size):
            for altered in mutations(inclusion_proof(index, size, READ)):
                with pytest.raises(TamperError) as caught:
                    check_inclusion(index, size, leaf(index), altered, mth(0, size))
                assert caught.value.code is Code.TAMPERED


def test_no_altered_consistency_proof_checks() -> None:
    for new in range(1, 10):
        for old in range(new + 1):
            proof = consistency_proof(old, new, READ)
            for altered in mutations(proof):
                with pytest.raises(CountermarkError) as caught:
                    check_consistency(old, new, mth(0, old), mth(0, new), altered)
                same_form = len(altered) == len(proof) and all(len(h) == 32 for h in altered)
                assert caught.value.code is (Code.SPLIT_VIEW if same_form else Code.MALFORMED)


def test_a_proof_for_one_place_proves_no_other() -> None:
    """Tamper case 34: the proof of entry i presented for entry j, of another size, or with another leaf or root."""
    for size in range(2, 20):
        for index, other in combinations(range(size), 2):
            proof = inclusion_proof(index, size, READ)
            with pytest.raises(TamperError):
                check_inclusion(other, size, leaf(index), proof, mth(0, size))
            with pytest.raises(TamperError):
                check_inclusion(index, size, leaf(other), proof, mth(0, size))
        for wrong in (mth(0, size - 1), mth(0, size + 1), EMPTY_ROOT):
            with pytest.raises(TamperError):
                check_inclusion(0, size, leaf(0), inclusion_proof(0, size, READ), wrong)


@pytest.mark.parametrize(("index", "size"), [(0, 0), (1, 1), (-1, 4), (4, 4), (0, -1), (2**70, 3)])
def test_no_entry_outside_the_tree_is_proven(index: int, size: int) -> None:
    with pytest.raises(TamperError):
        check_inclusion(index, size, leaf(0), [], EMPTY_ROOT)
    with pytest.raises(InputError):
        inclusion_proof(index, size, READ)


def test_an_interior_node_is_no_leaf() -> None:
    """Tamper case 35. The two children of a node, offered as the content of an entry, hash to something else than the node."""
    content = leaf(0) + leaf(1)
    assert leaf_hash(content) != node_hash(leaf(0), leaf(1))
    assert leaf_hash(b"\x01" + content) != node_hash(leaf(0), leaf(1))
    upper = path(0, 0, 8)[1:]
    with pytest.raises(TamperError):
        check_inclusion(0, 4, leaf_hash(content), upper, mth(0, 8))
    # Even the node's own hash cannot be placed in the tree of the size that the checkpoint states.
    for index in range(8):
        with pytest.raises(TamperError):
            check_inclusion(index, 8, mth(0, 2), upper, mth(0, 8))


def test_hashes_of_other_lengths_do_not_shift_into_place() -> None:
    """A node is hashed over 64 bytes, wherever they are cut: 33 and 31 bytes give the same node as 32 and 32."""
    both = leaf(0) + leaf(1)
    for cut in (31, 33):
        assert node_hash(both[:cut], both[cut:]) == mth(0, 2)
        with pytest.raises(TamperError):
            check_inclusion(0, 2, both[:cut], [both[cut:]], mth(0, 2))
        with pytest.raises(InputError):
            check_consistency(1, 2, both[:cut], mth(0, 2), [both[cut:]])


@pytest.mark.parametrize(("old", "new"), [(2, 1), (1, 0), (-1, 1), (-2, -1)])
def test_consistency_of_impossible_sizes_is_malformed(old: int, new: int) -> None:
    """Tamper case 36."""
    with pytest.raises(InputError) as made:
        consistency_proof(old, new, READ)
    with pytest.raises(InputError) as checked:
        check_consistency(old, new, mth(0, 1), mth(0, 1), [])
    assert made.value.code is checked.value.code is Code.MALFORMED


@pytest.mark.parametrize(("old", "new"), [(0, 0), (0, 5), (5, 5)])
def test_consistency_where_the_proof_must_be_empty(old: int, new: int) -> None:
    """Tamper case 36."""
    check_consistency(old, new, mth(0, old), mth(0, new), [])
    with pytest.raises(InputError) as caught:
        check_consistency(old, new, mth(0, old), mth(0, new), [mth(0, new)])
    assert caught.value.code is Code.MALFORMED
    for old_root, new_root in ((leaf(9), mth(0, new)), (mth(0, old), leaf(9)), (leaf(8), leaf(9))):
        if old == 0 < new and old_root == EMPTY_ROOT:
            continue  # every tree begins with the empty one
        with pytest.raises(TamperError) as split_view:
            check_consistency(old, new, old_root, new_root, [])
        assert split_view.value.code is Code.SPLIT_VIEW
    with pytest.raises(InputError):
        check_consistency(old, new, mth(0, old)[:-1], mth(0, new), [])


def test_the_empty_tree_has_one_root() -> None:
    with pytest.raises(TamperError):
        check_consistency(0, 0, leaf(9), leaf(9), [])


def test_two_histories_are_a_split_view() -> None:
    for old, new in pairwise((1, 2, 3, 4, 6, 7, 8, 13)):
        proof = consistency_proof(old, new, READ)
        for old_root, new_root in ((leaf(99), mth(0, new)), (mth(0, old), leaf(99)), (mth(0, new), mth(0, old))):
            with pytest.raises(TamperError) as caught:
                check_consistency(old, new, old_root, new_root, proof)
            assert caught.value.code is Code.SPLIT_VIEW
        with pytest.raises(InputError):
            check_consistency(old, new, mth(0, old), mth(0, new), [])


POOL = [mth(start, stop) for start in range(12) for stop in range(start + 1, 13)] + [EMPTY_ROOT]
HASHES = st.sampled_from(POOL)


@given(st.integers(0, 12), st.integers(0, 12), HASHES, st.lists(HASHES, max_size=5), HASHES)
def test_inclusion_is_judged_as_the_rfc_says(index: int, size: int, hashed: bytes, proof: list[bytes], root: bytes) -> None:
    expected = rfc_inclusion_holds(index, size, hashed, proof, root)
    assert accepts(lambda: check_inclusion(index, size, hashed, proof, root)) is expected


@given(st.integers(1, 11), st.integers(1, 12), HASHES, HASHES, st.lists(HASHES, max_size=5))
def test_consistency_is_judged_as_the_rfc_says(old: int, more: int, old_root: bytes, new_root: bytes, proof: list[bytes]) -> None:
    expected = rfc_consistency_holds(old, old + more, old_root, new_root, proof)
    assert accepts(lambda: check_consistency(old, old + more, old_root, new_root, proof)) is expected


@given(st.integers(1, 11), st.integers(1, 11), st.integers(1, 11), st.integers(1, 11))
def test_true_consistency_proofs_for_other_sizes_are_judged_as_the_rfc_says(old: int, more: int, other: int, other_more: int) -> None:
    proof = subproof(old, 0, old + more)
    roots = mth(0, old), mth(0, old + more)
    expected = rfc_consistency_holds(other, other + other_more, *roots, proof)
    assert accepts(lambda: check_consistency(other, other + other_more, *roots, proof)) is expected


@given(st.integers(1, 12), st.integers(0, 11), st.integers(0, 12), st.integers(0, 11))
def test_true_proofs_for_other_sizes_are_judged_as_the_rfc_says(size: int, index: int, other_size: int, other: int) -> None:
    proof = path(index % size, 0, size)
    expected = rfc_inclusion_holds(other, other_size, leaf(index % size), proof, mth(0, size))
    assert accepts(lambda: check_inclusion(other, other_size, leaf(index % size), proof, mth(0, size))) is expected
