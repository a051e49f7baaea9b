"""Storage of a question's placements; stored results are replaced if the current formulas give others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.domain import Settings
from joulemap.plan import Source, ensure_catalogue, formula_version, reading_if_there, writing
from joulemap.store import Connection, Digester, execute, insert_records, next_id, transaction, utc_now
from joulemap.store.digest import PLACEMENT
from joulemap.system import digest_code, frozen, package_version
from joulemap.system.resource import remember
from joulemap.wing.place.box.candidate import Candidate
from joulemap.wing.place.box.interval import PlacedDoubt, half_width
from joulemap.wing.place.box.problem import Problem
from joulemap.wing.place.box.run import PlacedRun
from joulemap.wing.place.generated.row import DoubtedDevice
from joulemap.wing.place.record import Goal

CODE: Final = ("wing/place/box", "wing/place/record.py", "physics/interval")
"""Code that placements depend on, in addition to the formulas of the devices' classes."""


def find_placements(connection: Connection, question_key: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return (devices, form) -> id, latency, period and energy of each stored placement of a question."""
    rows = execute(
        connection,
        "SELECT devices, form, placement_id, latency_fs, period_fs, energy_fj FROM internal.placement "
        "WHERE question_key = ? ORDER BY placement_id",
        [question_key],
    ).fetchall()
    return {(devices, form): tuple(numbers) for devices, form, *numbers in rows}


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
        with writing(source.anchor()) as connection:
            with transaction(connection):
                ensure_catalogue(connection)
                _write(connection, question, key, kept)
            stored = find_placements(connection, key)
    return {name: number for name, (number, *_) in stored.items()}


def _write(
    connection: Connection, question: PlacedQuestion, key: str, kept: Mapping[tuple[str, str], PlacedRun]
) -> None:
    """Store placements, and delete the earlier placements of their question, within the caller's transaction."""
    first, settings = next_id(connection, "placement", "placement_id"), question.settings
    replaced = execute(
        connection,
        "DELETE FROM internal.placement WHERE question_key = ? RETURNING placement_id, content_digest",
        [key],
    ).fetchall()
    execute(
        connection,
        "DELETE FROM internal.placement_line WHERE list_contains(?, placement_id)",
        [[number for number, _ in replaced]],
    )
    numbers, doubts = range(first, first + len(kept)), [question.doubts[name] for name in kept]
    insert_records(
        connection,
        "placement",
        list(kept.values()),
        placement_id=numbers,
        question_key=key,
        model=question.model,
        box=question.problem.box.id,
        goal=question.goal,
        precision=settings.precision[0],
        batch=question.problem.work.batch,
        runtime=settings.runtime[0],
        devices=[devices for devices, _ in kept],
        form=[form for _, form in kept],
        latency_half_width=[half_width(one["latency"]) for one in doubts],
        interval_half_width=[half_width(one["throughput"]) for one in doubts],
        energy_half_width=[half_width(one["energy"]) for one in doubts],
        formula_version=question.version,
        package_version=package_version("joulemap"),
        created_at=utc_now(),
        content_digest="",
    )
    insert_records(
        connection,
        "placement_line",
        [line for run in kept.values() for line in run.lines],
        placement_id=[number for number, run in zip(numbers, kept.values(), strict=True) for _ in run.lines],
        line_index=[index for run in kept.values() for index, _ in enumerate(run.lines)],
    )
    digester = Digester(connection)
    digester.change_set(PLACEMENT, (), [digest for _, digest in replaced])
    digester.seal(PLACEMENT, numbers)
