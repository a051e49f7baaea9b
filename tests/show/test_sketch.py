"""Answers in characters fit their terminal, say what their tables say, and mean nothing by colour alone."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from inspect import signature
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from conftest import Run
from joulemap.cli.option.plot import PlotOptions
from joulemap.domain.figure import DrawingName
from joulemap.domain.table import Column, Table
from joulemap.show.figure.figure import Drawing
from joulemap.show.figure.sketch import KINDS, make_sketches
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.draw.ink import LETTERS
from joulemap.show.present.draw.scale import Scale, find_scale, show_tick
from joulemap.show.present.draw.sketch import LEAST_WIDTH, MOST_ROWS, draw_sketch
from joulemap.show.present.format import Page, write
from joulemap.show.present.sketch import Axis, Bar, Bars, Chart, Curve, Heat, HeatRow, Point, Sketch
from joulemap.system.resource import folder
from joulemap.workspace import Workspace
from sample import thin

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
    places = st.builds(lambda x, y: Point(x=x, y=y, x_low=x / 2.0, x_high=x * 2.0, y_low=y, y_high=y), AMOUNTS, AMOUNTS)
    lines = st.booleans()
    names = st.one_of(st.just(""), NAMES)
    curves = st.builds(
        lambda name, points, is_line: Curve(name=name, points=tuple(points), is_line=is_line),
        names,
        st.lists(places, max_size=6),
        lines,
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


def test_a_sweep_over_six_decades_has_ticks_with_units_on_both_axes() -> None:
    points = tuple(Point(x=10.0**power, y=10.0 ** (-2 * power)) for power in range(4))
    chart = Chart(title="t", x=Axis(label="batch"), y=ENERGY, curves=(Curve(name="chip", points=points, is_line=True),))
    text = draw_sketch(chart, Page(80))
    assert {"1 µJ", "10 mJ", "1 J"} <= set(re.findall(r"\d+ \w*J", text))
    assert any({"1", "10", "100", "1,000"} <= set(line.split()) for line in text.split("\n"))
    assert text.count("log axis") == 2 and "(J)" not in text
    assert "a chip" in text


def test_a_chart_is_as_high_as_the_terminal_leaves_room() -> None:
    chart = Chart(title="t", x=ENERGY, y=ENERGY, curves=(Curve(name="chip", points=(Point(x=1.0, y=1.0),)),))
    rows = [len(draw_sketch(chart, Page(80, height=height)).split("\n")) for height in (5, 24, 30, 500)]
    assert rows == sorted(rows)
    assert rows[1] <= 24
    assert rows[3] <= MOST_ROWS + 10


def test_every_named_point_is_seen_or_said_to_be_hidden() -> None:
    curves = tuple(Curve(name=f"chip {index}", points=(Point(x=1.0, y=1.0),)) for index in range(12))
    text = draw_sketch(Chart(title="t", x=ENERGY, y=ENERGY, curves=curves), Page(100))
    canvas = "".join(re.split("[│┤]", line, maxsplit=1)[-1] for line in text.split("\n") if re.search("[│┤]", line))
    for letter, curve in zip(LETTERS, curves, strict=False):
        assert letter in canvas or re.search(rf"{letter} {curve.name} \(under \w\)", text)


def test_more_series_than_letters_are_counted() -> None:
    curves = tuple(Curve(name=f"chip {index}", points=(Point(x=1.0 + index, y=1.0),)) for index in range(70))
    assert "8 more are ·" in draw_sketch(Chart(title="t", x=ENERGY, y=ENERGY, curves=curves), Page(200))


def test_a_heat_map_stars_the_best_and_names_what_does_not_fit() -> None:
    rows = (HeatRow(label="conv1", ratios=(1.0, 1.2, 1.9, 4.0, 30.0, None), note="h100"),)
    columns = ("h100", "l4", "t4", "tpu_v4", "xeon", "orin")
    wide = draw_sketch(Heat(title="t", columns=columns, rows=rows), Page(120)).split("\n")
    assert re.sub(" +", " ", wide[2]) == "conv1 *█ 1x ▓▓ 1.2x ▒▒ 1.9x ░░ 4x ·· 30x - h100"
    narrow = draw_sketch(Heat(title="t", columns=columns, rows=rows), Page(45))
    assert re.sub(" +", " ", narrow.split("\n")[2]) == "conv1 *█ ▓▓ ▒▒ ░░ ·· - h100"
    assert all(f"{letter} {name}" in narrow for letter, name in zip("abcdef", columns, strict=True))
    many = Heat(title="t", columns=tuple(f"chip{n}" for n in range(60)), rows=(HeatRow(label="x", ratios=(1.0,) * 60),))
    assert re.search(r"\d+ more columns do not fit", draw_sketch(many, Page(80)))


def test_parts_have_patterns_of_their_own() -> None:
    one = Bar(label="a", value=1.0, parts=(0.5, 0.25, 0.25))
    made = Bars(title="t", axis=ENERGY, bars=(one,), parts=("one", "two", "three"))
    lines = draw_sketch(made, Page(80)).split("\n")
    counts = [read_bar(lines[1]).count(pattern) for pattern in "█▓▒"]
    assert counts[0] == pytest.approx(2 * counts[1], abs=1)
    assert counts[1] == pytest.approx(counts[2], abs=1)
    assert "█ one" in lines[-1] and "▓ two" in lines[-1] and "▒ three" in lines[-1]


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


def test_ticks_are_round() -> None:
    assert Scale(0.0, 0.0634, is_log=False).ticks(5) == pytest.approx([0.0, 0.02, 0.04, 0.06])
    assert Scale(0.9e-6, 1.1, is_log=True).ticks(7) == pytest.approx([10.0**power for power in range(-6, 1)])
    assert Scale(0.9, 11.0, is_log=True).ticks(6) == pytest.approx([1.0, 2.0, 5.0, 10.0])


def test_nothing_is_drawn_of_nothing() -> None:
    empty: tuple[Sketch, ...] = (
        Bars(title="t", axis=ENERGY, bars=()),
        Chart(title="t", x=ENERGY, y=ENERGY, curves=(Curve(name="a", points=()),)),
        Heat(title="t", columns=(), rows=()),
    )
    for form in ("table", "markdown", "html"):
        assert "t\n" not in write_section(*empty, Text("above"), form=form)
        assert "above" in write_section(*empty, Text("above"), form=form)


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


DRAWN: dict[str, tuple[str, ...]] = {
    "compare": ("resnet18",),
    "compare --level detailed": ("resnet18", "--level", "detailed"),
    "compare --level subgraph": ("resnet18", "--level", "subgraph"),
    "compare --level operator": ("resnet18", "--level", "operator", "--metric", "latency"),
    "compare --by": ("resnet18", "--by", "category"),
    "compare --sort": ("resnet18", "--sort", "latency"),
    "analyze": ("resnet18", "h100_sxm5"),
    "analyze --level category": ("resnet18", "h100_sxm5", "--level", "category"),
    "analyze --level subgraph": ("resnet18", "tpu_v4", "--level", "subgraph"),
    "analyze --level operator": ("resnet18", "tpu_v4", "--level", "operator"),
    "analyze --level event": ("resnet18", "tpu_v4", "--level", "event"),
    "analyze --by": ("resnet18", "h100_sxm5", "--by", "action"),
    "analyze --subgraph": ("resnet18", "h100_sxm5", "--subgraph", "conv1"),
    "explain": ("resnet18", "h100_sxm5", "tpu_v4"),
    "edp": ("resnet18", "h100_sxm5"),
    "edp --level operator": ("resnet18", "h100_sxm5", "--level", "operator"),
    "sweep": ("resnet18", "--batch", "1", "--precision", "fp32,bf16"),
    "pareto": ("resnet18", "--hardware", "tpu_v4,h100_sxm5", "--precision", "fp32", "--batch", "1"),
    "utilization": ("resnet18", "--no-advice"),
    "cost": ("resnet18", "--hardware", "tpu_v4,h100_sxm5", "--precision", "fp32", "--batch", "1"),
}
"""Command -> what it is asked; each answer is in the database."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", thin(sorted(DRAWN), 2))
def test_a_command_draws_what_fits_and_pipes_it_plain(name: str, joulemap: Run, database: Path) -> None:
    variables = {"JOULEMAP_DB": str(database), "COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    asked = (name.split()[0], *DRAWN[name])
    plain = joulemap(*asked, variables=variables)
    drawn = joulemap(*asked, "--plot", variables=variables)
    assert (plain.returncode, drawn.returncode) == (0, 0), drawn.stderr
    title, _, rest = drawn.stdout.partition("\n\nSketch\n")
    assert rest, drawn.stdout
    assert "\x1b" not in drawn.stdout
    sketch, tables = rest[: len(rest) - len(plain.stdout) + len(title) + 2], plain.stdout.removeprefix(title)
    assert rest.endswith(tables.lstrip("\n"))
    assert max(map(len, sketch.split("\n"))) <= 80
    assert "│" in sketch or "*█" in sketch


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "csv"])
def test_programs_get_the_same_with_and_without(form: str, joulemap: Run, database: Path) -> None:
    variables = {"JOULEMAP_DB": str(database)}
    for asked in (("compare", "resnet18"), ("edp", "resnet18", "h100_sxm5")):
        given = [*asked, "--format", form]
        assert joulemap(*given, variables=variables).stdout == joulemap(*given, "--plot", variables=variables).stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_numbers_of_a_sketch_are_those_of_the_answer(width: int, joulemap: Run, database: Path) -> None:
    variables = {"JOULEMAP_DB": str(database), "COLUMNS": str(width)}
    drawn = joulemap("compare", "resnet18", "--plot", variables=variables).stdout
    answer = json.loads(joulemap("compare", "resnet18", "--format", "json", variables=variables).stdout)
    energies, _, latencies = drawn.partition("Latency of a batch")
    for row in answer["rows"]:
        name = f"{row['hardware']} "
        for text, value, unit in ((energies, row["energy_j"], "J"), (latencies, row["latency_s"], "s")):
            (line,) = [one for one in text.split("\n") if one.lstrip("~").startswith(name) and "│" in one]
            assert f" {show_quantity(value, unit)} │" in line
            assert all(mark in line for mark in "├●┤")


@pytest.mark.slow
def test_what_is_refused_has_a_row_without_a_bar(joulemap: Run, tmp_path: Path) -> None:
    asked = ("compare", "resnet18", "--hardware", "tpu_v4,coral_edge_tpu", "--precision", "fp32", "--plot")
    drawn = joulemap(*asked, variables={"COLUMNS": "80"})
    assert drawn.returncode == 0, drawn.stderr
    rows = [line for line in drawn.stdout.split("\n") if "coral_edge_tpu" in line and line.endswith("│")]
    assert len(rows) == 2 and all("unsupported │" in row for row in rows)


def test_an_answer_without_values_says_so(database: Path) -> None:
    analyzed = Workspace(database).analyze("resnet18", "tpu_v4", precision="fp32")
    bare = attrs.evolve(analyzed, events=attrs.evolve(analyzed.events, rows=()))
    options = PlotOptions(plot=True)
    drawn, *_ = options.add(analyzed.document(by="event"), analyzed, by="event").sections
    assert drawn.texts
    empty, *_ = options.add(bare.document(by="event"), bare, by="event").sections
    assert empty.texts == ("nothing to draw: no row has a value",)


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


def test_a_key_has_no_part_that_no_bar_has() -> None:
    form = {**BARS, "parts": {"rent": "rent", "power": "power", "host": "host"}}
    rows = (("a", 3.0, 2.0, 0.0, 1.0), ("b", 1.0, 1.0, 0.0, None))
    drawn = sketch(form, "hardware energy_j rent power host", *rows)
    assert drawn.parts == ("rent", "host")
    assert [bar.parts for bar in drawn.bars] == [(2.0, 1.0), (1.0, 0.0)]


def test_steps_begin_where_the_one_above_ends() -> None:
    form = {
        "kind": "steps", "title": "energy", "label": "{step}", "begin": "start", "end": "end", "text": "{step}",
        "is_whole": {"kind": "run"}, "parts": ["total", "rise", "fall"], "axis": {**BARS["axis"], "is_log": False},
        "noun": "causes",
    }  # fmt: skip
    rows = (
        ("a", "run", 0.0, 40.0),
        ("more", "term", 40.0, 60.0),
        ("less", "term", 60.0, 20.0),
        ("b", "run", 0.0, 20.0),
    )
    drawn = sketch(form, "step kind start end", *rows)
    assert [(bar.begin, bar.value) for bar in drawn.bars] == [(0.0, 40.0), (40.0, 60.0), (20.0, 60.0), (0.0, 20.0)]
    assert [bar.parts for bar in drawn.bars] == [(40.0, 0.0, 0.0), (0.0, 20.0, 0.0), (0.0, 0.0, 40.0), (20.0, 0.0, 0.0)]
    lines = [line.split("│")[1] for line in draw_sketch(drawn, Page(80)).split("\n") if "│" in line]
    assert lines[0].strip("█") == "" and lines[1].strip("▓ ") == lines[2].strip("▒ ") == ""
    assert lines[1].index("▓") in (len(lines[0]) - 1, len(lines[0])) and len(lines[1]) == len(lines[2])
    assert sketch(form, "step kind start end", *rows[:2]).parts == ("total", "rise")


CHART: dict[str, Any] = {
    "kind": "chart", "title": "roof", "name": "{name}", "x": {"label": "x"}, "y": {"label": "y"},
    "x_value": "intensity", "y_value": "rate",
}  # fmt: skip


def test_what_stands_at_one_place_has_one_name_and_what_has_no_x_stands_at_the_end_of_the_roof() -> None:
    rows = (("a", 1.0, 2.0, 1.0), ("b", 8.0, 3.0, 5.0), ("c", 1.0, 2.0, 2.0), ("d", None, 3.0, 4.0))
    form = {**CHART, "name": "{name}{alike}: {time}", "alike": "time", "roof": [4.0, 8.0], "named": 2}
    roof, others, *named = sketch(form, "name intensity rate time", *rows).curves
    assert [(point.x, point.y) for point in roof.points] == [(0.5, 1.0), (4.0, 8.0), (16.0, 8.0)]
    assert {curve.name: curve.points[0].x for curve in named} == {"b: 5": 8.0, "d: 4": 16.0}
    assert [(point.x, point.y) for point in others.points] == [(1.0, 2.0)]


def test_rows_of_one_name_are_a_curve_and_what_has_no_value_is_left_out() -> None:
    rows = (("a", 1, 2.0), ("b", 1, 3.0), ("a", 2, 4.0), ("b", 2, None))
    _, one, other = sketch({**CHART, "is_line": True}, "name intensity rate", *rows).curves
    assert [(curve.name, [point.y for point in curve.points]) for curve in (one, other)] == [
        ("a", [2.0, 4.0]),
        ("b", [3.0]),
    ]


def test_a_heat_map_has_the_columns_in_their_order_and_names_the_best() -> None:
    form = {
        "kind": "heat", "title": "who", "row": "part", "label": "{part}", "column": "hardware", "order": "run",
        "ratio": "ratio", "noun": "parts",
    }  # fmt: skip
    rows = (
        ("x", "b", 2, 1.0, 5.0, 1),
        ("x", "a", 1, 2.0, 9.0, 1),
        ("y", "a", 1, 1.0, 7.0, 2),
        ("z", "a", 1, 1.0, 1.0, 1),
    )
    drawn = sketch(form, "part hardware run ratio value tied_count", *rows, most=2)
    assert drawn.columns == ("a", "b")
    assert [(row.label, row.ratios, row.note) for row in drawn.rows] == [
        ("x", (2.0, 1.0), "b"),
        ("y", (1.0, None), "2 alike"),
    ]
    assert drawn.notes == ("1 more parts",)


def run_on_terminal(arguments: list[str], variables: dict[str, str], columns: int, lines: int) -> str:
    """What a command writes on a terminal of this size."""
    main, other = pty.openpty()
    ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "joulemap", *arguments],
        {**kept, **variables},
        file_actions=[(os.POSIX_SPAWN_DUP2, other, 1)],
    )
    os.close(other)
    written = b"".join(_read(main))
    os.close(main)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return written.decode().replace("\r\n", "\n")


def _read(stream: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(stream, 1 << 16)
        except OSError:
            return
        if not piece:
            return
        yield piece


@pytest.mark.slow
def test_colours_are_for_a_terminal_that_wants_them(database: Path) -> None:
    asked = ["compare", "resnet18", "--plot", "--db", str(database)]
    coloured = run_on_terminal(asked, {"TERM": "xterm-256color"}, 100, 30)
    assert set(re.findall(r"\x1b\[([0-9;]*)m", coloured)) >= {"0", "38;5;36"}
    assert "\\x1b" not in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert "\x1b" not in bare
    assert max(map(len, bare.partition("\nNext   ")[0].split("\n"))) <= 100
    for variables in ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = run_on_terminal(asked, variables, 100, 30)
        shown, expected = (text.rpartition("80 % interval")[0].split() for text in (plain, bare))
        assert shown == expected  # in the table below, a star stands where colours do, a word elsewhere
