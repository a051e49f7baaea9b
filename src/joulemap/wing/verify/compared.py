"""Measured numbers next to their predictions, with the reason of each that is not scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask import Quantity
from joulemap.domain import SCOPE, Measurement
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify.forecast import Forecast, measured_of
from joulemap.wing.verify.generated.row import CauseRow, VerifiedRow
from joulemap.wing.verify.show.word import NOUN, REQUEST, REQUESTS, SERVED_RUN, SINGLE_RUN, WIDE, make_reason

if TYPE_CHECKING:
    from joulemap.system import Reason
    from joulemap.wing.verify.file import Reading

UNIT: Final[Mapping[str, str]] = {
    "latency_s": "s",
    "throughput_per_s": "1/s",
    "energy_j": "J",
    "power_w": "W",
    "peak_memory_bytes": "B",
    "time_to_first_token_s": "s",
    "inter_token_latency_s": "s",
    "request_latency_s": "s",
    "output_tokens_per_s": "1/s",
    "total_tokens_per_s": "1/s",
    "energy_per_output_token_j": "J",
    "energy_per_request_j": "J",
}
"""Measured quantity -> its unit."""


def quantify(row: VerifiedRow | CauseRow) -> tuple[Quantity | None, Quantity | None]:
    """Return the measured and the predicted value of a row, the latter with its interval; None for a missing one."""
    unit = UNIT[row.quantity]
    measured = None if row.measured is None else Quantity(row.measured, unit)
    if row.predicted is None:
        return measured, None
    return measured, Quantity(row.predicted, unit, math.log(row.high / row.predicted) if row.high else None)


def list_rows(
    readings: Sequence[Reading], forecasts: Sequence[Forecast], after: Sequence[Forecast]
) -> tuple[list[VerifiedRow], dict[int, Reason]]:
    """Return a row per measured quantity, and the reason of each row without a score, by its number from 1."""
    rows: list[VerifiedRow] = []
    reasons: dict[int, Reason] = {}
    for index, (one, predicted) in enumerate(zip(readings, forecasts, strict=True)):
        for name, value in {**measured_of(one.row), **dict.fromkeys(one.unscored)}.items():
            figure, moved = predicted.figures.get(name), after[index].figures.get(name) if after else None
            reason = one.unscored.get(name)
            if reason is None and figure is None:
                reason = predicted.refusal or make_reason("scope", {"quantity": NOUN[name]})
            rows.append(
                VerifiedRow(
                    file=str(one.file),
                    format=one.form.name,
                    case_index=index + 1,
                    model=one.row.model,
                    hardware=one.row.hardware,
                    configuration=_name_configuration(one.row),
                    quantity=name,
                    measured=value,
                    predicted=figure.value if figure else None,
                    low=figure.low if figure else None,
                    high=figure.high if figure else None,
                    ratio=value / figure.value if figure and value is not None else None,
                    is_inside=figure.holds(value) if figure and value is not None else None,
                    calibrated=moved.value if moved else None,
                    reason=reason.text if reason is not None else "",
                )
            )
            if reason is not None:
                reasons[len(rows)] = reason
    return rows, reasons


def _name_configuration(row: Measurement | ServingRow) -> str:
    if not isinstance(row, ServingRow):
        return SINGLE_RUN(row)
    return SERVED_RUN(
        row,
        devices=row.device_count if (row.device_count or 1) > 1 else None,
        others=" + ".join(row.other_chips) or None,
        split=row.layer_split or None,
        weights=row.weight_precision or WIDE,
        cache=row.cache_precision or None,
        scope=SCOPE[row.scope].label,
        prompt=round(row.prompt_tokens or 0),
        output=round(row.output_tokens or 0),
        batch=f"{row.batch:.0f}" if row.batch >= 100.0 else f"{row.batch:.3g}",
        requests=REQUEST if row.batch == 1.0 else REQUESTS,
    )
