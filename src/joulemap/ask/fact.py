"""Facts: the content of an answer as typed values. `joulemap.show` alone turns facts into words.

query rows ─► rules (joulemap.ask) ─► facts ─► words, data (joulemap.show)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from joulemap.system.record import frozen


@frozen
class Quantity:
    """Number with its SI unit and 80 % interval."""

    value: float
    unit: str = ""
    half_width: float | None = None
    """Half-width of the interval of the natural logarithm; None without an interval."""


Value: TypeAlias = Quantity | float | int | str | tuple[Any, ...] | None


@frozen(kw_only=True)
class Run:
    """Configuration that facts refer to by its run id, or by its row where an answer's rows are not stored runs."""

    hardware: str
    """Id with its power mode, as in the database."""
    settings: tuple[str, ...] = ()
    """Settings in which the runs of the answer differ, such as `batch 8`."""
    is_available: bool = True
    """False for hardware that can be neither bought nor rented."""
    is_named: bool = False
    """True if the user named the hardware."""


@frozen(kw_only=True)
class Entry:
    """Values of one run: a row of the table."""

    runs: tuple[int, ...]
    values: Mapping[str, Quantity]
    """Metric -> value."""


@frozen(kw_only=True)
class Choice:
    """Best run by a metric. `runs` holds the winner, the runner-up if there is one, then the others by rank."""

    runs: tuple[int, ...]
    metric: str
    """Metric of the core or of a wing."""
    value: Quantity
    ratio: float | None = None
    """Factor by which the winner is better than the runner-up."""
    probability: float | None = None
    """Probability that the winner is the best."""
    tied: tuple[int, ...] = ()
    """Runs of other chips that are statistically tied with the winner, likeliest first."""
    equal: tuple[int, ...] = ()
    """Runs with exactly the winner's value."""


@frozen(kw_only=True)
class Cause:
    """Category in which two runs differ most: the winner, then the other run."""

    runs: tuple[int, int]
    metric: str
    name: str
    difference: Quantity
    """Excess of the other run; negative if it spends less."""
    share: float | None
    """Share of the whole difference; None if other categories outweigh it."""


@frozen(kw_only=True)
class Refusal:
    """Runs without a result, and why."""

    runs: tuple[int, ...]
    reason: str


@frozen(kw_only=True)
class Caveat:
    """Assumption or omission behind an answer: the result of one rule."""

    kind: str
    """Name of the rule, and of its template."""
    runs: tuple[int, ...]
    values: Mapping[str, Value]
    weight: float = 0.0
    """Natural logarithm of the factor by which it could move the decision; 0 if it cannot."""
    move: float = 0.0
    """Natural logarithm of the factor by which it could move the values of its runs."""


@frozen(kw_only=True)
class Share:
    """Part of one run that limits it, such as memory in a decode step."""

    runs: tuple[int, ...]
    metric: str
    """Quantity that is divided."""
    name: str
    """Name of the part."""
    share: float


@frozen(kw_only=True)
class Limit:
    """Limit on a metric, and the value that the best or nearest run has."""

    runs: tuple[int, ...]
    """The run; empty if no run has a result."""
    metric: str
    bound: Quantity
    value: Quantity | None = None
    """Value of the run; None if unknown."""
    miss: float | None = None
    """Natural logarithm of the factor by which the run misses the limit: 0 if it meets it, None if unknown."""


@frozen(kw_only=True)
class Score:
    """Measured value of a run beside its prediction."""

    runs: tuple[int, ...]
    metric: str
    predicted: Quantity
    measured: Quantity
    is_inside: bool | None = None
    """True if the measured value is inside the 80 % interval of the prediction; None without an interval."""


Fact: TypeAlias = Entry | Choice | Cause | Refusal | Caveat | Share | Limit | Score


@frozen(kw_only=True)
class Facts:
    """Facts of one question, most important first within each type."""

    asked: tuple[str, ...]
    """Quantities that the answer is about, the deciding one first."""
    runs: Mapping[int, Run]
    facts: tuple[Fact, ...]

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the facts of one type, in their order."""
        return [one for one in self.facts if isinstance(one, kind)]
