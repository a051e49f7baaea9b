"""What a pass of a decoder calls, layer by layer: each product, norm, rotation and append as a framework has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs

from joulemap.decoder.config import Attention, Decoder, Experts, Latent, Layer, Network, Recurrence
from joulemap.decoder.graph import Graph, Read
from joulemap.decoder.scan import scan
from joulemap.domain.operator.name import Value, make_operator
from joulemap.domain.workload import APPEND, FEW_TOKENS
from joulemap.system.record import frozen
from joulemap.trace.formula import Cost
from joulemap.trace.single import break_up
from joulemap.trace.single.flow import DTYPE, ITEM_BYTES

CACHE_DTYPES: Final = {
    "": DTYPE,
    "bf16": "bfloat16",
    "fp16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "int8": "float8_e4m3fn",
}
"""How keys and values are stored -> their dtype as traced; the first follows the precision of the run."""

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


@frozen
class Split:
    """Over how many devices a pass is divided."""

    devices: int = 1
    expert_devices: int = 1
    data_devices: int = 1

    @property
    def world(self) -> int:
        """All devices."""
        return self.devices * self.data_devices

    def part(self, count: int) -> int:
        """Return what one device has of what is divided, the last one padded."""
        return -(-count // self.devices)

    def heads(self, count: int) -> int:
        """Return the heads of keys that one device has: where there are more devices than heads, each has a copy."""
        return max(count // self.devices, 1)


@frozen(kw_only=True)
class Rows:
    """The tokens of a pass on one device."""

    sequences: int
    tokens: int
    cached: int
    chunk: int = 0
    chunk_cached: int = 0
    all_logits: bool = False
    cache: str = ""
    routing: str = ""

    @property
    def count(self) -> int:
        """Tokens."""
        return self.sequences * self.tokens + self.chunk

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Sequences of one length, and the piece of another prompt."""
        found = (Piece("", self.sequences, self.tokens, self.cached),)
        return (*found, Piece("chunk", 1, self.chunk, self.chunk_cached)) if self.chunk else found


@frozen
class Piece:
    """Sequences of one length."""

    name: str
    sequences: int
    tokens: int
    cached: int

    @property
    def count(self) -> int:
        """Tokens that are computed."""
        return self.sequences * self.tokens


@attrs.define
class Pass:
    """A pass that is being told."""

    graph: Graph
    decoder: Decoder
    rows: Rows
    split: Split
    angles: dict[int, int] = attrs.field(factory=dict)
    """Elements that are turned -> the table of angles of these tokens."""
    shared: dict[int, list[tuple[int, ...]]] = attrs.field(factory=dict)
    """Window -> caches of the last layer of it that has its own."""

    def norm(self, path: str, x: int, rows: int, columns: int, *, suffix: str = "") -> int:
        """Return a tensor whose rows are normalized as the model does."""
        if self.decoder.norm == "rms_norm":
            return self.graph.run(path, "rms_norm", (x,), suffix=suffix, rows=rows, columns=columns)
        bias = self.decoder.norm_bias
        return self.graph.run(path, "layer_norm", (x,), suffix=suffix, rows=rows, columns=columns, bias=bias)

    def linear(self, path: str, x: int | Sequence[int], n: int, k: int, *, bias: bool = False, m: int = 0) -> int:
        """Return the product of each row with weights."""
        inputs = (x,) if isinstance(x, int) else x
        return self.graph.run(path, "gemm", inputs, m=m or self.rows.count, n=n, k=k, bias=bias)

    def each(self, path: str, kind: str, *inputs: int, suffix: str = "") -> int:
        """Return an elementwise operation of tensors that are alike."""
        shape = self.graph.shape(inputs[0])
        (operator,) = break_up(make_operator("elementwise", {"kind": kind, "elements": math.prod(shape)}), 1).operators
        cost = Cost(
            kind="elementwise",
            operation=operator.operation,
            elementwise_count=operator.elementwise_count,
            special_count=operator.special_count,
        )
        return self.graph.call(path, cost, inputs, shape, suffix=suffix or kind, aten=operator.aten[5:])

    def collect(self, path: str, operation: Collective, x: int, devices: int, elements: int) -> int:
        """Return what devices make of a tensor together; `elements` are those of the whole buffer."""
        if devices == 1:
            return x
        cost = Cost(kind="communication", operation=operation, gemm=(0, 0, 0, devices))
        return self.graph.call(path, cost, (x,), (elements,), suffix=operation)

    def sum_up(self, path: str, x: int) -> int:
        """Return the sum of what all devices have of each token."""
        return self.collect(path, "all_reduce", x, self.split.devices, self.rows.count * self.decoder.hidden)

    def turn(self, path: str, parts: Sequence[tuple[int, int]], width: int, rotary: int) -> int:
        """Return heads of (tensor, heads) whose first elements are turned by their position, all in one kernel."""
        rows, heads = self.rows.count, sum(count for _, count in parts)
        if rotary not in self.angles:
            self.angles[rotary] = self.graph.enter((rows, rotary))
        cost = Cost(kind="elementwise", operation="rotary", elementwise_count=3 * rows * heads * rotary)
        reads = [(tensor, ITEM_BYTES * rows * count * width) for tensor, count in parts]
        return self.graph.call(path, cost, (*reads, self.angles[rotary]), (rows, heads, width), suffix="rotary")

    def append(
        self,
        path: str,
        rows: Sequence[int | tuple[int, int]],
        piece: Piece,
        heads: int,
        width: int,
        window: int,
        suffix: str,
    ) -> int:
        """Return the cache of a piece with its new rows behind what is held."""
        dtype = CACHE_DTYPES[self.rows.cache]
        held = min(piece.cached, window - 1) if window else piece.cached
        shape = piece.sequences, heads, held + piece.tokens, width
        past = (self.graph.enter((piece.sequences, heads, held, width), dtype),) if held else ()
        cost = Cost(kind="data_movement", operation=APPEND, variant=APPEND if held else "")
        suffix = "_".join(filter(None, (suffix, piece.name)))
        return self.graph.keep(
            self.graph.call(path, cost, (*past, *rows), shape, suffix=suffix, aten="cat.default", dtype=dtype)
        )


def decode(graph: Graph, decoder: Decoder, rows: Rows, split: Split) -> None:
    """Tell a pass of a decoder, from its tokens to its logits."""
    one = Pass(graph, decoder, rows, split)
    x = _embed(one)
    for index, layer in enumerate(decoder.layers):
        x = _tell_layer(one, f"layers.{index}", layer, x)
    if decoder.final_norm:
        x = one.norm("norm", x, rows.count, decoder.hidden)
    _tell_logits(one, x)


def _embed(one: Pass) -> int:
    graph, decoder, rows = one.graph, one.decoder, one.rows
    width, tokens = decoder.embedding_width or decoder.hidden, graph.enter((rows.count,), "int64")
    table = one.split.part(decoder.vocabulary)
    x = graph.run("embed_tokens", "embedding", (tokens,), rows=rows.count, columns=width, table=table)
    x = one.collect("embed_tokens", "all_reduce", x, one.split.devices, rows.count * width)
    if width != decoder.hidden:
        x = one.linear("project_in", x, decoder.hidden, width)
    if decoder.positions:
        places = graph.enter((rows.count,), "int64")
        sizes = {"rows": rows.count, "columns": decoder.hidden, "table": decoder.positions}
        x = one.each("embed_positions", "add", x, graph.run("embed_positions", "embedding", (places,), **sizes))
    if decoder.embedding_norm:
        x = one.norm("embed_norm", x, rows.count, decoder.hidden)
    return x


def _tell_layer(one: Pass, path: str, layer: Layer, x: int) -> int:
    """Return the tokens behind a layer."""
    rows, width = one.rows.count, one.decoder.hidden
    parts = [part for part in (layer.mixer, layer.network) if part is not None]
    made, before = list[int](), x
    for place, part in enumerate(parts):
        name = "input_layernorm" if place == 0 else "post_attention_layernorm"
        if layer.has_norms_before and (not place or not layer.is_parallel or layer.norms > 1):
            before = one.norm(f"{path}.{name}", x, rows, width)
        elif not layer.is_parallel:
            before = x
        result = _mix(one, path, part, before) if part is layer.mixer else _tell_network(one, path, part, before)
        if layer.is_parallel:
            made.append(result)
            continue
        result = _finish(one, path, part, result)
        if layer.has_norms_behind:
            result = one.norm(f"{path}.{name}_behind", result, rows, width)
        x = one.each(path, "add", x, result, suffix=f"add_{place}")
    if not layer.is_parallel:
        return x
    total = one.each(path, "add", *made, suffix="add_parts")
    return one.each(path, "add", x, one.sum_up(path, total), suffix="add")


def _finish(one: Pass, path: str, part: object, result: int) -> int:
    """Return what all devices have made of a part, where it is divided over them and not yet summed up."""
    if isinstance(part, Experts) and one.split.data_devices > 1:
        return result
    name = "mlp" if isinstance(part, Network | Experts) else "self_attn"
    return one.sum_up(f"{path}.{name}", result)


def _mix(one: Pass, path: str, mixer: object, x: int) -> int:
    if isinstance(mixer, Attention):
        return _attend(one, f"{path}.self_attn", mixer, x)
    if isinstance(mixer, Latent):
        return _attend_latent(one, f"{path}.self_attn", mixer, x)
    assert isinstance(mixer, Recurrence)
    return scan(one, f"{path}.mixer", mixer, x)


def _attend(one: Pass, path: str, mixer: Attention, x: int) -> int:
    """Return what attention of a device's heads makes of tokens."""
    rows, hidden, width = one.rows.count, one.decoder.hidden, mixer.head_dim
    heads, pairs = one.split.part(mixer.heads), one.split.heads(mixer.kv_heads)
    queries, keys = heads * width * (1 + mixer.is_gated), pairs * width
    if mixer.is_packed:
        q = k = v = one.linear(f"{path}.qkv_proj", x, queries + 2 * keys, hidden, bias=mixer.bias)
    else:
        q = one.linear(f"{path}.q_proj", x, queries, hidden, bias=mixer.bias)
        k = v = -1
        if not mixer.shares:
            k = v = one.linear(f"{path}.k_proj", x, keys, hidden, bias=mixer.bias)
        if mixer.has_values and not mixer.shares:
            v = one.linear(f"{path}.v_proj", x, keys, hidden, bias=mixer.bias)
    gate, is_free = q, mixer.norm == "free"
    if not is_free:
        q = _normalize(one, path, "q_norm", mixer, q, heads)
        k = k if mixer.shares else _normalize(one, path, "k_norm", mixer, k, pairs)
    if mixer.rotary:
        parts = ((q, heads),) if mixer.shares else ((q, heads), (k, pairs))
        q = k = one.turn(path, parts, width, mixer.rotary)
    if is_free:
        q = _normalize(one, path, "q_norm", mixer, q, heads)
        k = k if mixer.shares else _normalize(one, path, "k_norm", mixer, k, pairs)
    caches = one.shared.get(mixer.window, [])
    if not mixer.shares:
        if mixer.value_norm:
            v = one.graph.run(path, "rms_norm", (v,), suffix="v_norm", rows=rows * pairs, columns=width, weight=False)
        caches = [_append_pair(one, path, mixer, piece, k, v) for piece in one.rows.pieces]
        one.shared[mixer.window] = caches
    sizes = {"heads": heads, "kv_heads": pairs, "head_dim": width, "window": mixer.window}
    made = [
        _attend_piece(one, path, piece, (q, *held), sizes) for piece, held in zip(one.rows.pieces, caches, strict=True)
    ]
    if mixer.is_gated:
        cost = Cost(kind="elementwise", operation="sigmoid", elementwise_count=rows * heads * width,
                    special_count=rows * heads * width)  # fmt: skip
        open_share = one.graph.call(
            path, cost, ((gate, 4 * rows * heads * width),), (rows, heads * width), suffix="gate"
        )
        cost = Cost(kind="elementwise", operation="mul", elementwise_count=rows * heads * width)
        made = [one.graph.call(path, cost, (*made, open_share), (rows, heads * width), suffix="mul")]
    return one.linear(f"{path}.o_proj", made, hidden, heads * width, bias=mixer.output_bias)


def _append_pair(one: Pass, path: str, mixer: Attention, piece: Piece, k: int, v: int) -> tuple[int, ...]:
    """Return the caches of keys and values of a piece."""
    pairs, width = one.split.heads(mixer.kv_heads), mixer.head_dim
    new = ITEM_BYTES * piece.count * pairs * width
    return tuple(
        one.append(path, ((x, new),), piece, pairs, width, mixer.window, f"append_{name}")
        for name, x in (("k", k), ("v", v))
    )


def _normalize(one: Pass, path: str, name: str, mixer: Attention, x: int, heads: int) -> int:
    """Return queries or keys as attention multiplies them."""
    rows, width = one.rows.count, mixer.head_dim
    if not mixer.norm:
        return x
    if mixer.norm == "row":
        return one.norm(f"{path}.{name}", x, rows, heads * width)
    if mixer.norm == "head":
        return one.norm(f"{path}.{name}", x, rows * heads, width)
    return one.graph.run(path, "rms_norm", (x,), suffix=name, rows=rows * heads, columns=width, weight=False)


def _attend_piece(one: Pass, path: str, piece: Piece, inputs: Sequence[Read], sizes: Mapping[str, Value]) -> int:
    return one.graph.run(
        path,
        "attention",
        inputs,
        suffix="_".join(filter(None, ("attention", piece.name))),
        batch=piece.sequences,
        queries=piece.tokens,
        cached=piece.cached,
        causal=piece.tokens > 1,
        cache={"": "", "fp16": "bf16", "int8": "fp8"}.get(one.rows.cache, one.rows.cache),
        **sizes,
    )


def _attend_latent(one: Pass, path: str, mixer: Latent, x: int) -> int:
    """Return attention through a latent.

    A few tokens behind a cache multiply their queries by what keys are made with, and see the latent itself; a
    prompt makes keys and values of all that it sees.
    """
    rows, hidden, heads = one.rows.count, one.decoder.hidden, one.split.part(mixer.heads)
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
    made = []
    for piece in one.rows.pieces:
        new = [(x, ITEM_BYTES * piece.count * part) for x, part in ((normal, mixer.rank), (turned, mixer.rotary))]
        cache = one.append(path, new, piece, 1, seen, mixer.window, "append_latent")
        see = _see_latent if piece.tokens <= FEW_TOKENS else _widen_latent
        made.append(see(one, path, mixer, piece, q, turned, cache, weight))
    return one.linear(f"{path}.o_proj", made, hidden, heads * mixer.value_dim, bias=mixer.bias)


def _multiply(one: Pass, path: str, x: int, weight: int, m: int, n: int, k: int, groups: int, *, suffix: str) -> int:
    """Return the products of each head's rows with the head's own weights."""
    cost = Cost(kind="matmul", operation="bmm", mac_count=m * n * k * groups, gemm=(m, n, k, groups))
    reads = ((x, 4 * m * k * groups), (weight, 4 * n * k * groups))
    return one.graph.call(path, cost, reads, (groups, m, n), suffix=suffix, aten="bmm.default")


def _see_latent(one: Pass, path: str, mixer: Latent, piece: Piece, q: int, turned: int, cache: int, weight: int) -> int:
    heads, rank, count = one.split.part(mixer.heads), mixer.rank, piece.count
    suffix = f"_{piece.name}" if piece.name else ""
    inner = _multiply(one, path, q, weight, count, rank, mixer.plain, heads, suffix=f"absorb_k{suffix}")
    sizes = {"heads": heads, "kv_heads": 1, "head_dim": rank + mixer.rotary, "value_dim": rank, "latent": True}
    result = _attend_piece(one, path, piece, (inner, turned, cache), {**sizes, "window": mixer.window})
    return _multiply(one, path, result, weight, count, mixer.value_dim, rank, heads, suffix=f"absorb_v{suffix}")


def _widen_latent(
    one: Pass, path: str, mixer: Latent, piece: Piece, q: int, turned: int, cache: int, weight: int
) -> int:
    heads, width = one.split.part(mixer.heads), mixer.plain + mixer.rotary
    keys = piece.sequences * one.graph.shape(cache)[2]
    columns = heads * (mixer.plain + mixer.value_dim)
    cost = Cost(kind="linear", operation="linear", mac_count=keys * columns * mixer.rank,
                gemm=(keys, columns, mixer.rank, 1))  # fmt: skip
    suffix = "_".join(filter(None, ("kv_b_proj", piece.name)))
    wide = one.graph.call(path, cost, (cache, weight), (keys, columns), suffix=suffix)
    queries, own = (ITEM_BYTES * piece.count * heads * part for part in (mixer.plain, mixer.rotary))
    made = ITEM_BYTES * keys * heads
    sizes = {"heads": heads, "kv_heads": heads, "head_dim": width, "value_dim": mixer.value_dim}
    # each head's key is what is made of the latent, and the one turned part that heads share
    reads = (
        (q, queries),
        (turned, own),
        (wide, made * mixer.plain),
        (cache, made * mixer.rotary),
        (wide, made * mixer.value_dim),
    )
    return _attend_piece(one, path, piece, reads, {**sizes, "window": mixer.window})


def _tell_network(one: Pass, path: str, part: object, x: int) -> int:
    if isinstance(part, Network):
        return network(one, f"{path}.mlp", part, x)
    assert isinstance(part, Experts)
    return _route(one, f"{path}.mlp", part, x)


def network(one: Pass, path: str, part: Network, x: int, *, width: int = 0, m: int = 0) -> int:
    """Return what a network makes of each token."""
    hidden, inner = width or one.decoder.hidden, one.split.part(part.inner)
    made = one.linear(f"{path}.{'gate_proj' if part.is_gated else 'up_proj'}", x, inner, hidden, bias=part.bias, m=m)
    made = one.each(f"{path}.act_fn", "relu" if part.function == "relu2" else part.function, made)
    if part.function == "relu2":
        made = one.each(f"{path}.act_fn", "mul", made, made, suffix="square")
    if part.is_gated:
        up = one.linear(f"{path}.up_proj", x, inner, hidden, bias=part.bias, m=m)
        made = one.each(path, "mul", made, up)
    return one.linear(f"{path}.down_proj", made, hidden, inner, bias=part.output_bias, m=m)


def _route(one: Pass, path: str, part: Experts, x: int) -> int:
    """Return what the experts that a device holds make of the tokens that reach it, with those that all tokens take."""
    graph, split, hidden = one.graph, one.split, one.decoder.hidden
    rows = one.rows.count
    scores = one.linear(f"{path}.gate", x, part.count, hidden, bias=part.router_bias)
    cost = Cost(kind="softmax", operation="softmax", elementwise_count=4 * rows * part.count,
                special_count=rows * part.count)  # fmt: skip
    chosen = graph.call(path, cost, (scores,), (rows, part.taken), suffix="choose", aten="softmax.int")
    entering, count = _dispatch(one, path, part, x)
    made = graph.run(
        f"{path}.experts",
        "experts",
        (entering,),
        beside=(chosen,),
        rows=count,
        hidden=part.hidden or hidden,
        inner=part.inner // (split.world // split.expert_devices),
        taken=part.taken,
        experts=part.count,
        held=part.count // split.expert_devices,
        gated=part.is_gated,
        bias=part.bias,
        routing=one.rows.routing,
    )
    made = _combine(one, path, part, made)
    if part.shared is not None:
        shared = network(one, f"{path}.shared_experts", part.shared, x)
        if part.shared_gate:
            one.linear(f"{path}.shared_expert_gate", x, 1, hidden)
        if split.data_devices > 1:
            shared = one.sum_up(f"{path}.shared_experts", shared)
        made = one.each(path, "add", made, shared)
    return made


def _reached(part: Experts, split: Split) -> float:
    """Return how many devices a token's experts lie on."""
    devices = split.expert_devices
    return devices * (1.0 - (1.0 - 1.0 / devices) ** part.taken)


def _dispatch(one: Pass, path: str, part: Experts, x: int) -> tuple[int, int]:
    """Return the tokens that reach a device's experts, and how many all devices have."""
    split, rows, hidden = one.split, one.rows.count, part.hidden or one.decoder.hidden
    if split.data_devices == 1:
        return x, rows
    if split.expert_devices == 1:
        whole = rows * split.data_devices
        return one.collect(f"{path}.dispatch", "all_gather", x, split.world, whole * hidden), whole
    sent = math.ceil(-(-rows // split.devices) * _reached(part, split)) * hidden
    x = one.collect(f"{path}.dispatch", "all_to_all", x, split.expert_devices, sent)
    return x, rows * split.data_devices


def _combine(one: Pass, path: str, part: Experts, x: int) -> int:
    """Return the tokens of a device, back from where their experts are."""
    split, rows, hidden = one.split, one.rows.count, part.hidden or one.decoder.hidden
    if split.data_devices == 1:
        return x
    if split.expert_devices == 1:
        return one.collect(f"{path}.combine", "reduce_scatter", x, split.world, rows * split.data_devices * hidden)
    sent = math.ceil(-(-rows // split.devices) * _reached(part, split)) * hidden
    return one.collect(f"{path}.combine", "all_to_all", x, split.expert_devices, sent)


def _tell_logits(one: Pass, x: int) -> None:
    """Tell the logits of the last token of each sequence, or of all tokens."""
    graph, decoder, rows = one.graph, one.decoder, one.rows
    count, width = rows.count, decoder.embedding_width or decoder.hidden
    if not rows.all_logits and count > len(rows.pieces) * rows.sequences:
        count = rows.sequences + bool(rows.chunk)
        cost = Cost(kind="data_movement", operation="index_select", gathers=True)
        x = graph.call("lm_head", cost, ((x, 4 * count * decoder.hidden),), (count, decoder.hidden), suffix="last")
    if width != decoder.hidden:
        x = one.linear("project_out", x, width, decoder.hidden, m=count)
    columns = one.split.part(decoder.vocabulary)
    weights = {"weight": "embed_tokens.weight"} if decoder.is_tied else {}
    logits = graph.run("lm_head", "gemm", (x,), weights=weights, m=count, n=columns, k=width, bias=decoder.head_bias)
    logits = one.collect("lm_head", "all_gather", logits, one.split.devices, count * columns * one.split.devices)
    if decoder.is_capped:
        logits = one.each("lm_head", "tanh", logits)
    graph.keep(logits)
