"""Formulas of losses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from joulemap.trace.formula.registry import Call, Cost, formula


@formula("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d")
def negative_log_likelihood(call: Call) -> Cost:
    """One number read per target: a negation, or a product with its weight, and an addition."""
    targets = math.prod(call.shape(1))
    return Cost(
        kind="reduction", operation="nll_loss", elementwise_count=2 * targets, gathers=True, gathered_count=targets
    )


def _loss(names: Sequence[str], per_element: int, special: int) -> None:
    for name in names:

        def cost(call: Call, label: str = name) -> Cost:
            return Cost(
                kind="reduction",
                operation=label,
                elementwise_count=(per_element + 1) * call.input_count,
                special_count=special * call.input_count,
            )

        cost.__doc__ = (
            f"{per_element} operations{f' and {special} special functions' if special else ''} for each input, and an "
            "addition of the mean."
        )
        formula(name)(cost)


_loss(["mse_loss"], 2, 0)
_loss(["huber_loss"], 5, 0)
_loss(["smooth_l1_loss"], 6, 0)
_loss(["binary_cross_entropy"], 5, 2)
_loss(["binary_cross_entropy_with_logits"], 5, 2)
_loss(["soft_margin_loss"], 2, 2)
_loss(["multi_margin_loss"], 4, 0)


@formula("multilabel_margin_loss_forward")
def multilabel_margin(call: Call) -> Cost:
    """Each class against each target: two subtractions, a comparison and an addition."""
    shape = call.shape(0)
    return Cost(kind="reduction", operation="margin_loss", elementwise_count=4 * call.input_count * shape[-1])


@formula("_ctc_loss")
def connectionist_loss(call: Call) -> Cost:
    """Maximum, subtractions and sums of three paths for each step and each of 2 S + 1 states; three exp and one log.

    Source: aten/src/ATen/native/LossCTC.cpp, `ctc_loss_cpu_template`: the forward variables alone.
    """
    states = math.prod(tuple(call.outputs[1].shape)) if len(call.outputs) > 1 else call.input_count
    return Cost(kind="reduction", operation="ctc_loss", elementwise_count=9 * states, special_count=4 * states)


@formula("dist", "renorm")
def difference_norm(call: Call) -> Cost:
    """Subtraction, or scaling, multiplication and addition for each input; one root."""
    return Cost(kind="reduction", operation="moment", elementwise_count=3 * call.input_count, special_count=1)
