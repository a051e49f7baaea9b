"""Attention of a pass: with keys and values per head, or multi-head latent attention, optionally to selected tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from joulemap.physics import FEW_TOKENS
from joulemap.trace.formula import Cost
from joulemap.trace.single.flow import ITEM_BYTES
from joulemap.wing.decoder.network.config import Attention, Latent
from joulemap.wing.decoder.network.graph import Read
from joulemap.wing.decoder.network.row import Pass, Piece
from joulemap.wing.decoder.network.select import Index, score, select


def attend(one: Pass, path: str, mixer: Attention, x: int) -> int:
    """Add the attention of a device's heads for the tokens `x`; return the output tensor."""
    rows, hidden, width = one.count, one.decoder.hidden, mixer.head_dim
    heads, pairs = one.step.queries(mixer.heads, mixer.kv_heads), one.step.part(mixer.kv_heads)
    queries, keys, values = heads * width * (1 + mixer.is_gated), pairs * width, pairs * mixer.values
    if mixer.is_packed:
        q = k = v = one.linear(f"{path}.qkv_proj", x, queries + keys + values, hidden, bias=mixer.bias)
    else:
        q = one.linear(f"{path}.q_proj", x, queries, hidden, bias=mixer.bias)
        k = v = -1
        if not mixer.shares:
            k = v = one.linear(f"{path}.k_proj", x, keys, hidden, bias=mixer.bias)
        if mixer.has_values and not mixer.shares:
            v = one.linear(f"{path}.v_proj", x, values, hidden, bias=mixer.bias)
    gate, is_free = q, mixer.norm == "free"
    if not is_free:
        q, k = _normalize_both(one, path, mixer, q, k)
    if mixer.rotary:
        parts = ((q, heads),) if mixer.shares else ((q, heads), (k, pairs))
        q = k = one.turn(path, parts, width, mixer.rotary)
    if is_free:
        q, k = _normalize_both(one, path, mixer, q, k)
    caches = one.shared.get(mixer.window, [])
    if not mixer.shares:
        if mixer.value_norm:
            v = one.scale(path, v, rows * pairs, width, suffix="v_norm")
        caches = [_append_pair(one, path, mixer, piece, k, v) for piece in one.pieces]
        one.shared[mixer.window] = caches
    sizes: dict[str, Any] = {"heads": heads, "kv_heads": pairs, "head_dim": width}
    sizes |= {"value_dim": mixer.value_dim} if mixer.value_dim else {}
    sinks = tuple(one.graph.weigh(f"{path}.sinks", (heads,)) for _ in range(mixer.sinks))
    index = _score(one, path, mixer, x, hidden, x)
    made = []
    for piece, held in zip(one.pieces, caches, strict=True):
        beside = (*sinks, *_select(one, path, mixer, piece, index))
        seen, window = _narrow(mixer, piece)
        made.append(attend_piece(one, path, seen, (q, *held), {**sizes, "window": window}, beside))
    if mixer.is_gated:
        made = [_open(one, path, made, gate, heads * mixer.values)]
    if mixer.has_head_gate:
        gate = one.linear(f"{path}.g_proj", x, heads, hidden)
        made = [_open(one, path, made, gate, heads * mixer.values, gates=heads)]
    return one.linear(f"{path}.o_proj", made, hidden, heads * mixer.values, bias=mixer.output_bias)


def _open(one: Pass, path: str, made: Sequence[int], gate: int, width: int, *, gates: int = 0) -> int:
    """Multiply an attention output by the sigmoid of a gate per element, or per head if `gates` is set; return the
    tensor.
    """
    rows, opened = one.count, one.count * (gates or width)
    shape = rows, gates or width
    open_share = one.compute(path, "sigmoid", ((gate, 4 * opened),), shape, opened, opened, suffix="gate")
    return one.compute(path, "mul", (*made, open_share), (rows, width), rows * width)


def _score(one: Pass, path: str, mixer: Attention | Latent, low: int, width: int, x: int) -> Index | None:
    """Add an indexer's queries (from `low`), head weights and keys, and return them; None without an indexer."""
    if mixer.indexer is None:
        return None
    keys = one.linear(f"{path}.indexer.wk", x, mixer.indexer.head_dim, one.decoder.hidden)
    name, columns = f"{path}.indexer.k_norm", mixer.indexer.head_dim
    if mixer.indexer.has_norms:
        keys = one.norm(name, keys, one.count, columns)
    else:
        keys = one.graph.run(name, "layer_norm", (keys,), rows=one.count, columns=columns, bias=True)
    return score(one, path, mixer.indexer, low, width, x, keys, mixer.rotary)


def _select(one: Pass, path: str, mixer: Attention | Latent, piece: Piece, index: Index | None) -> tuple[int, ...]:
    """Add the selection of rows by an indexer for the tokens of a piece; return its tensor, or an empty tuple without
    one.
    """
    if mixer.indexer is None or index is None:
        return ()
    return (select(one, path, mixer.indexer, mixer.selected, piece, index),)


def _narrow(mixer: Attention | Latent, piece: Piece) -> tuple[Piece, int]:
    """Return a piece and a window that have as many pairs of queries and keys as the mixer's selection.

    A prompt attends to selected tokens as if to a window of that size. A few tokens attend as if to a shorter cache.
    """
    if not 0 < mixer.selected < piece.cached + piece.tokens:
        return piece, mixer.window
    if piece.tokens > FEW_TOKENS:
        return piece, mixer.selected
    return attrs.evolve(piece, cached=max(mixer.selected - piece.tokens, 0)), mixer.window


def _append_pair(one: Pass, path: str, mixer: Attention, piece: Piece, k: int, v: int) -> tuple[int, ...]:
    """Append the keys and values of a piece to the KV cache; return both cache tensors."""
    pairs = one.step.part(mixer.kv_heads)
    return tuple(
        one.append(
            path, ((x, ITEM_BYTES * piece.count * pairs * width),), piece, pairs, width, mixer.window, f"append_{name}"
        )
        for name, x, width in (("k", k, mixer.head_dim), ("v", v, mixer.values))
    )


def _normalize_both(one: Pass, path: str, mixer: Attention, q: int, k: int) -> tuple[int, int]:
    """Return the queries, and the keys unless they are shared, after the mixer's normalization."""
    heads, pairs = one.step.queries(mixer.heads, mixer.kv_heads), one.step.part(mixer.kv_heads)
    q = _normalize(one, path, "q_norm", mixer, q, heads)
    return q, k if mixer.shares else _normalize(one, path, "k_norm", mixer, k, pairs)


def _normalize(one: Pass, path: str, name: str, mixer: Attention, x: int, heads: int) -> int:
    """Return the queries or keys after the mixer's normalization; unchanged if it has none."""
    rows, width = one.count, mixer.head_dim
    if not mixer.norm:
        return x
    if mixer.norm == "heads":
        weights: dict[str, Any] = {"rows": rows, "columns": heads * width, "bias": False}
        return one.graph.run(f"{path}.{name}", "layer_norm", (x,), **weights)
    if mixer.norm == "row":
        return one.norm(f"{path}.{name}", x, rows, heads * width)
    if mixer.norm == "head":
        return one.norm(f"{path}.{name}", x, rows * heads, width)
    return one.scale(path, x, rows * heads, width, suffix=name)


def attend_piece(
    one: Pass,
    path: str,
    piece: Piece,
    inputs: Sequence[Read],
    sizes: Mapping[str, Any],
    beside: Sequence[int] = (),
) -> int:
    """Add the attention of a piece (sequences of equal length) to its cache, which `inputs` end with; return the output
    tensor.
    """
    return one.graph.run(
        path,
        "attention",
        inputs,
        suffix=piece.call("attention"),
        beside=beside,
        batch=piece.sequences,
        queries=piece.tokens,
        cached=piece.cached,
        causal=piece.tokens > 1,
        cache={"": "", "fp16": "bf16", "int8": "fp8"}.get(one.step.cache, one.step.cache),
        **sizes,
    )


def attend_latent(one: Pass, path: str, mixer: Latent, x: int) -> int:
    """Add multi-head latent attention; return the output tensor.

    A few tokens after a cache multiply their queries by the key projection, and attend to the latent rows directly. A
    prompt expands the keys and values of all tokens that it attends to, unless it attends to selected tokens only.
    """
    rows, hidden, heads = one.count, one.decoder.hidden, one.step.part(mixer.heads)
    width, seen = mixer.plain + mixer.rotary, mixer.rank + mixer.rotary
    if mixer.query_rank:
        low = one.linear(f"{path}.q_a_proj", x, mixer.query_rank, hidden, bias=mixer.bias)
    latent = one.linear(f"{path}.kv_a_proj_with_mqa", x, seen, hidden, bias=mixer.bias)
    if mixer.query_rank:
        low = one.norm(f"{path}.q_a_layernorm", low, rows, mixer.query_rank)
        q = one.linear(f"{path}.q_b_proj", low, heads * width, mixer.query_rank)
    else:
        q = one.linear(f"{path}.q_proj", x, heads * width, hidden)
    normal = one.norm(f"{path}.kv_a_layernorm", latent, rows, mixer.rank)
    turned = one.turn(path, ((q, heads), (latent, 1)), mixer.rotary, mixer.rotary)
    weight = one.graph.weigh(f"{path}.kv_b_proj.weight", (heads * (mixer.plain + mixer.value_dim), mixer.rank))
    query, query_width = (low, mixer.query_rank) if mixer.query_rank else (x, hidden)
    index = _score(one, path, mixer, query, query_width, x)
    made = []
    for piece in one.pieces:
        new = [(x, ITEM_BYTES * piece.count * part) for x, part in ((normal, mixer.rank), (turned, mixer.rotary))]
        cache = one.append(path, new, piece, 1, seen, mixer.window, "append_latent")
        is_sparse = 0 < mixer.selected < piece.cached + piece.tokens
        beside = _select(one, path, mixer, piece, index)
        see = _see_latent if piece.tokens <= FEW_TOKENS or is_sparse else _widen_latent
        made.append(see(one, path, mixer, piece, q, turned, cache, weight, beside))
    if mixer.is_gated:
        gate = one.linear(f"{path}.g_proj", x, heads * mixer.value_dim, hidden)
        made = [_open(one, path, made, gate, heads * mixer.value_dim)]
    return one.linear(f"{path}.o_proj", made, hidden, heads * mixer.value_dim, bias=mixer.bias)


def multiply(one: Pass, path: str, x: int, weight: int, m: int, n: int, k: int, groups: int, *, suffix: str) -> int:
    """Multiply the rows of each head (m x k) by the head's own weights (k x n); return the tensor."""
    cost = Cost(kind="matmul", operation="bmm", mac_count=m * n * k * groups, gemm=(m, n, k, groups))
    reads = ((x, 4 * m * k * groups), (weight, 4 * n * k * groups))
    return one.graph.call(path, cost, reads, (groups, m, n), suffix=suffix, aten="bmm.default")


def _see_latent(
    one: Pass,
    path: str,
    mixer: Latent,
    piece: Piece,
    q: int,
    turned: int,
    cache: int,
    weight: int,
    beside: Sequence[int],
) -> int:
    heads, rank, count = one.step.part(mixer.heads), mixer.rank, piece.count
    inner = multiply(one, path, q, weight, count, rank, mixer.plain, heads, suffix=piece.call("absorb_k"))
    sizes: dict[str, Any] = {"heads": heads, "kv_heads": 1, "head_dim": rank + mixer.rotary, "value_dim": rank}
    sizes |= {"latent": True}
    seen, sizes["window"] = _narrow(mixer, piece)
    result = attend_piece(one, path, seen, (inner, turned, cache), sizes, beside)
    return multiply(one, path, result, weight, count, mixer.value_dim, rank, heads, suffix=piece.call("absorb_v"))


def _widen_latent(
    one: Pass,
    path: str,
    mixer: Latent,
    piece: Piece,
    q: int,
    turned: int,
    cache: int,
    weight: int,
    beside: Sequence[int],
) -> int:
    heads, width = one.step.part(mixer.heads), mixer.plain + mixer.rotary
    keys = piece.sequences * one.graph.shape(cache)[2]
    columns = heads * (mixer.plain + mixer.value_dim)
    cost = Cost(kind="linear", operation="linear", mac_count=keys * columns * mixer.rank,
                gemm=(keys, columns, mixer.rank, 1))  # fmt: skip
    wide = one.graph.call(path, cost, (cache, weight), (keys, columns), suffix=piece.call("kv_b_proj"))
    queries, own = (ITEM_BYTES * piece.count * heads * part for part in (mixer.plain, mixer.rotary))
    made = ITEM_BYTES * keys * heads
    sizes = {"heads": heads, "kv_heads": heads, "head_dim": width, "value_dim": mixer.value_dim}
    # each head's key joins the part expanded from the latent and the rotary part shared by all heads
    reads = (
        (q, queries),
        (turned, own),
        (wide, made * mixer.plain),
        (cache, made * mixer.rotary),
        (wide, made * mixer.value_dim),
    )
    return attend_piece(one, path, piece, reads, {**sizes, "window": mixer.window}, beside)
