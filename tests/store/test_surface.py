"""The promised views: what is shown of a database, views of one's own beside it, prices of all that ledgers have."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import duckdb
import pytest

from compare import assert_close
from conftest import Run
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


def test_static_power_is_its_parts_and_only_a_measured_step_is_known(database: Path) -> None:
    """On each chip; an H200 idles at 73.65 W, measured, and the rest is its running clocks."""
    workspace = Workspace(database)
    wrong = """SELECT p.hardware FROM static_parts AS p JOIN hardware_facts AS f USING (hardware_digest)
        WHERE f.quantity = 'static_power' GROUP BY p.hardware, p.hardware_digest, f.value
        HAVING abs(sum(p.power_w) / f.value - 1.0) > 1e-12 OR min(p.power_w - p.low_w) < -1e-12
            OR min(p.high_w - p.power_w) < -1e-12 OR max(p.high_w) > f.value"""
    assert workspace.sql(wrong).rows == ()
    ((clocks, low, high, whole),) = workspace.sql(
        """SELECT p.power_w, p.low_w, p.high_w, f.value FROM static_parts AS p
        JOIN hardware_facts AS f USING (hardware_digest) WHERE f.quantity = 'static_power' AND p.is_current
        AND p.basis <> 'split' AND p.hardware = 'h200_sxm'"""
    ).rows
    assert_close(clocks, whole - 73.65)
    assert_close(low, clocks)
    assert_close(high, clocks)
