"""The ladder: rooflines by hand, what is left out together, what a fit finds and what it may not see."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from compare import assert_close

ROOT: Final = Path(__file__).parents[2]


@cache
def ladder() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "ladder.py"))


@cache
def bench() -> Any:
    return ladder()["make_bench"](("aic_gemm", "aic_attention"), every=40)


def test_the_naive_roofline_is_that_of_the_datasheet() -> None:
    own = bench()
    row = next(
        row for row, (board, kind) in enumerate(zip(own.board, own.kind, strict=True))
        if (board, kind) == ("h200_sxm", "gemm bf16")
    )  # fmt: skip
    group = next(group for group in own.groups if row in group.rows)
    position = int(np.flatnonzero(group.rows == row)[0])
    m, n, k = (float(getattr(group.kernels.work, f"gemm_{axis}")[position]) for axis in "mnk")
    least = max(2 * m * n * k / (0.72 * 989.5e12), 2 * (m * k + n * k + m * n) / (0.8 * 4.8e12)) + 2e-6
    seconds = ladder()["Roofline"]().predict(own, np.zeros(0))
    assert_close(float(seconds[row]), least, rel=1e-3)


def test_a_causal_attention_computes_the_pairs_that_see_each_other() -> None:
    share, find = ladder()["_seen_pairs"], ladder()["find_operator"]
    assert share(find("attention(queries=4,heads=8,head_dim=64,causal=true)")) == 10 / 16
    assert share(find("attention(queries=2,cached=2,heads=8,head_dim=64,causal=true)")) == 7 / 8
    assert share(find("attention(queries=4,heads=8,head_dim=64)")) == 1.0
    assert share(find("gemm(m=1,n=1,k=1)")) == 1.0


def test_a_board_that_is_left_out_changes_nothing_that_is_fitted() -> None:
    own = bench()
    out = np.array([board == "b200_sxm" for board in own.board])
    form = ladder()["Roofline"](own.kinds)
    fitter = ladder()["Fitter"](own, form)
    start = np.zeros(len(form.parameters))
    position = fitter.fit(~out, start)
    weight = own.weights(~out)
    assert not weight[out].any()

    def loss(at: Any) -> float:
        error = np.log(form.predict(own, at) / own.measured_s) / 0.1
        return float((weight * 2.0 * (np.sqrt(1.0 + error**2) - 1.0)).sum() + (at**2).sum())

    assert loss(position) < loss(start)
    rung = ladder()["climb"](own, "roofline", form, lambda _: None)
    assert rung.coefficient_count == 3 * len(own.kinds)
    assert (rung.other_boards_s != rung.fitted_s).any()


def test_every_effect_names_what_the_class_has() -> None:
    free = ladder()["free_parameters"]
    boards = [group.hardware for group in bench().groups]
    for held in ladder()["EFFECTS"].values():
        for board in boards:
            assert not set(held) & {one.name for one in free(board, held)}
    with pytest.raises(ValueError, match="has no no_such_effect"):
        free(boards[0], {"no_such_effect": 1.0})
