"""Why two runs differ: every decomposition sums to the difference exactly, and sentences follow from terms."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest

from cell import assert_cells
from compare import assert_close
from conftest import Run
from joulemap.ask.answer import RunAnswer
from joulemap.ask.explain import ExplainAnswer
from joulemap.catalog.chip import load_class
from joulemap.catalog.event import load_roles, resolve_roles
from joulemap.catalog.load import load_catalogue
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.role import ROLES
from joulemap.show.pair import SUM
from joulemap.show.present.cell import is_tied
from joulemap.show.present.document import Grid
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import CatalogueError, ExitCode, UsageError
from joulemap.workspace import Workspace
from ledger import FJ, FS, Book, Part
from sample import thin


@pytest.fixture(scope="module")
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


def test_a_run_and_a_pair_divide_time_alike(book: Book) -> None:
    for run_id, side in ((1, "a"), (2, "b")):
        spent: dict[str, int] = {}
        for row in ask(book, "explain.delay"):
            spent[row["resource"]] = spent.get(row["resource"], 0) + row[f"spent_{side}_fs"]
        alone = run_query(book.connection, find_query("analyze.bottleneck"), {"run_id": run_id}).records()
        (whole,) = run_query(book.connection, find_query("utilization.summary"), {"run_ids": [run_id]}).records()
        for row in alone:
            assert row["latency_fs"] == spent.get(row["bottleneck"], 0)
            assert_close(row["latency_fraction"], whole[f"{row['bottleneck']}_time_fraction"])


def test_a_latency_worked_out_by_hand(book: Book) -> None:
    rows = {(row["contributor"], row["term"]): row for row in ask(book, "explain.latency")}
    # part 0 goes from 100 slots in 1 s to 200 in 2 s: the same 10 ms a slot, so all of it is count
    assert rows["compute", "count"]["difference_exact"] == FS
    # part 1 computes 1.5 s on a, and waits 1 s for memory on b
    assert rows["compute", "only in A"]["difference_exact"] == -1.5 * FS
    assert rows["memory", "only in B"]["difference_exact"] == FS
    # the launches of parts 1 and 2 take 0.5 + 1 s against 0.5 + 1.5 s
    assert rows["launch", "price"]["difference_exact"] == 0.5 * FS
    assert set(rows) == {("compute", "count"), ("compute", "only in A"), ("memory", "only in B"), ("launch", "price")}
    assert rows["launch", "price"]["price_b"] == 1.0


def test_extra_passes_are_memory_time_worked_out_by_hand() -> None:
    book = Book()
    # 0.5 s of launch and 1 s of computing on both; a pass of 100 bytes takes 0.5 s on a, 2 s on b
    for hardware, pass_s in (("a", 0.5), ("b", 2.0)):
        part = Part(
            time_s=1.5 + pass_s, launch_s=0.5, pass_s=pass_s, pass_bytes=100.0, compute_j=1.0, executed_mac_count=10.0
        )
        book.add_run([part], hardware=hardware)
    rows = {row["category"]: row for row in ask(book, "explain.category", metric="latency")}
    assert {name: (row["spent_a"], row["spent_b"]) for name, row in rows.items()} == {
        "memory": (0.5, 2.0),
        "compute": (1.0, 1.0),
        "launch": (0.5, 0.5),
    }
    (term,) = ask(book, "explain.latency")
    assert (term["contributor"], term["term"], term["count_a"], term["price_b"]) == ("memory", "price", 100.0, 0.02)
    places = run_query(book.connection, find_query("run.allocation"), {"run_id": 2}).records()
    assert [(row["pass_s"], row["bottleneck"]) for row in places] == [(2.0, "memory")]
    totals = run_query(book.connection, find_query("edp.total"), {"run_id": 2}).records()[0]
    # half the shares of time: 0.5 of 3.5 s for the launch, 2 for memory, 1 for computing, which takes all the energy
    assert_close(totals["control_share_fraction"], 0.5 / 3.5 / 2)
    assert_close(totals["memory_share_fraction"], 2 / 3.5 / 2)
    assert_close(totals["compute_share_fraction"], (1 + 1 / 3.5) / 2)


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
    assert_close(sum(row["difference"] for row in rows), 15.0)


def test_acts_of_one_role_are_paired_whatever_they_are_called(book: Book) -> None:
    write = book.connection.execute
    write(
        "INSERT INTO internal.action VALUES (9, 'any', 'array', 'compute', 'array', 'mac', 'compute', 'pair of MACs')"
    )
    write(
        "INSERT INTO internal.energy_per_action "
        "VALUES ('b', 9, 1e15, NULL, NULL, 'assumed', 's', 'f', 9, NULL, NULL, NULL)"
    )
    for table in ("ledger_line", "run_action"):
        write(f"UPDATE internal.{table} SET action_id = 9 WHERE run_id = 2 AND action_id = 1")
    unpaired = {row["role"]: row for row in ask(book, "explain.role")}
    assert unpaired["compute.act"]["difference_fj"] == -4 * FJ
    assert not unpaired["array.mac"]["is_shared"]
    write(
        "INSERT INTO internal.action_role VALUES "
        "('any', 'compute', 'act', 'mac', 1, '', ''), ('any', 'array', 'mac', 'mac', 2, 'w', '')"
    )
    (row,) = [row for row in ask(book, "explain.role") if row["role"] == "mac"]
    # 4 MACs at 1 J against 6 pairs at 1 J, 12 at 0.5 J: 8 more at the mean of 0.75 J, and the rest is the price
    assert (row["count_a"], row["count_b"], row["price_a_j"], row["price_b_j"]) == (4.0, 12.0, 1.0, 0.5)
    assert (row["by_count_fj"], row["by_price_fj"]) == (6 * FJ, -4 * FJ)
    assert (row["way_a"], row["way_b"], row["is_shared"]) == ("", "w", True)
    categories = {row["category"]: row for row in ask(book, "explain.category")}
    assert categories["compute"]["spent_b_exact"] == 6 * FJ
    assert categories["on_chip_memory"]["by_price_exact"] == 0


def test_energy_and_time_make_up_an_edp(book: Book) -> None:
    rows = {(row["quantity"], row["category"]): row for row in ask(book, "explain.category", metric="edp")}
    # T = 4 and 5 s, E = 10 and 11 J: compute 2 J more x 9 s, computing 0.5 s less x 21 J
    assert rows["energy", "compute"]["difference_exact"] == 18 * FJ * FS
    assert rows["time", "compute"]["difference_exact"] == -int(10.5 * FJ) * FS
    assert sum(row["difference_exact"] for row in rows.values()) == 30 * FJ * FS


def test_the_purposes_of_a_pass_worked_out_by_hand(book: Book) -> None:
    change = "UPDATE internal.workload_operator SET {} WHERE operator_index = {}"
    book.connection.execute("BEGIN TRANSACTION")
    book.connection.execute(change.format("name = 'lm_head'", 0))
    book.connection.execute(change.format("kind = 'matmul', aten = 'aten.scaled_dot_product_attention.default'", 1))
    book.connection.execute(change.format("kind = 'communication', aten = 'all_reduce'", 2))
    book.connection.execute("UPDATE internal.action SET common_category = 'off_chip_memory' WHERE part = 'memory'")
    book.connection.execute("INSERT INTO internal.action_role VALUES ('any', 'control', 'act', 'launch', 1, '', '')")
    rows = {row["purpose"]: row for row in ask(book, "explain.purpose")}
    energies = {name: (row["energy_a_j"], row["energy_b_j"]) for name, row in rows.items()}
    # what is read for attention is the cache's, what control takes the host's, whatever it is done for
    spent = {"logits": (4.0, 6.0), "cache": (4.0, 2.0), "host": (1.0, 2.0), "static": (1.0, 1.0)}
    assert energies == {**spent, "attention": (0.0, 0.0)}  # communication is all start
    times = {name: (row["latency_a_s"], row["latency_b_s"]) for name, row in rows.items()}
    # attention takes 2 s on a, a start of 0.5 and computing; on b 1.5 s, a start of 0.5 and memory: the cache
    assert times["attention"] == (1.5, 0.0)
    assert times["cache"] == (0.0, 1.0)
    assert times["host"] == (1.5, 2.0)
    assert times["logits"] == (1.0, 2.0)
    assert sum(row["latency_difference_fs"] for row in rows.values()) == FS
    assert sum(row["energy_difference_fj"] for row in rows.values()) == FJ
    (alone,) = (row for row in ask(book, "explain.purpose", subgraph="part0") if row["purpose"] == "logits")
    book.connection.execute("ROLLBACK")
    assert (alone["energy_a_fj"], alone["latency_b_fs"]) == (4 * FJ, 2 * FS)


def test_every_action_of_every_hardware_has_a_role() -> None:
    roles = {(one.architecture, one.component, one.action): one for one in load_roles()}
    categories: dict[str, set[str]] = {}
    for hardware in load_catalogue().hardware.values():
        for action in hardware.reference:
            role = roles[hardware.architecture, *action.key]
            category = action.common_category.replace("unit_memory", "on_chip").replace("chip_memory", "on_chip")
            categories.setdefault(role.role, set()).add(category)
    assert {name: several for name, several in categories.items() if len(several) > 1} == {}
    assert ROLES.keys() - categories.keys() <= {"busy_cycle", "busy_memory", "clock", "standby", "host", "host_static"}
    for architecture in {one.architecture for one in roles.values()}:
        counted = {one.role for one in roles.values() if one.architecture == architecture and one.amount}
        assert counted >= {"mac", "operand", "memory_read", "memory_write", "transport", "instruction", "static"}
        ways = {one.role for one in roles.values() if one.architecture == architecture and one.way}
        assert ways >= {"mac", "operand", "memory_read", "memory_write", "transport", "instruction"}


def test_a_way_of_no_role_is_refused() -> None:
    shared = load_class("kpu", "a test")
    with pytest.raises(CatalogueError, match=r"kpu\.toml: ways: no action of the class has the role launch"):
        list(resolve_roles(attrs.evolve(shared, ways={**shared.ways, "launch": "start"})))


@pytest.mark.parametrize("pair_count", [1, pytest.param(40, marks=pytest.mark.slow)])
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
            ("role", "difference_fj", "difference_fj"),
            ("latency", "difference_exact", "latency_difference_fs"),
            ("edp", "difference_exact", "edp_difference_exact"),
            ("memory", "difference_exact", "memory_difference_bytes"),
        ):
            assert sum(row[column] for row in rows(f"explain.{name}")) == total[whole], (name, run_a, run_b)
        for metric, whole in (
            ("energy", "difference_fj"),
            ("latency", "latency_difference_fs"),
            ("edp", "edp_difference_exact"),
        ):
            categories = rows("explain.category", metric=metric)
            assert sum(row["difference_exact"] for row in categories) == total[whole], (metric, run_a, run_b)
        parts = rows("explain.subgraph")
        assert sum(row["energy_difference_fj"] for row in parts) == total["difference_fj"]
        assert sum(row["latency_difference_fs"] for row in parts) == total["latency_difference_fs"]
        assert sum(row["edp_difference_exact"] for row in parts) == total["edp_difference_exact"]
        prices = sum(row["moved_fj"] or 0 for row in rows("run.constant"))
        effects = {row["effect"]: row["difference_fj"] for row in rows("explain.effect")}
        assert prices == effects["price"] + effects["static power"], (run_a, run_b)


def test_a_difference_of_runs_is_exact_in_every_part(joulemap: Run, database: Path) -> None:
    document = json.loads(joulemap("db", "diff", 1, 2, "--format", "json", "--db", database).stdout)
    total = document["total"]
    assert sum(row["difference_fj"] for row in document["effects"]) == total["difference_fj"]
    assert sum(row["difference_exact"] for row in document["delays"]) == total["latency_difference_fs"]
    assert [row["effect"] for row in document["effects"]] == [
        "only in A", "only in B", "count", "price", "time", "static power",
    ]  # fmt: skip
    assert_cells(joulemap("db", "diff", 1, 2, "-f", "csv", "--db", database).stdout, document["constants"])
    shown = joulemap("db", "diff", 1, 2, "--db", database, "--show=details").stdout
    assert "do not sum" not in shown
    assert all(one in shown for one in ("Settings that differ", "Constants that differ", SUM, "exact"))
    gone = joulemap("db", "diff", 1, 99_999, "--db", database)
    assert (gone.returncode, "unknown run '99999'" in gone.stderr) == (ExitCode.UNKNOWN_NAME, True)


def test_a_difference_with_a_run_of_totals_only_names_the_command_of_its_ledger(joulemap: Run, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "results.duckdb")
    workspace.compare("resnet18", hardware="l4")
    workspace.sweep("resnet18", hardware="t4", batch=2)
    runs = {batch: run for run, batch in workspace.sql("SELECT run_id, batch FROM runs ORDER BY run_id").rows}
    with pytest.raises(UsageError, match="totals only: `joulemap analyze"):
        workspace.difference(runs[1], runs[2])


@pytest.mark.slow
def test_slower_computing_of_a_subgraph_has_a_cause(workspace: Workspace) -> None:
    """48 tiles keep 48 SMs of either board busy, so that the units are slower; there are more on another shape."""
    answer = workspace.explain("vit_b_16", "h100_pcie", "l4", metric="latency", subgraph="conv_proj")
    total = answer.total
    assert (total.units_used_a, total.units_used_b, total.units_total_a, total.units_total_b) == (48, 48, 114, 58)
    assert "on l4 (48/58 SMs)" in answer.document().insights[0]
    assert workspace.explain("vit_b_16", "h100_pcie", "l4", metric="latency").total.units_used_a is None


def test_passes_of_an_mxu_are_told_from_macs_and_a_tie_has_no_shares(workspace: Workspace) -> None:
    answer = workspace.explain("resnet18", "tpu_v4", "orin_nx", matmul_precision="highest")
    total = answer.total
    assert total.mac_count_a == total.mac_count_b
    (macs,) = [row for row in answer.roles if row.role == "mac"]
    # six bf16 passes per fp32 MAC
    assert_close(macs.count_a / total.mac_count_a, 6.0, rel=1e-3)
    tied = workspace.explain("resnet50", "b200_sxm", "a100_sxm_80gb")
    assert is_tied(tied.probability)
    (grid, *_) = tied.document().sections[0].blocks
    assert isinstance(grid, Grid) and "share" not in grid.headings


def shares_of(answer: RunAnswer) -> Iterator[tuple[str, str, list[float]]]:
    """Return (table, column, shares) of every column of an answer that states shares of a whole."""
    for name, table in answer.own_tables.items():
        for column in table.columns:
            if column.name.endswith(("difference_fraction", "share_fraction")):
                yield name, column.name, [one for row in table if (one := getattr(row, column.name)) is not None]


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", thin(PART_METRICS, 2))
@pytest.mark.slow
def test_shares_add_up_to_one_difference_at_every_level(metric: PartMetricName, workspace: Workspace) -> None:
    """A share is of the whole difference, so that a part has the same share wherever it is a row."""
    answers = [
        workspace.explain("resnet18", "tpu_v4", "kpu_t256", metric=metric),
        workspace.explain("resnet18", "l4", "t4", metric=metric),
        workspace.fusion("mlp", "l4"),
        workspace.compare("mlp", hardware=("l4", "t4", "tpu_v4")),
    ]
    seen = set()
    for answer in answers:
        for table, column, shares in shares_of(answer):
            seen.add(table)
            if isinstance(answer, ExplainAnswer) and table in ("categories", "roles", "effects", "subgraphs"):
                assert not shares or math.isclose(math.fsum(shares), 1.0, rel_tol=1e-9), (table, column)
    assert {"categories", "roles"} <= seen
