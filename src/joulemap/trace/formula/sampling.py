"""Formulas of random numbers.

Source: J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11: Philox 4x32 with 10 rounds, as PyTorch
draws on GPUs. A round of four numbers is two wide products (two operations each), four exclusive ors and two additions
to the key: 10 operations, 100 for four numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.trace.formula.registry import Call, Cost, formula

DRAW: Final = 25
"""Operations per random number."""


def _random(names: Sequence[str], more: int, special: int, description: str) -> None:
    def cost(call: Call) -> Cost:
        return Cost(
            kind="elementwise",
            operation="random",
            elementwise_count=(DRAW + more) * call.output_count,
            special_count=special * call.output_count,
        )

    cost.__doc__ = description
    formula(*names)(cost)


_random(
    ["rand", "rand_like", "uniform", "uniform_", "random", "random_", "randint", "randint_like", "randperm"],
    2,
    0,
    "Ten rounds of Philox for four numbers, 25 operations each, and two to bring it into its range.",
)
_random(
    ["bernoulli", "bernoulli_", "native_dropout"],
    2,
    0,
    "A random number, a comparison and a product.",
)
_random(
    ["randn", "randn_like", "normal", "normal_", "normal_functional"],
    2,
    2,
    "A random number, by Box and Muller: logarithm, root, sine and cosine for two; times deviation plus mean.",
)
_random(
    ["exponential", "exponential_", "geometric", "geometric_"],
    2,
    1,
    "A random number and its logarithm.",
)
_random(
    ["cauchy", "cauchy_", "log_normal", "log_normal_", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet"],
    4,
    3,
    "A random number through up to three special functions; a try that is thrown away is not counted.",
)


@formula("multinomial")
def draw(call: Call) -> Cost:
    """An exponential random number, a division and a comparison for each probability.

    Source: aten/src/ATen/native/Distributions.cpp, `multinomial`: the largest of p / q with q exponential, for samples
    without replacement and for one sample.
    """
    return Cost(
        kind="reduction",
        operation="random",
        elementwise_count=(DRAW + 3) * call.input_count,
        special_count=2 * call.input_count,
    )
