"""`query capability` and `query expiring`: the gate's own answers about every image that the ledger knows."""

from pathlib import Path

import pytest
from worlds import ALIAS, AT_131072, BUILT_ON, IMAGE, NOW, OTHER, RESTORE, THIRD, UNTESTED, World

from countermark.actions.clock import duration_ns
from countermark.actions.gate import Asked, gate
from countermark.actions.queries.capability import ImageStatus, capability_listing
from countermark.actions.queries.expiring import ExpiryRow, expiring_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.actions.workspace import open_reader
from countermark.attestations.codes import Code, Status
from countermark.attestations.digests import Digest
from countermark.attestations.errors import CountermarkError, InputError, UsageError
from countermark.attestations.times import Instant


def ask(world: World, policy: Path | None = None, *, scope: str = AT_131072, status: str | None = None) -> Listing:
    return capability_listing(world.workspace, Asked((), policy, effective_time=NOW), RESTORE, scope, status)


def rows(listing: Listing) -> dict[Digest, ImageStatus]:
    found = [row for row in listing.rows if isinstance(row, ImageStatus)]
    assert len(found) == len(listing.rows)
    return {row.image: row for row in found}


def test_every_image_has_the_status_that_the_gate_gives_it(full: World) -> None:
    policy = full.folder / "serving.yaml"
    listing = rows(ask(full, policy))
    assert set(listing) == {IMAGE, ALIAS, OTHER, THIRD, BUILT_ON, UNTESTED}
    asked = Asked(tuple(map(str, listing)), policy, (f"{RESTORE}@{AT_131072}",), effective_time=NOW)
    for decision in gate(full.workspace, asked).decisions:
        row, (result,) = listing[decision.subject], decision.requirements
        assert (row.status, row.code, row.observed, row.expires) == (result.status, result.code, result.observed, result.next_expiry)
        assert row.entries == tuple(item.index for item in result.evidence if item.used)


def test_negative_and_not_found_are_told_apart(full: World) -> None:
    listing = ask(full, full.folder / "serving.yaml")
    assert {str(row.image): row.bearing for row in rows(listing).values()} == {
        str(IMAGE): Bearing.FOUND,
        str(ALIAS): Bearing.FOUND,
        str(OTHER): Bearing.NEGATIVE,
        str(THIRD): Bearing.NEGATIVE,
        str(BUILT_ON): Bearing.NOT_FOUND,
        str(UNTESTED): Bearing.NOT_FOUND,
    }
    assert listing.counts == {"found": 2, "negative": 2, "not-found": 2}


def test_a_filter_still_says_what_it_leaves_out(full: World) -> None:
    listing = ask(full, full.folder / "serving.yaml", status="qualified")
    assert {row.status for row in rows(listing).values()} == {Status.QUALIFIED}
    assert listing.counts == {"found": 2, "negative": 2, "not-found": 2}
    assert "not listed: 1 rejected [IMAGE_REJECTED], negative" in listing.notes
    assert "not listed: 2 unsupported [CAP_NO_EVIDENCE], not-found" in listing.notes


def test_a_scope_that_nobody_tested_is_not_found(full: World) -> None:
    row = rows(ask(full, full.folder / "serving.yaml", scope=AT_131072.replace("131072", "200000")))[IMAGE]
    assert (row.code, row.bearing) == (Code.CAP_SCOPE, Bearing.NOT_FOUND)


def test_without_a_policy_the_defaults_hold_and_are_told(full: World) -> None:
    listing = ask(full)
    assert rows(listing)[IMAGE].code is Code.EVIDENCE_BASIS
    assert "evidence signed by qualifier, basis measured, max age 90d" in listing.notes


def test_dimensions_that_are_left_open_are_told(full: World) -> None:
    assert "left open: concurrency" in ask(full, scope="tp=4,dcp=1,context_tokens=131072").notes


def test_an_empty_ledger_names_no_image(world: World) -> None:
    listing = ask(world)
    assert (listing.rows, listing.not_found) == ([], ("any image: the ledger names none",))


def test_a_deleted_row_hides_no_rejected_image(world: World) -> None:
    """The index of a ledger's owner may lie; the chain of notices cannot."""
    world.reject(THIRD)
    world.edit("DELETE FROM subject")
    assert rows(ask(world))[THIRD].code is Code.IMAGE_REJECTED


def test_a_changed_payload_is_tampering(world: World) -> None:
    world.receipt()
    world.edit("UPDATE payload SET data = CAST(replace(CAST(data AS TEXT), 'pass', 'fail') AS BLOB)")
    with pytest.raises(CountermarkError) as caught:
        ask(world)
    assert caught.value.exit == 6


@pytest.mark.parametrize(("status", "scope", "error"), [("good", AT_131072, UsageError), (None, "tp=four", InputError)])
def test_what_cannot_be_asked(full: World, status: str | None, scope: str, error: type[CountermarkError]) -> None:
    with pytest.raises(error):
        ask(full, scope=scope, status=status)


def test_another_capability_is_suggested(full: World) -> None:
    with pytest.raises(InputError, match=r"restore\.corectness") as caught:
        capability_listing(full.workspace, Asked(()), "restore.corectness", None, None)
    assert RESTORE in caught.value.fix


def test_as_of_a_past_head(world: World) -> None:
    """What was said later is not known then: neither the rejection, nor the other image."""
    receipt = world.receipt()
    world.reject()
    world.image(OTHER)
    policy = world.policy()
    with open_reader(world.workspace) as reader:
        then = Instant.from_ms(reader.entry(receipt.index).leaf.admitted_ms)
        later = reader.entry(receipt.index + 1).leaf.admitted_ms
    assert then.ms < later, "two entries of one millisecond"
    past = capability_listing(world.workspace, Asked((), policy, at=then), RESTORE, AT_131072, None)
    assert {row.image: row.status for row in rows(past).values()} == {IMAGE: Status.QUALIFIED}
    assert (past.head.size, past.effective_time) == (receipt.index + 1, then.whole_seconds())
    assert rows(ask(world, policy))[IMAGE].status is Status.REJECTED


def expiring(world: World, within: str, *, max_age: str = "30d", at: Instant = NOW) -> list[ExpiryRow]:
    policy = world.policy("aged", max_age=max_age)
    listing = expiring_listing(world.workspace, Asked((), policy, effective_time=at), within)
    return [row for row in listing.rows if isinstance(row, ExpiryRow)]


def test_what_stops_holding_is_found_with_its_last_moment(world: World) -> None:
    world.receipt()
    (row,) = expiring(world, "20d")
    assert (row.image, row.requirement, row.bearing) == (IMAGE, "restore", Bearing.FOUND)
    assert (str(row.expires), row.left_h) == ("2024-07-01T00:00:00Z", 480)
    assert expiring(world, "19d") == []


def test_what_stops_holding_does_hold_until_then_and_not_after(world: World) -> None:
    """The moment that the listing names is the gate's own."""
    world.receipt()
    (row,) = expiring(world, "20d")
    assert row.expires is not None
    policy = world.folder / "aged.yaml"
    for moment, verdict in ((row.expires, "ALLOW"), (Instant(row.expires.ns + 1_000_000_000), "DENY")):
        (decision,) = gate(world.workspace, Asked((str(IMAGE),), policy, effective_time=moment)).decisions
        assert decision.verdict == verdict


def test_a_younger_receipt_carries_on(world: World) -> None:
    world.receipt()
    world.receipt(observed={"from": "2024-06-09T00:00:00Z", "to": "2024-06-10T00:00:00Z"})
    assert expiring(world, "20d") == []
    assert [str(row.expires) for row in expiring(world, "30d")] == ["2024-07-10T00:00:00Z"]


def test_what_expired_failed_or_was_never_tested_is_told_apart(world: World) -> None:
    world.receipt()
    world.receipt(OTHER, outcome="fail")
    world.image(UNTESTED)
    found = {row.image: (row.code, row.bearing, row.expires) for row in expiring(world, "30d", at=Instant.parse("2024-08-01T00:00:00Z"))}
    assert found == {
        IMAGE: (Code.EVIDENCE_EXPIRED, Bearing.NEGATIVE, None),
        OTHER: (Code.CAP_FAILED, Bearing.NEGATIVE, None),
        UNTESTED: (Code.CAP_NO_EVIDENCE, Bearing.NOT_FOUND, None),
    }


def test_a_policy_without_an_age_is_told(world: World) -> None:
    world.receipt()
    policy = world.policy("ageless", max_age="none")
    listing = expiring_listing(world.workspace, Asked((), policy, effective_time=NOW), "30d")
    assert listing.rows == []
    assert listing.not_found == ("an age limit of restore: the policy sets none, so that age alone never ends them",)


@pytest.mark.parametrize("text", ["30", "0d", "-1d", "1.5d", "30 d", "d", "١d"])
def test_a_duration_is_days_or_hours(text: str) -> None:
    with pytest.raises(UsageError):
        duration_ns(text)
