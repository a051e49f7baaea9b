"""Formats in which a checkpoint stores the weights of a decoder.

    quantization_config ─► Checkpoint ─┐
    passes of a decoder ─► its weights ┴► a format for each weight ─► main format of the decoder, exceptions by layer

Methods are read by `trace.packed`, which serves traced models too. Weights are found under the names that the libraries
of checkpoints give them: a decoder here calls every router `mlp.gate`, a checkpoint may say `mlp.router`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.physics import read_weight_format
from joulemap.system import ModelError
from joulemap.trace.packed.checkpoint import Checkpoint, Matrix
from joulemap.trace.packed.format import PackedFormat
from joulemap.trace.packed.method import name_method, read_checkpoint
from joulemap.trace.packed.scheme import NVFP4
from joulemap.wing.decoder.network.config import Decoder, Layer, Published
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import build_graph

SETTINGS: Final = ("quantization_config", "compression_config")
"""Configuration keys that describe how weights are stored."""

EXPERT_DTYPE: Final = "expert_dtype"
"""Configuration key for the format of experts, if it differs from that in `quantization_config`."""

HEAD: Final = "lm_head"

EXPERT_FORMATS: Final = {"fp4": "mxfp4"}
"""`expert_dtype` of a configuration -> format of its experts. Source: DeepSeek-V4, 32 elements to a scale."""

ALGORITHM: Final = "quant_algo"
"""Model Optimizer's key for the format of a checkpoint or of a module."""

MODULES: Final = "quantized_layers"
"""Model Optimizer's key for the formats of single modules."""

MIXED: Final = {
    "MXFP8": PackedFormat(bits=8, is_float=True, block=(1, 32), scale="float8_e8m0fnu", activations="fp8"),
    "W4A16_NVFP4": attrs.evolve(NVFP4, activations=""),
}
"""Algorithm that Model Optimizer applies to single modules only -> its format. Source: nvidia/MiniMax-M3-NVFP4,
Qwen3.6-27B-NVFP4.
"""

FUSED: Final = ("gpt_oss", "llama4", "llama4_text")
"""Families whose experts are parameters rather than linear layers, in all versions of their library."""

ROUTER: Final = ".gate"
"""Path suffix of routers, which are parameters rather than linear layers, and which quantizers do not convert."""

_EXPERTS: Final = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "gate_up_proj")
"""Names of an expert's GEMMs."""

_PARTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("self_attn.", ("attn.", "attention.", "self_attention.", "mixer.")),
    ("mixer.", ("linear_attn.", "mamba.", "self_attn.")),
    ("mlp.gate", ("mlp.router", "block_sparse_moe.gate", "feed_forward.router", "mixer.gate")),
    ("mlp.shared_experts.", ("mlp.shared_expert.", "mlp.shared_mlp.", "feed_forward.shared_expert.")),
    ("mlp.experts", ("block_sparse_moe.experts", "feed_forward.experts", "mixer.experts")),
    ("mlp.", ("feed_forward.", "ffn.", "mixer.", "block_sparse_moe.")),
)
"""(part of a weight's path in this package, its names in checkpoints)."""

_BEFORE: Final = ("model.", "language_model.model.", "model.language_model.", "language_model.", "backbone.", "")
"""Prefixes of module paths in checkpoints."""


def find_quantization(mapping: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the `quantization_config` of a configuration or of one of its parts; None if there is none.

    Raise ModelError if it is not an object.
    """
    parts = [mapping, *(value for value in mapping.values() if isinstance(value, Mapping))]
    quantization = next((part[key] for part in parts for key in SETTINGS if part.get(key)), None)
    if isinstance(quantization, Mapping) and isinstance(mapping.get(EXPERT_DTYPE), str):
        return {**quantization, EXPERT_DTYPE: mapping[EXPERT_DTYPE]}
    if quantization is not None and not isinstance(quantization, Mapping):
        raise ModelError(
            f"{name}: quantization_config is {str(quantization)[:60]!r}, expected an object with a quant_method"
        )
    return quantization


def apply_quantization(decoder: Decoder, values: Mapping[str, Any]) -> Decoder:
    """Return a decoder whose weights are stored according to a `quantization_config`.

    An unsupported method leaves all weights at 16 bits, with a note. Raise ModelError for invalid settings.
    """
    if values.get(ALGORITHM):
        values = {"quant_method": "modelopt", **values}
    checkpoint = _read_storage(values, decoder.name)
    method = name_method(values)
    if checkpoint is None:
        details = [str(values[key])[:40] for key in ("quant_algo", "quant_type") if isinstance(values.get(key), str)]
        words = " ".join((method[:40], *details))
        doubt = f"quantization {words} is not known: weights counted at the precision of the run"
        return attrs.evolve(decoder, published=Published(method=method[:40], doubt=doubt))
    if values.get("dequantize"):
        return attrs.evolve(decoder, published=Published(method=method, doubt=f"{method}, widened as it is loaded"))
    layers, head = list_weights(decoder)
    if "experts" not in checkpoint.kinds and decoder.model_type not in FUSED:
        # experts were linear layers when checkpoints of these methods were published
        checkpoint = attrs.evolve(checkpoint, kinds=checkpoint.kinds | {"experts"})
    formats_by_layer = [_find_formats(checkpoint, f"layers.{index}.", weights) for index, weights in enumerate(layers)]
    outside = _find_formats(checkpoint, "", head)
    experts = EXPERT_FORMATS.get(str(values.get(EXPERT_DTYPE, "")), "")
    if experts:
        formats_by_layer = [
            {weight: experts if _is_experts(weight) else stored for weight, stored in formats.items()}
            for formats in formats_by_layer
        ]
    formats = [*formats_by_layer, outside]
    made = store_formats(decoder, method, count_formats([*layers, head], formats), formats)
    if made.published is None:
        return attrs.evolve(decoder, published=Published(method=method, doubt=f"{method} converts none of its weights"))
    main, others = made.published.weights, made.published.others
    products = others[0] if main == experts and others else main
    return attrs.evolve(
        made,
        published=attrs.evolve(
            made.published,
            precision=next((one for one in ("fp4", "fp8") if one in _list_activations(checkpoint, products)), ""),
            cache=_find_cache(values),
            doubt=_describe_doubt(checkpoint, main),
        ),
    )


def _read_storage(values: Mapping[str, Any], name: str) -> Checkpoint | None:
    """Return how a checkpoint stores its weights, including the formats of `MIXED`; None for an unsupported method."""
    modules = values.get(MODULES)
    if not isinstance(modules, Mapping):
        return read_checkpoint(values, name)
    algorithms = {
        str(module): own.get(ALGORITHM) if isinstance(own, Mapping) else own for module, own in modules.items()
    }
    mixed = {module: MIXED[algorithm] for module, algorithm in algorithms.items() if algorithm in MIXED}
    rest = {module: own for module, own in modules.items() if module not in mixed}
    checkpoint = read_checkpoint({**values, MODULES: rest}, name)
    return checkpoint and attrs.evolve(checkpoint, named={**checkpoint.named, **mixed})


def count_formats(sizes: Sequence[Mapping[str, int]], formats: Sequence[Mapping[str, str]]) -> Counter[str]:
    """Return format -> number of weights; both arguments have mappings for the same weights."""
    counts = Counter[str]()
    for stored_as, weights in zip(formats, sizes, strict=True):
        for weight, stored in stored_as.items():
            counts[stored] += weights[weight]
    return counts


def store_formats(decoder: Decoder, method: str, counts: Counter[str], formats: Sequence[Mapping[str, str]]) -> Decoder:
    """Return a decoder whose weights have these formats; `published` is None if all have 16 bits or more.

    `counts` has the number of weights in each format; the most common one is the main format. `formats` has one mapping
    per layer, and a last one for weights outside layers.
    """
    counts.pop("", None)
    if not counts:
        layers = tuple(attrs.evolve(one, stored=()) for one in decoder.layers)
        return attrs.evolve(decoder, layers=layers, published=None)
    main, *others = [name for name, _ in counts.most_common()]
    *inside, outside = formats
    kept = [tuple((weight, stored) for weight, stored in own.items() if stored != main) for own in inside]
    return attrs.evolve(
        decoder,
        layers=tuple(attrs.evolve(one, stored=several) for one, several in zip(decoder.layers, kept, strict=True)),
        published=Published(
            method=method,
            weights=main,
            others=tuple(others),
            stored=tuple((weight, stored) for weight, stored in outside.items() if stored),
        ),
    )


def _list_activations(checkpoint: Checkpoint, main: str) -> set[str]:
    """Return the activation precisions of GEMMs in a format; an empty text for those of the run."""
    return {one.activations for one in _list_formats(checkpoint) if name_format(one, checkpoint.method) == main}


def _find_cache(values: Mapping[str, Any]) -> str:
    """Return the KV cache precision that Model Optimizer or compressed-tensors states: fp8, or empty.

    vLLM, SGLang and TensorRT-LLM use this precision unless another one is requested.
    """
    scheme = values.get("kv_cache_scheme")
    is_float = isinstance(scheme, Mapping) and (scheme.get("num_bits"), scheme.get("type")) == (8, "float")
    return "fp8" if is_float or values.get("kv_cache_quant_algo") == "FP8" else ""


def _describe_doubt(checkpoint: Checkpoint, main: str) -> str:
    """Return a note on the parts of a checkpoint that the counts omit."""
    wide = [name for name in sorted(_list_activations(checkpoint, main)) if name not in ("", "fp8", "fp4")]
    narrow = f"{wide[0]} activations counted at 16 bits" if wide else ""
    return "; ".join(filter(None, (narrow, checkpoint.remark.removeprefix(", "))))


def _list_formats(checkpoint: Checkpoint) -> Iterator[PackedFormat]:
    yield from (group.stored for group in checkpoint.groups)
    yield from (stored for _, stored in checkpoint.overrides if stored)
    yield from (stored for stored in checkpoint.named.values() if stored)


def name_format(stored: PackedFormat, method: str) -> str:
    """Return the name of a checkpoint's format, as `--weight-precision` takes it."""
    down, along = stored.block
    if stored.is_flat:
        return "nf4_double" if stored.is_nested else "nf4"
    if stored.is_float and stored.bits == 4:
        return {16: "nvfp4", 32: "mxfp4"}.get(along, f"fp4:{along or 16}")
    if stored.is_float and stored.bits == 6:
        return "mxfp6"
    if stored.is_float:
        if (down, along) in ((0, 0), (1, 0)):
            return "fp8" if down else "fp8_tensor"
        if down == 1:
            return "mxfp8" if stored.scale == "float8_e8m0fnu" and along == 32 else f"fp8:{along}"
        return read_weight_format(f"fp8:{down}x{along}").name
    kind = "tinygemm" if stored.zero_bits == 16 else "uint" if stored.zero_bits else "int"
    if kind == "uint" and method in ("awq", "gptq"):
        kind = method
    return read_weight_format(f"{kind}{stored.bits}:{along or 'row'}").name


def list_weights(decoder: Decoder, *, has_all: bool = False) -> tuple[list[dict[str, int]], dict[str, int]]:
    """Return the GEMM weights as path -> number of elements: one mapping for each layer, and one for weights outside
    layers. With `has_all`, the weights of other operators are included.
    """
    outside: dict[str, int] = {}
    if decoder.shares_caches:
        layers: list[dict[str, int]] = [{} for _ in decoder.layers]
        for path, size in _list_sizes(decoder, has_all=has_all):
            index, _, weight = path.removeprefix("layers.").partition(".")
            (layers[int(index)] if path.startswith("layers.") else outside)[weight if weight else path] = size
        return layers, outside
    known: dict[Layer, dict[str, int]] = {}
    for layer in dict.fromkeys(decoder.layers):
        own = known[layer] = {}
        for path, size in _list_sizes(attrs.evolve(decoder, layers=(layer,)), has_all=has_all):
            inner = path.removeprefix("layers.0.")
            (outside if inner == path else own)[inner] = size
    return [known[layer] for layer in decoder.layers], outside


def count_weights(decoder: Decoder) -> int:
    """Return the number of weights of a decoder; equal layers are built only once."""
    layers, outside = list_weights(decoder, has_all=True)
    return sum(sum(one.values()) for one in (*layers, outside))


def _list_sizes(decoder: Decoder, *, has_all: bool) -> Iterator[tuple[str, int]]:
    """Yield (name, elements) of the weights that the GEMMs of a pass read, or that any of its operators reads."""
    graph = build_graph(decoder, DecoderPass(), 1)
    for access in graph.accesses:
        held = graph.held[access.tensor_index]
        is_product = len(held.shape) > 1 and graph.operators[access.operator_index].mac_count
        if held.name and (has_all or is_product):
            yield held.name, math.prod(held.shape)


def _find_formats(checkpoint: Checkpoint, before: str, weights: Mapping[str, int]) -> dict[str, str]:
    """Return weight -> format, empty for 16 bits; `before` is the path of the layer, empty outside layers."""
    by_weight = {}
    for weight in weights:
        path = weight.rpartition(".")[0]
        is_experts, is_inside = _is_experts(weight), bool(before)
        is_matrix = weight.endswith(".weight") and "conv" not in path and not path.endswith(ROUTER)
        stored = None
        if is_experts or is_matrix:
            names = tuple(_name_module(f"{before}{path}", is_experts=is_experts))
            kind: Any = "experts" if is_experts else "linear"
            stored = checkpoint.find(Matrix(names=names, kind=kind, is_in_blocks=is_inside), (HEAD,))
        if path == "embed_tokens":
            stored = None  # tied to the head; this token table is read row by row
        by_weight[weight] = name_format(stored, checkpoint.method) if stored else ""
    return by_weight


def _is_experts(weight: str) -> bool:
    """Return whether a weight belongs to the routed experts."""
    return weight.rpartition(".")[0].endswith("experts")


def _name_module(path: str, *, is_experts: bool) -> Iterator[str]:
    """Yield the names that checkpoints may use for a module."""
    paths = name_parts(path)
    if is_experts:
        paths += [f"{one}.0.{product}" for one in paths for product in _EXPERTS]
    for one in dict.fromkeys(paths):
        yield from (f"{before}{one}" for before in _BEFORE)


def name_parts(path: str) -> list[str]:
    """Return the paths that checkpoints may use for the path of a module in this package."""
    return [path, *(path.replace(own, other, 1) for own, others in _PARTS if own in path for other in others)]
