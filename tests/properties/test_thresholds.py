"""Roles that take several people: what too few of them signed says nothing for an image, and everything against it."""

import base64
import json
from collections.abc import Sequence

import pytest
from worlds import ALIAS, IMAGE, NOW, World

from countermark.actions.appending import FILE_TYPE, append, record
from countermark.actions.evidence import Gatherer
from countermark.actions.evidence_records import endorse
from countermark.actions.negative import retraction
from countermark.actions.verify_attestation import Expectation, check_files
from countermark.actions.workspace import open_reader
from countermark.attestations.codes import Code
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import RefusedError
from countermark.attestations.keys import Signer
from countermark.attestations.verifier import PolicyTrust
from countermark.contracts.decision import Decision
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import Submission

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
    assert [item.finding.code for item in result.refused] in ([], [Code.THRESHOLD])
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


def test_signers_who_send_an_envelope_each_meet_the_threshold_together(world: World) -> None:
    require_both(world)
    document, first, second = pass_by(world, ["lab", "alice"])
    assert not take(world, [document, first]).refused
    assert answer(decided(world)) == ("DENY", "SIGNER_UNTRUSTED")
    assert not take(world, [second]).refused
    assert answer(decided(world)) == ("ALLOW", "OK")


def test_what_a_signer_may_make_with_nobody_is_refused_as_before(world: World) -> None:
    require_both(world)
    document, receipt = pass_by(world, ["ci"])
    (refused,) = take(world, [document, receipt]).refused
    assert refused.finding.code is Code.SIGNER_UNTRUSTED


def test_one_envelope_of_two_that_it_takes_is_no_verified_attestation(world: World) -> None:
    require_both(world)
    _, first, _ = pass_by(world, ["lab", "alice"])
    path = world.folder / "first.json"
    path.write_text(first)
    (checked,) = check_files([str(path)], PolicyTrust(world.workspace.trust()), NOW, Expectation())
    assert checked.error
    assert (checked.error.code, checked.exit) == (Code.THRESHOLD, 1)


def test_a_file_kept_by_another_signer_is_no_second_signature(world: World) -> None:
    """The same bytes, signed as a file and not as what they say."""
    require_both(world)
    document, first, _ = pass_by(world, ["lab", "alice"])
    take(world, [document, first])
    alice = Signer.load(str(world.key("alice")))
    append(world.workspace, [Submission.sign(EntryKind.ATTESTATION, FILE_TYPE, envelope(first).payload, alice)])
    assert answer(decided(world)) == ("DENY", "SIGNER_UNTRUSTED")


def test_two_approvers_retract_a_rejection_with_a_command_each(world: World) -> None:
    admit(world, pass_by(world, ["lab"]))
    rejection = world.reject(by="lab")
    require_both(world, "approver", {"threshold": {"k": 2, "of": ["ci", "release-gate"]}})
    said = retraction(world.workspace, str(rejection.payload), "the rig was wired wrongly", None)
    first = record(world.workspace, said, "approver", str(world.key("ci")))
    assert "role approver needs 2 principals of 2, 1 signed" in first.notes[-1]
    assert answer(decided(world)) == ("DENY", "IMAGE_REJECTED")
    second = record(world.workspace, said, "approver", str(world.key("release-gate")))
    assert second.receipt.payload == first.receipt.payload
    assert answer(decided(world)) == ("ALLOW", "OK")


def test_whoever_reads_single_entries_of_a_payload_sees_all_who_signed_it(world: World) -> None:
    require_both(world, "builder", {"threshold": {"k": 2, "of": ["ci", "release-gate"]}})
    document, _ = pass_by(world, ["lab"])
    (receipt,) = take(world, [document]).receipts
    with pytest.raises(RefusedError) as caught:
        endorse(world.workspace, [str(receipt.index)], (), str(world.key("lab")))
    assert caught.value.code is Code.THRESHOLD
    (again,) = take(world, [by_another(world, document, "release-gate")]).receipts
    with open_reader(world.workspace) as reader:
        records = Gatherer(reader, world.workspace.trust()).records((receipt.index, again.index))
    assert [(found.code, found.signers) for found in records] == [(Code.OK, ("ci",)), (Code.OK, ("release-gate",))]
