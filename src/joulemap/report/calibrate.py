"""A calibration that was fitted: how far off it is, what it changed, what to know about it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from joulemap.present.cell import show, show_quantity
from joulemap.query.answer import CalibrateAnswer
from joulemap.report.format import Format
from joulemap.report.render import draw_table, render_answer, write_json

ERRORS: Final = (
    "rows", "class defaults: mean", "median", "fitted: mean", "median", "family left out: mean", "median", "worst",
    "rank",
)  # fmt: skip
FRACTIONS: Final = (
    "uncalibrated_mean_fraction", "uncalibrated_median_fraction", "fitted_mean_fraction", "fitted_median_fraction",
    "cross_validated_mean_fraction", "cross_validated_median_fraction", "cross_validated_worst_fraction",
)  # fmt: skip
COEFFICIENTS: Final = ("part", "name", "before", "after", "ratio", "meaning")

PLAIN: Final = "1"


def render_calibration(answer: CalibrateAnswer, form: Format) -> str:
    """Return the errors and the coefficients of a calibration; csv holds the errors."""
    if form is Format.CSV:
        return render_answer(answer.error, form)
    if form is Format.JSON:
        return write_json(
            {
                **attrs.asdict(answer.summary),
                "written_to": answer.place or None,
                "errors": answer.error.records(),
                "coefficients": answer.coefficient.records(),
                "warnings": answer.warnings,
                "left_out": answer.left_out,
            }
        )
    is_markdown = form is Format.MARKDOWN
    rows = answer.error.records()
    sections = [
        ("Errors", _errors([row for row in rows if row["family"] is None], _place, is_markdown)),
        ("By family", _errors([row for row in rows if row["family"] is not None], _family, is_markdown)),
        ("Coefficients", _coefficients(answer, is_markdown)),
        ("Notes", "\n".join(f"- {line}" for line in _notes(answer))),
    ]
    title = _title(answer)
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def _title(answer: CalibrateAnswer) -> str:
    one = answer.calibration
    counts = f"{one.latency_count} with latency, {one.energy_count} with energy"
    return (
        f"calibration {one.label} of {one.hardware}, fitted to {one.row_count} "
        f"measurement{'' if one.row_count == 1 else 's'} ({counts}) of {len(one.families)} "
        f"famil{'y' if len(one.families) == 1 else 'ies'}"
    )


def _place(row: dict[str, Any]) -> list[str]:
    return [row["runtime"] or "all", row["precision"] or "all", str(row["batch"] or "all")]


def _family(row: dict[str, Any]) -> list[str]:
    return [row["family"]]


def _errors(rows: list[dict[str, Any]], place: Any, is_markdown: bool) -> str:
    if not rows:
        return ""
    cells = [
        [
            row["quantity"],
            *place(row),
            str(row["measurement_count"]),
            *(show(row[name], name) for name in FRACTIONS),
            "" if row["rank_correlation"] is None else f"{row['rank_correlation']:.3f}",
        ]
        for row in rows
    ]
    places = ("runtime", "precision", "batch") if place is _place else ("family",)
    return draw_table(("quantity", *places, *ERRORS), cells, is_markdown=is_markdown)


def _coefficients(answer: CalibrateAnswer, is_markdown: bool) -> str:
    rows = [
        [
            row["part"],
            row["name"],
            _amount(row["default_value"], row["unit"]),
            _amount(row["value"], row["unit"]),
            show(row["ratio"], "ratio"),
            row["meaning"],
        ]
        for row in answer.coefficient.records()
    ]
    return draw_table(COEFFICIENTS, rows, is_markdown=is_markdown) if rows else ""


def _amount(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == PLAIN else show_quantity(value, unit)


def _notes(answer: CalibrateAnswer) -> list[str]:
    notes = []
    if len(answer.calibration.families) == 1:
        notes.append("one family: nothing can be left out, so nothing says how it does on other models")
    notes += answer.warnings
    notes += [f"left out: {line}" for line in answer.left_out]
    if answer.place:
        notes.append(f"written to {answer.place}; `--calibration none` answers without it")
    else:
        notes.append("a trial: nothing was written")
    return notes
