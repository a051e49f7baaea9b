"""Measure a model here, keep the measurement, and set it beside the prediction for this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.domain.answer.calibration import RunCalibration
from joulemap.domain.answer.score import Score
from joulemap.domain.calibration import UNCALIBRATED
from joulemap.domain.catalogue import fold_name
from joulemap.domain.measurement import Measurement
from joulemap.errors import UsageError
from joulemap.plan.question import Question, answering, ask
from joulemap.query.answer import MeasureAnswer
from joulemap.store.connection import Connection, open_for_reading, open_for_writing, transaction, using
from joulemap.store.library import find_query
from joulemap.store.query import find_projected, run_query
from joulemap.trace.source import ModelRequest

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware

LONGEST_WINDOW_S: Final = 3600.0
MOST_THREADS: Final = 4096

MEMORY_TOLERANCE: Final = 1.2
"""Factor between the memory that a board is sold with and what its driver tells."""


def detect_text(device: str, threads: int | None = None) -> str:
    """Return a hardware file of this machine's processor (`cpu`) or graphics processor (`cuda`); raises UsageError.

    With `threads`, of no more of the processor's cores than that.
    """
    check_threads(threads)
    from joulemap.catalog.detected import cpu_text, gpu_text

    if device == "cuda":
        from joulemap.device.graphics import read_gpu

        return gpu_text(read_gpu())
    from joulemap.device.processor import read_cpu

    cpu = read_cpu()
    return cpu_text(cpu if threads is None else cpu.with_cores(threads))


def check_threads(threads: int | None) -> None:
    """Raise UsageError for a number of threads that nothing has."""
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"--threads is {threads}, expected a whole number from 1 to {MOST_THREADS}")


def find_here(device: str, threads: int | None = None) -> Hardware:
    """Return the description of this machine: the catalogue's if its name and units are those, else the detected one.

    A part of a chip, as a virtual machine has it or fewer `threads` use it, is described by itself.
    """
    from joulemap.catalog.load import load_catalogue, load_text

    detected = load_text(detect_text(device, threads), "the description of this machine")
    name, _, _ = detected.name.partition(",")
    for known in load_catalogue().hardware.values():
        is_alike = known.architecture == detected.architecture and known.units == detected.units
        if is_alike and is_name_of(known, name) and (device == "cpu" or _has_memory_of(known, detected)):
            return known
    return detected


def _has_memory_of(known: Hardware, detected: Hardware) -> bool:
    """Whether two boards have the same memory but for how a gigabyte is counted: boards of one name differ in it."""
    ratio = detected.memory_capacity.value / known.memory_capacity.value
    return 1.0 / MEMORY_TOLERANCE <= ratio <= MEMORY_TOLERANCE


def is_name_of(hardware: Hardware, name: str) -> bool:
    """Return whether a device's own name is one of a hardware's names, marks and core counts aside."""
    from joulemap.catalog.detected import slug

    own = f"_{slug(name)}_"
    plain = hardware.name.partition("(")[0]
    names = [fold_name(slug(known)) for known in (plain, *hardware.aliases)]
    return any(f"_{known}_" in own for known in names if any(letter.isdigit() for letter in known))


def measure(
    path: Path,
    talk: Callable[[str], None],
    model: str,
    *,
    hardware: str | Hardware | None,
    device: str,
    batch: int | None,
    precision: str,
    runtime: str,
    inputs: Sequence[str],
    arguments: Mapping[str, object] | None,
    threads: int | None,
    seconds: float,
    calibration: str | Calibration,
) -> MeasureAnswer:
    """Return a model's measurement on this machine beside its prediction; see `Workspace.measure`."""
    if not 0.0 < seconds <= LONGEST_WINDOW_S:
        raise UsageError(f"--seconds is {seconds:g}, expected above 0 and at most {LONGEST_WINDOW_S:g}")
    check_threads(threads)
    from joulemap.device.trial import check_device, run_trial

    def question_of(target: str | Hardware, *, is_final: bool) -> Question:
        return ask(
            model,
            hardware=(target,),
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            calibration=calibration if is_final else UNCALIBRATED,
        )

    # whatever is wrong with the words is told before the machine is looked at
    question_of(hardware or "xeon_8490h", is_final=False)
    check_device(device, runtime)
    question = question_of(find_here(device, threads) if hardware is None else hardware, is_final=True)
    if len(question.choice.names) != 1:
        raise UsageError(f"{hardware} holds {len(question.choice.names)} hardware, expected one; name its file")
    target, at, _ = question.choice.names[0].partition("@")
    if at:
        raise UsageError(f"a measurement is kept by hardware, not by power mode: name {target}")
    target = question.one_id()
    question.check_calibration()
    talk(f"measuring {model} for about {seconds:g} s …")
    trial = run_trial(
        question.request, device=device, precision=precision, runtime=runtime, threads=threads, seconds=seconds
    )
    with answering(path, question, talk) as ((run_id,), _):
        pass
    measurement = Measurement(
        hardware=target,
        model=name_of(question.request),
        precision=precision,
        batch=trial.batch,
        runtime=runtime,
        scope=trial.scope,
        latency_s=trial.timing.latency_s,
        energy_j=trial.timing.energy_j,
        power_w=trial.timing.power_w,
        peak_memory_bytes=trial.peak_memory_bytes,
        source=f"joulemap measure on {trial.device_name}",
        conditions=trial.conditions,
        stream_count=trial.stream_count,
    )
    with using(open_for_writing(path), path) as connection, transaction(connection):
        measurement_id = _store(connection, measurement)
    with using(open_for_reading(path), path) as connection:
        score = run_query(connection, find_query("measure.score"), {"measurement_id": measurement_id, "run_id": run_id})
        score = find_projected(connection, score)
        used = run_query(connection, find_query("calibration.run"), {"run_ids": [run_id]})
    return MeasureAnswer(
        score=Score(*score.rows[0]),
        timing=trial.timing,
        is_described=hardware is not None or target in _catalogue_ids(),
        calibrations=tuple(RunCalibration(*row) for row in used.rows),
        answers=(score, used),
    )


def name_of(request: ModelRequest) -> str:
    """Return the model's name, with what makes it another workload than the one of that name."""
    if request.is_default:
        return request.model
    own = [f"{name}={value}" for name, value in request.arguments]
    own += [str(spec) for spec in request.inputs]
    return f"{request.model}({', '.join(own)})" if own else request.model


def _catalogue_ids() -> set[str]:
    from joulemap.plan.catalogue import known_hardware

    return set(known_hardware())


def _store(connection: Connection, measurement: Measurement) -> int:
    from joulemap.store.write_measurement import write_measurements

    write_measurements(connection, [measurement])
    ((measurement_id,),) = connection.execute(
        "SELECT max(measurement_id) FROM measurement WHERE latency_s = $latency_s AND conditions = $conditions",
        {"latency_s": measurement.latency_s, "conditions": measurement.conditions},
    ).fetchall()
    return int(measurement_id)
