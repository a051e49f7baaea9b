"""The methods that checkpoints are quantized with, each with what its `quantization_config` says.

Sizes are those that the library of a method stores. Source: transformers, `integrations/`; GPTQModel and AutoAWQ,
their linear layers (`qweight`, `qzeros`, `scales`, `g_idx`); bitsandbytes, `quantize_4bit` and `int8_vectorwise_quant`;
compressed-tensors, `compressors/`; torchao, `quantize_`; NVIDIA Model Optimizer, its unified checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import torch

from joulemap.errors import ModelError
from joulemap.trace.packed.checkpoint import ANY, Checkpoint, Group, Settings, split_lists
from joulemap.trace.packed.format import PackedFormat

WORD: Final = 32
"""Bits of what GPTQ, AWQ and compressed-tensors pack codes in."""

BNB_BLOCK: Final = 64
"""Weights that share a scale in 4 bits. Source: bitsandbytes, `quantize_4bit(blocksize=64)`."""

MX_BLOCK: Final = 32
"""Weights that share a scale of eight bits. Source: OCP Microscaling Formats, version 1.0."""

NV_BLOCK: Final = 16
"""Source: as for `domain.weight.NARROW_GROUPS`: NVFP4."""

MXFP4: Final = PackedFormat(bits=4, is_float=True, block=(1, MX_BLOCK), scale=torch.float8_e8m0fnu)
NVFP4: Final = PackedFormat(
    bits=4,
    is_float=True,
    block=(1, NV_BLOCK),
    scale=torch.float8_e4m3fn,
    has_global_scale=True,
    activations="fp4",
)


def _read_gptq(settings: Settings) -> Checkpoint:
    stored = _gptq_format(settings)
    inside = settings.values.get("modules_in_block_to_quantize") or settings.values.get("inside_layer_modules") or ()
    overrides: list[tuple[str, PackedFormat | None]] = []
    for pattern, change in settings.read_part("dynamic").items():
        if pattern.startswith("-:"):
            overrides.append((pattern.removeprefix("-:"), None))
        elif isinstance(change, Mapping):
            changed = settings.narrow({**settings.values, **change})
            overrides.append((pattern.removeprefix("+:"), _gptq_format(changed)))
    return Checkpoint(
        method="gptq",
        groups=(Group(stored=stored),),
        kinds=frozenset({"linear", "conv1d", "experts"}),
        is_in_blocks=True,
        outside=("lm_head",) if settings.values.get("lm_head") else (),
        only=tuple(split_lists(inside)),
        overrides=tuple(overrides),
    )


def _gptq_format(settings: Settings) -> PackedFormat:
    bits = settings.read_bits()
    return PackedFormat(
        bits=bits,
        block=(1, settings.read_group()),
        zero_bits=bits,
        has_order=bool(settings.values.get("desc_act")),
        word_bits=WORD,
    )


def _read_auto_round(settings: Settings) -> Checkpoint:
    packing = str(settings.values.get("packing_format", "auto_round:auto_gptq"))
    if packing.rpartition(":")[2] not in ("auto_gptq", "gptq", "auto_awq", "awq"):
        raise ModelError(f"{settings.source}: packing_format {packing} of the quantization_config is not read")
    return attrs.evolve(_read_gptq(settings), method="auto-round")


def _read_awq(settings: Settings) -> Checkpoint:
    bits = settings.read_bits(default=4)
    has_zeros = settings.values.get("zero_point", True)
    return Checkpoint(
        method="awq",
        groups=(
            Group(
                stored=PackedFormat(
                    bits=bits,
                    block=(1, settings.read_group("group_size" if "group_size" in settings.values else "q_group_size")),
                    zero_bits=bits if has_zeros else 0,
                    word_bits=WORD,
                )
            ),
        ),
        skipped=settings.read_names("modules_to_not_convert") or (),
        has_default_skips=True,
    )


def _read_bitsandbytes(settings: Settings) -> Checkpoint:
    values = settings.values
    skipped, has_defaults = settings.read_skips("llm_int8_skip_modules")
    remark = ""
    if values.get("load_in_4bit"):
        stored = PackedFormat(
            bits=4,
            block=(1, BNB_BLOCK),
            scale=torch.float32,
            is_flat=True,
            is_nested=bool(values.get("bnb_4bit_use_double_quant")),
            label=str(values.get("bnb_4bit_quant_type") or "fp4"),
        )
    elif values.get("load_in_8bit"):
        stored = PackedFormat(bits=8, scale=torch.float32, activations="int8")
        remark = ", outliers not kept apart"
    else:
        raise ModelError(f"{settings.source}: the quantization_config of bitsandbytes says neither 4 nor 8 bits")
    return Checkpoint(
        method="bitsandbytes",
        groups=(Group(stored=stored),),
        skipped=skipped,
        has_default_skips=has_defaults,
        kinds=frozenset({"linear", "conv1d"}),
        remark=remark,
    )


def _read_fp8(settings: Settings) -> Checkpoint:
    values = settings.values
    skipped, has_defaults = settings.read_skips("modules_to_not_convert", "ignored_layers")
    is_mx = values.get("quant_method") == "mxfp8"
    block = values.get("weight_block_size", (1, MX_BLOCK) if is_mx else (128, 128))
    scale = torch.float8_e8m0fnu if is_mx or values.get("scale_fmt") == "ue8m0" else torch.float32
    stored = PackedFormat(
        bits=8,
        is_float=True,
        block=_read_block(settings, block),
        scale=scale,
        activations="fp8",
        is_static=values.get("activation_scheme") == "static",
    )
    experts = attrs.evolve(stored, bits=4, block=(1, MX_BLOCK)) if values.get("expert_dtype") == "fp4" else stored
    groups = [Group(stored=stored)]
    if experts != stored:
        groups.insert(0, Group(stored=experts, kinds=frozenset({"experts"})))
    return Checkpoint(
        method=str(values["quant_method"]),
        groups=tuple(groups),
        skipped=skipped,
        has_default_skips=has_defaults,
    )


def _read_block(settings: Settings, block: Any) -> tuple[int, int]:
    if block is None:
        return 0, 0
    if not isinstance(block, list | tuple) or len(block) != 2 or not all(type(one) is int and one > 0 for one in block):
        raise ModelError(f"{settings.source}: the block of the quantization_config is {block!r}, expected two sizes")
    return block[0], block[1]


def _read_fbgemm(settings: Settings) -> Checkpoint:
    skipped, has_defaults = settings.read_skips("modules_to_not_convert")
    stored = PackedFormat(bits=8, is_float=True, scale=torch.float32, activations="fp8")
    return Checkpoint(
        method="fbgemm_fp8", groups=(Group(stored=stored),), skipped=skipped, has_default_skips=has_defaults
    )


def _read_mxfp4(settings: Settings) -> Checkpoint:
    skipped, has_defaults = settings.read_skips("modules_to_not_convert")
    return Checkpoint(
        method="mxfp4",
        groups=(Group(stored=MXFP4),),
        skipped=skipped,
        has_default_skips=has_defaults,
        kinds=frozenset({"experts"}),
    )


def _read_compressed_tensors(settings: Settings) -> Checkpoint:
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
        is_exact=True,
        remark=", zeros of sparse weights counted" if is_sparse else "",
    )


def _compressed_format(weights: Settings, activations: Any, how: str) -> PackedFormat:
    """Return the format of a group: `weights` and `activations` are its QuantizationArgs, `how` its compressor."""
    bits = weights.read_bits("num_bits")
    is_float = weights.values.get("type", "int") == "float"
    strategy = weights.values.get("strategy") or ("group" if weights.values.get("group_size") else "tensor")
    blocks = {
        "tensor": (0, 0),
        "channel": (1, 0),
        "group": (1, weights.read_group()),
        "tensor_group": (1, weights.read_group(default=NV_BLOCK)),
    }
    block = _read_block(weights, weights.values.get("block_structure")) if strategy == "block" else blocks.get(strategy)
    if block is None:
        raise ModelError(f"{weights.source}: the strategy {strategy} of the quantization_config is not read")
    is_symmetric = is_float or weights.values.get("symmetric", True)
    is_mx = "mxfp" in how
    is_nv = is_float and bits == 4 and not is_mx
    scale = torch.float8_e8m0fnu if is_mx else torch.float8_e4m3fn if is_nv else torch.bfloat16
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
    """Return the precision that activations are made in a product, empty where they stay what they are."""
    if not isinstance(activations, Mapping) or activations.get("num_bits") is None:
        return ""
    bits = weights.narrow(activations).read_number("num_bits")
    kind = "fp" if activations.get("type", "int") == "float" else "int"
    return f"{kind}{bits}" if bits <= 8 else ""


_MODELOPT: Final = {
    "FP8": PackedFormat(bits=8, is_float=True, block=(0, 0), scale=torch.float32, activations="fp8", is_static=True),
    "FP8_PER_CHANNEL_PER_TOKEN": PackedFormat(bits=8, is_float=True, scale=torch.float32, activations="fp8"),
    "FP8_PB_WO": PackedFormat(bits=8, is_float=True, block=(128, 128), scale=torch.float32),
    "NVFP4": NVFP4,
    "W4A16_AWQ": PackedFormat(bits=4, block=(1, 128)),
}
"""`quant_algo` of Model Optimizer -> its format."""


def _read_modelopt(settings: Settings) -> Checkpoint | None:
    stored = _MODELOPT.get(str(settings.values.get("quant_algo")).upper())
    if stored is None:
        return None
    skipped = settings.read_names("ignore", "exclude_modules") or ()
    return Checkpoint(method="modelopt", groups=(Group(stored=stored),), skipped=tuple(map(_as_expression, skipped)))


def _as_expression(pattern: str) -> str:
    """Return a name with `*` for anything as a regular expression."""
    return ".*".join(part.replace(".", r"\.") for part in pattern.split("*"))


_TORCHAO: Final = {
    "int4weightonly": PackedFormat(bits=4, block=(1, 128), scale=torch.bfloat16, zero_bits=16),
    "int8weightonly": PackedFormat(bits=8, scale=torch.float32, zero_bits=8),
    "int8dynamicactivationint8weight": PackedFormat(bits=8, scale=torch.float32, zero_bits=8, activations="int8"),
    "int8dynamicactivationint4weight": PackedFormat(bits=4, block=(1, 32), scale=torch.bfloat16, activations="int8"),
    "float8weightonly": PackedFormat(bits=8, is_float=True, scale=torch.float32),
    "float8dynamicactivationfloat8weight": PackedFormat(
        bits=8, is_float=True, block=(0, 0), scale=torch.float32, activations="fp8"
    ),
}
"""Configuration of torchao, without case, `_` and `Config` -> its format."""


_GRANULARITIES: Final = {"PerRow": (1, 0), "PerTensor": (0, 0)}
"""Of torchao: what shares a scale."""


def _read_torchao(settings: Settings) -> Checkpoint | None:
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
        remark=", embeddings taken to be wide" if settings.values.get("include_input_output_embeddings") else "",
    )


_READERS: Final[dict[str, Callable[[Settings], Checkpoint | None]]] = {
    "gptq": _read_gptq,
    "auto-round": _read_auto_round,
    "awq": _read_awq,
    "bitsandbytes": _read_bitsandbytes,
    "fp8": _read_fp8,
    "mxfp8": _read_fp8,
    "fbgemm_fp8": _read_fbgemm,
    "mxfp4": _read_mxfp4,
    "compressed-tensors": _read_compressed_tensors,
    "modelopt": _read_modelopt,
    "torchao": _read_torchao,
}
"""`quant_method` -> what reads its settings; None for settings that nothing is known of."""


def name_method(values: Mapping[str, Any]) -> str:
    """Return the method of a `quantization_config`, empty where it names none."""
    if values.get("load_in_4bit") or values.get("load_in_8bit"):
        return "bitsandbytes"
    return str(values.get("quant_method") or "")


def read_checkpoint(values: Mapping[str, Any], source: str) -> Checkpoint | None:
    """Return how a checkpoint stores weights by its `quantization_config`, None for a method that is not read.

    Raises ModelError, naming the source, for settings that are missing or make no sense.
    """
    method = name_method(values)
    if not method:
        raise ModelError(f"{source}: the quantization_config has no quant_method")
    reader = _READERS.get(method)
    return None if reader is None else reader(Settings({**values, "quant_method": method}, source))
