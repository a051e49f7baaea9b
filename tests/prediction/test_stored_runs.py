"""Predictions are stored runs: times and energies to the last digit, intervals within rounding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from joulemap.bundle.chip import load_chips
from joulemap.prediction import predict
from joulemap.workspace import Workspace
from stored_case import BATCHES, CHIPS, MODELS, PRECISIONS, RUNTIMES

SQL = """
SELECT r.model, r.hardware, r.precision, r.batch, r.runtime, r.latency_s, r.energy_j, u.latency_half_width,
    u.energy_half_width, r.peak_memory_bytes
FROM runs AS r JOIN run_uncertainty AS u USING (run_id) ORDER BY ALL
"""


def compare(
    folder: Path,
    models: Sequence[str],
    chips: Sequence[str],
    precisions: Sequence[str],
    batches: Sequence[int],
    runtimes: Sequence[str],
) -> int:
    """Compare predictions with runs; return the number of runs."""
    workspace = Workspace(folder / "runs.duckdb")
    for each in models:
        workspace.evaluate(each, hardware=chips, precision=precisions, batch=batches, runtime=runtimes)  # type: ignore[arg-type]
    rows = [tuple(row) for row in workspace.sql(SQL)]
    model, hardware, precision, batch, runtime, latency, energy, wide, tall, memory = zip(*rows, strict=True)
    found = predict(list(model), list(hardware), precision=list(precision), batch=list(batch), runtime=list(runtime))
    assert (found.refusal == "").all()
    for mine, stored in ((found.latency_s, latency), (found.energy_j, energy), (found.memory_bytes, memory)):
        other = [row[:5] for row, one, two in zip(rows, mine.tolist(), stored, strict=True) if one != two]
        assert other == []
    for low, middle, high, width in (
        (found.latency_low_s, found.latency_s, found.latency_high_s, wide),
        (found.energy_low_j, found.energy_j, found.energy_high_j, tall),
    ):
        np.testing.assert_allclose(np.log(high / middle), np.array(width, dtype=float), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(np.log(middle / low), np.array(width, dtype=float), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sum(found.parts_j.values()), found.energy_j, rtol=1e-14)
    np.testing.assert_allclose(sum(found.basis_j.values()), found.energy_j, rtol=1e-14)
    return len(rows)


def test_predictions_are_stored_runs(tmp_path: Path) -> None:
    """With TF32 at fp32, a calibrated chip, and operators that a host computes."""
    chips = ("h200_sxm", "h100_pcie", "coral_edge_tpu", "hailo_8", "kpu_t256", "xeon_8490h")
    count = compare(tmp_path, ["mobilenet_v2"], chips, ["fp32", "int8"], [1, 7], ["eager", "engine"])
    assert count >= 30


@pytest.mark.slow
def test_over_a_thousand_predictions_are_stored_runs(tmp_path: Path) -> None:
    assert set(CHIPS) <= load_chips().ids
    count = compare(tmp_path, MODELS, CHIPS, PRECISIONS, BATCHES, RUNTIMES)
    assert count >= 1300


@pytest.mark.slow
def test_refusals_are_those_of_runs(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "runs.duckdb")
    workspace.evaluate("vit_b_16", hardware=CHIPS, precision=["fp32", "fp8"], runtime="eager")
    rows = list(
        workspace.sql('SELECT hardware, "precision", refusal FROM run_figures WHERE refusal IS NOT NULL ORDER BY ALL')
    )
    assert len(rows) > 10
    hardware, precision, refusal = zip(*rows, strict=True)
    found = predict("vit_b_16", list(hardware), precision=list(precision), runtime="eager")
    assert found.refusal.tolist() == list(refusal)
    assert (found.refusal_code != "").all()
    assert np.isnan(found.energy_j).all()
