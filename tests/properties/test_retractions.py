"""Who may take a rejection back: an approver who is another person than the rejecter, and nobody where all are one operator."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from program import Program
from worlds import IMAGE, World

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError

from .real_ledgers import answer, ask

REJECTED, LIFTED = ("DENY", "IMAGE_REJECTED"), ("ALLOW", "OK")


@pytest.fixture
def world(world: World) -> World:
    """A world in which an image passed and nothing else was said."""
    world.receipt()
    return world


def now(world: World) -> tuple[str, str]:
    return answer(ask(world.workspace, IMAGE, world.folder / "lab.yaml"))


def roles(world: World, **members: list[str]) -> None:
    world.trust(roles={**world.roles(), **{role: {"any_of": names} for role, names in members.items()}})


def by_an_approver(world: World) -> tuple[str, str]:
    world.retract(world.reject())
    return LIFTED


def by_the_rejecter_who_approves(world: World) -> tuple[str, str]:
    roles(world, qualifier=["lab", "alice"], approver=["alice", "ci"])
    world.retract(world.reject(by="alice"), by="alice")
    return REJECTED


def by_another_approver_than_the_rejecter(world: World) -> tuple[str, str]:
    roles(world, qualifier=["lab", "alice"], approver=["alice", "ci"])
    world.retract(world.reject(by="alice"), by="ci")
    return LIFTED


def by_the_other_key_of_the_rejecter(world: World) -> tuple[str, str]:
    """Two keys are one person."""
    people = world.people()
    people["lab"]["keys"] += people.pop("alice")["keys"]
    world.trust(principals=people, roles={**world.roles(), "approver": {"any_of": ["lab"]}})
    world.retract(world.reject(by="lab"), by="alice")
    return REJECTED


def under_a_single_operator(world: World) -> tuple[str, str]:
    world.retract(world.reject())
    world.trust(single_operator=True)
    return REJECTED


def by_an_approver_whose_key_was_compromised_since(world: World) -> tuple[str, str]:
    world.retract(world.reject())
    revoke(world, "alice")
    return REJECTED


def by_nobody_though_the_rejecters_key_was_compromised_since(world: World) -> tuple[str, str]:
    world.reject()
    revoke(world, "lab")
    return REJECTED


def by_a_retraction_that_was_retracted(world: World) -> tuple[str, str]:
    world.retract(world.retract(world.reject()))
    return REJECTED


def by_a_supersession(world: World) -> tuple[str, str]:
    rejection = world.reject()
    fields = {"by": str(world.receipt(context_tokens=262144).payload), "reason": "repeated", "raw_measurements_changed": False}
    world.say("supersession", rejection.payload, fields, by="lab")
    return REJECTED


def of_one_of_two_rejections(world: World) -> tuple[str, str]:
    world.reject(reason="the answer was wrong again")
    world.retract(world.reject())
    return REJECTED


def by_one_who_must_be_another_person_than_the_qualifier(world: World) -> tuple[str, str]:
    """Who holds both roles of a pair that is to be separate acts in neither."""
    roles(world, qualifier=["lab", "alice"])
    world.retract(world.reject())
    world.trust(separate=[["qualifier", "approver"]])
    return REJECTED


def by_one_of_two_approvers_that_it_takes(world: World) -> tuple[str, str]:
    world.retract(world.reject())
    world.trust(roles={**world.roles(), "approver": {"threshold": {"k": 2, "of": ["alice", "ci"]}}})
    return REJECTED


WAYS = (
    *(by_an_approver, by_the_rejecter_who_approves, by_another_approver_than_the_rejecter, by_the_other_key_of_the_rejecter),
    *(under_a_single_operator, by_an_approver_whose_key_was_compromised_since, by_a_retraction_that_was_retracted, by_a_supersession),
    *(by_nobody_though_the_rejecters_key_was_compromised_since, of_one_of_two_rejections),
    *(by_one_who_must_be_another_person_than_the_qualifier, by_one_of_two_approvers_that_it_takes),
)


def revoke(world: World, person: str) -> None:
    people = world.people()
    people[person]["keys"][0]["revoked"] = {"reason": "compromised", "since": "2024-01-01T00:00:00Z"}
    world.trust(principals=people)


@pytest.mark.parametrize("lift", WAYS, ids=lambda lift: lift.__name__)
def test_a_rejection_is_taken_back(world: World, lift: Callable[[World], tuple[str, str]]) -> None:
    assert now(world) == LIFTED
    expected = lift(world)
    assert now(world) == expected


@pytest.mark.parametrize("person", ["ci", "lab", "release-gate"])
def test_who_is_no_approver_cannot_even_say_so(world: World, person: str) -> None:
    rejection = world.reject()
    with pytest.raises(RefusedError) as caught:
        world.retract(rejection, by=person)
    assert caught.value.code is Code.SIGNER_UNTRUSTED
    assert now(world) == REJECTED


@pytest.mark.parametrize("reason", ["", "  ", "\n"])
def test_a_retraction_without_a_reason_is_refused_or_lifts_nothing(world: World, reason: str) -> None:
    rejection = world.reject()
    with suppress(InputError):
        world.say("retraction", rejection.payload, {"reason": reason, "replacement": None}, by="alice")
    assert now(world) == REJECTED


def test_a_single_operator_retracts_in_vain(tmp_path: Path) -> None:
    """The ledger of `init`: one person with every role, whose retraction is kept and lifts nothing."""
    program = Program(tmp_path, tmp_path / "state")
    assert program("init", "box").code == 0
    ledger = ("--ledger", "box/countermark.db")
    assert program("reject", str(IMAGE), "--reason", "wrong", *ledger).code == 0
    assert program("retract", "1", "--reason", "mistaken", *ledger).code == 4
    done = program("retract", "1", "--reason", "mistaken", "--key", "box/keys/qualifier.pem", *ledger)
    assert done.code == 0, done.err
    done = program("gate", str(IMAGE), "--require", "service.startup", *ledger, "-o", "json")
    core = done.json["decisions"][0]["core"]
    assert (done.code, core["requirements"][0]["code"]) == (1, "IMAGE_REJECTED")
    assert "SINGLE_OPERATOR" in core["notes"]
