"""Model families with mixtures of experts or multi-head latent attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.wing.llm.decoder.config import Decoder, Experts, Latent, Layer, Mixer
from joulemap.wing.llm.decoder.family import Family, Settings, unless_used


def choose_experts(settings: Settings, **changes: Any) -> Experts:
    """Return the most common mixture of experts: gated, without biases, with or without shared experts."""
    inner = settings.number("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    shared = settings.number("n_shared_experts", "num_shared_experts", "num_shared_expert", default=0)
    width = settings.number("shared_expert_intermediate_size", "shared_intermediate_size", default=0)
    sizes: dict[str, Any] = {
        "count": settings.number("n_routed_experts", "num_experts", "num_local_experts"),
        "taken": settings.number("num_experts_per_tok", "moe_topk", "top_k_experts"),
        "inner": inner,
        "function": settings.function,
        "shared": settings.network(inner=width or inner * shared) if width or shared else None,
    }
    return Experts(**{**sizes, **changes})


def _interleave(settings: Settings, mixers: Sequence[Mixer | None], experts: Experts | None = None) -> Decoder:
    """Return layers of these mixers with experts, except for those that the configuration makes dense."""
    told = settings.number("n_routed_experts", "num_experts", "num_local_experts", default=0)
    every = settings.number("decoder_sparse_step", "moe_layer_freq", default=1) or 1
    first = settings.number("first_k_dense_replace", default=0)
    plain = {*settings.listed("mlp_only_layers"), *range(first)}
    net = settings.network()
    some = experts or (choose_experts(settings) if told else None)
    offset = "decoder_sparse_step" in settings.values
    kinds = (
        net if some is None or index in plain or (index + offset) % every else some for index in range(len(mixers))
    )
    return settings.decoder([Layer(mixer=mixer, network=kind) for mixer, kind in zip(mixers, kinds, strict=True)])


def _attentions(settings: Settings, **attention: Any) -> list[Mixer]:
    windows = (attention.pop("window"),) * settings.layers if "window" in attention else settings.windows
    return [settings.attention(window=one, **attention) for one in windows]


def mixtral(settings: Settings) -> Decoder:
    """Return a mixture of experts in each layer."""
    return _interleave(settings, _attentions(settings))


def qwen2_moe(settings: Settings) -> Decoder:
    """Return a mixture of experts with gated shared experts."""
    experts = choose_experts(settings, shared_gate=True)
    return _interleave(settings, _attentions(settings, bias=True, output_bias=False, **unless_used(settings)), experts)


def qwen3_moe(settings: Settings) -> Decoder:
    """Return a mixture of experts with normalized heads of queries and keys."""
    return _interleave(settings, _attentions(settings, norm="head", **unless_used(settings)))


def glm4_moe(settings: Settings) -> Decoder:
    """Return a mixture of experts after a few dense layers, with rotary embedding on half of each head."""
    norm, bias = "head" if settings.flag("use_qk_norm") else "", settings.flag("attention_bias")
    return _interleave(
        settings, _attentions(settings, norm=norm, rotary=settings.rotary(0.5), bias=bias, output_bias=False)
    )


def minimax_m2(settings: Settings) -> Decoder:
    """Return a mixture of experts with normalized rows of queries and keys."""
    turned = settings.number("rotary_dim", default=settings.head_dim)
    return _interleave(settings, _attentions(settings, norm="row", rotary=turned))


def hunyuan_moe(settings: Settings) -> Decoder:
    """Return a mixture of experts with a shared network, and normalized heads of queries and keys."""

    def first(name: str, default: int) -> int:
        found = settings.listed(name)
        return int(found[0]) if found else settings.number(name, default=default)

    inner = first("moe_intermediate_size", settings.number("intermediate_size"))
    shared = settings.network(inner=settings.number("intermediate_size") * first("num_shared_expert", 1))
    experts = Experts(count=settings.number("num_experts"), taken=first("moe_topk", 1), inner=inner, shared=shared)
    return _interleave(settings, _attentions(settings, norm="head"), experts)


def gpt_oss(settings: Settings) -> Decoder:
    """Return a mixture of experts with biases everywhere and a window in every second layer.

    Only its experts are stored narrow. Source: `modules_to_not_convert` of its configuration (recalled).
    """
    experts = choose_experts(settings, bias=True, router_bias=True)
    mixers = _attentions(attrs.evolve(settings, every=2), bias=True, output_bias=True, sinks=1)
    return attrs.evolve(_interleave(settings, mixers, experts), keeps_mixers=True)


def llama4(settings: Settings) -> Decoder:
    """Return a mixture of experts with a shared network in some layers; three of four layers attend to chunks."""
    every, count = settings.number("no_rope_layer_interval", default=4), settings.layers
    turned = settings.listed("no_rope_layers") or [int((index + 1) % every != 0) for index in range(count)]
    piece, norm = settings.number("attention_chunk_size", default=0), settings.flag("use_qk_norm", default=True)
    mixers = [
        settings.attention(window=piece, norm="free" if norm else "")
        if turned[index]
        else settings.attention(rotary=0, window=0)
        for index in range(count)
    ]
    step = settings.number("interleave_moe_layer_step", default=1)
    routed = set(settings.listed("moe_layers") or range(step - 1, count, step))
    shared = settings.network(inner=settings.number("intermediate_size"))
    experts = choose_experts(settings, inner=settings.number("intermediate_size"), shared=shared)
    net = settings.network(inner=settings.number("intermediate_size_mlp", "intermediate_size"))
    return settings.decoder(
        [Layer(mixer=mixer, network=experts if index in routed else net) for index, mixer in enumerate(mixers)]
    )


def deepseek(settings: Settings) -> Decoder:
    """Return multi-head latent attention, and a mixture with shared experts after a few dense layers."""
    if settings.values.get("use_mla") is False:
        return _interleave(settings, _attentions(settings))
    latent = Latent(
        heads=settings.heads,
        query_rank=settings.number("q_lora_rank", default=0),
        rank=settings.number("kv_lora_rank"),
        plain=settings.number("qk_nope_head_dim"),
        rotary=settings.number("qk_rope_head_dim"),
        value_dim=settings.number("v_head_dim"),
        bias=settings.flag("attention_bias"),
    )
    return _interleave(settings, [latent] * settings.layers)


def granitemoe(settings: Settings) -> Decoder:
    """Return a mixture of experts in each layer, with or without a shared network."""
    return _interleave(settings, _attentions(settings))


def shared_keys(settings: Settings) -> Decoder:
    """Return gemma 4: norms before and after parts, windows in five of six layers, and shared keys and values.

    Layers without a window have wider heads, whose keys may also be the values. Later layers use the keys of earlier
    ones. Each layer has a token table, and experts run beside the MLP.
    """
    own = settings.layers - settings.number("num_kv_shared_layers", default=0)
    wide = settings.number("global_head_dim", default=512)
    pairs = settings.number("num_global_key_value_heads", default=settings.pairs)
    same = settings.flag("attention_k_eq_v")
    layers = []
    for index, window in enumerate(attrs.evolve(settings, every=6).windows):
        sizes: dict[str, Any] = {"norm": "head", "value_norm": True, "window": window, "shares": index >= own}
        if not window:
            turned = int(wide * 0.25)
            sizes |= {
                "head_dim": wide,
                "kv_heads": pairs if same else settings.pairs,
                "rotary": turned,
                "has_values": not same,
            }
        double = settings.flag("use_double_wide_mlp") and index >= own
        net = settings.network(function="gelu", inner=settings.number("intermediate_size") * (1 + double))
        part = (
            choose_experts(settings, beside=net, router_scale=True, function="gelu")
            if settings.flag("enable_moe_block")
            else net
        )
        layers.append(Layer(mixer=settings.attention(**sizes), network=part, has_norms_behind=True))
    each = settings.number("hidden_size_per_layer_input", default=0)
    rows = settings.number("vocab_size_per_layer_input", default=settings.number("vocab_size"))
    return settings.decoder(
        layers,
        is_tied=settings.flag("tie_word_embeddings", default=True),
        is_capped=settings.values.get("final_logit_softcapping") is not None,
        per_layer=(rows, each) if each else (0, 0),
    )


MIXTURES: Final[Mapping[str, Family]] = {
    "mixtral": mixtral, "olmoe": minimax_m2, "flex_olmo": minimax_m2,
    "qwen2_moe": qwen2_moe, "qwen3_moe": qwen3_moe, "qwen3_vl_moe": qwen3_moe, "qwen3_omni_moe": qwen3_moe,
    "dots1": qwen3_moe, "glm4_moe": glm4_moe, "minimax_m2": minimax_m2, "hunyuan_v1_moe": hunyuan_moe,
    "gpt_oss": gpt_oss, "llama4": llama4, "granitemoe": granitemoe, "granitemoeshared": granitemoe,
    **dict.fromkeys(
        ("deepseek", "deepseekv2", "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "minicpm3"),
        deepseek
    ),
    "gemma4": shared_keys,
}  # fmt: skip
"""Reader of each model_type."""
