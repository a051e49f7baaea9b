"""Storage of a question's placements; stored results are replaced if the current formulas give others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.plan.reader import reading_if_there
from joulemap.plan.version import formula_version
from joulemap.store.connection import Connection, transaction
from joulemap.store.digest import PLACEMENT, Digester
from joulemap.store.literal import execute
from joulemap.store.row import insert_records, next_id, utc_now
from joulemap.system.record import frozen
from joulemap.system.resource import digest_code, package_version, remember
from joulemap.wing.place.box.interval import half_width
from joulemap.wing.place.record import PlacementLine

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source
    from joulemap.wing.place.box.candidate import Candidate
    from joulemap.wing.place.box.interval import PlacedDoubt
    from joulemap.wing.place.box.problem import Problem
    from joulemap.wing.place.box.run import PlacedRun
    from joulemap.wing.place.generated.row import DoubtedDevice
    from joulemap.wing.place.record import Goal

CODE: Final = ("wing/place/box", "wing/place/record.py", "physics/interval")
"""Code that placements depend on, in addition to the formulas of the devices' classes."""


@frozen(kw_only=True)
class StoredPlacement:
    """Placement with its results, uncertainty and ledger lines, as the database stores it."""

    question_key: str
    model: str
    box: str
    goal: str
    precision: str
    batch: int
    runtime: str
    devices: str
    form: str
    latency_fs: int
    copy_fs: int
    period_fs: int
    latency_half_width: float
    interval_half_width: float
    energy_half_width: float
    lines: Sequence[PlacementLine]
    formula_version: str
    package_version: str

    @property
    def energy_fj(self) -> int:
        """Energy in femtojoules, the sum over all ledger lines."""
        return sum(line.energy_fj for line in self.lines)


def find_placements(connection: Connection, question_key: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return (devices, form) -> id, latency, period and energy of each stored placement of a question."""
    rows = execute(
        connection,
        "SELECT devices, form, placement_id, latency_fs, period_fs, energy_fj FROM internal.placement "
        "WHERE question_key = ? ORDER BY placement_id",
        [question_key],
    ).fetchall()
    return {(devices, form): tuple(numbers) for devices, form, *numbers in rows}


def write_placements(connection: Connection, placements: Sequence[StoredPlacement]) -> None:
    """Store the placements, and delete the earlier placements of their questions, within the caller's transaction."""
    first, keys = next_id(connection, "placement", "placement_id"), list({one.question_key for one in placements})
    replaced = execute(
        connection,
        "DELETE FROM internal.placement WHERE list_contains(?, question_key) RETURNING placement_id, content_digest",
        [keys],
    ).fetchall()
    execute(
        connection,
        "DELETE FROM internal.placement_line WHERE list_contains(?, placement_id)",
        [[number for number, _ in replaced]],
    )
    numbers = range(first, first + len(placements))
    insert_records(connection, "placement", placements, placement_id=numbers, created_at=utc_now(), content_digest="")
    insert_records(
        connection,
        "placement_line",
        [line for one in placements for line in one.lines],
        placement_id=[number for number, one in zip(numbers, placements, strict=True) for _ in one.lines],
        line_index=[index for one in placements for index, _ in enumerate(one.lines)],
    )
    digester = Digester(connection)
    digester.change_set(PLACEMENT, (), [digest for _, digest in replaced])
    digester.seal(PLACEMENT, numbers)


@frozen(kw_only=True)
class PlacedQuestion:
    """Question that placements answer, with its workload, box, settings and uncertainty."""

    workload_key: str
    model: str
    goal: Goal
    settings: Settings
    problem: Problem
    known: Sequence[DoubtedDevice]
    """Prediction errors of each device of the box."""
    doubts: Mapping[tuple[str, str], PlacedDoubt]
    """(devices, form) -> uncertainty of the placement."""

    @property
    def version(self) -> str:
        """Digest of the placement code and of the formulas of the devices' classes."""
        classes = sorted({member.hardware.architecture for member in self.problem.members})
        parts = "|".join((*map(formula_version, classes), remember("box", lambda: digest_code(*CODE))))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    @property
    def key(self) -> str:
        """Digest of everything that the placements depend on."""
        members = [(one.name, one.hardware.digest, one.configuration) for one in self.problem.members]
        parts = f"{self.workload_key}|{self.problem.box}|{members}|{self.goal}|{self.known}|{self.version}"
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


def ensure_placements(
    source: Source, question: PlacedQuestion, candidates: Sequence[Candidate]
) -> dict[tuple[str, str], int]:
    """Store placements that are not stored yet; return (devices, form) -> placement id.

    Of several placements with equal devices and form, only the best one is kept, which comes first.
    """
    kept: dict[tuple[str, str], PlacedRun] = {}
    for one in candidates:
        if one.run is not None:
            kept.setdefault(one.name, one.run)
    key = question.key
    with reading_if_there(source) as connection:
        stored = find_placements(connection, key) if connection is not None else {}
    # a solver or a longer search may find another placement with the same devices and form
    found = {name: [run.latency_fs, run.period_fs, run.energy_fj] for name, run in kept.items()}
    if {name: results for name, (_, *results) in stored.items()} != found:
        from joulemap.plan.catalogue import ensure_catalogue, writing

        with writing(source.anchor()) as connection:
            with transaction(connection):
                ensure_catalogue(connection)
                write_placements(connection, [_record(question, key, *name, run) for name, run in kept.items()])
            stored = find_placements(connection, key)
    return {name: number for name, (number, *_) in stored.items()}


def _record(question: PlacedQuestion, key: str, devices: str, form: str, run: PlacedRun) -> StoredPlacement:
    settings, doubt = question.settings, question.doubts[devices, form]
    return StoredPlacement(
        question_key=key,
        model=question.model,
        box=question.problem.box.id,
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
