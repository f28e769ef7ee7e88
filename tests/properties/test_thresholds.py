"""Roles that take several people: what too few of them signed says nothing for an image, and everything against it."""

import base64
import json
from collections.abc import Sequence

import pytest
from worlds import ALIAS, IMAGE, World

from countermark.attestations.codes import Code
from countermark.attestations.envelope import Envelope
from countermark.attestations.keys import Signer
from countermark.contracts.decision import Decision

from .real_ledgers import answer, ask, take
from .sayings import Draft, admit

ONE_OF, BOTH_OF = {"any_of": ["lab", "alice"]}, {"threshold": {"k": 2, "of": ["lab", "alice"]}}
ALL_OF = {"all_of": ["alice", "lab"]}


@pytest.fixture
def world(world: World) -> World:
    """A world in which qualifiers are `lab` and `alice`, and `ci` alone approves."""
    world.trust(roles={**world.roles(), "qualifier": ONE_OF, "approver": {"any_of": ["ci"]}})
    return world


def require_both(world: World, role: str = "qualifier", rule: object = BOTH_OF) -> None:
    world.trust(roles={**world.roles(), role: rule})


def decided(world: World, image: object = IMAGE) -> Decision:
    return ask(world.workspace, image, world.folder / "lab.yaml")


def envelope(line: str) -> Envelope:
    return Envelope.parse(line.encode(), "test")


def cosigned(world: World, line: str, *people: str) -> str:
    """The envelope with the signatures of more people over the same payload."""
    made = json.loads(line)
    made["signatures"] += [signature(world, line, person) for person in people]
    return json.dumps(made)


def signature(world: World, line: str, person: str) -> dict[str, str]:
    signed = Signer.load(str(world.key(person))).sign(envelope(line).pae())
    return {"keyid": "", "sig": base64.b64encode(signed).decode()}


def by_another(world: World, line: str, person: str) -> str:
    """An envelope of its own over the same payload."""
    return json.dumps({**json.loads(line), "signatures": [signature(world, line, person)]})


def pass_by(world: World, people: Sequence[str]) -> list[str]:
    """The envelopes of a document, and of one receipt for each of the people, over the same bytes."""
    draft = Draft.of(world)
    draft.receipt(by=people[0])
    document, receipt = draft.lines
    return [document, receipt, *(by_another(world, receipt, person) for person in people[1:])]


@pytest.mark.parametrize("rule", [BOTH_OF, ALL_OF], ids=["threshold", "all_of"])
def test_a_second_signers_envelope_over_the_same_payload_joins_the_first(world: World, rule: object) -> None:
    document, first, second = pass_by(world, ["lab", "alice"])
    admit(world, [document, first])
    assert answer(decided(world)) == ("ALLOW", "OK")
    require_both(world, rule=rule)
    lacking = decided(world)
    assert answer(lacking) == ("DENY", "SIGNER_UNTRUSTED")
    assert "[THRESHOLD]" in lacking.requirements[0].observed
    admit(world, [second])
    joined = decided(world)
    assert answer(joined) == ("ALLOW", "OK")
    assert [item.signer for item in joined.requirements[0].evidence if item.used] == ["alice, lab"]


@pytest.mark.parametrize("people", [["lab", "lab"], ["lab", "ci"]], ids=["the same again", "one of another role"])
def test_two_envelopes_that_are_not_of_two_members_join_to_nothing(world: World, people: list[str]) -> None:
    admit(world, pass_by(world, people))
    require_both(world)
    assert answer(decided(world)) == ("DENY", "SIGNER_UNTRUSTED")


def test_two_keys_of_one_person_are_one(world: World) -> None:
    people = world.people()
    people["lab"]["keys"] += people["ci"]["keys"]
    people["ci"]["keys"] = people["release-gate"]["keys"]
    del people["release-gate"]
    roles = {**world.roles(), "builder": {"any_of": ["lab"]}, "gate": {"any_of": ["alice"]}}
    world.trust(principals=people, roles=roles)
    admit(world, pass_by(world, ["lab", "ci"]))
    require_both(world)
    assert answer(decided(world)) == ("DENY", "SIGNER_UNTRUSTED")


def test_one_envelope_with_both_signatures_is_admitted_and_counts(world: World) -> None:
    require_both(world)
    document, alone, _ = pass_by(world, ["lab", "alice"])
    result = take(world, [document, cosigned(world, alone, "alice")])
    assert not result.refused
    assert answer(decided(world)) == ("ALLOW", "OK")


def test_a_receipt_of_too_few_counts_for_nothing_however_it_came(world: World) -> None:
    """Refused on entry, or admitted when one was enough."""
    require_both(world)
    result = take(world, pass_by(world, ["lab"]))
    assert [item.error.code for item in result.refused if item.error] in ([], [Code.THRESHOLD])
    assert decided(world).verdict == "DENY"


def test_a_rejection_of_too_few_counts_all_the_same(world: World) -> None:
    document, first, second = pass_by(world, ["lab", "alice"])
    draft = Draft.of(world)
    draft.reject(by="alice")
    admit(world, [document, first, second, *draft.lines])
    require_both(world)
    assert answer(decided(world)) == ("DENY", "IMAGE_REJECTED")


def test_a_failure_of_too_few_counts_all_the_same(world: World) -> None:
    document, first, second = pass_by(world, ["lab", "alice"])
    draft = Draft.of(world)
    draft.receipt(outcome="fail", by="alice")
    admit(world, [document, first, second, *draft.lines])
    require_both(world)
    assert answer(decided(world)) == ("DENY", "CAP_FAILED")


def test_a_rejection_is_lifted_by_as_many_approvers_as_it_takes(world: World) -> None:
    draft = Draft.of(world)
    rejection = draft.reject(by="lab")
    draft.retract(rejection, by="ci")
    rejected, first = draft.lines
    admit(world, [*pass_by(world, ["lab"]), rejected, first])
    assert answer(decided(world)) == ("ALLOW", "OK")
    require_both(world, "approver", {"threshold": {"k": 2, "of": ["ci", "release-gate"]}})
    assert answer(decided(world)) == ("DENY", "IMAGE_REJECTED")
    admit(world, [by_another(world, first, "release-gate")])
    assert answer(decided(world)) == ("ALLOW", "OK")


def test_an_alias_is_proven_by_as_many_builders_as_it_takes(world: World) -> None:
    draft = Draft.of(world)
    draft.image(ALIAS, aliases=[(IMAGE, True)])
    (alias,) = draft.lines
    admit(world, [*pass_by(world, ["lab"]), alias])
    assert answer(decided(world, ALIAS)) == ("ALLOW", "OK")
    makes = {"builder": ["image"], "approver": ["evidence-document"], "qualifier": ["qualification-receipt"]}
    world.trust(makes=makes)
    require_both(world, "builder", {"threshold": {"k": 2, "of": ["ci", "release-gate"]}})
    assert answer(decided(world, ALIAS)) == ("DENY", "CAP_NO_EVIDENCE")
    assert answer(decided(world)) == ("ALLOW", "OK")
    admit(world, [by_another(world, alias, "release-gate")])
    assert answer(decided(world, ALIAS)) == ("ALLOW", "OK")
