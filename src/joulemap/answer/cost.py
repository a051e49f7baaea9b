"""Costs: a million inferences on each hardware, a break-even, carbon by grid, and what all of it assumes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.candidate import (
    analyze_each,
    assume,
    count_candidates,
    describe_candidates,
    describe_limit,
    name_candidate,
    name_columns,
    plan_candidates,
    read_usage,
    select_rows,
    template_candidate,
)
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import Scope, describe_chance, find_scope
from joulemap.domain.default import CANDIDATES, LIMITS, USAGE
from joulemap.domain.name import PROJECTED
from joulemap.domain.settings import Limits
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.selection import name_configuration
from joulemap.present.cell import show, show_chance, show_doubt, show_plain
from joulemap.present.document import Document, Grid, Lines, Section, Shown, Text, grid, say_rest
from joulemap.row.cost import AssumedNumber, BreakEven, CostOption, GridFootprint
from joulemap.row.recommend import Violation
from joulemap.store.query import fetch, start
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

if TYPE_CHECKING:
    from joulemap.domain.settings import Price, Settings, Usage
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source
    from joulemap.store.connection import Connection

WAYS: Final = {"cloud": "rented", "purchase": "bought"}
"""How a chip is paid for."""

SCOPE_NOTE: Final = (
    "counted: the chip, board or kit that the price is of, and where it is bought its electricity and a host for it, "
    "which a rent contains; not counted: staff, the carbon of making it, energy and carbon of the host"
)
UTILIZATION_NOTE: Final = "a chip idles for the rest of its hours: that energy and that rent are part of each inference"
LATENCY_NOTE: Final = "latency is of a batch, which every inference of it waits for"
IDLE_NOTE: Final = "idle power: static power where the catalogue has no other number, which is rather too high"


@frozen(kw_only=True)
class CostAnswer(RunAnswer):
    """What a million inferences of a model cost on each configuration, rented or bought."""

    rows: Table[CostOption]
    """The cheapest first; those without a price last."""
    break_evens: Table[BreakEven]
    """None where there are no two options with a price, else one."""
    grid: Table[GridFootprint]
    """Of a few configurations in every grid, the cleanest grid first."""
    assumptions: Table[AssumedNumber]
    limits: Limits
    """What the configurations were left out by."""

    @property
    def best(self) -> CostOption | None:
        """The cheapest; None where none has a price."""
        return next((row for row in self.rows if row.rank == 1), None)

    @property
    def best_available(self) -> CostOption | None:
        """The cheapest that can be bought or rented, at a price that is no guess."""
        return next((row for row in self.rows if row.status == "ok" and row.is_available), None)

    @property
    def best_published(self) -> CostOption | None:
        """The cheapest that can be had and whose numbers are neither projections nor estimates."""
        found = (row for row in self.rows if row.status == "ok" and row.is_available and not row.is_projection)
        return next(found, None)

    @property
    def break_even(self) -> BreakEven | None:
        """The one that was asked for; None where there are no two options with a price."""
        return self.break_evens[0] if self.break_evens.rows else None

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the rows that matter most."""
        rows = super().data()
        names = ("best", "best_available", "best_published")
        first = {name: row and row.record() for name in names for row in (getattr(self, name),)}
        found = rows.pop("break_evens")
        limits = {name: value for name, value in attrs.asdict(self.limits).items() if value is not None}
        return {**rows, **first, "break_even": found[0] if found else None, "limits": limits}

    def figures(self) -> tuple[Figure, ...]:
        """Return what the cheapest of each hardware costs and what that is made of; none where nothing has a price."""
        from joulemap.figure.figure import make_figure

        if self.best is None:
            return ()
        rows = attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.is_best_of_hardware))
        told = [*(self.describe_sureness() or [f"the cheapest: {self._tell(self.best)}"]), *self.describe_break_even()]
        texts = {"label": f"{template_candidate(self.scope)}, {{way}}"}
        return (make_figure("cost", rows, self.scope.bounded(self.scope.model), "; ".join(told), texts),)

    def document(self, *, limit: int = 20, repeated: Sequence[str] = ()) -> Document:
        """Return it with the cheapest of `limit` hardware; programs get every configuration and way to pay."""
        best = attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.is_best_of_hardware))
        priced, unpriced = select_rows(best, "ok"), select_rows(best, "no price")
        cheapest = [row for row in self.rows if row.status != "unsupported"][:1]
        sections = (
            Section("Million inferences, each hardware at its cheapest configuration", self._costs(priced, limit)),
            Section("Without a price, each hardware at its least energy", self._unpriced(unpriced, limit)),
            Section("Break-even", Lines(self.describe_break_even())),
            Section("Carbon of a million inferences by grid", self._by_grid()),
            Section("Prices", self._prices(priced.rows[:limit])),
            assume(self.assumptions, "cost", "carbon"),
        )
        return self._compose(
            f"{self.scope.model}: cost of a million inferences, {len(self.rows):,} configurations and ways to pay",
            sections,
            self.rows,
            notes=self._notes(best),
            steps=analyze_each(self.scope, cheapest, repeated),
        )

    def _costs(self, rows: Table[CostOption], limit: int) -> tuple[Grid | Text, ...]:
        if not rows.rows:
            return (Text("the catalogue has no price of any of this hardware"),)
        columns: tuple[Shown[CostOption], ...] = (
            ("rank", "rank"),
            *name_columns(self.scope),
            ("way", lambda row: WAYS[row.way]),
            ("cost", "usd_per_million"),
            ("80 %", lambda row: show_doubt(row.usd_half_width)),
            ("cheapest", lambda row: "" if row.probability_cheapest is None else show_chance(row.probability_cheapest)),
            ("= hardware", "hardware_usd_per_million"),
            (
                "+ energy",
                lambda row: "in the rent" if row.way == "cloud" else show(row.energy_usd_per_million, "", "USD"),
            ),
            ("+ host", _show_host),
            ("price", _show_price),
            *FIGURES,
        )
        return self._draw(rows, columns, limit, ("hardware", "precision", "batch", "way", "cost", "cheapest"))

    def _unpriced(self, rows: Table[CostOption], limit: int) -> tuple[Grid | Text, ...]:
        columns: tuple[Shown[CostOption], ...] = (*name_columns(self.scope), ("cost", "status"), *FIGURES)
        return self._draw(rows, columns, limit, ("precision", "batch", "energy"))

    def _draw(
        self, rows: Table[CostOption], columns: tuple[Shown[CostOption], ...], limit: int, keep: tuple[str, ...]
    ) -> tuple[Grid | Text, ...]:
        drawn = grid(rows, columns, limit=limit, keep=keep, projected=self.scope.projected)
        return (drawn, *say_rest(len(rows), limit, "hardware"))

    def describe_break_even(self) -> list[str]:
        """Return two options and from which volume on which one is cheaper."""
        even = self.break_even
        if even is None:
            return ["there are no two options with a price, one bought and one rented: name two with --between"]
        lines = []
        for side in "ab":
            hardware, precision, batch, way, fixed, variable = (
                getattr(even, name.format(side))
                for name in (
                    "hardware_{}", "precision_{}", "batch_{}", "way_{}", "fixed_{}_usd", "variable_{}_usd_per_million",
                )
            )  # fmt: skip
            lines.append(
                f"{side.upper()}: {self.scope.mark(hardware)} {precision} batch {batch}, {WAYS[way]}: "
                f"{show(fixed, '', 'USD')} to begin with, then {show(variable, '', 'USD')} per million inferences"
            )
        return [*lines, describe_break_even(even)]

    def _by_grid(self) -> Grid:
        runs = {row.run_id: row for row in self.grid}
        names = {row.run_id: name_candidate(self.scope, row) for row in self.rows if row.run_id in runs}
        grams = {(row.region, row.run_id): row.gco2_per_million for row in self.grid}
        return Grid(
            headings=("region", "grid", "year", "carbon", *(names[run] for run in runs)),
            rows=(
                ("", "energy", "", "", *(show(row.kwh_per_million, "", "kWh") for row in runs.values())),
                *(
                    (row.region, row.name, str(row.year), f"{row.gco2_per_kwh:.3g} g/kWh",
                     *(show(grams[row.region, run], "", "g") for run in runs))
                    for row in {row.region: row for row in self.grid}.values()
                ),
            ),
            keep=("grid", *(names[run] for run in runs)),
        )  # fmt: skip

    def _prices(self, rows: Sequence[CostOption]) -> Grid:
        cells = (
            (
                self.scope.mark(row.hardware).partition("@")[0],
                _show_price(row),
                row.price_basis or "",
                row.price_source or "",
                row.price_note or "",
            )
            for row in rows
        )
        headings = ("hardware", "price", "basis", "source", "what it buys")
        return Grid(headings=headings, rows=tuple(dict.fromkeys(cells)), keep=headings[1:4])

    def _notes(self, best: Table[CostOption]) -> list[str]:
        return [
            *self.describe_limits(),
            *self.describe_sureness(),
            SCOPE_NOTE,
            UTILIZATION_NOTE,
            *self.describe_beside(),
            LATENCY_NOTE,
            *([IDLE_NOTE] if any(row.idle_quantity == "static_power" for row in best) else []),
            *describe_candidates(self.scope, self.rows.rows),
        ]

    def describe_limits(self) -> list[str]:
        """Return what was left out by the limits."""
        count = len(set(self.scope.run_ids) - {row.run_id for row in self.rows})
        told = ", ".join(describe_limit(name, bound) for name, bound in self.limits.bounds)
        return [f"{told}: {count_candidates(count)} left out"] if told else []

    def describe_sureness(self) -> list[str]:
        """Return how sure the cheapest is; empty where none has a price."""
        best = self.best
        if best is None or best.probability_cheapest is None:
            return []
        rivals = [self._tell(row) for row in self.rows if row.likely_cheapest and row is not best]
        told = describe_chance(best.probability_cheapest, rivals)
        return [f"{self._tell(best)}: {told}{'' if rivals else ' sure to be the cheapest'}, if prices are right"]

    def describe_beside(self) -> list[str]:
        """Return the cheapest that can be bought, and that is published, where the cheapest of all is not."""
        best, available, published = self.best, self.best_available, self.best_published
        lines = []
        if best is not None and not best.is_available:
            told = self._tell(available) if available else "nothing that can be bought has a price"
            lines.append(f"the cheapest cannot be bought; best that can: {told}")
        first = best if best is None or best.is_available else available
        if first is not None and first.is_projection:
            told = self._tell(published) if published else "nothing published has a price"
            lines.append(f"{name_candidate(self.scope, first)} is a projection or estimate; best published: {told}")
        return lines

    def _tell(self, row: CostOption) -> str:
        cost = show(row.usd_per_million, "", "USD")
        return f"{name_candidate(self.scope, row)}, {WAYS[row.way]}, {cost}"


FIGURES: Final[tuple[Shown[CostOption], ...]] = (
    ("throughput", "throughput_per_s"),
    ("latency", "latency_s"),
    ("energy", "kwh_per_million"),
    ("CO2", "gco2_per_million"),
)


def _show_price(row: CostOption) -> str:
    mark = PROJECTED if row.price_basis == "assumed" else ""
    return f"{mark}{show(row.price, '', row.price_unit or '')}"


def _show_host(row: CostOption) -> str:
    if row.way == "cloud":
        return "in the rent"
    return show(row.host_usd_per_million, "", "USD") if row.host_share_ratio else "none needed"


def cost(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    between: Sequence[str] = (),
    usage: Usage = USAGE,
    limits: Limits = LIMITS,
    prices: Sequence[Price] = (),
) -> CostAnswer:
    """Return what a million inferences cost on each configuration, rented or bought, with energy and carbon.

    Configurations are those of `pareto`. `between` names the two options of the break-even (`l4`, `l4:cloud`,
    `epyc_9654:purchase`), by default the cheapest bought and the cheapest rented one. What does not keep the limits
    is left out; `prices` stand in place of the catalogue's. Raises as `compare`; UsageError for an option without a
    price, UnsupportedError where nothing keeps the limits.
    """
    used, options, given = read_usage(usage), _read_options(between), price_parameters(prices)
    paid = {name: given[name] for name in ("price_of", "price_usd")}
    plan = plan_candidates(model, settings, is_money=True, kept=_list_asked(settings, options, given))
    with holding_runs(source, plan, needs_catalogue=True) as runs:
        connection = runs.connection
        ids = _keep_limits(connection, runs.ids, limits)
        evens = start(connection, BreakEven, run_ids=ids, **options, **used, **paid)
        scope, break_evens = find_scope(runs), evens()
        rows = fetch(connection, CostOption, run_ids=ids, **used, **given)
        scope.check_evaluated()
        _check_left(scope, ids, limits)
        if between and not break_evens.rows:
            raise UsageError(_missing_option(options, rows, plan.selection.unavailable))
        in_grids = {name: used[name] for name in used if name not in ("region", "gco2_per_kwh", "host_share")}
        return CostAnswer(
            scope=scope,
            rows=rows,
            break_evens=break_evens,
            grid=fetch(connection, GridFootprint, run_ids=_told_by_grid(rows, break_evens), **in_grids),
            assumptions=fetch(connection, AssumedNumber, **used),
            limits=limits,
        )


def _keep_limits(connection: Connection, run_ids: Iterable[int], limits: Limits) -> list[int]:
    """Return the runs that keep every limit, and those that were refused, which have nothing to keep it with."""
    ids = list(run_ids)
    if not limits.bounds:
        return ids
    outside = {row.run_id for row in fetch(connection, Violation, run_ids=ids, **limits.parameters)}
    return [run_id for run_id in ids if run_id not in outside]


def _check_left(scope: Scope, ids: Collection[int], limits: Limits) -> None:
    """Raise UnsupportedError where no run that was evaluated keeps the limits."""
    if not set(ids) & set(scope.evaluated_ids):
        told = ", ".join(describe_limit(name, bound) for name, bound in limits.bounds)
        raise UnsupportedError(f"no configuration keeps {told}; `joulemap recommend` says how far each is from it")


def _read_options(between: Sequence[str]) -> dict[str, str]:
    """Return the two options of a break-even as the query takes them; UsageError unless they are two or none."""
    if not between:
        return {}
    if len(between) != 2:
        raise UsageError(f"a break-even is between two options, found {len(between)}: write A,B")
    options: dict[str, str] = {}
    for side, text in zip("ab", between, strict=True):
        hardware, colon, way = text.rpartition(":")
        if not colon or way not in WAYS:
            hardware, way = text, ""
        options |= {f"hardware_{side}": name_configuration(hardware), f"way_{side}": way}
    return options


def _list_asked(settings: Settings, options: Mapping[str, str], given: Mapping[str, Sequence[Any]]) -> set[str]:
    """Return ids of what stays though the catalogue says that it cannot be bought.

    It is what somebody names a price of, and both options of a break-even unless only what can be bought is asked for.
    """
    priced = {name.partition(":")[0] for name in given["price_of"]}
    named = {options[name].partition("@")[0] for name in options if name.startswith("hardware_")}
    return priced if settings.is_available else priced | named


def _missing_option(options: Mapping[str, str], rows: Table[CostOption], unavailable: Collection[str]) -> str:
    """Return which option of a break-even has no price, or is not among the configurations."""
    for side in "ab":
        name, way = options[f"hardware_{side}"], options[f"way_{side}"]
        of_name = [row for row in rows if name in (row.hardware, row.hardware.partition("@")[0])]
        if name.partition("@")[0] in unavailable:
            return f"{name} cannot be bought, and only what can be is compared: leave out --available"
        if not of_name:
            return f"{name} is not among the configurations that are compared"
        if not any(row.status == "ok" and way in ("", row.way) for row in of_name):
            return f"there is no {f'{way} ' if way else ''}price of {name}: the catalogue has none, and none is given"
    return "the two options cannot be compared"


def _told_by_grid(rows: Table[CostOption], break_evens: Table[BreakEven]) -> list[int]:
    """Return the runs whose carbon is told for every grid: the cheapest, the pair, and the one with least energy."""
    evaluated = [row for row in rows if row.kwh_per_million is not None]
    least = min(evaluated, key=lambda row: row.kwh_per_million or 0.0, default=None)
    pair = [run for even in break_evens for run in (even.run_a, even.run_b)]
    return list(dict.fromkeys([*(row.run_id for row in evaluated[:1]), *pair, *([least.run_id] if least else [])]))


def describe_break_even(row: BreakEven) -> str:
    """Return from which volume on which option is cheaper."""
    if row.break_even_inferences is None:
        return f"{row.cheaper_below} is cheaper at any volume" if row.cheaper_below else (
            "both cost the same at any volume")  # fmt: skip
    volume = f"{format_si(row.break_even_inferences, '').strip()} inferences"
    if row.is_within_life:
        years = row.break_even_years
        work = "" if years is None else f", {show_plain(years)} years of one chip's work"
        return f"break-even at {volume}{work}: {row.cheaper_below} is cheaper below, {row.cheaper_above} above"
    lives = [life for life in (row.inferences_per_life_a, row.inferences_per_life_b) if life is not None]
    return (
        f"break-even at {volume}, more than the {format_si(min(lives), '').strip()} that one bought chip does in "
        f"its lifetime: {row.cheaper_below} stays cheaper"
    )
