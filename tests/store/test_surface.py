"""The promised views: what is shown of a database, views of one's own beside it, prices of all that ledgers have."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import duckdb
import pytest

from conftest import Run
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.store.surface import load_surface
from joulemap.workspace import Workspace


def test_the_tables_that_are_shown_are_the_promise(joulemap: Run, database: Path) -> None:
    shown = [one["name"] for one in json.loads(joulemap("sql", "SHOW TABLES", "-f", "json", "--db", database).stdout)]
    page = (Path(__file__).parents[2] / "docs/sql.md").read_text()
    assert shown == sorted(re.findall(r"^CREATE VIEW (\w+)", load_surface().sql, re.MULTILINE))
    assert [name for name in shown if f"`{name}`" not in page] == []
    elsewhere = "SELECT table_name FROM duckdb_tables() WHERE schema_name <> 'internal'"
    assert Workspace(database).sql(elsewhere).rows == ()


@pytest.mark.parametrize("schema", ["", pytest.param("main.", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_view_of_ones_own_stands_beside_the_results(schema: str, database: Path, tmp_path: Path) -> None:
    """As `joulemap sql --help` says it: each view answers there as it does in the file itself."""
    mine = tmp_path / "mine.duckdb"
    attach = f"ATTACH '{database}' AS results (READ_ONLY)"
    views = re.findall(r"^CREATE VIEW (\w+)", load_surface().sql, re.MULTILINE)
    with contextlib.closing(duckdb.connect(str(mine))) as connection:
        connection.execute(attach)
        connection.execute(
            f"CREATE VIEW light AS SELECT hardware, energy_j FROM results.{schema}runs WHERE energy_j < 0.1"
        )
    with contextlib.closing(duckdb.connect(str(mine))) as connection:
        connection.execute(attach)
        light = connection.execute("FROM light ORDER BY ALL").fetchall()
        counts = {view: connection.execute(f"SELECT count(*) FROM results.{view}").fetchall() for view in views}
    here = Workspace(database)
    assert light == list(here.sql("SELECT hardware, energy_j FROM runs WHERE energy_j < 0.1 ORDER BY ALL").rows)
    assert light
    assert counts == {view: list(here.sql(f"SELECT count(*) FROM {view}").rows) for view in views}


@pytest.mark.slow
def test_every_action_of_every_class_has_its_price_in_the_reference(tmp_path: Path) -> None:
    """By the version that the run used; and, for a run where nothing else was asked, among the current ones."""
    workspace = Workspace(tmp_path / "all.duckdb")
    usual = [*CLASS_HARDWARE.values(), "hailo_8", "h100_sxm5"]
    workspace.evaluate(["resnet18"], hardware=usual, precision="int8")
    workspace.evaluate(["mobilenet_v2"], hardware=usual, batch=[8], precision="fp32", runtime="graph")
    asked = """
        SELECT r.architecture, count(*), count(e.hardware), bool_and(e.energy_per_action_j = l.energy_per_action_j)
        FROM energy_ledger AS l
        JOIN runs AS r ON r.run_id = l.run_id
        LEFT JOIN energy_reference AS e ON {key} AND e.component = l.component AND e.action = l.action
        GROUP BY r.architecture
    """
    for key in ("e.hardware_digest = r.hardware_digest", "e.hardware = r.hardware AND e.is_current"):
        rows = workspace.sql(asked.format(key=key)).rows
        assert {row[0] for row in rows} == set(CLASS_HARDWARE)
        assert all(lines == priced and is_same for _, lines, priced, is_same in rows), rows
    doubled = (
        "SELECT hardware FROM energy_reference WHERE is_current "
        "GROUP BY hardware, component, action HAVING count(*) > 1"
    )
    assert workspace.sql(doubled).rows == ()


def test_a_price_stands_beside_the_one_that_the_hardware_is_described_with(database: Path) -> None:
    """The H100 inherits the scales of the H200 that was measured; a chip priced at its board keeps its own."""
    statement = (
        "SELECT min(energy_per_action_j / described_energy_per_action_j), "
        "max(energy_per_action_j / described_energy_per_action_j), count(*) - count(described_energy_per_action_j) "
        "FROM energy_reference WHERE is_current AND hardware = $hardware AND common_category NOT IN ('static', 'board')"
    )
    workspace = Workspace(database)
    ((low, high, unknown),) = workspace.sql(statement, {"hardware": "h100_sxm5"}).rows
    prices = workspace.sql(
        "SELECT value / default_value AS ratio FROM calibration_coefficients "
        "WHERE hardware = 'h200_sxm' AND part = 'energy' ORDER BY ratio"
    ).rows
    assert (low, high) == pytest.approx((prices[0][0], prices[-1][0]), rel=1e-4, abs=0)
    assert unknown == 0
    assert workspace.sql(statement, {"hardware": "a100_sxm4_80gb"}).rows == ((1.0, 1.0, 0),)


def test_the_residual_of_a_host_does_not_follow_the_voltage_of_the_chip(database: Path) -> None:
    action = "unattributed_product_cycle"
    statement = (
        f"SELECT voltage_factor_of(one, one, '{action}', 0.5) FROM unnest(['host', 'board', 'compute']) AS t(one)"
    )
    assert Workspace(database).sql(statement).rows == ((1.0,), (0.5,), (0.5,))


@pytest.mark.slow
def test_what_no_unit_takes_says_which_other_does(tmp_path: Path) -> None:
    """A depthwise convolution of a TPU v4 is its vector unit's, one for each of two cores; no MXU has a line of it."""
    workspace = Workspace(tmp_path / "units.duckdb")
    workspace.evaluate(["mobilenet_v2"], hardware=["tpu_v4", "xeon_8490h"], precision="int8")
    rows = workspace.sql("""
        SELECT s.hardware, s.unit_name, s.units_used_count, s.units_total_count, count(*) AS n,
            bool_or(l.component = 'mxu') AS has_mxu
        FROM subgraph_results AS s
        JOIN energy_ledger AS l ON l.run_id = s.run_id AND l.subgraph_index = s.subgraph_index
        GROUP BY s.run_id, s.hardware, s.subgraph_index, s.unit_name, s.units_used_count, s.units_total_count
    """).rows
    assert all(used > 0 for _, _, used, _, _, _ in rows)
    tpu = [row for row in rows if row[0] == "tpu_v4"]
    assert {name for _, name, *_ in tpu} == {"MXU", "vector unit"}
    assert all(has_mxu == (name == "MXU") for _, name, _, _, _, has_mxu in tpu)
    assert {(used, total) for _, name, used, total, _, _ in tpu if name == "vector unit"} == {(2, 2)}
    assert {name for hardware, name, *_ in rows if hardware == "xeon_8490h"} == {"core"}
    ((run_id,),) = workspace.sql("SELECT run_id FROM runs WHERE hardware = 'tpu_v4'").rows
    shown = workspace.query("run.allocation", {"run_id": run_id}).records()
    listed = workspace.sql(
        "SELECT unit_name, units_used_count, units_total_count FROM subgraph_results WHERE run_id = $run "
        "ORDER BY subgraph_index",
        {"run": run_id},
    ).rows
    assert [(one["unit_name"], one["units_used_count"], one["units_total_count"]) for one in shown] == list(listed)
