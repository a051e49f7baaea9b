"""Runs as functions of their constants, and the document of an answer about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.fact import Facts
from joulemap.ask.price import find_prices
from joulemap.ask.scope import Scope
from joulemap.domain.computed import described
from joulemap.domain.constant import name_constant
from joulemap.domain.metric import VariedMetricName
from joulemap.domain.settings import Usage
from joulemap.domain.table import Table
from joulemap.domain.value import show_constant
from joulemap.physics.record.constant import Constant
from joulemap.plan.run import Plan
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.plan.variation import BILLED, Variation, find_variations
from joulemap.show.present.cell import number
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.turn import TIMES, describe_meanings, describe_odds, describe_turn, list_reasons
from joulemap.system.record import frozen

STEP_TRY: Final = Template("compare {model} --hardware {joined} --set {setting} {repeated}")
"""Follow-up command that changes a constant; `ConstantAnswer._fill_pair` fills it."""

SHOWN: Final = 6
"""Default number of constants in the main table."""

DIGITS: Final = 3
"""Significant digits of constants in the main table; the detailed tables show more digits."""

SCALE: Final = "_time_scale"
"""Suffix of the name of a constant that scales a time."""


@frozen(kw_only=True)
class Varied:
    """Constant of a run, and how its change is evaluated."""

    constant: str = described("name of the constant, as in --set")
    word: str = described("name of the constant for people")
    meaning: str = described("meaning of a coefficient, or counting rule of a price; empty for all other")
    kind: str = described("price, quantity, geometry, memory, peak, coefficient or use")
    value: float = described("value in the run, for both that of A; in unit")
    unit: str = described("SI unit")
    per: str = described("unit of count of a price; empty for all other")
    basis: str = described("origin of the constant; for both, the less certain one")
    source: str = described("document, measurement or arithmetic")
    method: str = described("exact: from the ledger, which is linear in prices; evaluated: by evaluating again")

    @property
    def shown_unit(self) -> str:
        """Unit for people: the scale of a time is a factor."""
        return TIMES if self.constant.endswith(SCALE) else self.unit

    @number
    def show(self, value: float | None, digits: int = 6) -> str:
        """Format a value of the constant, empty for None; the scale of a time becomes a factor, such as 2x."""
        if value is None:
            return ""
        shown = show_constant(value, self.unit, digits)
        return f"{shown}{TIMES}" if self.shown_unit == TIMES else shown


def describe_constant(one: Constant) -> dict[str, Any]:
    """Return column -> value for the columns that describe a constant."""
    names = ("meaning", "kind", "value", "unit", "per", "basis", "source")
    return {"constant": one.name, "word": name_constant(one), **{name: getattr(one, name) for name in names}}


@number
def show_elasticity(value: float | None) -> str:
    """Format an elasticity with its sign; empty for None."""
    return "" if value is None else f"{value:+.3f}" if abs(value) >= 5e-4 else "0"


@frozen(kw_only=True)
class ConstantAnswer(RunAnswer):
    """Constants of runs, and how each of them moves a metric of one run or of the ratio of two."""

    metric: VariedMetricName
    paid: str
    """Way of paying, and kind of seller; empty for metrics without a price."""
    facts: Facts
    """Values of the runs, reversals or effects of constants, and caveats, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the name of the metric."""
        return {**super().data(), "metric": self.metric}

    def _compose_constants(
        self, table: Table[Any], shown: Grid, chosen: Iterable[Varied], about: str, notes: Iterable[str], **more: Any
    ) -> Document:
        """Return the document of a table of constants; `shown` is its main part, with the `chosen` constants."""
        meanings = ((row.constant, row.word, row.meaning) for row in chosen if row.kind == "coefficient")
        return self._compose_facts(
            self.facts,
            (Section("", shown),),
            table,
            title=attrs.evolve(title_runs(self.scope), about=about),
            answer=describe_turn(self.facts),
            reasons=list_reasons(self.facts),
            trust=describe_odds(self.facts),
            notes=[*notes, *describe_meanings(meanings)],
            **more,
        )

    def _can_set(self, row: Varied) -> bool:
        """Return whether `--set` may change a constant: one of a chip that the question has not set."""
        changed = {name.rpartition(":")[2] for name in self.scope.settings.changes}
        return row.kind != "use" and row.constant not in changed

    def _fill_pair(
        self, steps: Iterable[Template], names: Iterable[str], repeated: Sequence[str], setting: str
    ) -> list[list[str]]:
        """Return follow-up commands on the chips `names`; `setting` is the value of `--set`."""
        pair = [self.scope.spell(name) for name in names]
        values = {"model": self.scope.model, "pair": pair, "joined": ",".join(pair), "metric": self.metric}
        return [one.words(setting=setting, repeated=repeated, **values) for one in steps]


@contextlib.contextmanager
def opening_variations(
    source: Source, plan: Plan, metric: VariedMetricName, usage: Usage
) -> Iterator[tuple[Scope, list[Variation], str]]:
    """Yield the scope of a question about the runs of a plan, each run as a function of its constants, and the way of
    paying.

    `usage` applies if the metric is a cost. Raises like `opening_runs`.
    """
    billed = usage if metric in BILLED else None
    with opening_runs(source, plan, needs_catalogue=billed is not None) as runs:
        prices = find_prices(runs.connection, runs.ids, plan.settings, billed)
        scope = Scope.of(runs)
        yield scope, find_variations(runs, billed, prices.of_run), prices.paid
        scope.read()
