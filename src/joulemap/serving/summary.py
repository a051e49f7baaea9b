"""A simulated run summed up: how times are spread, what was spent, and how power went over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.domain.load import Load, Moment, Outcomes, Requests, Served, Spread
from joulemap.serving.log import FIELDS, Log

Array = NDArray[np.float64]

MOMENTS: Final = 100
"""Times that a run is cut into."""
LEAST_GROWTH: Final = 0.05
"""Share of arrivals that must stay waiting for a queue to be called growing."""
DEVIATIONS: Final = 3.0
"""Of the number of arrivals, by which the waiting must grow: less may be chance."""


def summarize(log: Log, requests: Requests, load: Load, gain: float, refused: int) -> Served:
    """Return what a log says of its run."""
    columns = np.array(log.spells, dtype=float).reshape(-1, len(FIELDS)).T
    spell = dict(zip(FIELDS, columns, strict=True))
    passes = spell["passes"]
    series = 0.5 * passes * (passes - 1.0)
    seconds = passes * spell["seconds"] + series * spell["longer"]
    joules = passes * spell["joules"] + series * spell["dearer"]
    is_idle = spell["running"] == 0
    arrival, first, finished = (np.array(one, dtype=float) for one in (log.arrival, log.first_token, log.finished))
    served = ~np.isnan(finished)
    outputs, prompts = (np.array(one, dtype=float) for one in (requests.output_tokens, requests.prompt_tokens))
    counted = served.copy()
    counted[np.flatnonzero(served)[: min(load.warm_up, served.sum() - 1)]] = False
    several = counted & (outputs > 1)
    end = float(spell["start"][-1] + seconds[-1])
    is_open = load.in_flight is None and arrival[served].max() > 0.0
    rates = _find_rates(arrival[served], first[served], finished[served], end, is_open=is_open)
    return Served(
        requests=int(served.sum()),
        refused=refused,
        preemptions=sum(log.preemptions),
        duration_s=end,
        steps=int(passes[~is_idle].sum()),
        output_tokens=int(outputs[served].sum()),
        prompt_tokens=int(prompts[served].sum()),
        computed_tokens=int(spell["prompt"].sum()),
        energy_j=float(joules.sum()),
        idle_j=float(joules[is_idle].sum()),
        idle_s=float(seconds[is_idle].sum()),
        first_token=_spread((first - arrival)[counted]),
        between_tokens=_spread(*_find_gaps(spell, log.gaps, gain)),
        token_time=_spread((finished - first)[several] / (outputs[several] - 1.0)),
        latency=_spread((finished - arrival)[counted]),
        arrivals_per_s=rates[0],
        served_per_s=rates[1],
        is_growing=rates[2],
        timeline=_find_moments(spell, seconds, joules, arrival[served], finished[served], gain),
        outcomes=Outcomes(
            arrival_s=tuple(log.arrival),
            first_token_s=tuple(log.first_token),
            finished_s=tuple(log.finished),
            preemptions=tuple(log.preemptions),
        ),
    )


def _spread(values: Array, weights: Array | None = None) -> Spread:
    """Return mean and percentiles, the least values that so many of all do not exceed; zero where there is none."""
    if not len(values):
        return Spread(mean=0.0, p50=0.0, p90=0.0, p99=0.0)
    order = np.argsort(values)
    values = values[order]
    weights = np.ones(len(values)) if weights is None else weights[order]
    below = np.cumsum(weights)
    places = np.searchsorted(below, np.array([0.5, 0.9, 0.99]) * below[-1] * (1.0 - 1e-12))
    p50, p90, p99 = values[np.minimum(places, len(values) - 1)].tolist()
    return Spread(mean=float(values @ weights / below[-1]), p50=p50, p90=p90, p99=p99)


def _find_gaps(spell: dict[str, Array], apart: Sequence[float], gain: float) -> tuple[Array, Array]:
    """Return times between tokens, and how many sequences had each; tokens of one pass share its time."""
    kept = spell["answers"] > 0
    passes = spell["passes"][kept].astype(int)
    first = np.concatenate(([0], np.cumsum(passes)[:-1])) if len(passes) else np.zeros(0, dtype=int)
    place = np.arange(passes.sum()) - np.repeat(first, passes)
    gaps = np.repeat(spell["seconds"][kept], passes) + place * np.repeat(spell["longer"][kept], passes)
    counts = np.repeat(spell["answers"][kept], passes)
    gaps[first] += spell["stall"][kept]
    counts[first] -= spell["fresh"][kept]
    return np.concatenate((gaps / gain, apart)), np.concatenate((counts, np.ones(len(apart))))


def _find_rates(
    arrival: Array, first: Array, finished: Array, end: float, *, is_open: bool
) -> tuple[float | None, float, bool]:
    """Return requests that arrive and that are finished a second, and whether those who wait become ever more.

    Of the second half of arrivals; what more wait at its end than at its start must be more than chance.
    """
    if not is_open:
        return None, len(arrival) / end, False
    order = np.sort(arrival)
    middle, last = order[len(order) // 2], order[-1]
    rate = (len(order) - 1) / (last - order[0]) if last > order[0] else math.inf
    if last <= middle:
        return rate, len(arrival) / end, False
    arrived = float(((arrival > middle) & (arrival <= last)).sum())
    done = float(((finished > middle) & (finished <= last)).sum())
    waiting = [float(((arrival <= time) & (first > time)).sum()) for time in (middle, last)]
    is_growing = waiting[1] - waiting[0] > max(LEAST_GROWTH * arrived, DEVIATIONS * math.sqrt(arrived))
    return rate, done / (last - middle), bool(is_growing)


def _find_moments(
    spell: dict[str, Array], seconds: Array, joules: Array, arrival: Array, finished: Array, gain: float
) -> tuple[Moment, ...]:
    """Return means over equal times: of what adds up over spells, the growth of its sum."""
    ends = np.concatenate(([0.0], spell["start"] + seconds))
    end = float(ends[-1])
    edges = np.linspace(0.0, end, MOMENTS + 1)
    width = end / MOMENTS

    def mean(values: Array) -> Array:
        return np.diff(np.interp(edges, ends, np.concatenate(([0.0], np.cumsum(values))))) / width

    power, running = mean(joules), mean(spell["running"] * seconds)
    cached = mean((spell["cached"] + 0.5 * gain * (spell["passes"] - 1.0) * spell["answers"]) * seconds)
    present = np.diff(_area(edges, arrival) - _area(edges, finished)) / width
    waiting = np.maximum(0.0, present - running)
    rows = zip(edges[:-1].tolist(), *(one.tolist() for one in (power, running, waiting, cached)), strict=True)
    return tuple(
        Moment(time_s=time, power_w=watts, running=work, waiting=wait, cache_tokens=tokens)
        for time, watts, work, wait, tokens in rows
    )


def _area(times: Array, events: Array) -> Array:
    """Return, up to each time, the area below the count of events."""
    events = np.sort(events)
    sums = np.concatenate(([0.0], np.cumsum(events)))
    before = np.searchsorted(events, times)
    return before * times - sums[before]
