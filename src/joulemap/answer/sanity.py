"""Probe hardware at its limits, and compare the predicted power with its power limit and with measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.hardware import Probe
from joulemap.physics.record.calibration import UNCALIBRATED
from joulemap.physics.record.runtime import SEPARATE_RUNTIME
from joulemap.plan.reader import reading
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import Selection, select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.template import Template
from joulemap.store.query import fetch
from joulemap.store.run import find_projected_hardware
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

PRODUCT: Final = "matrix_product"
COPY: Final = "stream_copy"


STATES: Final = ("ok", "anchored", "measured", "partial", "low", "high", "unsupported")

COLUMNS: Final = (
    "hardware | model | precision | status | power average_power_w | power cap tdp_w | power / cap power_ratio | "
    "uncapped power / cap uncapped_ratio | unattributed share unattributed_share_fraction | "
    "compute utilization compute_utilization_fraction | bandwidth utilization bandwidth_utilization_fraction | "
    "measured power measured_power_w | power / measured power measured_ratio | reason"
)
KEEP: Final = "precision | status | power / cap | model"
COUNTS: Final = Template("{total:n probe}: {counts:list}")
COUNT: Final = Template("{count} {status}")
MEANING: Final = (
    "ok: a matrix product draws 0.6 to 1 of the power cap, a copy at most the cap; low, high: below or above this "
    "range, or over 25 % off a measured copy; partial: the product uses only part of the chip; anchored: unattributed "
    "energy, derived from the power limit, makes up the rest; measured: energies are fitted to a measured load; "
    "the clock also drops slightly below the cap, where a capped run draws less than the cap (coefficient cap_share)"
)


@frozen(kw_only=True)
class SanityAnswer(Answer):
    """Probes of hardware: predicted power next to the power limit and to measurements."""

    probes: Table[Probe]
    projected: frozenset[str]

    def document(self) -> Document:
        """Return the document, with the number of probes per status."""
        status = [probe.status for probe in self.probes]
        counts = [COUNT(count=status.count(name), status=name) for name in STATES]
        shown = self._lay(self.probes, COLUMNS, keep=KEEP)
        return Document(
            title="",
            sections=(Section("", (shown, Text(COUNTS(total=len(status), counts=counts)), Text(MEANING))),),
            data=self.data(),
            table=self.probes,
            tables=self.tables,
        )


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
