"""Formulas of operators that move data and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.trace.formula.registry import Call, Cost, Formula, formula


def _movement(names: Sequence[str], *, gathers: bool = False) -> None:
    for name in names:
        label = name.strip("_")

        def cost(_call: Call, label: str = label) -> Cost:
            return Cost(kind="data_movement", operation=label, gathers=gathers)

        formula(name)(cost)


_movement(["stack", "pad", "constant_pad_nd", "reflection_pad2d", "replication_pad2d", "roll", "flip"])
_movement(["clone", "contiguous", "copy_", "_to_copy", "to", "type_as", "reshape", "_unsafe_view", "repeat"])
_movement(["channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "im2col", "repeat_interleave", "tril"])
_movement(["triu", "fill_", "fill", "zero_"])
_movement(["dropout", "dropout_", "feature_dropout", "feature_dropout_", "unbind", "split", "chunk", "lift_fresh"])
_movement(["arange", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like"])
_movement(["new_zeros", "new_ones", "new_full", "scalar_tensor", "linspace", "eye", "one_hot"])
_movement(
    [
        "meshgrid",
        "complex",
        "view_as_real",
        "as_strided",
    ]
)
_movement(["rot90", "diag_embed", "block_diag", "max_unpool2d", "max_unpool3d"])
_movement([f"{name}_copy" for name in ("alias", "as_strided", "diagonal", "expand", "narrow", "permute", "squeeze")])
_movement([f"{name}_copy" for name in ("split", "split_with_sizes", "t", "transpose", "unbind", "unfold", "unsqueeze")])
_movement([f"{name}_copy" for name in ("select", "slice", "view", "detach")])
_movement(["_efficientzerotensor", "_unsafe_masked_index"])
_movement(
    ["_pack_padded_sequence", "empty_permuted", "logspace", "lu_unpack", "tril_indices", "triu_indices", "_chunk_cat"]
)
_movement(["_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward", "hann_window", "bartlett_window"])
_movement(["hamming_window", "blackman_window", "kaiser_window"])
_movement(["gather", "take"], gathers=True)


def _rows_of(position: int, operation: str) -> Formula:
    """Return the formula of an operator that reads the rows named by its argument at `position`.

    If the trace knows the indices, a row that is chosen more than once is read once.
    """

    def cost(call: Call) -> Cost:
        named = call.args[position]
        indices = [index for index in (named if isinstance(named, list | tuple) else [named]) if index is not None]
        known = call.known_value(indices[0]) if len(indices) == 1 else None
        read = None
        if known is not None and known.numel():
            read = min(call.output_count // known.numel() * int(known.unique().numel()), call.output_count)
        return Cost(kind="data_movement", operation=operation, gathers=True, gathered_count=read)

    return cost


GATHERED: Final = frozenset({"index", "_unsafe_index", "embedding", "index_select"})
"""Operators whose traffic depends on the rows that they read."""

formula("index", "_unsafe_index")(_rows_of(1, "index"))
formula("embedding")(_rows_of(1, "embedding"))
formula("index_select")(_rows_of(2, "index_select"))


@formula("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
def reserve(_call: Call) -> Cost:
    """Allocation without a write."""
    return Cost(kind="view", operation="empty")


@formula("cat")
def concatenate(call: Call) -> Cost:
    """Movement of the joined tensors: `append` if whole rows follow one another, as in a cache, else `cat`.

    GPUs and CPUs convolve in a memory layout where the channels of each position are adjacent. In this layout, joining
    channels interleaves the rows of the inputs, as joining the last dimension does.
    """
    rank = max(len(call.output_shape), 1)
    dimension = call.value(1, "dim", 0) % rank
    takes_rows_apart = dimension == rank - 1 or (rank == 4 and dimension == 1)
    return Cost(kind="data_movement", operation="cat" if takes_rows_apart else "append")


@formula("col2im")
def fold(call: Call) -> Cost:
    """One addition for each element of the columns."""
    return Cost(kind="data_movement", operation="col2im", elementwise_count=call.input_count)
