"""Families of decoders: how the configuration of each model_type says the sizes of its layers.

A family is a function of a configuration; what families have in common is `Sizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.decoder.config import Attention, Decoder, Experts, Latent, Layer, Network
from joulemap.system.errors import ModelError

Family = Callable[["Settings"], Decoder]

FUNCTIONS: Final = {
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "relu": "relu",
    "relu2": "relu2",
}
"""Names of functions in configurations -> as they are counted; all others are a gelu."""

FULL: Final = ("full_attention", "full", "attention", "global", "nope")


@attrs.frozen
class Settings:
    """A configuration, read by name."""

    name: str
    values: Mapping[str, Any]

    def number(self, *names: str, default: int | None = None) -> int:
        """Return the first of these that is there; ModelError for none, or what is no whole number."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
                raise ModelError(f"{self.name}: {name} is {value!r}, expected a whole number")
            return int(value)
        if default is None:
            raise ModelError(f"{self.name}: the configuration has no {' or '.join(names)}")
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether it is set."""
        value = self.values.get(name)
        return default if value is None else bool(value)

    def text(self, *names: str, default: str = "") -> str:
        """Return the first of these that is a text."""
        found = (self.values.get(name) for name in names)
        return next((one for one in found if isinstance(one, str)), default)

    def listed(self, name: str) -> Sequence[Any]:
        """Return a list, empty where it is none."""
        value = self.values.get(name)
        return value if isinstance(value, list | tuple) else ()

    @property
    def hidden(self) -> int:
        """Width of the model."""
        return self.number("hidden_size", "n_embd", "d_model", "dim")

    @property
    def layers(self) -> int:
        """Layers."""
        return self.number("num_hidden_layers", "n_layer", "n_layers", "num_layers")

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return self.number("num_attention_heads", "n_head", "n_heads")

    @property
    def pairs(self) -> int:
        """Heads of keys."""
        return self.number("num_key_value_heads", default=self.heads) or self.heads

    @property
    def head_dim(self) -> int:
        """Elements of a head."""
        return self.number("head_dim", default=self.hidden // self.heads)

    def rotary(self, share: float = 1.0) -> int:
        """Return the elements of a head that are turned."""
        told = self.values.get("partial_rotary_factor", self.values.get("rotary_pct"))
        nested = self.values.get("rope_parameters")
        if told is None and isinstance(nested, dict):
            told = nested.get("partial_rotary_factor")
        return int(self.head_dim * float(share if told is None else told))

    @property
    def function(self) -> Any:
        """What stands between the products of a network."""
        name = self.text(
            "hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "hidden_activation"
        )
        return FUNCTIONS.get(name or "silu", "gelu")

    @property
    def windows(self) -> tuple[int, ...]:
        """What each layer sees, 0 for all: of its layer types, a pattern, or a window of all."""
        window = self.number("sliding_window", default=0)
        count = self.layers
        types = self.listed("layer_types")
        if len(types) >= count:
            return tuple(0 if one in FULL or "full" in str(one) else window for one in types[:count])
        if not window or not self.flag("use_sliding_window", default=True):
            return (0,) * count
        every = self.number("sliding_window_pattern", default=0)
        if every > 1:
            return tuple(0 if (index + 1) % every == 0 else window for index in range(count))
        return (window,) * count

    def attention(self, **changes: Any) -> Attention:
        """Return attention as most have it."""
        sizes: dict[str, Any] = {
            "heads": self.heads,
            "kv_heads": self.pairs,
            "head_dim": self.head_dim,
            "rotary": self.rotary(),
            "bias": self.flag("attention_bias"),
            "output_bias": self.flag("attention_bias"),
        }
        return Attention(**{**sizes, **changes})

    def network(self, **changes: Any) -> Network:
        """Return the network of each token as most have it: gated, without biases."""
        bias = self.flag("mlp_bias")
        sizes: dict[str, Any] = {"function": self.function, "bias": bias, "output_bias": bias}
        if "inner" not in changes:
            sizes["inner"] = self.number("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", default=0)
            sizes["inner"] = sizes["inner"] or 4 * self.hidden
        return Network(**{**sizes, **changes})

    def decoder(self, layers: Sequence[Layer], **changes: Any) -> Decoder:
        """Return the decoder of these layers."""
        sizes: dict[str, Any] = {
            "name": self.name,
            "model_type": self.text("model_type"),
            "hidden": self.hidden,
            "vocabulary": self.number("vocab_size", "padded_vocab_size"),
            "layers": tuple(layers),
            "is_tied": self.flag("tie_word_embeddings"),
            "context_length": self.number(
                "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", default=0
            ),
        }
        return Decoder(**{**sizes, **changes})


def dense(settings: Settings, *, network: Network | None = None, changes: Mapping[str, Any] | None = None,
          **attention: Any) -> Decoder:  # fmt: skip
    """Return norm, attention, norm, gated network: llama and what is built like it."""
    net = network or settings.network()
    windows = settings.windows if "window" not in attention else (attention.pop("window"),) * settings.layers
    layers = (Layer(mixer=settings.attention(window=one, **attention), network=net) for one in windows)
    return settings.decoder(tuple(layers), **(changes or {}))


def qwen2(settings: Settings) -> Decoder:
    """Return a decoder whose queries, keys and values are shifted."""
    count, most = settings.layers, settings.number("max_window_layers", default=settings.layers)
    used = settings.number("sliding_window", default=0) if settings.flag("use_sliding_window") else 0
    net = settings.network()
    windows = settings.windows if settings.listed("layer_types") else [used * (one >= most) for one in range(count)]
    layers = (Layer(mixer=settings.attention(window=one, bias=True, output_bias=False), network=net) for one in windows)
    return settings.decoder(tuple(layers))


def qwen3(settings: Settings) -> Decoder:
    """Return a decoder that normalizes each head of queries and keys."""
    return dense(settings, norm="head", **_unless_used(settings))


def _unless_used(settings: Settings) -> dict[str, Any]:
    return {} if settings.flag("use_sliding_window") or settings.listed("layer_types") else {"window": 0}


def phi3(settings: Settings) -> Decoder:
    """Return a decoder whose queries, keys and values are one product."""
    return dense(settings, is_packed=True)


def mixture(settings: Settings, **attention: Any) -> Decoder:
    """Return a decoder whose layers have experts, but for those that say otherwise."""
    count = settings.layers
    every = settings.number("decoder_sparse_step", default=1) or 1
    plain = set(settings.listed("mlp_only_layers"))
    experts = Experts(
        count=settings.number("num_experts", "num_local_experts"),
        taken=settings.number("num_experts_per_tok"),
        inner=settings.number("moe_intermediate_size", "intermediate_size"),
    )
    shared = settings.number("shared_expert_intermediate_size", default=0)
    if shared:
        experts = attrs.evolve(experts, shared=settings.network(inner=shared), shared_gate=True)
    net = settings.network()
    windows = settings.windows if "window" not in attention else (attention.pop("window"),) * count
    layers = (
        Layer(
            mixer=settings.attention(window=window, **attention),
            network=net if index in plain or (index + 1) % every else experts,
        )
        for index, window in enumerate(windows)
    )
    return settings.decoder(tuple(layers))


def qwen2_moe(settings: Settings) -> Decoder:
    """Return a mixture beside shared experts, which a gate weighs."""
    return mixture(settings, bias=True, output_bias=False, **_unless_used(settings))


def qwen3_moe(settings: Settings) -> Decoder:
    """Return a mixture that normalizes each head of queries and keys."""
    return mixture(settings, norm="head", **_unless_used(settings))


def deepseek(settings: Settings) -> Decoder:
    """Return a mixture with shared experts behind a few dense layers, with attention through a latent."""
    latent = Latent(
        heads=settings.heads,
        query_rank=settings.number("q_lora_rank", default=0),
        rank=settings.number("kv_lora_rank"),
        plain=settings.number("qk_nope_head_dim"),
        rotary=settings.number("qk_rope_head_dim"),
        value_dim=settings.number("v_head_dim"),
        bias=settings.flag("attention_bias"),
    )
    return _behind_dense(settings, latent)


def _behind_dense(settings: Settings, mixer: Any) -> Decoder:
    count = settings.number("n_routed_experts", "num_experts", default=0)
    net = settings.network()
    if not count:
        return settings.decoder([Layer(mixer=mixer, network=net)] * settings.layers)
    inner = settings.number("moe_intermediate_size")
    shared = settings.number("n_shared_experts", "num_shared_experts", default=0)
    experts = Experts(
        count=count,
        taken=settings.number("num_experts_per_tok"),
        inner=inner,
        shared=settings.network(inner=inner * shared) if shared else None,
    )
    first = settings.number("first_k_dense_replace", default=0)
    every = settings.number("moe_layer_freq", default=1) or 1
    return settings.decoder(
        [
            Layer(mixer=mixer, network=experts if index >= first and index % every == 0 else net)
            for index in range(settings.layers)
        ]
    )


FAMILIES: Final[Mapping[str, Family]] = {
    **dict.fromkeys(
        ("llama", "mistral", "ministral", "ministral3", "yi", "granite", "internlm2", "aquila", "deci"), dense
    ),
    "qwen2": qwen2,
    "qwen3": qwen3,
    "phi3": phi3,
    "mixtral": mixture,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
}
"""model_type -> what reads it."""
