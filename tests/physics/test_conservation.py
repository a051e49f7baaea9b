"""Every part of every run adds up: each built-in model on each chip, at precisions and runtimes in turn."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count

import pytest

from blank import open_blank
from chips import ALL, FORMS, ROOMY
from conserved import assert_conserved
from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_shipped
from joulemap.domain.operator.name import find_operator
from joulemap.physics.ledger import ActionCounts, Counts, order_counts
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import PRECISION_BYTES, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import LINK_ACTION, LOSS_ACTION, STATIC_ACTION, ActionKey
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.store.connection import Connection
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.system.errors import UnsupportedError
from joulemap.trace.single import describe
from models import KEY
from sample import each

CATALOGUE = ALL
ONE_OF_EACH_CLASS = tuple({hardware.architecture: hardware for hardware in reversed(ROOMY)}.values())
MODELS = sorted(load_shipped())


TOO_LARGE = r" of (memory|flash|sram); (this configuration needs|the (weights|activations) need)|pass takes longer than"
"""Refusal of a model by a chip that is too small for it, or too slow."""


NUMBERS = count()
"""A model that was forgotten is read again under another key."""


@cache
def shipped() -> Connection:
    return open_blank()


@cache
def evaluator(model: str) -> Evaluator:
    operator = find_operator(model)
    if operator is not None:
        return Evaluator(columns_of(describe(operator, 1, KEY)))
    key = f"{model} {next(NUMBERS)}"
    (stored,) = read_shipped(shipped(), ZOO, [Shipped(model, batch=1, workload_key=key)])
    return Evaluator(read_columns(shipped(), stored))


def rotated_runs(model: str) -> Iterator[tuple[WorkloadColumns, RunColumns]]:
    """Yield the model on every chip, at one precision and runtime each.

    The setting changes with both model and chip, so the models together run a chip at each of its settings.
    """
    found = evaluator(model)
    for number, one in enumerate(CATALOGUE, MODELS.index(model)):
        settings = list(itertools.product(one.peaks, RUNTIME_NAMES))
        precision, runtime = settings[number % len(settings)]
        run = run_fitting(found, one, precision, runtime)
        if run is not None:
            yield found.work, run


def run_fitting(found: Evaluator, hardware: Hardware, precision: str, runtime: str) -> RunColumns | None:
    """Return a run; None where the model does not fit the memory of the chip, or takes hours."""
    try:
        return found.evaluate(hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))
    except UnsupportedError as error:
        if not re.search(TOO_LARGE, str(error)):
            raise
        return None


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_part_adds_up_on_every_hardware(model: str) -> None:
    for work, run in rotated_runs(model):
        try:
            assert_conserved(work, run)
        except AssertionError as error:
            raise AssertionError(f"{run.configuration}: {error}") from error
    evaluator.cache_clear()


@each(CATALOGUE, lambda one: one.id)
def test_no_action_lacks_a_source_or_a_count(hardware: Hardware) -> None:
    assert [action.key for action in hardware.reference if not action.source.strip()] == []
    assert [action.key for action in hardware.reference if not action.count_formula.strip()] == []


def test_every_listed_action_is_counted_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: dict[str, set[ActionKey]] = defaultdict(set)

    def record(counts: ActionCounts, hardware: Hardware) -> Counts:
        counted[hardware.architecture] |= counts.keys()
        return order_counts(counts, hardware)

    monkeypatch.setattr("joulemap.physics.timing.order_counts", record)
    evaluate = evaluator("mobilenet_v3_small").evaluate
    for one in FORMS:
        for precision in one.peaks:
            evaluate(one, Configuration(hardware=one.id, precision=precision, runtime="fused"))
    for one in ONE_OF_EACH_CLASS:
        had = {name for chip in FORMS if chip.architecture == one.architecture for name in chip.peaks}
        needed = {f"{precision}_mac" for precision in PRECISION_BYTES.keys() - had}
        listed = {action.key for action in one.reference if action.action not in needed}
        assert listed - counted[one.architecture] - {LINK_ACTION} == {LOSS_ACTION, STATIC_ACTION}
