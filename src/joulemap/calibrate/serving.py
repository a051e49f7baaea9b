"""Estimate the uncertainty of serving predictions from past errors, by group.

Let q be the 80 % quantile of absolute errors ln(measured / predicted) of a group. Each model on each chip of each
source has equal weight, because such rows have correlated errors. Groups share a chip, kind of work, release, vendor or
engine. A coarse group's quantile is the error of an unmeasured board. A few uploads from overloaded computers hardly
change it, unlike a root mean square: with a board held out, half-widths of llamafile fall from 0.73 to 0.39 on CPUs and
from 0.69 to 0.34 on GPUs, and cover 83 and 78 %. Each quantile is shrunk towards its parent group, as for single runs
(`calibrate.doubt`):

    h^2 = (n q^2 + F h_above^2) / (n + F)
    half-width^2 = h^2 + new^2

Here n is the number of sources, counted on each board: rows of one source share host, date, prompts and meter. A user's
server is always a new source; `new` is the half-width that such a source adds (`NEW`), larger if the engine was not
measured on any board of the vendor. The coarsest group is shrunk towards an assumed value. An energy has no scale of
its own: its half-width combines those of its time and power, whose errors partly cancel.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.calibrate.doubt import Key, find_quantile
from joulemap.domain.doubt import FULL_GROUPS, LOADED_FIRST, ServingScale, find_served_time
from joulemap.system.record import frozen

LEVELS: Final = ("name", "vendor", "engine", "work", "hardware")
"""Attributes by which rows are grouped, from coarse to fine: an engine by name, later with its release.

Errors of an engine on a new vendor's boards resemble its errors on other boards more than the errors of other engines
on these boards. With a board held out, the half-widths of such engines are 0.27, and 0.37 with vendors before engines.
They cover 85 and 87 %.
"""

ASSUMED: Final = math.log(2.0)
"""Half-width (natural logarithm) assumed without measurements: a factor of 2."""

LEAST: Final = 1e-2
"""Minimum half-width of a group, in natural logarithms."""

ON_VENDOR: Final = 2
"""First level whose groups have measurements of the same engine on a board of the same vendor."""

NEW: Final[Mapping[str, tuple[float, float]]] = {"time": (0.1, 0.35), "power": (0.05, 0.1)}
"""Kind of quantity -> half-widths that a new source adds: if the engine was measured on a board of the vendor, and if
not.

Source: judged. With a source, a board or a model held out, covering 80 % of the errors requires 0 to 0.1 and 0 to 0.35
for times, and nothing for powers. Those rows were used to choose coefficients; a user's rows were not.
"""

NEW_FIRST: Final = 0.3
"""Half-width that admission adds to a first token under load: the time at which a server admits a request is unknown.

Source: as `NEW`; with a board held out, first tokens of InferenceX require 0 to 0.2, although some waited nine times as
long as predicted.
"""


@frozen(kw_only=True)
class ServingResidual:
    """Error of one prediction of a served model, with the attributes by which it is grouped."""

    quantity: str
    vendor: str
    engine: str
    """Engine name and release."""
    work: str
    hardware: str
    """Hardware without its power mode."""
    model: str
    source: str
    error: float
    """ln(measured / predicted)."""

    @property
    def name(self) -> str:
        """Engine name without release."""
        return self.engine.partition(" ")[0]

    def key(self, level: int) -> Key:
        """Return the key of the residual's group at a level."""
        return tuple(getattr(self, name) if place < level else "" for place, name in enumerate(LEVELS))

    @property
    def group(self) -> tuple[str, str, str]:
        """Hardware, model and source; rows with the same three have strongly correlated errors."""
        return self.hardware, self.model, self.source

    @property
    def leaf(self) -> tuple[str, str]:
        """Hardware and source; rows with the same pair share host, date, prompts and meter."""
        return self.hardware, self.source


def fit_served(residuals: Sequence[ServingResidual]) -> tuple[ServingScale, ...]:
    """Return the half-width of every group that has rows, by quantity, coarsest group first.

    Energies have no groups, because their half-width follows from time and power.
    """
    quantities: dict[str, list[ServingResidual]] = defaultdict(list)
    for one in residuals:
        if find_served_time(one.quantity, "") is None:
            quantities[one.quantity].append(one)
    return tuple(scale for rows in quantities.values() for scale in _fit_quantity(rows))


def _fit_quantity(residuals: Sequence[ServingResidual]) -> list[ServingScale]:
    levels: list[dict[Key, list[ServingResidual]]] = [defaultdict(list) for _ in range(len(LEVELS) + 1)]
    for one in residuals:
        for level, groups in enumerate(levels):
            groups[one.key(level)].append(one)
    found: dict[Key, float] = {}
    scales: list[ServingScale] = []
    for level, groups in enumerate(levels):
        for key, rows in groups.items():
            above = found[rows[0].key(level - 1)] if level else ASSUMED
            count = len({one.leaf for one in rows})
            own = find_quantile(rows, LEAST)
            width = math.sqrt((count * own**2 + FULL_GROUPS * above**2) / (count + FULL_GROUPS))
            found[key] = width
            scales.append(
                ServingScale(
                    quantity=rows[0].quantity,
                    level=level,
                    half_width=math.hypot(width, find_new_source_width(rows[0].quantity, level)),
                    group_count=count,
                    row_count=len(rows),
                    **_spell(key),
                )
            )
    return scales


def find_new_source_width(quantity: str, level: int) -> float:
    """Return the half-width that a new source adds to a quantity; `level` is that of the prediction's finest group."""
    new = NEW["power" if quantity == "power_w" else "time"][0 if level >= ON_VENDOR else 1]
    return math.hypot(new, NEW_FIRST) if quantity == LOADED_FIRST else new


def _spell(key: Key) -> dict[str, str]:
    """Return the fields of a scale that identify the group with this key."""
    fields = dict(zip(LEVELS, key, strict=True))
    name = fields.pop("name")
    return fields | {"engine": fields["engine"] or name}
