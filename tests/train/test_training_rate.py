"""Published training rates: counts of their units, and predictions beside them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from compare import assert_close
from joulemap.wing.train.published import count_samples, read_sizes
from joulemap.workspace import Workspace


def test_operations_per_second_become_samples() -> None:
    # one layer of width 2048 at batch 2 on 4 devices: 96 B s l h^2 (1 + s / 6 h + V / 16 l h) with s = h = 2048
    sizes = read_sizes("gpt(layers=1,hidden=2048,heads=16)")
    assert sizes == {"layers": 1, "hidden": 2048, "heads": 16}
    step = 96 * 2 * 2048**3 * (1 + 1 / 6 + 51_200 / (16 * 2048))
    found = count_samples({"batch": "2", "samples_per_s": "1e12", "device_count": "4"}, sizes)
    assert_close(found, 2 * 4e12 / step)


@pytest.mark.slow
def test_most_published_rates_are_within_their_intervals(tmp_path: Path) -> None:
    rows = Workspace(tmp_path / "rates.duckdb").published_training().rows
    assert len(rows) == 60
    within = [
        row.predicted_per_s is not None
        and row.latency_half_width is not None
        and abs(math.log(row.predicted_per_s / row.measured_per_s)) <= row.latency_half_width
        for row in rows
    ]
    assert 0.7 <= sum(within) / len(within) <= 0.95
