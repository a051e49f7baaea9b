"""Storage of a question's placements; stored ones are replaced where the current formulas give other results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from joulemap.model.version import formula_version
from joulemap.plan.source import reading_if_there
from joulemap.store.connection import transaction
from joulemap.system.record import frozen
from joulemap.system.resource import digest_code, package_version, remember
from joulemap.wing.place.box.doubt import half_width
from joulemap.wing.place.store import FoundPlacement, StoredPlacement, find_placements, write_placements

if TYPE_CHECKING:
    from joulemap.domain.box import Box, Goal
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source
    from joulemap.wing.place.box.candidate import Candidate
    from joulemap.wing.place.box.doubt import DeviceDoubt, PlacedDoubt
    from joulemap.wing.place.box.problem import Problem
    from joulemap.wing.place.box.run import PlacedRun


@frozen(kw_only=True)
class PlacedQuestion:
    """Question that placements answer, with its workload, box, settings and uncertainty."""

    workload_key: str
    model: str
    box: Box
    goal: Goal
    settings: Settings
    problem: Problem
    known: Sequence[DeviceDoubt]
    """Prediction errors of each device."""
    doubts: Mapping[tuple[str, str], PlacedDoubt]
    """(devices, form) -> uncertainty of the placement."""

    @property
    def version(self) -> str:
        """Digest of the formulas of its devices' classes and of the placement code."""
        classes = sorted({member.hardware.architecture for member in self.problem.members})
        told = "|".join(
            (
                *map(formula_version, classes),
                remember("code", "box", lambda: digest_code("wing/place/box", "domain/box.py")),
            )
        )
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def key(self) -> str:
        """Digest of everything that the placements depend on."""
        members = [(one.name, one.hardware.digest, one.configuration) for one in self.problem.members]
        told = f"{self.workload_key}|{self.box}|{members}|{self.goal}|{self.known}|{self.version}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def ensure_placements(
    source: Source, question: PlacedQuestion, found: Sequence[Candidate]
) -> dict[tuple[str, str], int]:
    """Store the evaluated placements unless they are stored already; return (devices, form) -> placement id.

    Of several placements with equal devices and form, the first, which is the best, is kept.
    """
    kept: dict[tuple[str, str], PlacedRun] = {}
    for one in found:
        if one.run is not None:
            kept.setdefault((one.label, one.form), one.run)
    key = question.key
    with reading_if_there(source) as connection:
        stored = find_placements(connection, key) if connection is not None else {}
    if stored.keys() == kept.keys() and all(_is_same(stored[name], run) for name, run in kept.items()):
        return {name: one.placement_id for name, one in stored.items()}
    from joulemap.plan.catalogue import ensure_catalogue, writing

    with writing(source.anchor()) as connection:
        with transaction(connection):
            ensure_catalogue(connection)
            write_placements(connection, [_record(question, key, *name, run) for name, run in kept.items()])
        return {name: one.placement_id for name, one in find_placements(connection, key).items()}


def _is_same(stored: FoundPlacement, run: PlacedRun) -> bool:
    """Return True if a stored placement has the results just found; a solver or more time may find another."""
    told = stored.latency_fs, stored.period_fs, stored.energy_fj
    return told == (run.latency_fs, run.period_fs, run.energy_fj)


def _record(question: PlacedQuestion, key: str, devices: str, form: str, run: PlacedRun) -> StoredPlacement:
    settings, doubt = question.settings, question.doubts[devices, form]
    return StoredPlacement(
        question_key=key,
        model=question.model,
        box=question.box.id,
        goal=question.goal,
        precision=settings.precision[0],
        batch=question.problem.work.batch,
        runtime=settings.runtime[0],
        devices=devices,
        form=form,
        latency_fs=run.latency_fs,
        copy_fs=run.copy_fs,
        period_fs=run.period_fs,
        latency_half_width=half_width(doubt.latency),
        interval_half_width=half_width(doubt.interval),
        energy_half_width=half_width(doubt.energy),
        lines=run.lines,
        formula_version=question.version,
        package_version=package_version("joulemap"),
    )
