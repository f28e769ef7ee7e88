"""Cases 34 to 36: proofs for another place, of another tree, or of the wrong length."""

from collections.abc import Sequence

from countermark.attestations.codes import Code
from countermark.ledger.merkle import (
    EMPTY_ROOT,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
)

from .lab import Lab, Look, all_of, asked, case


class _Tree:
    """The stored tree of a ledger of 265 entries."""

    def __init__(self, lab: Lab) -> None:
        with lab.large().reader() as reader:
            self.size, self.root = reader.head.size, reader.head.root
            self.leaves = [leaf_hash(reader.entry(index).leaf.encode()) for index in range(self.size)]
            self.paths = {index: tuple(inclusion_proof(index, self.size, reader._tree)) for index in (0, 100, 255, 256, 264)}
            self.growth = {old: tuple(consistency_proof(old, self.size, reader._tree)) for old in (1, 9, 128, 256, 264)}
            self.roots = {old: reader.root_at(old) for old in self.growth}

    def place(self, index: int, leaf: bytes, proof: Sequence[bytes], size: int | None = None, root: bytes | None = None) -> Look:
        return asked(lambda: check_inclusion(index, self.size if size is None else size, leaf, proof, root or self.root))

    def grow(self, old: int, proof: Sequence[bytes], old_root: bytes | None = None, new: int | None = None) -> Look:
        return asked(lambda: check_consistency(old, new or self.size, old_root or self.roots.get(old, self.root), self.root, proof))


@case(Code.TAMPERED, "", "the proof does not place this leaf at entry")
def case_34_a_proof_for_another_place(lab: Lab) -> Look:
    tree = _Tree(lab)
    others = [tree.place(101, tree.leaves[100], tree.paths[100]), tree.place(100, tree.leaves[101], tree.paths[100])]
    turned = [tree.place(index, tree.leaves[index], path[::-1]) for index, path in tree.paths.items() if len(path) > 1]
    flipped = [
        tree.place(index, tree.leaves[index], (*path[:at], bytes(32), *path[at + 1 :]))
        for index, path in tree.paths.items()
        for at in range(len(path))
    ]
    return all_of(*others, *turned, *flipped)


@case(Code.TAMPERED, "", "hashes of 32 bytes")
def case_34_a_proof_with_a_hash_more_or_less(lab: Lab) -> Look:
    tree = _Tree(lab)
    forms = {
        index: ((*path, bytes(32)), path[:-1], path[1:], (*path[:-1], path[-1][:31]), (*path[:-1], path[-1] + b"\0"))
        for index, path in tree.paths.items()
    }
    return all_of(*(tree.place(index, tree.leaves[index], form) for index, those in forms.items() for form in those))


@case(Code.TAMPERED, "", "has no entry")
def case_34_a_place_outside_the_tree(lab: Lab) -> Look:
    tree = _Tree(lab)
    path = tree.paths[100]
    return all_of(*(tree.place(index, tree.leaves[100], path, size) for index, size in ((265, 265), (-1, 265), (0, 0), (100, 100))))


@case(Code.TAMPERED, "", "the proof does not place this leaf at entry 0 of the tree of 133")
def case_35_an_interior_node_as_a_leaf(lab: Lab) -> Look:
    """Half of the tree would prove the nodes above its leaves, if they were hashed alike; so would the bytes of a node as a leaf."""
    tree = _Tree(lab)
    node = node_hash(tree.leaves[0], tree.leaves[1])
    as_leaf = leaf_hash(tree.leaves[0] + tree.leaves[1])
    assert node != as_leaf
    return tree.place(0, as_leaf, tree.paths[0][1:], 133)


@case(Code.MALFORMED, "")
def case_36_a_proof_of_growth_between_sizes_that_cannot_be(lab: Lab) -> Look:
    tree = _Tree(lab)
    extra = (bytes(32),)
    wrong = [tree.grow(266, ()), tree.grow(0, extra, EMPTY_ROOT), tree.grow(tree.size, extra, tree.root), tree.grow(-1, (), EMPTY_ROOT)]
    lengths = [tree.grow(old, form) for old, proof in tree.growth.items() for form in ((*proof, bytes(32)), proof[:-1])]
    widths = [tree.grow(old, (*proof[:-1], proof[-1][:31])) for old, proof in tree.growth.items()]
    return all_of(*wrong, *lengths, *widths)


@case(Code.SPLIT_VIEW, "", "is not the beginning of the tree of 265")
def case_36_a_proof_of_growth_from_another_tree(lab: Lab) -> Look:
    tree = _Tree(lab)
    altered = [tree.grow(old, (*proof[:at], bytes(32), *proof[at + 1 :])) for old, proof in tree.growth.items() for at in range(len(proof))]
    roots = [tree.grow(old, proof, bytes(32)) for old, proof in tree.growth.items()]
    trivial = [tree.grow(0, (), bytes(32)), tree.grow(tree.size, (), bytes(32))]
    return all_of(*altered, *roots, *trivial)
