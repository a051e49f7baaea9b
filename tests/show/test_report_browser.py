"""A report in a browser without a network: every figure is drawn, with the queries' numbers, in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import pytest

from browser import DESKTOP, PHONE, running_browser, visiting, why_not
from joulemap.ask.report import ReportAnswer
from joulemap.workspace import Workspace
from sample import thin

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")]

LIVE = """() => {
  const figures = [...document.querySelectorAll("figure:not([hidden])")];
  return figures.map((one) => [one.id, one.dataset.live || one.dataset.failed]);
}"""
ROWS = "(id) => document.getElementById(id).view.data('rows')"
SEEN = """(id) => {
  const one = document.querySelector(`#${id} .live svg`).getBoundingClientRect();
  return one.width > 40 && one.height > 40;
}"""


@attrs.frozen
class Written:
    """A report and its page."""

    answer: ReportAnswer
    path: Path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """resnet18 on the four default hardware."""
    folder = tmp_path_factory.mktemp("browser")
    answer = Workspace(folder / "results.duckdb").report("resnet18")
    answer.save(folder / "report.html")
    return Written(answer, folder / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests here."""
    with running_browser() as opened:
        yield opened


@pytest.mark.parametrize("scheme", thin(["light", "dark"], 2))
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_figure_is_drawn_and_nothing_is_said(
    browser: Browser, written: Written, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    with visiting(browser, written.path, size=size, scheme=scheme) as visit:
        visit.wait()
        figures = dict(visit.ask(LIVE))
        assert figures
        assert set(figures.values()) == {"yes"}
        assert all(visit.ask(SEEN, name) for name in figures)
        assert visit.ask("() => document.documentElement.scrollWidth <= window.innerWidth")
        assert visit.asked == []
        assert visit.said == []


def test_the_numbers_are_those_of_the_queries(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path) as visit:
        visit.wait()
        for name, _ in visit.ask(LIVE):
            wanted = json.loads(json.dumps(written.answer.report.figures[name].spec["datasets"]["rows"]))
            rows = visit.ask(ROWS, name)
            assert [{column: row[column] for column in wanted[0]} for row in rows] == wanted, name


def test_a_switch_shows_another_hardware(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path) as visit:
        visit.wait()
        for exhibit in visit.ask("() => [...document.querySelectorAll('.exhibit[data-chooses]')].map((one) => one.id)"):
            name = exhibit.removesuffix("-figures")
            switch = visit.page.locator(f"#{exhibit} select")
            for index in (1, 0, 2):
                switch.select_option(str(index))
                visit.page.wait_for_selector(f"#{name}-{index}[data-live]")
                shown = visit.ask(
                    "(id) => [...document.querySelectorAll(`#${id} > figure:not([hidden])`)].map((one) => one.id)",
                    exhibit,
                )
                assert shown == [f"{name}-{index}"]
                wanted = written.answer.report.figures[f"{name}-{index}"].spec["datasets"]["rows"]
                assert len(visit.ask(ROWS, f"{name}-{index}")) == len(wanted)
        assert visit.said == []


def test_energy_is_looked_into_level_by_level(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path) as visit:
        visit.wait()
        tree = visit.page.locator("#tree > details").first
        category = tree.locator(":scope > details").first
        action = category.locator(":scope > details").first
        assert not category.is_visible()
        tree.locator(":scope > summary").click()
        assert category.is_visible()
        category.locator(":scope > summary").click()
        assert action.is_visible()
        action.locator(":scope > summary").click()
        assert "layer" in action.inner_text()


def test_it_reads_without_javascript(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path, size=PHONE, has_script=False) as visit:
        figures = visit.page.locator("figure:not([data-empty]) .drawn > svg")
        assert figures.count() == len(written.answer.report.figures)
        for index in range(figures.count()):
            box = figures.nth(index).bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) > 40
        assert written.answer.report.decision in visit.page.inner_text("header")


def test_print_shows_what_was_drawn_first(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path, scheme="dark") as visit:
        visit.wait()
        visit.page.emulate_media(media="print", color_scheme="light")
        figures = visit.page.locator(".drawn > svg")
        assert figures.count() == len(written.answer.report.figures)
        assert all(figures.nth(index).is_visible() for index in range(figures.count()))
        assert visit.page.locator("nav").is_hidden()


def test_the_keyboard_reaches_what_can_be_used(browser: Browser, written: Written) -> None:
    with visiting(browser, written.path) as visit:
        visit.wait()
        met = set()
        visit.page.keyboard.press("Tab")
        assert "Skip" in visit.ask("() => document.activeElement.textContent")
        for _ in range(80):
            visit.page.keyboard.press("Tab")
            met.add(visit.ask("() => document.activeElement.tagName"))
        assert {"A", "SUMMARY", "SELECT"} <= met
        assert visit.said == []


def test_the_page_follows_the_colours_of_the_system(browser: Browser, written: Written) -> None:
    colour = "() => getComputedStyle(document.body).backgroundColor"
    with visiting(browser, written.path) as visit:
        visit.wait()
        first = visit.page.locator("figure .live svg").first.inner_html()
        light = visit.ask(colour)
        visit.page.emulate_media(color_scheme="dark")
        visit.page.wait_for_function("() => matchMedia('(prefers-color-scheme: dark)').matches")
        visit.page.wait_for_timeout(1500)
        assert visit.ask(colour) != light
        assert visit.page.locator("figure .live svg").first.inner_html() != first
        assert visit.said == []
