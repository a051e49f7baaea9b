"""Writer of headers of GGUF files as in llama.cpp, without weights."""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
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


def _heads(begin: str, width: int, queries: int, keys: int, kind: str) -> list[Described]:
    sizes = (("q", queries), ("k", keys), ("v", keys))
    tensors: list[Described] = [(f"{begin}attn_{name}.weight", (width, size), kind) for name, size in sizes]
    return [*tensors, (f"{begin}attn_output.weight", (queries, width), kind)]


HEADERS = tomllib.loads((Path(__file__).parents[1] / "data" / "gguf_header.toml").read_text(encoding="utf-8"))


def _describe(lines: Iterable[str], begin: str = "") -> list[Described]:
    words = (line.split() for line in lines)
    return [(begin + name, tuple(map(int, sizes)), kind) for name, *sizes, kind in words]


def read_header(name: str) -> tuple[dict[str, Value], list[Described]]:
    """Return the keys and the tensors of a header."""
    header = HEADERS[name]
    values = dict(header["values"])
    if "tokenizer.ggml.tokens" in values:
        values["tokenizer.ggml.tokens"] = ["token"] * values["tokenizer.ggml.tokens"]
    layers = (_describe(header[kind], f"blk.{index}.") for index, kind in enumerate(header["layers"]))
    return values, [*_describe(header["tensors"]), *chain(*layers)]


llama_3_1_8b = partial(read_header, "llama_3_1_8b")
qwen3_30b_a3b = partial(read_header, "qwen3_30b_a3b")
gpt_oss_20b = partial(read_header, "gpt_oss_20b")
gemma_3_4b = partial(read_header, "gemma_3_4b")
deepseek_v2_lite = partial(read_header, "deepseek_v2_lite")
phi_3_mini = partial(read_header, "phi_3_mini")
mamba_2_8b = partial(read_header, "mamba_2_8b")
small_llama_4 = partial(read_header, "small_llama_4")


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
