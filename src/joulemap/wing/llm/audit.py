"""Audit of served passes: what `llm` computes for a pass is what the ledger of its run holds.

`llm` evaluates many passes at once, with one period of layers for all periods. Each stored pass under an engine is
evaluated in this way again, on the chip of its run. Time and energy must be the stored ones to the last digit. Runs by
other formulas, and passes of files that are gone, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.store import Connection, execute
from joulemap.system import JoulemapError

if TYPE_CHECKING:
    from joulemap.store.check import Fault

RULE: Final = "the ledger of a served pass is what llm computes for it"

SERVED: Final = """
    SELECT c.run_id, c.model, c.batch, c.precision, c.weight_precision, c.runtime, c.hardware_digest, c.architecture,
        c.formula_version, c.tracer_version, t.latency_fs, t.energy_fj
    FROM run_configurations AS c JOIN internal.run_total AS t ON t.run_id = c.run_id
    WHERE c.refusal IS NULL AND c.model LIKE '%engine=%' ORDER BY c.run_id
"""


def find_faults(connection: Connection) -> Iterator[Fault]:
    """Yield a fault for each stored pass whose time or energy differs from that of `llm`."""
    rows = execute(connection, SERVED, {}).fetchall()
    if not rows:
        return
    from joulemap.plan import formula_version
    from joulemap.store.hardware import read_hardware
    from joulemap.wing.decoder import decoder_version, find_pass, scale
    from joulemap.wing.llm.serving.deployment import UNLIMITED, PassWorkloads

    by_decoder: dict[str, PassWorkloads] = {}
    chips = read_hardware(connection, {row[6] for row in rows})
    for run_id, name, batch, precision, weights, runtime, digest, architecture, formulas, tracer, *stored in rows:
        if formulas != formula_version(architecture) or tracer != decoder_version():
            continue
        try:
            asked = find_pass(name)
        except JoulemapError:
            continue
        if asked is None:
            continue
        workloads = by_decoder.setdefault(asked.decoder.digest, PassWorkloads(asked.decoder))
        together = workloads.describe([(asked.step, batch)])
        narrow = "" if weights == precision else weights
        chip = attrs.evolve(chips[digest], memory_capacity=scale(chips[digest].memory_capacity, UNLIMITED))
        (total,) = together.evaluate(chip, precision, runtime, weight_precision=narrow)
        for column, expected, value in zip(
            ("latency_fs", "energy_fj"), (total.latency_fs, total.energy_fj), stored, strict=True
        ):
            if expected != value:
                yield RULE, run_id, None, f"run_total.{column}", str(expected), str(value)
