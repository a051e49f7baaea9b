"""How much of an energy rests on assumed numbers: in the cell, in the headline, of the gap."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from compare import assert_close
from joulemap.ask.fact import Caveat
from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.settings import Settings
from joulemap.show.compare import show_power
from joulemap.show.layout import (
    is_whole,
    show_assumed,
)
from joulemap.show.present.document import EnergyCell, Grid
from joulemap.workspace import Workspace


def energy(joules: float, fraction: float, static: float = 0.0) -> AssumedEnergy:
    return AssumedEnergy(joules * 1e15, fraction, static)


def test_a_third_is_not_told_and_more_is() -> None:
    assert show_assumed(None) == show_assumed(energy(1.0, 1.0 / 3.0)) == ""
    assert show_assumed(energy(1.0, 0.64)) == "64.0 %"


def test_a_column_of_shares_moves_what_lies_right_of_it() -> None:
    energies = {(row, 1): EnergyCell("energy_j", row, 1.0) for row in (1, 2)}
    drawn = Grid(
        headings=("chip", "energy", "latency"),
        rows=(("a", "1 J", "1 s"), ("b", "2 J", "2 s")),
        ranked=("energy",),
        best=frozenset({(0, 1), (0, 2)}),
        energies={(row - 1, column): cell for (row, column), cell in energies.items()},
    ).with_shares(lambda cell: "40 %" if cell.run_id == 2 else "")
    assert drawn.headings == ("chip", "energy", "assumed", "latency")
    assert drawn.rows == (("a", "1 J", "", "1 s"), ("b", "2 J", "40 %", "2 s"))
    assert drawn.ranked == ("energy",)
    assert drawn.best == frozenset({(0, 1), (0, 3)})
    assert drawn.with_shares(lambda _: "40 %") == drawn


@pytest.mark.slow
def test_what_is_told_is_the_share_of_the_ledger(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    answer = workspace.compare("resnet18", hardware=["h100_sxm5", "tpu_v4"], calibration="none")
    for run_id, one in answer.scope.outlines.items():
        ((share,),) = workspace.sql(
            "SELECT sum(line_energy_fj) FILTER (basis = 'assumed') / sum(line_energy_fj) FROM energy_ledger "
            f"WHERE run_id = {run_id}"
        ).rows
        assert_close(answer.scope.assumed[run_id].fraction, float(share or 0.0))
        cell = next(row for row in answer.rows if row.hardware == one.configured_hardware)
        assert is_whole(answer.scope.assumed[run_id], cell.energy_j)
        assert bool(show_assumed(answer.scope.assumed[run_id])) == (float(share or 0.0) > 1.0 / 3.0)
    is_told = {}
    for hardware in ("l4", "h100_sxm5"):
        alone = workspace.analyze("resnet18", hardware, calibration="none")
        (whole,) = alone.scope.assumed.values()
        shares = [caveat.values["energy_fraction"] for caveat in alone.facts.of(Caveat) if caveat.kind == "assumed"]
        assert shares in ([], [whole.fraction])
        is_told[hardware] = bool(shares)
    assert is_told == {"l4": True, "h100_sxm5": False}  # the static power of the H100 was measured


def test_a_choice_has_the_share_of_the_run_that_it_names(workspace: Workspace) -> None:
    """Of several configurations of the winner, the share is that of the one that wins."""
    asked = Settings(hardware=("l4", "xeon_8490h"), precision=("int8",), batch=(1, 8))
    answer = workspace.recommend("resnet18", asked)
    (caveat,) = (one for one in answer.facts.of(Caveat) if one.kind == "assumed" and answer.best.run_id in one.runs)
    share = caveat.values["energy_fraction"]
    assert isinstance(share, float)
    assert_close(share, answer.scope.assumed[answer.best.run_id].fraction)


@pytest.mark.slow
def test_boards_of_a_server_lack_their_host_unless_at_the_wall(workspace: Workspace) -> None:
    names = ("l4", "h100_sxm5", "tpu_v4", "epyc_9654")
    asked = Settings(hardware=names, precision=("bf16",))
    board, wall = (
        workspace.compare("gemm(m=8,n=64,k=64)", attrs.evolve(asked, boundary=one)).scope for one in ("board", "system")
    )
    assert ["+ host" in show_power(board, name, 100.0) for name in names] == [True, True, True, False]
    assert ["+ host" in show_power(wall, name, 100.0) for name in names] == [False] * 4
