"""What is shown of a language model as it is served: a table of what decides, others of memory, phases and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.candidate import describe_use
from joulemap.answer.llm.demand import UNSUPPORTED
from joulemap.answer.llm.load import LoadRow, say_load
from joulemap.answer.llm.pool import PoolRow, say_pools
from joulemap.answer.llm.row import ServedRow
from joulemap.answer.llm.sentence import NOTES, ServedAnswer, say_doubt, say_insights, say_winners
from joulemap.answer.scope import join_words
from joulemap.domain.settings import Serving
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.present.cell import show, show_count, show_doubt, show_plain, show_quantity, show_share
from joulemap.present.document import Block, Document, Grid, Section, Text, grid, say_rest, show_under
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen

SHOWN: Final = 18
"""Configurations that a table has, unless it is told else."""

GOALS: Final = {
    "first_token": "first token",
    "between_tokens": "between",
    "energy": "J/token",
    "cost": "USD/M",
}
"""Goal -> the column of the table whose best it is."""


@frozen(kw_only=True)
class LlmAnswer(ServedAnswer):
    """A language model on several hardware, each at several batches, as an engine serves it."""

    model: str
    serving: Serving
    engine: str
    """With its date."""
    loads: Table[LoadRow]
    """Each hardware under the load of requests that is asked about; none where batches alone are."""
    pools: Table[PoolRow]
    """Of prompts and of answers, where two pools are asked about."""
    assumptions: Table[AssumedNumber]
    """What cost and carbon rest on."""
    left_out: tuple[str, ...] = ()
    """Hardware that nobody asked for and that lacks the precision, with the reasons."""

    @property
    def pay(self) -> str:
        """How chips are paid for: rented, bought or both."""
        return self.phases[0].pay if self.phases.rows else ""

    def title(self) -> str:
        """Return what was asked about."""
        serving = self.serving
        batches = join_words([str(batch) for batch in sorted({row.batch for row in self.rows})])
        precisions = join_words(list(dict.fromkeys(row.precision for row in self.rows)))
        cache = f", {serving.cache} cache" if serving.cache else ""
        came = [f"{serving.rate_per_s:g} request{'s' * (serving.rate_per_s != 1)}/s"] if serving.rate_per_s else []
        came += [f"{serving.in_flight} requests in work"] if serving.in_flight else []
        came += [f"{serving.speculate} guessed, {show_share(serving.acceptance)} hold"] if serving.speculate else []
        asked = f"requests of {serving.requests}" if serving.requests else f"{self._say_lengths()}, batch {batches}"
        return f"{self.model}: {', '.join((asked, f'{precisions}{cache}', self.engine, *came))}"

    def _say_lengths(self) -> str:
        return f"prompt {self.serving.prompt:,}, output {self.serving.output:,}"

    def data(self) -> dict[str, Any]:
        """Return what programs get, with the model and what is asked of its server."""
        return {
            "model": self.model,
            "engine": self.engine,
            "serving": attrs.asdict(self.serving),
            "pay": self.pay,
            "not_taken": self.left_out,
            **super().data(),
        }

    def figures(self) -> Figures:
        """Return what a device gives to all against how soon each gets it, batch by batch."""
        if not self.served:
            return ()
        return (self._draw_figure("frontier", self.rows, self.title(), say_winners(self)),)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` configurations; programs get every one, csv the rows."""
        told = (
            *say_rest(len(self.served), limit, "configurations"),
            *self.scope.say_left_out(),
            *self._say_unsupported(),
        )
        lengths = f", {self._say_lengths()}" * bool(self.serving.requests)
        heading = f"Batches that come together{lengths}" if self.loads.rows else ""
        batches = show_under(heading, self._figures(limit), *told)
        loaded = [Section("", self._loads(limit))] if self.loads.rows else []
        loaded = [Section("", self._pools()), *loaded] if self.pools.rows else loaded
        return self._compose(
            self.title(),
            loaded or (batches,),
            self.loads if loaded else self.rows,
            answer=self._say_answer(),
            insights=[say_winners(self)] if loaded else say_insights(self),
            sure=say_doubt(self),
            details=(
                *([batches] if loaded else ()),
                Section("Memory of one device", self._memory(limit)),
                Section("Phases", self._phases(limit)),
                Section("Cost and carbon of a million tokens", self._costs(limit)),
                Section("Intervals, 4 in 5", self._intervals(limit)),
            ),
            notes=[*NOTES, *self._describe_stored(), *self._describe_cost(), *self.left_out, *self.scope.describe()],
            steps=self._steps(repeated),
        )

    def _say_answer(self) -> str:
        if self.pools.rows:
            return say_pools(self.pools.rows, self.loads[0])
        return say_load(self.loads) if self.loads.rows else say_winners(self)

    def _say_unsupported(self) -> tuple[Text, ...]:
        """Return what stands below a table that lacks hardware which cannot run it."""
        reasons = list(dict.fromkeys(row.reason for row in self.rows if row.status == UNSUPPORTED))
        if self.left_out:
            reasons.append(f"{show_count(len(self.left_out), 'hardware', 'hardware')} without the precision (--notes)")
        return (Text(f"Left out: {'; '.join(reasons)}"),) if reasons else ()

    def _select(self, limit: int) -> Table[ServedRow]:
        return attrs.evolve(self.rows, rows=self.served[:limit])

    def _figures(self, limit: int) -> Grid:
        """Return what decides between configurations, the best of each column marked."""
        has_price = any(row.output_usd_per_million is not None for row in self.served)
        drawn = grid(
            self._select(limit),
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("batch", "batch"),
                ("first token", "first_token_s"),
                ("between", "between_s"),
                ("tokens/s", lambda row: show_quantity(row.tokens_per_s, "").strip()),
                ("J/token", "output_token_j"),
                *((("USD/M", lambda row: show_plain(row.output_usd_per_million)),) if has_price else ()),
                ("memory", "memory_fraction"),
                ("most", "largest_batch"),
                ("decode waits for", lambda row: f"{row.decode_bound} {show_share(row.decode_bound_fraction)}"),
                ("prompts wait for", lambda row: f"{row.prefill_bound} {show_share(row.prefill_bound_fraction)}"),
                ("request", "request_s"),
                ("J/prompt token", "prompt_token_j"),
                ("tokens/s a user", lambda row: show_quantity(row.user_tokens_per_s, "").strip()),
                ("a device", lambda row: show_quantity(row.device_tokens_per_s, "").strip()),
            ),
            limit=limit,
            keep=("batch", "between", "J/token", "first token", "tokens/s", "USD/M", "memory", "most"),
        )
        return attrs.evolve(drawn, best=self._mark_best(drawn.headings, limit))

    def _pools(self) -> Grid:
        """Return the servers of two pools."""
        return grid(
            self.pools,
            (
                ("pool", "pool"),
                ("server", lambda row: self.mark(row.label)),
                ("servers", "server_count"),
                ("requests/s each", lambda row: show_quantity(row.each_per_s, "").strip()),
                ("in use", "use_fraction"),
                ("balance, devices", lambda row: f"{row.balanced_device_count:.3g} to 1"),
            ),
            keep=("server", "servers", "requests/s each", "in use"),
        )

    def _loads(self, limit: int) -> Grid:
        """Return what each hardware gives under the load."""
        return grid(
            self.loads,
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("first token", "first_token_s"),
                ("99 %", "first_token_p99_s"),
                ("between", "between_s"),
                ("99 % of it", "between_p99_s"),
                ("tokens/s", lambda row: show_quantity(row.output_tokens_per_s, "").strip()),
                ("J/token", "output_token_j"),
                ("USD/M", lambda row: show_plain(row.output_usd_per_million)),
                ("power", "power_w"),
                ("idle", "idle_fraction"),
                ("request", "request_s"),
                ("kept up", lambda row: "no" if row.is_growing else "yes"),
                ("preempted", "preemption_count"),
                ("refused", "refused_count"),
                *((("handover", "handover_s"), ("J of it", "handover_j")) if self.pools.rows else ()),
            ),
            limit=limit,
            keep=("first token", "99 %", "between", "99 % of it", "tokens/s", "J/token", "USD/M", "power"),
        )

    def _mark_best(self, headings: Sequence[str], limit: int) -> frozenset[tuple[int, int]]:
        ids = {row.place: (row.label, row.batch) for row in self.phases}
        shown = {(row.label, row.batch): index for index, row in enumerate(self.served[:limit])}
        return frozenset(
            (shown[ids[winner.place]], headings.index(GOALS[winner.goal]))
            for winner in self.winners
            if winner.hardware_count > 1 and ids[winner.place] in shown and GOALS[winner.goal] in headings
        )

    def _memory(self, limit: int) -> Block:
        judged = tuple(row for row in self.rows if row.status != UNSUPPORTED)
        return grid(
            attrs.evolve(self.rows, rows=judged),
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("batch", "batch"),
                ("weights", "weight_bytes"),
                ("cache", "cache_bytes"),
                ("activations", "activation_bytes"),
                ("reserved", "reserved_bytes"),
                ("of it", "memory_fraction"),
                ("largest batch", "largest_batch"),
                ("longest context", "largest_context"),
                (
                    "needs",
                    lambda row: (
                        "" if row.needed_device_count is None else show_count(row.needed_device_count, "device")
                    ),
                ),
            ),
            limit=limit,
            keep=("batch", "weights", "cache", "of it", "largest batch", "longest context"),
        )

    def _phases(self, limit: int) -> Block:
        return grid(
            self.phases,
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("batch", "batch"),
                ("phase", "phase"),
                ("time", "phase_s"),
                ("a pass", "run_latency_s"),
                ("J/token", "energy_per_token_j"),
                ("power", "device_power_w"),
                ("waits for", lambda row: f"{row.bound} {show_share(row.bound_fraction)}"),
                ("run", "run_id"),
            ),
            limit=2 * limit,
            keep=("batch", "phase", "time", "a pass", "J/token", "waits for", "run"),
        )

    def _costs(self, limit: int) -> Block:
        return grid(
            self._select(limit),
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("batch", "batch"),
                ("way", "way"),
                ("prompt tokens", "prompt_usd_per_million"),
                ("output tokens", "output_usd_per_million"),
                ("80 %", lambda row: show_doubt(row.output_usd_half_width)),
                ("CO2 of prompts", "prompt_gco2_per_million"),
                ("CO2 of output", "output_gco2_per_million"),
            ),
            limit=limit,
            keep=("batch", "prompt tokens", "output tokens", "80 %"),
        )

    def _intervals(self, limit: int) -> Block:
        return grid(
            self._select(limit),
            (
                ("hardware", lambda row: self.mark(row.label)),
                ("batch", "batch"),
                ("first token", lambda row: show_doubt(row.first_token_half_width)),
                ("between", lambda row: show_doubt(row.between_half_width)),
                ("J/prompt token", lambda row: show_doubt(row.prompt_token_half_width)),
                ("J/token", lambda row: show_doubt(row.output_token_half_width)),
                ("first step", "first_step_s"),
                ("last step", "last_step_s"),
            ),
            limit=limit,
            keep=("batch", "first token", "between", "J/token"),
        )

    def _describe_stored(self) -> list[str]:
        """Return which configurations have no runs of their own."""
        alike = len(self.served) - len({row.decode_run_id for row in self.served})
        return [
            f"{show_count(alike, 'configuration')} of the {len(self.served)} have no runs of their own: intervals and "
            "what bounds them are those of the nearer of the smallest and the largest batch of their hardware"
        ] * bool(alike)

    def _describe_cost(self) -> list[str]:
        """Return how chips are paid for, and what the other way costs at best."""
        told = [
            f"cost and carbon: {describe_use(self.assumptions, self.pay)}; `joulemap cost` says what else is assumed"
        ]
        other = "bought" if self.pay == "rented" else "rented"
        name = f"{other}_usd_per_million"
        priced = [row for row in self.phases if row.phase == "decode" and getattr(row, name) is not None]
        if self.pay != "both" and priced:
            best = min(priced, key=lambda row: float(getattr(row, name)))
            cost = show(getattr(best, name), "", "USD")
            told.append(
                f"{other} instead: {cost} a million output tokens on {self.mark(best.label)}, batch {best.batch}"
            )
        return told

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return what to ask next: why the first is ahead of the next between tokens, and where its joules go."""
        goals = {row.goal: row for row in self.winners}
        winner = goals.get("energy") or self.winners[0]
        steps = [row for row in self.phases if row.phase == "decode"]
        first = next(row for row in steps if row.place == winner.place)
        alike = [
            row for row in steps if (row.model, row.batch, row.precision) == (first.model, first.batch, first.precision)
        ]
        others = sorted(
            (row for row in alike if row.hardware != first.hardware), key=lambda row: row.energy_per_token_j
        )
        beside = [*spell_precision(first.precision), "--batch", str(first.batch), "--runtime", first.runtime, *repeated]
        return [
            *(
                ["explain", first.model, *map(self.scope.spell, (first.hardware, row.hardware)), *beside]
                for row in others[:1]
            ),
            ["edp", first.model, self.scope.spell(first.hardware), *beside],
        ]
