"""Many runs at once: skip what is stored, evaluate the rest, write what is queued while the next are evaluated.

    model x batch ─► workload ─► precision x runtime x hardware ─► evaluate ─► queue ─► transaction

Every transaction holds whole runs, so a sweep that was killed goes on where it stopped. Memory holds one workload, one
queue and one transaction, however many runs there are. An answer about a sweep then only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.background import begin
from joulemap.catalog.sheet import load_models
from joulemap.domain.answer.store import RunTally
from joulemap.errors import UnsupportedError, UsageError
from joulemap.plan.calibration import AUTO
from joulemap.plan.catalogue import ensure_catalogue, known_hardware
from joulemap.plan.plan import PlannedRun, check_settings
from joulemap.plan.question import (
    Question,
    ask,
    ensure_workload,
    find_workload_id,
    open_if_there,
    stored_key,
    trace,
    writing,
)
from joulemap.store.connection import Connection, open_for_reading, transaction, using
from joulemap.store.read import find_runs, find_runs_of, find_workloads, read_columns
from joulemap.trace.source import resolve_model

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.domain.hardware import Hardware
    from joulemap.plan.evaluation import Targets
    from joulemap.query.sweep import SweepAnswer
    from joulemap.store.write_run import RunWriter

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Told (runs done, runs to do)."""
Known = Mapping[str, "HardwareEntry"]

BUFFER: Final = "1GB"
"""What the engine may keep in memory during a sweep, which only appends and gains nothing by more."""


@attrs.frozen(kw_only=True)
class Sweep:
    """Every model at every batch, each on every hardware, precision and runtime."""

    questions: tuple[Question, ...]
    """One per model and batch, at the first precision and runtime."""
    settings: tuple[tuple[str, str], ...]
    """(precision, runtime)."""

    def plan(self, question: Question, known: Known, workload_key: str) -> list[tuple[Question, PlannedRun]]:
        """Return the runs of a model and batch, each beside the question at its precision and runtime."""
        asked = [attrs.evolve(question, precision=precision, runtime=runtime) for precision, runtime in self.settings]
        return [(one, run) for one in asked for run in one.plan(known, workload_key)]


def ask_all(
    models: Sequence[str],
    *,
    hardware: Sequence[str | Hardware],
    architecture: Sequence[str],
    deployment: Sequence[str],
    power_mode: str,
    batches: Sequence[int],
    precisions: Sequence[str],
    runtimes: Sequence[str],
    calibration: str | Calibration = AUTO,
    arguments: Mapping[str, object] | None = None,
) -> Sweep:
    """Return a checked sweep, each combination once; raises as `ask`, UsageError where there is nothing to ask."""
    names = tuple(dict.fromkeys((models,) if isinstance(models, str) else models))
    sizes = tuple(dict.fromkeys(batches))
    settings = tuple(dict.fromkeys((precision, runtime) for precision in precisions for runtime in runtimes))
    if not (names and sizes and settings):
        raise UsageError("a sweep needs a model, a batch, a precision and a runtime")
    for precision, runtime in settings:
        check_settings(precision, runtime)
    first = ask(
        names[0],
        hardware=hardware,
        architecture=architecture,
        deployment=deployment,
        power_mode=power_mode,
        batch=sizes[0],
        precision=settings[0][0],
        runtime=settings[0][1],
        calibration=calibration,
        arguments=arguments,
    )
    known = load_models()
    written = [(name, str(value)) for name, value in (arguments or {}).items()]
    return Sweep(
        questions=tuple(
            attrs.evolve(first, request=resolve_model(name, known, batch=size, arguments=written))
            for name in names
            for size in sizes
        ),
        settings=settings,
    )


def answer_sweep(path: Path, sweep: Sweep, talk: Talk, progress: Progress | None, max_latency_s: float) -> SweepAnswer:
    """Return what the runs of a sweep say about batches, after evaluating those that are not stored.

    Raises UnsupportedError with the reasons where no hardware can run any of them.
    """
    from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
    from joulemap.query.sweep import SweepAnswer
    from joulemap.store.query import find_projected, run_queries

    tally = run_sweep(path, sweep, talk, progress)
    with using(open_for_reading(path), path) as connection:
        run_ids = _stored_runs(connection, sweep, known_hardware())
        assert run_ids is not None
        ids = {"run_ids": list(run_ids)}
        asked: list[tuple[str, Mapping[str, object]]] = [
            ("sweep.point", ids),
            ("sweep.series", {**ids, "max_latency_s": max_latency_s}),
            ("sweep.winner", ids),
            ("sweep.crossing", ids),
        ]
        point, series, winner, crossing = (find_projected(connection, one) for one in run_queries(connection, asked))
        found = tuple(SweepSeries(*row) for row in series.rows)
        if not any(row.batch_count for row in found):
            raise UnsupportedError("; ".join(dict.fromkeys(row.reason for row in found)))
        return SweepAnswer(
            tally=tally,
            run_ids=run_ids,
            max_latency_s=max_latency_s,
            points=tuple(SweepPoint(*row) for row in point.rows),
            series=found,
            winners=tuple(SweepWinner(*row) for row in winner.rows),
            crossings=tuple(SweepCrossing(*row) for row in crossing.rows),
            spelling=sweep.questions[0].spelling,
            answers=(point, series, winner, crossing),
        )


def run_sweep(path: Path, sweep: Sweep, talk: Talk, progress: Progress | None = None) -> RunTally:
    """Evaluate and write the runs of a sweep that are not stored, reading only where none is missing."""
    known = known_hardware()
    first = sweep.questions[0]
    planned = [run for _, run in sweep.plan(first, known, first.workload_keys[0])]
    connection = open_if_there(path)
    if connection is not None:
        with using(connection, path):
            if _stored_runs(connection, sweep, known) is not None:
                return RunTally(stored_count=len(planned) * len(sweep.questions), evaluated_count=0, refused_count=0)
    with writing(path) as connection:
        from joulemap.plan.evaluation import ensure_hardware
        from joulemap.store.write_run import RunWriter

        connection.execute(f"SET memory_limit = '{BUFFER}'")
        with transaction(connection):
            ensure_catalogue(connection)
            targets = ensure_hardware(connection, first, planned)
        queue = _Queue(RunWriter(connection.cursor()))
        try:
            tally = _evaluate(connection, sweep, known, targets, queue, talk, progress)
            queue.store()
        finally:
            queue.close()
    return tally


def _stored_runs(connection: Connection, sweep: Sweep, known: Known) -> tuple[int, ...] | None:
    """Return the ids of a sweep's runs, each once in the order of asking; None where one is not stored."""
    workloads = find_workloads(connection, [key for question in sweep.questions for key in question.workload_keys])
    planned: list[str] = []
    for question in sweep.questions:
        key = next((key for key in question.workload_keys if key in workloads), None)
        if key is None:
            return None
        planned += [run.run_key for _, run in sweep.plan(question, known, key)]
    stored = find_runs(connection, planned)
    if any(key not in stored for key in planned):
        return None
    return tuple(dict.fromkeys(stored[key] for key in planned))


@attrs.define
class _Queue:
    """Runs on their way into the database: one transaction is written while the runs of the next are queued.

    The writer has a connection of its own, so that workloads can be read meanwhile.
    """

    writer: RunWriter
    _finish: Callable[[], None] | None = None

    def store(self) -> None:
        """Wait for the transaction under way, and begin the next with what is queued."""
        self.wait()
        insert = self.writer.hand_over()

        def commit() -> None:
            with transaction(self.writer.connection):
                insert()

        self._finish = begin(commit)

    def wait(self) -> None:
        """Wait for the transaction under way; raises what it failed with."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def close(self) -> None:
        """Wait for the transaction under way and give its connection back, so that nothing keeps the file open."""
        try:
            self.wait()
        finally:
            self.writer.connection.close()


def _evaluate(
    connection: Connection,
    sweep: Sweep,
    known: Known,
    targets: Targets,
    queue: _Queue,
    talk: Talk,
    progress: Progress | None,
) -> RunTally:
    from joulemap.model.pipeline import Evaluator
    from joulemap.plan.evaluation import add_run
    from joulemap.store.write_run import CHUNK_LINES

    met: set[str] = set()
    stored_count = evaluated_count = refused_count = 0
    for number, question in enumerate(sweep.questions, 1):
        request = question.request
        talk(f"evaluating {request.model} at batch {request.batch} ({number} of {len(sweep.questions)}) …")
        is_there = question.shipped is not None or stored_key(connection, question) is not None
        workload = None if is_there else trace(request, talk)
        with transaction(connection):
            key = ensure_workload(connection, question, workload)
        workload_id = find_workload_id(connection, key)
        runs = sweep.plan(question, known, key)
        stored = find_runs_of(connection, workload_id)
        missing = [] if key in met else [(one, run) for one, run in runs if run.run_key not in stored]
        met.add(key)
        stored_count += len(runs) - len(missing)
        run_count = len(runs) * len(sweep.questions)
        if progress is not None:
            progress(stored_count + evaluated_count + refused_count, run_count)
        if not missing:
            continue
        evaluator = Evaluator(read_columns(connection, workload_id))
        for one, run in missing:
            _, is_refused = add_run(queue.writer, evaluator, workload_id, one, run, targets)
            refused_count += is_refused
            evaluated_count += not is_refused
            if progress is not None:
                progress(stored_count + evaluated_count + refused_count, run_count)
            if queue.writer.line_count >= CHUNK_LINES:
                queue.store()
    return RunTally(stored_count=stored_count, evaluated_count=evaluated_count, refused_count=refused_count)
