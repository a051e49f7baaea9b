"""Writer of headers of GGUF files as in llama.cpp, without weights."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "q4_k": 12, "q6_k": 14, "mxfp4": 39}

Value = bool | int | str | list[int] | list[bool] | list[str]
Described = tuple[str, Sequence[int], str]
"""(Name, sizes with the reduced dimension first as in files, type) of a tensor."""


def text(value: str) -> bytes:
    """Return the bytes of a text after its length."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _value(value: Value) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(str(one)) for one in value)
    kind, code = (7, "?") if isinstance(value[0], bool) else (4, "I")
    return struct.pack(f"<IIQ{len(value)}{code}", 9, kind, len(value), *value)


def form_gguf(values: Mapping[str, Value], tensors: Iterable[Described], version: int = 3) -> bytes:
    """Return the bytes of a header."""
    told = list(tensors)
    made = b"GGUF" + struct.pack("<IQQ", version, len(told), len(values))
    made += b"".join(text(key) + _value(value) for key, value in values.items())
    for name, shape, kind in told:
        made += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, TYPES[kind], 0)
    return made


def write_gguf(path: Path, values: Mapping[str, Value], tensors: Iterable[Described]) -> Path:
    """Write a header, and return its path."""
    path.write_bytes(form_gguf(values, tensors))
    return path


def _norms(begin: str, width: int, *names: str) -> list[Described]:
    return [(f"{begin}{name}.weight", (width,), "f32") for name in names]


def _gated(begin: str, width: int, inner: int, kind: str, behind: str = "", experts: int = 0) -> list[Described]:
    count = (experts,) if experts else ()
    up = [(f"{begin}ffn_{one}{behind}.weight", (width, inner, *count), kind) for one in ("gate", "up")]
    return [*up, (f"{begin}ffn_down{behind}.weight", (inner, width, *count), kind)]


def _heads(begin: str, width: int, queries: int, keys: int, kind: str, *, has_bias: bool = False) -> list[Described]:
    sizes = (("q", queries), ("k", keys), ("v", keys))
    tensors: list[Described] = [(f"{begin}attn_{name}.weight", (width, size), kind) for name, size in sizes]
    tensors += [(f"{begin}attn_{name}.bias", (size,), "f32") for name, size in sizes if has_bias]
    return [*tensors, (f"{begin}attn_output.weight", (queries, width), kind)]


def llama_3_1_8b() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of Meta-Llama-3.1-8B-Instruct-Q4_K_M, with `attn_v` and `ffn_down` at q6_k in half of the
    layers.
    """
    values: dict[str, Value] = {
        "general.architecture": "llama",
        "tokenizer.ggml.tokens": ["token"] * 1000,
        "llama.block_count": 32,
        "llama.context_length": 131072,
        "llama.embedding_length": 4096,
        "llama.feed_forward_length": 14336,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        "llama.rope.dimension_count": 128,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (4096, 128256), "q4_k"),
        ("rope_freqs.weight", (64,), "f32"),
        ("output_norm.weight", (4096,), "f32"),
        ("output.weight", (4096, 128256), "q6_k"),
    ]
    for index in range(32):
        begin = f"blk.{index}."
        wider = {f"{begin}attn_v.weight", f"{begin}ffn_down.weight"} if _has_more_bits(index, 32) else set()
        products = _heads(begin, 4096, 4096, 1024, "q4_k") + _gated(begin, 4096, 14336, "q4_k")
        tensors += _norms(begin, 4096, "attn_norm", "ffn_norm")
        tensors += [(name, shape, "q6_k" if name in wider else kind) for name, shape, kind in products]
    return values, tensors


def _has_more_bits(index: int, count: int) -> bool:
    """Return True for layers with more bits in some tensors. Source: llama.cpp, llama-quant.cpp, use_more_bits."""
    eighth = count // 8
    return index < eighth or index >= 7 * count // 8 or (index - eighth) % 3 == 2


def qwen3_30b_a3b() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a mixture of experts with normalized heads."""
    values: dict[str, Value] = {
        "general.architecture": "qwen3moe",
        "qwen3moe.block_count": 48,
        "qwen3moe.context_length": 40960,
        "qwen3moe.embedding_length": 2048,
        "qwen3moe.feed_forward_length": 6144,
        "qwen3moe.attention.head_count": 32,
        "qwen3moe.attention.head_count_kv": 4,
        "qwen3moe.attention.key_length": 128,
        "qwen3moe.expert_count": 128,
        "qwen3moe.expert_used_count": 8,
        "qwen3moe.expert_feed_forward_length": 768,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (2048, 151936), "q4_k"),
        ("output_norm.weight", (2048,), "f32"),
        ("output.weight", (2048, 151936), "q6_k"),
    ]
    for index in range(48):
        begin = f"blk.{index}."
        tensors += _norms(begin, 2048, "attn_norm", "ffn_norm") + _norms(begin, 128, "attn_q_norm", "attn_k_norm")
        tensors += [*_heads(begin, 2048, 4096, 512, "q4_k"), (f"{begin}ffn_gate_inp.weight", (2048, 128), "f32")]
        tensors += _gated(begin, 2048, 768, "q4_k", "_exps", 128)
    return values, tensors


def gpt_oss_20b() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a mixture of experts at mxfp4, with biases, sinks and a window in every second layer."""
    values: dict[str, Value] = {
        "general.architecture": "gpt-oss",
        "gpt-oss.block_count": 24,
        "gpt-oss.context_length": 131072,
        "gpt-oss.embedding_length": 2880,
        "gpt-oss.feed_forward_length": 2880,
        "gpt-oss.attention.head_count": 64,
        "gpt-oss.attention.head_count_kv": 8,
        "gpt-oss.attention.key_length": 64,
        "gpt-oss.attention.sliding_window": 128,
        "gpt-oss.expert_count": 32,
        "gpt-oss.expert_used_count": 4,
        "gpt-oss.expert_feed_forward_length": 2880,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (2880, 201088), "q8_0"),
        ("output_norm.weight", (2880,), "f32"),
        ("output.weight", (2880, 201088), "q8_0"),
    ]
    for index in range(24):
        begin = f"blk.{index}."
        tensors += _norms(begin, 2880, "attn_norm", "post_attention_norm")
        tensors += _heads(begin, 2880, 4096, 512, "q8_0", has_bias=True)
        tensors += [(f"{begin}attn_output.bias", (2880,), "f32"), (f"{begin}attn_sinks.weight", (64,), "f32")]
        tensors += [(f"{begin}ffn_gate_inp.weight", (2880, 32), "f32"), (f"{begin}ffn_gate_inp.bias", (32,), "f32")]
        tensors += _gated(begin, 2880, 2880, "mxfp4", "_exps", 32)
        tensors += [(f"{begin}ffn_{one}_exps.bias", (2880, 32), "f32") for one in ("gate", "up", "down")]
    return values, tensors


def gemma_3_4b() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a tied model with norms around each part and a window in five of six layers."""
    values: dict[str, Value] = {
        "general.architecture": "gemma3",
        "gemma3.block_count": 34,
        "gemma3.context_length": 131072,
        "gemma3.embedding_length": 2560,
        "gemma3.feed_forward_length": 10240,
        "gemma3.attention.head_count": 8,
        "gemma3.attention.head_count_kv": 4,
        "gemma3.attention.key_length": 256,
        "gemma3.attention.sliding_window": 1024,
    }
    tensors: list[Described] = [("token_embd.weight", (2560, 262208), "q6_k"), ("output_norm.weight", (2560,), "f32")]
    for index in range(34):
        begin = f"blk.{index}."
        tensors += _norms(begin, 2560, "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        tensors += _norms(begin, 256, "attn_q_norm", "attn_k_norm")
        tensors += _heads(begin, 2560, 2048, 1024, "q4_k") + _gated(begin, 2560, 10240, "q4_k")
    return values, tensors


def deepseek_v2_lite() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a model with latent attention, and shared experts after one dense layer."""
    values: dict[str, Value] = {
        "general.architecture": "deepseek2",
        "deepseek2.block_count": 27,
        "deepseek2.context_length": 163840,
        "deepseek2.embedding_length": 2048,
        "deepseek2.feed_forward_length": 10944,
        "deepseek2.attention.head_count": 16,
        "deepseek2.attention.head_count_kv": 16,
        "deepseek2.attention.kv_lora_rank": 512,
        "deepseek2.attention.key_length": 192,
        "deepseek2.attention.value_length": 128,
        "deepseek2.rope.dimension_count": 64,
        "deepseek2.expert_count": 64,
        "deepseek2.expert_used_count": 6,
        "deepseek2.expert_shared_count": 2,
        "deepseek2.expert_feed_forward_length": 1408,
        "deepseek2.leading_dense_block_count": 1,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (2048, 102400), "q4_k"),
        ("output_norm.weight", (2048,), "f32"),
        ("output.weight", (2048, 102400), "q6_k"),
    ]
    for index in range(27):
        begin = f"blk.{index}."
        tensors += _norms(begin, 2048, "attn_norm", "ffn_norm") + _norms(begin, 512, "attn_kv_a_norm")
        tensors += [
            (f"{begin}attn_q.weight", (2048, 3072), "q4_k"),
            (f"{begin}attn_kv_a_mqa.weight", (2048, 576), "q8_0"),
            (f"{begin}attn_kv_b.weight", (512, 4096), "q8_0"),
            (f"{begin}attn_output.weight", (2048, 2048), "q4_k"),
        ]
        if index == 0:
            tensors += _gated(begin, 2048, 10944, "q8_0")
            continue
        tensors += [(f"{begin}ffn_gate_inp.weight", (2048, 64), "f32")]
        tensors += _gated(begin, 2048, 1408, "q8_0", "_exps", 64) + _gated(begin, 2048, 2816, "q4_k", "_shexp")
    return values, tensors


def phi_3_mini() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a model with one GEMM for queries, keys and values, and one for gate and up."""
    values: dict[str, Value] = {
        "general.architecture": "phi3",
        "phi3.block_count": 32,
        "phi3.context_length": 4096,
        "phi3.embedding_length": 3072,
        "phi3.feed_forward_length": 8192,
        "phi3.attention.head_count": 32,
        "phi3.attention.head_count_kv": 32,
        "phi3.attention.sliding_window": 2047,
        "phi3.rope.dimension_count": 96,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (3072, 32064), "q4_k"),
        ("output_norm.weight", (3072,), "f32"),
        ("output.weight", (3072, 32064), "q6_k"),
    ]
    for index in range(32):
        begin = f"blk.{index}."
        tensors += _norms(begin, 3072, "attn_norm", "ffn_norm")
        tensors += [
            (f"{begin}attn_qkv.weight", (3072, 9216), "q4_k"),
            (f"{begin}attn_output.weight", (3072, 3072), "q4_k"),
            (f"{begin}ffn_up.weight", (3072, 16384), "q4_k"),
            (f"{begin}ffn_down.weight", (8192, 3072), "q6_k"),
        ]
    return values, tensors


def mamba_2_8b() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a selective state-space model."""
    values: dict[str, Value] = {
        "general.architecture": "mamba",
        "mamba.block_count": 64,
        "mamba.embedding_length": 2560,
        "mamba.feed_forward_length": 0,
        "mamba.attention.head_count": 0,
        "mamba.ssm.conv_kernel": 4,
        "mamba.ssm.inner_size": 5120,
        "mamba.ssm.state_size": 16,
        "mamba.ssm.time_step_rank": 160,
    }
    tensors: list[Described] = [("token_embd.weight", (2560, 50280), "q6_k"), ("output_norm.weight", (2560,), "f32")]
    for index in range(64):
        begin = f"blk.{index}."
        tensors += _norms(begin, 2560, "attn_norm")
        tensors += [
            (f"{begin}ssm_in.weight", (2560, 10240), "q4_k"),
            (f"{begin}ssm_conv1d.weight", (4, 5120), "f32"),
            (f"{begin}ssm_conv1d.bias", (5120,), "f32"),
            (f"{begin}ssm_x.weight", (5120, 192), "q4_k"),
            (f"{begin}ssm_dt.weight", (160, 5120), "f32"),
            (f"{begin}ssm_dt.bias", (5120,), "f32"),
            (f"{begin}ssm_a", (16, 5120), "f32"),
            (f"{begin}ssm_d", (5120,), "f32"),
            (f"{begin}ssm_out.weight", (5120, 2560), "q4_k"),
        ]
    return values, tensors


def small_hybrid(architecture: str, kinds: str) -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a small model; `kinds` has a letter per layer.

    Letters are M (state space), * (attention), - (feed-forward network) and E (experts). A layer of granitehybrid also
    has experts.
    """
    begin = f"{architecture}."
    values: dict[str, Value] = {
        "general.architecture": architecture,
        f"{begin}block_count": len(kinds),
        f"{begin}context_length": 4096,
        f"{begin}embedding_length": 256,
        f"{begin}feed_forward_length": [512 * (kind == "-") for kind in kinds],
        f"{begin}attention.head_count": 4,
        f"{begin}attention.head_count_kv": [2 * (kind == "*") for kind in kinds],
        f"{begin}attention.key_length": 64,
        f"{begin}expert_count": 8,
        f"{begin}expert_used_count": 2,
        f"{begin}ssm.conv_kernel": 4,
        f"{begin}ssm.state_size": 16,
        f"{begin}ssm.group_count": 2,
        f"{begin}ssm.inner_size": 512,
        f"{begin}ssm.time_step_rank": 8,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (256, 1024), "q4_k"),
        ("output_norm.weight", (256,), "f32"),
        ("output.weight", (256, 1024), "q6_k"),
    ]
    is_wide = architecture == "granitehybrid"
    for index, kind in enumerate(kinds):
        one = f"blk.{index}."
        tensors += _norms(one, 256, "attn_norm", *(["ffn_norm"] if is_wide else []))
        if kind == "M":
            tensors += [
                (f"{one}ssm_in.weight", (256, 2 * 512 + 2 * 2 * 16 + 8), "q4_k"),
                (f"{one}ssm_conv1d.weight", (4, 512 + 2 * 2 * 16), "f32"),
                (f"{one}ssm_conv1d.bias", (512 + 2 * 2 * 16,), "f32"),
                *((f"{one}ssm_{name}", (8,), "f32") for name in ("dt.bias", "a", "d")),
                (f"{one}ssm_norm.weight", (512,), "f32"),
                (f"{one}ssm_out.weight", (512, 256), "q4_k"),
            ]
        if kind == "*":
            tensors += _heads(one, 256, 256, 128, "q4_k")
        if kind == "-":
            tensors += [(f"{one}ffn_up.weight", (256, 512), "q4_k"), (f"{one}ffn_down.weight", (512, 256), "q4_k")]
        if kind == "E" or is_wide:
            tensors += [(f"{one}ffn_gate_inp.weight", (256, 8), "f32")]
            tensors += _gated(one, 256, 768, "q4_k", "_exps", 8) + _gated(one, 256, 1280, "q4_k", "_shexp")
    return values, tensors


def small_llama_4() -> tuple[dict[str, Value], list[Described]]:
    """Return the header of a small Llama 4 with experts and a shared expert in every layer."""
    values: dict[str, Value] = {
        "general.architecture": "llama4",
        "llama4.block_count": 4,
        "llama4.context_length": 32768,
        "llama4.embedding_length": 256,
        "llama4.feed_forward_length": 1024,
        "llama4.attention.head_count": 4,
        "llama4.attention.head_count_kv": 2,
        "llama4.attention.key_length": 64,
        "llama4.expert_count": 8,
        "llama4.expert_used_count": 1,
        "llama4.expert_feed_forward_length": 512,
        "llama4.interleave_moe_layer_step": 1,
    }
    tensors: list[Described] = [
        ("token_embd.weight", (256, 1024), "q4_k"),
        ("output_norm.weight", (256,), "f32"),
        ("output.weight", (256, 1024), "q6_k"),
    ]
    for index in range(4):
        begin = f"blk.{index}."
        tensors += _norms(begin, 256, "attn_norm", "ffn_norm") + _heads(begin, 256, 256, 128, "q4_k")
        tensors += [(f"{begin}ffn_gate_inp.weight", (256, 8), "f32")]
        tensors += _gated(begin, 256, 512, "q4_k", "_exps", 8) + _gated(begin, 256, 512, "q4_k", "_shexp")
    return values, tensors
