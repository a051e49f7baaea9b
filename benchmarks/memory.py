"""Predicted peak memory compared with the peak of torch's allocator on one H200, by model.

python benchmarks/memory.py

Columns, each the mean absolute relative error over a model's rows:

    alone   weights + activations, against the peak allocated bytes
    rule    the same with the workspaces of the process's streams (`allocated_bytes`)
    own     weights + activations, against the measurement less those workspaces
    read    as `own`, if every activation were freed after its last reader

The table of measurements lacks the number of streams that a process had used. It is inferred from the `host_launched`
row of each model and precision, the first of its group, which is not scored. Every later row is a further captured
graph. The workspace is fitted to differences of consecutive rows; `held out` uses the rows of other model families
only.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import attrs

from joulemap.catalog.digest import DATA, ZOO
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.physics.fuse import fuse
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.width import Widths
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.store.connection import open_in_memory
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped

MEASURED: Final = DATA / "measurement" / "h200_models.csv"
HARDWARE: Final = "h200_sxm"
"""Measured hardware."""
WORKSPACE: Final = "allocator_workspace"
LIMIT: Final = "allocator_stream_limit"


def allocated_bytes(run_bytes: float, hardware: Hardware, *, stream_count: int) -> float:
    """Return the peak bytes of torch's caching allocator on a GPU, as in the view `scored_measurements`.

    `stream_count` is the number of streams of the process: 1 after eager calls only, 3 after the first captured graph
    (default, warm-up and capture streams), and one more for each further graph.
    """
    return run_bytes + min(stream_count, int(hardware.coefficient(LIMIT))) * hardware.coefficient(WORKSPACE)


@attrs.frozen(kw_only=True)
class Row:
    """One measured configuration with its prediction. Bytes."""

    model: str
    family: str
    precision: str
    batch: int
    mode: str
    measured: float
    run: float
    """Bytes of weights and activations in a program that runs operator by operator."""
    read: float
    """Bytes of weights and activations, if every activation were freed after its last reader."""


def workloads(models: Sequence[tuple[str, int]]) -> Iterator[WorkloadColumns]:
    """Yield the columns of each (model, batch): built in, or traced if the batch is not built in."""
    connection = open_in_memory()
    known, shipped = load_models(), load_shipped()
    for name, batch in models:
        if batch == 1 or shipped[name].is_affine:
            (number,) = read_shipped(connection, ZOO, [Shipped(name, batch, workload_key=f"{name}:{batch}")])
            yield read_columns(connection, number)
        else:
            yield columns_of(fuse(trace_request(resolve_model(name, known, batch=batch))))


def load_rows() -> list[Row]:
    """Return the measured rows in order."""
    with MEASURED.open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    wanted = list(dict.fromkeys((entry["model"], int(entry["batch"])) for entry in table))
    columns = dict(zip(wanted, workloads(wanted), strict=True))
    rows = []
    for entry in table:
        work = columns[entry["model"], int(entry["batch"])]
        precision = entry["precision"]
        weights = Widths(work, precision).weight_bytes
        read = attrs.evolve(work, buffer_release=work.buffer_death)
        rows.append(
            Row(
                model=entry["model"],
                family=load_models()[entry["model"]].family,
                precision=precision,
                batch=int(entry["batch"]),
                mode=entry["mode"],
                measured=float(entry["peak_memory_bytes"]),
                run=weights + Widths(work, precision).peak_activation_bytes(is_fused=False),
                read=weights + Widths(read, precision).peak_activation_bytes(is_fused=False),
            )
        )
    return rows


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows grouped by model, precision and process; each group starts with its `host_launched` row."""
    found: list[list[Row]] = []
    for row in rows:
        if row.mode == "host_launched":
            found.append([])
        found[-1].append(row)
    return found


def fit_workspace(rows: Sequence[Row]) -> float:
    """Return the median increase from an eager row to the same run as a captured graph, if there is an increase."""
    growth = [
        graph.measured - eager.measured
        for eager, graph, *_ in groups(rows)
        if eager.batch == graph.batch and graph.measured - eager.measured > 0.01 * eager.measured
    ]
    return statistics.median(growth)


def with_workspace(hardware: Hardware, workspace: float) -> Hardware:
    """Return the hardware with another size of an allocator's workspace."""
    entry = Quantity(value=workspace, unit="B", basis="measured", source="fitted here")
    return attrs.evolve(hardware, coefficients={**hardware.coefficients, WORKSPACE: entry})


def streams(rows: Sequence[Row], hardware: Hardware) -> list[tuple[Row, int]]:
    """Return the rows to score, each with the number of streams that its process had used."""
    limit = int(hardware.coefficient(LIMIT))
    found = []
    for eager, *graphs in groups(rows):
        used = round((eager.measured - eager.run) / hardware.coefficient(WORKSPACE))
        used = min(max(used, 1), limit)
        first = 2 if used == 1 else 1
        found += [(row, min(used + first + index, limit)) for index, row in enumerate(graphs)]
    return found


def errors_alone(row: Row, _count: int, _hardware: Hardware) -> float:
    """Return the relative error of weights and activations alone."""
    return row.run / row.measured - 1.0


def errors_rule(row: Row, count: int, hardware: Hardware) -> float:
    """Return the relative error with the allocator's workspaces added to the prediction."""
    return allocated_bytes(row.run, hardware, stream_count=count) / row.measured - 1.0


def errors_own(row: Row, count: int, hardware: Hardware) -> float:
    """Return the relative error with the workspaces subtracted from the measurement."""
    return row.run / (row.measured - allocated_bytes(0.0, hardware, stream_count=count)) - 1.0


def errors_read(row: Row, count: int, hardware: Hardware) -> float:
    """Return the relative error if activations are freed after their last reader, without the workspaces."""
    return row.read / (row.measured - allocated_bytes(0.0, hardware, stream_count=count)) - 1.0


COLUMNS: Final[dict[str, Callable[[Row, int, Hardware], float]]] = {
    "alone": errors_alone,
    "rule": errors_rule,
    "own": errors_own,
    "read": errors_read,
}


def score(rows: Sequence[Row], *, held_out: bool) -> dict[str, list[tuple[Row, float]]]:
    """Return column -> the rows scored with their signed relative errors."""
    chip = load_catalogue().find(HARDWARE)
    found: dict[str, list[tuple[Row, float]]] = {name: [] for name in COLUMNS}
    families = list(dict.fromkeys(row.family for row in rows))
    for family in families:
        own = [row for row in rows if row.family == family]
        others = [row for row in rows if row.family != family]
        hardware = with_workspace(chip, fit_workspace(others)) if held_out else chip
        for row, count in streams(own, hardware):
            for name, error in COLUMNS.items():
                found[name].append((row, error(row, count, hardware)))
    return found


def has(field: str, value: str, row: Row) -> bool:
    """Return whether a row has a value."""
    return bool(getattr(row, field) == value)


def summary(title: str, scores: dict[str, list[tuple[Row, float]]], keep: Callable[[Row], bool]) -> str:
    """Return one line: mean and median of the absolute errors of the rows to keep."""
    cells = []
    count = 0
    for found in scores.values():
        sizes = [abs(error) for row, error in found if keep(row)]
        count = len(sizes)
        cells.append(f"{100 * statistics.mean(sizes):7.1f} {100 * statistics.median(sizes):7.1f}")
    return f"{title:<24}{count:>5}  " + "  ".join(cells)


def main() -> None:
    """Print the errors by model, by precision and together."""
    rows = load_rows()
    scores = score(rows, held_out=False)
    heading = "  ".join(f"{name + ' %':>15}" for name in COLUMNS)
    print(f"{'model':<24}{'rows':>5}  {heading}")
    print(f"{'':<31}" + "  ".join(f"{'mean':>7} {'median':>7}" for _ in COLUMNS))
    for model in sorted({row.model for row in rows}):
        print(summary(model, scores, partial(has, "model", model)))
    print()
    for precision in dict.fromkeys(row.precision for row in rows):
        print(summary(precision, scores, partial(has, "precision", precision)))
    print(summary("all", scores, lambda _row: True))
    print(summary("all, held out", score(rows, held_out=True), lambda _row: True))
    print(f"workspace fitted to all rows: {fit_workspace(rows):,.0f} bytes")


if __name__ == "__main__":
    main()
