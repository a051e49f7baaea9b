"""Dimensions that a wing declares: columns of every view of runs, empty for other models."""

from __future__ import annotations

from typing import Any

import pytest

from joulemap.cli.option.run import declare_dimensions, repeat_options
from joulemap.domain.dimension import DIMENSIONS, Dimension, list_dimensions
from joulemap.domain.settings import declare_dimensions as declare_settings
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    own = Workspace(tmp_path_factory.mktemp("dimension") / "a.duckdb")
    passes = ["llama-3.1-8b(cached=64,devices=4,engine=vllm)", "llama-3.1-8b(tokens=64)", "mobilenet_v2"]
    for name in passes:
        own.compare(name, hardware="h100_sxm5", precision="bf16")
    return own


@pytest.mark.sample(1)
@pytest.mark.parametrize("view", ["runs", "energy_parts"])
@pytest.mark.wings
def test_a_pass_has_its_phase_engine_and_devices_in_every_view(view: str, workspace: Workspace) -> None:
    result = workspace.sql(
        f"SELECT DISTINCT split_part(model, '(', 1) AS name, phase, split_part(engine, '@', 1), device_count "
        f"FROM {view} ORDER BY name, phase"
    )
    expected = [("llama-3.1-8b", "decode", "vllm", 4), ("llama-3.1-8b", "prefill", "", 1), ("mobilenet_v2", "", "", 1)]
    assert result.rows == tuple(expected)


@pytest.mark.wings
def test_runs_of_other_devices_are_other_series(workspace: Workspace) -> None:
    rows = workspace.sql("SELECT series FROM run_figures").rows
    assert len({series for (series,) in rows}) == len(rows)


@pytest.mark.wings
def test_a_wing_declares_only_entries_of_workloads() -> None:
    core = {one.name for one in DIMENSIONS}
    own = [one for one in list_dimensions() if one.name not in core]
    assert {one.table for one in own} == {"dimensions"}


def test_setting_and_option_follow_from_a_row_with_values(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Dimension(name="sparsity", table="run", values=("dense", "half"), is_asked=True, help="Sparsity of weights.")
    for module in ("joulemap.domain.settings", "joulemap.cli.option.run"):
        monkeypatch.setattr(f"{module}.DECLARED", (row,))

    @frozen(kw_only=True)
    @declare_settings
    class Asked:
        """Settings."""

    @frozen(kw_only=True)
    @declare_dimensions
    class Options:
        """Options."""

    asked: Any = Asked
    assert asked().sparsity == ("dense",)
    assert asked(sparsity=["Half", "dense"]).sparsity == ("half", "dense")
    with pytest.raises(UsageError):
        asked(sparsity="quarter")
    options: Any = Options
    assert options().sparsity == "dense"
    assert repeat_options(options(sparsity="half"), ("sparsity",)) == ("--sparsity", "half")
