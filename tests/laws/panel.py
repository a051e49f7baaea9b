"""Chips, models and settings that trials draw from, and predictions of many of them at once."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import numpy as np

import joulemap
from joulemap.bundle.chip import load_chips
from joulemap.bundle.workload import open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.domain.operator.name import EXAMPLES, find_operator
from joulemap.physics.interval.half_width import BROKEN
from joulemap.physics.law import LAWS as EVALUATED, RAISE, SEPARATOR, VARIABLE
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.system.errors import JoulemapError, LawError
from joulemap.system.record import frozen
from joulemap.trace.single import describe
from laws.network import Network, draw_network
from laws.question import Question

if TYPE_CHECKING:
    from laws.court import Court

RUNTIMES: Final = ("eager", "graph", "fused", "engine")


OPERATORS: Final = tuple(one for one in EXAMPLES.values() if "devices=" not in one)
"""Single operators that run on one chip."""

NAMED: Final = 20
"""Maximum cells of a table that are asked again for the law of one evaluation that they break."""


@cache
def list_chips() -> tuple[str, ...]:
    """Return the ids of all built-in chips."""
    return tuple(sorted(load_chips().ids))


@cache
def find_chip(name: str) -> Hardware:
    """Return a chip as predictions use it, with its calibration."""
    return load_chips().find(name)


@cache
def list_networks() -> tuple[str, ...]:
    """Return the built-in networks that ship at all batch sizes."""
    zoo = open_zoo(ZOO)
    return tuple(sorted(name for name in zoo.models if zoo.ships(name, 2)))


def draw_chips(rng: random.Random, count: int) -> list[str]:
    """Return distinct random chips, of all classes alike."""
    classes: dict[str, list[str]] = {}
    for name in list_chips():
        classes.setdefault(find_chip(name).architecture, []).append(name)
    drawn = [rng.choice(classes[rng.choice(sorted(classes))]) for _ in range(2 * count)]
    return list(dict.fromkeys(drawn))[:count]


def draw_model(rng: random.Random) -> str | Network:
    """Return a random network, a built-in one, or a single operator."""
    return rng.choice((draw_network, _draw_network, _draw_operator))(rng)


def _draw_network(rng: random.Random) -> str:
    return rng.choice(list_networks())


def _draw_operator(rng: random.Random) -> str:
    return rng.choice(OPERATORS)


def load_columns(model: str | Network) -> WorkloadColumns:
    """Return the columns of a model at batch 1."""
    if isinstance(model, Network):
        return columns_of(model.trace(1))
    operator = find_operator(model)
    return open_zoo(ZOO).form_columns(model, 1) if operator is None else columns_of(describe(operator, 1, NO_KEY))


@frozen(eq=False)
class Table:
    """Predictions of one model on chips (axis 0) at batch sizes (axis 1), and the question of each."""

    question: Question
    cells: tuple[tuple[str, str], ...]
    """Chip and precision of each row."""
    batches: tuple[int, ...]
    prediction: joulemap.Prediction

    def ask(self, place: tuple[int, ...], later: int = 0) -> Question:
        """Return the question of a cell, or of one that many batch sizes later."""
        (chip, precision), batch = self.cells[place[0]], self.batches[place[-1] + later]
        return self.question.replace(hardware=chip, precision=precision, batch=batch)


def draw_cells(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """Return random chips, each with a precision that it has."""
    return [(name, rng.choice(sorted(find_chip(name).peaks))) for name in draw_chips(rng, count)]


def predict(
    question: Question,
    cells: Sequence[tuple[str, str]],
    batches: Sequence[int],
    court: Court,
    **settings: Any,
) -> Table | None:
    """Return the predictions of a question's model on chips at precisions and batch sizes; None if it has none.

    The laws of one evaluation are checked for each.
    """
    models: Any = question.model
    if isinstance(question.model, Network):
        models = np.empty((1, len(batches)), dtype=object)
        models[0, :] = [question.model.trace(batch) for batch in batches]
    chips, precisions = (np.array(one)[:, None] for one in zip(*cells, strict=True))
    try:
        prediction = joulemap.predict(
            models, chips, precision=precisions, batch=np.array(batches)[None, :], runtime=question.runtime, **settings
        )
    except JoulemapError as error:
        court.refused[f"{type(error).__name__}: {str(error)[:60]}"] += 1
        return None
    court.refused.update(code for code in prediction.refusal_code.ravel().tolist() if code)
    table = Table(question, tuple(cells), tuple(batches), prediction)
    _report_evaluated(court, table, settings)
    return table


def ask(question: Question, **settings: Any) -> joulemap.Prediction:
    """Return the prediction of one question; raises as `joulemap.predict` does."""
    changes = {name: np.array([value]) for name, value in question.changes}
    return joulemap.predict(
        question.workload(),
        question.hardware,
        precision=question.precision,
        runtime=question.runtime,
        batch=question.batch,
        changes=changes or None,
        **settings,
    )


def _report_evaluated(court: Court, table: Table, settings: Mapping[str, Any]) -> None:
    """Count the laws of one evaluation, and report the cells that break one: their ranges are a thousandfold wide."""
    one = table.prediction
    for law in EVALUATED:
        court.compared[law.name] += int((one.refusal == "").sum())
    with np.errstate(invalid="ignore"):
        broken = one.latency_high_s >= one.latency_s * math.exp(BROKEN) * (1.0 - 1e-9)
    for place in map(tuple, np.argwhere(broken)[:NAMED].tolist()):
        question = table.ask(place)
        with patch.dict(os.environ, {VARIABLE: RAISE}):
            try:
                ask(question, **settings)
                names = ""
            except LawError as error:
                names = str(error).partition(" breaks ")[2]
        for name in names.split(SEPARATOR) if names else [EVALUATED[0].name]:
            court.report(name, math.inf, 0.0, (question,))
