"""Steady loads: percentiles are those of a server at work, however it was filled."""

from __future__ import annotations

import attrs
import pytest

from compare import assert_close
from deployed import known_decoder
from joulemap.system.errors import UsageError
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.llm.capacity.load import read_load
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.serving.load import Limits, Load, Requests
from joulemap.wing.llm.serving.request import COUNTED
from joulemap.wing.llm.serving.serve import simulate, simulate_pools
from joulemap.wing.llm.serving.warm_up import Pool, add_warm_up, count_in_work
from joulemap.wing.llm.setting import Serving
from pass_surface import StraightPass

PLAIN = StraightPass()
"""A pass takes 10 ms, and 0.1 ms more for each prompt token."""
ROOMY = Limits(step_tokens=1000, sequences=64, cache_tokens=1_000_000)
POOL = Pool(surface=PLAIN, limits=ROOMY)


def flight(in_flight: int, **more: float) -> Load:
    return Load(in_flight=in_flight, prompt_tokens=500, output_tokens=200, is_steady=True, **more)  # type: ignore[arg-type]


def test_requests_in_work_at_a_rate_follow_from_littles_law() -> None:
    """Two a second: prompts of 110 ms halt answers 22 % of the time; a request takes 0.11 + 100 x 0.01 / 0.78 s."""
    load = Load(rate_per_s=2.0, prompt_tokens=1000, output_tokens=101)
    assert_close(count_in_work(load, POOL), 2.0 * (0.110 + 1.0 / 0.78), rel=0.01)
    apart = attrs.evolve(POOL, reads_prompts=False, count=2)
    assert_close(count_in_work(load, apart), 2.0 * 1.0, rel=0.02)


def test_a_server_that_cannot_keep_up_has_no_steady_state() -> None:
    for rate in (12.0, 50.0, 1e6):
        assert count_in_work(Load(rate_per_s=rate, prompt_tokens=1000, output_tokens=101), POOL) <= 0.5 * COUNTED
        assert simulate(
            PLAIN, Load(rate_per_s=rate, prompt_tokens=1000, output_tokens=101, is_steady=True), ROOMY
        ).is_growing


@pytest.mark.parametrize("in_flight", [1, 4, 16, 60])
def test_the_opening_burst_is_not_in_the_p99(in_flight: int) -> None:
    """Prompts of 60 ms that begin at once make the last wait for all; at work a request meets two others at most."""
    counted = flight(in_flight)
    burst = simulate(PLAIN, attrs.evolve(counted, is_steady=False, requests=300), ROOMY)
    steady = simulate(PLAIN, counted, ROOMY)
    assert steady.first_token.p99 <= 3 * 0.060 + 1e-9
    assert steady.first_token.p50 >= 0.060 - 1e-9
    if in_flight > 10:
        # 1,000 tokens, two prompts, go in a pass of 110 ms: the last has to wait for half as many as there are
        assert burst.first_token.p99 >= 0.8 * in_flight / 2 * 0.110
    assert steady.requests >= in_flight + COUNTED


@pytest.mark.parametrize("in_flight", [8, 40])
def test_longer_runs_say_the_same(in_flight: int) -> None:
    some, more = (
        simulate(PLAIN, flight(in_flight, spread_fraction=0.5, requests=count), ROOMY) for count in (COUNTED, 8000)
    )
    assert_close(some.first_token.p50, more.first_token.p50, rel=0.05)
    assert_close(some.first_token.p99, more.first_token.p99, rel=0.15)
    assert_close(some.between_tokens.p99, more.between_tokens.p99, rel=0.05)
    assert_close(some.output_tokens_per_s, more.output_tokens_per_s, rel=0.03)
    assert_close(some.energy_per_output_token_j, more.energy_per_output_token_j, rel=0.03)


def test_lengths_vary_only_within_the_context_of_the_model() -> None:
    decoder = known_decoder("llama-3.2-1b")
    serving = Serving(in_flight=8, prompt=decoder.context_length - 100, output=100)
    load = read_load(Question(decoder=decoder, stack=find_stack(), serving=serving))
    assert load is not None and load.spread_fraction == 0.0


def test_rates_are_those_behind_the_warm_up() -> None:
    """One after another: 60 ms for the prompt and 199 steps of 10 ms make 200 tokens in 2.05 s, at 500 W."""
    served = simulate(PLAIN, flight(1), ROOMY)
    assert_close(served.output_tokens_per_s, 200.0 / 2.05, rel=1e-3)
    assert_close(served.energy_per_output_token_j, 500.0 * 2.05 / 200.0, rel=1e-3)
    assert_close(served.power_w, 500.0)


def test_more_in_flight_than_there_is_room_for_wait_as_long_as_they_do_later() -> None:
    """Of 40 there is room for 10: 30 wait for three rounds of those in work, from the first that is counted on."""
    limits = attrs.evolve(ROOMY, sequences=10)
    served = simulate(PLAIN, flight(40), limits)
    round_s = 200 * 0.010 + 10 * 0.060
    assert 0.85 * 3.0 * round_s <= served.first_token.p50 <= 1.15 * 3.0 * round_s
    assert served.first_token.p99 <= 1.2 * served.first_token.p50


def test_a_file_gives_its_lengths_again_in_turn() -> None:
    three = Requests(
        prompt_tokens=(100, 200, 300), output_tokens=(10, 20, 30), arrival_s=(0.0,) * 3, cached_tokens=(0,) * 3
    )
    load = add_warm_up(Load(trace=three, rate_per_s=1.0, is_steady=True), POOL, 0)
    assert load.trace is not None
    assert load.trace.prompt_tokens[:4] == (100, 200, 300, 100)
    assert len(load.trace.prompt_tokens) - load.warm_up == COUNTED
    whole = add_warm_up(Load(trace=three, is_steady=True), POOL, 0)
    assert (whole.trace, whole.warm_up) == (three, 0)


def test_a_wave_that_stands_within_its_answers_has_all_its_tokens() -> None:
    load = add_warm_up(flight(16), POOL, 0)
    assert load.trace is not None
    asked = list(zip(load.trace.prompt_tokens, load.trace.output_tokens, load.trace.cached_tokens, strict=True))
    assert all(prompt + output == 700 and cached == prompt - 1 for prompt, output, cached in asked[:16])
    assert len({output for _, output, _ in asked[:16]}) == 16
    assert set(asked[16:]) == {(500, 200, 0)}
    assert (load.warm_up, load.is_steady) == (16, False)


def test_two_pools_settle_too() -> None:
    first = Pool(surface=PLAIN, limits=ROOMY, count=2)
    served, (prompts, answers) = simulate_pools((first, Pool(surface=PLAIN, limits=ROOMY)), flight(8))
    assert served.first_token.p99 <= 3 * 0.060 + 1e-9
    assert served.requests >= 8 + COUNTED
    assert_close(served.power_w, prompts.busy_w + answers.busy_w + served.window.idle_j / served.window.duration_s)


def test_a_steady_load_takes_no_warm_up_of_its_own() -> None:
    with pytest.raises(UsageError, match="warm_up"):
        Load(rate_per_s=1.0, is_steady=True, warm_up=10)
