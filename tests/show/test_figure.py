"""Figures draw the rows of their questions, in colours and words, and keep texts what they are."""

from __future__ import annotations

import contextlib
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.answer import Answer
from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.plot import QUESTIONS
from joulemap.cli.app import run
from joulemap.domain.figure import FIGURES, AnswerFigureName, FigureName, ShownName
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.table import Column, Table
from joulemap.generated.explain import WaterfallBar
from joulemap.show.figure.figure import Figure, choose_colours, draw_png, draw_svg, make_figure, paint
from joulemap.show.figure.sketch import make_sketches
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.category import CATEGORY
from joulemap.show.present.sketch import Chart
from joulemap.show.waterfall import list_bars
from joulemap.system.errors import UsageError
from joulemap.system.resource import folder
from joulemap.system.wing import list_wings
from joulemap.workspace import Workspace
from sample import thin

Draw = Callable[[FigureName], Figure]

HOSTILE = "<script>alert(1)</script>"

HARDWARE: dict[FigureName, tuple[str, ...]] = {
    "comparison": ("l4", "h100_sxm5", "tpu_v4"),
    "breakdown": ("l4", "tpu_v4"),
    "tree": ("l4",),
    "roofline": ("l4",),
    "rooflines": ("l4", "tpu_v4"),
    "heatmap": ("l4", "tpu_v4"),
    "utilization": ("l4", "tpu_v4"),
    "pareto": ("l4", "tpu_v4"),
    "edp": ("l4",),
    "sweep": ("l4", "h100_sxm5"),
    "waterfall": ("h100_sxm5", "tpu_v4"),
    "tornado": ("l4",),
    "flip": ("h100_sxm5", "tpu_v4"),
    "cost": ("l4", "epyc_9654"),
    "frontier": ("l4", "h100_sxm5"),
    "training": ("h100_sxm5", "l4"),
}
"""Figure -> the hardware that it is drawn of here."""

MODELS: dict[FigureName, str] = {"frontier": "llama-3.2-1b"}
"""Figure -> its model, where that is no resnet18."""


@pytest.fixture(scope="module")
def draw(workspace: Workspace) -> Draw:
    @cache
    def plot(name: FigureName) -> Figure:
        return workspace.plot(MODELS.get(name, "resnet18"), name, hardware=HARDWARE[name])

    return plot


@pytest.mark.wings
def test_every_figure_has_a_question() -> None:
    assert {*QUESTIONS, *(name for wing in list_wings() for name in wing.figures)} == set(FIGURES)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", thin(HARDWARE, 2))
@pytest.mark.slow
def test_a_figure_is_drawn_as_svg_and_png(name: FigureName, draw: Draw) -> None:
    figure = draw(name)
    for theme in ("light", "dark"):
        drawn = draw_svg(figure, theme)
        root = ElementTree.fromstring(drawn)
        assert root.find("{http://www.w3.org/2000/svg}desc") is not None
        assert "NaN" not in drawn
        assert "undefined" not in drawn
        assert not re.search(r">[^<]*\d%[^<]*<", re.sub(r"<style.*?</style>", "", drawn, flags=re.DOTALL))
        assert "{" not in re.sub(r"<style.*?</style>", "", drawn, flags=re.DOTALL)
    assert draw_png(figure)[:8] == b"\x89PNG\r\n\x1a\n"
    assert MODELS.get(name, "resnet18") in figure.title
    assert figure.description.startswith(figure.finding)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", thin(HARDWARE, 2))
def test_a_figure_draws_columns_of_its_query_and_no_others(name: FigureName, draw: Draw) -> None:
    figure, spec = draw(name), find_spec(name)
    assert set(spec.columns) <= set(figure.table.names)
    assert figure.table.title == spec.query
    rows = figure.spec["datasets"]["rows"]
    assert rows
    assert len(rows) == len(figure.table)
    assert all(tuple(row) == spec.columns for row in rows)


@pytest.mark.parametrize("name", [*HARDWARE, *get_args(AnswerFigureName)])
def test_a_specification_reads_only_columns_that_it_names(name: ShownName) -> None:
    (path,) = (folder("queries") / "figure").glob(f"{name}.v1.vl.json")
    text = path.read_text(encoding="utf-8")
    made = set(re.findall(r'"as": "(\w+)"', text)) | {
        one for group in re.findall(r'"as": \[([^\]]*)\]', text) for one in re.findall(r"\w+", group)
    }
    read = set(re.findall(r"datum\.(\w+)", text)) | set(re.findall(r'"field": "(\w+)"', text))
    assert read - made - {"value", "label"} <= set(find_spec(name).columns)


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", PART_METRICS)
def test_a_waterfall_ends_where_the_other_run_does(metric: PartMetricName, workspace: Workspace) -> None:
    answer = workspace.explain("resnet18", "h100_sxm5", "tpu_v4", metric=metric)
    assert isinstance(answer, ExplainAnswer)
    first, *terms, last = list_bars(answer)
    assert all(isinstance(one, WaterfallBar) for one in (first, last))
    ends = [first.end_exact, *(one.end_exact for one in terms)]
    assert [one.start_exact for one in terms] == ends[:-1]
    assert (terms or [first])[-1].end_exact == last.end_exact
    assert last.end_exact - first.end_exact == answer.difference_exact
    assert (first.end, last.end) == pytest.approx(answer.ends(metric), rel=1e-12, abs=0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["breakdown", "tree"])
def test_a_legend_names_the_categories_that_are_drawn(name: FigureName, workspace: Workspace) -> None:
    figure = workspace.plot("resnet18", name, hardware=HARDWARE[name])
    drawn = {row["common_category"] for row in figure.spec["datasets"]["rows"] if row["energy_j"]}
    legends = re.findall(r'"values": (\[[^]]*\])', json.dumps(figure.spec))
    assert legends
    for one in legends:
        assert [entry.partition(" ")[2] for entry in json.loads(one)] == [
            CATEGORY[category] for category in CATEGORY if category in drawn
        ]


@pytest.mark.slow
def test_the_dots_of_a_pareto_are_the_rows_of_the_answer(workspace: Workspace) -> None:
    answer = workspace.pareto("resnet18", hardware=HARDWARE["pareto"], x="throughput", y="power")
    (figure,) = answer.figures()
    assert [row["x_value"] for row in figure.spec["datasets"]["rows"]] == [row.x_value for row in answer.rows]
    assert "throughput (1/s)" in json.dumps(figure.spec)


@pytest.mark.slow
def test_a_roofline_of_several_is_one_chart_of_their_roofs(workspace: Workspace) -> None:
    several = workspace.plot("resnet18", "roofline", hardware=HARDWARE["rooflines"])
    assert (several.name, workspace.plot("resnet18", "roofline", hardware="l4").name) == ("rooflines", "roofline")
    rows = several.spec["datasets"]["rows"]
    assert {row["hardware"] for row in rows} == {"l4", "tpu_v4"}
    (chart,) = make_sketches(several, 9, frozenset())
    assert isinstance(chart, Chart)
    curves = {curve.name.partition(",")[0]: curve for curve in chart.curves if curve.name}
    for row in rows:
        point, end = curves[row["hardware"]].points
        start, ridge, level = curves[row["hardware"]].roof
        assert (point.x, point.y) == (row["dram_intensity_ops_per_byte"], row["attained_ops_per_s"])
        assert end == level and level.x > point.x and level.y == ridge.y == row["peak_ops_per_s"]
        assert_close(start.y / start.x, row["memory_bandwidth_bytes_per_s"], rel=1e-12)
        assert_close(ridge.y / ridge.x, row["memory_bandwidth_bytes_per_s"], rel=1e-12)
        assert point.y <= min(level.y, point.x * row["memory_bandwidth_bytes_per_s"])


def test_a_mark_belongs_to_its_panel(draw: Draw) -> None:
    """The least of each quantity is marked in its panel; what is worse by far is marked in neither."""
    figure = draw("comparison")
    rows = figure.spec["datasets"]["rows"]
    for value, mark in (("energy_j", "likely_best"), ("latency_s", "likely_fastest")):
        least, most = min(rows, key=lambda row: row[value]), max(rows, key=lambda row: row[value])
        assert least[mark]
        assert not most[mark]
    panels = [panel["layer"][1]["encoding"] for panel in figure.spec["hconcat"]]
    assert len({one["shape"]["field"] for one in panels}) == 2
    assert all(one["color"]["field"] == "label" for one in panels)  # a chip has one colour in all figures
    assert figure.spec["resolve"]["scale"] == {"color": "independent", "shape": "independent"}


def test_a_roof_is_labelled_with_what_takes_most_of_the_time(draw: Draw) -> None:
    figure = draw("rooflines")
    said = [row["main_bottleneck"] for row in figure.spec["datasets"]["rows"]]
    names = {"compute_time_fraction": "compute", "memory_time_fraction": "memory", "launch_time_fraction": "launches"}
    shares = [dict(zip(figure.table.names, cells, strict=True)) for cells in figure.table.cells]
    assert said == [names[max(names, key=lambda name: row[name] or 0.0)] for row in shares]


def make_rows(name: ShownName, *rows: Mapping[str, object]) -> Figure:
    """A figure of rows that have these values, and none in all other columns."""
    names = find_spec(name).columns
    columns = tuple(Column(name=one, type="VARCHAR", meaning=one) for one in names)
    cells = tuple(tuple(row.get(one) for one in names) for row in rows)
    texts = {"x_title": "x", "y_title": "y", "x_unit": "", "y_unit": ""}
    return make_figure(name, Table(title="made", columns=columns, rows=cells), "made", texts=texts)


def make_front(*places: tuple[float, float], status: str = "front") -> Figure:
    kept = {"status": status, "precision": "int8", "runtime": "engine", "batch": 1, "is_available": True}
    dots = [
        {**kept, "hardware": f"chip{place}", "x_value": x, "y_value": y, "x_half_width": 0.3, "y_half_width": 0.3}
        for place, (x, y) in enumerate(places)
    ]
    return make_rows("pareto", *dots)


def make_roofs(*peaks: float) -> Figure:
    kept = {"status": "ok", "is_available": True, "memory_bandwidth_bytes_per_s": 1e12, "main_bottleneck": "launches"}
    return make_rows(
        "rooflines",
        *(
            {
                **kept,
                "hardware": f"chip{place}",
                "dram_intensity_ops_per_byte": 20.0,
                "attained_ops_per_s": 1e12,
                "peak_ops_per_s": peak,
                "ridge_ops_per_byte": peak / 1e12,
                "roofline_fraction": 1e12 / peak,
            }
            for place, peak in enumerate(peaks)
        ),
    )


def read_heights(drawn: str, pattern: str) -> list[float]:
    """Heights in pixels of the texts of a drawing that match, from the top of the picture."""
    heights = []

    def walk(element: ElementTree.Element, height: float) -> None:
        moved = re.match(r"translate\([-\d.]+,([-\d.]+)\)", element.get("transform", ""))
        height += float(moved[1]) if moved else 0.0
        if element.text and re.fullmatch(pattern, element.text):
            heights.append(height)
        for one in element:
            walk(one, height)

    walk(ElementTree.fromstring(drawn), 0.0)
    return sorted(heights)


CROWDS: dict[str, Callable[[], Figure]] = {
    "alike": lambda: make_front(*((1.0 + 1e-3 * place, 1.0 - 1e-3 * place) for place in range(18))),
    "at the top": lambda: make_front((1.0, 1e-6), *((0.5 - 1e-3 * place, 1.0 + 1e-3 * place) for place in range(9))),
    "many": lambda: make_front(*((1.0 + 0.1 * place, 1.0 / (1.0 + place)) for place in range(60))),
    "equal roofs": lambda: make_roofs(*(1e14 for _ in range(6))),
    "two roofs": lambda: make_roofs(6e13, 5e14),
    "many roofs": lambda: make_roofs(*(1e13 * 1.05**place for place in range(30))),
}
"""Figures whose points or roofs are close together."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CROWDS)
def test_labels_do_not_cover_each_other_nor_leave_the_figure(name: str) -> None:
    drawn = draw_svg(CROWDS[name]())
    heights = read_heights(drawn, r"chip\d+(: .*)?")
    assert len(heights) >= 2
    assert min(after - before for before, after in pairwise(heights)) >= 12.0
    (foot,) = {float(one) for one in re.findall(r'^<svg[^>]*? height="([\d.]+)"', drawn)}
    assert heights[0] > 40.0  # below the title
    assert heights[-1] < foot


@pytest.mark.parametrize(
    ("status", "entries"),
    [("front", ["on the front"]), ("dominated", ["dominated"]), ("projection", ["on the front if available"])],
)
def test_a_legend_has_only_entries_of_the_rows(status: str, entries: list[str]) -> None:
    figure = make_front((1.0, 2.0), (2.0, 1.0), status=status)
    legends = re.findall(r'"values": (\[[^\]]*\])', json.dumps(figure.spec["layer"]))
    assert [json.loads(one) for one in legends] == [entries]


def test_colours_follow_from_the_set_of_chips() -> None:
    names = [f"chip{place:02}" for place in range(40)]
    colours = choose_colours(names)
    assert colours == choose_colours([*reversed(names), names[3]])
    assert len({*colours.values()}) == len(names)
    assert len({colour for colour, _ in list(colours.values())[:8]}) == 8
    first, second = make_roofs(6e13, 5e14), make_roofs(5e14, 6e13, 7e13)
    assert first.chips == {"chip0": "chip0", "chip1": "chip1"}
    repainted = paint(second, dict.fromkeys(second.chips, ("#000000", "cross")))
    assert "#000000" in json.dumps(repainted.spec)
    assert repainted.spec["datasets"] == second.spec["datasets"]


@pytest.mark.slow
def test_each_hardware_has_a_tornado_of_its_own(workspace: Workspace) -> None:
    answer: Answer = workspace.sensitivity("resnet18", hardware=("l4", "tpu_v4"))
    figures = answer.figures()
    assert [figure.name for figure in figures] == ["tornado", "tornado"]
    assert [{row["hardware"] for row in one.spec["datasets"]["rows"]} for one in figures] == [{"l4"}, {"tpu_v4"}]


@pytest.mark.slow
def test_a_model_that_is_called_like_a_script_stays_text(tmp_path: Path) -> None:
    import torch

    module = type(HOSTILE, (torch.nn.Sequential,), {})(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    inputs = torch.zeros(1, 3, 8, 8)
    workspace = Workspace(tmp_path / "results.duckdb")
    names: tuple[FigureName, ...] = ("pareto", "sweep", "waterfall", "tornado", "flip", "cost")
    for name in names:
        named = HARDWARE[name]
        batch = (1, 2) if name == "sweep" else 1
        drawn = draw_svg(workspace.plot(module, inputs, name, hardware=named, batch=batch))
        assert HOSTILE not in drawn
        root = ElementTree.fromstring(drawn)
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        assert HOSTILE in "".join(root.itertext()), name


@pytest.mark.sample(1)
@pytest.mark.parametrize("end", [".svg", ".png", ".json"])
def test_the_command_writes_a_file_by_its_name(end: str, joulemap: Run, tmp_path: Path) -> None:
    done = joulemap("plot", "tornado", "resnet18", "l4", "-o", f"figure{end}", "--theme", "dark")
    assert done.returncode == 0, done.stderr
    content = (tmp_path / f"figure{end}").read_bytes()
    assert content.startswith({".svg": b"<svg", ".png": b"\x89PNG", ".json": b"{"}[end])


def test_a_terminal_gets_a_figure_drawn_in_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    with contextlib.redirect_stdout(screen):
        code = run(["plot", "roofline", "resnet18", "l4", "tpu_v4", "--db", str(tmp_path / "own.duckdb")])
    screen.seek(0)
    lines = screen.read().splitlines()
    assert code == 0
    assert max(map(len, lines)) <= 80
    assert all(sum(line.rstrip().endswith(letter) for line in lines) >= 1 for letter in "ab")
    assert any("l4" in line and "tpu_v4" in line for line in lines)


def test_the_command_prints_a_specification(joulemap: Run) -> None:
    done = joulemap("plot", "waterfall", "resnet18", "h100_sxm5,tpu_v4", "--metric", "latency")
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert spec["usermeta"]["figure"] == "waterfall@1"
    assert spec["datasets"]["rows"][0]["step"] == "A h100_sxm5"


@pytest.mark.slow
def test_a_figure_is_as_wide_as_it_shall_be(draw: Draw) -> None:
    drawn = draw_svg(draw("cost"), "light", 600)
    assert float(re.search(r'width="([\d.]+)"', drawn)[1]) == pytest.approx(600, abs=3)  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tornado", "resnet18", "l4", "t4"), "tornado needs one chip, found 2"),
        (("waterfall", "resnet18", "l4"), "waterfall needs two chips after the model, A and B, found 1"),
        (("sweep", "resnet18", "l4", "--metric", "energy"), "sweep takes no metric: leave out energy"),
        (("sweep", "resnet18", "l4", "-o", "s.bmp"), ".bmp is not a format of figures"),
        (("sweep", "resnet18", "l4", "-o", "sweep"), "sweep has no suffix"),
        (("tornado", "resnet18", "l4", "--metric", "memory"), "unknown metric 'memory'"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_a_line(arguments: tuple[str, ...], words: str, joulemap: Run) -> None:
    done = joulemap("plot", *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_file_of_somebody_else_is_kept(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.svg").write_text("mine")
    assert joulemap("plot", "tornado", "resnet18", "l4", "-o", "mine.svg").returncode == 2
    assert (tmp_path / "mine.svg").read_text() == "mine"


def test_the_library_says_which_figures_there_are(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="unknown figure 'pie'"):
        workspace.plot("resnet18", "pie")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="two chips"):
        workspace.plot("resnet18", "flip", hardware="l4")
