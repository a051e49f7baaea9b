"""Draw the difference of two runs as a waterfall from A through its causes to B.

Bars are summed as integers in the exact unit of the metric, so that the last bar ends at B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.ask.explain import ExplainAnswer
from joulemap.domain.computed import make_table
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.table import Table
from joulemap.generated.explain import WaterfallBar
from joulemap.show.figure.figure import Figure, describe_metric, make_figure
from joulemap.show.pair import find_role, name_pair, name_spent
from joulemap.show.present.cell import show_count, show_quantity, show_signed

SHOWN: Final = 14
"""Maximum causes with a bar each; the other causes share one bar."""

LEAST_SHARE: Final = 0.01
"""Share of the largest cause below which a cause has no bar of its own, because nobody would see it."""

PER_UNIT: Final[dict[PartMetricName, float]] = {"energy": 1e15, "latency": 1e15, "edp": 2e30, "memory": 1.0}
"""Metric -> exact units per SI unit: fJ per J, fs per s, half fJ fs per J s, bytes per byte.

The EDP uses half units, because its terms are integers only if they are doubled.
"""


def list_bars(answer: ExplainAnswer) -> Table[WaterfallBar]:
    """Return the bars from A to B, largest cause first."""
    name_a, name_b = name_pair(answer)
    ends = list(zip((f"A {name_a}", f"B {name_b}"), _ends(answer), strict=True))
    return form_bars(ends, _list_terms(answer), METRIC[answer.metric].unit, PER_UNIT[answer.metric])


def form_bars(
    ends: Sequence[tuple[str, int]], terms: Sequence[tuple[str, int]], unit: str, scale: float
) -> Table[WaterfallBar]:
    """Return the bars of a waterfall between two named amounts (`ends`); small terms share one bar.

    Amounts are in an exact unit; `scale` is the number of exact units per `unit`.
    """
    least = LEAST_SHARE * max((abs(exact) for _, exact in terms), default=0)
    count = min(sum(abs(exact) >= least for _, exact in terms), SHOWN)
    rest = terms[count:]
    shown = [(name, "term", exact) for name, exact in terms[:count]]
    if rest:
        shown.append((show_count(len(rest), "smaller cause"), "rest", sum(exact for _, exact in rest)))
    (name_a, start), (name_b, end) = ends
    here, bars = start, []
    for index, (name, kind, exact) in enumerate([(name_a, "run", start), *shown, (name_b, "run", end)]):
        is_run = kind == "run"
        first, last = (0, exact) if is_run else (here, here + exact)
        bars.append(
            WaterfallBar(
                step_index=index,
                step=name,
                kind=kind,
                start=first / scale,
                end=last / scale,
                difference=None if is_run else exact / scale,
                amount=(show_quantity if is_run else show_signed)(exact / scale, unit),
                unit=unit,
                start_exact=first,
                end_exact=last,
            )
        )
        here = last
    return make_table("waterfall", WaterfallBar, bars)


def draw_waterfall(answer: ExplainAnswer, subject: str, facts: str) -> Figure:
    """Return the waterfall figure of two compared runs."""
    return draw_bars(list_bars(answer), answer.metric, subject, facts)


def draw_bars(bars: Table[WaterfallBar], metric: PartMetricName, subject: str, facts: str) -> Figure:
    """Return the waterfall figure of given bars in a metric."""
    return make_figure("waterfall", bars, subject, facts, describe_metric(METRIC[metric]))


def _list_terms(answer: ExplainAnswer) -> list[tuple[str, int]]:
    """Return the name of each cause and its difference in the exact unit, largest first.

    Causes are roles for energy, categories for latency and energy x delay, and terms for memory.
    """
    if answer.metric == "energy":
        terms = [(find_role(row).noun, row.difference_fj) for row in answer.roles]
    elif answer.metric == "memory":
        terms = [(f"{one.contributor}: {one.term}", one.difference_exact) for one in answer.metric_terms or ()]
    else:
        terms = [(name_spent(row), row.difference_exact) for row in answer.categories]
    return sorted(terms, key=lambda one: -abs(one[1]))


def _ends(answer: ExplainAnswer) -> tuple[int, int]:
    """Return the values of A and B as integers in the exact unit of the metric."""
    total = answer.total
    ends: dict[PartMetricName, tuple[int, int]] = {
        "energy": (total.energy_a_fj, total.energy_b_fj),
        "latency": (total.latency_a_fs, total.latency_b_fs),
        "edp": (total.edp_a_exact, total.edp_b_exact),
        "memory": (total.memory_a_bytes, total.memory_b_bytes),
    }
    return ends[answer.metric]
