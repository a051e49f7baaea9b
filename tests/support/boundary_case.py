"""A toy card and its power, for values computed by hand."""

from __future__ import annotations

import attrs

import chip
from joulemap.catalog.hardware import LEAST_SHARE
from joulemap.domain.operator.name import find_operator
from joulemap.physics.anchor import COPY
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import LIMIT_SHARE, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import (
    LOSS_ACTION,
    STATIC_ACTION,
    ActionKey,
)
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import columns_of
from joulemap.trace.single import describe
from models import KEY

FJ_PER_J = 1e15


def toy(*, nj_per_byte: float, limit_w: float = 100.0, loss: float = 0.0) -> Hardware:
    """Return a CPU that is sold, draws 10 W of static power and 50 GB/s times a price, and nothing else."""
    own = chip.cpu()
    prices = {STATIC_ACTION: 10.0 * FJ_PER_J, LOSS_ACTION: loss * FJ_PER_J}
    prices |= {("dram", verb): nj_per_byte * 1e6 for verb in ("read", "write")}
    actions = tuple(attrs.evolve(one, energy_per_action_fj=prices.get(one.key, 0.0)) for one in own.reference)
    return attrs.evolve(
        own,
        tdp=chip.number(limit_w, "W"),
        static_power=chip.number(10.0, "W"),
        reference=type(own.reference)(actions),
        coefficients={**own.coefficients, LIMIT_SHARE: LEAST_SHARE},
    )


def run_of(hardware: Hardware, operator: str = COPY, precision: str = "fp32") -> RunColumns:
    known = find_operator(operator)
    assert known is not None
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime="graph")
    return evaluate(columns_of(describe(known, 1, KEY)), hardware, configuration)


def power_w(run: RunColumns) -> float:
    return int(run.ledger.energy_fj.sum()) / int(run.operators.interval_fs.sum())


def line_fj(run: RunColumns, key: ActionKey) -> int:
    row = run.hardware.reference.position(key)
    return int(run.ledger.energy_fj[run.ledger.action_index == row].sum())
