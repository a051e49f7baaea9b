"""Instruction-bound work of a SIMT machine: kernels that compute an address or a function for each element.

Two times of each operator: how long its kernel keeps the units busy, and how long the instructions alone take at the
rate of their kind. A kernel of few blocks waits more than it computes, so the first can be far longer; energy follows
the second. With idx = 1 / (indexed_elements_per_clock x U x clock), the instructions of an operator without products:

    rides on another         EW / lanes + SF / special function lanes, of all units
    activation function      O / activations_per_clock
    broadcast                O idx
    data movement            O idx x permutation_ratio; without it for cat, twice for roll, 0 for index and fill
    softmax                  O with rows padded to a power of 2 x softmax_ratio x idx
    normalization            rows x normalized_row_clocks
    reduction                elements read x reduction_ratio x idx; busy long_reduction_cost from 512 an output on
    batch norm               O x batch_norm_ratio x idx; busy steps x batch_norm_step from four bytes an element on
    maximum pooling          O k min(k, stride) / pooled_loads_per_clock; busy ‖that, pool_latency‖4
    other pooling            O (1 + averaged_tap_ratio taps) / averaged_outputs_per_clock
    depthwise convolution    MACs / depthwise_macs_per_clock; busy ‖that, taps x depthwise_tap_clocks‖2
    any other elementwise    0: bytes bound it

Source: as `product`.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.model.architecture.gpu.device import Engine, lanes_per_unit
from joulemap.model.architecture.gpu.product import Products, smooth_max
from joulemap.model.kernel import KernelColumns
from joulemap.model.workload import Booleans, Floats

ACTIVATION_OPERATIONS: Final = 4.0
"""Elementwise operations per output from which on an operator counts as an activation function."""

LONG_REDUCTION: Final = 512.0
"""Elements per output from which on a reduction takes a second step."""

PADDING_STEPS: Final = (2.0**17, 2.0**21)
"""Least and most elements of a sample that a single-precision batch norm kernel strides over."""


@attrs.define(kw_only=True, eq=False)
class Issue:
    """Per-operator arrays, seconds."""

    busy_s: Floats
    instruction_s: Floats


def issue_work(kernels: KernelColumns, engine: Engine, sorts: Products) -> Issue:
    """Return the times of what has no products, and of depthwise convolutions; zero for other products."""
    work = kernels.work
    instruction = _instruction_seconds(kernels, engine)
    depthwise, taps = _depthwise_seconds(kernels, engine, sorts)
    instruction = np.where(work.of_kind("depthwise_conv"), depthwise, instruction)
    busy = np.where(work.of_kind("batch_norm", "reduction"), 0.0, instruction)
    largest = work.of_operation("max_pool", "adaptive_max_pool")
    latency = np.full_like(busy, engine.value("pool_latency"))
    busy = np.where(work.of_kind("depthwise_conv"), smooth_max(depthwise, taps, 2.0), busy)
    busy = np.where(largest, smooth_max(busy, latency, 4.0), busy)
    unit_pool = work.of_kind("pool") & (work.tap_count <= 1.0)
    busy = np.where(unit_pool, engine.value("unit_pool_cost"), busy)
    long = (_reduced_length(kernels) >= LONG_REDUCTION) & work.of_kind("reduction")
    busy = np.where(long, engine.value("long_reduction_cost"), busy)
    if engine.width == "wide" and kernels.runtime != "fused":
        samples = np.maximum(kernels.batch, 1.0)
        elements = np.maximum(work.output_element_count, 1.0) / samples
        steps = np.clip(2.0 ** np.ceil(np.log2(elements)), *PADDING_STEPS) / PADDING_STEPS[0]
        busy = np.where(work.of_kind("batch_norm"), steps * engine.value("batch_norm_step"), busy)
    # no more than alone: arithmetic that bytes hide there is hidden here
    riding = np.minimum(riding_seconds(kernels, engine), instruction)
    return Issue(
        busy_s=np.where(kernels.rides, riding, busy),
        instruction_s=np.where(kernels.rides, riding, instruction),
    )


def riding_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return what an operator costs that runs in another's epilogue: plain arithmetic on what is in registers."""
    work = kernels.work
    lanes = lanes_per_unit(engine.hardware, engine.precision)
    special = engine.hardware.geometry["special_function_lanes_per_unit"].value
    return (work.elementwise_count / lanes + work.special_count / special) / engine.issue_hz


def _depthwise_seconds(kernels: KernelColumns, engine: Engine, sorts: Products) -> tuple[Floats, Floats]:
    """Return (seconds of all taps at their rate, latency of the taps of one output) of depthwise convolutions."""
    work = kernels.work
    slower = np.where(sorts.strided, engine.value("depthwise_strided_slowdown"), 1.0)
    rate = min(engine.value("depthwise_macs_per_clock"), lanes_per_unit(engine.hardware, engine.precision))
    latency = work.tap_count * engine.value("depthwise_tap_clocks") / engine.clock_hz
    return work.mac_count * slower / (rate * engine.issue_hz), latency


def _instruction_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return elements over the rate of their kind of instruction, for what has no products."""
    work = kernels.work
    outputs = np.maximum(work.output_element_count, 1.0)
    index_s = 1.0 / (engine.value("indexed_elements_per_clock") * engine.issue_hz)
    is_activation = work.of_kind("elementwise") & (
        (work.special_count > 0.0) | (work.elementwise_count >= ACTIVATION_OPERATIONS * outputs)
    )
    found = np.where(is_activation, outputs / (engine.value("activations_per_clock") * engine.issue_hz), 0.0)
    found = np.where(is_broadcast(kernels), outputs * index_s, found)
    moved = np.where(work.of_operation("cat"), 1.0, engine.value("permutation_ratio"))
    directions = np.where(work.of_operation("roll"), 2.0, 1.0)
    moved = np.where(work.of_operation("index", "fill", "new_zeros"), 0.0, moved * directions)
    found = np.where(work.of_kind("data_movement", "uncounted"), outputs * moved * index_s, found)
    softmax = padded_rows(kernels) * engine.value("softmax_ratio") * index_s
    found = np.where(work.of_kind("softmax"), softmax, found)
    weights = kernels.own_weight_bytes / kernels.item_bytes / 2.0
    length = np.where(weights > 0.0, weights, work.row_length)
    row_s = engine.value("normalized_row_clocks") / engine.issue_hz
    found = np.where(work.of_kind("normalization"), outputs / np.maximum(length, 1.0) * row_s, found)
    read = outputs * np.maximum(_reduced_length(kernels), 1.0)
    found = np.where(work.of_kind("reduction"), read * engine.value("reduction_ratio") * index_s, found)
    found = np.where(work.of_kind("batch_norm"), outputs * engine.value("batch_norm_ratio") * index_s, found)
    found = np.where(work.of_kind("pool"), _pool_seconds(kernels, engine), found)
    return np.where(work.has_macs, 0.0, found)


def padded_rows(kernels: KernelColumns) -> Floats:
    """Return the outputs of each operator if its rows were of the next power of two, as a softmax kernel takes them."""
    length = np.maximum(kernels.work.row_length, 1.0)
    padded: Floats = kernels.work.output_element_count / length * 2.0 ** np.ceil(np.log2(length))
    return padded


def _pool_seconds(kernels: KernelColumns, engine: Engine) -> Floats:
    """Return the time of pooling: loads of a window that its neighbour has not made, at their rate."""
    work = kernels.work
    outputs = work.output_element_count
    edge = np.sqrt(np.maximum(work.tap_count, 1.0))
    stride = np.sqrt(np.maximum(_reduced_length(kernels), 1.0))
    loads = outputs * edge * np.minimum(edge, stride)
    largest = loads / (engine.value("pooled_loads_per_clock") * engine.issue_hz)
    averages = outputs * (1.0 + engine.value("averaged_tap_ratio") * work.tap_count)
    averaged = averages / (engine.value("averaged_outputs_per_clock") * engine.issue_hz)
    return np.where(work.of_operation("max_pool", "adaptive_max_pool"), largest, averaged)


def _reduced_length(kernels: KernelColumns) -> Floats:
    """Return the elements read for each output."""
    read = (kernels.own_read_bytes - kernels.own_weight_bytes) / kernels.item_bytes
    return read / np.maximum(kernels.work.output_element_count, 1.0)


def is_broadcast(kernels: KernelColumns) -> Booleans:
    """Return elementwise operators that read one operand in full and another that is smaller than the output."""
    work = kernels.work
    read = kernels.own_read_bytes / kernels.item_bytes / np.maximum(work.output_element_count, 1.0)
    mask: Booleans = work.of_kind("elementwise") & (read > 1.0) & (read < 2.0)
    return mask
