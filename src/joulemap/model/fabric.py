"""A dataflow fabric: the layers of a model have parts of the chip of their own, and images follow one another.

A compiler gives each layer at least one of the fabric's units, which control their own part of it, and more of them to
layers that need more clocks. With w the clocks that an image takes on one unit, of n units that a layer needs at least
(1 for a product or a kernel without one, `reduction_layers` for a softmax or a normalization, computed in steps):

    w    = tiles x (K + tile_overhead) x R C / q / e           R x C outputs are a tile, q MACs per clock of a unit
    pace = least T of  sum of max(n, w / T) <= units of the contexts x share,
           and not less than any layer's outputs / stream_width, nor w of a product of two activations: both of its
           operands change with the image, so that no copy of one can wait in a second unit

What fits neither the units nor the SRAM is cut into C contexts that follow one another on the whole chip:

    share = context_share.single of one context, context_share.several of each of several
    image = C x pace(C x units)
    start = C x context_switch + weights / link              of a batch, where C > 1

C is the number of contexts that is fastest for the batch, of those that hold the weights and have units for all layers.
Source: logs of the Hailo Dataflow Compiler (units, shares); Hailo Model Zoo (what images take).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from joulemap.domain.hardware import Hardware
from joulemap.model.column import take
from joulemap.model.kernel import KernelColumns
from joulemap.model.workload import Floats
from joulemap.system.record import frozen

BISECTIONS: Final = 60
"""Halvings of the logarithm of a pace: the rest is below a rounding."""

WIDER: Final = 4.0
"""Contexts that are tried, of 1, 2, 3, 4, 6, 8, 12 ...: up to so many times what is needed at least."""

STEPWISE: Final = ("softmax", "normalization")
"""Kinds that a fabric computes as layers behind one another: sums over rows, then what needs them."""


@frozen(kw_only=True, eq=False)
class Layout:
    """How the layers of each workload lie on a fabric. Per operator, with the number of its workload."""

    context_count: Floats
    image_s: Floats
    """From one image to the next, through all contexts."""


def lay_out(kernels: KernelColumns, hardware: Hardware, tile_clocks: Floats) -> Layout:
    """Return the contexts and the pace of each workload; `tile_clocks` is e w of each operator for the batch."""
    each = take(hardware, kernels.first_row)
    peak = each.peaks[kernels.precision]
    efficiency = hardware.coefficient("tensor_efficiency")
    layers = _layers(kernels, hardware)
    clocks = np.where(kernels.work.has_macs, tile_clocks, 0.0) / kernels.batch / efficiency
    needed = kernels.sum_workload(layers)
    least = kernels.largest(_least_clocks(kernels, hardware, layers, clocks))
    batch = _of_workload(kernels, kernels.batch)
    held = _of_workload(kernels, kernels.total_weight_bytes + kernels.peak_activation_bytes / kernels.batch)
    load_s = kernels.sum_workload(kernels.weight_bytes) / _link_rate(each)
    single, several = (each.coefficient(f"context_share.{name}") for name in ("single", "several"))
    capacity = each.level("sram").capacity.value

    best_s, best_count, best_image_s = np.full((3, kernels.workload_count), np.inf)
    least_contexts = np.maximum(needed / (several * peak.unit_count), held * single / (several * capacity))
    before, count = 0, 1
    while before < WIDER * least_contexts.max():
        share = single if count == 1 else several
        units = peak.unit_count * share * count
        fits = (needed <= units) & (held <= capacity * count * share / single) & (before < WIDER * least_contexts)
        pace = _pace(kernels, layers, clocks, np.where(fits, units, np.inf), least)
        image_s = count * pace / peak.clock_hz
        begin_s = 0.0 if count == 1 else count * each.coefficient("context_switch") + load_s
        batch_s = np.where(fits, begin_s + batch * image_s, np.inf)
        better = batch_s < best_s
        best_s, best_count = np.where(better, batch_s, best_s), np.where(better, float(count), best_count)
        best_image_s = np.where(better, image_s, best_image_s)
        before, count = count, max(count + 1, count * 3 // 2 if count & (count - 1) == 0 else count * 4 // 3)
    return Layout(context_count=best_count[kernels.workload_index], image_s=best_image_s[kernels.workload_index])


def start_s(kernels: KernelColumns, hardware: Hardware, context_count: Floats) -> Floats:
    """Return what the contexts of a batch take to start, per kernel: switches in equal parts, and its own weights."""
    each = take(hardware, kernels.leader)
    kernel_count = kernels.sum_kernels(np.ones(kernels.kernel_count))[kernels.workload_index]
    switches = (context_count / kernel_count)[kernels.leader] * each.coefficient("context_switch")
    load: Floats = kernels.per_kernel(kernels.weight_bytes) / _link_rate(each)
    return switches + load


def _of_workload(kernels: KernelColumns, values: Floats | float) -> Floats:
    """Return what every operator of a workload has, per workload."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), kernels.work.operator_count)[kernels.first_row]


def _link_rate(hardware: Hardware) -> Floats | float:
    """Return the bytes per second that come from outside the chip."""
    rate: Floats | float = hardware.memory_bandwidth.value * hardware.coefficient("dram_efficiency")
    return rate


def _layers(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the units that each operator needs at least: 0 for what another's layer computes with its own."""
    work = kernels.work
    is_layer = work.has_macs | (kernels.leads & (kernels.per_operator(kernels.per_kernel(work.mac_count)) == 0.0))
    return np.where(work.of_kind(*STEPWISE), hardware.coefficient("reduction_layers"), np.where(is_layer, 1.0, 0.0))


def _least_clocks(kernels: KernelColumns, hardware: Hardware, layers: Floats, clocks: Floats) -> Floats:
    """Return the clocks of an image that no units take from a layer: those of its outputs, and of what is not split."""
    width = hardware.coefficient("stream_width")
    written = kernels.work.output_element_count * kernels.item_bytes / kernels.batch
    unsplit = kernels.work.has_macs & (kernels.own_weight_bytes == 0.0)
    return np.maximum(np.where(layers > 0.0, written / width, 0.0), np.where(unsplit, clocks, 0.0))


def _pace(kernels: KernelColumns, layers: Floats, clocks: Floats, units: Floats, least: Floats) -> Floats:
    """Return the clocks from one image to the next of each workload in a context with so many units."""
    low = np.maximum(np.maximum(least, kernels.sum_workload(clocks) / units), 1.0)
    high = np.maximum(low, kernels.largest(clocks))
    is_enough = _needed_units(kernels, layers, clocks, low) <= units
    high = np.where(is_enough, low, high)
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        is_enough = _needed_units(kernels, layers, clocks, middle) <= units
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return high


def _needed_units(kernels: KernelColumns, layers: Floats, clocks: Floats, pace: Floats) -> Floats:
    """Return the units that layers need at a pace, summed over each workload."""
    return kernels.sum_workload(np.maximum(layers, clocks / pace[kernels.workload_index]))
