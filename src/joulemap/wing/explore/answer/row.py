"""Rows and figure of designs: base chip, parameters and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.computed import described, find_unknown, make_table
from joulemap.domain.table import Column, Table
from joulemap.system.record import frozen
from joulemap.wing.explore.block import name_column
from joulemap.wing.explore.design.best import describe_design, find_constant

if TYPE_CHECKING:
    from joulemap.show.figure.figure import Figure
    from joulemap.wing.explore.design.outcome import Objective
    from joulemap.wing.explore.design.survey import Survey

TAKEN: Final = (
    ("latency_s", "s", "latency of a batch; for several models the mean by their shares"),
    ("slowest_s", "s", "latency of the model that takes longest"),
    ("energy_per_inference_j", "J", "energy per inference, mean by the shares of the models"),
    ("throughput_per_s", "1/s", "inferences per second, batch after batch"),
    ("average_power_w", "W", "mean power, batch after batch"),
    ("edp_per_inference_js", "Js", "energy per inference x latency of its batch"),
    ("peak_memory_bytes", "B", "weights and activations of the model that needs most"),
    ("area_mm2", "mm2", "area of units and on-chip memories, by the rules' table"),
    ("die_cost_usd", "USD", "cost of a working die of that area"),
    ("clock_fraction", "", "fraction of the full clock; below 1 where the power limit throttles"),
)
"""(column of `Outcomes`, unit, meaning)."""

LIKE: Final = "statistically tied with the front (80 %)"


def list_columns(survey: Survey, parameters: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of designs."""
    units = {name: find_constant(survey, name).unit for name in parameters}
    return (
        Column(name="design_index", type="BIGINT", meaning="number among all designs"),
        Column(name="status", type="VARCHAR", meaning="front; band: statistically tied with it; other; missed: "
               "exceeds a limit; unsupported"),
        Column(name="like_index", type="BIGINT", null=True, meaning="design of the front that it is tied with"),
        Column(name="hardware", type="VARCHAR", meaning="base chip"),
        *(
            Column(name=name, type="VARCHAR", meaning=f"{name} of the run")
            for name in survey.groups[0].dimensions
        ),
        Column(name="batch", type="BIGINT", meaning="samples in one input"),
        *(
            Column(name=name_column(name, unit), type="DOUBLE", null=True, unit=unit, meaning=f"varied {name}")
            for name, unit in units.items()
        ),
        *(Column(name=name, type="DOUBLE", null=True, unit=unit, meaning=meaning) for name, unit, meaning in TAKEN),
        Column(name="latency_fs", type="BIGINT", unit="fs", meaning="exact latency of a batch of each model, summed"),
        Column(name="energy_fj", type="BIGINT", unit="fJ", meaning="exact energy of a batch of each model, summed"),
        Column(name="limit", type="VARCHAR", meaning="limit of the first model's throughput"),
        Column(name="refusal", type="VARCHAR", meaning="reason why it cannot run; empty where it can"),
    )  # fmt: skip


def list_rows(survey: Survey, parameters: Sequence[str], wanted: Sequence[int]) -> Table[Any]:
    """Return some designs, by their numbers, as a table of tuples."""
    rows = list(wanted)
    chosen = survey.columns(parameters, rows)
    outcomes = survey.outcomes_at(rows)
    columns: list[Sequence[Any]] = [
        rows,
        survey.list_status(rows),
        [None if one < 0 else one for one in survey.nearest[rows].tolist()],
        *(column.tolist() for column in chosen.values()),
        *([None if one != one else one for one in getattr(outcomes, name).tolist()] for name, _, _ in TAKEN),
        *(getattr(outcomes, name).tolist() for name in ("latency_fs", "energy_fj", "limit", "refusal")),
    ]
    return Table(title="designs", columns=list_columns(survey, parameters), rows=tuple(zip(*columns, strict=True)))


@frozen(kw_only=True)
class RefusedDesigns:
    """Reason why designs cannot run."""

    reason: str = described("message of the first such design")
    design_count: int = described("designs that cannot run for this reason")


@frozen(kw_only=True)
class RuleRow:
    """Scaling rule of dependent constants."""

    rule: str = described("name of the rule")
    text: str = described("statement of the rule")
    basis: str = described("basis of the rule: derived, scaled, recalled or assumed")
    source: str = described("document or arithmetic behind the rule")


@frozen(kw_only=True)
class Dot:
    """Design as a dot of the front's figure."""

    status: str = described("front, or dominated")
    hardware: str = described("description of the design")
    precision: str = described("precision of the run")
    batch: int = described("samples in one input")
    runtime: str = described("runtime that launches its kernels")
    x_value: float = described("value of the first objective")
    x_half_width: float | None = described("null: designs based on one chip share their errors")
    y_value: float = described("value of the second objective")
    y_half_width: float | None = described("null: designs based on one chip share their errors")
    probability_front: float | None = described("null: not computed for designs")
    dominated_by: str | None = described("reason why the figure does not name it")
    is_available: bool = described("true for every design")


def draw_designs(
    survey: Survey, records: Sequence[dict[str, Any]], objectives: Sequence[Objective], title: str, headline: str
) -> tuple[Figure, ...]:
    """Return the figure of the front in two objectives with the designs tied with it; empty for one objective.

    `records` are the rows of an answer, `headline` is its headline.
    """
    from joulemap.show.figure.figure import make_figure

    if len(objectives) < 2:
        return ()
    x, y = objectives[:2]
    rows = [_dot(survey, record, x, y) for record in records]
    texts = {**_format_axis(x, "x_"), **_format_axis(y, "y_"), "label": "{hardware}"}
    made = make_figure("pareto", make_table("designs", Dot, rows), title, headline, texts)
    sketch = tuple({**one, "others": LIKE, "notes": ["letters: the front"]} for one in made.sketch)
    return (attrs.evolve(made, sketch=sketch),)


def _dot(survey: Survey, record: dict[str, Any], x: Objective, y: Objective) -> Dot:
    is_front = record["status"] == "front"
    fields = {**find_unknown(Dot), **{name: record[name] for name in ("precision", "batch", "runtime")}}
    fields |= {"x_value": record[x.column], "y_value": record[y.column], "dominated_by": None if is_front else LIKE}
    status, design = "front" if is_front else "dominated", describe_design(survey, record["design_index"])
    return Dot(**fields, status=status, hardware=design, is_available=True)


def _format_axis(objective: Objective, prefix: str) -> dict[str, str]:
    """Return the texts of an objective on an axis, in the form of a metric's."""
    unit = objective.unit if objective.unit.isalpha() and objective.unit != "USD" else ""
    texts = {
        "quantity": objective.label,
        "title": f"{objective.label} ({objective.unit})",
        "unit": unit,
        "scale": objective.unit.replace("1/J", ""),
    }
    return {f"{prefix}{name}": text for name, text in texts.items()}
