"""Every part of every run adds up: each built-in model on each chip, at precisions and runtimes in turn."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import count

import pytest

from blank import open_blank
from chips import ALL, FORMS, ROOMY
from joulemap.catalog.digest import ZOO
from joulemap.domain.operator.name import find_operator
from joulemap.physics.ledger import ActionCounts, Counts, order_counts
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import PRECISION_BYTES, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import LINK_ACTION, LOSS_ACTION, STATIC_ACTION, ActionKey
from joulemap.physics.workload import columns_of
from joulemap.store.connection import Connection
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.trace.single import describe
from models import KEY
from sample import each

CATALOGUE = ALL
ONE_OF_EACH_CLASS = tuple({hardware.architecture: hardware for hardware in reversed(ROOMY)}.values())


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
