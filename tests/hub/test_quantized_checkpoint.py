"""Checkpoints of transformers: what their configuration says is left as its library leaves it. Needs transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_argument, parse_input
from joulemap.physics.fuse import fuse
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import Workload
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.trace.module import build_on_meta
from joulemap.trace.packed.checkpoint import Checkpoint, Group, Matrix
from joulemap.trace.packed.convert import find_exceptions
from joulemap.trace.packed.format import PackedFormat
from joulemap.wing.hub.name import request_hub

pytestmark = pytest.mark.slow

WIDTH, HIDDEN, LAYERS, WORDS, KEYS = 256, 512, 2, 1000, 128
COMMON = {
    "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "vocab_size": WORDS, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **COMMON}
OSS = {
    **COMMON, "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "intermediate_size": WIDTH,
    "num_local_experts": 32, "num_experts_per_tok": 4,
}  # fmt: skip
ATTENTION = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS
LAYER = ATTENTION + 3 * WIDTH * HIDDEN
NORMS = (2 * LAYERS + 1) * WIDTH


def traced(folder: Path, values: dict[str, Any], tokens: int = 1, *arguments: str) -> Workload:
    pytest.importorskip("transformers")
    (folder / "config.json").write_text(json.dumps(values))
    request = request_hub(
        f"hf:{folder}",
        inputs=[parse_input(f"input_ids=1,{tokens}")],
        arguments=[parse_argument(text) for text in arguments],
    )
    return fuse(trace_request(request))


def test_a_llama_of_four_bits_holds_its_codes_scales_and_zeros(tmp_path: Path) -> None:
    wide = traced(tmp_path, LLAMA)
    packed = traced(tmp_path, {**LLAMA, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}})
    assert packed.notes == ("quantization_config: gptq, 4 bits in groups of 128; lm_head not converted",)
    stored = LAYERS * (LAYER // 2 + LAYER // 128 * 2 + LAYER // 128 // 2)
    frequencies = 32
    columns = columns_of(packed)
    assert Widths(columns, "bf16").weight_bytes == stored + 2 * (2 * WORDS * WIDTH + NORMS + frequencies)
    assert packed.mac_count == wide.mac_count
    assert packed.parameter_count == wide.parameter_count
    kernels = [form_kernels(columns_of(one), "bf16", "fused").kernel_count for one in (packed, wide)]
    assert kernels[0] == kernels[1]
    products = [one.name for one in packed.operators if one.kind == "linear"]
    assert products == [one.name for one in wide.operators if one.kind == "linear"]
    assert "model.layers.0.self_attn.q_proj" in products
    eight = traced(tmp_path, {**LLAMA, "quantization_config": {"quant_method": "gptq", "bits": 4}}, 1,
                   "quantization_config.bits=8")  # fmt: skip
    assert Widths(columns_of(eight), "bf16").weight_bytes == Widths(columns, "bf16").weight_bytes + LAYERS * (
        LAYER // 2 + LAYER // 128 // 2
    )


@pytest.mark.parametrize(("tokens", "hit"), [(1, 4), (128, 32)])
def test_gpt_oss_reads_the_experts_that_are_hit(tmp_path: Path, tokens: int, hit: int) -> None:
    skipped = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    stored = {**OSS, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": skipped}}
    wide, packed = traced(tmp_path, OSS, tokens), traced(tmp_path, stored, tokens)
    assert packed.mac_count == wide.mac_count
    assert (
        packed.notes[0] == "quantization_config: mxfp4, fp4 weights in groups of 32; lm_head and 8 more not converted"
    )
    expert = 3 * WIDTH * WIDTH
    packed_expert = expert // 2 + expert // 32
    held = [Widths(columns_of(one), "bf16").weight_bytes for one in (wide, packed)]
    assert held[0] - held[1] == LAYERS * 32 * (2 * expert - packed_expert)
    kernels = [form_kernels(columns_of(one), "bf16", "fused") for one in (wide, packed)]
    read = [float(one.weight_bytes.sum()) for one in kernels]
    assert read[0] - read[1] == LAYERS * hit * (2 * expert - packed_expert)
    assert kernels[1].kernel_count == kernels[0].kernel_count


FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
SKIPS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "tied words": ({**LLAMA, "tie_word_embeddings": True}, {"quant_method": "awq", "bits": 4}, "lm_head not"),
    "a router that is named": (
        {**COMMON, "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_experts": 8,
         "num_experts_per_tok": 2, "moe_intermediate_size": 128},
        {**FP8, "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate", "model.layers.1.mlp.experts"]},
        "lm_head and 1 more not",
    ),
    "experts that bitsandbytes leaves": (
        {**COMMON, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 8},
        {"load_in_4bit": True},
        "lm_head and 2 more not",
    ),
    "what stays in fp32": (
        {"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": WIDTH, "d_ff": HIDDEN, "num_layers": 2,
         "num_heads": 4, "d_kv": 64, "vocab_size": WORDS},
        {"load_in_8bit": True},
        "encoder.block.0.layer.1.DenseReluDense.wo and 1 more not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SKIPS)
def test_what_a_library_leaves_is_left(tmp_path: Path, name: str) -> None:
    values, quantization, told = SKIPS[name]
    workload = traced(tmp_path, {**values, "quantization_config": quantization}, 2)
    assert workload.notes[0].endswith(f"; {told} converted")


@pytest.mark.parametrize(
    ("values", "weight"),
    [
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 256, "n_layer": 1, "n_head": 4}, 12),
        (
            {**COMMON, "model_type": "falcon_mamba", "architectures": ["FalconMambaModel"], "num_hidden_layers": 1,
             "state_size": 16, "time_step_rank": 16, "expand": 2}, 0,
        ),
    ],
)  # fmt: skip
def test_weights_that_lie_the_other_way_are_read_packed(tmp_path: Path, values: dict[str, Any], weight: int) -> None:
    wide = traced(tmp_path, values, 4)
    packed = traced(tmp_path, {**values, "quantization_config": {"load_in_4bit": True}}, 4)
    assert packed.mac_count == wide.mac_count
    count = weight * WIDTH * WIDTH
    kernels = [form_kernels(columns_of(one), "bf16", "fused") for one in (wide, packed)]
    assert kernels[0].kernel_count == kernels[1].kernel_count
    saved = float(kernels[0].weight_bytes.sum() - kernels[1].weight_bytes.sum())
    assert saved == count * 2 - count // 2 - count // 64 * 4 if count else saved > 0.0


@pytest.mark.parametrize("is_tied", [False, True])
def test_a_library_leaves_the_same_out(is_tied: bool) -> None:
    transformers = pytest.importorskip("transformers")
    base = pytest.importorskip("transformers.quantizers.base")
    configuration = transformers.LlamaConfig(**{**COMMON, "tie_word_embeddings": is_tied})
    with build_on_meta():
        model = transformers.LlamaForCausalLM(configuration)
    assert set(find_exceptions(model)) == set(base.get_keys_to_not_convert(model))


NAMES = ("model.layers.1.mlp.gate", "model.layers.1.mlp.gate_proj", "model.layers.11.mlp.gate", "visual.fc1", "lm_head")
KEYS_LEFT = (
    "model.layers.1",
    "model.layers.*.mlp.gate",
    "gate",
    "fc1",
    "visual",
    "lm_head",
    "layers.1.mlp",
    "a|visual",
)


@pytest.mark.parametrize("key", KEYS_LEFT)
def test_a_library_reads_the_same_names(key: str) -> None:
    utils = pytest.importorskip("transformers.quantizers.quantizers_utils")
    group = Group(stored=PackedFormat(bits=4))
    checkpoint = Checkpoint(method="awq", groups=(group,), skipped=(key,))
    found = [checkpoint.find(Matrix(names=(name,)), ()) is not None for name in NAMES]
    assert found == [utils.should_convert_module(name, [key]) for name in NAMES]
