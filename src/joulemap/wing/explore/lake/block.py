"""Blocks of points: one workload on versions of one chip that differ in numeric constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from joulemap.physics import UNCALIBRATED, Configuration, Hardware, Workload
from joulemap.plan import formula_version
from joulemap.store import find_damage
from joulemap.store.shard import list_shards
from joulemap.system import DatabaseError
from joulemap.wing.explore.block import Block
from joulemap.wing.explore.lake.footer import read_footers
from joulemap.wing.explore.lake.shard import TOTALS


def describe_block(
    workload: Workload,
    hardware: Hardware,
    configuration: Configuration,
    varied: Mapping[str, tuple[str, Any]],
    *,
    calibration: tuple[str, str] = (UNCALIBRATED, ""),
    rules: str = "",
) -> Block:
    """Return the block of a workload on a chip with varied constants: constant -> unit and values.

    `hardware` includes the power mode, boundary and calibration of its runs. `calibration` is the label and digest of
    its calibration; `rules` is a digest of the rules that derive other numbers.
    """
    key = workload.key
    plain = Block(
        columns={
            "model": workload.model,
            "source": key.source,
            "input_spec": key.input_spec,
            "input_shape": key.input_spec,
            "workload_key": key.digest,
            "work": workload.work,
            "parameter_count": workload.parameter_count,
            "torch_version": key.torch_version,
            "torchvision_version": key.torchvision_version,
            "tracer_version": key.tracer_version,
            "hardware": hardware.id,
            "hardware_digest": hardware.digest,
            "architecture": hardware.architecture,
            "unit_name": hardware.unit_name,
            "deployment": ",".join(hardware.deployment),
            "projection": hardware.projection,
            "unavailable": hardware.unavailable,
            "host": hardware.host,
            "matmul_precision": hardware.matmul_precision,
            "needs_host": hardware.needs_host,
            "boundary": hardware.boundary,
            "power_mode": configuration.power_mode,
            "precision": configuration.precision,
            "weight_precision": configuration.weight_precision or configuration.precision,
            "batch": workload.batch,
            "runtime": configuration.runtime,
            "calibration": calibration[0],
            "calibration_digest": calibration[1],
            "formula_version": formula_version(hardware.architecture),
            "full_clock_hz": hardware.full_clock.value,
            "rules": rules,
        },
    )
    return vary(plain, hardware, varied)


def vary(block: Block, hardware: Hardware, varied: Mapping[str, tuple[str, Any]]) -> Block:
    """Return the block with these constants varied: constant -> unit and values. A varied clock also varies the full
    clock.
    """
    if "clock" not in varied:
        return attrs.evolve(block, varied=varied)
    full_clock = np.asarray(varied["clock"][1]) * (hardware.full_clock.value / hardware.clock.value)
    return attrs.evolve(block, varied=varied, columns={**block.columns, "full_clock_hz": full_clock})


def read_points(lake: Path, folder: str, question: str, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of the stored results of a block; `question` is its digest.

    Numbers of a refused point are 0, texts empty. Raises DatabaseError if the lake has no such shard.
    """
    import pyarrow.parquet as pq

    there = list_shards(lake / folder, question)
    if len(there) > 1:  # another file has the same question
        footers, _ = read_footers([one for one in there if not find_damage(one)])
        there = [one for one in there if one.path in footers]
    if not there:
        raise DatabaseError(f"{lake}: a shard was deleted meanwhile; run again")
    shard = there[0]
    table = pq.read_table(shard.path, columns=list(names))
    columns = {}
    for name in names:
        column = table.column(name)
        if TOTALS[name][0] == "string":
            columns[name] = np.array([text or "" for text in column.to_pylist()], dtype=object)
        else:
            columns[name] = column.fill_null(0).to_numpy()
    return columns
