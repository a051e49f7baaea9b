"""The runs that contrast the architecture classes.

class ─► the hardware that stands for it ─► a precision that it has ─► run ─► ledger, by category and action
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.architecture.answer import ArchitecturesAnswer
from joulemap.answer.scope import find_stored_scope, widen
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.configuration import Precision
from joulemap.domain.settings import Settings
from joulemap.domain.weight import keep_narrower
from joulemap.plan.hold import StoredRuns, holding_runs
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.plan.source import Source
from joulemap.row.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.store.query import fetch_all

if TYPE_CHECKING:
    Pair = tuple[HardwareEntry, str]
    """A hardware at a power mode."""


EVERYWHERE: Final = Settings(precision=COMMON_PRECISION)
"""What hardware of every class runs."""


def architectures(source: Source, model: str, settings: Settings = EVERYWHERE) -> ArchitecturesAnswer:
    """Return what each architecture class spends a model's joules on, what one MAC takes on it, and why.

    Without named hardware, one stands for each of the eight classes. A hardware that lacks the precision has the
    nearest that it has; one that cannot run the model is an `unsupported` row with its reason. Raises as `compare`.
    """
    settings.check_single("architectures")
    if not settings.hardware:
        settings = attrs.evolve(settings, hardware=tuple(CLASS_HARDWARE.values()))
    whole = plan_selected((model,), settings, select_hardware(settings))
    whole.selection.check_chips("architectures")
    *others, last = divide(whole)
    ids: dict[tuple[str, Pair], int] = {}
    for plan in others:
        with holding_runs(source, plan) as runs:
            ids |= match(runs)
    with holding_runs(source, last) as runs:
        ids |= match(runs)
        return _read(runs, whole, [ids[whole.models[0].request.model, pair] for pair in whole.selection.pairs])


def divide(whole: Plan) -> list[Plan]:
    """Return a plan for each precision, of the hardware that has none nearer to what was asked for."""
    (asked,) = whole.settings.precision
    groups: dict[Precision, list[Pair]] = {}
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


def match(runs: StoredRuns) -> dict[tuple[str, Pair], int]:
    """Return the run of each model on each hardware at its power mode."""
    plan = runs.plan
    keys = [(model.request.model, pair) for model in plan.models for pair in plan.selection.pairs]
    return dict(zip(keys, runs.ids, strict=True))


def _read(runs: StoredRuns, whole: Plan, ids: list[int]) -> ArchitecturesAnswer:
    """Return the answer about stored runs; UnsupportedError with the reasons where none has an energy."""
    connection = runs.connection
    models = tuple(model.request.model for model in whole.models)
    scope = attrs.evolve(widen(find_stored_scope(connection, ids), whole.selection), models=models)
    scope.check_evaluated()
    (asked,) = whole.settings.precision
    found = fetch_all(
        connection,
        {"rows": ArchitectureSummary, "categories": ArchitectureCategory, "actions": ArchitectureAction},
        run_ids=ids,
    )
    return ArchitecturesAnswer(scope=scope, asked=asked, **found)
