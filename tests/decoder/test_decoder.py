"""Decoders by name and passes of them: counts worked by hand, published sizes, devices, names and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pytest

from chips import find
from compare import assert_close
from deployed import known_decoder
from joulemap.catalog.sheet import load_models
from joulemap.domain.settings import Settings
from joulemap.physics.bulk import Together, form_joined, join
from joulemap.physics.kernel import form_kernels
from joulemap.physics.merge import build
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.timing import ENGINE_PART, list_parts
from joulemap.physics.width import Widths
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.plan.workload import find_model
from joulemap.system.errors import ModelError, UnknownNameError, UsageError
from joulemap.wing.decoder.network.column import NAMED, describe_columns, find_repeat, pass_columns
from joulemap.wing.decoder.network.config import Experts
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import describe_step
from joulemap.wing.decoder.network.pass_name import complete, find_alias, find_pass, find_shipped, load_shipped
from joulemap.workspace import Workspace
from models import shipped
from sample import thin

LAYERS, WIDTH, INNER, VOCABULARY = 32, 4096, 14336, 128_256
KEYS = 8 * 128
MATRICES = LAYERS * (2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * INNER)


def told(name: str, batch: int = 1) -> Workload:
    asked = find_pass(name)
    assert asked is not None
    return describe_step(asked.decoder, asked.step, batch, NO_KEY)


@pytest.mark.parametrize(("batch", "cached"), [(1, 0), (1, 2048), (8, 100)])
def test_a_step_of_llama_is_what_its_sizes_say(batch: int, cached: int) -> None:
    workload = told(f"llama-3.1-8b(cached={cached})", batch)
    norms = (2 * LAYERS + 1) * WIDTH
    assert workload.parameter_count == MATRICES + norms + 2 * VOCABULARY * WIDTH == 8_030_261_248
    assert workload.weight_bytes == 4 * workload.parameter_count
    attention = LAYERS * 2 * WIDTH * (cached + 1)
    assert workload.mac_count == batch * (MATRICES + VOCABULARY * WIDTH + attention)


@pytest.mark.parametrize(
    ("name", "precision", "weights", "gigabytes"),
    [
        # sizes of the checkpoints on Hugging Face, of which these have scales for each output
        ("llama-3.1-8b", "fp8", "", 9.08),
        ("llama-3.1-8b", "bf16", "awq", 5.73),
        ("gpt-oss-120b", "bf16", "mxfp4", 65.2),
        ("gpt-oss-20b", "bf16", "mxfp4", 13.75),
        # a file of llama.cpp narrows its matrix of logits too: all but a table of 0.525e9
        ("llama-3.1-8b", "bf16", "8.5bit", (8.03 - 0.525) * 8.5 / 8 + 2 * 0.525),
    ],
)
def test_quantizers_leave_logits_tables_and_routers_at_16_bits(
    name: str, precision: str, weights: str, gigabytes: float
) -> None:
    held = Widths(describe_columns(known_decoder(name), DecoderPass(cached=8), 1), precision, weights).weight_bytes
    assert_close(held, gigabytes * 1e9, rel=2e-3)


def test_only_what_products_take_is_narrow_in_a_run_of_fp8() -> None:
    workload = told("llama-3.1-8b(cached=100)", 8)
    kernels = form_kernels(columns_of(workload), "fp8", "graph")
    moved = {
        workload.operators[index].name: (read, written)
        for index, read, written in zip(
            kernels.operator_index.tolist(), kernels.input_bytes.tolist(), kernels.output_bytes.tolist(), strict=True
        )
    }
    row = 8 * WIDTH
    # the tokens themselves are of two bytes, what q, k and v are made of is of one
    assert moved["layers.1.input_layernorm"] == (2 * row, row)
    assert moved["layers.1.self_attn.q_proj"] == (row, 2 * row)
    assert moved["layers.1.add_0"] == (4 * row, 2 * row)
    assert moved["layers.1.mlp.down_proj"] == (8 * INNER, 2 * row)
    # logits are not quantized
    assert moved["lm_head"] == (2 * row, 2 * 8 * VOCABULARY)


def test_a_prompt_has_the_logits_of_its_last_token_unless_all_are_asked_for() -> None:
    tokens, attention = 512, LAYERS * 2 * WIDTH * 512 * 512
    products = tokens * MATRICES + attention
    assert told("llama-3.1-8b(tokens=512)").mac_count == products + VOCABULARY * WIDTH
    assert told("llama-3.1-8b(tokens=512,logits=all)").mac_count == products + tokens * VOCABULARY * WIDTH


def test_a_piece_of_another_prompt_is_in_the_same_products() -> None:
    batch, piece = 4, 256
    workload = told(f"llama-3.1-8b(cached=100,chunk={piece},chunk_cached=50)", batch)
    attention = LAYERS * 2 * WIDTH * (batch * 101 + piece * (piece + 50))
    head = VOCABULARY * WIDTH * (batch + 1)
    assert workload.mac_count == (batch + piece) * MATRICES + attention + head
    assert {one.gemm_m for one in workload.operators if one.kind == "linear"} == {batch + piece, batch + 1}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("mixtral-8x7b-instruct", "mixtral-8x7b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama-3.1-8b", "llama-3.1-8b"),
        ("llama3-8b", "llama-3-8b"),
        ("qwen2.5-7b", "qwen2-7b"),
        ("deepseek-v3", "deepseek-r1"),
        ("nemotron-nano-9b", "nemotron-nano-9b-v2"),
        ("mistral-7b-v0.2", "mistral-7b-instruct-v0.2"),
        ("llama-4-scout", "llama-4-scout-17b-16e"),
        ("llama-8b", ""),
        ("deepseek-v3.2", "deepseek-v3.2"),
        ("zai-org/GLM-5.3", "glm-5.2"),
        ("moonshotai/Kimi-K3", "kimi-k3"),
        ("kimi-k4", ""),
    ],
)
def test_a_name_is_found_as_people_type_it(typed: str, name: str) -> None:
    assert find_shipped(typed) == name


def test_a_token_of_llama_leaves_131072_bytes_behind() -> None:
    model = known_decoder("llama-3.1-8b")
    assert model.cache_bytes(1) == LAYERS * 2 * KEYS * 2.0 == 131_072.0
    assert model.cache_bytes(10) == 10 * 131_072.0
    assert model.cache_bytes(10, devices=4) == 10 * 131_072.0 / 4
    assert model.cache_bytes(10, devices=32) == 10 * 131_072.0 / 8  # a head of keys has copies


def test_windows_latents_and_states_hold_what_they_see() -> None:
    gemma = known_decoder("gemma-3-27b")  # 62 layers, every sixth sees all, 16 heads of 128 for keys, windows of 1,024
    token = 2 * 16 * 128 * 2.0
    assert gemma.cache_bytes(4096) == token * (10 * 4096 + 52 * 1024)
    assert known_decoder("deepseek-r1").cache_bytes(1) == 61 * (512 + 64) * 2.0
    mamba = known_decoder("mamba-2.8b")  # 64 layers of 5,120 channels: 16 of a state, three tokens of four taps
    assert mamba.cache_bytes(10) == mamba.cache_bytes(10_000) == 64 * 5120 * (16 + 3) * 2.0


PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_248_023_552,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-14b": 14_770_033_664,
    "qwen3-30b-a3b": 30_532_122_624,
    "gemma-2-9b": 9_241_705_984,
    "falcon-7b": 6_921_720_704,
    "gpt-oss-20b": 20_914_757_184,
    "opt-13b": 12_853_473_280,
    "deepseek-v2-lite": 15_706_484_224,
    "glm-4.5": 352_797_814_784,
    "glm-5.2": 743_377_000_704,
    "mamba-codestral-7b": 7_285_403_648,
    "mimo-v2-flash": 308_778_768_832,
    "minimax-m3": 426_174_565_632,
    "nemotron-3-ultra-550b-a55b": 549_308_968_960,
    "nemotron-h-8b": 8_100_852_736,
}
"""Elements of all parameters, as transformers' own classes have them at these configurations."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_transformers_classes(name: str) -> None:
    assert told(name).parameter_count == PUBLISHED[name]


@pytest.mark.slow
def test_what_ships_says_the_counts_that_follow_from_its_sizes() -> None:
    rows = load_shipped()
    assert len(rows) > 100
    for name in list(rows)[::7]:
        entry, workload = rows[name], told(name)
        assert (entry["parameters"], entry["macs"]) == (workload.parameter_count, workload.mac_count), name
        assert entry["source"], name
        assert entry["basis"].startswith(("copied", "recalled")), name


def test_an_engine_has_eight_kernels_a_layer_and_holds_the_cache_once() -> None:
    columns = build(columns_of(told("llama-3.1-8b(cached=2048)", 4)), RUNTIME["engine"])
    assert columns.kernel_group is not None
    assert len(np.unique(columns.kernel_group)) == 8 * LAYERS + 2
    cache = 4 * 2049 * 131_072
    held = Widths(columns, "bf16").peak_activation_bytes(is_fused=True)
    assert cache < held < 1.01 * cache


def test_devices_have_their_part_and_exchange_each_token() -> None:
    whole, part = told("llama-3.1-70b(cached=100)", 8), told("llama-3.1-70b(cached=100,devices=8)", 8)
    divided = sum(one.mac_count for one in whole.operators)
    assert part.mac_count * 8 == divided
    assert sum(one.operation == "all_reduce" for one in part.operators) == 2 * 80 + 1
    sent = {one.output_element_count for one in part.operators if one.operation == "all_reduce"}
    # TensorRT-LLM has kernels of its own, which reach beyond a host of a rack
    for engine, word in (("trt@2025", "trtllm"), ("vllm@2025", "")):
        own = told(f"llama-3.1-70b(cached=100,devices=8,engine={engine})", 8).operators
        assert {one.variant for one in own if one.operation == "all_reduce"} == {word}
    assert sent == {8 * 8192}
    assert [one.output_element_count for one in part.operators if one.operation == "all_gather"] == [8 * VOCABULARY]
    norms = (2 * 80 + 1) * 8192
    assert 8 * (part.parameter_count - norms) == whole.parameter_count - norms


def test_tables_of_layers_are_divided_as_the_table_of_tokens_is() -> None:
    """262,144 rows of 35 x 256 and of 1,536 elements: each of two devices has half of the rows."""
    whole, part = (
        describe_step(known_decoder("gemma-4-e2b"), DecoderPass(devices=count), 1, NO_KEY) for count in (1, 2)
    )
    assert whole.parameter_count - part.parameter_count > 262_144 * (35 * 256 + 1_536) // 2


def test_heads_of_keys_are_copied_where_devices_are_more() -> None:
    part = told("llama-3.1-8b(cached=100,devices=16)")
    shapes = {one.output_shape for one in part.operators if one.operation == "append"}
    assert shapes == {(1, 1, 101, 128)}


def test_experts_lie_whole_on_devices_and_tokens_are_sent_to_them() -> None:
    model = known_decoder("deepseek-r1")
    experts = next(layer.network for layer in model.layers if isinstance(layer.network, Experts))
    spread = describe_step(model, DecoderPass(cached=100, data_devices=8, expert_devices=8), 64, NO_KEY)
    held = [one for one in spread.tensors if one.name.endswith("experts.up")]
    assert {one.shape for one in held} == {(256 // 8, 2 * experts.inner, 7168)}
    assert sum(one.operation == "all_to_all" for one in spread.operators) == 2 * 58
    divided = describe_step(model, DecoderPass(cached=100, devices=8), 64, NO_KEY)
    held = [one for one in divided.tensors if one.name.endswith("experts.up")]
    assert {one.shape for one in held} == {(256, 2 * experts.inner // 8, 7168)}


def test_a_latent_is_seen_by_a_few_tokens_and_widened_by_a_prompt() -> None:
    step, prompt = told("deepseek-r1(cached=99)"), told("deepseek-r1(tokens=100)")
    scores = [one for one in step.operators if one.name.endswith("scores")]
    assert {(one.gemm_n, one.gemm_k, one.gemm_groups) for one in scores} == {(100, 512 + 64, 128)}
    scores = [one for one in prompt.operators if one.name.endswith("scores")]
    assert {(one.gemm_n, one.gemm_k, one.gemm_groups) for one in scores} == {(100, 128 + 64, 128)}
    assert step.parameter_count == prompt.parameter_count == 671_026_404_352


def is_same(first: WorkloadColumns, second: WorkloadColumns) -> list[str]:
    return [
        name
        for name in NAMED
        if not np.array_equal(np.asarray(getattr(first, name)), np.asarray(getattr(second, name)))
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name", ["llama-3.2-1b", "gemma-3-12b", "gpt-oss-20b", "qwen3.5-122b-a10b", "moonlight-16b-a3b"]
)
@pytest.mark.parametrize(
    "step", [DecoderPass(cached=2048), DecoderPass(tokens=64), DecoderPass(cached=300, chunk=32, devices=1)]
)
def test_layers_that_repeat_follow_from_a_few(name: str, step: DecoderPass) -> None:
    model = known_decoder(name)
    assert find_repeat(model) is not None
    assert is_same(describe_columns(model, step, 3), columns_of(describe_step(model, step, 3, NO_KEY))) == []


def test_layers_behind_one_of_another_kind_follow_from_a_few() -> None:
    model, step = (
        known_decoder("moonlight-16b-a3b"),
        DecoderPass(cached=300, chunk=700, expert_devices=8, data_devices=8),
    )
    assert is_same(describe_columns(model, step, 64), columns_of(describe_step(model, step, 64, NO_KEY))) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["llama-3.2-1b", "gpt-oss-20b", "qwen3.6-35b-a3b", "moonlight-16b-a3b", "gemma-2-2b"])
def test_folded_layers_have_the_totals_of_all_layers(name: str) -> None:
    """Weights, caches, times and joules of a pass do not depend on how many layers are listed."""
    model = known_decoder(name)
    asked = [
        (DecoderPass(cached=2000, devices=2), 25),
        (DecoderPass(cached=2300, devices=2, chunk=500), 3),
        (DecoderPass(tokens=64, pipeline_devices=2, logits="none"), 1),
    ]
    every, folded = pass_columns(model, asked), pass_columns(model, asked, is_folded=True)
    assert any(one.times is not None for one in folded.values())
    for one in asked:
        assert folded[one].operator_count <= every[one].operator_count
        assert folded[one].weight_bytes == every[one].weight_bytes
    both = [Together(tuple(works[one] for one in asked)) for works in (every, folded)]
    for chip, precision, weights in (("h100_sxm5", "bf16", "int4"), ("xeon_8490h", "bf16", "")):
        first, second = (one.evaluate(find(chip), precision, "engine", weight_precision=weights) for one in both)
        assert first == second
        first_sizes, second_sizes = (one.sizes(precision, "engine", weight_precision=weights) for one in both)
        np.testing.assert_allclose(first_sizes, second_sizes, rtol=1e-12)


def test_an_engine_runs_all_sequences_of_a_pass_at_once() -> None:
    """An engine may cut a batch of images into parts; 64 sequences share each pass, and their weights are read once."""
    model, smallest = known_decoder("llama-3.2-1b"), find("h100_sxm5").coefficient(ENGINE_PART)
    works = pass_columns(model, [(DecoderPass(cached=2000), 64), (DecoderPass(tokens=9), 64)], is_folded=True).values()
    for work in works:
        kernels = form_joined(join([work]), "bf16", "engine")
        assert not list_parts(kernels, smallest)
    images = shipped("resnet18", 64)
    both = form_joined(join([*works, images]), "bf16", "engine")
    counts = list_parts(both, smallest)
    assert counts and all((cut[:2] == 1.0).all() and cut[2] > 1.0 for cut in counts)


def test_heads_that_do_not_divide_are_padded() -> None:
    split = DecoderPass(devices=12)
    assert (split.part(40), split.queries(40, 40)) == (4, 4)
    assert (split.part(8), split.queries(64, 8)) == (1, 6)
    assert (DecoderPass(devices=6).part(8), DecoderPass(devices=6).queries(64, 8)) == (2, 12)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "tokens"),
    [("llama-3.2-1b", 1), pytest.param("gemma-3-1b", 1, marks=pytest.mark.slow), ("gpt-oss-20b", 16)],
)
def test_lengths_between_follow_from_two(name: str, tokens: int) -> None:
    model = known_decoder(name)
    steps = [DecoderPass(tokens=tokens, cached=cached) for cached in (0, 1, 64, 120, 128, 500, 511, 512, 2000, 5000)]
    for (step, count), columns in pass_columns(model, [(step, 2) for step in steps]).items():
        assert is_same(columns, columns_of(describe_step(model, step, count, NO_KEY))) == [], step


@pytest.mark.parametrize("name", thin(["mamba-2.8b", "gemma-3-1b", "gpt-oss-20b", "llama-3.2-1b"], 4))
def test_numbers_of_sequences_between_follow_from_two(name: str) -> None:
    model = known_decoder(name)
    steps = (
        DecoderPass(cached=300),
        DecoderPass(cached=600),
        DecoderPass(tokens=7),
        DecoderPass(cached=64, chunk=50, chunk_cached=9),
    )
    asked = [(step, count) for step in steps for count in (1, 3, 8, 200)]
    for (step, count), columns in pass_columns(model, asked).items():
        assert is_same(columns, columns_of(describe_step(model, step, count, NO_KEY))) == [], (step, count)


@pytest.mark.parametrize(
    ("asked", "spelled"),
    [
        ("llama-3.1-8b(tokens=1,cached=2048)", "llama-3.1-8b(cached=2048)"),
        ("Meta-Llama/Llama-3.1-8B (cached=2048)", "llama-3.1-8b(cached=2048)"),
        ("llama_3.1_8b_instruct()", "llama-3.1-8b"),
        ("deepseek-ai/DeepSeek-V3.1(devices=8,tokens=5)", "deepseek-r1(tokens=5,devices=8)"),
    ],
)
def test_a_pass_has_one_spelling(asked: str, spelled: str) -> None:
    assert str(find_pass(asked)) == spelled
    assert str(find_pass(spelled)) == spelled


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("llama-3.1-8b(cached=131072)", ("131,073", "131,072")),
        ("llama-3.1-8b(tokens=100,chunk=131073)", ("131,073", "131,072")),
        ("llama-3.1-8b(devices=3)", ("32 heads", "3 devices")),
        ("llama-3.1-8b(devices=2,expert_devices=2)", ("no experts",)),
        ("qwen3-30b-a3b(devices=4,expert_devices=3)", ("divisor", "4")),
        ("llama-3.1-8b(cachd=1)", ("cachd", "cached")),
        ("llama-3.1-8b(tokens=0)", ("tokens", "1 to")),
        ("llama-3.1-8b(cache=fp5)", ("fp5", "fp8")),
        ("llama-3.1-8b(chunk_cached=5)", ("chunk_cached", "chunk")),
    ],
)
def test_what_a_model_does_not_take_is_refused_in_a_line(asked: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        find_pass(asked)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_configuration_of_ones_own_is_found_by_its_file_and_its_folder(tmp_path: Path) -> None:
    entry = load_shipped()["llama-3.2-1b"]
    (tmp_path / "config.json").write_text(json.dumps(entry["config"]))
    for name in (f"{tmp_path}", f"{tmp_path}/config.json"):
        asked = find_pass(f"{name}(cached=7)")
        assert asked is not None
        assert (str(asked), asked.decoder.digest) == (f"{name}(cached=7)", known_decoder("llama-3.2-1b").digest)


def test_a_configuration_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    for text, words in (
        ('{"model_type": "lama"}', ("'lama'", "llama", "torch", "transformers")),
        ('{"model_type": "llama"}', ("vocab_size", "hidden_size")),
        ('{"model_type": "llama", "hidden_size": "much"}', ("hidden_size", "much")),
        (
            '{"model_type": "llama", "vocab_size": 9, "hidden_size": 20, "num_hidden_layers": 1, '
            '"num_attention_heads": 20, "num_key_value_heads": 3, "intermediate_size": 9}',
            ("20 heads", "3 heads of keys"),
        ),
        ("[1]", ("model_type",)),
        ("{", ("JSON",)),
    ):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ModelError) as caught:
            find_pass(f"{tmp_path}/config.json(cached=7)")
        assert any(word in str(caught.value) for word in words), str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelError):
        find_pass(f"{tmp_path}/none.json(cached=7)")


def test_a_name_that_is_misspelt_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        Workspace(tmp_path / "own.duckdb").workload("llama-3.1-8bb(cached=1)")
    assert "llama-3.1-8b" in caught.value.near


def test_a_name_that_is_typed_goes_on() -> None:
    assert "llama-3.1-8b" in complete("llama-3")
    assert complete("llama-3.1-8b(cac") == ["llama-3.1-8b(cached=", "llama-3.1-8b(cache="]
    assert complete("llama-3.1-8b(logits=a") == ["llama-3.1-8b(logits=all"]
    assert complete("nothing(cac") == []


def test_a_narrow_cache_is_of_its_own_width_at_any_precision() -> None:
    narrow, wide = (columns_of(told(f"llama-3.1-8b(cached=999,cache={cache})")) for cache in ("fp8", "bf16"))
    for columns, item in ((narrow, 1), (wide, 2)):
        held = {
            precision: Widths(build(columns, RUNTIME["engine"]), precision).peak_activation_bytes(is_fused=True)
            for precision in ("bf16", "fp8")
        }
        assert all(1000 * 65536 * item < one < 1.02 * 1000 * 65536 * item for one in held.values())


def test_a_pass_is_a_run_like_any_other(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    name = "llama-3.2-1b(cached=512)"
    workspace.compare(name, hardware=("h100_sxm5", "h200_sxm"), precision="bf16", runtime="engine", batch=8)
    rows = workspace.sql(f"SELECT hardware, mac_count FROM runs WHERE model = '{name}' ORDER BY hardware").rows
    macs = told(name, 8).mac_count
    assert rows == (("h100_sxm5", macs), ("h200_sxm", macs))


def test_another_digest_is_another_workload() -> None:
    model = known_decoder("llama-3.2-1b")
    assert attrs.evolve(model, name="other").digest == model.digest
    assert attrs.evolve(model, hidden=64).digest != model.digest


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("deberta_large", ("hf:DebertaV2",)),
        ("electra-small", ("hf:Electra",)),
        ("resnt50", ("resnet50",)),
        ("lama-3.1-8b", ("llama-3.1-8b",)),
        ("mobilnet_v2", ("mobilenet_v2",)),
        ("nothing_large", ()),
    ],
)
def test_a_model_is_suggested_for_its_family_and_not_for_its_size(typed: str, near: tuple[str, ...]) -> None:
    with pytest.raises(UnknownNameError) as raised:
        find_model(typed, Settings(), None)
    assert raised.value.near[:1] == near
    text = str(raised.value)
    assert all(f"did you mean {one}" in text for one in near)
    assert ("--config" in text) == bool(near and near[0].startswith("hf:"))
    # a question ends its sentence
    assert "?;" not in text


def test_a_small_decoder_is_found_by_its_other_names_and_none_is_named_as_another_model() -> None:
    assert find_alias("Qwen/Qwen2.5-7B-Instruct", "qwen2-7b") == "qwen2.5-7b-instruct"
    assert find_alias("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b") == find_alias("own.gguf", "own") == ""
    assert find_shipped("openai-community/gpt2") == find_shipped("gpt2-small") == "gpt2"
    aliases = [name for entry in load_models().values() for name in entry.aliases]
    assert aliases
    assert [name for name in aliases if find_shipped(name)] == []
