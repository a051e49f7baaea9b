"""The first line of a placement says what to use, and Why what a split moves."""

from __future__ import annotations

from typing import Literal

import pytest

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject
from joulemap.wing.place.show.place import describe_answer, list_reasons

ALONE, SPLIT = 1, 2
RUNS = {ALONE: Subject(hardware="gpu", settings=("alone",)), SPLIT: Subject(hardware="cpu+gpu", settings=("split",))}


def make_facts(best: int, ratio: float, chance: float) -> Facts:
    """Facts of a device alone that takes 10 ms, and of a split in which the cpu takes 1 ms of 8 ms."""
    other = SPLIT if best == ALONE else ALONE
    latency = {ALONE: Quantity(10e-3, "s"), SPLIT: Quantity(8e-3, "s")}
    tied = (other,) if chance < 0.8 else ()
    choice = Choice(
        runs=(best, other), metric="latency", value=latency[best], ratio=ratio, probability=chance, tied=tied
    )
    copies = {"copy": Quantity(0.5e-3, "s"), "copied": Quantity(64e3, "B")}
    entries = [
        Entry(runs=(run,), values={"latency": one, **(copies if run == SPLIT else {})}) for run, one in latency.items()
    ]
    parts: list[tuple[int, Literal["device", "link"], str, float]] = [
        (ALONE, "device", "gpu", 1.0),
        (SPLIT, "device", "cpu", 0.125),
        (SPLIT, "device", "gpu", 0.8125),
        (SPLIT, "link", "pcie", 0.0625),
    ]
    shares = [
        Share(runs=(run,), metric="latency", level=level, name=name, share=share) for run, level, name, share in parts
    ]
    return Facts(asked=("latency",), runs=RUNS, facts=(choice, *entries, *shares))


@pytest.mark.parametrize(
    ("best", "ratio", "chance", "told"),
    [
        (SPLIT, 1.25, 0.9, "Split over cpu+gpu: 1.25x faster than gpu alone (90 % sure)."),
        (SPLIT, 1.25, 0.7, "Use gpu alone: the cpu+gpu split may gain 20.0 % (70 % sure); measure it first."),
        (SPLIT, 1.01, 0.6, "Use gpu alone: the cpu+gpu split may gain 1.0 % (60 % sure)."),
        (ALONE, 1.0, 0.5, "Use gpu alone: the cpu+gpu split gains nothing (10 ms alone, 8 ms split, 50 % sure)."),
        (ALONE, 2.0, 0.95, "Use gpu alone: 2x faster than cpu+gpu split (95 % sure)."),
    ],
)
def test_the_first_line_says_what_to_use(best: int, ratio: float, chance: float, told: str) -> None:
    assert describe_answer(make_facts(best, ratio, chance)) == told


def test_a_split_is_explained_by_what_it_moves_saves_and_copies() -> None:
    assert list_reasons(make_facts(SPLIT, 1.25, 0.9)) == [
        "cpu spends 1 ms on work that takes gpu 3.5 ms, and copying 64 kB over pcie takes 500 µs"
    ]
