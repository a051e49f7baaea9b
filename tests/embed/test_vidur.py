"""The predictor for Vidur, on batches with the interface of its own, and on its own classes where it is installed."""

from __future__ import annotations

import inspect
import math

import attrs
import pytest

from compare import assert_close
from joulemap import Passes, predict_step
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.embed import VidurPredictor, VidurTime
from joulemap.wing.llm import StepPredictor

ARGUMENTS = (
    "num_layers_per_pipeline_stage", "attention_rope_execution_time", "attention_kv_cache_save_execution_time",
    "attention_decode_execution_time", "attention_prefill_execution_time", "attention_layer_pre_proj_execution_time",
    "attention_layer_post_proj_execution_time", "mlp_layer_up_proj_execution_time",
    "mlp_layer_down_proj_execution_time", "mlp_layer_act_execution_time", "attn_norm_time", "mlp_norm_time",
    "add_time", "tensor_parallel_communication_time", "pipeline_parallel_communication_time", "schedule_time",
    "sampler_e2e_time", "prepare_inputs_e2e_time", "process_model_outputs_time", "ray_comm_time",
)  # fmt: skip
"""Arguments of `ExecutionTime` in vidur/entities/execution_time.py of microsoft/vidur at 7d475133 (MIT)."""

PROPERTIES = {
    "num_layers_per_pipeline_stage": "num_layers",
    "attention_layer_pre_proj_execution_time": "attention_pre_proj_time",
    "attention_layer_post_proj_execution_time": "attention_post_proj_time",
    "tensor_parallel_communication_time": "attention_all_reduce_time",
}
"""Argument -> property of the same number there, where names differ."""

ONCE = ARGUMENTS[-5:]
"""Arguments that a batch takes once; all others but the first and the pipeline's are of one layer."""


@attrs.frozen
class Request:
    """As `Request` of vidur/entities/request.py there: a request in prefill or in decode."""

    num_processed_tokens: int
    is_prefill_complete: bool


@attrs.frozen
class Batch:
    """As `Batch` of vidur/entities/batch.py there."""

    requests: list[Request]
    num_tokens: list[int]


@attrs.frozen
class QueryBatch:
    """As `Batch` of vidur 0.0.26."""

    requests: list[Request]
    num_q_tokens: list[int]


DECODE = Batch([Request(1000, True), Request(3000, True)], [1, 1])

PROMPTS = Batch([Request(0, False), Request(0, False), Request(512, False)], [512, 512, 1024])

MIXED = Batch([Request(1024, True)] * 8 + [Request(512, False)], [1] * 8 + [504])


@pytest.fixture(scope="module")
def steps() -> StepPredictor:
    return predict_step("llama-2-7b", "a100_sxm4_80gb")


@pytest.fixture(scope="module")
def predictor(steps: StepPredictor) -> VidurPredictor:
    return VidurPredictor(steps)


def list_arguments(time: VidurTime) -> dict[str, float]:
    return {name: getattr(time, PROPERTIES.get(name, name)) for name in ARGUMENTS}


@pytest.mark.parametrize("batch", [DECODE, PROMPTS, MIXED])
def test_components_sum_to_the_step(steps: StepPredictor, predictor: VidurPredictor, batch: Batch) -> None:
    time, step = predictor.get_execution_time(batch, 0), steps.price(predictor.list_passes(batch))
    given = list_arguments(time)
    # the sum of `ExecutionTime.total_time` there: milliseconds, with one exchange after attention and one after the MLP
    layer = math.fsum(given[name] for name in ARGUMENTS[1:13]) + 2.0 * given["tensor_parallel_communication_time"]
    once = given["pipeline_parallel_communication_time"] + math.fsum(given[name] for name in ONCE)
    total = 1e-3 * (32 * layer + once)
    assert_close(total, float(step.latency_s))
    assert_close(time.total_time, total)
    assert_close(time.model_time, 1e-3 * 32 * layer)
    assert_close(time.model_time_ms, 32 * layer)
    assert time.energy_j == float(step.energy_j)


def test_passes_have_the_tokens_and_pairs_of_their_batch(predictor: VidurPredictor) -> None:
    decode, prompts, mixed = (predictor.list_passes(one) for one in (DECODE, PROMPTS, MIXED))
    # a mean context of 2000 is nearest to 31 x 64
    assert (float(decode.sequences), float(decode.context), float(decode.chunk)) == (2.0, 1984.0, 0.0)
    # 2 x 512 x 256 + 1024 x 1024 pairs over 2048 tokens, less half of a mean prompt, are 299: nearest to 5 x 64
    assert (float(prompts.sequences), float(prompts.tokens), float(prompts.context)) == (3.0, 2048 / 3, 320.0)
    sizes = float(mixed.sequences), float(mixed.context), float(mixed.chunk), float(mixed.chunk_context)
    assert sizes == (8.0, 1024.0, 504.0, 512.0)


def test_components_are_of_their_operators(steps: StepPredictor, predictor: VidurPredictor) -> None:
    decode, prompts, mixed = (predictor.get_execution_time(one) for one in (DECODE, PROMPTS, MIXED))
    (parts,) = steps.split(Passes.of(2, context=1984))
    down = math.fsum(seconds for name, seconds in parts.items() if name.endswith("mlp.down_proj"))
    assert_close(decode.mlp_layer_down_proj_execution_time, 1e3 * down / 32)
    head = parts["embed_tokens"] + parts["norm"] + parts["lm_head"] + parts["engine.logit"]
    assert_close(decode.sampler_e2e_time, 1e3 * head)
    assert (decode.attention_prefill_execution_time, prompts.attention_decode_execution_time) == (0.0, 0.0)
    assert decode.attention_decode_execution_time > 0.0
    assert prompts.attention_prefill_execution_time > 0.0
    assert min(mixed.attention_prefill_execution_time, mixed.attention_decode_execution_time) > 0.0
    for name in ("pipeline_parallel_communication_time", "mlp_layer_act_execution_time", "ray_comm_time"):
        assert getattr(mixed, name) == 0.0


def test_exchanges_are_halved_between_attention_and_mlp() -> None:
    steps = predict_step("llama-3.1-70b", "h100_sxm5", devices=4)
    predictor = VidurPredictor(steps)
    time = predictor.get_execution_time(DECODE)
    (parts,) = steps.split(predictor.list_passes(DECODE))
    exchange = math.fsum(
        seconds for name, seconds in parts.items() if name.startswith("layers.") and "all_reduce" in name
    )
    assert_close(80 * (time.attention_all_reduce_time + time.mlp_all_reduce_time), 1e3 * exchange)
    assert time.num_layers == 80


def test_energy_and_tokens_are_summed_until_a_reset(predictor: VidurPredictor) -> None:
    predictor.reset_metrics()
    times = [predictor.get_execution_time(one) for one in (DECODE, MIXED, DECODE)]
    metrics = predictor.get_metrics()
    assert_close(metrics["joulemap_energy_j"], sum(one.energy_j for one in times))
    assert (metrics["joulemap_batches"], metrics["joulemap_tokens"]) == (3, 2 + 512 + 2)
    predictor.reset_metrics()
    assert predictor.get_metrics()["joulemap_energy_j"] == 0.0


def test_what_vidur_has_no_component_for_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"Vidur has no component for layers\.\d+\.mixer"):
        VidurPredictor(predict_step("mamba-130m", "l4")).get_execution_time(DECODE)
    small = VidurPredictor(predict_step("llama-3.1-8b", "l4"))
    with pytest.raises(UnsupportedError, match="of them for weights, but"):
        small.get_execution_time(Batch([Request(30_000, True)] * 64, [1] * 64))
    assert small.get_metrics()["joulemap_batches"] == 0


def test_bad_input_is_one_clear_line(steps: StepPredictor, predictor: VidurPredictor) -> None:
    with pytest.raises(UsageError, match="pipeline stage 1, expected 0"):
        predictor.get_execution_time(DECODE, 1)
    with pytest.raises(UsageError, match="granularity is 0"):
        VidurPredictor(steps, granularity=0)
    with pytest.raises(UsageError, match="the batch has no requests"):
        predictor.get_execution_time(Batch([], []))
    with pytest.raises(UsageError, match="num_tokens has 1 numbers for 2 requests"):
        predictor.get_execution_time(Batch([Request(1000, True)] * 2, [1]))
    with pytest.raises(UsageError, match="num_q_tokens is -3, expected a whole number from 1"):
        predictor.get_execution_time(QueryBatch([Request(0, False)], [-3]))
    with pytest.raises(UsageError, match="num_processed_tokens is -500, expected a whole number from 0"):
        predictor.get_execution_time(Batch([Request(-500, True)], [1]))


def test_caches_of_all_prompts_are_held(predictor: VidurPredictor) -> None:
    # of 512 KiB per token, fewer than 130,000 tokens fit beside the weights
    for batch in (
        Batch([Request(1000, True)] + [Request(3000, False)] * 64, [1] + [600] * 64),
        Batch([Request(3000, False)] * 64, [600] * 64),
        Batch([Request(3000, False)] * 64, [8] * 64),
        Batch([Request(1000, True)] * 10**4, [1] * 10**4),
    ):
        with pytest.raises(UnsupportedError, match="of them for weights, but"):
            predictor.get_execution_time(batch)


def test_short_prompts_are_sequences_of_a_prompt(steps: StepPredictor, predictor: VidurPredictor) -> None:
    time = predictor.get_execution_time(Batch([Request(1024, False)] * 8, [8] * 8))
    exact = steps.price(Passes.of(7, tokens=8, context=1024, chunk=8, chunk_context=1024))
    assert_close(time.total_time, float(exact.latency_s))
    assert time.attention_decode_execution_time == 0.0


def test_vidur_itself_adds_the_components_up_alike(predictor: VidurPredictor) -> None:
    entities = pytest.importorskip("vidur.entities")
    if tuple(inspect.signature(entities.ExecutionTime).parameters) != ARGUMENTS:
        pytest.skip("this Vidur has other components than microsoft/vidur at 7d475133")
    time = predictor.get_execution_time(MIXED)
    own = entities.ExecutionTime(**list_arguments(time))
    assert_close(own.total_time, time.total_time)
    assert_close(own.model_time, time.model_time)
