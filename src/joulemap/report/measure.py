"""A measurement beside its prediction."""

from __future__ import annotations

import attrs

from joulemap.domain.calibration import UNCALIBRATED
from joulemap.domain.timing import LARGEST_SPREAD, Timing
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, mark_projected, show, show_quantity
from joulemap.query.answer import MeasureAnswer
from joulemap.report.format import Format
from joulemap.report.note import describe_calibrations
from joulemap.report.render import draw_table, write_csv, write_json

TIMING = ("first_quartile_s", "third_quartile_s", "repetition_count", "calls_per_repetition", "window_s", "warm_up_s",
          "is_steady", "processor_s", "processor_fraction")  # fmt: skip


def render_measurement(answer: MeasureAnswer, form: Format) -> str:
    """Return what was measured, what is predicted, and how the two compare."""
    score, timing = answer.score, answer.timing
    used = ", ".join(row.calibration for row in answer.calibrations) or UNCALIBRATED
    record = {**attrs.asdict(score), **_spread(timing), "calibration": used}
    if form is Format.JSON:
        return write_json(record)
    if form is Format.CSV:
        return write_csv(list(record), [list(record.values())])
    rows = [
        _row("latency", score.measured_latency_s, score.predicted_latency_s, score.latency_ratio, "s"),
        _row("energy", score.measured_energy_j, score.predicted_energy_j, score.energy_ratio, "J"),
        _row("power", score.measured_power_w, score.predicted_power_w, score.power_ratio, "W"),
        _row(
            "peak memory",
            score.measured_peak_memory_bytes,
            score.predicted_peak_memory_bytes,
            score.memory_ratio,
            "B",
        ),
    ]
    hardware = mark_projected(score.hardware, answer.answers[0].projected)
    head = f"{score.model} on {hardware}, batch {score.batch}, {score.precision}, {score.runtime}"
    table = draw_table(
        ("per batch", "measured here", "predicted", "predicted / measured"),
        rows,
        is_markdown=form is Format.MARKDOWN,
    )
    return "\n\n".join([head, table, "\n".join(_notes(answer, hardware))])


def _spread(timing: Timing) -> dict[str, float | int | bool | None]:
    return {
        **{name: getattr(timing, name) for name in TIMING},
        "spread_fraction": timing.spread_fraction,
        "is_trusted": timing.is_trusted,
    }


def _row(name: str, measured: float | None, predicted: float | None, ratio: float | None, unit: str) -> list[str]:
    return [
        name,
        "not counted here" if measured is None else show_quantity(measured, unit),
        "" if predicted is None else show_quantity(predicted, unit),
        show(ratio, "ratio"),
    ]


def _notes(answer: MeasureAnswer, hardware: str) -> list[str]:
    score, timing = answer.score, answer.timing
    first, third = show_quantity(timing.first_quartile_s, "s"), show_quantity(timing.third_quartile_s, "s")
    notes = [
        f"- half of {timing.repetition_count} repetitions took {first} to {third}, a spread of "
        f"{show(timing.spread_fraction, 'spread_fraction')}"
    ]
    if timing.is_crowded:
        notes.append(
            f"- not to be trusted: it ran {show(timing.processor_fraction, 'processor_fraction')} of the time, "
            f"other programs the rest; it worked {show_quantity(timing.processor_s, 's')} a call"
        )
    if timing.spread_fraction > LARGEST_SPREAD:
        limit = show(LARGEST_SPREAD, "spread_fraction")
        notes.append(
            f"- not to be trusted: a spread above {limit}; measure on an idle machine, or longer with --seconds"
        )
    if score.refusal:
        notes.append(f"- no prediction: {score.refusal}")
    notes += [f"- {line}" for line in describe_calibrations(answer.calibrations)]
    notes.append(f"- {score.source}: {score.conditions}")
    if not answer.is_described:
        notes.append(
            f"- {score.hardware} is this machine as it describes itself; to correct what it cannot tell: "
            "joulemap hardware detect --output this.toml, edit it, then --hardware ./this.toml"
        )
    if hardware.startswith(PROJECTED):
        notes.append(f"- {PROJECTION_NOTE}")
    return notes
