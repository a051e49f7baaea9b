"""The predictor for SGLang's simulator, on batches of the simulator's own tests and examples."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from joulemap import Passes, predict_step
from joulemap.system.errors import UsageError
from joulemap.wing.embed import SglangPredictor
from joulemap.wing.llm import StepPredictor


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
    # a short prompt runs without CUDA graphs as a longer one does
    exact = steps.price(Passes.of([3, 1, 0], context=[1024, 3, 0], chunk=[0, 0, 17])).latency_s
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


def test_several_short_suffixes_read_all_of_their_caches(steps: StepPredictor, predictor: SglangPredictor) -> None:
    # 31 sequences and a chunk of as many tokens: one launch of every kernel, outside of CUDA graphs
    exact = steps.price(Passes.of(31, tokens=8, context=8000, chunk=8, chunk_context=8000))
    assert predictor.predict_infer_time(Batch([Request(8, 8000)] * 32)) == float(exact.latency_s)
    equal = steps.price(Passes.of(16, tokens=64, context=4000))
    assert predictor.predict_infer_time(Batch([Request(64, 4000)] * 16)) == float(equal.latency_s)
    beside = predictor.predict_infer_time(Batch([Request(1, 1000)] * 8 + [Request(8, 8000)] * 8))
    mean = Passes.of(15, tokens=(8 + 7 * 8) / 15, context=(8 * 1000 + 7 * 8000) / 15, chunk=8, chunk_context=8000)
    assert beside == float(steps.price(mean).latency_s)


def test_a_prompt_takes_the_time_of_its_launches_however_short(predictor: SglangPredictor) -> None:
    times = [predictor.predict_infer_time(Batch([Request(new, 100)])) for new in (2, 8, 16, 17, 24, 31, 32, 33, 64)]
    assert times == sorted(times)
    assert times[-1] < 1.05 * times[0]


def test_verified_tokens_decode(steps: StepPredictor) -> None:
    predictor = SglangPredictor(steps, verified_tokens=8)
    exact = steps.price(Passes.of(32, tokens=8, context=1000))
    assert predictor.predict_infer_time(Batch([Request(8, 1000)] * 32)) == float(exact.latency_s)
    assert predictor.get_metrics() == {
        "joulemap_energy_j": float(exact.energy_j),
        "joulemap_steps": 1,
        "joulemap_tokens": 256,
    }
    prompt = steps.price(Passes.of(0, chunk=17, chunk_context=1000))
    assert predictor.predict_infer_time(Batch([Request(9, 1000)])) == float(prompt.latency_s)


@pytest.mark.parametrize(
    ("batch", "passes"),
    [
        (Batch([Request(1, 300_000)]), Passes.of(1, context=300_000)),
        (Batch([Request(1, 128)] * 300), Passes.of(300, context=128)),
        (Batch([Request(32_768, 0)]), Passes.of(0, chunk=32_768)),
        (Batch([Request(512, 40_000)]), Passes.of(0, chunk=512, chunk_context=40_000)),
        (Batch([Request(1, 100)] * 2 + [Request(9000, 0)] * 2), Passes.of(2, context=100, chunk=18_000)),
    ],
)
def test_steps_beyond_the_table_are_exact(
    steps: StepPredictor, predictor: SglangPredictor, batch: Batch, passes: Passes
) -> None:
    assert predictor.predict_infer_time(batch) == float(steps.price(passes).latency_s)


def test_steps_that_the_table_refuses_are_exact(steps: StepPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def step(self, sequences: object, *_: object) -> tuple[object, object]:
            nothing = np.array([math.nan] * 2) if isinstance(sequences, list) else math.nan
            return nothing, nothing

    predictor = SglangPredictor(steps)
    monkeypatch.setattr(predictor, "_table", Refusing())
    decode, prompt = steps.price(Passes.of([3, 0], context=[1024, 0], chunk=[0, 512], chunk_context=[0, 512])).latency_s
    assert predictor.predict_infer_time(DECODE) == decode
    assert predictor.predict_infer_time(Batch([Request(512, 512)])) == prompt
    assert predictor.predict_infer_time(PREFILL) > 0.0


@pytest.mark.parametrize(
    "batch",
    [
        Batch([Request(1, 1_000_000)]),
        Batch([Request(300, 30_000)] * 40),
        Batch([Request(8, 30_000)] * 40),
        Batch([Request(1, 30_000)] + [Request(300, 30_000)] * 40),
        Batch([Request(1, 30_000)] + [Request(8, 30_000)] * 40),
        Batch([Request(1, 100)] + [Request(400_000, 300_000)] * 2),
    ],
)
def test_caches_of_all_requests_are_held(predictor: SglangPredictor, batch: Batch) -> None:
    # of 144 KiB per token, fewer than 400,000 tokens fit beside the weights
    assert predictor.predict_infer_time(batch) < 0.0


@pytest.mark.parametrize(
    "request_",
    [Request(-1, 0), Request(1, -5), Request(1.5, 0), Request(1, math.nan), Request("1", 0)],  # type: ignore[arg-type]
)
def test_lengths_that_no_request_has_are_refused(predictor: SglangPredictor, request_: Request) -> None:
    predictor.reset_metrics()
    with pytest.raises(UsageError, match=r"(extend|past_kv)_length is .*, expected a whole number from 0"):
        predictor.predict_infer_time(Batch([Request(1, 10), request_]))
    assert predictor.get_metrics()["joulemap_steps"] == 0


def test_lengths_of_numpy_are_taken(predictor: SglangPredictor) -> None:
    given = Batch([Request(np.int64(1), np.int32(1024))] * 3)  # type: ignore[arg-type]
    assert predictor.predict_infer_time(given) == predictor.predict_infer_time(DECODE)


@pytest.mark.parametrize("count", [0, 17, 1.5])
def test_verified_tokens_are_few(steps: StepPredictor, count: int) -> None:
    with pytest.raises(UsageError, match="verified_tokens is"):
        SglangPredictor(steps, verified_tokens=count)
