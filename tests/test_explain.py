"""Why two runs differ: every decomposition sums to the difference exactly, and sentences follow from terms."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from compare import assert_close
from conftest import Run
from joulemap.answer.explain.answer import ExplainAnswer
from joulemap.catalog.sheet import find_notes, load_notes
from joulemap.domain.configuration import Precision
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.plan.catalogue import known_hardware
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import SqlError, UnsupportedError
from joulemap.workspace import Workspace
from ledger import FJ, FS, Book, Part
from sample import thin


@pytest.fixture
def book() -> Book:
    """A: 10 J in 4 s of three parts; B: 11 J in 5 s, where the second part is bound by memory, not by compute."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=4.0, static_j=1.0, mac_count=10, executed_mac_count=100.0),
            Part(time_s=2.0, memory_j=4.0, launch_s=0.5, mac_count=10, executed_mac_count=30.0),
            Part(time_s=1.0, control_j=1.0, launch_s=1.0),
        ],
        hardware="a",
    )
    book.add_run(
        [
            Part(time_s=2.0, compute_j=6.0, static_j=1.0, mac_count=10, executed_mac_count=200.0),
            Part(time_s=1.5, memory_j=2.0, launch_s=0.5, compute_s=0.5, memory_s=1.0, dram_bytes=8.0),
            Part(time_s=1.5, control_j=2.0, launch_s=1.5),
        ],
        hardware="b",
    )
    return book


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), {"run_a": 1, "run_b": 2, **parameters}).records()


def test_a_latency_worked_out_by_hand(book: Book) -> None:
    rows = {(row["place"], row["term"]): row for row in ask(book, "explain.latency")}
    # part 0 goes from 100 slots in 1 s to 200 in 2 s: the same 10 ms a slot, so all of it is count
    assert rows["compute", "count"]["difference_exact"] == FS
    # part 1 computes 1.5 s on a, and waits 1 s for memory on b
    assert rows["compute", "only in A"]["difference_exact"] == -1.5 * FS
    assert rows["memory", "only in B"]["difference_exact"] == FS
    # the launches of parts 1 and 2 take 0.5 + 1 s against 0.5 + 1.5 s
    assert rows["launch", "price"]["difference_exact"] == 0.5 * FS
    assert set(rows) == {("compute", "count"), ("compute", "only in A"), ("memory", "only in B"), ("launch", "price")}
    assert rows["launch", "price"]["price_b"] == 1.0


def test_an_edp_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "explain.subgraph", metric="edp")
    # dE (T_A + T_B) + dT (E_A + E_B) with T = 4 and 5 s, E = 10 and 11 J: part 0 2 x 9 + 1 x 21, part 1 -2 x 9 - 10.5
    assert {row["name"]: row["edp_difference_exact"] for row in rows} == {
        "part0": 39 * FJ * FS,
        "part1": -int(28.5 * FJ) * FS,
        "part2": int(19.5 * FJ) * FS,
    }
    (total,) = ask(book, "explain.total")
    # 2 x (11 x 5 - 10 x 4)
    assert total["edp_difference_exact"] == 30 * FJ * FS
    assert_close(sum(row["difference"] for row in rows), 15.0, rel=1e-15)


def test_a_metric_that_does_not_exist_is_refused(book: Book) -> None:
    with pytest.raises(SqlError, match="expected energy, latency, edp or memory"):
        ask(book, "explain.subgraph", metric="beauty")


@pytest.mark.parametrize("pair_count", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_every_decomposition_sums_to_the_difference(pair_count: int, database: Path) -> None:
    connection = duckdb.connect(str(database), read_only=True)
    ids = [row[0] for row in connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()]
    pairs = random.Random(7).sample(list(itertools.permutations(ids, 2)), pair_count)
    for run_a, run_b in pairs:
        sides = {"run_a": run_a, "run_b": run_b}

        def rows(name: str, **more: object) -> list[dict[str, Any]]:
            return run_query(connection, find_query(name), {**sides, **more}).records()  # noqa: B023

        (total,) = rows("explain.total")
        for name, column, whole in (
            ("energy", "difference_fj", "difference_fj"),
            ("effect", "difference_fj", "difference_fj"),
            ("category", "difference_fj", "difference_fj"),
            ("latency", "difference_exact", "latency_difference_fs"),
            ("edp", "difference_exact", "edp_difference_exact"),
            ("memory", "difference_exact", "memory_difference_bytes"),
        ):
            assert sum(row[column] for row in rows(f"explain.{name}")) == total[whole], (name, run_a, run_b)
        parts = rows("explain.subgraph")
        assert sum(row["energy_difference_fj"] for row in parts) == total["difference_fj"]
        assert sum(row["latency_difference_fs"] for row in parts) == total["latency_difference_fs"]
        assert sum(row["edp_difference_exact"] for row in parts) == total["edp_difference_exact"]
        prices = sum(row["moved_fj"] or 0 for row in rows("run.constant"))
        effects = {row["effect"]: row["difference_fj"] for row in rows("explain.effect")}
        assert prices == effects["price"] + effects["static power"], (run_a, run_b)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("explain") / "results.duckdb")


CASES = [
    ("resnet18", "xeon_8490h", "h100_sxm5", "fp32"),
    ("vit_b_16", "h100_sxm5", "tpu_v4", "bf16"),
    ("mobilenet_v2", "coral", "hailo_8", "int8"),
    ("swin_t", "kpu_t256", "gaudi2", "bf16"),
    ("squeezenet1_1", "tda4vm_c7x_mma", "dpu_b4096_kv260", "int8"),
    ("attention_head", "plasticine", "xeon_8490h", "fp32"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("metric", thin(PART_METRICS, 4))
@pytest.mark.parametrize(("model", "a", "b", "precision"), CASES, ids=lambda case: str(case))
def test_sentences_say_what_the_numbers_say(
    model: str, a: str, b: str, precision: Precision, metric: PartMetricName, workspace: Workspace
) -> None:
    answer = workspace.explain(model, a, b, metric=metric, precision=precision)
    lines = answer.sentences()
    value_a, value_b = answer.values
    word = "less" if value_b < value_a else "more" if value_b > value_a else "exactly as much"
    assert f" needs {word} " in lines[0]
    if metric == "energy":
        _check_effects(answer, lines)
    else:
        exact = sum(term.difference_exact for term in answer.metric_terms or ())
        scale = {"latency": 1e15, "edp": 2e30, "memory": 1.0}[metric]
        if exact:
            assert_close(exact / scale, value_b - value_a, rel=1e-6)


def _check_effects(answer: ExplainAnswer, lines: Sequence[str]) -> None:
    """Every effect of at least a hundredth has its sentence, and stands on the side that it works for."""
    told = [row for row in answer.effects if abs(row.share_fraction or 0.0) >= 0.01]
    assert len([line for line in lines if re.search(r"\([+-]", line)]) == len(told)
    against = [row for row in told if (row.share_fraction or 0.0) < 0.0]
    assert sum(line.startswith("against that") for line in lines) == len(against)
    assert any("most of it, " in line for line in lines) == (
        len(told) - len(against) > 1
        and 0.5 < max(row.share_fraction or 0.0 for row in told if (row.share_fraction or 0.0) > 0.0) <= 1.0
        and max(told, key=lambda row: row.share_fraction or 0.0).effect
        == max((row for row in told if row not in against), key=lambda row: abs(row.difference_fj)).effect
    )


def test_a_run_against_itself_has_nothing_to_say(workspace: Workspace) -> None:
    for metric in PART_METRICS:
        answer = workspace.explain("resnet18", "tpu_v4", "tpu_v4", metric=metric)
        assert "exactly as much" in answer.sentences()[0]
        assert not any(term.difference_exact for term in answer.metric_terms or ())
        assert answer.terms.rows == ()


def test_what_cannot_run_is_its_reason(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32"):
        workspace.explain("resnet18", "coral", "tpu_v4", metric="latency")


def test_every_class_has_its_notes() -> None:
    classes = {entry.architecture for entry in known_hardware().values()}
    topics = {"principle", "instruction fetch", "coherence", "data movement"}
    for name in classes:
        assert {note.topic for note in find_notes((name,))} == topics
    assert len(load_notes()) == len(topics) * len(classes)
    assert all(note.source for note in load_notes())


def as_cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("options", "table"),
    [
        (("--metric", "latency"), "terms"),
        (("--metric", "edp"), "terms"),
        (("--metric", "memory", "--level", "subgraph"), "subgraphs"),
        (("--level", "category"), "categories"),
    ],
)
def test_json_and_csv_hold_the_same_cells(options: tuple[str, ...], table: str, joulemap: Run, database: Path) -> None:
    asked = ("explain", "resnet18", "h100_sxm5", "tpu_v4", *options, "--db", database)
    document = json.loads(joulemap(*asked, "--format", "json").stdout)
    cells = list(csv.DictReader(io.StringIO(joulemap(*asked, "--format", "csv").stdout)))
    assert [{name: as_cell(value) for name, value in row.items()} for row in document[table]] == cells
    drawn = joulemap(*asked, "--format", "markdown").stdout
    assert "## Why" in drawn
    assert "NOT EXACT" not in drawn
    deeper = ["explain"] if "memory" in options else ["explain", "explain"]
    assert [step.split()[1] for step in document["next_steps"]] == [*deeper, "sweep"]


def test_a_difference_of_runs_is_exact_in_every_part(joulemap: Run, database: Path) -> None:
    document = json.loads(joulemap("db", "diff", 1, 2, "--format", "json", "--db", database).stdout)
    total = document["total"]
    assert sum(row["difference_fj"] for row in document["effects"]) == total["difference_fj"]
    assert sum(row["difference_exact"] for row in document["delays"]) == total["latency_difference_fs"]
    assert [row["effect"] for row in document["effects"]] == [
        "only in A", "only in B", "count", "price", "time", "static power",
    ]  # fmt: skip
    cells = list(csv.DictReader(io.StringIO(joulemap("db", "diff", 1, 2, "-f", "csv", "--db", database).stdout)))
    assert [{name: as_cell(value) for name, value in row.items()} for row in document["constants"]] == cells
    assert "NOT EXACT" not in joulemap("db", "diff", 1, 2, "--db", database).stdout


def test_records_are_typed(workspace: Workspace) -> None:
    answer = workspace.explain("resnet18", "tpu_v4", "kpu_t256", metric="edp")
    assert answer.total.record()["run_a"] != answer.total.run_b
    assert answer.total.edp_a_js == answer.total.energy_a_j * answer.total.latency_a_s
