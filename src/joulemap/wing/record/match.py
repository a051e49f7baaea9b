"""Recorded prediction of a measured configuration, or the reason why the record has none.

A result is compared with a row of the same chip at its default power mode, model, precision, runtime or engine,
devices, lengths and batch. Lengths and requests in flight may differ by `TOLERANCE`, because files state means. Between
two recorded batches, times and energies of a batch follow a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from joulemap.bundle import load_chips
from joulemap.domain import DEFAULT_MODE, HardwareRef, Measurement
from joulemap.physics import BOARD, DEFAULT
from joulemap.physics.record.product import choose_setting
from joulemap.system import JoulemapError
from joulemap.wing.llm.serve import LOCALSCORE, ServingRow, find_deployment, find_shipped
from joulemap.wing.record.row import BATCH, LOCAL, Predicted

TOLERANCE: Final = 0.02
"""Relative difference of lengths and of requests in flight up to which they count as equal. A time differs by less."""

BETWEEN: Final = 0.1
"""Half-width of the logarithm that the line between two batches adds to an interval.

Source: `benchmarks/record_line.py`: the line is 1.5 to 4.9 % from the prediction in the median, and for nine in ten
cells up to 7 % (whole models) and 19 % (servers).
"""

MOST_WAIT: Final = 2.0
"""Ratio of times to first token above which the line between them says nothing: requests wait in a queue."""

HARDWARE, MODEL, SCOPE, ENGINE, RUNTIME, DEVICES, PRECISION, LENGTHS, BATCHES = (
    "chip", "model on this chip", "part of serving", "engine", "runtime", "devices", "precision",
    "prompt and output tokens", "batch",
)  # fmt: skip
"""Reasons why a record has no row: the first property in which every row differs."""

MODE: Final = "power mode"
SPECULATIVE: Final = "speculative decoding"
PARALLEL: Final = "division among devices"
QUANTITY: Final = "quantity that no record has"
BOUNDARY: Final = "boundary of energy"
TOGETHER: Final = "requests that start together"
STATISTIC: Final = "median of times between tokens"
"""Reasons why a configuration or a quantity is not compared with a row."""

Key = tuple[object, ...]
Value = tuple[float, float | None]
"""Predicted number, and the factor of its interval."""


class RecordIndex:
    """Rows of one record by their configuration."""

    def __init__(self, rows: Iterable[Predicted]) -> None:
        self._known: set[Key] = set()
        self._rows: dict[Key, list[Predicted]] = {}
        for row in rows:
            key = tuple(value for _, value in _list_properties(row))
            self._known.update(key[:size] for size in range(1, len(key) + 1))
            self._rows.setdefault(key, []).append(row)

    def find(self, row: Measurement | ServingRow) -> Predicted | str:
        """Return the recorded row of a measured configuration, or the reason for none."""
        reason, asked = describe(row)
        if reason:
            return reason
        key: Key = ()
        for name, value in asked:
            key = (*key, value)
            if key not in self._known:
                return name
        return self._choose(row, self._rows[key])

    def _choose(self, row: Measurement | ServingRow, rows: list[Predicted]) -> Predicted | str:
        """Return the row with the lengths and batch of a measured one, or the reason for none."""
        if isinstance(row, ServingRow) and row.prompt_kind != LOCALSCORE:
            rows = [
                one
                for one in rows
                if _is_near(row.prompt_tokens, one.prompt_tokens) and _is_near(row.output_tokens, one.output_tokens)
            ]
        if not rows:
            return LENGTHS
        batch = float(row.batch)
        if (found := next((one for one in rows if _is_near(batch, one.batch)), None)) is not None:
            return found
        below = [one for one in rows if one.batch < batch]
        above = [one for one in rows if one.batch > batch]
        if not (below and above):
            return BATCHES
        ends = max(below, key=lambda one: one.batch), min(above, key=lambda one: one.batch)
        return _draw_line(*ends, batch)


def _draw_line(low: Predicted, high: Predicted, batch: float) -> Predicted:
    """Return the row of a batch between those of two rows that differ in nothing else."""
    share = (batch - low.batch) / (high.batch - low.batch)

    def line(first: float | None, last: float | None) -> float | None:
        return None if first is None or last is None else first + share * (last - first)

    def line_each(first: float | None, last: float | None) -> float | None:
        total = line(first and first * low.batch, last and last * high.batch)
        return None if total is None else total / batch

    def widen(first: float | None, last: float | None) -> float | None:
        return None if first is None or last is None else math.exp(math.hypot(math.log(max(first, last)), BETWEEN))

    waits = (high.ttft_s or 0.0) > MOST_WAIT * (low.ttft_s or 0.0)
    return low._replace(
        batch=round(batch),
        latency_factor=widen(low.latency_factor, high.latency_factor),
        ttft_factor=widen(low.ttft_factor, high.ttft_factor),
        tpot_factor=widen(low.tpot_factor, high.tpot_factor),
        energy_factor=widen(low.energy_factor, high.energy_factor),
        latency_s=line(low.latency_s, high.latency_s),
        interval_s=line(low.interval_s or low.latency_s, high.interval_s or high.latency_s),
        ttft_s=None if waits else line(low.ttft_s, high.ttft_s),
        tpot_s=line(low.tpot_s, high.tpot_s),
        inference_j=line_each(low.inference_j, high.inference_j),
        token_j=line_each(low.token_j, high.token_j),
    )


def _is_near(measured: float | None, recorded: int | None) -> bool:
    if measured is None or recorded is None:
        return not measured and not recorded
    return abs(measured - recorded) <= TOLERANCE * recorded


def _list_properties(row: Predicted) -> list[tuple[str, object]]:
    """Return name and value of the properties that a measured configuration must share, lengths and batch aside."""
    weights = row.weight_precision or row.precision
    if row.scope == BATCH:
        return [(HARDWARE, row.hardware), (MODEL, (BATCH, row.model)), (RUNTIME, row.runtime), (PRECISION, weights)]
    return [
        (HARDWARE, row.hardware),
        (MODEL, ("", row.model)),
        (SCOPE, row.scope),
        (ENGINE, row.engine),
        (DEVICES, row.devices),
        (PRECISION, (row.precision, weights)),
    ]


def describe(row: Measurement | ServingRow) -> tuple[str, list[tuple[str, object]]]:
    """Return the reason why no record can have a measured configuration, and otherwise its properties."""
    ref = HardwareRef.read(row.hardware)
    chips = load_chips()
    if ref.label not in chips.ids:
        return HARDWARE, []
    if (ref.mode or DEFAULT_MODE) != DEFAULT_MODE or ref.label != row.hardware:
        return MODE, []
    if not isinstance(row, ServingRow):
        if row.matmul_precision != choose_setting(DEFAULT, row.precision):
            return PRECISION, []
        whole: list[tuple[str, object]] = [
            (HARDWARE, ref.label),
            (MODEL, (BATCH, row.model)),
            (RUNTIME, row.runtime),
            (PRECISION, row.precision),
        ]
        return "", whole
    if row.speculative not in ("", "none"):
        return SPECULATIVE, []
    if any((count or 1) > 1 for count in (row.pipeline_parallel, row.expert_parallel, row.data_parallel)):
        return PARALLEL, []
    if row.cached_tokens or row.context_tokens:
        return LENGTHS, []
    try:
        deployment = find_deployment(attrs.evolve(row, file_bytes=None), chips.find(ref.label))
    except (JoulemapError, KeyError):
        return PRECISION, []
    return "", [
        (HARDWARE, ref.label),
        (MODEL, ("", find_shipped(row.model) or row.model)),
        (SCOPE, LOCAL if row.prompt_kind == LOCALSCORE else row.scope),
        (ENGINE, deployment.stack.name),
        (DEVICES, deployment.world),
        (PRECISION, (deployment.precision, deployment.weight_precision or deployment.precision)),
    ]


def list_values(recorded: Predicted, row: Measurement | ServingRow) -> Mapping[str, Value | str]:
    """Return the recorded number of each quantity that a measured row may have, or the reason for none.

    Rates and sums follow from recorded numbers: a server with n requests in flight makes n x output tokens in the
    latency of a request (Little's law).
    """
    if not isinstance(row, ServingRow):
        return dict(_list_single(recorded, row))
    return dict(_list_served(recorded, row))


def _list_single(one: Predicted, row: Measurement) -> Iterator[tuple[str, Value | str]]:
    if one.latency_s is not None:
        yield "latency_s", (one.latency_s, one.latency_factor)
        yield "throughput_per_s", (one.batch / (one.interval_s or one.latency_s), one.latency_factor)
    if row.boundary not in ("", BOARD) or row.idle_power_w is not None:
        yield "energy_j", BOUNDARY
    elif one.inference_j is not None:
        yield "energy_j", (one.inference_j * one.batch, one.energy_factor)


def _list_served(one: Predicted, row: ServingRow) -> Iterator[tuple[str, Value | str]]:
    prompt, output, count = float(one.prompt_tokens or 0), float(one.output_tokens or 0), float(one.batch)
    starts_together = bool(row.burst_fraction)
    if one.ttft_s is not None:
        first = (one.ttft_s, one.ttft_factor)
        yield "time_to_first_token_s", TOGETHER if starts_together or row.stays_together else first
        if not output and prompt:
            yield "total_tokens_per_s", (count * prompt / one.ttft_s, one.ttft_factor)
    if one.tpot_s is not None:
        yield "inter_token_latency_s", STATISTIC if row.statistic == "median" else (one.tpot_s, one.tpot_factor)
    if one.latency_s is not None:
        yield "request_latency_s", TOGETHER if starts_together else (one.latency_s, one.latency_factor)
        yield "output_tokens_per_s", (count * output / one.latency_s, one.latency_factor)
        yield "total_tokens_per_s", (count * (prompt + output) / one.latency_s, one.latency_factor)
    elif one.tpot_s is not None:
        for name in ("output_tokens_per_s", "total_tokens_per_s"):
            yield name, (count / one.tpot_s, one.tpot_factor)
    if row.boundary != BOARD or row.idle_power_w is not None:
        yield "energy_per_output_token_j", BOUNDARY
        yield "energy_per_request_j", BOUNDARY
    elif one.token_j is not None:
        yield "energy_per_output_token_j", (one.token_j, one.energy_factor)
        if one.latency_s is not None:
            yield "energy_per_request_j", (one.token_j * output, one.energy_factor)
    elif one.inference_j is not None:
        yield "energy_per_request_j", (one.inference_j, one.energy_factor)
