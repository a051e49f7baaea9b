"""The clock of a busy core, timed with multiplications of known latency."""

from __future__ import annotations

import attrs
import pytest

from joulemap.device import clock
from joulemap.device.clock import CHAIN, LATENCY_CLOCKS, TURNS, time_clock
from joulemap.domain.machine import Cpu

VIRTUAL = Cpu(
    name="a virtual processor",
    vendor="Intel",
    core_count=2,
    threads_per_core=1,
    flags=frozenset({"avx512f"}),
    clock_hz=2.6e9,
    clock_source="the system",
    memory_bytes=None,
)


def timed(monkeypatch: pytest.MonkeyPatch, cpu: Cpu, hertz: float | None) -> Cpu:
    """Return the processor as timed by a core at this clock; None cannot run the code."""
    seconds = None if hertz is None else TURNS * CHAIN * LATENCY_CLOCKS / hertz
    monkeypatch.setattr(clock, "_time_chain", lambda: seconds)
    return time_clock(cpu)


def test_a_machine_that_reports_one_clock_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = timed(monkeypatch, VIRTUAL, 3.41e9)
    assert machine.clock_hz == 3.5e9
    assert "2.60 GHz" in machine.clock_source
    assert timed(monkeypatch, VIRTUAL, 3.6e9).clock_hz == 3.5e9


@pytest.mark.parametrize("hertz", [None, 2.4e9, 2.55e9, 9e9])
def test_a_clock_that_is_not_higher_or_impossible_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, hertz: float | None
) -> None:
    assert timed(monkeypatch, VIRTUAL, hertz) == VIRTUAL


def test_a_machine_that_reports_its_largest_clock_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = attrs.evolve(VIRTUAL, clock_max_hz=3.2e9)
    assert timed(monkeypatch, own, 3.5e9) == own


def test_the_chain_takes_the_same_time_again_or_cannot_run_here() -> None:
    first = clock._time_chain()
    again = clock._time_chain()
    if first is None or again is None:
        assert first is None
        assert again is None
    else:
        hertz = TURNS * CHAIN * LATENCY_CLOCKS / min(first, again)
        assert 0.3e9 < hertz < 8e9
