"""`query signers`: every entry has a signer, and one person on both sides is seen whatever names the image goes by."""

from collections import Counter

from worlds import IMAGE, World, manifest

from countermark.actions.init import initialise
from countermark.actions.queries.listing import Bearing
from countermark.actions.queries.signers import ConflictRow, SignerRow, conflicts_listing, signers_listing
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.predicate_types import TEST_RESULT


def rows(workspace: Workspace) -> list[SignerRow]:
    return [row for row in signers_listing(workspace).rows if isinstance(row, SignerRow)]


def conflicts(world: World) -> list[ConflictRow]:
    return [row for row in conflicts_listing(world.workspace).rows if isinstance(row, ConflictRow)]


def test_who_signed_what_over_every_entry(full: World) -> None:
    found = rows(full.workspace)
    size = signers_listing(full.workspace).head.size
    assert Counter(index for row in found for index in row.entries) == Counter(range(size))
    assert {row.code for row in found} == {Code.OK}
    by = {(row.signer, row.what): row for row in found}
    assert by["lab", "qualification-receipt"].entries == tuple(full.at[name].index for name in ("pass", "fail", "taken back"))
    assert by["lab", "qualification-receipt"].roles == ("qualifier",)
    assert by["ci", TEST_RESULT].entries == (full.at["tests"].index, full.at["other tests"].index)
    assert by["operator", "document"].entries == (0,)


def test_who_signed_nothing_is_told(world: World) -> None:
    listing = signers_listing(world.workspace)
    assert listing.not_found == tuple(f"anything signed by {name}" for name in ("alice", "ci", "lab", "release-gate"))


def test_a_key_that_nobody_owns_any_more(world: World) -> None:
    done = world.tests()
    fingerprint = world.fingerprint("ci")
    people = world.people()
    people["ci"] = people.pop("alice")
    world.trust(principals=people, roles={**world.roles(), "approver": {"any_of": ["lab"]}})
    (row,) = [row for row in rows(world.workspace) if done.index in row.entries]
    assert (row.signer, row.roles, row.code, row.bearing) == (str(fingerprint), (), Code.SIG_UNVERIFIABLE, Bearing.NEGATIVE)


def test_one_operator_is_told(world: World) -> None:
    lone = initialise(world.folder.parent / "lone").workspace
    assert signers_listing(lone).notes == ("one person holds all roles: nobody else has answered for anything here",)


def test_nobody_on_both_sides(full: World) -> None:
    listing = conflicts_listing(full.workspace)
    assert listing.rows == []
    assert listing.not_found[0].startswith("a principal on both sides (builder and qualifier): nobody, in ")


def test_who_qualified_their_own_build(world: World) -> None:
    world.trust(roles={**world.roles(), "qualifier": {"any_of": ["lab", "ci"]}})
    image, receipt = world.image(), world.receipt(by="ci")
    (row,) = conflicts(world)
    assert (row.signer, row.conflict) == ("ci", "builder and qualifier of one image")
    assert (row.first, row.second, row.subject) == ((image.index,), (receipt.index,), str(IMAGE))


def test_by_another_name_of_the_image_it_is_the_same_build(world: World) -> None:
    world.trust(roles={**world.roles(), "qualifier": {"any_of": ["lab", "ci"]}})
    image = world.image(manifest("d4"), aliases=[(IMAGE, True)])
    receipt = world.receipt(IMAGE, by="ci")
    (row,) = conflicts(world)
    assert (row.first, row.second) == ((image.index,), (receipt.index,))


def test_two_people_are_no_conflict_for_having_two_roles(world: World) -> None:
    world.trust(roles={**world.roles(), "qualifier": {"any_of": ["lab", "ci"]}})
    world.image()
    world.receipt(by="lab")
    assert conflicts(world) == []


def test_a_pair_that_the_trust_policy_separates(world: World) -> None:
    world.trust(roles={**world.roles(), "gate": {"any_of": ["release-gate", "lab"]}}, separate=[["qualifier", "gate"]])
    receipt = world.receipt()
    decision = world.decide(by="lab")
    (row,) = conflicts(world)
    assert (row.signer, row.conflict) == ("lab", "qualifier and gate of one image")
    assert (row.first, row.second[0]) == ((receipt.index,), decision.index)
    assert "kept apart: builder and qualifier, qualifier and gate" in conflicts_listing(world.workspace).notes


def test_who_took_back_their_own_word(world: World) -> None:
    world.trust(roles={**world.roles(), "approver": {"any_of": ["alice", "lab"]}})
    receipt = world.receipt()
    retraction = world.retract(receipt, by="lab")
    (row,) = conflicts(world)
    assert (row.conflict, row.first, row.second) == ("took back a statement of their own", (receipt.index,), (retraction.index,))
