"""Attention to the last tokens and to compressed rows (DeepSeek-V4), and its hyper-connections.

    tokens ─► window of the last ones, key = value ─────────────────────┐
    tokens ─► compressed row for every `ratio`: all, or the best ones ──┴─► attention ─► grouped output

A compressed row is a weighted sum of its tokens. With an indexer, rows overlap: each sums up twice `ratio` tokens, so
that its projections are twice as wide.

Source: modelling code of DeepSeek-V4 in the Transformers library.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.physics import FEW_TOKENS
from joulemap.trace.formula import Cost
from joulemap.trace.single.flow import ITEM_BYTES
from joulemap.wing.decoder.network.attention import attend_piece, multiply
from joulemap.wing.decoder.network.select import count_pairs, score, select

if TYPE_CHECKING:
    from joulemap.wing.decoder.network.config import Compressed
    from joulemap.wing.decoder.network.row import Pass, Piece


ITERATIONS: Final = 20
"""Normalizations of the mixing weights. Source: hc_sinkhorn_iters of both DeepSeek-V4 configurations."""


def attend_compressed(one: Pass, path: str, mixer: Compressed, x: int) -> int:
    """Add attention to a window and to compressed rows, for the heads of one device; return the output tensor."""
    graph, rows, hidden, width = one.graph, one.count, one.decoder.hidden, mixer.head_dim
    heads, groups = one.step.part(mixer.heads), one.step.part(mixer.output_groups)
    low = one.linear(f"{path}.q_a_proj", x, mixer.query_rank, hidden)
    low = one.norm(f"{path}.q_norm", low, rows, mixer.query_rank)
    q = one.linear(f"{path}.q_b_proj", low, heads * width, mixer.query_rank)
    q = one.scale(path, q, rows * heads, width, suffix="q_head_norm")
    kv = one.norm(f"{path}.kv_norm", one.linear(f"{path}.kv_proj", x, width, hidden), rows, width)
    turned = one.turn(path, ((q, heads), (kv, 1)), width, mixer.rotary)
    sinks = graph.weigh(f"{path}.sinks", (heads,))
    pooled = _compress(one, f"{path}.compressor", mixer, x, width) if mixer.ratio else -1
    index = None
    if mixer.indexer is not None:
        inner = mixer.indexer.head_dim
        keys = _compress(one, f"{path}.indexer", mixer, x, inner)
        index = score(one, path, mixer.indexer, low, mixer.query_rank, x, keys, mixer.rotary, new=1)
    made = []
    for piece in one.pieces:
        new = ((turned, ITEM_BYTES * piece.count * width),)
        caches = [one.append(path, new, piece, 1, width, mixer.window, "append_kv")]
        beside = [sinks]
        if mixer.ratio:
            added = -(-piece.tokens // mixer.ratio)
            held = type(piece)(piece.name, piece.sequences, added, max(_count_rows(mixer, piece) - added, 0))
            row = ((pooled, ITEM_BYTES * held.count * width),)
            caches.append(one.append(f"{path}.compressor", row, held, 1, width, 0, "append_rows"))
        if mixer.indexer is not None and index is not None:
            beside.append(select(one, path, mixer.indexer, mixer.selected, piece, index, mixer.ratio))
        sizes = {"heads": heads, "kv_heads": 1, "head_dim": width, "value_dim": width, "latent": True}
        seen, window = _see(mixer, piece)
        made.append(attend_piece(one, path, seen, (turned, *caches), {**sizes, "window": window}, beside))
    reads, count = (*made, one.find_angles(mixer.rotary)), 3 * rows * heads * mixer.rotary
    back = one.compute(path, "rotary", reads, (rows, heads * width), count, suffix="rotary_back")
    each = mixer.heads * width // mixer.output_groups
    weight = graph.weigh(f"{path}.o_a_proj.weight", (groups * mixer.output_rank, each))
    narrow = multiply(one, path, back, weight, rows, mixer.output_rank, each, groups, suffix="o_a_proj")
    return one.linear(f"{path}.o_b_proj", narrow, hidden, groups * mixer.output_rank)


def _count_rows(mixer: Compressed, piece: Piece) -> int:
    """Return the number of compressed rows of a sequence after a piece; at least one."""
    return max((piece.cached + piece.tokens) // mixer.ratio, 1)


def _see(mixer: Compressed, piece: Piece) -> tuple[Piece, int]:
    """Return a piece and a window whose attention has as many pairs of queries and keys as this mixer."""
    pairs = count_pairs(piece, most=mixer.window)
    if mixer.ratio:
        pairs += count_pairs(piece, mixer.ratio, mixer.selected)
    if piece.tokens <= FEW_TOKENS:
        return type(piece)(piece.name, piece.sequences, piece.tokens, max(pairs // piece.tokens - piece.tokens, 0)), 0
    # a window that grows from the cached tokens on: rows x window - window x (window - 1) / 2 pairs without a cache
    window = -(-pairs // piece.tokens)
    if window > piece.cached:
        width = 2 * piece.tokens + 1
        window = max((width - math.isqrt(max(width * width - 8 * pairs, 0))) // 2, 1)
    return piece, window


def _compress(one: Pass, path: str, mixer: Compressed, x: int, width: int) -> int:
    """Add the new compressed rows; return their tensor.

    A softmax over the tokens of each row weighs their projections.
    """
    graph, rows = one.graph, one.count
    wide = width * (2 if mixer.indexer else 1)
    kv = one.linear(f"{path}.kv_proj", x, wide, one.decoder.hidden)
    gate = one.linear(f"{path}.gate_proj", x, wide, one.decoder.hidden)
    bias = graph.weigh(f"{path}.position_bias", (mixer.ratio, wide))
    new = sum(piece.sequences * -(-piece.tokens // mixer.ratio) for piece in one.pieces)
    pooled = one.compute(path, "pool", (kv, gate, bias), (new, width), 5 * rows * wide, rows * wide)
    pooled = one.norm(f"{path}.kv_norm", pooled, new, width)
    return one.compute(path, "rotary", (pooled,), (new, width), 3 * new * mixer.rotary, suffix="rotary_rows")


def collapse(one: Pass, path: str, streams: int, x: int) -> tuple[int, int]:
    """Reduce the streams of each token to one before a part (hyper-connections); return it and the weights that mix
    them.
    """
    graph, rows, hidden = one.graph, one.held, one.decoder.hidden
    wide, mixes = streams * hidden, streams * (2 + streams)
    flat = one.scale(path, x, rows, wide, suffix="norm")
    mix = one.linear(f"{path}.fn", flat, mixes, wide, m=rows, keeps=True)
    weights = graph.weigh(f"{path}.base", (mixes,)), graph.weigh(f"{path}.scale", (3,))
    count = rows * streams * streams * 2 * ITERATIONS
    mix = one.compute(path, "sinkhorn", (mix, *weights), (rows, mixes), count, rows * mixes)
    return one.compute(path, "collapse", (x, mix), (rows, hidden), 2 * rows * wide), mix


def expand(one: Pass, path: str, streams: int, x: int, result: int, mix: int) -> int:
    """Mix the streams of each token and add a part's result to each; return the streams' tensor."""
    rows, wide = one.held, streams * one.decoder.hidden
    return one.compute(path, "expand", (x, result, mix), (rows, wide), 2 * rows * wide * (streams + 1))


def open_streams(one: Pass, streams: int, x: int) -> int:
    """Add the residual streams of each token, all equal at first; return their tensor."""
    rows, wide = one.held, streams * one.decoder.hidden
    cost = Cost(kind="data_movement", operation="repeat")
    return one.graph.call("embed_tokens", cost, (x,), (rows, wide), suffix="repeat", aten="repeat.default")


def close_streams(one: Pass, streams: int, x: int) -> int:
    """Add the weighted sum of each token's streams before the last norm; return its tensor."""
    graph, rows, hidden = one.graph, one.held, one.decoder.hidden
    wide = streams * hidden
    flat = one.scale("hc_head", x, rows, wide, suffix="norm")
    mix = one.linear("hc_head.fn", flat, streams, wide, m=rows, keeps=True)
    weights = graph.weigh("hc_head.base", (streams,)), graph.weigh("hc_head.scale", (1,))
    return one.compute("hc_head", "collapse", (x, mix, *weights), (rows, hidden), 2 * rows * wide)
