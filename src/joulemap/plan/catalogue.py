"""Current catalogue as a database: the results database if it contains the catalogue, else the template of new
databases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.catalog.digest import catalogue_digest, is_hardware_path, own_files
from joulemap.domain.architecture import find_class, find_whole_class
from joulemap.domain.catalogue import Catalogue, HardwareEntry, find_alike
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.plan.model_name import list_names
from joulemap.plan.version import formula_version, interval_version
from joulemap.store import connection as store
from joulemap.store.catalogue import (
    ensure_calibrations,
    has_catalogue,
    write_catalogue,
    write_cost,
    write_doubt,
    write_events,
    write_roles,
    write_scales,
)
from joulemap.store.connection import Connection, Patience, check_path, open_in_memory, transaction, using
from joulemap.store.digest import Digester
from joulemap.store.sharing import Kind
from joulemap.store.template import Template, find_template
from joulemap.store.version import has_intervals, record_intervals
from joulemap.system.errors import CatalogueError, LockedDatabaseError, OlderDatabaseError
from joulemap.system.name import fold_name, split_names
from joulemap.system.package import list_packages
from joulemap.system.resource import package_version

if TYPE_CHECKING:
    from joulemap.physics.record.calibration import Calibration, CalibrationEntry
    from joulemap.physics.record.hardware import Hardware
    from joulemap.plan.source import Source

IMPATIENT: Final = Patience(limit_s=0.0)
"""Setting that opens a database without waiting for a writer, because the template has the catalogue too."""


def known_hardware(asked: Iterable[str | Hardware] = ()) -> dict[str, HardwareEntry]:
    """Return id -> entry of the current catalogue, and of the members of hardware families that `asked` names.

    Families are read only if a name is not in the catalogue.
    """
    ready = _find_template(catalogue_digest())
    if ready is not None:
        entries = ready.entries
    else:
        from joulemap.catalog.load import load_catalogue

        entries = load_catalogue().entries
    unknown = [one for one in asked if isinstance(one, str) and not _is_known(entries, one)]
    return {**entries, **_find_member_entries(unknown)} if unknown else entries


def _is_known(entries: Mapping[str, HardwareEntry], text: str) -> bool:
    """Return True if every name in a text is in the catalogue, or is a class or a path.

    Names are separated by commas. A text of ids separated by spaces is recognized first, without comparing names.
    """
    if is_hardware_path(text) or all(HardwareRef.read(word).id in entries for word in text.split()):
        return True
    names = (HardwareRef.read(name).id for name in split_names(text))
    return all(
        name in entries or find_class(name) or find_whole_class(name) or find_alike(entries, name) for name in names
    )


def _find_member_entries(texts: Iterable[str]) -> dict[str, HardwareEntry]:
    from joulemap.catalog.family import find_members, load_member

    return {name: HardwareEntry.of(load_member(name)) for name in find_members(texts)}


def read_known(digests: Iterable[str], own: Iterable[Hardware] = ()) -> dict[str, Hardware]:
    """Return digest -> hardware before modifiers, from the current catalogue or the user's own hardware."""
    by_digest = {hardware.digest: hardware for hardware in own}
    wanted = [digest for digest in dict.fromkeys(digests) if digest not in by_digest]
    ready = _find_template(catalogue_digest()) if wanted else None
    if ready is not None:
        from joulemap.store.hardware import read_hardware

        kept = {entry.digest for entry in ready.entries.values()}
        with store.reading(ready.path) as connection:
            by_digest |= read_hardware(connection, [digest for digest in wanted if digest in kept])
    elif wanted:
        from joulemap.catalog.load import load_catalogue

        by_digest |= {one.digest: one for one in load_catalogue().hardware.values() if one.digest in wanted}
    if missing := {digest for digest in wanted if digest not in by_digest}:
        from joulemap.catalog.family import find_described

        by_digest |= find_described(missing)
    return by_digest


def check_names(chips: Iterable[tuple[str, Hardware]], known: Mapping[str, HardwareEntry]) -> None:
    """Raise CatalogueError if hardware, given with the label of its file, reuses a name of the catalogue, of a class or
    of other given hardware.
    """
    taken: dict[str, HardwareEntry] = {}
    given: dict[str, tuple[str, Hardware]] = {}
    for label, hardware in chips:
        if not taken:
            taken = {fold_name(name): entry for entry in known.values() for name in (entry.id, *entry.aliases)}
        for name in (hardware.id, *hardware.aliases):
            if find_class(name):
                raise CatalogueError(f"{label}: the name {name!r} is that of a class of hardware; choose another")
            other = taken.get(fold_name(name))
            if other is not None and other.digest != hardware.digest:
                from joulemap.catalog.load import load_catalogue

                chip = load_catalogue().hardware.get(other.id)
                owner = f"of the package {chip.package}" if chip is not None and chip.package else "in the catalogue"
                raise CatalogueError(
                    f"{label}: the name {name!r} is already that of {other.id} {owner}; choose another"
                )
            file, same = given.setdefault(fold_name(name), (label, hardware))
            if same.digest != hardware.digest:
                raise CatalogueError(f"{label}: the name {name!r} is already that of {file}; choose another")


@contextlib.contextmanager
def opening_catalogue(source: Source, kind: Kind = store.READING) -> Iterator[Connection]:
    """Yield a read-only connection that holds the current catalogue.

    It is the results database where readable and up to date, else the template of new databases, else a temporary
    database in memory.
    """
    with contextlib.ExitStack() as stack:
        yield _open(source, catalogue_digest(), stack, kind)


@contextlib.contextmanager
def opening_alone(
    hardware: Hardware, *calibrations: tuple[CalibrationEntry, Calibration, Hardware]
) -> Iterator[Connection]:
    """Yield a temporary database of one chip and its calibrations."""
    with opening_chips({hardware.id: hardware}, hardware.id) as connection:
        ensure_calibrations(connection, list(calibrations))
        yield connection


@contextlib.contextmanager
def opening_chips(chips: Mapping[str, Hardware], label: str) -> Iterator[Connection]:
    """Yield a temporary database whose catalogue is these chips; `label` names it in errors."""
    with using(open_in_memory(), label) as connection:
        write_catalogue(connection, Catalogue(chips, label), {}, {}, "")
        yield connection


def _open(source: Source, digest: str, stack: contextlib.ExitStack, kind: Kind) -> Connection:
    if check_path(source.path):
        with contextlib.suppress(LockedDatabaseError, OlderDatabaseError):
            connection = stack.enter_context(store.reading(source.path, IMPATIENT, kind))
            if has_catalogue(connection, digest):
                return connection
    ready = _find_template(digest)
    if ready is not None:
        return stack.enter_context(store.reading(ready.path, kind=kind))
    connection = stack.enter_context(using(open_in_memory(), "the catalogue"))
    _store_catalogue(connection)
    store.configure(connection, kind)
    return connection


@contextlib.contextmanager
def writing(source: Source) -> Iterator[Connection]:
    """Yield the only writing connection to a database, made with the catalogue if missing, with current intervals."""
    template = None if source.path.exists() else find_catalogue()
    with store.writing(source.path, template, source.patience) as connection:
        if not has_intervals(connection, interval_version()):
            with transaction(connection):
                _renew_intervals(connection)
        yield connection


def _renew_intervals(connection: Connection) -> None:
    """Compute the intervals of stored runs with the current formulas and error scales, those of the catalogue."""
    if has_catalogue(connection, catalogue_digest()):
        _store_doubt(connection)
        Digester(connection).seal_tables()
    else:
        _store_catalogue(connection)


def _store_doubt(connection: Connection) -> None:
    """Store the current error scales, and the intervals of stored runs that follow from them."""
    from joulemap.catalog.error_scale import load_doubt
    from joulemap.physics.interval.error_scale import list_error_groups

    for group in list_error_groups():
        for table, load_scales in group.tables.items():
            write_scales(connection, table, load_scales())
    write_doubt(connection, load_doubt())
    record_intervals(connection, interval_version())


def find_catalogue() -> Path | None:
    """Return the path of a read-only database with the current catalogue and no runs; None if it cannot be stored."""
    ready = _find_template(catalogue_digest())
    return ready.path if ready else None


def _find_template(digest: str) -> Template | None:
    """Return the template of a catalogue; made again if another process removed it, as it does if it makes others."""
    ready = _make_template(digest)
    if ready is None or ready.path.exists():
        return ready
    _make_template.cache_clear()
    return _make_template(digest)


@cache
def _make_template(digest: str) -> Template | None:
    template = find_template(digest, package_version("joulemap"), _fill_template)
    if list_packages():
        import logging

        from joulemap.catalog.load import list_left_out

        for line in list_left_out():
            logging.getLogger("joulemap").warning("%s", line)
    return template


def ensure_catalogue(connection: Connection) -> None:
    """Store the current catalogue in the database if it differs."""
    if not has_catalogue(connection, catalogue_digest()):
        _store_catalogue(connection)


def _fill_template(connection: Connection) -> dict[str, HardwareEntry]:
    """Store the catalogue, and its hardware with the shipped calibrations; return id -> entry."""
    if not own_files():
        _store_defaults(connection)
    return _store_catalogue(connection)


def _store_defaults(connection: Connection) -> None:
    """Store each chip as described, and with default settings: its anchor and its shipped calibration.

    Hardware whose calibration was fitted to another description or other formulas is omitted; a question about it
    reports the error.
    """
    from joulemap.catalog.calibration import find_shipped, locate, read_calibration
    from joulemap.catalog.load import load_catalogue
    from joulemap.plan.anchor import default_target, find_anchors
    from joulemap.store.hardware import write_hardware

    described = load_catalogue().hardware
    entries = {one.id: find_shipped(one) for one in described.values()}
    read = {entry: read_calibration(locate(entry)) for entry in entries.values() if entry is not None}
    fitted = {
        entry: one
        for entry, one in read.items()
        if one.formula_version == formula_version(described[entry.hardware].architecture)
    }
    find_anchors(described.values())
    usual: list[Hardware] = []
    used: dict[CalibrationEntry, Calibration] = {}
    for one in described.values():
        entry = entries[one.id]
        if entry is None or entry in fitted:
            with contextlib.suppress(ValueError, CatalogueError):
                usual.append(default_target(one, None if entry is None else fitted[entry]).bind(one))
                used |= {} if entry is None else {entry: fitted[entry]}
    every = {one.digest: one for one in (*described.values(), *usual)}
    write_hardware(connection, list(every.values()), package_version("joulemap"))
    ensure_calibrations(connection, [(entry, one, described[entry.hardware]) for entry, one in used.items()])


def _store_catalogue(connection: Connection) -> dict[str, HardwareEntry]:
    """Store the current catalogue in the database; return id -> entry."""
    from joulemap.catalog.calibration import find_shipped
    from joulemap.catalog.event import load_events, load_roles
    from joulemap.catalog.load import load_catalogue
    from joulemap.catalog.measurement import find_seen, list_kinds, load_measurements, load_profiles
    from joulemap.catalog.sheet import load_assumptions, load_models, load_offers, load_regions, load_shipped
    from joulemap.domain.measurement import Measurement
    from joulemap.plan.anchor import default_target
    from joulemap.store.measurement import clear_operator_measurements, read_operator_file, update_measurements
    from joulemap.trace.single import describe_examples

    catalogue = load_catalogue()
    closed = dict(describe_examples())
    for names in list_names():
        closed.update(names.list_shipped())
    models = load_models() | {name: entry for name, (entry, _) in closed.items()}
    shipped = load_shipped() | {name: counted for name, (_, counted) in closed.items()}
    usual = {one.id: default_target(one, find_shipped(one)).digest for one in catalogue.hardware.values()}
    write_catalogue(connection, catalogue, models, shipped, package_version("joulemap"), usual)
    write_cost(connection, load_assumptions(), load_regions(), load_offers())
    classes = [name for package in catalogue.supplied for name in package.architectures]
    write_roles(connection, load_roles(classes))
    write_events(connection, load_events(classes))
    _store_doubt(connection)
    supplied = [row for package in catalogue.supplied for row in package.measurements]
    update_measurements(connection, (*load_measurements(), *(row for row in supplied if isinstance(row, Measurement))))
    for kind in list_kinds() if supplied else ():
        if rows := [row for row in supplied if isinstance(row, kind.record)]:
            kind.write(connection, rows)
    clear_operator_measurements(connection)
    for profile in load_profiles():
        if profile.operators.exists():  # missing only while `make profile` writes it
            read_operator_file(
                connection,
                profile.operators,
                hardware=profile.hardware,
                runtime=profile.runtime,
                matmul_precision=profile.matmul_precision,
                source=profile.source,
                conditions=profile.conditions,
                find_seen=partial(find_seen, profile.hardware),
            )
    Digester(connection).seal_tables()
    return catalogue.entries
