"""Document on a served language model: the table of deciding figures, then memory, phases and cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import attrs

from joulemap.answer.answer import Figures
from joulemap.answer.assumed import describe_assumed, head_assumed, name_assumed, show_assumed
from joulemap.answer.candidate import describe_use
from joulemap.domain.settings import Serving
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.present.cell import join_names, show, show_chosen_share, show_count, show_share
from joulemap.present.document import SHARE_HEADING, Document, Grid, Section, Text, choose_rows, show_under
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen
from joulemap.wing.llm.answer.demand import UNSUPPORTED
from joulemap.wing.llm.answer.load import LoadRow, choose_loads, describe_load
from joulemap.wing.llm.answer.pool import PoolRow, say_pools
from joulemap.wing.llm.answer.row import ServedRow
from joulemap.wing.llm.answer.sentence import NOTES, ServedAnswer, say_doubt, say_insights, say_winners

SHOWN: Final = 18
"""Maximum configurations in a table, unless a limit is given."""

GOALS: Final = {
    "first_token": ("first token", "first_token_s"),
    "between_tokens": ("between", "between_s"),
    "energy": ("J/token", "output_token_j"),
    "cost": ("USD/M", "output_usd_per_million"),
}
"""Goal, with the heading of its column and its field."""


@frozen(kw_only=True)
class LlmAnswer(ServedAnswer):
    """Answer for one language model on several hardware, each at several batch sizes, on one engine."""

    about = ("model", "engine", "serving", "pay", "not_taken", "not_loaded")

    model: str
    serving: Serving
    engine: str
    """Engine with the year of its release."""
    stored: str
    """Published format of the checkpoint, as in the title; empty for 16 bits."""
    loads: Table[LoadRow]
    """Results of each hardware under the requested load; empty if only batches are asked about."""
    pools: Table[PoolRow]
    """Prefill pool and decode pool, if disaggregated serving is asked about."""
    assumptions: Table[AssumedNumber]
    """Assumptions behind cost and carbon."""
    not_taken: tuple[str, ...] = ()
    """Default hardware that lacks the precision, with the reasons."""
    not_loaded: tuple[str, ...] = ()
    """Configurations that hold the model but cannot take the request load, with the reasons."""

    @property
    def pay(self) -> str:
        """Payment for chips: rented, bought or both."""
        return self.phases[0].pay if self.phases.rows else ""

    def title(self) -> str:
        """Return the title, which restates the question."""
        serving = self.serving
        batches = join_names([str(batch) for batch in sorted({row.batch for row in self.rows})])
        precisions = join_names(list(dict.fromkeys(row.precision for row in self.rows)))
        cache = f", {serving.cache} cache" if serving.cache else ""
        came = [f"{serving.rate_per_s:g} request{'s' * (serving.rate_per_s != 1)}/s"] if serving.rate_per_s else []
        came += [f"{serving.in_flight} requests in work"] if serving.in_flight else []
        came += (
            [f"{serving.speculate} guessed, {show_chosen_share(serving.acceptance)} hold"] if serving.speculate else []
        )
        asked = f"requests of {serving.requests}" if serving.requests else f"{self._say_lengths()}, batch {batches}"
        return f"{self.model}: {', '.join((asked, f'{precisions}{self.stored}{cache}', self.engine, *came))}"

    def _say_lengths(self) -> str:
        return f"prompt {self.serving.prompt:,}, output {self.serving.output:,}"

    def figures(self) -> Figures:
        """Return the figure of device throughput against latency per token, batch by batch."""
        if not self.served:
            return ()
        return (self._draw_figure("frontier", self.rows, self.title(), say_winners(self)),)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` configurations; JSON has every one, CSV the rows."""
        told = (*self.scope.say_left_out(), *self._say_unsupported())
        lengths = f", {self._say_lengths()}" * bool(self.serving.requests)
        heading = f"Batches that come together{lengths}" if self.loads.rows else ""
        batches = show_under(heading, self._figures(limit), *told)
        loaded = [Section("", self._pools())] if self.pools.rows else []
        loaded += [show_under("", self._loads(limit), *self._describe_not_loaded())] if self.loads.rows else []
        served = attrs.evolve(self.rows, rows=self.served)
        judged = attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.status != UNSUPPORTED))
        details = {
            "Memory of one device": self._lay(
                judged,
                "hardware @label | *batch | *weights weight_bytes | *cache cache_bytes | "
                "activations activation_bytes | reserved reserved_bytes | *of it memory_fraction | "
                "*largest batch largest_batch | *longest context largest_context | needs",
                limit=limit,
                needs=lambda row: (
                    "" if row.needed_device_count is None else show_count(row.needed_device_count, "device")
                ),
            ),
            "Phases": self._lay(
                self.phases,
                "hardware @label | *batch | *phase | *time phase_s | *a pass run_latency_s | "
                "*J/token energy_per_token_j | power device_power_w | *waits for bound | *run run_id",
                limit=2 * limit,
                bound=lambda row: f"{row.bound} {show_share(row.bound_fraction)}",
            ),
            "Cost and carbon of a million tokens": self._lay(
                served,
                "hardware @label | *batch | way | *prompt tokens prompt_usd_per_million | "
                "*output tokens output_usd_per_million | *80 % ±output_usd_half_width | "
                "price price_told? | "
                "CO2 of prompts prompt_gco2_per_million | CO2 of output output_gco2_per_million",
                limit=limit,
            ),
            "Intervals, 4 in 5": self._lay(
                served,
                "hardware @label | *batch | *first token ±first_token_half_width | *between ±between_half_width | "
                "J/prompt token ±prompt_token_half_width | *J/token ±output_token_half_width | "
                "first step first_step_s | last step last_step_s",
                limit=limit,
            ),
        }
        return self._compose(
            self.title(),
            loaded or (batches,),
            self.loads if loaded else self.rows,
            answer=self._say_answer(),
            insights=[say_winners(self)] if loaded else say_insights(self),
            sure=say_doubt(self),
            details=([batches] if loaded else []) + [Section(title, drawn) for title, drawn in details.items()],
            notes=[*NOTES, *self._describe_stored(), *self._describe_cost(), *self.not_taken, *self.scope.describe()],
            steps=self._steps(repeated),
        )

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return the assumed share of the energies in a headline; under a load, the share of all its energy."""
        if not self.loads.rows:
            return super()._describe_assumed(headline, chosen or self._find_named())
        load = self.loads[0] if self.pools.rows else choose_loads(self.loads)[1]
        if not self.pools.rows:
            return describe_assumed(headline, {} if load.assumed is None else {load.label: [load.assumed]})
        if load.assumed is None or not (share := show_assumed(load.assumed)):
            return ""
        return f"{share} of the energy of an output token is {name_assumed(load.assumed)}"

    def _find_named(self) -> set[int] | None:
        """Return the run whose energy per output token is in the headline; None if it has several."""
        winner = next((row for row in self.winners if row.goal == "energy"), None)
        if winner is None or winner.hardware_count < 2:
            return None
        rows = (row for row in self.served if (row.label, row.batch) == (winner.label, winner.batch))
        return {row.decode_run_id for row in rows if row.decode_run_id is not None}

    def _say_answer(self) -> str:
        if self.pools.rows:
            return say_pools(self.pools.rows, self.loads[0])
        return describe_load(self.loads) if self.loads.rows else say_winners(self)

    def _say_unsupported(self) -> tuple[Text, ...]:
        """Return the note below a table about hardware that cannot run the model."""
        reasons = list(dict.fromkeys(row.reason for row in self.rows if row.status == UNSUPPORTED))
        if self.not_taken:
            reasons.append(f"{show_count(len(self.not_taken), 'hardware', 'hardware')} without the precision (--notes)")
        return (Text(f"Left out: {'; '.join(reasons)}"),) if reasons else ()

    def _figures(self, limit: int) -> Grid:
        """Return the table of deciding figures, with the best of each column marked."""
        drawn = self._lay(
            attrs.evolve(self.rows, rows=self.served),
            "hardware @label | batch | first token first_token_s | between between_s | tokens/s ~tokens_per_s | "
            "J/token output_token_j | USD/M #output_usd_per_million? | memory memory_fraction | most largest_batch | "
            "decode waits for decode_bound | prompts wait for prefill_bound | request request_s | "
            "J/prompt token prompt_token_j | tokens/s a user ~user_tokens_per_s | a device ~device_tokens_per_s",
            keep="batch | between | J/token | first token | tokens/s | USD/M | memory | most",
            ranked="between | J/token | USD/M",
            limit=limit,
            noun="configurations",
            stays=self._wins,
            decode_bound=lambda row: f"{row.decode_bound} {show_share(row.decode_bound_fraction)}",
            prefill_bound=lambda row: f"{row.prefill_bound} {show_share(row.prefill_bound_fraction)}",
        )
        best, tied = self._mark_best(drawn.headings, limit)
        return attrs.evolve(drawn, best=best, tied=tied)

    def _pools(self) -> Grid:
        """Return the table of the servers of two pools."""
        return self._lay(
            self.pools,
            "pool | *server @label | *servers server_count | *requests/s each ~each_per_s | *in use use_fraction | "
            "balance, devices balance",
            balance=lambda row: f"{row.balanced_device_count:.3g} to 1",
        )

    def _loads(self, limit: int) -> Grid:
        """Return the table of results of each hardware under the load."""
        assumed = head_assumed(row.assumed for row in self.loads)
        return self._lay(
            self.loads,
            "hardware @label | *first token first_token_s | *99 % first_token_p99_s | *between between_s | "
            f"*99 % of it between_p99_s | *tokens/s ~output_tokens_per_s | *J/token output_token_j | {assumed}"
            "*USD/M #output_usd_per_million | *power power_w | idle idle_fraction | request request_s | kept up up | "
            "preempted preemption_count | refused refused_count | handover handover_s? | J of it handover_j?",
            ranked=f"99 % | J/token | {SHARE_HEADING}",
            limit=limit,
            noun="configurations",
            assumed_energy_fraction=lambda row: show_assumed(row.assumed),
            stays=lambda row: row in choose_loads(self.loads),
            up=lambda row: "no" if row.is_growing else "yes",
        )

    def _mark_best(
        self, headings: Sequence[str], limit: int
    ) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
        """Return the best cell of each column, and the best cell of each hardware that ties with it."""
        ids = {row.place: (row.label, row.batch) for row in self.phases}
        rows = choose_rows(self.served, limit, self._wins)
        shown = {(row.label, row.batch): index for index, row in enumerate(rows)}
        best, tied = set(), set()
        for winner in self.winners:
            heading, field = GOALS[winner.goal]
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
        """Return whether a configuration is the best at something; sentences name it, so its row stays."""
        ids = {phase.place: (phase.label, phase.batch) for phase in self.phases}
        return any(ids[winner.place] == (row.label, row.batch) for winner in self.winners)

    def _describe_not_loaded(self) -> tuple[Text, ...]:
        """Return the reasons for configurations without a row under the load."""
        return (Text(f"Left out: {'; '.join(self.not_loaded)}"),) if self.not_loaded else ()

    def _describe_stored(self) -> list[str]:
        """Return a note on configurations that have no runs of their own."""
        alike = len(self.served) - len({row.decode_run_id for row in self.served})
        return [
            f"{show_count(alike, 'configuration')} of the {len(self.served)} have no runs of their own: intervals and "
            "what bounds them are those of the nearer of the smallest and the largest batch of their hardware"
        ] * bool(alike)

    def _describe_cost(self) -> list[str]:
        """Return a note on the payment for chips, and the best cost with the other payment."""
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
        """Return the next commands: why the winner is ahead in time per output token, and where its energy goes."""
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
