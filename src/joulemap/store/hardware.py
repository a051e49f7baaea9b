"""Storage of hardware versions as rows, and their conversion back to records; each changed description is a new
version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.host import HOST_COLUMNS
from joulemap.physics.record.hardware import (
    IDLE_STATES,
    UNMEASURED,
    Hardware,
    Link,
    MeasuredLoad,
    MemoryLevel,
    Peak,
    PowerMode,
)
from joulemap.physics.record.quantity import COUNTS, Evidence, Quantity, read_evidence
from joulemap.physics.record.reference import EnergyAction, EnergyReference
from joulemap.store.connection import Connection
from joulemap.store.digest import HARDWARE, Digester
from joulemap.store.insert import insert_columns, insert_records, next_id
from joulemap.store.literal import execute
from joulemap.system.errors import DatabaseError

if TYPE_CHECKING:
    from joulemap.physics.record.compiler import Compiler

PREFIXES: Final = ("geometry", "memory", "peak", "link", "load", "power_mode", "coefficient")
"""Prefixes of the names of facts that do not correspond to fields of `Hardware`."""


ACTION_FIELDS: Final = ("category", "common_category", "component", "action", "part", "per")
"""Fields that, together with the architecture, identify an action."""

_read_identity: Final = attrgetter(*ACTION_FIELDS)

PRICE_FIELDS: Final = ("energy_per_action_fj", "low_fj", "high_fj", "basis", "source", "count_formula")

TEXT_FIELDS: Final = (
    "name", "vendor", "architecture", "deployment", "microarchitecture", "unit_name", "memory_type", "projection",
    "unavailable", "sold_in", "power_mode", "aliases", "doubts", "priced_at", "boundary", "described_digest",
    "needs_host", "host", "matmul_precision", "kernels", "package",
)  # fmt: skip

PRICED: Final = "energy_per_action JOIN internal.action USING (action_id)"

TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "hardware_fact": (f"quantity, value, unit, basis, source, note, {', '.join(COUNTS)}", "fact_index"),
    "hardware_precision": (
        "precision, operations_per_clock, units_count AS unit_count, clock_hz, engine, explanation",
        "precision_index",
    ),
    "hardware_level": ("level AS name, kind, per", "level_index"),
    "hardware_link": ("link AS name, connects, generation, topology", "link_index"),
    "hardware_load": ("load AS name, model, precision, batch, runtime, covers, tracer_version", "load_index"),
    "hardware_power_mode": ("power_mode AS name", "mode_index"),
    "hardware_operator": ("operator, compiler AS name, cut, host, basis, source", "operator_index"),
    PRICED: (", ".join((*ACTION_FIELDS, *PRICE_FIELDS, *COUNTS)), "action_index"),
}
"""Table with parts of hardware -> (its columns, named like the fields of their record; the column that orders its
rows).
"""

FORMED: Final = 10_000
"""Maximum cached records of numbers."""

LISTED: Final[tuple[tuple[str, Callable[..., Any], str, str], ...]] = (
    ("memory_levels", MemoryLevel, "hardware_level", "memory"),
    ("links", Link, "hardware_link", "link"),
    ("loads", MeasuredLoad, "hardware_load", "load"),
    ("power_modes", PowerMode, "hardware_power_mode", "power_mode"),
)
"""(field of `Hardware`, record of its items, table of the items, prefix of facts that are fields of an item)."""


def write_hardware(
    connection: Connection,
    fresh: Sequence[Hardware],
    package_version: str,
    changes: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Store new hardware versions.

    `changes` maps a hardware digest to descriptions of the numbers that the user changed.
    """
    changed = changes or {}

    def insert(table: str, index: str, pick: Callable[[Hardware], Iterable[tuple[object, dict[str, Any]]]]) -> None:
        """Insert the parts that `pick` yields for each hardware, as (record, values of further columns), numbered per
        hardware. Rows of one name and source follow each other, which makes a new database 12 % smaller.
        """
        rows = [(one.digest, number, *part) for one in fresh for number, part in enumerate(pick(one))]
        rows.sort(key=lambda row: (str(next(iter(row[3].values()), "")), getattr(row[2], "source", "")))
        digests, numbers, parts, changed = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
        columns = {name: [one[name] for one in changed] for name in (changed[0] if changed else ())}
        insert_records(connection, table, parts, **{"hardware_digest": digests, index: numbers}, **columns)

    def insert_listed(field: str, table: str) -> None:
        columns, index = TABLES[table]
        name = columns.partition(" ")[0]
        insert(table, index, lambda one: ((part, {name: part.name}) for part in getattr(one, field)))

    insert_records(
        connection,
        "hardware_version",
        fresh,
        hardware_digest=[one.digest for one in fresh],
        hardware=[one.id for one in fresh],
        package_version=package_version,
        changes=[list(changed.get(one.digest, ())) for one in fresh],
        helper_digest=[one.helper.digest if one.helper else "" for one in fresh],
        content_digest="",
        **{name: [read(one.needs_host) for one in fresh] for name, read in HOST_COLUMNS.items()},
    )
    insert(
        "hardware_fact",
        "fact_index",
        lambda one: ((fact, {"quantity": name, **_count(fact.evidence)}) for name, fact in one.quantities()),
    )
    insert(
        "hardware_precision",
        "precision_index",
        lambda one: (
            (peak, {"precision": name, "peak_ops_per_s": peak.rate.value, "units_count": peak.unit_count})
            for name, peak in one.peaks.items()
        ),
    )
    for field, _, table, _ in LISTED:
        insert_listed(field, table)
    insert("hardware_operator", "operator_index", _compiled)
    ids = _action_ids(connection, fresh)
    insert(
        "energy_per_action",
        "action_index",
        lambda one: (
            (action, {"action_id": ids[identity], **_count(action.evidence)})
            for action, identity in zip(one.reference, identify_actions(one), strict=True)
        ),
    )
    Digester(connection).seal(HARDWARE, [one.digest for one in fresh])


def _count(evidence: Evidence | None) -> dict[str, Any]:
    """Return the columns of an evidence; null without one."""
    return dict.fromkeys(COUNTS) if evidence is None else attrs.asdict(evidence)


def _compiled(hardware: Hardware) -> Iterator[tuple[object, dict[str, Any]]]:
    if hardware.compiler is not None:
        for name in hardware.compiler.operators:
            yield hardware.compiler, {"operator": name, "compiler": hardware.compiler.name}


def identify_actions(hardware: Hardware) -> list[tuple[str, ...]]:
    """Return the identity (architecture, *`ACTION_FIELDS`) of each row of a hardware's reference table."""
    return [(hardware.architecture, *_read_identity(action)) for action in hardware.reference]


def read_vocabulary(connection: Connection) -> dict[tuple[str, ...], int]:
    """Return identity -> id of all stored actions."""
    rows = connection.execute(
        f"SELECT action_id, architecture, {', '.join(ACTION_FIELDS)} FROM internal.action"
    ).fetchall()
    return {tuple(row[1:]): int(row[0]) for row in rows}


def _action_ids(connection: Connection, hardware: Sequence[Hardware]) -> dict[tuple[str, ...], int]:
    """Return identity -> id of all actions, after storing actions of this hardware that are new."""
    ids = read_vocabulary(connection)
    identities = (identity for one in hardware for identity in identify_actions(one))
    fresh = list(dict.fromkeys(identity for identity in identities if identity not in ids))
    if fresh:
        first = next_id(connection, "action", "action_id")
        numbers = range(first, first + len(fresh))
        names = ("architecture", *ACTION_FIELDS)
        columns = dict(zip(names, zip(*fresh, strict=True), strict=True))
        insert_columns(connection, "action", {"action_id": numbers, **columns})
        ids |= dict(zip(fresh, numbers, strict=True))
    return ids


def find_hardware(connection: Connection, digests: Iterable[str]) -> set[str]:
    """Return those of the digests whose hardware version is stored."""
    statement = "SELECT hardware_digest FROM internal.hardware_version WHERE list_contains(?, hardware_digest)"
    wanted = list(digests)
    return {digest for (digest,) in execute(connection, statement, [wanted]).fetchall()} if wanted else set()


def find_described(connection: Connection, hardware: str) -> str | None:
    """Return the digest of the hardware description under this id that the newest run used; None without a run.

    The description is the original one, without a calibration or boundary. It may be absent from the catalogue, because
    a file or a machine's self-description provided it.
    """
    rows = execute(
        connection,
        """
        SELECT coalesce(c.hardware_digest, nullif(v.described_digest, ''), r.hardware_digest)
        FROM internal.run AS r
        JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
        LEFT JOIN internal.calibration AS c ON c.calibration_digest = r.calibration_digest
        WHERE v.hardware = ? AND r.power_mode = 'default'
        ORDER BY r.run_id DESC
        LIMIT 1
        """,
        [hardware],
    ).fetchall()
    return str(rows[0][0]) if rows else None


def read_hardware(connection: Connection, digests: Iterable[str]) -> dict[str, Hardware]:
    """Return digest -> hardware of stored versions. Raise DatabaseError for a digest that is not stored."""
    wanted = list(dict.fromkeys(digests))
    if not wanted:
        return {}

    def read(table: str, columns: str, order: str) -> dict[str, list[dict[str, Any]]]:
        """Return digest -> rows of a table, each as column -> value."""
        cursor = execute(
            connection,
            f"SELECT hardware_digest, {columns} FROM internal.{table} WHERE list_contains(?, hardware_digest) "
            f"ORDER BY hardware_digest, {order}",
            [wanted],
        )
        _, *names = (name for name, *_ in cursor.description or ())
        by_digest: dict[str, list[dict[str, Any]]] = {digest: [] for digest in wanted}
        for digest, *row in cursor.fetchall():
            by_digest[digest].append(dict(zip(names, row, strict=True)))
        return by_digest

    versions = read("hardware_version", ", ".join(("hardware AS id", *TEXT_FIELDS, "helper_digest")), "hardware")
    tables = {table: read(table, columns, order) for table, (columns, order) in TABLES.items()}
    for digest in wanted:
        if not versions[digest] or not tables[PRICED][digest]:
            raise DatabaseError(f"the hardware version {digest} is not in the database")
    helpers = {digest: rows[0].pop("helper_digest") for digest, rows in versions.items()}
    helping = read_hardware(connection, filter(None, helpers.values())) if any(helpers.values()) else {}
    return {
        digest: attrs.evolve(
            _assemble(digest, versions[digest][0], {table: of_digest[digest] for table, of_digest in tables.items()}),
            helper=helping.get(helpers[digest]),
        )
        for digest in wanted
    }


@lru_cache(maxsize=FORMED)
def _form(record: Callable[..., Any], *cells: tuple[str, Any]) -> Any:
    """Return the record of a number from the cells of its row, whose counts become its evidence. Chips share most."""
    own = {name: value for name, value in cells if name not in COUNTS}
    return record(**own, evidence=read_evidence(dict(cells)))


def _read_compiler(rows: list[dict[str, Any]]) -> Compiler | None:
    """Return the compiler described by rows with one supported operator each; None without rows."""
    if not rows:
        return None
    from joulemap.physics.record.compiler import Compiler

    shared = {name: value for name, value in rows[0].items() if name != "operator"}
    return Compiler(**shared, operators=tuple(row["operator"] for row in rows))


def _assemble(digest: str, version: dict[str, Any], tables: Mapping[str, list[dict[str, Any]]]) -> Hardware:
    """Return the hardware made from a row of `hardware_version` and its rows in each other table."""
    own: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in version.items()}
    of: dict[str, dict[str, Quantity]] = {prefix: {} for prefix in PREFIXES}
    for fact in tables["hardware_fact"]:
        prefix, _, rest = fact.pop("quantity").partition(".")
        if rest:
            of[prefix][rest] = _form(Quantity, *fact.items())
        elif not (prefix in IDLE_STATES and fact["source"].endswith(UNMEASURED)):
            own[prefix] = _form(Quantity, *fact.items())
    peaks = {row.pop("precision"): row for row in tables["hardware_precision"]}
    listed: dict[str, Any] = {
        field: tuple(record(**row, **_under(row["name"], of[prefix])) for row in tables[table])
        for field, record, table, prefix in LISTED
    }
    return Hardware(
        **own,
        **listed,
        geometry=of["geometry"],
        peaks={precision: Peak(rate=of["peak"][precision], **row) for precision, row in peaks.items()},
        coefficients=of["coefficient"],
        compiler=_read_compiler(tables["hardware_operator"]),
        reference=EnergyReference(tuple(_form(EnergyAction, *row.items()) for row in tables[PRICED])),
        digest=digest,
    )


def _under(name: str, facts: Mapping[str, Quantity]) -> dict[str, Any]:
    """Return the facts whose dotted name starts with `name`, keyed by the rest of their name."""
    return {rest: quantity for key, quantity in facts.items() if (rest := key.removeprefix(f"{name}.")) != key}
