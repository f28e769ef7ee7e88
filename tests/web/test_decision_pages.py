"""`gate -o html=FILE` and `explain -o html=FILE`: the page says what the decision says, and nothing in it can act."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from pages import ATTACKS, assert_harmless, parsed, read, text_of
from typer.testing import CliRunner, Result
from worlds import IMAGE, OTHER, THIRD, UNKNOWN, World

from countermark.actions.dossier import Dossier, dossiers
from countermark.actions.gate import Asked, gate
from countermark.attestations.located import JsonValue, as_object
from countermark.cli.app import app
from countermark.cli.app import run as run_program
from countermark.contracts.explain_text import plain
from countermark.web.decisions import Shown, decisions_page

PAGE = "page.html"


@pytest.fixture
def folder(full: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the ledger as the current one."""
    monkeypatch.chdir(full.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (full.folder / PAGE).unlink(missing_ok=True)
    return full.folder


def run(command: str) -> Result:
    return CliRunner().invoke(app, shlex.split(command))


def page_of(folder: Path, command: str, code: int = 0) -> str:
    done = run(f"{command} -o html={PAGE}")
    assert done.exit_code == code, done.output
    return read(folder / PAGE)


def test_the_page_says_what_the_decision_says(folder: Path) -> None:
    done = run(f"gate {IMAGE} --policy serving.yaml --effective-time 2024-06-11T00:00:00Z -o json -o html={PAGE}")
    (decision,) = json.loads(done.stdout)["decisions"]
    page = read(folder / PAGE)
    text = text_of(page)
    (result,) = decision["core"]["requirements"]
    line = f"{result['location']['file']}:{result['location']['line']}"
    for said in ("ALLOW", str(IMAGE), decision["id"], result["required"], result["observed"], line):
        assert said in text, said
    for item in result["evidence"]:
        assert item["payload"] in text
    assert json.dumps(decision["core"], separators=(",", ":"), sort_keys=True) in text


def test_a_denial_tells_every_requirement_and_its_fix(folder: Path) -> None:
    done = run(f"gate {THIRD} --policy serving.yaml -o json -o html={PAGE}")
    (decision,) = json.loads(done.stdout)["decisions"]
    assert done.exit_code == 1
    text = text_of(read(folder / PAGE))
    for said in ("DENY", "IMAGE_REJECTED", decision["core"]["requirements"][0]["fix"], "the answer was wrong"):
        assert said in text, said


def test_each_cell_of_the_matrix_leads_to_its_answer_and_that_to_its_receipt(folder: Path, full: World) -> None:
    root = parsed(page_of(folder, f"gate {IMAGE} --policy serving.yaml"))
    cells = {" ".join("".join(item.itertext()).split()): item for item in root.iter() if item.get("class") == "cell"}
    assert set(cells) == {"✓ qualified", "– unsupportedCAP_SCOPE"}
    link = cells["✓ qualified"]
    (answer,) = [item for item in root.iter() if item.get("id") == link.get("href", "").removeprefix("#")]
    entries = {item.get("href") for item in answer.iter() if item.get("class") == "entry"}
    assert f"#entry-{full.at['pass'].index}" in entries


def test_what_was_taken_back_does_not_look_qualified(folder: Path, full: World) -> None:
    root = parsed(page_of(folder, f"gate {IMAGE} --policy serving.yaml"))
    (card,) = [item for item in root.iter() if item.get("id") == f"entry-{full.at['taken back'].index}"]
    assert f"taken back by entry {full.at['retraction'].index}" in "".join(card.itertext())


def test_not_found_and_negative_are_told_apart(folder: Path) -> None:
    text = text_of(page_of(folder, f"gate {OTHER} --policy serving.yaml", 1))
    assert "CAP_FAILED" in text
    assert "Not found: a receipt of service.startup" in text


def test_an_image_that_nobody_knows(folder: Path) -> None:
    text = text_of(page_of(folder, f"gate {UNKNOWN} --policy serving.yaml", 1))
    assert "No record of the ledger names this digest" in text
    assert "The ledger holds no statement that bears on this decision." in text


def test_several_decisions_have_one_page(folder: Path) -> None:
    text = text_of(page_of(folder, f"gate {IMAGE} {THIRD} {UNKNOWN} --policy serving.yaml", 1))
    assert text.startswith("Skip to the content countermark gate, made by countermark")
    assert "3 decisions" in text
    assert text.count("What this image is qualified for") == 3


def test_many_decisions_leave_the_evidence_to_pages_of_their_own(folder: Path) -> None:
    images = " ".join(f"oci-config:sha256:{n:064x}" for n in range(50))
    text = text_of(page_of(folder, f"gate {images} --policy serving.yaml", 1))
    assert "50 decisions" in text
    assert "The evidence for each image is on the page of that image." in text


def test_a_recorded_decision_is_shown_as_it_was_recorded(folder: Path, full: World) -> None:
    text = text_of(page_of(folder, f"explain {full.at['allow'].payload}"))
    assert f"Recorded as entry {full.at['allow'].index}. Made again today from its recorded inputs, it is the same, byte for byte." in text


def test_explaining_a_denial_is_an_answer(folder: Path) -> None:
    assert "DENY" in text_of(page_of(folder, f"explain {THIRD} --policy serving.yaml"))


def test_a_page_needs_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(["gate", str(IMAGE), "--policy", "serving.yaml", "-o", "html"]) == 2
    assert "write -o html=FILE.html" in capsys.readouterr().err


def test_a_command_that_cannot_answer_leaves_the_old_page(folder: Path) -> None:
    (folder / PAGE).write_text("old")
    assert run(f"gate {IMAGE} --policy nowhere.yaml -o html={PAGE}").exit_code == 3
    assert (folder / PAGE).read_text() == "old"


def test_a_page_is_written_in_one_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / PAGE).write_text("old")
    (folder / PAGE).chmod(0o600)
    (folder / "link.html").symlink_to(PAGE)
    assert run(f"gate {IMAGE} --policy serving.yaml -o html=link.html").exit_code == 0
    assert (folder / "link.html").is_symlink()
    assert "ALLOW" in (folder / PAGE).read_text()
    assert (folder / PAGE).stat().st_mode & 0o777 == 0o600
    before = (folder / PAGE).read_bytes()

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdopen", full_disk)
    done = run(f"gate {IMAGE} --policy serving.yaml -o html={PAGE}")
    assert (done.exit_code, "No space left" in done.stderr) == (3, True)
    assert (folder / PAGE).read_bytes() == before
    assert not list(folder.glob(f".{PAGE}.*"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_anything_says_becomes_markup(full: World, attack: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every text of the decision and of every statement is the attack, also where no schema would let it through."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    decided = gate(full.workspace, Asked((str(IMAGE), str(OTHER), str(THIRD)), full.policy("serving")))
    found = dossiers(full.workspace, decided.decisions, decided.documents)
    shown = [
        Shown(attack, as_object(poisoned(decision.core(), attack)), dossier and poisoned_dossier(dossier, attack), 3, (attack,))
        for decision, dossier in zip(decided.decisions, found, strict=True)
    ]
    page = decisions_page(attack, shown, dict.fromkeys(("tool", "tool_version", "at"), attack))
    assert_harmless(page)
    assert "1337" not in page
    assert not set(page) & {"\u202e", "\x1b", "\x00"}
    assert plain(attack) in " ".join(parsed(page).itertext())


def poisoned(value: JsonValue, attack: str) -> JsonValue:
    """The value with the attack in the place of every text and name but those that say what kind of thing it is."""
    if isinstance(value, dict):
        return {**{name: poisoned(item, attack) for name, item in value.items()}, attack: attack}
    if isinstance(value, list):
        return [*(poisoned(item, attack) for item in value), attack]
    return attack if isinstance(value, str) else value


def poisoned_dossier(dossier: Dossier, attack: str) -> Dossier:
    statements = {
        payload: replace(
            entry, signers=(attack,), statement=replace(entry.statement, predicate=poisoned(entry.statement.predicate, attack))
        )
        for payload, entry in dossier.statements.items()
    }
    answers = tuple(
        replace(item, capability=attack, results=tuple(replace(result, observed=attack, fix=attack) for result in item.results))
        for item in dossier.answers
    )
    columns = tuple(replace(column, exact={**column.exact, "publication_mode": attack}) for column in dossier.columns)
    return replace(dossier, statements=statements, answers=answers, columns=columns, silent=(attack,))
