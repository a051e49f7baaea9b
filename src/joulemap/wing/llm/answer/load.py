"""Request-level simulation: results of a server with requests at a rate, in a closed loop, or from a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from joulemap.answer.computed import find_unknown, take, told
from joulemap.present.cell import join_names, show_quantity, show_share
from joulemap.store.run import AssumedEnergy
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J
from joulemap.wing.llm.row import ServedPhase

if TYPE_CHECKING:
    from joulemap.domain.load import Load, Served
    from joulemap.wing.llm.answer.demand import Case, Question


@frozen(kw_only=True)
class LoadRow:
    """One hardware, with its number of devices, under a request load; joules and watts are of all devices."""

    label: str = told("hardware, with xN where N devices work together, and the precision where configurations differ")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    device_count: int = told("devices that work together")
    precision: str = told("of activations; bf16/int4 where weights of products are stored at another")
    first_token_s: float = told("from a request's arrival to its first token, half of them", "s")
    first_token_p90_s: float = told("90th percentile", "s")
    first_token_p99_s: float = told("99th percentile", "s")
    between_s: float = told("between two tokens of a sequence, half of all", "s")
    between_p90_s: float = told("90th percentile", "s")
    between_p99_s: float = told("99th percentile", "s")
    request_s: float = told("from arrival to last token, half of the requests", "s")
    request_p99_s: float = told("99th percentile", "s")
    output_tokens_per_s: float = told("output tokens of all requests, without the warm-up", "1/s")
    power_w: float = told("mean, without the warm-up", "W")
    output_token_j: float = told("all energy over the output tokens: of prompts and of waiting too", "J")
    assumed_energy_fraction: float | None = told("of output_token_j: part that rests on assumed numbers")
    assumed_static_fraction: float | None = told("of output_token_j: part that is assumed static power")
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

    @property
    def assumed(self) -> AssumedEnergy | None:
        """Assumed part of the energy of an output token; None if unknown."""
        if self.assumed_energy_fraction is None or self.assumed_static_fraction is None:
            return None
        return AssumedEnergy(self.output_token_j * FJ_PER_J, self.assumed_energy_fraction, self.assumed_static_fraction)


@frozen(kw_only=True)
class StoredCase:
    """Results of stored runs for one configuration, valid under any load."""

    usd_per_s: float | None
    phases: tuple[tuple[ServedPhase, AssumedEnergy], ...]
    """Prefill and decode at each batch, with the assumed part of each run's energy."""

    def find(self, phase: str, batch: float) -> tuple[float, AssumedEnergy] | None:
        """Return joules per token and the assumed part at the nearest batch; None without such a run."""
        some = [one for one in self.phases if one[0].phase == phase]
        if not some:
            return None
        row, assumed = min(some, key=lambda one: abs(math.log(one[0].batch / batch)))
        return row.energy_per_token_j, assumed


Stored: TypeAlias = Mapping[tuple[str, int, str], StoredCase]
"""Stored results of each configuration, by `name_case`."""

NOT_STORED: Final = StoredCase(usd_per_s=None, phases=())
"""Placeholder for a configuration that serves none of the requested batches."""


def share_assumed(
    served: Served, prompts: StoredCase, answers: StoredCase, assumed_idle: float
) -> tuple[float, float] | None:
    """Return the assumed part of a load's energy, and the part that is assumed static power.

    Prompt tokens cost as in the stored run whose batch is nearest to the mean number of active sequences. The rest of
    the energy is that of decode steps. `assumed_idle` of the idle energy is assumed. Return None if a run is not
    stored.
    """
    running = max(1.0, served.latency.mean * served.served_per_s)
    prompt, answer = prompts.find("prefill", running), answers.find("decode", running)
    if prompt is None or answer is None:
        return None
    window = served.window
    idle_j = served.energy_per_output_token_j * window.idle_j / window.energy_j
    busy_j = served.energy_per_output_token_j - idle_j
    prompt_j = min(busy_j, prompt[0] * served.computed_tokens / served.output_tokens)
    parts = (
        attrs.evolve(prompt[1], energy_fj=prompt_j * FJ_PER_J),
        attrs.evolve(answer[1], energy_fj=(busy_j - prompt_j) * FJ_PER_J),
        AssumedEnergy(idle_j * FJ_PER_J, assumed_idle, assumed_idle),
    )
    whole = AssumedEnergy.add_up(parts)
    return whole.fraction, whole.static_fraction


def is_idle_assumed(case: Case) -> bool:
    """Return whether a server's idle power is an assumed number."""
    return case.server.hardware.static_power.basis == "assumed"


def read_load(question: Question) -> Load | None:
    """Return the requested load; None if only batches are asked about; UsageError for an invalid file."""
    from joulemap.domain.load import Load

    serving = question.serving
    if not serving.has_load:
        return None
    from joulemap.wing.llm.serving.request import read_requests

    return Load(
        rate_per_s=serving.rate_per_s,
        in_flight=serving.in_flight,
        trace=read_requests(Path(serving.requests)) if serving.requests else None,
        is_steady=True,
        prompt_tokens=serving.prompt,
        output_tokens=serving.output,
    )


def name_case(case: Case) -> tuple[str, int, str]:
    """Return the key of a configuration at any batch: its hardware, number of devices and precision."""
    return case.hardware, case.world, case.precision


def serve_load(question: Question, cases: Sequence[Case], stored: Stored) -> tuple[list[LoadRow], list[str]]:
    """Return the results of each configuration under the load, and the reasons for missing ones; empty without a load.

    `cases` includes refused ones.

    Raise UnsupportedError if no configuration fits any request.
    """
    load = read_load(question)
    if load is None:
        return [], []
    from joulemap.wing.llm.answer.demand import OK, UNSUPPORTED
    from joulemap.wing.llm.serving.serve import serve

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
            served = serve(case.server, load, question.draft(case.server))
            known = stored.get(name_case(case), NOT_STORED)
            assumed = share_assumed(served, known, known, float(is_idle_assumed(case)))
            row = form_load(case, served, known.usd_per_s, assumed)
            rows.append(attrs.evolve(row, label=label))
        except UnsupportedError as error:
            reasons.append(f"{label}: {error}")
    if not rows:
        raise UnsupportedError("; ".join(reasons))
    return rows, reasons


def form_load(case: Case, served: Served, usd_per_s: float | None, assumed: tuple[float, float] | None) -> LoadRow:
    """Return the row of a simulated load, with the cost of its devices; `assumed` is that of `share_assumed`."""
    cost = None if usd_per_s is None else 1e6 * usd_per_s / served.output_tokens_per_s
    return LoadRow(
        **{
            **find_unknown(LoadRow),
            **take(LoadRow, case, served),
            "output_usd_per_million": cost,
            **dict(zip(("assumed_energy_fraction", "assumed_static_fraction"), assumed or (), strict=False)),
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
        idle_fraction=served.window.idle_j / served.window.energy_j,
        request_count=served.requests,
        refused_count=served.refused,
        preemption_count=served.preemptions,
    )


def choose_loads(rows: Iterable[LoadRow]) -> tuple[LoadRow, LoadRow]:
    """Return the fastest configuration and the one with the least energy, of those that keep up with the load.

    If none keeps up, both are the one that serves the most requests.
    """
    all_rows = list(rows)
    kept = [row for row in all_rows if not row.is_growing]
    if not kept:
        most = max(all_rows, key=lambda row: row.served_per_s)
        return most, most
    return min(kept, key=lambda row: row.first_token_p99_s), min(kept, key=lambda row: row.output_token_j)


def describe_load(rows: Iterable[LoadRow]) -> str:
    """Return a sentence on the configuration that keeps up with the load and answers first, or on the overload."""
    all_rows = list(rows)
    quickest, least = choose_loads(all_rows)
    if quickest.is_growing:
        first = quickest
        return (
            f"none keeps up: {first.label} serves {show_quantity(first.served_per_s, '1/s')} of the "
            f"{show_quantity(first.arrivals_per_s, '1/s')} requests that come, and ever more wait"
        )
    text = (
        f"{quickest.label}: p99 time to first token {show_quantity(quickest.first_token_p99_s, 's')}, "
        f"p99 time per output token {show_quantity(quickest.between_p99_s, 's')}"
    )
    cost = show_quantity(least.output_token_j, "J")
    idle = f", {show_share(least.idle_fraction)} of it idle" if least.idle_fraction >= 0.01 else ""
    who = "with" if least is quickest else f"{least.label} needs least energy,"
    text += f"; {who} {cost} for an output token, prompts included{idle}"
    behind = [row.label for row in all_rows if row.is_growing]
    verb = "does" if len(behind) == 1 else "do"
    return text + (f"; {join_names(behind)} {verb} not keep up" if behind else "")
