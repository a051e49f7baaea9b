"""A dataflow fabric: each layer of a model has its own part of the chip, and images follow one another.

A unit controls a layer, and computes with the mean number of subclusters (R C MACs each) per unit. It may borrow up to
`unit_reach` times as many. A compiler gives a layer at least one unit and one subcluster, and more to layers that need
more clocks. An image takes w clocks on one unit, and an operator has n layers. n is 1 for a GEMM and for a kernel
without one. It is `reduction_layers` for a softmax or a normalization, which is computed in steps:

    w    = tiles x (K + tile_overhead) x R C / q / e           R x C outputs are a tile, q MACs per clock of a unit
    pace = least T of  sum of max(n, w / T / unit_reach) <= controllers,  sum of max(n R C / q, w / T) <= units
           and not less than any layer's outputs / stream_width, nor w of a GEMM of two activations: both of its
           operands change with the image, so that no copy of one can wait in a second unit

A model that does not fit the units or the SRAM is divided into C contexts that run one after another on the whole chip:

    units       = C x share x the chip's units               share = context_share.single, or .several if C > 1
    controllers = control_share x the chip's units           of one context; as many as units in several
    image       = C x pace
    start       = sum of n x layer_switch + weights / link             of a batch, where C > 1

C is the fastest number of contexts for batches of one image, among those that hold the weights and have units for all
layers. A model is compiled once for all batch sizes, and images pass the layers one after another, so that neither C
nor w depends on the batch. Source: logs of the Hailo Dataflow Compiler (units, shares); Hailo Model Zoo (times of
images, contexts, one compiled file at batch 1 and 8).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.traffic import kept_share
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

BISECTIONS: Final = 60
"""Bisection steps to find the clocks per image, on a logarithmic scale; the remaining error is below rounding."""

WIDER: Final = 4.0
"""Limit for the number of contexts tried (1, 2, 3, 4, 6, 8, 12 ...), as a multiple of the fewest that are needed."""

STEPWISE: Final = ("softmax", "normalization")
"""Operator kinds that a fabric computes as successive layers: sums over rows, then the operations that need them."""


@frozen(kw_only=True, eq=False)
class Layout:
    """Layout of a workload's layers on a dataflow fabric, repeated for each operator of the workload."""

    context_count: Floats
    kernel_count: Floats
    image_s: Floats
    """Seconds from one image to the next, through all contexts."""


@frozen(kw_only=True, eq=False)
class _Demand:
    """Units and clocks that the layers of each workload need."""

    kernels: KernelColumns
    layers: Floats
    """Layers per operator: n in the module's formulas."""
    clocks: Floats
    """Clocks per operator: w in the module's formulas."""
    least: Floats
    """Minimum clocks per image of each workload, on any number of units."""
    tile_share: Floats | float
    """Share of a unit that one tile uses."""
    unit_reach: float

    def fits(self, pace: Floats, units: Floats, controllers: Floats) -> Booleans:
        """Return a mask of the workloads that process one image per `pace` clocks on these units and controllers."""
        wanted = self.clocks / self.kernels.of_workload(pace)
        control = self.kernels.sum_workload(np.maximum(self.layers, wanted / self.unit_reach))
        compute = self.kernels.sum_workload(np.maximum(self.layers * self.tile_share, wanted))
        mask: Booleans = (control <= controllers) & (compute <= units)
        return mask

    def pace(self, units: Floats, controllers: Floats) -> Floats:
        """Return the minimum clocks from one image to the next of each workload on these units and controllers."""
        low = np.maximum(np.maximum(self.least, self.kernels.sum_workload(self.clocks) / units), 1.0)
        high = np.maximum(low, self.kernels.largest(self.clocks / np.minimum(self.tile_share, 1.0)))
        high = np.where(self.fits(low, units, controllers), low, high)
        for _ in range(BISECTIONS):
            middle = np.sqrt(low * high)
            is_enough = self.fits(middle, units, controllers)
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return high


def lay_out(kernels: KernelColumns, hardware: Hardware, tile_clocks: Floats, tile_share: Floats | float) -> Layout:
    """Return the number of contexts of each workload and its time per image, at the fastest number of contexts.

    `tile_clocks` is e w of the module's formulas, per operator for one image. `tile_share` is the share of a unit
    that one tile uses, R C / q.
    """
    if not kernels.kernel_count:  # all of it falls back to the host
        nothing = np.zeros(0)
        return Layout(context_count=nothing, kernel_count=nothing, image_s=nothing)
    demand = _find_demand(kernels, hardware, tile_clocks, tile_share)
    needed = kernels.sum_workload(demand.layers)
    required = kernels.largest(kernels.total_weight_bytes + kernels.peak_activation_bytes / kernels.batch)
    several_s = kernels.sum_kernels(start_s(kernels, hardware))
    unit_count, capacity = hardware.peaks[kernels.precision].unit_count, hardware.level("sram").capacity.value
    single, several = (hardware.coefficient(f"context_share.{name}") * unit_count for name in ("single", "several"))
    least_contexts = np.maximum(needed / several, required * single / (several * capacity))

    best_s = best_count = best_image_s = np.full(kernels.workload_count, np.inf)
    before, count = 0, 1
    while before < WIDER * least_contexts.max():
        units = single if count == 1 else count * several
        controllers = hardware.coefficient("control_share") * unit_count if count == 1 else units
        fits = (needed <= controllers) & (required <= capacity * units / single) & (before < WIDER * least_contexts)
        pace = demand.pace(*(np.where(fits, number, np.inf) for number in (units, controllers)))
        image_s = count * pace / hardware.peaks[kernels.precision].clock_hz
        begin_s = 0.0 if count == 1 else several_s
        total_s = np.where(fits, begin_s + image_s, np.inf)
        better = total_s < best_s
        best_s, best_count = np.where(better, total_s, best_s), np.where(better, float(count), best_count)
        best_image_s = np.where(better, image_s, best_image_s)
        before, count = count, max(count + 1, count * 3 // 2 if count & (count - 1) == 0 else count * 4 // 3)
    layout = (best_count, kernels.sum_kernels(np.ones(kernels.kernel_count)), best_image_s)
    context_count, kernel_count, image_s = map(kernels.of_workload, layout)
    return Layout(context_count=context_count, kernel_count=kernel_count, image_s=image_s)


def start_s(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the seconds per kernel to start it in a batch: the setup of its layers, and the load of its weights."""
    layers = kernels.per_kernel(_count_layers(kernels, hardware))
    seconds: Floats = layers * hardware.coefficient("layer_switch")
    return seconds + kernels.per_kernel(loaded_bytes(kernels, hardware)) / _link_rate(hardware)


def loaded_bytes(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the weight bytes of each operator that the fabric loads; it keeps them for later reads if it has room."""
    capacity = hardware.level("sram").capacity.value
    return (1.0 - kept_share(kernels, capacity, keeps_weights=False)) * kernels.weight_bytes


def _count_layers(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the layers per operator: n in the module's formulas."""
    work = kernels.work
    layers = np.where(work.has_macs | (kernels.leads & ~kernels.has_product), 1.0, 0.0)
    return np.where(work.of_kind(*STEPWISE), hardware.coefficient("reduction_layers"), layers)


def _find_demand(
    kernels: KernelColumns, hardware: Hardware, tile_clocks: Floats, tile_share: Floats | float
) -> _Demand:
    """Return the units and clocks that the layers of each workload need. The module docstring has the formulas."""
    work = kernels.work
    layers = _count_layers(kernels, hardware)
    clocks = np.where(work.has_macs, tile_clocks, 0.0) / hardware.coefficient("tensor_efficiency")
    written = work.output_element_count * kernels.item_bytes / kernels.batch / hardware.coefficient("stream_width")
    unsplit = work.has_macs & (kernels.own_weight_bytes == 0.0)
    least = np.maximum(np.where(layers > 0.0, written, 0.0), np.where(unsplit, clocks, 0.0))
    return _Demand(
        kernels=kernels,
        layers=layers,
        clocks=clocks,
        least=kernels.largest(least),
        tile_share=tile_share,
        unit_reach=hardware.coefficient("unit_reach"),
    )


def _link_rate(hardware: Hardware) -> Floats | float:
    """Return the rate at which data arrive from outside the chip, in bytes per second."""
    rate: Floats | float = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
    return rate
