"""A deployment under a load of requests: what is looked up at knots is what its passes take."""

from __future__ import annotations

from functools import cache

import attrs
import pytest
from engine_chip import find_chips

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.memory import find_system, find_usable
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.load import CLIENT_S, Load
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.predict import find_deployment, predict
from joulemap.wing.llm.serving.serve import find_limits, serve
from joulemap.wing.llm.serving.surface import Passes


@cache
def deploy(engine: str = "vllm") -> Deployment:
    row = ServingRow(source="a test", hardware="h100_sxm5", model="qwen3-0.6b", scope="steady_serving", engine=engine)
    return find_deployment(row, load_catalogue().find("h100_sxm5"))


def test_one_request_alone_takes_its_passes() -> None:
    """A pass over 1,000 tokens, then 63 behind 1,000 to 1,062: 63 of the middle one."""
    surface = deploy()
    served = serve(surface, Load(requests=1, prompt_tokens=1000, output_tokens=64))
    cost = surface.price(Passes.of(1.0, tokens=[1000.0, 1.0], context=[0.0, 1031.0]))
    seconds, joules = cost.seconds, cost.joules
    first = served.first_token.p50 - find_limits(surface, Load()).request_s
    assert_close(first, float(seconds[0]), rel=0.05)
    assert_close(served.latency.p50 - served.first_token.p50, 63 * float(seconds[1]), rel=0.01)
    assert_close(served.window.energy_j - served.window.idle_j, float(joules[0] + 63 * joules[1]), rel=0.02)


@pytest.mark.parametrize(
    ("chip", "engine", "tokens", "sequences"),
    [
        ("h100_sxm5", "vllm", 8192, 1024),
        ("l40s", "vllm", 2048, 256),
        ("a100_sxm4_80gb", "vllm", 2048, 256),
        ("tpu_v5e", "vllm", 512, 256),
        ("xeon_8490h", "vllm", 2048, 128),
        ("a100_sxm4_80gb", "sglang", 8192, 1024),
        ("a100_sxm4_40gb", "sglang", 4096, 1024),
        ("rtx_4090", "sglang", 2048, 1024),
        ("b200_sxm", "sglang", 16384, 1024),
    ],
)
def test_limits_of_a_pass_follow_the_board(chip: str, engine: str, tokens: int, sequences: int) -> None:
    stack, hardware = find_stack(engine), load_catalogue().find(chip)
    assert (stack.limit("step_tokens", hardware), stack.limit("sequence_limit", hardware)) == (tokens, sequences)


def test_limits_are_those_of_stack_and_memory() -> None:
    surface = deploy("trt")
    limits = find_limits(surface, Load(prompt_tokens=2000, output_tokens=400))
    assert limits.reserves_output and limits.mixes
    assert limits.step_tokens == surface.step_tokens
    assert limits.cache_tokens == int(Room(deployment=surface).count_tokens(2400))


@pytest.mark.parametrize(("chip", "usable"), [
    ("apple_m4", 16e9 * 0.74),  # Metal's limit is below 16 - 3.5 GB
    ("apple_m4_max", 128e9 * 0.75),
    ("apple_m4_cpu", 16e9 - 3.5e9),
    ("ryzen_ai_max_395", 128e9 * 0.75),
    ("gb10", 128e9 - 2e9),
    ("jetson_orin_nano_8gb", 8e9 - 1.5e9),
    ("raspberry_pi_5", 8e9 - 1e9),
    ("rtx_4090", 24 * 2**30),
    ("h100_sxm5", 1.068 * 80e9),
])  # fmt: skip
def test_a_shared_memory_leaves_its_system_a_part(chip: str, usable: float) -> None:
    hardware = load_catalogue().find(chip)
    row = ServingRow(source="a test", hardware=chip, model="llama-3.2-1b", scope="steady_serving", engine="llamacpp")
    one = find_deployment(row, hardware)
    kept = (5e8 + one.stack.value("memory_margin")) * (hardware.architecture == "gpu")
    assert_close(Room(deployment=one).capacity, usable - kept, rel=1e-3)


def test_every_chip_with_a_memory_of_its_own_may_use_all_of_it() -> None:
    """Cards, microcontrollers and designs have no system in their memory; all others keep up to a half."""
    for name in load_catalogue().entries:
        hardware = load_catalogue().find(name)
        capacity, usable = hardware.memory_capacity.value, find_usable(hardware)
        if find_system(hardware):
            assert 0.5 * capacity <= usable < capacity, name
        else:
            assert usable == capacity, name
            assert hardware.needs_host or capacity < 3e8 or not hardware.memory_type.startswith(("DDR4-", "DDR5-"))


def test_states_and_windows_take_more_memory_per_token_of_short_sequences() -> None:
    """Qwen3.5-0.8B: 12,288 B a token in 6 layers; 18 states of 16 x 128 x 128 at 32 bits, tails of 3 x 6,144 at 16."""
    row = ServingRow(source="a test", hardware="h100_sxm5", model="qwen3.5-0.8b", scope="steady_serving", engine="vllm")
    room = Room(deployment=find_deployment(row, load_catalogue().find("h100_sxm5")))
    state = 18 * (16 * 128 * 128 * 4 + 3 * 6144 * 2)
    for length in (500, 5000):
        assert room.cache(length) == 12288 * length + state
        assert room.count_tokens(length) == pytest.approx(room.free / (12288 + state / length))


def test_links_take_their_power_from_the_cap_of_their_board() -> None:
    """36 W of 700 W; a prompt of two devices, which one device computes at the cap, stays below it too."""
    pair = attrs.evolve(deploy(), devices=2)
    assert [chip.tdp.value for chip in find_chips(pair)] == [664.0, 664.0]
    assert find_chips(deploy())[0].tdp.value == 700.0
    cost = pair.price(Passes.of([16.0], tokens=2048.0))
    assert 500.0 < float(cost.joules[0] / cost.seconds[0]) / 2.0 < 700.0
    low = attrs.evolve(pair.hardware.tdp, value=pair.hardware.static_power.value + 40.0)
    capped = attrs.evolve(pair, hardware=attrs.evolve(pair.hardware, tdp=low))
    assert_close(find_chips(capped)[0].tdp.value, low.value - 20.0)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_measured_row_is_predicted_by_the_station_that_answers_questions(engine: str) -> None:
    row = ServingRow(
        source="a test", hardware="h100_sxm5", model="qwen3-0.6b", scope="steady_serving", engine=engine, batch=16.0,
        client="steady", prompt_tokens=500, output_tokens=100, length_spread=1.0 / 9.0, time_to_first_token_s=1.0,
    )  # fmt: skip
    (told,) = predict([row], load_catalogue().find("h100_sxm5"))
    asked = Load(in_flight=16, prompt_tokens=500, output_tokens=100, spread_fraction=row.length_spread or 0.0)
    served = serve(deploy(engine), attrs.evolve(asked, gap_s=CLIENT_S, is_steady=True))
    assert isinstance(told, Prediction)
    assert_close(told.time_to_first_token_s, served.first_token.mean, rel=0.1)
    assert_close(told.inter_token_latency_s, served.token_time.mean, rel=0.03)
    assert_close(told.output_tokens_per_s, served.output_tokens_per_s, rel=0.05)
