"""A run, as rows of several answers tell it. Energy and latency are per batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from joulemap.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope
    from joulemap.present.document import Shown

ENERGY_PARTS: Final = ("compute", "memory", "control", "static")
"""What every energy is split into."""

OVERHEAD: Final = "neither arithmetic nor off-chip memory nor board nor static"
"""What of an energy is architectural overhead: what the macro `is_overhead` adds up."""

BOUNDS: Final = ("compute", "memory", "launch")
"""What may bound the time of a subgraph."""


@frozen
class Amounts:
    """What a run or one of its parts takes: exact, and in SI units."""

    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float


@frozen
class ActionEnergy:
    """What an action takes: count x energy per action."""

    category: str
    """The architecture's own."""
    common_category: str
    """Of all architectures."""
    component: str
    action: str
    part: str
    """`compute`, `memory`, `control` or `static`."""
    per: str
    """What one count is: MAC, B, instruction, s."""
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    energy_j: float
    basis: str
    """Where the price comes from."""
    source: str


@frozen
class RunRow(Amounts):
    """A run as a whole."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    is_projection: bool
    edp_js: float
    subgraph_count: int
    operator_count: int
    run_id: int

    def title(self, scope: Scope) -> str:
        """Return model, hardware and configuration in a line."""
        return (
            f"{self.model} on {scope.mark(self.hardware)} ({self.architecture}), batch {self.batch}, {self.precision}, "
            f"{self.runtime}"
        )


@frozen
class Outcome:
    """A run that was answered or refused."""

    hardware: str
    architecture: str
    batch: int
    status: str
    is_projection: bool
    is_available: bool
    """Whether its hardware can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it was refused; empty where it was not."""
    run_id: int


ONE_BY_ONE: Final = "latency"
"""What limits a throughput where a batch starts after another has ended, at the full clock."""


class Limited(Protocol):
    """A row that has a throughput."""

    @property
    def throughput_limit(self) -> str | None:
        """What keeps it from being higher; None where it was refused."""


def limit_columns(rows: Iterable[Limited]) -> tuple[Shown[Any], ...]:
    """Return the column of what limits the throughput, where that is not the latency of all."""
    is_told = any((row.throughput_limit or ONE_BY_ONE) != ONE_BY_ONE for row in rows)
    return (("rate limited by", "throughput_limit"),) if is_told else ()


OVERLAPPING: Final = 1.0 - 1e-9
"""Share of the latency below which one batch starts before another has ended."""


def overlaps(interval_s: float | None, latency_s: float | None) -> bool:
    """Whether a batch starts before the one before it has ended."""
    return interval_s is not None and latency_s is not None and interval_s < OVERLAPPING * latency_s


@frozen
class TimedOutcome(Outcome):
    """A run with its time and power; a figure of one that was refused is None."""

    model: str
    latency_s: float | None
    throughput_per_s: float | None
    average_power_w: float | None


@frozen
class FigureOutcome(TimedOutcome):
    """A run with its totals."""

    energy_j: float | None
    edp_js: float | None
    peak_memory_bytes: int | None
    compute_utilization_fraction: float | None
