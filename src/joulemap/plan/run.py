"""Runs that models need under settings, and their keys in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Settings
from joulemap.physics.record.calibration import CalibrationEntry
from joulemap.physics.record.constant import Change
from joulemap.physics.record.product import DEFAULT, MatmulPrecision, choose_setting
from joulemap.physics.record.weight import pair_precisions
from joulemap.plan.calibration import CalibrationUse, use_calibration
from joulemap.plan.change import Changed, find_changes, split_changes
from joulemap.plan.model import Model
from joulemap.plan.model_name import list_names
from joulemap.plan.selection import Selection, select_hardware
from joulemap.plan.target import AtMatmulPrecision, Target
from joulemap.plan.version import formula_version
from joulemap.plan.workload import find_model
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class PlannedRun:
    """Workload on one configuration, before its evaluation."""

    hardware: str
    power_mode: str
    point: Mapping[str, str]
    """Dimension of the run other than hardware and mode, such as the precision -> value."""
    calibration: CalibrationEntry | None
    target: Target
    """Hardware with the modifiers of this run."""
    run_key: str

    @property
    def hardware_digest(self) -> str:
        """Digest of the hardware before any modifier."""
        return self.target.described.digest

    @property
    def plain(self) -> Target:
        """Hardware as for any model, without what the model changes."""
        before, changed, _ = split_changes(self.target)
        return before.modified(changed)


@frozen(kw_only=True)
class Plan:
    """Each model at each batch on every configuration of the settings."""

    models: tuple[Model, ...]
    selection: Selection
    settings: Settings
    calibration: CalibrationUse
    changes: Mapping[tuple[HardwareEntry, str], tuple[Change, ...]] = {}
    """(hardware, power mode) -> constants that the question sets."""
    batches: Mapping[str, tuple[int, ...]] = {}
    """Id of hardware -> the batch sizes at which it runs; hardware that is not listed runs every model of the plan."""
    _targets: dict[tuple[HardwareEntry, str, MatmulPrecision], Target] = attrs.field(
        factory=dict, init=False, eq=False, repr=False
    )

    @property
    def run_count(self) -> int:
        """Number of runs of all models."""
        return len(self.settings.points) * sum(len(self._pairs(model.request.batch)) for model in self.models)

    def _pairs(self, batch: int | None) -> tuple[tuple[HardwareEntry, str], ...]:
        """Return the hardware that runs models at a batch size; None for all hardware."""
        pairs = self.selection.pairs
        if batch is None or not self.batches:
            return pairs
        return tuple(pair for pair in pairs if batch in self.batches.get(pair[0].id, (batch,)))

    def runs(self, workload_key: str, model: Model | None = None) -> tuple[PlannedRun, ...]:
        """Return the runs of one workload, sorted by the settings' points, then by hardware in the requested order.

        With a `model`, hardware that does not run at its batch size is left out, and hardware is as for runs of it.
        """
        planned = []
        for point in self.settings.points:
            for entry, mode in self._pairs(None if model is None else model.request.batch):
                target = self.target(entry, mode, choose_setting(self.settings.matmul_precision, point["precision"]))
                if model is not None and model.modifiers is not None:
                    target = target.modified(*model.modifiers(point))
                version = formula_version(entry.architecture)
                parts = (workload_key, target.digest, mode, *point.values(), version)
                planned.append(
                    PlannedRun(
                        hardware=entry.id,
                        power_mode=mode,
                        point=point,
                        calibration=self.calibration.find(entry),
                        target=target,
                        run_key=hashlib.sha256("|".join(parts).encode()).hexdigest()[:16],
                    )
                )
        return tuple(planned)

    def list_runs(self) -> tuple[PlannedRun, ...]:
        """Return runs with every target of the plan; runs of models that do not change hardware occur once."""
        own = [one for one in self.models if one.modifiers is not None]
        shared = () if own and len(own) == len(self.models) else self.runs("")
        return (*shared, *(run for model in own for run in self.runs("", model)))

    def target(self, entry: HardwareEntry, mode: str, matmul_precision: MatmulPrecision = DEFAULT) -> Target:
        """Return the target of a chip at a power mode, with the constants that the question sets."""
        key = entry, mode, matmul_precision
        if key not in self._targets:
            changed = Changed(self.changes.get((entry, mode), ()), "" if entry.variant is None else entry.id)
            plain = self.selection.target(entry, mode, self.calibration, self.settings.boundary)
            self._targets[key] = plain.modified(AtMatmulPrecision(matmul_precision), changed)
        return self._targets[key]

    def check_calibration(self) -> None:
        """Raise CatalogueError, before any slow step, for a calibration that does not fit."""
        for entry, _ in self.selection.pairs:
            self.calibration.check_fit(entry)


@frozen(kw_only=True)
class RunTally:
    """Number of requested runs, by outcome."""

    stored_count: int
    """Runs that were already in the database, evaluated or refused."""
    evaluated_count: int
    refused_count: int
    """Configurations that their hardware cannot run, stored with the reason."""

    @property
    def run_count(self) -> int:
        """Number of requested runs; each is stored now."""
        return self.stored_count + self.evaluated_count + self.refused_count


def plan_runs(models: Sequence[str], settings: Settings) -> Plan:
    """Return the checked plan of models on the hardware of settings.

    Raises UsageError, UnknownNameError, CatalogueError or ModelError for invalid requests.
    """
    return plan_selected(models, settings, select_hardware(settings))


def plan_selected(
    models: Sequence[str],
    settings: Settings,
    selection: Selection,
    batches: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Plan:
    """Return a checked plan on selected hardware, where `batches` is as in the plan; raises like `plan_runs`."""
    names = tuple(dict.fromkeys((models,) if isinstance(models, str) else models))
    for values, what in ((names, "model"), (settings.precision, "precision"), (settings.runtime, "runtime")):
        if not values:
            raise UsageError(f"name a {what}")
    pair_precisions(settings.precision, settings.weight_precision)
    names, settings = _apply_published(names, settings, selection)
    calibration = use_calibration(settings.calibration)
    calibration.check(selection.ids | {one.id for parts in selection.parts.values() for one in parts})
    selection = _keep_calibrated(selection, calibration)
    selection, changes = find_changes(settings, selection, calibration)
    return Plan(
        models=tuple(find_model(name, settings, batch) for name in names for batch in settings.batch or (None,)),
        selection=selection,
        settings=settings,
        calibration=calibration,
        changes=changes,
        batches=batches,
    )


def _keep_calibrated(selection: Selection, calibration: CalibrationUse) -> Selection:
    """Return a selection without chips whose own calibration does not fit; CatalogueError if that leaves no two."""
    reasons: dict[str, str] = {}
    for entry in {entry.described: entry for entry, _ in selection.pairs}.values():
        try:
            calibration.check_own(entry)
        except CatalogueError as error:
            reasons[entry.described] = str(error)
            if len(selection.ids.difference(reasons)) < 2:
                raise
    pairs = tuple(pair for pair in selection.pairs if pair[0].described not in reasons)
    return attrs.evolve(selection, pairs=pairs, miscalibrated=reasons) if reasons else selection


def _apply_published(
    names: tuple[str, ...], settings: Settings, selection: Selection
) -> tuple[tuple[str, ...], Settings]:
    """Return models and settings; values that the question does not state come from the models' files."""
    precisions = [set(entry.precisions) for entry, _ in selection.pairs]
    shared = set.intersection(*precisions) if precisions else set[str]()
    if all(isinstance(name, str) for name in names):  # modules in memory have no file
        for one in list_names():
            names, settings = one.apply_published(names, settings, shared)
    return names, settings
