"""Document of a served language model: the table of deciding figures, then memory, phases, cost and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.fact import Facts
from joulemap.domain.offer import describe_pay
from joulemap.domain.table import Table
from joulemap.generated.cost import AssumedNumber
from joulemap.physics.record.configuration import BOUNDARY
from joulemap.physics.record.weight import spell_precision
from joulemap.show.candidate import describe_use
from joulemap.show.layout import head_assumed, show_assumed
from joulemap.show.page import Figures
from joulemap.show.present.cell import show_count
from joulemap.show.present.document import SHARE_HEADING, Document, Grid, Section, Text, choose_rows, show_under
from joulemap.show.title import Title
from joulemap.system.record import frozen
from joulemap.wing.llm.capacity.case import OK, UNSUPPORTED
from joulemap.wing.llm.capacity.load import LoadRow, choose_loads
from joulemap.wing.llm.capacity.pool import PoolRow
from joulemap.wing.llm.capacity.row import ServedRow
from joulemap.wing.llm.generated.row import ServedPhase, ServedWinner
from joulemap.wing.llm.phase import ANSWER
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.show import batch, load, text
from joulemap.wing.llm.show.serving import describe_served

if TYPE_CHECKING:
    from joulemap.ask.check import Checks

SHOWN: Final = 18
"""Maximum configurations in a table, unless a limit is given."""

OTHER_PAYMENT: Final = {"rented": "bought", "bought": "rented"}


@frozen(kw_only=True)
class LlmAnswer(RunAnswer):
    """Answer for one language model on several chips, each at several batch sizes, on one engine."""

    about = ("model", "engine", "serving", "pay", "not_taken", "not_loaded")

    rows: Table[ServedRow]
    """Rows in the requested order of hardware, the smallest batch first; includes refused configurations."""
    phases: Table[ServedPhase]
    """One row for prefill and one for decode of each configuration that is served."""
    winners: Table[ServedWinner]
    """Best configuration for each goal, such as the lowest energy."""
    model: str
    alias: str = ""
    """Model name as requested, if it is an alias of `model`; else empty."""
    serving: Serving
    engine: str
    """Name of the engine, with the year of its release."""
    stored: str
    """Published format of the checkpoint, as the title states it; empty for 16 bits."""
    loads: Table[LoadRow]
    """Results of each chip under the requested load; empty if only batches are requested."""
    pools: Table[PoolRow]
    """One row each for the prefill pool and the decode pool; empty without disaggregated serving."""
    assumptions: Table[AssumedNumber]
    """Assumed numbers that cost and carbon depend on."""
    facts: Facts
    """Decision, limits, rows and caveats, from which all sentences are made."""
    not_taken: tuple[str, ...] = ()
    """Reasons why hardware of the default selection cannot run the model."""
    wide_cache: str = ""
    """Note on 16-bit caches beside 4-bit floating-point weights; empty if there is none."""
    not_loaded: tuple[str, ...] = ()
    """Reasons why configurations have no result under the request load."""

    @property
    def served(self) -> tuple[ServedRow, ...]:
        """Rows of configurations that are served."""
        return tuple(row for row in self.rows if row.status == OK)

    @property
    def pay(self) -> str:
        """Payment for chips: rented, bought or both."""
        return self.phases[0].pay if self.phases.rows else ""

    def find_checks(self) -> Checks:
        """Return the commands that measure each configuration under the request load, or as a batch without one.

        Tools generate only independent random requests, so other loads are measured as batches.
        """
        from joulemap.wing.llm.answer.check import ServedRun, check_served

        serving = self.serving
        asked = serving.rate_per_s or 0.0, serving.in_flight or 0
        is_plain = not (serving.requests or serving.reuses_prefixes or serving.prefill_on)
        rows: Sequence[ServedRow | LoadRow] = self.loads.rows if any(asked) and is_plain else self.served
        runs = (
            ServedRun(row.label, row.hardware, row.precision, row.batch, row.device_count)
            if isinstance(row, ServedRow)
            else ServedRun(row.label, row.hardware, row.precision, 1, row.device_count, *asked)
            for row in rows
        )
        return check_served(self.model, serving, runs, self.scope.spell)

    def title(self) -> Title:
        """Return the title of the document, which restates the question."""
        lengths = text.LENGTHS(self.serving)
        batches = [] if self.loads.rows else [str(batch) for batch in sorted({row.batch for row in self.rows})]
        flown = "conversation" if self.serving.turns > 1 else "request"
        asked = text.FILE_REQUESTS if self.serving.requests else text.BATCH_REQUESTS
        about = Title(
            form=text.ABOUT,
            row=self.serving,
            values={
                "requests": asked(self.serving, lengths=lengths, batches=batches),
                "precisions": tuple(dict.fromkeys(row.precision for row in self.rows)),
                "stored": self.stored,
                "engine": self.engine,
                "flown": show_count(self.serving.in_flight or 0, "concurrent " + flown)
                if self.serving.in_flight
                else None,
                "served": describe_served(self.serving),
            },
        )
        values = {"model": self.alias or self.model, "like": self.model if self.alias else ""}
        return Title(form=text.TITLE, values=values, about=about)

    def figures(self) -> Figures:
        """Return the figure of device throughput against latency per token, batch by batch."""
        if not self.served:
            return ()
        return (self._draw_figure("frontier", self.rows, self.title(), self._describe_best()),)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` configurations; JSON has all tables, CSV all rows."""
        lengths = text.LENGTHS(self.serving) if self.serving.requests else ""
        heading = text.BATCHES_HEADING(lengths=lengths) if self.loads.rows else ""
        lines = [] if self.loads.rows else [*filter(None, [batch.describe_shortage(self.facts)])]
        below = (*map(Text, lines), *self._describe_left_out(), *self._list_unsupported())
        batches = show_under(heading, self._lay_batches(limit), *below)
        loaded = [Section("", self._lay_pools())] if self.pools.rows else []
        loaded += [self._show_loads(limit)] if self.loads.rows else []
        served = self.rows.with_rows(self.served)
        judged = self.rows.with_rows(row for row in self.rows if row.status != UNSUPPORTED)
        details = (
            self._lay(judged, text.MEMORY, limit=limit),
            self._lay(
                self.phases,
                text.PHASES,
                limit=2 * limit,
                bound=lambda row: text.LIMIT(row, share=row.bound_fraction),
            ),
            self._lay(served, text.COSTS, limit=limit),
            self._lay(served, text.INTERVALS, limit=limit),
        )
        return self._compose_facts(
            self.facts,
            loaded or (batches,),
            self.loads if loaded else self.rows,
            title=self.title(),
            answer=self._describe_best(),
            reasons=load.list_reasons(self.facts) if loaded else batch.list_reasons(self.facts),
            details=[
                *([batches] if loaded else []),
                *(Section(title, drawn) for title, drawn in zip(text.DETAILS, details, strict=True)),
            ],
            notes=[*self._list_notes(), *self.not_taken],
            steps=self._list_steps(repeated),
            told=(),  # the title states what of a checkpoint is not read
        )

    def _describe_best(self) -> str:
        """Return the decision in one sentence."""
        if self.pools.rows:
            return load.describe_pools(self.facts, [(row.server_count, row.label) for row in self.pools])
        return load.describe_answer(self.facts) if self.loads.rows else batch.describe_answer(self.facts)

    def _lay_pools(self) -> Grid:
        """Return the table of both pools."""
        other = dict(zip(text.POOL, reversed(list(text.POOL.values())), strict=True))
        return self._lay(
            self.pools,
            text.POOLS_TABLE,
            pool=lambda row: text.POOL[row.pool],
            balance=lambda row: text.BALANCE(row, other=other[row.pool]),
        )

    def _lay_batches(self, limit: int) -> Grid:
        """Return the main table, one row per configuration, with the best of each column marked."""
        drawn = self._lay(
            self.rows.with_rows(self.served),
            text.BATCHES,
            keep=text.BATCHES_KEPT,
            ranked=text.BATCHES_RANKED,
            pictures=text.BATCHES_DRAWN,
            limit=limit,
            noun="configurations",
            stays=self._wins,
            decode_bound=lambda row: text.LIMIT(bound=row.decode_bound, share=row.decode_bound_fraction),
            prefill_bound=lambda row: text.LIMIT(bound=row.prefill_bound, share=row.prefill_bound_fraction),
        )
        best, tied = self._mark_best(drawn.headings, limit)
        return attrs.evolve(drawn, best=best, tied=tied)

    def _show_loads(self, limit: int) -> Section:
        """Return the results of each chip under the load, and the reasons for missing rows."""
        drawn = self._lay(
            self.loads,
            text.LOADS(assumed=head_assumed(row.assumed for row in self.loads)),
            ranked=text.LOADS_RANKED(assumed=SHARE_HEADING),
            limit=limit,
            noun="configurations",
            assumed_energy_fraction=lambda row: show_assumed(row.assumed),
            stays=lambda row: row in choose_loads(self.loads),
            up=lambda row: "no" if row.is_growing else "yes",
        )
        below = (Text(text.LEFT_OUT(reasons="; ".join(self.not_loaded))),) if self.not_loaded else ()
        return show_under(text.LOADS_HEADING, drawn, *below)

    def _list_unsupported(self) -> tuple[Text, ...]:
        """Return the remark below a table about hardware that cannot run the model."""
        reasons = list(dict.fromkeys(row.reason for row in self.rows if row.status == UNSUPPORTED))
        if self.not_taken:
            reasons.append(text.UNSUPPORTED_COUNT(count=len(self.not_taken)))
        return (Text(text.LEFT_OUT(reasons="; ".join(reasons))),) if reasons else ()

    def _mark_best(
        self, headings: Sequence[str], limit: int
    ) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
        """Return the (row, column) cells with the best value of each column, and the cells of hardware tied with the
        best.
        """
        ids = {row.place: (row.label, row.batch) for row in self.phases}
        rows = choose_rows(self.served, limit, self._wins)
        shown = {(row.label, row.batch): index for index, row in enumerate(rows)}
        best, tied = set(), set()
        for winner in self.winners:
            heading, field = text.GOALS[winner.goal]
            if winner.hardware_count < 2 or heading not in headings:
                continue
            column = headings.index(heading)
            if ids[winner.place] in shown:
                best.add((shown[ids[winner.place]], column))
            for rival in winner.rivals:
                values = [
                    (float(value), row.batch)
                    for row in self.served
                    if row.label == rival and (value := getattr(row, field)) is not None
                ]
                if values and (leader := (rival, min(values)[1])) in shown:
                    tied.add((shown[leader], column))
        return frozenset(best), frozenset(tied)

    def _wins(self, row: ServedRow) -> bool:
        """Return whether a configuration wins a metric; the headline names it, so its row is always shown."""
        ids = {phase.place: (phase.label, phase.batch) for phase in self.phases}
        return any(ids[winner.place] == (row.label, row.batch) for winner in self.winners)

    def _list_notes(self) -> Iterator[str]:
        """Yield notes on columns, shared runs, payment, the best cost with the other payment, and other sellers."""
        yield text.ENGINE_NOTE
        if self.loads.rows:
            yield text.LOAD_NOTE
            yield from [text.POOL_NOTE] if self.pools.rows else []
            yield text.BATCHES_BELOW(count=1 + len(text.BATCH_NOTES))
        yield text.TOKEN_NOTE(hosts=text.HOSTS if BOUNDARY[self.scope.settings.boundary].is_at_wall else "")
        yield from text.BATCH_NOTES
        if not self.loads.rows:
            yield text.BATCH_NOTE
        if self.wide_cache:
            yield self.wide_cache
        alike = len(self.served) - len({row.decode_run_id for row in self.served})
        if alike:
            yield text.SHARED_RUNS(count=alike, total=len(self.served))
        yield describe_costs(self.assumptions, self.pay, text.WHOLE_COST if self.loads.rows else text.DECODE_COST)
        has_several = len({row.label for row in self.served}) > 1
        if self.pay in OTHER_PAYMENT and has_several and not self.loads.rows:
            other = OTHER_PAYMENT[self.pay]
            column = f"{other}_usd_per_million"
            priced = [row for row in self.phases if row.phase == ANSWER.name and getattr(row, column) is not None]
            if priced:
                best = min(priced, key=lambda row: float(getattr(row, column)))
                usd, label = getattr(best, column), self._mark(best.label)
                yield text.OTHER_WAY(best, way=other, usd=usd, label=label)
        unlike = {self._mark(row.hardware): row.unlike_price_text for row in self.phases if row.unlike_price_text}
        if unlike:
            yield text.OTHER_SELLER(prices=[f"{name} at {_enclose_seller(price)}" for name, price in unlike.items()])

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return two follow-up commands: one explains the winner's lead in energy per token, the other where its energy
        goes.
        """
        goals = {row.goal: row for row in self.winners}
        winner = goals.get("energy") or self.winners[0]
        steps = [row for row in self.phases if row.phase == ANSWER.name]
        first = next(row for row in steps if row.place == winner.place)
        if self.loads.rows:  # a batch of --details may have another winner than the load
            load_row = choose_loads(self.loads)[1]
            served = (load_row.hardware, load_row.precision, load_row.device_count)
            own = [row for row in steps if (row.hardware, row.precision, row.device_count) == served]
            first = min(own, key=lambda row: row.energy_per_token_j, default=first)
        others = sorted(
            (row for row in steps if row.hardware != first.hardware and _is_alike(row, first)),
            key=lambda row: row.energy_per_token_j,
        )
        hardware = self.scope.spell(first.hardware)
        follow_ups = [
            *(
                text.NEXT_EXPLAIN.words(first, hardware=hardware, other=self.scope.spell(row.hardware))
                for row in others[:1]
            ),
            text.NEXT_EDP.words(first, hardware=hardware),
        ]
        return [
            [*step, *spell_precision(first.precision), *text.NEXT_RUN.words(first), *repeated] for step in follow_ups
        ]


def describe_costs(assumptions: Table[AssumedNumber], pay: str, counted: str = "") -> str:
    """Return the note on the hours that are paid, on what cost and carbon include, and on the tokens `counted`."""
    if any(row.assumption == "utilization" and row.value == 1.0 for row in assumptions):
        return text.COST_NOTE(use=text.LOAD_HOURS(pay=describe_pay(pay)), idle=None, counted=counted)
    return text.COST_NOTE(use=describe_use(assumptions, pay), idle=text.IDLE_HOURS, counted=counted)


def _enclose_seller(shown: str) -> str:
    """Return a price with its seller and date in brackets, such as `110 USD (NVIDIA, list price, 2024)`."""
    price, _, seller = shown.partition(", ")
    return f"{price} ({seller})" if seller else price


def _is_alike(row: ServedPhase, other: ServedPhase) -> bool:
    return (row.model, row.batch, row.precision) == (other.model, other.batch, other.precision)
