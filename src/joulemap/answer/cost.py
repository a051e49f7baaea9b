"""Compute costs: a million inferences on each hardware, a break-even, carbon by grid, and the assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.candidate import (
    WAYS,
    CandidateAnswer,
    count_candidates,
    describe_limit,
    describe_projection,
    describe_use,
    find_chip,
    first_of_each,
    plan_candidates,
    read_usage,
)
from joulemap.answer.engine import count_in
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import Scope, find_scope
from joulemap.domain.configuration import BOARD
from joulemap.domain.default import DEPLOYED, LIMITS, USAGE
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.offer import MANY
from joulemap.domain.settings import Limits, Price, Settings, Usage
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_chance, show_doubt, show_plain, show_share
from joulemap.present.document import Document, Grid, Section, Shown
from joulemap.row.cost import AssumedNumber, BreakEven, CostOption, GridFootprint
from joulemap.row.recommend import Violation
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, start
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import format_si

IN_RENT: Final = "in the rent"

SHOWN_UNLIKE: Final = 3
"""Maximum hardware named on the line about other kinds of seller."""

SCOPE_NOTE: Final = (
    "counted: the chip, board or kit that the price is of, and where it is bought its electricity and a host for it, "
    "which a rent contains; not counted: staff, the carbon of making it"
)
BOARD_NOTE: Final = "at the board, energy and carbon leave out the host and the power supply"
UTILIZATION_NOTE: Final = "energy and rent of idle hours are part of each inference"
PRICE_NOTE: Final = (
    "a price is the median over sellers of one kind; its 80 % interval is their spread, or the spread usual for the "
    "kind where one seller is known (assumed to hold for this hardware too), plus 1.2x for a published, 1.3x for a "
    "recalled and 2x for an assumed price; 37 % of the variance is common to the prices of one seller (from the "
    "offers); a given price is exact; the view `offers` lists every offer with its date and source"
)
LATENCY_NOTE: Final = "latency is of a batch, which every inference of it waits for"
IDLE_NOTE: Final = "idle power defaults to static power, which overestimates it"


@frozen(kw_only=True)
class CostAnswer(CandidateAnswer):
    """Cost of a million inferences of a model on each configuration, rented or bought."""

    rows: Table[CostOption]
    """Rows by cost, cheapest first; those without a price last."""
    break_evens: Table[BreakEven]
    """Break-even of two options: one row, or none if fewer than two have a price."""
    grid: Table[GridFootprint]
    """Carbon of a few configurations in every grid, the cleanest grid first."""
    limits: Limits
    """Limits that excluded configurations."""

    @property
    def _unit(self) -> str:
        return count_in(self.scope.model)

    @property
    def projection(self) -> CostOption | None:
        """Cheapest unavailable configuration, if it is cheaper than the best available one."""
        best = self.best
        if best is None:
            return None
        rows = (row for row in self.rows if self._is_asked(row) and row.is_alike and not row.is_available)
        found = next((row for row in rows if row.rank is None), None)
        return found if found is not None and _usd(found) < _usd(best) else None

    @property
    def other_way(self) -> CostOption | None:
        """Cheapest available configuration in the way of paying that is not ranked; None if both are."""
        found = (row for row in self.rows if row.status == "ok" and row.is_alike and not self._is_asked(row))
        return next((row for row in found if row.is_available), None)

    @property
    def break_even(self) -> BreakEven | None:
        """Requested break-even; None if fewer than two options have a price."""
        return self.break_evens[0] if self.break_evens.rows else None

    @property
    def pay(self) -> str:
        """Way of paying: rented, bought or both."""
        return self.rows[0].pay if self.rows.rows else ""

    @property
    def _kind(self) -> str:
        """Kind of seller that is compared; empty if both ways of paying are compared or no price has a kind."""
        asked = next((row for row in self.rows if self._is_asked(row) and row.compared_kind), None)
        return asked.compared_kind or "" if asked is not None and self.pay != "both" else ""

    def _is_asked(self, row: CostOption) -> bool:
        return row.status == "ok" and (row.pay == "both" or row.way == row.pay)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the most important rows."""
        rows = super().data()
        names = ("best", "projection", "other_way")
        first = {name: row and row.record() for name in names for row in (getattr(self, name),)}
        found = rows.pop("break_evens")
        limits = {name: value for name, value in attrs.asdict(self.limits).items() if value is not None}
        return {**rows, "pay": self.pay, **first, "break_even": found[0] if found else None, "limits": limits}

    def figures(self) -> Figures:
        """Return the cost of the cheapest configuration of each hardware by component; empty if nothing has a price."""
        if self.best is None:
            return ()
        rows = attrs.evolve(self.rows, rows=tuple(self._each()))
        told = [self.describe_best(), *filter(None, (self.describe_sureness(), *self.describe_break_even()))]
        texts = {"label": f"{self._template}, {{way}}"}
        subject = f"{self.scope.model}: {describe_use(self.assumptions, self.pay, self._kind)}"
        return (self._draw_figure("cost", rows, subject, "; ".join(told), texts),)

    def _each(self) -> list[CostOption]:
        """Return the cheapest configuration of each hardware in the selected way of paying: ranked, or named."""
        named = bool(self.scope.settings.hardware)
        asked = (row for row in self.rows if self._is_asked(row))
        return first_of_each(row for row in asked if row.rank is not None or named)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the cheapest of `limit` hardware; machine formats hold every configuration and way
        to pay.
        """
        priced = attrs.evolve(self.rows, rows=tuple(self._each()))
        unpriced = attrs.evolve(self.rows, rows=tuple(self._unpriced_each()))
        return self._compose(
            f"{self.scope.model}, {self.scope.describe_runtime()}: cost of a million {self._unit}, "
            f"{describe_use(self.assumptions, self.pay, self._kind)}",
            (Section("", self._deciding(priced, limit)),),
            self.rows,
            answer=self.describe_best(),
            chosen=[] if self.best is None else [self.best.run_id],
            insights=self._insights(),
            sure=self.describe_sureness(),
            details=(
                Section("What the cost is made of", self._costs(priced, limit)),
                Section("Prices", self._prices(priced.rows[:limit]).out_of(len(priced), limit, "hardware")),
                Section(
                    "Without a price in this way, each hardware at its least energy",
                    self._draw(unpriced, FIGURES, limit, ("energy",), "hardware"),
                ),
                Section(f"Carbon of a million {self._unit} by grid", self._by_grid()),
                self._assume("cost", "carbon"),
            ),
            notes=self._notes(priced),
            steps=self._steps(repeated),
        )

    def _unpriced_each(self) -> list[CostOption]:
        """Return each hardware without a price in the selected way of paying, at its lowest energy."""
        priced = {find_chip(row) for row in self.rows if self._is_asked(row)}
        others = (row for row in self.rows if row.status != "unsupported" and row.is_available)
        rows = [row for row in others if find_chip(row) not in priced]
        return first_of_each(sorted(rows, key=lambda row: row.kwh_per_million or 0.0))

    def describe_best(self) -> str:
        """Return the headline: the cheapest configuration, with its carbon."""
        best = self.best
        if best is None:
            noun = {"rented": "rent", "bought": "purchase price"}.get(self.pay, "price")
            return f"no {noun} is known for any of this hardware"
        is_had = best.is_available or self.scope.settings.takes_all
        first = (
            "the cheapest" if sum(row.rank is not None for row in self._each()) > 1 else "its cheapest configuration"
        )
        first += "" if is_had else " if available"
        grid = next((row for row in self.assumptions if row.assumption == "grid"), None)
        place = "" if grid is None else grid.note.partition(",")[0] or "the grid that is given"
        carbon = show(best.gco2_per_million, "", "g")
        share = (best.energy_usd_per_million or 0.0) / _usd(best) if _usd(best) else 0.0
        power = f", {show_share(share)} of it for electricity" if best.way == "bought" else ""
        each = "" if self._unit == "inferences" else f" per million {self._unit}"
        return f"{self._tell(best)}{each}, {first}{power}; {carbon} of CO2 ({place}, on average)"

    def _insights(self) -> list[str]:
        """Return sentences on the other way of paying, the break-even, missing prices and unavailable hardware."""
        best, other, projection = self.best, self.other_way, self.projection
        lines = []
        if other is not None and best is not None:
            ratio = _usd(other) / _usd(best)
            told = f"{ratio:.3g}x as much" if ratio >= 1.0 else f"{1.0 / ratio:.3g}x less"
            lines.append(f"{other.way} instead, {self._tell(other, way=False)} at best, {told}")
        elif other is not None:
            lines.append(f"{other.way} instead: {self._tell(other, way=False)} at best (--pay {other.way})")
        lines = ["; ".join([*lines, *self.describe_break_even()])] if lines or self.break_even else []
        lines += self._describe_unlike()
        unpriced = self._unpriced_each()
        if unpriced:
            way = "rent" if self.pay == "rented" else "price"
            lines.append(f"left out, without a {way}: {len(unpriced)} hardware (--notes names them)")
        if projection is not None and best is not None:
            lines.append(describe_projection(self._tell(projection), _usd(best) / _usd(projection)))
        return lines

    def _describe_unlike(self) -> list[str]:
        """Return a line on hardware priced by another kind of seller, which has no rank; empty for none."""
        rows = first_of_each(row for row in self.rows if self._is_asked(row) and not row.is_alike and row.is_available)
        if not rows:
            return []
        kinds = {row.way: row.compared_kind or "" for row in rows}
        compared = " and ".join(MANY[kind] for kind in kinds.values() if kind)
        told = "; ".join(f"{self.scope.mark(find_chip(row))} {_describe_price(row)}" for row in rows[:SHOWN_UNLIKE])
        rest = f"; and {len(rows) - SHOWN_UNLIKE} more" if len(rows) > SHOWN_UNLIKE else ""
        return [f"without a rank, as only {compared} are compared: {told}{rest} (--seller chooses the kind)"]

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return the next commands: the comparison of the cheapest two, and the analysis of the cheapest."""
        best = self.best or next((row for row in self.rows if row.status != "unsupported"), None)
        steps = self._analyze_each([best] if best else [], repeated)
        return [*self._compare_first(self._find_rivals("likely_cheapest"), repeated), *steps]

    def _deciding(self, rows: Table[CostOption], limit: int) -> tuple[Grid, ...]:
        """Return a grid of each hardware at its cheapest configuration."""
        chances = self._chances("probability_cheapest")
        columns: tuple[Shown[CostOption], ...] = (
            *((("way", "way"),) if self.pay == "both" else ()),
            ("cost", "usd_per_million"),
            ("80 %", lambda row: show_doubt(row.usd_half_width)),
            *((("best", lambda row: show_chance(chances.get(find_chip(row)))),) if len(rows) > 1 else ()),
            ("price", _show_price),
            ("asked by", "price_told"),
        )
        keep = ("way", "cost", "best", "price", "80 %", "asked by")
        return self._draw(rows, columns, limit, keep, "hardware", ("cost",), self._is_best)

    def _costs(self, rows: Table[CostOption], limit: int) -> tuple[Grid, ...]:
        columns: tuple[Shown[CostOption], ...] = (
            ("way", "way"),
            ("cost", "usd_per_million"),
            ("= hardware", "hardware_usd_per_million"),
            ("+ energy", lambda row: show(row.energy_usd_per_million, "", "USD") if row.way == "bought" else IN_RENT),
            ("+ host", _show_host),
            *FIGURES,
        )
        return self._draw(rows, columns, limit, ("way", "cost", "= hardware"), "hardware", ("cost",), self._is_best)

    def describe_break_even(self) -> list[str]:
        """Return the volume from which one option is cheaper; empty without a break-even."""
        return [describe_break_even(self.break_even, self.scope)] if self.break_even else []

    def _by_grid(self) -> Grid:
        runs = {row.run_id: row for row in self.grid}
        names = {row.run_id: self.name(row) for row in self.rows if row.run_id in runs}
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
                self.scope.mark(find_chip(row)),
                _show_price(row),
                row.price_basis or "",
                show_doubt(row.price_half_width),
                row.price_told or "",
                row.price_source or "",
                row.price_note or "",
            )
            for row in rows
        )
        headings = ("hardware", "price", "basis", "80 %", "asked by", "source", "what it buys")
        return Grid(headings=headings, rows=tuple(dict.fromkeys(cells)), keep=headings[1:6])

    def _notes(self, priced: Table[CostOption]) -> list[str]:
        unpriced = ", ".join(self.scope.mark(find_chip(row)) for row in self._unpriced_each())
        projections = [row for row in self.rows if self._is_asked(row) and row.rank is None and row.is_alike]
        return [
            *self.describe_limits(),
            *([f"left out, without a price to be {self.pay}: {unpriced}"] if unpriced else []),
            *self._tell_unranked(projections),
            SCOPE_NOTE,
            *([BOARD_NOTE] if BOARD in self.scope.boundaries else []),
            UTILIZATION_NOTE,
            PRICE_NOTE,
            LATENCY_NOTE,
            *([IDLE_NOTE] if any(row.idle_quantity == "static_power" for row in priced) else []),
            *self._describe(),
        ]

    def describe_limits(self) -> list[str]:
        """Return a line on the configurations that the limits excluded."""
        count = len(set(self.scope.run_ids) - {row.run_id for row in self.rows})
        told = ", ".join(describe_limit(name, bound) for name, bound in self.limits.bounds)
        return [f"{told}: {count_candidates(count)} left out"] if told else []

    def describe_sureness(self) -> str:
        """Return the confidence in the cheapest, and the uncertainty of its price; empty if nothing has a price."""
        best = self.best
        if best is None or best.probability_cheapest is None:
            return ""
        sure = self._tell_standing(self._find_rivals("likely_cheapest"), self._chances("probability_cheapest"))
        price = f"its price ({_describe_price(best)}) counts as {show_doubt(best.price_half_width)}"
        return "; ".join(filter(None, (sure, price if best.price_half_width else "its price is given")))

    def _tell(self, row: CostOption, *, way: bool = True) -> str:
        paid = f" {row.way}" if way else ""
        return f"{self.name(row)}{paid}: {show(row.usd_per_million, '', 'USD')}"


FIGURES: Final[tuple[Shown[CostOption], ...]] = (
    ("throughput", "throughput_per_s"),
    ("latency", "latency_s"),
    ("energy", "kwh_per_million"),
    ("CO2", "gco2_per_million"),
)


def _usd(row: CostOption) -> float:
    return row.usd_per_million or 0.0


def _show_price(row: CostOption) -> str:
    return show(row.price, "", row.price_unit or "")


def _describe_price(row: CostOption) -> str:
    """Return a price with its seller and date, or its basis if the seller is unknown."""
    return f"{_show_price(row)}, {row.price_told or row.price_basis}"


def _show_host(row: CostOption) -> str:
    if row.way == "rented":
        return IN_RENT
    return show(row.host_usd_per_million, "", "USD") if row.host_share_ratio else "none needed"


def cost(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    between: Sequence[str] = (),
    usage: Usage = USAGE,
    limits: Limits = LIMITS,
    prices: Sequence[Price] = (),
) -> CostAnswer:
    """Compute the cost of a million inferences on each configuration, rented or bought, with energy and carbon.

    Configurations are those of `pareto`. `between` names the two options of the break-even (`l4`, `l4:rented`,
    `epyc_9654:bought`), by default the cheapest bought and the cheapest rented one. Configurations beyond the limits
    are excluded; `prices` replace those of the catalogue. Raises as `compare`; UsageError for an option without a
    price, UnsupportedError if no configuration meets the limits.
    """
    used, pay = read_usage(attrs.evolve(usage, pay=usage.pay or limits.pay))
    options, (paid, named) = _read_options(between), price_parameters(prices)
    plan = plan_candidates(model, settings)
    with holding_runs(source, plan, needs_catalogue=True, has_ledger=False) as runs:
        connection = runs.connection
        ids = _keep_limits(connection, runs.ids, limits, used["host_share"])
        evens = start(connection, BreakEven, run_ids=ids, **options, **used, **paid, seller=pay["seller"])
        scope, break_evens = find_scope(runs), evens()
        rows = fetch(connection, CostOption, run_ids=ids, **used, **paid, **named, **pay, takes_all=settings.takes_all)
        scope.check_evaluated()
        if not set(ids) & set(scope.evaluated_ids):
            told = ", ".join(describe_limit(name, bound) for name, bound in limits.bounds)
            raise UnsupportedError(f"no configuration keeps {told}; `joulemap recommend` says how far each is from it")
        if between and not break_evens.rows:
            raise UsageError(_missing_option(options, rows))
        in_grids = {name: used[name] for name in used if name not in ("region", "gco2_per_kwh", "host_share")}
        return CostAnswer(
            scope=scope,
            rows=rows,
            break_evens=break_evens,
            grid=fetch(connection, GridFootprint, run_ids=_told_by_grid(rows, break_evens), **in_grids),
            assumptions=fetch(connection, AssumedNumber, **used),
            limits=limits,
        )


def _keep_limits(connection: Connection, run_ids: Iterable[int], limits: Limits, host_share: float) -> list[int]:
    """Return the runs that meet every limit, and refused runs, which have no values to test."""
    ids = list(run_ids)
    if not limits.bounds:
        return ids
    missed = fetch(connection, Violation, run_ids=ids, **limits.parameters, host_share=host_share)
    outside = {row.run_id for row in missed}
    return [run_id for run_id in ids if run_id not in outside]


def _read_options(between: Sequence[str]) -> dict[str, str]:
    """Return the two options of a break-even as query parameters; UsageError unless there are two or none."""
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


def _missing_option(options: Mapping[str, str], rows: Table[CostOption]) -> str:
    """Return the option of a break-even that has no price or is not among the configurations."""
    for side in "ab":
        name, way = options[f"hardware_{side}"], options[f"way_{side}"]
        of_name = [row for row in rows if name in (row.hardware, HardwareRef.read(row.hardware).label)]
        if not of_name:
            return f"{name} is not among the configurations that are compared"
        if not any(row.status == "ok" and way in ("", row.way) for row in of_name):
            noun = {"rented": "rent", "bought": "purchase price"}.get(way, "price")
            return f"there is no {noun} of {name}: the catalogue has none, and none is given"
    return "the two options cannot be compared"


def _told_by_grid(rows: Table[CostOption], break_evens: Table[BreakEven]) -> list[int]:
    """Return the runs whose carbon is listed per grid: the cheapest, the break-even pair, the lowest energy."""
    known = [row for row in rows if row.kwh_per_million is not None]
    evaluated = [row for row in known if row.is_available] or known
    least = min(evaluated, key=lambda row: row.kwh_per_million or 0.0, default=None)
    pair = [run for even in break_evens for run in (even.run_a, even.run_b)]
    return list(dict.fromkeys([*(row.run_id for row in evaluated[:1]), *pair, *([least.run_id] if least else [])]))


def describe_break_even(row: BreakEven, scope: Scope) -> str:
    """Return the volume from which one option is cheaper."""
    names = {"A": f"{row.way_a} {scope.mark(row.hardware_a)}", "B": f"{row.way_b} {scope.mark(row.hardware_b)}"}
    below, above = names.get(row.cheaper_below or ""), names.get(row.cheaper_above or "")
    if row.break_even_inferences is None:
        if not below:
            return f"{names['A']} and {names['B']} cost the same at any volume"
        return f"{below} is cheaper than {next((one for one in names.values() if one != below), below)} at any volume"
    volume = f"{format_si(row.break_even_inferences, '').strip()} inferences"
    if row.is_within_life:
        years = row.break_even_years
        work = "" if years is None else f", {show_plain(years)} years of one chip's work"
        return f"break-even at {volume}{work}: {below} is cheaper below, {above} above"
    lives = [life for life in (row.inferences_per_life_a, row.inferences_per_life_b) if life is not None]
    return (
        f"break-even at {volume}, more than the {format_si(min(lives), '').strip()} that one bought chip does in "
        f"its lifetime: {below} stays cheaper than {above}"
    )
