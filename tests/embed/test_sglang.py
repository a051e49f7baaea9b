"""The predictor for SGLang's simulator, on batches of the simulator's own tests and examples."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from joulemap.wing.embed import SglangPredictor
from joulemap.wing.llm import Passes, StepPredictor, predict_step


@attrs.frozen
class Request:
    """As `ScheduleRequest` of tools/sglang-simulator/src/sglang_simulator/time_predictor/base.py."""

    extend_length: int = 0
    past_kv_length: int = 0


@attrs.frozen
class Batch:
    """As `ScheduleBatch` there."""

    reqs: list[Request]


PREFILL = Batch([Request(512, 512), Request(1024, 0), Request(512, 0)])
"""Prefill batch of tools/sglang-simulator/test (`test_time_predictor`)."""

DECODE = Batch([Request(1, 1024)] * 3)
"""Decode batch of the same test."""

REPLAYED = Batch([Request(1, 3)]), Batch([Request(4, 0)])
"""Keys of tools/sglang-simulator/examples/replay/replay_table.json: `[[1, 3]]` and `[[4, 0]]`."""


@pytest.fixture(scope="module")
def steps() -> StepPredictor:
    return predict_step("qwen3-8b", "h100_sxm5", engine="sglang")


@pytest.fixture(scope="module")
def predictor(steps: StepPredictor) -> SglangPredictor:
    return SglangPredictor(steps)


def test_times_are_near_exact_steps(steps: StepPredictor, predictor: SglangPredictor) -> None:
    exact = steps.price(Passes.of([3, 1, 0], context=[1024, 3, 0], chunk=[0, 0, 4])).latency_s
    found = [predictor.predict_infer_time(one) for one in (DECODE, *REPLAYED)]
    assert found == pytest.approx(exact.tolist(), rel=0.03, abs=0)


def test_prompts_attend_as_much_together_as_alone(steps: StepPredictor, predictor: SglangPredictor) -> None:
    # 512 x (512 + 256) + 1024 x 512 + 512 x 256 pairs = 2048 x (-512 + 1024)
    table = steps.table()
    assert predictor.predict_infer_time(PREFILL) == float(table.step(0, 0, 2048, -512)[0])
    whole = float(table.step(0, 0, 2048, 0)[0])  # 2048 x 1024 pairs
    assert 0.8 * whole < predictor.predict_infer_time(PREFILL) < whole


def test_energy_and_tokens_are_summed_until_a_reset(predictor: SglangPredictor) -> None:
    predictor.reset_metrics()
    for batch in (DECODE, PREFILL, DECODE):
        predictor.predict_infer_time(batch)
    metrics = predictor.get_metrics()
    assert (metrics["joulemap_steps"], metrics["joulemap_tokens"]) == (3, 3 + 2048 + 3)
    predictor.reset_metrics()
    predictor.predict_infer_time(DECODE)
    assert 2.0 * predictor.get_metrics()["joulemap_energy_j"] < metrics["joulemap_energy_j"]


def test_an_empty_batch_takes_no_time_and_one_beyond_memory_is_impossible() -> None:
    small = SglangPredictor(predict_step("qwen3-8b", "l4", engine="sglang"))
    assert small.predict_infer_time(Batch([])) == 0.0
    assert small.predict_infer_time(Batch([Request(1, 30_000)] * 200)) < 0.0
    assert small.get_metrics()["joulemap_steps"] == 0


def test_no_step_takes_negative_time(predictor: SglangPredictor) -> None:
    generator = np.random.default_rng(0)
    for _ in range(200):
        requests = [Request(1, int(one)) for one in generator.integers(0, 8000, generator.integers(0, 64))]
        prompts = [Request(int(one), int(one) % 700) for one in generator.integers(2, 2000, generator.integers(1, 4))]
        assert predictor.predict_infer_time(Batch(requests + prompts)) > 0.0
