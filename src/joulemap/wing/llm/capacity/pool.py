"""Disaggregated serving: required servers of each pool, and the latencies of requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.system import UnsupportedError, UsageError
from joulemap.wing.llm.capacity.load import count_hits, form_load, is_idle_assumed, read_load
from joulemap.wing.llm.capacity.stored import NOT_STORED, Stored, name_case, share_assumed
from joulemap.wing.llm.generated.row import LoadRow, PoolRow

if TYPE_CHECKING:
    from joulemap.wing.llm.capacity.case import Case
    from joulemap.wing.llm.capacity.question import Question
    from joulemap.wing.llm.serving.deployment import Deployment
    from joulemap.wing.llm.serving.load import Load

FULL: Final = 0.8
"""Maximum utilization of a pool before servers are added; a request then waits for two other requests on average.

Source: assumed; a queue with one server and equal services, share / (2 (1 - share)).
"""

MOST: Final = 64
"""Maximum servers of a pool."""


def serve_pools(
    question: Question,
    cases: Sequence[Case],
    chosen: tuple[str, str],
    stored: Stored,
) -> tuple[list[PoolRow], list[LoadRow]]:
    """Return the rows of both pools on the `chosen` (prefill, decode) hardware, and the row of the request load.

    Raise UsageError without a load.
    """
    load = read_load(question)
    if load is None:
        raise UsageError("--prefill-on needs a request load: add --rate 4/s, --in-flight 32 or --requests FILE")
    first, second = (_choose(cases, name) for name in chosen)
    rows = _size(question, load, first, second)
    load_row = _simulate(question, load, (first, second), (rows[0].server_count, rows[1].server_count), stored)
    return rows, [load_row]


def _choose(cases: Sequence[Case], name: str) -> Case:
    """Return the first configuration of a chip that holds a request; UnsupportedError with the reason if none does."""
    mine = [one for one in cases if one.hardware == name]
    fitting = next((one for one in mine if one.most), None)
    if fitting is None:
        raise UnsupportedError(next((one.refusal for one in mine), f"{name} has no room for a request"))
    return fitting


def _size(question: Question, load: Load, first: Case, second: Case) -> list[PoolRow]:
    from joulemap.wing.llm.serving.pool import count_answers, count_prompts

    prompt, output, cached = _mean_lengths(load)
    prompts = count_prompts(first.server, prompt, cached, question.draft(first.server))
    answers = count_answers(second.server, prompt, output, question.draft(second.server))
    rates = (prompts.per_s, answers.per_s)
    rate = find_rate(load)
    counts = [1, 1] if rate is None else [math.ceil(rate / (FULL * each)) for each in rates]
    if max(counts) > MOST:
        raise UsageError(
            f"{rate:g} requests/s need {counts[0]:,} servers for prefill and {counts[1]:,} for decode, expected at "
            f"most {MOST}"
        )
    return [
        PoolRow(
            pool=pool,
            label=case.label,
            device_count=case.world,
            server_count=count,
            each_per_s=each,
            use_fraction=None if rate is None else rate / (count * each),
            balanced_device_count=(case.world / each) / (other.world / others),
        )
        for pool, case, count, each, other, others in (
            ("prompts", first, counts[0], rates[0], second, rates[1]),
            ("answers", second, counts[1], rates[1], first, rates[0]),
        )
    ]


def find_rate(load: Load) -> float | None:
    """Return the arrival rate of a load in requests per second; None in a closed loop or if all arrive at once."""
    if load.rate_per_s is not None or load.in_flight is not None or load.trace is None:
        return load.rate_per_s
    arrivals = load.trace.arrival_s
    return (len(arrivals) - 1) / arrivals[-1] if arrivals[-1] > 0.0 else None


def count_kept(mean_prompt: float, new: int, output: int, turns: int) -> float:
    """Return the mean prompt tokens of a turn that a prefill server keeps from the previous turn, answers excluded."""
    return mean_prompt - new - output * (turns - 1) / turns


def _mean_lengths(load: Load) -> tuple[float, float, float]:
    """Return (mean prompt tokens, mean output tokens, mean prompt tokens found in the prefix cache) if nothing is
    evicted.

    A prefill server keeps prompts, not answers: a turn finds the prompt of the turn before it.
    """
    if load.trace is None:
        tokens = load.prompt_tokens + load.output_tokens
        prompt = load.prompt_tokens + 0.5 * (load.turns - 1) * tokens
        kept = count_kept(prompt, load.prompt_tokens, load.output_tokens, load.turns)
        return prompt, float(load.output_tokens), kept if load.turns > 1 else float(load.cached_tokens)
    trace, count = load.trace, len(load.trace.prompt_tokens)
    kept = float(sum(trace.cached_tokens))
    if trace.prefixes is not None:
        known: set[int] = set()
        for blocks, tokens in zip(trace.prefixes.prompts, trace.prompt_tokens, strict=True):
            old = next((index for index, block in enumerate(blocks) if block not in known), len(blocks))
            kept += min(old * trace.prefixes.block_tokens, tokens - 1)
            known.update(blocks)
    return sum(trace.prompt_tokens) / count, sum(trace.output_tokens) / count, kept / count


def _simulate(
    question: Question,
    load: Load,
    cases: tuple[Case, Case],
    counts: tuple[int, int],
    stored: Stored,
) -> LoadRow:
    from joulemap.wing.llm.serving.pool import simulate_pools
    from joulemap.wing.llm.serving.serve import open_deployment
    from joulemap.wing.llm.serving.warm_up import Pool

    tiers = question.serving.read_tiers()

    def open_pool(deployment: Deployment, count: int) -> Pool:
        surface, limits = open_deployment(deployment, load, question.draft(deployment), tiers=tiers)
        return Pool(surface=surface, limits=limits, count=count)

    first, second = cases
    pools = open_pool(first.server, counts[0]), open_pool(second.server, counts[1])
    servers = list(zip(cases, counts, strict=True))
    prompt = round(_mean_lengths(load)[0])
    handover = first.hand_over(second, prompt)
    served, _ = simulate_pools(pools, load, handover_token_s=handover.seconds / prompt)
    handover_j = served.prompt_tokens * handover.joules / prompt
    names = [f"{count} ({case.label})" if case.world > 1 else f"{count} {case.label}" for case, count in servers]
    prompts, answers = (stored.get(name_case(case), NOT_STORED) for case in cases)
    known = zip((prompts, answers), counts, strict=True)
    prices = [count * one.usd_per_s for one, count in known if one.usd_per_s is not None]
    paid = sum(prices) if len(prices) == len(servers) else None
    idle_w = [count * case.server.resting_w for case, count in servers]
    assumed_w = sum(watts for watts, case in zip(idle_w, cases, strict=True) if is_idle_assumed(case))
    assumed = share_assumed(served, prompts, answers, assumed_w / sum(idle_w))
    row = form_load(second, served, paid, assumed)
    token_j = row.output_token_j + handover_j / served.output_tokens
    return attrs.evolve(
        row,
        label=" + ".join(names),
        hardware=" + ".join(case.hardware for case in cases),
        device_count=sum(case.world * count for case, count in servers),
        power_w=row.power_w + handover_j / served.duration_s,
        output_token_j=token_j,
        assumed_energy_fraction=None if assumed is None else assumed[0] * row.output_token_j / token_j,
        assumed_static_fraction=None if assumed is None else assumed[1] * row.output_token_j / token_j,
        handover_s=handover.seconds,
        handover_j=handover.joules,
        **count_hits(served, load),
    )
