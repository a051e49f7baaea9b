"""One planned run: evaluate it on its hardware and queue it for the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from joulemap.domain.calibration import UNCALIBRATED
from joulemap.domain.configuration import Configuration
from joulemap.domain.hardware import Hardware
from joulemap.errors import UnsupportedError
from joulemap.model.pipeline import Evaluator
from joulemap.model.version import formula_version
from joulemap.plan.plan import PlannedRun
from joulemap.resource import package_version
from joulemap.store.connection import Connection
from joulemap.store.read_hardware import has_hardware, read_hardware
from joulemap.store.write_calibration import ensure_calibrations
from joulemap.store.write_catalogue import write_hardware
from joulemap.store.write_run import RunIdentity, RunWriter

if TYPE_CHECKING:
    from joulemap.plan.question import Question

Targets = Mapping[tuple[str, str, str], Hardware]
"""What a run's hardware depends on (`PlannedRun.target`) -> the hardware under its calibration, at its mode."""


def add_run(
    writer: RunWriter, evaluator: Evaluator, workload_id: int, question: Question, run: PlannedRun, targets: Targets
) -> tuple[int, bool]:
    """Evaluate a planned run and queue it; return its run id, and whether it was refused."""
    target, batch = targets[run.target], evaluator.work.batch
    configuration = Configuration(
        hardware=run.hardware,
        precision=question.precision,
        batch=batch,
        runtime=question.runtime,
        power_mode=run.power_mode,
    )
    identity = RunIdentity(
        run_key=run.run_key,
        workload_id=workload_id,
        hardware_digest=target.digest,
        power_mode=run.power_mode,
        precision=question.precision,
        batch=batch,
        runtime=question.runtime,
        calibration=run.calibration.label if run.calibration else UNCALIBRATED,
        calibration_digest=run.calibration.digest if run.calibration else "",
        formula_version=formula_version(target.architecture),
        package_version=package_version("joulemap"),
    )
    try:
        evaluated = evaluator.evaluate(target, configuration)
    except UnsupportedError as error:
        return writer.add_refusal(identity, str(error)), True
    return writer.add(identity, evaluated), False


def ensure_hardware(connection: Connection, question: Question, planned: Sequence[PlannedRun]) -> Targets:
    """Return the hardware of these runs, each under its calibration and at its mode, stored if it was not.

    Raises CatalogueError for a calibration that does not fit.
    """
    own = {hardware.digest: hardware for hardware in question.own.values()}
    known = {**read_hardware(connection, {run.hardware_digest for run in planned} - own.keys()), **own}
    found = {run.target: run for run in planned}
    calibrated = {
        (run.hardware_digest, run.calibration): question.calibration.apply(known[run.hardware_digest], run.calibration)
        for run in found.values()
    }
    targets = {
        target: calibrated[run.hardware_digest, run.calibration].in_mode(run.power_mode)
        for target, run in found.items()
    }
    ensure_calibrations(
        connection,
        [
            (entry, question.calibration.load(entry, known[digest].architecture), known[digest])
            for digest, entry in calibrated
            if entry is not None
        ],
    )
    fresh = [target for target in targets.values() if target.digest not in known or target.digest in own]
    fresh += [known[digest] for digest, entry in calibrated if entry is not None and digest in own]
    write_hardware(
        connection, [one for one in fresh if not has_hardware(connection, one.digest)], package_version("joulemap")
    )
    return targets
