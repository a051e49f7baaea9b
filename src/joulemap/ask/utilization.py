"""Facts of how well chips are used: shares of their peaks, what takes the time, flags, and settings that help."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from joulemap.ask.fact import Choice, Entry, Fact, Facts, Limit, Quantity, Share, Turn
from joulemap.ask.part import gather
from joulemap.ask.scope import Scope
from joulemap.generated.utilization import Remedy, Utilization, UtilizationFlag

BOUNDS: Final = ("compute", "memory", "launch")
"""Possible bottlenecks of a kernel."""

METRICS: Final = {"low_compute": "utilization", "high_bandwidth": "bandwidth", "idle_units": "idle"}
"""Flag -> metric of its limit."""

ALIKE: Final = 0.005
"""Minimum deviation of a ratio from 1 that is a fact."""


def find_facts(
    scope: Scope,
    rows: Sequence[Utilization],
    flags: Iterable[UtilizationFlag],
    remedies: Iterable[Remedy],
    *,
    has_plain_gemms: bool,
) -> Facts:
    """Return the facts of chips that were not refused, best used first: shares, flags of the least used chips first,
    and `remedies` of the least used chip, best first.

    With `has_plain_gemms`, most GEMMs of a run at fp32 are no convolutions, so that they do not run in TF32.
    """
    facts: list[Fact] = []
    if len(rows) > 1:
        best, second = (row.compute_utilization_fraction or 0.0 for row in rows[:2])
        facts.append(
            Choice(
                runs=tuple(row.run_id for row in rows),
                metric="utilization",
                value=Quantity(best, "1"),
                ratio=best / second if second else None,
            )
        )
    for row in rows:
        facts += _share(row, scope.outlines[row.run_id].latency_half_width, has_plain_gemms=has_plain_gemms)
    facts += [_turn(one, scope.unavailable) for one in remedies]
    order = {row.run_id: rank for rank, row in enumerate(reversed(rows))}
    for flag in sorted(flags, key=lambda one: order.get(one.run_id, 0)):
        facts += _limit(flag)
    return gather(scope, "utilization", facts)


def _share(row: Utilization, half_width: float | None, *, has_plain_gemms: bool) -> Iterator[Fact]:
    """Yield the utilization of a chip, its grade, its main bottleneck, and the share of its fp32 peak if that is what
    most of its GEMMs can reach.
    """
    runs, used = (row.run_id,), row.compute_utilization_fraction or 0.0
    yield Entry(runs=runs, values={"utilization": Quantity(used, "1", half_width)})
    yield Share(runs=runs, metric="compute", level="grade", name=row.compute_grade or "", share=used)
    times = {name: getattr(row, f"{name}_time_fraction") or 0.0 for name in BOUNDS}
    first = max(times, key=lambda name: times[name])
    if times[first] > 0.0:
        yield Share(runs=runs, metric="time", level="bottleneck", name=first, share=times[first])
    if row.fp32_peak_ops_per_s and row.attained_ops_per_s is not None:
        share = row.attained_ops_per_s / row.fp32_peak_ops_per_s
        level = "lanes" if has_plain_gemms else "convolutions"
        yield Share(runs=runs, metric="fp32", level=level, share=share)


def _turn(row: Remedy, unavailable: Collection[str]) -> Turn:
    """Return what another setting or chip changes; `unavailable` hardware can be neither bought nor rented."""
    ratios = {"energy_per_inference": row.energy_ratio, "latency": row.latency_ratio}
    return Turn(
        runs=(row.chosen_run_id,),
        axis=row.remedy,
        of=(row.run_id,),
        after=row.choice,
        metric="throughput",
        ratio=row.throughput_ratio,
        values={
            **{name: one for name, one in ratios.items() if abs(one - 1.0) >= ALIKE},
            "is_available": int(row.choice not in unavailable),
        },
    )


def _limit(flag: UtilizationFlag) -> Iterator[Fact]:
    """Yield a flagged value with its limit, and the subgraph with most of its cost."""
    runs = (flag.run_id,)
    yield Limit(
        runs=runs,
        metric=METRICS[flag.flag],
        bound=Quantity(flag.limit_fraction, "1"),
        value=Quantity(flag.value_fraction, "1"),
    )
    if flag.subgraph_fraction is not None:
        yield Share(
            runs=runs, metric=METRICS[flag.flag], level="subgraph", name=flag.subgraph, share=flag.subgraph_fraction
        )
