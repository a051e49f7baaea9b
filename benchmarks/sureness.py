"""Coverage of intervals and calibration of pairwise probabilities: a section of docs/accuracy.md.

Intervals are judged on held-out rows: each board held out in turn, then each model family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

import attrs
import numpy as np

from joulemap.calibrate.error_fit import ALIKE, Key, Residual
from joulemap.catalog.error_scale import load_compilers
from joulemap.physics.interval.covariance import compare_pairs, split_errors
from joulemap.physics.interval.error_scale import MODEL, ErrorScale
from joulemap.physics.interval.probability import Powers, probability_above
from joulemap.physics.interval.scale import Subject, find_scale
from joulemap.system.record import frozen
from joulemap.workspace import Workspace
from tools.error_fit import fit_scales
from tools.interval import read_residuals

TEXT: Final = """\
## How often are the intervals right?
The table shows how often a measured whole model was inside its 80 % [interval](doubt.md), with its board or model
family held out. A calibration was also fitted to the rows of its chip, so its coverage is optimistic. Energies of a
held-out board are predicted without its own measurements. Half-widths refer to ln(measured / predicted). Parts with
fewer than 10 rows are left out.
"""

FEW: Final = 10
"""Minimum rows of a part that the table shows."""

PAIR_TEXT: Final = """\
### Confidence and correctness
Both boards of a pair are held out, though a calibrated board keeps its own interval. About 90 % of the pairs with 90 %
[confidence](glossary.md#statistics-and-evidence) should name the faster chip.
"""


CALIBRATED: Final = "family, calibrated"
"""Held-out part of the intervals of a calibration: each model family, but not the board."""

PARTS: Final[Mapping[str, Callable[[Residual], str]]] = {
    "all": lambda _: "all",
    "class": lambda one: one.architecture,
    "runtime": lambda one: f"{one.architecture} {one.runtime}",
}
"""Name -> group of a row; groups with the figures of an earlier one are omitted."""


Judged = tuple[Residual, float]
"""(Error, half-width of its predicted interval)."""


@frozen(kw_only=True)
class Coverage:
    """Share of measurements within their 80 % interval."""

    part: str
    row_count: int
    covered_fraction: float
    median_half_width: float


@frozen(kw_only=True)
class Reliability:
    """Share of pairs whose predicted faster chip is the faster one, for one range of predicted probabilities."""

    least: float
    most: float
    """Bounds of the predicted probabilities."""
    pair_count: int
    called_fraction: float
    """Mean predicted probability of being right."""
    right_fraction: float


CALLS: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.95, 0.99, 1.0)
"""Bounds of the ranges of probabilities."""


def score_coverage(judged: Iterable[Judged], part_of: Callable[[Residual], str]) -> tuple[Coverage, ...]:
    """Return the share of measurements within their intervals, by group."""
    parts: dict[str, list[Judged]] = defaultdict(list)
    for residual, width in judged:
        parts[part_of(residual)].append((residual, width))
    return tuple(
        Coverage(
            part=part,
            row_count=len(rows),
            covered_fraction=float(np.mean([abs(residual.error) <= width for residual, width in rows])),
            median_half_width=float(np.median([width for _, width in rows])),
        )
        for part, rows in sorted(parts.items())
    )


def score_calls(calls: Sequence[tuple[float, bool]]) -> tuple[Reliability, ...]:
    """Return the reliability of calls (probability, True if right) in each range of `CALLS` with at least one call."""
    found = []
    for least, most in pairwise(CALLS):
        part = [one for one in calls if least <= one[0] < most or one[0] == most == CALLS[-1]]
        if part:
            found.append(
                Reliability(
                    least=least,
                    most=most,
                    pair_count=len(part),
                    called_fraction=float(np.mean([called for called, _ in part])),
                    right_fraction=float(np.mean([is_right for _, is_right in part])),
                )
            )
    return tuple(found)


def leave_out(residuals: Sequence[Residual], part_of: Callable[[Residual], object]) -> list[Judged]:
    """Return each error with its half-width from the other parts; errors without a matching scale are omitted."""
    parts: dict[object, list[Residual]] = defaultdict(list)
    for one in residuals:
        parts[part_of(one)].append(one)
    found = []
    for name, rows in parts.items():
        scales = fit_scales([one for one in residuals if part_of(one) != name], load_compilers())
        kept: dict[Key, ErrorScale | None] = {}
        for one in rows:
            key = one.key(len(ALIKE) - 1)
            if key not in kept:
                like: dict[str, Any] = {field.name: getattr(one, field.name, None) for field in attrs.fields(Subject)}
                kept[key] = find_scale(scales, one.quantity, Subject(**like))
            if (scale := kept[key]) is not None:
                found.append((one, scale.half_width))
    return found


def call_pairs(workspace: Workspace, judged: Sequence[Judged]) -> list[tuple[float, bool]]:
    """Return (probability of the predicted faster chip, True if it was faster) for each pair, as in answers.

    A pair is two chips with the same measured model and batch.
    """
    runs = [
        {
            "run_id": index,
            "latency_half_width": width,
            "energy_half_width": 0.0,
            "latency_own_half_width": 0.0,
            "energy_own_half_width": 0.0,
            "architecture": one.architecture,
            "hardware": one.hardware,
            "model": one.model,
            "configuration": f"{one.batch} {one.precision} {one.runtime}",
            "own": str(index),
        }
        for index, (one, width) in enumerate(judged)
    ]
    shares = workspace.sql("SELECT quantity, factor, share FROM internal.error_share")
    errors = split_errors(runs, {(quantity, factor): share for quantity, factor, share in shares})
    alike: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, (one, _) in enumerate(judged):
        alike[one.model, one.batch].append(index)
    pairs = [
        (second, first)
        for places in alike.values()
        for first, second in combinations(places, 2)
        if judged[first][0].hardware != judged[second][0].hardware
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    predicted, measured = (
        np.array([getattr(one, name) for one, _ in judged], dtype=float) for name in ("predicted", "measured")
    )
    widths = compare_pairs(errors, first, second).half_width([Powers(1.0, 0.0)])
    called = probability_above(np.log(predicted[second] / predicted[first]), widths)
    is_less = measured[first] < measured[second]
    return [
        (call, right) if call >= 0.5 else (1.0 - call, not right)
        for call, right in zip(called.tolist(), is_less.tolist(), strict=True)
    ]


def sureness_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the section: coverage of intervals by class and runtime, and the share of right calls."""
    from energy import judge_energies  # in this folder, which is not on the path of tests

    free = [one for one in read_residuals(workspace) if one.work == MODEL]
    own = [(one, one.half_width) for one in read_residuals(workspace, is_calibrated=True) if one.half_width]
    yield TEXT
    yield "| quantity | held out | part | rows | % covered | median half-width |"
    yield f"|{'---|' * 6}"
    latencies = [one for one in free if one.quantity == "latency"]
    by_board = leave_out(latencies, lambda one: one.hardware)
    by_family = leave_out(latencies, lambda one: one.family)
    yield from _rows("latency", "board", by_board)
    yield from _rows("latency", "family", by_family, ("all",))
    timed = [one for one in own if one[0].quantity == "latency"]
    yield from _rows("latency", CALIBRATED, timed, ("all",))
    yield from _energy_rows(judge_energies(workspace))
    yield ""
    yield PAIR_TEXT
    yield "| confidence, % | pairs | mean confidence, % | correct, % |"
    yield f"|{'---|' * 4}"
    for call in score_calls(call_pairs(workspace, [*by_board, *timed])):
        yield (
            f"| {100.0 * call.least:.0f} to {100.0 * call.most:.0f} | {call.pair_count:,} | "
            f"{_per_cent(call.called_fraction)} | {_per_cent(call.right_fraction)} |"
        )
    yield ""


def _energy_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the rows of coverage of energies and powers."""
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        left_out = CALIBRATED if row["is_calibrated"] else "source" if row["subject"] == "served" else "board"
        parts[row["quantity"], left_out].append(row)
    for (quantity, left_out), some in sorted(parts.items()):
        if len(some) >= FEW:
            covered = float(np.mean([row["low"] <= row["measured"] <= row["high"] for row in some]))
            width = float(np.median([row["half_width"] for row in some]))
            yield f"| {quantity} | {left_out} | all | {len(some):,} | {_per_cent(covered)} | {width:.3f} |"


def _rows(
    quantity: str, left_out: str, judged: Sequence[Judged], parts: Collection[str] = frozenset(PARTS)
) -> Iterator[str]:
    told = set()
    for part_of in (PARTS[name] for name in PARTS if name in parts):
        for one in score_coverage(judged, part_of):
            figures = one.row_count, one.covered_fraction, one.median_half_width
            if figures not in told and one.row_count >= FEW:
                told.add(figures)
                yield (
                    f"| {quantity} | {left_out} | {one.part} | {one.row_count:,} | {_per_cent(one.covered_fraction)} | "
                    f"{one.median_half_width:.3f} |"
                )


def _per_cent(value: float) -> str:
    return f"{100.0 * value:.1f}"
