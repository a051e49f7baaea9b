"""Requests one by one: what a server gives when they come at a rate, as they end, or as a file has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.answer.computed import find_unknown, take, told
from joulemap.answer.scope import join_words
from joulemap.present.cell import show_quantity, show_share
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.llm.demand import Case, Question
    from joulemap.domain.load import Load, Served

REQUESTS: Final = 300
"""That are drawn where a file names none."""


@frozen(kw_only=True)
class LoadRow:
    """A hardware, so many of it, under a load of requests; joules and watts are of all devices."""

    label: str = told("hardware, with xN where N devices work together")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    device_count: int = told("devices that work together")
    precision: str = told("of activations; bf16/int4 where weights of products are stored at another")
    first_token_s: float = told("from a request's arrival to its first token, half of them", "s")
    first_token_p90_s: float = told("nine of ten", "s")
    first_token_p99_s: float = told("99 of 100", "s")
    between_s: float = told("between two tokens of a sequence, half of all", "s")
    between_p90_s: float = told("nine of ten", "s")
    between_p99_s: float = told("99 of 100", "s")
    request_s: float = told("from arrival to last token, half of the requests", "s")
    request_p99_s: float = told("99 of 100", "s")
    output_tokens_per_s: float = told("of all requests, over the whole run", "1/s")
    power_w: float = told("in the mean of the whole run", "W")
    output_token_j: float = told("all energy over the output tokens: of prompts and of waiting too", "J")
    idle_fraction: float = told("of the energy, while there was nothing to do")
    request_count: int = told("that were served")
    refused_count: int = told("that are longer than the cache")
    preemption_count: int = told("times that a sequence gave its room back and was worked out again")
    arrivals_per_s: float | None = told("requests that come; none where each comes as another ends", "1/s")
    served_per_s: float = told("requests that are finished", "1/s")
    is_growing: bool = told("requests come faster than they are served, so that ever more wait")
    output_usd_per_million: float | None = told("of a million output tokens, while all devices are paid for", "USD")
    handover_s: float | None = told("that a prompt's cache takes from a pool to the other; null of one pool", "s")
    handover_j: float | None = told("of a prompt's cache alike", "J")


def read_load(question: Question) -> Load | None:
    """Return the load that is asked about; None where batches alone are. UsageError for a file that is wrong."""
    from joulemap.domain.load import Load

    serving = question.serving
    if not serving.has_load:
        return None
    from joulemap.serving.request import read_requests

    return Load(
        rate_per_s=serving.rate_per_s,
        in_flight=serving.in_flight,
        trace=read_requests(Path(serving.requests)) if serving.requests else None,
        requests=REQUESTS,
        prompt_tokens=serving.prompt,
        output_tokens=serving.output,
    )


def serve_load(question: Question, cases: Iterable[Case], usd_per_s: Mapping[str, float]) -> list[LoadRow]:
    """Return what each hardware, with its devices and precision, gives under the load; none without one.

    `usd_per_s` is what each label costs. UnsupportedError where none has room for any request.
    """
    load = read_load(question)
    if load is None:
        return []
    from joulemap.serving.serve import serve

    distinct = {(case.run.target, *case.run.point.values(), case.devices): case for case in cases if case.most}
    rows, reasons = [], []
    for case in distinct.values():
        try:
            served = serve(case.server, load, question.draft(case.server))
            rows.append(form_load(case, served, usd_per_s.get(case.label)))
        except UnsupportedError as error:
            reasons.append(f"{case.label}: {error}")
    if not rows:
        raise UnsupportedError("; ".join(reasons))
    return rows


def form_load(case: Case, served: Served, usd_per_s: float | None) -> LoadRow:
    """Return what a hardware gave, at what its devices cost."""
    cost = None if usd_per_s is None else 1e6 * usd_per_s / served.output_tokens_per_s
    return LoadRow(
        **{
            **find_unknown(LoadRow),
            **take(LoadRow, case, served),
            "output_usd_per_million": cost,
        },
        device_count=case.world,
        first_token_s=served.first_token.p50,
        first_token_p90_s=served.first_token.p90,
        first_token_p99_s=served.first_token.p99,
        between_s=served.between_tokens.p50,
        between_p90_s=served.between_tokens.p90,
        between_p99_s=served.between_tokens.p99,
        request_s=served.latency.p50,
        request_p99_s=served.latency.p99,
        output_token_j=served.energy_per_output_token_j,
        idle_fraction=served.idle_j / served.energy_j,
        request_count=served.requests,
        refused_count=served.refused,
        preemption_count=served.preemptions,
    )


def say_load(rows: Iterable[LoadRow]) -> str:
    """Return who keeps up with the load and answers first; what happens where none does."""
    all_rows = list(rows)
    kept = [row for row in all_rows if not row.is_growing]
    if not kept:
        first = max(all_rows, key=lambda row: row.served_per_s)
        return (
            f"none keeps up: {first.label} serves {show_quantity(first.served_per_s, '1/s')} of the "
            f"{show_quantity(first.arrivals_per_s, '1/s')} requests that come, and ever more wait"
        )
    quickest = min(kept, key=lambda row: row.first_token_p99_s)
    least = min(kept, key=lambda row: row.output_token_j)
    text = (
        f"{quickest.label} answers 99 of 100 requests within {show_quantity(quickest.first_token_p99_s, 's')}, then "
        f"every {show_quantity(quickest.between_p99_s, 's')} at most"
    )
    cost = show_quantity(least.output_token_j, "J")
    idle = f", {show_share(least.idle_fraction)} of it idle" if least.idle_fraction >= 0.01 else ""
    who = "with" if least is quickest else f"{least.label} needs least energy,"
    text += f"; {who} {cost} for an output token, prompts included{idle}"
    behind = [row.label for row in all_rows if row.is_growing]
    verb = "does" if len(behind) == 1 else "do"
    return text + (f"; {join_words(behind)} {verb} not keep up" if behind else "")
