"""Pages of one answer: fleets, placements and training steps, with figures, tables and what makes them again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from command import run_here
from joulemap.ask.answer import Answer
from joulemap.show.figure.figure import draw_svg
from joulemap.show.figure.spec import find_spec
from joulemap.show.view import draw_figures
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.train.setting import Training
from joulemap.workspace import Workspace
from page import Page, list_addresses

pytestmark = pytest.mark.slow

Ask = Callable[[str], Answer]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    folder = tmp_path_factory.mktemp("sheet")
    workspace = Workspace(folder / "sheet.duckdb")
    (folder / "day.csv").write_text("hour,rate_per_s\n0,3000\n9,30000\n17,3000\n")

    @cache
    def answer(name: str) -> Answer:
        if name == "fleet":
            demand = Demand(rates=str(folder / "day.csv"), p99_s=0.05)
            return workspace.fleet("resnet18", hardware=("l4", "t4"), precision="int8", batch=(1, 8), demand=demand)
        if name == "train":
            return workspace.train("resnet18", hardware="l4", batch=64, training=Training(devices=(1, 2)))
        return workspace.place("resnet18", on=("xeon_8490h", "l4"), links=("pcie4x16",))

    return answer


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("fleet", ["fleet", "queue", "day"]),
        ("place", ["placement", "timeline", "timeline"]),
        ("train", ["training"]),
    ],
)
def test_an_answer_draws_its_rows(name: str, figures: list[str], ask: Ask) -> None:
    drawn = draw_figures(ask(name))
    assert [one.name for one in drawn] == figures
    for one in drawn:
        assert one.table.title == find_spec(one.name).query
        assert len(one.spec["datasets"]["rows"]) == len(one.table)
        assert not {"NaN", "undefined"} & set(draw_svg(one).split())


def test_a_command_writes_a_page_that_opens_from_disk(tmp_path: Path) -> None:
    words = ["place", "resnet18", "--on", "xeon_8490h,l4", "--link", "pcie4x16", "--db", "own.duckdb", "--show=plot"]
    done = run_here([*words, "--report", "place.html"], tmp_path, {})
    assert done.returncode == 0, done.stderr
    assert "Latency per batch" in done.stdout
    page = Page((tmp_path / "place.html").read_text(encoding="utf-8"))
    assert list_addresses(page) == set()
    for text in (
        "l4 alone",
        "Placement and timeline of the subgraphs",
        f"joulemap {words[0]} resnet18",
    ):
        assert text in page.shown
    refused = run_here([*words, "--report", "place.csv"], tmp_path, {})
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "place.csv would hold a page: name it place.html" in refused.stderr
