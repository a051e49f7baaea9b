"""Energy at measured time: what the prices are worth by themselves, whatever the model of time is.

    energy = static power x measured time + energy off the chip + voltage factor x energy on the chip

Scores the rows with a latency and an energy of the measurements that ship and of public tables. A row whose power is
that of the cap tells little, as the cap is what decides it there: such rows are scored apart.

    python benchmarks/energy.py [TABLE.csv | public:NAME ...]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np

from joulemap.answer.measurement import find_workloads
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements, read_measurements
from joulemap.catalog.public import PREFIX, find_public_table
from joulemap.catalog.sheet import load_models
from joulemap.domain.hardware import Hardware
from joulemap.domain.measurement import Measurement
from joulemap.model.architecture import find_architecture
from joulemap.model.kernel import form_kernels
from joulemap.model.ledger import order_counts, split_j
from joulemap.model.pipeline import place
from joulemap.model.power import PowerLaw
from joulemap.model.workload import WorkloadColumns
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.source import Source

PUBLIC = ("energaizer", "aic_gemm_power")
NEAR_CAP = 0.95


@attrs.frozen(kw_only=True)
class Score:
    """One row."""

    row: Measurement
    error: float
    is_capped: bool


def read(names: Sequence[str]) -> Iterator[Measurement]:
    """Yield the rows of what is named, or of what ships."""
    if not names:
        yield from load_measurements()
    for name in names or [PREFIX + name for name in PUBLIC]:
        table = find_public_table(name)
        rows = table.read() if table else read_measurements(Path(name), known_hardware(), load_models())
        yield from (row for row in rows if isinstance(row, Measurement))


def score(rows: Iterable[Measurement]) -> Iterator[Score]:
    """Yield the error of each row of a GPU that has a latency and an energy."""
    catalogue = load_catalogue()
    wanted: list[tuple[Measurement, Hardware]] = []
    for row in rows:
        name, _, mode = row.hardware.partition("@")
        if row.latency_s and row.energy_j and name in catalogue.hardware:
            hardware = catalogue.hardware[name].in_mode(mode or "default")
            if hardware.architecture == "gpu" and row.precision in hardware.peaks:
                wanted.append((row, hardware))
    works = find_workloads(Source(path=Path("none.duckdb")), {(row.model, row.batch) for row, _ in wanted})
    for row, hardware in wanted:
        work = works[row.model, row.batch]
        if not isinstance(work, str):
            yield score_one(row, work, hardware)


def score_one(row: Measurement, work: WorkloadColumns, hardware: Hardware) -> Score:
    """Return the error of one row."""
    architecture = find_architecture(hardware.architecture)
    kernels = form_kernels(work, row.precision, row.runtime)
    placement = place(kernels, hardware, architecture)
    counts = order_counts(architecture.count(kernels, placement, hardware), hardware)
    chip_j, memory_j = (np.array([column.sum()]) for column in split_j(counts, hardware))
    seconds = np.array([row.latency_s])
    energy = float(PowerLaw.of(hardware).energy_at(seconds, chip_j, memory_j)[0])
    assert row.energy_j is not None
    assert row.latency_s is not None
    is_capped = row.energy_j / row.latency_s > NEAR_CAP * hardware.tdp.value
    return Score(row=row, error=energy / row.energy_j - 1.0, is_capped=is_capped)


def main() -> None:
    """Print errors by board, precision and whether the row is at the cap."""
    groups: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for one in score(read(sys.argv[1:])):
        kind = "operator" if "(" in one.row.model else "model"
        at = "at the cap" if one.is_capped else ""
        groups[one.row.hardware, kind, one.row.precision, at].append(one.error)
    print(
        f"{'hardware':26s} {'kind':9s} {'precision':9s} {'':11s} {'rows':>5s} {'mean':>7s} {'median':>7s} {'bias':>7s}"
    )
    for (hardware, kind, precision, at), errors in sorted(groups.items()):
        size = np.abs(errors)
        print(
            f"{hardware:26s} {kind:9s} {precision:9s} {at:11s} {len(errors):5d} {100 * size.mean():6.1f}% "
            f"{100 * np.median(size):6.1f}% {100 * np.mean(errors):+6.1f}%"
        )


if __name__ == "__main__":
    main()
