"""One hardware at a time: by name, power mode or file; files to start from; files put to the test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.domain.answer.hardware import Default, FileCheck, Trial
from joulemap.domain.catalogue import DEFAULT_MODE, Catalogue, find_entry
from joulemap.domain.configuration import RUNTIMES, Configuration
from joulemap.errors import CatalogueError, JoulemapError, UnsupportedError, UsageError
from joulemap.plan.calibration import choose_calibration
from joulemap.plan.catalogue import check_names, known_hardware, opening_catalogue
from joulemap.store.connection import Connection, open_in_memory, using
from joulemap.store.read_hardware import read_hardware
from joulemap.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration, CalibrationEntry
    from joulemap.domain.hardware import Hardware
    from joulemap.model.workload import WorkloadColumns

TRIAL_MODELS: Final = ("resnet18", "mobilenet_v2", "transformer_encoder_layer")
"""Dense and depthwise convolutions, and attention."""

LONGEST_TRIAL_S: Final = 100.0
"""A trial model that takes longer than this takes it because of a number in another unit."""


@contextlib.contextmanager
def opening_hardware(
    path: Path, name: str, calibration: str | Calibration
) -> Iterator[tuple[Connection, str, CalibrationEntry | None]]:
    """Give out a connection whose catalogue holds this hardware, its id, and the calibration of its numbers.

    `name` is an id or alias, with `@MODE` or without, or a file. The database at `path` is used where it can answer.
    """
    choice = choose_calibration(calibration)
    place, at, _ = name.partition("@")
    if not at and not is_hardware_path(place):
        entry = find_entry(known_hardware(), place)
        choice.check({entry.id})
        with opening_catalogue(path) as connection:
            if choice.find(entry.id) is None:
                yield connection, entry.id, None
                return
            plain, mode = read_hardware(connection, [entry.digest])[entry.digest], DEFAULT_MODE
    else:
        plain, mode = load_named(name)
        choice.check({plain.id})
    used = choice.find(plain.id)
    hardware = choice.apply(plain, used).in_mode(mode)
    from joulemap.store.write_calibration import ensure_calibrations
    from joulemap.store.write_catalogue import write_catalogue

    with using(open_in_memory(), path) as connection:
        write_catalogue(connection, Catalogue({hardware.id: hardware}, hardware.digest), {}, {}, "")
        if used is not None:
            ensure_calibrations(connection, [(used, choice.load(used, plain.architecture), plain)])
        yield connection, hardware.id, used


def load_named(name: str) -> tuple[Hardware, str]:
    """Return the hardware of a name or file and the mode named; UnknownNameError, UsageError or CatalogueError."""
    from joulemap.catalog.load import load_catalogue, load_files
    from joulemap.domain.catalogue import HardwareEntry

    place, at, mode = name.partition("@")
    if is_hardware_path(place):
        found = load_files(expand_paths([Path(place).expanduser()]))
        if len(found) > 1:
            raise UsageError(f"{place} holds {len(found)} hardware files: name one")
        hardware = found[0]
    else:
        hardware = load_catalogue().find(place)
    return hardware, HardwareEntry.of(hardware).find_mode(mode if at else DEFAULT_MODE)


def template_text(like: str, architecture: str) -> str:
    """Return a hardware file to start from, like a known hardware or the smallest of a class."""
    from joulemap.catalog.starter import copy_text, minimal_text

    return copy_text(like) if like else minimal_text(architecture)


def check_files(paths: Sequence[Path]) -> tuple[FileCheck, ...]:
    """Return what each hardware file describes, what its class filled in, and how it runs a few models.

    Raises CatalogueError where a file breaks a rule, takes a name of the catalogue or of another, or cannot be mapped.
    """
    from joulemap.catalog.load import load_files
    from joulemap.catalog.parser import name_file

    files = expand_paths(paths)
    known = known_hardware()
    checked = []
    for path, hardware in zip(files, load_files(files), strict=True):
        check_names(hardware, known, name_file(path))
        defaults = tuple(
            Default(name, quantity.value, quantity.unit, quantity.source)
            for name, quantity in hardware.quantities()
            if quantity.source.startswith("class default")
        )
        trials = tuple(_try(path, hardware))
        if all(trial.reason for trial in trials):
            raise CatalogueError(f"{name_file(path)}: no trial could run: {trials[0].reason}")
        checked.append(
            FileCheck(
                file=str(path),
                hardware=hardware.id,
                architecture=hardware.architecture,
                defaults=defaults,
                trials=trials,
            )
        )
    return tuple(checked)


def _try(path: Path, hardware: Hardware) -> Iterator[Trial]:
    """Run the trial models on every precision, power mode and runtime; a fault of the description is a refusal."""
    from joulemap.catalog.parser import name_file
    from joulemap.model.pipeline import evaluate

    workloads = _trial_workloads()
    for mode in (DEFAULT_MODE, *(mode.name for mode in hardware.power_modes)):
        target = hardware.in_mode(mode)
        for precision in target.peaks:
            for model, columns in workloads.items():
                for runtime in RUNTIMES:
                    configuration = Configuration(
                        hardware=hardware.id, precision=precision, runtime=runtime, power_mode=mode
                    )
                    try:
                        run = evaluate(columns, target, configuration)
                    except UnsupportedError as error:
                        yield Trial(mode, precision, model, runtime, None, None, None, str(error))
                        continue
                    except (KeyError, JoulemapError) as error:
                        text = error.args[0] if error.args else type(error).__name__
                        raise CatalogueError(
                            f"{name_file(path)}: {model} at {precision} cannot be mapped: {text}"
                        ) from error
                    latency_s = float(run.subgraphs.latency_fs.sum(dtype=float)) / FS_PER_S
                    energy_j = float(run.ledger.energy_fj.sum(dtype=float)) / FJ_PER_J
                    if not 0.0 < latency_s < LONGEST_TRIAL_S:
                        raise CatalogueError(
                            f"{name_file(path)}: {model} at {precision} would take {latency_s:.3g} s: check clock, "
                            "peaks, bandwidths and coefficients"
                        )
                    yield Trial(mode, precision, model, runtime, latency_s, energy_j, run.clock_fraction, "")


def _trial_workloads() -> dict[str, WorkloadColumns]:
    from joulemap.catalog.digest import ZOO
    from joulemap.store.read import read_columns
    from joulemap.store.zoo import read_shipped

    with using(open_in_memory(), "the shipped workloads") as connection:
        return {
            model: read_columns(
                connection, read_shipped(connection, ZOO, model, batch=1, workload_key=model, input_spec="")
            )
            for model in TRIAL_MODELS
        }
