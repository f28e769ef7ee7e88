"""Debian's Chromium, driven from a test: what a page asks for, what it complains of, and what axe finds in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
REASON = "no Chromium, or the parts of requirements-pages.txt that drive it are not installed"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Seen:
    """A page as it was loaded: the browser's page, its console, and the requests that it made beside its own file."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return width

    def violations(self) -> list[str]:
        """What axe finds, a line each. It is put into the page by the test, past the page's policy."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=REASON)
        found = axe.Axe().run(self.page).response["violations"]
        return [f"{item['id']}: {node['html'][:120]}" for item in found for node in item["nodes"]]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser for several pages; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason=REASON)
    if CHROMIUM is None:
        pytest.skip(REASON)
    with playwright.sync_playwright() as driver:
        # Its sandbox needs rights that a container's root does not have, and what it shows here is our own file.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def seen(browser: Any, path: Path, *, window: dict[str, int] = DESK, dark: bool = False, **options: Any) -> Iterator[Seen]:
    """A page in a window of its own."""
    context = browser.new_context(viewport=window, color_scheme="dark" if dark else "light", **options)
    found = Seen(context.new_page())
    own = path.as_uri()
    found.page.on("console", lambda message: found.console.append(message.text))
    found.page.on("pageerror", lambda error: found.console.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.goto(own)
    found.requests[:] = [url for url in found.requests if url != own and not url.startswith("data:")]
    yield found
    context.close()
