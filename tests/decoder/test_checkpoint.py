"""Quantized checkpoints of decoders: each weight at the width it is published at, in memory, traffic and time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from compare import assert_close
from deployed import known_decoder
from joulemap.domain.settings import Settings
from joulemap.physics.fuse import fuse
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.weight import read_weight_format
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.width import Widths
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.plan.source import Source
from joulemap.system.errors import ModelError
from joulemap.trace.packed.method import read_checkpoint
from joulemap.wing.decoder.network.checkpoint import name_format
from joulemap.wing.decoder.network.column import describe_columns
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import build_graph
from joulemap.wing.decoder.network.pass_name import find_decoder, load_shipped
from joulemap.wing.decoder.network.read import read_config
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.serving.deployment import PassWorkloads
from joulemap.wing.llm.serving.predict import weigh
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace
from packed_case import COLUMNS, ROWS, STORED

WIDTH, INNER, LAYERS, WORDS, KEYS = 256, 512, 2, 1000, 128
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": WORDS, "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}  # fmt: skip
ATTENTION = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS
ATTENTION_ROWS = 2 * WIDTH + 2 * KEYS
MLP = WIDTH * INNER
REST = 2 * (2 * WORDS * WIDTH + (2 * LAYERS + 1) * WIDTH)
"""Bytes of the table of tokens, the head and the norms, at 16 bits."""

MIXED: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "attention": {
            "targets": ["re:.*self_attn.*"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "float", "dynamic": True},
        },
        "mlp": {
            "targets": ["re:.*mlp.*"],
            "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            "input_activations": {"num_bits": 4, "type": "float", "dynamic": True},
        },
    },
    "ignore": ["lm_head", "model.layers.1.mlp.down_proj"],
}


def decoder_of(quantization: dict[str, Any] | None, **changes: Any) -> Decoder:
    values = {**LLAMA, **changes}
    return read_config({**values, "quantization_config": quantization} if quantization else values, "own.json")


def columns(decoder: Decoder) -> WorkloadColumns:
    return describe_columns(decoder, DecoderPass(cached=64), 1)


def weight_bytes(decoder: Decoder, precision: str = "bf16") -> float:
    assert decoder.published is not None
    return Widths(columns(decoder), precision, decoder.published.weights).weight_bytes


def test_a_mixed_checkpoint_worked_out_by_hand() -> None:
    decoder = decoder_of(MIXED)
    published = decoder.published
    assert published is not None
    assert (published.weights, published.others, published.precision) == ("nvfp4", ("fp8",), "fp4")
    attention = ATTENTION + 4 * ATTENTION_ROWS
    packed = MLP // 2 + MLP // 16
    held = LAYERS * attention + 5 * packed + 2 * MLP + REST
    for precision in ("bf16", "fp4"):
        assert_close(weight_bytes(decoder, precision), held)
    assert_close(Widths(columns(decoder), "bf16").weight_bytes, 2 * (LAYERS * ATTENTION + 6 * MLP) + REST)


def test_each_product_moves_its_own_bytes_and_is_widened_on_its_own() -> None:
    work = columns_of(fuse(build_graph(decoder_of(MIXED), DecoderPass(cached=64), 1).form(NO_KEY, "", 1, ())))
    kernels = form_kernels(work, "bf16", "graph", "nvfp4")
    names = build_graph(decoder_of(MIXED), DecoderPass(cached=64), 1).operators
    found = {
        names[index].name: (moved, made)
        for index, moved, made in zip(
            kernels.operator_index.tolist(),
            kernels.weight_bytes.tolist(),
            kernels.dequantization_count.tolist(),
            strict=True,
        )
    }
    query = WIDTH * WIDTH
    assert_close(found["layers.0.self_attn.q_proj"][0], query + 4 * WIDTH)
    assert_close(found["layers.1.mlp.gate_proj"][0], MLP // 2 + MLP // 16)
    assert_close(found["layers.0.mlp.down_proj"][0], MLP // 2 + MLP // 16)
    assert_close(found["layers.1.mlp.down_proj"][0], 2 * MLP)
    assert_close(found["lm_head"][0], 2 * WORDS * WIDTH)
    per_weight = read_weight_format("nvfp4").operations
    assert_close(found["layers.0.mlp.up_proj"][1], per_weight * MLP)
    assert_close(found["layers.0.self_attn.q_proj"][1], read_weight_format("fp8").operations * query)
    assert found["layers.1.mlp.down_proj"][1] == found["lm_head"][1] == 0.0


SIZES = {
    "gpt-oss-20b": 13.76,
    "gpt-oss-120b": 65.25,
    "llama-2-7b-chat-awq": 3.89,
    "llama-2-7b-chat-gptq": 3.90,
}
"""Name that ships -> GB of its safetensors as published."""


@pytest.mark.parametrize("name", SIZES)
def test_checkpoints_have_the_size_of_their_files(name: str) -> None:
    decoder = find_decoder(name)
    assert decoder is not None and decoder.published is not None
    assert_close(weigh(PassWorkloads(decoder), decoder.published.weights), SIZES[name] * 1e9, rel=0.004)


OF_SHAPE: dict[str, tuple[str, dict[str, Any], float]] = {
    "Llama-2-13B-AWQ": ("llama-2-13b", {"quant_method": "awq", "bits": 4, "group_size": 128}, 7.25),
    "Llama-2-13B-GPTQ": ("llama-2-13b", {"quant_method": "gptq", "bits": 4, "group_size": 128}, 7.26),
    "Llama-2-70B-AWQ": ("llama-2-70b", {"quant_method": "awq", "bits": 4, "group_size": 128}, 36.61),
    "Llama-2-70B-GPTQ": ("llama-2-70b", {"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": True}, 35.33),
    "Mixtral-8x7B-GPTQ": (
        "mixtral-8x7b", {"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": True}, 23.81,
    ),
}  # fmt: skip
"""Checkpoint of TheBloke -> (a name of the same sizes, its quantization, GB of its file by its page; recalled)."""


@pytest.mark.parametrize("name", OF_SHAPE)
def test_checkpoints_of_a_known_shape_have_the_size_of_their_files(name: str) -> None:
    shape, quantization, size = OF_SHAPE[name]
    decoder = read_config({**load_shipped()[shape]["config"], "quantization_config": quantization}, name)
    assert decoder.published is not None
    assert_close(weigh(PassWorkloads(decoder), decoder.published.weights), size * 1e9, rel=0.005)


def test_deepseek_has_the_size_of_its_files_but_for_the_layer_that_guesses() -> None:
    """688.6 GB of safetensors: 61 layers, and one more with its own table, head and projection (MTP)."""
    decoder = known_decoder("deepseek-r1")
    layer = decoder.layers[-1]
    more = attrs.evolve(decoder, layers=(*decoder.layers, layer))
    workloads, longer = PassWorkloads(decoder), PassWorkloads(more)
    one_layer = weigh(longer, "fp8_block") - weigh(workloads, "fp8_block")
    beside = 2 * 2 * decoder.vocabulary * decoder.hidden + 2 * 2 * decoder.hidden * decoder.hidden
    assert_close(weigh(workloads, "fp8_block") + one_layer + beside, 688.6e9, rel=0.001)


@pytest.mark.parametrize("case", STORED)
def test_formats_of_decoders_have_the_bytes_of_those_that_are_traced(case: str) -> None:
    values, expected = STORED[case]
    checkpoint = read_checkpoint(values, "config.json")
    assert checkpoint is not None
    stored = checkpoint.groups[0].stored
    found = read_weight_format(name_format(stored, checkpoint.method))
    # orders of columns and the rounding of scales that a whole matrix shares are left out
    assert_close(ROWS * found.row_bytes(COLUMNS), expected, rel=0.016)


def test_what_a_list_names_stays_wide() -> None:
    left = ["model.layers.0", "model.layers.1.self_attn", "lm_head"]
    decoder = decoder_of({"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": left})
    narrow = 3 * MLP
    held = 2 * (LAYERS * ATTENTION + 3 * MLP) + narrow + 4 * narrow // 128**2 + REST
    for precision in ("bf16", "fp8"):
        assert_close(weight_bytes(decoder, precision), held, rel=1e-3)


FOUR_BITS: dict[str, Any] = {"quant_method": "awq", "bits": 4, "group_size": 128}
AWQ_BITS = 4 + 20 / 128
"""Bits per weight in groups of 128 with a scale of 16 bits and a zero of 4."""

NF4: dict[str, Any] = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


@pytest.mark.parametrize(
    ("values", "attention", "mlp"),
    [
        ({**FOUR_BITS, "modules_to_not_convert": ["mlp"]}, LAYERS * AWQ_BITS, LAYERS * 16),
        ({**FOUR_BITS, "modules_to_not_convert": ["self_attn"]}, LAYERS * 16, LAYERS * AWQ_BITS),
        ({**FOUR_BITS, "modules_to_not_convert": ["layers.0."]}, 16 + AWQ_BITS, 16 + AWQ_BITS),
        ({**NF4, "llm_int8_skip_modules": ["self_attn", "lm_head"]}, LAYERS * 16, LAYERS * 4.5),
        ({**NF4, "llm_int8_skip_modules": ["self", "lm_head"]}, LAYERS * 4.5, LAYERS * 4.5),
        (
            {"quant_method": "auto-round", "bits": 2, "group_size": 32, "extra_config": {
                **{f"model.layers.0.self_attn.{name}_proj": {"bits": 8} for name in "qkvo"},
                r".*layers\.1\.self_attn.*": {"bits": 16}, "model.layers.9.mlp": {"group_size": 64}}},
            8 + 24 / 32 + 16, LAYERS * (2 + 18 / 32),
        ),
    ],
)  # fmt: skip
def test_each_method_compares_names_by_its_own_rule(values: dict[str, Any], attention: float, mlp: float) -> None:
    held = (attention * ATTENTION + mlp * 3 * MLP) / 8 + REST
    assert_close(weight_bytes(decoder_of(values)), held)


def test_a_final_dot_of_a_name_ends_it() -> None:
    wide = decoder_of({**FOUR_BITS, "modules_to_not_convert": ["model.layers.1."]}, num_hidden_layers=12)
    eight = decoder_of({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.1."]}, num_hidden_layers=12)
    for decoder in (wide, eight):
        assert [all(not name for _, name in layer.stored) for layer in decoder.layers] == [True] * 12
        assert [index for index, layer in enumerate(decoder.layers) if layer.stored] == [1]


def test_layers_that_differ_in_their_formats_are_told_apart() -> None:
    left = [f"model.layers.{index}" for index in (0, 5)]
    decoder = decoder_of({"quant_method": "fp8", "modules_to_not_convert": left}, num_hidden_layers=24)
    whole = columns_of(fuse(build_graph(decoder, DecoderPass(cached=64), 1).form(NO_KEY, "", 1, ())))
    assert_close(
        Widths(columns(decoder), "bf16", "fp8_block").weight_bytes,
        Widths(whole, "bf16", "fp8_block").weight_bytes,
        rel=1e-12,
    )


def test_a_head_that_a_checkpoint_stores_narrow_is_narrow() -> None:
    stored = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    usual, narrow = decoder_of(stored), decoder_of({**stored, "lm_head": True})
    saved = 2 * WORDS * WIDTH - WORDS * read_weight_format("gptq").row_bytes(WIDTH)
    assert_close(weight_bytes(usual) - weight_bytes(narrow), saved)


def test_experts_alone_are_narrow_where_a_method_says_so() -> None:
    oss = {
        "model_type": "gpt_oss", "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "tie_word_embeddings": False, "quantization_config": {"quant_method": "mxfp4"},
    }  # fmt: skip
    decoder = read_config(oss, "own.json")
    plain = read_config({**oss, "quantization_config": None}, "own.json")
    experts = 2 * 8 * 3 * 256 * 256
    assert plain.published is None
    saved = Widths(columns(plain), "bf16").weight_bytes - weight_bytes(decoder)
    assert_close(saved, 2 * experts - experts / 2 - experts / 32)


@pytest.mark.parametrize(
    ("values", "weights", "precision"),
    [
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4", "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "model.layers.0.mlp.up_proj": {"quant_algo": "FP8"}}}, "fp8_tensor", "fp8"),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
            "model.layers.0.mlp.up_proj": {"quant_algo": "MXFP8"},
            "model.layers.0.mlp.down_proj": {"quant_algo": "MXFP8"}}}, "mxfp8", "fp8"),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
            "model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4"}}}, "nvfp4", ""),
        ({"quant_method": "quark", "global_quant_config": {
            "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"},
            "input_tensors": {"dtype": "fp4", "is_dynamic": True}}, "exclude": ["lm_head"]}, "mxfp4", "fp4"),
        ({"quant_method": "quark", "global_quant_config": {
            "weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}, "exclude": ["*lm_head"]}, "fp8_tensor", ""),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4_double", ""),
        ({"load_in_8bit": True}, "int8:row", ""),
        ({"quant_method": "fbgemm_fp8"}, "fp8", "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, "awq:64", ""),
        ({"quant_method": "awq", "w_bit": 8, "q_group_size": 64}, "awq8:64", ""),
    ],
)  # fmt: skip
def test_methods_have_their_format(values: dict[str, Any], weights: str, precision: str) -> None:
    published = decoder_of(values).published
    assert published is not None
    assert (published.weights, published.precision) == (weights, precision)


def test_hqq_is_worked_out_by_hand() -> None:
    """Four bits in groups of 64, each with a scale and a zero of 16 bits; or by the ends of names, the rest at 16."""
    inner = {"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1}}
    for config, products in (
        (inner, (ATTENTION + 3 * MLP) * 4.5 / 8),
        ({"mlp.up_proj": inner}, 2 * (ATTENTION + 2 * MLP) + MLP * 4.5 / 8),
    ):
        values = {"quant_method": "hqq", "quant_config": config, "skip_modules": ["lm_head"]}
        assert_close(weight_bytes(decoder_of(values)), LAYERS * products + REST)
    with pytest.raises(ModelError, match="weight_quant_params"):
        decoder_of({"quant_method": "hqq", "quant_config": {}})


def test_a_scale_of_activations_that_is_stored_is_that_of_a_whole_matrix() -> None:
    """Checkpoints of AutoFP8 state no block; engines have blocks with scales at run time only."""
    published = decoder_of({"quant_method": "fp8", "activation_scheme": "static"}).published
    assert published is not None
    assert published.weights == "fp8_tensor"


def test_a_method_that_is_not_known_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "quantization_config": {"quant_method": "exl3"}}))
    answer = Workspace(tmp_path / "own.duckdb").llm(str(path), hardware=["l4"], batch=(1,))
    assert "exl3" in answer.stored
    assert {row.precision for row in answer.rows} == {"bf16"}


@pytest.mark.parametrize(
    "values",
    [
        {"bits": 4}, {"quant_method": "gptq"}, {"quant_method": "gptq", "bits": 40},
        {"quant_method": "awq", "group_size": 0}, {"quant_method": "fp8", "weight_block_size": [128]}, [1], "fp8",
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"}, {"quant_method": "compressed-tensors"},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(values: Any) -> None:
    with pytest.raises(ModelError, match=r"own\.json"):
        decoder_of(values)


def test_expressions_that_never_end_are_not_followed() -> None:
    endless = {"quant_method": "gptq", "bits": 4, "dynamic": {r"-:([\w.]+)+!": {}}}
    assert decoder_of(endless).published is not None
    skipped = {"quant_method": "fp8", "modules_to_not_convert": [r"([\w.]+)+!", "(a", "lm_head"]}
    assert decoder_of(skipped).published is not None


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return Workspace(tmp_path_factory.mktemp("served") / "own.duckdb")


@pytest.mark.slow
def test_a_checkpoint_runs_as_published_where_nothing_is_asked(workspace: Workspace) -> None:
    answer = workspace.llm("gpt-oss-120b", hardware=["h100_sxm5"], batch=(1,))
    (row,) = answer.rows
    assert (row.precision, row.device_count) == ("bf16/mxfp4", 1)
    assert_close(row.weight_bytes, 65.2e9, rel=0.002)
    asked = workspace.llm("gpt-oss-120b", hardware=["h100_sxm5"], batch=(1,), precision="bf16")
    assert {row.precision for row in asked.rows} == {"bf16"}
    assert "--cache fp8" in answer.wide_cache
    assert not asked.wide_cache  # only beside 4-bit floating-point weights
    assert asked.rows[0].device_count > 1
    assert "mxfp4" in asked.stored


@pytest.mark.slow
def test_narrow_products_need_hardware_that_has_them(workspace: Workspace) -> None:
    answer = workspace.llm("llama-2-7b-chat-awq", hardware=["l4", "t4"], batch=(1,))
    assert {row.hardware: row.precision for row in answer.rows} == {"l4": "bf16/awq", "t4": "fp16/awq"}
    small = workspace.llm("ministral-3-14b", hardware=["l4", "a100_sxm4_80gb"], batch=(1,))
    assert {row.hardware: row.precision for row in small.rows} == {
        "l4": "fp8/fp8_tensor",
        "a100_sxm4_80gb": "bf16/fp8_tensor",
    }


def test_a_file_beside_a_configuration_says_how_it_is_quantized(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    stored = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(stored))
    decoder = find_decoder(str(tmp_path))
    assert decoder is not None and decoder.published is not None
    assert (decoder.published.weights, decoder.published.cache) == ("nvfp4", "")


def test_a_checkpoint_states_the_precision_of_its_cache_and_a_request_another(tmp_path: Path) -> None:
    told = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    scheme = {"kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}}
    stated: tuple[tuple[dict[str, Any], str], ...]
    stated = (scheme, "fp8"), ({"kv_cache_quant_algo": "FP8"}, "fp8"), ({"kv_cache_scheme": None}, "")
    for place, (more, wanted) in enumerate(stated):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({**LLAMA, "quantization_config": {**told, **more}}))
        settings = Settings(hardware=("b200_sxm",), batch=(1,), precision=())
        for serving, cache in ((Serving(), wanted), (Serving(cache="bf16"), "bf16")):
            question, _ = ServedModel(name=str(folder), settings=settings, serving=serving).plan(
                Source(path=tmp_path / "fit.duckdb")
            )
            assert question.serving.cache == cache
