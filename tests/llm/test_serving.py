"""Served batches and steady loads over surfaces that can be worked by hand."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from engine_chip import find_chips, reach_bandwidth

from compare import assert_close
from deployed import deploy_decoder, known_decoder
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.physics.record.quantity import Evidence, Quantity
from joulemap.physics.record.runtime import RuntimeName
from joulemap.system.errors import Reason, UnknownNameError, UsageError
from joulemap.wing.decoder.engine.chip import UnderEngine, list_kinds
from joulemap.wing.decoder.engine.stack import describe_engine, find_engine, find_stack, stack_names
from joulemap.wing.decoder.network.config import Published
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import build_graph
from joulemap.wing.decoder.network.pass_name import find_decoder
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.batch import Batch, grow, run_batches
from joulemap.wing.llm.serving.deployment import Deployment, Draft, Guessing, PassWorkloads
from joulemap.wing.llm.serving.load import Limits, Load
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.predict import choose_precisions, find_deployment, predict
from joulemap.wing.llm.serving.serve import open_deployment, simulate
from joulemap.wing.llm.serving.surface import Cost, Passes, choose_knots, choose_steady_knots, count_accepted
from pass_surface import StraightPass


@attrs.frozen(kw_only=True)
class Straight:
    """A pass takes so much, and more for each token, and for each that one sees."""

    pass_s: float = 0.010
    token_s: float = 0.0001
    seen_s: float = 1e-7
    watts: float = 500.0
    waiting_w: float = 100.0
    resting_w: float = 100.0

    def price(self, passes: Passes) -> Cost:
        """Return these."""
        tokens = passes.sequences * passes.tokens + passes.chunk
        seen = passes.sequences * passes.tokens * (passes.context + passes.tokens / 2.0)
        seen = seen + passes.chunk * (passes.chunk_context + passes.chunk / 2.0)
        seconds = self.pass_s + self.token_s * tokens + self.seen_s * seen
        return Cost(seconds=seconds, joules=self.watts * seconds)


def test_a_batch_is_its_prompts_and_every_step_behind_a_cache_that_grows() -> None:
    (cost,) = run_batches(Straight(), [Batch(sequences=2, prompt_tokens=100, output_tokens=11)])
    prompts = 0.010 + 200 * 0.0001 + 200 * 50 * 1e-7
    steps = [0.010 + 2 * 0.0001 + 2 * (100 + step + 0.5) * 1e-7 for step in range(10)]
    assert_close(cost.first_token_s, prompts)
    assert_close(cost.request_s, prompts + sum(steps))
    assert_close(cost.between_s, sum(steps) / 10)
    assert (cost.first_step_s, cost.last_step_s) == pytest.approx((steps[0], steps[-1]), rel=1e-12)
    assert_close(cost.joules, 500.0 * cost.request_s)


def test_one_token_takes_no_decode_step_but_has_the_cost_of_one() -> None:
    (cost,) = run_batches(Straight(), [Batch(sequences=2, prompt_tokens=100, output_tokens=1)])
    step = 0.010 + 2 * 0.0001 + 2 * (100 + 0.5) * 1e-7
    assert_close(cost.request_s, 0.010 + 200 * 0.0001 + 200 * 50 * 1e-7)
    assert (cost.between_s, cost.between_j) == pytest.approx((step, 500.0 * step), rel=1e-12)


def test_a_batch_beyond_the_room_goes_in_waves() -> None:
    whole, part, waiting = run_batches(
        Straight(),
        [
            Batch(sequences=8, prompt_tokens=100, output_tokens=10),
            Batch(sequences=12, prompt_tokens=100, output_tokens=10, room=8),
            Batch(sequences=12, prompt_tokens=100, output_tokens=10, room=8, waits=True),
        ],
    )
    assert_close(part.request_s, 1.5 * whole.request_s)
    assert waiting.request_s > part.request_s


def test_prompts_longer_than_a_pass_go_in_pieces() -> None:
    flat = Straight(seen_s=0.0)
    (cost,) = run_batches(flat, [Batch(sequences=3, prompt_tokens=250, step_tokens=100)])
    assert_close(cost.first_token_s, 3 * (3 * 0.010 + 250 * 0.0001))
    (cost,) = run_batches(flat, [Batch(sequences=8, prompt_tokens=50, step_tokens=100)])
    assert_close(cost.first_token_s, 4 * 0.010 + 400 * 0.0001)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 500])
def test_the_sum_over_an_answer_is_exact_for_a_cubic(steps: int) -> None:
    places, shares = grow(40.0, steps)
    mean = np.mean([(40.0 + step) ** 2 for step in range(steps)])
    assert float(shares @ places**2) == pytest.approx(mean, rel=1e-9)


def test_guesses_that_hold() -> None:
    assert_close(count_accepted(3, 0.5), 1.0 + 0.5 + 0.25 + 0.125)
    assert count_accepted(3, 1.0) == 4.0
    surface = Guessing(surface=Straight(token_s=0.0, seen_s=0.0), draft=Draft(guessed_tokens=1, acceptance=1.0))
    batch = Batch(sequences=1, prompt_tokens=10, output_tokens=21, accepted_tokens=surface.draft.accepted_tokens)
    (plain,), (guessed,) = (
        run_batches(surface.surface, [attrs.evolve(batch, accepted_tokens=1.0)]),
        run_batches(surface, [batch]),
    )
    assert_close(plain.request_s, 0.010 * 21)
    assert_close(guessed.request_s, 0.010 * 11)
    assert_close(guessed.between_s, 0.005)


def test_a_draft_works_before_each_step_and_on_each_prompt() -> None:
    chip, engine = load_catalogue().hardware["a100_sxm4_80gb"], find_stack("vllm")
    decoders = [find_decoder(name) for name in ("llama-3.1-8b", "llama-3.2-1b")]
    whole, small = (
        deploy_decoder(one, chip, engine, devices=count)
        for one, count in zip(filter(None, decoders), (2, 1), strict=True)
    )
    surface = Guessing(surface=whole, draft=Draft(guessed_tokens=3, acceptance=0.5, deployment=small))
    cost = surface.price(Passes.of([4.0, 1.0], tokens=[1.0, 500.0], context=[1000.0, 0.0]))
    verified = whole.price(Passes.of([4.0, 1.0], tokens=[4.0, 500.0], context=[1000.0, 0.0]))
    guess = small.price(Passes.of([4.0, 1.0], tokens=[1.0, 500.0], context=[1000.0, 0.0]))
    times = np.array([3.0, 1.0])
    assert cost.seconds == pytest.approx(verified.seconds + times * guess.seconds, rel=1e-12)
    idle = times * guess.seconds * chip.static_power.value  # of the device that the draft is not on
    assert cost.joules == pytest.approx(verified.joules + times * guess.joules + idle, rel=1e-12)


def deploy_stages(engine: str, stages: int, date: str = "") -> Deployment:
    """Return a model of 32 layers on A100s, without time of the host."""
    decoder = known_decoder("llama-3.1-8b")
    stack = attrs.evolve(find_stack(engine, date), coefficients={})
    chip = load_catalogue().hardware["a100_sxm4_80gb"]
    return deploy_decoder(decoder, chip, stack, stages=stages)


def test_stages_do_together_what_one_device_does() -> None:
    decoder = known_decoder("llama-3.1-8b")
    last, inner = (
        DecoderPass(cached=100, pipeline_devices=4),
        DecoderPass(cached=100, pipeline_devices=4, logits="none"),
    )
    whole, end, middle = (
        build_graph(one.cut(decoder), one, 2).operators for one in (DecoderPass(cached=100), last, inner)
    )
    counts = [sum(one.mac_count for one in some) for some in (whole, end, middle)]
    assert counts[0] == counts[1] + 3 * counts[2]
    sent = [one for one in middle if one.operation == "send"]
    assert len(sent) == 1
    assert (
        Room(deployment=deploy_stages("trt", 4)).cache(100) == Room(deployment=deploy_stages("trt", 1)).cache(100) / 4
    )


def test_one_more_layer_as_a_draft_shares_the_tables_of_the_model() -> None:
    """Llama 3.1 8B in bf16: 4096 x (2 x 4096 + 2 x 1024 + 3 x 14336) weights and two norms of 4096 in a layer."""
    one = deploy_stages("vllm", 1)
    layer = attrs.evolve(one.decoder, layers=one.decoder.layers[-1:])
    plain, drafted = (
        Room(deployment=one, draft=draft) for draft in (None, attrs.evolve(one, workloads=PassWorkloads(layer)))
    )
    assert drafted.weights - plain.weights == 2 * (4096 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096)


def test_stages_take_turns_or_parts_of_a_batch() -> None:
    """In turn: three inner stages and the last on all of 8 sequences. At once: each on 2, whose tokens take as long."""
    turns, parts = deploy_stages("trt", 4, "2024"), deploy_stages("vllm", 4)
    assert not turns.stack.fills_stages and parts.stack.fills_stages
    passes = Passes.of([8.0, 2.0], context=[512.0, 512.0])
    step = DecoderPass(cached=512, pipeline_devices=4, engine=turns.stack.id)
    asked = [(attrs.evolve(step, logits="none"), 8), (step, 8)]
    before, behind = (one.latency_fs or 0 for one in turns.evaluate(asked))
    assert_close(turns.price(passes).seconds[0], (3 * before + behind) / 1e15)
    few = parts.price(Passes.of([2.0], context=[512.0]))
    assert attrs.evolve(parts, stages=1).price(passes).seconds[0] < parts.price(passes).seconds[0] * 1.1
    eight = parts.price(passes)
    two = attrs.evolve(parts, stack=attrs.evolve(parts.stack, fills_stages=False)).price(
        Passes.of([2.0], context=[512.0])
    )
    assert_close(eight.seconds[0], two.seconds[0])
    assert few.seconds[0] <= two.seconds[0]
    idle = parts.waiting_w * two.seconds[0]
    assert_close(eight.joules[0] - idle, 4 * (two.joules[0] - idle))


def test_prompts_follow_one_another_through_stages() -> None:
    """Ten passes fill four stages: 13 times a quarter of one."""
    surface = deploy_stages("vllm", 4)
    one, ten = surface.price(Passes.of([1.0, 1.0], tokens=[512.0, 512.0], following=[1.0, 10.0])).seconds
    assert_close(10 * ten, one * 13 / 4)


def test_requests_in_flight_pay_for_each_prompt_once_in_an_answer() -> None:
    """Nine requests, each in nine passes, one with its prompt and eight with its answer: a prompt in each pass."""
    load = Load(in_flight=9, prompt_tokens=100, output_tokens=9, is_steady=True)
    served = simulate(StraightPass(sequence_s=0.0001), load, Limits(cache_tokens=10_000, step_tokens=1000))
    mean_s = 0.010 + 8 * 0.0001 + 100 * 0.0001
    assert_close(served.output_tokens_per_s, 9 / mean_s, rel=0.01)
    assert_close(served.power_w, 500.0)
    assert_close(served.energy_per_output_token_j, 500.0 * mean_s / 9, rel=0.01)
    # in flight = requests per second x time of a request (Little's law)
    assert_close(served.output_tokens_per_s / 9 * served.latency.mean, 9.0, rel=0.01)


def test_ranks_share_a_prompt() -> None:
    """Eight ranks with a chunk of 4,096 tokens compute as much as a rank with 512, and experts for all of them."""
    decoder = known_decoder("deepseek-v2-lite")
    one = deploy_decoder(
        decoder, load_catalogue().hardware["h200_sxm"], find_stack("trt"), devices=1, data_devices=8, expert_devices=8
    )
    step, count = DecoderPass(cached=512, chunk=512, data_devices=8, expert_devices=8, engine=one.stack.id), 64
    (wanted,) = one.evaluate([(step, count)])
    found = one.price(Passes.of([64.0], context=[512.0], chunk=[4096.0])).seconds
    assert_close(float(found[0]), (wanted.latency_fs or 0) / 1e15)


def test_a_prompt_waits_for_those_of_other_ranks() -> None:
    """Fifty steps in TensorRT-LLM, where each rank has its own sequences; none on one rank."""
    load = Load(in_flight=8, prompt_tokens=100, output_tokens=50)
    for ranks, steps in ((1, 0.0), (8, 50.0)):
        one = deploy_decoder(
            known_decoder("deepseek-v2-lite"),
            load_catalogue().hardware["h200_sxm"],
            find_stack("trt"),
            devices=8 // ranks,
            data_devices=ranks,
            expert_devices=8,
        )
        table, limits = open_deployment(one, load)
        assert_close(limits.request_s - one.stack.value("request"), steps * table.find_step(8, 150.0)[0], rel=1e-6)


@attrs.frozen(kw_only=True)
class Counted:
    """Surface that counts the passes that it prices."""

    surface: StraightPass
    resting_w: float = 100.0
    waiting_w: float = 100.0
    priced: list[int] = attrs.field(factory=list)

    def price(self, passes: Passes) -> Cost:
        """Return the cost of passes."""
        self.priced.append(passes.sequences.size)
        return self.surface.price(passes)


@pytest.mark.parametrize(
    ("sequences", "prompt", "alone"), [(1, 512, True), (64, 512, False), (64, 9000, True), (200, 40, False)]
)
def test_requests_in_flight_need_few_of_the_passes_of_any_load(sequences: int, prompt: int, alone: bool) -> None:
    """Where costs are linear in each size, few knots price a pass as many do."""
    surface = StraightPass(sequence_s=1e-4, cached_s=1e-8)
    few, many = Counted(surface=surface), Counted(surface=surface)
    longest = prompt + 256
    thin = choose_steady_knots(
        sequences=[sequences], contexts=(prompt, longest), prompts=[prompt], prompt_tokens=2048, alone=alone
    ).tabulate(few)
    table = choose_knots(sequences=sequences, context_tokens=longest, prompt_tokens=2048).tabulate(many)
    assert sum(few.priced) < 0.55 * sum(many.priced)
    for prompts in (0.0, 600.0, 2048.0):
        asked = (float(sequences), prompt + 100.0, prompts, 0.0)
        assert [float(one) for one in thin.step(*asked)] == pytest.approx(
            [float(one) for one in table.step(*asked)], rel=1e-6
        )


def test_a_table_reads_what_a_surface_says() -> None:
    surface = Straight()
    table = choose_knots(sequences=64, context_tokens=4096, prompt_tokens=2048).tabulate(surface)
    seconds, joules = table.step([1.0, 33.0, 0.0, 40.0], [100.0, 3000.0, 0.0, 500.0], [0.0, 0.0, 512.0, 512.0], 0.0)
    wanted = surface.price(
        Passes.of([1.0, 33.0, 0.0, 40.0], context=[100.0, 3000.0, 0.0, 500.0], chunk=[0.0, 0.0, 512.0, 512.0])
    )
    assert seconds == pytest.approx(wanted.seconds, rel=0.03)
    sizes = (33.0, 3000.0, 300.0, -60.0)
    assert table.find_mixed(*sizes) == pytest.approx([float(one) for one in table.step(*sizes)], rel=1e-12)
    step_s, step_j, longer, dearer, end = table.find_step(33.0, 3000.0)
    assert (step_s, step_j) == pytest.approx((seconds[1], joules[1]), rel=1e-12)
    assert table.find_step(33.0, end)[:2] == pytest.approx(
        (step_s + longer * (end - 3000.0), step_j + dearer * (end - 3000.0)), rel=1e-12
    )
    assert joules == pytest.approx(500.0 * seconds, rel=1e-9)


def test_engines_are_found_by_date() -> None:
    assert find_stack("vLLM", "2023-06").date == "2023"
    assert find_stack("vllm").date >= find_stack("vllm", "2024-06").date
    assert find_stack("trt").name == "tensorrt_llm"
    assert find_stack("deepspeed", "", "Gaudi 2").name == "optimum_habana"
    assert find_stack("deepspeed", "", "Ampere GA100").name == find_stack("deepspeed").name == "deepspeed_mii"
    assert all(find_stack(name).label for name in stack_names())
    # a row that states the year alone has the numbers of boards that were measured once in that year
    early, later = find_stack("llama.cpp", "2024"), find_stack("llama.cpp", "2024-05")
    for name, kind in (("layer_time", "Apple"), ("layer_time", "GDDR"), ("memory_rate", "GDDR"), ("unit_stream", "SM")):
        assert early.value(name, kind) == later.value(name, kind) > 0.0
    assert early.value("memory_rate", "HBM") < later.value("memory_rate", "HBM")
    with pytest.raises(UnknownNameError, match="vllm"):
        find_stack("vlm")


def test_an_engine_is_named_with_a_date() -> None:
    assert find_engine("vllm") == find_stack("vllm")
    assert find_engine("vLLM@2024-06").id == "vllm@2024"
    assert find_engine(find_engine("trt").id) == find_stack("tensorrt_llm")
    for text in ("vllm@2019", "vllm@v1", "vllm@", "vllm@2024-13"):
        with pytest.raises(UsageError, match="vllm@2024"):
            find_engine(text)


def test_an_engine_is_named_with_a_backend() -> None:
    newest = find_engine("llamacpp")
    for text in ("llamacpp@vulkan", "ollama@Vulkan", f"llamacpp@{newest.date}-vulkan"):
        found = find_engine(text)
        assert (found.id, found.release) == (f"llamacpp@{newest.date}-vulkan", f"llamacpp@vulkan {newest.date}")
        assert find_engine(found.id) == find_stack("llamacpp@vulkan") == attrs.evolve(newest, backend="vulkan")
    assert find_engine("llamacpp@2025-06-rocm").id == "llamacpp@2025-rocm"
    assert describe_engine("llamacpp@sycl").startswith("llama.cpp on SYCL, ")
    with pytest.raises(UnknownNameError, match="cuda"):
        find_engine("llamacpp@cud")
    for text, error in (("vllm@cuda", UnknownNameError), ("llamacpp@2019-cuda", UsageError)):
        with pytest.raises(error):
            find_engine(text)


def test_a_backend_has_its_own_numbers_and_those_of_no_backend_where_it_has_none() -> None:
    decoder, hardware = find_decoder("llama-3-8b"), find_hardware("arc_b580")
    assert decoder is not None
    workloads = PassWorkloads(decoder)

    def deploy(engine: str, weights: str = "q4_k_m") -> Deployment:
        return Deployment(
            workloads=workloads,
            hardware=hardware,
            stack=find_engine(engine),
            precision="bf16",
            weight_precision=weights,
        )

    plain, other = deploy("llamacpp"), deploy("llamacpp@vulkan")
    assert list_kinds(hardware, "vulkan") == ["Xe2_vulkan", "Xe2", "Xe2_vulkan", "Xe2", "gpu_vulkan", "gpu"]
    kinds = "GDDR_Xe2", "GDDR_Xe2_vulkan"
    rates = [one.stack.value("memory_rate", kind) for one, kind in zip((plain, other), kinds, strict=True)]
    bytes_per_s = [find_chips(one)[0].memory_bandwidth.value for one in (plain, other)]
    assert_close(bytes_per_s[0] / bytes_per_s[1], rates[0] / rates[1])
    assert rates[0] > 1.5 * rates[1]
    macs_per_s = [find_chips(one)[1].peaks["bf16"].rate.value for one in (plain, other)]
    assert_close(macs_per_s[1] / macs_per_s[0], other.stack.value("prompt_rate", "Xe2_vulkan"))
    for one, same in zip(find_chips(deploy("llamacpp@sycl")), find_chips(plain), strict=True):
        assert {name: each.value for name, each in one.coefficients.items()} == {
            name: each.value for name, each in same.coefficients.items()
        }
        assert (one.peaks, one.memory_bandwidth) == (same.peaks, same.memory_bandwidth)


def test_a_backend_may_run_experts_one_by_one() -> None:
    """SYCL launches 48 layers of 128 experts for a prompt, and layers alone for a token; Vulkan neither."""
    decoder, hardware = find_decoder("qwen3-30b-a3b"), find_hardware("arc_b580")
    assert decoder is not None
    plain = deploy_decoder(decoder, hardware, find_engine("llamacpp"))
    stack = plain.stack

    def launch(one: Deployment, tokens: float) -> tuple[float, float]:
        """Return the host seconds per layer and per expert."""
        (asked,) = one.ask(Passes.of([1.0], tokens=[tokens], context=[0.0 if tokens > 1.0 else 8.0]))
        own = one.put_under(asked).apply(hardware).coefficients
        layer, expert = (own.get(f"overhead.launch_{name}") for name in ("layer", "expert"))
        return (0.0 if layer is None else layer.value), (0.0 if expert is None else expert.value)

    assert launch(plain, 512.0) == (0.0, stack.value("host_expert", "prompt_Xe2"))
    assert launch(plain, 1.0) == (stack.value("host_layer", "experts_Xe2"), 0.0)
    assert min(stack.value("host_expert", "prompt_Xe2"), stack.value("host_layer", "experts_Xe2")) > 0.0
    vulkan = attrs.evolve(plain, stack=find_engine("llamacpp@vulkan"))
    assert launch(vulkan, 512.0) == launch(vulkan, 1.0) == (0.0, 0.0)


def test_the_host_works_beside_devices_and_between_passes() -> None:
    hardware = load_catalogue().hardware["a100_sxm4_80gb"]
    decoder = known_decoder("llama-3-8b")
    engine = find_stack("vllm", "2024")
    hosted = deploy_decoder(decoder, hardware, engine)
    plain = attrs.evolve(hosted, stack=attrs.evolve(engine, coefficients={}))
    passes = Passes.of(np.array([1.0, 64.0]), context=np.array([512.0, 512.0]))
    alone, together = plain.price(passes), hosted.price(passes)
    layers, sequences = (hosted.stack.value(name) for name in ("host_layer", "host_sequence"))
    wanted = (alone.seconds**2.5 + (32 * layers) ** 2.5) ** 0.4 + sequences * np.array([1.0, 64.0])
    assert together.seconds == pytest.approx(wanted, rel=1e-9)
    waiting = (together.seconds - alone.seconds) * hardware.static_power.value
    assert together.joules - alone.joules == pytest.approx(waiting, rel=1e-6)


@pytest.mark.parametrize("board", ["l4", "l40s", "rtx_4090"])
def test_passes_that_wait_for_a_host_stay_at_the_power_limit(board: str) -> None:
    hardware = find_hardware(board)
    hosted = deploy_decoder(known_decoder("llama-3-8b"), hardware, find_stack("vllm"))
    passes = Passes.of([1.0, 16.0, 64.0], context=[16.0, 512.0, 512.0], chunk=[256.0, 256.0, 2048.0])
    cost = hosted.price(passes)
    assert (cost.joules / cost.seconds).max() <= hardware.tdp.value * 1.001


def test_prompts_are_launched_layer_by_layer_and_choosing_takes_energy() -> None:
    hardware = load_catalogue().hardware["b200_sxm"]
    decoder = known_decoder("llama-3-8b")
    stack = attrs.evolve(find_stack("vllm", "2025"), kernels={})
    hosted = deploy_decoder(decoder, hardware, stack)
    bare = attrs.evolve(hosted, stack=attrs.evolve(stack, coefficients={}))
    gap, prompt, each = (stack.value("layer_time"), stack.value("host_layer", "prompt"), stack.value("host_sequence"))
    assert prompt > gap > stack.value("host_layer") == 0.0
    # a step of answers, a prompt of 64 tokens, a step with a piece of a prompt
    passes = Passes.of([8.0, 1.0, 8.0], tokens=[1.0, 64.0, 1.0], context=[512.0, 0.0, 512.0], chunk=[0.0, 0.0, 64.0])
    found, alone = hosted.price(passes), bare.price(passes)
    chosen = np.array([8.0, 1.0, 9.0])
    device, host = alone.seconds + 32 * gap, 32 * np.array([0.0, prompt, prompt])
    wanted = (device**2.5 + host**2.5) ** 0.4 + each * chosen
    assert found.seconds == pytest.approx(wanted, rel=1e-9)
    spent = (found.seconds - alone.seconds) * hardware.static_power.value
    spent += stack.value("sample_energy") * 128_256 * chosen
    spent += stack.value("gap_power") * hardware.tdp.value * (found.seconds - alone.seconds)
    assert found.joules - alone.joules == pytest.approx(spent, rel=1e-6)


def test_kernels_of_an_engine_change_the_time_of_devices_by_model_and_microarchitecture() -> None:
    stack, targets = find_stack("sglang"), load_catalogue().hardware
    assert stack.value("device_time", "experts_CDNA3") > 1.0 > stack.value("device_time", "experts_HopperGH100")
    passes = Passes.of([8.0], context=[512.0])
    for name, chip, factor in (
        ("llama-3-8b", "h200_sxm", 1.0),
        ("mixtral-8x7b", "h200_sxm", stack.value("device_time", "experts_HopperGH100")),
        ("mixtral-8x7b", "b200_sxm", 1.0),
        ("mixtral-8x7b", "mi325x", stack.value("device_time", "experts_CDNA3")),
    ):
        decoder = known_decoder(name)
        one = deploy_decoder(decoder, targets[chip], stack, devices=2)
        bare = attrs.evolve(one, stack=attrs.evolve(stack, coefficients={}))
        wanted = factor * float(bare.price(passes).seconds[0]) + 32 * stack.value("layer_time")
        found = float(one.price(passes).seconds[0])
        if factor >= 1.0:
            assert_close(found, wanted)
        else:  # a factor makes no kernel faster than its roofline
            assert (
                wanted
                < found
                < float(attrs.evolve(one, stack=attrs.evolve(stack, coefficients={})).price(passes).seconds[0])
            )


def test_expert_parallel_devices_wait_for_the_busiest_and_may_read_all_their_experts() -> None:
    decoder, chip, stack = find_decoder("qwen3-30b-a3b"), find_hardware("h100_sxm5"), find_stack("vllm", "2025")
    assert decoder is not None
    numbers = {name: one for name, one in stack.coefficients.items() if name == "expert_wait"}
    stack = attrs.evolve(stack, coefficients=numbers)
    four = deploy_decoder(decoder, chip, stack, devices=4, expert_devices=4)
    at_once = attrs.evolve(four, stack=attrs.evolve(stack, coefficients={}))
    passes = Passes.of(32.0, context=np.array([1000.0]))
    more_s = four.price(passes).seconds - at_once.price(passes).seconds
    # 48 layers with experts; 32 tokens wait for 1 - 1/e of the longest time
    assert_close(float(more_s[0]), 48 * 1e-4 * -math.expm1(-1.0))
    narrow = attrs.evolve(four, precision="fp8")
    alone = attrs.evolve(narrow, expert_devices=1)
    assert [one.ask(passes)[0][0].routing for one in (four, narrow, alone)] == ["", "all", ""]


def test_prompts_of_mixtures_may_have_a_rate_of_their_own() -> None:
    stack, chip = find_stack("llama.cpp"), load_catalogue().hardware["ryzen_ai_max_395"]
    for name, kind in (("llama-3-8b", "RDNA"), ("mixtral-8x7b", "experts_RDNA")):
        decoder = known_decoder(name)
        one = deploy_decoder(decoder, chip, stack, precision="fp16")
        reached, peak = find_chips(one)[1].peaks["fp16"].rate.value, chip.peaks["fp16"].rate.value
        assert_close(reached / peak, stack.value("compute_rate", kind))


def test_products_of_few_rows_pay_for_their_own_rows_alone_where_tiles_fit_them() -> None:
    decoder, chip = find_decoder("llama-2-7b"), load_catalogue().hardware["ryzen_ai_max_395"]
    assert decoder is not None
    stack = find_stack("llama.cpp", "2025-08")
    one = deploy_decoder(decoder, chip, stack, precision="fp16", weight_precision="q4_0")
    rest = {name: value for name, value in stack.coefficients.items() if name != "tiled_rows.RDNA"}
    full = attrs.evolve(one, stack=attrs.evolve(stack, coefficients=rest))
    passes = Passes.of(1.0, tokens=[8.0, 16.0, 32.0, 64.0])
    (same, few, several, many), (before, *padded, after) = (each.price(passes).seconds.tolist() for each in (one, full))
    assert (same, many) == (before, after)
    # 6.6 billion MACs a row at a tenth of 59.4 TFLOP/s take 2.2 ms: 36 ms of 16 rows, 71 ms of 32
    assert few > 0.036 and several > 0.071
    assert_close(several - few, 0.036, rel=0.2)
    assert min(padded) > 1.9 * several


def test_experts_of_several_tokens_read_their_weights_slower_than_those_of_one() -> None:
    decoder, chip = find_decoder("qwen3-30b-a3b"), load_catalogue().hardware["ryzen_ai_max_395"]
    assert decoder is not None
    stack = find_stack("llama.cpp", "2025-08")
    rest = {name: value for name, value in stack.coefficients.items() if name != "expert_stream.RDNA"}
    one = deploy_decoder(decoder, chip, stack, precision="fp16", weight_precision="q8_0")
    fast = attrs.evolve(one, stack=attrs.evolve(stack, coefficients=rest))
    passes = Passes.of([1.0, 8.0], context=100.0)
    (alone, several), (same, sooner) = (each.price(passes).seconds.tolist() for each in (one, fast))
    assert alone == same
    # 8 tokens choose 128 (1 - (15/16)^8) = 51.6 of 128 experts: 11.7 GB of the 29 GB at 8.5 bits, two more times
    # at some 200 GB/s
    assert_close(several - sooner, 2.0 * 11.7 / 200.0, rel=0.15)


def test_units_stream_no_more_than_their_share_and_layers_take_time_beside_kernels() -> None:
    stack, targets = find_stack("llama.cpp"), load_catalogue().hardware
    decoder = known_decoder("llama-3-8b")
    a100, ada = (deploy_decoder(decoder, targets[name], stack) for name in ("a100_pcie_80gb", "l40s"))
    units = stack.value("unit_stream", "SM") * 108 * targets["a100_pcie_80gb"].clock.value
    bandwidth = targets["a100_pcie_80gb"].memory_bandwidth.value
    assert_close(reach_bandwidth(find_chips(a100)[0]), (units**-4.0 + bandwidth**-4.0) ** -0.25)
    assert reach_bandwidth(find_chips(ada)[0]) > 0.99 * targets["l40s"].memory_bandwidth.value
    chip = targets["mi300x"]
    instinct = deploy_decoder(decoder, chip, stack)
    units = stack.value("unit_stream", "CDNA") * 304 * chip.clock.value
    assert_close(reach_bandwidth(find_chips(instinct)[0]), (units**-4.0 + chip.memory_bandwidth.value**-4.0) ** -0.25)
    kept = {name: value for name, value in stack.coefficients.items() if not name.startswith("layer_time")}
    bare = attrs.evolve(a100, stack=attrs.evolve(stack, coefficients=kept))
    passes = Passes.of([1.0], context=[512.0])
    more = a100.price(passes).seconds[0] - bare.price(passes).seconds[0]
    assert_close(float(more), 32 * stack.value("layer_time", "HBM"))


def test_a_recurrent_layer_adds_time_to_a_pass_not_to_each_sequence() -> None:
    decoder, hardware = find_decoder("qwen3.5-27b"), load_catalogue().hardware["gb10"]
    assert decoder is not None and decoder.recurrent_count == 48
    stack = find_stack("llamacpp")
    kept = {name: value for name, value in stack.coefficients.items() if name != "recurrent_time"}
    one = deploy_decoder(decoder, hardware, stack)
    bare = attrs.evolve(one, stack=attrs.evolve(stack, coefficients=kept))
    passes = Passes.of([1.0, 4.0], context=64.0)
    more = one.price(passes).seconds - bare.price(passes).seconds
    for seconds in more.tolist():
        assert_close(seconds, 48 * stack.value("recurrent_time"), rel=1e-6)


def test_prompts_of_gated_delta_layers_are_launched_kernel_by_kernel_and_their_states_have_a_pool() -> None:
    decoder, hardware, stack = find_decoder("qwen3.6-27b"), find_hardware("h200_sxm"), find_stack("sglang", "2026-06")
    assert decoder is not None and decoder.delta_count == 48
    kept = {name: value for name, value in stack.coefficients.items() if name == "host_delta"}
    one = deploy_decoder(decoder, hardware, attrs.evolve(stack, coefficients=kept))
    bare = attrs.evolve(one, stack=attrs.evolve(stack, coefficients={}))
    passes = Passes.of([1.0, 1.0], tokens=[512.0, 1.0], context=[0.0, 512.0])
    own, alone = one.price(passes).seconds, bare.price(passes).seconds
    # less, as a device that waits is further from its power limit
    assert_close(float(own[0]), (float(alone[0]) ** 2.5 + (48 * 0.0022) ** 2.5) ** 0.4, rel=0.02)
    assert own[1] == alone[1]
    # 48 layers of 48 heads with 128 x 128 fp32 values, and three tokens of 10,240 channels in bf16: 154 MB
    served = Room(deployment=attrs.evolve(one, stack=stack))
    state = 48 * (48 * 128 * 128 * 4 + 3 * 10_240 * 2)
    assert_close(served.states, 0.095 * served.free / state)
    assert_close(served.sequences(100.0, 100.0), served.states)
    assert math.isinf(Room(deployment=bare).states)


def test_layers_may_take_time_at_one_precision_alone() -> None:
    decoder, chip, stack = find_decoder("llama-3-8b"), find_hardware("mi300x"), find_stack("sglang", "2026-02")
    assert decoder is not None
    without = attrs.evolve(
        stack,
        coefficients={
            **stack.coefficients,
            "layer_time.CDNA3_fp8": Quantity(value=0.0, unit="s", basis="assumed", source="test"),
        },
    )
    passes = Passes.of([1.0], context=[512.0])
    for precision, is_slower in (("bf16", False), ("fp8", True)):
        own, other = (
            deploy_decoder(decoder, chip, one, precision=precision).price(passes).seconds[0] for one in (stack, without)
        )
        assert bool(own > other) == is_slower


def test_weights_of_three_bits_stream_slower_than_others() -> None:
    decoder, chip = find_decoder("qwen3-8b"), load_catalogue().hardware["rtx_3090"]
    assert decoder is not None
    stack = find_stack("llamacpp")
    assert stack.value("unit_stream", "SM_q3_k", "SM") < stack.value("unit_stream", "SM_q4_k", "SM")
    for weights, kind in (("q3_k_xl", "SM_q3_k"), ("q4_k_m", "SM"), ("", "SM")):
        one = deploy_decoder(decoder, chip, stack, weight_precision=weights)
        units = stack.value("unit_stream", kind) * chip.unit_count.value * chip.clock.value
        rate = (units**-4.0 + chip.memory_bandwidth.value**-4.0) ** -0.25
        assert_close(reach_bandwidth(find_chips(one)[0]), rate)


def test_states_and_slow_processors_add_to_each_sequence() -> None:
    stack, decoder, chip = find_stack("vllm"), find_decoder("nemotron-nano-9b-v2"), find_hardware("h100_sxm5")
    assert decoder is not None and decoder.recurrent_count > 20
    one = deploy_decoder(decoder, chip, stack)
    kept = {name: value for name, value in stack.coefficients.items() if name != "state_time"}
    plain = attrs.evolve(one, stack=attrs.evolve(stack, coefficients=kept))
    own, other = (each.price(Passes.of([8.0], context=[512.0])).seconds[0] for each in (one, plain))
    assert_close(float(own - other), 8 * decoder.recurrent_count * stack.value("state_time"), rel=1e-6)
    general = stack.value("host_sequence")
    assert stack.value("host_sequence", "GA10B", "Ampere") > 10 * general == 10 * stack.value("host_sequence", "GH100")


def test_products_of_few_rows_stream_past_the_matrix() -> None:
    hardware = load_catalogue().hardware["gb10"]
    decoder = known_decoder("llama-3-8b")
    tiled = deploy_decoder(decoder, hardware, find_stack("sglang"))
    streamed = attrs.evolve(tiled, stack=attrs.evolve(tiled.stack, streams=True))
    one, many = Passes.of([1.0], context=64.0), Passes.of([9.0], context=64.0)
    matrices = 2 * (8.03e9 - 128_256 * 4096)
    slowest, quickest = (float(each.price(one).seconds[0]) for each in (tiled, streamed))
    # a matrix at its memory's rate, which no tile makes longer
    assert matrices / (0.95 * 273e9) < quickest < min(slowest, 1.1 * matrices / (0.95 * 273e9))
    assert streamed.price(many).seconds == pytest.approx(tiled.price(many).seconds, rel=1e-12)


@pytest.mark.parametrize(("engine", "runtime"), [("transformers", "graph"), ("vllm", "engine")])
def test_bitsandbytes_writes_the_weights_of_several_rows_to_memory(engine: str, runtime: RuntimeName) -> None:
    hardware = load_catalogue().hardware["rtx_5090"]
    decoder = known_decoder("llama-3-8b")
    own = attrs.evolve(find_stack(engine), runtime=runtime, coefficients={})
    stored = deploy_decoder(decoder, hardware, own, weight_precision="nf4")
    seconds = stored.price(Passes.of([1.0, 2.0], context=64.0)).seconds
    # 7 G weights of 16 bits are written and read again at 1.79 TB/s, which takes 15.6 ms; small ones stay in the L2
    matrices = 2 * (8.03e9 - 2 * 128_256 * 4096)
    assert_close(float(seconds[1] - seconds[0]), 2 * matrices / 1.792e12, rel=0.2)


def test_packed_weights_stream_as_those_of_16_bits_until_units_have_too_many_rows() -> None:
    """AWQ on A10: close to 3.87x the speed of 16 bits for few rows (README of Marlin), the same speed for many."""
    hardware = load_catalogue().hardware["a10"]
    decoder = known_decoder("llama-2-13b")
    own = attrs.evolve(find_stack("vllm"), coefficients={})
    wide = deploy_decoder(decoder, hardware, own)
    packed = attrs.evolve(wide, weight_precision="awq")
    passes = Passes.of([1.0, 16.0, 1.0], tokens=[1.0, 1.0, 4096.0])
    seconds, others = packed.price(passes).seconds, wide.price(passes).seconds
    # weights take 4.156 of 16 bits; 160 products start, and the head keeps 16 bits
    assert 3.0 < others[0] / seconds[0] < 3.85
    assert 3.0 < others[1] / seconds[1] < 3.85
    # 500 MACs of 72 units at 1.695 GHz, of which 512 are the peak
    assert seconds[2] > 12.7e9 * 4096 / (500 * 72 * 1.695e9)
    assert 0.85 < others[2] / seconds[2] < 1.2


def test_an_engine_has_a_kernel_for_packed_weights_on_some_microarchitectures() -> None:
    decoder = known_decoder("llama-3-8b")
    workloads = PassWorkloads(decoder)
    prompt = Passes.of([1.0], tokens=4096.0)

    def time(chip: str, weights: str, engine: str) -> float:
        one = Deployment(
            workloads=workloads,
            hardware=find_hardware(chip),
            stack=find_engine(engine),
            precision="bf16",
            weight_precision=weights,
        )
        return float(one.price(prompt).seconds[0])

    # Hopper multiplies GPTQ by its own instructions, and AWQ by those of Ampere
    assert time("h100_sxm5", "gptq", "vllm") < 0.6 * time("h100_sxm5", "awq", "vllm")
    assert_close(time("h100_sxm5", "gptq", "vllm@2024"), time("h100_sxm5", "awq", "vllm@2024"), rel=0.01)
    # RDNA 4 unpacks at 137 MACs of 64 units at 2.92 GHz, a quarter of their peak
    assert time("radeon_ai_pro_r9700", "awq", "vllm") > 6.98e9 * 4096 / (137 * 64 * 2.92e9)
    assert time("radeon_ai_pro_r9700", "awq", "vllm") > 2.0 * time("radeon_ai_pro_r9700", "", "vllm")
    # Ampere has no fp8 products: its prompts are as slow as those of 4-bit weights; those of Hopper are in fp8
    ampere = [time("a100_sxm4_80gb", weights, "vllm") for weights in ("", "awq", "fp8_block")]
    assert ampere[2] == pytest.approx(ampere[1], rel=0.02) and ampere[2] > 1.5 * ampere[0]
    # AMD's boards, 3-bit codes and other engines have no such kernel
    for chip, weights, engine in (("mi300x", "awq", "vllm"), ("a100_sxm4_80gb", "awq3", "vllm")):
        plain = attrs.evolve(find_engine(engine), packed={})
        one = Deployment(
            workloads=workloads, hardware=find_hardware(chip), stack=plain, precision="bf16", weight_precision=weights
        )
        assert time(chip, weights, engine) == float(one.price(prompt).seconds[0])


def test_compiled_passes_attend_over_all_that_a_sequence_may_become() -> None:
    hardware = load_catalogue().hardware["inferentia2"]
    decoder = known_decoder("llama-3-8b")
    free = deploy_decoder(decoder, hardware, find_stack("neuronx"))
    passes = Passes.of(1.0, context=[16.0, 4095.0, 8000.0])
    early, late, longer = attrs.evolve(free, compiled_tokens=4096.0).price(passes).seconds.tolist()
    least, *rest = free.price(passes).seconds.tolist()
    assert (late, longer) == tuple(rest)
    assert least < early == late


def test_a_share_of_the_products_may_be_that_of_a_microarchitecture() -> None:
    targets = load_catalogue().hardware
    decoder = known_decoder("llama-3-8b")
    stack = find_stack("llama.cpp", "2025-08")
    for name, rate, of in (
        ("ryzen_ai_max_395", stack.value("compute_rate", "RDNA"), "fp16"),
        ("apple_m3_max", stack.value("compute_rate", "Apple"), "fp16"),
        ("rtx_4090", stack.value("integer_rate"), "int8"),
        ("h100_pcie", stack.value("integer_rate", "Hopper"), "int8"),
    ):
        one = deploy_decoder(decoder, targets[name], stack)
        few, many = find_chips(one)
        assert_close(many.peaks["fp16"].rate.value, rate * few.peaks[of].rate.value)
    # weights of 16 bits are not dequantized, those of 4 bits are
    one = attrs.evolve(one, stack=find_stack("llama.cpp", "2024"))
    four = attrs.evolve(one, weight_precision="q4_0")
    reached = [find_chips(each)[1].peaks["fp16"].rate.value for each in (one, four)]
    assert_close(reached[0] / reached[1], 1.38)
    # Pascal has no products of 16 bits: DP4A multiplies the weights, 1,024 operations a clock and SM for 256 of fp32
    pascal = deploy_decoder(decoder, find_hardware("quadro_p5000"), stack, precision="fp32")
    few, many = find_chips(pascal)
    assert_close(many.peaks["fp32"].rate.value, 4.0 * stack.value("integer_rate") * few.peaks["fp32"].rate.value)


def test_the_rest_of_a_prompt_after_a_cached_prefix_samples_once() -> None:
    decoder = known_decoder("llama-3-8b")
    one = deploy_decoder(decoder, load_catalogue().hardware["l4"], find_stack("vllm"))
    (rest, _), (draft, _) = one.ask(Passes.of([0.0, 1.0], tokens=[1.0, 8.0], context=64.0, chunk=[8.0, 0.0]))
    assert (rest.tokens, rest.logits, draft.tokens, draft.logits) == (8, "last", 8, "all")


def test_what_a_row_says_of_weights_becomes_a_format() -> None:
    targets = load_catalogue().hardware
    row = ServingRow(source="us", hardware="gb10", model="gpt-oss-20b", scope="decode_step")

    def choose(
        name: str, engine: str, weights: str = "", activations: str = "", byte_count: float | None = None
    ) -> tuple[str, str]:
        told = attrs.evolve(row, weight_precision=weights, activation_precision=activations, file_bytes=byte_count)
        return choose_precisions(told, targets[name], find_stack(engine))

    assert choose("gb10", "llama.cpp", weights="gguf_mxfp4") == ("bf16", "mxfp4+q8_0")
    # 19.1 billion weights of experts at 4.25 bits are 10.15 GB, the 1.2 billion that products multiply beside them
    # at 12 bits 1.80, a table of 0.58 billion at 16 bits 1.16
    precision, weights = choose("gb10", "llama.cpp", weights="gguf_mxfp4", byte_count=13_110_000_000.0)
    assert precision == "bf16"
    assert_close(float(weights.removeprefix("mxfp4+").removesuffix("bit")), 12.0, rel=0.05)
    assert choose("wormhole_n150", "tt_metal")[1] == find_stack("tt_metal").weights
    assert choose("wormhole_n150", "tt_metal", weights="bf16")[1] == ""
    # narrow weights of floating-point activations are made wide ahead, those of integers are not
    assert choose("snapdragon_x_elite_npu", "genie", weights="int4")[1] == ""
    assert choose("snapdragon_x_elite_npu", "genie", weights="int4", activations="int16")[1] == "int4"


@pytest.mark.parametrize(
    ("engine", "chip", "weights", "stated", "precision"),
    [
        ("vllm@2024", "b200_sxm", "nvfp4", "fp4", "bf16"),
        ("vllm@2025-06", "b200_sxm", "nvfp4", "fp4", "fp4"),
        ("vllm@2025-06", "rtx_5090", "nvfp4", "fp4", "bf16"),
        ("vllm@2025-12", "rtx_5090", "nvfp4", "fp4", "fp4"),
        ("vllm", "rtx_5090", "nvfp4", "", "bf16"),  # activations of 16 bits
        ("vllm", "h200_sxm", "nvfp4", "fp4", "bf16"),
        ("vllm", "b200_sxm", "mxfp4", "", "bf16"),
        ("sglang", "b200_sxm", "mxfp4", "", "fp8"),
        ("tensorrt_llm", "rtx_5090", "mxfp4", "", "bf16"),
        ("tensorrt_llm", "gb300", "fp4", "fp4", "fp4"),
        ("sglang", "mi355x", "fp4", "fp4", "fp4"),
        ("sglang", "mi355x", "mxfp4", "", "bf16"),
        ("llama.cpp", "rtx_5090", "mxfp4", "", "bf16"),
    ],
)
def test_an_engine_multiplies_fp4_where_it_has_the_kernels(
    engine: str, chip: str, weights: str, stated: str, precision: str
) -> None:
    hardware, stack = find_hardware(chip), find_engine(engine)
    published = Published(method="modelopt", weights=weights, precision=stated)
    decoder = attrs.evolve(known_decoder("llama-3-8b"), published=published)
    assert decoder.choose_precision(hardware, stack) == (precision, weights)
    row = ServingRow(source="us", hardware=chip, model="m", scope="decode_step", weight_precision=weights)
    for named in ("", "fp4", "nvfp4", "mxfp4"):  # tables name activations by the weights
        told = attrs.evolve(row, activation_precision=named)
        assert choose_precisions(told, hardware, stack, published)[0] == precision
    for named in ("fp8", "mxfp8", "16"):
        told = attrs.evolve(row, activation_precision=named)
        takes = "fp8" if named.endswith("fp8") and "fp8" in hardware.peaks else "bf16"
        assert choose_precisions(told, hardware, stack)[0] == takes
    with pytest.raises(UsageError):
        choose_precisions(attrs.evolve(row, activation_precision="fp9"), hardware, stack, published)


def test_nvidias_engine_keeps_the_cache_of_narrow_checkpoints_in_fp8() -> None:
    def cache(weights: str, date: str, stated: str = "") -> str:
        row = ServingRow(
            source="us", hardware="b200_sxm", model="llama-3-8b", scope="decode_step", engine="trt", date=date,
            weight_precision=weights, cache_precision=stated,
        )  # fmt: skip
        return find_deployment(row, find_hardware("b200_sxm")).cache

    assert [cache("nvfp4", "2025-06"), cache("fp8", "2025-06"), cache("bf16", "2025-06")] == ["fp8", "fp8", ""]
    assert [cache("fp8", "2024"), cache("nvfp4", "2025-06", "bf16")] == ["bf16", "bf16"]


def test_latent_attention_stays_at_16_bits_in_checkpoints_converted_to_fp4() -> None:
    # 61 layers of 187 million weights in attention, and two tables, take 11.5 bits more each than at 4.5
    def weigh(model: str, weights: str) -> float:
        row = ServingRow(source="us", hardware="b200_sxm", model=model, scope="decode_step", weight_precision=weights)
        return Room(deployment=find_deployment(row, find_hardware("b200_sxm"))).weights

    whole = 671e9 * 4.5 / 8
    assert_close(
        weigh("deepseek-r1", "nvfp4") - whole, 61 * 187e6 * (16 - 4.5) / 8 + 2 * 129_280 * 7168 * 1.4, rel=0.15
    )
    assert weigh("llama-3-8b", "nvfp4") < 0.4 * weigh("llama-3-8b", "bf16")


def test_devices_that_wait_for_the_busiest_draw_a_share_of_their_limit() -> None:
    # 48 layers with experts, for 1 - 1/e of 0.1 ms with 32 tokens, at 0.5 of 700 W above static power on two boards
    decoder, chip, stack = known_decoder("qwen3-30b-a3b"), find_hardware("h100_sxm5"), find_stack("vllm", "2025")
    kept = {name: one for name, one in stack.coefficients.items() if name in ("expert_wait", "gap_power.experts")}
    two = deploy_decoder(decoder, chip, attrs.evolve(stack, coefficients=kept), devices=2, expert_devices=2)
    bare = attrs.evolve(two, stack=attrs.evolve(stack, coefficients={}))
    passes = Passes.of(32.0, context=np.array([1000.0]))
    wait_s = 48 * 1e-4 * -math.expm1(-1.0)
    found = float(two.price(passes).joules[0] - bare.price(passes).joules[0])
    resting_w = chip.static_power.value + two.links_w
    assert_close(found, 2 * wait_s * (0.5 * 700.0 + resting_w), rel=0.02)


def test_room_is_what_weights_and_activations_leave() -> None:
    hardware = load_catalogue().hardware["a100_sxm4_80gb"]
    decoder = known_decoder("llama-3-8b")
    one = deploy_decoder(decoder, hardware, find_stack("tensorrt_llm", "2024"))
    room, half = Room(deployment=one), Room(deployment=attrs.evolve(one, devices=2))
    assert_close(room.weights, 2 * 8.03e9, rel=0.01)
    assert_close(room.cache(1000), 32 * 2 * 8 * 128 * 2 * 1000)
    assert_close(room.sequences(1000, 1000), room.free / room.cache(2000))
    assert_close(half.cache(1000), room.cache(1000) / 2)
    assert half.weights < 0.55 * room.weights
    # of 8,192 tokens the gate and the other product, 14,336 each, the largest that live at once with what is added to
    assert_close(room.workspace, 8192 * (2 * 14336 + 4096) * 2, rel=0.01)
    assert room.capacity - half.capacity == 0.5e9
    newer = Room(deployment=attrs.evolve(one, stack=find_stack("tensorrt_llm", "2025")))
    assert_close(newer.capacity, 1.068 * 80e9 - 0.5e9, rel=1e-6)
    assert_close(newer.free, 0.9 * (newer.capacity - newer.weights - newer.workspace))
    # a tenth of what is left stays free; all of it would be more than the nominal 80 GB hold
    assert_close(newer.usable, newer.capacity - 0.1 * newer.free / 0.9)
    assert newer.usable < 80e9 < newer.capacity
    most = room.tokens(4)
    assert most is not None
    assert 4 * room.cache(most) <= room.free < 4 * room.cache(most + 1) or most == decoder.context_length


def test_rows_are_predicted_or_told_why_not() -> None:
    hardware = load_catalogue().hardware["a100_sxm4_80gb"]
    row = ServingRow(
        source="us",
        hardware=hardware.id,
        model="llama-3-8b",
        scope="offline",
        engine="vllm",
        date="2024",
        weight_precision="fp16",
        prompt_tokens=128,
        output_tokens=128,
        batch=8,
    )
    steady_row = attrs.evolve(row, scope="steady_serving")
    rows = [
        row,
        steady_row,
        attrs.evolve(row, speculative="mtp"),
        attrs.evolve(row, phases="separate"),
        attrs.evolve(row, engine="nobody"),
        attrs.evolve(row, model="nothing-7b"),
        attrs.evolve(row, batch=1, prompt_tokens=900_000),
    ]
    batch, steady, *refused = predict(rows, hardware)
    assert isinstance(batch, Prediction)
    assert isinstance(steady, Prediction)
    assert batch.request_latency_s is not None
    assert batch.energy_per_request_j is not None
    assert_close(batch.output_tokens_per_s, 8 * 128 / batch.request_latency_s)
    assert_close(batch.power_w, batch.energy_per_request_j * 8 / batch.request_latency_s)
    codes = [one.code for one in refused if isinstance(one, Reason)]
    assert codes == ["acceptance", "disaggregated", "other", "unknown_model", "sequence_memory"]
    # guessed tokens change no prompt
    plain = attrs.evolve(row, scope="prefill_step")
    prompt, guessed = predict([plain, attrs.evolve(plain, speculative="mtp")], hardware)
    assert prompt == guessed
    # a load alone that does not fit
    (alone,) = predict([attrs.evolve(steady_row, prompt_tokens=900_000)], hardware)
    assert isinstance(alone, Reason)
    assert alone.code == "sequence_memory"


def test_replicas_of_a_dense_model_share_its_requests() -> None:
    row = ServingRow(
        source="us", hardware="rtx_4090", model="llama-3.1-8b", scope="steady_serving", engine="vllm", batch=8.0,
        prompt_tokens=512.0, output_tokens=128.0, device_count=1,
    )  # fmt: skip
    two = attrs.evolve(row, batch=16.0, device_count=2, data_parallel=2)
    one, both = predict([row, two], find_hardware("rtx_4090"))
    assert isinstance(one, Prediction)
    assert isinstance(both, Prediction)
    assert both.inter_token_latency_s == one.inter_token_latency_s
    assert both.energy_per_output_token_j == one.energy_per_output_token_j
    for whole, part in ((both.output_tokens_per_s, one.output_tokens_per_s), (both.power_w, one.power_w)):
        assert whole == 2.0 * (part or 0.0)
    # a burst of 16 requests is one of 8 on each
    burst = attrs.evolve(row, client="together", requests=8.0)
    alone, halves = predict([burst, attrs.evolve(two, client="together", requests=16.0)], find_hardware("rtx_4090"))
    assert isinstance(alone, Prediction)
    assert isinstance(halves, Prediction)
    assert halves.time_to_first_token_s == alone.time_to_first_token_s


@pytest.mark.parametrize(("engine", "own", "shared"), [("vllm", 8, 8), ("trt", 8, 8), ("sglang", 8, 1)])
def test_ranks_of_a_row_have_a_budget_each_or_share_one(engine: str, own: int, shared: int) -> None:
    """SGLang divides the tokens of a pass among ranks, other engines give as many to each."""
    chip, stack = find_hardware("h200_sxm"), find_stack(engine)
    row = ServingRow(
        source="us", hardware=chip.id, model="deepseek-r1", scope="steady_serving", engine=engine, batch=64.0,
        device_count=8, data_parallel=8, expert_parallel=8, weight_precision="fp8_block",
    )  # fmt: skip
    deployment = find_deployment(row, chip)
    assert deployment.step_tokens == shared * stack.limit("step_tokens", chip)
    assert deployment.sequence_limit == own * stack.limit("sequence_limit", chip)


@pytest.mark.parametrize("name", ["dynamo-sglang", "mori-sglang", "atom", "dynamo-trt"])
def test_servers_under_another_front_are_those_of_their_engine(name: str) -> None:
    assert find_stack(name).name == ("tensorrt_llm" if name.endswith("trt") else "sglang")
    assert "(" in describe_engine(name)


MLX = {
    ("apple_m3_ultra", "llama-3.1-8b", "8.5bit", 1, 1024.0): (0.6715, 0.01354),
    ("apple_m3_ultra", "llama-3.1-405b", "4.5bit", 1, 16384.0): (654.1, 0.369),
    ("apple_m3_ultra", "mixtral-8x7b", "6.5bit", 1, 16384.0): (23.73, 0.02273),
    ("apple_m3_ultra", "llama-3.1-405b", "4.5bit", 2, 16384.0): (340.6, 0.2571),
    ("apple_m3_ultra", "kimi-k2.5", "4.5bit", 4, 16384.0): (28.91, 0.06702),
}
"""(Chip, model, weights, devices, tokens before) -> seconds of the prompt and of a token with MLX.

Source: guruswami-ai/mlx-benchmarks at 2e44a7c.
"""


@pytest.mark.parametrize("case", MLX)
def test_mlx_on_one_to_four_computers(case: tuple[str, str, str, int, float]) -> None:
    chip, model, weights, devices, context = case
    row = ServingRow(
        source="us", hardware=chip, model=model, scope="decode_step", engine="mlx", weight_precision=weights,
        device_count=devices, tensor_parallel=devices, prompt_tokens=context, output_tokens=1.0,
    )  # fmt: skip
    (found,) = predict([row], find_hardware(chip))
    assert isinstance(found, Prediction)
    first_s, between_s = MLX[case]
    assert_close(found.time_to_first_token_s, first_s, rel=0.15)
    assert_close(found.inter_token_latency_s, between_s, rel=0.15)


def test_stages_of_mlx_work_on_a_prompt_at_once() -> None:
    """Eight passes of 2,048 tokens on two stages take 9 halves of one; on the tokens of a step they take turns."""
    row = ServingRow(
        source="us", hardware="apple_m3_ultra", model="qwen2.5-32b", scope="decode_step", engine="mlx",
        weight_precision="4.5bit", device_count=1, prompt_tokens=16384.0, output_tokens=1.0,
    )  # fmt: skip
    two = attrs.evolve(row, device_count=2, tensor_parallel=1, pipeline_parallel=2)
    one, both = predict([row, two], find_hardware("apple_m3_ultra"))
    assert isinstance(one, Prediction)
    assert isinstance(both, Prediction)
    assert_close((both.time_to_first_token_s or 0.0) / (one.time_to_first_token_s or 0.0), 9 / 16, rel=0.02)
    assert_close((both.inter_token_latency_s or 0.0) / (one.inter_token_latency_s or 0.0), 1.0, rel=0.05)


def test_a_chip_under_an_engine_keeps_the_evidence() -> None:
    stack = find_stack("vllm", "2023")  # host time of the engine, spent on the chip
    chip = UnderEngine(stack=stack, precision="fp16").apply(find_hardware("a100_sxm4_80gb"))
    assert chip.coefficients["overhead.launch_layer"].evidence == Evidence(sources=1, boards=1, models=2)
