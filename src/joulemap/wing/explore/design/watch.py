"""Progress of a survey: its rate, and the size of the front so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from joulemap.system.record import define
from joulemap.wing.explore.design.front import find_front

if TYPE_CHECKING:
    from joulemap.model.workload import Floats


@define(kw_only=True, eq=False)
class Watch:
    """Progress of designs under evaluation."""

    say: Callable[[str], None]
    move: Callable[[int, int], None] | None
    """Callback with (designs done, designs to do); an exception from it ends the survey."""
    _front: Floats | None = None
    """Logarithms of the objectives of the front so far."""
    _reported: int = attrs.field(default=0, init=False)
    """Number of designs at the last report."""
    began_s: float = attrs.field(factory=time.perf_counter, init=False)

    def see(self, costs: Floats) -> None:
        """Update the front with the costs of a block of designs."""
        whole = costs if self._front is None else np.concatenate([self._front, costs])
        self._front = whole[find_front(whole)]

    def report(self, done: int, total: int, known: int = 0) -> None:
        """Report the number of designs done, `known` of which existed before, and the rate of the others.

        An exception from the listener ends the survey.
        """
        if done > self._reported:
            self._reported = done
            rate = (done - known) / max(time.perf_counter() - self.began_s, 1e-9)
            front = "" if self._front is None else f"; {len(self._front):,} on the Pareto front so far"
            before = f", {known:,} of them before," if known else ","
            self.say(f"{done:,} of {total:,} designs{before} {rate:,.0f} per second{front}")
        if self.move is not None:
            self.move(done, total)
