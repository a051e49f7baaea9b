"""Calls of a decoder pass, layer by layer: each GEMM, norm, rotation and append as in a framework."""

from __future__ import annotations

import math
from typing import Any

import attrs

from joulemap.physics import EVENLY, KEPT, STORED_AS, Workload, WorkloadKey
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import LOOKUP
from joulemap.trace.formula import Cost
from joulemap.trace.single import check_counts
from joulemap.trace.single.flow import ITEM_BYTES
from joulemap.wing.decoder.network.attention import attend, attend_latent
from joulemap.wing.decoder.network.compressed import attend_compressed, close_streams, collapse, expand, open_streams
from joulemap.wing.decoder.network.config import (
    Attention,
    Compressed,
    Decoder,
    Experts,
    Latent,
    Layer,
    Network,
    Published,
    Recurrence,
)
from joulemap.wing.decoder.network.decoder_pass import DecoderPass, check_step, is_prompt, list_overhead
from joulemap.wing.decoder.network.graph import Graph
from joulemap.wing.decoder.network.row import CACHE_DTYPES, EXCHANGED, Pass
from joulemap.wing.decoder.network.scan import recur


def describe_step(decoder: Decoder, step: DecoderPass, batch: int, key: WorkloadKey) -> Workload:
    """Return the fused workload of a pass of `batch` sequences; UsageError if the model does not accept it."""
    check_step(decoder, step)
    notes: tuple[str, ...] = (_note_routing(decoder, step),) if decoder.is_routed else ()
    published = decoder.published
    notes += (_note_published(published),) if published and (published.weights or published.doubt) else ()
    notes += decoder.file_notes
    return fuse(
        check_counts(build_graph(step.cut(decoder), step, batch).form(key, step.spell(decoder.name), batch, notes))
    )


def build_graph(decoder: Decoder, step: DecoderPass, batch: int, *, whole: Decoder | None = None) -> Graph:
    """Return the calls of a pass of `batch` sequences on one device, from tokens to logits, and its overhead.

    With pipeline stages, the layers belong to one stage, which starts from the output of the stage before. Overhead is
    that of all layers of `whole`, if `decoder` has only some of them.
    """
    graph = Graph(words=step.kernels)
    one = Pass(graph, decoder, step, -(-batch // step.data_devices))
    for layer in decoder.layers:
        one.find_angles(getattr(layer.mixer, "rotary", 0))
    x = _embed(one) if step.pipeline_devices == 1 else _receive(one)
    if decoder.streams and step.pipeline_devices == 1:
        x = open_streams(one, decoder.streams, x)
    for index, layer in enumerate(decoder.layers):
        x = _add_layer(one, f"layers.{index}", layer, x)
        graph.mark()
    if step.logits == "none":
        graph.keep(x)
    else:
        if decoder.streams:
            x = close_streams(one, decoder.streams, x)
        if decoder.final_norm:
            x = one.norm("norm", x, one.held, decoder.hidden)
        _add_logits(one, one.gather("norm", x))
    _mark_formats(graph, decoder)
    graph.operators += list_overhead(whole or decoder, step, batch)
    return graph


def _mark_formats(graph: Graph, decoder: Decoder) -> None:
    """Mark GEMMs with the checkpoint's format of their weights if it differs from the main format.

    Lookups in a table of tokens that a file converts are marked in any case, because others keep it at 16 bits.
    """
    main = decoder.published.weights if decoder.published else ""
    if not decoder.published or not main:
        return
    outside, layers = dict(decoder.published.stored), [dict(layer.stored) for layer in decoder.layers]
    for access in graph.accesses:
        held, operator = graph.held[access.tensor_index], graph.operators[access.operator_index]
        if not held.name or len(held.shape) < 2 or not (operator.mac_count or operator.operation == LOOKUP):
            continue
        index, _, weight = held.name.removeprefix("layers.").partition(".")
        is_inside = held.name.startswith("layers.")
        stored = layers[int(index)].get(weight, main) if is_inside else outside.get(held.name, "")
        if operator.operation == LOOKUP:
            marked = f"{main}{STORED_AS}{stored}" if stored else operator.variant
            graph.operators[access.operator_index] = attrs.evolve(operator, variant=marked)
            continue
        words = [word for word in operator.variant.split() if word != KEPT]
        words += [] if stored == main else [f"{main}{STORED_AS}{stored}" if stored else KEPT]
        graph.operators[access.operator_index] = attrs.evolve(operator, variant=" ".join(words))


def _note_routing(decoder: Decoder, step: DecoderPass) -> str:
    first = next(layer.network for layer in decoder.layers if isinstance(layer.network, Experts))
    sent = (
        "; tokens of prompts go once to each host with one of their experts (DeepEP, normal mode), others to each "
        "expert (low-latency mode), over links within a host and a network card per device between hosts; the busiest "
        f"device gets {step.busiest / 100:.2f} times the mean"
    )
    return (
        f"each token is assumed to choose {first.taken} of {first.count} experts {EVENLY} the number in use is "
        "that of random choice; a real router prefers some"
        if step.routing in ("", "balanced")
        else f"experts are chosen as routing={step.routing} states, not {EVENLY} all are used equally"
    ) + sent * step.sends_tokens


def _note_published(published: Published) -> str:
    if not published.weights:
        return f"quantization_config: {published.doubt}"
    return f"quantization_config: {published.describe()}, predicted as --weight-precision {published.weights}"


def _receive(one: Pass) -> int:
    """Add the transfer of tokens from the stage before; return their tensor.

    Each device sends its part to one device of the next stage.
    """
    width, step = one.decoder.hidden * max(one.decoder.streams, 1), one.step
    x = one.graph.enter((one.held, width))
    elements = -(-one.count * width // step.devices)
    return one.collect("receive", "send", x, step.world * step.pipeline_devices, elements)


def _embed(one: Pass) -> int:
    graph, decoder = one.graph, one.decoder
    width, tokens = decoder.embedding_width or decoder.hidden, graph.enter((one.count,), "int64")
    table = one.step.part(decoder.vocabulary)
    x = graph.run("embed_tokens", "embedding", (tokens,), rows=one.count, columns=width, table=table)
    x = one.sum_up("embed_tokens", x, width)
    if width != decoder.hidden:
        x = one.linear("project_in", x, decoder.hidden, width, m=one.held)
    if decoder.positions:
        positions = graph.enter((one.held,), "int64")
        sizes: dict[str, Any] = {"rows": one.held, "columns": decoder.hidden, "table": decoder.positions}
        x = one.each("embed_positions", "add", x, graph.run("embed_positions", "embedding", (positions,), **sizes))
    if decoder.embedding_norm:
        x = one.norm("embed_norm", x, one.held, decoder.hidden)
    table, each = decoder.per_layer
    if each:
        columns = each * len(decoder.layers)
        part = one.step.part(table)
        rows = graph.run("embed_tokens_per_layer", "embedding", (tokens,), rows=one.count, columns=columns, table=part)
        rows = one.sum_up("embed_tokens_per_layer", rows, columns)
        made = one.linear("per_layer_model_projection", x, columns, decoder.hidden)
        made = one.norm("per_layer_projection_norm", made, one.count * len(decoder.layers), each)
        one.tables = one.each("embed_tokens_per_layer", "add", rows, made)
    return x


def _add_layer(one: Pass, path: str, layer: Layer, x: int) -> int:
    """Add a layer; return the tensor of its output tokens."""
    rows, width = one.held, one.decoder.hidden
    parts = [part for part in (layer.mixer, layer.network) if part is not None]
    if one.decoder.streams:
        return _add_streams(one, path, layer, x)
    made, before = list[int](), x
    for index, part in enumerate(parts):
        name = "input_layernorm" if index == 0 else "post_attention_layernorm"
        if layer.has_norms_before and (not index or not layer.is_parallel or layer.norms > 1):
            before = one.norm(f"{path}.{name}", x, rows, width)
        elif not layer.is_parallel:
            before = x
        taken = one.gather(f"{path}.{name}", before)
        result = _mix(one, path, layer, taken) if part is layer.mixer else _add_part(one, path, part, taken, x)
        if layer.is_parallel:
            made.append(result)
            continue
        result = _finish(one, path, part, result)
        if layer.has_norms_behind:
            result = one.norm(f"{path}.{name}_behind", result, rows, width)
        x = one.each(path, "add", x, result, suffix=f"add_{index}")
    if not layer.is_parallel:
        return x if one.tables < 0 else _add_table_rows(one, path, x)
    total = one.each(path, "add", *made, suffix="add_parts")
    return one.each(path, "add", x, one.sum_up(path, total), suffix="add")


def _add_streams(one: Pass, path: str, layer: Layer, x: int) -> int:
    """Add a layer with hyper-connections; return the tensor of its residual streams."""
    streams = one.decoder.streams
    for index, part in enumerate(part for part in (layer.mixer, layer.network) if part is not None):
        joint = f"{path}.{'ffn_hc' if index else 'attn_hc'}"
        token, mix = collapse(one, joint, streams, x)
        name = "post_attention_layernorm" if index else "input_layernorm"
        before = one.gather(f"{path}.{name}", one.norm(f"{path}.{name}", token, one.held, one.decoder.hidden))
        result = _mix(one, path, layer, before) if part is layer.mixer else _add_part(one, path, part, before, token)
        x = expand(one, joint, streams, x, _finish(one, path, part, result), mix)
    return x


def _finish(one: Pass, path: str, part: object, result: int) -> int:
    """Sum the result of a part over all devices, if it is divided and not yet summed; return the tensor."""
    if isinstance(part, Experts) and one.step.data_devices > 1:
        return result
    name = "mlp" if isinstance(part, Network | Experts) else "self_attn"
    return one.sum_up(f"{path}.{name}", result)


def _mix(one: Pass, path: str, layer: Layer, x: int) -> int:
    """Add the mixers of a layer; return their result, before it is summed over devices."""
    one.keeps = one.decoder.keeps_mixers
    made = _run_mixer(one, path, layer.mixer, x)
    if layer.beside is not None:
        made = one.each(path, "add", made, _run_mixer(one, path, layer.beside, x), suffix="add_mixers")
    one.keeps = False
    return made


def _run_mixer(one: Pass, path: str, mixer: object, x: int) -> int:
    if isinstance(mixer, Attention):
        return attend(one, f"{path}.self_attn", mixer, x)
    if isinstance(mixer, Latent):
        return attend_latent(one, f"{path}.self_attn", mixer, x)
    if isinstance(mixer, Compressed):
        return attend_compressed(one, f"{path}.self_attn", mixer, x)
    assert isinstance(mixer, Recurrence)
    return recur(one, f"{path}.mixer", mixer, x)


def _add_table_rows(one: Pass, path: str, x: int) -> int:
    """Add the gated rows of this layer's token table to the tokens; return the tensor."""
    rows, hidden, each = one.count, one.decoder.hidden, one.decoder.per_layer[1]
    gate = one.each(path, "gelu", one.linear(f"{path}.per_layer_input_gate", x, each, hidden), suffix="per_layer_act")
    reads = (gate, (one.tables, ITEM_BYTES * rows * each))
    let_in = one.compute(path, "mul", reads, (rows, each), rows * each, suffix="let_in")
    made = one.linear(f"{path}.per_layer_projection", let_in, hidden, each)
    return one.each(path, "add", x, one.norm(f"{path}.post_per_layer_input_norm", made, rows, hidden), suffix="add_2")


def _add_part(one: Pass, path: str, part: object, before: int, x: int) -> int:
    """Add a layer's network or experts for the normalized tokens `before`; return the output. `x` holds the tokens as
    they are.
    """
    if isinstance(part, Network):
        return network(one, f"{path}.mlp", part, before)
    assert isinstance(part, Experts)
    if part.beside is None:
        return _route(one, f"{path}.mlp", part, before)
    rows, hidden = one.count, one.decoder.hidden
    own = one.norm(f"{path}.mlp_behind", network(one, f"{path}.mlp", part.beside, before), rows, hidden)
    taken = one.norm(f"{path}.experts_before", x, rows, hidden)
    routed = one.norm(f"{path}.experts_behind", _route(one, f"{path}.moe", part, taken), rows, hidden)
    return one.each(path, "add", own, routed, suffix="add_beside")


def network(one: Pass, path: str, part: Network, x: int) -> int:
    """Add an MLP; return its output tensor."""
    hidden, inner = one.decoder.hidden, one.step.part(part.inner)
    made = one.linear(f"{path}.{'gate_proj' if part.is_gated else 'up_proj'}", x, inner, hidden, bias=part.bias)
    made = one.each(f"{path}.act_fn", "relu" if part.function == "relu2" else part.function, made)
    if part.function == "relu2":
        made = one.each(f"{path}.act_fn", "mul", made, made, suffix="square")
    if part.is_gated:
        up = one.linear(f"{path}.up_proj", x, inner, hidden, bias=part.bias)
        made = one.each(path, "mul", made, up)
    return one.linear(f"{path}.down_proj", made, hidden, inner, bias=part.output_bias)


def _route(one: Pass, path: str, part: Experts, x: int) -> int:
    """Add a device's experts for the tokens routed to it, and the shared experts; return the output tensor."""
    graph, split, hidden = one.graph, one.step, one.decoder.hidden
    rows = one.count
    seen = x
    if part.router_scale:
        seen = graph.run(f"{path}.router", "rms_norm", (x,), rows=rows, columns=hidden)
    scores = one.linear(f"{path}.gate", seen, part.count, hidden, bias=part.router_bias, keeps=True)
    scales = (graph.weigh(f"{path}.router.scale", (part.count,)),) if part.router_scale else ()
    cost = Cost(kind="softmax", operation="softmax", elementwise_count=4 * rows * part.count,
                special_count=rows * part.count)  # fmt: skip
    chosen = graph.call(path, cost, (scores, *scales), (rows, part.taken), suffix="choose", aten="softmax.int")
    narrow = one.linear(f"{path}.fc1_latent_proj", x, part.hidden, hidden) if part.hidden else x
    entering, count = _dispatch(one, path, part, narrow)
    held, sends = -(-part.count // split.expert_devices), split.sends_tokens
    made = graph.run(
        f"{path}.experts",
        "experts",
        (entering,),
        beside=(chosen,),
        rows=count,
        hidden=part.hidden or hidden,
        inner=part.inner // (split.world // split.expert_devices),
        taken=1 if sends else part.taken,
        experts=held if sends else part.count,
        held=held,
        gated=part.is_gated,
        function="relu" if part.function == "relu2" else part.function,
        bias=part.bias,
        routing=one.step.routing,
    )
    made = _combine(one, path, part, made)
    if part.hidden:
        made = one.linear(f"{path}.fc2_latent_proj", made, hidden, part.hidden)
    if part.shared is not None:
        shared = network(one, f"{path}.shared_experts", part.shared, x)
        if part.shared_gate:
            one.linear(f"{path}.shared_experts.gate", x, 1, hidden)
        if split.data_devices > 1:
            shared = one.sum_up(f"{path}.shared_experts", shared)
        made = one.each(path, "add", made, shared)
    return made


def _dispatch(one: Pass, path: str, part: Experts, x: int) -> tuple[int, int]:
    """Add the transfer of tokens to the devices of their experts; return their tensor and the number of tokens that
    arrive, which is that of choices if only a device's own experts see them.
    """
    split, rows, hidden = one.step, one.count, part.hidden or one.decoder.hidden
    whole = rows * split.data_devices
    if split.data_devices == 1:
        return x, rows
    if split.expert_devices == 1:
        return one.collect(f"{path}.dispatch", "all_gather", x, split.world, whole * hidden), whole
    published = one.decoder.published
    narrow = published is not None and published.precision == "fp8"
    x = _exchange(one, f"{path}.dispatch", part, x, CACHE_DTYPES["fp8"] if narrow else EXCHANGED)
    return x, math.ceil(whole * part.taken * split.busiest / (100 * split.expert_devices))


def _exchange(one: Pass, path: str, part: Experts, x: int, dtype: str = EXCHANGED) -> int:
    """Add a transfer of tokens to their experts, or back: once to each host for prompts, else to each expert."""
    split, devices = one.step, one.step.expert_devices
    taken, kernel = (part.taken, "deepep") if is_prompt(split) else (1, "deepep_ll")
    copies = devices * (1.0 - (1.0 - 1.0 / devices) ** part.taken) if taken > 1 else part.taken
    tokens = math.ceil(-(-one.count // split.devices) * copies * split.busiest / 100)
    elements = tokens * (part.hidden or one.decoder.hidden)
    made = one.collect(path, "all_to_all", x, devices, elements, dtype, kernel=kernel)
    # Neighbours are one device apart, maybe on other hosts.
    exchange = attrs.evolve(one.graph.operators[-1], gemm_n=taken, gemm_k=1, tap_count=split.micro_batches)
    one.graph.operators[-1] = exchange
    return made


def _combine(one: Pass, path: str, part: Experts, x: int) -> int:
    """Add the transfer of a device's tokens back from their experts; return their tensor."""
    split, rows, hidden = one.step, one.count, part.hidden or one.decoder.hidden
    if split.data_devices == 1:
        return x
    if split.expert_devices == 1:
        return one.collect(f"{path}.combine", "reduce_scatter", x, split.world, rows * split.data_devices * hidden)
    return _exchange(one, f"{path}.combine", part, x)


def _add_logits(one: Pass, x: int) -> None:
    """Add the logits of the last token of each sequence, or of all tokens."""
    graph, decoder = one.graph, one.decoder
    count, width = one.count, decoder.embedding_width or decoder.hidden
    if one.step.logits != "all" and count > len(one.pieces) * one.sequences:
        count = one.sequences + bool(one.step.chunk)
        cost = Cost(kind="data_movement", operation="index_select", gathers=True)
        x = graph.call("lm_head", cost, ((x, 4 * count * decoder.hidden),), (count, decoder.hidden), suffix="last")
    if width != decoder.hidden:
        x = one.linear("project_out", x, width, decoder.hidden, m=count)
    columns = one.step.part(decoder.vocabulary)
    weights = {"weight": "embed_tokens.weight"} if decoder.is_tied else {}
    logits = graph.run("lm_head", "gemm", (x,), weights=weights, m=count, n=columns, k=width, bias=decoder.head_bias)
    graph.keep_weights()
    logits = one.collect("lm_head", "all_gather", logits, one.step.devices, count * columns * one.step.devices)
    if decoder.is_capped:
        logits = one.each("lm_head", "tanh", logits)
    graph.keep(logits)
