"""Traits of operators that select a class of GPU kernels, and the work that these kernels issue."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Self

import numpy as np

from joulemap.physics.architecture.gpu.device import REGISTER_BYTES, Engine
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.product import NVIDIA
from joulemap.physics.workload import Booleans, Floats
from joulemap.system.record import frozen

ACTIVATION_OPERATIONS: Final = 4.0
"""Minimum elementwise operations per output of an activation function."""

STEM_CHANNELS: Final = 8.0
"""Number of input channels below which a row is shorter than a wide load of a tensor core, as in images."""

NATIVE_WIDTH: Final = 32.0
"""Maximum channels per group, if a power of two, for which one tensor core kernel computes all groups."""

WHOLE_CHANNELS: Final = 64.0
"""Adjacent channels that tensor cores take together: a line of 128 bytes at half precision."""

PLAIN_WIDTH: Final = 48.0
"""Maximum channels of a group for which a library uses vector lanes instead of tensor cores, if their number is not a
power of two."""

WINOGRAD_CHANNELS: Final = 64.0
"""Minimum channels, input and output, for which a library uses Winograd's algorithm.

Source: names of the kernels that cuDNN chose for 1,287 convolutions of 3 x 3 on A100, V100 and P100 (NeuSight, commit
6945927d9a). Winograd's share was 60 % below 32 channels, 82 % from 32 to 63, 95 % from 64 to 127 and 90 % above. From
64 channels on, nearly all are Winograd's."""

SAMPLE_STEP: Final = 2.0**17
"""Elements of a sample that a batch norm processes in one pass of its grid."""

ROW_ELEMENTS: Final = 48.0
"""Fixed work of a warp per softmax row, in elements: its maximum, sum and bounds.

Source: one H200 (torch 2.11, CUDA 13.0), thread instructions per element of a row padded to a power of two: 67 to
111 for rows of 49 inside swin_t and maxvit_t, about 40 for rows of 197 and of 1,024."""

LONG_ROW: Final = 1024.0
"""Elements of a row above which a softmax does not keep the row in registers."""

NORM_BLOCK: Final = 512.0
"""Elements of a row that the threads of a layer norm's block process at a time, four each."""

NORM_ROW: Final = 780.0
"""Fixed work of a layer norm's block per row, in elements: its start, and the sum over its threads' results. Source:
fp32 layer norms of rows of 1,024 to 12,288 on an A100 PCIe 40 GB (NeuSight, commit 6945927d9a) and of 768 on one H200.
Errors on held-out V100, P100 and MI100: 4.4, 7.5 and 7.4 %; with rows padded to whole NORM_BLOCKs, 6.3, 14.2 and 4.8
%."""

NORM_THREADS: Final = 128.0
"""Threads of a layer norm's block. Source: aten/src/ATen/native/cuda/layer_norm_kernel.cu, rowwise moments of
vectorized rows."""

SUM_THREADS: Final = 512.0
"""Threads per block of a reduction. This and the next four constants are from PyTorch, ATen/native/cuda/Reduce.cuh,
setReduceConfig (recalled); times of 104 poolings inside 14 models on one H200 follow its steps."""

SUM_VECTOR: Final = 4.0
"""Loads in flight per thread of a reduction; also the outputs per thread if the reduced dimension is strided."""

SUM_WARP: Final = 32.0
"""Minimum width of a reduction's block in threads, unless it has fewer outputs or elements."""

SUM_FEW: Final = 16.0
"""Elements per thread below which the block or grid is not divided further."""

SUM_MANY: Final = 256.0
"""Elements per thread from which several blocks share one output."""

SUM_MEETING: Final = 12.0
"""Steps in which blocks of one output meet: a fence, an atomic count and two barriers. Source: 8 poolings of 3,136 and
12,544 elements on one H200, in steps of `chain_clocks.sum`."""

UNROLLED: Final = 25.0
"""Maximum positions of a pooling window that a compiler's kernel adds up one after another. Source: PyTorch,
torch/_inductor/lowering.py, avg_pool2d (recalled)."""

LONGEST_ROW: Final = 2.0**15
"""Maximum elements that one thread block reduces; several blocks share a longer row and combine in a second phase."""

STRIDED: Final = 1.9
"""Input positions per output position above which a convolution counts as strided."""


@frozen(kw_only=True, eq=False, slots=False)
class Traits:
    """Traits of operators that select a kernel class, and the work they issue; one row each."""

    kernels: KernelColumns
    on_tensor_cores: Booleans
    """True if the operator's engine uses tensor cores, even if the operator does not multiply."""
    width: str
    """Element width of the engine, `wide` or `narrow`, as in `Engine.width`."""
    has_cudnn: bool
    """True if cuDNN, whose kernels of grouped convolutions were measured, computes convolutions. Source: ten models on
    one H200; 19 more on one RTX 4090, held out. Elsewhere, no width of a group is assumed to have a slower kernel."""

    @classmethod
    def of(cls, kernels: KernelColumns, engine: Engine) -> Self:
        """Return the traits of the kernels on an engine, cached for all engines of the same mode and width."""
        has_cudnn = engine.hardware.vendor == NVIDIA and not kernels.runtime.is_built
        key = (engine.mode, engine.width, str(has_cudnn), *(part.mode for _, part in engine.parts))
        traits = kernels.memo.get(key)
        if not isinstance(traits, cls):
            on_tensor_cores = np.zeros(kernels.work.operator_count, dtype=bool)
            for mine, part in engine.split(np.arange(kernels.work.operator_count)):
                on_tensor_cores[mine] = part.mode == "tensor"
            traits = kernels.memo[key] = cls(
                kernels=kernels, on_tensor_cores=on_tensor_cores, width=engine.width, has_cudnn=has_cudnn
            )
        return traits

    def is_packed(self, kernel: str) -> Booleans:
        """Return a mask of the GEMMs whose quantized weights this kernel dequantizes in registers."""
        stored = self.kernels.stored_share
        is_stored = (stored < 1.0).reshape(-1, stored.shape[-1]).any(axis=0)  # reads of a loop differ between points
        mask: Booleans = self.kernels.work.has_word(kernel) & is_stored & self.on_tensor_cores
        return mask

    @property
    def macs(self) -> Floats:
        """MACs of each operator, excluding padding."""
        return self.kernels.work.mac_count

    @property
    def taps(self) -> Floats:
        """Positions in a convolution or pooling window."""
        return self.kernels.work.tap_count

    @property
    def rows(self) -> Floats:
        """Rows of a GEMM's result."""
        return self.kernels.work.gemm_m

    @property
    def channels(self) -> Floats:
        """Input channels per group of a convolution."""
        return self.kernels.work.channels

    @cached_property
    def positions(self) -> Floats:
        """Input positions of a convolution, over all samples."""
        work = self.kernels.work
        elements = (self.kernels.own_read_bytes - self.kernels.own_weight_bytes) / self.kernels.item_bytes
        return elements / np.maximum(self.channels * np.maximum(work.gemm_groups, 1.0), 1.0)

    @cached_property
    def is_strided(self) -> Booleans:
        """True for convolutions that skip input positions."""
        mask: Booleans = self.positions > STRIDED * self.kernels.work.gemm_m
        return mask

    @cached_property
    def is_conv(self) -> Booleans:
        """True for convolutions that are neither grouped nor depthwise."""
        return self.kernels.work.of_kind("conv") & self.kernels.work.has_macs

    @cached_property
    def is_grouped(self) -> Booleans:
        """True for convolutions over groups of several channels."""
        return self.kernels.work.of_kind("grouped_conv") & self.kernels.work.has_macs

    @cached_property
    def is_depthwise(self) -> Booleans:
        """True for depthwise convolutions."""
        return self.kernels.work.of_kind("depthwise_conv")

    @cached_property
    def is_general(self) -> Booleans:
        """True if library kernels serve any shape, false if an engine builds a kernel per shape; the same for all
        operators.
        """
        return np.full(self.kernels.work.operator_count, not self.kernels.runtime.is_built)

    @cached_property
    def is_image(self) -> Booleans:
        """True for multi-tap convolutions on tensor cores with few input channels, as in images, which a library does
        not pack.
        """
        is_stem = self.is_conv & (self.kernels.work.window > 1.0) & (self.channels < STEM_CHANNELS)
        return is_stem & self.on_tensor_cores & self.is_general

    @cached_property
    def is_patch(self) -> Booleans:
        """True for convolutions whose windows do not overlap."""
        mask: Booleans = self.positions >= 0.99 * self.kernels.work.gemm_m * self.taps
        return mask

    @cached_property
    def is_winograd(self) -> Booleans:
        """True for 3 x 3 convolutions of stride 1 with enough channels for Winograd's algorithm to pay off.

        No library has it at fp64 (cuDNN's WINOGRAD takes half and single precision).
        """
        work = self.kernels.work
        fewest = np.minimum(self.channels, work.gemm_n)
        mask: Booleans = (work.window == 9.0) & ~self.is_strided & (fewest >= WINOGRAD_CHANNELS)
        return mask & self.is_conv & ~self.on_tensor_cores & (self.kernels.item_bytes <= REGISTER_BYTES)

    @cached_property
    def sample_steps(self) -> Floats:
        """Number of passes in which a batch norm's grid of fixed size covers a sample."""
        sample = self.outputs / np.maximum(self.kernels.batch, 1.0)
        steps: Floats = np.clip(2.0 ** np.ceil(np.log2(sample)) / SAMPLE_STEP, 1.0, 16.0)
        return steps

    @cached_property
    def is_batch_norm(self) -> Booleans:
        """True for batch norm kernels; compiled code computes batch norm as an elementwise function."""
        return self.kernels.work.of_kind("batch_norm") & (not self.kernels.runtime.merges)

    @cached_property
    def is_attention(self) -> Booleans:
        """True for operators of kernels that fuse scores, softmax and weighted sum."""
        work, kernels = self.kernels.work, self.kernels
        has_softmax = kernels.per_kernel(np.where(work.of_kind("softmax"), 1.0, 0.0)) > 0.0
        products = kernels.per_kernel(np.where(work.of_kind("matmul"), 1.0, 0.0))
        mask: Booleans = kernels.per_operator(np.where(has_softmax & (products >= 2.0), 1.0, 0.0)) > 0.0
        return mask

    @cached_property
    def is_in_step(self) -> Booleans:
        """True for GEMMs of a recurrence, and for GEMMs of a loop that read no weights. No kernel tiles these GEMMs."""
        kernels = self.kernels
        shares_none = kernels.loops & (kernels.own_weight_bytes == 0.0) & kernels.work.of_kind("matmul")
        mask: Booleans = ((kernels.work.step_count > 1.0) | shares_none) & kernels.work.has_macs
        return mask

    @cached_property
    def is_native(self) -> Booleans:
        """True for grouped convolutions that one tensor core kernel computes: a group's channels are a small power of
        two.
        """
        is_power: Booleans = np.log2(np.maximum(self.channels, 1.0)) % 1.0 == 0.0
        return self.is_grouped & self.on_tensor_cores & is_power & (self.channels <= NATIVE_WIDTH)

    @cached_property
    def is_plain(self) -> Booleans:
        """True for grouped convolutions that are not `is_native` and have few channels per group. cuDNN has no tensor
        core kernel for them.
        """
        is_narrow = self.channels <= PLAIN_WIDTH
        return self.is_grouped & ~self.is_native & self.on_tensor_cores & self.has_cudnn & is_narrow

    @cached_property
    def is_looped(self) -> Booleans:
        """True for grouped convolutions that cuDNN computes as one GEMM per group."""
        return self.is_grouped & ~self.is_native & ~self.is_plain & self.has_cudnn

    @cached_property
    def is_ragged(self) -> Booleans:
        """True for grouped convolutions whose channels do not fill whole lines. cuDNN computes an address per
        vector there.
        """
        together = np.where(self.is_native, self.kernels.work.gemm_groups, 1.0)
        mask: Booleans = self.channels * together % WHOLE_CHANNELS != 0.0
        return mask & self.is_grouped & self.on_tensor_cores & self.has_cudnn

    @cached_property
    def is_activation(self) -> Booleans:
        """True for elementwise operators with a special function or several operations per output.

        The first operator of a kernel of elementwise operators stands for all, however a person divided the formula.
        """
        kernels, work = self.kernels, self.kernels.work
        points = work.of_kind("elementwise")
        alone = points & (kernels.per_operator(kernels.per_kernel(np.where(points, 0.0, 1.0))) == 0.0)
        simple, special = (
            np.where(alone, kernels.per_operator(kernels.per_kernel(one)), one)
            for one in (work.elementwise_count, work.special_count)
        )
        busy = (special > 0.0) | (simple >= ACTIVATION_OPERATIONS * self.outputs)
        mask: Booleans = points & busy & (kernels.leads | ~alone)
        return mask

    @cached_property
    def is_indexed(self) -> Booleans:
        """True for data movement, and for elementwise operators that broadcast a smaller operand."""
        work = self.kernels.work
        read = self.kernels.own_read_bytes / self.kernels.carried_bytes / self.outputs
        broadcasts: Booleans = work.of_kind("elementwise") & (read > 1.0) & (read < 2.0)
        return broadcasts | work.of_kind("data_movement", "uncounted")

    @cached_property
    def outputs(self) -> Floats:
        """Elements written, at least 1."""
        return np.maximum(self.kernels.work.output_element_count, 1.0)

    @cached_property
    def reduced(self) -> Floats:
        """Elements read per output."""
        read = (self.kernels.own_read_bytes - self.kernels.own_weight_bytes) / self.kernels.carried_bytes
        return read / self.outputs

    @cached_property
    def is_row(self) -> Booleans:
        """True for kernels with one thread block per row: normalizations, and reductions of compiled code."""
        selects = self.kernels.work.of_operation("sort", "nms", "scan")  # compilers leave these to a library
        sums = self.kernels.work.of_kind("reduction") | self.is_long_pool
        is_compiled = sums & self.kernels.runtime.merges & ~selects
        return self.kernels.work.of_kind("normalization") | (is_compiled & (self.reduced <= LONGEST_ROW))

    @cached_property
    def is_long_sort(self) -> Booleans:
        """True for sorts and selections of rows that a thread block does not keep."""
        read = self.kernels.own_read_bytes / self.kernels.carried_bytes
        mask: Booleans = read > LONG_ROW * np.maximum(self.kernels.work.gemm_groups, 1.0)
        return mask

    @cached_property
    def sum_steps(self) -> Floats:
        """Number of dependent steps of one thread of a reduction, each a load of several elements, until all blocks
        have met.

        Pooling reduces positions, whose stride is that of all channels: threads lie side by side along the outputs.
        Other reductions sum neighbouring elements, over which the threads of a block are spread first.
        """
        elements, outputs = np.maximum(self.reduced, 1.0), self.outputs
        strided = self.kernels.work.of_operation("adaptive_avg_pool", "avg_pool")
        alone = (outputs == 1.0) & (elements > 4.0 * SUM_WARP)
        across = np.where(strided, outputs / SUM_VECTOR, np.where(alone, elements / SUM_VECTOR, elements))
        along = _floor_power(np.where(strided, elements, outputs))
        threads = np.where(strided, SUM_THREADS / SUM_VECTOR, SUM_THREADS)
        height = np.minimum(along, threads / np.minimum(_floor_power(across), SUM_WARP))
        width = np.minimum(_floor_power(across), threads / height)
        each = np.where(strided, elements, np.ceil(elements / width))
        divides = each >= np.minimum(SUM_FEW * height, SUM_MANY)
        each = np.where(divides, each / height, each)
        blocks = np.where(divides & (each >= SUM_MANY), np.ceil(each / SUM_FEW), 1.0)
        meeting = np.where(blocks > 1.0, np.ceil(blocks / np.where(strided, height, threads)) + SUM_MEETING, 0.0)
        steps: Floats = np.ceil(np.ceil(each / blocks) / SUM_VECTOR) + meeting
        return steps

    @cached_property
    def row(self) -> Floats:
        """Elements that one thread block normalizes or reduces, with its fixed work or padding."""
        padded = np.ceil(self.row_length / NORM_BLOCK) * NORM_BLOCK
        normalized = np.where(self.is_layer_norm, self.row_length + NORM_ROW, padded)
        return np.where(self.kernels.work.of_kind("normalization"), normalized, self.reduced)

    @cached_property
    def is_long_pool(self) -> Booleans:
        """True for mean pooling of long windows that do not overlap, which is a sum over each."""
        return self.kernels.work.of_operation("avg_pool") & (self.taps > UNROLLED) & (self.reduced > 0.9 * self.taps)

    @property
    def is_layer_norm(self) -> Booleans:
        """True for layer norms, whose kernel processes several elements of a row at once."""
        return self.kernels.work.of_operation("layer_norm")

    @cached_property
    def row_elements(self) -> Floats:
        """Elements of all rows that thread blocks normalize or reduce."""
        normalized = self.outputs / self.row_length * self.row
        return np.where(self.kernels.work.of_kind("normalization"), normalized, self.outputs * self.row)

    @cached_property
    def padded_rows(self) -> Floats:
        """Outputs if each row is padded to the next power of two, as a softmax kernel processes it."""
        length = np.maximum(self.kernels.work.row_length, 1.0)
        padded: Floats = self.kernels.work.output_element_count / length * 2.0 ** np.ceil(np.log2(length))
        return padded

    @cached_property
    def softmax_elements(self) -> Floats:
        """Elements that a softmax of short rows computes, plus ROW_ELEMENTS per row; 0 for long rows, which bytes
        bound.
        """
        rows = self.kernels.work.output_element_count / np.maximum(self.kernels.work.row_length, 1.0)
        return np.where(self.kernels.work.row_length > LONG_ROW, 0.0, self.padded_rows + ROW_ELEMENTS * rows)

    @cached_property
    def row_length(self) -> Floats:
        """Elements that one thread block normalizes: the length of a norm's weights and biases, or the last dimension;
        for a group or an instance norm, whose weights are those of channels, a group of a sample or a part of one.
        """
        work = self.kernels.work
        each = np.where(self.kernels.work.of_operation("rms_norm"), 1.0, 2.0)
        weights = self.kernels.own_weight_bytes / self.kernels.carried_bytes / each
        is_weighted = work.of_kind("normalization") & (weights > 0.0)
        length = np.where(is_weighted, weights, np.maximum(work.row_length, 1.0))
        groups = np.maximum(work.special_count, 1.0)  # one inverse root each
        grouped = np.clip(work.output_element_count / groups, 1.0, LONGEST_ROW)
        return np.where(work.of_operation("group_norm", "instance_norm"), grouped, length)

    @cached_property
    def stride(self) -> Floats:
        """Positions of a window that the previous window did not load, along one dimension."""
        edge = np.sqrt(np.maximum(self.taps, 1.0))
        return np.minimum(edge, np.sqrt(np.maximum(self.reduced, 1.0)))

    @cached_property
    def loads(self) -> Floats:
        """Loads of pooling windows that no neighbouring window has made."""
        return self.outputs * np.sqrt(np.maximum(self.taps, 1.0)) * self.stride


def _floor_power(value: Floats) -> Floats:
    """Return the largest power of two that is at most each value, at least 1."""
    return np.asarray(2.0 ** np.floor(np.log2(np.maximum(value, 1.0))))
