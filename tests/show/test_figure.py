"""Figures draw the rows of their questions, in colours and words, and keep texts what they are."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from conftest import Run
from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.plot import QUESTIONS
from joulemap.domain.figure import FIGURES, AnswerFigureName, FigureName, ShownName
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.generated.explain import WaterfallBar
from joulemap.show.figure.figure import Figure, draw_png, draw_svg
from joulemap.show.figure.spec import find_spec
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


def test_the_command_prints_a_specification(joulemap: Run) -> None:
    done = joulemap("plot", "waterfall", "resnet18", "h100_sxm5,tpu_v4", "--metric", "latency")
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert spec["usermeta"]["figure"] == "waterfall@1"
    assert spec["datasets"]["rows"][0]["step"] == "A h100_sxm5"


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
