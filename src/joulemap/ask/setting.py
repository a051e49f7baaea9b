"""Rules on the settings of a question: how weights are stored, placements, power budgets, the boundary, launches,
engines and calibrations.

None of them moves a decision, so all have no weight and follow the other caveats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from joulemap.ask.fact import Quantity, Value
from joulemap.ask.finding import Finding, Rule
from joulemap.ask.scope import Scope
from joulemap.domain.label import MEASURED_HOST
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.run import PluggedHardware
from joulemap.physics.record.configuration import BOUNDARY
from joulemap.physics.record.engine import has_framework, is_deployed, name_engine
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.weight import find_weight_format
from joulemap.store.query import fetch
from joulemap.store.run import find_launches

FEW: Final = 0.8
"""Credibility of a calibration below which it has few measurements."""


def stored(scope: Scope) -> Iterator[Finding]:
    """Find formats in which weights are stored, if not at the precision of the activations."""
    formats = (find_weight_format(*pair) for pair in scope.precisions)
    for described in dict.fromkeys(one.describe() for one in formats if one is not None):
        yield Finding(kind="stored", values={"format": described})


def placed(scope: Scope) -> Iterator[Finding]:
    """Find how boxes divide the model over their devices."""
    for run_id, one in scope.outlines.items():
        if one.placement:
            yield Finding(kind="placed", run_id=run_id, values={"placement": one.placement})


def budgeted(scope: Scope) -> Iterator[Finding]:
    """Find the power budget that selected the power modes."""
    if budget := scope.selection.budget:
        values: dict[str, Value] = {"limit": budget.limit, "limit_w": budget.power_w, "origin": budget.reason or None}
        yield Finding(kind="mean_power_budget" if budget.is_mean else "power_budget", values=values)


def walled(scope: Scope) -> Iterator[Finding]:
    """Find what the boundary `system` adds to each board, and runs that are at another boundary instead."""
    at_wall = {run_id: one for run_id, one in scope.outlines.items() if BOUNDARY[one.boundary].is_at_wall}
    plugged = fetch(scope.connection, PluggedHardware, run_ids=list(at_wall)).rows if at_wall else ()
    rows = {row.hardware: row for row in plugged}
    for run_id, one in at_wall.items():
        row = rows.get(one.hardware)
        if row is None:
            continue
        if row.host_power_w is None and row.growth_ratio == 1.0:
            yield Finding(kind="metered", run_id=run_id)
            continue
        host, boards = row.host_power_w, row.board_count
        values: dict[str, Value] = {
            "growth_ratio": row.growth_ratio,
            "host": None if host is None else Quantity(host, "W"),
            "board_count": round(boards) if host is not None and boards and boards > 1.0 else None,
        }
        yield Finding(kind="walled", run_id=run_id, values=values)
    fallback = scope.selection.fallback_boundary
    for run_id, one in scope.outlines.items():
        if fallback and one.hardware in scope.selection.unplugged:
            reason = scope.selection.unplugged[one.hardware]
            yield Finding(kind="unwalled", run_id=run_id, values={"boundary": fallback, "reason": reason})


def launched(scope: Scope) -> Iterator[Finding]:
    """Find the host whose thread launches the kernels of eager runs, and its time for each."""
    eager = {run_id: one for run_id, one in scope.outlines.items() if RUNTIME[one.runtime].launches_each}
    times = find_launches(scope.connection, eager) if eager else ()
    launches = {(hardware, host): (has_link, seconds) for hardware, host, has_link, seconds in times}
    for run_id, one in eager.items():
        if (one.hardware, one.host) not in launches:
            continue
        has_link, seconds = launches[one.hardware, one.host]
        time = Quantity(seconds, "s")
        if not one.host and not has_link:
            yield Finding(kind="launched_beside", run_id=run_id, values={"time": time})
        else:
            values: dict[str, Value] = {"host": one.host or MEASURED_HOST, "time": time}
            yield Finding(kind="launched" if one.host else "launched_by_default", run_id=run_id, values=values)


def compiled(scope: Scope) -> Iterator[Finding]:
    """Find the inference engine that the runtime `engine` means on chips that also have a framework's compiler.

    The runtime `fused` needs an explanation only if some of the hardware has a framework's compiler and some has that
    of its vendor alone. A served model names its engine.
    """
    boxes = scope.selection.parts
    devices = {
        run_id: [(part.architecture, part.vendor) for part in boxes.get(one.hardware, (one,))]
        for run_id, one in scope.outlines.items()
        if "engine=" not in one.model  # an argument of passes of a served model
    }
    is_mixed = len({has_framework(architecture) for pairs in devices.values() for architecture, _ in pairs}) > 1
    for run_id, pairs in devices.items():
        runtime = RUNTIME[scope.outlines[run_id].runtime]
        for name in dict.fromkeys(name_engine(*pair) for pair in pairs):
            values: dict[str, Value] = {"engine": name}
            if runtime.is_built and not runtime.of_class and is_deployed(name):
                yield Finding(kind="engine", run_id=run_id, values=values)
            elif runtime.is_compiled and is_mixed:
                yield Finding(kind="deployed" if is_deployed(name) else "compiler", run_id=run_id, values=values)


def calibrated(scope: Scope) -> Iterator[Finding]:
    """Find the calibrations that runs use, with their measurements and errors."""
    yield from find_calibrations(scope.calibrations, set(scope.hardware))


def find_calibrations(rows: Iterable[StoredCalibration], hardware: Collection[str]) -> Iterator[Finding]:
    """Yield the findings on calibrations that some of this hardware uses or inherits."""
    for row in rows:
        has_errors = row.latency_error_fraction is not None or row.energy_error_fraction is not None
        values: dict[str, Value] = {
            "hardware": row.hardware,
            "calibration": row.calibration,
            "origin": row.origin,
            "measurement_count": row.measurement_count,
            "family_count": row.family_count,
            "latency_error_fraction": row.latency_error_fraction,
            "energy_error_fraction": row.energy_error_fraction,
            "held_out_count": row.family_count if has_errors and row.family_count > 1 else None,
        }
        if row.hardware in hardware:
            yield Finding(kind="calibrated", values=values)
            yield from find_few(row)
        if row.inheritors:
            own: dict[str, Value] = {"generation": row.hardware_generation, "inheritors": tuple(row.inheritors)}
            yield Finding(kind="shared" if row.hardware in hardware else "inherited", values={**values, **own})


def find_few(row: StoredCalibration) -> Iterator[Finding]:
    """Yield the finding that a calibration has few measurements, with their weight."""
    shares = row.latency_credibility_fraction, row.energy_credibility_fraction
    latency, energy = (share if 0.0 < share < FEW else None for share in shares)
    if (latency or energy) and row.most_moved is not None and row.most_moved_ratio is not None:
        values: dict[str, Value] = {
            "hardware": row.hardware,
            "measurement_count": row.measurement_count,
            "latency_weight_fraction": latency,
            "energy_weight_fraction": energy,
            "farthest_fraction": max(row.most_moved_ratio, 1.0 / row.most_moved_ratio) - 1.0,
            "most_moved": row.most_moved,
            "moved_count": row.moved_count,
            "determined_count": row.determined_count,
        }
        yield Finding(kind="few_measured", values=values)


SETTINGS: Final[tuple[Rule, ...]] = (stored, placed, budgeted, walled, launched, compiled, calibrated)
"""Rules on settings, in the order of their notes."""
