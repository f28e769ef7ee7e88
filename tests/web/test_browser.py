"""The pages in a browser: nothing is asked for, nothing is blocked, axe finds nothing, and no script or mouse is needed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import DESK, PHONE, chromium, seen
from measured import benchmark_run
from worlds import IMAGE, OTHER, THIRD, UNKNOWN, World, full_world, make_world

from countermark.actions.gate import Asked
from countermark.actions.ledger_report import ledger_overview
from countermark.attestations.digests import Digest
from countermark.attestations.predicate_types import PredicateName
from countermark.cli.app import run
from countermark.web.overview import overview_page

NAMES = ("allow", "deny", "several", "unknown", "ledger", "empty")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        world = full_world(folder / "box")
        measurement = benchmark_run()
        image = Digest.parse(str(measurement.pop("image")))
        world.say(PredicateName.BENCHMARK_RUN, image, {**measurement, "quality": None}, by="lab")
        patched.chdir(world.folder)
        for name, images in (("allow", [IMAGE]), ("deny", [OTHER]), ("several", [IMAGE, THIRD]), ("unknown", [UNKNOWN])):
            run(["gate", *map(str, images), "--policy", "serving.yaml", "-o", f"html={folder / name}.html"])
        _overview(world, folder / "ledger.html")
        _overview(make_world(folder / "new"), folder / "empty.html")
    return folder


def _overview(world: World, path: Path) -> None:
    made = {"tool": "countermark", "tool_version": "1", "at": "2024-06-11T00:00:00Z"}
    path.write_text(overview_page(ledger_overview(world.workspace, Asked(())), made))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


LOOKS = [*((name, PHONE, True) for name in NAMES), *((name, DESK, False) for name in ("several", "ledger"))]


@pytest.mark.parametrize(("name", "window", "dark"), LOOKS, ids=lambda value: str(value) if isinstance(value, str) else "")
def test_a_page_loads_nothing_and_has_no_violation(browser: Any, pages: Path, name: str, window: dict[str, int], dark: bool) -> None:
    with seen(browser, pages / f"{name}.html", window=window, dark=dark) as page:
        assert page.console == []
        assert page.requests == []
        assert page.overflow <= 0
    with seen(browser, pages / f"{name}.html", window=window, dark=dark, bypass_csp=True) as page:
        assert page.violations() == []


def test_the_policy_blocks_what_gets_into_a_page(browser: Any, pages: Path, tmp_path: Path) -> None:
    """The same page with a script, a handler, a style and an image put into it: the browser refuses each."""
    page = (pages / "allow.html").read_text()
    added = (
        "<script>document.title='run'</script><p onclick='x()' style='color:red'>x</p><img alt='' src='https://example.org/x.png'></main>"
    )
    (tmp_path / "bad.html").write_text(page.replace("</main>", added))
    with seen(browser, tmp_path / "bad.html") as found:
        assert found.page.title() != "run"
        blocked = " ".join(found.console)
        for what in ("script", "style", "example.org"):
            assert what in blocked, what


def test_nothing_needs_a_script(browser: Any, pages: Path) -> None:
    with seen(browser, pages / "several.html", java_script_enabled=False) as found:
        assert "DENY" in found.page.inner_text("body")
        found.page.click("a.cell >> nth=0")
        assert "#decision-0-answer" in found.page.url


def test_the_keyboard_reaches_the_content_and_opens_what_is_closed(browser: Any, pages: Path) -> None:
    with seen(browser, pages / "allow.html") as found:
        found.page.keyboard.press("Tab")
        assert found.page.evaluate("document.activeElement.className") == "skip"
        found.page.keyboard.press("Enter")
        assert found.page.evaluate("document.activeElement.id") == "main"
        found.page.focus("details.requirement > summary")
        found.page.keyboard.press("Enter")
        assert found.page.evaluate("document.querySelector('details.requirement').open") is False


def test_paper_shows_what_is_closed(browser: Any, pages: Path) -> None:
    with seen(browser, pages / "several.html") as found:
        hidden = "[...document.querySelectorAll('details.requirement dd')].filter(one => !one.checkVisibility()).length"
        found.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = false })")
        assert found.page.evaluate(hidden) > 0
        found.page.emulate_media(media="print")
        assert found.page.evaluate(hidden) == 0
        assert len(found.page.pdf()) > 10_000
