"""One palette: every surface takes its colours from it, and letters have contrast on both backgrounds."""

from __future__ import annotations

import json
import re

import pytest

from joulemap.show.figure.spec import find_spec
from joulemap.show.present.category import CATEGORY
from joulemap.show.present.draw.picture import draw_picture
from joulemap.show.present.hypertext import frame
from joulemap.show.present.palette import CATEGORY_COLOURS, COLOURS, PAGE, RAMP, THEMES, begin_colour
from joulemap.show.present.picture import Picture
from joulemap.system.resource import folder

HEX = re.compile(r"#[0-9a-fA-F]{6}\b")

ON_AREAS = {"#000000", "#ffffff"}
"""Letters on areas of a figure."""

LEAST_CONTRAST = {"letters": 4.5, "areas": 1.5}


def find_contrast(one: str, other: str) -> float:
    """Contrast of two colours. Source: WCAG 2.2, success criterion 1.4.3."""

    def find_luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((find_luminance(one), find_luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_letters_and_areas_are_legible_on_both_backgrounds(theme: str) -> None:
    page = PAGE[theme]["page"]
    for name in ("ink", "soft", "link", "better", "worse", "unknown"):
        assert find_contrast(PAGE[theme][name], page) >= LEAST_CONTRAST["letters"], name
    for name, one in COLOURS.items():
        assert find_contrast(one.fill, page) >= LEAST_CONTRAST["areas"], name


def test_no_two_meanings_have_one_colour() -> None:
    assert (
        len({one.fill for one in COLOURS.values()}) == len({one.terminal for one in COLOURS.values()}) == len(COLOURS)
    )
    assert CATEGORY_COLOURS.keys() == CATEGORY.keys()
    assert set(CATEGORY_COLOURS.values()) <= COLOURS.keys()


def test_figures_have_colours_of_the_palette_alone() -> None:
    known = {one.fill for one in COLOURS.values()} | set(RAMP) | ON_AREAS
    for path in (folder("queries") / "figure").glob("*.vl.json"):
        assert set(HEX.findall(path.read_text(encoding="utf-8"))) <= ON_AREAS, path.name
        assert set(HEX.findall(json.dumps(find_spec(path.name.split(".")[0]).view))) <= known, path.name


def test_a_page_has_the_variables_of_the_palette() -> None:
    page = frame("title", "")
    assert f"--better: {PAGE['light']['better']};" in page
    assert f"--fill-worse: {COLOURS['worse'].fill};" in page
    assert set(re.findall(r"var\(--([\w-]+)\)", page)) <= set(re.findall(r"--([\w-]+):", page))


@pytest.mark.parametrize("is_gain", [False, True])
def test_less_is_better_unless_it_is_a_gain(is_gain: bool) -> None:
    picture = Picture(kind="difference", after="change", rows=((-2.0,), (1.0,)), is_gain=is_gain)
    less, more = draw_picture(picture, 12, has_colour=True).rows
    names = ("worse", "better") if is_gain else ("better", "worse")
    assert begin_colour(names[0]) in less and begin_colour(names[1]) in more
