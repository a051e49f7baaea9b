"""Table of designs: base chip, varied constants and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from joulemap.domain import Column, Table
from joulemap.wing.explore.block import name_column
from joulemap.wing.explore.design.best import find_constant
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


def list_rows(survey: Survey, wanted: Sequence[int]) -> Table[Any]:
    """Return some designs, by their numbers, as a table of tuples."""
    rows, parameters = list(wanted), survey.parameters
    outcomes = survey.outcomes_at(rows)
    columns: list[Sequence[Any]] = [
        rows,
        survey.list_status(rows),
        [None if one < 0 else one for one in survey.nearest[rows].tolist()],
        *(column.tolist() for column in survey.columns(parameters, rows).values()),
        *([None if one != one else one for one in getattr(outcomes, name).tolist()] for name, _, _ in TAKEN),
        *(getattr(outcomes, name).tolist() for name in ("latency_fs", "energy_fj", "limit", "refusal")),
    ]
    return Table(title="designs", columns=_list_columns(survey, parameters), rows=tuple(zip(*columns, strict=True)))


def _list_columns(survey: Survey, parameters: Sequence[str]) -> tuple[Column, ...]:
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
