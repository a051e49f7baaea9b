"""Model families: rules that read layer sizes from the configuration of each model_type.

A family is a function of a configuration; `Settings` holds the parts that families share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.system.errors import ModelError
from joulemap.trace.configuration import read_whole
from joulemap.wing.llm.decoder.config import Attention, Decoder, Layer, Network

Family = Callable[["Settings"], Decoder]

FUNCTIONS: Final = {
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "relu": "relu",
    "relu2": "relu2",
}
"""Function name in configurations -> name of the counted operator; all others count as gelu."""


ROUTED: Final = ("n_routed_experts", "num_experts", "num_local_experts")
"""Settings of models with experts, which may have no layer with a network of its own size."""


@attrs.frozen
class Settings:
    """Configuration with typed access by name."""

    name: str
    values: Mapping[str, Any]
    every: int = 0
    """Default period of layers, the last of which attends to all tokens; 0 for none."""

    def number(self, *names: str, default: int | None = None, least: int = 0) -> int:
        """Return the first of these settings; ModelError if none exists or it is no whole number in its limits."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                return read_whole(name, value, self.name, least)
        if default is None:
            raise ModelError(f"{self.name}: the configuration has no {' or '.join(names)}")
        return default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether a setting is true; ModelError for a value that is no boolean."""
        value = self.values.get(name)
        if value not in (None, False, True):
            raise ModelError(f"{self.name}: {name} is {str(value)[:60]!r}, expected true or false")
        return default if value is None else bool(value)

    def text(self, *names: str, default: str = "") -> str:
        """Return the first of these settings that is a text."""
        found = (self.values.get(name) for name in names)
        return next((one for one in found if isinstance(one, str)), default)

    def listed(self, name: str) -> Sequence[Any]:
        """Return a list setting; empty if it is no list."""
        value = self.values.get(name)
        return value if isinstance(value, list | tuple) else ()

    @property
    def hidden(self) -> int:
        """Width of the model."""
        return self.number("hidden_size", "n_embd", "d_model", "dim", least=1)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.number("num_hidden_layers", "n_layer", "n_layers", "num_layers", least=1)

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return self.number("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", least=1)

    @property
    def pairs(self) -> int:
        """Number of key-value heads."""
        return self.number("num_key_value_heads", default=self.heads) or self.heads

    @property
    def head_dim(self) -> int:
        """Elements per head."""
        return self.number("head_dim", default=self.hidden // self.heads, least=1)

    @property
    def context(self) -> int:
        """Maximum context in tokens that the model was made for; 0 if not stated."""
        names = "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"
        return self.number(*names, default=0)

    @property
    def is_tied(self) -> bool:
        """True if the output head shares the embedding table, which is the default."""
        return self.flag("tie_word_embeddings", default=True)

    def rotary(self, share: float = 1.0) -> int:
        """Return the elements per head with rotary position embedding."""
        told = self.values.get("partial_rotary_factor", self.values.get("rotary_pct"))
        nested = self.values.get("rope_parameters")
        if told is None and isinstance(nested, dict):
            told = nested.get("partial_rotary_factor")
        part = share if told is None else told
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0.0 <= part <= 1.0:
            raise ModelError(f"{self.name}: the rotary part of a head is {str(part)[:60]!r}, expected a number to 1")
        return int(self.head_dim * part)

    @property
    def function(self) -> Any:
        """Activation function between the products of a network."""
        name = self.text(
            "hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "hidden_activation"
        )
        return FUNCTIONS.get(name or "silu", "gelu")

    @property
    def windows(self) -> tuple[int, ...]:
        """Attention window of each layer, 0 for all tokens: from layer types, a pattern, or one common window."""
        window = self.number("sliding_window", default=0)
        count = self.layers
        types = self.listed("layer_types")
        if len(types) >= count:
            return tuple(window if "sliding" in str(one) else 0 for one in types[:count])
        if not window or not self.flag("use_sliding_window", default=True):
            return (0,) * count
        every = self.number("sliding_window_pattern", default=self.every)
        if every > 1:
            return tuple(0 if (index + 1) % every == 0 else window for index in range(count))
        return (window,) * count

    def attention(self, **changes: Any) -> Attention:
        """Return the most common form of attention."""
        sizes: dict[str, Any] = {
            "heads": self.heads,
            "kv_heads": self.pairs,
            "head_dim": self.head_dim,
            "rotary": self.rotary(),
            "bias": self.flag("attention_bias"),
            "output_bias": self.flag("attention_bias"),
        }
        mixer = Attention(**{**sizes, **changes})
        if mixer.kv_heads < 1 or mixer.heads % mixer.kv_heads:
            raise ModelError(f"{self.name}: {mixer.heads} heads cannot share {mixer.kv_heads} heads of keys evenly")
        return mixer

    def network(self, **changes: Any) -> Network:
        """Return the most common feed-forward network: gated, without biases."""
        bias = self.flag("mlp_bias")
        sizes: dict[str, Any] = {"function": self.function, "bias": bias, "output_bias": bias}
        if "inner" not in changes:
            least = int(not any(self.values.get(name) for name in ROUTED))
            names = "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"
            sizes["inner"] = self.number(*names, default=0, least=least)
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
            "context_length": self.context,
        }
        return Decoder(**{**sizes, **changes})


def dense(settings: Settings, *, network: Network | None = None, changes: Mapping[str, Any] | None = None,
          **attention: Any) -> Decoder:  # fmt: skip
    """Return norm, attention, norm, gated MLP: Llama and similar models."""
    net = network or settings.network()
    windows = settings.windows if "window" not in attention else (attention.pop("window"),) * settings.layers
    layers = (Layer(mixer=settings.attention(window=one, **attention), network=net) for one in windows)
    return settings.decoder(tuple(layers), **(changes or {}))


def qwen2(settings: Settings) -> Decoder:
    """Return a decoder with biases on queries, keys and values."""
    count, most = settings.layers, settings.number("max_window_layers", default=settings.layers)
    used = settings.number("sliding_window", default=0) if settings.flag("use_sliding_window") else 0
    net = settings.network()
    windows = settings.windows if settings.listed("layer_types") else [used * (one >= most) for one in range(count)]
    layers = (Layer(mixer=settings.attention(window=one, bias=True, output_bias=False), network=net) for one in windows)
    return settings.decoder(tuple(layers))


def qwen3(settings: Settings) -> Decoder:
    """Return a decoder with normalized heads of queries and keys."""
    return dense(settings, norm="head", **unless_used(settings))


def unless_used(settings: Settings) -> dict[str, Any]:
    """Return no window as a changed setting if the configuration states one but does not use it; else no change."""
    return {} if settings.flag("use_sliding_window") or settings.listed("layer_types") else {"window": 0}


def seed_oss(settings: Settings) -> Decoder:
    """Return a decoder with an attention output bias independent of that of its queries, keys and values."""
    return dense(settings, output_bias=settings.flag("attention_out_bias"))


def arcee(settings: Settings) -> Decoder:
    """Return a decoder with a squared ReLU instead of a gate."""
    return dense(settings, network=settings.network(is_gated=False, function="relu2"))


def phi3(settings: Settings) -> Decoder:
    """Return a decoder with one product for queries, keys and values."""
    return dense(settings, is_packed=True)


def packed(settings: Settings) -> Decoder:
    """Return a Llama decoder with one product for queries, keys and values."""
    alibi = settings.text("position") == "alibi" or settings.flag("alibi")
    return dense(settings, is_packed=True, rotary=0 if alibi else settings.rotary())


def chatglm(settings: Settings) -> Decoder:
    """Return a decoder with one product for queries and grouped keys and values; half of each head is rotary."""
    groups = settings.number("multi_query_group_num") if settings.flag("multi_query_attention") else settings.heads
    width = settings.number("kv_channels", default=settings.head_dim)
    bias = settings.flag("add_qkv_bias")
    return dense(settings, kv_heads=groups, head_dim=width, rotary=width // 2, bias=bias, is_packed=True)


def glm(settings: Settings) -> Decoder:
    """Return a decoder with rotary embedding on half of each head."""
    behind = settings.text("model_type") == "glm4"
    bias = settings.flag("attention_bias")
    layer = Layer(
        mixer=settings.attention(rotary=settings.rotary(0.5), bias=bias, output_bias=False),
        network=settings.network(),
        has_norms_behind=behind,
    )
    return settings.decoder([layer] * settings.layers)


def gemma(settings: Settings) -> Decoder:
    """Return a decoder with its embedding table as output head."""
    width = settings.number("head_dim", default=256)
    return dense(settings, changes={"is_tied": True}, head_dim=width, rotary=width)


def gemma2(settings: Settings) -> Decoder:
    """Return a decoder with norms before and after each part, and a window in every second layer."""
    return _sandwich(attrs.evolve(settings, every=2), score_operations=4)


def gemma3(settings: Settings) -> Decoder:
    """Return a decoder with norms before and after each part, and a window in five of six layers."""
    return _sandwich(attrs.evolve(settings, every=6), norm="head")


def _sandwich(settings: Settings, **attention: Any) -> Decoder:
    width, net = settings.number("head_dim", default=256), settings.network(function="gelu")
    layers = [
        Layer(
            mixer=settings.attention(window=window, head_dim=width, rotary=width, **attention),
            network=net,
            has_norms_behind=True,
        )
        for window in settings.windows
    ]
    return settings.decoder(
        layers,
        is_tied=settings.is_tied,
        is_capped=settings.values.get("final_logit_softcapping") is not None,
    )


def olmo2(settings: Settings) -> Decoder:
    """Return a decoder with norms only after each part, and normalized rows of queries and keys."""
    net = settings.network()
    return settings.decoder(
        [
            Layer(
                mixer=settings.attention(window=one, norm="row"),
                network=net,
                has_norms_before=False,
                has_norms_behind=True,
            )
            for one in attrs.evolve(settings, every=4).windows
        ]
    )


def cohere(settings: Settings) -> Decoder:
    """Return a decoder with attention and MLP in parallel after one norm."""
    net, norm = settings.network(), "heads" if settings.flag("use_qk_norm") else ""
    layers = [
        Layer(mixer=settings.attention(window=one, norm=norm), network=net, is_parallel=True, norms=1)
        for one in attrs.evolve(settings, every=4).windows
    ]
    tied = settings.is_tied
    return settings.decoder(layers, norm="layer_norm", norm_bias=False, is_tied=tied)


def stablelm(settings: Settings) -> Decoder:
    """Return a decoder with layer norms, and rotary embedding on a quarter of each head."""
    is_parallel = settings.flag("use_parallel_residual")
    layer = Layer(
        mixer=settings.attention(
            rotary=settings.rotary(0.25),
            bias=settings.flag("use_qkv_bias"),
            output_bias=False,
            norm="heads" if settings.flag("qk_layernorm") else "",
        ),
        network=settings.network(),
        is_parallel=is_parallel,
        norms=1 if is_parallel else 2,
    )
    return settings.decoder([layer] * settings.layers, norm="layer_norm")


def _plain(settings: Settings, *, parallel: bool = False, norms: Any = 2, attention: Mapping[str, Any] | None = None,
           network: Mapping[str, Any] | None = None, **changes: Any) -> Decoder:  # fmt: skip
    """Return layer norms, attention and an ungated MLP, all with biases: GPT and similar models."""
    sizes: dict[str, Any] = {"bias": True, "output_bias": True, "rotary": 0, **(attention or {})}
    net = settings.network(
        **{"is_gated": False, "function": "gelu", "bias": True, "output_bias": True, **(network or {})}
    )
    layer = Layer(mixer=settings.attention(**sizes), network=net, is_parallel=parallel, norms=norms)
    layers = changes.pop("layers", [layer] * settings.layers)
    return settings.decoder(layers, **{"norm": "layer_norm", **changes})


def gpt2(settings: Settings) -> Decoder:
    """Return a decoder with learned positions."""
    return _plain(settings, attention={"is_packed": True}, positions=settings.context,
                  is_tied=settings.is_tied)  # fmt: skip


def gpt_bigcode(settings: Settings) -> Decoder:
    """Return a decoder with learned positions and multi-query attention."""
    pairs = 1 if settings.flag("multi_query", default=True) else settings.heads
    return _plain(settings, attention={"is_packed": True, "kv_heads": pairs}, positions=settings.context,
                  is_tied=settings.is_tied)  # fmt: skip


def gpt_neo(settings: Settings) -> Decoder:
    """Return a decoder with learned positions, and a window in some layers."""
    local = settings.number("window_size", default=256)
    net = settings.network(is_gated=False, function="gelu", bias=True, output_bias=True)
    kinds = [kind for names, count in settings.listed("attention_types") for kind in list(names) * int(count)]
    mixer = settings.attention(bias=False, output_bias=True, rotary=0)
    layers = [
        Layer(mixer=attrs.evolve(mixer, window=local if kind == "local" else 0), network=net)
        for kind in kinds or ["global"] * settings.layers
    ]
    return settings.decoder(layers, norm="layer_norm", positions=settings.context,
                            is_tied=settings.is_tied)  # fmt: skip


def gptj(settings: Settings) -> Decoder:
    """Return a decoder with attention and MLP in parallel after one norm."""
    turned = settings.number("rotary_dim", default=64)
    return _plain(settings, parallel=True, norms=1, attention={"bias": False, "output_bias": False, "rotary": turned},
                  head_bias=True)  # fmt: skip


def gpt_neox(settings: Settings) -> Decoder:
    """Return a decoder with attention and MLP in parallel, each after a norm of its own."""
    turned = settings.rotary(0.25)
    return _plain(settings, parallel=settings.flag("use_parallel_residual", default=True),
                  attention={"is_packed": True, "rotary": turned})  # fmt: skip


def phi(settings: Settings) -> Decoder:
    """Return a decoder with attention and MLP in parallel after one norm, with biases everywhere."""
    return _plain(settings, parallel=True, norms=1, attention={"rotary": settings.rotary(0.5)}, head_bias=True)


def opt(settings: Settings) -> Decoder:
    """Return a decoder with learned positions and a ReLU; two rows of the position table are padding."""
    width = settings.number("word_embed_proj_dim", default=settings.hidden)
    before = settings.flag("do_layer_norm_before", default=True)
    made = _plain(settings, network={"function": "relu"}, positions=settings.context + 2, final_norm=before,
                  embedding_width=0 if width == settings.hidden else width,
                  is_tied=settings.is_tied)  # fmt: skip
    layers = tuple(
        layer if before else attrs.evolve(layer, has_norms_before=False, has_norms_behind=True) for layer in made.layers
    )
    return attrs.evolve(made, layers=layers)


def xglm(settings: Settings) -> Decoder:
    """Return a decoder with fixed positions."""
    return _plain(settings, is_tied=settings.is_tied)


def bloom(settings: Settings) -> Decoder:
    """Return a decoder with distance biases on scores (ALiBi), and a norm after its embedding table."""
    return _plain(settings, attention={"is_packed": True, "score_operations": 2}, embedding_norm=True,
                  is_tied=settings.is_tied)  # fmt: skip


def mpt(settings: Settings) -> Decoder:
    """Return a decoder with distance biases on scores (ALiBi), without other biases."""
    nested = settings.values.get("attn_config")
    inner = settings.number("expansion_ratio", default=4) * settings.hidden
    pairs = Settings(settings.name, nested if isinstance(nested, dict) else {}).number(
        "kv_n_heads", default=settings.heads
    )
    attention = {"is_packed": True, "bias": False, "output_bias": False, "score_operations": 2, "kv_heads": pairs}
    return _plain(settings, attention=attention, network={"inner": inner, "bias": False, "output_bias": False},
                  norm_bias=False, is_tied=settings.is_tied)  # fmt: skip


def falcon(settings: Settings) -> Decoder:
    """Return a decoder with attention and MLP in parallel; newer models have two norms and grouped heads."""
    newer, bias = settings.flag("new_decoder_architecture"), settings.flag("bias")
    shared = 1 if settings.flag("multi_query", default=True) else settings.heads
    pairs = settings.number("num_kv_heads", default=settings.heads) if newer else shared
    turned = 0 if settings.flag("alibi") else settings.head_dim
    attention = {"kv_heads": pairs, "is_packed": True, "bias": bias, "output_bias": bias, "rotary": turned}
    norms = settings.number("num_ln_in_parallel_attn", default=2 if newer else 1)
    parallel = newer or settings.flag("parallel_attn", default=True)
    return _plain(settings, parallel=parallel, norms=norms if parallel else 2, attention=attention,
                  network={"bias": bias, "output_bias": bias},
                  is_tied=settings.is_tied)  # fmt: skip


def starcoder2(settings: Settings) -> Decoder:
    """Return a decoder with biases everywhere and rotary embedding."""
    bias = settings.flag("use_bias", default=True)
    window = settings.number("sliding_window", default=0)
    attention = {"rotary": settings.rotary(), "bias": bias, "output_bias": bias, "window": window}
    return _plain(settings, attention=attention, network={"bias": bias, "output_bias": bias},
                  is_tied=settings.is_tied)  # fmt: skip


def persimmon(settings: Settings) -> Decoder:
    """Return a decoder with normalized heads of queries and keys, and a squared ReLU."""
    norm = "head" if settings.flag("qk_layernorm", default=True) else ""
    attention = {"rotary": settings.rotary(0.5), "is_packed": True, "norm": norm}
    return _plain(settings, attention=attention, network={"function": settings.function})


def nemotron(settings: Settings) -> Decoder:
    """Return a decoder with layer norms, without biases, with a squared ReLU."""
    attention = {"rotary": settings.rotary(0.5), "bias": False, "output_bias": False}
    return _plain(settings, attention=attention, network={"function": "relu2", "bias": False, "output_bias": False})


def mllama(settings: Settings) -> Decoder:
    """Return the layers that process text alone; layers with cross-attention to an image are left out."""
    crossed = set(settings.listed("cross_attention_layers"))
    made = dense(settings)
    kept = tuple(layer for index, layer in enumerate(made.layers) if index not in crossed)
    note = f"{len(crossed)} layers that look at an image are left out, and so are their weights"
    return attrs.evolve(made, layers=kept, vocabulary=made.vocabulary, notes=(note,))


DENSE: Final[Mapping[str, Family]] = {
    **dict.fromkeys(
        ("llama", "mistral", "ministral", "ministral3", "granite", "internlm2", "deci", "minicpm", "smollm3", "helium",
         "ernie4_5"), dense
    ),
    "qwen2": qwen2, "qwen2_vl": qwen2, "qwen2_5_vl": qwen2,
    "qwen3": qwen3, "qwen3_vl": qwen3, "hunyuan_v1_dense": qwen3,
    "seed_oss": seed_oss, "arcee": arcee, "phi3": phi3, "baichuan": packed, "chatglm": chatglm, "glm": glm, "glm4": glm,
    "gemma": gemma, "gemma2": gemma2, "gemma3": gemma3, "olmo2": olmo2, "olmo3": olmo2,
    "cohere": cohere, "cohere2": cohere, "stablelm": stablelm,
    "gpt2": gpt2, "gpt_bigcode": gpt_bigcode, "gpt_neo": gpt_neo, "gptj": gptj, "gpt_neox": gpt_neox, "phi": phi,
    "opt": opt, "xglm": xglm, "bloom": bloom, "mpt": mpt, "falcon": falcon, "starcoder2": starcoder2,
    "persimmon": persimmon, "nemotron": nemotron, "mllama": mllama, "mllama_text_model": mllama,
}  # fmt: skip
"""Reader of each model_type: attention, and an MLP for each token."""
