"""`query impact`: everything that rests on a bad thing is touched, nothing else is, and no image looks better for it."""

from pathlib import Path
from typing import Any

import pytest
from worlds import ALIAS, BUILT_ON, COMMIT, IMAGE, MODEL, OTHER, OTHER_COMMIT, THIRD, World, manifest

from countermark.actions.decisions import record_decisions
from countermark.actions.gate import Asked, gate
from countermark.actions.queries.impact import ImageRow, TouchedRow, What, impact_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import CountermarkError
from countermark.attestations.predicate_types import PredicateName
from countermark.ledger.submission import Receipt


def ask(world: World, what: What, value: object, policy: Path | None = None) -> Listing:
    return impact_listing(world.workspace, Asked((), policy), what, str(value))


def touched(listing: Listing) -> dict[int, str]:
    return {row.index: row.why for row in listing.rows if isinstance(row, TouchedRow)}


def images(listing: Listing) -> dict[Digest, ImageRow]:
    return {row.image: row for row in listing.rows if isinstance(row, ImageRow)}


def indices(world: World, *names: str) -> set[int]:
    return {world.at[name].index for name in names}


def summary(decision: Receipt) -> int:
    """The entry of the summary that is recorded with a decision."""
    return decision.index + 1


def test_a_commit_reaches_the_images_built_from_it_and_on_them(full: World) -> None:
    listing = ask(full, "commit", COMMIT)
    at = full.at
    assert set(touched(listing)) == {
        *indices(full, "image", "tests", "verdict", "pass", "taken back", "built on", "allow"),
        summary(at["allow"]),
    }
    why = touched(listing)
    assert why[at["image"].index] == "names it at /predicate/built_from/components/engine/commit"
    assert why[at["pass"].index] == f"about {IMAGE}, which is built from it"
    assert why[at["built on"].index] == f"about an image that is built on {IMAGE}"
    row = images(listing)[IMAGE]
    assert (row.recorded, row.now, row.without, row.changes, row.falls) == ("ALLOW", "ALLOW", "DENY", True, ("restore",))
    assert row.bearing is Bearing.NEGATIVE
    assert {text.partition(": ")[0] for text in listing.not_found} == {f"a decision about {image}" for image in (ALIAS, BUILT_ON)}


def test_a_commit_reaches_every_name_of_an_image_and_the_index_above_it(world: World) -> None:
    """The commit stands in the statement of the config alone; the others are linked to it in statements of their own."""
    name, sibling, index = manifest("44"), manifest("55"), Digest(DigestKind.OCI_INDEX, "66" * 32)
    world.image(IMAGE, commit=COMMIT)
    world.image(name, aliases=[(IMAGE, True)])
    world.image(index, aliases=[(name, True), (sibling, True)])
    world.image(OTHER, aliases=[(manifest("77"), False)])
    of_name, of_sibling = world.tests(name), world.tests(sibling)
    listing = ask(world, "commit", COMMIT, world.policy())
    assert set(images(listing)) == {IMAGE, name, index}
    assert images(listing)[name].why == f"is {IMAGE}"
    assert images(listing)[index].why == f"contains {name}"
    assert of_name.index in touched(listing)
    assert of_sibling.index not in touched(listing)


def test_a_decision_by_a_profile_of_the_maintainers_own_is_judged_again(world: World) -> None:
    world.image(IMAGE, commit=COMMIT)
    world.receipt()
    policy, own, field_map = world.policy(), world.folder / "own.json", world.folder / "map.yaml"
    policy.write_text(policy.read_text().replace("topology: TP4/DCP1", "topology: $profile.topology"))
    own.write_text('{"tensor": 4, "dcp": 1}')
    field_map.write_text(
        "apiVersion: countermark.dev/v1\nkind: ProfileMap\nmetadata: {id: own, version: 1}\n"
        "spec: {fields: {topology.tp: /tensor, topology.dcp: /dcp}}\n"
    )
    decided = gate(world.workspace, Asked((str(IMAGE),), policy, profile=own, profile_map=field_map))
    record_decisions(world.workspace, decided.decisions, decided.documents.files, str(world.key("release-gate")))
    listing = ask(world, "commit", COMMIT)
    row = images(listing)[IMAGE]
    assert (row.recorded, row.now, row.without) == ("ALLOW", "ALLOW", "DENY")
    assert listing.not_found == ()


def test_a_model_revision_is_in_no_image(full: World) -> None:
    listing = ask(full, "model-revision", MODEL["revision"])
    found = touched(listing)
    assert full.at["pass"].index in found
    assert indices(full, "image", "tests", "fail").isdisjoint(found)
    assert images(listing)[IMAGE].changes


def test_a_key_reaches_what_rests_on_what_it_signed(full: World) -> None:
    found = touched(ask(full, "key", full.fingerprint("ci")))
    assert {index for index, why in found.items() if why == "signed by it"} >= indices(full, "image", "tests", "verdict")
    assert found[full.at["pass"].index] == f"rests on entry {full.at['pass'].index - 1}"
    assert found[full.at["allow"].index] == f"rests on entry {full.at['pass'].index}"
    assert found[summary(full.at["allow"])] == f"rests on entry {full.at['pass'].index}"


def test_a_checker_by_name_and_version(full: World) -> None:
    assert touched(ask(full, "checker", "pins.agree@1")) == {full.at["verdict"].index: "checked by it"}
    other = ask(full, "checker", "pins.agree@2")
    assert (touched(other), other.not_found) == ({}, ("checker pins.agree@2: no statement names it",))


def test_an_adapter_is_a_checker_of_documents(full: World) -> None:
    found = touched(ask(full, "checker", "worlds@1"))
    assert indices(full, "pass", "fail", "taken back", "allow") <= set(found)


def test_a_statement_and_what_rests_on_it_and_nothing_else(full: World) -> None:
    listing = ask(full, "payload", full.at["fail"].payload, full.folder / "serving.yaml")
    assert touched(listing) == {full.at["fail"].index: "is the statement itself"}
    row = images(listing)[OTHER]
    assert (row.now, row.without, row.changes) == ("DENY", "DENY", False)


def test_evidence_that_was_weighed_and_not_used_is_no_ground(full: World) -> None:
    """The decision looked at the receipt that was taken back; it rests on the other one."""
    assert full.at["allow"].index not in touched(ask(full, "payload", full.at["taken back"].payload))


def test_no_statement_taken_back_ever_turns_a_no_into_a_yes(full: World) -> None:
    """Rejections, failures and retractions stay, whoever signed them: over every statement of the ledger, and every key."""
    policy = full.folder / "serving.yaml"
    payloads = {receipt.payload for receipt in full.at.values()}
    asked: list[tuple[What, Digest]] = [("payload", payload) for payload in sorted(payloads)]
    asked += [("key", full.fingerprint(person)) for person in ("ci", "lab", "alice", "release-gate")]
    for what, value in asked:
        for row in images(ask(full, what, value, policy)).values():
            assert (row.now, row.without) != ("DENY", "ALLOW"), (what, value)


def test_a_rejection_by_a_bad_key_still_stands(full: World) -> None:
    row = images(ask(full, "key", full.fingerprint("lab"), full.folder / "serving.yaml"))[THIRD]
    assert (row.now, row.without) == ("DENY", "DENY")


def test_when_what_lifted_a_rejection_falls_the_rejection_stands_again(world: World) -> None:
    """The retraction is about the rejection, and through it about the image."""
    retraction = world.retract(world.reject())
    world.receipt()
    listing = ask(world, "payload", retraction.payload, world.policy())
    assert touched(listing) == {retraction.index: "is the statement itself"}
    assert (images(listing)[IMAGE].now, images(listing)[IMAGE].without) == ("ALLOW", "DENY")


def test_several_signers_of_one_payload_fall_together(world: World) -> None:
    world.trust(roles={**world.roles(), "qualifier": {"any_of": ["lab", "alice"]}})
    first = world.receipt()
    again = world.receipt(by="alice")
    assert again.payload == first.payload
    assert again.index != first.index
    judged = images(ask(world, "payload", first.payload, world.policy()))[IMAGE]
    assert (judged.now, judged.without) == ("ALLOW", "DENY")


def test_another_receipt_of_the_same_holds_the_decision(world: World) -> None:
    first = world.receipt()
    world.receipt(observed={"from": "2024-06-02T00:00:00Z", "to": "2024-06-03T00:00:00Z"})
    judged = images(ask(world, "payload", first.payload, world.policy()))[IMAGE]
    assert (judged.now, judged.without, judged.falls) == ("ALLOW", "ALLOW", ())


def test_a_contract_verdict_reaches_the_decision_that_it_was_counted_in(world: World) -> None:
    world.image(commit=COMMIT)
    verdict = world.verdict()
    policy = world.folder / "pins.yaml"
    text = world.policy("pins").read_text()
    head, _, _ = text.partition("    - id: restore")
    policy.write_text(head + "    - {id: pins, contract: serving}\n" + text[text.index("  waivable") :])
    decision = world.decide(IMAGE, policy)
    listing = ask(world, "checker", "pins.agree@1")
    assert touched(listing)[decision.index] == "checked by it"
    assert touched(ask(world, "payload", verdict.payload))[decision.index] == f"rests on entry {verdict.index}"
    assert images(listing)[IMAGE].falls == ("pins",)


def test_a_decision_whose_policy_is_not_here(world: World) -> None:
    receipt = world.receipt()
    (decision,) = gate(world.workspace, Asked((str(IMAGE),), world.policy())).decisions
    made = {"tool": "countermark", "tool_version": "0.1.0", "at": "2024-06-11T00:00:00Z"}
    done = world.say(PredicateName.DECISION, IMAGE, {"core": decision.core(), "made": made}, by="release-gate")
    listing = ask(world, "payload", receipt.payload)
    assert images(listing) == {}
    assert listing.not_found[0].startswith(f"whether the decision of entry {done.index} about {IMAGE} changes: ")


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("commit", "5e5e5e"),
        ("commit", f"oci-config:sha256:{'a1' * 32}"),
        ("key", "ab" * 20),
        ("payload", f"file:sha256:{'a1' * 32}"),
        ("checker", "pins.agree"),
        ("checker", "pins.agree@one"),
    ],
)
def test_what_is_no_name_of_anything(full: World, what: Any, value: str) -> None:
    with pytest.raises(CountermarkError) as caught:
        ask(full, what, value)
    assert caught.value.exit in (2, 3)


def test_documents_that_a_key_signed_are_told(full: World) -> None:
    listing = ask(full, "key", full.fingerprint("release-gate"))
    first = full.at["allow"].index
    assert f"it also signed entries {first - 3}-{first - 1}, which are no statements" in listing.notes


@pytest.mark.parametrize("form", ["{}", "sha256:{}", "spki:sha256:{}"])
def test_a_key_may_be_given_as_hex(full: World, form: str) -> None:
    fingerprint = full.fingerprint("alice")
    assert set(touched(ask(full, "key", form.format(fingerprint.hex)))) == indices(full, "retraction")


def test_what_nobody_names_is_not_found(full: World) -> None:
    listing = ask(full, "commit", "12" * 20)
    assert (listing.rows, listing.not_found) == ([], (f"commit {'12' * 20}: no statement names it",))
    assert ask(full, "commit", OTHER_COMMIT).not_found == (
        f"a decision about {OTHER}: none is recorded, so whether one changes is not known; give --policy FILE",
    )
