"""Half-width of a served model's energy, from those of its time and power."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from compare import assert_close
from joulemap.wing.llm.error_scale import load_served_doubt
from joulemap.workspace import Workspace


def test_an_energy_of_a_served_model_has_the_errors_of_its_time_and_power(tmp_path: Path) -> None:
    """SQL and Python agree: sqrt(t^2 + p^2 - 0.8 t p), since both errors partly cancel."""
    workspace, doubt = Workspace(tmp_path / "own.duckdb"), load_served_doubt()
    like: dict[str, Any] = {"vendor": "NVIDIA", "engine": "vllm 2025", "hardware": "b200_sxm"}
    workspace.evaluate("alexnet", hardware=["l4"])
    times = {
        ("energy_per_output_token_j", "request"): "output_tokens_per_s",
        ("energy_per_request_j", "request"): "request_latency_s",
        ("energy_per_request_j", "prefill_step"): "time_to_first_token_s",
    }
    for (quantity, scope), time in times.items():
        seconds, power = (doubt.half_width(one, **like) or 0.0 for one in (time, "power_w"))
        expected = math.sqrt(seconds**2 + power**2 - 0.8 * seconds * power)
        assert_close(doubt.half_width(quantity, **like, scope=scope), expected)
        ((width, net),) = workspace.sql(
            "SELECT serving_half_width($quantity, 'NVIDIA', 'vllm 2025', 'b200_sxm', $scope, 1e0), "
            "serving_half_width($quantity, 'NVIDIA', 'vllm 2025', 'b200_sxm', $scope, 2e0)",
            {"quantity": quantity, "scope": scope},
        )
        assert_close(width, expected)
        assert_close(net**2 - width**2, 3.0 * power**2 - 0.8 * seconds * power)
