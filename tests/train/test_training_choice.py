"""The first line of training: one pair of configurations, what to take and what it costs instead."""

from __future__ import annotations

import re

import pytest

from joulemap.ask.decision import choose
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Subject
from joulemap.show.present.cell import DASH
from joulemap.wing.train.ask.train import SAMPLE, SPEED
from joulemap.wing.train.show.train import describe_answer

FAST, OTHER, THRIFTY = 1, 2, 3
RUNS = {FAST: Subject(hardware="fast"), OTHER: Subject(hardware="other"), THRIFTY: Subject(hardware="thrifty")}
RATES = {FAST: 400.0, OTHER: 200.0, THRIFTY: 100.0}


def rank(metric: str, values: tuple[float, ...], chance: float) -> Choice:
    """Ranking of the three chips; the best one beats each other with this probability."""
    known = dict(zip(RUNS, map(Quantity, values), strict=True))
    return choose(metric, known, lambda *_: chance, is_higher_better=metric == SPEED, per="sample")


@pytest.mark.parametrize(
    ("sure", "energy", "costs", "told"),
    [
        (
            0.99,
            rank(SAMPLE, (2.0, 3.0, 4.0), 0.95),
            (2.0, 1.0, 1.0),
            "Take fast: it trains 2x faster than other (99 % sure) and uses 1.5x less energy per sample; a sample "
            "costs 2x more.",
        ),
        (
            0.99,
            rank(SAMPLE, (3.0, 4.0, 2.0), 0.9),
            (),
            "fast for speed, thrifty for energy per sample: fast trains 4x faster (99 % sure) and uses 1.5x more "
            "energy per sample.",
        ),
        (
            0.6,
            rank(SAMPLE, (3.0, 2.0, 4.0), 0.9),
            (),
            "A tie on speed (60 % for fast): take other, which uses 1.5x less energy per sample than fast (90 % sure).",
        ),
        (
            0.6,
            rank(SAMPLE, (2.0, 2.1, 2.2), 0.6),
            (3.0, 1.0, 2.0),
            "A tie on speed and energy per sample (60 % for fast): take other, which costs 2x less per sample than "
            "thrifty (90 % sure).",
        ),
    ],
)
def test_the_first_line_is_advice_about_one_pair(
    sure: float, energy: Choice, costs: tuple[float, ...], told: str
) -> None:
    speed = rank(SPEED, tuple(RATES.values()), sure)
    cost = [rank("cost", costs, 0.9)] if costs else []
    paid = dict(zip(RUNS, costs, strict=True)) if costs else {}
    entries = [
        Entry(
            runs=(run,),
            values={"samples_per_s": Quantity(rate), **({"cost": Quantity(paid[run], "USD")} if paid else {})},
        )
        for run, rate in RATES.items()
    ]
    line = describe_answer(Facts(asked=(SAMPLE, "step"), runs=RUNS, facts=(speed, energy, *cost, *entries)))
    assert re.sub(rf" \([\d.]+{DASH}[\d.]+\)", "", line) == told
    assert len(line.split()) <= 26
