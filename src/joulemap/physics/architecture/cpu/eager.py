"""Time that PyTorch's eager mode adds to kernels on a CPU: copies between layouts, set-up of convolutions, new memory.

These times precede or follow the kernel's own and depend on the clock, so they are fixed costs of the kernel.

oneDNN convolves in layouts of channel blocks. Each call sets up its primitives again, and copies its input, weights and
output from and to PyTorch's layout. A convolution of one sample with a small input and window is a plain GEMM instead.
A product packs its weights if it has several rows, that of a recurrent layer once, and a linear layer writes its bias
to each row before it multiplies.

    plain     = batch 1, one group, input up to 20480 elements, less than 16 taps
    copied    = R + out of a convolution, 0 if plain; w (if M > 1) of a product; out of a linear layer
    copy      = (copied + out of data movement) / b x copied_element_clocks / (f U)
    set-up    = convolution_setup of a convolution, 0 if plain

Each call takes new storage for its output and its copies. glibc takes a block from its heap, or from the system if the
block is above 32 MiB. It returns the free end of its heap once that exceeds twice the largest block freed so far. Each
page that the system gives is cleared at its first use, by the thread that uses it.

    fresh     = blocks above 32 MiB + fresh_share x blocks of at least half the model's largest other block
    fault     = fresh / 4096 x fault_clocks / (f U)

Sources: PyTorch aten/src/ATen/native/Convolution.cpp (use_mkldnn) and mkldnn/Conv.cpp; glibc malloc/malloc.c
(DEFAULT_MMAP_THRESHOLD_MAX, M_TRIM_THRESHOLD).
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

CONVOLUTIONS: Final = ("conv", "depthwise_conv", "grouped_conv")

PLAIN_ELEMENTS: Final = 20480.0
"""Maximum input elements of a convolution of one sample that runs as a plain GEMM."""
PLAIN_TAPS: Final = 16.0
"""Taps from which no convolution runs as a plain GEMM: windows longer than 3 on both sides."""

PAGE_BYTES: Final = 4096.0
MAPPED_BYTES: Final = 32.0 * 2**20
"""Block size above which storage always comes from the system."""
LARGE: Final = 0.5
"""Share of the largest block of the heap from which a block often lies at the end that the heap gives back."""


@frozen(kw_only=True, eq=False)
class Passes:
    """Time and bytes that eager mode adds, per operator."""

    copied_bytes: Floats
    """Bytes that are copied before or after the operator's own reads and writes."""
    added_s: Floats
    """Time of copies, fresh pages and set-up."""


def find_passes(kernels: KernelColumns, hardware: Hardware) -> Passes:
    """Return what eager mode adds to each operator; see the module's formulas."""
    work, peak = kernels.work, hardware.peaks[kernels.precision]
    clocks_per_s = peak.clock_hz * peak.unit_count
    is_copied = work.of_kind(*CONVOLUTIONS) & ~_is_plain(kernels)
    data, weights, result = (
        np.where(is_copied, one, 0.0) for one in (kernels.input_bytes, kernels.weight_bytes, kernels.output_bytes)
    )
    packed = np.where(work.of_kind("linear", "matmul") & (work.gemm_m > 1.0), kernels.weight_bytes, 0.0)
    biased = np.where(work.of_kind("linear"), kernels.output_bytes, 0.0)
    moved = np.where(work.of_kind("data_movement"), kernels.output_bytes, 0.0)
    copied = data + weights + result + packed + biased
    copy_clocks = (copied + moved) / kernels.item_bytes * hardware.coefficient("copied_element_clocks")
    blocks = (kernels.allocated_bytes, data, weights, result)
    fault_clocks = _fresh_bytes(kernels, blocks, hardware) / PAGE_BYTES * hardware.coefficient("fault_clocks")
    setup_s = np.where(is_copied, hardware.coefficient("convolution_setup"), 0.0)
    return Passes(
        copied_bytes=copied,
        added_s=(copy_clocks + fault_clocks) / clocks_per_s + setup_s,
    )


def _is_plain(kernels: KernelColumns) -> Booleans:
    """Return a mask of the convolutions that run as a plain GEMM."""
    work = kernels.work
    elements = (kernels.own_read_bytes - kernels.own_weight_bytes) / kernels.item_bytes
    is_small = (elements <= PLAIN_ELEMENTS) & (work.tap_count < PLAIN_TAPS)
    mask: Booleans = work.of_kind("conv") & is_small & (np.asarray(kernels.batch) == 1.0)
    return mask


def _fresh_bytes(kernels: KernelColumns, blocks: tuple[Floats, ...], hardware: Hardware) -> Floats:
    """Return the bytes of each operator's storage that come from the system, given the sizes of its blocks."""
    heap = [np.where(block <= MAPPED_BYTES, block, 0.0) for block in blocks]
    largest = reduce(np.maximum, (kernels.of_workload(kernels.largest(block)) for block in heap))
    share = hardware.coefficient("fresh_share")
    fresh = np.zeros(kernels.work.operator_count)
    for block, inside in zip(blocks, heap, strict=True):
        fresh = fresh + (block - inside) + np.where(inside >= LARGE * largest, share * inside, 0.0)
    return fresh
