"""Probe hardware at its limits, and compare the predicted power with its power limit and with measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from joulemap.ask.answer import Answer
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.hardware import Probe
from joulemap.physics.record.calibration import UNCALIBRATED
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import SEPARATE_RUNTIME
from joulemap.plan.reader import reading
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import Selection, select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.store.query import fetch
from joulemap.store.run import find_projected_hardware
from joulemap.system.record import frozen

PRODUCT: Final = "matrix_product"
COPY: Final = "stream_copy"


@frozen(kw_only=True)
class SanityAnswer(Answer):
    """Probes of hardware: predicted power next to the power limit and to measurements."""

    probes: Table[Probe]
    projected: frozenset[str]


def sanity(source: Source, hardware: Iterable[str | Hardware] = ()) -> SanityAnswer:
    """Probe the power of chips at their limits: of a large matrix multiplication at each precision, and of a stream
    copy.

    Empty `hardware` means all chips. Runs in a temporary database. Raises UnknownNameError or CatalogueError.
    """
    from joulemap.physics.anchor import choose_copy_precision

    selection = select_hardware(Settings(hardware=tuple(hardware)), "catalogue")
    by_precision: dict[tuple[str, str], list[tuple[HardwareEntry, str]]] = {}
    for entry, mode in selection.pairs:
        for precision in entry.precisions:
            by_precision.setdefault((PRODUCT, precision), []).append((entry, mode))
        by_precision.setdefault((COPY, choose_copy_precision(entry.precisions)), []).append((entry, mode))
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        source = Source(path=Path(folder) / "sanity.duckdb", patience=source.patience)
        run_ids: list[int] = []
        for (model, precision), pairs in by_precision.items():
            settings = attrs.evolve(
                Settings(runtime=SEPARATE_RUNTIME, calibration=UNCALIBRATED),
                precision=precision,  # type: ignore[arg-type]
            )
            chosen = Selection(pairs=tuple(pairs), own=selection.own)
            with opening_runs(source, plan_selected((model,), settings, chosen)) as runs:
                run_ids += runs.ids
        with reading(source) as connection:
            return SanityAnswer(
                probes=fetch(connection, Probe, run_ids=run_ids), projected=find_projected_hardware(connection)
            )
