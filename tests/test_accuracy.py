"""The page on accuracy: its tables and sentences follow from rows."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from joulemap.answer.measurement import ListedMeasurement
from joulemap.answer.validate import OperatorScore, PredictionScore
from joulemap.domain.calibration import Calibration, CalibrationError
from joulemap.domain.configuration import Precision
from joulemap.domain.settings import ScoreDivision
from joulemap.domain.table import Table
from joulemap.workspace import Workspace

ROOT: Final = Path(__file__).parents[1]


@cache
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "accuracy.py"))


def family(name: str, mean: float, bias: float, count: int = 5, quantity: str = "latency") -> dict[str, object]:
    return {"quantity": quantity, "hardware": "chip", "part": name, "measurement_count": count,
            "mean_error_fraction": mean, "bias_fraction": bias}  # fmt: skip


def kind(name: str, time_s: float, weighted: float, bias: float, **more: object) -> dict[str, object]:
    return {"hardware": "chip", "kind": name, "is_overlapping": False, "device_time_s": time_s,
            "time_weighted_error_fraction": weighted, "time_bias_fraction": bias, "scored_count": 9,
            "median_error_fraction": weighted, "worst_case": f"a {name}", "worst_error_fraction": -0.5,
            **more}  # fmt: skip


def test_sentences_name_what_is_furthest_off() -> None:
    families = [family("a", 0.1, 0.1), family("b", 0.4, -0.4), family("c", 0.2, 0.1), family("d", 0.3, 0.3),
                family("few", 0.9, 0.9, count=2), family("other", 0.9, 0.9, quantity="energy")]  # fmt: skip
    # 1 s x 0.1 and 0.1 s x 0.5: two thirds and one third of what is wrong
    kinds = [kind("all", 9.0, 0.9, 0.9), kind("conv", 1.0, 0.1, -0.05), kind("softmax", 0.1, 0.5, 0.5),
             kind("grouped_conv", 9.0, 0.9, 0.9, is_overlapping=True)]  # fmt: skip
    text = " ".join("\n".join(benchmark()["failure_lines"](families, kinds)).split())
    assert "furthest off for b (40.0 %, too fast), d (30.0 %, too slow), c (20.0 %, too slow); nearest for a" in text
    assert "most is that of conv (66.7 %; all of it together is 5.0 % too fast), softmax (33.3 %;" in text
    assert "largest median error on chip is softmax (50.0 %); its worst group is `a softmax` (-50.0 %)" in text
    assert "few" not in text


def told(split: str, mean: float, **more: Any) -> CalibrationError:
    return CalibrationError(**{
        "quantity": "latency", "split": split, "runtime": "graph", "precision": "fp16", "batch": 8, "family": "",
        "row_count": 12, "mean_error_fraction": mean, "median_error_fraction": 0.04, "worst_error_fraction": 0.2,
        "rank_correlation": 0.99, **more,
    })  # fmt: skip


def test_errors_of_a_calibration_are_printed_by_group_and_by_family(tmp_path: Path) -> None:
    errors = (told("uncalibrated", 0.09), told("fitted", 0.03), told("cross_validated", 0.05),
              told("fitted", 0.01, runtime="", precision="", batch=0, family="resnet"))  # fmt: skip
    lines = list(benchmark()["cross_validation_lines"]("chip", errors))
    assert "| latency | graph | fp16 | 8 | 12 | 9.0 % | 3.0 % | 5.0 % | 4.0 % | 20.0 % | 0.990 |" in lines
    assert "| latency | resnet | 12 | - | 1.0 % | - | - | - | - |" in lines
    assert benchmark()["read_cross_validations"](tmp_path / "none") == {}
    assert list(benchmark()["cross_validation_lines"]("chip", ())) == []


class OneModel(Workspace):
    """Everything that was measured, if it were resnet18 on one hardware."""

    def validate(
        self,
        hardware: str = "",
        model: str = "",
        *,
        precision: Precision | Literal[""] = "",
        by: ScoreDivision = "runtime",
        calibration: str | Calibration = "auto",
    ) -> Table[PredictionScore]:
        return super().validate(
            hardware or "h200_sxm", model or "resnet18", precision=precision, by=by, calibration=calibration
        )

    def validate_operators(
        self,
        hardware: str = "",
        model: str = "",
        *,
        precision: Precision | Literal[""] = "",
        calibration: str | Calibration = "auto",
    ) -> Table[OperatorScore]:
        return super().validate_operators(
            hardware or "h200_sxm", model or "resnet18", precision=precision, calibration=calibration
        )

    def measurements(self, hardware: str = "", model: str = "") -> Table[ListedMeasurement]:
        return super().measurements(hardware or "h200_sxm", model or "resnet18")


def test_the_page_has_every_table(tmp_path: Path) -> None:
    error = told("cross_validated", 0.1, quantity="energy")
    page: str = benchmark()["write_page"](
        OneModel(tmp_path / "own.duckdb"), {"h200_sxm": [attrs.evolve(error, split="fitted"), error]}
    )
    for title in ("What was fitted", "Left out in turn", "Where it fails", "Furthest off", "Operators inside models",
                  "By runtime", "By family", "By batch", "By precision", "fp16", "Your own rows"):  # fmt: skip
        assert title in page
    assert "| h200_sxm | fitted |" in page
    assert "| energy | graph | fp16 | 8 | 12 | - | 10.0 % | 10.0 % | 4.0 % | 20.0 % | 0.990 |" in page
    assert "of the device time of 56 profiles" in " ".join(page.split())
    assert "| h200_sxm | batch_norm |" in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)
