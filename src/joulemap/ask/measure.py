"""Measure a model on this machine next to its prediction, and the time that a thread takes to launch a kernel."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

from joulemap.ask.answer import Answer
from joulemap.domain.computed import make_table
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import POWER_STATE, PRODUCTS, Measurement, Timing
from joulemap.domain.settings import Device, Settings
from joulemap.domain.table import Column, Table
from joulemap.generated.calibration import StoredCalibration
from joulemap.generated.measure import HostPace, Score
from joulemap.generated.measurement import ListedMeasurement
from joulemap.physics.record.calibration import UNCALIBRATED
from joulemap.physics.record.configuration import LAUNCH
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.product import choose_setting
from joulemap.plan.catalogue import known_hardware, writing
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_chip
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import ensure_runs, opening_runs
from joulemap.plan.workload import name_model
from joulemap.store.connection import Connection, transaction
from joulemap.store.literal import execute
from joulemap.store.query import fetch
from joulemap.store.run import find_projected_hardware
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.resource import need_torch

MEASURED: Final = Settings(runtime="eager")
"""Default settings of a measurement: a runtime that needs no compiler."""

LONGEST_WINDOW_S: Final = 3600.0
MOST_THREADS: Final = 4096

ORIGIN: Final = "joulemap measure on"
"""First words of the source of a measurement; the name of the device follows."""

MEMORY_TOLERANCE: Final = 1.2
"""Maximum ratio between a board's advertised memory and the size that its driver reports."""

EXAMPLE: Final = "l4"
"""GPU named in the follow-up command if the catalogue knows no GPU of this machine."""

TIMING: Final = (
    "first_quartile_s", "third_quartile_s", "repetition_count", "calls_per_repetition", "window_s", "warm_up_s",
    "is_steady", "processor_s", "processor_fraction", "spread_fraction", "is_trusted",
)  # fmt: skip


@frozen(kw_only=True)
class MeasureAnswer(Answer):
    """Measurement on this machine, and the prediction for it."""

    scores: Table[Score]
    """Measurement with its prediction; one row."""
    timing: Timing
    """Timing of the repetitions."""
    is_described: bool
    """True if the caller gave the hardware; False if it was detected on this machine."""
    projected: frozenset[str]
    calibrations: Table[StoredCalibration]
    """Calibrations that the runs used; empty if all used class defaults."""

    @property
    def score(self) -> Score:
        """Measurement with its prediction."""
        return self.scores[0]

    @property
    def is_inside(self) -> bool | None:
        """True if the measured latency is inside the 80 % interval of its prediction; None without a prediction."""
        ratio, half_width = self.score.latency_ratio, self.score.latency_half_width
        return None if ratio is None or half_width is None else abs(math.log(ratio)) <= half_width

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: measurement, prediction, spread of the repetitions, and calibration."""
        used = ", ".join(row.calibration for row in self.calibrations) or UNCALIBRATED
        spread = {name: getattr(self.timing, name) for name in TIMING}
        return {**self.scores.records()[0], **spread, "calibration": used}

    @property
    def rows(self) -> Table[Any]:
        """Measurement, prediction, spread and calibration as a table of one row."""
        data = self.data()
        return Table(
            title=self.scores.title,
            columns=tuple(Column(name=name, type="VARCHAR", meaning=name) for name in data),
            rows=(tuple(data.values()),),
            sql=self.scores.sql,
            parameters=self.scores.parameters,
        )


def detect_text(device: Device, threads: int | None = None) -> str:
    """Return the text of a hardware file for this machine's processor (`cpu`) or graphics processor (`cuda`).

    `threads` limits the number of processor cores in the file. Raises UsageError.
    """
    check_threads(threads)
    from joulemap.catalog.detected import cpu_text, gpu_text

    if device == "cuda":
        need_torch("describing a graphics processor")
        from joulemap.device.graphics import read_gpu

        return gpu_text(read_gpu())
    from joulemap.device.clock import time_clock
    from joulemap.device.processor import read_cpu

    cpu = time_clock(read_cpu())
    return cpu_text(cpu if threads is None else cpu.with_cores(threads))


def _check_window(seconds: float) -> None:
    if not 0.0 < seconds <= LONGEST_WINDOW_S:
        raise UsageError(f"--seconds is {seconds:g}, expected above 0 and at most {LONGEST_WINDOW_S:g}")


def check_threads(threads: int | None) -> None:
    """Raise UsageError for an impossible number of threads."""
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"--threads is {threads}, expected a whole number from 1 to {MOST_THREADS}")


def find_here(device: Device, threads: int | None = None) -> Hardware:
    """Return a description of this machine's device.

    This is the catalogue's entry if name, units and memory match, otherwise the detected description. The latter also
    applies to a part of a chip, as in a virtual machine or with fewer `threads`.
    """
    from joulemap.catalog.chip import load_text
    from joulemap.catalog.load import load_catalogue

    detected = load_text(detect_text(device, threads), "this machine")
    name, _, _ = detected.name.partition(",")
    for known in load_catalogue().hardware.values():
        is_alike = known.architecture == detected.architecture and known.units == detected.units
        if is_alike and is_name_of(known, name) and (device == "cpu" or _has_memory_of(known, detected)):
            return known
    return detected


def _has_memory_of(known: Hardware, detected: Hardware) -> bool:
    """Return whether two boards have the same memory size up to rounding; boards with equal names may differ in it."""
    ratio = detected.memory_capacity.value / known.memory_capacity.value
    return 1.0 / MEMORY_TOLERANCE <= ratio <= MEMORY_TOLERANCE


def is_name_of(hardware: Hardware, name: str) -> bool:
    """Return whether a reported device name contains a name of this hardware, ignoring marks and core counts."""
    from joulemap.catalog.detected import slug

    own = f"_{slug(name)}_"
    plain = hardware.name.partition("(")[0]
    names = [slug(known) for known in (plain, *hardware.aliases)]
    return any(f"_{known}_" in own for known in names if any(letter.isdigit() for letter in known))


def measure(
    source: Source,
    model: str,
    settings: Settings = MEASURED,
    *,
    hardware: str | Hardware | None = None,
    device: Device = "cpu",
    threads: int | None = None,
    seconds: float = 2.0,
) -> MeasureAnswer:
    """Run a model on this machine's `cpu` or `cuda` device; store and return the measurement and its prediction.

    `hardware` describes this machine: an id, alias, file or record. None selects the matching catalogue entry, else the
    detected description. The timed window lasts `seconds`. Raises like `compare`; UsageError for a device, runtime or
    precision that cannot be measured here, ModelError if the model cannot run. If the hardware cannot run the
    configuration, the prediction is omitted with the reason.
    """
    _check_window(seconds)
    check_threads(threads)
    settings.check_single("measure")
    if settings.changes:
        raise UsageError("measure compares a machine with its unchanged prediction: leave out --set")
    need_torch("measuring")
    from joulemap.device.trial import check_device, run_trial

    # report invalid arguments before the slower detection of the machine
    plain = attrs.evolve(settings, calibration=UNCALIBRATED)
    plan_selected((model,), plain, select_chip(hardware or "xeon_8490h", plain))
    precision, runtime = settings.precision[0], settings.runtime[0]
    check_device(device, runtime)
    plan = plan_selected(
        (model,), settings, select_chip(find_here(device, threads) if hardware is None else hardware, settings)
    )
    if isinstance(hardware, str) and (ref := HardwareRef.read(hardware)).mode:
        raise UsageError(f"measurements are stored per chip, not per power mode: name {ref.label}")
    ((target, _),) = plan.selection.pairs
    plan.check_calibration()
    source.talk(f"measuring {model} for about {seconds:g} s …")
    request = plan.models[0].request
    source = source.anchor()
    setting = choose_setting(settings.matmul_precision, precision)
    trial = run_trial(
        request,
        device=device,
        precision=precision,
        matmul_precision=setting,
        runtime=runtime,
        threads=threads,
        seconds=seconds,
    )
    ensure_runs(source, plan)
    measurement = Measurement(
        hardware=target.id,
        model=name_model(request),
        precision=precision,
        matmul_precision=setting,
        batch=trial.batch,
        runtime=runtime,
        scope=trial.scope,
        latency_s=trial.timing.latency_s,
        energy_j=trial.timing.energy_j,
        power_w=trial.timing.power_w,
        peak_memory_bytes=trial.peak_memory_bytes,
        source=f"{ORIGIN} {trial.device_name}",
        conditions=trial.conditions,
        stream_count=trial.stream_count,
    )
    with writing(source) as connection, transaction(connection):
        measurement_id = _store(connection, measurement)
    with opening_runs(source, plan) as runs:
        connection = runs.connection
        (run_id,) = runs.ids
        return MeasureAnswer(
            scores=fetch(connection, Score, measurement_id=measurement_id, run_id=run_id),
            timing=trial.timing,
            is_described=hardware is not None or target.id in known_hardware(),
            projected=find_projected_hardware(connection),
            calibrations=fetch(connection, StoredCalibration, run_ids=[run_id]),
        )


def measure_parts(
    source: Source, *, hardware: str | Hardware | None = None, seconds: float = 2.0
) -> Table[ListedMeasurement]:
    """Measure the power of this machine's NVIDIA board in about forty states, for `seconds` each; return all that are
    stored.

    `calibrate` fits the parts of the board's power to them. `hardware` is as for `measure`. Conditions say whether this
    process may lock clocks. Raises UsageError without a board whose driver counts energy.
    """
    _check_window(seconds)
    need_torch("measuring the parts of a board")
    from joulemap.ask.calibrate import find_target
    from joulemap.ask.measurement import measurements, store_measurements
    from joulemap.device.board import describe_clocks, open_board

    board = open_board()
    chip = (find_here("cuda") if hardware is None else find_target(source, hardware)).id
    cores, memories = board.meter.list_clocks()
    rows = []
    for state, power_w in board.probe(cores, memories, seconds):
        source.talk(f"{power_w:.1f} W in {state.name}")
        rows.append(
            Measurement(
                hardware=chip,
                model=state.name,
                precision="fp16" if state.load in PRODUCTS else "fp32",
                batch=1,
                runtime="eager",
                scope="board",
                boundary="board",
                power_w=power_w,
                source=f"{ORIGIN} {board.name}",
                conditions=describe_clocks(cores, seconds),
            )
        )
    store_measurements(source, rows)
    return measurements(source, chip, POWER_STATE)


def _store(connection: Connection, measurement: Measurement) -> int:
    from joulemap.store.measurement import write_measurements

    write_measurements(connection, [measurement])
    ((measurement_id,),) = execute(
        connection,
        "SELECT max(measurement_id) "
        "FROM internal.measurement WHERE latency_s = $latency_s AND conditions = $conditions",
        {"latency_s": measurement.latency_s, "conditions": measurement.conditions},
    ).fetchall()
    return int(measurement_id)


@frozen(kw_only=True)
class HostAnswer(Answer):
    """Measured kernel launch times of this machine as a host."""

    paces: Table[HostPace]
    """Measured times; one row."""
    chip: str = EXAMPLE
    """Catalogue id of a GPU that the launch time applies to."""

    @property
    def pace(self) -> HostPace:
        """Measured times of this machine."""
        return self.paces[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the `--set` value."""
        return {**self.paces.records()[0], "setting": self.setting}

    @property
    def setting(self) -> str:
        """Value for `--set` that applies this result."""
        return f"{LAUNCH}={self.pace.launch_s * 1e6:.3g}us"


def measure_host(source: Source, *, device: Device = "cpu", seconds: float = 2.0) -> HostAnswer:
    """Time the calls of an eager framework on this machine; return the time of a kernel launch on a GPU.

    Raises UsageError for a device that is not present.
    """
    _check_window(seconds)
    need_torch("timing this machine")
    from joulemap.device.launch import CALLS, LAUNCH_PER_DISPATCH, time_calls

    source.talk(f"timing the calls of an eager framework for about {seconds:g} s …")
    name, timing = time_calls(device, seconds)
    call_s, is_scaled = timing.latency_s / CALLS, device == "cpu"
    pace = HostPace(
        device=name,
        call_s=call_s,
        launch_s=call_s * (LAUNCH_PER_DISPATCH if is_scaled else 1.0),
        is_scaled=is_scaled,
        spread_fraction=timing.spread_fraction,
    )
    here = EXAMPLE if is_scaled else find_here(device).id
    return HostAnswer(
        paces=make_table("measure host", HostPace, [pace]),
        chip=here if here in known_hardware() else EXAMPLE,
    )
