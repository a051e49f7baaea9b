"""Probes from the top down: whether a chip that works at its limit draws what such a chip draws."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.domain.calibration import UNCALIBRATED
from joulemap.domain.catalogue import HardwareEntry
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.plan import Choice, select_hardware
from joulemap.plan.question import answering, ask, read_names
from joulemap.store.connection import open_for_reading, using
from joulemap.store.library import find_query
from joulemap.store.query import Answer, find_projected, run_query

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

PRODUCT: Final = "matrix_product"
COPY: Final = "stream_copy"

RUNTIME: Final = "graph"
"""One kernel without the host, as the measurements were taken."""


def probe(names: Sequence[str | Hardware]) -> Answer:
    """Return the answer of `hardware.sanity` for these hardware, or for all of the catalogue."""
    asked, own = read_names(names)
    known = {**known_hardware(), **{hardware.id: HardwareEntry.of(hardware) for hardware in own.values()}}
    pairs = select_hardware(known, Choice(names=asked or tuple(known)))
    spelling = {hardware.id: path for path, hardware in own.items()}
    by_precision: dict[tuple[str, str], list[str]] = {}
    for entry, mode in pairs:
        name = f"{spelling.get(entry.id, entry.id)}@{mode}"
        for precision in entry.precisions:
            by_precision.setdefault((PRODUCT, precision), []).append(name)
        copied = "fp32" if "fp32" in entry.precisions else entry.precisions[0]
        by_precision.setdefault((COPY, copied), []).append(name)
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        path = Path(folder) / "sanity.duckdb"
        run_ids: list[int] = []
        for (model, precision), hardware in by_precision.items():
            question = ask(model, hardware=hardware, precision=precision, runtime=RUNTIME, calibration=UNCALIBRATED)
            with answering(path, question, _silent) as (found, _):
                run_ids += found
        with using(open_for_reading(path), path) as connection:
            query = find_query("hardware.sanity")
            return find_projected(connection, run_query(connection, query, {"run_ids": run_ids}))


def _silent(_message: str) -> None:
    return None
