"""A rejection, its retraction, and what `explain --at` says of the times between, with the keys of real people."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from program import Program
from worlds import IMAGE, NOW, OTHER, World

from countermark.actions.gate import Asked, gate
from countermark.actions.workspace import open_reader
from countermark.attestations.errors import NothingError
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision
from countermark.ledger.submission import Receipt

from .real_ledgers import answer


def admitted(world: World, receipt: Receipt) -> int:
    """When an entry was admitted, in milliseconds since 1970 UTC."""
    with open_reader(world.workspace) as reader:
        return reader.entry(receipt.index).leaf.admitted_ms


def then(world: World, ms: int) -> Decision:
    """The decision as of a past head."""
    asked = Asked((str(IMAGE),), world.folder / "lab.yaml", at=Instant.from_ms(ms))
    return gate(world.workspace, asked).decisions[0]


def story(world: World) -> dict[str, int]:
    """An image passes, is rejected, and the rejection is retracted; when each was admitted."""
    found = {"passed": admitted(world, world.receipt())}
    rejection = world.reject()
    found["rejected"] = admitted(world, rejection)
    found["retracted"] = admitted(world, world.retract(rejection))
    assert sorted(set(found.values())) == [*found.values()], "each took more than a millisecond"
    return found


def test_each_time_has_the_answer_of_its_head(world: World) -> None:
    at = story(world)
    expected = {
        at["passed"]: ("ALLOW", "OK"),
        at["rejected"] - 1: ("ALLOW", "OK"),
        at["rejected"]: ("DENY", "IMAGE_REJECTED"),
        at["retracted"] - 1: ("DENY", "IMAGE_REJECTED"),
        at["retracted"]: ("ALLOW", "OK"),
        at["retracted"] + 1000: ("ALLOW", "OK"),
    }
    assert {ms: answer(then(world, ms)) for ms in expected} == expected
    assert then(world, at["rejected"] - 1).head.size < then(world, at["rejected"]).head.size
    assert answer(then(world, at["passed"] - 1)) == ("DENY", "SUBJECT_UNKNOWN")
    with pytest.raises(NothingError):
        then(world, 1)


def test_a_past_answer_is_the_same_bytes_however_the_log_grows(world: World) -> None:
    at = story(world)
    before = then(world, at["rejected"]).core_bytes
    world.receipt(OTHER)
    world.reject(OTHER)
    world.reject()
    assert then(world, at["rejected"]).core_bytes == before


def test_the_program_explains_the_past(world: World, tmp_path: Path) -> None:
    at = story(world)
    program = Program(world.folder, tmp_path / "state")
    common = ("--policy", "lab.yaml", "--ledger", "countermark.db", "-o", "json")
    for ms, verdict in ((at["rejected"] - 1, "ALLOW"), (at["rejected"], "DENY")):
        done = program("explain", str(IMAGE), "--at", str(Instant.from_ms(ms)), *common)
        assert (done.code, done.json["decisions"][0]["core"]["verdict"]) == (0, verdict), done.err


def test_ages_count_to_the_effective_time_and_records_to_the_head(world: World) -> None:
    """Both may be given: what was known at the one time, judged for the other."""
    at = story(world)
    asked = Asked((str(IMAGE),), world.policy("fresh", max_age="90d"), at=Instant.from_ms(at["passed"]))
    assert answer(gate(world.workspace, asked).decisions[0]) == ("DENY", "EVIDENCE_EXPIRED")
    (decision,) = gate(world.workspace, replace(asked, effective_time=NOW)).decisions
    assert answer(decision) == ("ALLOW", "OK")
    assert "AT_OVERRIDE" in decision.notes
    rejected = replace(asked, effective_time=NOW, at=Instant.from_ms(at["rejected"]))
    assert answer(gate(world.workspace, rejected).decisions[0]) == ("DENY", "IMAGE_REJECTED")


def test_all_images_of_one_question_are_judged_for_one_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count(1_800_000_000_000, 1000)
    monkeypatch.setattr("countermark.actions.gate.now", lambda: Instant.from_ms(next(ticks)))
    decisions = gate(world.workspace, Asked((str(IMAGE), str(OTHER)), world.folder / "lab.yaml")).decisions
    assert len({decision.effective_time for decision in decisions}) == 1
