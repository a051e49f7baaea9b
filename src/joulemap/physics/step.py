"""Kernels of sequentially dependent steps: a recurrence in one call, or a loop that a compiler merged into one kernel.

    kernel  = launch + steps x step_cost + max(steps x compute, steps x memory)      a recurrence, times of one step
    kernel  = launch + steps x step_cost + max(sum of compute, sum of memory)        a loop, sums over its members
    weights = w + (steps - 1) (w - what the units hold of w)

A recurrence is placed as one step, with the rows of one step, and repeated. The members of a loop are the operators of
all its steps, each placed separately. Neither launches kernels between steps. The overhead of a step is
`step_cost.exchange` if every unit needs the state of all others, else `step_cost.local`. GEMMs with weights and
reductions of more than `BLOCK` elements need that exchange, which costs at most as much as starting a kernel.

A decomposition is a recurrence without GEMMs whose state is its matrix. If its steps update the whole matrix with
GEMMs, each step has the matrix elements as outputs, which all units share. Non-maximum suppression takes a local step
for each box that survives. Small matrices stay in one unit each, and wait for a free unit:

    waiting = steps x step_cost.local x ceil(matrices / units)

Units hold the weights for which their private memories together have room. A recurrence reads the others in every step,
as a loop of separate kernels reads all, from the memory that holds them (`traffic`).
Activations stay in a level that holds the activations of all steps of a recurrence. In a loop each member is checked
separately, so that a loop never moves more bytes than its members would as separate kernels.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.placement import Overlap, Placed
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware, MemoryLevel
from joulemap.physics.record.workload import BATCHED, SPREAD
from joulemap.physics.width import LEAST_SOLVER
from joulemap.physics.workload import Booleans, Floats

STEP_COST: Final = "step_cost"
"""Name of a coefficient: overhead of a step in seconds."""

SUPPRESSION: Final = "nms"
"""Operation whose steps one unit runs: all units compare the boxes ahead, then one drops the boxes of each survivor."""

BLOCK: Final = 256.0
"""Maximum elements of a reduction that one unit computes alone."""


def has_steps(kernels: KernelColumns) -> bool:
    """Return whether any kernel has more than one step."""
    return bool((kernels.step_count > 1.0).any())


def take_step(kernels: KernelColumns, hardware: Hardware) -> KernelColumns:
    """Return the kernels with each recurrence reduced to one step, whose weight bytes are its share of what all steps
    read.
    """
    if not has_steps(kernels):
        return kernels
    steps = kernels.work.step_count
    weights = kernels.per_operator(kernels.per_kernel(kernels.weight_bytes))
    held = np.minimum(find_private(hardware) / np.maximum(weights, 1.0), 1.0)
    again = held + kernels.per_operator(kernels.step_count) * (1.0 - held)
    work = kernels.work
    counts = ("mac_count", "elementwise_count", "special_count", "gemm_m")
    state = kernels.own_read_bytes / np.maximum(kernels.item_bytes, PRECISION_BYTES[LEAST_SOLVER])
    moved = (
        "input_bytes",
        "output_bytes",
        "entering_bytes",
        "leaving_bytes",
        "allocated_bytes",
        "host_launch_count",
        "dequantization_count",
    )
    return attrs.evolve(
        kernels,
        work=attrs.evolve(
            work,
            output_element_count=np.where(
                work.decomposes & work.has_word(SPREAD, BATCHED), state, work.output_element_count / steps
            ),
            **{name: getattr(work, name) / steps for name in counts},
        ),
        weight_bytes=kernels.weight_bytes * again / steps,
        weight_span_bytes=np.where(steps > 1.0, weights, kernels.weight_span_bytes),
        own_read_bytes=(kernels.own_read_bytes - kernels.own_weight_bytes) / steps + kernels.own_weight_bytes,
        repeat_count=steps,
        **{name: getattr(kernels, name) / steps for name in moved},
    )


def repeat_step(placement: Placed, step: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement of all steps, given one step of each recurrence in `placement`."""
    if not has_steps(step):
        return placement
    repeated = placement.repeated(step.repeat_count * np.ones(step.work.operator_count), step)
    waiting_s = _step_cost(step, placement, hardware) * np.where(step.step_count > 1.0, step.step_count, 0.0)
    overlap = placement.overlap
    if overlap is not None:
        repeats = step.repeat_count
        overlap = attrs.evolve(
            overlap.scaled(repeats, 1.0),
            launch_s=overlap.launch_s + _share(overlap, placement.launch_s) * waiting_s,
        )
    launch_s = placement.launch_s + waiting_s
    return attrs.evolve(repeated, launch_s=launch_s, pass_s=placement.pass_s, overlap=overlap)


def of_one_step(whole: Placed, one: Placed, step: KernelColumns) -> Placed:
    """Return the placement of one step with its share of the times and bytes of all steps."""
    if not has_steps(step):
        return whole
    steps = step.repeat_count
    return attrs.evolve(
        one,
        compute_s=whole.compute_s / steps,
        memory_s=whole.memory_s / steps,
        launch_s=whole.launch_s,
        pass_s=whole.pass_s,
        overlap=None if whole.overlap is None else whole.overlap.scaled(1.0 / steps, 1.0),
        dram_read_bytes=whole.dram_read_bytes / steps,
        dram_write_bytes=whole.dram_write_bytes / steps,
        pass_bytes=whole.pass_bytes / steps,
    )


def all_weight_bytes(step: KernelColumns) -> Floats:
    """Return the weight bytes that all steps read, given the kernels of one step."""
    return step.weight_bytes * step.repeat_count


def _step_cost(kernels: KernelColumns, placement: Placed, hardware: Hardware) -> Floats:
    """Return the overhead per step of each kernel, in seconds; meeting costs at most what starting a kernel does."""
    exchanging = kernels.per_kernel(np.where(_exchanges(kernels), 1.0, 0.0)) > 0.0
    exchange, local = (hardware.coefficient(f"{STEP_COST}.{one}") for one in ("exchange", "local"))
    matrices = kernels.per_kernel(np.where(kernels.work.has_word(BATCHED), kernels.work.gemm_groups, 0.0))
    turns = np.maximum(np.ceil(matrices / hardware.unit_count.value), 1.0)
    return np.where(exchanging, np.minimum(exchange, placement.launch_s), local * turns)


def _exchanges(kernels: KernelColumns) -> Booleans:
    """Return a mask of the operators after which every unit needs the state of all other units."""
    work = kernels.work
    outputs = np.maximum(work.output_element_count, 1.0)
    reduces = work.of_kind("reduction") & (work.elementwise_count > BLOCK * outputs)
    normalizes = work.of_kind("softmax", "normalization") & (work.row_length > BLOCK)
    is_exchange: Booleans = (work.has_macs & (kernels.own_weight_bytes > 0.0)) | reduces | normalizes | work.decomposes
    return is_exchange & ~work.has_word(BATCHED) & ~work.of_operation(SUPPRESSION)


def _share(overlap: Overlap, launch_s: Floats) -> Floats:
    """Return the fraction of each kernel's launch that still counts for a batch if batches overlap; at most 1."""
    own, whole = np.broadcast_arrays(overlap.launch_s, launch_s)
    share: Floats = np.divide(own, whole, out=np.ones(whole.shape), where=whole > 0.0)
    return np.minimum(share, 1.0)


def find_private(hardware: Hardware) -> Floats | float:
    """Return the largest capacity in bytes of a private memory, over all units or cores."""
    most: Floats | float = 0.0
    for level in hardware.memory_levels:
        if level.per != "chip":
            most = np.maximum(most, _capacity(level, hardware))
    return most


def _capacity(level: MemoryLevel, hardware: Hardware) -> Floats | float:
    """Return the capacity of a private level in bytes over all units or cores; 0 for levels of parts of a unit."""
    count = {"unit": hardware.unit_count.value, "core": 1.0}.get(level.per, 0.0)
    if level.per == "core" and "core_count" in hardware.geometry:
        count = hardware.geometry["core_count"].value
    return level.capacity.value * count
