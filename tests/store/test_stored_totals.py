"""Runs that are stored as totals, and their ledgers when a question reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from joulemap.domain.settings import Settings
from joulemap.store.check import check_database
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.workspace import Workspace

CHIPS = ("l4", "xeon_8490h")
ASKED = Settings(hardware=CHIPS, precision=("fp32",), batch=(1,))
FIGURES = (
    "SELECT hardware, energy_j, latency_s, energy_low_j, latency_low_s, bandwidth_utilization_fraction, "
    "units_used_count FROM runs ORDER BY hardware"
)
LEDGER = (
    "SELECT hardware, operator_index, component, action, action_count, line_energy_fj FROM energy_ledger ORDER BY ALL"
)


@pytest.fixture(scope="module")
def stored_points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the runs as totals."""
    path = tmp_path_factory.mktemp("points") / "points.duckdb"
    Workspace(path).pareto("resnet_block", ASKED)
    return path


@pytest.fixture(scope="module")
def stored_ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the runs with their ledgers; never written by a test."""
    path = tmp_path_factory.mktemp("ledgers") / "ledgers.duckdb"
    Workspace(path).compare("resnet_block", ASKED)
    return path


@pytest.fixture
def points(stored_points: Path, tmp_path: Path) -> Path:
    """A copy of the runs as totals, which the test may change."""
    return Path(shutil.copy(stored_points, tmp_path / "points.duckdb"))


def _flags(workspace: Workspace) -> list[tuple[object, ...]]:
    return [tuple(row) for row in workspace.sql("SELECT run_id, has_ledger FROM runs ORDER BY run_id").rows]


def test_a_question_over_many_configurations_stores_no_ledger(points: Path) -> None:
    workspace = Workspace(points)
    assert _flags(workspace) == [(1, False), (2, False)]
    assert not workspace.sql("SELECT run_id FROM energy_ledger").rows
    assert check_database(points) == []
    with pytest.raises(UsageError, match=r"run 1 was evaluated to totals only: `joulemap analyze 'resnet_block' l4"):
        workspace.query("edp.distribution", {"run_id": 1})


@pytest.mark.slow
def test_the_ledger_comes_under_the_same_run_and_changes_no_figure(points: Path, stored_ledgers: Path) -> None:
    workspace, whole = Workspace(points), Workspace(stored_ledgers)
    before = workspace.sql(FIGURES).rows
    workspace.compare("resnet_block", ASKED)
    assert _flags(workspace) == _flags(whole) == [(1, True), (2, True)]
    assert workspace.sql(FIGURES).rows == before == whole.sql(FIGURES).rows
    assert workspace.sql(LEDGER).rows == whole.sql(LEDGER).rows
    assert len(workspace.sql(LEDGER)) > 300
    digests = "SELECT hardware_digest, split_part(content_digest, '-', 4) FROM internal.run ORDER BY ALL"
    assert workspace.sql(digests).rows == whole.sql(digests).rows
    assert check_database(points) == []
    assert workspace.query("edp.distribution", {"run_id": 1}).rows


def _import(path: Path, other: Path, folder: Path) -> tuple[int, int]:
    """Export the runs of one database and import them into another."""
    Workspace(other).export_runs(folder)
    return Workspace(path).import_runs(folder)


@pytest.mark.slow
def test_an_imported_ledger_comes_under_the_run_of_its_totals(tmp_path: Path) -> None:
    path, other = tmp_path / "points.duckdb", tmp_path / "ledgers.duckdb"
    workspace, whole = Workspace(path), Workspace(other)
    workspace.pareto("resnet_block", ASKED)
    whole.compare("resnet_block", attrs.evolve(ASKED, hardware=(*CHIPS, "tpu_v4")))
    before = workspace.sql(FIGURES).rows
    assert _import(path, other, tmp_path / "archive") == (3, 0)
    assert _flags(workspace) == [(1, True), (2, True), (3, True)]
    assert tuple(row for row in workspace.sql(FIGURES).rows if row[0] in CHIPS) == before
    assert workspace.sql(LEDGER).rows == whole.sql(LEDGER).rows
    assert check_database(path) == []
    assert _import(path, other, tmp_path / "again") == (0, 3)
    assert _import(other, path, tmp_path / "back") == (0, 3)


def test_an_imported_ledger_of_other_totals_is_refused(points: Path, stored_ledgers: Path, tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(points) as connection:
        connection.execute("UPDATE internal.run_total SET energy_fj = energy_fj + 1 WHERE run_id = 1")
    with pytest.raises(CatalogueError, match="does not add up to the totals that are stored"):
        _import(points, stored_ledgers, tmp_path / "archive")
    assert _flags(Workspace(points)) == [(1, False), (2, False)]


def test_sums_that_were_changed_are_found(points: Path) -> None:
    import duckdb

    with duckdb.connect(points) as connection:
        connection.execute("UPDATE internal.point_action SET energy_fj = energy_fj + 1 WHERE run_id = 1")
    rules = {rule for rule, *_ in check_database(points)}
    assert rules == {"the rows of a run are those that were written", "actions of a run are those of its ledger"}
