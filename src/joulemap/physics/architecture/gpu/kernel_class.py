"""Classes of GPU kernels. A class states its operators, the work that they issue, its issue rate and its start cost.

The table has a row per class; the first class that applies to an operator is used. A kernel other than a GEMM takes

    ‖amount x slots / (issue x U x f), (chain + row x slots / issue) / f‖

with U units at the highest clock f. No unit splits a chain, or a row that a thread block reduces. The chain of a sum is
part of its start: each of its steps waits for the loads of all threads.

A GEMM, whose row has no amount, takes its tiles' time (`product`) at a share of the peak, that of the lanes for images.
A start is in clocks.

Elementwise kernels are bound by bytes. Kernels that compute an address per element (broadcasts, permutations, pooling,
batch norm) are bound by the rate of index arithmetic, regardless of the element's size.

Source: measured on one H200 (graph replay); the values, each with its own source, are the class's coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.physics.architecture.gpu.device import Engine, find_last_level
from joulemap.physics.architecture.gpu.trait import LONG_ROW, NORM_THREADS, Traits
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.traffic import held_share
from joulemap.physics.workload import MACHETE, MARLIN, Booleans, Floats, Integers, put
from joulemap.system.record import define, frozen

FEW_ROWS: Final = 4.0
"""Maximum rows of a GEMM that is computed as a matrix times a few vectors, without padding to tiles."""

VECTOR_BYTES: Final = 16.0
"""Widest load of a thread, in bytes."""

SPLIT: Final = ("product", "machete")
"""Kernel classes of GEMMs whose K may be cut into parts."""

SUMS: Final = ("adaptive_avg_pool", "cdist", "moment", "reduce")
"""Reductions that one kernel computes by adding and synchronizing. Others sort, scan or select in several phases."""

COPIES: Final = (
    "append", "embedding", "fill", "full", "gather", "index", "index_copy", "index_put", "index_select",
    "new_full", "new_ones", "new_zeros", "ones", "slice_scatter", "zeros",
)  # fmt: skip
"""Operations that move whole rows, so that bytes bound them. Other data movement computes an address per element."""


@frozen
class KernelClass:
    """Class of GPU kernels: its operators, the work that they issue, and the coefficients that apply to it."""

    name: str
    applies: Callable[[Traits], Booleans]
    start: str = attrs.field(kw_only=True)
    """Suffix of the coefficient `start_clocks` that applies."""
    share: str | None = None
    """Suffix of the coefficient `peak_share` of GEMMs; empty for the one without suffix, None for other kernels."""
    amount: Callable[[Traits], Floats] | None = None
    slots: str | None = None
    """Suffix of the coefficient `issue_slots`: thread instructions per unit of the amount."""
    alone: Callable[[Traits], Floats] | None = None
    """Part of the amount that a single unit issues, so more units do not shorten it; none by default."""
    chain: str | None = None
    """Suffix of the coefficient `chain_clocks` that applies."""
    links: Callable[[Traits], Floats] | None = None
    """Number of chains that one thread executes in sequence; one by default."""
    waits: bool = False
    """True if each step of the chain waits for the bytes that it loads, so that the chain adds to the memory time."""
    traffic: str | None = None
    """Suffix of the coefficient `traffic_ratio`: measured time over the time of the kernel's bytes."""


def _kind(*kinds: str) -> Callable[[Traits], Booleans]:
    return lambda traits: traits.kernels.work.of_kind(*kinds)


def _operation(*operations: str) -> Callable[[Traits], Booleans]:
    return lambda traits: traits.kernels.work.of_operation(*operations)


def _general(applies: Callable[[Traits], Booleans]) -> Callable[[Traits], Booleans]:
    """Return the condition, limited to runtimes whose library kernels compute an address per element.

    Kernels of an engine move vectors instead.
    """
    return lambda traits: applies(traits) & traits.is_general


def _products(traits: Traits) -> Booleans:
    return traits.kernels.work.of_kind("matmul", "linear") & traits.kernels.work.has_macs


def _sums(traits: Traits) -> Booleans:
    work = traits.kernels.work
    return (work.of_kind("reduction") & work.of_operation(*SUMS)) | traits.is_long_pool


KERNEL_CLASSES: Final = (
    KernelClass("decomposition", lambda t: t.kernels.work.decomposes, start="reduction",
                amount=lambda t: t.kernels.work.elementwise_count / FLOPS_PER_MAC, slots="group"),
    KernelClass("nms", _operation("nms"), start="reduction", amount=lambda t: t.kernels.work.elementwise_count,
                slots="nms", chain="nms"),
    KernelClass("attention", lambda t: t.is_attention & _products(t), start="product", share=""),
    KernelClass("experts", lambda t: t.kernels.mixes & _products(t), start="product", share=""),
    KernelClass("recurrence", lambda t: t.is_in_step, start="product", share=""),
    KernelClass("streamed", lambda t: _products(t) & t.kernels.work.is_streamed, start="product", share="",
                amount=lambda t: t.macs, slots="streamed"),
    KernelClass("marlin", lambda t: _products(t) & t.is_packed(MARLIN), start="packed", share=""),
    KernelClass("machete", lambda t: _products(t) & t.is_packed(MACHETE), start="packed", share=""),
    KernelClass("few_rows", lambda t: _products(t) & (t.rows <= FEW_ROWS) & ~t.on_tensor_cores, start="product",
                share=""),
    KernelClass("product", _products, start="product", share=""),
    KernelClass("patch", lambda t: t.is_image & t.is_patch, start="conv", share="patch"),
    KernelClass("image", lambda t: t.is_image, start="conv", share="narrow"),
    KernelClass("winograd", lambda t: t.is_winograd, start="conv", share="winograd"),
    KernelClass("conv", lambda t: t.is_conv & (t.taps > 1.0), start="conv", share=""),
    KernelClass("pointwise", lambda t: t.is_conv, start="product", share=""),
    KernelClass("native_groups", lambda t: t.is_native, start="conv", share=""),
    KernelClass("wide_groups", lambda t: t.is_grouped & ~t.is_plain, start="conv", share=""),
    KernelClass("plain_groups", lambda t: t.is_plain, start="conv", amount=lambda t: t.macs, slots="group",
                chain="group",
                links=lambda t: t.kernels.work.gemm_groups * t.kernels.work.gemm_k),
    KernelClass("depthwise", lambda t: t.is_depthwise, start="light", amount=lambda t: t.macs * t.stride,
                slots="depthwise"),
    KernelClass("max_pool", _general(_operation("max_pool", "adaptive_max_pool")), start="index",
                amount=lambda t: t.loads,
                slots="index", chain="pool"),
    KernelClass("softmax", _kind("softmax"), start="light", amount=lambda t: t.softmax_elements, slots="special"),
    KernelClass("layer_norm", lambda t: t.is_layer_norm, start="row", amount=lambda t: t.row_elements,
                slots="layer_norm",
                alone=lambda t: t.row),
    KernelClass("normalization", lambda t: t.is_row, start="row", amount=lambda t: t.row_elements, slots="norm",
                alone=lambda t: t.row),
    KernelClass("narrow_batch_norm", lambda t: t.is_batch_norm & (t.width == "narrow"), start="batch_norm",
                amount=lambda t: t.outputs, slots="batch_norm"),
    KernelClass("batch_norm", lambda t: t.is_batch_norm, start="index", amount=lambda t: t.outputs, slots="batch_norm",
                chain="batch_norm", links=lambda t: t.sample_steps),
    KernelClass("sum", _sums, start="row", chain="sum", links=lambda t: t.sum_steps, waits=True),
    KernelClass("average_pool", _general(_kind("pool")), start="index", amount=lambda t: t.outputs, slots="average"),
    KernelClass("sort", lambda t: _operation("sort")(t) & t.is_long_sort, start="reduction", traffic="sort"),
    KernelClass("reduction", _kind("reduction"), start="reduction"),
    KernelClass("embedding", _general(_operation("embedding")), start="light", amount=lambda t: 2.0 * t.outputs,
                slots="index"),
    KernelClass("roll", _general(_operation("roll")), start="index", amount=lambda t: 2.0 * t.outputs, slots="index",
                traffic="roll"),
    KernelClass("copy", _operation(*COPIES), start="light"),
    KernelClass("rotary", _operation("rotary"), start="light", amount=lambda t: t.outputs, slots="norm"),
    KernelClass("gated", _operation("gated"), start="light", amount=lambda t: t.outputs, slots="norm",
                alone=lambda t: t.row_length),
    KernelClass("indexed", _general(lambda t: t.is_indexed), start="index", amount=lambda t: t.outputs, slots="index"),
    KernelClass("activation", lambda t: t.is_activation, start="light", amount=lambda t: t.outputs, slots="special"),
    KernelClass("elementwise", lambda t: np.ones(t.kernels.work.operator_count, dtype=bool), start="light"),
)  # fmt: skip
"""All kernel classes, by priority; the last applies to every operator."""


@frozen(kw_only=True, eq=False, slots=False)
class ClassifiedTraits(Traits):
    """Traits of operators, with the kernel class of each operator."""

    @cached_property
    def index(self) -> Integers:
        """Index of each operator's class in `KERNEL_CLASSES`."""
        numbers = np.full(self.kernels.work.operator_count, -1)
        for number, one in enumerate(KERNEL_CLASSES):
            numbers[(numbers < 0) & one.applies(self)] = number
        return numbers

    @cached_property
    def amount(self) -> Floats:
        """Amount of work that each operator issues, in the unit of its class; 0 if the class states none."""
        return self._of_class(lambda one: one.amount, 0.0)

    @cached_property
    def alone(self) -> Floats:
        """Part of each operator's amount that a single unit issues, so that more units do not shorten it."""
        return self._of_class(lambda one: one.alone, 0.0)

    @cached_property
    def links(self) -> Floats:
        """Number of chains that one thread executes in sequence; 1 by default."""
        return self._of_class(lambda one: one.links, 1.0)

    def _of_class(self, find: Callable[[KernelClass], Callable[[Traits], Floats] | None], elsewhere: float) -> Floats:
        column = np.full(self.kernels.work.operator_count, elsewhere)
        for one, mine in self.members:
            function = find(one)
            if function is not None:
                column[mine] = function(self)[mine]
        return column

    @cached_property
    def members(self) -> tuple[tuple[KernelClass, Integers], ...]:
        """Kernel classes that occur, each with the indices of its operators."""
        present = np.flatnonzero(np.bincount(self.index.astype(np.intp), minlength=len(KERNEL_CLASSES))).tolist()
        return tuple((KERNEL_CLASSES[number], np.flatnonzero(self.index == number)) for number in present)

    @cached_property
    def is_product(self) -> Booleans:
        """True for GEMMs: operators whose class has a share of the peak."""
        mask: Booleans = np.array([one.share is not None for one in KERNEL_CLASSES])[self.index]
        return mask

    @cached_property
    def waits(self) -> Booleans:
        """True for operators whose chain of dependent steps adds to the memory time; see `KernelClass.waits`."""
        mask: Booleans = np.array([one.waits for one in KERNEL_CLASSES])[self.index]
        return mask

    def is_of(self, *names: str) -> Booleans:
        """Return a mask of the operators in these kernel classes."""
        mask = self._masks.get(names)
        if mask is None:
            mask = self._masks[names] = np.array([one.name in names for one in KERNEL_CLASSES])[self.index]
        return mask

    @cached_property
    def _masks(self) -> dict[tuple[str, ...], Booleans]:
        """Cache: names of kernel classes -> mask of their operators."""
        return {}


@define(kw_only=True, eq=False)
class ClassNumbers:
    """Start, issue and chain times in seconds, share of the peak and traffic ratio of each operator."""

    start_s: Floats
    share: Floats
    """Share of the peak; 0 for operators without tiled GEMMs."""
    issue_s: Floats
    chain_s: Floats
    traffic_ratio: Floats


def read_table(traits: ClassifiedTraits, engine: Engine) -> ClassNumbers:
    """Return the numbers of each operator's kernel class on the engine that runs the operator."""
    members = [(one, *part) for one, rows in traits.members for part in engine.split(rows)]

    def column(name: str, find: Callable[[KernelClass], str | None], elsewhere: float) -> Floats:
        values = np.full(len(traits.index), elsewhere)
        for one, mine, own in members:
            qualifier = find(one)
            if qualifier is not None:
                value = own.value(f"{name}.{qualifier}" if qualifier else name)
                if isinstance(value, np.ndarray):
                    values = put(values, mine, value)
                else:
                    values[..., mine] = value
        return values

    slots = column("issue_slots", lambda one: one.slots, 0.0) / engine.slots_hz
    chain = traits.links * column("chain_clocks", lambda one: one.chain, 0.0) / engine.clock_hz
    waiting = np.where(traits.waits, chain, 0.0)
    return ClassNumbers(
        start_s=column("start_clocks", lambda one: one.start, 0.0) / engine.clock_hz + waiting,
        share=column("peak_share", lambda one: one.share, 0.0),
        issue_s=traits.amount * slots,
        chain_s=chain - waiting + traits.alone * slots * engine.units,
        traffic_ratio=column("traffic_ratio", lambda one: one.traffic, 1.0),
    )


def read_again(traits: Traits, engine: Engine) -> Floats:
    """Return the ratio of actual to minimum memory traffic for kernels that read their rows several times.

    The ratio exceeds 1 if the rows in progress exceed the last cache. A layer norm reads its rows twice, a softmax of
    long rows three times. The ratio is 1 for all other operators.
    """
    work, length = traits.kernels.work, traits.row_length
    is_long = work.of_kind("softmax") & (length > LONG_ROW)
    vectors = length / (VECTOR_BYTES / engine.item_bytes)
    block = np.maximum(2.0 ** np.ceil(np.log2(np.clip(vectors, 2.0, 1024.0) / 2.0)), 32.0)
    threads = engine.hardware.geometry["threads_per_unit"].value
    rows = np.minimum(engine.units * threads / np.where(is_long, block, NORM_THREADS), traits.outputs / length)
    capacity = find_last_level(engine.hardware).capacity.value * engine.value("again_share")
    missed = 1.0 - held_share(rows * length * engine.item_bytes, capacity)
    times = np.where(work.of_kind("normalization"), 1.0, np.where(is_long, 2.0, 0.0))
    more: Floats = 1.0 + times * missed / 2.0
    return more
