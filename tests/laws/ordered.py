"""Laws of two predictions that differ in one respect: size, depth, chip, a number of the chip, runtime, precision."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

import joulemap
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import HOST_TRANSFER, LINK_LANES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import columns_of
from joulemap.system.errors import JoulemapError
from laws.court import Asked, Court
from laws.network import draw_network
from laws.panel import (
    OPERATORS,
    RUNTIMES,
    Table,
    draw_cells,
    draw_chips,
    draw_model,
    find_chip,
    list_chips,
    predict,
)
from laws.question import Question

CHIPS: Final = 150

STREAMS: Final = tuple(one for one in OPERATORS if re.match(r"softmax|layer_norm|rms_norm|elementwise|add|gelu", one))
"""Operators that read and write their data once or twice."""

START_S: Final = 1e-5
"""Time in seconds below which starts outweigh bytes."""

FIXED: Final = frozenset(
    {"kernel", "padding", "stride", "kv_heads", "groups", "taken", "experts", "devices", "size", "head_dim", "state"}
)
"""Arguments of operators whose larger value is no more work, or no valid operator."""

NUMBERS: Final = {
    "clock": "clock",
    "memory_bandwidth": "bandwidth of memory",
    "unit_count": "units",
    "tdp": "limit",
}
"""Number of a chip -> law on a larger value."""

STEPS: Final = (1.0, 1.1, 1.5)
"""Factors by which a number of a chip is multiplied."""


def compare_tables(court: Court, laws: dict[str, str], less: Table, more: Table) -> None:
    """Compare the values of two tables with equal chips and batches; `laws` maps a value to its law."""
    for value, law in laws.items():
        first, second = getattr(less.prediction, value), getattr(more.prediction, value)
        is_there = ~np.isnan(first) & ~np.isnan(second)
        court.compare(
            law,
            np.where(is_there, first, np.nan),
            np.where(is_there, second, np.nan),
            ask_both(less, more),
        )


def ask_both(first: Table, second: Table) -> Asked:
    """Return the questions of the same cell of two tables."""
    return lambda place: (first.ask(place), second.ask(place))


def try_sizes(court: Court, rng: random.Random) -> None:
    """Compare operators and random networks with larger ones."""
    question = Question(runtime=rng.choice(RUNTIMES))
    cells = draw_cells(rng, CHIPS)
    if rng.random() < 0.5:
        name = rng.choice(OPERATORS)
        sizes = [one for one in re.findall(r"(\w+)=(\d+)", name) if one[0] not in FIXED]
        key, size = rng.choice(sizes)
        models: tuple[object, object] = name, name.replace(f"{key}={size}", f"{key}={2 * int(size)}")
    else:
        network = draw_network(rng, blocks=2, calls=1)
        grown = network.grow(rng)
        if grown is None or not all(map(_is_sound, (network, grown))):
            return
        models = network, grown
    tables = [predict(question.replace(model=one), cells, [1], court) for one in models]
    if tables[0] is not None and tables[1] is not None:
        compare_tables(court, {"latency_s": "size is not faster", "energy_j": "size is not cheaper"}, *tables)  # type: ignore[arg-type]


def try_cliffs(court: Court, rng: random.Random) -> None:
    """Compare an operator at sizes a tenth apart: no memory is full at one size and useless at the next."""
    name = rng.choice(STREAMS)
    key, size = rng.choice([one for one in re.findall(r"(\w+)=(\d+)", name) if one[0] not in FIXED])
    sizes = [one for one in (round(int(size) * 1.1**power) for power in range(-10, 11)) if one >= 64]
    cells, seconds = draw_cells(rng, CHIPS // 3), []
    question = Question(runtime=rng.choice(RUNTIMES))
    asked = [question.replace(model=name.replace(f"{key}={size}", f"{key}={one}")) for one in sizes]
    for one in asked:
        table = predict(one, cells, [1], court)
        if table is None:
            return
        seconds.append(table.prediction.latency_s[:, 0])

    def find(place: tuple[int, ...]) -> tuple[Question, ...]:
        chip, precision = cells[place[1]]
        return tuple(asked[place[0] + step].replace(hardware=chip, precision=precision) for step in (1, 0))

    less, more = np.array(seconds[:-1]), np.array(seconds[1:])
    is_there = ~np.isnan(less) & ~np.isnan(more) & (more > START_S)
    court.compare("no cliff", np.where(is_there, more, np.nan), np.where(is_there, less, np.nan), find)


def _is_sound(network: object) -> bool:
    try:
        return bool(network.trace(1).operators)  # type: ignore[attr-defined]
    except (JoulemapError, RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return False


def try_depth(court: Court, rng: random.Random) -> None:
    """Compare random networks with their first halves."""
    network = draw_network(rng)
    question = Question(runtime=rng.choice(RUNTIMES))
    cells = draw_cells(rng, CHIPS)
    half, whole = (
        predict(question.replace(model=one), cells, [1, 8] if network.has_batch else [1], court)
        for one in (network.half(), network)
    )
    if half is not None and whole is not None:
        laws = {
            "latency_s": "depth is not faster",
            "energy_j": "depth is not cheaper",
            "memory_bytes": "depth is not smaller",
        }
        compare_tables(court, laws, half, whole)


def try_chips(court: Court, rng: random.Random) -> None:
    """Compare chips with those of their microarchitecture that have at least as much of everything."""
    question = Question(model=draw_model(rng), runtime=rng.choice(RUNTIMES))
    pairs = [
        tuple((name, precision) for name in pair)
        for pair in rng.sample(list_pairs(), 250)
        for precision in [rng.choice(sorted(find_chip(pair[1]).peaks))]
    ]
    cells = list(dict.fromkeys(cell for pair in pairs for cell in pair))
    table = predict(question, cells, [1], court)
    if table is None:
        return
    place = {cell: index for index, cell in enumerate(cells)}
    better, worse = (np.array([place[pair[side]] for pair in pairs]) for side in (0, 1))
    seconds = table.prediction.latency_s[:, 0]
    is_there = ~np.isnan(seconds[better]) & ~np.isnan(seconds[worse])
    court.compare(
        "better chip",
        np.where(is_there, seconds[better], np.nan),
        np.where(is_there, seconds[worse], np.nan),
        lambda at: (table.ask((better[at[0]], 0)), table.ask((worse[at[0]], 0))),
    )


@cache
def list_pairs() -> list[tuple[str, str]]:
    """Return pairs (better, worse) of chips of one microarchitecture."""
    families: dict[tuple[str, str, str], list[str]] = {}
    for name in list_chips():
        chip = find_chip(name)
        if chip.microarchitecture:
            families.setdefault((chip.architecture, chip.microarchitecture, chip.vendor), []).append(name)
    measures = {name: _measure(find_chip(name)) for name in list_chips()}
    return [
        (one, other)
        for family in families.values()
        for one in family
        for other in family
        if one != other
        and measures[one].keys() >= measures[other].keys()
        and all(measures[one][key] >= value for key, value in measures[other].items())
        and _differ_alike(find_chip(one), find_chip(other))
    ]


def _measure(chip: Hardware) -> dict[str, float]:
    """Return the numbers of a chip of which more is better."""
    numbers = {"units": float(chip.units), "clock": float(chip.clock.value), "limit": float(chip.tdp.value)}
    numbers |= {"bandwidth": float(chip.memory_bandwidth.value)}
    numbers |= {f"level {one.name}": float(one.capacity.value) for one in chip.memory_levels}
    return numbers | {f"peak {name}": float(peak.rate.value) for name, peak in chip.peaks.items()}


def _differ_alike(one: Hardware, other: Hardware) -> bool:
    """Return whether two chips have the same helper, or none, the same compiler, and transfers to a host alike."""
    sides = [(LINK_LANES in chip.geometry, chip.coefficients.get(HOST_TRANSFER)) for chip in (one, other)]
    moves = [has_link or bool(moved is not None and moved.value > 0.0) for has_link, moved in sides]
    return one.helper == other.helper and one.compiler == other.compiler and moves[0] == moves[1]


def try_numbers(court: Court, rng: random.Random) -> None:
    """Compare chips with more clock, bandwidth, units or power."""
    question = Question(model=draw_model(rng), runtime=rng.choice(RUNTIMES))
    for name in draw_chips(rng, 12):
        chip = find_chip(name)
        precision = rng.choice(sorted(chip.peaks))
        number = rng.choice(sorted(NUMBERS))
        value = float(getattr(chip, number).value)
        values = np.array(STEPS) * value
        if number == "unit_count":
            values = np.array([value, value + 1, 2 * value])
        asked = question.replace(hardware=name, precision=precision)
        try:
            one = joulemap.predict(
                asked.workload(), name, precision=precision, runtime=question.runtime, changes={number: values}
            )
        except JoulemapError as error:
            court.refused[f"{type(error).__name__}: {str(error)[:60]}"] += 1
            continue

        def find(
            place: tuple[int, ...], asked: Question = asked, number: str = number, values: NDArray[np.float64] = values
        ) -> tuple[Question, ...]:
            return tuple(asked.replace(changes=((number, float(values[place[0] + step])),)) for step in (1, 0))

        seconds = one.latency_s
        is_there = ~np.isnan(seconds[1:]) & ~np.isnan(seconds[:-1])
        court.compare(
            NUMBERS[number], np.where(is_there, seconds[1:], np.nan), np.where(is_there, seconds[:-1], np.nan), find
        )
        if number == "tdp":
            watts = one.energy_j / one.interval_s
            court.compare(
                "cap saves power", np.where(is_there, watts[:-1], np.nan), np.where(is_there, watts[1:], np.nan), find
            )


def try_settings(court: Court, rng: random.Random) -> None:
    """Compare runtimes and widths of weights."""
    question = Question(model=draw_model(rng))
    cells = draw_cells(rng, CHIPS)
    eager, graph = (predict(question.replace(runtime=one), cells, [1], court) for one in ("eager", "graph"))
    if eager is not None and graph is not None:
        compare_tables(court, {"latency_s": "graph"}, graph, eager)
    half = [cell for cell in cells if cell[1] in ("bf16", "fp16")]
    wide = predict(question, half, [1], court)
    narrow = predict(question, half, [1], court, weight_precision="int4")
    if wide is not None and narrow is not None:
        compare_tables(court, {"memory_bytes": "weights are not larger"}, narrow, wide)


def try_alike(court: Court, rng: random.Random) -> None:
    """Compare networks with their equals: other names, an identity layer, swapped branches, asked alone or together."""
    network = draw_network(rng, blocks=3, calls=1)
    question = Question(model=network, runtime=rng.choice(RUNTIMES))
    work = Evaluator(columns_of(network.trace(1)))
    cells = [cell for cell in draw_cells(rng, CHIPS) if not work.falls_back(find_chip(cell[0]))]
    table = predict(question, cells, [1], court)
    if table is None:
        return
    turned = predict(question.replace(model=network.turned()), cells, [1], court)
    if turned is not None:
        court.equal(
            "order of branches",
            table.prediction.parts_j["compute"],
            turned.prediction.parts_j["compute"],
            ask_both(table, turned),
        )
    for index in rng.sample(range(len(cells)), 4):
        alone = predict(question, [cells[index]], [1], court)
        if alone is not None:
            court.equal(
                "together",
                table.prediction.energy_j[index],
                alone.prediction.energy_j[0],
                (table.ask((index, 0)),),
            )
            court.equal(
                "together",
                table.prediction.latency_s[index],
                alone.prediction.latency_s[0],
                (table.ask((index, 0)),),
            )
    for law, other in (("identity", network.with_identity()), ("name of a module", network.renamed())):
        same = predict(question.replace(model=other), cells, [1], court)
        if same is not None:
            court.equal(
                law,
                table.prediction.energy_j,
                same.prediction.energy_j,
                ask_both(table, same),
            )
            court.equal(
                law,
                table.prediction.latency_s,
                same.prediction.latency_s,
                ask_both(table, same),
            )
