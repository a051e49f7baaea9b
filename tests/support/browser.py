"""Browser without a network, with a record of its requests and console messages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
DESKTOP: Final = (1440, 900)
PHONE: Final = (390, 844)

READY: Final = "html[data-ready]"
"""Selector that matches when every visible figure is drawn."""


def find_chromium() -> str:
    """Return the path of Chromium; empty if it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


def why_not() -> str:
    """Return the reason why no browser can run here; empty if one can."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    return "" if find_chromium() else "no Chromium here: apt-get install chromium"


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Yield a browser, which is closed afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@attrs.define
class Visit:
    """Open page with its requests other than itself, and its console messages."""

    page: Page
    asked: list[str] = attrs.field(factory=list)
    said: list[str] = attrs.field(factory=list)

    def wait(self) -> None:
        """Wait until every visible figure is drawn."""
        self.page.wait_for_selector(READY, state="attached", timeout=60_000)

    def ask(self, script: str, *given: Any) -> Any:
        """Return the result of a JavaScript function in the page."""
        return self.page.evaluate(script, *given)


@contextlib.contextmanager
def visiting(
    browser: Browser,
    path: Path,
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    has_script: bool = True,
) -> Iterator[Visit]:
    """Yield a page that is opened from disk without a network."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        offline=True,
        java_script_enabled=has_script,
    )
    visit = Visit(context.new_page())
    address = path.as_uri()

    def note(route: Route) -> None:
        if route.request.url.partition("#")[0] != address:
            visit.asked.append(route.request.url)
        route.continue_()

    context.route("**/*", note)
    visit.page.on("console", lambda message: visit.said.append(f"{message.type}: {message.text}"))
    visit.page.on("pageerror", lambda error: visit.said.append(f"error: {error}"))
    try:
        visit.page.goto(address)
        yield visit
    finally:
        context.close()
