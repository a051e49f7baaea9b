"""Words and tables of a served language model: decision, batches or load, memory, phases, cost and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.ask import Facts, find_decision
from joulemap.physics import spell_precision
from joulemap.show import (
    Block,
    Figures,
    Grid,
    Part,
    Shape,
    Template,
    Text,
    Title,
    draw_figure,
    head_assumed,
    lay_rows,
    mark_projected,
    show_assumed,
    show_count,
)
from joulemap.show.page import tell_left_out
from joulemap.show.present.document import choose_rows
from joulemap.wing.llm.ask.batch import GOALS as METRICS, VALUES
from joulemap.wing.llm.ask.llm import LlmAnswer
from joulemap.wing.llm.ask.served import TAIL
from joulemap.wing.llm.capacity.case import UNSUPPORTED
from joulemap.wing.llm.capacity.load import find_assumed
from joulemap.wing.llm.capacity.row import enclose_seller
from joulemap.wing.llm.generated.row import ServedPhase
from joulemap.wing.llm.phase import ANSWER
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
PHASES: Final = (
    "label | *batch | *phase | *phase_s | *run_latency_s | *energy_per_token_j | device_power_w | *limit bound | "
    "*run_id"
)

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
EXPLAIN: Final = "explain {model} {hardware} {other}[ --metric {metric}]" + RUN


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


def finish_batches(answer: LlmAnswer, grid: Grid, limit: int, **_: Any) -> Sequence[Block]:
    """Return the table of batches with the best of each column and those tied with it marked, and remarks on what is
    not in it.
    """
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
    shortage = "" if answer.loads.rows else batch.describe_shortage(answer.facts)
    reasons = list(dict.fromkeys(row.reason for row in answer.rows if row.status == UNSUPPORTED))
    if answer.not_taken:
        reasons.append(UNSUPPORTED_COUNT(count=len(answer.not_taken)))
    remarks = (*([Text(shortage)] if shortage else []), *tell_left_out(answer.scope), *tell_reasons(reasons))
    return grid, *remarks


def find_winning(answer: LlmAnswer) -> dict[str, tuple[str, int]]:
    """Return goal -> (label, batch) of its winner; the first line names it, so that its row is always shown."""
    places = {row.place: (row.label, row.batch) for row in answer.phases}
    return {winner.goal: places[winner.place] for winner in answer.winners}


def keep_winning(answer: LlmAnswer) -> Mapping[str, Any]:
    """Return the rows that stay in a shortened table."""
    winning = find_winning(answer).values()
    return {"stays": lambda row: (row.label, row.batch) in winning}


def show_phases(answer: LlmAnswer, _rows: object, limit: int, **_: Any) -> Grid:
    """Return the table of phases, with two rows for each row of other tables."""
    return lay_rows(
        answer, answer.phases, PHASES, limit=2 * limit, bound=lambda row: LIMIT(row, share=row.bound_fraction)
    )


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
    it is compared with, or the best one of other hardware, in the same configuration; None without such hardware.
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
    return first, min(others, key=lambda row: (row.hardware not in rivals, row.energy_per_token_j), default=None)


def choose(answer: LlmAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the title, the tables on the first screen, and the values of slots in parts and follow-up commands."""
    first, rival = find_leader(answer)
    loads = [name for name in ("pools", "loads") if getattr(answer, name).rows]
    lengths = LENGTHS(answer.serving) if answer.serving.requests else ""
    return {
        "title": title_answer(answer),
        "shown": loads or None,
        "told": (),  # the title states what of a checkpoint is not read
        "csv": "loads" if loads else "rows",
        "heading": BATCHES_HEADING(lengths=lengths) if loads else "",
        "assumed": head_assumed(map(find_assumed, answer.loads)),
        "row": first,
        "hardware": answer.scope.spell(first.hardware),
        "other": "" if rival is None else answer.scope.spell(rival.hardware),
        "words": spell_precision(first.precision),
        "metric": "" if loads else "latency",  # batches are decided by TPOT
        "dropped": (EXPLAIN,) if rival is None else (),
    }


def describe_opening(answer: LlmAnswer) -> str:
    """Return the first line; on two pools, it names the servers of both."""
    if answer.pools.rows:
        return load.describe_pools(answer.facts, [(row.server_count, row.label) for row in answer.pools])
    return describe_answer(answer.facts)


LLM: Final = Shape(
    first=describe_answer,
    opening=describe_opening,
    why=list_reasons,
    parts=(
        Part(
            table="pools",
            columns="pool | *label | *server_count | *each_per_s | use_fraction | balanced device ratio balance",
            lay={
                "pool": lambda row: load.POOL[row.pool],
                "balance": lambda row: BALANCE(row, other=load.OTHER_POOL[row.pool]),
            },
        ),
        Part(
            title="Requests: medians, and p99 where stated",
            table="loads",
            columns="label | *first_token_s | *first_token_p99_s | *between_s? | *between_p99_s? | gap_p99_s? | "
            "*output_tokens_per_s | *output_token_j | "
            "{assumed}*output_usd_per_million | *power_w | idle_fraction | request_s | "
            "keeps up up | preemption_count | refused_count | handover_s? | handover_j? | "
            "*prefix_hit_fraction? | *request_j? | *uncached_request_j? | tier_hit_fraction? | "
            "request_prompt_j? | request_answer_j? | request_moved_j? | request_idle_j?",
            lay={
                "ranked": "first_token_p99_s output_tokens_per_s output_token_j assumed_energy_fraction",
                "noun": "configurations",
                "assumed_energy_fraction": lambda row: show_assumed(find_assumed(row)),
                "up": lambda row: "no" if row.is_growing else "yes",
            },
            cells=lambda answer: {
                "stays": lambda row: row in [answer.loads[one - 1] for one in load.list_taken(answer.facts)]
            },
            is_long=True,
            is_tight=True,
            draw=lambda answer, grid, *_, **__: (grid, *tell_reasons(answer.not_loaded)),
        ),
        Part(
            title="{heading}",
            table="served_rows",
            columns="label | batch! | tokens_per_s | output_token_j | -output_token_j:output_token_half_width | "
            "between_s | -between_s:between_half_width | first_token_s | output_usd_per_million? | "
            "memory_fraction | largest_batch | largest_context! | decode_bound | prefill_bound | request_s | "
            "user_tokens_per_s | device_tokens_per_s",
            lay={
                "keep": "batch between_s output_token_half_width first_token_s output_usd_per_million "
                "memory_fraction largest_batch",
                "ranked": "tokens_per_s output_token_j",
                "pictures": "output_token_half_width",
                "noun": "configurations",
            },
            cells=keep_winning,
            is_long=True,
            is_tight=True,
            draw=finish_batches,
        ),
        Part(
            title="Memory of one device",
            table="judged_rows",
            columns="label | *batch | *weight_bytes | *cache_bytes | activation_bytes | reserved_bytes | "
            "*used memory_fraction | *largest_batch | *largest_context | needed_device_count",
            is_long=True,
        ),
        Part(title="Phases", table="phases", draw=show_phases),
        Part(
            title="Cost and carbon per million tokens",
            table="served_rows",
            columns="label | *batch | way | *prompt_usd_per_million | "
            "*output tokens output_usd_per_million:output_usd_half_width | price_text? | "
            "prompt_gco2_per_million | output_gco2_per_million",
            is_long=True,
        ),
        Part(
            title="80 % intervals",
            table="served_rows",
            columns="label | *batch | *first_token_s:first_token_half_width | *between_s:between_half_width | "
            "prompt_token_j:prompt_token_half_width | *output_token_j:output_token_half_width | "
            "first_step_s | last_step_s",
            is_long=True,
        ),
    ),
    csv="{csv}",
    notes=lambda answer: [*list_notes(answer)],
    choices=choose,
    draw=draw,
    limit=18,
    steps=(EXPLAIN, "edp {model} {hardware}" + RUN),
)

PAGES: Final = {LlmAnswer: LLM}
