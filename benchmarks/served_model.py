"""How far off predictions of served language models are, beside what others state: a section of docs/accuracy.md.

Figures are those of `validate.served`, `validate.pair` and `validate.refusal`; typed in is what others published of
their own models on the same sources, and what simple forms had on rows kept aside.
"""

from __future__ import annotations

import statistics
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.calibrate.serving import ServingResidual, fit_served
from joulemap.domain.doubt import Doubt
from joulemap.tools.doubt import read_served
from joulemap.workspace import Workspace

Row = Mapping[str, Any]
Table = Callable[[Sequence[str], Iterable[Sequence[object]]], Iterator[str]]

WIDTH: Final = 120
TOLD: Final = {
    "time_to_first_token_s": "first token",
    "inter_token_latency_s": "between tokens",
    "request_latency_s": "request",
    "energy_per_output_token_j": "J per output token",
    "power_w": "power",
}
"""Quantities that the page shows, and what it calls them; rates are those of the times."""

HEAD: Final = """\
## Language models as they are served
    joulemap measurements import public:serving
    joulemap validate --by source
    joulemap query run validate.pair                    of two boards that served the same, is the better one named
    joulemap query run validate.refusal                 what is not predicted, and why

Mean / median absolute relative error of each measured quantity, and the part of the rows whose 80 % interval holds
what was measured. Host times and efficiencies of engines were chosen with most of these rows in view (`seen`), so that
sources and boards that were not are further off.
"""

LEFT_OUT: Final = """\
How often 80 % intervals hold what was measured, where their widths are those of all other sources, or of all other
boards:
"""

ROOFLINE: Final = (
    ("argonne, H100", "request", 214, "40 / 34", "14 / 8"),
    ("argonne, GH200", "request", 260, "28 / 28", "8 / 6"),
    ("argonne, GH200", "J per output token", 68, "24 / 26", "10 / 8"),
    ("splitwise, H100", "between tokens", 75, "50 / 49", "43 / 41"),
    ("inferencex, NVIDIA", "between tokens", 119, "60 / 59", "16 / 13"),
    ("inferencex, AMD", "between tokens", 84, "66 / 67", "22 / 18"),
    ("mlenergy, H100", "between tokens", 274, "38 / 37", "21 / 14"),
    ("mlenergy, H100", "J per output token", 274, "45 / 49", "28 / 26"),
    ("mlenergy, B200", "between tokens", 268, "54 / 57", "25 / 20"),
    ("mlenergy, B200", "J per output token", 268, "62 / 64", "28 / 24"),
    ("pipeweave, ten boards", "between tokens", 38, "17 / 13", "14 / 14"),
    ("edgereasoning", "J per output token", 12, "31 / 34", "30 / 28"),
)
"""Source, quantity, rows, errors of a roofline and of closed forms that were frozen before these rows were looked at.

Source: a study of forms that transfer, made for this project on rows kept aside of the same sources.
"""

ROOFLINE_TEXT: Final = """\
On other rows of these sources, which no fit had seen: a roofline (bytes over 0.7 of the bandwidth, operations over 0.55
of the peak, 0.65 of the power limit), and closed forms with a dozen coefficients for all boards.
"""

PEERS: Final = (
    (
        "PipeWeave, arXiv 2601.14910",
        "rows like those of `pipeweave`: whole requests, learned from measurements of 11 kinds of GPU",
        "8.5 % mean",
    ),
    (
        "LLMServingSim 2.0, arXiv 2511.07229",
        "serving, from a profile of each operator on the hardware itself",
        "1.9 %",
    ),
)
"""Model, its rows, the error that its authors state."""


def served_lines(workspace: Workspace, table: Table) -> Iterator[str]:
    """Yield the section, of a database in which served models are predicted."""
    rows = workspace.query("validate.served").records()
    if not rows:
        return
    yield HEAD
    for part in ("source", "hardware"):
        yield from table((part, *TOLD.values(), "covered"), _score(rows, part))
    refused = workspace.query("validate.refusal").records()
    count = sum(row["measurement_count"] for row in refused)
    reasons = len({row["refusal"] for row in refused})
    stored = len(workspace.served_measurements())
    yield textwrap.fill(f"Of {stored:,} rows, {count:,} lack a prediction of a quantity, for {reasons} reasons.", WIDTH)
    yield ""
    yield LEFT_OUT
    residuals = read_served(workspace)
    yield from table(("left out", "rows", "held", "half-width"), _cover(residuals))
    pairs = [row for row in workspace.query("validate.pair").records() if row["quantity"] in TOLD]
    yield "Of two boards that served the same, the better one is named rightly:"
    yield ""
    yield from table(
        ("quantity", "source", "pairs", "right", "told apart", "of these right"),
        (
            (
                TOLD[row["quantity"]],
                row["source"],
                row["pair_count"],
                _percent(row["right_fraction"]),
                row["apart_count"],
                _percent(row["apart_right_fraction"]),
            )
            for row in pairs
        ),
    )
    yield ROOFLINE_TEXT
    yield from table(("rows", "of", "count", "roofline, %", "closed forms, %"), ROOFLINE)
    yield "What others state of their own models, on these or like rows; they know the very board from a profile of it:"
    yield ""
    yield from table(("model", "rows", "error that its authors state"), PEERS)


def _score(rows: Sequence[Row], part: str) -> Iterator[tuple[object, ...]]:
    groups: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row[part]][row["quantity"]].append(row)
    for name, found in sorted(groups.items()):
        held = [
            abs(row["log_error"]) <= row["half_width"] for one in found.values() for row in one if row["half_width"]
        ]
        yield name, *(_tell(found[quantity]) for quantity in TOLD), _percent(statistics.fmean(held) if held else None)


def _tell(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    errors = [abs(row["predicted"] / row["measured"] - 1.0) for row in rows]
    return f"{100 * statistics.fmean(errors):.0f} / {100 * statistics.median(errors):.0f} % of {len(rows)}"


def _cover(residuals: Sequence[ServingResidual]) -> Iterator[tuple[object, ...]]:
    for part in ("source", "hardware"):
        whole: list[tuple[bool, float]] = []
        for name in sorted({getattr(one, part) for one in residuals}):
            own = [one for one in residuals if getattr(one, part) == name]
            widths = Doubt(
                scales=(), shares=(), spreads=(),
                served=fit_served([one for one in residuals if getattr(one, part) != name]),
            )  # fmt: skip
            held = [(abs(one.error) <= width, width) for one in own if (width := _width(widths, one))]
            whole += held
            yield from [(name, len(held), *_hold(held))] if held else []
        yield f"every {part} in turn", len(whole), *_hold(whole)


def _width(doubt: Doubt, one: ServingResidual) -> float | None:
    return doubt.serving_half_width(
        one.quantity, vendor=one.vendor, engine=one.engine, work=one.work, hardware=one.hardware
    )


def _hold(held: Sequence[tuple[bool, float]]) -> tuple[str, str]:
    return _percent(
        statistics.fmean(is_held for is_held, _ in held)
    ), f"{statistics.median(one for _, one in held):.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100.0 * value:.0f} %"
