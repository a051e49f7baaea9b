"""Sorts of kernels: which operators are of each, what it issues, at which rate, and what it costs to start.

The table has a row for each sort, the first that applies counts. A kernel that is no product is busy for

    ‖amount x slots / (issue x U x f), (chain + row x slots / issue) / f‖

U units issue so much at the highest clock; none splits a chain, nor a row that a thread block reduces,

and a product, whose row has no amount, for its tiles (`product`) at a share of the peak. A start is in clocks.

Elementwise kernels are bound by bytes. What computes an address for each element (broadcasts, permutations, pooling) is
bound by the rate of index arithmetic, whatever the element's size.

Source: measured on one H200 (graph replay); the values, each with its own source, are the class's coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.domain.configuration import MERGING
from joulemap.model.architecture.gpu.device import REGISTER_BYTES, Engine, find_last_level
from joulemap.model.column import take
from joulemap.model.kernel import KernelColumns
from joulemap.model.workload import Booleans, Floats, Integers
from joulemap.system.record import define, frozen

ACTIVATION_OPERATIONS: Final = 4.0
"""Elementwise operations per output from which on an operator counts as an activation function."""

STEM_CHANNELS: Final = 8.0
"""Channels below which a tensor core's wide loads find no row to load: those of an image."""

NATIVE_WIDTH: Final = 32.0
"""Channels of a group, a power of two, up to which one kernel on tensor cores computes all groups."""

WHOLE_CHANNELS: Final = 64.0
"""Channels side by side that tensor cores take together: a line of 128 bytes at half precision."""

PLAIN_WIDTH: Final = 48.0
"""Channels of a group, no power of two, up to which a library multiplies on lanes what tensor cores could."""

WINOGRAD_CHANNELS: Final = 128.0
"""Channels on either side from which a library takes Winograd's algorithm."""

SAMPLE_STEP: Final = 2.0**17
"""Elements of a sample that a batch norm takes in one pass of its grid."""

LONG_ROW: Final = 1024.0
"""Elements of a row from which on a softmax does not keep it in registers."""

NORM_BLOCK: Final = 512.0
"""Elements of a row that the 128 threads of a layer norm's block take at a time."""

NORM_THREADS: Final = 128.0

VECTOR_BYTES: Final = 16.0
"""Widest load of a thread."""

FEW_ROWS: Final = 4.0
"""A product of at most so many rows is one of a matrix with a few vectors: no tile pads it."""

LONGEST_ROW: Final = 2.0**15
"""Elements that one thread block reduces; a longer row is of several, which meet in a second phase."""

STRIDED: Final = 1.9
"""Input positions for each output position from which on a convolution leaves some out."""


COPIES: Final = (
    "append", "embedding", "fill", "full", "gather", "index", "index_copy", "index_put", "index_select",
    "new_full", "new_ones", "new_zeros", "ones", "slice_scatter", "zeros",
)  # fmt: skip
"""Movements of whole rows, which bytes bound; all others compute an address for each element."""


@frozen(kw_only=True, eq=False, slots=False)
class Traits:
    """Operators as their kernels see them: what sorts are told apart by, and what they issue. One row each."""

    kernels: KernelColumns
    mode: str
    """As `Engine.mode`."""
    width: str
    """As `Engine.width`."""

    @classmethod
    def of(cls, kernels: KernelColumns, engine: Engine) -> Traits:
        """Return those of the kernels on an engine; all engines of a mode and a width share them."""
        key = (engine.mode, engine.width)
        found = kernels.memo.get(key)
        if not isinstance(found, Traits):
            found = kernels.memo[key] = cls(kernels=kernels, mode=engine.mode, width=engine.width)
        return found

    @cached_property
    def index(self) -> Integers:
        """Row of the table."""
        found = np.full(self.kernels.work.operator_count, -1)
        for number, sort in enumerate(SORTS):
            found[(found < 0) & sort.applies(self)] = number
        return found

    @cached_property
    def amount(self) -> Floats:
        """What each issues."""
        return self._of_sort(lambda sort: sort.amount, 0.0)

    @cached_property
    def alone(self) -> Floats:
        """What of that one unit issues whatever others do."""
        return self._of_sort(lambda sort: sort.alone, 0.0)

    @cached_property
    def links(self) -> Floats:
        """How many chains one thread goes through."""
        return self._of_sort(lambda sort: sort.links, 1.0)

    def _of_sort(self, find: Callable[[Sort], Callable[[Traits], Floats] | None], elsewhere: float) -> Floats:
        column = np.full(self.kernels.work.operator_count, elsewhere)
        for sort, mine in self.members:
            function = find(sort)
            if function is not None:
                column[mine] = function(self)[mine]
        return column

    @cached_property
    def members(self) -> tuple[tuple[Sort, Integers], ...]:
        """The sorts that there are, and the operators of each."""
        present = np.flatnonzero(np.bincount(self.index, minlength=len(SORTS))).tolist()
        return tuple((SORTS[number], np.flatnonzero(self.index == number)) for number in present)

    def is_of(self, *names: str) -> Booleans:
        """Return the operators of these sorts."""
        mask = self._masks.get(names)
        if mask is None:
            mask = self._masks[names] = np.array([sort.name in names for sort in SORTS])[self.index]
        return mask

    @cached_property
    def _masks(self) -> dict[tuple[str, ...], Booleans]:
        """What was asked for by names of sorts."""
        return {}

    @property
    def macs(self) -> Floats:
        """Without padding."""
        return self.kernels.work.mac_count

    @property
    def taps(self) -> Floats:
        """Of a window."""
        return self.kernels.work.tap_count

    @property
    def rows(self) -> Floats:
        """Of a product."""
        return self.kernels.work.gemm_m

    @cached_property
    def channels(self) -> Floats:
        """Channels in, of one group."""
        work = self.kernels.work
        return work.gemm_k / np.maximum(work.tap_count, 1.0)

    @cached_property
    def positions(self) -> Floats:
        """Positions of a convolution's input, all samples."""
        work = self.kernels.work
        elements = (self.kernels.own_read_bytes - self.kernels.own_weight_bytes) / self.kernels.item_bytes
        return elements / np.maximum(self.channels * np.maximum(work.gemm_groups, 1.0), 1.0)

    @cached_property
    def is_strided(self) -> Booleans:
        """Convolutions that leave out input positions."""
        mask: Booleans = self.positions > STRIDED * self.kernels.work.gemm_m
        return mask

    @cached_property
    def is_conv(self) -> Booleans:
        """Convolutions of all channels."""
        return self.kernels.work.of_kind("conv") & self.kernels.work.has_macs

    @cached_property
    def is_grouped(self) -> Booleans:
        """Convolutions of groups of several channels."""
        return self.kernels.work.of_kind("grouped_conv") & self.kernels.work.has_macs

    @cached_property
    def is_depthwise(self) -> Booleans:
        """Convolutions of each channel by itself."""
        return self.kernels.work.of_kind("depthwise_conv")

    @cached_property
    def is_general(self) -> Booleans:
        """Everywhere or nowhere: kernels of a library that serve any shape; an engine builds one for each."""
        return np.full(self.kernels.work.operator_count, self.kernels.runtime != "engine")

    @cached_property
    def is_image(self) -> Booleans:
        """Convolutions of several taps over an image, on tensor cores, whose few channels a library does not pack."""
        is_stem = self.is_conv & (self.taps > 1.0) & (self.channels < STEM_CHANNELS)
        return is_stem & self.on_tensor_cores & self.is_general

    @cached_property
    def is_patch(self) -> Booleans:
        """Convolutions whose windows do not overlap."""
        mask: Booleans = self.positions >= 0.99 * self.kernels.work.gemm_m * self.taps
        return mask

    @cached_property
    def on_tensor_cores(self) -> Booleans:
        """Everywhere or nowhere."""
        return np.full(self.kernels.work.operator_count, self.mode == "tensor")

    @cached_property
    def is_winograd(self) -> Booleans:
        """3 x 3 convolutions of stride 1 with enough channels for an algorithm of fewer multiplications to pay.

        At fp64 no library has it (cuDNN's WINOGRAD takes half and single precision).
        """
        work = self.kernels.work
        fewest = np.minimum(self.channels, work.gemm_n)
        mask: Booleans = (work.tap_count == 9.0) & ~self.is_strided & (fewest >= WINOGRAD_CHANNELS)
        return mask & self.is_conv & ~self.on_tensor_cores & (self.kernels.item_bytes <= REGISTER_BYTES)

    @cached_property
    def sample_steps(self) -> Floats:
        """Passes over a sample that a batch norm's fixed grid makes."""
        sample = self.outputs / np.maximum(self.kernels.batch, 1.0)
        steps: Floats = np.clip(2.0 ** np.ceil(np.log2(sample)) / SAMPLE_STEP, 1.0, 16.0)
        return steps

    @cached_property
    def is_batch_norm(self) -> Booleans:
        """Kernels of batch norm; compiled code computes it as any other elementwise function."""
        return self.kernels.work.of_kind("batch_norm") & (self.kernels.runtime not in MERGING)

    @cached_property
    def is_attention(self) -> Booleans:
        """Operators of kernels that compute scores, softmax and weighted sum in one."""
        work, kernels = self.kernels.work, self.kernels
        has_softmax = kernels.per_kernel(np.where(work.of_kind("softmax"), 1.0, 0.0)) > 0.0
        products = kernels.per_kernel(np.where(work.of_kind("matmul"), 1.0, 0.0))
        mask: Booleans = kernels.per_operator(np.where(has_softmax & (products >= 2.0), 1.0, 0.0)) > 0.0
        return mask

    @cached_property
    def is_experts(self) -> Booleans:
        """Operators of kernels that compute both products of a mixture of experts."""
        grouped = np.where(self.kernels.work.of_operation("grouped_mm"), 1.0, 0.0)
        mask: Booleans = self.kernels.per_operator(self.kernels.per_kernel(grouped)) >= 2.0
        return mask

    @cached_property
    def is_in_step(self) -> Booleans:
        """Products of a recurrence, and those of a loop in which units share no weights: no kernel tiles them."""
        kernels = self.kernels
        shares_none = kernels.loops & (kernels.own_weight_bytes == 0.0) & kernels.work.of_kind("matmul")
        mask: Booleans = (kernels.work.step_count > 1.0) | (shares_none & kernels.work.has_macs)
        return mask

    @cached_property
    def is_native(self) -> Booleans:
        """Groups of a small power of two of channels, which one kernel on tensor cores computes."""
        is_power: Booleans = np.log2(np.maximum(self.channels, 1.0)) % 1.0 == 0.0
        return self.is_grouped & self.on_tensor_cores & is_power & (self.channels <= NATIVE_WIDTH)

    @cached_property
    def is_plain(self) -> Booleans:
        """Other groups of few channels, for which a library has no kernel on tensor cores."""
        return (
            self.is_grouped & ~self.is_native & self.on_tensor_cores & self.is_general & (self.channels <= PLAIN_WIDTH)
        )

    @cached_property
    def is_looped(self) -> Booleans:
        """Groups that a library takes as a product each."""
        return self.is_grouped & ~self.is_native & ~self.is_plain & self.is_general

    @cached_property
    def is_ragged(self) -> Booleans:
        """Groups whose channels do not fill whole lines, so that a library computes an address for each vector."""
        together = np.where(self.is_native, self.kernels.work.gemm_groups, 1.0)
        mask: Booleans = self.channels * together % WHOLE_CHANNELS != 0.0
        return mask & self.is_grouped & self.on_tensor_cores & self.is_general

    @cached_property
    def is_activation(self) -> Booleans:
        """Elementwise functions of several operations or a special one."""
        work = self.kernels.work
        many = work.elementwise_count >= ACTIVATION_OPERATIONS * self.outputs
        return work.of_kind("elementwise") & ((work.special_count > 0.0) | many)

    @cached_property
    def is_indexed(self) -> Booleans:
        """Movements, and elementwise operators that read one operand in full and another that is smaller."""
        work = self.kernels.work
        read = self.kernels.own_read_bytes / self.kernels.item_bytes / self.outputs
        broadcasts: Booleans = work.of_kind("elementwise") & (read > 1.0) & (read < 2.0)
        return broadcasts | work.of_kind("data_movement", "uncounted")

    @cached_property
    def outputs(self) -> Floats:
        """Elements written, at least 1."""
        return np.maximum(self.kernels.work.output_element_count, 1.0)

    @cached_property
    def reduced(self) -> Floats:
        """Elements read for each output."""
        read = (self.kernels.own_read_bytes - self.kernels.own_weight_bytes) / self.kernels.item_bytes
        return read / self.outputs

    @cached_property
    def is_row(self) -> Booleans:
        """Kernels of a thread block for each row: normalizations, and reductions of compiled code."""
        is_compiled = self.kernels.work.of_kind("reduction") & (self.kernels.runtime in MERGING)
        return self.kernels.work.of_kind("normalization") | (is_compiled & (self.reduced <= LONGEST_ROW))

    @cached_property
    def row(self) -> Floats:
        """Elements that one thread block normalizes or reduces."""
        padded = np.ceil(self.row_length / NORM_BLOCK) * NORM_BLOCK
        return np.where(self.kernels.work.of_kind("normalization"), padded, self.reduced)

    @cached_property
    def row_elements(self) -> Floats:
        """Those of all rows."""
        normalized = self.outputs / self.row_length * self.row
        return np.where(self.kernels.work.of_kind("normalization"), normalized, self.outputs * self.row)

    @cached_property
    def padded_rows(self) -> Floats:
        """Outputs if rows were of the next power of two, as a softmax kernel takes them."""
        length = np.maximum(self.kernels.work.row_length, 1.0)
        padded: Floats = self.kernels.work.output_element_count / length * 2.0 ** np.ceil(np.log2(length))
        return padded

    @cached_property
    def softmax_elements(self) -> Floats:
        """What a softmax of short rows computes; bytes alone bound one of long rows."""
        return np.where(self.kernels.work.row_length > LONG_ROW, 0.0, self.padded_rows)

    @cached_property
    def row_length(self) -> Floats:
        """Elements of what is normalized together: the length of a norm's weights and biases, or the last dimension."""
        each = np.where(self.kernels.work.of_operation("rms_norm"), 1.0, 2.0)
        weights = self.kernels.own_weight_bytes / self.kernels.item_bytes / each
        is_weighted = self.kernels.work.of_kind("normalization") & (weights > 0.0)
        return np.where(is_weighted, weights, np.maximum(self.kernels.work.row_length, 1.0))

    @cached_property
    def stride(self) -> Floats:
        """Positions of a window that the one before it did not load, along one dimension."""
        edge = np.sqrt(np.maximum(self.taps, 1.0))
        return np.minimum(edge, np.sqrt(np.maximum(self.reduced, 1.0)))

    @cached_property
    def loads(self) -> Floats:
        """Loads of a pooling window that its neighbour has not made."""
        return self.outputs * np.sqrt(np.maximum(self.taps, 1.0)) * self.stride


@frozen
class Sort:
    """A sort of kernel: a row of the table."""

    name: str
    applies: Callable[[Traits], Booleans]
    start: str = attrs.field(kw_only=True)
    """Of the coefficient `start_clocks`."""
    share: str = ""
    """Of the coefficient `peak_share`: what a product reaches of the peak; empty for what all reach."""
    amount: Callable[[Traits], Floats] | None = None
    slots: str = ""
    """Of the coefficient `issue_slots`: instructions of a thread for each of the amount."""
    alone: Callable[[Traits], Floats] | None = None
    """What of the amount one unit issues whatever others do, where anything."""
    chain: str = ""
    """Of the coefficient `chain_clocks`."""
    links: Callable[[Traits], Floats] | None = None
    """How many such chains one thread goes through, where not one."""
    traffic: str = ""
    """Of the coefficient `traffic_ratio`: how much longer than its bytes it takes."""


def _kind(*kinds: str) -> Callable[[Traits], Booleans]:
    return lambda traits: traits.kernels.work.of_kind(*kinds)


def _operation(*operations: str) -> Callable[[Traits], Booleans]:
    return lambda traits: traits.kernels.work.of_operation(*operations)


def _general(applies: Callable[[Traits], Booleans]) -> Callable[[Traits], Booleans]:
    """Return the same where a library computes an address for each element; an engine moves vectors."""
    return lambda traits: applies(traits) & traits.is_general


def _products(traits: Traits) -> Booleans:
    return traits.kernels.work.of_kind("matmul", "linear") & traits.kernels.work.has_macs


SORTS: Final = (
    Sort("attention", lambda t: t.is_attention & _products(t), start="product"),
    Sort("experts", lambda t: t.is_experts & _products(t), start="product"),
    Sort("recurrence", lambda t: t.is_in_step, start="product"),
    Sort("few_rows", lambda t: _products(t) & (t.rows <= FEW_ROWS) & ~t.on_tensor_cores, start="product"),
    Sort("product", _products, start="product"),
    Sort("patch", lambda t: t.is_image & t.is_patch, start="conv", share="patch"),
    Sort("image", lambda t: t.is_image, start="conv", share="narrow"),
    Sort("winograd", lambda t: t.is_winograd, start="conv", share="winograd"),
    Sort("conv", lambda t: t.is_conv & (t.taps > 1.0), start="conv"),
    Sort("pointwise", lambda t: t.is_conv, start="product"),
    Sort("native_groups", lambda t: t.is_native, start="conv"),
    Sort("wide_groups", lambda t: t.is_grouped & ~t.is_plain, start="conv"),
    Sort("plain_groups", lambda t: t.is_plain, start="conv", amount=lambda t: t.macs, slots="group", chain="group",
         links=lambda t: t.kernels.work.gemm_groups * t.kernels.work.gemm_k),
    Sort("depthwise", lambda t: t.is_depthwise, start="light", amount=lambda t: t.macs * t.stride, slots="depthwise"),
    Sort("max_pool", _general(_operation("max_pool", "adaptive_max_pool")), start="index", amount=lambda t: t.loads,
         slots="index", chain="pool"),
    Sort("average_pool", _general(_kind("pool")), start="index", amount=lambda t: t.outputs, slots="average"),
    Sort("softmax", _kind("softmax"), start="light", amount=lambda t: t.softmax_elements, slots="special"),
    Sort("normalization", lambda t: t.is_row, start="row", amount=lambda t: t.row_elements, slots="norm",
         alone=lambda t: t.row),
    Sort("narrow_batch_norm", lambda t: t.is_batch_norm & (t.width == "narrow"), start="batch_norm",
         traffic="batch_norm"),
    Sort("batch_norm", lambda t: t.is_batch_norm, start="index", chain="batch_norm",
         links=lambda t: t.sample_steps, traffic="batch_norm"),
    Sort("reduction", _kind("reduction"), start="reduction"),
    Sort("embedding", _general(_operation("embedding")), start="light", amount=lambda t: 2.0 * t.outputs,
         slots="index"),
    Sort("copy", _operation(*COPIES), start="light"),
    Sort("rotary", _operation("rotary"), start="light", amount=lambda t: t.outputs, slots="norm"),
    Sort("gated", _operation("gated"), start="light", amount=lambda t: t.outputs, slots="norm",
         alone=lambda t: t.row_length),
    Sort("indexed", _general(lambda t: t.is_indexed), start="index", amount=lambda t: t.outputs, slots="index"),
    Sort("activation", lambda t: t.is_activation, start="light", amount=lambda t: t.outputs, slots="special"),
    Sort("elementwise", lambda t: np.ones(t.kernels.work.operator_count, dtype=bool), start="light"),
)  # fmt: skip
"""All sorts; the last applies to everything."""


PRODUCTS: Final = frozenset(
    {"attention", "experts", "recurrence", "few_rows", "product", "patch", "image", "winograd", "conv", "pointwise"}
    | {"native_groups", "wide_groups"}
)
"""Sorts that multiply on tiles."""


@define(kw_only=True, eq=False)
class Sorted:
    """What the table says of each operator: seconds and shares, one row each."""

    start_s: Floats
    share: Floats
    """Of the peak; 0 where nothing is multiplied on tiles."""
    issue_s: Floats
    chain_s: Floats
    traffic_ratio: Floats


def look_up(traits: Traits, engine: Engine) -> Sorted:
    """Return what the table says of each operator on an engine."""

    def column(
        name: str, find: Callable[[Sort], str], elsewhere: float, *, only: frozenset[str] | None = None
    ) -> Floats:
        found = np.full(len(traits.index), elsewhere)
        for sort, mine in traits.members:
            qualifier = find(sort)
            if qualifier or (only is not None and sort.name in only):
                found[mine] = take(engine, mine).value(f"{name}.{qualifier}" if qualifier else name)
        return found

    slots = column("issue_slots", lambda sort: sort.slots, 0.0) / engine.slots_hz
    chain = column("chain_clocks", lambda sort: sort.chain, 0.0) / engine.clock_hz
    return Sorted(
        start_s=column("start_clocks", lambda sort: sort.start, 0.0) / engine.clock_hz,
        share=column("peak_share", lambda sort: sort.share, 0.0, only=PRODUCTS),
        issue_s=traits.amount * slots,
        chain_s=traits.links * chain + traits.alone * slots * engine.units,
        traffic_ratio=column("traffic_ratio", lambda sort: sort.traffic, 1.0),
    )


def read_again(traits: Traits, engine: Engine) -> Floats:
    """Return how much more a kernel moves that reads its rows again, where not all rows at work fit the last cache.

    A layer norm reads twice, a softmax of long rows three times; 1 for all else.
    """
    work, length = traits.kernels.work, traits.row_length
    is_long = work.of_kind("softmax") & (length > LONG_ROW)
    vectors = length / (VECTOR_BYTES / engine.item_bytes)
    block = np.maximum(2.0 ** np.ceil(np.log2(np.clip(vectors, 2.0, 1024.0) / 2.0)), 32.0)
    threads = engine.hardware.geometry["threads_per_unit"].value
    rows = np.minimum(engine.units * threads / np.where(is_long, block, NORM_THREADS), traits.outputs / length)
    held = find_last_level(engine.hardware).capacity.value * engine.value("again_share")
    missed = np.clip(rows * length * engine.item_bytes / held - 1.0, 0.0, 1.0)
    times = np.where(work.of_kind("normalization"), 1.0, np.where(is_long, 2.0, 0.0))
    more: Floats = 1.0 + times * missed / 2.0
    return more
