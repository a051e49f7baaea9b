"""Clients of a load: who keeps requests together, who waits for the pass at hand, and servers that share a queue."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from joulemap.system import UsageError
from joulemap.wing.llm.serving.load import Limits, Load, Log
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.serve import simulate
from joulemap.wing.llm.serving.station import Station, run
from joulemap.wing.llm.setting import Serving
from pass_surface import StraightPass
from waits import form_waits

EVEN = StraightPass(prompt_s=0.001)
"""Passes take 10 ms, and 1 ms per prompt token."""

LIMITS = Limits(step_tokens=200, sequences=64, cache_tokens=10**6)
LOAD = Load(in_flight=8, requests=80, prompt_tokens=100, output_tokens=50)


def mean_first(load: Load) -> float:
    return simulate(EVEN, load, LIMITS).first_token.mean


def test_a_wave_takes_one_pass_after_another() -> None:
    """Two prompts of 100 tokens fit a pass beside few answers, so that four passes of about 0.2 s read a wave."""
    assert mean_first(attrs.evolve(LOAD, client="waves")) == pytest.approx((1 + 2 + 3 + 4) / 4 * 0.21, rel=0.1)


def test_replies_that_come_soon_enough_join_the_wave_of_the_others() -> None:
    apart, joined, waves = (
        mean_first(attrs.evolve(LOAD, client=client, gap_s=gap_s))
        for client, gap_s in (("together", 0.0), ("together", 0.1), ("waves", 0.0))
    )
    assert apart < 0.8 * joined
    assert joined == pytest.approx(waves, rel=0.2)


def test_a_request_waits_for_the_pass_at_hand() -> None:
    """Without a gap, each request arrives at the end of a pass."""
    steady = attrs.evolve(LOAD, is_steady=True, spread_fraction=0.11, in_flight=16)
    assert mean_first(attrs.evolve(steady, gap_s=0.02)) > 1.1 * mean_first(steady)


@pytest.mark.parametrize("servers", [1, 2, 5])
def test_a_queue_of_one_pass_requests_is_the_closed_form(servers: int) -> None:
    """M/D/c (Crommelin), at 80 % utilization."""
    load = Load(rate_per_s=0.8 * servers / 0.011, requests=20_000, prompt_tokens=1, output_tokens=1)
    requests = draw_requests(load, 0)
    log = Log.of(load.requests)
    limits = Limits(step_tokens=1, sequences=1, cache_tokens=10**6, mixes=False)
    station = Station(EVEN, requests, limits, load, log, servers=servers)
    station.expect(range(load.requests))
    run([station])
    waits = np.array(log.finished, float) - np.array(log.arrival, float) - 0.011
    form = form_waits(load.rate_per_s or 0.0, 0.011, servers)
    assert form is not None
    for wait_s in (0.0, 0.011, 0.033):
        assert (waits <= wait_s + 1e-9).mean() == pytest.approx(form.find_share(wait_s), abs=0.03)


def test_a_client_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="expected steady, together, waves"):
        Serving(in_flight=8, client="alone")
    with pytest.raises(UsageError, match="add --in-flight"):
        Serving(client="together")


def test_all_requests_of_a_wave_end_before_the_next() -> None:
    served = simulate(EVEN, attrs.evolve(LOAD, client="waves", spread_fraction=0.5), LIMITS)
    arrival, finished = served.log.arrival, served.log.finished
    for number in range(8, 80):
        first = number // 8 * 8
        assert arrival[number] == max(one or 0.0 for one in finished[first - 8 : first])
