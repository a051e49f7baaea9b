"""Score predictions and those of others on the same rows: docs/scoreboard.csv, .md and .svg (`make scoreboard`).

python benchmarks/scoreboard.py [--database PATH] [--rows FILE.csv] [--write]

Rows that were used to choose a coefficient or a calibration are counted but not scored. Intervals are recomputed with
the judged group held out: the board for whole models, the source for served models. Changes relative to
docs/scoreboard.csv are printed; nothing is written without `--write`.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from energy import judge_energies
from joulemap.calibrate.error_fit import Residual
from joulemap.catalog.load import find_hardware
from joulemap.catalog.public import load_public_tables
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.settings import Bounds
from joulemap.physics.interval.error_scale import MODEL
from joulemap.plan.source import Source
from joulemap.system.errors import JoulemapError
from joulemap.system.record import frozen
from joulemap.wing.llm.error_fit import ServingResidual, fit_served
from joulemap.wing.llm.error_scale import ServedDoubt
from joulemap.wing.train.error_scale import NEW_FRAMEWORK, TRAINING, read_training
from joulemap.workspace import Workspace
from rival import PEAK, predict_pass, read_rivals
from scoreboard_page import CSV, FIGURE, PAGE, TABLES, Line, draw, read_lines, render, sources, split_page, write_lines
from sureness import leave_out
from tools.error_fit import find_scale, fit_scales
from tools.interval import read_residuals

T = TypeVar("T", Residual, ServingResidual)

ROOT: Final = Path(__file__).parents[1]
PEER: Final = ROOT / "benchmarks" / "peer"
EVERYTHING: Final = Bounds(max_rows=None, timeout_s=600.0)

AGAIN: Final = "pipeweave"
"""Source of public:serving whose rows are also in benchmarks/peer, with more boards and with predictions of others."""

TOLD_PARTS: Final = ("source", "class", "year", "energy")
"""Parts whose changes are printed."""

TELLING: Final = 5e-4
"""Minimum change of a mean error that is printed."""
EVERY: Final = 16
"""One in this many rows of a board, kind of operator and public table is scored, by fits without the board."""

NAMED_CHIPS: Final = 2
"""Maximum number of chips with measured energies that are named."""

WIDE: Final = ("latency_s", "throughput_per_s")
"""Quantities of a whole model to which the interval of its latency applies."""

ROWS: Final = """
SELECT
    e.measurement_id,
    e.serving_measurement_id,
    e.source,
    CASE WHEN e.family = 'operator' THEN 'operator_' ELSE '' END || e.quantity AS quantity,
    split_part(e.hardware, '@', 1) AS hardware,
    concat_ws(' ', e.model, e.precision, 'batch ' || printf('%g', e.batch), coalesce(e.runtime, e.engine)) AS label,
    e.measured,
    e.predicted,
    e.seen,
    e.batch,
    2.0 * r.mac_count / r.peak_ops_per_s AS peak_s
FROM prediction_errors AS e
LEFT JOIN runs AS r ON r.run_id = e.run_id
WHERE e.quantity <> 'wall_power_w' AND e.source <> $again
ORDER BY ALL
"""


@frozen(kw_only=True)
class Scored:
    """Measured number with its predictions."""

    source: str
    quantity: str
    hardware: str
    label: str
    measured: float
    predicted: float
    half_width: float | None = None
    """Half-width of the 80 % interval of the logarithm, computed without this row."""
    peers: Mapping[str, float] = attrs.field(factory=dict)
    """Predictor -> prediction."""

    @property
    def board(self) -> Any:
        """Hardware in the catalogue."""
        return find_hardware(self.hardware)

    def error(self, predicted: float | None = None) -> float:
        """Return the signed relative error of `predicted`, by default of joulemap's prediction."""
        return (self.predicted if predicted is None else predicted) / self.measured - 1.0


@cache
def peers_of() -> Mapping[tuple[str, int, str], Mapping[str, float]]:
    """Return (source, row of its file from 1, quantity) -> {predictor: prediction} of others."""
    found: dict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
    with (PEER / "prediction.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["source"], int(row["row"]), row["quantity"]][row["peer"]] = float(row["predicted"])
    return found


def name_source(source: str) -> str:
    """Return the name of a source: the text before the first comma, without versions and benchmark names."""
    return re.sub(r"( v[0-9.]+| documentation| benchmark|, |: ).*$", "", source)


def evaluate(workspace: Workspace) -> None:
    """Import the tables that a new database lacks, and predict everything measured."""
    for name in TABLES:
        workspace.import_measurements(f"public:{name}")
    for name in ("PipeWeave", "NeuSight"):
        workspace.import_measurements(PEER / sources()[name]["rows"])
    workspace.validate(trust=True)


def score_measured(workspace: Workspace) -> tuple[list[Scored], Counter[tuple[str, str]]]:
    """Return the held-out rows, and (source, what was chosen with them) -> number of other rows."""
    widths = interval_widths(workspace)
    found, seen = [], Counter[tuple[str, str]]()
    first: dict[str, int] = {}
    view, by_formula = sources()["in view"], read_rivals(workspace)
    for row in workspace.sql(ROWS, {"again": AGAIN}, bounds=EVERYTHING).records():
        row["source"] = name_source(row["source"])
        in_view = row["seen"] or (
            row["measurement_id"] and row["source"] not in sources() and view.get(row["hardware"])
        )
        if in_view:
            seen[row["source"], in_view] += 1
            continue
        number = row["serving_measurement_id"] or row["measurement_id"]
        peers: Mapping[str, float] = by_formula.get((row["serving_measurement_id"], row["quantity"]), {})
        if row["measurement_id"]:
            peers = predict_pass(row["hardware"], row["quantity"], row["batch"], row["peak_s"] or 0.0)
        if row["source"] in sources():
            peers = {name: value for name, value in peers.items() if name != PEAK}  # the authors state a roofline
            place = number - first.setdefault(row["source"], number) + 1
            peers = {**peers, **peers_of().get((row["source"], place, row["quantity"]), {})}
            told_there = float(_read(PEER / sources()[row["source"]]["rows"])[place - 1][row["quantity"]])
            if not math.isclose(told_there, row["measured"], rel_tol=1e-6):
                raise SystemExit(
                    f"{row['source']}, row {place}: {row['measured']} is not {told_there}, as its file has it"
                )
        key = row["measurement_id"], row["serving_measurement_id"], row["quantity"]
        told = {name: row[name] for name in ("source", "quantity", "hardware", "label", "measured", "predicted")}
        found.append(Scored(**told, half_width=widths.get(key), peers=peers))
    for table in load_public_tables().values():
        if table.name not in TABLES and not table.doubt:
            names = (row.hardware.partition("@")[0] for row in table.read())
            seen.update((table.address, table.seen[name]) for name in names if name in table.seen)
    return found, seen


def is_in_view(row: Mapping[str, Any]) -> bool:
    """Return whether the row is of a measured model on a board whose errors were used to choose a number."""
    return row["measurement_id"] is not None and row["board"] in sources()["in view"]


def interval_widths(workspace: Workspace) -> dict[tuple[int | None, int | None, str], float]:
    """Return half-widths by (measurement_id, None, quantity) or (None, serving_measurement_id, quantity).

    The half-width of a whole model excludes its board, that of a served model its source.
    """
    rows = [row for row in workspace.query("validate.residual").records() if row["work"] == MODEL]
    widths: dict[tuple[int | None, int | None, str], float] = {}
    judged = {_make(Residual, row): row["measurement_id"] for row in rows if row["quantity"] == "latency"}
    for error, half_width in leave_out(list(judged), lambda one: one.hardware):
        widths |= {(judged[error], None, name): half_width for name in WIDE}
    for row, one, width in leave_out_served(workspace, lambda row: row["source"].casefold()):
        widths[None, row["serving_measurement_id"], one.quantity] = width
    return widths


def leave_out_served(
    workspace: Workspace, part_of: Callable[[Mapping[str, Any]], object]
) -> Iterator[tuple[Mapping[str, Any], ServingResidual, float]]:
    """Yield each error of a served model with its half-width from the other parts, and what thin numbers add."""
    served = [(row, _make(ServingResidual, row)) for row in workspace.query("validate.served").records()]
    parts = [part_of(row) for row, _ in served]
    for part in dict.fromkeys(parts):
        others = [one for (_, one), own in zip(served, parts, strict=True) if own != part]
        doubt = ServedDoubt(scales=fit_served(others))
        for (row, one), own in zip(served, parts, strict=True):
            place: dict[str, Any] = {"vendor": one.vendor, "engine": one.engine, "hardware": one.hardware}
            place |= {"architecture": row["architecture"], "scope": row["scope"], "thin": row["thin_half_width"]}
            if own == part and (width := doubt.half_width(one.quantity, **place)):
                yield row, one, width


def score_apart(workspace: Workspace) -> Iterator[Line]:
    """Yield errors of times, with the share inside intervals from other boards, generations or sources.

    Lines are by class for whole models, and by vendor for served models. `nearer_count` is the number of groups of a
    source, board and model of which less than half is inside.
    """
    rows = [_make(Residual, row) for row in workspace.query("validate.residual").records() if row["work"] == MODEL]
    models = [one for one in rows if one.quantity == "latency"]
    of_model: Mapping[str, Callable[[Residual], object]] = {
        "board": lambda one: one.hardware,
        "generation": lambda one: name_generation(one.hardware),
    }
    for part, part_of in of_model.items():
        judged = leave_out(models, part_of)
        yield from _judge_apart(
            part, [(one.architecture, one.error, width, (one.hardware, one.model)) for one, width in judged]
        )
    of_served: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
        "source": lambda row: row["source"].casefold(),
        "generation": lambda row: name_generation(row["hardware"]),
    }
    for part, part_of_row in of_served.items():
        yield from _judge_apart(
            f"{part} of served models",
            [
                (one.vendor, one.error, width, (one.source, one.hardware, one.model))
                for _, one, width in leave_out_served(workspace, part_of_row)
                if name_kind(one.quantity) == "time"
            ],
        )


def name_generation(hardware: str) -> str:
    """Return the microarchitecture of a chip."""
    return find_hardware(hardware).microarchitecture or hardware


def _judge_apart(part: str, judged: Iterable[tuple[str, float, float, tuple[str, ...]]]) -> Iterator[Line]:
    groups: dict[str, list[tuple[float, float, tuple[str, ...]]]] = defaultdict(list)
    for name, error, width, group in judged:
        groups[name].append((error, width, group))
    for name, some in sorted(groups.items()):
        held: dict[tuple[str, ...], list[bool]] = defaultdict(list)
        for error, width, group in some:
            held[group].append(abs(error) <= width)
        median, mean, bias = _errors([math.expm1(-error) for error, _, _ in some])
        yield Line(
            part="apart", name=name, quantity=part, row_count=len(some), median=median, mean=mean, bias=bias,
            covered_count=sum(map(sum, held.values())), interval_count=len(some), peer=f"{len(held)}",
            nearer_count=sum(statistics.fmean(one) < 0.5 for one in held.values()),
        )  # fmt: skip


def _make(record: type[T], row: Mapping[str, Any]) -> T:
    names = [field.name for field in attrs.fields(record) if field.name in row]
    return record(error=row["log_error"], **{name: row[name] for name in names})


def score_training(workspace: Workspace, refused: Counter[tuple[str, str]]) -> Iterator[Scored]:
    """Yield training passes that others also predicted, then published rates; count refused passes in `refused`.

    Intervals exclude the row's board.
    """
    name = "NeuSight, training"
    passes = []
    for place, row in enumerate(_read(PEER / sources()[name]["rows"]), 1):
        names = ("hardware", "precision", "runtime")
        told: dict[str, Any] = {name: row[name] for name in names}
        label = f"{row['model'].partition(':')[2]} {row['precision']} batch {row['batch']}"
        try:
            (one,) = workspace.train(row["model"], batch=int(row["batch"]), trust=True, **told).rows
        except JoulemapError as error:
            refused[name, str(error)] += 1
            continue
        if one.forward_s is None or one.backward_s is None:
            refused[name, "no time of a pass"] += 1
            continue
        predicted, measured = one.forward_s + one.backward_s, float(row["latency_s"])
        residual = Residual(
            quantity="latency", architecture=find_hardware(row["hardware"]).architecture, work=TRAINING, family=name,
            model=row["model"], batch=int(row["batch"]), error=math.log(measured / predicted), predicted=predicted,
            measured=measured, **told,
        )  # fmt: skip
        peers = peers_of().get((name, place, "latency_s"), {})
        scored = Scored(
            source=name, quantity="latency_s", hardware=row["hardware"], label=label, measured=measured,
            predicted=predicted, peers=peers,
        )  # fmt: skip
        passes.append((residual, scored))
    rates = [
        (
            one,
            Scored(
                source="training rates", quantity="samples_per_s", hardware=one.hardware, label=one.model,
                measured=one.batch / one.measured, predicted=one.batch / one.predicted,
            ),
        )
        for one in read_training(Source(path=workspace.path))
    ]  # fmt: skip
    known = [one for one in read_residuals(workspace) if one.work == TRAINING and one.quantity == "latency"]
    known += [one for one, _ in rates]
    for board in dict.fromkeys(one.hardware for one, _ in (*passes, *rates)):
        scales = fit_scales([one for one in known if one.hardware != board])
        for residual, scored in (*passes, *rates):
            scale = find_scale(scales, residual)
            if residual.hardware == board and scale is not None:
                yield attrs.evolve(scored, half_width=math.hypot(scale.half_width, NEW_FRAMEWORK))


@cache
def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def score_boards() -> Iterator[Scored]:
    """Yield one in `EVERY` single operators of each GPU and kind, predicted by a fit to all other boards."""
    import ladder

    bench = ladder.make_bench(ladder.scored_tables(), every=EVERY)
    fixed, fitted, model = (rung.other_boards_s for rung in ladder.climb_all(bench, _tell))
    for row in range(bench.row_count):
        yield Scored(
            source=f"public:{bench.table[row]}",
            quantity="latency_s",
            hardware=bench.board[row],
            label=bench.kind[row],
            measured=float(bench.measured_s[row]),
            predicted=float(model[row]),
            peers={"roofline": float(fixed[row]), "fitted roofline": float(fitted[row])},
        )


def count_refusals(workspace: Workspace) -> Counter[tuple[str, str]]:
    """Return (source, reason) -> number of rows without a prediction, of sources that were not used for choices."""
    found = Counter[tuple[str, str]]()
    seen = {source for one in load_public_tables().values() for source in one.seen}
    for row in workspace.query("validate.refusal").records():
        if row["source"] not in seen and row["source"] != AGAIN:
            found[row["source"], row["refusal"]] += row["measurement_count"]
    for name, one in sources().items():
        if "rows" in one:
            found.update({(name, reason): count for reason, count in one.get("refused", {}).items()})
    return found


def make_lines(
    rows: Sequence[Scored],
    boards: Sequence[Scored],
    seen: Mapping[tuple[str, str], int],
    refused: Mapping[tuple[str, str], int],
    energies: Sequence[Mapping[str, Any]] = (),
    evidence: Sequence[Mapping[str, Any]] = (),
    apart: Iterable[Line] = (),
) -> list[Line]:
    """Return every number of the page."""
    lines = [
        *_score("source", rows, lambda one: (one.source, one.quantity)),
        *_score("class", rows, lambda one: (one.board.architecture, name_kind(one.quantity))),
        *_score("year", rows, lambda one: (_year(one), name_kind(one.quantity))),
        *_compare("peer", rows),
        *_compare("board", boards),
        *_score_energies(energies),
        *_count_evidence(evidence, energies),
        *apart,
    ]
    for part, counts in (("seen", seen), ("refused", refused)):
        lines += [
            Line(part=part, name=name, quantity=reason, row_count=count)
            for (name, reason), count in sorted(counts.items())
        ]
    return lines


def _score_energies(rows: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield the errors of held-out energies, and of powers of rows without a time, by source, class and boundary."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[name_source(row["source"]), row["architecture"], row["boundary"], row["quantity"]].append(row)
    for (name, *place), some in sorted(groups.items()):
        median, mean, bias = _errors([row["error_fraction"] for row in some])
        yield Line(
            part="energy", name=name, quantity=" ".join(place), row_count=len(some),
            median=median, mean=mean, bias=bias,
            covered_count=sum(row["low"] <= row["measured"] <= row["high"] for row in some), interval_count=len(some),
        )  # fmt: skip


def _count_evidence(rows: Iterable[Mapping[str, Any]], energies: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield the numbers of all measured and of held-out energies, by class and boundary."""
    counts = Counter[tuple[str, str]]()
    held_out = Counter((row["architecture"], row["boundary"]) for row in energies if row["quantity"] == "energy")
    chips = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        place = row["architecture"], row["boundary"] or ""
        counts[place] += row["measurement_count"] if row["quantity"] == "energy" else 0
        if row["quantity"] == "energy":
            chips[place].add(row["hardware"].partition("@")[0])
    for place, count in sorted(counts.items()):
        yield Line(
            part="evidence", name=place[0], quantity=place[1], peer=_name_chips(sorted(chips[place])),
            row_count=count, nearer_count=held_out[place],
        )  # fmt: skip


def _name_chips(names: Sequence[str]) -> str:
    """Return the names of at most `NAMED_CHIPS` chips, or else their number."""
    return ", ".join(names) if len(names) <= NAMED_CHIPS else f"{len(names)} chips"


def name_kind(quantity: str) -> str:
    """Return the group of a quantity on the page: time of models or operators, memory, or energy and power."""
    if quantity.startswith("operator_"):
        return "single operators"
    return "energy and power" if "_j" in quantity or "_w" in quantity else "memory" if "bytes" in quantity else "time"


def _year(one: Scored) -> str:
    return f"{one.board.launch_year.value:.0f}" if one.board.launch_year else "not told"


def _score(part: str, rows: Iterable[Scored], place: Any) -> Iterator[Line]:
    groups: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for one in rows:
        groups[place(one)].append(one)
    for (name, quantity), some in sorted(groups.items()):
        held = [abs(math.log(one.measured / one.predicted)) <= one.half_width for one in some if one.half_width]
        median, mean, bias = _errors([one.error() for one in some])
        yield Line(
            part=part, name=name, quantity=quantity, row_count=len(some), median=median, mean=mean, bias=bias,
            covered_count=sum(held), interval_count=len(held),
        )  # fmt: skip


def _errors(errors: Sequence[float]) -> tuple[float, float, float]:
    """Return (median absolute error, mean absolute error, mean error)."""
    sizes = [abs(one) for one in errors]
    return statistics.median(sizes), statistics.fmean(sizes), statistics.fmean(errors)


def _compare(part: str, rows: Iterable[Scored]) -> Iterator[Line]:
    """Yield a line per source, quantity and other predictor, on the rows that both predict."""
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in rows:
        for peer, predicted in one.peers.items():
            groups[one.source, one.quantity, peer].append((one.error(), one.error(predicted)))
    for (source, quantity, peer), pairs in sorted(groups.items()):
        (median, mean, bias), theirs = (_errors([pair[which] for pair in pairs]) for which in (0, 1))
        yield Line(
            part=part, name=source, quantity=quantity, peer=peer, row_count=len(pairs),
            median=median, mean=mean, bias=bias, peer_median=theirs[0], peer_mean=theirs[1], peer_bias=theirs[2],
            nearer_count=sum(abs(own) < abs(other) for own, other in pairs),
        )  # fmt: skip


def tell_change(before: Sequence[Line], after: Sequence[Line]) -> Iterator[str]:
    """Yield a text for each line that is new, gone, of other rows, or better or worse by its mean error."""
    old, new = ({one.key: one for one in lines if one.part in TOLD_PARTS} for lines in (before, after))
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        told = " ".join(filter(None, key))
        if was is None or now is None:
            yield f"{'gone' if now is None else 'new':6} {told}: {(now or was).row_count} rows"  # type: ignore[union-attr]
        elif now.row_count != was.row_count or abs(now.mean - was.mean) >= TELLING:
            word = "other" if now.row_count != was.row_count else "better" if now.mean < was.mean else "worse"
            yield f"{word:6} {told}: {was.mean_text} of {was.row_count} rows, now {now.mean_text} of {now.row_count}"


def write_rows(path: Path, rows: Iterable[Scored]) -> None:
    """Write every scored row with each prediction."""
    rows = list(rows)
    names = sorted({peer for one in rows for peer in one.peers})
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        own = ("source", "quantity", "hardware", "label", "measured", "predicted", "half_width")
        out.writerow([*own, *names])
        for one in rows:
            out.writerow([*(getattr(one, name) for name in own), *(one.peers.get(name, "") for name in names)])


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """Score, print the changes, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, help="one that holds evaluated runs; a fresh one if left out")
    parser.add_argument("--rows", type=Path, help="every scored row, as csv")
    parser.add_argument("--write", action="store_true", help="docs/scoreboard.csv, .svg and docs/accuracy.md")
    asked = parser.parse_args()
    os.chdir(ROOT)  # names of model files are relative to this folder
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        workspace = Workspace(asked.database or Path(folder) / "score.duckdb", talk=_tell)
        evaluate(workspace)
        rows, seen = score_measured(workspace)
        refused = count_refusals(workspace)
        rows += score_training(workspace, refused)
        energies = [row for row in judge_energies(workspace, unseen=True) if not is_in_view(row)]
        evidence = workspace.query("validate.evidence", {"classes": list(CLASS_HARDWARE)}).records()
        apart = list(score_apart(workspace))
    lines = make_lines(rows, list(score_boards()), seen, refused, energies, evidence, apart)
    for text in tell_change(read_lines(CSV), lines):
        print(text)
    left_out = sum(seen.values())
    print(f"{len(rows):,} numbers scored, {left_out:,} left out that were in view, {sum(refused.values())} refused")
    if asked.rows:
        write_rows(asked.rows, rows)
    if asked.write:
        write_lines(CSV, lines)
        lines = read_lines(CSV)  # the page shows the rounded numbers of the file
        PAGE.write_text(render(lines) + split_page()[1], encoding="utf-8")
        FIGURE.write_text(draw(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
