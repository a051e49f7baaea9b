"""Laws of chains: a loop of recurrent cells against its layer, and equal operators of one run."""

from __future__ import annotations

import math
import random
from typing import Final

import attrs
import numpy as np

from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.system.errors import JoulemapError
from laws.court import Court
from laws.network import Layer, Network, draw_layer, is_traceable
from laws.ordered import ask_both, compare_tables
from laws.panel import RUNTIMES, Table, draw_cells, find_chip, load_columns, predict
from laws.part import BLOCKS, Part
from laws.question import Question

SPELLINGS: Final = {
    "lstm": ("nn.LSTM({n}, {d}, batch_first=True)", "Loop(nn.LSTMCell({n}, {d}), {d}, 2)", "Gates({n}, {d})"),
    "gru": ("nn.GRU({n}, {d}, batch_first=True)", "Loop(nn.GRUCell({n}, {d}), {d}, 1)"),
    "rnn": ("nn.RNN({n}, {d}, batch_first=True)", "Loop(nn.RNNCell({n}, {d}), {d}, 1)"),
}
"""Recurrence -> its layer, and the same as loops, of cells first."""

LAUNCHES: Final = {"lstm": 3, "gru": 3, "rnn": 4}
"""Recurrence -> kernels of a cell in eager PyTorch. Source: aten/src/ATen/native/RNN.cpp: two products, and their gates
in one kernel, or a sum and its activation.
"""

JOINS: Final = 2
"""Kernels around a loop: the first state, and the stack of all."""

INPUT: Final = ("torch.zeros({b}, {l}, {n})",)

CHIPS: Final = 60
LARGEST: Final = 3000.0
"""Maximum width of a recurrence."""


SHORT_S: Final = 2e-5
"""Time up to which the assumed delay of a step outweighs its work."""


def try_cells(court: Court, rng: random.Random) -> None:
    """Compare a recurrent layer with the same as a loop, of any width and number of steps; predict a wide one too."""
    name = rng.choice(sorted(SPELLINGS))
    wide = Layer(Part(name=name, module=SPELLINGS[name][0], inputs=INPUT), _draw_sizes(rng, LARGEST / 3.0))
    predict(Question(model=Network((wide,)), runtime="graph"), draw_cells(rng, 2 * CHIPS), (1,), court)
    sizes = _draw_sizes(rng, 4.0)
    networks = [Network((Layer(Part(name=name, module=one, inputs=INPUT), sizes),)) for one in SPELLINGS[name]]
    evaluator = Evaluator(columns_of(networks[0].trace(1)))
    cells = [one for one in draw_cells(rng, CHIPS) if not evaluator.falls_back(find_chip(one[0]))]
    for runtime in RUNTIMES:
        asked = [Question(model=one, runtime=runtime) for one in networks]
        tables = [predict(one, cells, (1, 3), court) for one in asked]
        layer, *loops = [one for one in tables if one is not None]
        for loop in loops:
            _compare_loop(court, layer, loop)
        if runtime == "eager":
            counts, most = _count_kernels(loops[0]), LAUNCHES[name] * dict(sizes)["l"] + JOINS
            court.compare("launches of a cell", counts, most, (loops[0].ask((0, 0)),))
        once = [predict(one.replace(model=_take_once(one)), cells, (1, 3), court) for one in asked]
        whole, *steps = [one for one in once if one is not None]
        for loop, step in zip(loops, steps, strict=True):
            _compare_steps(court, loop, step, whole)
        if len(loops) == 2 and RUNTIME[runtime].merges:
            for pair in (loops, loops[::-1]):
                compare_tables(court, {"latency_s": "cells by hand"}, *pair)


def _draw_sizes(rng: random.Random, least: float) -> tuple[tuple[str, int], ...]:
    """Return widths from a least one on, and a number of steps."""
    widths = tuple((one, round(math.exp(rng.uniform(math.log(least), math.log(LARGEST))))) for one in "nd")
    return *widths, ("l", rng.randint(2, 24))


def _compare_loop(court: Court, layer: Table, loop: Table) -> None:
    first, second = layer.prediction.latency_s, loop.prediction.latency_s
    is_there = (first > SHORT_S) & ~np.isnan(second)
    court.compare(
        "a loop is not faster",
        np.where(is_there, first, np.nan),
        np.where(is_there, second, np.nan),
        lambda place: (layer.ask(place), loop.ask(place)),
    )


def _take_once(question: Question) -> Network:
    """Return the recurrence of a question with one step."""
    assert isinstance(question.model, Network)
    (layer,) = question.model.layers
    return Network((attrs.evolve(layer, sizes=(*layer.sizes[:-1], ("l", 1))),))


def _count_kernels(table: Table) -> int:
    asked = Configuration(hardware="", runtime=table.question.runtime)
    return Evaluator(load_columns(table.question.model)).form(asked, asked.runtime).kernel_count


def _compare_steps(court: Court, loop: Table, step: Table, layer: Table) -> None:
    """Compare a loop with as many times one step, and one step with that of the layer."""
    count = dict(loop.question.model.layers[0].sizes)["l"]  # type: ignore[union-attr]
    kernels = max(1.0, _count_kernels(step) / _count_kernels(layer))
    for law, more, less, times in (
        ("steps of a loop", loop, step, count),
        ("a cell is its layer", step, layer, kernels),
    ):
        left, right = more.prediction.latency_s, times * less.prediction.latency_s
        is_there = (left > SHORT_S) & ~np.isnan(right)
        left, right = (np.where(is_there, one, np.nan) for one in (left, right))
        court.compare(law, left, right, ask_both(more, less))


def try_equals(court: Court, rng: random.Random) -> None:
    """Compare equal layers of one run, before and after another one."""
    layers = [one for one in (draw_layer(rng, rng.choice(BLOCKS)) for _ in range(2)) if is_traceable(one)]
    network = Network((*layers, *layers[:1]))
    if len(layers) < 2:
        return
    count = len(Network((layers[0],)).trace(1).operators)
    for runtime in ("graph", "engine"):
        columns = columns_of(network.trace(1))
        for chip, precision in draw_cells(rng, 12):
            question = Question(model=network, hardware=chip, precision=precision, runtime=runtime)
            _compare_equals(court, columns, count, question)


def _compare_equals(court: Court, columns: WorkloadColumns, count: int, question: Question) -> None:
    """Compare the GEMMs of the first `count` operators with those of the last."""
    hardware, evaluator = find_chip(question.hardware), Evaluator(columns)
    if evaluator.falls_back(hardware):
        return
    asked = Configuration(hardware=hardware.id, precision=question.precision, runtime=question.runtime)
    try:
        run = evaluator.evaluate(hardware, asked)
    except JoulemapError as error:
        court.refused[type(error).__name__] += 1
        return
    seconds = np.zeros(columns.operator_count)
    seconds[run.operators.operator_index] = run.operators.latency_fs
    first, last = (
        np.where(columns.mac_count > 0.0, seconds, 0.0)[part] for part in (slice(count), slice(-count, None))
    )
    court.compare("equal operators", np.maximum(first, last), np.minimum(first, last), (question,))
