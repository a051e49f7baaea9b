"""Folders of safetensors files: weights and formats against the configuration, bytes by hand, and damaged files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors_file import Described, form_header, write_folder, write_header, write_safetensors

from compare import assert_close
from joulemap.domain.settings import Settings
from joulemap.physics.width import Widths
from joulemap.plan.run import plan_runs
from joulemap.system.errors import ModelError
from joulemap.wing.decoder.file.safetensors import read_tensors
from joulemap.wing.decoder.network.checkpoint import count_weights
from joulemap.wing.decoder.network.column import describe_columns
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.pass_name import find_decoder, is_pass
from joulemap.wing.decoder.network.read import read_config
from joulemap.workspace import Workspace

WIDTH, INNER, LAYERS, WORDS, KEYS = 256, 512, 2, 1000, 128
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": WORDS, "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}  # fmt: skip
PRODUCTS = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * INNER
"""Weights of the products of a layer."""
REST = 2 * WORDS * WIDTH + (2 * LAYERS + 1) * WIDTH
"""Weights of the table of tokens, the head and the norms."""

Pack = Callable[[str, int, int], list[Described]]


def plain(stem: str, rows: int, columns: int) -> list[Described]:
    return [(f"{stem}.weight", (rows, columns), "BF16")]


def gptq(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.qweight", (columns // 8, rows), "I32"), (f"{stem}.scales", (columns // 128, rows), "F16"),
        (f"{stem}.qzeros", (columns // 128, rows // 8), "I32"),
    ]  # fmt: skip


def gptq_8(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.qweight", (columns // 4, rows), "I32"), (f"{stem}.scales", (columns // 32, rows), "F16"),
        (f"{stem}.qzeros", (columns // 32, rows // 4), "I32"),
    ]  # fmt: skip


def awq(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.qweight", (columns, rows // 8), "I32"), (f"{stem}.scales", (columns // 64, rows), "F16"),
        (f"{stem}.qzeros", (columns // 64, rows // 8), "I32"),
    ]  # fmt: skip


def fp8_block(stem: str, rows: int, columns: int) -> list[Described]:
    scales = -(-rows // 128), -(-columns // 128)
    return [(f"{stem}.weight", (rows, columns), "F8_E4M3"), (f"{stem}.weight_scale_inv", scales, "F32")]


def fp8_row(stem: str, rows: int, columns: int) -> list[Described]:
    return [(f"{stem}.weight", (rows, columns), "F8_E4M3"), (f"{stem}.weight_scale", (rows, 1), "F32")]


def fp8_tensor(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.weight", (rows, columns), "F8_E4M3"), (f"{stem}.weight_scale", (), "F32"),
        (f"{stem}.input_scale", (), "F32"),
    ]  # fmt: skip


def mxfp8(stem: str, rows: int, columns: int) -> list[Described]:
    return [(f"{stem}.weight", (rows, columns), "F8_E4M3"), (f"{stem}.weight_scale_inv", (rows, columns // 32), "U8")]


def nvfp4(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.weight", (rows, columns // 2), "U8"), (f"{stem}.weight_scale", (rows, columns // 16), "F8_E4M3"),
        (f"{stem}.weight_scale_2", (), "F32"), (f"{stem}.input_scale", (), "F32"),
    ]  # fmt: skip


def int4_words(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.weight_packed", (rows, columns // 8), "I32"), (f"{stem}.weight_scale", (rows, columns // 32), "BF16"),
        (f"{stem}.weight_shape", (2,), "I64"),
    ]  # fmt: skip


def int8_words(stem: str, rows: int, columns: int) -> list[Described]:
    return [
        (f"{stem}.weight_packed", (rows, columns // 4), "I32"), (f"{stem}.weight_scale", (rows, columns // 32), "BF16"),
    ]  # fmt: skip


def gptq_without_zeros(stem: str, rows: int, columns: int) -> list[Described]:
    return [(f"{stem}.qweight", (columns // 4, rows), "I32"), (f"{stem}.scales", (columns // 32, rows), "F16")]


def int8_row(stem: str, rows: int, columns: int) -> list[Described]:
    return [(f"{stem}.weight", (rows, columns), "I8"), (f"{stem}.weight_scale", (rows, 1), "BF16")]


def nf4(stem: str, rows: int, columns: int) -> list[Described]:
    count = rows * columns
    return [
        (f"{stem}.weight", (count // 2, 1), "U8"), (f"{stem}.weight.absmax", (count // 64,), "F32"),
        (f"{stem}.weight.quant_map", (16,), "F32"), (f"{stem}.weight.quant_state.bitsandbytes__nf4", (100,), "U8"),
    ]  # fmt: skip


def nf4_double(stem: str, rows: int, columns: int) -> list[Described]:
    count = rows * columns
    return [
        (f"{stem}.weight", (count // 2, 1), "U8"), (f"{stem}.weight.absmax", (count // 64,), "U8"),
        (f"{stem}.weight.nested_absmax", (count // 64 // 256,), "F32"),
    ]  # fmt: skip


def int4_group(**settings: Any) -> dict[str, Any]:
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
    return {"quant_method": "compressed-tensors", "config_groups": {"one": {"targets": ["Linear"], "weights": weights}},
            "ignore": ["lm_head"], **settings}  # fmt: skip


def int8_channel() -> dict[str, Any]:
    weights = {"num_bits": 8, "type": "int", "strategy": "channel"}
    return {"quant_method": "compressed-tensors", "config_groups": {"one": {"targets": ["Linear"], "weights": weights}},
            "ignore": ["lm_head"]}  # fmt: skip


BITS_4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
CASES: dict[str, tuple[Pack, dict[str, Any], str, float]] = {
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq", 1 / 2 + 2.5 / 128),
    "gptq8:32": (gptq_8, {"quant_method": "gptq", "bits": 8, "group_size": 32}, "gptq8:32", 1 + 3 / 32),
    "awq:64": (awq, {"quant_method": "awq", "bits": 4, "group_size": 64}, "awq:64", 1 / 2 + 2.5 / 64),
    "fp8_block": (fp8_block, {"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block", 1 + 4 / 128**2),
    "fp8": (fp8_row, {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, "fp8", 1 + 4 / WIDTH),
    "fp8_tensor": (fp8_tensor, {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]},
                   "fp8_tensor", 1),
    "mxfp8": (mxfp8, {"quant_method": "mxfp8", "weight_block_size": [1, 32], "modules_to_not_convert": ["lm_head"]},
              "mxfp8", 1 + 1 / 32),
    "nvfp4": (nvfp4, {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
              "nvfp4", 1 / 2 + 1 / 16),
    "int4:32": (int4_words, int4_group(), "int4:32", 1 / 2 + 2 / 32),
    "int8:row": (int8_row, int8_channel(), "int8:row", 1 + 2 / WIDTH),
    "nf4": (nf4, BITS_4, "nf4", 1 / 2 + 4 / 64),
    "nf4_double": (nf4_double, {**BITS_4, "bnb_4bit_use_double_quant": True}, "nf4_double", 1 / 2 + (1 + 4 / 256) / 64),
}  # fmt: skip
"""Case -> tensors of a matrix, the configuration's settings, the format, bytes of a weight of long sums."""


def llama(pack: Pack = plain, begin: str = "model.") -> list[Described]:
    """Return the tensors of a model whose products in layers are packed."""
    found: list[Described] = [
        (f"{begin}embed_tokens.weight", (WORDS, WIDTH), "BF16"), ("lm_head.weight", (WORDS, WIDTH), "BF16"),
        (f"{begin}norm.weight", (WIDTH,), "BF16"),
    ]  # fmt: skip
    for index in range(LAYERS):
        stem = f"{begin}layers.{index}."
        found += [(f"{stem}{one}.weight", (WIDTH,), "BF16") for one in ("input_layernorm", "post_attention_layernorm")]
        for name, rows in (("q_proj", WIDTH), ("k_proj", KEYS), ("v_proj", KEYS), ("o_proj", WIDTH)):
            found += pack(f"{stem}self_attn.{name}", rows, WIDTH)
        found += pack(f"{stem}mlp.gate_proj", INNER, WIDTH) + pack(f"{stem}mlp.up_proj", INNER, WIDTH)
        found += pack(f"{stem}mlp.down_proj", WIDTH, INNER)
    return found


def read(folder: Path) -> Decoder:
    decoder = find_decoder(str(folder))
    assert decoder is not None
    return decoder


def weight_bytes(decoder: Decoder) -> float:
    stored = decoder.published.weights if decoder.published else ""
    return Widths(describe_columns(decoder, DecoderPass(cached=64), 1), "bf16", stored).weight_bytes


def test_files_hold_the_weights_of_the_configuration(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, llama())
    decoder, alone = read(folder), read_config(LLAMA, "own")
    count = LAYERS * PRODUCTS + REST
    assert count_weights(decoder) == count_weights(alone) == count
    assert (decoder.layers, decoder.published) == (alone.layers, None)
    assert decoder.file_notes == (f"the files hold {2 * count:,} bytes in {3 + 9 * LAYERS} tensors: BF16 3.39 MB",)
    assert sum(one.byte_count for one in read_tensors(folder / "model.safetensors")) == 2 * count
    assert_close(weight_bytes(decoder), 2 * count)


@pytest.mark.parametrize("case", CASES)
def test_packed_weights_have_the_format_and_the_bytes_of_their_configuration(tmp_path: Path, case: str) -> None:
    pack, settings, name, width = CASES[case]
    folder = write_folder(tmp_path / "told", {**LLAMA, "quantization_config": settings}, llama(pack))
    decoder, alone = read(folder), read_config({**LLAMA, "quantization_config": settings}, "own")
    assert (decoder.layers, decoder.published) == (alone.layers, alone.published)
    assert decoder.published is not None and decoder.published.weights == name
    held = sum(one.byte_count for one in read_tensors(folder / "model.safetensors"))
    assert_close(weight_bytes(decoder), held, rel=0.003)
    assert_close(held, LAYERS * PRODUCTS * width + 2 * REST, rel=0.003)
    assert len(decoder.file_notes) == 1  # the count of weights is that of the configuration


@pytest.mark.parametrize("case", CASES)
def test_names_and_types_of_tensors_show_a_format_without_settings(tmp_path: Path, case: str) -> None:
    pack, _, name, _ = CASES[case]
    decoder = read(write_folder(tmp_path / "silent", LLAMA, llama(pack)))
    assert decoder.published is not None
    assert (decoder.published.weights, decoder.published.others) == (name, ())
    assert len(decoder.file_notes) == 1


@pytest.mark.parametrize(("pack", "name"), [(int8_words, "int8:32"), (gptq_without_zeros, "gptq8:32")])
def test_the_number_of_weights_shows_the_bits_of_packed_codes(tmp_path: Path, pack: Pack, name: str) -> None:
    """Words of 32 bits hold four codes of 8 bits; as codes of 4 bits, they would be twice as many weights."""
    decoder = read(write_folder(tmp_path / "silent", LLAMA, llama(pack)))
    assert decoder.published is not None and decoder.published.weights == name
    assert len(decoder.file_notes) == 1


def test_groups_show_the_bits_of_codes_of_two_widths(tmp_path: Path) -> None:
    """Attention in 8 bits and the rest in 4: a row of 32 words has 4 groups of 32 codes of 8 bits, 8 of 4 bits."""

    def pack(stem: str, rows: int, columns: int) -> list[Described]:
        return (int8_words if ".self_attn." in stem else int4_words)(stem, rows, columns)

    groups = int4_group()["config_groups"]["one"]
    wide = {"targets": ["re:.*self_attn.*"], "weights": {**groups["weights"], "num_bits": 8}}
    settings = int4_group(config_groups={"one": wide, "two": groups})
    decoder = read(write_folder(tmp_path / "own", {**LLAMA, "quantization_config": settings}, llama(pack)))
    assert decoder.published is not None
    assert (decoder.published.weights, decoder.published.others) == ("int4:32", ("int8:32",))
    assert len(decoder.file_notes) == 1  # the count of weights is that of the configuration


def test_files_decide_where_settings_say_otherwise(tmp_path: Path) -> None:
    """A list of exceptions that names no layer, and down projections that the files hold wide."""
    tensors = [one for one in llama(awq) if ".down_proj." not in one[0]]
    tensors += [(f"model.layers.{index}.mlp.down_proj.weight", (WIDTH, INNER), "F16") for index in range(LAYERS)]
    settings = {"quant_method": "awq", "bits": 4, "group_size": 64}
    decoder = read(write_folder(tmp_path / "own", {**LLAMA, "quantization_config": settings}, tensors))
    assert dict(decoder.layers[0].stored)["mlp.down_proj.weight"] == ""
    held = LAYERS * ((PRODUCTS - WIDTH * INNER) * (1 / 2 + 2.5 / 64) + 2 * WIDTH * INNER) + 2 * REST
    assert_close(weight_bytes(decoder), held)
    assert len(decoder.file_notes) == 2


def test_experts_of_a_file_are_those_of_its_configuration(tmp_path: Path) -> None:
    """GPT-OSS as published: experts in blocks of 32 with a scale of 8 bits, everything else at 16 bits."""
    config = {
        "model_type": "gpt_oss", "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "head_dim": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "tie_word_embeddings": False, "quantization_config": {"quant_method": "mxfp4"},
    }  # fmt: skip
    stem, experts = "model.layers.0.", "model.layers.0.mlp.experts."
    tensors: list[Described] = [
        ("model.embed_tokens.weight", (1000, 256), "BF16"), ("lm_head.weight", (1000, 256), "BF16"),
        ("model.norm.weight", (256,), "BF16"), (f"{stem}input_layernorm.weight", (256,), "BF16"),
        (f"{stem}post_attention_layernorm.weight", (256,), "BF16"), (f"{stem}self_attn.sinks", (4,), "BF16"),
        (f"{stem}mlp.router.weight", (8, 256), "BF16"), (f"{stem}mlp.router.bias", (8,), "BF16"),
        (f"{experts}gate_up_proj_blocks", (8, 512, 8, 16), "U8"), (f"{experts}gate_up_proj_scales", (8, 512, 8), "U8"),
        (f"{experts}down_proj_blocks", (8, 256, 8, 16), "U8"), (f"{experts}down_proj_scales", (8, 256, 8), "U8"),
        (f"{experts}gate_up_proj_bias", (8, 512), "BF16"), (f"{experts}down_proj_bias", (8, 256), "BF16"),
    ]  # fmt: skip
    for name, rows, columns in (("q_proj", 256, 256), ("k_proj", 128, 256), ("v_proj", 128, 256), ("o_proj", 256, 256)):
        tensors += [(f"{stem}self_attn.{name}.weight", (rows, columns), "BF16"),
                    (f"{stem}self_attn.{name}.bias", (rows,), "BF16")]  # fmt: skip
    folder = write_folder(tmp_path / "oss", config, tensors)
    decoder, alone = read(folder), read_config(config, "own")
    assert (decoder.layers, decoder.published) == (alone.layers, alone.published)
    assert len(decoder.file_notes) == 1
    held = sum(one.byte_count for one in read_tensors(folder / "model.safetensors"))
    assert_close(weight_bytes(decoder), held)


def test_weights_beside_the_language_model_are_named(tmp_path: Path) -> None:
    tensors = llama(begin="language_model.model.")
    tensors += [("language_model.visual.merger.weight", (64, 64), "BF16")]
    tensors += [(f"vision_tower.encoder.layers.{index}.fc.weight", (64, 64), "BF16") for index in range(40)]
    tensors += [("multi_modal_projector.weight", (64, 256), "BF16"), ("language_model.model.layers.2.eh.weight", (8, 8),
                "BF16"), ("language_model.model.layers.0.self_attn.rotary_emb.inv_freq", (32,), "F32")]  # fmt: skip
    decoder = read(write_folder(tmp_path / "own", LLAMA, tensors))
    (_, note) = decoder.file_notes
    assert note.startswith(f"{41 * 64 * 64 + 64 * 256 + 64:,} ")
    assert note.endswith("vision_tower, multi_modal_projector, language_model.visual and 1 more")


def test_a_missing_head_is_tied(tmp_path: Path) -> None:
    tensors = [one for one in llama() if one[0] != "lm_head.weight"]
    decoder = read(write_folder(tmp_path / "own", LLAMA, tensors))
    assert decoder.is_tied
    assert count_weights(decoder) == LAYERS * PRODUCTS + REST - WORDS * WIDTH


def test_parts_are_one_model(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, llama(), parts=3)
    whole = read(write_folder(tmp_path / "whole", LLAMA, llama()))
    parts = [f"model-0000{index}-of-00003.safetensors" for index in (1, 2, 3)]
    for name in (folder, folder / "model.safetensors.index.json", folder / parts[1]):
        assert is_pass(f"{name}(cached=8)")
        assert read(name).digest == whole.digest
    (folder / parts[2]).unlink()
    for name in (folder, folder / parts[0]):
        with pytest.raises(ModelError, match=parts[2]):
            read(name)


@pytest.mark.slow
def test_a_folder_without_a_pass_runs_as_published(tmp_path: Path) -> None:
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    folder = write_folder(tmp_path / "own", {**LLAMA, "quantization_config": settings}, llama(fp8_block))
    told = str(folder)
    found = plan_runs((told,), Settings(hardware=("l4",)))
    assert found.models[0].dimensions["phase"] == "decode"
    assert found.models[0].dimensions["engine"].startswith("vllm")
    assert found.settings.precisions == (("fp8", "fp8_block"),)
    assert found.settings.runtime == ("engine",)
    assert plan_runs((told,), Settings(hardware=("a100_sxm4_80gb",))).settings.precision == ("bf16",)
    (row,) = Workspace(tmp_path / "own.duckdb").llm(told, hardware=["l4"], batch=(1,)).rows
    assert row.precision == "fp8/fp8_block"


ENTRIES, ROOM = form_header(llama())
FIRST = "model.embed_tokens.weight"


def changed(**values: Any) -> dict[str, Any]:
    return {**ENTRIES, FIRST: {**ENTRIES[FIRST], **values}}


SIZE = 2 * WORDS * WIDTH
DAMAGED: dict[str, dict[str, Any] | bytes] = {
    "no header": b"",
    "no object": b"[1, 2]",
    "no JSON": b"{" + b"x" * 100,
    "deep": b'{"a":' + b" " * 20_000 + b"[" * 1_500 + b"]" * 1_500 + b"}",
    "many lists": b'{"a":[' + b"[]," * 100_000 + b"[]]}",
    "the same name twice": b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],'
    b'"data_offsets":[0,4]}}',
    "no tensors": {},
    "a list for a tensor": {**ENTRIES, FIRST: [1]},
    "unknown type": changed(dtype="F128"),
    "a type that is no text": changed(dtype=7),
    "negative size": changed(shape=[-1, WIDTH]),
    "true for a size": changed(shape=[True, WIDTH]),
    "size without end": changed(shape=[2**62, 2**62]),
    "many axes": changed(shape=[1] * 100),
    "bytes that are not those of the shape": changed(data_offsets=[0, SIZE - 2]),
    "bytes behind the file": changed(data_offsets=[ROOM, ROOM + SIZE]),
    "other weights": {"model.layers.0.mlp.up_proj.weight": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, llama())
    write_header(folder / "model.safetensors", DAMAGED[damage], ROOM)
    with pytest.raises(ModelError) as error:
        read(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x10\0\0\0", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 30_000_000) + bytes(30_000_000),
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    ],
    ids=["empty", "cut in the length", "a length without end", "a long header", "a pointer"],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, llama())
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        read(folder)


@pytest.mark.parametrize(
    "index",
    [
        "{", "[]", "{}", json.dumps({"weight_map": {}}), json.dumps({"weight_map": {"a": 1}}),
        json.dumps({"weight_map": {"a": "../model.safetensors"}}), json.dumps({"weight_map": {"a": "/dev/zero"}}),
        json.dumps({"weight_map": {"a": "model.safetensors"}}),
    ],
)  # fmt: skip
def test_a_damaged_index_is_refused(tmp_path: Path, index: str) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, llama())
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelError, match=r"index\.json"):
        read(folder)


def test_weights_without_a_configuration_are_refused(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", llama())
    for name in (path, tmp_path):
        with pytest.raises(ModelError, match=r"config\.json"):
            read(name)
    with pytest.raises(ModelError):
        read(tmp_path / "absent.safetensors")


def test_an_adapter_and_another_configuration_are_no_model(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own", LLAMA, [])
    (folder / "model.safetensors").unlink()
    write_safetensors(folder / "adapter_model.safetensors", [("lora_A.weight", (8, 8), "F32")])
    assert read(folder).digest == read_config(LLAMA, "own").digest
    other = write_folder(tmp_path / "other", {**LLAMA, "num_hidden_layers": 3}, llama())
    with pytest.raises(ModelError, match=f"{LAYERS * PRODUCTS + REST:,}"):
        read(other)
