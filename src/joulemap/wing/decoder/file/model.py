"""Decoder of a file of weights: the configuration that its header states, and the format of each weight.

    GGUF header ─► keys of a config.json ─► read_config ─► decoder ┐
    types of tensors ──────────────────────────────────────────────┴► main format, exceptions by layer

The weights of the decoder are counted against those of the file, so that a wrong size cannot pass unnoticed.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, Final

import attrs

from joulemap.physics import GGUF_METHOD
from joulemap.system import ModelError, Reading, format_si
from joulemap.wing.decoder.file.gguf import load_tables, read_gguf
from joulemap.wing.decoder.file.header import FileHeader, StoredTensor
from joulemap.wing.decoder.network.checkpoint import count_weights, store_formats
from joulemap.wing.decoder.network.config import Decoder, Published
from joulemap.wing.decoder.network.read import read_config
from joulemap.wing.hub import check_sizes

LARGEST_GAP: Final = 0.01
"""Maximum relative difference between a file's number of weights and the number that its sizes imply."""

WIDE: Final = "16 and 32 bits"
"""Name in notes for tensors of 16 and 32 bits, which a run keeps at its own precision."""

JOINED: Final = (
    ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
    ("mlp.shared_experts.gate_proj.weight", "mlp.shared_experts.up_proj.weight"),
    ("self_attn.qkv_proj.weight", "self_attn.q_proj.weight"),
    ("self_attn.q_proj.weight", "self_attn.qkv_proj.weight"),
    ("self_attn.k_proj.weight", "self_attn.qkv_proj.weight"),
    ("self_attn.v_proj.weight", "self_attn.qkv_proj.weight"),
)
"""(weight, other weight whose format it takes if a file lacks the weight)."""

NEEDED: Final[Mapping[str, str]] = {"block_count": "num_hidden_layers", "embedding_length": "hidden_size"}
"""Key of a header that every language model has -> key of a configuration."""

PARTS: Final[Mapping[str, str]] = {"ssm_out": "mamba", "attn_q": "attention", "ffn_up_exps": "moe", "ffn_up": "mlp"}
"""Tensor of a layer -> kind of the layer; the first of these tensors that a layer has decides."""


def read_model_file(path: Path, name: str) -> Decoder:
    """Return the decoder of a GGUF file, in the formats of the file's weights.

    Raise ModelError for an unreadable file, an unknown architecture, or sizes that do not match its weights.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise ModelError(f"{quote(name)} cannot be read: {error.strerror}") from error
    return _read_once(path, name, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _read_once(path: Path, name: str, changed_ns: int, size: int) -> Decoder:
    """Return the decoder of the current file, cached because a command requests it several times."""
    del changed_ns, size
    with Reading(name, "its header"):
        header = read_gguf(path)
        decoder = read_config(form_config(header, name), name)
        decoder = _apply_formats(_check_weights(decoder, header), header)
    beside = load_tables()["images"].get(str(header.values.get("general.architecture")))
    missing = _describe_missing(header)
    notes = [_describe_bytes(header), *([missing] if missing else []), *decoder.file_notes]
    if beside:
        notes.append(
            f"images need the encoder of another file ({beside}), which is not counted: times are of text alone"
        )
    return attrs.evolve(decoder, file_notes=tuple(notes), missing_note=missing)


def _describe_bytes(header: FileHeader) -> str:
    """Return a note on the bytes of all weights by type."""
    sizes = Counter[str]()
    for tensor in header.tensors:
        sizes[tensor.stored or WIDE] += tensor.byte_count
    types = ", ".join(f"{stored} {format_si(size, 'B')}" for stored, size in sizes.most_common())
    return f"the weights take {header.byte_count:,} bytes in {len(header.tensors):,} tensors: {types}"


def _describe_missing(header: FileHeader) -> str:
    """Return a note on the weights that a file lacks; empty if it lacks none."""
    if header.present_bytes >= header.byte_count:
        return ""
    return (
        f"the file holds {header.present_bytes:,} of {header.byte_count:,} bytes of weights: enough to predict, but "
        "llama.cpp needs them all"
    )


class Keys:
    """Keys of a GGUF header for one architecture, whose values are counts or lists of counts.

    Reading a value of another type, or a negative one, raises ModelError.
    """

    def __init__(self, values: Mapping[str, Any], architecture: str, name: str) -> None:
        """Take the keys of `values` that begin with the architecture; `name` is the file's name in errors."""
        self.values, self.begin, self.name = values, f"{architecture}.", name

    def get(self, key: str, default: Any = None) -> Any:
        """Return the count or the list of counts at a key, or the default if it is absent."""
        value = self.values.get(f"{self.begin}{key}", default)
        counts = value if isinstance(value, list) else [value]
        if value is not default and not all(isinstance(one, int) and one >= 0 for one in counts):
            raise self._refuse(key, value, "a count")
        return value

    def count(self, key: str, default: int = 0) -> int:
        """Return the count at a key; ModelError for a list."""
        value = self.get(key, default)
        if isinstance(value, list):
            raise self._refuse(key, value, "one count")
        return int(value)

    def _refuse(self, key: str, value: Any, expected: str) -> ModelError:
        return ModelError(f"{self.name}: {self.begin}{key[:60]} is {value!r:.40}, expected {expected}")


def form_config(header: FileHeader, name: str) -> dict[str, Any]:
    """Return a GGUF header as the keys of a `config.json`; ModelError for an unsupported architecture."""
    tables = load_tables()
    architecture = str(header.values.get("general.architecture", ""))
    routed = bool(header.values.get(f"{architecture}.expert_count"))
    kind = (routed and tables["routed"].get(architecture)) or tables["architectures"].get(architecture)
    if kind is None:
        raise ModelError(_describe_unknown(name, architecture[:60]))
    keys = Keys(header.values, architecture, name)
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    values: dict[str, Any] = {"model_type": kind}
    hybrid = tables["hybrid"].get(kind)
    for key, one in {**tables["keys"], **tables["named"].get(architecture, {})}.items():
        value = None if hybrid and key in hybrid["unread"] else _read_even(keys.get(key), key, name, hybrid is not None)
        if value is not None and one not in values:
            values[one] = value
    table = shapes.get("token_embd.weight")
    lacking = [] if table else ["token_embd"]
    lacking += [word for word, key in NEEDED.items() if key not in values]
    if table is None or not table or lacking:
        raise ModelError(f"{name}: no {lacking[0]}: it holds no language model")
    check_sizes(values, name)
    values["num_hidden_layers"] -= keys.count("nextn_predict_layers")
    values["vocab_size"] = table[0]
    values["tie_word_embeddings"] = "output.weight" not in shapes
    values["attention_bias"] = any(f"blk.0.attn_{one}.bias" in shapes for one in ("q", "qkv"))
    values["mlp_bias"] = "blk.0.ffn_up.bias" in shapes
    values |= _read_heads(keys, values) | _read_windows(keys, values, architecture) | _read_states(keys, values, kind)
    values |= tables["fixed"].get(architecture, {})
    if hybrid:
        values |= _read_hybrid(hybrid, shapes, keys, values["num_hidden_layers"])
    if kind == "glm4_moe":
        values["use_qk_norm"] = "blk.0.attn_q_norm.weight" in shapes
    if kind == "nemotron":
        values["head_dim"] = values.get("head_dim", values["hidden_size"] // values["num_attention_heads"])
    if kind == "gpt_oss":
        values["num_local_experts"] = values.pop("num_experts")
    return values


def _describe_unknown(name: str, architecture: str) -> str:
    """Return the refusal of an unsupported architecture, with the kind of the file or the nearest known name."""
    tables = load_tables()
    if other := tables["others"].get(architecture):
        return f"{name}: it holds {other}"
    near = difflib.get_close_matches(architecture, tables["architectures"], 1)
    nearest = f"; the nearest that is known is {near[0]}" if near else ""
    return (
        f"{name}: the GGUF architecture {architecture!r} is not known{nearest}. The config.json of the model can be "
        "named instead, with a family.toml beside it if necessary (docs/llm.md)"
    )


def _read_hybrid(
    words: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], keys: Keys, count: int
) -> dict[str, Any]:
    """Return kinds of layers and sizes of their parts, from the tensors of a file whose layers differ in kind.

    `words` maps each kind and size to a key of a configuration.
    """
    heads, experts = keys.count("ssm.time_step_rank"), keys.count("expert_count")
    kinds = [
        next((kind for part, kind in PARTS.items() if f"blk.{index}.{part}.weight" in shapes), "none")
        for index in range(count)
    ]
    sizes = {words["layers"]: kinds, words["experts"]: experts, words["heads"]: heads}
    sizes[words["head"]] = keys.count("ssm.inner_size") // max(heads, 1)
    for index in range(count):
        for part, key in words["widths"].items():
            if (shape := shapes.get(f"blk.{index}.{part}.weight")) is not None:
                sizes[key] = shape[-2]
    return sizes


def _read_even(value: Any, key: str, name: str, has_gaps: bool) -> Any:
    """Return a size that a file gives once or per layer; ModelError if layers differ.

    With `has_gaps`, layers of size zero are ignored: they lack the part that has this size.
    """
    if not isinstance(value, list):
        return value
    if has_gaps:
        value = [one for one in value if one]
    if len(set(value)) > 1:
        raise ModelError(f"{name}: {key} differs between layers, {min(value)} to {max(value)}, which is not supported")
    return value[0] if value else None


def _read_heads(keys: Keys, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return configuration keys for the widths of heads: the rotary part, and the widths of multi-head latent
    attention.
    """
    turned = keys.count("rope.dimension_count")
    if "kv_lora_rank" in values:
        turned = turned or 64
        return {
            "qk_rope_head_dim": turned,
            "qk_nope_head_dim": keys.count("attention.key_length_mla", keys.count("attention.key_length")) - turned,
            "v_head_dim": keys.count("attention.value_length_mla", keys.count("attention.value_length")),
        }
    heads = values.get("num_attention_heads", 0)
    width = values.get("head_dim") or (values["hidden_size"] // heads if heads else 0)
    widths: dict[str, Any] = {"rotary_dim": turned} if turned else {}
    if turned and width:
        widths["partial_rotary_factor"] = min(1.0, turned / width)
    return widths


def _read_windows(keys: Keys, values: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """Return the configuration keys of window attention: the type of each layer, or only that windows are used."""
    window, count = values.get("sliding_window"), values["num_hidden_layers"]
    if not window:
        return {}
    pattern = keys.get("attention.sliding_window_pattern", load_tables()["windows"].get(architecture))
    if isinstance(pattern, list):
        return {"layer_types": ["sliding_attention" if one else "full_attention" for one in pattern[:count]]}
    if not isinstance(pattern, int) or pattern < 2:
        return {"use_sliding_window": True}
    kinds = ("full_attention" if (index + 1) % pattern == 0 else "sliding_attention" for index in range(count))
    return {"layer_types": list(kinds), "use_sliding_window": True}


def _read_states(keys: Keys, values: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return configuration keys for the sizes of recurrences; empty without recurrences."""
    inner, heads = keys.count("ssm.inner_size"), keys.count("ssm.time_step_rank")
    if kind == "mamba":
        return {"intermediate_size": inner}
    if kind == "mamba2":
        return {"num_heads": heads, "head_dim": inner // max(heads, 1), "expand": inner // values["hidden_size"]}
    if keys.get("ssm.inner_size") is None:
        return {}
    return {
        "linear_num_value_heads": heads,
        "linear_value_head_dim": inner // max(heads, 1),
        "linear_key_head_dim": keys.get("ssm.state_size"),
        "linear_num_key_heads": keys.get("ssm.group_count"),
        "linear_conv_kernel_dim": keys.get("ssm.conv_kernel"),
    }


def _check_weights(decoder: Decoder, header: FileHeader) -> Decoder:
    """Return a decoder with a note if its sizes and its file have different numbers of weights.

    ModelError if they differ by more than `LARGEST_GAP`.
    """
    beside = load_tables()["beside"]["names"]
    last = decoder.layer_count
    stated = sum(
        tensor.element_count
        for tensor in header.tensors
        if not any(one in tensor.name for one in beside) and _find_layer(tensor.name) < last
    )
    counted = count_weights(decoder)
    gap = stated - counted
    if abs(gap) > LARGEST_GAP * stated:
        raise ModelError(
            f"{decoder.name}: it holds {stated:,} weights, but the sizes in its header imply {counted:,}: "
            f"this variant of {decoder.model_type} is not supported"
        )
    if gap:
        decoder.file_notes = (describe_gap("the tensors hold", stated, gap),)
    return decoder


def describe_gap(holds: str, stated: int, gap: int) -> str:
    """Return a note on weights that are in the files but not in the decoder, or the reverse."""
    return f"{holds} {stated:,} weights, {abs(gap):,} {'more' if gap > 0 else 'fewer'} than the prediction counts"


def _find_layer(name: str) -> int:
    """Return the layer of a tensor; -1 for a tensor outside layers."""
    begin, _, rest = name.partition("blk.")
    index = rest.partition(".")[0]
    return int(index) if not begin and index.isdecimal() else -1


def _apply_formats(decoder: Decoder, header: FileHeader) -> Decoder:
    """Return a decoder whose weights are stored according to the types of the file's tensors."""
    tables = load_tables()
    layers: list[dict[str, str]] = [{} for _ in decoder.layers]
    outside: dict[str, str] = {}
    sizes, wide = Counter[str](), Counter[str]()
    for tensor in sorted(header.tensors, key=lambda one: one.element_count):
        layer_index, weight = _find_weight(tensor, tables)
        if not weight or layer_index >= len(layers):
            continue
        (outside if layer_index < 0 else layers[layer_index])[weight] = tensor.stored
        (sizes if tensor.stored else wide)[tensor.stored or tensor.wide] += tensor.element_count
    for own in layers:
        _fill_joined(own)
    if decoder.is_tied:
        outside.pop("lm_head.weight", None)
    if sizes:
        return store_formats(decoder, GGUF_METHOD, sizes, [*layers, outside])
    precision = max(wide, key=lambda one: wide[one], default="")
    return attrs.evolve(decoder, published=Published(method=GGUF_METHOD, precision=precision))


def _fill_joined(own: dict[str, str]) -> None:
    """Add the formats of GEMMs that a file merges and this package splits, or the reverse."""
    for one, other in JOINED:
        if one not in own and other in own:
            own[one] = own[other]


def _find_weight(tensor: StoredTensor, tables: Mapping[str, Mapping[str, Any]]) -> tuple[int, str]:
    """Return (layer, name in this package) of the weight that a tensor stores; an empty name if no GEMM reads it."""
    if not tensor.name.endswith(".weight") or len(tensor.shape) < 2:
        return -1, ""
    stem = tensor.name.removesuffix(".weight")
    layer = _find_layer(tensor.name)
    if layer < 0:
        return -1, str(tables["outside"].get(stem, ""))
    return layer, str(tables["tensors"].get(stem.partition(".")[2].partition(".")[2], ""))
