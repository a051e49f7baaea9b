"""Document of a served language model: the table of deciding figures, then memory, phases, cost and intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.assumed import describe_assumed, head_assumed, name_assumed, show_assumed
from joulemap.answer.candidate import HOURS, describe_pay, describe_use, enclose_seller, find_busy_hours
from joulemap.answer.scope import describe_intervals
from joulemap.domain.doubt import TIE_RATIO, TOLD_APART
from joulemap.domain.settings import Serving
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.present.cell import show_count
from joulemap.present.document import SHARE_HEADING, Document, Grid, Section, Text, choose_rows, show_under
from joulemap.present.template import join_texts
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen
from joulemap.wing.llm.answer import text
from joulemap.wing.llm.capacity.case import OK, TOO_LARGE, UNSUPPORTED
from joulemap.wing.llm.capacity.load import LoadRow, choose_loads
from joulemap.wing.llm.capacity.pool import PoolRow
from joulemap.wing.llm.capacity.row import ServedRow
from joulemap.wing.llm.row import ServedPhase, ServedWinner

if TYPE_CHECKING:
    from joulemap.answer.check import Checks

SHOWN: Final = 18
"""Maximum configurations in a table, unless a limit is given."""

MOST_EXCEPTIONS: Final = 2
"""Maximum exceptions to the most common limit of a phase that a sentence lists."""

NAMED: Final = 3
"""Maximum hardware named in a sentence."""

LEAST_IDLE: Final = 0.01
"""Minimum idle share of the energy that a headline states."""

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
    not_taken: tuple[str, ...] = ()
    """Reasons why hardware of the default selection cannot run the model."""
    host_bound: str = ""
    """Warning about chips on which slow hosts may lengthen steps; empty if there is none."""
    unmeasured: str = ""
    """Sentence on chips without measurements of the engine; empty if there is none."""
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
        load = serving.rate_per_s or 0.0, serving.in_flight or 0
        is_plain = not (serving.requests or serving.reuses_prefixes or serving.prefill_on)
        rows: Sequence[ServedRow | LoadRow] = self.loads.rows if any(load) and is_plain else self.served
        runs = (
            ServedRun(row.label, row.hardware, row.precision, row.batch, row.device_count)
            if isinstance(row, ServedRow)
            else ServedRun(row.label, row.hardware, row.precision, 1, row.device_count, *load)
            for row in rows
        )
        return check_served(self.model, serving, runs, self.scope.spell)

    def title(self) -> str:
        """Return the title of the document, which restates the question."""
        lengths = text.LENGTHS(self.serving)
        batches = [] if self.loads.rows else [str(batch) for batch in sorted({row.batch for row in self.rows})]
        flown = "conversation" if self.serving.turns > 1 else "request"
        asked = text.FILE_REQUESTS if self.serving.requests else text.BATCH_REQUESTS
        return text.TITLE(
            self.serving,
            model=self.alias or self.model,
            like=self.model if self.alias else "",
            requests=asked(self.serving, lengths=lengths, batches=batches),
            precisions=tuple(dict.fromkeys(row.precision for row in self.rows)),
            stored=self.stored,
            engine=self.engine,
            flown=show_count(self.serving.in_flight or 0, "concurrent " + flown) if self.serving.in_flight else None,
            later=describe_later(self.serving),
            reused=describe_reuse(self.serving),
        )

    def figures(self) -> Figures:
        """Return the figure of device throughput against latency per token, batch by batch."""
        if not self.served:
            return ()
        return (self._draw_figure("frontier", self.rows, self.title(), self._describe_winners()),)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` configurations; JSON has all tables, CSV all rows."""
        lengths = text.LENGTHS(self.serving) if self.serving.requests else ""
        heading = text.BATCHES_HEADING(lengths=lengths) if self.loads.rows else ""
        batches = show_under(
            heading, self._lay_batches(limit), *self.scope.describe_left_out(), *self._list_unsupported()
        )
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
        return self._compose(
            self.title(),
            loaded or (batches,),
            self.loads if loaded else self.rows,
            answer=self._find_headline(),
            insights=self._describe_hits() if loaded else self._list_insights(),
            sure="; ".join([*self._describe_widths(), *self.scope.describe_own_uncertainty(is_yours=True)]),
            details=[
                *([batches] if loaded else []),
                *(Section(title, drawn) for title, drawn in zip(text.DETAILS, details, strict=True)),
            ],
            notes=[*self._list_notes(), *self.not_taken, *self.scope.describe()],
            steps=self._list_steps(repeated),
        )

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return a phrase for the assumed share of the energies that a headline states; under a load, of its total
        energy.
        """
        if not self.loads.rows:
            return super()._describe_assumed(headline, chosen or self._find_named())
        load = self.loads[0] if self.pools.rows else choose_loads(self.loads)[1]
        if not self.pools.rows:
            return describe_assumed(headline, {} if load.assumed is None else {load.label: [load.assumed]})
        if load.assumed is None or not (share := show_assumed(load.assumed)):
            return ""
        return text.ASSUMED(share=share, basis=name_assumed(load.assumed))

    def _find_named(self) -> set[int] | None:
        """Return the ids of the decode runs whose energy per output token the headline states or compares."""
        # for a single hardware, the headline states the first and the last batch
        rows = [self.served[0], self.served[-1]]
        if len({row.label for row in self.served}) > 1:
            least = sorted(self.served, key=lambda row: row.output_token_j or 0.0)
            rows = list({row.label: row for row in reversed(least)}.values())
        return {row.decode_run_id for row in rows if row.decode_run_id is not None}

    def _find_row(self, winner: ServedWinner) -> ServedRow:
        return next(row for row in self.served if (row.label, row.batch) == (winner.label, winner.batch))

    def _find_headline(self) -> str:
        if self.pools.rows:
            return self._describe_pools()
        return self._describe_loads() if self.loads.rows else self._describe_winners()

    def _describe_winners(self) -> str:
        """Return the winners in energy per token and in speed; if the table has one hardware, its results."""
        if len({row.label for row in self.served}) == 1:
            first, last = self.served[0], self.served[-1]
            name = self.scope.mark(first.label)
            return join_texts("; ", [text.ONE(first, label=name), *([text.LARGEST(last)] if last is not first else [])])
        goals = {row.goal: row for row in self.winners}
        energy, between = goals["energy"], goals["between_tokens"]
        latency = text.LATENCY_TOO if between.label == energy.label else text.LATENCY
        values = (self._find_row(energy).output_token_half_width, self._find_row(between).between_half_width)
        parts = []
        for text_of, winner, half_width in zip((text.ENERGY, latency), (energy, between), values, strict=True):
            best = text_of(
                winner,
                label=self.scope.mark(winner.label),
                value=(winner.value, half_width),
                among=self._name_compared(winner),
                at=winner.batch if len({row.batch for row in self.served}) > 1 else None,
            )
            parts.append(join_texts("", (best, self._lead(winner))))
        return join_texts("; ", parts)

    def _name_compared(self, winner: ServedWinner) -> str:
        """Return a phrase for the hardware that a winner is chosen from; empty if this is all hardware in the table."""
        return text.AVAILABLE if winner.hardware_count < len({row.label for row in self.served}) else ""

    def _lead(self, winner: ServedWinner) -> str:
        """Return a phrase for a winner's lead over the next hardware, with its confidence."""
        if winner.runner_up is None or winner.advantage_ratio is None:
            return ""
        other = self.scope.mark(winner.runner_up)
        if winner.advantage_ratio < TIE_RATIO:
            return text.EQUAL(other=other)
        if tied := self._find_tied(winner):
            return f", {tied}"
        batch = None if winner.runner_up_batch == winner.batch else winner.runner_up_batch
        count = winner.hardware_count if winner.hardware_count > 2 else None
        chance = winner.probability_best  # confidence that the winner beats all others, not only the runner-up
        return text.LEADS[winner.goal](winner, other=other, other_batch=batch, chance=chance, count=count)

    def _find_tied(self, winner: ServedWinner) -> str:
        """Return a phrase for the hardware that is statistically tied with a winner; empty if there is none."""
        # hardware that together has over 20 % probability of being better
        rivals = winner.rivals or ([winner.runner_up] if winner.runner_up else [])
        if (winner.probability_best or 0.0) >= TOLD_APART or not rivals:
            return ""
        return text.TIED(rivals=tuple(map(self.scope.mark, rivals)))

    def _describe_loads(self) -> str:
        """Return the deployments with the lowest p99 TTFT and the least energy, or the overload if none keeps up."""
        first, least = choose_loads(self.loads)
        if first.is_growing:
            return (text.OVERLOADED if len(self.loads) > 1 else text.OVERLOADED_ONE)(first)
        others = [row for row in self.loads if not row.is_growing and row is not first]
        second = min(others, key=lambda row: row.first_token_p99_s, default=None)
        ratio = None if second is None else second.first_token_p99_s / first.first_token_p99_s
        tied = self._find_tied_loads(first, others, "first_token_p99_s", "first_token_half_width")
        is_ahead = ratio is not None and ratio >= TIE_RATIO and not tied
        other = second.label if second is not None and is_ahead else None
        behind = [row.label for row in self.loads if row.is_growing]
        template = text.LOAD if others else text.LOAD_ALONE if behind else text.LOAD_OF_ONE
        parts = [template(first, ratio=ratio, other=other, tied=tied)]
        idle = least.idle_fraction if least.idle_fraction >= LEAST_IDLE else None
        among = text.KEEPING_UP if behind else None
        uses = (text.LEAST if least is not first else text.LEAST_TOO)(least, among=among) if others else text.USES
        rest = [row for row in self.loads if not row.is_growing and row is not least]
        tied = self._find_tied_loads(least, rest, "output_token_j", "output_token_half_width")
        parts.append(text.LOAD_ENERGY(least, uses=uses, idle=idle, tied=tied))
        parts += [text.BEHIND(labels=behind)] if behind and others else []
        parts += [text.REFUSED(row, where=row.label if others else None) for row in self.loads if row.refused_count]
        return "; ".join(parts)

    def _find_tied_loads(self, best: LoadRow, others: Sequence[LoadRow], field: str, width_field: str) -> str:
        """Return a phrase for the deployments that are statistically tied with the best one under a load; empty without
        ties.

        The half-widths are those of the smallest batch of each deployment. Errors of two deployments count as
        independent.
        """
        from joulemap.uncertainty.probability import probability_better

        widths = {
            (row.hardware, row.precision, row.device_count): getattr(row, width_field) for row in reversed(self.served)
        }

        def width_of(row: LoadRow) -> float:
            return widths.get((row.hardware, row.precision, row.device_count)) or 0.0

        rivals = [
            row.label
            for row in sorted(others, key=lambda row: float(getattr(row, field)))
            if (width := math.hypot(width_of(best), width_of(row)))
            and probability_better(getattr(row, field) / getattr(best, field), width) < TOLD_APART
        ]
        return text.TIED(rivals=rivals) if rivals else ""

    def _describe_hits(self) -> list[str]:
        """Return a sentence on the prefix-cache hits of the best deployment and the energy saved; empty without a
        cache.
        """
        row = self.loads[0] if self.pools.rows else choose_loads(self.loads)[1]
        if row.prefix_hit_fraction is None:
            return []
        name = text.HITS_OF(row) if len(self.loads) > 1 else ""
        return [name + text.HITS(row, below=row.tier_hit_fraction or None)]

    def _describe_pools(self) -> str:
        """Return the servers of both pools, the pool that saturates first, and the resulting latencies."""
        prompts, answers = self.pools.rows
        first = max(self.pools, key=lambda row: row.use_fraction or 0.0)
        used = prompts.use_fraction
        servers = text.POOLS(
            prompts=text.SERVERS(prompts),
            answers=text.SERVERS(answers),
            prompts_used=used,
            answers_used=answers.use_fraction,
            rate_per_s=None if used is None else used * prompts.server_count * prompts.each_per_s,
            first=text.POOL[first.pool],
        )
        return f"{servers}; {text.POOL_LOAD(self.loads[0])}"

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
                if values and (place := (rival, min(values)[1])) in shown:
                    tied.add((shown[place], column))
        return frozenset(best), frozenset(tied)

    def _wins(self, row: ServedRow) -> bool:
        """Return whether a configuration wins a metric; the headline names it, so its row is always shown."""
        ids = {phase.place: (phase.label, phase.batch) for phase in self.phases}
        return any(ids[winner.place] == (row.label, row.batch) for winner in self.winners)

    def _list_insights(self) -> list[str]:
        """Return sentences on the memory shortage, the limit of both phases, the lowest cost, and slow hosts."""
        found = [*self._describe_shortage(), self._describe_limits(), *self._describe_cost()]
        return [*found, self.host_bound] if self.host_bound else found

    def _describe_shortage(self) -> list[str]:
        found: dict[str, ServedRow] = {}
        for row in self.rows:
            if row.status == TOO_LARGE:
                found.setdefault(row.label, row)
        shown = [text.SHORTAGE(row, label=self.scope.mark(row.label)) for row in [*found.values()][:NAMED]]
        more = len(found) - NAMED if len(found) > NAMED else None
        return [text.TOO_LARGE(shortages="; ".join(shown), more=more)] if shown else []

    def _describe_limits(self) -> str:
        """Return a sentence on the limit of each phase on most configurations, and on the exceptions."""
        usual, exceptions = {}, list[str]()
        for phase in ("prefill", "decode"):
            every = {(row.label, row.batch): str(getattr(row, f"{phase}_bound")) for row in self.served}
            bounds = {row: bound for row, bound in every.items() if bound}
            if not bounds:
                continue
            ((usual[phase], _),) = Counter(bounds.values()).most_common(1)
            alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
            for label, bound, batches in _group_exceptions(bounds, usual[phase]):
                alike.setdefault((_spell_bound(bound), tuple(batches)), []).append(self.scope.mark(label))
            exceptions += [
                text.EXCEPTION(phase=phase, labels=labels, bound=bound, batches=batches)
                for (bound, batches), labels in alike.items()
            ]
        words = {phase: _spell_bound(bound) for phase, bound in usual.items()}
        is_alike = len(usual) > 1 and len(set(words.values())) == 1
        has_few = len(exceptions) <= MOST_EXCEPTIONS
        rest = {"mostly": None, "others": None} if has_few else {"mostly": text.MOSTLY, "others": text.OTHERS}
        template = text.LIMITED_ALIKE if is_alike else text.LIMITS if "prefill" in usual else text.LIMITED_DECODE
        return template(**words, **rest, exceptions=exceptions if has_few else None)

    def _describe_cost(self) -> list[str]:
        winner = next((row for row in self.winners if row.goal == "cost"), None)
        if winner is None:
            return []
        row, label = self._find_row(winner), self.scope.mark(winner.label)
        each = text.EACH_DEVICE if row.device_count > 1 else ""
        hours = find_busy_hours(self.assumptions)
        values: dict[str, Any] = {"usd": winner.value, "prompt_usd": row.prompt_usd_per_million, "each": each}
        values |= {"price": enclose_seller(row.price_told), "busy_hours": hours if hours < HOURS else None}
        cost = text.COST(row, **values)
        if winner.hardware_count < 2:
            return [cost if len({one.label for one in self.served}) == 1 else text.ONLY_PRICED(label=label, cost=cost)]
        chance = winner.probability_best
        sure = self._find_tied(winner) or (None if chance is None else text.CONFIDENCE(chance=chance))
        return [text.CHEAPEST(label=label, sure=sure, cost=cost)]

    def _describe_widths(self) -> list[str]:
        """Return the narrowest and the widest interval of each quantity; empty if unknown."""
        has_gaps = not self.loads.rows or any(row.between_s is not None for row in self.loads)
        spread = describe_intervals({
            quantity: [(getattr(row, name), self.scope.mark(row.label)) for row in self.served]
            for quantity, name in text.DOUBTED.items()
            if has_gaps or name != "between_half_width"
        })  # fmt: skip
        return [one for one in (spread, self.unmeasured) if one]

    def _list_notes(self) -> Iterator[str]:
        """Yield notes on columns, shared runs, payment, the best cost with the other payment, and other sellers."""
        yield text.ENGINE_NOTE
        if self.loads.rows:
            yield text.LOAD_NOTE
            yield from [text.POOL_NOTE] if self.pools.rows else []
            yield text.BATCHES_BELOW(count=1 + len(text.BATCH_NOTES))
        yield text.TOKEN_NOTE(hosts=text.HOSTS if self.scope.settings.boundary == "system" else "")
        yield from text.BATCH_NOTES
        if not self.loads.rows:
            yield text.BATCH_NOTE
        if self.wide_cache:
            yield self.wide_cache
        alike = len(self.served) - len({row.decode_run_id for row in self.served})
        if alike:
            yield text.SHARED_RUNS(count=alike, total=len(self.served))
        yield describe_costs(self.assumptions, self.pay)
        has_several = len({row.label for row in self.served}) > 1
        if self.pay in OTHER_PAYMENT and has_several and not self.loads.rows:
            other = OTHER_PAYMENT[self.pay]
            column = f"{other}_usd_per_million"
            priced = [row for row in self.phases if row.phase == "decode" and getattr(row, column) is not None]
            if priced:
                best = min(priced, key=lambda row: float(getattr(row, column)))
                usd, label = getattr(best, column), self.scope.mark(best.label)
                yield text.OTHER_WAY(best, way=other, usd=usd, label=label)
        unlike = {self.scope.mark(row.hardware): row.unlike_told for row in self.phases if row.unlike_told}
        if unlike:
            yield text.OTHER_SELLER(prices=[f"{name} at {enclose_seller(price)}" for name, price in unlike.items()])

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return two follow-up commands: one explains the winner's lead in energy per token, the other where its energy
        goes.
        """
        goals = {row.goal: row for row in self.winners}
        winner = goals.get("energy") or self.winners[0]
        steps = [row for row in self.phases if row.phase == "decode"]
        first = next(row for row in steps if row.place == winner.place)
        others = sorted(
            (row for row in steps if row.hardware != first.hardware and _is_alike(row, first)),
            key=lambda row: row.energy_per_token_j,
        )
        hardware = self.scope.spell(first.hardware)
        found = [
            *(
                text.NEXT_EXPLAIN.words(first, hardware=hardware, other=self.scope.spell(row.hardware))
                for row in others[:1]
            ),
            text.NEXT_EDP.words(first, hardware=hardware),
        ]
        return [[*step, *spell_precision(first.precision), *text.NEXT_RUN.words(first), *repeated] for step in found]


def describe_costs(assumptions: Table[AssumedNumber], pay: str) -> str:
    """Return the note on the hours that are paid, and on what cost and carbon include."""
    if any(row.assumption == "utilization" and row.value == 1.0 for row in assumptions):
        return text.COST_NOTE(use=text.LOAD_HOURS(pay=describe_pay(pay)), idle=None)
    return text.COST_NOTE(use=describe_use(assumptions, pay), idle=text.IDLE_HOURS)


def describe_reuse(serving: Serving) -> str:
    """Return a phrase for the prefix reuse that a question states; empty without reuse."""
    turns = serving.turns if serving.turns > 1 else None
    return text.REUSED(serving, turns=turns, pause_s=serving.pause_s or None, tiers=serving.cache_tiers or None)


def describe_later(serving: Serving) -> str:
    """Return a phrase for the acceptance rates of later draft tokens and the mean tokens per step; empty without
    speculation.
    """
    if serving.speculate is None or serving.acceptance is None:
        return ""
    from joulemap.wing.llm.serving.batch import accept

    gained = accept(serving.speculate, serving.acceptance, serving.later_acceptance)
    return text.LATER(rates=[f"{100.0 * rate:.0f} %" for rate in serving.later_acceptance] or None, gained=gained)


def repeat_reuse(serving: Serving) -> list[str]:
    """Return the options for engine, cache, reuse of prefixes and speculation that differ from their defaults."""
    words = ["--engine", serving.engine] if serving.engine else []
    words += ["--cache", serving.cache] if serving.cache else []
    words += [] if serving.prefix_hit is None else ["--prefix-hit", f"{serving.prefix_hit:g}"]
    words += ["--turns", str(serving.turns)] if serving.turns > 1 else []
    words += ["--pause", f"{serving.pause_s:g}s"] if serving.pause_s else []
    for tier in serving.cache_tiers:
        words += ["--cache-tier", tier]
    if serving.speculate is not None and serving.acceptance is not None:
        rates = ",".join(f"{rate:g}" for rate in (serving.acceptance, *serving.later_acceptance))
        words += ["--speculate", str(serving.speculate), "--acceptance", rates]
        words += ["--draft", serving.draft] if serving.draft else []
    return words


def _spell_bound(bound: str) -> str:
    """Return the limit of a phase as a sentence names it."""
    return text.BOUNDS.get(bound, bound)


def _is_alike(row: ServedPhase, other: ServedPhase) -> bool:
    return (row.model, row.batch, row.precision) == (other.model, other.batch, other.precision)


def _group_exceptions(bounds: dict[tuple[str, int], str], usual: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (chip, limit, batch sizes) where the limit differs from `usual`; empty sizes mean all of the chip's."""
    for label in dict.fromkeys(label for label, _ in bounds):
        mine = {batch: bound for (other, batch), bound in bounds.items() if other == label}
        for bound in dict.fromkeys(mine.values()):
            batches = [str(batch) for batch, one in mine.items() if one == bound]
            if bound != usual:
                yield label, bound, batches if len(batches) < len(mine) else []
