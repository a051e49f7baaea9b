"""Create and check a user's own hardware files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.answer import Answer
from joulemap.catalog.digest import ZOO, expand_paths
from joulemap.domain.catalogue import DEFAULT_MODE
from joulemap.domain.computed import make_table
from joulemap.domain.table import Table
from joulemap.generated.hardware import Trial
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.runtime import MODES
from joulemap.plan.budget import bind_alone
from joulemap.plan.catalogue import check_names, known_hardware
from joulemap.store.connection import open_in_memory, using
from joulemap.system.errors import CatalogueError, JoulemapError, UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.workload import WorkloadColumns

TRIAL_MODELS: Final = ("resnet18", "mobilenet_v2", "transformer_encoder_layer")
"""Models that cover dense and depthwise convolutions, and attention."""

SMALL_TRIAL_MODELS: Final = ("mlperf_tiny_ic", "mlperf_tiny_kws", "mlperf_tiny_ad")
"""Models for hardware with too little memory for `TRIAL_MODELS`: dense and depthwise convolutions, and dense layers."""

LEAST_TRIAL_BYTES: Final = 1e8
"""Minimum memory capacity for `TRIAL_MODELS`; smaller hardware is checked with `SMALL_TRIAL_MODELS`."""

LONGEST_TRIAL_S: Final = 100.0
"""Latency of a trial model, in seconds, above which the check suspects a number in a wrong unit."""


@frozen
class Default:
    """Number that a hardware file omits and its class supplies."""

    quantity: str
    value: float
    unit: str
    source: str


@frozen(kw_only=True)
class FileCheck:
    """Result of checking one hardware file that breaks no rule."""

    file: str
    hardware: str
    architecture: str
    area_mm2: float
    """Estimated area of units and memories in mm2, from typical areas of the class; not the size of the die."""
    defaults: tuple[Default, ...]
    trials: tuple[Trial, ...]


@frozen(kw_only=True, repr=False)
class FileChecks(Answer):
    """Results of checking hardware files that break no rule."""

    checks: tuple[FileCheck, ...]

    @property
    def trials(self) -> Table[Trial]:
        """Trial runs of all files."""
        return make_table("hardware check", Trial, (trial for check in self.checks for trial in check.trials))

    def data(self) -> Any:
        """Return the data for machine formats: one record per file."""
        own = attrs.filters.exclude("trials")
        return [
            {**attrs.asdict(check, filter=own), "trials": [one.record() for one in check.trials]}
            for check in self.checks
        ]


def template_text(like: str, architecture: str) -> str:
    """Return the text of a new hardware file: a copy of known hardware (`like`), or the minimum of a class."""
    from joulemap.catalog.starter import copy_text, minimal_text

    return copy_text(like) if like else minimal_text(architecture)


def start_package(chip: str, folder: Path | None, *, like: str, architecture: str) -> tuple[Path, tuple[Path, ...]]:
    """Write a package with a chip that starts as a copy of known hardware (`like`) or of the default of a class.

    Returns the folder and the files; raises like `write_package`.
    """
    from joulemap.catalog.new_package import write_package

    return write_package(chip, folder, like=like, architecture=architecture)


def check_files(paths: Sequence[Path]) -> FileChecks:
    """Check hardware files; return their content, class defaults for missing numbers, and trial runs of a few models.

    Raises CatalogueError if a file breaks a rule, reuses a name of the catalogue or of another file, or cannot be
    mapped.
    """
    from joulemap.catalog.chip import list_defaults
    from joulemap.catalog.load import load_files
    from joulemap.catalog.parser import name_file
    from joulemap.physics.area import Area

    known = known_hardware(list(map(str, paths)))
    named = next((path for path in paths if str(path) in known and not path.exists()), None)
    if named is not None:
        raise CatalogueError(f"{named} is in the catalogue, not a file: see `joulemap hardware show {named}`")
    files = expand_paths(paths)
    loaded = list(zip(files, load_files(files), strict=True))
    check_names(((name_file(path), hardware) for path, hardware in loaded), known)
    checked = []
    for path, hardware in loaded:
        omitted = list_defaults(path)
        defaults = tuple(
            Default(name, quantity.value, quantity.unit, quantity.source)
            for name, quantity in hardware.quantities()
            if name in omitted
        )
        trials = tuple(_try(path, hardware))
        if all(trial.reason for trial in trials):
            raise CatalogueError(f"{name_file(path)}: no trial could run: {trials[0].reason}")
        checked.append(
            FileCheck(
                file=str(path),
                hardware=hardware.id,
                architecture=hardware.architecture,
                area_mm2=float(Area.of(hardware).find_mm2({})[0]),
                defaults=defaults,
                trials=trials,
            )
        )
    return FileChecks(checks=tuple(checked))


def _try(path: Path, hardware: Hardware) -> Iterator[Trial]:
    """Run the trial models in every precision, power mode and runtime; yield the results.

    A description that cannot be evaluated is reported as a refusal. The hardware is calibrated and has its fallback
    host, as in other answers.
    """
    from joulemap.catalog.parser import name_file
    from joulemap.physics.pipeline import evaluate

    workloads = read_trial_workloads(choose_trial_models(hardware))
    for mode in (DEFAULT_MODE, *(mode.name for mode in hardware.power_modes)):
        plain = bind_alone(hardware, mode)
        for precision in plain.peaks:
            for model, columns in workloads.items():
                for runtime in MODES:
                    trial = partial(
                        Trial, hardware=hardware.id, power_mode=mode, precision=precision, model=model, runtime=runtime
                    )
                    configuration = Configuration(
                        hardware=hardware.id, precision=precision, runtime=runtime, power_mode=mode
                    )
                    try:
                        run = evaluate(columns, plain, configuration)
                    except UnsupportedError as error:
                        yield trial(latency_s=None, energy_j=None, clock_fraction=None, reason=str(error))
                        continue
                    except (KeyError, JoulemapError) as error:
                        text = error.args[0] if error.args else type(error).__name__
                        raise CatalogueError(
                            f"{name_file(path)}: {model} at {precision} cannot be mapped: {text}"
                        ) from error
                    if run.broken_laws:
                        raise CatalogueError(
                            f"{name_file(path)}: {model} at {precision} breaks {run.broken_laws}: check tdp, clock, "
                            "peaks, bandwidths and energies"
                        )
                    latency_s = float(run.subgraphs.latency_fs.sum(dtype=float)) / FS_PER_S
                    energy_j = float(run.ledger.energy_fj.sum(dtype=float)) / FJ_PER_J
                    if not 0.0 < latency_s < LONGEST_TRIAL_S:
                        raise CatalogueError(
                            f"{name_file(path)}: {model} at {precision} would take {latency_s:.3g} s: check clock, "
                            "peaks, bandwidths and coefficients"
                        )
                    yield trial(latency_s=latency_s, energy_j=energy_j, clock_fraction=run.clock_fraction, reason="")


def choose_trial_models(hardware: Hardware) -> tuple[str, ...]:
    """Return the trial models that fit the memory of a chip."""
    return SMALL_TRIAL_MODELS if hardware.memory_capacity.value < LEAST_TRIAL_BYTES else TRIAL_MODELS


def read_trial_workloads(models: Sequence[str], batch: int = 1) -> dict[str, WorkloadColumns]:
    """Return model -> built-in workload at a batch size."""
    from joulemap.store.workload import read_columns
    from joulemap.store.zoo import Shipped, read_shipped

    with using(open_in_memory(has_surface=False), "the shipped workloads") as connection:
        wanted = [Shipped(model, batch=batch, workload_key=model) for model in models]
        ids = read_shipped(connection, ZOO, wanted)
        return {one.model: read_columns(connection, workload_id) for one, workload_id in zip(wanted, ids, strict=True)}
