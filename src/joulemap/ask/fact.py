"""Facts: the content of an answer as typed values. `joulemap.show` alone turns facts into words.

query rows ─► rules (joulemap.ask) ─► facts ─► words, data (joulemap.show)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import attrs

from joulemap.physics.interval.error_scale import LOGISTIC, TOLD_APART
from joulemap.system.errors import OTHER, Reason
from joulemap.system.record import frozen

BUDGET: Final = "budget"
"""Code of hardware without a power mode within the power budget."""

BOUNDARY: Final = "boundary"
"""Code of hardware whose energy at the requested boundary is unknown."""

PORT: Final = "port"
"""Code of hardware that does not fit the requested host."""

CALIBRATION: Final = "calibration"
"""Code of hardware whose calibration does not fit."""


ShareMetric = Literal[
    "bandwidth", "compute", "edp", "energy", "energy_per_token", "fp32", "latency", "step", "time",
    "uncertainty", "units", "utilization", "wins",
]  # fmt: skip
"""Quantities of which facts are shares."""

ShareLevel = Literal[
    "", "action", "bottleneck", "category", "convolutions", "device", "grade", "lanes", "link", "module", "overhead",
    "pattern", "static", "subgraph", "tied",
]  # fmt: skip
"""Divisions that a share belongs to; empty if an answer has one."""

TermLevel = Literal["category", "contributor", "origin", "pattern", "quantity", "role", "subgraph", "traffic", "work"]
"""Divisions that a term belongs to."""

TermQuantity = Literal["energy", "memory", "time"]
"""Kinds of the amounts of a term."""

WinLevel = Literal["model", "operator", "subgraph"]

TurnAxis = Literal["batch", "host", "inferences", "ratio"]
"""Conditions of turns that are neither a limit, a constant nor a remedy."""

LEADING: Final = 0.1
"""Minimum share of the difference at which a subgraph is a fact, and a category against the whole has a line."""


@frozen
class Quantity:
    """Number with its SI unit and 80 % interval."""

    value: float
    unit: str = ""
    half_width: float | None = None
    """Half-width of the interval of the natural logarithm; None without an interval."""


Value: TypeAlias = Quantity | float | int | str | tuple[Any, ...] | None


@frozen(kw_only=True)
class Subject:
    """Configuration that facts refer to by its run id, or by its row where an answer's rows are not stored runs."""

    hardware: str
    """Id with its power mode, as in the database."""
    settings: tuple[str, ...] = ()
    """Settings in which the runs of the answer differ, such as `batch 8`."""
    is_available: bool = True
    """False for hardware that can be neither bought nor rented."""
    is_named: bool = False
    """True if the user named the hardware."""
    architecture: str = ""
    """Class of the hardware, if the answer compares classes."""
    is_sure: bool = True
    """False if it is unknown whether the hardware can run every operator, so that no chance holds."""


class AboutRuns:
    """Fact about runs."""

    runs: tuple[int, ...]

    @property
    def run(self) -> int:
        """First of its runs, such as the winner of a choice."""
        return self.runs[0]


@frozen(kw_only=True)
class Entry(AboutRuns):
    """Values of one run: a row of the table."""

    runs: tuple[int, ...]
    values: Mapping[str, Quantity]
    """Metric -> value."""

    @classmethod
    def read(cls, key: int, row: object, values: Mapping[str, tuple[str, ...]]) -> Entry:
        """Return the known values of a row; `values` maps a metric to field, unit and field with the half-width."""
        known = {
            metric: Quantity(float(value), unit, getattr(row, width[0]) if any(width) else None)
            for metric, (field, unit, *width) in values.items()
            if (value := getattr(row, field, None)) is not None
        }
        return cls(runs=(key,), values=known)


@frozen(kw_only=True)
class Choice(AboutRuns):
    """Best run by a metric. `runs` holds the winner, the runner-up if there is one, then the others by rank."""

    runs: tuple[int, ...]
    metric: str
    """Metric of the core or of a wing."""
    value: Quantity
    ratio: float | None = None
    """Factor by which the winner is better than the runner-up."""
    probability: float | None = None
    """Probability that the winner is the best."""
    ahead: float | None = None
    """Probability that the winner is better than the runner-up; None if only the probability of being best is known."""
    further: Mapping[int, tuple[float | None, float | None]] = {}
    """Other run -> factor by which the winner is better, and the probability that it is."""
    tied: tuple[int, ...] = ()
    """Runs of other chips that are statistically tied with the winner, likeliest first."""
    equal: tuple[int, ...] = ()
    """Runs with exactly the winner's value."""
    per: str = "inference"
    """Unit of work of a metric per inference, such as `frame`."""
    model: str = ""
    """Model that the choice is about; empty if the answer is about one model."""

    @property
    def close(self) -> frozenset[int]:
        """Runs that may be the best: the winner, those that are statistically tied with it, and equal ones."""
        return frozenset((*self.runs[:1], *self.tied, *self.equal))

    def against(self, run_id: int) -> tuple[float | None, float | None]:
        """Return the factor by which the winner is better than another run, and the probability that it is or, if that
        is unknown, that the winner is the best.
        """
        ratio, ahead = (self.ratio, self.ahead) if run_id in self.runs[1:2] else self.further.get(run_id, (None, None))
        return ratio, self.probability if ahead is None else ahead

    def find_ratio(self, run_id: int) -> float:
        """Return the factor by which the winner is better than a run: 1 for itself, infinite if unknown."""
        ratio = 1.0 if run_id == self.run or run_id in self.equal else self.against(run_id)[0]
        return float("inf") if ratio is None else ratio

    def facing(self, run_id: int) -> Choice:
        """Return the choice with another run as the runner-up."""
        if run_id not in self.runs[2:]:
            return self
        (ratio, ahead), rest = self.further.get(run_id, (None, None)), [one for one in self.runs[1:] if one != run_id]
        further = {**self.further, self.runs[1]: (self.ratio, self.ahead)}
        return attrs.evolve(self, runs=(self.run, run_id, *rest), ratio=ratio, ahead=ahead, further=further)


ALMOST_SURE: Final = 1.0 - 1e-6
"""Probability from which a ratio has no range, because rounding would make it."""


@frozen(kw_only=True)
class Lead:
    """Comparison of a run with another one by a metric."""

    metric: str
    ratio: float | None
    """Factor by which the better of both is better; None if unknown."""
    probability: float | None
    """Probability that the better of both is better."""
    is_better: bool
    """True if the first run is the better one."""
    is_tied: bool
    """True if the data do not tell which one is better."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Ends of the 80 % interval of the ratio, which the ratio and its probability imply; None if they are unknown,
        or almost certain.

        Source: `joulemap.physics.interval.probability`, solved for the half-width.
        """
        if self.ratio is None or self.probability is None or not TOLD_APART <= self.probability < ALMOST_SURE:
            return None
        half_width = LOGISTIC * math.log(self.ratio) / math.log(self.probability / (1.0 - self.probability))
        return self.ratio * math.exp(-half_width), self.ratio * math.exp(half_width)


@frozen(kw_only=True)
class Decision(AboutRuns):
    """Run to take, which may be the best by every metric, or a trade-off between the best by each of two metrics."""

    runs: tuple[int, ...]
    """Run to take and the run that it is compared with, if there is one; of a trade-off, the run by each metric."""
    choice: Choice
    """Ranking by the deciding metric."""
    leads: tuple[Lead, ...]
    """Comparison of both runs by each metric, the deciding one first."""
    is_trade: bool
    """True if no run may be the best by both metrics."""
    alike: tuple[int, ...]
    """Other runs that may be as good as the one to take or, in a trade-off, by the deciding metric; likeliest first."""


@frozen(kw_only=True)
class Refusal(AboutRuns):
    """Configuration without a result, and why."""

    runs: tuple[int, ...]
    """Refused runs; empty for hardware that was left out before anything ran."""
    reason: str
    """Sentence of the code that found the reason; it is shown, never read."""
    code: str = OTHER
    """Kind of the reason, such as `precision` or `memory`."""
    values: Mapping[str, Any] = {}
    """Values of the reason: numbers in SI units with the unit in the name, names, and tuples of names."""
    hardware: tuple[str, ...] = ()
    """Hardware without its power modes, each once; empty if the rows of the answer name it."""
    is_available: bool = True
    """False for hardware that can be neither bought nor rented."""

    @classmethod
    def of(
        cls, reason: Reason, runs: tuple[int, ...], hardware: tuple[str, ...] = (), *, is_available: bool = True
    ) -> Refusal:
        """Return the refusal of runs for a reason."""
        return cls(
            runs=runs,
            reason=reason.text,
            code=reason.code,
            values=reason.values,
            hardware=hardware,
            is_available=is_available,
        )


@frozen(kw_only=True)
class Caveat(AboutRuns):
    """Assumption or omission behind an answer: the result of one rule."""

    kind: str
    """Name of the rule, and of its template."""
    runs: tuple[int, ...]
    values: Mapping[str, Value]
    weight: float = 0.0
    """Natural logarithm of the factor by which it could move the decision; 0 if it cannot."""
    move: float = 0.0
    """Natural logarithm of the factor by which it could move the values of its runs."""
    bias: float = 0.0
    """Natural logarithm of the factor that the winner's value lacks relative to the runner-up's, as far as it is known;
    below 0 if the winner leads by more.
    """


@frozen(kw_only=True)
class Share(AboutRuns):
    """Part of a whole: what limits one run, such as memory in a decode step, or what makes its uncertainty."""

    runs: tuple[int, ...]
    metric: ShareMetric
    """Quantity that is divided."""
    level: ShareLevel = ""
    """Division that the part belongs to, if an answer has several."""
    within: str = ""
    """Part of the run that is divided; empty for the whole run."""
    name: str = ""
    """Name of the part; empty for all of these runs."""
    share: float
    count: int = 0
    """Number of equal or of largest parts that make the share together, if they are counted."""
    total: int = 0
    """Number of all parts of the division, if they are counted."""
    axis: str = ""
    """Name of a constant, as in `--set`."""
    basis: str = ""
    """Basis of that constant."""


@frozen(kw_only=True)
class Limit(AboutRuns):
    """Limit on a metric, and the value that the best or nearest run has."""

    runs: tuple[int, ...]
    """The best run or the nearest miss first; empty if no run has a result."""
    metric: str
    bound: Quantity
    value: Quantity | None = None
    """Value of the first run; None if unknown."""
    miss: float | None = None
    """Natural logarithm of the factor by which that run misses the limit: 0 if it meets it, None if unknown."""
    missed_count: int = 0
    """Number of other chips or configurations that miss the limit."""


@frozen(kw_only=True)
class Score(AboutRuns):
    """Measured value of a run beside its prediction."""

    runs: tuple[int, ...]
    metric: str
    predicted: Quantity
    measured: Quantity
    is_inside: bool | None = None
    """True if the measured value is inside the 80 % interval of the prediction; None without an interval."""


@frozen(kw_only=True)
class Turn(AboutRuns):
    """Change of one condition after which another run wins."""

    runs: tuple[int, ...]
    """Run that wins after the change, then the run that wins before it; one run at the start of the axis."""
    axis: str
    """Condition: `batch`, `inferences`, `ratio`, `host`, `pay`, the metric of a limit, or the name of a constant."""
    name: str = ""
    """Name of a constant for people."""
    of: tuple[int, ...] = ()
    """Runs whose constant changes."""
    before: Value = None
    after: Value = None
    """Place on the axis from which the run wins."""
    metric: str | None = None
    """Metric by which it wins, if the answer has several."""
    value: Quantity | None = None
    """Value of the winning run after the change, by the metric that decides."""
    ratio: float | None = None
    """Factor by which it then wins."""
    probability: float | None = None
    """Probability of a change this large."""
    settings: tuple[str, ...] = ()
    """Model and settings to which the turn applies, if the answer has several."""
    is_tied: bool = False
    """True if both runs are statistically tied after the change."""
    is_forced: bool = False
    """True if the run that wins before the change cannot run after it."""
    values: Mapping[str, Value] = {}
    """Further values of the change, such as the time to reach it."""


@frozen(kw_only=True)
class Supply(AboutRuns):
    """Battery of a use case, and the time for which a run can draw from it."""

    runs: tuple[int, ...]
    name: str
    """Battery, from its source."""
    power: Quantity
    """Average power of the run with its host."""
    life: Quantity


@frozen(kw_only=True)
class Swing(AboutRuns):
    """Range of a metric of a run over the range of one constant."""

    runs: tuple[int, ...]
    axis: str
    """Name of the constant, as in `--set`."""
    name: str
    basis: str
    ends: tuple[Quantity, ...]
    """Ends of the constant's range that are possible, lower one first."""
    values: tuple[Quantity, ...]
    """Values of the metric at the ends and in between, lowest first."""


@frozen(kw_only=True)
class Change(AboutRuns):
    """Value of a metric in one run and in a later run of the same hardware, and what changes it."""

    runs: tuple[int, int]
    metric: str
    before: Quantity
    after: Quantity
    cause: str = ""
    """Kind of the cause; empty if unknown."""
    values: Mapping[str, Value] = {}
    """Values of the cause and of both runs, such as their batch sizes."""


@frozen(kw_only=True)
class Front(AboutRuns):
    """Configurations that no other beats in both metrics. `runs` is in the order of the first metric, best first."""

    runs: tuple[int, ...]
    metrics: tuple[str, str]
    count: int
    """Number of configurations that were compared."""
    knee: int | None = None
    """Run of the knee; None for a front without one."""
    is_available: bool = True
    """False for configurations of unavailable hardware that would be on the front."""


@frozen(kw_only=True)
class Term(AboutRuns):
    """Part of the difference of two runs, the second minus the first. The terms of one level sum to it exactly, except
    those of `subgraph` and `traffic`, which are only the ones that matter.
    """

    runs: tuple[int, int]
    level: TermLevel
    """Division that the term belongs to."""
    quantity: TermQuantity
    """Kind of the amounts."""
    name: str
    amounts: tuple[Quantity, Quantity]
    """Energy, time or bytes of the first and of the second run."""
    difference: Quantity
    """Contribution to the difference, in the unit of the explained metric."""
    exact: int | None = None
    """Contribution in the exact unit of the metric: fJ, fs, bytes, or twice fJ fs."""
    share: float | None = None
    """Share of the whole difference; negative against it."""
    counts: tuple[Quantity | None, ...] = ()
    """Amount of work of each run, if it explains much of the difference."""
    prices: tuple[Quantity | None, ...] = ()
    """Energy per unit of work, power, time per unit of work, or rate of each run, if it explains much."""
    per: str = ""
    """Unit of work that the counts are for; empty for a whole batch."""
    passes: tuple[float | None, ...] = ()
    """Counted MACs per MAC of the model, if they are several."""
    units: tuple[tuple[int | None, int | None, str], ...] = ()
    """Busy units, all units and their name, of each run."""
    is_shared: bool = True
    """True if both runs have the actions of the role, or the bottleneck in the same subgraphs."""
    category: str = ""
    """Category of a role; empty if the name is one."""
    alike: int = 0
    """Number of further subgraphs with the same difference."""
    total: int = 0
    """Number of all subgraphs."""

    @property
    def part(self) -> float:
        """Share of the whole difference; 0 if it is unknown."""
        return self.share or 0.0


@frozen(kw_only=True)
class Win(AboutRuns):
    """Parts of a model, or models, for which one chip alone has the best value of a metric.

    Wins of available hardware are among available hardware, those of other hardware among all.
    """

    runs: tuple[int, ...]
    """Runs of the chip with these parts."""
    metric: str
    level: WinLevel
    """Counted things."""
    count: int
    total: int
    """Number of all parts."""
    tied: int = 0
    """Number of further parts for which it has exactly the best value, as another chip does."""
    kinds: tuple[tuple[str, int, int], ...] = ()
    """Kind of operator, number of parts of this kind that are won, and of all of this kind; most won first."""


Kind = TypeVar("Kind")

Fact: TypeAlias = (
    Entry | Choice | Refusal | Caveat | Limit | Turn | Supply | Change | Front | Swing | Share | Term | Score | Win
)


@frozen(kw_only=True)
class Facts:
    """Facts of one question, most important first within each type."""

    asked: tuple[str, ...]
    """Quantities that the answer is about, the deciding one first."""
    runs: Mapping[int, Subject]
    facts: tuple[Fact, ...]
    part: str = ""
    """Subgraph that all facts are about; empty for whole runs."""

    @property
    def is_named(self) -> bool:
        """True if the user named hardware."""
        return any(one.is_named for one in self.runs.values())

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return the facts of one type, in their order."""
        return [one for one in self.facts if isinstance(one, kind)]

    def shares(self, metric: ShareMetric, level: ShareLevel = "") -> list[Share]:
        """Return the shares of a metric, of one division if it is named. That of an only part is never said."""
        return [one for one in self.of(Share) if one.metric == metric and level in ("", one.level) and one.total != 1]

    def share(self, metric: ShareMetric, level: ShareLevel = "") -> Share | None:
        """Return the first of `shares`; None without any."""
        return next(iter(self.shares(metric, level)), None)

    def turns(self, axis: TurnAxis) -> list[Turn]:
        """Return the turns of one condition."""
        return [one for one in self.of(Turn) if one.axis == axis]

    def find_values(self, run: int) -> Mapping[str, Quantity]:
        """Return the values of a run; empty without any."""
        return next((one.values for one in self.of(Entry) if one.runs[:1] == (run,)), {})
