"""Estimate the uncertainty of serving predictions from past errors, by group.

Let q be the 80 % quantile of absolute errors ln(measured / predicted) of a group: all rows, those of a vendor's boards,
or those of an engine on these boards. Each model on each chip of each source has equal weight, because such rows have
correlated errors. A coarse group's quantile is the error of an engine without measurements. A few uploads from
overloaded computers hardly change it, unlike a root mean square. Each quantile is shrunk towards its parent group, as
for single runs (`calibrate.error_fit`):

    h^2 = (n q^2 + F h_above^2) / (n + F)

Here n is the number of sources, counted on each board: rows of one source share host, date, prompts and meter. All
times and rates have one scale, powers another. A prediction is for a server that nobody measured, which adds to h
(`ServingScale.widen`). An energy has no scale of its own: its half-width combines those of its time and power, whose
errors partly cancel.

Finer groups do not help. With a source held out, groups by release, kind of work and chip for each of seven quantities
(1,019 half-widths instead of 36) put 8 instead of 10 of 16 sources within 75 to 88 %, at an interval score of 0.902
instead of 0.881.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.ask.query import query
from joulemap.calibrate.error_fit import Key, find_quantile
from joulemap.physics.interval.error_scale import FULL_GROUPS
from joulemap.plan import Source
from joulemap.system import frozen
from joulemap.wing.llm.error_scale import (
    SERVED_POWER,
    SERVED_TIME,
    ServingScale,
    name_bare_engine,
    name_served_scale,
    write_served_doubt,
)

LEVELS: Final = ("vendor", "name")
"""Attributes that the rows of a group may share, from coarse to fine."""

ASSUMED: Final = math.log(2.0)
"""Half-width (natural logarithm) assumed without measurements: a factor of 2."""

LEAST: Final = 1e-2
"""Minimum half-width of a group, in natural logarithms."""


@frozen(kw_only=True)
class ServingResidual:
    """Error of one prediction of a served model, with the attributes by which it is grouped."""

    quantity: str
    vendor: str
    engine: str
    """Engine name, backend and release."""
    hardware: str
    """Hardware without its power mode."""
    model: str
    source: str
    error: float
    """ln(measured / predicted)."""

    @property
    def name(self) -> str:
        """Engine name without backend and release."""
        return name_bare_engine(self.engine)

    def key(self, level: int) -> Key:
        """Return the residual's group at a level."""
        return tuple(getattr(self, name) for name in LEVELS[:level])

    @property
    def group(self) -> tuple[str, str, str]:
        """Hardware, model and source; rows with the same three have strongly correlated errors."""
        return self.hardware, self.model, self.source

    @property
    def leaf(self) -> tuple[str, str]:
        """Hardware and source; rows with the same pair share host, date, prompts and meter."""
        return self.hardware, self.source


def read_served(source: Source) -> tuple[ServingResidual, ...]:
    """Return the errors of predictions for served models."""
    names = [field.name for field in attrs.fields(ServingResidual) if field.name != "error"]
    return tuple(
        ServingResidual(error=row["log_error"], **{name: row[name] for name in names})
        for row in query(source, "validate.served").records()
    )


def refit(source: Source) -> str:
    """Fit the scales to the measurements in a database, write them and return their number."""
    scales = fit_served(read_served(source))
    write_served_doubt(scales)
    return f"{len(scales)} scales of served models"


def fit_served(residuals: Sequence[ServingResidual]) -> tuple[ServingScale, ...]:
    """Return the half-width of every group with rows, times first, coarsest first; energies have no groups."""
    quantities: dict[str, list[ServingResidual]] = {SERVED_TIME: [], SERVED_POWER: []}
    for one in residuals:
        if scale := name_served_scale(one.quantity):
            quantities[scale].append(one)
    return tuple(scale for name, rows in quantities.items() for scale in _fit_scale(name, rows))


def _fit_scale(quantity: str, residuals: Sequence[ServingResidual]) -> list[ServingScale]:
    widths: dict[Key, float] = {}
    scales: list[ServingScale] = []
    for level in range(len(LEVELS) + 1):
        groups: dict[Key, list[ServingResidual]] = defaultdict(list)
        for one in residuals:
            groups[one.key(level)].append(one)
        for key, rows in sorted(groups.items()):
            above = widths[key[:-1]] if level else ASSUMED
            count = len({one.leaf for one in rows})
            own = find_quantile(rows, LEAST)
            widths[key] = math.sqrt((count * own**2 + FULL_GROUPS * above**2) / (count + FULL_GROUPS))
            vendor, engine = (*key, "", "")[:2]
            scales.append(
                ServingScale(
                    quantity=quantity,
                    level=level,
                    vendor=vendor,
                    engine=engine,
                    half_width=widths[key],
                    group_count=count,
                    row_count=len(rows),
                    chips=" ".join(sorted({one.hardware for one in rows})) if engine else "",
                )
            )
    return scales
