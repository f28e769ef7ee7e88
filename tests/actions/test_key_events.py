"""`key retire` and `key revoke` in a ledger of people: what is refused, what the gate makes of it, what auditors see."""

from pathlib import Path

import pytest
from program import Program
from worlds import IMAGE, World

from countermark.actions.appending import Attester
from countermark.actions.gate import Asked as Question
from countermark.actions.gate import gate
from countermark.actions.importing import import_files
from countermark.actions.key_events import Asked, TakenKey, retire, revoke
from countermark.actions.queries.impact import impact_listing
from countermark.actions.queries.signers import SignerRow, signers_listing
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, RefusedError
from countermark.attestations.predicate_types import TEST_RESULT
from countermark.attestations.statement import Statement, Subject
from countermark.contracts.decision import Decision


def taken(world: World, person: str, *, since: int | None = None, by: str = "alice") -> TakenKey:
    asked = Asked(str(world.fingerprint(person)), "lost on a train", (str(world.key(by)),))
    return revoke(world.workspace, asked, since_entry=since)


def ended(world: World, person: str, *, by: str = "alice") -> TakenKey:
    return retire(world.workspace, Asked(str(world.key(person)), "a new one is in use", (str(world.key(by)),)))


def decision(world: World) -> Decision:
    (found,) = gate(world.workspace, Question((str(IMAGE),), world.policy())).decisions
    return found


@pytest.fixture
def proven(world: World) -> World:
    """An image that the gate admits."""
    world.image()
    world.at["pass"] = world.receipt()
    assert decision(world).verdict == "ALLOW"
    return world


def test_a_retired_signer_is_still_believed_for_what_was_said(proven: World) -> None:
    done = ended(proven, "lab")
    assert (done.kept, done.suspect, done.counts) == ((proven.at["pass"].index,), (), True)
    assert decision(proven).verdict == "ALLOW"


def test_a_retired_signer_is_not_taken_any_more(proven: World) -> None:
    ended(proven, "lab")
    with pytest.raises(RefusedError) as caught:
        proven.receipt(context_tokens=262144)
    assert caught.value.code is Code.KEY_REVOKED


def test_a_revoked_signer_satisfies_nothing(proven: World) -> None:
    done = taken(proven, "lab")
    assert (done.kept, done.suspect) == ((), (proven.at["pass"].index,))
    denied = decision(proven)
    assert denied.verdict == "DENY"
    assert Code.SUSPECT in denied.requirements[0].observed


def test_what_came_before_the_loss_still_does(proven: World) -> None:
    later = proven.receipt(context_tokens=262144)
    done = taken(proven, "lab", since=later.index)
    assert (done.kept, done.suspect) == ((proven.at["pass"].index,), (later.index,))
    assert decision(proven).verdict == "ALLOW"


def test_a_rejection_outlives_the_key_that_signed_it(proven: World) -> None:
    proven.reject()
    taken(proven, "lab")
    assert decision(proven).requirements[0].code is Code.IMAGE_REJECTED


def test_then_is_judged_as_it_was_then(proven: World) -> None:
    admitted = proven.workspace
    before = decision(proven).head.size
    taken(proven, "lab")
    from countermark.actions.gate import rewind_to
    from countermark.actions.queries.view import View
    from countermark.actions.workspace import open_reader
    from countermark.attestations.times import Instant

    with open_reader(admitted) as reader:
        last = Instant.from_ms(reader.entry(before - 1).leaf.admitted_ms)
        rewind_to(reader, last)
        assert reader.head.size == before
        assert View(reader, admitted.trust(), last).keys.ended == {}


def test_import_refuses_what_a_taken_key_signed(proven: World) -> None:
    made = Attester.of(proven.workspace, "builder", str(proven.key("ci"))).attest(
        Statement((Subject.of(IMAGE),), TEST_RESULT, {"result": "PASSED", "configuration": []})
    )
    path = proven.folder / "late.intoto.json"
    path.write_text(made.envelope.to_json())
    ended(proven, "ci")
    result = import_files(proven.workspace, [str(path)], lambda done: None)
    assert [item.finding.code for item in result.refused] == [Code.KEY_REVOKED]
    assert result.receipts == []


def test_who_may_not_is_refused_and_nothing_is_written(proven: World) -> None:
    size = decision(proven).head.size
    for by in ("ci", "release-gate"):
        with pytest.raises(RefusedError) as caught:
            taken(proven, "lab", by=by)
        assert caught.value.code is Code.SIGNER_UNTRUSTED
    assert decision(proven).head.size == size
    assert ended(proven, "lab", by="lab").counts


def test_what_makes_no_sense_is_refused(proven: World) -> None:
    with pytest.raises(InputError, match="no entry 999"):
        taken(proven, "lab", since=999)
    with pytest.raises(InputError, match="nobody's"):
        revoke(proven.workspace, Asked("ab" * 32, "x", (str(proven.key("alice")),)))
    with pytest.raises(InputError):
        revoke(proven.workspace, Asked("no key", "x", (str(proven.key("alice")),)))
    first = ended(proven, "lab")
    with pytest.raises(RefusedError, match=f"entry {first.index}"):
        ended(proven, "lab")
    assert taken(proven, "lab").counts


def test_two_approvers_each_say_it(proven: World) -> None:
    proven.trust(roles={**proven.roles(), "approver": {"threshold": {"k": 2, "of": ["alice", "release-gate"]}}})
    assert not taken(proven, "lab").counts
    assert decision(proven).verdict == "ALLOW"
    assert taken(proven, "lab", by="release-gate").counts
    assert decision(proven).verdict == "DENY"


def test_auditors_see_it(proven: World) -> None:
    done = taken(proven, "lab")
    listing = signers_listing(proven.workspace)
    codes = {row.signer: row.code for row in listing.rows if isinstance(row, SignerRow) and row.what == "qualification-receipt"}
    assert codes == {"lab": Code.SUSPECT}
    assert any(f"entry {done.index}: " in note and "revoked" in note for note in listing.notes)
    impact = impact_listing(proven.workspace, Question(()), "key", str(proven.fingerprint("lab")))
    assert any("lost on a train" in note for note in impact.notes)
    assert "SUSPECT" in str([row.cells() for row in impact.rows])


def test_the_commands(proven: World, tmp_path: Path) -> None:
    run = Program(proven.folder, tmp_path / "state")
    lab = str(proven.fingerprint("lab"))
    refused = run("key", "revoke", lab, "--reason", "lost", "--key", "keys/ci.pem")
    assert (refused.code, "SIGNER_UNTRUSTED" in refused.err) == (1, True)
    done = run("key", "revoke", lab, "--reason", "lost", "--key", "keys/alice.pem", "-o", "json")
    assert (done.code, done.json["details"]["in_effect"], done.json["details"]["suspect"]) == (0, True, [proven.at["pass"].index])
    audited = run("verify", "ledger", "-o", "json")
    assert (audited.code, "SUSPECT" in {finding["code"] for finding in audited.json["findings"]}) == (1, True)
    assert run("gate", str(IMAGE), "--policy", proven.policy().name).code == 1
