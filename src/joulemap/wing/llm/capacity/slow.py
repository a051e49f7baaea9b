"""Slow hosts: some measured servers add a fixed time to each step, whatever the model and batch.

A step takes t with probability 1 - s, and t + a with probability s. The spread of the logarithm of this mixture is
added to the spread of the prediction itself:

    half-width^2 = h^2 + z^2 s (1 - s) ln(1 + a / t)^2
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.physics import probability_better
from joulemap.system import frozen
from joulemap.wing.decoder import list_kinds

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

WIDTH: Final = math.log(9.0) * math.sqrt(3.0) / math.pi
"""Half-width of the 80 % interval of a logistic error, in standard deviations."""


@frozen
class SlowHost:
    """Slow hosts of the servers measured with an engine on a chip."""

    added_s: float = 0.0
    """Seconds added to a step; 0 if no host was slow."""
    share: float = 0.0
    """Share of the measured servers that have a slow host."""

    @classmethod
    def of(cls, deployment: Deployment) -> SlowHost:
        """Return the slow hosts measured with the engine and chip of a deployment."""
        stack, kinds = deployment.stack, list_kinds(deployment.hardware, deployment.stack.backend)
        return cls(stack.value("slow_host", *kinds), stack.value("slow_share", *kinds))

    def find_half_width(self, step_s: float) -> float:
        """Return the half-width that slow hosts add to a step's time; 0 if no host was slow."""
        return WIDTH * math.sqrt(self.share * (1.0 - self.share)) * math.log1p(self.added_s / step_s)

    def widen(self, half_width: float | None, step_s: float) -> float | None:
        """Return the half-width of a step's time, slow hosts included; None if it is unknown."""
        return None if half_width is None else math.hypot(half_width, self.find_half_width(step_s))

    def find_chance(self, most_s: float, step_s: float, half_width: float) -> float:
        """Return the probability that a step takes at most `most_s`; `half_width` excludes slow hosts."""
        usual = probability_better(most_s / step_s, half_width)
        if not self.added_s:
            return usual
        slow = probability_better(most_s / (step_s + self.added_s), half_width)
        return (1.0 - self.share) * usual + self.share * slow
