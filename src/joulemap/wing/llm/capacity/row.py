"""Rows of served configurations: cost of their passes, their requests and their memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain import find_unknown, take
from joulemap.wing.llm.capacity.case import TOO_LARGE
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import ServedPhase, ServedRow
from joulemap.wing.llm.phase import ANSWER, PHASE_NAMES
from joulemap.wing.llm.serving.batch import Batch, BatchCost, run_batches
from joulemap.wing.llm.serving.draft import guess

if TYPE_CHECKING:
    from joulemap.wing.llm.capacity.case import Case
    from joulemap.wing.llm.capacity.question import Question


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
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.run.target, *case.run.point.values(), case.devices), []).append(case)
    by_case: dict[Case, BatchCost] = {}
    for some in groups.values():
        deployment = some[0].server
        draft = question.draft(deployment)
        asked = [
            Batch(
                sequences=case.batch,
                prompt_tokens=question.serving.prompt,
                output_tokens=question.serving.output,
                step_tokens=question.stack.step_tokens,
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
        "model_bytes": 0.0, "largest_batch": case.most, "largest_context": 0, "needed_device_count": case.needed
    }  # fmt: skip
    if room is not None:
        capacity = max(capacity, room.usable)  # a driver may report more than the nominal capacity
        cache, reserved = room.cache(question.context) * case.batch, capacity - room.usable
        held = dict(zip(held, (room.weights, cache, room.workspace, reserved), strict=True))
        rest |= {"model_bytes": room.model_bytes, "largest_context": room.tokens(case.batch)}
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
