"""Laws of single predictions and of larger batches: what exists, what adds up, and what a larger batch costs."""

from __future__ import annotations

import itertools
import random
from functools import cache, partial
from typing import Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from joulemap.physics import timing
from joulemap.physics.law import Evaluated, find_broken
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.workload import Integers
from joulemap.system.units import FJ_PER_J
from laws.court import Court
from laws.network import Network
from laws.panel import RUNTIMES, Table, draw_cells, draw_model, find_chip, load_columns, predict
from laws.question import Question

BATCHES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
FEW: Final = (1, 2, 3, 4, 8, 64)
"""Batch sizes of built-in models, and of random networks, each of which is traced."""

CHIPS: Final = 120

EDGE: Final = 32.0
"""Smallest edge of a block of outputs for which a GEMM reads its operands again."""

PAGE: Final = 4096.0
"""Bytes that an operator may move beyond its own."""

SHORT: Final = 8.0
"""Ratio of two neighbouring memory levels where a chip's file states none."""


def try_batches(court: Court, rng: random.Random) -> None:
    """Compare a model on many chips at several batch sizes."""
    model = draw_model(rng)
    for runtime in rng.sample(RUNTIMES, 2):
        batches = FEW if isinstance(model, Network) else BATCHES
        question, seen = Question(model=model, runtime=runtime), list[Evaluated]()
        with patch.object(timing, "find_broken", partial(_keep, seen)):
            table = predict(question, draw_cells(rng, CHIPS), batches, court)
        for one in seen:
            _compare_reads(court, one, question)
        if table is not None:
            _compare_alone(court, table)
            if not isinstance(model, Network) or model.has_batch:
                _compare_batches(court, table)


def _keep(seen: list[Evaluated], one: Evaluated) -> Integers:
    seen.append(one)
    return find_broken(one)


def _compare_reads(court: Court, one: Evaluated, question: Question) -> None:
    """Compare the bytes that kernels move off the chip with their own, once for each block, step or sample."""
    placement, kernels, work = one.placement, one.kernels, one.kernels.work
    blocks = np.ceil(np.maximum(work.gemm_m, work.gemm_n) / EDGE)
    passes = np.maximum(np.maximum(blocks, work.step_count), np.maximum(kernels.batch, 1.0))
    own = (kernels.own_read_bytes + kernels.output_bytes) * passes + PAGE
    read = kernels.per_kernel(placement.dram_read_bytes + placement.dram_write_bytes)
    asked = question.replace(hardware=one.hardware.id, precision=kernels.precision)
    court.compare("reads", read, kernels.per_kernel(own), (asked,))


def _compare_alone(court: Court, table: Table) -> None:
    one = table.prediction

    def find(place: tuple[int, ...]) -> tuple[Question, ...]:
        return (table.ask(place),)

    for name, low, high in (
        ("latency", one.latency_low_s, one.latency_high_s),
        ("energy", one.energy_low_j, one.energy_high_j),
    ):
        value = one.latency_s if name == "latency" else one.energy_j
        court.compare("range", low, np.where(np.isnan(low), np.nan, value), find)
        court.compare("range", np.where(np.isnan(high), np.nan, value), high, find)
    court.equal("parts of energy", sum(one.parts_j.values()), one.energy_j, find)
    court.equal("bases of energy", sum(one.basis_j.values()), one.energy_j, find)
    is_known = one.refusal == ""
    court.compare(
        "time passes",
        np.where(is_known, (one.latency_s <= 0.0) | (one.energy_j <= 0.0), np.nan),
        np.where(is_known, 0.5, np.nan),
        find,
    )
    chips = [find_chip(name) for name, _ in table.cells]
    static = np.array([[float(chip.static_power.value)] for chip in chips])
    court.compare(
        "static power",
        static * one.interval_s,
        one.parts_j.get("static", np.zeros(one.shape)) * np.where(is_known, 1.0, np.nan),
        find,
    )
    works = load_columns(table.question.model)
    alone = np.array([[not Evaluator(works).falls_back(chip)] for chip in chips])
    capacity = np.array([[float(chip.memory_capacity.value)] for chip in chips])
    is_own = alone & is_known
    court.compare(
        "memory is there", np.where(is_own, one.memory_bytes, np.nan), np.where(is_own, capacity, np.nan), find
    )
    if table.question.runtime != "eager":
        launch = np.array([[_find_launch_j(chip.id)] for chip in chips])
        limit = np.array([[float(chip.tdp.value)] for chip in chips])
        drawn = (one.energy_j - launch) / one.interval_s
        court.compare(
            "average power",
            np.where(alone, drawn, np.nan),
            np.where(alone & is_known, np.maximum(limit, static), np.nan),
            find,
        )


@cache
def _find_launch_j(name: str) -> float:
    """Return the energy of one launch by a host in joules."""
    reference = find_chip(name).reference
    prices = zip(reference.of_host, reference.prices_fj, strict=True)
    return sum(price for is_of_host, price in prices if is_of_host) / FJ_PER_J


def _compare_batches(court: Court, table: Table) -> None:
    one = table.prediction

    def find(place: tuple[int, ...]) -> tuple[Question, ...]:
        return table.ask(place), table.ask(place, 1)

    def between(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return neighbouring values where both are known."""
        first, second = values[:, :-1], values[:, 1:]
        is_there = ~np.isnan(first) & ~np.isnan(second)
        return np.where(is_there, first, np.nan), np.where(is_there, second, np.nan)

    court.compare("batch is not faster", *between(one.latency_s), find)
    court.compare("batch is not cheaper", *between(one.energy_j), find)
    court.compare("batch is not smaller", *between(one.memory_bytes), find)
    ratio = np.array([[_find_level_ratio(name)] for name, _ in table.cells])
    for small, batch in enumerate(table.batches):
        if 2 * batch in table.batches:
            large = table.batches.index(2 * batch)
            twice = 2.0 * ratio[:, 0] * one.latency_s[:, small]
            is_there = ~np.isnan(twice) & ~np.isnan(one.latency_s[:, large])

            def find_pair(place: tuple[int, ...], ends: tuple[int, int] = (small, large)) -> tuple[Question, ...]:
                return table.ask((place[0], ends[0])), table.ask((place[0], ends[1]))

            court.compare(
                "batch grows",
                np.where(is_there, one.latency_s[:, large], np.nan),
                np.where(is_there, twice, np.nan),
                find_pair,
            )


@cache
def _find_level_ratio(name: str) -> float:
    """Return the largest ratio of the bandwidths of two neighbouring memory levels of a chip."""
    chip = find_chip(name)
    rates = [float(level.bandwidth.value) for level in chip.memory_levels if level.bandwidth is not None]
    rates = sorted([*rates, float(chip.memory_bandwidth.value)], reverse=True)
    return max([SHORT, *(first / second for first, second in itertools.pairwise(rates))])
