"""Quantization methods of checkpoints, each with a reader for its `quantization_config`.

Sizes follow the library of each method. Source: transformers, `integrations/`; GPTQModel and AutoAWQ, their linear
layers (`qweight`, `qzeros`, `scales`, `g_idx`); bitsandbytes, `quantize_4bit` and `int8_vectorwise_quant`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from joulemap.system.errors import ModelError
from joulemap.trace.packed.checkpoint import Checkpoint, Group, Settings, split_lists
from joulemap.trace.packed.format import WORD, PackedFormat
from joulemap.trace.packed.scheme import read_compressed_tensors, read_modelopt, read_quark, read_torchao

BNB_BLOCK: Final = 64
"""Weights that share a scale at 4 bits. Source: bitsandbytes, `quantize_4bit(blocksize=64)`."""

MX_BLOCK: Final = 32
"""Weights that share an eight-bit scale. Source: OCP Microscaling Formats, version 1.0."""

WIDE: Final = 16
"""Minimum bits at which auto-round leaves a layer unconverted. Source: vllm, `AutoRoundConfig.check_quantized`."""

MXFP4: Final = PackedFormat(bits=4, is_float=True, block=(1, MX_BLOCK), scale="float8_e8m0fnu")


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
        raise ModelError(f"{settings.source}: packing_format {packing} of the quantization_config is not supported")
    named: dict[str, PackedFormat | None] = {}
    overrides: list[tuple[str, PackedFormat | None]] = []
    for name, change in settings.read_part("extra_config").items():
        changed = settings.narrow({**settings.values, **change} if isinstance(change, Mapping) else settings.values)
        stored = _gptq_format(changed) if changed.read_number("bits") < WIDE else None
        if re.fullmatch(r"[\w.-]+", name):
            named[name] = stored
        else:
            overrides.append((f".*(?:{name})", stored))  # an expression may match at any place
    checkpoint = _read_gptq(settings)
    outside = (*checkpoint.outside, *(name for name, stored in named.items() if stored))
    return attrs.evolve(checkpoint, method="auto-round", named=named, overrides=tuple(overrides), outside=outside)


def _read_awq(settings: Settings) -> Checkpoint:
    bits = settings.read_bits("bits" if "bits" in settings.values else "w_bit", default=4)
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
        rule="substring",
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
            scale="float32",
            is_flat=True,
            is_nested=bool(values.get("bnb_4bit_use_double_quant")),
            label=str(values.get("bnb_4bit_quant_type") or "fp4"),
        )
    elif values.get("load_in_8bit"):
        stored = PackedFormat(bits=8, scale="float32", activations="int8")
        remark = ", outliers not kept apart"
    else:
        raise ModelError(f"{settings.source}: the quantization_config of bitsandbytes says neither 4 nor 8 bits")
    return Checkpoint(
        method="bitsandbytes",
        groups=(Group(stored=stored),),
        skipped=skipped,
        rule="component",
        has_default_skips=has_defaults,
        kinds=frozenset({"linear", "conv1d"}),
        remark=remark,
    )


def _read_fp8(settings: Settings) -> Checkpoint:
    values = settings.values
    skipped, has_defaults = settings.read_skips("modules_to_not_convert", "ignored_layers")
    is_mx = values.get("quant_method") == "mxfp8"
    is_static = values.get("activation_scheme") == "static"
    # engines have blocks for activations that are quantized at run time only; others have one scale per matrix
    block = values.get("weight_block_size", (1, MX_BLOCK) if is_mx else None if is_static else (128, 128))
    scale = "float8_e8m0fnu" if is_mx or values.get("scale_fmt") == "ue8m0" else "float32"
    stored = PackedFormat(
        bits=8,
        is_float=True,
        block=settings.read_block(block),
        scale=scale,
        activations="fp8",
        is_static=is_static,
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


def _read_fbgemm(settings: Settings) -> Checkpoint:
    skipped, has_defaults = settings.read_skips("modules_to_not_convert")
    stored = PackedFormat(bits=8, is_float=True, scale="float32", activations="fp8")
    return Checkpoint(
        method="fbgemm_fp8", groups=(Group(stored=stored),), skipped=skipped, has_default_skips=has_defaults
    )


def _read_hqq(settings: Settings) -> Checkpoint:
    """Return the storage by `quant_config`, for all linear layers or by the ends of their names.

    Source: transformers, `HqqConfig` and `quantizer_hqq.py`; hqq, `BaseQuantizeConfig` (scales and zeros at 16 bits).
    """
    every = settings.read_part("quant_config")
    whole, named = every.get("weight_quant_params"), list[tuple[str, PackedFormat | None]]()
    for name, own in every.items():
        inner = own.get("weight_quant_params") if isinstance(own, Mapping) else None
        if isinstance(inner, Mapping):
            named.append((rf".*{re.escape(name)}$", _hqq_format(settings.narrow(inner))))
    if not isinstance(whole, Mapping) and not named:
        raise ModelError(f"{settings.source}: the quantization_config of hqq has no weight_quant_params")
    skipped, has_defaults = settings.read_skips("skip_modules")
    return Checkpoint(
        method="hqq",
        groups=(Group(stored=_hqq_format(settings.narrow(whole))),) if isinstance(whole, Mapping) else (),
        skipped=skipped,
        has_default_skips=has_defaults,
        kinds=frozenset({"linear"}),
        overrides=tuple(named),
    )


def _hqq_format(settings: Settings) -> PackedFormat:
    group = settings.read_group(default=64)
    return PackedFormat(bits=settings.read_bits("nbits"), block=(1, group), scale="bfloat16", zero_bits=16)


def _read_mxfp4(settings: Settings) -> Checkpoint:
    skipped, has_defaults = settings.read_skips("modules_to_not_convert")
    return Checkpoint(
        method="mxfp4",
        groups=(Group(stored=MXFP4),),
        skipped=skipped,
        has_default_skips=has_defaults,
        kinds=frozenset({"experts"}),
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
    "hqq": _read_hqq,
    "compressed-tensors": read_compressed_tensors,
    "modelopt": read_modelopt,
    "quark": read_quark,
    "torchao": read_torchao,
}
"""`quant_method` -> reader of its settings; a reader returns None for settings that it does not support."""


def name_method(values: Mapping[str, Any]) -> str:
    """Return the method of a `quantization_config`; empty if it names none."""
    if values.get("load_in_4bit") or values.get("load_in_8bit"):
        return "bitsandbytes"
    return str(values.get("quant_method") or "")


def read_checkpoint(values: Mapping[str, Any], source: str) -> Checkpoint | None:
    """Return how a checkpoint with this `quantization_config` stores its weights; None for an unsupported method.

    Raises ModelError, naming the source, for missing or invalid settings.
    """
    method = name_method(values)
    if not method:
        raise ModelError(f"{source}: the quantization_config has no quant_method")
    reader = _READERS.get(method)
    return None if reader is None else reader(Settings({**values, "quant_method": method}, source))
