"""GGUF files: sizes against the shipped configurations of the same models, bytes by hand, and damaged headers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from compare import assert_close
from deployed import deploy_decoder, known_decoder
from gguf_file import (
    Described,
    Value,
    deepseek_v2_lite,
    form_gguf,
    gemma_3_4b,
    gpt_oss_20b,
    llama_3_1_8b,
    mamba_2_8b,
    phi_3_mini,
    qwen3_30b_a3b,
    small_hybrid,
    small_llama_4,
    text,
    write_gguf,
)
from joulemap.catalog.load import find_hardware
from joulemap.domain.default import SERVED
from joulemap.domain.settings import Settings
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.plan.run import Plan, plan_runs
from joulemap.plan.source import Source
from joulemap.system.errors import ModelError, UsageError
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.decoder.file.gguf import read_gguf
from joulemap.wing.decoder.file.model import read_model_file
from joulemap.wing.decoder.model_name import NAMES
from joulemap.wing.decoder.network.checkpoint import count_weights
from joulemap.wing.decoder.network.config import Attention, Experts
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import build_graph, describe_step
from joulemap.wing.decoder.network.pass_name import (
    find_decoder,
    find_gguf,
    find_pass,
    find_shipped,
    is_pass,
    load_shipped,
    split_pass,
)
from joulemap.wing.llm.capacity.case import OK
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace

REST = "enough to predict, but llama.cpp needs them all"

Make = Callable[[], tuple[dict[str, Value], list[Described]]]


@pytest.mark.parametrize(
    ("make", "model"),
    [
        (llama_3_1_8b, "llama-3.1-8b"),
        (qwen3_30b_a3b, "qwen3-30b-a3b"),
        (gpt_oss_20b, "gpt-oss-20b"),
        (gemma_3_4b, "gemma-3-4b"),
        (deepseek_v2_lite, "deepseek-v2-lite"),
        (phi_3_mini, "phi-3-mini-4k"),
        (mamba_2_8b, "mamba-2.8b"),
    ],
)
def test_a_header_makes_the_decoder_of_its_configuration(tmp_path: Path, make: Make, model: str) -> None:
    path = write_gguf(tmp_path / "model.gguf", *make())
    found, shipped = read_model_file(path, str(path)), find_decoder(model)
    assert shipped is not None
    assert [attrs.evolve(layer, stored=()) for layer in found.layers] == [
        attrs.evolve(layer, stored=()) for layer in shipped.layers
    ]
    assert (found.hidden, found.vocabulary, found.is_tied) == (shipped.hidden, shipped.vocabulary, shipped.is_tied)
    assert found.notes == ()
    frequencies = 64 * (model == "llama-3.1-8b")  # no weights of a product
    assert found.file_notes[0].startswith(f"the weights take {read_gguf(path).byte_count:,} bytes")
    assert found.file_notes[1:] == (f"the file holds 0 of {read_gguf(path).byte_count:,} bytes of weights: {REST}",)
    assert read_gguf(path).element_count == load_shipped()[find_shipped(model)]["parameters"] + frequencies


def test_layers_that_differ_in_kind_are_read_from_the_tensors(tmp_path: Path) -> None:
    granite = write_gguf(tmp_path / "granite.gguf", *small_hybrid("granitehybrid", "MM*M"))
    decoder = read_model_file(granite, str(granite))
    assert [isinstance(layer.mixer, Attention) for layer in decoder.layers] == [False, False, True, False]
    assert all(isinstance(layer.network, Experts) for layer in decoder.layers)
    assert decoder.notes == ()
    assert count_weights(decoder) == read_gguf(granite).element_count
    values, tensors = small_hybrid("nemotron_h", "M-*-")
    dense = write_gguf(tmp_path / "nemotron.gguf", values, tensors)
    decoder = read_model_file(dense, str(dense))
    assert [layer.network is None for layer in decoder.layers] == [True, False, True, False]
    assert count_weights(decoder) == read_gguf(dense).element_count


def test_experts_of_llama_4_are_narrower_than_its_dense_layers(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "llama4.gguf", *small_llama_4())
    decoder = read_model_file(path, str(path))
    assert count_weights(decoder) == read_gguf(path).element_count
    mixers = [layer.mixer for layer in decoder.layers]
    assert [one.window for one in mixers if isinstance(one, Attention)] == [8192, 8192, 8192, 0]


@pytest.mark.parametrize(
    ("architecture", "told"), [("clip", "mmproj"), ("bert", "encoder"), ("lfm2", "'lfm2' is not known")]
)
def test_a_file_without_a_known_decoder_says_what_it_holds(tmp_path: Path, architecture: str, told: str) -> None:
    path = write_gguf(tmp_path / "model.gguf", {"general.architecture": architecture}, [])
    with pytest.raises(ModelError, match=told) as caught:
        read_model_file(path, str(path))
    assert len(str(caught.value)) < 400


def test_a_download_that_is_not_complete_is_noted(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", *phi_3_mini())
    header = read_gguf(path)
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size + header.byte_count)  # sparse
    assert len(read_model_file(path, str(path)).file_notes) == 1


def test_files_of_experts_in_mxfp4_keep_them() -> None:
    models = {name: find_decoder(name) for name in ("gpt-oss-20b", "llama-3.1-8b", "deepseek-r1")}
    found = {name: one.file_weights for name, one in models.items() if one is not None}
    assert found == {"gpt-oss-20b": "mxfp4+q8_0", "llama-3.1-8b": "", "deepseek-r1": ""}


@pytest.mark.parametrize(("context", "cached"), [(2048, 2047), (2049, 2048), (131072, 2048)])
def test_a_step_after_a_short_context_leaves_room_for_its_token(tmp_path: Path, context: int, cached: int) -> None:
    values, tensors = llama_3_1_8b()
    path = write_gguf(tmp_path / "model.gguf", {**values, "llama.context_length": context}, tensors)
    (name,), _ = NAMES.apply_published((str(path),), Settings(), ("bf16",))
    asked = find_pass(name)
    assert asked is not None
    assert (asked.step.cached, asked.step.tokens) == (cached, 1)


def test_bytes_are_those_of_the_published_file(tmp_path: Path) -> None:
    """Q4_K_M of Llama 3.1 8B has 4.58 GiB, 4.8944 bits a weight. Source: tools/quantize/README.md of llama.cpp."""
    header = read_gguf(write_gguf(tmp_path / "model.gguf", *llama_3_1_8b()))
    assert round(header.byte_count / 2**30, 2) == 4.58
    assert round(header.byte_count * 8 / header.element_count, 4) == 4.8944


@pytest.mark.parametrize("make", [llama_3_1_8b, qwen3_30b_a3b, gpt_oss_20b, gemma_3_4b, phi_3_mini, small_llama_4])
def test_a_pass_has_the_bytes_of_its_file(make: Make, tmp_path: Path) -> None:
    """Also tables of tokens, which are looked up, and an output head in another format than most weights."""
    path = write_gguf(tmp_path / "model.gguf", *make())
    decoder, header = read_model_file(path, str(path)), read_gguf(path)
    (precision, *_), (weights,) = decoder.list_precisions()
    work = columns_of(describe_step(decoder, DecoderPass(), 1, NO_KEY))
    assert_close(Widths(work, precision, weights).weight_bytes, header.byte_count, rel=0.005)


@pytest.mark.parametrize(("kind", "precision"), [("f32", "fp32"), ("f16", "fp16")])
def test_a_file_that_is_not_quantized_has_its_own_precision(kind: str, precision: str, tmp_path: Path) -> None:
    values, tensors = small_llama_4()
    wide = [(name, shape, kind if stored != "f32" else stored) for name, shape, stored in tensors]
    name = str(write_gguf(tmp_path / "model.gguf", values, wide))
    decoder = read_model_file(Path(name), name)
    assert (decoder.list_precisions()[0][0], decoder.list_precisions()[1]) == (precision, ())
    assert plan_runs([name], Settings(hardware=("h100_sxm5",))).settings.precisions == ((precision, precision),)
    question, plan = ServedModel(name=name, settings=SERVED, serving=Serving(prompt=64, output=8)).plan(
        Source(path=tmp_path / "fit.duckdb")
    )
    assert question.stack.name == "llamacpp" and plan.settings.precision[0] == precision
    shown = Workspace(tmp_path / "x.duckdb").profile(name)
    assert_close(shown.profile.weight_bytes, read_gguf(Path(name)).byte_count, rel=0.01)
    assert shown.precision == precision


def test_each_weight_has_its_own_format(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", *llama_3_1_8b())
    decoder = read_model_file(path, str(path))
    assert decoder.published is not None
    assert (decoder.published.weights, decoder.published.others) == ("q4_k", ("q6_k",))
    assert dict(decoder.layers[0].stored) == {"self_attn.v_proj.weight": "q6_k", "mlp.down_proj.weight": "q6_k"}
    assert decoder.layers[4].stored == ()
    assert dict(decoder.published.stored) == {"embed_tokens.weight": "q4_k", "lm_head.weight": "q6_k"}
    products = {one.name for one in build_graph(decoder, DecoderPass(), 1).operators if "q4_k=q6_k" in one.variant}
    assert {"layers.0.mlp.down_proj", "lm_head"} <= products
    assert "layers.4.mlp.down_proj" not in products


def test_parts_are_one_model(tmp_path: Path) -> None:
    values, tensors = phi_3_mini()
    write_gguf(tmp_path / "phi-00001-of-00002.gguf", values, tensors[:100])
    second = write_gguf(tmp_path / "phi-00002-of-00002.gguf", {"split.no": 1}, tensors[100:])
    whole = read_gguf(write_gguf(tmp_path / "whole.gguf", values, tensors))
    assert read_gguf(second).tensors == whole.tensors
    (tmp_path / "phi-00001-of-00002.gguf").unlink()
    with pytest.raises(ModelError, match="phi-00001-of-00002"):
        read_gguf(second)


def test_a_folder_and_a_file_are_names_of_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gguf(tmp_path / "phi.gguf", *phi_3_mini())
    monkeypatch.chdir(tmp_path)
    assert is_pass("phi.gguf(cached=8)")
    assert is_pass(f"{tmp_path}(cached=8)")
    write_gguf(tmp_path / "phi (1).gguf", *phi_3_mini())
    assert split_pass("phi (1).gguf(cached=8)") == ("phi (1).gguf", "(cached=8)")
    assert find_decoder("phi (1).gguf") is not None


def test_a_file_without_a_pass_runs_as_llamacpp_serves_it(tmp_path: Path) -> None:
    path = str(write_gguf(tmp_path / "llama.gguf", *llama_3_1_8b()))

    def plan(*chips: str, models: tuple[str, ...] = (path,), **given: Any) -> Plan:
        return plan_runs(models, Settings(hardware=chips, **given))

    found = plan("l4")
    assert found.models[0].dimensions["phase"] == "decode"
    assert found.models[0].dimensions["engine"].startswith("llamacpp")
    assert found.settings.precisions == (("bf16", "q4_k"),)
    assert found.settings.runtime == ("engine",)
    assert plan("l4", "t4").settings.precision == ("fp16",)  # a T4 has no bf16
    assert plan("l4", models=(f"{path}(tokens=8)",)).settings.weight_precision == ("q4_k",)
    assert plan("l4", precision="fp16", weight_precision="int8").settings.precisions == (("fp16", "int8"),)
    with pytest.raises(UsageError):
        plan("l4", models=(path, "resnet18"))
    decoder = read_model_file(Path(path), path)
    for asked, engine in (("", "llamacpp"), ("vllm", "vllm"), ("vllm@2025", "vllm@2025")):
        model = ServedModel(name=path, settings=SERVED, serving=Serving(engine=asked))
        assert model.choose_engine(decoder).serving.engine == engine


def _change(values: dict[str, Value], tensors: list[Described], **changes: Value) -> bytes:
    changed = {key: changes.get(key.rpartition(".")[2], value) for key, value in values.items()}
    return form_gguf(changed, tensors)


PLAIN = phi_3_mini()
WHOLE = form_gguf(*PLAIN)
LARGE = struct.pack("<Q", 2**62)

DAMAGED = {
    "empty": b"",
    "other": b"PK\3\4" + WHOLE[4:],
    "cut in the keys": WHOLE[:200],
    "cut in the tensors": WHOLE[:-10],
    "version 1": form_gguf(*PLAIN, version=1),
    "big-endian": WHOLE[:4] + struct.pack(">I", 3) + WHOLE[8:],
    "a text beyond the file": WHOLE[:24] + LARGE + WHOLE[32:],
    "many tensors": WHOLE[:8] + LARGE + WHOLE[16:],
    "many keys": WHOLE[:16] + LARGE + WHOLE[24:],
    "texts without end": form_gguf({}, [])[:16] + struct.pack("<Q", 1) + text("t") + struct.pack("<II", 9, 8) + LARGE,
    "numbers without end": form_gguf({}, [])[:16] + struct.pack("<Q", 1) + text("t") + struct.pack("<II", 9, 4) + LARGE,
    "arrays of arrays": form_gguf({}, [])[:16] + struct.pack("<Q", 1) + text("t") + struct.pack("<IIQ", 9, 9, 1),
    "unknown value": form_gguf({}, [])[:16] + struct.pack("<Q", 1) + text("t") + struct.pack("<I", 99),
    "no model": form_gguf({}, []),
    "unknown architecture": form_gguf({"general.architecture": "clip"}, PLAIN[1]),
    "no tensors": form_gguf(PLAIN[0], []),
    "the same name twice": form_gguf(PLAIN[0], [*PLAIN[1], PLAIN[1][0]]),
    "a row of no whole blocks": form_gguf(PLAIN[0], [("token_embd.weight", (100, 32064), "q4_k")]),
    "another layer count": _change(*PLAIN, block_count=40),
    "no layers": _change(*PLAIN, block_count=0),
    "heads by layer": _change(*PLAIN, head_count=[32] * 31 + [16]),
    "no width": _change(*PLAIN, embedding_length=0),
}


def test_a_folder_of_the_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").mkdir()
    with pytest.raises(ModelError):
        read_model_file(tmp_path / "model.gguf", "model.gguf")


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(DAMAGED[damage])
    with pytest.raises(ModelError):
        read_model_file(path, str(path))


FILES = {
    "llama-3.1-8b": {"q4_k_m": 4.92, "q6_k": 6.60, "q8_0": 8.54},
    "mistral-7b": {"q4_k_m": 4.37, "q8_0": 7.70},
    "gemma-3-12b": {"q4_k_m": 7.30},
    "qwen3-14b": {"q3_k_m": 7.32, "q4_k_m": 9.00},
    "qwen3-32b": {"q4_k_m": 19.76, "q5_k_m": 23.21, "q6_k": 26.88},
    "qwen3-30b-a3b": {"q4_k_m": 18.63, "q6_k": 25.09},
    "mistral-small-3.1-24b": {"q6_k": 19.35, "q8_0": 25.05},
}
"""Model -> format -> GB of the file as bartowski and unsloth publish it (recalled)."""

FITTING = {
    ("rtx_4060", "llama-3.1-8b"): {"q4_k_m", "q6_k"}, ("rtx_4060", "mistral-7b"): {"q4_k_m"},
    ("rtx_3090", "qwen3-32b"): {"q4_k_m", "q5_k_m"}, ("rtx_3090", "qwen3-30b-a3b"): {"q4_k_m"},
    ("rtx_3090", "mistral-small-3.1-24b"): {"q6_k"}, ("rtx_4060", "qwen3-14b"): set(),
    ("rtx_4060", "gemma-3-12b"): set(),
}  # fmt: skip
"""(Card, model) -> formats that llama.cpp loads whole: file without token table, cache of 640 tokens and
logits of 512 leave 1 GiB of 24,576 or 8,188 MiB free.
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", FILES)
def test_weights_are_the_published_file_and_fit_as_llamacpp_decides(tmp_path: Path, model: str) -> None:
    source = Source(path=tmp_path / "fit.duckdb")
    cards = [card for card, name in FITTING if name == model]
    for weights, size in FILES[model].items():
        settings = attrs.evolve(SERVED, hardware=("ryzen_9_5950x", *cards), batch=(1,), weight_precision=(weights,))
        serving = Serving(prompt=512, output=128, engine="llamacpp", devices=(1,))
        _, _, cases = ServedModel(name=model, settings=settings, serving=serving).list_cases(source)
        found = {case.hardware: case for case in cases}
        room = found["ryzen_9_5950x"].room
        assert room is not None
        assert_close(room.weights, size * 1e9, rel=0.02)
        for card in cards:
            assert (found[card].status == OK) is (weights in FITTING[card, model])


def test_a_folder_means_its_language_model_not_the_encoder_beside_it(tmp_path: Path) -> None:
    write_gguf(tmp_path / "mmproj-a.gguf", {"general.architecture": "clip", "clip.vision.block_count": 32}, [])
    values, tensors = llama_3_1_8b()
    own = {key.replace("llama.", "qwen2vl."): value for key, value in values.items()}
    file = write_gguf(tmp_path / "qwen.gguf", own | {"general.architecture": "qwen2vl"}, tensors)
    decoder = find_decoder(str(tmp_path))
    assert decoder is not None
    assert decoder.layer_count == 32
    assert any("mmproj" in note for note in decoder.file_notes)
    assert find_gguf(str(tmp_path)) == find_gguf(str(file)) == str(file)
    assert find_gguf("llama-3.1-8b") == "llama-3.1-8b"
    with pytest.raises(ModelError):
        find_decoder(str(tmp_path / "mmproj-a.gguf"))


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_each_device_leaves_out_its_part_of_the_table_of_tokens(devices: int) -> None:
    """8,030,261,248 weights of 2 bytes without the table's 128,256 rows of 4,096; each device has all 65 norms."""
    decoder = known_decoder("llama-3.1-8b")
    one = deploy_decoder(decoder, find_hardware("l4"), find_stack("llama.cpp"), devices=devices)
    norms = 65 * 4096
    stored = 8_030_261_248 - 128_256 * 4096
    assert Room(deployment=one).weights * devices == 2 * (stored + (devices - 1) * norms)


def test_states_that_do_not_grow_limit_no_context(tmp_path: Path) -> None:
    values, tensors = mamba_2_8b()
    for name, told, longest in (("free", {}, None), ("told", {"mamba.context_length": 2048}, 2048)):
        path = write_gguf(tmp_path / f"{name}.gguf", {**values, **told}, tensors)
        decoder = find_decoder(str(path))
        assert decoder is not None
        one = deploy_decoder(decoder, find_hardware("l4"), find_stack("llama.cpp"), precision="fp16")
        assert Room(deployment=one).tokens(1) == longest
