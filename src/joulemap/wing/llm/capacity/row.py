"""Rows of served configurations: stored runs of their passes, cost, requests and memory.

Each configuration has a prefill pass and a decode step as stored runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import attrs

from joulemap.domain import AssumedEnergy, find_unknown, take
from joulemap.physics import name_precision
from joulemap.plan import Plan, PlannedRun, Source, find_model
from joulemap.plan.stored_runs import opening_plans
from joulemap.store import Connection
from joulemap.system import FJ_PER_J, frozen
from joulemap.wing.decoder import ANSWER, PHASE_NAMES, PROMPT
from joulemap.wing.llm.capacity.case import TOO_LARGE, Case
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import ServedPhase, ServedRow
from joulemap.wing.llm.serving.batch import Batch, BatchCost, run_batches
from joulemap.wing.llm.serving.deployment import guess
from joulemap.wing.llm.serving.load import Served

MOST_STORED: Final = 36
"""Maximum configurations whose passes are all stored as runs; storing more takes longer than the rest of the answer."""


def _divide(question: Question, whole: Plan, cases: Sequence[Case]) -> list[Plan]:
    """Return plans of the passes of configurations; hardware with equal device counts and batches shares a plan."""
    batches: dict[tuple[str, str, int, int, tuple[str, ...]], dict[int, None]] = {}
    for case in cases:
        point = case.run.point
        pair: tuple[str, ...] = ()
        if question.chooses_precision or question.find_routing(point):
            pair = point["precision"], point["weight_precision"]
        key = case.run.hardware, case.run.power_mode, case.devices, case.server.step_tokens, pair
        batches.setdefault(key, {})[case.batch] = None
    groups: dict[tuple[int, int, tuple[int, ...], tuple[str, ...]], list[tuple[str, str]]] = {}
    for (name, mode, count, step_tokens, pair), some in batches.items():
        groups.setdefault((count, step_tokens, tuple(some), pair), []).append((name, mode))
    plans = []
    for (devices, step_tokens, sizes, pair), hardware in groups.items():
        settings = whole.settings
        if pair:
            settings = attrs.evolve(settings, precision=name_precision(pair[0]), weight_precision=pair[1])
        routing = question.find_routing({"precision": pair[0], "weight_precision": pair[1]}) if pair else ""
        passes = dict.fromkeys(
            [question.prefill_key(devices, batch, step_tokens, routing) for batch in sizes]
            + [question.decode_key(devices, batch, routing) for batch in sizes]
        )
        pairs = tuple((entry, mode) for entry, mode in whole.selection.pairs if (entry.id, mode) in hardware)
        plans.append(
            attrs.evolve(
                whole,
                settings=settings,
                models=tuple(find_model(name, settings, batch) for name, batch in passes),
                selection=attrs.evolve(whole.selection, pairs=pairs),
            )
        )
    return plans


@contextmanager
def opening_passes(
    source: Source, groups: Sequence[tuple[Question, Plan, Sequence[Case]]]
) -> Iterator[tuple[Connection, tuple[list[int], list[int]]]]:
    """Store the passes of configurations; yield a connection, and the ids of their prefill runs and decode runs.

    Each group has the question and the plan of its configurations. Ids are in the order of the configurations.
    """
    plans = [plan for question, whole, cases in groups for plan in _divide(question, whole, cases)]
    with opening_plans(source, plans, needs_catalogue=True, has_ledger=False) as (connection, held):
        ids = {_key(model.request.model, model.request.batch or 1, run): run_id for model, run, run_id in held}
        prefills, decodes = [], []
        for question, one in ((question, one) for question, _, cases in groups for one in cases):
            sizes, routing = (one.devices, one.batch), question.find_routing(one.run.point)
            prefills.append(ids[_key(*question.prefill_key(*sizes, one.server.step_tokens, routing), one.run)])
            decodes.append(ids[_key(*question.decode_key(*sizes, routing), one.run)])
        yield connection, (prefills, decodes)


def _key(name: str, batch: int, run: PlannedRun) -> tuple[str, int, object, tuple[str, ...]]:
    """Return the name and batch of a pass, everything its hardware depends on, and the other dimensions of its run."""
    return name, batch, run.plain, tuple(run.point.values())


def _group(cases: Iterable[Case]) -> Iterable[list[Case]]:
    """Return the configurations of each chip, precision and number of devices."""
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.run.target, *case.run.point.values(), case.devices), []).append(case)
    return groups.values()


def choose_stored(cases: Sequence[Case]) -> list[Case]:
    """Return, in the same order, the configuration whose stored runs represent each configuration.

    Up to `MOST_STORED` configurations represent themselves. Of more, only the smallest and the largest batch of a chip
    are stored, and the nearer one represents the others.
    """
    if len(cases) <= MOST_STORED:
        return list(cases)
    stored: dict[Case, Case] = {}
    for some in _group(cases):
        first, last = some[0], some[-1]
        middle = math.sqrt(first.batch * last.batch)
        stored |= {case: first if case.batch < middle else last for case in some}
    return [stored[case] for case in cases]


def name_case(case: Case) -> tuple[str, int, str]:
    """Return the key of a configuration at any batch: its hardware, number of devices and precision."""
    return case.hardware, case.world, case.precision


@frozen(kw_only=True)
class StoredCase:
    """Results of stored runs for one configuration, valid under any load."""

    usd_per_s: float | None
    phases: tuple[tuple[ServedPhase, AssumedEnergy], ...]
    """Prefill and decode at each batch, with the assumed part of each run's energy."""

    def find(self, phase: str, batch: float) -> tuple[float, AssumedEnergy] | None:
        """Return (joules per token, assumed part of this energy) at the nearest batch size; None without such a run."""
        some = [one for one in self.phases if one[0].phase == phase]
        if not some:
            return None
        row, assumed = min(some, key=lambda one: abs(math.log(one[0].batch / batch)))
        return row.energy_per_token_j, assumed


Stored: TypeAlias = Mapping[tuple[str, int, str], StoredCase]
"""Key of a configuration, from `name_case` -> its stored results."""

NOT_STORED: Final = StoredCase(usd_per_s=None, phases=())
"""Placeholder for a configuration that serves none of the requested batches."""


def share_assumed(
    served: Served, prompts: StoredCase, answers: StoredCase, assumed_idle: float
) -> tuple[float, float] | None:
    """Return the share of a load's energy that is assumed, and the share that is assumed static power.

    The energy of a prompt token comes from the stored run whose batch is nearest to the mean number of active
    sequences. All other busy energy counts as energy of decode steps. `assumed_idle` is the assumed share of the idle
    energy. Return None if a run is not stored.
    """
    running = max(1.0, served.latency.mean * served.served_per_s)
    prompt, answer = prompts.find(PROMPT.name, running), answers.find(ANSWER.name, running)
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


def read_stored(served: Sequence[Case], tables: Mapping[str, Any]) -> Stored:
    """Return the results of stored runs for each configuration, by `name_case`; `tables` has the answer's tables."""
    phases: dict[tuple[str, int, str], list[ServedPhase]] = {}
    for row in tables["phases"]:
        phases.setdefault(name_case(served[row.place - 1]), []).append(row)
    assumed: Mapping[int, AssumedEnergy] = tables["scope"].assumed
    known = {}
    for name, rows in phases.items():
        paid = (
            one.usd_per_million * one.tokens_per_s / 1e6
            for one in rows
            if one.phase == ANSWER.name and one.usd_per_million is not None
        )
        known[name] = StoredCase(
            usd_per_s=next(paid, None),
            phases=tuple((row, assumed[row.run_id]) for row in rows if row.run_id in assumed),
        )
    return known


def enclose_seller(price: str) -> str:
    """Return a price with its seller and date in brackets, such as `110 USD (NVIDIA, list price, 2024)`."""
    amount, _, seller = price.partition(", ")
    return f"{amount} ({seller})" if seller else amount


PASS_TOO_LARGE: Final = "has too little memory for one pass of its run"
"""Reason of a configuration whose weights and cache fit, but whose stored pass was refused."""

OF_PHASES: Final = {
    "latency_half_width": ("first_token_half_width", "between_half_width"),
    "energy_per_token_j": ("prompt_token_j", "output_token_j"),
    "energy_half_width": ("prompt_token_half_width", "output_token_half_width"),
    "device_power_w": ("prefill_device_w", "decode_device_w"),
    "bound": ("prefill_bound", "decode_bound"),
    "bound_fraction": ("prefill_bound_fraction", "decode_bound_fraction"),
    "usd_per_million": ("prompt_usd_per_million", "output_usd_per_million"),
    "gco2_per_million": ("prompt_gco2_per_million", "output_gco2_per_million"),
    "run_id": ("prefill_run_id", "decode_run_id"),
}
"""Column of a phase -> prefill and decode columns of a served configuration."""


def serve(question: Question, cases: Sequence[Case]) -> dict[Case, BatchCost]:
    """Return the cost of a batch on each configuration; all passes of a chip are evaluated at once."""
    by_case: dict[Case, BatchCost] = {}
    for some in _group(cases):
        deployment = some[0].server
        draft = question.draft(deployment)
        asked = [
            Batch(
                sequences=case.batch,
                prompt_tokens=question.serving.prompt,
                output_tokens=question.serving.output,
                step_tokens=deployment.step_tokens,
                accepted_tokens=draft.accepted_tokens,
            )
            for case in some
        ]
        by_case |= zip(some, run_batches(guess(deployment, draft), asked), strict=True)
    return by_case


def form_rows(
    question: Question, cases: Sequence[Case], costs: Mapping[Case, BatchCost], phases: Iterable[ServedPhase]
) -> list[ServedRow]:
    """Return a row for each configuration; `phases` are those of the served ones, in their order."""
    served = [case for case in cases if case in costs]
    of_case: dict[Case, dict[str, ServedPhase]] = {}
    for row in phases:
        of_case.setdefault(served[row.place - 1], {})[row.phase] = row
    rows = []
    for case in cases:
        phase_rows, cost = of_case.get(case, {}), costs.get(case)
        if cost is not None and ANSWER.name not in phase_rows:
            refused = attrs.evolve(case, status=TOO_LARGE, reason=PASS_TOO_LARGE)
            rows.append(_form(question, refused, None, {}))
        else:
            rows.append(_form(question, case, cost, phase_rows))
    return rows


def _form(question: Question, case: Case, cost: BatchCost | None, phases: Mapping[str, ServedPhase]) -> ServedRow:
    fields = {
        **find_unknown(ServedRow),
        "price_text": "",
        **take(ServedRow, case),
        **_measure(question, case),
        **_spend(phases),
    }
    if cost is not None:
        fields |= take(ServedRow, cost) | _rate(question, case, cost)
        host = SlowHost.of(case.server)
        fields["between_half_width"] = host.widen(fields["between_half_width"], cost.between_s)
    is_available = ANSWER.name in phases and phases[ANSWER.name].is_available
    return ServedRow(**fields, device_count=case.world, is_available=is_available)


def _measure(question: Question, case: Case) -> dict[str, Any]:
    """Return the memory use of one device of a configuration; empty if unknown."""
    room, capacity = case.room, case.target.memory_capacity.value
    held = dict.fromkeys(("weight_bytes", "cache_bytes", "activation_bytes", "reserved_bytes"), 0.0)
    rest: dict[str, Any] = {
        "model_bytes": 0.0, "largest_batch": case.most, "largest_context": 0, "needed_device_count": case.needed,
        "setting": "",
    }  # fmt: skip
    if room is not None:
        capacity = max(capacity, room.usable)  # a driver may report more than the nominal capacity
        cache, reserved = room.cache(question.context) * case.batch, capacity - room.usable
        held = dict(zip(held, (room.weights, cache, room.workspace, reserved), strict=True))
        rest |= {"model_bytes": room.model_bytes, "largest_context": room.tokens(case.batch)}
        rest["setting"] = room.setting
    return {**held, **rest, "capacity_bytes": capacity, "memory_fraction": sum(held.values()) / capacity}


def _rate(question: Question, case: Case, cost: BatchCost) -> dict[str, float]:
    """Return the rates and the energy that follow from the times of a request."""
    rate = case.batch * question.serving.output / cost.request_s
    return {
        "user_tokens_per_s": 1.0 / cost.between_s,
        "tokens_per_s": rate,
        "device_tokens_per_s": rate / case.world,
        "request_j": cost.joules / case.batch,
    }


def _spend(phases: Mapping[str, ServedPhase]) -> dict[str, Any]:
    """Return the cost per token of each phase, its bottleneck, and its uncertainty."""
    fields: dict[str, Any] = {"prefill_bound": "", "decode_bound": "", "way": ""}
    for index, phase in enumerate(PHASE_NAMES):
        if phase in phases:
            fields |= {names[index]: getattr(phases[phase], column) for column, names in OF_PHASES.items()}
    if decode := phases.get(ANSWER.name):
        fields |= {"way": decode.way or "", "output_usd_half_width": decode.usd_half_width}
        fields |= {"price_text": decode.price_text or decode.unlike_price_text, "label": decode.label}
    return fields
