"""`ledger report`: the overview of a ledger as text, as JSON, and as a page; and the charts of benchmark runs."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from measured import benchmark_run
from pages import ATTACKS, assert_harmless, parsed, read, text_of
from typer.testing import CliRunner, Result
from worlds import IMAGE, OTHER, THIRD, UNTESTED, World, make_world

from countermark.actions.gate import Asked
from countermark.actions.ledger_report import ledger_overview
from countermark.attestations.digests import Digest
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.times import Instant
from countermark.cli.app import app
from countermark.contracts.explain_text import plain
from countermark.web.charts import NOT_INSTALLED
from countermark.web.overview import overview_page
from countermark.web.waterfall import WIDTH, waterfalls

MADE = {"tool": "countermark", "tool_version": "1", "at": "2024-06-11T00:00:00Z"}


@pytest.fixture
def folder(full: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(full.folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return full.folder


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world with people and no entries but the first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return make_world(tmp_path / "box")


def run(command: str) -> Result:
    return CliRunner().invoke(app, shlex.split(command))


def page_of(world: World) -> str:
    page = overview_page(ledger_overview(world.workspace, Asked((), effective_time=Instant.parse(MADE["at"]))), MADE)
    assert_harmless(page)
    return page


def measured(world: World, **changes: object) -> Digest:
    run = {**benchmark_run(), **changes}
    image = Digest.parse(str(run.pop("image")))
    return world.say(PredicateName.BENCHMARK_RUN, image, {**run, "quality": None}, by="lab").payload


def test_the_page_tells_all_of_the_ledger(folder: Path, full: World) -> None:
    done = run("ledger report --policy serving.yaml --effective-time 2024-06-11T00:00:00Z -o json -o html=ledger.html")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    text = text_of(read(folder / "ledger.html"))
    root = report["ledger"]["root"]
    for said in (report["ledger"]["origin"], root, "protected up to nothing yet", "qualification-receipt", "lab", "the answer was wrong"):
        assert said in text, said
    assert text.index(f"root {root}") < text.index("effective time 2024-06-11T00:00:00Z")
    assert report["details"]["kinds"]["rejection"] == 1
    assert sum(report["details"]["days"].values()) == report["ledger"]["size"] == sum(report["details"]["kinds"].values())


def test_each_image_has_the_status_that_the_gate_derives(folder: Path) -> None:
    done = run("ledger report --policy serving.yaml --effective-time 2024-06-11T00:00:00Z -o json")
    images = {item["image"]: item["statuses"] for item in json.loads(done.stdout)["details"]["images"]}
    assert images[str(IMAGE)] == {"qualified": 1, "unsupported": 1}
    assert images[str(OTHER)] == {"unqualified": 1}
    assert set(images[str(THIRD)]) == {"rejected"}
    assert images[str(UNTESTED)] == {}
    assert str(UNTESTED) in json.loads(done.stdout)["not_found"]


def test_what_is_negative_and_what_was_not_found_stand_apart(full: World, folder: Path) -> None:
    root = parsed(page_of(full))
    sections = {item.get("aria-labelledby"): " ".join(item.itertext()) for item in root.iter() if item.get("aria-labelledby")}
    assert str(THIRD) in sections["against"]
    assert str(UNTESTED) in sections["missing"]
    assert str(UNTESTED) not in sections["against"]


def test_an_empty_ledger_has_a_page_that_says_so(world: World) -> None:
    text = text_of(page_of(world))
    for said in ("The ledger names no image.", "No rejection, retraction or supersession is recorded.", "No benchmark run is recorded."):
        assert said in text, said


def test_a_ledger_that_contradicts_itself_is_not_whole(world: World) -> None:
    world.image()
    world.edit("UPDATE statement SET predicate_type = 'https://example.org/other'")
    done = run("ledger report --ledger box/countermark.db -o html=ledger.html")
    assert done.exit_code == 6
    text = text_of(read(Path("ledger.html")))
    assert "tampered" in text
    assert "TAMPERED" in text


def test_a_benchmark_is_drawn_from_its_operands(world: World) -> None:
    pytest.importorskip("vl_convert", reason="the extra [charts] is not installed")
    measured(world)
    page = page_of(world)
    assert 'class="chart"' in page
    text = text_of(page)
    assert "tokens/s, n = " in text
    assert "18 observations as a table" in text
    assert page == page_of(world)


def test_without_the_library_the_page_says_so_and_has_the_figures(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    measured(world)
    page = page_of(world)
    assert 'class="chart"' not in page
    assert NOT_INSTALLED in text_of(page)
    assert "18 observations as a table" in text_of(page)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_run_says_becomes_markup(world: World, attack: str) -> None:
    runs = benchmark_run()["observations"]
    measured(world, observations=[{**item, "group": attack, "boot": attack} for item in runs])
    overview = ledger_overview(world.workspace, Asked(()))
    page = overview_page(replace(overview, unreadable=(attack,)), {**MADE, "tool": attack})
    assert_harmless(page)
    assert plain(attack) in " ".join(parsed(page).itertext())
    assert "1337" not in page


def test_a_waterfall_falls_from_part_to_part_up_to_the_total() -> None:
    parts = {"lookup": 100, "plan": 300, "reader_wait": 500, "unattributed": 100}
    (chart,) = waterfalls({"ranks": [{"rank": 0, "bytes": 7, "timing": {**parts, "total": 1000}}]})
    assert [(step.start, step.width, step.share) for step in chart.steps] == [
        (0, 100, "10.0 %"),
        (100, 300, "30.0 %"),
        (400, 500, "50.0 %"),
        (900, 100, "10.0 %"),
    ]
    assert sum(step.width for step in chart.steps) == WIDTH


@pytest.mark.parametrize("timing", [{}, {"total": 0}, {"total": "1000"}, {"total": True}, {"total": 1000, "lookup": -1, "plan": 10**30}])
def test_a_timing_that_makes_no_sense_is_drawn_within_its_bounds(timing: dict[str, object]) -> None:
    for chart in waterfalls({"ranks": [{"rank": 0, "timing": timing}, None, "x"]}):  # type: ignore[dict-item]  # no schema has seen it
        for step in chart.steps:
            assert 0 <= step.start <= WIDTH
            assert step.start + step.width <= WIDTH
