"""Requests one by one: cases worked by hand, what is conserved, and a slower server that steps token by token."""

from __future__ import annotations

import math
from collections import deque
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from compare import assert_close
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.llm.capacity.load import form_load
from joulemap.wing.llm.serving.load import Limits, Load, Log, Requests, Served
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.serve import simulate, simulate_pools
from joulemap.wing.llm.serving.station import Station, count_until, find_fitting
from joulemap.wing.llm.serving.surface import PassCost
from joulemap.wing.llm.serving.warm_up import Pool
from pass_surface import StraightPass

PLAIN = StraightPass()
"""A pass takes 10 ms, and 0.1 ms more for each prompt token."""
LENGTHY = StraightPass(sequence_s=1e-5, cached_s=1e-8)
ROOMY = Limits(step_tokens=1000, sequences=64, cache_tokens=1_000_000)


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=0)


def trace(*rows: tuple[float, int, int]) -> Requests:
    arrivals, prompts, outputs = zip(*rows, strict=True)
    return Requests(
        arrival_s=arrivals, prompt_tokens=prompts, output_tokens=outputs, cached_tokens=(0,) * len(arrivals)
    )


def test_one_request_alone_is_its_prompt_and_its_steps() -> None:
    served = simulate(PLAIN, Load(requests=1, prompt_tokens=1000, output_tokens=101), ROOMY)
    assert served.first_token.p50 == near(0.110)
    assert served.latency.p50 == near(0.110 + 100 * 0.010)
    assert served.between_tokens.p50 == near(0.010)
    assert served.window.energy_j == near(1.110 * 500)
    assert served.energy_per_output_token_j == near(1.110 * 500 / 101)
    assert (served.steps, served.output_tokens, served.computed_tokens) == (101, 101, 1000)


def test_steps_lengthen_with_the_cache() -> None:
    """The n-th of 100 steps has 1,000 + n tokens cached, from none: 100 x 10 ms + (100,000 + 4,950) x 1 us."""
    surface = StraightPass(cached_s=1e-6)
    served = simulate(surface, Load(requests=1, prompt_tokens=1000, output_tokens=101), ROOMY)
    assert served.latency.p50 == near(0.110 + 1.0 + 0.10495)


def test_a_prompt_longer_than_a_pass_goes_in_pieces() -> None:
    """2,500 tokens in pieces of 1,000: three passes of 10 ms."""
    served = simulate(PLAIN, Load(requests=1, prompt_tokens=2500, output_tokens=1), ROOMY)
    assert served.first_token.p50 == near(0.030 + 0.250)
    assert served.steps == 3


def test_a_prefix_that_is_hit_is_not_worked_out() -> None:
    served = simulate(PLAIN, Load(requests=4, prompt_tokens=500, cached_tokens=400, output_tokens=1), ROOMY)
    assert served.first_token.p50 == near(0.010 + 0.040)
    assert (served.prompt_tokens, served.computed_tokens) == (2000, 400)


def test_a_step_gives_all_its_accepted_tokens() -> None:
    """100 tokens after the first in 40 passes of 2.5."""
    limits = Limits(step_tokens=1000, cache_tokens=100_000, speculated_tokens=3, accepted_tokens=2.5)
    served = simulate(PLAIN, Load(requests=1, prompt_tokens=1000, output_tokens=101), limits)
    assert served.latency.p50 == near(0.110 + 40 * 0.010)
    assert served.between_tokens.p50 == near(0.004)


def test_a_second_prompt_lengthens_the_steps_of_the_first() -> None:
    """It arrives in the second step of the first, and is in the pass after: of 10 ms + 50 ms."""
    load = Load(trace=trace((0.0, 1000, 11), (0.125, 500, 1)))
    served = simulate(PLAIN, load, ROOMY)
    assert served.log.first_token == [near(0.110), near(0.130 + 0.060)]
    assert served.log.finished == [near(0.110 + 10 * 0.010 + 0.050), near(0.190)]
    assert served.between_tokens.p99 == near(0.060)


def test_a_row_of_a_load_has_the_mean_of_a_request_and_the_single_gap() -> None:
    """The first request: 10 tokens in 9 passes of 10 ms and one of 60 ms, so that TPOT is 15 ms and a gap 60 ms."""
    served = simulate(PLAIN, Load(trace=trace((0.0, 1000, 11), (0.125, 500, 1))), ROOMY)
    case: Any = SimpleNamespace(label="a", hardware="a", precision="bf16", world=1)
    row = form_load(case, served, None, None)
    assert (row.between_s, row.between_p99_s) == (near(0.015), near(0.015))
    assert (row.gap_s, row.gap_p99_s) == (near(0.010), near(0.060))
    assert row.request_p99_s - 0.110 == near(10 * 0.015)
    short = simulate(PLAIN, Load(trace=trace((0.0, 1000, 1), (0.125, 500, 1))), ROOMY)  # no two tokens, no time between
    row = form_load(case, short, None, None)
    assert (row.between_s, row.between_p99_s, row.gap_p99_s) == (None, None, None)


def test_a_server_that_does_not_mix_halts_answers_for_a_prompt() -> None:
    """Its pass takes as long, the answer's token comes in the pass after: 60 ms + 10 ms after the last."""
    load = Load(trace=trace((0.0, 1000, 11), (0.125, 500, 1)))
    served = simulate(PLAIN, load, Limits(step_tokens=1000, cache_tokens=1_000_000, mixes=False))
    assert served.log.first_token[1] == near(0.190)
    assert served.between_tokens.p99 == near(0.070)
    assert served.steps == 12


def test_a_server_rests_between_requests() -> None:
    served = simulate(PLAIN, Load(trace=trace((0.0, 1000, 1), (1.0, 1000, 1))), ROOMY)
    assert served.duration_s == near(1.110)
    assert served.window.idle_s == near(0.890)
    assert served.window.energy_j == near(0.220 * 500 + 0.890 * 100)


def test_the_time_outside_of_passes_is_in_the_first_token_alone() -> None:
    limits = Limits(step_tokens=1000, cache_tokens=1_000_000, request_s=0.050)
    served = simulate(PLAIN, Load(requests=3, in_flight=1, prompt_tokens=1000, output_tokens=11), limits)
    assert served.first_token.mean == near(0.160)
    assert served.between_tokens.p99 == near(0.010)


def test_a_trace_gives_each_its_times() -> None:
    rows = [(0.0, 100, 3), (5.0, 300, 1), (5.0, 200, 2), (9.0, 400, 4)]
    served = simulate(PLAIN, Load(trace=trace(*rows)), ROOMY)
    assert served.log.arrival == [0.0, 5.0, 5.0, 9.0]
    assert served.log.first_token == [near(0.020), near(5.060), near(5.060), near(9.050)]
    assert served.log.finished == [near(0.040), near(5.060), near(5.070), near(9.080)]


def test_the_last_gives_its_room_back_and_finishes() -> None:
    """Two of 100 + 21 tokens with room for 230: both have 115 cached after 15 steps, when the second leaves.

    The first ends 5 steps later; the second is worked out anew, 100 + 16 tokens, and has its 17th to 21st token then.
    """
    limits = Limits(step_tokens=1000, cache_tokens=230)
    served = simulate(PLAIN, Load(requests=2, prompt_tokens=100, output_tokens=21), limits)
    assert served.preemptions == 1
    assert served.log.preemptions == [0, 1]
    assert served.log.finished[0] == near(0.030 + 20 * 0.010)
    assert served.log.finished[1] == near(0.230 + 0.0216 + 4 * 0.010)
    assert served.computed_tokens == 316
    assert served.between_tokens.p99 == near(0.230 + 0.0216 - 0.180)


def test_who_reserves_room_preempts_none() -> None:
    limits = Limits(step_tokens=1000, cache_tokens=230, reserves_output=True)
    served = simulate(PLAIN, Load(requests=2, prompt_tokens=100, output_tokens=21), limits)
    assert served.preemptions == 0
    assert served.log.finished == [near(0.220), near(0.440)]


def test_a_batch_that_waits_for_its_longest_admits_none() -> None:
    """The second arrives in the first's answer, and starts after it."""
    limits = Limits(step_tokens=1000, cache_tokens=1_000_000, waits=True)
    served = simulate(PLAIN, Load(trace=trace((0.0, 1000, 11), (0.125, 500, 1))), limits)
    assert served.log.finished == [near(0.210), near(0.270)]


LOADS = {
    "at once": Load(requests=60, prompt_tokens=165, output_tokens=44, spread_fraction=0.8),
    "in flight": Load(requests=80, in_flight=9, prompt_tokens=165, output_tokens=44, spread_fraction=0.8),
    "at a rate": Load(requests=80, rate_per_s=6.0, prompt_tokens=165, output_tokens=44, spread_fraction=0.8),
    "too fast": Load(requests=80, rate_per_s=60.0, prompt_tokens=165, output_tokens=44, spread_fraction=0.8),
}
TIGHT = Limits(step_tokens=256, sequences=16, cache_tokens=1500)


def serve_token_by_token(surface: StraightPass, load: Load, limits: Limits, seed: int) -> list[tuple[float, float]]:
    """First and last token of each request, by one Python loop that does nothing at once and looks nothing up."""
    asked = draw_requests(load, seed)
    count = len(asked.prompt_tokens)
    shown = count if load.in_flight is None else load.in_flight
    coming = deque((asked.arrival_s[number], number) for number in range(shown))
    later = deque(range(shown, count))
    waiting = deque[int]()
    running: list[int] = []
    cached, made, goal = [0] * count, [0] * count, list(asked.prompt_tokens)
    first, last = [0.0] * count, [0.0] * count
    now = 0.0
    while coming or waiting or running:
        while coming and coming[0][0] <= now + 1e-12:
            waiting.append(coming.popleft()[1])

        def held() -> int:
            return sum(max(goal[number], cached[number]) for number in running)

        answering = [number for number in running if cached[number] >= goal[number]]
        while answering and held() + len(answering) > limits.cache_tokens:
            number = running.pop()
            goal[number], cached[number] = asked.prompt_tokens[number] + made[number], 0
            waiting.appendleft(number)
            answering = [number for number in running if cached[number] >= goal[number]]
        budget = limits.step_tokens - len(answering)
        pieces: dict[int, int] = {}
        for number in running:
            if cached[number] < goal[number] and budget:
                pieces[number] = min(budget, goal[number] - cached[number])
                budget -= pieces[number]
        while budget and waiting and len(running) < limits.sequences:
            number = waiting[0]
            if running and held() + goal[number] + len(answering) > limits.cache_tokens:
                break
            running.append(waiting.popleft())
            pieces[number] = min(budget, goal[number])
            budget -= pieces[number]
        if not running:
            now = coming[0][0]
            continue
        context = sum(cached[number] for number in answering) / max(1, len(answering))
        seconds, _ = surface.step(len(answering), context, sum(pieces.values()), 0.0)
        now += float(seconds)
        for number in [*answering, *pieces]:
            cached[number] += pieces.get(number, 1)
            if cached[number] >= goal[number]:
                made[number] += 1
                first[number] = first[number] or now
                if made[number] == asked.output_tokens[number]:
                    last[number] = now
                    running.remove(number)
                    if later:
                        coming.append((now, later.popleft()))
    return list(zip(first, last, strict=True))


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("limits", [ROOMY, TIGHT], ids=["roomy", "tight"])
def test_what_is_added_up_is_what_is_stepped(load: str, limits: Limits) -> None:
    served = simulate(LENGTHY, LOADS[load], limits, seed=3)
    stepped = serve_token_by_token(LENGTHY, LOADS[load], limits, seed=3)
    for number, (first, last) in enumerate(stepped):
        assert served.log.first_token[number] == near(first), number
        assert served.log.finished[number] == near(last), number
    assert (served.preemptions > 0) == (limits is TIGHT and load != "at a rate")


@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize("load", LOADS)
def test_tokens_time_and_energy_are_conserved(load: str, mixes: bool) -> None:
    limits = Limits(step_tokens=256, sequences=16, cache_tokens=1500, mixes=mixes)
    served = simulate(LENGTHY, LOADS[load], limits, seed=1)
    asked = draw_requests(LOADS[load], 1)
    assert served.requests == len(asked.prompt_tokens)
    assert served.output_tokens == sum(asked.output_tokens)
    assert served.prompt_tokens == sum(asked.prompt_tokens)
    assert served.computed_tokens >= served.prompt_tokens
    assert served.window.energy_j == near(
        (served.duration_s - served.window.idle_s) * LENGTHY.watts + served.window.idle_j
    )
    times = zip(outcome_times(served), asked.output_tokens, strict=True)
    spent = sum(last - first for (first, last), tokens in times if tokens > 1)
    gaps = sum(asked.output_tokens) - len(asked.output_tokens)
    assert served.between_tokens.mean == near(spent / gaps)


def outcome_times(served: Served) -> list[tuple[float, float]]:
    firsts, lasts = served.log.first_token, served.log.finished
    return [(first or 0.0, last or 0.0) for first, last in zip(firsts, lasts, strict=True)]


@pytest.mark.parametrize("load", LOADS)
def test_the_cache_is_never_exceeded(load: str) -> None:
    requests = draw_requests(LOADS[load], 0)
    station = Station(LENGTHY, requests, TIGHT, LOADS[load], Log.of(len(requests.prompt_tokens)))
    (server,) = station.servers
    station.expect(find_fitting(requests, TIGHT))
    held, running = [0.0], [0]
    while server.advance():
        held.append(server.held)
        running.append(len(server.running))
    assert 0.0 < max(held) <= TIGHT.cache_tokens
    assert 0 < max(running) <= TIGHT.sequences


def test_a_queue_that_grows_is_told() -> None:
    """A pass of 64 sequences takes 10 ms and a prompt 10 ms: 64 requests of 100 tokens in 1 s + 0.64 s, 39 a second."""

    def load(rate: float) -> Load:
        return Load(rate_per_s=rate, requests=2000, prompt_tokens=100, output_tokens=100)

    assert not simulate(PLAIN, load(25.0), ROOMY).is_growing
    served = simulate(PLAIN, load(60.0), ROOMY)
    assert served.is_growing
    assert_close(served.arrivals_per_s, 60.0, rel=0.1)
    assert_close(served.served_per_s, 39.0, rel=0.03)
    # 2000 come within half a second, before the first of them is finished
    assert_close(simulate(PLAIN, load(5000.0), ROOMY).served_per_s, 39.0, rel=0.05)


def test_a_longer_request_than_the_cache_is_refused_and_counted() -> None:
    limits = Limits(step_tokens=1000, cache_tokens=200)
    served = simulate(PLAIN, Load(trace=trace((0.0, 100, 10), (0.0, 195, 10), (0.0, 50, 10))), limits)
    assert (served.requests, served.refused) == (2, 1)
    assert served.log.finished[1] is None
    short = attrs.evolve(limits, context_tokens=150)
    assert simulate(PLAIN, Load(trace=trace((0.0, 100, 10), (0.0, 145, 10))), short).refused == 1
    with pytest.raises(UnsupportedError, match="1,010 tokens"):
        simulate(PLAIN, Load(requests=5, prompt_tokens=1000, output_tokens=10), limits)


def test_one_request_has_no_rate_of_arrival() -> None:
    assert simulate(PLAIN, Load(rate_per_s=1.0, requests=1), ROOMY).arrivals_per_s is None


def test_a_seed_gives_one_run() -> None:
    load = LOADS["at a rate"]
    assert simulate(LENGTHY, load, TIGHT, seed=5) == simulate(LENGTHY, load, TIGHT, seed=5)
    assert simulate(LENGTHY, load, TIGHT, seed=5) != simulate(LENGTHY, load, TIGHT, seed=6)


def test_requests_that_fill_the_server_count_in_no_spread() -> None:
    load = Load(requests=64, in_flight=16, prompt_tokens=500, output_tokens=50, warm_up=32)
    assert simulate(PLAIN, load, ROOMY).first_token.p99 < 0.5 * 16 * 0.05


def pools(surface: PassCost, limits: Limits, prompts: int = 1, answers: int = 1) -> tuple[Pool, Pool]:
    """Return a pool of prompts and one of answers, of servers that are all alike."""
    first, second = (Pool(surface=surface, limits=limits, count=count) for count in (prompts, answers))
    return first, second


def test_servers_of_a_pool_share_its_requests() -> None:
    """Two at once: alone the second prompt waits for the first, 110 ms each; two servers work on one each."""
    load = Load(requests=2, prompt_tokens=1000, output_tokens=11)
    tight = attrs.evolve(ROOMY, step_tokens=1000)
    alone, _ = simulate_pools(pools(PLAIN, tight), load)
    shared, _ = simulate_pools(pools(PLAIN, tight, prompts=2, answers=2), load)
    assert alone.first_token.p99 == near(0.220)
    assert shared.first_token.p99 == near(0.110)
    assert shared.latency.p99 == near(0.110 + 0.100)
    assert shared.window.energy_j == near((4 * shared.duration_s - shared.window.idle_s) * 500 + shared.window.idle_j)


def test_two_pools_hand_the_cache_over() -> None:
    """Prompt 110 ms, 20 ms over the link, then ten passes of 10 ms."""
    served, _ = simulate_pools(
        pools(PLAIN, ROOMY),
        Load(requests=1, prompt_tokens=1000, output_tokens=11),
        handover_token_s=2e-5,
    )
    assert served.first_token.p50 == near(0.110)
    assert served.latency.p50 == near(0.110 + 0.020 + 0.100)
    assert served.between_tokens.p99 == near(0.030)
    assert served.duration_s == near(0.230)
    assert served.window.energy_j == near(0.210 * 500 + (0.120 + 0.130) * 100)


@pytest.mark.parametrize("load", LOADS)
def test_two_pools_conserve_tokens_and_energy(load: str) -> None:
    served, _ = simulate_pools(pools(LENGTHY, TIGHT), LOADS[load], seed=1)
    asked = draw_requests(LOADS[load], 1)
    assert served.requests == len(asked.prompt_tokens)
    assert served.window.energy_j == near(
        (2.0 * served.duration_s - served.window.idle_s) * LENGTHY.watts + served.window.idle_j
    )
    spent = sum(last - first for first, last in outcome_times(served))
    assert served.between_tokens.mean == near(spent / (sum(asked.output_tokens) - len(asked.output_tokens)))
    assert served.arrivals_per_s is None or served.first_token.p99 > 0.0


def test_in_flight_is_never_exceeded_by_two_pools() -> None:
    served, _ = simulate_pools(pools(LENGTHY, ROOMY), LOADS["in flight"])
    starts = [(start or 0.0, 1) for start in served.log.arrival]
    ends = [(end or 0.0, -1) for end in served.log.finished]
    present = most = 0
    for _, change in sorted(starts + ends):
        present += change
        most = max(most, present)
    assert most == 9


STEADY = StraightPass(pass_s=0.008, sequence_s=2e-5, cached_s=1e-8, prompt_s=5e-5)


@pytest.mark.parametrize("mixes", [True, False])
@pytest.mark.parametrize(
    ("flight", "prompt", "output"), [(4, 512, 256), (32, 512, 256), (64, 2048, 512), (16, 9000, 1024)]
)
def test_requests_in_flight_take_the_time_of_their_tokens(flight: int, prompt: int, output: int, mixes: bool) -> None:
    """Linear passes: all tokens take as long in any order, and the share of prompts adds the passes of their own.

    A pass per token of an answer; without chunked prefill, one more for each prompt that starts alone.
    """
    load = Load(in_flight=flight, prompt_tokens=prompt, output_tokens=output, spread_fraction=0.5, is_steady=True)
    limits = Limits(step_tokens=8192, sequences=64, cache_tokens=1_000_000, mixes=mixes)
    served = simulate(STEADY, load, limits)
    context = prompt + output / 2
    each_s = output * (2e-5 + 1e-8 * context) + prompt * 5e-5  # work of one request
    least_s, most_s = 0.008 * output / flight, 0.008 * (output / flight + math.ceil(prompt / 8192))
    per_s = served.output_tokens_per_s / output
    assert 0.97 / (each_s + most_s) <= per_s <= 1.03 / (each_s + least_s)
    assert_close(per_s * served.latency.mean, float(flight), rel=0.05)  # Little's law
    assert_close(served.energy_per_output_token_j * served.output_tokens_per_s, STEADY.watts, rel=0.001)
    # a first token takes its own prompt, and at most the passes of all other prompts
    assert served.first_token.mean >= 0.008 + 0.9 * prompt * 5e-5


@pytest.mark.parametrize(
    ("gap", "seconds", "longer", "count"),
    [(0.005, 0.01, 0.0, 1), (0.01, 0.01, 0.0, 1), (0.0101, 0.01, 0.0, 2), (0.5, 0.01, 0.0, 50), (3.1, 1.0, 0.1, 3)],
)
def test_passes_are_begun_until_a_gap_has_gone(gap: float, seconds: float, longer: float, count: int) -> None:
    """1.0 + 1.1 = 2.1 s have gone when the third begins, 3.3 s when a fourth would."""
    assert count_until(gap, seconds, longer) == count


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rate_per_s": 1.0, "in_flight": 2}, "not both"),
        ({"rate_per_s": 0.0}, "rate_per_s"),
        ({"in_flight": 0}, "in_flight is 0"),
        ({"prompt_tokens": 10, "cached_tokens": 10}, "cached_tokens"),
        ({"output_tokens": 0}, "output_tokens is 0"),
    ],
)
def test_a_load_that_is_none_is_refused(settings: dict[str, float], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Load(**settings)  # type: ignore[arg-type]


def test_limits_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(UsageError, match="speculated_tokens"):
        Limits(cache_tokens=1000, accepted_tokens=2.0)
