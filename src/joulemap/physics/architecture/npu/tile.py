"""GEMMs on the tensor engines of an NPU: the tiles that its geometry cuts them into, and their clocks."""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.traffic import ceil_divide
from joulemap.physics.workload import Floats
from joulemap.system.record import frozen

TAP_ROWS: Final = "tap_rows"
"""Name of a geometry constant: rows to whose multiple an array pads the channels of each tap of a convolution."""


@frozen(kw_only=True, eq=False)
class Tiles:
    """Work of the tensor engines for each operator, as if all operators ran there."""

    tiles: Floats
    waves: Floats
    busy: Floats
    """Clocks that the tensor engines take, at full efficiency."""
    slots: Floats
    """MAC slots of the tiles, including padding."""
    activations: Floats
    """Elements streamed into the tensor engines."""
    weights: Floats
    """Elements of the second operand that are streamed or loaded into the tensor engines."""
    sums: Floats
    """Partial sums that the tensor engines write."""
    tile_share: Floats | float = 1.0
    """Share of a unit that one tile uses, if several tiles run side by side."""


def tile(kernels: KernelColumns, hardware: Hardware, units: Floats | float) -> Tiles:
    """Return the tiles of GEMMs on this number of units, and their clocks. The docstring of `npu` has the formulas."""
    work = kernels.work
    geometry = hardware.geometry
    peak = hardware.peaks[hardware.product_precision(kernels.precision)]
    unit_macs = peak.macs_per_clock
    groups, m, n, k = work.gemm_groups, work.gemm_m, work.gemm_n, work.gemm_k
    rows: Floats | float
    columns: Floats | float
    if "weight_rows" in geometry:
        rows, columns = geometry["weight_rows"].value, geometry["weight_columns"].value
        blocks = ceil_divide(m, hardware.coefficient("row_block"))
        depth = _count_depth(kernels, hardware)
        panels = groups * depth * ceil_divide(n, columns)
        waves = ceil_divide(panels * blocks, units)
        step = hardware.coefficient("array_step")
        streamed = np.maximum(ceil_divide(m, np.maximum(blocks, 1.0)) * rows * columns / unit_macs, rows / step)
        return Tiles(
            tiles=panels * blocks,
            waves=waves,
            busy=waves * streamed + (rows + columns) / step,
            slots=panels
            * blocks
            * np.maximum(ceil_divide(m, np.maximum(blocks, 1.0)) * rows * columns, rows / step * unit_macs),
            activations=groups * m * k * ceil_divide(n, columns),
            weights=panels * blocks * rows * columns,
            sums=groups * m * n * depth,
        )
    edge = _square_edge(hardware, kernels.precision)
    has_edges = "output_rows" in geometry
    rows, columns = (geometry[name].value if has_edges else edge for name in ("output_rows", "output_columns"))
    tiles = groups * ceil_divide(m, rows) * ceil_divide(n, columns)
    waves = ceil_divide(tiles, units)
    streamed = ceil_divide(k * rows * columns, unit_macs)
    busy = waves * (streamed + hardware.coefficient("tile_overhead"))
    tile_share: Floats | float = 1.0
    slots = tiles * streamed * unit_macs
    if "dataflow_intervals" in geometry:
        tile_share = rows * columns / unit_macs
        busy = tiles * (k + hardware.coefficient("tile_overhead")) * tile_share
        slots = work.mac_count
    return Tiles(
        tiles=tiles,
        waves=waves,
        busy=busy,
        slots=slots,
        activations=groups * m * k * ceil_divide(n, columns),
        weights=groups * k * n * ceil_divide(m, rows),
        sums=groups * m * n,
        tile_share=tile_share,
    )


def _count_depth(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the number of weight tiles along K."""
    work, rows = kernels.work, hardware.geometry["weight_rows"].value
    if TAP_ROWS not in hardware.geometry:
        return ceil_divide(work.gemm_k, rows)
    piece, channels = hardware.geometry[TAP_ROWS].value, np.maximum(work.channels, 1.0)
    side_by_side = np.maximum(1.0, np.floor(rows / (piece * np.ceil(channels / piece))))
    return np.ceil(work.window / side_by_side) * ceil_divide(channels, rows)


def _square_edge(hardware: Hardware, precision: str) -> Floats | float:
    """Return the edge of the largest square of outputs that a unit's MACs can form."""
    unit_macs = hardware.peaks[hardware.product_precision(precision)].macs_per_clock
    edge: Floats | float = np.maximum(1.0, np.floor(np.sqrt(unit_macs)))
    return edge
