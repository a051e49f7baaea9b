"""Steps of an engine: times, energies and intervals of `joulemap llm`, memory, and a table."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joulemap import Passes, evaluate_steps, predict_step
from joulemap.physics.pipeline import Gathering
from joulemap.system.errors import JoulemapError, UnknownNameError, UnsupportedError, UsageError
from joulemap.wing.decoder.network.column import name_pass, pass_columns
from joulemap.wing.llm import Serving
from joulemap.wing.llm.serving.pass_error import PassErrors, PassRow, evaluate_rows
from joulemap.workspace import Workspace

PROMPT = 512.0


def check_served(folder: Path, model: str, chip: str, engine: str, devices: int, given: dict[str, Any]) -> None:
    """Compare the prefill and the first decode step with those of a served model."""
    answer = Workspace(folder / "llm.duckdb").llm(
        model,
        hardware=[chip],
        batch=1,
        serving=Serving(prompt=int(PROMPT), output=2, engine=engine, devices=(devices,)),
        **given,
    )
    row: Any = answer.rows[0]
    predictor = predict_step(model, chip, engine=engine, devices=devices, **given)
    found = predictor.price(Passes.of([1.0, 1.0], tokens=[PROMPT, 1.0], context=[0.0, PROMPT]))
    assert found.refusal.tolist() == ["", ""]
    assert found.latency_s.tolist() == [row.first_token_s, row.between_s]
    np.testing.assert_allclose(found.energy_j, [PROMPT * row.prompt_token_j, row.output_token_j], rtol=1e-14)
    wide, tall = np.log(found.latency_high_s / found.latency_s), np.log(found.energy_high_j / found.energy_j)
    np.testing.assert_allclose(wide, [row.first_token_half_width, row.between_half_width], rtol=1e-12)
    np.testing.assert_allclose(tall[0], row.prompt_token_half_width, rtol=1e-12)
    # the stored decode step has one more token in its cache
    np.testing.assert_allclose(tall[1], row.output_token_half_width, rtol=1e-5)
    np.testing.assert_allclose(found.latency_low_s * found.latency_high_s, found.latency_s**2, rtol=1e-12)


@pytest.mark.slow
def test_steps_are_those_of_a_served_model(tmp_path: Path) -> None:
    check_served(tmp_path, "llama-3.1-8b", "h100_sxm5", "vllm", 1, {})


def test_passes_may_be_single_and_of_any_shape() -> None:
    predictor = predict_step("llama-3.2-1b", "l4")
    one, grid = predictor.price(Passes.of(1)), predictor.price(Passes.of([[1.0, 2.0], [4.0, 8.0]], context=100.0))
    assert (one.latency_s.shape, grid.latency_s.shape, grid.refusal.shape) == ((), (2, 2), (2, 2))
    assert 0.0 < one.energy_low_j < one.energy_j < one.energy_high_j
    for index in np.ndindex(2, 2):
        alone = predictor.price(Passes.of([[1.0, 2.0], [4.0, 8.0]][index[0]][index[1]], context=100.0))
        assert alone.latency_s == grid.latency_s[index]
        assert alone.energy_high_j == grid.energy_high_j[index]


@pytest.mark.parametrize("model", ["llama-3.2-1b", "gemma-2-2b", "qwen3-30b-a3b"])
def test_a_folded_pass_has_the_bounds_of_all_its_layers(model: str) -> None:
    """Times bound by compute, memory and launches decide which uncertain numbers count."""
    one = predict_step(model, "mi325x")
    owner = PassErrors(deployment=one._deployment)
    asked = owner.deployment.ask(Passes.of([1.0, 64.0], tokens=[1024.0, 1.0], context=[0.0, 1024.0]))
    whole = pass_columns(owner.deployment.decoder, asked)
    folded, full = (
        evaluate_rows(
            [
                PassRow(owner=owner, asked=each, work=work, chip=chip)
                for each, work in zip(asked, works, strict=True)
                for chip in owner.list_chips(each)
            ],
            Gathering(),
        )
        for works in (owner.describe(asked), [whole[each] for each in asked])
    )
    assert whole[asked[0]].operator_count > 2 * owner.describe(asked)[0].operator_count
    assert folded.share_fs.tolist() == full.share_fs.tolist()
    assert folded.share_fs.sum(axis=1).tolist() == folded.latency_fs.tolist() == full.latency_fs.tolist()
    assert {key: column.tolist() for key, column in folded.spent_fj.items()} == {
        key: column.tolist() for key, column in full.spent_fj.items()
    }


def test_a_pass_whose_sums_exceed_64_bits_counts_all_layers() -> None:
    """150 prompts of 100 tokens take 20 s on a laptop: a fixed share of that per layer, and the same in a run alone."""
    steps = predict_step("qwen3-8b", "m4_max", engine="llamacpp")
    long, short = steps.price(Passes.of([150.0, 15.0], tokens=100.0, context=1500.0)).latency_s.tolist()
    assert 9.0 < long / short < 11.0


def test_a_step_that_memory_does_not_hold_is_refused() -> None:
    predictor = predict_step("llama-3.1-8b", "l4")
    found = predictor.price(Passes.of([1.0, 64.0], context=[1000.0, 30_000.0]))
    assert found.refusal[0] == ""
    assert "GB of each l4, 16.1 GB of them for weights" in found.refusal[1]
    for name in ("latency_s", "latency_low_s", "latency_high_s", "energy_j", "energy_low_j", "energy_high_j"):
        assert np.isnan(getattr(found, name)).tolist() == [False, True]
    table = predictor.table(sequences=64, context_tokens=32_000, prompt_tokens=512)
    seconds, joules = table.step([1.0, 64.0], [1000.0, 30_000.0])
    assert np.isnan(seconds).tolist() == np.isnan(joules).tolist() == [False, True]
    for sizes in ((65, 100.0), (1, 33_000.0), (1, 100.0, 513.0), (1, 100.0, 512.0, 32_000.0)):
        assert np.isnan(table.step(*sizes)).all()  # nothing is extrapolated
    with pytest.raises(UnsupportedError, match=r"but .* GB are usable"):
        predictor.split(Passes.of([1.0, 64.0], context=[1000.0, 30_000.0]))
    with pytest.raises(UsageError, match="sequences is 0"):
        predictor.table(sequences=0)
    with pytest.raises(UnsupportedError, match="for weights, but"):
        predict_step("llama-3.1-70b", "l4").table()
    assert predict_step("llama-3.1-70b", "l4").price(Passes.of(1)).refusal != ""


def test_a_table_is_near_exact_steps() -> None:
    """Exact where a knot is; elsewhere within a tenth, as for all tables of servers."""
    predictor = predict_step("llama-3.2-1b", "h100_sxm5")
    table = predictor.table(sequences=64, context_tokens=4096, prompt_tokens=2048)
    exact = predictor.price(Passes.of([1.0, 64.0], context=[0.0, 4096.0]))
    seconds, joules = table.step([1.0, 64.0], [0.0, 4096.0])
    np.testing.assert_allclose(seconds, exact.latency_s, rtol=1e-12)
    np.testing.assert_allclose(joules, exact.energy_j, rtol=1e-12)
    between = predictor.price(Passes.of([3.0, 40.0], context=[700.0, 3000.0]))
    np.testing.assert_allclose(table.step([3.0, 40.0], [700.0, 3000.0])[0], between.latency_s, rtol=0.1)
    mixed = predictor.price(Passes.of([16.0], context=[1000.0], chunk=[512.0]))
    np.testing.assert_allclose(table.step(16.0, 1000.0, 512.0)[0], mixed.latency_s[0], rtol=0.15)


@pytest.mark.parametrize(
    ("model", "chip", "given", "error", "text"),
    [
        ("llama-3.1-9b", "l4", {}, UnknownNameError, "unknown language model 'llama-3.1-9b'; did you mean"),
        ("llama-3.1-8b", "l5", {}, UnknownNameError, "unknown hardware 'l5'"),
        ("llama-3.1-8b", "l4", {"engine": "vlm"}, UnknownNameError, "unknown engine 'vlm'; did you mean vllm"),
        ("llama-3.1-8b", "mi300x", {"engine": "tensorrt-llm"}, UnsupportedError, "runs only on chips of NVIDIA"),
        ("llama-3.1-8b", "a100_sxm4_80gb", {"precision": "fp8"}, UnsupportedError, "a100_sxm4_80gb has no fp8"),
        ("llama-3.1-8b", "l4", {"cache": "int3"}, UnknownNameError, "precision of a cache"),
        ("llama-3.1-8b", "l4", {"devices": 0}, UsageError, "devices is 0"),
        ("llama-3.1-8b", "l4", {"devices": 3}, UsageError, "cannot be divided by 3 devices"),
        ("llama-3.1-8b", "l4", {"weight_precision": "q9"}, JoulemapError, "q9"),
        ("llama-3.1-8b", "l4", {"changes": {"tdq": 60.0}}, UnknownNameError, "unknown constant 'tdq'"),
        ("llama-3.1-8b", "l4", {"changes": {"tdp": -1.0}}, UsageError, "tdp: "),
        ("llama-3.1-8b", "l4", {"changes": {"tdp": [60.0, 70.0]}}, UsageError, "expected one number"),
        ("llama-3.1-8b", "l4", {"changes": {"tdp": "low"}}, UsageError, "tdp is 'low'"),
        ("llama-3.1-8b", "l4", {"expert_devices": 0}, UsageError, "expert_devices is 0"),
        ("llama-3.1-8b", "l4", {"data_devices": "2"}, UsageError, "data_devices is '2'"),
        ("llama-3.1-8b", "l4", {"precision": 16}, UsageError, "precision is 16"),
        ("llama-3.1-8b", "l4", {"engine": None}, UsageError, "engine is None"),
        ("llama-3.1-8b", "l4", {"compiled_tokens": "all"}, UsageError, "compiled_tokens is 'all'"),
    ],
)
def test_bad_input_is_one_clear_line(
    model: str, chip: str, given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        predict_step(model, chip, **given)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("sequences", "given", "text"),
    [
        (-1.0, {}, "sequences of a pass is -1"),
        (4.0, {"context": [1.0, -5.0]}, "context of a pass is -5"),
        (4.0, {"context": math.nan}, "context of a pass is nan"),
        (4.0, {"tokens": math.inf}, "tokens of a pass is inf"),
        ([1.0, 0.0], {}, "a pass has no token"),
        ("many", {}, "sizes of passes: "),
        ([1.0, 2.0], {"context": [1.0, 2.0, 3.0]}, "sizes of passes: "),
    ],
)
def test_a_pass_that_cannot_be_is_one_clear_line(sequences: Any, given: dict[str, Any], text: str) -> None:
    predictor = predict_step("llama-3.2-1b", "l4")
    for act in (predictor.price, predictor.split, lambda passes: evaluate_steps([(predictor, passes)])):
        with pytest.raises(UsageError) as raised:
            act(Passes.of(sequences, **given))
        assert str(raised.value).startswith(text)


def test_steps_need_no_engine_of_a_database() -> None:
    code = (
        "import sys\nfrom joulemap import Passes, predict_step\n"
        "predict_step('llama-3.2-1b', 'l4').price(Passes.of(1))\n"
        "print({'duckdb', 'torch', 'cattrs', 'pyarrow', 'typer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_table_prices_prompts_below_its_first_knot() -> None:
    predictor = predict_step("qwen3-8b", "h100_sxm5", engine="sglang")
    sizes = np.array([1.0, 4.0, 15.0, 16.0])
    exact = predictor.price(Passes.of(0.0, chunk=sizes)).latency_s
    np.testing.assert_allclose(predictor.table().step(0.0, 0.0, sizes)[0], exact, rtol=0.01)


def test_steps_of_pipeline_stages_have_no_parts() -> None:
    with pytest.raises(UnsupportedError, match="is divided into pipeline stages, so that its steps have no parts"):
        predict_step("llama-3.1-8b", "h100_sxm5", pipeline_devices=2).split(Passes.of(1))


@pytest.mark.parametrize(
    ("model", "chip", "devices"),
    [("llama-3.2-1b", "l4", 1), ("gemma-2-2b", "mi300x", 1), ("deepseek-v2-lite", "h100_sxm5", 2), ("gpt2", "l4", 1)],
)
def test_names_of_folded_parts_are_those_of_all_layers(model: str, chip: str, devices: int) -> None:
    predictor = predict_step(model, chip, devices=devices)
    passes = Passes.of([8.0, 0.0], context=500.0, chunk=[0.0, 300.0])
    folded, owner = predictor.split(passes), predictor._errors
    for found, asked in zip(folded, owner.deployment.ask(passes), strict=True):
        whole = name_pass(owner.deployment.decoder, asked, is_folded=False)
        assert [*whole.time(owner.list_chips(asked), owner.configuration).items()] == [*found.items()]
    assert [sum(one.values()) for one in folded] == pytest.approx(
        predictor.price(passes).latency_s.tolist(), rel=1e-12, abs=0
    )


def spread(devices: int, micro_batches: int = 2, chip: str = "h100_sxm5") -> Any:
    """Steps of DeepSeek-V3 in SGLang of 2025, its experts on so many devices."""
    return predict_step(
        "deepseek-v3",
        chip,
        engine="sglang@2025",
        data_devices=devices,
        expert_devices=devices,
        micro_batches=micro_batches,
    )


@pytest.mark.parametrize(
    ("devices", "passes", "tokens", "published"),
    [
        (32, Passes.of(512, tokens=1024), 512 * 1024, 57674),
        (32, Passes.of(256, tokens=2048), 256 * 2048, 54543),
        (32, Passes.of(128, tokens=4096), 128 * 4096, 50302),
        (72, Passes.of(256 * 72, context=2050), 256 * 72, 22282),
        (72, Passes.of(128 * 72, tokens=2, context=4050), 1.6 * 128 * 72, 17373),  # 60 % of drafts accepted
    ],
)
def test_experts_on_many_hosts_reach_published_rates(
    devices: int, passes: Passes, tokens: float, published: float
) -> None:
    """Tokens per second of 8 H100, of 4 prefill and 9 decode hosts. No number is fitted to them.

    Source: LMSYS, Deploying DeepSeek with PD Disaggregation and Large-scale Expert Parallelism on 96 H100 GPUs, 2025.
    """
    seconds = float(spread(devices).price(passes).latency_s)
    assert tokens / seconds / (devices / 8) == pytest.approx(published, rel=0.12)


def test_micro_batches_hide_what_computation_covers() -> None:
    """Two halves take less time than one after another, and no less than without an exchange; one device has none."""
    halves = Passes.of(128 * 16, context=256)
    one, two = (float(spread(16, count).price(halves).latency_s) for count in (1, 2))
    half = float(spread(16, 1).price(Passes.of(64 * 16, context=256)).latency_s)
    names = spread(16, 1).split(Passes.of(64 * 16, context=256))[0]
    exchanged = sum(seconds for name, seconds in names.items() if "all_to_all" in name)
    assert 2 * (half - exchanged) <= two < 2 * half
    assert two > one / 2
    with pytest.raises(UsageError, match="--micro-batches 2 needs an exchange with experts"):
        predict_step("deepseek-v3", "h100_sxm5", devices=8, micro_batches=2)


def test_groups_beyond_a_link_need_experts_to_send_tokens_to() -> None:
    with pytest.raises(UnsupportedError, match="links of h100_sxm5 connect at most 8"):
        predict_step("deepseek-v3", "h100_sxm5", data_devices=16)
    with pytest.raises(UnsupportedError, match="links of h100_sxm5 connect at most 8"):
        predict_step("deepseek-v3", "h100_sxm5", devices=16, data_devices=2, expert_devices=32)
