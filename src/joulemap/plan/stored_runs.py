"""Runs of a plan in the database: found there, or traced, evaluated and written.

    model x batch ─► workload ─► precision x runtime x hardware ─► evaluate ─► queue ─► transaction

Every transaction holds whole runs, so that an interrupted evaluation resumes where it stopped. Memory holds a few
workloads, one queue and one transaction, whatever the number of runs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog.digest import catalogue_digest
from joulemap.domain.default import SETTINGS
from joulemap.plan.catalogue import ensure_catalogue, writing
from joulemap.plan.kind import find_kind
from joulemap.plan.model import Model
from joulemap.plan.reader import reading, reading_if_there
from joulemap.plan.run import Plan, PlannedRun, RunTally, plan_runs
from joulemap.plan.source import Source
from joulemap.plan.workload import (
    ensure_known,
    ensure_workload,
    find_stored,
    name_model,
    stored_key,
    trace,
)
from joulemap.store.catalogue import has_catalogue
from joulemap.store.connection import Connection, close_kept, is_wanted, keeping_open, transaction
from joulemap.store.hardware import find_hardware
from joulemap.store.run import find_runs, find_runs_of
from joulemap.store.workload import count_operators, find_workloads, read_all_columns
from joulemap.system.errors import DatabaseError, ModelError
from joulemap.system.record import define, frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.physics.pipeline import Gathering
    from joulemap.physics.record.workload import Workload
    from joulemap.plan.evaluate import Queue, Targets

BUFFER: Final = "1GB"
"""Memory limit of the database engine while many runs are written; more memory does not speed up appends."""

MANY_RUNS: Final = 64
"""Number of runs from which the memory limit applies, regardless of the file's size."""

TOGETHER: Final = 128
"""Models looked up at once; their workloads are stored first if they ship or follow from a name."""

JOINT_OPERATORS: Final = 2048
"""Operators of models from which no further model is evaluated with them."""

JOINT_RUNS: Final = 2048
"""Runs of models from which no further model is evaluated with them; their results are in memory at once."""

SESSION_S: Final = 2.0
"""Maximum time an evaluation holds the database while others wait, checked after each model or group of models."""

LONG_SESSION_S: Final = 20.0
"""Maximum time an evaluation holds the database while nobody waits; then the log is moved into the file."""

GAP_S: Final = 0.08
"""Pause after each session: two polling intervals of a waiting process."""


@frozen(kw_only=True)
class StoredRuns:
    """Runs of a plan with an open connection to them."""

    plan: Plan
    ids: tuple[int, ...]
    """Ids of the runs, each once, in the requested order."""
    connection: Connection
    tally: RunTally


@contextlib.contextmanager
def opening_runs(
    source: Source, plan: Plan, *, needs_catalogue: bool = False, has_ledger: bool = True
) -> Iterator[StoredRuns]:
    """Yield the runs of a plan and an open connection to them, with the current catalogue if needed.

    Without `has_ledger`, and if the settings ask for no ledgers, missing runs are stored as totals. The connection is
    for reading if everything is stored; otherwise missing runs are traced, evaluated and written first. A long
    evaluation pauses to let other processes use the database. Raises CatalogueError for a calibration that does not
    fit, ModelError for a model that cannot be traced, DatabaseError; completed runs stay stored.
    """
    has_ledger = has_ledger or plan.settings.ledger
    with reading_if_there(source) as connection:
        is_there = not plan.models[0].is_traced
        if connection is not None:
            ids = _stored_ids(connection, (plan,), has_ledger=has_ledger)
            if ids is not None and (not needs_catalogue or has_catalogue(connection, catalogue_digest())):
                tally = RunTally(stored_count=plan.run_count, evaluated_count=0, refused_count=0)
                yield StoredRuns(plan=plan, ids=ids, connection=connection, tally=tally)
                return
            is_there = is_there or stored_key(connection, plan.models[0]) is not None
    work = _Work(source, (plan,), has_ledger=has_ledger)
    if not is_there:
        work.trace_next()
    prepare(plan)
    while not work.is_done:
        with writing(work.source) as connection:
            if work.advance(connection) and not is_wanted(work.source.path):
                yield work.find_stored(connection, plan)
                return
        if work.needs_trace:
            work.trace_next()
        elif not work.is_done:
            time.sleep(GAP_S)
    with reading(work.source) as connection:  # other processes may write while this one answers
        yield work.find_stored(connection, plan)


StoredRun = tuple[Model, PlannedRun, int]
"""(model at its batch, planned run, id of the stored run)."""


@contextlib.contextmanager
def opening_plans(
    source: Source, plans: Sequence[Plan], *, needs_catalogue: bool = False, has_ledger: bool = True
) -> Iterator[tuple[Connection, list[StoredRun]]]:
    """Yield a connection and all runs of several plans at one boundary, as `opening_runs` does for one plan."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(keeping_open())
        if len(plans) > 1:
            ensure_all(source, plans, is_lenient=False, has_ledger=has_ledger)
        ids: list[int] = []
        for plan in plans[:-1]:
            with opening_runs(source, plan, has_ledger=has_ledger) as runs:
                ids += runs.ids
        opening = opening_runs(source, plans[-1], needs_catalogue=needs_catalogue, has_ledger=has_ledger)
        runs = stack.enter_context(opening)
        every = ((plan, model) for plan in plans for model in plan.models)
        planned = ((model, run) for plan, model in every for run in plan.runs("", model))
        yield runs.connection, [(*one, run_id) for one, run_id in zip(planned, (*ids, *runs.ids), strict=True)]


def prepare(plan: Plan) -> None:
    """Import the modules that evaluate a plan before the database is locked."""
    import joulemap.plan.evaluate  # noqa: F401
    from joulemap.physics.architecture import find_architecture

    importlib.import_module("numpy.ma")
    plan.runs("")  # caches the formula versions
    for entry, _ in plan.selection.pairs:
        if find_kind(entry.architecture) is None:
            find_architecture(entry.architecture)


def find_targets(source: Source, plan: Plan) -> Targets:
    """Return target digest -> hardware of a plan's runs, and of a plain model's; store what is missing.

    Raises like `opening_runs`.
    """
    from joulemap.plan.evaluate import ensure_hardware, read_targets

    plan.selection.check_chips("this question")
    runs = (*plan.runs(""), *plan.list_runs())
    with reading_if_there(source) as connection:
        if connection is not None and has_catalogue(connection, catalogue_digest()):
            stored = read_targets(connection, [(plan, run) for run in runs])
            if all(run.target.digest in stored for run in runs):
                return stored
    with writing(source) as connection, transaction(connection):
        ensure_catalogue(connection)
        return ensure_hardware(connection, [(plan, run) for run in runs])


def ensure_runs(source: Source, plan: Plan) -> RunTally:
    """Evaluate and write the missing runs of a plan; return a tally."""
    with opening_runs(source, plan) as runs:
        return runs.tally


def evaluate(source: Source, models: Sequence[str], settings: Settings = SETTINGS) -> RunTally:
    """Evaluate every model at every batch, precision and runtime on each chip; return a tally.

    Models and hardware are named as for `compare`. Stored runs are skipped, so that an interrupted evaluation resumes
    where it stopped. A configuration that a chip cannot run is stored with the reason. Runs are written in
    transactions of about a million ledger lines. Raises UnknownNameError, UsageError, ModelError or DatabaseError.
    """
    return ensure_runs(source, plan_runs(models, settings))


def ensure_all(
    source: Source, plans: Sequence[Plan], *, is_lenient: bool = True, has_ledger: bool = True
) -> dict[str, ModelError]:
    """Evaluate and write the missing runs of plans at one boundary; each workload is read once.

    With `is_lenient`, returns model -> error for each model that cannot be traced; the error is UntrustedError for code
    that may not run. Raises otherwise as `opening_runs`.
    """
    if not plans:
        return {}
    has_ledger = has_ledger or any(plan.settings.ledger for plan in plans)
    with reading_if_there(source) as connection:
        if connection is not None and _stored_ids(connection, plans, has_ledger=has_ledger) is not None:
            return {}
    work = _Work(source, tuple(plans), is_lenient=is_lenient, has_ledger=has_ledger)
    for plan in plans:
        prepare(plan)
    while not work.is_done:
        with writing(work.source) as connection:
            work.advance(connection)
        if work.needs_trace:
            work.trace_next()
        elif not work.is_done:
            time.sleep(GAP_S)
    return work.left_out


def _stored_ids(connection: Connection, plans: Sequence[Plan], *, has_ledger: bool) -> tuple[int, ...] | None:
    """Return the ids of all runs of the plans; None if a run is not stored."""
    keys = {key for plan in plans for model in plan.models for key in model.workload_keys}
    workloads = find_workloads(connection, keys)
    planned: list[str] = []
    for plan in plans:
        for model in plan.models:
            key = next((key for key in model.workload_keys if key in workloads), None)
            if key is None:
                return None
            planned += [run.run_key for run in plan.runs(key, model)]
    stored = find_runs(connection, planned, has_ledger=has_ledger)
    if any(key not in stored for key in planned):
        return None
    return tuple(dict.fromkeys(stored[key] for key in planned))


@frozen(kw_only=True)
class _Missing:
    """Runs of a model that are not stored, and the workload that they need."""

    key: str
    """Key of the workload."""
    workload_id: int
    operator_count: int
    run_count: int
    """Number of planned runs, stored ones included."""
    runs: tuple[PlannedRun, ...]


@define
class _Work:
    """Evaluation of plans at one boundary, model by model, in sessions of a few seconds."""

    source: Source
    plans: tuple[Plan, ...]
    is_lenient: bool = False
    """True to omit a model that cannot be traced."""
    has_ledger: bool = True
    """True if the question reads ledgers."""
    needs_trace: bool = False
    """True if the next model needs a trace, during which other processes may use the database."""
    left_out: dict[str, ModelError] = attrs.field(factory=dict)
    """Model that could not be traced -> error."""
    _number: int = 0
    _targets: Targets = attrs.field(factory=dict)
    _traced: Workload | None = None
    _gathering: Gathering | None = None
    _met: set[str] = attrs.field(factory=set)
    _ahead: dict[int, _Missing | None] = attrs.field(factory=dict)
    """Number of a model -> its missing runs; None if its workload is not stored."""
    _points: Mapping[str, int] = attrs.field(factory=dict)
    """Run key -> id of stored runs of the models in `_ahead`."""
    _stored_count: int = 0
    _evaluated_count: int = 0
    _refused_count: int = 0

    @cached_property
    def _models(self) -> tuple[tuple[Model, tuple[Plan, ...]], ...]:
        """(model, plans that contain it) for each model."""
        if len(self.plans) == 1:
            return tuple((model, self.plans) for model in self.plans[0].models)
        by_key: dict[tuple[str, ...], tuple[Model, list[Plan]]] = {}
        for plan in self.plans:
            for model in plan.models:
                by_key.setdefault(model.workload_keys, (model, []))[1].append(plan)
        return tuple((model, tuple(plans)) for model, plans in by_key.values())

    @cached_property
    def _run_count(self) -> int:
        return sum(plan.run_count for plan in self.plans)

    @property
    def tally(self) -> RunTally:
        """Number of runs by outcome so far."""
        return RunTally(
            stored_count=self._stored_count, evaluated_count=self._evaluated_count, refused_count=self._refused_count
        )

    def trace_next(self) -> None:
        """Trace the next model; raises ModelError."""
        close_kept()
        self.source = self.source.anchor()
        self.needs_trace = False
        try:
            self._traced = trace(self._models[self._number][0], self.source.talk)
        except ModelError as error:
            if not self.is_lenient:
                raise
            self.left_out[name_model(self._models[self._number][0].request)] = error
            self._number += 1

    def advance(self, connection: Connection) -> bool:
        """Evaluate and store runs for one session; return True if all are stored.

        Evaluated runs are stored even where an exception ends the session.
        """
        from joulemap.plan.evaluate import Queue, ensure_hardware
        from joulemap.store.writer import RunWriter

        if self._run_count > MANY_RUNS:
            connection.execute(f"SET memory_limit = '{BUFFER}'; SET threads = {os.cpu_count() or 1}")
        with transaction(connection):
            ensure_catalogue(connection)
            there = find_hardware(connection, self._targets)
            targets = {digest: one for digest, one in self._targets.items() if digest in there}
            needed = [(plan, run) for plan in self.plans for run in plan.list_runs()]
            targets |= ensure_hardware(connection, [one for one in needed if one[1].target.digest not in targets])
        self._targets = targets
        self._ahead.clear()  # another process may have written or deleted since the last session
        began = time.monotonic()
        with contextlib.closing(Queue(RunWriter(connection.cursor()), targets, self.has_ledger)) as queue:
            while not self.is_done and not self.needs_trace and not self._should_pause(time.monotonic() - began):
                self._evaluate(connection, queue)
        return self.is_done

    def _should_pause(self, held_s: float) -> bool:
        """Return True if other processes should get the database now."""
        return held_s > LONG_SESSION_S or (held_s > SESSION_S and is_wanted(self.source.path))

    @property
    def is_done(self) -> bool:
        """True if all runs are stored."""
        return self._number == len(self._models)

    def find_stored(self, connection: Connection, plan: Plan) -> StoredRuns:
        """Return the runs of a plan, all of which are stored."""
        ids = _stored_ids(connection, (plan,), has_ledger=self.has_ledger)
        assert ids is not None
        return StoredRuns(plan=plan, ids=ids, connection=connection, tally=self.tally)

    def _evaluate(self, connection: Connection, queue: Queue) -> None:
        """Queue the missing runs of the next models, unless the first of them needs a trace.

        Totals of several models are evaluated together unless another process waits for the database.
        """
        from joulemap.physics.pipeline import Evaluator, Gathering
        from joulemap.plan.evaluate import Job

        chosen: list[_Missing] = []
        while not self.is_done:
            model, _ = self._models[self._number]
            if self._traced is None and model.is_traced and self._find_missing(connection) is None:
                self.needs_trace = not chosen
                break
            one = self._prepare(connection, model)
            self._number += 1
            if not one.runs:
                break
            chosen.append(one)
            is_large = (
                sum(each.operator_count for each in chosen) >= JOINT_OPERATORS
                or sum(len(each.runs) for each in chosen) >= JOINT_RUNS
            )
            if self.has_ledger or is_large or is_wanted(self.source.path):
                break
        if not chosen:
            return
        self._gathering = self._gathering or Gathering()
        works = read_all_columns(connection, [one.workload_id for one in chosen])
        queue.writer.points = self._points
        jobs = [
            Job(Evaluator(works[one.workload_id], gathering=self._gathering), one.workload_id, one.runs)
            for one in chosen
        ]
        for is_refused in queue.add(jobs):
            self._refused_count += is_refused
            self._evaluated_count += not is_refused
            self._report_progress()

    def _prepare(self, connection: Connection, model: Model) -> _Missing:
        """Store the workload of the next model if it is missing, and return its missing runs."""
        request = model.request
        batch = "" if request.batch is None else f" at batch {request.batch}"  # None: the model's input states it
        self.source.talk(f"evaluating {request.model}{batch} ({self._number + 1} of {len(self._models)}) …")
        if self._traced is not None:
            with transaction(connection):
                ensure_workload(connection, model, self._traced)
            self._traced = None
            self._ahead.clear()
        workload = self._find_missing(connection)
        if workload is None:
            raise DatabaseError(f"the workload of {request.model} was deleted meanwhile; run again")
        missing = workload if workload.key not in self._met else attrs.evolve(workload, runs=())
        self._met.add(workload.key)
        self._stored_count += workload.run_count - len(missing.runs)
        self._report_progress()
        return missing

    def _find_missing(self, connection: Connection) -> _Missing | None:
        """Return the missing runs of the next model; None if its workload is not stored and must be traced.

        Workloads that ship or follow from a name are stored first. Several models are looked up at once.
        """
        if self._number not in self._ahead:
            some = self._models[self._number : self._number + TOGETHER]
            models = [model for model, _ in some]
            with transaction(connection):
                ensure_known(connection, models)
            stored = find_stored(connection, models)
            ids = [workload_id for _, workload_id in stored.values()]
            counts = count_operators(connection, ids)
            self._points = find_runs_of(connection, ids, has_ledger=False)
            done = find_runs_of(connection, ids) if self.has_ledger else self._points
            for index, (model, plans) in enumerate(some):
                self._ahead[self._number + index] = None
                if index in stored:
                    key, workload_id = stored[index]
                    runs = {run.run_key: run for plan in plans for run in plan.runs(key, model)}
                    self._ahead[self._number + index] = _Missing(
                        key=key,
                        workload_id=workload_id,
                        operator_count=counts.get(workload_id, 0),
                        run_count=len(runs),
                        runs=tuple(run for run_key, run in runs.items() if run_key not in done),
                    )
        return self._ahead[self._number]

    def _report_progress(self) -> None:
        if self.source.progress is not None:
            self.source.progress(self.tally.run_count, self._run_count)
