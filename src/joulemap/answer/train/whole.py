"""A step of several small batches, over stages of a pipeline, put together from runs of one device each.

    time   = last + (m - 1) before + (p - 1) before          the slowest stage; what it waits is the bubble
    energy = last + (m - 1) before + static power x waiting  of each stage, by the mean of all
    bubble = (p - 1) / (m + p - 1) of the passes

`last` is the pass that exchanges and changes weights, `before` one that adds its gradients to what is held. Every stage
but the last has no logits. What stages hand on is sent while others are computed.

Source: Huang et al., GPipe, 2019; Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM, 2021 (one forward, one backward; a stage holds the activations of at most as many small batches as there
are stages).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.row.train import TrainedStep
from joulemap.system.record import frozen
from joulemap.training.memory import Memory

PHASES: Final = ("forward_s", "backward_s", "again_s", "exchange_s", "optimizer_s")


@frozen(kw_only=True)
class WholeStep:
    """What a step takes of one device, by the mean of all."""

    last: TrainedStep
    """The last small batch, of the slowest stage."""
    step_s: float
    device_j: float
    mac_count: float
    """Of the forward pass and its gradients, of one device in the mean."""
    phases: Mapping[str, Any]
    """Of the time, with what repeats as often as it does."""
    bubble_s: float | None
    """Of the time; None of one stage."""


def add_up_step(
    last: TrainedStep,
    before: TrainedStep | None,
    inner: tuple[TrainedStep, TrainedStep] | None,
    *,
    accumulate: int,
    stages: int,
    static_w: float,
) -> WholeStep:
    """Return a step of so many small batches over so many stages.

    `inner` are the last pass and one before it of a stage without logits, where there are several stages.
    """
    more = accumulate - 1
    plain: dict[str, float] = {name: getattr(last, name) for name in PHASES}
    if before is None:
        return WholeStep(
            last=last, step_s=last.step_s, device_j=last.step_j, mac_count=float(last.model_mac_count), phases=plain,
            bubble_s=None,
        )  # fmt: skip
    bubble_s = (stages - 1) * before.step_s
    step_s = last.step_s + more * before.step_s + bubble_s
    joules, macs = last.step_j + more * before.step_j + static_w * bubble_s, float(last.model_mac_count)
    if inner is not None:
        own_s = inner[0].step_s + more * inner[1].step_s
        other_j = inner[0].step_j + more * inner[1].step_j + static_w * max(step_s - own_s, 0.0)
        joules = (joules + (stages - 1) * other_j) / stages
        macs = (macs + (stages - 1) * float(inner[0].model_mac_count)) / stages
    return WholeStep(
        last=last,
        step_s=step_s,
        device_j=joules,
        mac_count=accumulate * macs,
        phases={name: value + more * getattr(before, name) for name, value in plain.items()},
        bubble_s=bubble_s if stages > 1 else None,
    )


def hold_in_flight(first: Memory, last: Memory, stages: int) -> Memory:
    """Return what the device that holds most does: the first stage has the activations of as many passes as stages."""
    held = attrs.evolve(first, activations=first.activations * stages)
    return max(held, last, key=lambda one: one.total)
