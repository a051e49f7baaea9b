"""How much of an energy rests on assumed numbers: in the cell, in the headline, of the gap."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from compare import assert_close
from joulemap.ask.candidate import find_chip
from joulemap.ask.fact import Caveat
from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.settings import Settings
from joulemap.show.caveat import describe_trust
from joulemap.show.compare import show_power
from joulemap.show.layout import (
    is_whole,
    show_assumed,
)
from joulemap.show.present.cell import show_quantity, show_share
from joulemap.show.present.document import EnergyCell, Grid
from joulemap.workspace import Workspace


def energy(joules: float, fraction: float, static: float = 0.0) -> AssumedEnergy:
    return AssumedEnergy(joules * 1e15, fraction, static)


def test_a_third_is_not_told_and_more_is() -> None:
    assert show_assumed(None) == show_assumed(energy(1.0, 1.0 / 3.0)) == ""
    assert show_assumed(energy(1.0, 0.64)) == "64.0 %"


def test_a_part_of_an_energy_has_no_share_of_its_own() -> None:
    whole = energy(2.0, 0.5)
    assert is_whole(whole, 2.0) and not is_whole(whole, 1.5) and not is_whole(whole, None)


@pytest.mark.slow
def test_the_share_stands_beside_the_energy_in_every_table(workspace: Workspace) -> None:
    asked = Settings(hardware=("l4", "xeon_8490h"), precision="int8", batch=8)
    recommended = workspace.recommend("resnet18", asked)
    shares = {find_chip(row): recommended.scope.assumed[row.run_id] for row in recommended.rows}
    assert shares["xeon_8490h"].fraction > shares["l4"].fraction > 1.0 / 3.0
    energies = {find_chip(row): show_quantity(row.energy_per_inference_j, "J") for row in recommended.rows}
    answers = {
        "energy per inference without host": (recommended,),
        "energy per inference": (workspace.pareto("resnet18", asked), workspace.sweep("resnet18", asked)),
        "energy": (workspace.compare("resnet18", asked),),
    }
    for heading, group in answers.items():
        for answer in group:
            grids = [block for section in answer.document().sections for block in section.blocks]
            (drawn,) = (one for one in grids if isinstance(one, Grid) and heading in one.headings)
            place = drawn.headings.index(heading)
            assert drawn.headings[place + 1] == "assumed"
            names = drawn.column(0)
            assert "l4" in names
            for name, cell, share in zip(names, drawn.column(place), drawn.column(place + 1), strict=True):
                assert share == show_share(shares[name].fraction)
                assert heading == "energy" or cell.startswith(energies[name])
    (facts,) = (
        block
        for section in workspace.analyze("resnet18", "l4", attrs.evolve(asked, hardware=())).document().details
        for block in section.blocks
        if isinstance(block, Grid) and block.headings[0] == "quantity"
    )
    assert facts.rows[0][1].endswith(f"({show_share(shares['l4'].fraction)} assumed)")


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
        assert_close(answer.scope.assumed[run_id].fraction, float(share or 0.0), rel=1e-9)
        cell = next(row for row in answer.rows if row.hardware == one.configured_hardware)
        assert is_whole(answer.scope.assumed[run_id], cell.energy_j)
        assert bool(show_assumed(answer.scope.assumed[run_id])) == (float(share or 0.0) > 1.0 / 3.0)
    is_told = {}
    for hardware in ("l4", "h100_sxm5"):
        alone = workspace.analyze("resnet18", hardware, calibration="none")
        (whole,) = alone.scope.assumed.values()
        shares = [caveat.values["share_fraction"] for caveat in alone.facts.of(Caveat) if caveat.kind == "assumed"]
        assert shares in ([], [whole.fraction])
        is_told[hardware] = bool(shares)
    assert is_told == {"l4": True, "h100_sxm5": False}  # the static power of the H100 was measured


def test_a_choice_has_the_share_of_the_run_that_it_names(workspace: Workspace) -> None:
    """Of several configurations of the winner, the share is that of the one that wins."""
    asked = Settings(hardware=("l4", "xeon_8490h"), precision=("int8",), batch=(1, 8))
    answer = workspace.recommend("resnet18", asked)
    (caveat,) = (one for one in answer.facts.of(Caveat) if one.kind == "assumed" and answer.best.run_id in one.runs)
    share = caveat.values["share_fraction"]
    assert isinstance(share, float)
    assert_close(share, answer.scope.assumed[answer.best.run_id].fraction, rel=1e-12)


@pytest.mark.slow
def test_a_choice_says_that_a_host_is_left_out_where_it_decides(workspace: Workspace) -> None:
    asked = Settings(precision=("int8",), batch=(8,))
    pair = ("hailo_8", "rdk_x3")
    pairs = (pair, ("hailo_8", "coral_edge_tpu"))
    mixed, alike = (workspace.pareto("resnet18", asked, hardware=one).facts for one in pairs)
    hosted = workspace.pareto("resnet18", asked, hardware=pair, host="raspberry_pi_5").facts
    chips = [
        {one.runs[run].hardware for caveat in one.of(Caveat) if caveat.kind == "host" for run in caveat.runs}
        for one in (mixed, hosted, alike)
    ]
    assert chips[1] == set() and chips[0] <= {"hailo_8"} and "hailo_8" in describe_trust(mixed)


@pytest.mark.slow
def test_a_recommendation_says_which_host_it_counts(workspace: Workspace) -> None:
    """A ranking with a named host counts no assumed one, and energies of chips alone exclude their host."""
    asked = Settings(precision=("int8",), batch=(8,), hardware=("l4", "xeon_8490h"))
    settings = (asked, attrs.evolve(asked, host="xeon_8490h"), attrs.evolve(asked, boundary="chip"))
    facts = [workspace.recommend("resnet18", one).facts.of(Caveat) for one in settings]
    assert [{one.kind for one in each} & {"counted", "host"} for each in facts] == [{"counted"}, set(), {"host"}]
    (counted,) = (one for one in facts[0] if one.kind == "counted")
    assert counted.values["share"] == 0.4


@pytest.mark.slow
def test_boards_of_a_server_lack_their_host_unless_at_the_wall(workspace: Workspace) -> None:
    names = ("l4", "h100_sxm5", "tpu_v4", "epyc_9654")
    asked = Settings(hardware=names, precision=("bf16",))
    board, wall = (
        workspace.compare("gemm(m=8,n=64,k=64)", attrs.evolve(asked, boundary=one)).scope for one in ("board", "system")
    )
    assert ["+ host" in show_power(board, name, 100.0) for name in names] == [True, True, True, False]
    assert ["+ host" in show_power(wall, name, 100.0) for name in names] == [False] * 4
