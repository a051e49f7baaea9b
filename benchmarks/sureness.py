"""How sure predictions are, and how often that is right: a section of docs/accuracy.md.

Intervals are judged on rows that they were made without: each board left out in turn, then each model family.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from joulemap.calibrate.doubt import Judged, Residual, leave_out, score_calls, score_coverage
from joulemap.domain.doubt import MODEL
from joulemap.domain.settings import Bounds
from joulemap.tools.doubt import read_residuals
from joulemap.workspace import Workspace

TEXT: Final = """\
## How sure, and how often right
What [doubt.md](doubt.md) says is tested here on whole models. Intervals are made again without the rows that they are
judged on: without the board, then without the model family. Those of a calibration are the ones that runs state; their
errors are of model families that the fit had not seen, while the rows judged here were in the fit. 80 % of the rows of
a part should be covered; `width` is the median half-width.
"""

PAIR_TEXT: Final = """\
### Called and right
Of each pair of hardware that were measured on the same model and batch, the faster one is called with a probability, by
intervals made without either's board where no calibration has its own. Of the pairs called about 90 %, about 90 %
should come true.
"""


PARTS: Final[Mapping[str, Callable[[Residual], str]]] = {
    "all": lambda _: "all",
    "class": lambda one: one.architecture,
    "runtime": lambda one: f"{one.architecture} {one.runtime}",
}
"""What coverage is told of: a part that is all of a part before it once."""


PAIRS: Final = """
WITH judged AS MATERIALIZED (
    SELECT unnest($runs, recursive := TRUE)
),
pair AS MATERIALIZED (
    SELECT
        a.run_id,
        b.run_id AS other_run_id,
        ln(b.predicted / a.predicted) AS ahead,
        a.measured < b.measured AS is_less
    FROM judged AS a
    JOIN judged AS b ON b.model = a.model AND b.batch = a.batch AND b.run_id < a.run_id AND b.hardware <> a.hardware
)
SELECT
    probability_above(p.ahead, difference_half_width(1e0, 0e0, d.latency_square, d.energy_square, d.joint_square)),
    p.is_less
FROM pair AS p
JOIN differences_between($runs, (SELECT list({'run_id': run_id, 'other_run_id': other_run_id}) FROM pair)) AS d
    ON d.run_id = p.run_id AND d.other_run_id = p.other_run_id
"""
"""Of each pair of hardware with the same measured model and batch: that the first takes less, and whether it did."""


def call_pairs(workspace: Workspace, judged: Sequence[Judged]) -> list[tuple[float, bool]]:
    """Return how pairs of latencies were called, by the SQL that answers call them by, and whether that was right."""
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
            "batch": one.batch,
            "predicted": one.predicted,
            "measured": one.measured,
        }
        for index, (one, width) in enumerate(judged)
    ]
    called = workspace.sql(PAIRS, {"runs": runs}, bounds=Bounds(max_rows=None, timeout_s=600.0))
    return [(call, right) if call >= 0.5 else (1.0 - call, not right) for call, right in called.cells]


def sureness_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the section: coverage of intervals by class and runtime, and how often calls were right."""
    free = [one for one in read_residuals(workspace) if one.work == MODEL]
    own = [(one, one.half_width) for one in read_residuals(workspace, is_calibrated=True) if one.half_width]
    yield TEXT
    yield "| quantity | left out | part | rows | covered | width |"
    yield f"|{'---|' * 6}"
    latencies = [one for one in free if one.quantity == "latency"]
    by_board = leave_out(latencies, lambda one: one.hardware)
    by_family = leave_out(latencies, lambda one: one.family)
    yield from _rows("latency", "board", by_board)
    yield from _rows("latency", "family", by_family, ("all", "class"))
    for quantity in ("latency", "energy"):
        yield from _rows(quantity, "family, by the calibration", [one for one in own if one[0].quantity == quantity])
    stated = [(one, one.half_width) for one in free if one.quantity == "energy" and one.half_width]
    yield from _rows("energy", "nothing", stated)
    yield ""
    yield PAIR_TEXT
    yield "| called | pairs | mean call | right |"
    yield f"|{'---|' * 4}"
    calibrated = [one for one in own if one[0].quantity == "latency"]
    for call in score_calls(call_pairs(workspace, [*by_board, *calibrated])):
        yield (
            f"| {100.0 * call.least:.0f} to {100.0 * call.most:.0f} % | {call.pair_count:,} | "
            f"{_percent(call.called_fraction)} | {_percent(call.right_fraction)} |"
        )
    yield ""


def _rows(
    quantity: str, left_out: str, judged: Sequence[Judged], parts: Collection[str] = frozenset(PARTS)
) -> Iterator[str]:
    told = set()
    for part_of in (PARTS[name] for name in PARTS if name in parts):
        for one in score_coverage(judged, part_of):
            if (figures := (one.row_count, one.covered_fraction, one.median_half_width)) not in told:
                told.add(figures)
                yield (
                    f"| {quantity} | {left_out} | {one.part} | {one.row_count:,} | {_percent(one.covered_fraction)} | "
                    f"{one.median_half_width:.3f} |"
                )


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"
