"""Bulk evaluation of single operators, of which only totals are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from joulemap.construct.source import ModelRequest
from joulemap.domain.operator.name import find_operator
from joulemap.physics.record.calibration import UNCALIBRATED
from joulemap.plan.anchor import describe_gap
from joulemap.plan.catalogue import ensure_catalogue, writing
from joulemap.plan.reader import reading_if_there
from joulemap.plan.run import PlannedRun, plan_runs
from joulemap.plan.version import formula_version
from joulemap.store.connection import transaction
from joulemap.store.estimate import Estimate, find_estimates, write_estimates
from joulemap.system.errors import UsageError
from joulemap.system.resource import package_version
from joulemap.trace.single import describe

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.workload import Workload, WorkloadKey
    from joulemap.plan.source import Source, Talk

SizedOperator = tuple[str, int]
"""(operator name, batch size)."""


def ensure_estimates(source: Source, operators: Collection[SizedOperator], settings: Settings) -> None:
    """Evaluate and store the totals of single operators at the only configuration of settings, if they are missing.

    An operator whose counts are too large is reported and omitted. Raises like `plan_runs`, and CatalogueError for a
    chip that cannot be mapped.
    """
    sized = list(dict.fromkeys(operators))
    plan = plan_runs((sized[0][0],), settings)
    (run,) = plan.runs("")
    plan.check_calibration()
    keys = {
        (name, batch): ModelRequest(model=name, kind="operator", batch=batch, is_default=True).key
        for name, batch in sized
    }
    named = {
        operator: hashlib.sha256(f"{key.digest}|{run.run_key}".encode()).hexdigest()[:16]
        for operator, key in keys.items()
    }
    with reading_if_there(source) as connection:
        stored = find_estimates(connection) if connection is not None else set()
    missing = [one for one in sized if named[one] not in stored]
    if not missing:
        return
    from joulemap.plan.evaluate import ensure_hardware

    workloads = _describe(missing, keys, source.talk)
    with writing(source.anchor()) as connection:
        with transaction(connection):
            ensure_catalogue(connection)
            target = ensure_hardware(connection, [(plan, run)])[run.target.digest]
        with transaction(connection):
            write_estimates(connection, _evaluate(workloads, [named[one] for one in workloads], target, run))


def _describe(
    operators: Sequence[SizedOperator], keys: dict[SizedOperator, WorkloadKey], talk: Talk
) -> dict[SizedOperator, Workload]:
    workloads: dict[SizedOperator, Workload] = {}
    for name, batch in operators:
        operator = find_operator(name)
        assert operator is not None, f"{name} is not an operator"
        try:
            workloads[name, batch] = describe(operator, batch, keys[name, batch])
        except UsageError as error:
            talk(f"left out: {error}")
    return workloads


def _evaluate(
    workloads: dict[SizedOperator, Workload], keys: Sequence[str], hardware: Hardware, run: PlannedRun
) -> list[Estimate]:
    from joulemap.physics.bulk import evaluate_all

    try:
        totals = evaluate_all(tuple(workloads.values()), hardware, run.point["precision"], run.point["runtime"])
    except KeyError as error:  # neither the hardware's file nor its class gives the number
        raise describe_gap(run.hardware, error) from error
    return [
        Estimate(
            estimate_key=key,
            model=name,
            hardware=run.hardware,
            hardware_digest=hardware.digest,
            power_mode=run.power_mode,
            precision=run.point["precision"],
            batch=batch,
            runtime=run.point["runtime"],
            calibration=run.calibration.label if run.calibration else UNCALIBRATED,
            calibration_digest=run.calibration.digest if run.calibration else "",
            refusal=total.refusal.text if total.refusal else None,
            latency_fs=total.latency_fs,
            interval_fs=total.interval_fs,
            energy_fj=total.energy_fj,
            clock_fraction=total.clock_fraction,
            weight_bytes=total.weight_bytes,
            activation_bytes=total.activation_bytes,
            mac_count=total.mac_count,
            formula_version=formula_version(hardware.architecture),
            package_version=package_version("joulemap"),
        )
        for (name, batch), key, total in zip(workloads, keys, totals, strict=True)
    ]
