"""Deployments under a request load: requests at a rate, in a closed loop, or from a file, simulated one by one.

In disaggregated serving, each pool has as many servers as the load requires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import attrs

from joulemap.domain import AssumedEnergy, find_unknown, take
from joulemap.system import FJ_PER_J, UnsupportedError, UsageError
from joulemap.wing.llm.capacity.case import OK, UNSUPPORTED, Case, Handover
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.row import NOT_STORED, Stored, name_case, share_assumed
from joulemap.wing.llm.generated.row import LoadRow, PoolRow
from joulemap.wing.llm.serving.load import CLIENT_S, ROUNDS, Load, Served, Window
from joulemap.wing.llm.serving.request import read_requests
from joulemap.wing.llm.serving.serve import (
    find_limits,
    find_saturated_rates,
    open_deployment,
    serve,
    simulate_pools,
)
from joulemap.wing.llm.serving.warm_up import Pool

SPREAD: Final = 1.0 / 9.0
"""Spread of the lengths of requests in flight, without which all of them would take the same time.

Source: InferenceX, whose lengths are uniform in 80 to 100 % of the nominal ones, here around their mean.
"""


PERCENTILES: Final = (("p50", "_s"), ("p90", "_p90_s"), ("p99", "_p99_s"))
"""Percentile of a time, and end of the names of its columns."""


def find_assumed(row: LoadRow) -> AssumedEnergy | None:
    """Return the assumed part of the energy of an output token; None if unknown."""
    if row.assumed_energy_fraction is None or row.assumed_static_fraction is None:
        return None
    return AssumedEnergy(row.output_token_j * FJ_PER_J, row.assumed_energy_fraction, row.assumed_static_fraction)


def is_idle_assumed(case: Case) -> bool:
    """Return whether a server's power between requests is an assumed number."""
    hardware = case.server.hardware
    return (hardware.loaded_power or hardware.static_power).basis == "assumed"


def read_load(question: Question) -> Load | None:
    """Return the requested load; None if only batches are requested; UsageError for an invalid file."""
    serving = question.serving
    if not serving.has_load:
        return None
    trace = read_requests(Path(serving.requests)) if serving.requests else None
    is_shared = trace is not None and trace.prefixes is not None
    if is_shared and (serving.rate_per_s or serving.in_flight):
        raise UsageError(
            f"{serving.requests} has prefixes that depend on its order of arrival: leave out --rate and --in-flight"
        )
    if serving.cache_tiers and trace is not None and not is_shared:
        raise UsageError(
            f"--cache-tier keeps shared prefixes, and {serving.requests} has none: add a column conversation"
        )
    load = attrs.evolve(serving.form_load(serving.rate_per_s), in_flight=serving.in_flight, trace=trace)
    if serving.in_flight and serving.turns == 1:
        load = attrs.evolve(load, client=serving.client, gap_s=CLIENT_S)
    if serving.in_flight and serving.client in ROUNDS:
        load = attrs.evolve(load, requests=ROUNDS[serving.client] * serving.in_flight)
    if serving.in_flight and trace is None and serving.turns == 1 and serving.client == "steady":
        longest = (question.decoder.context_length or math.inf) / question.context
        load = attrs.evolve(load, spread_fraction=min(SPREAD, longest - 1.0))
    return load


def serve_load(question: Question, cases: Sequence[Case], stored: Stored) -> tuple[list[LoadRow], list[str]]:
    """Return a row for each configuration under the load, and the reasons for configurations without a row.

    `cases` includes refused configurations. Both results are empty without a load. Raise UnsupportedError if no
    configuration fits any request.
    """
    load = read_load(question)
    if load is None:
        return [], []
    distinct: dict[tuple[str, int, str], Case] = {}
    for case in cases:
        name = name_case(case)
        distinct[name] = case if name not in distinct or case.status == OK else distinct[name]
    has_several = len({case.precision for case in distinct.values()}) > 1
    rows, reasons = [], []
    for case in distinct.values():
        label = f"{case.label} {case.precision}" if has_several else case.label
        if case.status != OK:
            reasons.append(case.reason if case.status == UNSUPPORTED else f"{label} {case.reason}")
            continue
        try:
            served, own = serve_one(case, load)
            before = None
            if served.hits or own.cached_tokens:
                before, _ = serve_one(case, forget_cache(load))
            known = stored.get(name_case(case), NOT_STORED)
            assumed = share_assumed(served, known, known, float(is_idle_assumed(case)))
            row = form_load(case, served, known.usd_per_s, assumed)
            rows.append(row.replace(label=label, **count_hits(served, own, before)))
        except UnsupportedError as error:
            reasons.append(f"{label}: {error}")
    if not rows:
        raise UnsupportedError("; ".join(reasons))
    return rows, reasons


def serve_one(case: Case, load: Load) -> tuple[Served, Load]:
    """Return the simulated load on one server, and the load without cached tokens that its memory does not hold."""
    draft, own = case.question.draft(case.server), load
    if load.cached_tokens:
        own = hold_prefixes(load, find_limits(case.server, load, draft).cache_tokens)
    return serve(case.server, own, draft, tiers=case.question.serving.read_tiers()), own


def forget_cache(load: Load) -> Load:
    """Return a load that computes all tokens of its prompts."""
    return attrs.evolve(load, cached_tokens=0, reuses=False)


def hold_prefixes(load: Load, cache_tokens: int) -> Load:
    """Return a load whose cached prompt tokens fit in the KV cache: those of requests that wait for memory do not."""
    held = cache_tokens / ((load.in_flight or 1) * (load.prompt_tokens + load.output_tokens))
    return attrs.evolve(load, cached_tokens=int(load.cached_tokens * min(1.0, held)))


def count_hits(served: Served, load: Load, before: Served | None = None) -> dict[str, Any]:
    """Return the fields of `LoadRow` for prefix-cache hits and for the parts of a request's energy; empty without a
    cache.

    `before` is the result of the same load without reuse.
    """
    if not served.hits and not load.cached_tokens:
        return {}
    window = served.window
    each = served.output_tokens / served.requests / window.output_tokens
    old = None if before is None else before.output_tokens / before.requests * before.energy_per_output_token_j
    return {
        "prefix_hit_fraction": served.hit_fraction if served.hits else load.cached_tokens / load.prompt_tokens,
        "tier_hit_fraction": sum(hit.found_fraction for hit in served.hits[1:]),
        "request_j": window.energy_j * each,
        "request_prompt_j": window.prompt_j * each,
        "request_answer_j": window.answer_j * each,
        "request_moved_j": window.moved_j * each,
        "request_idle_j": window.idle_j * each,
        "uncached_request_j": old,
        "uncached_first_token_s": None if before is None else before.first_token.p50,
    }


def form_load(case: Case, served: Served, usd_per_s: float | None, assumed: tuple[float, float] | None) -> LoadRow:
    """Return the row of a simulated load, with the cost of its devices; `assumed` is the result of `share_assumed`."""
    cost = None if usd_per_s is None else 1e6 * usd_per_s / served.output_tokens_per_s
    spreads = {"first_token": served.first_token, "request": served.latency}
    spreads |= {"between": served.token_time, "gap": served.between_tokens} if served.has_gaps else {}
    times = {f"{name}{end}": getattr(spread, at) for name, spread in spreads.items() for at, end in PERCENTILES}
    return LoadRow(
        **{
            **find_unknown(LoadRow),
            **take(LoadRow, case, served, SimpleNamespace(**times)),
            "output_usd_per_million": cost,
            **dict(zip(("assumed_energy_fraction", "assumed_static_fraction"), assumed or (), strict=False)),
        },
        device_count=case.world,
        output_token_j=served.energy_per_output_token_j,
        idle_fraction=served.window.idle_j / served.window.energy_j,
        request_count=served.requests,
        refused_count=served.refused,
        preemption_count=served.preemptions,
    )


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
    load_row = _simulate(load, (first, second), (rows[0].server_count, rows[1].server_count), stored)
    return rows, [load_row]


def _choose(cases: Sequence[Case], name: str) -> Case:
    """Return the first configuration of a chip that holds a request; UnsupportedError with the reason if none does."""
    mine = [one for one in cases if one.hardware == name]
    fitting = next((one for one in mine if one.most), None)
    if fitting is None:
        raise UnsupportedError(next((one.refusal for one in mine), f"{name} has no room for a request"))
    return fitting


def _size(question: Question, load: Load, first: Case, second: Case) -> list[PoolRow]:
    prompt, output, cached = _mean_lengths(load)
    prompts, answers = (
        find_saturated_rates(one.server, prompt, output, cached_tokens=cached, draft=question.draft(one.server))
        for one in (first, second)
    )
    assert prompts.prompts is not None
    assert answers.answers is not None
    rates = (prompts.prompts.per_s, answers.answers.per_s)
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


def run_pools(
    load: Load, cases: tuple[Case, Case], counts: tuple[int, int]
) -> tuple[Served, tuple[Window, Window], Handover, int]:
    """Return the simulated load on a prefill pool and a decode pool, the window of each, and the move of the cache of a
    mean prompt, with its tokens.
    """

    def open_pool(case: Case, count: int, *, only_prompts: bool) -> Pool:
        draft, tiers = case.question.draft(case.server), case.question.serving.read_tiers()
        surface, limits = open_deployment(case.server, load, draft, tiers=tiers, only_prompts=only_prompts)
        return Pool(surface=surface, limits=limits, count=count)

    (first, second), prompt = cases, round(_mean_lengths(load)[0])
    handover = first.hand_over(second, prompt)
    pools = open_pool(first, counts[0], only_prompts=True), open_pool(second, counts[1], only_prompts=False)
    served, windows = simulate_pools(pools, load, handover_token_s=handover.seconds / prompt)
    return served, windows, handover, prompt


def _simulate(
    load: Load,
    cases: tuple[Case, Case],
    counts: tuple[int, int],
    stored: Stored,
) -> LoadRow:
    served, _, handover, prompt = run_pools(load, cases, counts)
    servers = list(zip(cases, counts, strict=True))
    handover_j = served.prompt_tokens * handover.joules / prompt
    names = [f"{count} ({case.label})" if case.world > 1 else f"{count} {case.label}" for case, count in servers]
    prompts, answers = (stored.get(name_case(case), NOT_STORED) for case in cases)
    known = zip((prompts, answers), counts, strict=True)
    prices = [count * one.usd_per_s for one, count in known if one.usd_per_s is not None]
    paid = sum(prices) if len(prices) == len(servers) else None
    idle_w = [count * case.server.resting_w for case, count in servers]
    assumed_w = sum(watts for watts, case in zip(idle_w, cases, strict=True) if is_idle_assumed(case))
    assumed = share_assumed(served, prompts, answers, assumed_w / sum(idle_w))
    row = form_load(cases[1], served, paid, assumed)
    token_j = row.output_token_j + handover_j / served.output_tokens
    return row.replace(
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
