"""A packed weight, and the bytes of each way to store it."""

from __future__ import annotations

from typing import Any

ROWS, COLUMNS = 512, 256


COUNT = ROWS * COLUMNS


GPTQ: dict[str, Any] = {"quant_method": "gptq", "bits": 4, "group_size": 128}


AWQ: dict[str, Any] = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}


NF4: dict[str, Any] = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


FP8: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


FP4: dict[str, Any] = {"num_bits": 4, "type": "float", "strategy": "group"}


INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}


def compressed(weights: dict[str, Any], activations: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """Return what compressed-tensors says of linear layers that are all stored alike."""
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, **settings}


def torchao(kind: str, **settings: Any) -> dict[str, Any]:
    return {"quant_method": "torchao", "quant_type": {"default": {"_type": kind, "_data": settings}}}


STORED: dict[str, tuple[dict[str, Any], int]] = {
    "gptq": (GPTQ, COUNT // 2 + COUNT // 128 * 2 + COUNT // 128 // 2),
    "gptq in the order of activations": (
        {**GPTQ, "desc_act": True, "group_size": -1}, COUNT // 2 + ROWS * 2 + ROWS // 2 + COLUMNS * 4,
    ),
    "gptq of 3 bits": ({**GPTQ, "bits": 3}, COUNT * 3 // 8 + COUNT // 128 * 2 + COUNT // 128 * 3 // 8),
    "awq": (AWQ, COUNT // 2 + COUNT // 64 * 2 + COUNT // 64 // 2),
    "awq without zeros": ({**AWQ, "zero_point": False}, COUNT // 2 + COUNT // 64 * 2),
    "auto-round": ({**GPTQ, "quant_method": "auto-round"}, COUNT // 2 + COUNT // 128 * 2 + COUNT // 128 // 2),
    "nf4": (NF4, COUNT // 2 + COUNT // 64 * 4),
    "nf4 twice": ({**NF4, "bnb_4bit_use_double_quant": True}, COUNT // 2 + COUNT // 64 + COUNT // 64 // 256 * 4),
    "llm.int8": ({"load_in_8bit": True}, COUNT + ROWS * 4),
    "fp8": (FP8, COUNT + (ROWS // 128) * (COLUMNS // 128) * 4),
    "fp8 with one scale": ({**FP8, "weight_block_size": None}, COUNT + 4),
    "fp8 with scales of 8 bits": ({**FP8, "scale_fmt": "ue8m0"}, COUNT + (ROWS // 128) * (COLUMNS // 128)),
    "mxfp8": ({"quant_method": "mxfp8", "weight_block_size": [1, 32]}, COUNT + COUNT // 32),
    "fbgemm": ({"quant_method": "fbgemm_fp8"}, COUNT + ROWS * 4),
    "compressed int4": (
        compressed({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}),
        COUNT // 2 + COUNT // 32 * 2,
    ),
    "compressed int4 with zeros": (
        compressed({"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}),
        COUNT // 2 + COUNT // 32 * 2 + COUNT // 32 // 2,
    ),
    "compressed int8 of both": (compressed(INT8, {**INT8, "strategy": "token"}), COUNT + ROWS * 2),
    "compressed fp8 in blocks": (
        compressed({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}),
        COUNT + (ROWS // 128) * (COLUMNS // 128) * 2,
    ),
    "compressed nvfp4": (
        compressed(
            {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            {"num_bits": 4, "type": "float"},
            format="nvfp4-pack-quantized",
        ),
        COUNT // 2 + COUNT // 16 + 4,
    ),
    "compressed mxfp4": (
        compressed({**FP4, "group_size": 32}, format="mxfp4-pack-quantized"),
        COUNT // 2 + COUNT // 32,
    ),
    "modelopt fp8": ({"quant_method": "modelopt", "quant_algo": "FP8"}, COUNT + 4),
    "modelopt nvfp4": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, COUNT // 2 + COUNT // 16 + 4),
    "torchao int4": (torchao("Int4WeightOnlyConfig", group_size=32), COUNT // 2 + COUNT // 32 * 4),
    "torchao int8": (torchao("Int8WeightOnlyConfig"), COUNT + ROWS * 5),
    "torchao int8 by an old name": (
        {"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int8_weight"}, COUNT + ROWS * 5,
    ),
    "torchao fp8": (torchao("Float8WeightOnlyConfig"), COUNT + ROWS * 4),
    "torchao fp8 of both": (torchao("Float8DynamicActivationFloat8WeightConfig"), COUNT + 4),
}  # fmt: skip
"""Case -> (quantization_config, bytes of 512 x 256 weights with all that makes them wide)."""
