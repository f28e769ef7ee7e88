"""`gate --require-decision`: the publish step's demand, and everything that does not meet it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worlds import IMAGE, OTHER, THIRD, World

from countermark.cli.app import run

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def box(world: World) -> World:
    world.image(IMAGE)
    world.receipt()
    world.image(OTHER)
    return world


@pytest.fixture
def ask(box: World, capsys: pytest.CaptureFixture[str]) -> Ask:
    def act(*arguments: object) -> tuple[int, Any]:
        capsys.readouterr()
        code = run(["gate", *map(str, arguments), "--ledger", str(box.workspace.ledger), "-o", "json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return act


def recorded(box: World, ask: Ask, image: object = IMAGE, *more: object) -> tuple[Path, Path]:
    """The files of a recorded decision and of its summary."""
    decision, summary = box.folder / "decision.json", box.folder / "vsa.json"
    key = ("--record", "--key", box.key("release-gate"))
    ask(image, "--policy", box.policy(), *key, "-o", f"decision={decision}", "-o", f"vsa={summary}", *more)
    return decision, summary


def demand(box: World, ask: Ask, file: Path, image: object = IMAGE, *more: object, policy: Path | None = None) -> tuple[int, str]:
    code, report = ask(image, "--policy", policy or box.policy(), "--require-decision", file, *more)
    return code, " ".join(f"{item['code']} {item.get('observed')}" for item in report["findings"])


def test_a_recorded_decision_and_its_summary_meet_the_demand(box: World, ask: Ask) -> None:
    for file in recorded(box, ask):
        assert demand(box, ask, file) == (0, "")


def test_what_does_not_meet_it(box: World, ask: Ask) -> None:
    for file in recorded(box, ask):
        assert demand(box, ask, file, OTHER)[1].startswith("SUBJECT_MISMATCH")
        other = box.policy("other")
        code, why = demand(box, ask, file, policy=other)
        assert (code, "was made by policy lab" in why) == (1, True)
        box.folder.joinpath("edited.yaml").write_text(box.policy().read_text() + "# a comment\n")
        assert demand(box, ask, file, policy=box.folder / "edited.yaml")[0] == 1
    for file in recorded(box, ask, OTHER):
        code, why = demand(box, ask, file, OTHER)
        assert (code, "CAP_FAILED" in why) == (1, True)
    for file in recorded(box, ask, IMAGE, "--mode", "warn"):
        code, why = demand(box, ask, file)
        assert (code, "CAP_FAILED" in why) == (1, True)


def test_who_signed_it_must_decide(box: World, ask: Ask) -> None:
    from countermark.actions.appending import sign
    from countermark.actions.envelopes import read_envelope
    from countermark.attestations.envelope import Envelope
    from countermark.attestations.keys import Signer
    from countermark.attestations.statement import Statement

    decision, _ = recorded(box, ask)
    envelope = read_envelope(decision.read_bytes(), "decision")
    assert isinstance(envelope, Envelope)
    statement = Statement.parse(envelope.payload, "decision")
    decision.write_text(sign(statement, Signer.load(str(box.key("lab")))).to_json())
    assert demand(box, ask, decision)[0] == 1
    changed = json.loads(decision.read_text())
    decision.write_text(json.dumps({**changed, "signatures": []}))
    assert ask(IMAGE, "--policy", box.policy(), "--require-decision", decision)[0] == 3


def test_what_was_said_against_the_image_since_counts(box: World, ask: Ask) -> None:
    files = recorded(box, ask)
    box.reject(THIRD)
    assert [demand(box, ask, file)[0] for file in files] == [0, 0], "a rejection of another image is none of it"
    box.reject(IMAGE)
    for file in files:
        code, why = demand(box, ask, file)
        assert (code, "IMAGE_REJECTED" in why) == (1, True)


def test_what_it_rests_on_may_have_been_taken_back(box: World, ask: Ask) -> None:
    files = recorded(box, ask)
    _, report = ask(IMAGE, "--policy", box.policy())
    (used,) = [item["payload"] for item in report["decisions"][0]["core"]["requirements"][0]["evidence"] if item["used"]]
    assert run(["retract", used, "--reason", "wired wrongly", "--key", str(box.key("alice")), "--ledger", str(box.workspace.ledger)]) == 0
    for file in files:
        code, why = demand(box, ask, file)
        assert (code, "STALE" in why) == (1, True)


def test_age_and_an_override_are_refused(box: World, ask: Ask) -> None:
    decision, _ = recorded(box, ask)
    assert ask(IMAGE, "--policy", box.policy(), "--require-decision", decision, "--max-age", "0h")[0] == 2
    key = ("--record", "--key", box.key("release-gate"))
    assert ask(IMAGE, "--policy", box.policy(), *key, "--effective-time", "2024-06-11T00:00:00Z")[0] == 2
    for option in (("--record",), ("--mode", "warn"), ("--require", "service.startup"), ("--effective-time", "2024-06-11T00:00:00Z")):
        assert ask(IMAGE, "--policy", box.policy(), "--require-decision", decision, *option)[0] == 2


def test_an_old_decision_is_refused(box: World, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    from countermark.actions.clock import now
    from countermark.attestations.times import Instant

    files = recorded(box, ask)
    later = Instant(now().ns + 25 * 3600 * 10**9)
    monkeypatch.setattr("countermark.actions.required_decision.now", lambda: later)
    for file in files:
        code, why = demand(box, ask, file)
        assert (code, "STALE" in why) == (1, True)
        assert demand(box, ask, file, IMAGE, "--max-age", "2d")[0] == 0


def test_without_a_ledger_the_file_alone_is_judged(box: World, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    (decision, summary), policy = recorded(box, ask), box.policy()
    (box.folder / "elsewhere").mkdir()
    monkeypatch.chdir(box.folder / "elsewhere")
    for file in (decision, summary):
        assert run(["gate", str(IMAGE), "--policy", str(policy), "--require-decision", str(file)]) == 0
    assert run(["gate", str(IMAGE), "--policy", str(policy), "--require-decision", str(decision), "--ledger", "none.db"]) == 4
    (box.folder / "empty.jsonl").write_text("")
    assert run(["gate", str(IMAGE), "--policy", str(policy), "--require-decision", str(box.folder / "empty.jsonl")]) == 5
