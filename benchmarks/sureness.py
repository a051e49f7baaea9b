"""How sure predictions are, and how often that is right: a section of docs/accuracy.md.

Intervals are judged on rows that they were made without: each board left out in turn, then each model family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from joulemap.calibrate.doubt import Judged, Residual, leave_out, score_coverage, score_pairs
from joulemap.catalog.doubt import load_doubt
from joulemap.domain.doubt import MODEL
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
"""What coverage is told of."""


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
    for left_out, judged in (("board", by_board), ("family", by_family)):
        yield from _rows("latency", left_out, judged)
    for quantity in ("latency", "energy"):
        yield from _rows(quantity, "family, by the calibration", [one for one in own if one[0].quantity == quantity])
    stated = [(one, one.half_width) for one in free if one.quantity == "energy" and one.half_width]
    yield from _rows("energy", "nothing", stated)
    yield ""
    yield PAIR_TEXT
    yield "| called | pairs | mean call | right |"
    yield f"|{'---|' * 4}"
    shares = [one for one in load_doubt().shares if one.quantity == "latency"]
    calibrated = [one for one in own if one[0].quantity == "latency"]
    for call in score_pairs([*by_board, *calibrated], shares):
        yield (
            f"| {100.0 * call.least:.0f} to {100.0 * call.most:.0f} % | {call.pair_count:,} | "
            f"{_percent(call.called_fraction)} | {_percent(call.right_fraction)} |"
        )
    yield ""


def _rows(quantity: str, left_out: str, judged: Sequence[Judged]) -> Iterator[str]:
    for name, part_of in PARTS.items():
        for one in score_coverage(judged, part_of):
            if name == "all" or one.row_count < len(judged):
                yield (
                    f"| {quantity} | {left_out} | {one.part} | {one.row_count:,} | {_percent(one.covered_fraction)} | "
                    f"{one.median_half_width:.3f} |"
                )


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"
