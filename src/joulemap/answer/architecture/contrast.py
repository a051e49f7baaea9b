"""Plan and fetch the runs that compare the architecture classes on a model.

class ─► representative hardware ─► a precision that it has ─► run ─► ledger, by category and action
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from joulemap.answer.answer import fetch_tables
from joulemap.answer.architecture.answer import ArchitecturesAnswer
from joulemap.answer.scope import Scope, find_stored_scope, widen
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.configuration import Precision
from joulemap.domain.settings import Settings
from joulemap.domain.weight import keep_narrower
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.hold import Held, holding_plans
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import find_unplugged, select_hardware
from joulemap.plan.source import Source
from joulemap.store.connection import Connection

EVERYWHERE: Final = Settings(precision=COMMON_PRECISION)
"""Default settings: a precision that hardware of every class supports."""


def architectures(source: Source, model: str, settings: Settings = EVERYWHERE) -> ArchitecturesAnswer:
    """Compare architecture classes on a model: energy by category, energy per MAC, and reasons.

    Without named hardware, one chip represents each of the eight classes. Hardware that lacks the precision uses the
    nearest that it has; hardware that cannot run the model is an `unsupported` row with its reason. Raises as
    `compare`.
    """
    with holding_classes(source, (model,), settings, tuple(CLASS_HARDWARE.values())) as (scope, connection, ids):
        found = fetch_tables(connection, ArchitecturesAnswer, run_ids=ids)
        return ArchitecturesAnswer(scope=scope, asked=settings.precision[0], **found)


@contextlib.contextmanager
def holding_classes(
    source: Source, models: tuple[str, ...], settings: Settings, hardware: tuple[str, ...]
) -> Iterator[tuple[Scope, Connection, list[int]]]:
    """Yield the scope of models on the classes' hardware, a connection that holds the runs, and their ids in order.

    `hardware` represents the classes if the settings name none. Raises as `compare`.
    """
    settings.check_single("architectures")
    known = known_hardware()
    unplugged = {} if settings.hardware else find_unplugged((known[name] for name in hardware), settings.boundary)
    chosen = settings.hardware or tuple(name for name in hardware if name not in unplugged)
    settings = attrs.evolve(settings, hardware=chosen)
    selection = select_hardware(settings)
    selection = attrs.evolve(selection, unplugged={**unplugged, **selection.unplugged})
    whole = plan_selected(models, settings, selection)
    whole.selection.check_chips("architectures")
    with holding_plans(source, _divide(whole)) as (connection, held):
        ids = _order_runs(whole, held)
        names = tuple(model.request.model for model in whole.models)
        scope = attrs.evolve(widen(find_stored_scope(connection, ids), whole.selection), models=names)
        scope.check_evaluated()
        yield scope, connection, ids


def _divide(whole: Plan) -> list[Plan]:
    """Return one plan per precision, each with the hardware whose nearest precision it is."""
    (asked,) = whole.settings.precision
    groups: dict[Precision, list[tuple[HardwareEntry, str]]] = {}
    for entry, mode in whole.selection.pairs:
        groups.setdefault(entry.nearest_precision(asked), []).append((entry, mode))
    return [
        attrs.evolve(
            whole,
            settings=attrs.evolve(
                whole.settings,
                precision=precision,
                weight_precision=keep_narrower(precision, whole.settings.weight_precision),
            ),
            selection=attrs.evolve(whole.selection, pairs=tuple(pairs)),
        )
        for precision, pairs in groups.items()
    ]


def _order_runs(whole: Plan, held: Iterable[Held]) -> list[int]:
    """Return run ids of divided plans in the order of the whole plan: by model, then by hardware."""
    ids = {(model.request.model, run.hardware, run.power_mode): run_id for model, run, run_id in held}
    return [ids[one.request.model, entry.id, mode] for one in whole.models for entry, mode in whole.selection.pairs]
