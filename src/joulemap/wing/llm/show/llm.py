"""Words and tables of a served language model: decision, batches or load, memory, phases, cost and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask import Facts, find_decision
from joulemap.domain import Col
from joulemap.physics import spell_precision
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Figures,
    Grid,
    Page,
    Section,
    Template,
    Text,
    Title,
    compose_runs,
    derived,
    draw_figure,
    fill_steps,
    first_and_rest,
    mark_projected,
    show_assumed,
    show_count,
    show_table,
)
from joulemap.show.page import tell_left_out
from joulemap.show.present.document import choose_rows
from joulemap.wing.decoder import ANSWER
from joulemap.wing.llm.ask.batch import GOALS as METRICS, VALUES
from joulemap.wing.llm.ask.llm import LlmAnswer
from joulemap.wing.llm.ask.served import TAIL
from joulemap.wing.llm.capacity.case import UNSUPPORTED
from joulemap.wing.llm.capacity.load import find_assumed
from joulemap.wing.llm.capacity.row import enclose_seller
from joulemap.wing.llm.generated.row import LoadRow, PoolRow, ServedPhase, ServedRow
from joulemap.wing.llm.show import batch, load
from joulemap.wing.llm.show.serving import describe_costs, describe_served, tell_reasons, title_model

ABOUT: Final = Template(
    "{requests}, {precisions:and}{stored}[, {cache} cache], {engine}[, arrivals at {rate_per_s:1/s}][, {flown}]{served}"
)
LENGTHS: Final = Template("prompt {prompt:#}, output {output:#}")
BATCH_REQUESTS: Final = Template("{lengths}[, batch {batches:and}]")
FILE_REQUESTS: Final = Template("requests of {requests}")

BATCHES_HEADING: Final = Template("Batches of requests that arrive together[, {lengths}]")
GOALS: Final[Mapping[str, str]] = {
    "first_token": "TTFT", "between_tokens": "TPOT", "energy": "decode J/token", "cost": "USD/M output tokens"
}  # fmt: skip
"""Goal -> heading of its column."""
LIMIT: Final = Template("{bound} {share:%}")
BALANCE: Final = Template("{balanced_device_count:plain} per {other} device")
UNSUPPORTED_COUNT: Final = Template("{count:n chip} without the precision (--show notes)")
SHARED_RUNS: Final = Template(
    "{count:n configuration} of {total} have no separate runs: intervals and limits come from the smallest or "
    "largest batch of the same hardware, whichever is nearer"
)
DECODE_COST: Final = "output tokens are decode alone; prompt tokens cost extra (--show details)"
"""Scope of the cost of a batch's output tokens."""
FIRST: Final = "TTFT is the prefill of the batch alone; `--rate` adds the wait for other requests"
"""Parts of a first token that a batch leaves out."""
WHOLE_COST: Final = "output tokens include their prompts"
"""Scope of the cost of a load's output tokens."""
OTHER_SELLER: Final = Template(
    "cost not compared, because the price is from another kind of seller (--site seller): {prices:list}"
)
CLIENT: Final = {"steady": "{}", "together": "{} started together", "waves": "{} at once, wave after wave"}
"""Client -> how the title tells of its requests."""
RUN: Final = " {words} --batch {batch} --runtime {runtime}"
EXPLAIN: Final = Template("explain {model} {hardware} {other}[ --metric {metric}]" + RUN)
EDP: Final = Template("edp {model} {hardware}" + RUN)


def title_answer(answer: LlmAnswer) -> Title:
    """Return the title of the document, which restates the question."""
    serving = answer.serving
    batches = [] if answer.loads.rows else [str(batch) for batch in sorted({row.batch for row in answer.rows})]
    requests = FILE_REQUESTS if serving.requests else BATCH_REQUESTS
    flown = show_count(serving.in_flight or 0, "concurrent " + ("conversation" if serving.turns > 1 else "request"))
    values = {
        "requests": requests(serving, lengths=LENGTHS(serving), batches=batches),
        "precisions": tuple(dict.fromkeys(row.precision for row in answer.rows)),
        "stored": answer.stored,
        "engine": answer.engine,
        "flown": CLIENT[serving.client].format(flown) if serving.in_flight else None,
        "served": describe_served(serving),
    }
    return title_model(answer, about=Title(form=ABOUT, row=serving, values=values))


def describe_answer(facts: Facts) -> str:
    """Return the decision among deployments under a load, or among batches without one."""
    return load.describe_answer(facts) if TAIL in facts.asked else batch.describe_answer(facts)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the deployments under a load, or on the batches without one."""
    return load.list_reasons(facts) if TAIL in facts.asked else batch.list_reasons(facts)


def draw(answer: LlmAnswer) -> Figures:
    """Return the figure of device throughput against latency per token, batch by batch."""
    if not answer.served:
        return ()
    return (draw_figure(answer.scope, "frontier", answer.rows, title_answer(answer), describe_opening(answer)),)


def mark_batches(answer: LlmAnswer, grid: Grid, limit: int) -> Grid:
    """Return the table of batches with the best of each column and those tied with it marked."""
    winning = find_winning(answer)
    rows = choose_rows(answer.served, limit, lambda row: (row.label, row.batch) in winning.values())
    keys = [(row.label, row.batch) for row in rows]
    for winner in answer.winners:
        heading, field = GOALS[winner.goal], VALUES[METRICS[winner.goal]][0]
        if winner.hardware_count > 1 and heading in grid.headings:
            valued = [row for row in answer.served if getattr(row, field) is not None]
            valued.sort(key=lambda row: (getattr(row, field), row.batch), reverse=True)
            leaders = {row.label: (row.label, row.batch) for row in valued}  # the last one of a chip is its best
            tied = [leaders[label] for label in winner.rivals if label in leaders]
            grid = grid.mark_best(heading, keys, [winning[winner.goal]], tied)
    return grid


def tell_below(answer: LlmAnswer) -> list[Text]:
    """Return remarks on what is not in the table of batches."""
    shortage = "" if answer.loads.rows else batch.describe_shortage(answer.facts)
    reasons = list(dict.fromkeys(row.reason for row in answer.rows if row.status == UNSUPPORTED))
    if answer.not_taken:
        reasons.append(UNSUPPORTED_COUNT(count=len(answer.not_taken)))
    return [*([Text(shortage)] if shortage else []), *tell_left_out(answer.scope), *tell_reasons(reasons)]


def find_winning(answer: LlmAnswer) -> dict[str, tuple[str, int]]:
    """Return goal -> (label, batch) of its winner; the first line names it, so that its row is always shown."""
    places = {row.place: (row.label, row.batch) for row in answer.phases}
    return {winner.goal: places[winner.place] for winner in answer.winners}


def show_pools(answer: LlmAnswer) -> list[Section]:
    """Return the section of two pools."""
    of = PoolRow
    ratio: Col[PoolRow] = derived("balanced device ratio", _balance)
    columns = (
        of.pool.by(lambda row: load.POOL[row.pool]),
        of.label.kept,
        of.server_count.kept,
        of.each_per_s.kept,
        of.use_fraction,
        ratio,
    )
    return show_table(answer, "", answer.pools, columns)


def _balance(row: PoolRow) -> str:
    """Return how many devices of a pool one device of the other keeps busy."""
    return BALANCE(row, other=load.OTHER_POOL[row.pool])


def show_loads(answer: LlmAnswer, limit: int) -> list[Section]:
    """Return the section of deployments under a load."""
    of, taken = LoadRow, [answer.loads[one - 1] for one in load.list_taken(answer.facts)] if answer.loads else []
    stable: Col[LoadRow] = derived("keeps up", lambda row: "no" if row.is_growing else "yes")
    assumed = of.assumed_energy_fraction.by(lambda row: show_assumed(find_assumed(row)))
    columns = (
        of.label,
        of.first_token_s.kept,
        of.first_token_p99_s.ranking.kept,
        of.between_s.if_any.kept,
        of.between_p99_s.if_any.kept,
        of.gap_p99_s.if_any,
        of.output_tokens_per_s.ranking.kept,
        of.output_token_j.ranking.kept,
        assumed.ranking.kept if any(show_assumed(find_assumed(row)) for row in answer.loads) else None,
        of.output_usd_per_million.kept,
        of.power_w.kept,
        of.idle_fraction,
        of.request_s,
        stable,
        of.preemption_count,
        of.refused_count,
        of.handover_s.if_any,
        of.handover_j.if_any,
        of.prefix_hit_fraction.if_any.kept,
        of.request_j.if_any.kept,
        of.uncached_request_j.if_any.kept,
        of.tier_hit_fraction.if_any,
        of.request_prompt_j.if_any,
        of.request_answer_j.if_any,
        of.request_moved_j.if_any,
        of.request_idle_j.if_any,
    )
    told = tell_reasons(answer.not_loaded)
    stays = taken.__contains__
    title = "Requests: medians, and p99 where stated"
    sections = show_table(answer, title, answer.loads, columns, *told, limit=limit, noun="configurations", stays=stays)
    return [attrs.evolve(one, is_tight=True) for one in sections]


def show_batches(answer: LlmAnswer, limit: int) -> list[Section]:
    """Return the section of batches of requests that arrive together."""
    of, winning = ServedRow, find_winning(answer).values()
    columns = (
        of.label,
        of.batch.if_varied,
        of.tokens_per_s.ranking,
        of.output_token_j.ranking,
        of.output_token_half_width.ends_of(of.output_token_j).drawn,
        of.between_s,
        of.between_half_width.ends_of(of.between_s),
        of.first_token_s,
        of.output_usd_per_million.if_any,
        of.memory_fraction,
        of.largest_batch,
        of.largest_context.if_varied,
        of.decode_bound,
        of.prefill_bound,
        of.request_s,
        of.user_tokens_per_s,
        of.device_tokens_per_s,
    )
    lengths = LENGTHS(answer.serving) if answer.serving.requests else ""
    sections = show_table(
        answer,
        BATCHES_HEADING(lengths=lengths) if list_loads(answer) else "",
        answer.served_rows,
        columns,
        *tell_below(answer),
        keep=(
            of.batch, of.between_s, of.output_token_half_width, of.first_token_s, of.output_usd_per_million,
            of.memory_fraction, of.largest_batch,
        ),
        limit=limit,
        noun="configurations",
        stays=lambda row: (row.label, row.batch) in winning,
        change=lambda drawn: mark_batches(answer, drawn, limit),
    )  # fmt: skip
    return [attrs.evolve(one, is_tight=True) for one in sections]


def list_details(answer: LlmAnswer, limit: int) -> Iterator[list[Section]]:
    """Yield the tables of memory, phases, cost and intervals."""
    of, phase = ServedRow, ServedPhase
    memory = (
        of.label, of.batch.kept, of.weight_bytes.kept, of.cache_bytes.kept, of.activation_bytes, of.reserved_bytes,
        of.memory_fraction.headed("used").kept, of.largest_batch.kept, of.largest_context.kept,
        of.needed_device_count,
    )  # fmt: skip
    yield show_table(answer, "Memory of one device", answer.judged_rows, memory, limit=limit)
    steps = (
        phase.label, phase.batch.kept, phase.phase.kept, phase.phase_s.kept, phase.run_latency_s.kept,
        phase.energy_per_token_j.kept, phase.device_power_w,
        phase.bound.headed("limit").by(lambda row: LIMIT(row, share=row.bound_fraction)).kept, phase.run_id.kept,
    )  # fmt: skip
    yield show_table(answer, "Phases", answer.phases, steps, limit=2 * limit)
    cost = of.output_usd_per_million.headed("output tokens").within(of.output_usd_half_width).kept
    costs = (
        of.label, of.batch.kept, of.way, of.prompt_usd_per_million.kept, cost, of.price_text.if_any,
        of.prompt_gco2_per_million, of.output_gco2_per_million,
    )  # fmt: skip
    yield show_table(answer, "Cost and carbon per million tokens", answer.served_rows, costs, limit=limit)
    ranges = (
        of.label,
        of.batch.kept,
        of.first_token_s.within(of.first_token_half_width).kept,
        of.between_s.within(of.between_half_width).kept,
        of.prompt_token_j.within(of.prompt_token_half_width),
        of.output_token_j.within(of.output_token_half_width).kept,
        of.first_step_s,
        of.last_step_s,
    )
    yield show_table(answer, "80 % intervals", answer.served_rows, ranges, limit=limit)


def list_notes(answer: LlmAnswer) -> Iterator[str]:
    """Yield notes on the cache, shared runs, cost, and prices of other sellers."""
    if answer.wide_cache:
        yield answer.wide_cache
    alike = len(answer.served) - len({row.decode_run_id for row in answer.served})
    if alike:
        yield SHARED_RUNS(count=alike, total=len(answer.served))
    if not answer.loads.rows:
        yield FIRST
    yield describe_costs(answer.assumptions, answer.pay, WHOLE_COST if answer.loads.rows else DECODE_COST)
    unlike = {row.hardware: row.unlike_price_text for row in answer.phases if row.unlike_price_text}
    if unlike:
        named = [f"{mark_projected(name, answer.projected)} at {enclose_seller(one)}" for name, one in unlike.items()]
        yield OTHER_SELLER(prices=named)
    yield from answer.not_taken


def find_leader(answer: LlmAnswer) -> tuple[ServedPhase, ServedPhase | None]:
    """Return the decode steps that follow-up commands are about: that of the hardware to take, and that of the hardware
    it is compared with, if any, or the best one of other hardware, in the same configuration; None without one.
    """
    steps = [row for row in answer.phases if row.phase == ANSWER.name]
    first = next(row for row in steps if row.place == answer.winners[0].place)
    decision = find_decision(answer.facts)
    rivals: tuple[str, ...] = ()
    if decision is not None and not answer.loads.rows:
        taken, *beside = (answer.rows[run - 1] for run in decision.runs)
        first = next(row for row in steps if (row.label, row.batch) == (taken.label, taken.batch))
        rivals = tuple(row.hardware for row in beside)
    if answer.loads.rows:  # a batch of --show details may have another winner than the load
        best = answer.loads[load.list_taken(answer.facts)[0] - 1]
        served = (best.hardware, best.precision, best.device_count)
        own = [row for row in steps if (row.hardware, row.precision, row.device_count) == served]
        flown = answer.serving.in_flight
        nearness = (lambda row: abs(row.batch - flown)) if flown else (lambda row: row.energy_per_token_j)
        first = min(own, key=nearness, default=first)
    alike = (first.model, first.batch, first.precision)
    others = [row for row in steps if row.hardware != first.hardware and (row.model, row.batch, row.precision) == alike]
    asked = [row for row in others if row.hardware in rivals or not rivals]
    return first, min(asked, key=lambda row: row.energy_per_token_j, default=None)


def list_loads(answer: LlmAnswer) -> list[str]:
    """Return the tables of a load, if one is asked."""
    return [name for name in ("pools", "loads") if getattr(answer, name).rows]


def list_steps(answer: LlmAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up commands: on the hardware to take, and on the one that it is compared with."""
    first, rival = find_leader(answer)
    return fill_steps(
        [EXPLAIN, EDP] if rival is not None else [EDP],
        first,
        repeated,
        hardware=answer.scope.spell(first.hardware),
        other="" if rival is None else answer.scope.spell(rival.hardware),
        words=spell_precision(first.precision),
        metric="" if list_loads(answer) else "latency",  # batches are decided by TPOT
    )


def describe_opening(answer: LlmAnswer) -> str:
    """Return the first line; on two pools, it names the servers of both."""
    if answer.pools.rows:
        return load.describe_pools(answer.facts, [(row.server_count, row.label) for row in answer.pools])
    return describe_answer(answer.facts)


def draw_served(answer: LlmAnswer, asked: Asked) -> Document:
    """Return the document of a served language model: deployments under a load, or batches without one."""
    most, loads = asked.most(18), list_loads(answer)
    asked_first = [*show_pools(answer), *show_loads(answer, most)]
    first, rest = first_and_rest([asked_first, show_batches(answer, most), *list_details(answer, most)])
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.loads if loads else answer.rows,
        title=title_answer(answer),
        headline=describe_opening(answer),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        told=(),  # the title states what of a checkpoint is not read
        details=rest,
        notes=list_notes(answer),
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {LlmAnswer: Page[LlmAnswer](draw=draw_served, draw_figures=draw)}
