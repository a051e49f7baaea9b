"""Measurements in, and the predictions that they score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from joulemap.catalog.measurement import read_measurements
from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import find_entry
from joulemap.errors import ModelError, UnknownNameError
from joulemap.plan.calibration import choose_calibration
from joulemap.plan.catalogue import ensure_catalogue, known_hardware, template
from joulemap.plan.question import name_configuration
from joulemap.store.connection import open_for_reading, open_for_writing, transaction, using
from joulemap.store.read import has_measurement_on

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware
    from joulemap.store.query import Answer
    from joulemap.workspace.workspace import Workspace


def import_file(path: Path, file: Path) -> tuple[int, int]:
    """Store a file's measurements; return (new, stored already)."""
    rows = read_measurements(file, known_hardware(), load_models())
    from joulemap.store.write_measurement import write_measurements

    with using(open_for_writing(path, template(path)), path) as connection, transaction(connection):
        ensure_catalogue(connection)
        fresh = write_measurements(connection, rows)
    return fresh, len(rows) - fresh


def name_measured(path: Path, hardware: str) -> str:
    """Return a hardware as measurements are stored by it: of the catalogue, or an id that `measure` stored some under.

    Empty for none; raises UnknownNameError for a name that is neither.
    """
    try:
        return name_configuration(hardware) if hardware else ""
    except UnknownNameError:
        if path.exists():
            with using(open_for_reading(path), path) as connection:
                if has_measurement_on(connection, hardware):
                    return hardware
        raise


def find_stored(path: Path, hardware: str) -> Hardware | None:
    """Return the description that the newest run on a hardware used, without its calibration; None where none did."""
    from joulemap.store.read_hardware import find_described, read_hardware

    with using(open_for_reading(path), path) as connection:
        digest = find_described(connection, hardware)
        return None if digest is None else read_hardware(connection, [digest])[digest]


def evaluate_measured(
    workspace: Workspace,
    measured: Answer,
    chosen: Sequence[str],
    precision: str,
    talk: Callable[[str], None],
    calibration: str | Calibration,
) -> tuple[str, ...]:
    """Evaluate every measured configuration that is not stored; return the labels of the calibrations that apply.

    What cannot be traced is told and left out. `measured` names configurations; `chosen` is what they were chosen by,
    empty texts left out. UnknownNameError where there are none.
    """
    rows = [row for row in measured.records() if precision in ("", row["precision"])]
    if not rows:
        measured_on = {row["hardware"] for row in workspace.measurements().records()}
        what = " and ".join(text for text in chosen if text)
        raise UnknownNameError("measurement of", what, measured_on, "see `joulemap measurements list`")
    groups: dict[tuple[str, str, str, int], list[str]] = {}
    for row in rows:
        groups.setdefault((row["hardware"], row["precision"], row["runtime"], row["batch"]), []).append(row["model"])
    known = known_hardware()
    choice = choose_calibration(calibration)
    ids = {name.partition("@")[0] for name, _, _, _ in groups}
    choice.check(ids)
    for (name, precision, runtime, batch), models in groups.items():
        try:
            find_entry(known, name.partition("@")[0])
            target: str | Hardware = name
        except UnknownNameError:  # a file, or a machine that described itself: as it was predicted when it was measured
            described = find_stored(workspace.path, name)
            if described is None:
                talk(f"{name} is not in the catalogue and no run describes it: left out")
                continue
            target = described
        talk(f"{name}, {precision}, {runtime}, batch {batch}: {len(models)} measurements")
        names = tuple(dict.fromkeys(models))
        evaluate = partial(
            workspace.evaluate,
            hardware=[target],
            precisions=[precision],
            runtimes=[runtime],
            batches=[batch],
            calibration=choice.asked_of(name.partition("@")[0]),
        )
        try:
            evaluate(names)
        except (ModelError, UnknownNameError):
            for one in names:
                try:
                    evaluate([one])
                except (ModelError, UnknownNameError) as error:
                    talk(f"left out: {error}")
    return tuple(sorted(entry.label for entry in map(choice.find, ids) if entry is not None))
