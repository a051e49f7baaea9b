"""How much of an energy rests on assumed numbers: in the cell, in the headline, of the gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.answer.assumed import say_assumed, say_assumed_gap, show_assumed
from joulemap.store.run import AssumedEnergy
from joulemap.workspace import Workspace


def energy(joules: float, fraction: float, static: float = 0.0) -> AssumedEnergy:
    return AssumedEnergy(joules * 1e15, fraction, static)


def test_a_third_is_not_told_and_more_is() -> None:
    assert show_assumed(None) == show_assumed(energy(1.0, 1.0 / 3.0)) == ""
    assert show_assumed(energy(1.0, 0.64)) == " (64.0 % assumed)"


def test_a_headline_names_the_hardware_that_it_speaks_of() -> None:
    found = {"a100": [energy(1.0, 0.5, 0.45)], "a1000": [energy(1.0, 0.9, 0.1)], "l4": [energy(1.0, 0.2)]}
    said = say_assumed("a100 needs less energy than l4", found)
    assert "50.0 %" in said and "a1000" not in said and "l4" not in said and "static power" in said
    assert say_assumed("a100 is 2x faster than l4", found) == ""
    assert "static" not in say_assumed("a1000 takes 3.2 mJ", found)
    assert "up to 50.0 %" in say_assumed("a100 takes 3.2 mJ", {"a100": [energy(1.0, 0.1), energy(1.0, 0.5, 0.5)]})


def test_the_gap_is_that_of_the_assumed_lines() -> None:
    # of 10 J and 4 J, 6 J and 1 J are assumed: 5 of 6 J of the gap
    one, other = energy(10.0, 0.6, 0.6), energy(4.0, 0.25, 0.25)
    assert say_assumed_gap(one, other) == say_assumed_gap(other, one) == "83.3 % of the gap is assumed static power"
    assert say_assumed_gap(energy(10.0, 0.1), energy(4.0, 0.25)) == ""
    assert say_assumed_gap(one, one) == ""


@pytest.mark.slow
def test_what_is_told_is_the_share_of_the_ledger(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    answer = workspace.compare("resnet18", hardware=["h100_sxm5", "tpu_v4"], calibration="none")
    for run_id, name in answer.scope.named.items():
        ((share,),) = workspace.sql(
            "SELECT sum(line_energy_fj) FILTER (basis = 'assumed') / sum(line_energy_fj) FROM energy_ledger "
            f"WHERE run_id = {run_id}"
        ).rows
        assert_close(answer.scope.assumed[run_id].fraction, float(share or 0.0), rel=1e-9)
        cell = next(row for row in answer.rows if row.hardware == name)
        shown = answer.scope.show_energy(run_id, cell.energy_j)
        assert ("assumed" in shown) == (float(share or 0.0) > 1.0 / 3.0)
    (explained,) = [workspace.explain("resnet18", "xeon_8490h", "tpu_v4", calibration="none")]
    assert "of the gap is assumed static power" in explained.document().answer
    assert (
        "of the energy of h100_sxm5" in workspace.analyze("resnet18", "h100_sxm5", calibration="none").document().answer
    )
