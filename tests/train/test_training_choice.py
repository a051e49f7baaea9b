"""The first line of training: one pair of configurations, what to take and what it costs instead."""

from __future__ import annotations

import pytest

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Subject
from joulemap.wing.train.ask.train import SAMPLE, SPEED
from joulemap.wing.train.show.train import describe_answer

FAST, OTHER, THRIFTY = 1, 2, 3
RUNS = {FAST: Subject(hardware="fast"), OTHER: Subject(hardware="other"), THRIFTY: Subject(hardware="thrifty")}


def make_facts(speed: Choice, energy: Choice, costs: dict[int, float]) -> Facts:
    """Facts of three chips that train 400, 200 and 100 samples per second."""
    rates = {FAST: 400.0, OTHER: 200.0, THRIFTY: 100.0}
    entries = [
        Entry(
            runs=(run,), values={"samples_per_s": Quantity(rate), **({"cost": Quantity(cost, "USD")} if cost else {})}
        )
        for run, rate in rates.items()
        for cost in [costs.get(run)]
    ]
    return Facts(asked=(SAMPLE, "step"), runs=RUNS, facts=(speed, energy, *entries))


def choose(metric: str, runs: tuple[int, ...], ratio: float, chance: float) -> Choice:
    """Choice of the first run over the second, a tie below 80 %."""
    tied = runs[1:] if chance < 0.8 else ()
    return Choice(runs=runs, metric=metric, value=Quantity(1.0), ratio=ratio, probability=chance, tied=tied)


@pytest.mark.parametrize(
    ("speed", "energy", "costs", "told"),
    [
        (
            choose(SPEED, (FAST, OTHER), 2.0, 0.99),
            choose(SAMPLE, (FAST, OTHER), 1.5, 0.95),
            {FAST: 2.0, OTHER: 1.0},
            "Take fast: it trains 2x faster than other (99 % sure) and uses 1.5x less energy per sample (95 %); "
            "a sample costs 2x more.",
        ),
        (
            choose(SPEED, (FAST, OTHER), 2.0, 0.99),
            choose(SAMPLE, (OTHER, FAST), 1.1, 0.6),
            {},
            "Take fast: it trains 2x faster than other (99 % sure) on about the same energy per sample.",
        ),
        (  # a tie with a third chip says nothing about the energy of the rival
            choose(SPEED, (FAST, OTHER), 2.0, 0.99),
            choose(SAMPLE, (THRIFTY, FAST), 1.1, 0.6),
            {},
            "Take fast: it trains 2x faster than other (99 % sure).",
        ),
        (
            choose(SPEED, (FAST, OTHER), 2.0, 0.99),
            choose(SAMPLE, (THRIFTY, FAST), 1.5, 0.9),
            {},
            "fast for speed, thrifty for energy: thrifty uses 1.5x less energy per sample (90 % sure) and trains 4x "
            "slower.",
        ),
        (
            choose(SPEED, (FAST, OTHER), 1.1, 0.6),
            choose(SAMPLE, (OTHER, FAST), 1.5, 0.9),
            {},
            "Take other: it uses 1.5x less energy per sample than fast (90 % sure), which trains about as fast.",
        ),
        (
            choose(SPEED, (FAST, OTHER), 1.1, 0.6),
            choose(SAMPLE, (FAST, OTHER), 1.1, 0.6),
            {FAST: 3.0, OTHER: 1.0},
            "Take other: a sample costs 3x less than on fast; speed and energy are a tie (40 % likely faster).",
        ),
        (
            choose(SPEED, (FAST, OTHER), 1.1, 0.6),
            choose(SAMPLE, (FAST, OTHER), 1.1, 0.6),
            {},
            "Take fast or other, whichever is at hand: fast may train 1.1x faster (60 % likely).",
        ),
    ],
)
def test_the_first_line_is_advice_about_one_pair(
    speed: Choice, energy: Choice, costs: dict[int, float], told: str
) -> None:
    line = describe_answer(make_facts(speed, energy, costs))
    assert line == told
    assert len(line.split()) <= 25
