"""Dimensions that a wing declares: columns of every view of runs, empty for other models."""

from __future__ import annotations

import pytest

from joulemap.domain.dimension import DIMENSIONS, list_dimensions
from joulemap.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = Workspace(tmp_path_factory.mktemp("dimension") / "a.duckdb")
    passes = ["llama-3.1-8b(cached=64,devices=4,engine=vllm)", "llama-3.1-8b(tokens=64)", "mobilenet_v2"]
    for name in passes:
        found.compare(name, hardware="h100_sxm5", precision="bf16")
    return found


@pytest.mark.parametrize("view", ["runs", "energy_parts"])
def test_a_pass_has_its_phase_engine_and_devices_in_every_view(view: str, workspace: Workspace) -> None:
    found = workspace.sql(
        f"SELECT DISTINCT split_part(model, '(', 1) AS name, phase, split_part(engine, '@', 1), device_count "
        f"FROM {view} ORDER BY name, phase"
    )
    expected = [("llama-3.1-8b", "decode", "vllm", 4), ("llama-3.1-8b", "prefill", "", 1), ("mobilenet_v2", "", "", 1)]
    assert found.rows == tuple(expected)


def test_runs_of_other_devices_are_other_series(workspace: Workspace) -> None:
    rows = workspace.sql("SELECT series FROM run_figures").rows
    assert len({series for (series,) in rows}) == len(rows)


def test_a_wing_declares_only_entries_of_workloads() -> None:
    core = {one.name for one in DIMENSIONS}
    own = [one for one in list_dimensions() if one.name not in core]
    assert {one.table for one in own} == {"dimensions"}
