"""Stored placements: the newest answer to each question, with its ledger lines."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.box import PlacementLine
from joulemap.store.connection import Connection
from joulemap.store.digest import PLACEMENT, Digester
from joulemap.store.literal import execute
from joulemap.store.row import insert_records, next_id, utc_now
from joulemap.system.record import frozen


@frozen(kw_only=True)
class StoredPlacement:
    """Placement with its results, uncertainty and ledger lines, as stored."""

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
        """Sum of the energies of its lines."""
        return sum(line.energy_fj for line in self.lines)


@frozen(kw_only=True)
class FoundPlacement:
    """Stored placement's id and the results that distinguish it from others with equal devices and form."""

    placement_id: int
    latency_fs: int
    period_fs: int
    energy_fj: int


def find_placements(connection: Connection, question_key: str) -> dict[tuple[str, str], FoundPlacement]:
    """Return (devices, form) -> stored placement of a question."""
    names = [one.name for one in attrs.fields(FoundPlacement)]
    rows = execute(
        connection,
        f"SELECT devices, form, {', '.join(names)} FROM internal.placement WHERE question_key = ? "
        "ORDER BY placement_id",
        [question_key],
    ).fetchall()
    return {
        (str(devices), str(form)): FoundPlacement(**dict(zip(names, numbers, strict=True)))
        for devices, form, *numbers in rows
    }


def write_placements(connection: Connection, placements: Sequence[StoredPlacement]) -> None:
    """Store the placements of a question and delete its older ones. The caller holds the transaction."""
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
