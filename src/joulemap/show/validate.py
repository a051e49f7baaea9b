"""Sentences on the scores of predictions, and on the measured energies of each class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from joulemap.domain.table import Table
from joulemap.generated.validate import EnergyEvidence, PredictionScore
from joulemap.show.present.cell import QUANTITY, show
from joulemap.show.present.template import Template, join_clauses

SCORED: Final = Template(
    "The median error is {errors:and}[; {covered:%} of {count:#} measured values are inside their 80 % ranges]."
)
ERROR: Final = Template("{error:%} for {quantity}")
MOST_NAMED: Final = 2
"""Maximum quantities in the first line, most measured first; the table has all."""

EVIDENCE: Final = (
    Template("[measured energies: {measured:and}]"),
    Template("[{held_out:#} of them held out]"),
    Template("[none on {unmeasured:and}]"),
    Template("[{powers:n measured power} without a latency]"),
)
CLASS: Final = Template("{count:#} on {architecture}")


def describe_scores(overall: Iterable[PredictionScore]) -> str:
    """Return the median errors of the most measured quantities, and the coverage of all, from rows of all hardware;
    empty without rows.
    """
    rows = list(overall)
    count = sum(row.ranged_count for row in rows)
    covered = sum((row.covered_fraction or 0.0) * row.ranged_count for row in rows) / count if count else None
    medians = [(row.quantity, row.median_error_fraction, row.measurement_count) for row in rows]
    return describe_medians(medians, covered, count)


def describe_medians(medians: Iterable[tuple[str, float, int]], covered: float | None, count: int) -> str:
    """Return the median errors of the most measured quantities, each as (quantity, error, measurements), and the share
    of `count` values that their intervals cover; empty without quantities.
    """
    most = sorted(medians, key=lambda one: -one[2])[:MOST_NAMED]
    errors = [ERROR(error=error, quantity=show(quantity, QUANTITY)) for quantity, error, _ in most]
    return SCORED(errors=errors, covered=covered, count=count) if errors else ""


def describe_evidence(rows: Table[EnergyEvidence]) -> str:
    """Return how many measured energies each class has, how many are held out, and which classes have none."""
    counts = {row.architecture: row.class_energy_count for row in rows}
    measured = [CLASS(architecture=name, count=count) for name, count in counts.items() if count]
    held_out = sum(row.held_out_count for row in rows if row.quantity == "energy")
    values = {
        "measured": measured or None,
        "held_out": held_out if measured else None,
        "unmeasured": [name for name, count in counts.items() if not count] or None,
        "powers": sum(row.measurement_count for row in rows if row.quantity == "power") or None,
    }
    return join_clauses(one(None, **values) for one in EVIDENCE)
