"""A surface on knots against the surface itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from compare import assert_close
from joulemap.wing.llm.serving.grid import StepGrid

Array = NDArray[np.float64]


class BentPass:
    """Weights are read or products made, whichever is longer, as kernels do: 8B in bf16 at 3 TB/s and 600 T/s."""

    resting_w = 100.0

    def __init__(self) -> None:
        self.points = 0

    def step(
        self, sequences: ArrayLike, context_tokens: ArrayLike, prompt_tokens: ArrayLike, prompt_context: ArrayLike
    ) -> tuple[Array, Array]:
        count, context, prompt, before = np.broadcast_arrays(
            *(np.asarray(one, dtype=float) for one in (sequences, context_tokens, prompt_tokens, prompt_context))
        )
        self.points += count.size
        read = (16e9 / 3e12) ** 4 + (16e9 * (count + prompt) / 600e12) ** 4
        cache = 131_072 * count * context / 3e12
        attend = 524_288 * prompt * np.maximum(0.0, before + 0.5 * prompt) / 600e12
        seconds = 0.002 + read**0.25 + cache + attend
        return seconds, 300.0 * seconds + 16e9 * 1e-10


@pytest.mark.parametrize("mixes", [True, False])
def test_what_is_looked_up_is_what_the_surface_says(mixes: bool) -> None:
    surface = BentPass()
    grid = StepGrid(surface, 256, 8192, 40_000, mixes=mixes)
    assert surface.points < 50_000
    draw = np.random.default_rng(0)
    for _ in range(300):
        count = int(2 ** draw.uniform(0, 8))
        context = 2 ** draw.uniform(4, 15.2)
        prompt = int(2 ** draw.uniform(0, 13))
        before = draw.uniform(-0.5 * prompt, 30_000)
        seconds, joules, longer, _, straight = grid.find_step(count, context)
        exact = surface.step(count, context, 0.0, 0.0)
        assert (seconds, joules) == pytest.approx(exact, rel=1e-3)
        assert straight > context
        next_one = surface.step(count, context + 1.0, 0.0, 0.0)[0] - exact[0]
        assert_close(longer, float(next_one), rel=1e-3)
        beside = count if mixes else 0
        found = grid.find_mixed(beside, context if mixes else 0.0, prompt, before)
        assert found == pytest.approx(surface.step(beside, context if mixes else 0.0, prompt, before), rel=0.03)


def test_a_grid_of_one_short_request() -> None:
    surface = BentPass()
    grid = StepGrid(surface, 1, 3, 2, mixes=True)
    assert grid.find_mixed(1, 1.0, 2, 0.0) == pytest.approx(surface.step(1, 1.0, 2.0, 0.0), rel=1e-6)
    assert_close(grid.find_step(1, 2.0)[0], float(surface.step(1, 2.0, 0.0, 0.0)[0]), rel=1e-6)
