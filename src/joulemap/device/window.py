"""Latency of a call that is repeated for some seconds (the window), after a warm-up until it is steady.

repetition = consecutive calls that take at least a millisecond, then a wait for the device
latency    = median over repetitions of repetition / calls
spread     = (third quartile - first quartile) / median
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

from joulemap.device.energy import EnergyCounter
from joulemap.domain.measurement import Timing

SHORTEST_REPETITION_S: Final = 1e-3
"""Minimum duration of a repetition; far above the cost of reading a clock and waiting for a device."""

MOST_CALLS: Final = 10_000

STEADY: Final = 0.05
"""Maximum relative difference between the medians of two consecutive groups of repetitions in a steady state."""

GROUP: Final = 5
FEWEST_REPETITIONS: Final = 5
WARM_UP_SHARE: Final = 2.0
"""Maximum length of the warm-up, as a multiple of the window."""

Clock = Callable[[], float]


def measure_window(
    call: Callable[[], object],
    wait: Callable[[], object],
    seconds: float,
    counter: EnergyCounter | None = None,
    *,
    is_alone: bool = False,
    clock: Clock = time.perf_counter,
    processor: Clock = time.process_time,
) -> Timing:
    """Measure the latency and energy of a call that is repeated for `seconds`.

    `wait` returns when the device is done. `counter` measures the energy. `is_alone` states that one thread of this
    process does all the work. Time in which the process does not run then belongs to other processes.
    """

    def repeat(calls: int) -> float:
        began = clock()
        for _ in range(calls):
            call()
        wait()
        return clock() - began

    started = clock()
    repeat(1)
    once = repeat(1)
    calls = 1
    while once < SHORTEST_REPETITION_S and calls < MOST_CALLS:
        calls = min(max(2 * calls, round(1.2 * calls * SHORTEST_REPETITION_S / max(once, 1e-9))), MOST_CALLS)
        once = repeat(calls)
    is_steady = _warm_up(lambda: repeat(calls), clock, started + WARM_UP_SHARE * seconds)
    warm_up_s = clock() - started

    if counter is not None:
        counter.start()
    worked = processor()
    began = clock()
    taken: list[float] = []
    while len(taken) < FEWEST_REPETITIONS or clock() - began < seconds:
        taken.append(repeat(calls))
    window_s = clock() - began
    worked = processor() - worked
    energy = counter.stop() if counter is not None else None
    long_enough = counter is not None and window_s >= counter.shortest_s
    count = calls * len(taken)
    first, median, third = statistics.quantiles([one / calls for one in taken], n=4, method="inclusive")
    return Timing(
        latency_s=median,
        first_quartile_s=first,
        third_quartile_s=third,
        repetition_count=len(taken),
        calls_per_repetition=calls,
        window_s=window_s,
        warm_up_s=warm_up_s,
        is_steady=is_steady,
        processor_s=worked / count,
        processor_fraction=min(worked / window_s, 1.0) if is_alone else None,
        energy_j=energy / count if energy and long_enough else None,
        power_w=energy / window_s if energy and long_enough else None,
    )


def _warm_up(repetition: Callable[[], float], clock: Clock, until: float) -> bool:
    """Repeat the call until two consecutive groups of repetitions agree, or until `until`. Return whether they
    agree.
    """
    before = None
    while True:
        group = []
        for _ in range(GROUP):
            group.append(repetition())
            if clock() >= until:
                return False
        median = statistics.median(group)
        if before is not None and abs(median - before) <= STEADY * before:
            return True
        before = median
