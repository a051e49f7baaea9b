"""Answers in characters fit their terminal, say what their tables say, and mean nothing by colour alone."""

from __future__ import annotations

import json
import math
import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from conftest import Run
from joulemap.domain.figure import DrawingName
from joulemap.domain.table import Column, Table
from joulemap.show.figure.figure import Drawing
from joulemap.show.figure.sketch import KINDS, make_sketches
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.draw.ink import LETTERS
from joulemap.show.present.draw.scale import find_scale, show_tick
from joulemap.show.present.draw.sketch import LEAST_WIDTH, draw_sketch
from joulemap.show.present.format import Page, write
from joulemap.show.present.sketch import Axis, Bar, Bars, Chart, Curve, Heat, HeatRow, Point, Sketch
from joulemap.system.resource import folder

WIDTHS = (60, 80, 120, 200)
ENERGY = Axis(label="energy", unit="J")

NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=40)
AMOUNTS = st.one_of(st.floats(1e-12, 1e12), st.just(0.0), st.sampled_from([math.nan, math.inf, -1.0]))


def write_section(*blocks: Sketch | Text, form: str = "table") -> str:
    """Blocks in a format."""
    column = Column(name="energy_j", type="DOUBLE", meaning="energy")
    table = Table[Any](title="made", columns=(column,), rows=((1.5,),))
    document = Document(title="", sections=(Section("Sketch", blocks),), data=table.records(), table=table)
    return write(document, form, 80)


@st.composite
def bars(draw: st.DrawFn) -> Bars:
    """Values of any size, with intervals or without, some of them refused."""
    made = []
    for label in draw(st.lists(NAMES, min_size=1, max_size=12)):
        value = draw(st.one_of(st.none(), AMOUNTS))
        ends = None if value is None or draw(st.booleans()) else (value / 2.0, value * 2.0)
        parts = () if value is None else (value / 4.0, value * 3.0 / 4.0)
        low, high = ends or (None, None)
        made.append(
            Bar(label=label, value=value, low=low, high=high, parts=parts, text="unsupported" if value is None else "")
        )
    names = draw(st.sampled_from([(), ("one", "other")]))
    return Bars(title="Energy", axis=ENERGY, bars=tuple(made), parts=names, has_zero=draw(st.booleans()))


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    """Points anywhere, with names or without."""
    places = st.builds(lambda x, y: Point(x=x, y=y), AMOUNTS, AMOUNTS)
    lines = st.booleans()
    names = st.one_of(st.just(""), NAMES)
    curves = st.builds(
        lambda name, points, is_line, labels: Curve(name=name, points=tuple(points), is_line=is_line, labels=labels),
        names,
        st.lists(places, max_size=6),
        lines,
        st.one_of(st.just(()), st.tuples(NAMES, NAMES)),
    )
    return Chart(title="Energy against latency", x=ENERGY, y=ENERGY, curves=tuple(draw(st.lists(curves, max_size=8))))


@st.composite
def heats(draw: st.DrawFn) -> Heat:
    """Ratios of a few or many columns."""
    columns = draw(st.lists(NAMES, min_size=1, max_size=30, unique=True))
    ratio = st.one_of(st.none(), st.floats(1.0, 1e9))
    row = st.lists(ratio, min_size=len(columns), max_size=len(columns)).map(tuple)
    rows = draw(st.lists(st.tuples(NAMES, row), min_size=1, max_size=8))
    made = tuple(HeatRow(label=label, ratios=ratios, note=columns[0]) for label, ratios in rows)
    return Heat(title="Who is best", columns=tuple(columns), rows=made)


@given(st.one_of(bars(), charts(), heats()), st.sampled_from(WIDTHS))
def test_any_sketch_fits_and_is_plain(sketch: Sketch, width: int) -> None:
    lines = draw_sketch(sketch, Page(width)).split("\n")
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert all(line.isprintable() for line in lines)
    assert not any("\N{BRAILLE PATTERN BLANK}" in line for line in lines)


@given(bars(), st.integers(LEAST_WIDTH, 200))
def test_every_bar_has_a_row_with_its_value(sketch: Bars, width: int) -> None:
    rows = [line for line in draw_sketch(sketch, Page(width)).split("\n") if "│" in line]
    assert len(rows) == len(sketch.bars)
    for row, bar in zip(rows, sketch.bars, strict=True):
        assert (bar.text or ("" if bar.value is None else show_tick(bar.value, "J"))) in row


def read_bar(line: str) -> str:
    """What is drawn right of the axis."""
    return line.partition("│")[2]


def test_bars_begin_at_zero_and_intervals_end_where_they_say() -> None:
    made = (Bar(label="a", value=0.5, low=0.25, high=1.0), Bar(label="b", value=0.25))
    lines = draw_sketch(Bars(title="t", axis=ENERGY, bars=made), Page(107)).split("\n")
    first, second = map(read_bar, lines[1:3])
    assert (first.index("├"), first.index("●"), first.index("┤")) == (23, 46, 92)  # of 96 cells to 1.04 J
    assert first[:23] == "█" * 23
    assert first[24:46] == "█" * 22  # the bar goes on to its value, over the lower half of the interval
    assert second == "█" * 23
    assert "0 J" in lines[4]
    assert "80 % interval" in lines[5]


def test_values_a_million_times_apart_stand_on_a_logarithmic_axis() -> None:
    values = [1e-6, 1e-3, 1.0]
    made = tuple(Bar(label="a", value=value, low=value / 2.0, high=value * 2.0) for value in values)
    lines = draw_sketch(Bars(title="t", axis=ENERGY, bars=made), Page(100)).split("\n")
    dots = [read_bar(line).index("●") for line in lines[1:4]]
    assert dots[2] - dots[1] == pytest.approx(dots[1] - dots[0], abs=1)
    assert not any("█" in line for line in lines)
    assert {"1 µJ", "1 mJ", "1 J"} <= set(re.findall(r"\d+ \w*J", lines[5]))
    assert "log axis" in lines[6]


def test_every_named_point_is_seen_or_said_to_be_hidden() -> None:
    curves = tuple(Curve(name=f"chip {index}", points=(Point(x=1.0, y=1.0),)) for index in range(12))
    text = draw_sketch(Chart(title="t", x=ENERGY, y=ENERGY, curves=curves), Page(100))
    canvas = "".join(re.split("[│┤]", line, maxsplit=1)[-1] for line in text.split("\n") if re.search("[│┤]", line))
    for letter, curve in zip(LETTERS, curves, strict=False):
        assert letter in canvas or re.search(rf"{letter} {curve.name} \(under \w\)", text)


@pytest.mark.parametrize("values", [[], [0.0], [1.0], [1.0, 1.0], [-1.0, 1.0], [math.inf, 1.0], [1e-300, 1e300]])
@pytest.mark.parametrize("has_zero", [False, True])
@pytest.mark.parametrize("is_log", [None, False, True])
def test_a_scale_is_found_for_any_values(values: list[float], has_zero: bool, is_log: bool | None) -> None:
    scale = find_scale(values, Axis(label="x", is_log=is_log), has_zero=has_zero)
    assert scale.low < scale.high
    ticks = scale.ticks(5)
    assert ticks == sorted(ticks) and len(ticks) <= 12
    assert all(scale.low * (1 - 1e-6) <= tick <= scale.high * (1 + 1e-6) for tick in ticks if scale.is_log)
    assert all(0 <= scale.cell(value, 40) < 40 for value in values if scale.holds(value))


def test_what_steers_a_terminal_is_shown_by_its_code() -> None:
    made = Bars(title="\x1b[31mred", axis=ENERGY, bars=(Bar(label="\x1b[2Jclear", value=1.0),))
    text = write_section(made)
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text and "\\x1b[2Jclear" in text


def test_markdown_fences_and_html_escapes_a_sketch() -> None:
    made = Bars(title="`````", axis=ENERGY, bars=(Bar(label="<script>", value=1.0),))
    assert "``````text\n" in write_section(made, form="markdown")
    page = write_section(made, form="html")
    assert "<pre>" in page and "<script>" not in page and "&lt;script&gt;" in page


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_numbers_of_a_sketch_are_those_of_the_answer(width: int, joulemap: Run, database: Path) -> None:
    variables = {"JOULEMAP_DB": str(database), "COLUMNS": str(width)}
    drawn = joulemap("compare", "resnet18", "--show=plot", variables=variables).stdout
    answer = json.loads(joulemap("compare", "resnet18", "--format", "json", variables=variables).stdout)
    energies, _, latencies = drawn.partition("Latency of a batch")
    for row in answer["rows"]:
        name = f"{row['hardware']} "
        for text, value, unit in ((energies, row["energy_j"], "J"), (latencies, row["latency_s"], "s")):
            (line,) = [one for one in text.split("\n") if one.lstrip("~").startswith(name) and "│" in one]
            assert f" {show_quantity(value, unit)} │" in line
            assert all(mark in line for mark in "├●┤")


@pytest.mark.parametrize("name", sorted(path.name.split(".")[0] for path in (folder("queries") / "figure").iterdir()))
def test_every_declared_sketch_has_the_keywords_of_its_kind(name: DrawingName) -> None:
    spec = find_spec(name)
    assert spec.sketch or spec.view
    for declared in spec.sketch:
        given = {word: value for word, value in declared.items() if word not in ("kind", "each", "where")}
        signature(KINDS[declared["kind"]]).bind((), **{"most": 1, **given} if "noun" in given else given)


def sketch(form: dict[str, Any], columns: str, *rows: tuple[Any, ...], most: int = 40, projected: str = "") -> Any:
    """The one sketch that is made of rows."""
    made = tuple(Column(name=one, type="", meaning="made") for one in columns.split())
    drawing = Drawing(table=Table(title="made", columns=made, rows=rows), sketch=(form,))
    (drawn,) = make_sketches(drawing, most, frozenset({projected}))
    return drawn


BARS: dict[str, Any] = {
    "kind": "bars", "title": "energy", "label": "{hardware}", "value": "energy_j", "noun": "runs",
    "axis": {"label": "energy", "unit": "J"},
}  # fmt: skip


def test_bars_are_rows_with_their_intervals_and_what_is_cut_is_counted() -> None:
    rows = (("a", "ok", 6.0, math.log(2.0), 2), ("b", "unsupported", None, None, 2), ("c", "ok", 2.0, None, 2))
    form = {**BARS, "per": "batch", "half_width": "width"}
    drawn = sketch(form, "hardware status energy_j width batch", *rows, most=2, projected="a")
    first, second = drawn.bars
    assert (drawn.title, first.label, second.text) == ("Energy", "~a", "unsupported")
    assert (first.value, first.low, first.high) == pytest.approx((3.0, 1.5, 6.0))
    assert drawn.notes == ("1 more runs",)
    ranked = sketch({**BARS, "order": "value", "has_share": True}, "hardware energy_j", ("a", 1.0), ("b", 3.0), most=1)
    assert ([bar.label for bar in ranked.bars], ranked.notes) == (["b"], ("1 more runs, 25.0 % of all",))


def test_parts_of_a_stack_add_up_and_the_smallest_are_one() -> None:
    rows = [(run, f"part{index}", float(index)) for run in "ab" for index in range(1, 12)]
    drawn = sketch({**BARS, "part": "{part}", "group": "hardware"}, "hardware part energy_j", *rows)
    assert drawn.parts == (*(f"part{index}" for index in range(11, 3, -1)), "3 smaller")
    assert [bar.value for bar in drawn.bars] == [66.0, 66.0]
    assert drawn.bars[0].parts == (11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 6.0)


def test_a_front_is_a_line_whose_picks_have_labels_and_what_is_far_is_counted() -> None:
    form = {
        "kind": "front", "title": "energy", "name": "{hardware}, {pick}", "others": "dominated",
        "x": {"label": "latency", "unit": "s", "is_log": True}, "y": {"label": "energy", "unit": "J", "is_log": True},
    }  # fmt: skip
    rows = (
        ("c", "front", "least energy", 4.0, 1.0),
        ("a", "front", "fastest", 1.0, 4.0),
        ("b", "front", None, 2.0, 2.0),
        ("d", "dominated", None, 4.0, 4.0),
        ("e", "dominated", None, 4.0, 40.0),
        ("f", "projection", None, 1.0, 1.0),
    )
    drawn = sketch(form, "hardware status pick x_value y_value", *rows)
    others, front, beyond, first, last = drawn.curves
    assert [point.x for point in front.points] == [1.0, 2.0, 4.0] and front.is_line
    assert (len(others.points), len(beyond.points), beyond.mark) == (1, 1, "~")
    assert (first.labels, last.labels) == (("a, fastest", "fastest"), ("c, least energy", "least energy"))
    assert drawn.notes == ("· 1 dominated, 1 more beyond the axes; ~ 1 that cannot be bought",)
    assert "a, fastest" in draw_sketch(drawn, Page(80)) and "fastest" in draw_sketch(drawn, Page(40))
