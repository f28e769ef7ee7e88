"""`query decisions`: all that were recorded, and reasons not to believe one."""

import copy
from typing import Any

import pytest
from worlds import IMAGE, OTHER, THIRD, World

from countermark.actions.gate import Asked, gate
from countermark.actions.queries.decisions import DecisionRow, Wanted, decisions_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.ledger.submission import Receipt


def ask(world: World, **wanted: Any) -> Listing:
    return decisions_listing(world.workspace, Wanted(**wanted))


def rows(listing: Listing) -> list[DecisionRow]:
    return [row for row in listing.rows if isinstance(row, DecisionRow)]


def test_what_was_decided_and_by_what(full: World) -> None:
    allow, deny = rows(ask(full))
    assert (allow.index, deny.index) == (full.at["allow"].index, full.at["deny"].index)
    assert (allow.verdict, allow.subject, allow.policy, allow.channel) == ("ALLOW", str(IMAGE), "serving@1", "production")
    assert (allow.codes, allow.signer, allow.problems, allow.bearing) == (("OK",), "release-gate", (), Bearing.FOUND)
    assert (deny.codes, deny.problems, deny.bearing) == (("IMAGE_REJECTED",), (), Bearing.NEGATIVE)


def test_of_a_channel_and_about_an_image(full: World) -> None:
    assert len(rows(ask(full, channel="production"))) == 2
    assert [row.verdict for row in rows(ask(full, channel="production", subject=str(THIRD)))] == ["DENY"]
    assert [row.verdict for row in rows(ask(full, subject=f"sha256:{IMAGE.hex}"))] == ["ALLOW"]
    listing = ask(full, channel="lab")
    assert (listing.rows, listing.not_found) == ([], ("every decision of channel lab: none is recorded",))
    assert ask(full, subject=str(OTHER)).not_found == (f"every decision about {OTHER}: none is recorded",)


def test_since_the_ledger_admitted_it(full: World) -> None:
    first, second = rows(ask(full))
    assert len(rows(ask(full, since=first.admitted))) == 2
    assert first not in rows(ask(full, since=Instant(first.admitted.ns + 1)))
    assert not rows(ask(full, since=Instant(second.admitted.ns + 1)))


def recorded_core(world: World, image: Digest = IMAGE) -> dict[str, Any]:
    """The core that the gate would record now."""
    (decision,) = gate(world.workspace, Asked((str(image),), world.policy())).decisions
    return copy.deepcopy(decision.core())


def forge(world: World, core: dict[str, Any], *, by: str = "release-gate", about: Digest = IMAGE) -> Receipt:
    made = {"tool": "countermark", "tool_version": "0.1.0", "at": "2024-06-11T00:00:00Z"}
    return world.say(PredicateName.DECISION, about, {"core": core, "made": made}, by=by)


def test_a_decision_about_another_image_than_its_subject(world: World) -> None:
    forge(world, recorded_core(world), about=OTHER)
    (row,) = rows(ask(world))
    assert row.problems == ("its core is about another image than its subject [SUBJECT_MISMATCH]",)
    assert row.bearing is Bearing.NEGATIVE


@pytest.mark.parametrize(("field", "value"), [("root", "00" * 32), ("size", 2), ("size", 99), ("size", 0)])
def test_a_decision_at_a_head_that_this_ledger_never_had(world: World, field: str, value: object) -> None:
    world.receipt()
    core = recorded_core(world)
    core["ledger"][field] = value
    forge(world, core)
    (row,) = rows(ask(world))
    assert row.problems == ("this ledger never had the size and root that it names [SPLIT_VIEW]",)


def test_a_decision_over_another_ledger(world: World) -> None:
    core = recorded_core(world)
    core["ledger"]["origin"] = "countermark.local/elsewhere/00000000"
    forge(world, core)
    (row,) = rows(ask(world))
    assert row.problems == ("it was decided over another ledger, countermark.local/elsewhere/00000000",)


def test_a_decision_by_somebody_who_may_not_decide(world: World) -> None:
    world.receipt()
    world.decide()
    world.trust(roles={**world.roles(), "gate": {"any_of": ["alice"]}})
    (row,) = rows(ask(world))
    assert (row.verdict, row.code, row.bearing) == ("ALLOW", Code.SIGNER_UNTRUSTED, Bearing.NEGATIVE)
    assert row.problems == ("nobody who signed it may decide [SIGNER_UNTRUSTED]",)


def test_a_channel_that_nobody_can_tell_is_named_apart(world: World) -> None:
    """The decision alone was recorded, without the bytes of its policy."""
    done = forge(world, recorded_core(world))
    (row,) = rows(ask(world))
    assert (row.channel, row.problems) == (None, ())
    listing = ask(world, channel="lab")
    assert listing.rows == []
    assert f"the channel of entry {done.index}, DENY: the bytes of its policy are not in the ledger" in listing.not_found


def test_a_warning_and_a_waiver_are_told(world: World) -> None:
    core = recorded_core(world)
    core["mode"] = "warn"
    core["requirements"][0]["waived_by"] = "w-2024-001"
    forge(world, core)
    (row,) = rows(ask(world))
    assert (row.mode, row.waived) == ("warn", ("w-2024-001",))
    assert "waived by w-2024-001" in row.cells()["codes"]
    assert row.cells()["verdict"] == "DENY, warn only"
