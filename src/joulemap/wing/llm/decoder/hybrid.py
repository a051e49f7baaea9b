"""Model families with fixed-size states: recurrences alone, or combined with attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from joulemap.system.errors import ModelError
from joulemap.wing.llm.decoder.config import Decoder, Experts, Layer, Recurrence
from joulemap.wing.llm.decoder.family import Family, Settings


def mamba(settings: Settings) -> Decoder:
    """Return a selective state-space model, each channel with a state of its own."""
    inner = settings.number("intermediate_size", default=settings.number("expand", default=2) * settings.hidden)
    mixer = Recurrence(
        kind="mamba",
        heads=inner,
        head_dim=1,
        state=settings.number("state_size", default=16),
        groups=1,
        kernel=settings.number("conv_kernel", default=4),
        rank=settings.number("time_step_rank", default=-(-settings.hidden // 16)),
        conv_bias=settings.flag("use_conv_bias", default=True),
        bias=settings.flag("use_bias"),
        has_norms=settings.text("model_type") == "falcon_mamba",
    )
    tied = settings.flag("tie_word_embeddings", default=True)
    return settings.decoder([Layer(mixer=mixer, network=None)] * settings.layers, is_tied=tied)


def _mamba2(settings: Settings) -> Recurrence:
    inner = settings.number("expand", default=2) * settings.hidden
    width = settings.number("mamba_head_dim", "head_dim", "mamba_d_head", default=64)
    return Recurrence(
        kind="mamba2",
        heads=settings.number("mamba_num_heads", "num_heads", "mamba_n_heads", default=inner // width),
        head_dim=width,
        state=settings.number("ssm_state_size", "state_size", "mamba_d_state", default=128),
        groups=settings.number("n_groups", "mamba_n_groups", default=8),
        kernel=settings.number("conv_kernel", "mamba_d_conv", default=4),
        conv_bias=settings.flag("use_conv_bias", default=True),
        bias=settings.flag("use_bias"),
    )


def mamba2(settings: Settings) -> Decoder:
    """Return a selective state-space model with one state per value head."""
    tied = settings.flag("tie_word_embeddings")
    return settings.decoder([Layer(mixer=_mamba2(settings), network=None)] * settings.layers, is_tied=tied)


def nemotron_h(settings: Settings) -> Decoder:
    """Return layers of one part each, given by a letter: a state space, attention, an MLP or a mixture of experts."""
    net = settings.network(
        is_gated=False, function=settings.function if settings.values.get("mlp_hidden_act") else "relu2"
    )
    kinds: dict[str, Layer] = {
        "M": Layer(mixer=_mamba2(settings), network=None),
        "*": Layer(mixer=settings.attention(rotary=0), network=None),
        "-": Layer(mixer=None, network=net),
    }
    pattern = settings.text("hybrid_override_pattern")
    if "E" in pattern:
        shared = settings.network(
            is_gated=False, function=net.function, inner=settings.number("moe_shared_expert_intermediate_size")
        )
        kinds["E"] = Layer(
            mixer=None,
            network=Experts(
                count=settings.number("n_routed_experts"),
                taken=settings.number("num_experts_per_tok"),
                inner=settings.number("moe_intermediate_size"),
                hidden=settings.number("moe_latent_size", default=0),
                is_gated=False,
                function=net.function,
                shared=shared,
            ),
        )
    unknown = sorted(set(pattern) - set(kinds))
    if unknown or not pattern:
        raise ModelError(
            f"{settings.name}: hybrid_override_pattern is {pattern!r}, expected letters of {''.join(kinds)}"
        )
    return settings.decoder([kinds[letter] for letter in pattern])


def gated_delta(settings: Settings) -> Decoder:
    """Return gated delta rules in three of four layers, and gated attention in the others."""
    from joulemap.wing.llm.decoder.mixture import choose_experts

    count, every = settings.layers, settings.number("full_attention_interval", default=4)
    types = settings.listed("layer_types") or [
        "linear_attention" if (index + 1) % every else "full_attention" for index in range(count)
    ]
    mixers: dict[bool, Any] = {
        True: Recurrence(
            kind="delta",
            heads=settings.number("linear_num_value_heads"),
            head_dim=settings.number("linear_value_head_dim"),
            state=settings.number("linear_key_head_dim"),
            groups=settings.number("linear_num_key_heads"),
            kernel=settings.number("linear_conv_kernel_dim", default=4),
            conv_bias=False,
        ),
        False: settings.attention(norm="head", is_gated=True, rotary=settings.rotary(0.25)),
    }
    routed = settings.number("num_experts", default=0) > 0
    part = choose_experts(settings, shared_gate=True) if routed else settings.network()
    return settings.decoder([Layer(mixer=mixers["linear" in str(one)], network=part) for one in types[:count]])


HYBRIDS: Final[Mapping[str, Family]] = {
    "mamba": mamba,
    "falcon_mamba": mamba,
    "mamba2": mamba2,
    "nemotron_h": nemotron_h,
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe"), gated_delta),
}
"""Reader of each model_type."""
