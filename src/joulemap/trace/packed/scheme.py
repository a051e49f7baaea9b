"""Readers for libraries with many schemes: compressed-tensors, NVIDIA Model Optimizer, AMD Quark and torchao.

Sizes follow each library. Source: compressed-tensors, `compressors/`; Model Optimizer, its unified checkpoint; torchao,
`quantize_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.physics.record.weight import GROUP_SIZE, NARROW_GROUPS
from joulemap.system.errors import ModelError
from joulemap.trace.packed.checkpoint import ANY, Checkpoint, Group, Settings
from joulemap.trace.packed.format import WORD, PackedFormat

NV_BLOCK: Final = NARROW_GROUPS["fp4"][0]

NVFP4: Final = PackedFormat(
    bits=4,
    is_float=True,
    block=(1, NV_BLOCK),
    scale="float8_e4m3fn",
    has_global_scale=True,
    activations="fp4",
)


def read_compressed_tensors(settings: Settings) -> Checkpoint:
    """Return how a checkpoint with these `config_groups` stores weights. Raise ModelError if no group has weights."""
    groups = []
    for group in settings.read_part("config_groups").values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        activations = group.get("input_activations")
        how = group.get("format") or settings.values.get("format")
        stored = _compressed_format(settings.narrow(weights), activations, str(how))
        groups.append(Group(stored=stored, targets=settings.narrow(group).read_names("targets") or ANY))
    if not groups:
        raise ModelError(f"{settings.source}: the quantization_config has no config_groups with weights")
    formats = (settings.read_part("sparsity_config").get("format"), settings.values.get("format"))
    is_sparse = any("24" in str(one) or "sparse" in str(one) for one in formats)
    return Checkpoint(
        method=str(settings.values["quant_method"]),
        groups=tuple(groups),
        skipped=settings.read_names("ignore", "exclude_modules") or (),
        rule="exact",
        remark=", zeros of sparse weights counted" if is_sparse else "",
    )


def _compressed_format(weights: Settings, activations: Any, how: str) -> PackedFormat:
    """Return the format of a group from its QuantizationArgs (`weights`, `activations`) and compressor name (`how`)."""
    bits = weights.read_bits("num_bits")
    is_float = weights.values.get("type", "int") == "float"
    strategy = weights.values.get("strategy") or ("group" if weights.values.get("group_size") else "tensor")
    blocks = {
        "tensor": (0, 0),
        "channel": (1, 0),
        "group": (1, weights.read_group()),
        "tensor_group": (1, weights.read_group(default=NV_BLOCK)),
    }
    block = weights.read_block(weights.values.get("block_structure")) if strategy == "block" else blocks.get(strategy)
    if block is None:
        raise ModelError(f"{weights.source}: the strategy {strategy} of the quantization_config is not supported")
    is_symmetric = is_float or weights.values.get("symmetric", True)
    is_mx = "mxfp" in how
    is_nv = is_float and bits == 4 and not is_mx
    scale = "float8_e8m0fnu" if is_mx else "float8_e4m3fn" if is_nv else "bfloat16"
    return PackedFormat(
        bits=bits,
        is_float=is_float,
        block=block,
        scale=scale,
        zero_bits=0 if is_symmetric else bits,
        has_order=weights.values.get("actorder") == "group",
        has_global_scale=is_nv,
        word_bits=8 if is_float else WORD,
        activations=_read_activations(weights, activations),
        is_static=isinstance(activations, Mapping) and activations.get("dynamic") is False,
    )


def _read_activations(weights: Settings, activations: Any) -> str:
    """Return the precision to which a GEMM's activations are quantized; empty if they are unchanged."""
    if not isinstance(activations, Mapping) or activations.get("num_bits") is None:
        return ""
    bits = weights.narrow(activations).read_number("num_bits")
    kind = "fp" if activations.get("type", "int") == "float" else "int"
    return f"{kind}{bits}" if bits <= 8 else ""


_MODELOPT: Final = {
    "FP8": PackedFormat(bits=8, is_float=True, block=(0, 0), scale="float32", activations="fp8", is_static=True),
    "FP8_PER_CHANNEL_PER_TOKEN": PackedFormat(bits=8, is_float=True, scale="float32", activations="fp8"),
    "FP8_PB_WO": PackedFormat(bits=8, is_float=True, block=(128, 128), scale="float32"),
    "NVFP4": NVFP4,
    "W4A16_AWQ": PackedFormat(bits=4, block=(1, GROUP_SIZE)),
}
"""`quant_algo` of Model Optimizer -> format of its weights."""


MIXED: Final = "MIXED_PRECISION"
"""`quant_algo` of Model Optimizer that means one format per module."""


def read_modelopt(settings: Settings) -> Checkpoint | None:
    """Return how a checkpoint with this `quant_algo` stores its weights; None for an unsupported algorithm."""
    algorithm = str(settings.values.get("quant_algo")).upper()
    stored = _MODELOPT.get(algorithm)
    if stored is None and algorithm != MIXED:
        return None
    named = {}
    for name, own in settings.read_part("quantized_layers").items() if stored is None else ():
        algorithm = str(own.get("quant_algo") if isinstance(own, Mapping) else own).upper()
        if algorithm not in _MODELOPT:
            return None
        named[str(name)] = _MODELOPT[algorithm]
    if stored is None and not named:
        return None
    skipped = settings.read_names("ignore", "exclude_modules") or ()
    groups = (Group(stored=stored),) if stored else ()
    return Checkpoint(method="modelopt", groups=groups, skipped=tuple(map(_as_expression, skipped)), named=named)


def _as_expression(pattern: str) -> str:
    """Return a name with the wildcard `*` as a regular expression."""
    return ".*".join(part.replace(".", r"\.") for part in pattern.split("*"))


def read_quark(settings: Settings) -> Checkpoint | None:
    """Return how a checkpoint with this `global_quant_config` and these layer settings stores its weights.

    Returns None for an unsupported scheme. Source: AMD Quark, `QConfig`; vllm,
    `model_executor/layers/quantization/quark`.
    """
    whole = _quark_format(settings.read_part("global_quant_config"), settings)
    named: dict[str, PackedFormat | None] = {}
    overrides: list[tuple[str, PackedFormat | None]] = []
    for pattern, own in settings.read_part("layer_quant_config").items():
        stored = _quark_format(own, settings) if isinstance(own, Mapping) else None
        if stored is None:
            return None
        if "*" in pattern:
            overrides.append((f"{_as_expression(pattern)}$", stored))
        else:
            named[pattern] = stored
    if whole is None:
        return None
    skipped = settings.read_names("exclude") or ()
    return Checkpoint(
        method="quark",
        groups=(Group(stored=whole),),
        skipped=tuple(one.removeprefix("re:") if one.startswith("re:") else _as_expression(one) for one in skipped),
        overrides=tuple(overrides),
        named=named,
    )


def _quark_format(values: Mapping[str, Any], settings: Settings) -> PackedFormat | None:
    """Return the format of a layer's Quark configuration; None if it has no weights or an unsupported dtype."""
    weight = values.get("weight")
    if not isinstance(weight, Mapping):
        return None
    kind = str(weight.get("dtype")).lower()
    bits = next((bits for name, bits in _QUARK.items() if kind.startswith(name)), 0)
    scheme = str(weight.get("qscheme") or "per_tensor")
    is_mx = kind.startswith(("mx", "fp4", "fp6")) or weight.get("scale_format") == "e8m0"
    group = settings.narrow(weight).read_group(default=32 if is_mx else GROUP_SIZE) if scheme == "per_group" else 0
    if not bits or scheme not in ("per_tensor", "per_channel", "per_group"):
        return None
    is_float = not kind.startswith(("int", "uint"))
    taken = values.get("input_tensors")
    narrow = str(taken.get("dtype")).lower() if isinstance(taken, Mapping) else ""
    activations = {"fp8": "fp8", "int": "int8", "fp4": "fp4", "mxf": "fp4"}.get(narrow[:3], "")
    return PackedFormat(
        bits=bits,
        is_float=is_float,
        block=(0, 0) if scheme == "per_tensor" else (1, group),
        scale="float8_e8m0fnu" if is_mx else "float32",
        zero_bits=bits if kind.startswith("uint") else 0,
        activations=activations,
        is_static=isinstance(taken, Mapping) and taken.get("is_dynamic") is False,
    )


_QUARK: Final = {"fp8": 8, "int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "fp4": 4, "mxfp4": 4, "mxfp6": 6, "fp6": 6}
"""Prefix of the name of a Quark dtype -> bits."""


_TORCHAO: Final = {
    "int4weightonly": PackedFormat(bits=4, block=(1, GROUP_SIZE), scale="bfloat16", zero_bits=16),
    "int8weightonly": PackedFormat(bits=8, scale="float32", zero_bits=8),
    "int8dynamicactivationint8weight": PackedFormat(bits=8, scale="float32", zero_bits=8, activations="int8"),
    "int8dynamicactivationint4weight": PackedFormat(bits=4, block=(1, 32), scale="bfloat16", activations="int8"),
    "float8weightonly": PackedFormat(bits=8, is_float=True, scale="float32"),
    "float8dynamicactivationfloat8weight": PackedFormat(
        bits=8, is_float=True, block=(0, 0), scale="float32", activations="fp8"
    ),
}
"""torchao configuration, in lower case without `_` and `Config` -> format of its weights."""


_GRANULARITIES: Final = {"PerRow": (1, 0), "PerTensor": (0, 0)}
"""torchao granularity -> (rows, columns) of a block that shares a scale; 0 for all."""


def read_torchao(settings: Settings) -> Checkpoint | None:
    """Return how a checkpoint with this `quant_type` stores its weights; None for an unsupported type."""
    kind = settings.values.get("quant_type")
    change = settings.read_part("quant_type_kwargs")
    if isinstance(kind, Mapping):
        kind = kind.get("default")
        change = kind.get("_data", {}) if isinstance(kind, Mapping) else {}
        kind = kind.get("_type") if isinstance(kind, Mapping) else None
    stored = _TORCHAO.get(str(kind).lower().replace("_", "").removesuffix("config"))
    if stored is None:
        return None
    if change.get("group_size") is not None:
        stored = attrs.evolve(stored, block=(1, settings.narrow(change).read_group()))
    shared = next((block for name, block in _GRANULARITIES.items() if name in str(change.get("granularity"))), None)
    if shared is not None:
        stored = attrs.evolve(stored, block=shared)
    skipped, has_defaults = settings.read_skips("modules_to_not_convert")
    return Checkpoint(
        method="torchao",
        groups=(Group(stored=stored),),
        skipped=skipped,
        has_default_skips=has_defaults,
        kinds=frozenset({"linear"}),
        remark=", embeddings assumed to be wide" if settings.values.get("include_input_output_embeddings") else "",
    )
