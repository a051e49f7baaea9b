"""Evaluate variants of runs that differ in one setting, as possible remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from joulemap.catalog.sheet import load_shipped
from joulemap.construct.source import parse_input
from joulemap.domain.catalogue import DEFAULT_MODE, ShippedWorkload
from joulemap.domain.settings import BATCHES, Settings
from joulemap.domain.table import group
from joulemap.physics.record.runtime import MODES, RUNTIME
from joulemap.physics.record.weight import keep_narrower
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.model_name import find_batch
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import find_unplugged
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.store.run import find_outlines
from joulemap.system.errors import ModelError
from joulemap.system.record import frozen

TRACED_BATCHES: Final = (1, 4, 16, 64)
"""Batch sizes for a model that must be traced anew for each batch size."""

_LEADING: Final = re.compile(r"((?:[^=]*=)?\s*)(\d+)")
"""Pattern of the first size of an input specification, after its optional name."""

MODELS_OF_A_SIZE: Final = 2
"""Models evaluated per size class (FLOPs) to find the best hardware for each class."""


@frozen(kw_only=True)
class Variants:
    """Run ids of variants, grouped by the setting that differs; each group includes the original runs."""

    batch: tuple[int, ...]
    precision: tuple[int, ...]
    other: tuple[int, ...]
    """Ids of runs at other power modes and runtimes, and on other hardware."""
    untraced: str
    """Reason why the model could not be traced at other batches; empty if it could."""

    @property
    def ids(self) -> list[int]:
        """Ids of all runs, without duplicates."""
        return list(dict.fromkeys((*self.batch, *self.precision, *self.other)))


def evaluate_variants(source: Source, plan: Plan) -> Variants:
    """Return the runs of a plan's model with one setting changed; runs that are not stored are evaluated.

    Batch sizes are those of a sweep, or fewer if the model must be traced at each. All precisions and power modes of
    the hardware are included. Other hardware is the whole catalogue at default power mode. Raises like `opening_runs`.
    """
    batch, untraced = _evaluate_batches(source, plan)
    runtimes = _evolve(plan, runtime=MODES) if not all(RUNTIME[one].is_built for one in plan.settings.runtime) else plan
    return Variants(
        batch=batch,
        precision=_evaluate(source, _vary_precision(plan)),
        other=(*_evaluate(source, _vary_place(plan)), *_evaluate(source, runtimes)),
        untraced=untraced,
    )


def _evaluate(source: Source, plan: Plan) -> tuple[int, ...]:
    with opening_runs(source, plan) as runs:
        return runs.ids


def _evolve(plan: Plan, **settings: object) -> Plan:
    changed = attrs.evolve(plan.settings, **settings)  # type: ignore[arg-type]
    return plan_selected((plan.models[0].request.model,), changed, plan.selection)


def _evaluate_batches(source: Source, plan: Plan) -> tuple[tuple[int, ...], str]:
    """Return the run ids at several batch sizes, and the reason if the model cannot run at other sizes."""
    model = plan.models[0]
    own = model.request.batch or (model.traced.batch if model.traced else None)
    if own is None and plan.settings.inputs:
        own = _find_batch(source, plan)
    if own is None:
        return (), "the model has its own inputs"
    if find_batch(model.request.model):
        return (), f"its file fixes the batch {own}"
    entry = plan.models[0].shipped
    if entry is not None and entry.ships_any:
        return _evaluate(source, _evolve(plan, batch=sorted({*BATCHES, own}))), ""
    run_ids: list[int] = []
    untraced = ""
    for batch in sorted({*TRACED_BATCHES, own}):
        inputs = tuple(rebatch(text, own, batch) for text in plan.settings.inputs)
        try:
            run_ids += _evaluate(source, _evolve(plan, batch=batch, inputs=inputs))
        except ModelError as error:
            untraced = untraced or str(error)
    return tuple(run_ids), untraced


def _find_batch(source: Source, plan: Plan) -> int | None:
    """Return the batch that a trace finds in the first size of a plan's inputs; None if no size of these is a batch."""
    with opening_runs(source, plan) as runs:
        batches = {one.batch for one in find_outlines(runs.connection, runs.ids).values()}
    stated = {parse_input(text).shape[:1] for text in plan.settings.inputs}
    return next((one for one in batches if (one,) in stated), None)


def rebatch(text: str, own: int, batch: int) -> str:
    """Replace the first size of an input specification by `batch` if it equals the model's own batch size."""
    match = _LEADING.match(text)
    return f"{match[1]}{batch}{text[match.end() :]}" if match and int(match[2]) == own else text


def _vary_precision(plan: Plan) -> Plan:
    known = (precision for entry, _ in plan.selection.pairs for precision in entry.precisions)
    own = plan.settings
    wide = [precision for precision in known if keep_narrower(precision, own.weight_precision) == own.weight_precision]
    return _evolve(plan, precision=dict.fromkeys((*own.precision, *wide)))


def _vary_place(plan: Plan) -> Plan:
    own = [(entry, mode) for entry, _ in plan.selection.pairs for mode in entry.distinct_modes]
    known = known_hardware()
    unplugged = find_unplugged(known.values(), plan.settings.boundary)
    others = [(entry, DEFAULT_MODE) for name, entry in known.items() if name not in unplugged]
    selection = attrs.evolve(plan.selection, pairs=tuple(dict.fromkeys((*plan.selection.pairs, *own, *others))))
    return plan_selected((plan.models[0].request.model,), plan.settings, selection)


def evaluate_sizes(source: Source, plan: Plan) -> tuple[int, ...]:
    """Return the runs of a few shipped models of every size class (FLOPs) on the configurations of a plan."""
    batch = plan.models[0].request.batch or 1
    entries = [entry for entry in load_shipped().values() if entry.ships(batch)]
    names = [name for alike in _by_size(entries) for name in _middle(alike)]
    own = plan.settings
    settings = Settings(
        hardware=own.hardware,
        precision=own.precision,
        weight_precision=own.weight_precision,
        matmul_precision=own.matmul_precision,
        runtime=own.runtime,
        batch=batch,
        calibration=own.calibration,
        boundary=own.boundary,
        host=own.host,
    )
    return _evaluate(source, plan_selected(names, settings, plan.selection))


def _by_size(entries: Iterable[ShippedWorkload]) -> list[list[ShippedWorkload]]:
    ordered = sorted(entries, key=lambda entry: (entry.mac_count, entry.model))
    return list(group(ordered, lambda entry: len(str(2 * entry.mac_count))).values())


def _middle(alike: Sequence[ShippedWorkload]) -> list[str]:
    """Return the `MODELS_OF_A_SIZE` models in the middle of a group that is sorted by size."""
    first = max(0, (len(alike) - MODELS_OF_A_SIZE) // 2)
    return [entry.model for entry in alike[first : first + MODELS_OF_A_SIZE]]
