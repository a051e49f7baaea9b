"""Score every prediction that has a measurement, and write the second part of docs/accuracy.md (`make accuracy`).

python benchmarks/accuracy.py [--database PATH] [--print]

All measured configurations are evaluated in a fresh database, or in the one at PATH. `--print` prints the page instead
of writing it. All figures of the page come from the queries `validate.*` and from the fits of `ladder.py`.
`scoreboard.py` compares held-out rows with other predictors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joulemap.domain.settings import ScoreDivision
from joulemap.workspace import Workspace
from scoreboard_page import FITTED_MARK, PAGE, split_page

Row = Mapping[str, Any]

ROOT: Final = Path(__file__).parents[1]
WALL: Final = "wall_power_w"
"""Quantity that only bounds a prediction, and is not scored."""

FEW: Final = 5
"""Minimum rows of a group whose mean is shown."""
FURTHEST: Final = 3
"""Maximum kinds of operators that a sentence names."""
WIDTH: Final = 120
CALIBRATION_TEXT: Final = """\
## Cross-validation of calibrations
`joulemap calibrate h200_sxm --dry-run` prints the errors of class defaults, of the fit, and of fits to all other model
families. Formulas and class defaults were chosen with knowledge of these measurements.
"""

HEAD: Final = f"""\
{FITTED_MARK}
## Rows that were used for fitting
The rest of this page scores the newest prediction of every row of `joulemap measurements list`; most of these rows were
used to choose coefficients. The view `prediction_errors` has each error.

A rate is inferences per second of one device in steady state, and power is energy divided by the interval between
batches. Power at the wall plug is divided by the number of devices and scored against the boundary `system`. MLPerf
offline results state no batch: 256 is assumed, or 64 for cards up to 75 W and CPU streams. Multi-thread rates of a DPU
and streaming rates of Hailo refer to batch 1. `fp16` in published rows is mixed precision. Of several results of a
configuration, the median is scored.

Results that no prediction covers are excluded: other image sizes, several cards that share a multi-stream, MLPerf
server results, and an Orin that also uses its accelerators. So are engines whose host starts each kernel separately,
and unstated reduced power limits (MaxQ). A stated limit selects a mode, such as `h100_pcie@215W`.
"""

SPLIT_TEXT: Final = """\
### Which rows?
Rows are split by their use in fitting, and `joulemap validate --by split` prints the errors of each split:

| split | rows used to choose coefficients |
|---|---|
| fitted | this row |
| same family | other rows of its model family on its chip |
| unseen family | rows of its chip, but none of its family |
| unseen hardware | no row of its chip |

Four GPU timing constants were tuned while looking at rows that count as unseen: `conv_reach_ratio` (a100_pcie_80gb),
`peak_share.narrow.tensor` and `dram_efficiency.planar` (rtx_4090), and `again_share` (A100, V100 and MI100).
"""

PUBLIC_TEXT: Final = """\
## Published measurements of single operators
After `joulemap measurements import public:NAME`, `joulemap validate --by kind` scores a published table, unless
`joulemap measurements tables` calls it doubtful.
"""

LADDER_TEXT: Final = """\
### Held-out shapes and boards
The coefficients of the GPU class are the same for all boards. They were also fitted without a quarter of the shapes and
without one board, and scored on the rows left out. The roofline uses 72 % of the peak, 80 % of the bandwidth and 2 µs
per kernel. The table shows mean errors of kinds with at least 1,000 rows. `make ladder` adds the others, medians,
boards and the gain of each modelled effect, and `make ladder-models` whole models. The formulas were chosen with
knowledge of all these rows, so other sources may have somewhat larger errors.
"""

LEFT_TEXT: Final = """\
### Known errors that remain
These errors remain, because a correction did not lower held-out errors or a single board would have determined its
coefficient:

- **fp8 linear layers on L40S**: bias -20.9 %, mean error 24.9 % of 1,286 rows. At bf16, the bias is -1.6 %.
- **Decode on H20**: Qwen2.5 14B takes 1.5x the prediction, and Llama 3.1 70B on eight boards 1.1x to 1.3x. Slow GEMMs
  of 3 to 5 rows explain a quarter of the difference.
- **Prefill** takes 2.3x the prediction on RTX 6000 Ada and 1.4x on L40. An L20 of the same die with 92 of 142 units is
  faster than both. Decode is predicted correctly.
- **fp8 GEMMs without quantization** in PipeWeave's tables take 4x the prediction below 32 rows on H20, and 1.5x to 2x
  on H800 and H200.
- **Frameworks on A100**: for ResNet-50 at fp16 and batch 256, the predicted times are 45 % too short in TensorFlow 1
  and 12 % in PyTorch. Up to batch 16, PyTorch waits 7 ms for its host.
- **An A40 limited to 100 W** draws 101 to 121 W. The predicted run keeps the limit and takes 1.9x the measured time.
"""
PAIR_TEXT: Final = """\
## Is the faster chip named correctly?
Both chips of a pair were measured with the same model, precision, runtime and (except in rows of rates) batch. A
prediction is correct if it ranks the chips as the measurements do.
"""

EFFICIENCY_TEXT: Final = """\
## Is the more efficient chip named correctly?
Boards are compared with boards, and systems at the wall plug with systems of the same scope. In a system with few
devices, the host contributes much of the measured energy.
"""

PAIRS: Final = """
WITH apart AS (
    SELECT
        a.runtime,
        (a.measured < b.measured) = (a.predicted < b.predicted) AS is_right,
        abs(ln(a.measured / b.measured)) > ln(1.1) AS is_far
    FROM prediction_errors AS a
    JOIN prediction_errors AS b USING (model, precision, batch, runtime, quantity)
    WHERE a.quantity = 'latency_s' AND a.hardware < b.hardware
)
SELECT
    runtime,
    count(*) AS pairs,
    avg(is_right::INT) AS right,
    count(*) FILTER (is_far) AS far_pairs,
    avg(is_right::INT) FILTER (is_far) AS far_right
FROM apart
GROUP BY runtime
ORDER BY runtime
"""

RATE_PAIRS: Final = """
WITH rate AS (
    SELECT
        hardware,
        model,
        precision,
        runtime,
        1e0 / measured AS measured,
        1e0 / predicted AS predicted
    FROM prediction_errors
    WHERE quantity = 'throughput_per_s'
),
apart AS (
    SELECT
        'rate, ' || a.runtime AS part,
        (a.measured < b.measured) = (a.predicted < b.predicted) AS is_right,
        abs(ln(a.measured / b.measured)) > ln(1.1) AS is_far
    FROM rate AS a
    JOIN rate AS b USING (model, precision, runtime)
    WHERE split_part(a.hardware, '@', 1) < split_part(b.hardware, '@', 1)
)
SELECT
    part AS runtime,
    count(*) AS pairs,
    avg(is_right::INT) AS right,
    count(*) FILTER (is_far) AS far_pairs,
    avg(is_right::INT) FILTER (is_far) AS far_right
FROM apart
GROUP BY part
ORDER BY part
"""

EFFICIENCY_PAIRS: Final = """
WITH told AS (
    SELECT
        e.hardware,
        e.model,
        e.precision,
        e.runtime,
        CASE WHEN e.measured_throughput_per_s IS NULL THEN e.batch ELSE 0 END AS batch,
        CASE
            WHEN e.measured_wall_power_w IS NULL THEN 'boards'
            WHEN m.device_count >= 4 THEN 'systems of four devices and more'
            ELSE 'systems of up to three devices'
        END AS part,
        CASE WHEN e.measured_wall_power_w IS NULL THEN '' ELSE regexp_replace(m.scope, ', MaxQ$', '') END AS scope,
        coalesce(
            e.measured_energy_j / e.batch,
            coalesce(e.measured_wall_power_w, e.measured_power_w)
            / coalesce(e.measured_throughput_per_s, e.batch / e.measured_latency_s)
        ) AS measured,
        CASE
            WHEN e.measured_wall_power_w IS NULL THEN e.predicted_energy_j / e.batch
            ELSE e.predicted_wall_power_w / e.predicted_throughput_per_s
        END AS predicted
    FROM scored_measurements AS e
    JOIN measurements AS m ON m.measurement_id = e.measurement_id
    QUALIFY row_number() OVER (PARTITION BY e.measurement_id ORDER BY e.run_id DESC, e.estimate_id DESC) = 1
),
apart AS (
    SELECT
        a.part,
        (a.measured < b.measured) = (a.predicted < b.predicted) AS is_right,
        abs(ln(a.measured / b.measured)) > ln(1.1) AS is_far
    FROM told AS a
    JOIN told AS b USING (model, precision, runtime, batch, part, scope)
    WHERE split_part(a.hardware, '@', 1) < split_part(b.hardware, '@', 1)
        AND a.measured IS NOT NULL
        AND b.measured IS NOT NULL
        AND a.predicted IS NOT NULL
        AND b.predicted IS NOT NULL
)
SELECT
    part AS runtime,
    count(*) AS pairs,
    avg(is_right::INT) AS right,
    count(*) FILTER (is_far) AS far_pairs,
    avg(is_right::INT) FILTER (is_far) AS far_right
FROM apart
GROUP BY part
ORDER BY part
"""


def percent(value: float | None) -> str:
    """Return a fraction as a percentage with its sign; a dash for None."""
    return "-" if value is None else f"{100.0 * value:.1f} %"


def per_cent(value: float | None) -> str:
    """Return a fraction in percent without the sign, for tables whose heading has it; a dash for None."""
    return "-" if value is None else f"{100.0 * value:.1f}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty line."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def wall_lines(answer: Sequence[Row]) -> Iterator[str]:
    """Yield the sentences on the power at the wall plug of a `validate.score` answer by scope."""
    rows = [row for row in answer if row["quantity"] == WALL]
    if not rows:
        return
    count = sum(row["measurement_count"] for row in rows)

    def average(column: str) -> float:
        total: float = sum(row["measurement_count"] * row[column] for row in rows)
        return total / float(count)

    worst = max(rows, key=lambda row: (row["mean_error_fraction"], row["hardware"]))
    yield textwrap.fill(
        f"Power at the wall plug, divided by the devices of the system, has a mean error of "
        f"{percent(average('mean_error_fraction'))} ({count:,} rows, bias {percent(average('bias_fraction'))}); "
        f"{percent(average('covered_fraction'))} lie in the 80 % interval. The largest mean error is "
        f"{percent(worst['mean_error_fraction'])}, of {worst['hardware']} ({worst['part']}). "
        "`joulemap validate --by scope` prints the errors of each chip, and `joulemap query run validate.worst` the "
        "largest errors.",
        WIDTH,
    )
    yield ""


def item(text: str) -> str:
    """Return an item of a list, wrapped like the rest of the page."""
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def failure_lines(operators: Sequence[Row]) -> Iterator[str]:
    """Yield the sentences on the kinds of operators with the largest share of missing time and the largest errors."""
    for hardware, rows in _by_hardware(row for row in operators if row["kind"] != "all" and not row["is_overlapping"]):
        wrong = {row["kind"]: row["time_weighted_error_fraction"] * row["device_time_s"] for row in rows}
        total = sum(wrong.values())
        rows.sort(key=lambda row: (-wrong[row["kind"]], row["kind"]))
        named = ", ".join(
            f"{row['kind']} ({percent(wrong[row['kind']] / total)}; bias {percent(row['time_bias_fraction'])})"
            for row in rows[:FURTHEST]
        )
        yield item(f"On {hardware}, the largest shares of the absolute error in operator time are {named}.")
        scored = [row for row in rows if row["scored_count"] >= FEW]
        if scored:
            furthest = max(scored, key=lambda row: (row["median_error_fraction"], row["kind"]))
            yield item(
                f"The kind of operator with the largest median error on {hardware} is {furthest['kind']} "
                f"({percent(furthest['median_error_fraction'])}); its worst group is `{furthest['worst_case']}` "
                f"({percent(furthest['worst_error_fraction'])})."
            )
    yield ""


def _by_hardware(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["hardware"]].append(row)
    return sorted(found.items())


def pair_lines(workspace: Workspace, *queries: str, of: str = "runtime") -> Iterator[str]:
    """Yield the table of how often the better of two chips is named, for pairs measured at the same configuration."""
    header = (of, "pairs", "% correct", "pairs more than 10 % apart", "% correct")
    yield from table(
        header,
        (
            (row["runtime"], row["pairs"], per_cent(row["right"]), row["far_pairs"], per_cent(row["far_right"]))
            for query in queries
            for row in workspace.sql(query).records()
        ),
    )


def write_page(
    workspace: Workspace,
    left_out: Iterable[str] = (),
    sureness: Callable[[Workspace], Iterable[str]] = lambda _: (),
) -> str:
    """Return the page, from a database in which everything measured is evaluated.

    `left_out` are the lines of the ladder; `sureness` returns the lines on intervals.
    """

    def ask(by: ScoreDivision) -> list[dict[str, Any]]:
        return workspace.validate(by=by).records()

    operators = workspace.validate_operators().records()
    counts: dict[str, int] = defaultdict(int)
    for row in workspace.measurements():
        counts[row.hardware] += 1
    scored = f"{sum(counts.values()):,} rows of {len(counts)} chips and modes are scored."
    lines = [HEAD, scored, "", SPLIT_TEXT]
    scopes = ask("scope")  # evaluates what sureness reads
    lines += sureness(workspace)
    lines += [CALIBRATION_TEXT, "## Where are the largest errors?"]
    lines += failure_lines(operators)
    lines += wall_lines(scopes)
    lines += [LEFT_TEXT, PAIR_TEXT]
    lines += pair_lines(workspace, PAIRS, RATE_PAIRS)
    lines += [PUBLIC_TEXT, LADDER_TEXT, *left_out]
    lines += [EFFICIENCY_TEXT]
    lines += pair_lines(workspace, EFFICIENCY_PAIRS, of="power of")
    return "\n".join(lines)


def climb_ladder() -> list[str]:
    """Return the lines of the ladder's table."""
    import ladder

    bench = ladder.make_bench(ladder.scored_tables(), every=1)
    return list(ladder.kind_lines(bench, ladder.climb_all(bench, _tell)))


def main() -> None:
    """Write the page, or print it."""
    from sureness import sureness_lines

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, help="one that holds evaluated runs; a fresh one if left out")
    parser.add_argument("--print", action="store_true", dest="prints", help="to stdout instead of docs/accuracy.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        workspace = Workspace(options.database or Path(folder) / "accuracy.duckdb", talk=_tell)
        page = write_page(workspace, climb_ladder(), sureness_lines)
    if options.prints:
        sys.stdout.write(page)
    else:
        PAGE.write_text(split_page()[0] + page, encoding="utf-8")


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
