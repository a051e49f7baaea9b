"""Score every prediction that was measured and write docs/accuracy.md from it (`make accuracy`).

python benchmarks/accuracy.py [--database PATH] [--print]

Everything measured is evaluated in a fresh database, or in the one at PATH; `--print` leaves the page as it is. All
figures and all sentences with one are made here from the answers of `validate.*` and the fits of `ladder.py`. Rows that
no coefficient saw, and what others predict of them, are those of `scoreboard.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joulemap.catalog.calibration import SHIPPED, read_calibration
from joulemap.catalog.public import PublicTable, load_public_tables
from joulemap.domain.calibration import CalibrationError
from joulemap.domain.settings import ScoreDivision
from joulemap.workspace import Workspace

Row = Mapping[str, Any]

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "accuracy.md"
TIMES: Final[Mapping[str, str]] = {"latency_s": "latency", "throughput_per_s": "rate"}
"""Quantities that have all their figures in the table of splits, and what they are called."""

WALL: Final = "wall_power_w"
"""The quantity that bounds a prediction and scores none."""

SPLITS: Final = ("fitted", "same family", "unseen family", "unseen hardware")
WORST: Final = 10
"""Rows told of those that are furthest off."""
FEW: Final = 5
"""Rows below which a group's mean is not told."""
FURTHEST: Final = 3
"""Kinds that sentences name."""
WIDTH: Final = 120
CALIBRATION_TEXT: Final = """\
Each calibration that ships, as `joulemap calibrate h200_sxm --dry-run` prints it, which adds batches and families: mean
absolute errors of the class defaults and of the fit, and, left out, of fits to all other model families scored on the
one that they had not seen. The forms of the model and the class defaults were chosen with these measurements in view,
so that new families may be somewhat further off.
"""

HEAD: Final = """\
# Accuracy: predictions against measurements

    joulemap validate                                   all measurements and their number, by hardware and runtime
    joulemap validate --hardware H200 --by family       where it fails; also split, scope, precision, batch, kind
    joulemap validate --hardware H200 --by operator     device times inside models, by kind of operator
    joulemap measurements list --hardware T4            the rows, with source and conditions as json or csv
    joulemap measurements import mine.csv               your own rows
    joulemap measurements import public:aic_gemm        what others published of single operators

`make accuracy` evaluates everything that was measured in a fresh database and writes this page from the answers. What
no coefficient saw, beside what others predict of it, is the [scoreboard](scoreboard.md): rows here were mostly in view.
`validate` scores the newest prediction of each measured configuration: mean and median absolute relative error, bias
(mean signed error; positive is predicted too high), the worst row, and Spearman's rank correlation. The rows behind it
are the view `prediction_errors`, one per measured quantity, with both numbers.

A rate, inferences per second of one device in its steady state, is scored against the predicted rate and never against
1 / latency: of what overlaps batches these are two numbers. Power is energy over the time from one batch to the next.
Watts at a wall plug are those of a whole system, over its devices: what hosts, fans and supplies take of them is not
published, so that they score no prediction and bound it, because boards cannot draw more than the system around them.

Rows whose image size or device count is not that of one run are left out: MLPerf server results, those of an Orin whose
accelerators work beside its GPU, multi-stream results of systems that share the samples over several cards, engines
whose host starts each kernel by itself (a T4 takes 1.1 ms for shufflenet at int8, 1.4 ms at fp32), results at a lowered
power limit (MaxQ) that is not told. Where it is told, the row is of that mode, as `h100_pcie@215W`. Of MLPerf offline
there is a rate and no batch; 256 is taken, 64 of cards up to 75 W, and of results alike the median. Of streams on a CPU
64 is taken too; a multi-thread rate of a DPU and a streaming rate of Hailo are those of single images. `fp16` of
published rows is mixed precision. Single operators stand apart from models: many take less time than a launch.
"""

SPLIT_TEXT: Final = """\
## What was fitted, and what was not
Agreement with a row that coefficients were chosen with says little. A row is

| split | where coefficients were chosen with |
|---|---|
| fitted | this row in view |
| same family | rows of its model family on its hardware in view, but not this one |
| unseen family | rows of its hardware in view, but none of its family |
| unseen hardware | no row of its hardware in view |

Which rows those are stands in `src/joulemap/catalog/data/measurement/seen` and in the column `seen` of published
rows; the view `measurement_splits` applies it. Groups of fewer than five rows, ranks and the worst rows are left to
`joulemap validate --by split`.
Four numbers of GPU time were chosen with errors of rows in view that count as unseen: `conv_reach_ratio`
(a100_pcie_80gb), `peak_share.narrow` and `dram_efficiency.planar` (rtx_4090), `again_share` (boards with A100, V100 and
MI100).
"""

PUBLIC_TEXT: Final = """\
## Operators that others measured
Tables that others published ship beside the package's own rows, and no database holds them until they are imported:
`joulemap measurements import public:NAME`, then `joulemap validate --by kind`. A table with a doubt scores nothing.
Conditions and boards stand with the rows: `joulemap measurements list --format json`.
"""

LADDER_TEXT: Final = """\
### On shapes and boards that were not fitted
The class of GPUs fitted to these rows with one set of coefficients for all boards: to all of them, to all but a quarter
of the shapes, and to all but a board; scored on what was left out. Beside it two rooflines on the same rows: 72 % of
the peak, 80 % of the bandwidth and 2 µs for everything, and the same with three numbers fitted for each kind, left out
in the same way. Mean / median of the absolute relative errors in per cent; `make ladder` has them by board, and says
what each effect of the model buys.

The forms of the model were chosen with all of these rows in view. A left-out figure is of coefficients fitted without
the rows that are scored, not of forms found without them, so other sources may be somewhat further off. Coefficients
that no row outside a board depends on keep their shipped values where it is left out. Whole models stand last, with
each family left out in turn; their roofline is that of each kernel, one after the other.
"""

LEFT_TEXT: Final = """\
### Looked into, and left as it is
What was tried does not lower errors on rows that it was not fitted to, or one board alone would carry its number:

- **Linear layers at fp8 on L40S**, 1,286 rows, 20.9 % too fast (24.9 % off). Those at bf16 there are 1.6 % too fast:
  neither clock nor memory. Without a split of K they are 26.7 % off. What is missing goes with the outputs: with 1.5
  clocks of a unit for each, 17.8 % would be left. That is an epilogue of scales that no other block hides; products on
  H200, which the quantization was fitted to, show none.
- **Tokens on H20**: Qwen2.5 14B takes 18.1 and 19.9 ms a step, 1.5 times what is predicted, and Llama 3.1 70B on eight
  1.1 to 1.3 times. PipeWeave's tables have products of 3 to 5 rows there that read 2.5 to 2.9 of 4.0 TB/s, where 3.0 to
  3.2 are predicted, in tiles of 8 rows: no padding to 64, and a quarter of the difference. The rest is not known.
- **Prompts on RTX 6000 Ada and L40** take 2.3 and 1.4 times what is predicted: 80 to 101 and 98 to 99 TFLOP/s, no more
  than an L20 of the same die with 92 of 142 units (103 to 109). Tokens are right there, and products that read weights.
  On that L40 a product of 0.46 s runs at 54 TFLOP/s, where the cap leaves 135; an L40S, of the same die at 350 W, holds
  276 in products of 0.2 s. The boards were slowed by what the rows do not tell: heat, or a lower limit.
- **Products at fp8 without quantization** of PipeWeave's tables: on H20 alike for 1 to 128 rows (130 to 180 TFLOP/s,
  counted as 128 rows), four times slower than predicted below 32; on H800 and H200 1.5 to 2 times. A kernel that scales
  blocks and pads rows does that; that of AIConfigurator's rows on H200 does not, and rows do not name theirs.
"""
PAIR_TEXT: Final = """\
## Which is faster
Two hardware that were measured on the same model, precision, batch and runtime make a pair. A prediction names the
faster rightly where it has the same order. Pairs of rates are of the same model, precision and runtime, each hardware
at the batch of its row.
"""

EFFICIENCY_TEXT: Final = """\
## Which is more efficient
Energy per inference: as measured, or power over rate. Pairs are of the same model, precision, batch and runtime, rates
at the batch of each row; of boards with boards, and of systems at the wall plug with systems in the same scope. What is
predicted is the energy of the board: of a system with few devices, the host decides much of what was measured.
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
        e.predicted_energy_j / e.batch AS predicted
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

TAIL: Final = """\
## Your own rows
A CSV file with a header, or a JSON list of objects; the help of `joulemap measurements import` lists the columns.
`scope` and `conditions` say how a row was measured, `seen` which coefficients were chosen with it in view. A file with
a wrong line is refused whole, with the lines and what was expected; a row that is stored already is not stored twice.
"""


def percent(value: float | None) -> str:
    """Return a fraction as people read it; a dash for none."""
    return "-" if value is None else f"{100.0 * value:.1f} %"


def number(value: float | None) -> str:
    """Return a correlation in three digits; a dash for none."""
    return "-" if value is None else f"{value:.3f}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table and an empty one."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def score_lines(answer: Sequence[Row], part: str) -> Iterator[str]:
    """Yield the table of a `validate.score` answer: a row per hardware, part and what was timed, of `FEW` rows or more.

    Energy stands in the first row of a part.
    """
    energies = {(row["hardware"], row["part"]): row for row in answer if row["quantity"] == "energy_j"}
    timed = [row for row in answer if row["quantity"] in TIMES and row["measurement_count"] >= FEW]
    timed.sort(key=lambda row: (row["hardware"], SPLITS.index(row["part"]), TIMES[row["quantity"]]))
    rows = []
    for row in timed:
        energy = energies.pop((row["hardware"], row["part"]), None)
        rows.append(
            (
                row["hardware"],
                row["part"],
                TIMES[row["quantity"]],
                row["measurement_count"],
                percent(row["mean_error_fraction"]),
                percent(row["median_error_fraction"]),
                percent(row["bias_fraction"]),
                percent(energy["mean_error_fraction"] if energy else None),
            )
        )
    yield from table(("hardware", part, "of", "rows", "mean", "median", "bias", "energy"), rows)


def wall_lines(answer: Sequence[Row]) -> Iterator[str]:
    """Yield what a `validate.score` answer by scope says of boards in systems at the wall plug."""
    rows = [row for row in answer if row["quantity"] == WALL]
    if not rows:
        return
    parts = [1.0 + row["bias_fraction"] for row in rows]
    yield textwrap.fill(
        f"Predicted power of a board is {min(parts):.2f} to {max(parts):.2f} of what its system drew at the wall plug, "
        f"over its devices, in the means of {len(rows)} groups of hardware and scope; the rest is that of hosts, fans "
        f"and power supplies. It is above 1, which can only be a fault of the prediction, in "
        f"{sum(row['exceeded_count'] for row in rows)} of {sum(row['measurement_count'] for row in rows)} rows "
        "(`joulemap validate --by scope`).",
        WIDTH,
    )
    yield ""


def worst_lines(answer: Iterable[Row]) -> Iterator[str]:
    """Yield the table of a `validate.worst` answer: those whose ratio is furthest from 1."""
    header = ("quantity", "hardware", "row", "predicted / measured", "split")
    furthest = sorted(answer, key=lambda row: -abs(math.log(row["predicted"] / row["measured"])))
    yield from table(
        header,
        (
            (
                row["quantity"],
                row["hardware"],
                f"`{row['model']}` {row['precision']} batch {row['batch']:g} {row['runtime']}",
                f"{row['predicted'] / row['measured']:.2f}",
                row["split"],
            )
            for row in furthest[:WORST]
        ),
    )


def item(text: str) -> str:
    """Return an item of a list, wrapped like the rest of the page."""
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def failure_lines(operators: Sequence[Row]) -> Iterator[str]:
    """Yield the sentences on which kinds of operators fail: by their part of the missing time, and by median error."""
    for hardware, rows in _by_hardware(row for row in operators if row["kind"] != "all" and not row["is_overlapping"]):
        wrong = {row["kind"]: row["time_weighted_error_fraction"] * row["device_time_s"] for row in rows}
        total = sum(wrong.values())
        rows.sort(key=lambda row: (-wrong[row["kind"]], row["kind"]))
        named = ", ".join(
            f"{row['kind']} ({percent(wrong[row['kind']] / total)}; all of it together is "
            f"{percent(abs(row['time_bias_fraction']))} {_direction(row['time_bias_fraction'])})"
            for row in rows[:FURTHEST]
        )
        yield item(f"Of the operator time on {hardware} that is predicted wrongly, most is that of {named}.")
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


def match_lines(profiles: Sequence[Row]) -> Iterator[str]:
    """Yield the sentence on how much of the profiled time has its operators."""
    if not profiles:
        return
    worst = min(profiles, key=lambda row: (row["matched_fraction"], row["model"], row["precision"], row["batch"]))
    total = sum(row["device_time_s"] for row in profiles)
    matched = sum(row["device_time_s"] * row["matched_fraction"] for row in profiles)
    rest = f"; what is left there is {worst['unmatched']}" if worst["unmatched"] else ""
    yield textwrap.fill(
        f"Traced operators account for {matched / total:.2%} of the device time of {len(profiles)} profiles, and for "
        f"{worst['matched_fraction']:.2%} of that of `{worst['model']}` {worst['precision']} batch {worst['batch']}, "
        f"which is the least{rest}.",
        WIDTH,
    )
    yield ""


def _direction(bias: float) -> str:
    return "too slow" if bias > 0.0 else "too fast"


def cross_validation_lines(calibration: str, errors: Sequence[CalibrationError]) -> Iterator[str]:
    """Yield the table of a calibration's errors by runtime and precision, which stand before those of single batches.

    Class defaults and the fit as means; the fits that had not seen the family with everything.
    """
    if not errors:
        return
    groups: dict[tuple[str, str, str], dict[str, CalibrationError]] = {}
    for error in errors:
        if not error.family:
            groups.setdefault((error.quantity, error.runtime, error.precision), {}).setdefault(error.split, error)
    yield f"### {calibration}"
    yield from table(
        ("quantity", "runtime", "precision", "rows", "class defaults", "fitted", "left out", "median", "worst", "rank"),
        (
            (
                quantity,
                runtime or "all",
                precision or "all",
                found["fitted"].row_count,
                _mean(found.get("uncalibrated")),
                _mean(found["fitted"]),
                *_left_out(found.get("cross_validated")),
            )
            for (quantity, runtime, precision), found in groups.items()
        ),
    )


def _mean(error: CalibrationError | None) -> str:
    return percent(error.mean_error_fraction if error else None)


def _left_out(error: CalibrationError | None) -> tuple[str, str, str, str]:
    if error is None:
        return ("-",) * 4
    return (
        percent(error.mean_error_fraction),
        percent(error.median_error_fraction),
        percent(error.worst_error_fraction),
        number(error.rank_correlation),
    )


def public_lines(tables: Iterable[PublicTable]) -> Iterator[str]:
    """Yield a list item per public table: what it is, where it is from, what it leaves out."""
    for one in tables:
        rows = one.read_served() if one.is_served else one.read()
        yield item(
            f"`{one.address}`: {one.title}. {len(rows):,} rows; {one.source}; {one.licence}."
            + (f" Left out: {'; '.join(one.left_out)}." if one.left_out else "")
            + (f" Doubt: {one.doubt}." if one.doubt else "")
        )
    yield ""


def read_cross_validations(folder: Path = SHIPPED) -> dict[str, Sequence[CalibrationError]]:
    """Return calibration -> the errors that its file tells."""
    return {path.stem: read_calibration(path).errors for path in sorted(folder.glob("*.toml"))}


def pair_lines(workspace: Workspace, *queries: str, of: str = "runtime") -> Iterator[str]:
    """Yield the table of how often the better of two hardware is named, of those with the same measured question."""
    header = (of, "pairs", "named rightly", "pairs more than 10 % apart", "named rightly")
    yield from table(
        header,
        (
            (row["runtime"], row["pairs"], percent(row["right"]), row["far_pairs"], percent(row["far_right"]))
            for query in queries
            for row in workspace.sql(query).records()
        ),
    )


def write_page(
    workspace: Workspace,
    cross_validations: Mapping[str, Sequence[CalibrationError]],
    tables: Sequence[PublicTable] = (),
    left_out: Iterable[str] = (),
    sureness: Callable[[Workspace], Iterable[str]] = lambda _: (),
) -> str:
    """Return the page, from a database that holds whatever of it is evaluated already.

    `left_out` are the lines of the ladder, `sureness` gives those on intervals.
    """

    def ask(by: ScoreDivision) -> list[dict[str, Any]]:
        return workspace.validate(by=by).records()

    splits = ask("split")
    operators = workspace.validate_operators().records()
    counts: dict[str, int] = defaultdict(int)
    for row in workspace.measurements():
        counts[row.hardware] += 1
    named = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one)))
    lines = [HEAD, textwrap.fill(f"{sum(counts.values()):,} rows are scored: {named}.", WIDTH), "", SPLIT_TEXT]
    lines += score_lines(splits, "split")
    lines += sureness(workspace)
    if cross_validations:
        lines += ["## Left out in turn", CALIBRATION_TEXT]
        for name, rows in cross_validations.items():
            lines += cross_validation_lines(name, rows)
    lines += ["## Where it fails"]
    lines += failure_lines(operators)
    lines += match_lines(workspace.describe("measurement.profile").records())
    lines += ["Of the worst row of each hardware and quantity, those that are furthest off:", ""]
    lines += worst_lines(workspace.query("validate.worst", {"limit": 1}).records())
    lines += wall_lines(ask("scope"))
    lines += [LEFT_TEXT, PAIR_TEXT]
    lines += pair_lines(workspace, PAIRS, RATE_PAIRS)
    if tables:
        lines += [PUBLIC_TEXT]
        lines += public_lines(tables)
        lines += [LADDER_TEXT]
        lines += left_out
    lines += [EFFICIENCY_TEXT]
    lines += pair_lines(workspace, EFFICIENCY_PAIRS, of="power of")
    return "\n".join([*lines, TAIL])


def climb_ladder() -> list[str]:
    """Return the lines of the ladder's tables."""
    import ladder

    bench = ladder.make_bench(ladder.scored_tables(), every=1)
    return [*ladder.kind_lines(bench, ladder.climb_all(bench, _tell)), *ladder.model_lines((), _tell)]


def main() -> None:
    """Write the page, or print it."""
    from sureness import sureness_lines

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, help="one that holds evaluated runs; a fresh one if left out")
    parser.add_argument("--print", action="store_true", dest="prints", help="to stdout instead of docs/accuracy.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        workspace = Workspace(options.database or Path(folder) / "accuracy.duckdb", talk=_tell)
        tables = tuple(load_public_tables().values())
        page = write_page(workspace, read_cross_validations(), tables, climb_ladder(), sureness_lines)
    if options.prints:
        sys.stdout.write(page)
    else:
        PAGE.write_text(page, encoding="utf-8")


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
