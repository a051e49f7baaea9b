"""The runs of a plan in the database: found there, or traced, evaluated and written.

    model x batch ─► workload ─► precision x runtime x hardware ─► evaluate ─► queue ─► transaction

Every transaction holds whole runs, so that what was interrupted goes on where it stopped. Memory holds one workload,
one queue and one transaction, however many runs there are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog.digest import catalogue_digest
from joulemap.plan.catalogue import ensure_catalogue
from joulemap.plan.run import Plan, RunTally
from joulemap.plan.source import Source, open_if_there, writing
from joulemap.plan.workload import ensure_workload, find_workload_id, stored_key, trace
from joulemap.store.catalogue import has_catalogue
from joulemap.store.connection import Connection, transaction, using
from joulemap.store.run import find_runs, find_runs_of
from joulemap.store.workload import find_workloads, read_columns

if TYPE_CHECKING:
    from joulemap.domain.workload import Workload
    from joulemap.plan.evaluate import Queue

BUFFER: Final = "1GB"
"""What the engine may keep in memory while many runs are written, which only appends and gains nothing by more."""

MANY_RUNS: Final = 64


@attrs.frozen(kw_only=True)
class StoredRuns:
    """The runs of a plan, and a connection that holds them."""

    plan: Plan
    ids: tuple[int, ...]
    """Each once, in the order of asking."""
    connection: Connection
    tally: RunTally


@contextlib.contextmanager
def holding_runs(source: Source, plan: Plan, *, needs_catalogue: bool = False) -> Iterator[StoredRuns]:
    """Give out the runs of a plan and a connection that holds them, and the current catalogue if that is needed.

    Reads only if everything is stored. Otherwise what is missing is traced, evaluated and written first. Raises
    CatalogueError for a calibration that does not fit, ModelError for a model that cannot be traced, DatabaseError.
    """
    connection = open_if_there(source.path)
    if connection is not None:
        with using(connection, source.path):
            ids = _stored_ids(connection, plan)
            if ids is not None and (not needs_catalogue or has_catalogue(connection, catalogue_digest())):
                tally = RunTally(stored_count=plan.run_count, evaluated_count=0, refused_count=0)
                yield StoredRuns(plan=plan, ids=ids, connection=connection, tally=tally)
                return
            first_key = stored_key(connection, plan.models[0])
    else:
        first_key = None
    first = plan.models[0]
    traced = None
    if not first_key and not first.shipped:
        source = source.anchor()
        traced = trace(first.request, source.talk)
    with writing(source.path) as connection:
        tally = _evaluate_missing(connection, source, plan, traced)
        ids = _stored_ids(connection, plan)
        assert ids is not None
        yield StoredRuns(plan=plan, ids=ids, connection=connection, tally=tally)


def ensure_runs(source: Source, plan: Plan) -> RunTally:
    """Evaluate and write the runs of a plan that are not stored; return how many there are of each."""
    with holding_runs(source, plan) as runs:
        return runs.tally


def _stored_ids(connection: Connection, plan: Plan) -> tuple[int, ...] | None:
    """Return the ids of a plan's runs; None where one is not stored."""
    workloads = find_workloads(connection, [key for model in plan.models for key in model.workload_keys])
    planned: list[str] = []
    for model in plan.models:
        key = next((key for key in model.workload_keys if key in workloads), None)
        if key is None:
            return None
        planned += [run.run_key for run in plan.runs(key)]
    stored = find_runs(connection, planned)
    if any(key not in stored for key in planned):
        return None
    return tuple(dict.fromkeys(stored[key] for key in planned))


def _evaluate_missing(connection: Connection, source: Source, plan: Plan, traced: Workload | None) -> RunTally:
    from joulemap.plan.evaluate import Queue, ensure_hardware
    from joulemap.store.writer import RunWriter

    if plan.run_count > MANY_RUNS:
        connection.execute(f"SET memory_limit = '{BUFFER}'")
    with transaction(connection):
        ensure_catalogue(connection)
        targets = ensure_hardware(connection, plan, plan.runs(""))
        ensure_workload(connection, plan.models[0], traced)
    queue = Queue(RunWriter(connection.cursor()), targets)
    try:
        tally = _evaluate(connection, source, plan, queue)
        queue.store()
    finally:
        queue.close()
    return tally


def _evaluate(connection: Connection, source: Source, plan: Plan, queue: Queue) -> RunTally:
    from joulemap.model.pipeline import Evaluator

    met: set[str] = set()
    stored_count = evaluated_count = refused_count = 0
    run_count = plan.run_count
    for number, model in enumerate(plan.models, 1):
        request = model.request
        source.talk(f"evaluating {request.model} at batch {request.batch} ({number} of {len(plan.models)}) …")
        is_there = model.shipped is not None or stored_key(connection, model) is not None
        workload = None if is_there else trace(request, source.talk)
        with transaction(connection):
            key = ensure_workload(connection, model, workload)
        workload_id = find_workload_id(connection, key)
        runs = plan.runs(key)
        stored = find_runs_of(connection, workload_id)
        missing = [] if key in met else [run for run in runs if run.run_key not in stored]
        met.add(key)
        stored_count += len(runs) - len(missing)
        _tell(source, stored_count + evaluated_count + refused_count, run_count)
        if not missing:
            continue
        evaluator = Evaluator(read_columns(connection, workload_id))
        for run in missing:
            is_refused = queue.add(evaluator, workload_id, run)
            refused_count += is_refused
            evaluated_count += not is_refused
            _tell(source, stored_count + evaluated_count + refused_count, run_count)
    return RunTally(stored_count=stored_count, evaluated_count=evaluated_count, refused_count=refused_count)


def _tell(source: Source, done: int, total: int) -> None:
    if source.progress is not None:
        source.progress(done, total)
