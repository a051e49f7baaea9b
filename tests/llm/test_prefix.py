"""Prefix cache: hits and moves counted by hand, conversations, tiers and traces."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from compare import assert_close
from joulemap.system.errors import UsageError
from joulemap.wing.llm.capacity.load import hold_prefixes
from joulemap.wing.llm.serving.load import Limits, Load, Prefixes, Requests, Served, Tier
from joulemap.wing.llm.serving.request import read_requests, share_blocks
from joulemap.wing.llm.serving.reuse import assign_homes
from joulemap.wing.llm.serving.serve import simulate, simulate_pools
from joulemap.wing.llm.serving.surface import count_accepted
from joulemap.wing.llm.serving.warm_up import Pool
from joulemap.wing.llm.setting import read_tier
from pass_surface import StraightPass

PLAIN = StraightPass()
"""A pass takes 10 ms, and 0.1 ms more for each prompt token, at 500 W."""

AGENT = ((0, 1, 2), (0, 1, 3), (0, 1, 2, 4), (5, 6, 7), (0, 1, 2, 4))
"""Blocks of five prompts of an agent, 100 tokens each, one request after another."""


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=0)


def serve(cache_tokens: int, tiers: tuple[Tier, ...] = ()) -> Served:
    prompts = tuple(100 * len(blocks) + 50 for blocks in AGENT)
    requests = Requests(
        prompt_tokens=prompts,
        output_tokens=(1,) * 5,
        arrival_s=(0.0, 10.0, 20.0, 30.0, 40.0),
        cached_tokens=(0,) * 5,
        prefixes=Prefixes(block_tokens=100, prompts=AGENT),
    )
    limits = Limits(step_tokens=1000, cache_tokens=cache_tokens, tiers=tiers, token_bytes=2.0)
    return simulate(PLAIN, Load(trace=requests), limits)


def test_hits_of_an_agent_are_those_counted_by_hand() -> None:
    """With room for all: 0, then 0 1, then 0 1 2, none, and 0 1 2 4: nine blocks of 100 tokens of 1,950."""
    served = serve(100_000)
    assert [hit.found_tokens for hit in served.hits] == [900]
    assert served.hit_fraction == near(900 / 1950)
    assert served.computed_tokens == 1050
    first, *_, last = (
        first - arrival
        for first, arrival in zip(served.log.first_token, served.log.arrival, strict=True)
        if first is not None and arrival is not None
    )
    assert (first, last) == (near(0.045), near(0.015))


def test_what_does_not_fit_is_evicted_from_its_end_and_found_in_a_tier() -> None:
    """Room for 550 tokens: the fourth prompt takes 350 and leaves two blocks, 0 and 1; 3, 4 and 2 are evicted."""
    served = serve(550)
    assert [hit.found_tokens for hit in served.hits] == [700]
    tier = Tier(name="host", capacity_bytes=400.0, bytes_per_s=1000.0, j_per_byte=0.5)
    kept = serve(550, (tier,))
    assert [hit.found_tokens for hit in kept.hits] == [700, 200]
    assert kept.computed_tokens == 1050


def test_joules_close_over_passes_idle_time_and_moves() -> None:
    tier = Tier(name="host", capacity_bytes=400.0, bytes_per_s=1000.0, j_per_byte=0.5)
    kept = serve(550, (tier,))
    busy_s = 5 * 0.010 + kept.computed_tokens * 0.0001
    assert kept.window.energy_j == near(500.0 * busy_s + kept.window.idle_j + kept.window.moved_j)
    assert kept.window.moved_j == near(0.5 * kept.hits[1].moved_bytes)
    assert kept.window.idle_s == near(kept.duration_s - busy_s)


def test_turns_find_their_context_while_it_is_resident() -> None:
    """Prompts of 32, 80 and 128 tokens (16 answered): 0, 47 // 16 and 95 // 16 blocks, 112 of 240 tokens."""
    load = Load(in_flight=4, turns=3, pause_s=1.0, prompt_tokens=32, output_tokens=16, is_steady=True)
    roomy, tight = (simulate(PLAIN, load, Limits(step_tokens=1000, cache_tokens=room)) for room in (100_000, 160))
    assert_close(roomy.hit_fraction, 112 / 240, rel=0.01)
    assert roomy.first_token.p50 < 0.02
    assert 0.0 < tight.hit_fraction < 0.8 * roomy.hit_fraction
    assert tight.window.energy_j == near(tight.window.prompt_j + tight.window.answer_j + tight.window.idle_j)


def test_a_prefill_server_keeps_prompts_and_computes_answers_again() -> None:
    """Of 160 tokens and 33 more, one server keeps 12 blocks of 16; a prefill server keeps the 10 of the prompt."""
    talk = share_blocks((0, 0, 1), (160, 353, 16), (33, 1, 1))
    requests = Requests(
        prompt_tokens=(160, 353, 16),
        output_tokens=(33, 1, 1),
        arrival_s=(0.0, 0.0, 100.0),
        cached_tokens=(0, 0, 0),
        prefixes=attrs.evolve(talk, next_turn=(1, -1, -1), pause_s=(0.0, 5.0, 0.0)),
    )
    limits = Limits(step_tokens=1000, cache_tokens=10_000)
    load = Load(trace=requests)
    apart, _ = simulate_pools((Pool(surface=PLAIN, limits=limits), Pool(surface=PLAIN, limits=limits)), load)
    assert [hit.found_tokens for hit in simulate(PLAIN, load, limits).hits] == [192]
    assert [hit.found_tokens for hit in apart.hits] == [160]
    first, second = (apart.log.arrival, apart.log.finished)
    assert first[1] == near((second[0] or 0.0) + 5.0)
    # a prompt of 160 tokens takes 26 ms, then 32 passes; 193 tokens are computed later
    assert second[0] == near(0.026 + 32 * 0.010)
    assert second[1] == near((first[1] or 0.0) + 0.010 + 0.0193)
    cold, _ = simulate_pools(
        (Pool(surface=PLAIN, limits=limits), Pool(surface=PLAIN, limits=limits)), attrs.evolve(load, reuses=False)
    )
    assert cold.computed_tokens - apart.computed_tokens == 160


def test_turns_stay_with_their_server_and_conversations_take_turns() -> None:
    assert assign_homes((0, 1, 2, 3, 4), (2, 3, -1, -1, -1), 2) == [[0, 2, 4], [1, 3]]
    assert assign_homes((0, 1, 2), (), 2) == [[0, 2], [1]]


def test_traces_are_read_with_their_blocks(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 500, "input_length": 1000, "output_length": 5, "hash_ids": [7, 8]},
        {"timestamp": 2500, "input_length": 513, "output_length": 6, "hash_ids": [7, 9]},
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = read_requests(path)
    assert asked.arrival_s == (0.0, 2.0)
    assert asked.prefixes is not None
    assert asked.prefixes.prompts == ((7, 8), (7, 9))
    path.write_text("\n".join(map(json.dumps, reversed(rows))), encoding="utf-8")
    with pytest.raises(UsageError, match="line 2: timestamp is 500, earlier than the 2500"):
        read_requests(path)


@pytest.mark.parametrize("text", ["host:200GB", "tape:1TB@1GB/s", "host@50GB/s", "host:200@50GB/s", "host:0GB@1GB/s"])
def test_a_tier_without_a_size_or_bandwidth_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--cache-tier"):
        read_tier(text)


def test_acceptance_by_depth() -> None:
    """1 + 0.8 + 0.8 x 0.5 + 0.8 x 0.5 x 0.5; rates that are alike give the closed form."""
    assert count_accepted(3, 0.8, (0.5,)) == near(2.4)
    assert count_accepted(5, 0.7, (0.7,)) == near(count_accepted(5, 0.7))


@pytest.mark.parametrize(("in_flight", "cached"), [(None, 900), (10, 900), (20, 900), (40, 450), (200, 90)])
def test_a_cache_supplies_no_more_prompts_than_it_holds(in_flight: int | None, cached: int) -> None:
    # 20 requests of 1,000 + 200 tokens fit; the prompts of further ones are not in the cache
    load = Load(in_flight=in_flight, prompt_tokens=1000, output_tokens=200, cached_tokens=900, is_steady=True)
    assert hold_prefixes(load, 24_000).cached_tokens == cached
