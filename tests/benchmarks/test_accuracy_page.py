"""The page on accuracy: its tables and sentences follow from rows."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from joulemap.physics.record.calibration import CalibrationError

ROOT: Final = Path(__file__).parents[2]


@cache
def benchmark() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return runpy.run_path(str(ROOT / "benchmarks" / "accuracy.py"))


def told(split: str, mean: float, **more: Any) -> CalibrationError:
    return CalibrationError(**{
        "quantity": "latency", "split": split, "runtime": "graph", "precision": "", "batch": 8, "family": "",
        "row_count": 12, "mean_error_fraction": mean, "median_error_fraction": 0.04, "worst_error_fraction": 0.2,
        "rank_correlation": 0.99, **more,
    })  # fmt: skip


def test_errors_of_a_calibration_are_printed_for_all_batches_together(tmp_path: Path) -> None:
    errors = (told("uncalibrated", 0.09, batch=0), told("fitted", 0.03, batch=0),
              told("cross_validated", 0.05, batch=0), told("fitted", 0.02),
              told("fitted", 0.06, runtime="eager", batch=1),
              told("fitted", 0.01, runtime="", precision="", batch=0, family="resnet"))  # fmt: skip
    lines = list(benchmark()["cross_validation_lines"]("chip", errors))
    assert lines[3:-1] == [
        "| latency | graph | all | 12 | 9.0 | 3.0 | 5.0 | 4.0 | 20.0 | 0.990 |",
        "| latency | eager | all | 12 | - | 6.0 | - | - | - | - |",
    ]
    assert benchmark()["read_cross_validations"](tmp_path / "none") == {}
    assert list(benchmark()["cross_validation_lines"]("chip", ())) == []


def scored(quantity: str, part: str, mean: float, **more: object) -> dict[str, object]:
    return {"quantity": quantity, "hardware": "a", "part": part, "measurement_count": 5, "mean_error_fraction": mean,
            "median_error_fraction": mean, "bias_fraction": -mean, "worst_error_fraction": mean,
            "highest_error_fraction": -mean / 2, "rank_correlation": None, "covered_fraction": 1.0,
            "seen_fraction": 0.0, **more}  # fmt: skip


def test_a_rate_and_a_power_at_the_wall_have_rows_of_their_own() -> None:
    answer = [scored("latency_s", "fitted", 0.1), scored("throughput_per_s", "fitted", 0.2),
              scored("power_w", "fitted", 0.3),
              scored("throughput_per_s", "same family", 0.4), scored("energy_j", "fitted", 0.5),
              scored("latency_s", "unseen family", 0.1, measurement_count=4),
              scored("wall_power_w", "fitted", 0.6)]  # fmt: skip
    lines = list(benchmark()["score_lines"](answer, "split"))[2:-1]
    assert lines == [
        "| a | fitted | latency | 5 | 10.0 | 10.0 | -10.0 | 50.0 |",
        "| a | fitted | rate | 5 | 20.0 | 20.0 | -20.0 | - |",
        "| a | same family | rate | 5 | 40.0 | 40.0 | -40.0 | - |",
    ]
    text = " ".join(benchmark()["wall_lines"](answer))
    assert [value in " ".join(text.split()) for value in ("60.0 % (5 rows, bias -60.0 %)", "of a (fitted)")] == [
        True
    ] * 2
    assert list(benchmark()["wall_lines"](answer[:2])) == []


def test_energies_of_a_calibrated_board_are_not_of_a_board_held_out() -> None:
    """Its interval is that of its calibration, which was fitted to the same rows with each family left out in turn."""
    like = {
        "subject": "models",
        "quantity": "energy",
        "architecture": "gpu",
        "boundary": "board",
        "low": 1.0,
        "high": 2.0,
    }
    rows = [like | {"is_calibrated": own, "measured": measured, "half_width": width}
            for own, measured, width in ((True, 1.5, 0.1), (True, 3.0, 0.1), (False, 1.5, 0.4))]  # fmt: skip
    energy_rows = runpy.run_path(str(ROOT / "benchmarks" / "sureness.py"))["_energy_rows"]
    assert list(energy_rows(rows)) == [
        "| energy | board | all | 1 | 100.0 | 0.400 |",
        "| energy | family, calibrated | all | 2 | 50.0 | 0.100 |",
    ]
