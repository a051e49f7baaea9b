"""A report says what the queries say, is one file that asks nothing of anybody, and keeps texts what they are."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from conftest import Run
from joulemap.ask.fact import Choice
from joulemap.ask.report import ReportAnswer
from joulemap.catalog.calibration import SHIPPED, read_calibration
from joulemap.show.caveat import MOST_CAVEATS, describe_caveat, list_notes, rank_caveats
from joulemap.show.figure.figure import Figure
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.document import TRUST, WHY
from joulemap.show.present.format import write
from joulemap.show.report import (
    ENERGY_TITLE,
    FOLD,
    PARETO,
    TABLE,
)
from joulemap.show.webpage.report import Branch, Exhibit, Fold, Trees
from joulemap.system.errors import MissingPackageError
from joulemap.workspace import Workspace
from page import Page, digest, list_addresses

HOSTILE = "<script>alert(1)</script>"

NET = """
import torch
def net():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
"""


FOUR: Final = ("cpu", "gpu", "tpu", "kpu")


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> ReportAnswer:
    """resnet18 on one chip of each of four classes, one of which is not available."""
    return workspace.report("resnet18", hardware=FOUR)


@pytest.fixture(scope="module")
def page(answer: ReportAnswer) -> Page:
    """Its page."""
    return Page(answer.html())


def test_the_answer_comes_first(answer: ReportAnswer, page: Page) -> None:
    """A chip that is not available has the least energy, and the page begins with one that is."""
    compared = answer.findings[0].compare
    best, beyond = (
        next(row for row in rows if row.goal == "energy") for rows in (compared.available, compared.recommendations)
    )
    first = answer.report.decision
    assert first.startswith(f"Take {best.hardware}: ")
    assert not beyond.is_available
    assert beyond.hardware not in first
    assert page.shown.index(first) < page.shown.index(ENERGY_TITLE)
    assert page.shown.count(first.rstrip(".")) == 1
    assert page.text.index("<table") < page.text.index("<nav") < page.text.index("<figure")
    assert [label for label, _ in answer.report.reasons] == [WHY, TRUST]


def test_a_caveat_of_the_line_on_trust_is_no_note(answer: ReportAnswer) -> None:
    facts = answer.findings[0].compare.facts
    told = [one for one, _ in rank_caveats(facts)[:MOST_CAVEATS]]
    decided = facts.of(Choice)[0].runs[:2]
    notes = list_notes(facts, is_beyond_trust=True)
    assert told and len(notes) < len(list_notes(facts))
    for one in told:
        rest = [run for run in one.runs if run not in decided]
        assert describe_caveat(one, facts.runs) not in notes
        assert not rest or len(rest) == len(one.runs) or describe_caveat(one, facts.runs, rest) in notes


def test_markdown_has_the_chapters_and_their_folded_tables(answer: ReportAnswer) -> None:
    written = write(answer.document(), "markdown")
    assert written.startswith(f"# {answer.report.decision}")
    assert written.count(answer.report.decision.rstrip(".")) == 1
    assert f"## {FOLD(title=PARETO.title, fold=TABLE)}" in written


def test_a_chip_has_one_colour_and_one_shape_in_all_figures(answer: ReportAnswer) -> None:
    painted: dict[str, set[tuple[str, ...]]] = {}
    names = set()
    for figure in answer.report.figures.values():
        if figure.chips:
            names.add(figure.name)
            for channel, chip, paint in list_paints(figure):
                painted.setdefault(f"{channel} of {chip}", set()).add((paint,))
    assert {"utilization", "rooflines", "sweep"} <= names
    chips = {name.rpartition(" ")[2] for name in painted} - {""}
    assert {row.hardware for row in answer.findings[0].answered} == chips
    assert all(len(paints) == 1 for name, paints in painted.items() if name.rpartition(" ")[2])
    for channel in ("color", "shape"):
        assert len({min(painted[f"{channel} of {chip}"]) for chip in chips}) == len(chips)


def list_paints(figure: Figure) -> set[tuple[str, str, str]]:
    """(channel, chip, colour or shape) of each encoding of a figure's series."""
    paints: set[tuple[str, str, str]] = set()

    def walk(part: object) -> None:
        if isinstance(part, list):
            for one in part:
                walk(one)
        elif isinstance(part, dict):
            for channel in ("color", "shape"):
                encoding = part.get(channel)
                scale = encoding.get("scale") if isinstance(encoding, dict) else None
                if scale and scale.get("domain") == list(figure.chips):
                    chips = zip(figure.chips.values(), scale["range"], strict=True)
                    paints.update((channel, chip, paint) for chip, paint in chips)
            for name, one in part.items():
                if name != "datasets":
                    walk(one)

    walk(figure.spec)
    return paints


def test_a_fold_has_a_title_to_click_on() -> None:
    with pytest.raises(ValueError, match="title"):
        Fold(title="", blocks=())


def test_nothing_is_asked_of_a_network(page: Page) -> None:
    assert list_addresses(page) == set()
    assert page.policy["default-src"] == ["'none'"]
    allowed = {name: values for name, values in page.policy.items() if name not in ("script-src", "style-src")}
    assert allowed == {
        "default-src": ["'none'"],
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }


def test_the_policy_lets_in_the_scripts_and_the_style_of_the_page_alone(page: Page) -> None:
    packed, script = page.scripts
    assert page.policy["script-src"] == [digest(script), digest(page.vega)]
    assert page.policy["style-src"] == [digest(style) for style in page.styles]
    assert packed
    attributes = {name for _, one in page.tags for name in one}
    assert "style" not in attributes
    assert not [name for name in attributes if name.startswith("on")]


def test_every_figure_says_what_it_shows_and_what_it_is_of(answer: ReportAnswer, page: Page) -> None:
    figures = answer.report.figures
    assert figures
    drawn = {one["id"] for tag, one in page.tags if tag == "figure"}
    assert drawn == set(figures)
    for name in figures:
        told = re.search(rf'<figure id="{name}".*?</figure>', page.text, re.DOTALL)
        assert told is not None
        assert "<table" not in told[0]  # a picture or a table of the same numbers, not both
        if "data-empty" not in told[0].partition(">")[0]:
            svg = re.search(r"<svg[^>]*>", told[0])
            assert svg is not None
            assert 'role="img"' in svg[0]
            assert 'aria-label="' in svg[0]


def test_ids_are_unique(page: Page) -> None:
    names = [one["id"] for _, one in page.tags if "id" in one]
    assert len(names) == len(set(names))


def test_the_data_are_what_the_queries_say(answer: ReportAnswer, page: Page) -> None:
    compared = json.loads(json.dumps(answer.findings[0].compare.data()["rows"]))
    shown = page.table("compare.summary")
    assert shown.keys() == compared[0].keys()
    for name in shown:
        assert shown[name] == [row[name] for row in compared], name
    content = page.content
    for name, figure in answer.report.figures.items():
        table = content["tables"][content["figures"][name]["table"]]
        columns = {one["name"]: one["values"] for one in table["columns"]}
        drawn = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        wanted = find_spec(figure.name).columns
        assert [{one: row[one] for one in wanted} for row in drawn] == figure.spec["datasets"]["rows"]


def test_the_tree_adds_up_to_each_run(answer: ReportAnswer) -> None:
    finding = answer.findings[0]
    for run_id, energy_fj in {row.run_id: row.whole_energy_fj for row in finding.runs.rows}.items():
        leaves = [leaf for leaf in finding.tree if leaf.run_id == run_id]
        assert sum(leaf.energy_fj for leaf in leaves) == energy_fj
        actions = {(leaf.common_category, leaf.action): leaf.action_fj for leaf in leaves}
        assert sum(actions.values()) == energy_fj
        categories = {leaf.common_category: leaf.category_fj for leaf in leaves}
        assert sum(categories.values()) == energy_fj
    (trees,) = (block for block in answer.report.blocks if isinstance(block, Trees))
    assert len(trees.trees) == 4
    assert all(isinstance(part, Branch) for tree in trees.trees for part in tree.parts)


def test_sources_price_every_joule(answer: ReportAnswer) -> None:
    finding = answer.findings[0]
    for run_id, energy_fj in {row.run_id: row.whole_energy_fj for row in finding.runs.rows}.items():
        priced = [row for row in finding.sources if row.run_id == run_id]
        assert sum(row.energy_fj for row in priced) == energy_fj
        assert all(row.source for row in priced)


def test_a_badge_says_what_was_measured(answer: ReportAnswer) -> None:
    rows = {(row.hardware, row.quantity): row for row in answer.findings[0].accuracy}
    compared = {row.hardware: row for row in answer.findings[0].compare.rows}
    assert len(rows) == 2 * len(compared)
    for (hardware, quantity), row in rows.items():
        expected = compared[hardware]
        width = expected.latency_half_width if quantity == "latency" else expected.energy_half_width
        assert row.half_width == width
    assert rows["kpu_t256", "latency"].standing == "other classes"
    assert rows["kpu_t256", "latency"].measurement_count is None
    assert rows["h100_sxm5", "latency"].standing == "its class"


@pytest.mark.slow
def test_a_calibrated_hardware_was_scored_itself(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    run_ids = list(workspace.compare("resnet18", hardware="h200_sxm", precision="bf16", runtime="graph").scope.run_ids)
    rows = workspace.query("report.accuracy", {"run_ids": run_ids}).records()
    assert {row["standing"] for row in rows} == {"this hardware"}
    assert {row["basis"] for row in rows} == {"its calibration"}
    measured = read_calibration(SHIPPED / "h200_sxm.toml").latency_count
    assert {row["measurement_count"] for row in rows} == {measured}


def test_a_switch_is_told_what_it_switches(answer: ReportAnswer) -> None:
    exhibits = [block for block in answer.report.blocks if isinstance(block, Exhibit)]
    edp = next(one for one in exhibits if one.name == "edp")
    assert edp.chooses == "hardware"
    assert len(edp.choices) == 4
    assert len({choice.label for choice in edp.choices}) == 4


@pytest.mark.slow
def test_a_hostile_name_stays_text(joulemap: Run, tmp_path: Path) -> None:
    folder, _, name = f"{HOSTILE}.py".rpartition("/")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_text(NET)
    model = f"{HOSTILE}.py:net"
    done = joulemap("report", model, "l4", "t4", "--input", "1,3,8,8", "-o", "page.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    assert HOSTILE not in text
    page = Page(text)
    assert len(page.scripts) == 2
    assert HOSTILE in page.shown
    assert model in page.content["title"]


@pytest.mark.slow
def test_the_command_writes_the_page_and_says_how_to_make_it_again(joulemap: Run, tmp_path: Path) -> None:
    asked = ["resnet18", "l4", "t4", "--precision", "fp16", "--between", "t4,l4", "--rate", "900/s", "--p99", "9ms"]
    asked += ["--release", "--place", "workstation_rtx_4090"]
    done = joulemap("report", *asked, "-o", "out.html")
    assert done.returncode == 0, done.stderr
    assert "wrote out.html" in done.stderr
    page = Page((tmp_path / "out.html").read_text())
    assert page.content["command"] == shlex.join(["joulemap", "report", *asked])
    assert re.search(r"Take l4: it uses [0-9.]+x (?:\([^)]*\) )?less energy than t4", page.shown)
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page.text)
    assert titles[:2] == ["How many devices", "Which part where on workstation_rtx_4090"]
    assert {one["id"] for tag, one in page.tags if tag == "section"} > {"fleet", "place", "energy"}
    assert set(page.table("fleet")["hardware"]) == {"l4", "t4"}
    assert "gpu" in page.table("placements")["placement"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("resnet18", "-o", "out.json"), "out.json would hold a page: name it out.html"),
        (("resnet18", "-o", "out.PDF"), "out.PDF would hold a page: name it out.html"),
        (("resnet18", "-o", "nowhere/out.html"), "there is no folder"),
        (("resnet18", "--precision", "fp32,bf16"), "report takes one precision"),
        pytest.param(("resnet18", "--p99", "9ms"), "no request rate: add --rate 2000/s", marks=pytest.mark.wings),
        (("resnet18", "--between", "l4"), "name two chips to explain, A and B; found 1"),
    ],
)
def test_what_cannot_be_written_is_one_line(joulemap: Run, arguments: tuple[str, ...], told: str) -> None:
    done = joulemap("report", *arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_report_replaces_no_file_of_a_person(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("mine")
    done = joulemap("report", "resnet18", "l4", "-o", "page.html")
    assert done.returncode == 2
    assert done.stderr.startswith("joulemap: page.html exists, and joulemap did not write it as it is now")


@pytest.fixture
def no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as where what draws images is not installed."""

    def refuse() -> None:
        raise MissingPackageError("vl-convert-python", "plot")

    for module in ("figure.convert", "figure.figure", "webpage.page"):
        monkeypatch.setattr(f"joulemap.show.{module}.is_installed", lambda: False)
    monkeypatch.setattr("joulemap.show.figure.convert.import_converter", refuse)


@pytest.mark.slow
@pytest.mark.usefixtures("no_converter")
def test_a_page_without_what_draws_images_has_its_figures_in_characters(
    joulemap: Run, tmp_path: Path, workspace: Workspace
) -> None:
    done = joulemap("report", "mlp", "tpu_v4", "h100_sxm5", "-o", "page.html", "--db", workspace.path)
    assert done.returncode == 0, done.stderr
    assert "text charts; `pip install 'joulemap[plot]'`" in done.stderr
    text = (tmp_path / "page.html").read_text()
    figures = re.sub(r'<svg class="picture".*?</svg>', "", text)  # pictures in tables are of its own
    assert "<script" not in text and "script-src" not in text and "<svg" not in figures
    assert "Figures are drawn as text" in text and text.count("<pre aria-label=") >= 3
    assert "<td" in text and "tpu_v4" in text


@pytest.mark.slow
@pytest.mark.usefixtures("no_converter")
def test_a_plot_without_what_draws_images_is_an_svg_of_characters(joulemap: Run, tmp_path: Path) -> None:
    done = joulemap("plot", "sweep", "resnet18", "l4", "t4", "--batch", "1,8", "-o", "sweep.svg")
    assert done.returncode == 0 and "text chart" in done.stderr
    drawn = ElementTree.fromstring((tmp_path / "sweep.svg").read_text())
    assert drawn.tag.endswith("svg") and len(drawn.findall(".//{*}text")) > 5
    refused = joulemap("plot", "sweep", "resnet18", "l4", "t4", "-o", "sweep.png")
    assert refused.returncode == 2 and "pip install vl-convert-python, or 'joulemap[plot]'" in refused.stderr
    assert not (tmp_path / "sweep.png").exists()


@pytest.mark.slow
def test_the_script_of_pages_is_made_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vl-convert holds the interpreter's lock for seconds while it makes the script, and Ctrl-C would wait for it."""
    from joulemap.show.figure import convert

    monkeypatch.setattr(convert, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(convert, "import_converter", lambda: None)
    script = convert.bundle_script.__wrapped__()
    assert "vegaEmbed" in script
    assert convert.bundle_script.__wrapped__() == script
