"""Formulas of pooling, reductions, sorting and interpolation, which read a neighbourhood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from joulemap.trace.formula.registry import Call, Cost, Formula, formula, write_scalars


@formula("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> Cost:
    """One comparison per tap and output."""
    kernel = call.value(1, "kernel_size")
    dimensions = max(len(call.output_shape) - 2, 1)
    taps = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** dimensions
    return Cost(
        kind="pool", operation="max_pool", elementwise_count=taps * call.output_count, tap_count=taps,
        scalars=write_scalars(kernel=list(kernel), stride=call.value(2, "stride", [])),
    )  # fmt: skip


@formula("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(call: Call) -> Cost:
    """One comparison per tap and output."""
    kernel = call.value(1, "kernel_size")
    dimensions = len(call.value(2, "output_size"))
    taps = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** dimensions
    return Cost(
        kind="pool", operation="fractional_max_pool", elementwise_count=taps * call.output_count, tap_count=taps,
        scalars=write_scalars(kernel=list(kernel)),
    )  # fmt: skip


@formula("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Cost:
    """One addition per tap and output, one multiplication per output."""
    kernel = call.value(1, "kernel_size")
    dimensions = max(len(call.output_shape) - 2, 1)
    taps = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** dimensions
    return Cost(
        kind="pool", operation="avg_pool", elementwise_count=(taps + 1) * call.output_count, tap_count=taps,
        scalars=write_scalars(kernel=list(kernel), stride=call.value(2, "stride", [])),
    )  # fmt: skip


@formula(
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
)
def adaptive_avg_pool(call: Call) -> Cost:
    """One addition per input (again for each further window that contains it), one multiplication per output."""
    window = max(-(-call.input_count // max(call.output_count, 1)), 1)
    return Cost(
        kind="reduction" if call.output_count * 4 <= call.input_count else "pool",
        operation="adaptive_avg_pool",
        elementwise_count=max(call.input_count, call.output_count) + call.output_count,
        tap_count=window,
    )


@formula("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call) -> Cost:
    """One comparison per input; the window is the part of the input that an output sees."""
    window = max(-(-call.input_count // max(call.output_count, 1)), 1)
    return Cost(kind="pool", operation="adaptive_max_pool", elementwise_count=call.input_count, tap_count=window)


@formula(
    "sum",
    "mean",
    "max",
    "min",
    "amax",
    "amin",
    "prod",
    "any",
    "_is_any_true",
    "_is_all_true",
    "all",
    "argmax",
    "argmin",
    "nansum",
    "aminmax",
    "count_nonzero",
    "trace",
)
def reduction(call: Call) -> Cost:
    """One operation per input element; one multiplication per output for a mean."""
    return Cost(kind="reduction", operation="reduce", elementwise_count=call.input_count + call.output_count)


def _rows(shape: Sequence[int], dimension: int) -> tuple[int, int]:
    """Return (number of rows along a dimension, elements of a row) of a tensor."""
    length = max(shape[dimension], 1) if shape else 1
    return max(math.prod(shape) // length, 1), length


@formula("cumsum", "cumprod", "cummax", "cummin")
def cumulate(call: Call) -> Cost:
    """One operation per input element, each with the result of the one before it in its row."""
    rows, _ = _rows(call.shape(0), call.value(1, "dim", -1))
    return Cost(kind="reduction", operation="cumsum", elementwise_count=call.input_count, gemm=(0, 0, 0, rows))


@formula("logcumsumexp")
def logcumsumexp(call: Call) -> Cost:
    """A comparison, a subtraction, an addition, an exponential and a logarithm per input element, each after the one
    before it in its row.
    """
    rows, _ = _rows(call.shape(0), call.value(1, "dim", -1))
    count = call.input_count
    return Cost(
        kind="reduction",
        operation="cumsum",
        elementwise_count=3 * count,
        special_count=2 * count,
        gemm=(0, 0, 0, rows),
    )


@formula("logsumexp")
def logsumexp(call: Call) -> Cost:
    """Maximum, subtraction, exp and sum of each input, one logarithm per output."""
    return Cost(
        kind="reduction",
        operation="logsumexp",
        elementwise_count=3 * call.input_count,
        special_count=call.input_count + call.output_count,
    )


@formula("var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm")
def moment(call: Call) -> Cost:
    """Two passes: subtraction, multiplication and two additions per input element."""
    return Cost(kind="reduction", operation="moment", elementwise_count=4 * call.input_count)


FEW_POINTS: Final = 25
"""Maximum points on each side between which ATen computes Euclidean distances pair by pair. Source:
aten/src/ATen/native/Distance.cpp, `cdist_impl`.
"""


@formula("_euclidean_dist")
def euclidean_distance(call: Call) -> Cost:
    """GEMM of the points, each with its squared norm and a one appended, then a clamp and a root per pair.

    Before it, the points of the first argument are squared, added up and multiplied by -2, those of the second squared
    and added up. Source: aten/src/ATen/native/Distance.cpp, `_euclidean_dist`.
    """
    (*_, rows, features), columns, pairs = call.shape(0), call.shape(1)[-2], call.output_count
    return Cost(
        kind="matmul",
        operation="cdist",
        mac_count=pairs * (features + 2),
        elementwise_count=3 * call.input_count + 2 * math.prod(call.shape(1)) + pairs,
        special_count=pairs,
        gemm=(rows, columns, features + 2, pairs // max(rows * columns, 1)),
    )


@formula("_cdist_forward", "_pdist_forward")
def distance(call: Call) -> Cost:
    """Subtraction, multiplication and addition for each feature of each pair, one root per pair.

    Euclidean distances are those of `euclidean_distance` if the call requires a GEMM (mode 1), or allows one (mode 0)
    and either side has more than `FEW_POINTS`.
    """
    pairs = call.output_count
    norm, mode = call.value(2, "p", 2.0), call.value(3, "compute_mode")
    allows_product = mode == 1 or (not mode and max(call.output_shape[-2:], default=0) > FEW_POINTS)
    if norm == 2.0 and allows_product and len(call.output_shape) > 1:
        return euclidean_distance(call)
    return Cost(
        kind="reduction",
        operation="cdist",
        elementwise_count=3 * pairs * call.shape(0)[-1],
        special_count=pairs,
    )


@formula("_embedding_bag", "embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: Call) -> Cost:
    """One addition or comparison for each element of each row that is read."""
    elements = math.prod(call.shape(1)) * call.shape(0)[-1]
    return Cost(
        kind="reduction", operation="embedding_bag", elementwise_count=elements, gathers=True, gathered_count=elements
    )


QUICKSELECT: Final = 2.0 * (1.0 + math.log(2.0))
"""Comparisons per element to find the median of a long row by partitioning. Source: D. E. Knuth, The Art of Computer
Programming 3, section 5.2.2, exercise 32 (recalled)."""

HEAP_SHARE: Final = 64
"""Row length per result from which ATen selects the largest elements with a heap instead of a partition. Source:
aten/src/ATen/native/TopKImpl.h, `use_partial_sort`."""


def _sorted(rows: int, comparisons: float) -> Cost:
    """Return the cost of sorting or selecting in independent rows, given the comparisons in each row."""
    return Cost(
        kind="reduction",
        operation="sort",
        elementwise_count=math.ceil(rows * comparisons),
        gemm=(0, 0, 0, rows),
    )


def sort_rows(rows: int, length: int) -> Cost:
    """Return the cost of sorting rows of a length: n log2 n comparisons each."""
    return _sorted(rows, length * math.log2(max(length, 2)))


def _sorting(position: int) -> Formula:
    """Return the formula of a sort; its argument at `position` is the dimension, by default the last."""

    def cost(call: Call) -> Cost:
        return sort_rows(*_rows(call.shape(0), call.value(position, "dim", -1)))

    return cost


formula("sort", "argsort")(_sorting(1))
formula("coalesce")(_sorting(3))


@formula("topk")
def top(call: Call) -> Cost:
    """A comparison per element and a sort of the k results; a partition first where k exceeds 1 / 64 of a row."""
    rows, length = _rows(call.shape(0), call.value(2, "dim", -1))
    most = _first_number(call.value(1, "k", 1), length)
    passes = 1.0 if most * HEAP_SHARE <= length else QUICKSELECT
    return _sorted(rows, passes * length + most * math.log2(max(most, 2)))


def _first_number(value: Any, otherwise: int) -> int:
    """Return a number that a call or a file's constant states; `otherwise` if it is unknown."""
    found = value[0] if isinstance(value, (list, tuple)) and value else value
    return int(found) if isinstance(found, (int, float)) else otherwise


def _selecting(position: int) -> Formula:
    """Return the formula of a selection of one element of each row; its argument at `position` is the dimension.

    Without a dimension, the whole tensor is one row.
    """

    def cost(call: Call) -> Cost:
        dimension = call.value(position, "dim")
        rows, length = (1, call.input_count) if dimension is None else _rows(call.shape(0), dimension)
        return _sorted(rows, QUICKSELECT * length)

    return cost


formula("median")(_selecting(1))


@formula("kthvalue")
def kth(call: Call) -> Cost:
    """Comparisons of a selection by partitioning in each row."""
    rows, length = _rows(call.shape(0), call.value(2, "dim", -1))
    return _sorted(rows, QUICKSELECT * length)


_INTERPOLATION: Final = {"nearest": 0, "linear": 3, "bilinear": 7, "trilinear": 15, "bicubic": 31}
"""Multiplications and additions per output: 2 n - 1 for a weighted sum of its n taps (bicubic: 16)."""


def _upsample(mode: str, per_element: int) -> Formula:
    def cost(call: Call) -> Cost:
        return Cost(
            kind="elementwise" if per_element else "data_movement",
            operation=f"upsample_{mode}",
            elementwise_count=per_element * call.output_count,
        )

    return cost


formula("upsample_nearest_exact1d", "upsample_nearest_exact2d", "upsample_nearest_exact3d")(_upsample("nearest", 0))
formula("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")(_upsample("nearest", 0))
for _mode, _operations in _INTERPOLATION.items():
    for _suffix in ("1d", "2d", "3d"):
        formula(f"upsample_{_mode}{_suffix}", f"_upsample_{_mode}{_suffix}_aa")(_upsample(_mode, _operations))


_GRID: Final = {("bilinear", 2): 15, ("bilinear", 3): 31, ("bicubic", 2): 71}
"""(mode, dimensions) -> operations per output: 2 n - 1 for a weighted sum of n taps, and the operations for the
weights. Linear modes derive weights from the coordinates (8 or 16); bicubic evaluates four cubics of 5 along two axes.
"""


@formula("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sample(call: Call) -> Cost:
    """Weights from the coordinates and a weighted sum of the taps; the nearest tap is only moved."""
    mode = ("bilinear", "nearest", "bicubic")[int(call.value(2, "interpolation_mode", 0))]
    per_output = _GRID.get((mode, len(call.output_shape) - 2), 0)
    return Cost(
        kind="elementwise" if per_output else "data_movement",
        operation="grid_sample",
        elementwise_count=per_output * call.output_count,
    )


@formula("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool")
def roi_align(call: Call) -> Cost:
    """Bilinear samples averaged: seven operations and one addition for each sample, by default four to an output.

    Source: torchvision's kernels take sampling_ratio^2 samples, or the size of a bin if the ratio is not positive; two
    by two is assumed for the latter.
    """
    ratio = call.value(5, "sampling_ratio", 0)
    samples = ratio * ratio if isinstance(ratio, int) and ratio > 0 else 4
    return Cost(
        kind="pool",
        operation="roi_align",
        elementwise_count=8 * samples * call.output_count,
        tap_count=4 * samples,
        gathers=True,
    )


PAIR: Final = 13
"""Operations that compare a box with a better one: four bounds, an intersection, a union, a ratio and a comparison."""


CANDIDATES: Final = 1000
"""Boxes of an image that pass a score threshold and reach non-maximum suppression, if there are as many.

Assumed, between a third and three times as many. Faster R-CNN has 10,000 to 30,000 for the 1,200 classes of LVIS
(pytorch/vision pull request 4990), in proportion 700 to 2,000 for 80 classes. Above 1,000 boxes, `batched_nms` of
torchvision on a CPU suppresses class by class, which costs less than one call of 1,000.
"""

BOXES_PER_SURVIVOR: Final = 3
"""Boxes that reach non-maximum suppression per box that survives it.

Source: S. Ren et al., Faster R-CNN (2015), section 3.3: of about 6,000 proposals per image about 2,000 are left.
"""


@formula("nms")
def nms(call: Call) -> Cost:
    """`PAIR` operations to compare each surviving box with every box of a lower score; a step per survivor.

    Steps depend on each other: whether a box survives is known after all better boxes. One box in `BOXES_PER_SURVIVOR`
    survives, at even distances. A file's operator states a maximum as its fourth argument, after which no box is
    compared. Boxes with a leading dimension are suppressed for each image and class, one after another. The fifth
    argument is the number of boxes of an image that pass a score threshold, by default all.
    """
    *images, count, _ = call.shape(0)
    sequences, classes = (math.prod(call.shape(1)[:-1]), call.shape(1)[-2]) if images else (1, 1)
    count = min(count, math.ceil(call.value(4, "candidates", count * classes) / max(classes, 1)))
    kept = max(min(_first_number(call.value(3, "max_output_size"), count), math.ceil(count / BOXES_PER_SURVIVOR)), 0)
    compared = min(kept * BOXES_PER_SURVIVOR, count)
    pairs = sequences * (kept * count - kept * (compared + 1) // 2)
    return Cost(
        kind="reduction",
        operation="nms",
        elementwise_count=PAIR * pairs,
        step_count=max(sequences * kept, 1),
    )


@formula(
    "to_sparse",
    "masked_select",
    "bincount",
    "unique_consecutive",
    "segment_reduce",
    "_unsafe_masked_index_put_accumulate",
)
def scan(call: Call) -> Cost:
    """One comparison per input."""
    return Cost(kind="reduction", operation="scan", elementwise_count=call.input_count, gemm=(0, 0, 0, 1))


GRAIN: Final = 32768
"""Elements of a task into which ATen cuts a loop for its threads. Source: aten/src/ATen/TensorIterator.h (recalled)."""


@formula("nonzero", "nonzero_static")
def nonzero(call: Call) -> Cost:
    """One comparison per input; threads take `GRAIN` elements each."""
    tasks = max(math.ceil(call.input_count / GRAIN), 1)
    return Cost(kind="reduction", operation="scan", elementwise_count=call.input_count, gemm=(0, 0, 0, tasks))


@formula("_unique2", "unique_dim")
def unique(call: Call) -> Cost:
    """Comparisons of a sort of all elements, and one more per element."""
    count = call.input_count
    comparisons = math.ceil(count * math.log2(max(count, 2))) + count
    return Cost(kind="reduction", operation="scan", elementwise_count=comparisons, gemm=(0, 0, 0, 1))


def _searching(values: int, boundaries: int) -> Formula:
    """Return the formula of a binary search for each value; the arguments are positions in the call."""

    def cost(call: Call) -> Cost:
        sought = call.value(values, "self" if values == 0 else "input")
        count = math.prod(sought.shape) if hasattr(sought, "shape") else 1
        length = call.shape(boundaries)[-1] if call.shape(boundaries) else 1
        comparisons = count * math.ceil(math.log2(max(length, 2)))
        tasks = max(math.ceil(count / SEARCH_GRAIN), 1)
        return Cost(kind="reduction", operation="scan", elementwise_count=comparisons, gemm=(0, 0, 0, tasks))

    return cost


SEARCH_GRAIN: Final = 200
"""Values that a thread searches for at a time. Source: aten/src/ATen/native/BucketizationUtils.h (recalled)."""

formula("searchsorted")(_searching(1, 0))
formula("bucketize")(_searching(0, 1))
