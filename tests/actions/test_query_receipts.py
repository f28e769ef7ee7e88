"""`query receipts`: outcome and basis as they compute, what keeps a receipt from counting, and what was never tested."""

import pytest
from worlds import ALIAS, IMAGE, OTHER, RESTORE, THIRD, UNKNOWN, World, manifest

from countermark.actions.queries.listing import Bearing, Listing
from countermark.actions.queries.receipts import ReceiptRow, RejectionRow, receipts_listing
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError


def ask(world: World, image: Digest = IMAGE) -> Listing:
    return receipts_listing(world.workspace, str(image))


def receipts(listing: Listing) -> dict[int, ReceiptRow]:
    return {row.index: row for row in listing.rows if isinstance(row, ReceiptRow)}


def rejections(listing: Listing) -> list[RejectionRow]:
    return [row for row in listing.rows if isinstance(row, RejectionRow)]


def test_a_pass_a_taken_back_pass_and_what_is_not_tested(full: World) -> None:
    listing = ask(full)
    found = receipts(listing)
    good, back = found[full.at["pass"].index], found[full.at["taken back"].index]
    assert (good.outcome, good.basis, good.problems, good.bearing) == (Outcome.PASS, "reported", (), Bearing.FOUND)
    assert good.tested == "131072 tokens, C1, TP4/DCP1/PP1, model example/model@" + "42" * 20
    assert (back.bearing, back.problems) == (Bearing.NEGATIVE, (f"taken back by entry {full.at['retraction'].index}",))
    assert len(found) == 2
    assert listing.not_found[0].startswith("a receipt of service.startup, ")
    assert RESTORE not in listing.not_found[0]


def test_the_same_by_another_name_of_the_image(full: World) -> None:
    listing = ask(full, ALIAS)
    assert receipts(listing).keys() == receipts(ask(full)).keys()
    assert f"also known as {IMAGE}" in listing.notes


def test_a_failure_and_a_rejection_are_negative(full: World) -> None:
    (failed,) = receipts(ask(full, OTHER)).values()
    assert (failed.outcome, failed.stated, failed.bearing) == (Outcome.FAIL, "fail", Bearing.NEGATIVE)
    (rejected,) = rejections(ask(full, THIRD))
    assert (rejected.counts, rejected.bearing) == (True, Bearing.NEGATIVE)
    assert "the answer was wrong" in rejected.reason


def test_an_image_that_nobody_knows(full: World) -> None:
    listing = ask(full, UNKNOWN)
    assert listing.rows == []
    assert listing.not_found[0] == f"{UNKNOWN}: no record names it [SUBJECT_UNKNOWN]"


def test_the_outcome_is_computed_and_not_the_stated_one(world: World) -> None:
    controls = {"all-ranks-structural": "pass", "exact-answer": "fail"}
    world.receipt(controls=controls)
    (row,) = receipts(ask(world)).values()
    assert (row.stated, row.outcome, row.bearing) == ("pass", Outcome.FAIL, Bearing.NEGATIVE)


def test_the_basis_is_computed_and_a_contradiction_is_told(world: World) -> None:
    world.receipt(basis="measured")
    (row,) = receipts(ask(world)).values()
    assert row.basis == "reported"
    assert row.problems == ("it says that its basis is measured, and that computes to reported",)


def test_a_receipt_by_somebody_who_may_not_make_it(world: World) -> None:
    world.receipt()
    world.trust(roles={**world.roles(), "qualifier": {"any_of": ["alice"]}})
    (row,) = receipts(ask(world)).values()
    assert (row.code, row.bearing) == (Code.SIGNER_UNTRUSTED, Bearing.NEGATIVE)
    assert "lab may not make it [SIGNER_UNTRUSTED]" in row.problems


def test_a_receipt_that_rests_on_nothing_that_is_here(world: World) -> None:
    world.receipt(rests_on=[f"payload:sha256:{'77' * 32}"])
    (row,) = receipts(ask(world)).values()
    assert "it rests on a statement that is not in the ledger" in row.problems


def test_a_pass_does_not_cross_a_name_that_is_not_proven(world: World) -> None:
    world.image(IMAGE, aliases=[(manifest("88"), False)])
    world.receipt()
    (row,) = receipts(ask(world, manifest("88"))).values()
    assert row.bearing is Bearing.NEGATIVE
    assert "not proven to be this image" in row.problems[0]


def test_a_lifted_rejection_stays_in_the_list(world: World) -> None:
    rejection = world.reject()
    lifting = world.retract(rejection)
    (row,) = rejections(ask(world))
    assert (row.counts, row.lifted_by, row.bearing) == (False, lifting.index, Bearing.FOUND)


def test_a_rejection_of_one_capability_says_which(world: World) -> None:
    world.reject(scope={"image": str(IMAGE), "cells": [{"context_tokens": 131072}]}, capability=RESTORE)
    (row,) = rejections(ask(world))
    assert (row.capability, row.cells()["tested"]) == (RESTORE, "131072 tokens")


def test_a_tag_is_not_a_digest(full: World) -> None:
    with pytest.raises(InputError) as caught:
        receipts_listing(full.workspace, "example/image:latest")
    assert caught.value.code is Code.TAG_NOT_DIGEST
