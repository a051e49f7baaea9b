"""Formulas of operators that move data and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from joulemap.trace.formula.registry import Call, Cost, formula


def _movement(names: Sequence[str], *, gathers: bool = False) -> None:
    for name in names:
        label = name.strip("_")

        def cost(_call: Call, label: str = label) -> Cost:
            return Cost(kind="data_movement", operation=label, gathers=gathers)

        formula(name)(cost)


_movement(["stack", "pad", "constant_pad_nd", "reflection_pad2d", "replication_pad2d", "roll", "flip"])
_movement(["clone", "contiguous", "copy_", "_to_copy", "to", "type_as", "reshape", "_unsafe_view", "repeat"])
_movement(["channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "im2col", "repeat_interleave", "tril"])
_movement(
    [
        "triu",
        "fill_",
        "fill",
        "zero_",
        "masked_scatter",
        "scatter",
        "scatter_",
        "index_put_",
        "index_fill_",
        "index_put",
    ]
)
_movement(["dropout", "dropout_", "feature_dropout", "feature_dropout_", "unbind", "split", "chunk", "lift_fresh"])
_movement(["arange", "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"])
_movement(["new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor", "linspace", "eye", "one_hot"])
_movement(
    [
        "empty_strided",
        "new_empty_strided",
        "meshgrid",
        "complex",
        "view_as_real",
        "as_strided",
        "slice_scatter",
    ]
)
_movement(["rot90", "diag_embed", "block_diag", "index_fill", "index_copy", "max_unpool2d", "max_unpool3d"])
_movement([f"{name}_copy" for name in ("alias", "as_strided", "diagonal", "expand", "narrow", "permute", "squeeze")])
_movement([f"{name}_copy" for name in ("split", "split_with_sizes", "t", "transpose", "unbind", "unfold", "unsqueeze")])
_movement([f"{name}_copy" for name in ("select", "slice", "view", "detach")])
_movement(["as_strided_scatter", "diagonal_scatter", "select_scatter", "_efficientzerotensor", "_unsafe_masked_index"])
_movement(["empty_permuted", "logspace", "lu_unpack", "put", "tril_indices", "triu_indices", "_chunk_cat"])
_movement(["_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward", "hann_window", "bartlett_window"])
_movement(["hamming_window", "blackman_window", "kaiser_window"])
_movement(["embedding", "index", "_unsafe_index", "index_select", "gather", "take"], gathers=True)


@formula("cat")
def concatenate(call: Call) -> Cost:
    """Moves what it joins: `append` where whole rows follow one another, as in a cache, else `cat`.

    Channels of images lie side by side for each position in the layout that GPUs and CPUs convolve, so that joining
    them takes rows apart as joining the last dimension does.
    """
    rank = max(len(call.output_shape), 1)
    dimension = call.value(1, "dim", 0) % rank
    takes_rows_apart = dimension == rank - 1 or (rank == 4 and dimension == 1)
    return Cost(kind="data_movement", operation="cat" if takes_rows_apart else "append")


@formula("col2im")
def fold(call: Call) -> Cost:
    """One addition for each element of the columns."""
    return Cost(kind="data_movement", operation="col2im", elementwise_count=call.input_count)


@formula("scatter_add", "scatter_reduce", "index_add", "index_reduce")
def scatter_add(call: Call) -> Cost:
    """One addition, or whatever reduces, for each element of the source."""
    return Cost(
        kind="data_movement", operation="scatter_add", elementwise_count=math.prod(tuple(call.value(3, "source").shape))
    )
