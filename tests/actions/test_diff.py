"""`diff`: what differs, judged by the gate on both sides, and never a missing record taken for a difference in kind."""

from dataclasses import replace
from pathlib import Path

import pytest
from worlds import ALIAS, COMMIT, IMAGE, NOW, OTHER, OTHER_COMMIT, THIRD, UNKNOWN, UNTESTED, World, layers

from countermark.actions.gate import Asked
from countermark.actions.image_diff import ChangeRow, diff_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.digests import Digest
from countermark.contracts.compare_images import Section

Told = dict[tuple[Section, str], ChangeRow]


def ask(world: World, a: Digest, b: Digest, policy: Path | None = None) -> Listing:
    return diff_listing(world.workspace, Asked((), policy, effective_time=NOW), str(a), str(b))


def rows(listing: Listing) -> Told:
    return {(row.section, row.item): row for row in listing.rows if isinstance(row, ChangeRow)}


def sides(row: ChangeRow) -> tuple[str | None, str | None]:
    return row.a, row.b


AT_131072 = "restore.correctness at 131072 tokens, C1, TP4/DCP1/PP1"


def test_components_layers_tests_contracts_and_scopes(full: World) -> None:
    listing = ask(full, IMAGE, OTHER, full.folder / "serving.yaml")
    found = rows(listing)
    assert sides(found[Section.COMPONENT, "engine.commit"]) == (f"git-commit:{COMMIT}", f"git-commit:{OTHER_COMMIT}")
    assert sides(found[Section.LAYER, "22" * 32]) == ("absent", "100 bytes")
    assert sides(found[Section.LAYER, "33" * 32]) == ("100 bytes", "absent")
    assert sides(found[Section.TEST, "y"]) == ("pass", "fail")
    contract = found[Section.CONTRACT, "contract serving"]
    assert (str(contract.a)[:14], str(contract.b)[:26]) == ("qualified [OK]", "unqualified [PIN_MISMATCH]")
    scope = found[Section.SCOPE, AT_131072]
    assert "[CAP_FAILED]" in str(scope.b)
    assert (scope.bearing, contract.bearing, found[Section.TEST, "y"].bearing) == (Bearing.NEGATIVE,) * 3
    assert (Section.LAYER, "11" * 32) not in found
    assert "the same: 1 layer, 1 test" in listing.notes


def test_untested_there_is_not_failed_there(full: World) -> None:
    row = rows(ask(full, OTHER, UNTESTED, full.folder / "serving.yaml"))[Section.SCOPE, AT_131072]
    assert row.bearing is Bearing.NOT_FOUND
    assert str(row.b).startswith("unsupported [CAP_NO_EVIDENCE]")


def test_the_other_way_round_the_sides_are_exchanged(full: World) -> None:
    policy = full.folder / "serving.yaml"
    there, back = rows(ask(full, IMAGE, OTHER, policy)), rows(ask(full, OTHER, IMAGE, policy))
    assert {key: sides(row) for key, row in there.items()} == {key: sides(replace(row, a=row.b, b=row.a)) for key, row in back.items()}


@pytest.mark.parametrize("image", [IMAGE, OTHER, THIRD, UNTESTED])
def test_an_image_does_not_differ_from_itself(full: World, image: Digest) -> None:
    assert rows(ask(full, image, image)) == {}


def test_two_names_of_one_image_do_not_differ(full: World) -> None:
    listing = ask(full, ALIAS, IMAGE, full.folder / "serving.yaml")
    assert rows(listing) == {}
    assert "A and B are proven to be names of one image" in listing.notes


def test_what_one_side_does_not_record_is_not_absent_there(full: World) -> None:
    found = rows(ask(full, IMAGE, UNTESTED))
    assert sides(found[Section.LAYER, "all layers"]) == ("2 recorded", None)
    assert sides(found[Section.TEST, "all tests"]) == ("2 recorded", None)
    assert sides(found[Section.COMPONENT, "engine.commit"]) == (f"git-commit:{COMMIT}", None)
    assert {found[key].bearing for key in found if key[0] in (Section.LAYER, Section.TEST)} == {Bearing.NOT_FOUND}


def test_what_neither_side_records_is_told(full: World) -> None:
    listing = ask(full, UNTESTED, THIRD)
    assert {"the layers of either", "a test-result of either", "the components of either", "a receipt of either"} <= set(listing.not_found)


def test_an_image_that_nobody_knows(full: World) -> None:
    listing = ask(full, UNKNOWN, IMAGE)
    assert f"{UNKNOWN}: no record names it [SUBJECT_UNKNOWN]" in listing.not_found
    assert all(IMAGE.hex not in text for text in listing.not_found)


def test_an_order_of_layers(world: World) -> None:
    world.image(IMAGE, layers=layers("11", "22"))
    world.image(OTHER, layers=layers("22", "11"))
    (row,) = rows(ask(world, IMAGE, OTHER)).values()
    assert row.item == "order of the common layers"
    assert row.a == f"{'11' * 32}, {'22' * 32}"


def test_the_worst_that_was_said_of_a_test_counts(world: World) -> None:
    world.image(IMAGE)
    world.image(OTHER)
    world.tests(IMAGE, passedTests=["x"])
    world.tests(IMAGE, "FAILED", failedTests=["x"])
    world.tests(OTHER, passedTests=["x"])
    (row,) = rows(ask(world, IMAGE, OTHER)).values()
    assert sides(row) == ("fail", "pass")


def test_a_statement_that_was_taken_back_says_nothing(world: World) -> None:
    world.retract(world.image(IMAGE, layers=layers("11"), commit=COMMIT))
    world.image(OTHER, layers=layers("11"), commit=COMMIT)
    found = rows(ask(world, IMAGE, OTHER))
    assert sides(found[Section.LAYER, "all layers"]) == (None, "1 recorded")
    assert sides(found[Section.COMPONENT, "engine.commit"]) == (None, f"git-commit:{COMMIT}")


def test_two_statements_that_differ_are_both_told(world: World) -> None:
    world.image(IMAGE, commit=COMMIT)
    world.image(IMAGE, commit=OTHER_COMMIT)
    world.image(OTHER, commit=COMMIT)
    (row,) = rows(ask(world, IMAGE, OTHER)).values()
    assert row.a == f"git-commit:{COMMIT} and git-commit:{OTHER_COMMIT}"


def test_the_policys_rules_of_evidence_count(full: World) -> None:
    """Both are judged alike: without a policy neither's reported evidence suffices, and with one the pass does."""
    strict, lenient = ask(full, IMAGE, UNTESTED), ask(full, IMAGE, UNTESTED, full.folder / "serving.yaml")
    assert "[EVIDENCE_BASIS]" in str(rows(strict)[Section.SCOPE, AT_131072 + SUFFIX].a)
    assert "[OK]" in str(rows(lenient)[Section.SCOPE, AT_131072 + SUFFIX].a)


SUFFIX = ", model example/model@" + "42" * 20
