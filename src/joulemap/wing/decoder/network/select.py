"""Sparse attention: an indexer scores every cached row with narrow heads, and the best rows are attended to.

    score of a row = sum over heads of weight x relu(query . key)        one key per row, shared by the heads
    score of a block = highest query . key of its rows, for each head    MiniMax-M3

Engines do not divide the indexer: each device scores all rows.

Source: DeepSeek-V3.2-Exp, section 2 (the lightning indexer); modelling code of DeepSeek-V3.2 and MiniMax-M3 in the
Transformers library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import frozen
from joulemap.trace.formula import Cost
from joulemap.trace.single.flow import ITEM_BYTES

if TYPE_CHECKING:
    from joulemap.wing.decoder.network.config import Indexer
    from joulemap.wing.decoder.network.graph import Read
    from joulemap.wing.decoder.network.row import Pass, Piece


@frozen
class Index:
    """Tensors of an indexer before it scores rows."""

    queries: int
    """Tensor with the queries of all tokens."""
    weights: tuple[int, ...]
    """Tensor with the weights of the heads for each token; empty if each head selects for itself."""
    keys: int
    """Tensor with the new keys; the queries and keys may share one tensor after rotation."""


def score(
    one: Pass, path: str, indexer: Indexer, low: int, low_width: int, x: int, keys: int, rotary: int, new: int = 0
) -> Index:
    """Add the queries (from `low`), the head weights and the rotated new keys of an indexer; return their tensors.

    If `new` is set, `keys` are rotated already.
    """
    heads, width = indexer.heads, indexer.head_dim
    queries = one.linear(f"{path}.indexer.wq_b", low, heads * width, low_width)
    if indexer.has_norms:
        queries = one.norm(f"{path}.indexer.q_norm", queries, one.count * heads, width)
    weights: tuple[int, ...] = ()
    if indexer.is_weighted:
        weights = (one.linear(f"{path}.indexer.weights_proj", x, heads, one.decoder.hidden, keeps=True),)
    if new:
        queries = one.turn(f"{path}.indexer", ((queries, heads),), width, rotary)
        return Index(queries, weights, keys)
    turned = one.turn(f"{path}.indexer", ((queries, heads), (keys, 1)), width, rotary)
    return Index(turned, weights, turned)


def select(one: Pass, path: str, indexer: Indexer, selected: int, piece: Piece, index: Index, ratio: int = 1) -> int:
    """Add the scores of cached rows and the selection of the best; return the tensor of selected rows for each token.

    A row represents `ratio` tokens.
    """
    heads, width = indexer.heads, indexer.head_dim
    new = -(-piece.tokens // ratio)
    rows = max((piece.cached + piece.tokens) // ratio, 1)
    held = type(piece)(piece.name, piece.sequences, new, max(rows - new, 0))
    made = [(index.keys, ITEM_BYTES * held.count * width)]
    cache = one.append(f"{path}.indexer", made, held, 1, width, 0, "append_index")
    pairs = piece.sequences * count_pairs(piece, ratio)
    seen = -(-pairs // piece.count)
    cost = Cost(
        kind="matmul",
        operation="bmm",
        mac_count=piece.count * heads * seen * width,
        elementwise_count=(3 if indexer.is_weighted else 1) * pairs * heads,
        gemm=(piece.tokens * heads, seen, width, piece.sequences),
    )
    reads: tuple[Read, ...] = ((index.queries, ITEM_BYTES * piece.count * heads * width), cache, *index.weights)
    # the kernel sums the heads, or reduces the rows of a block, and writes only the result
    lists, written = 1 if indexer.is_weighted else heads, -(-seen // indexer.tokens)
    made_shape = piece.count, lists * written
    scores = one.graph.call(f"{path}.indexer", cost, reads, made_shape, suffix=piece.call("scores"), aten="bmm.default")
    name = piece.call("select")
    cost = Cost(kind="reduction", operation="topk", elementwise_count=2 * -(-pairs // indexer.tokens) * lists)
    shape = piece.count, lists * min(-(-selected // indexer.tokens), written)
    return one.graph.call(f"{path}.indexer", cost, (scores,), shape, suffix=name, aten="topk.default", dtype="int64")


def count_pairs(piece: Piece, ratio: int = 1, most: int = 0) -> int:
    """Return the number of rows that all tokens of one sequence attend to, in total.

    A row covers `ratio` tokens. Each token attends to at most `most` rows; 0 for no limit.
    """
    first, last = piece.cached + 1, piece.cached + piece.tokens
    total = _sum_rows(last, ratio) - _sum_rows(first - 1, ratio)
    if most:
        full = max(last - max(first, most * ratio) + 1, 0)
        total -= full and (_sum_rows(last, ratio) - _sum_rows(last - full, ratio)) - full * most
    return max(total, 1)


def _sum_rows(tokens: int, ratio: int) -> int:
    """Return the sum of `token // ratio` for each token from 1 to `tokens`."""
    whole, rest = divmod(tokens + 1, ratio)
    return ratio * (whole * (whole - 1) // 2) + rest * whole
