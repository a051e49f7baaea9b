"""Physical limits of the stated hardware that no measurement of it can exceed.

    power of all devices   <= devices x highest power limit
    arithmetic             <= devices x highest peak rate
    weights of a step      <= devices x memory bandwidth x time of the step     one sequence; more read no less

A number beyond a limit was measured on other hardware, or covers more or less than the stated devices. It is not
compared with a prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain import HardwareRef, Measurement
from joulemap.physics import FLOPS_PER_MAC, NO_KEY, ROLE_CODE, Hardware, Widths, columns_of
from joulemap.physics.record.configuration import SYSTEM
from joulemap.plan import Source, known_hardware, read_known
from joulemap.wing.decoder import DecoderPass, describe_step, find_decoder
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify.show.word import make_reason

if TYPE_CHECKING:
    from joulemap.system import Reason
    from joulemap.wing.verify.file import Reading

POWER_MARGIN: Final = 1.5
"""Factor above the power limit from which a power is impossible.

Source: assumed; the ratio is at most 1.22 in the built-in energies and powers (`MOST_ABOVE_CAP` of
`catalog/measurement.py`, which refuses wrong units).
"""

MARGIN: Final = 1.2
"""Factor above a peak or a bandwidth from which a number is impossible: clocks differ by less.

Source: assumed.
"""

LEAST_BYTES: Final = 1e9
"""Minimum bytes of weights that no cache between memory and units holds. Source: assumed; the largest has 0.5 GB."""

Found = tuple[str, str, Mapping[str, float | str]]
"""Quantity, code of the reason, and values of its sentence."""


def drop_impossible(source: Source, reading: Reading) -> Reading:
    """Return a reading without the numbers that its hardware cannot reach; the reasons are in `unscored`."""
    reasons = find_impossible(source, reading.row)
    row = attrs.evolve(reading.row, **dict.fromkeys(reasons))  # type: ignore[arg-type]
    return attrs.evolve(reading, row=row, unscored={**reading.unscored, **reasons})


def find_impossible(source: Source, row: Measurement | ServingRow) -> dict[str, Reason]:
    """Return quantity -> reason for each number of a row that its hardware cannot reach.

    None for unknown hardware, or for a model that is divided between chips.
    """
    entry = known_hardware([row.hardware]).get(HardwareRef.read(row.hardware).label)
    if entry is None or (isinstance(row, ServingRow) and row.layer_split):
        return {}
    hardware = read_known([entry.digest])[entry.digest]
    if isinstance(row, ServingRow):
        count = row.device_count or 1
        beyond = _find_served(row, hardware, count)
    else:
        count, beyond = 1, _find_single(source, row, hardware)
    found = [*_find_power(row, count * max((*entry.caps_w, *entry.limits_w))), *beyond]
    shared = {"count": count, "hardware": row.hardware}
    return {name: make_reason(code, {**values, **shared}) for name, code, values in found}


def _find_power(row: Measurement | ServingRow, limit_w: float) -> Iterator[Found]:
    """Yield power, and energy at the row's own rate, above the limit of all devices."""
    if row.boundary == SYSTEM:
        return
    drawn = {"power_w": row.power_w}
    if isinstance(row, ServingRow):
        rate, each_j = row.output_tokens_per_s, row.energy_per_output_token_j
        power_w = rate * each_j if rate and each_j else None
        drawn |= {"energy_per_output_token_j": power_w, "energy_per_request_j": row.energy_per_request_j and power_w}
    else:
        drawn["energy_j"] = row.energy_j / row.latency_s if row.energy_j and row.latency_s else None
    for name, power_w in drawn.items():
        if power_w is not None and power_w > POWER_MARGIN * limit_w:
            yield name, "power_limit", {"power": power_w, "limit": limit_w}


def _find_single(source: Source, row: Measurement, hardware: Hardware) -> Iterator[Found]:
    """Yield times and rates of a single run beyond the peak rate."""
    from joulemap.ask import find_workloads

    work = find_workloads(source, [(row.model, row.batch)])[row.model, row.batch]
    if isinstance(work, str):
        return
    operations = FLOPS_PER_MAC * float(work.mac_count.sum())
    rates = {
        "latency_s": operations / row.latency_s if row.latency_s else None,
        "throughput_per_s": operations / row.batch * row.throughput_per_s if row.throughput_per_s else None,
    }
    yield from _compare(rates, hardware, 1)


def _find_served(row: ServingRow, hardware: Hardware, count: int) -> Iterator[Found]:
    """Yield times and rates of a served model beyond the peak rate or the memory bandwidth."""
    decoder = find_decoder(row.model)
    if decoder is None or decoder.is_traced or row.speculative not in ("", "none"):
        return
    columns = columns_of(describe_step(decoder, DecoderPass(), 1, NO_KEY))
    operations = FLOPS_PER_MAC * float(columns.mac_count.sum())
    rates = {
        "total_tokens_per_s": operations * row.total_tokens_per_s if row.total_tokens_per_s else None,
        "output_tokens_per_s": operations * row.output_tokens_per_s if row.output_tokens_per_s else None,
    }
    yield from _compare(rates, hardware, count)
    read = columns.access_bytes * Widths(columns, "bf16", row.weight_precision or "bf16").stored_scale
    weights = float(read[columns.access_role == ROLE_CODE["weight"]].sum())
    least_s = weights / (count * hardware.memory_bandwidth.value)
    taken_s = row.inter_token_latency_s
    if taken_s is not None and weights > LEAST_BYTES and taken_s * MARGIN < least_s:
        yield "inter_token_latency_s", "weight_read", {"taken": taken_s, "least": least_s}


def _compare(rates: dict[str, float | None], hardware: Hardware, count: int) -> Iterator[Found]:
    peak = max(one.rate.value for one in hardware.peaks.values())
    for name, rate in rates.items():
        if rate is not None and rate > MARGIN * count * peak:
            yield name, "peak_rate", {"rate": rate, "limit": count * peak}
