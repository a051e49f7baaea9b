"""Tables for LLMServingSim: their form, their sums, and the times that its own profiler measured."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from compare import assert_close
from joulemap import Passes, predict_step
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.embed import write_serving_profile
from joulemap.wing.llm import StepPredictor

MEASURED = {
    ("down_proj", 16): 131.234,
    ("down_proj", 512): 376.009,
    ("gate_up_proj", 16): 253.327,
    ("gate_up_proj", 512): 736.703,
    ("o_proj", 16): 41.0317,
    ("o_proj", 512): 107.951,
    ("qkv_proj", 16): 56.4653,
    ("qkv_proj", 512): 166.444,
}
"""Rows of profiler/perf/RTX4090/meta-llama/Llama-3.1-8B/bf16/tp1/dense.csv of casys-kaist/LLMServingSim at 5daddb21."""

LM_HEAD = {1: 1096.93, 4: 1106.89}
"""Rows of per_sequence.csv there."""


@pytest.fixture(scope="module")
def steps() -> StepPredictor:
    return predict_step("llama-3.1-8b", "rtx_4090")


@pytest.fixture(scope="module")
def folder(steps: StepPredictor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_serving_profile(
        steps,
        tmp_path_factory.mktemp("perf"),
        hardware="RTX4090",
        model="meta-llama/Llama-3.1-8B",
        tokens=512,
        sequences=4,
        context_tokens=16,
    )


def read(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tp1" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_files_have_the_columns_and_layers_that_the_simulator_reads(folder: Path) -> None:
    assert folder.parts[-4:] == ("RTX4090", "meta-llama", "Llama-3.1-8B", "bf16")
    dense, per_sequence, attention = (read(folder, name) for name in ("dense", "per_sequence", "attention"))
    assert [*dense[0]] == ["layer", "tokens", "time_us"]
    assert [*per_sequence[0]] == ["layer", "sequences", "time_us"]
    assert [*attention[0]] == ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"]
    # the catalog of profiler/models/llama.yaml there
    assert {one["layer"] for one in dense} == {
        "embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj",
        "final_layernorm",
    }  # fmt: skip
    assert {one["layer"] for one in per_sequence} == {"lm_head", "sampler"}
    sizes = {(int(one["prefill_chunk"]), int(one["n_decode"])) for one in attention}
    assert sizes == {(chunk, count) for chunk in (0, 16, 128, 512) for count in (0, 1, 4)} - {(0, 0)}
    assert "engine_effective: {max_num_batched_tokens: 512, max_num_seqs: 4}" in (folder / "meta.yaml").read_text()


def test_gemms_take_what_the_profiler_measured(folder: Path) -> None:
    found = {(one["layer"], int(one["tokens"])): float(one["time_us"]) for one in read(folder, "dense")}
    heads = {
        int(one["sequences"]): float(one["time_us"])
        for one in read(folder, "per_sequence")
        if one["layer"] == "lm_head"
    }
    for key, measured in MEASURED.items():
        assert_close(found[key], measured, rel=0.08)
    for count, measured in LM_HEAD.items():
        assert_close(heads[count], measured, rel=0.08)


def test_the_parts_of_a_step_sum_to_its_time(steps: StepPredictor) -> None:
    passes = Passes.of([0.0, 8.0, 8.0], context=1024.0, chunk=[512.0, 0.0, 256.0])
    parts = steps.split(passes)
    assert [sum(one.values()) for one in parts] == pytest.approx(
        steps.price(passes).latency_s.tolist(), rel=1e-12, abs=0
    )
    assert "engine.layer" in parts[1]


@pytest.mark.parametrize(
    ("model", "devices", "name"), [("mixtral-8x7b", 1, "mlp.gate"), ("llama-3.1-8b", 2, "all_reduce")]
)
def test_layers_without_a_table_are_refused(model: str, devices: int, name: str, tmp_path: Path) -> None:
    steps = predict_step(model, "mi300x", devices=devices)
    with pytest.raises(UnsupportedError, match=f"no layer for .*{name}"):
        write_serving_profile(steps, tmp_path, hardware="x", model="m", tokens=16, sequences=2, context_tokens=32)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": 0},
        {"tokens": 2.5},
        {"sequences": -4},
        {"context_tokens": 0},
        {"model": "../../Q"},
        {"model": "a//b"},
        {"model": "/etc"},
        {"model": ""},
        {"model": "a/.."},
        {"hardware": ""},
        {"hardware": "a/b"},
        {"hardware": "a\\b"},
        {"hardware": "."},
        {"variant": ".."},
        {"variant": None},
    ],
)
def test_sizes_and_names_that_no_profile_has_are_refused(
    steps: StepPredictor, given: dict[str, object], tmp_path: Path
) -> None:
    (name,) = given
    with pytest.raises(UsageError, match=f"{name} is"):
        write_serving_profile(steps, tmp_path / "perf", **{"hardware": "x", "model": "m", **given})  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]


def test_a_model_beyond_memory_has_no_profile(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="of them for weights, but"):
        write_serving_profile(predict_step("llama-3.1-70b", "l4"), tmp_path, hardware="l4", model="m")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_files_of_others_are_kept(steps: StepPredictor, tmp_path: Path) -> None:
    def write(folder: Path) -> Path:
        return write_serving_profile(
            steps, folder, hardware="x", model="o/m", tokens=16, sequences=1, context_tokens=16
        )

    written = write(tmp_path)
    assert write(tmp_path) == written
    (written / "meta.yaml").write_text("mine\n", encoding="utf-8")
    (written / "tp1" / "dense.csv").unlink()
    with pytest.raises(UsageError):
        write(tmp_path)
    assert not (written / "tp1" / "dense.csv").exists()
    (written / "meta.yaml").unlink()
    write(tmp_path)
    assert "hardware: x\n" in (written / "meta.yaml").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="cannot make the folder"):
        write(written / "meta.yaml")
