"""Inside subgraphs: what each spends its energy on, by category and action, adds up at every level."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from blank import open_blank
from compare import assert_close
from conftest import Run
from joulemap import records
from joulemap.catalog.sheet import load_shipped
from joulemap.domain.settings import EnergyDivision, ModelDivision
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.workload import Workload
from joulemap.show.explain import title
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.store.workload import read_workload
from joulemap.system.errors import ExitCode, SqlError, UnknownNameError, UnsupportedError
from joulemap.workspace import Workspace
from ledger import FJ, Book, Part
from models import Embedded, Residual, image, trace
from tools.zoo import write_workload

ONE_OF_EACH_CLASS: dict[Precision, tuple[str, ...]] = {
    "fp32": ("xeon_8490h", "l4", "kpu_t256", "plasticine"),
    "int8": ("tpu_v4", "tda4vm_c7x_mma", "dpu_b4096_kv260", "hailo_8"),
}
"""Precision -> hardware, one of each class."""


@pytest.fixture(scope="module")
def book() -> Book:
    """10 J of three parts."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=4.0, static_j=1.0),
            Part(time_s=2.0, memory_j=3.0, static_j=1.0, pattern="linear+relu"),
            Part(time_s=1.0, control_j=1.0),
        ]
    )
    return book


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), {"run_ids": [1], **parameters}).records()


def test_categories_worked_out_by_hand(book: Book) -> None:
    rows = {(row["name"], row["category"]): row for row in ask(book, "breakdown.category")}
    assert {key: row["energy_fj"] // FJ for key, row in rows.items() if row["energy_fj"]} == {
        ("part0", "compute"): 4, ("part0", "static"): 1,
        ("part1", "memory"): 3, ("part1", "static"): 1,
        ("part2", "control"): 1,
    }  # fmt: skip
    assert_close(rows["part0", "compute"]["energy_fraction"], 0.8)
    assert_close(rows["part0", "compute"]["run_fraction"], 0.4)
    assert rows["part1", "memory"]["common_categories"] == "unit_memory"
    assert rows["part1", "memory"]["largest_action"] == "memory.act"
    common = {row["category"] for row in ask(book, "breakdown.category", is_common=True)}
    assert common == {"compute", "unit_memory", "control", "static"}


def test_one_subgraph_is_compared_with_itself(book: Book) -> None:
    rows = ask(book, "breakdown.action", subgraph="part1")
    assert [(row["component"], row["energy_fj"] // FJ) for row in rows[:2]] == [("memory", 3), ("static", 1)]
    assert {row["energy_fj"] for row in rows[2:]} == {0}
    assert {row["whole_energy_fj"] for row in rows} == {4 * FJ}
    assert ask(book, "breakdown.action", subgraph="nonsense") == []


def test_an_unknown_level_is_refused(book: Book) -> None:
    with pytest.raises(SqlError, match="is layer, expected run, subgraph or operator"):
        ask(book, "breakdown.action", level="layer")


MODELS = ["mlp", *(name for name in sorted(load_shipped()) if name != "mlp")]
SOME = list(zip(MODELS[::8], itertools.cycle(ONE_OF_EACH_CLASS)))
"""Every eighth model, with chips of four classes in turn: test_conservation adds up the columns of all of them."""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "precision"), SOME)
@pytest.mark.slow
def test_every_level_sums_to_the_run_on_every_class(model: str, precision: Precision, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "results.duckdb")
    workspace.evaluate([model], hardware=ONE_OF_EACH_CLASS[precision], precision=precision)
    rows = workspace.sql("SELECT run_id, subgraph_index, operator_index, energy_fj FROM internal.ledger_line").rows
    wholes: dict[str, dict[tuple[int, int], int]] = {"run": {}, "subgraph": {}, "operator": {}}
    for run_id, subgraph, operator, energy_fj in rows:
        for level, part in (("run", 0), ("subgraph", subgraph), ("operator", operator)):
            wholes[level][run_id, part] = wholes[level].get((run_id, part), 0) + energy_fj
    ids = sorted(run_id for run_id, _ in wholes["run"])
    refused = workspace.sql("SELECT count(*) FROM internal.run WHERE refusal IS NOT NULL").rows[0][0]
    assert ids
    assert len(ids) == 4 - refused
    for level in get_args(ModelDivision):
        for by in get_args(EnergyDivision):
            sums: dict[tuple[int, int], int] = defaultdict(int)
            for row in workspace.query(f"breakdown.{by}", {"run_ids": ids, "level": level}).records():
                sums[row["run_id"], row["part_index"]] += row["energy_fj"]
                assert row["whole_energy_fj"] == wholes["run"][row["run_id"], 0]
            assert sums == wholes[level]


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", ["energy", "latency", "edp"])
def test_an_explanation_of_one_subgraph_is_exact(workspace: Workspace, metric: records.PartMetricName) -> None:
    whole = workspace.explain("resnet18", "l4", "tpu_v4", precision="int8", metric=metric)
    name = "layer4.0.conv2"
    answer = workspace.explain("resnet18", "l4", "tpu_v4", precision="int8", metric=metric, subgraph=name)
    (own,) = [row for row in whole.subgraphs if row.name == name]
    assert answer.total.difference_fj == own.energy_difference_fj == sum(row.difference_fj for row in answer.terms)
    assert answer.total.latency_difference_fs == own.latency_difference_fs
    assert sum(row.difference_fj for row in answer.effects) == own.energy_difference_fj
    assert sum(row.difference_fj for row in answer.roles) == own.energy_difference_fj
    assert sum(row.difference_exact for row in answer.categories) == answer.difference_exact
    assert answer.total.edp_difference_exact == own.edp_difference_exact  # its part of the whole difference
    if answer.metric_terms is not None:
        assert sum(row.difference_exact for row in answer.metric_terms) == answer.difference_exact
    drawn = " ".join(text for section in answer.document().sections for text in section.texts)
    assert "do not sum" not in drawn
    assert title(answer).beside == (f"subgraph {name}",)


def test_the_difference_of_a_subgraph_names_its_largest_action(workspace: Workspace) -> None:
    answer = workspace.explain("resnet18", "l4", "tpu_v4", precision="int8")
    moved: dict[str, int] = defaultdict(int)
    for sign, hardware in ((-1, "l4"), (1, "tpu_v4")):
        parts = workspace.break_down("resnet18", hardware, precision="int8", by="action", subgraph="conv1").rows
        for row in parts:
            assert isinstance(row, records.PartAction)
            moved[f"{row.component}.{row.action}"] += sign * row.energy_fj
    (own,) = [row for row in answer.subgraphs if row.name == "conv1"]
    largest = max(moved, key=lambda name: abs(moved[name]))
    assert own.largest_action == largest
    assert_close(own.largest_difference_j, moved[largest] / 1e15)


@pytest.mark.slow
def test_a_run_as_records(workspace: Workspace) -> None:
    total = workspace.analyze("resnet18", "l4", precision="int8").total
    run = workspace.run(total.run_id)
    assert run.total == total
    assert run.workload == workspace.workload("resnet18")
    assert run.energy.energy_fj == total.energy_fj
    for one in run.subgraphs:
        parts = one.energy.by("category").values()
        assert sum(part.energy_fj for part in parts) == one.energy.energy_fj
        assert all(line.energy_fj >= 0 and line.source for line in one.energy)
        operators = {run.workload.operators[index].name for index in one.subgraph.operator_indices}
        assert {operator.operator.name for operator in one.operators} <= operators
    kept = run.energy.by("common_category")
    useful = sum(
        kept[name].energy_fj
        for name in ("compute", "off_chip_memory", "board", "unattributed", "static")
        if name in kept
    )
    assert run.energy.overhead.energy_fj == total.energy_fj - useful


def test_a_run_that_is_not_there_or_was_refused(workspace: Workspace) -> None:
    with pytest.raises(UnknownNameError, match="unknown run '9999'"):
        workspace.run(9999)
    refused = workspace.compare("resnet18", hardware=["coral", "l4"]).rows[-1]
    assert refused.status == "unsupported"
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32"):
        workspace.run(refused.run_id)


WORKLOADS = {
    "residual": trace(Residual(), image(2, 4, 8)),
    "embedded": trace(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta")),
}


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_stored_workload_is_read_as_it_was_written(workload: Workload) -> None:
    connection = open_blank()
    assert read_workload(connection, write_workload(connection, workload)) == workload


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", [("analyze", "resnet18", "tpu_v4"), ("compare", "resnet18", "tpu_v4", "l4")])
@pytest.mark.parametrize(
    ("short", "full"),
    [
        (("--by", "category"), ("--level", "subgraph", "--by", "category")),
        (("--subgraph", "conv1"), ("--level", "subgraph", "--by", "action", "--subgraph", "conv1")),
    ],
)
def test_a_division_means_that_of_subgraphs_and_looking_inside_one_means_its_actions(
    command: tuple[str, ...], short: tuple[str, ...], full: tuple[str, ...], joulemap: Run, database: Path
) -> None:
    asked = (*command, "--db", database, "--format", "json")
    done = joulemap(*asked, *short)
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout == joulemap(*asked, *full).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("analyze", "resnet18", "tpu_v4", "--level", "category", "--by", "action"), "leave out --level category"),
        (("compare", "resnet18", "--level", "summary", "--by", "action"), "leave out --level summary"),
        (("compare", "resnet18", "--level", "run", "--metric", "edp"), "leave out --metric"),
        (("compare", "resnet18", "--subgraph", "conv1", "--metric", "edp"), "leave out --metric"),
        (("compare", "resnet18", "--level", "subgraph", "--by", "action", "--metric", "latency"), "leave out --metric"),
        (("explain", "resnet18", "tpu_v4", "h100_sxm5", "--metric", "memory", "--subgraph", "conv1"), "whole run"),
    ],
)
def test_what_cannot_be_asked_of_a_subgraph(arguments: tuple[str, ...], told: str, joulemap: Run) -> None:
    done = joulemap(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert told in done.stderr


def test_amounts_are_every_division(workspace: Workspace) -> None:
    """Sums of `part_amounts` by subgraph are those of `explain`, with E x T weighed by the sums of both runs."""
    answer = workspace.explain("resnet18", "l4", "tpu_v4", metric="edp")
    total = answer.total
    asked = """
        SELECT g.name, p.amount, p.run_id, sum(p.exact) AS exact
        FROM part_amounts AS p
        JOIN runs AS r ON r.run_id = p.run_id
        JOIN internal.workload_subgraph AS g
            ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index
        WHERE p.run_id IN ($a, $b)
        GROUP BY ALL
    """
    sums = Counter[tuple[str, str, int]]()
    for row in workspace.sql(asked, {"a": total.run_a, "b": total.run_b}).rows:
        sums[row[0], row[1], row[2]] = row[3]
    whole = {kind: sum(exact for key, exact in sums.items() if key[1] == kind) for kind in ("energy", "time")}
    assert whole == {
        "energy": total.energy_a_fj + total.energy_b_fj,
        "time": total.latency_a_fs + total.latency_b_fs,
    }
    for row in answer.subgraphs:
        energy, time = (sums[row.name, kind, total.run_b] - sums[row.name, kind, total.run_a] for kind in whole)
        assert energy * whole["time"] + time * whole["energy"] == row.edp_difference_exact
