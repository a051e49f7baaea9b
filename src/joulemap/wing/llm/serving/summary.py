"""Summary of a simulated run: latency percentiles, rates and energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.wing.llm.serving.load import FIELDS, Hit, Limits, Load, Log, Requests, Served, Spell, Spread, Window

Array = NDArray[np.float64]

PARTS: Final = 8
"""Maximum parts into which a spell is cut for times between tokens; its passes differ little in time."""
LEAST_GROWTH: Final = 0.05
"""Minimum share of arrivals that must stay waiting for a queue to count as growing."""
DEVIATIONS: Final = 3.0
"""Minimum growth of a queue that counts as overload, in standard deviations of the number of arrivals."""


def summarize(
    log: Log,
    pools: Sequence[Sequence[Spell]],
    requests: Requests,
    load: Load,
    limits: Limits,
    hits: tuple[Hit, ...] = (),
) -> Served:
    """Summarize the log of a run and the spells of each pool of devices.

    Moves of a prefix cache are spread evenly over the run.
    """
    tables = [tabulate_spells(spells) for spells in pools]
    spell = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    arrival, first, finished = (np.array(one, dtype=float) for one in (log.arrival, log.first_token, log.finished))
    served = ~np.isnan(finished)
    outputs, prompts = (np.array(one, dtype=float) for one in (requests.output_tokens, requests.prompt_tokens))
    counted = served.copy()
    counted[np.flatnonzero(served)[: min(load.warm_up, served.sum() - 1)]] = False
    counted &= ~((arrival < log.full_from) | (arrival > log.full_until))
    several = counted & (outputs > 1)
    end = float((spell["start"] + spell["spent_s"]).max())
    is_open = load.in_flight is None and arrival[served].max() > 0.0
    rates = _find_rates(arrival[served], first[served], finished[served], end, is_open=is_open)
    answers = tuple(column[served] for column in (first, finished, outputs))
    bounds = (0.0, end)
    if (load.warm_up or log.full_from) and arrival[counted].max() > arrival[counted].min():
        bounds = (float(arrival[counted].min()), float(arrival[counted].max()))
    moved_j = sum(hit.joules for hit in hits)
    window = find_window(tables, bounds, _count_within(answers, bounds))
    moved_j *= window.duration_s / end
    window = attrs.evolve(window, energy_j=window.energy_j + moved_j, moved_j=moved_j)
    return Served(
        requests=int(served.sum()),
        refused=len(served) - int(served.sum()),
        preemptions=sum(log.preemptions),
        duration_s=end,
        steps=int(spell["passes"][spell["running"] > 0].sum()),
        output_tokens=int(outputs[served].sum()),
        prompt_tokens=int(prompts[served].sum()),
        computed_tokens=int(spell["prompt"].sum()),
        first_token=_spread((first - arrival)[counted]),
        between_tokens=_spread(*_find_gaps(*_cut_start(spell, log, window.start_s), limits.accepted_tokens)),
        token_time=_spread((finished - first)[several] / (outputs[several] - 1.0)),
        latency=_spread((finished - arrival)[counted]),
        arrivals_per_s=rates[0],
        served_per_s=rates[1],
        is_growing=rates[2],
        window=window,
        hits=hits,
        log=log,
    )


def tabulate_spells(spells: Sequence[Spell]) -> dict[str, Array]:
    """Return the columns of spells (runs of passes with one batch), with the seconds and joules of each."""
    columns = np.array(spells, dtype=float).reshape(-1, len(FIELDS)).T
    table: dict[str, Array] = dict(zip(FIELDS, columns, strict=True))
    passes = table["passes"]
    series = 0.5 * passes * (passes - 1.0)
    table["spent_s"] = passes * table["seconds"] + series * table["longer"]
    table["spent_j"] = passes * table["joules"] + series * table["dearer"]
    return table


def _spread(values: Array, weights: Array | None = None) -> Spread:
    """Return the mean and the nearest-rank percentiles of values; zero if there are none."""
    if not len(values):
        return Spread(mean=0.0, p50=0.0, p90=0.0, p99=0.0)
    order = np.argsort(values)
    values = values[order]
    weights = np.ones(len(values)) if weights is None else weights[order]
    below = np.cumsum(weights)
    indices = np.searchsorted(below, np.array([0.5, 0.9, 0.99]) * below[-1] * (1.0 - 1e-12))
    p50, p90, p99 = values[np.minimum(indices, len(values) - 1)].tolist()
    return Spread(mean=float(values @ weights / below[-1]), p50=p50, p90=p90, p99=p99)


def _sum_within(table: dict[str, Array], values: Array, start: float, end: float) -> float:
    """Return the sum of `values`, one per spell, between two times; each value is spread evenly over its spell."""
    ends = np.concatenate(([0.0], table["start"] + table["spent_s"]))
    sums = np.concatenate(([0.0], np.cumsum(values)))
    low, high = np.interp([start, end], ends, sums).tolist()
    return float(high - low)


def _count_within(answers: tuple[Array, ...], bounds: tuple[float, float]) -> float:
    """Return the output tokens between two times; `answers` holds first token time, last token time and tokens of each
    request, which are spread evenly from its first to its last.
    """
    first, last, tokens = answers
    within = np.clip(last, *bounds) - np.clip(first, *bounds)
    share = np.divide(within, last - first, out=np.zeros(len(first)), where=last > first)
    begun = (first >= bounds[0]) & (first <= bounds[1])
    return float((share * (tokens - 1.0)).sum() + begun.sum())


def find_window(tables: Sequence[dict[str, Array]], bounds: tuple[float, float], output_tokens: float) -> Window:
    """Return the work of servers between two times, in which they give `output_tokens`."""
    start, end = bounds
    energy_j = idle_j = idle_s = prompt_j = 0.0
    for table in tables:
        is_idle = table["running"] == 0
        energy_j += _sum_within(table, table["spent_j"], start, end)
        idle_j += _sum_within(table, np.where(is_idle, table["spent_j"], 0.0), start, end)
        idle_s += _sum_within(table, np.where(is_idle, table["spent_s"], 0.0), start, end)
        prompt_j += _sum_within(table, np.where(table["prompt"] > 0, table["spent_j"], 0.0), start, end)
    return Window(
        start_s=start,
        end_s=end,
        output_tokens=output_tokens,
        energy_j=energy_j,
        idle_j=idle_j,
        idle_s=idle_s,
        prompt_j=prompt_j,
    )


def _cut_start(spell: dict[str, Array], log: Log, start: float) -> tuple[dict[str, Array], Sequence[float]]:
    """Return the spells that begin, and the gaps that end, at or after a time."""
    if start <= 0.0:
        return spell, log.gaps
    kept = spell["start"] >= start
    return {name: column[kept] for name, column in spell.items()}, [
        gap for gap, end in zip(log.gaps, log.gap_ends, strict=True) if end >= start
    ]


def _find_gaps(spell: dict[str, Array], apart: Sequence[float], gain: float) -> tuple[Array, Array]:
    """Return times between tokens and the number of sequences with each; several tokens of one pass divide its time.

    The first pass of a spell is separate. The others form at most `PARTS` equal parts, each at its mean.
    """
    kept = spell["answers"] > 0
    seconds, longer, answers, others = (spell[name][kept] for name in ("seconds", "longer", "answers", "passes"))
    others = others - 1.0
    parts = np.minimum(others, PARTS).astype(np.intp)
    size = others / np.maximum(parts, 1)
    before = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    middle = 0.5 + (before + 0.5) * np.repeat(size, parts)
    gaps = (seconds + spell["stall"][kept], np.repeat(seconds, parts) + middle * np.repeat(longer, parts))
    counts = (answers - spell["fresh"][kept], np.repeat(answers * size, parts))
    return np.concatenate((*(one / gain for one in gaps), apart)), np.concatenate((*counts, np.ones(len(apart))))


def _find_rates(
    arrival: Array, first: Array, finished: Array, end: float, *, is_open: bool
) -> tuple[float | None, float, bool]:
    """Return the arrival rate and the completion rate per second, and True if the queue keeps growing.

    The completion rate and the growth are those of the second half of arrivals; the growth must exceed chance. If the
    queue grows, the completion rate is that of the whole run.
    """
    if not is_open:
        return None, len(arrival) / end, False
    order: list[float] = np.sort(arrival).tolist()
    middle, last = order[len(order) // 2], order[-1]
    rate = (len(order) - 1) / (last - order[0]) if last > order[0] else None
    if last <= middle:
        return rate, len(arrival) / end, False
    arrived = float(((arrival > middle) & (arrival <= last)).sum())
    done = float(((finished > middle) & (finished <= last)).sum())
    waiting = [float(((arrival <= time) & (first > time)).sum()) for time in (middle, last)]
    is_growing = waiting[1] - waiting[0] > max(LEAST_GROWTH * arrived, DEVIATIONS * math.sqrt(arrived))
    return rate, len(arrival) / end if is_growing else done / (last - middle), bool(is_growing)
