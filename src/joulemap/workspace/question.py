"""What is asked, and the runs that answer it: find them, or trace, evaluate and write what is missing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.digest import catalogue_digest
from joulemap.catalog.model import load_models
from joulemap.errors import DatabaseError, OlderDatabaseError, UnsupportedError
from joulemap.store.connection import Connection, open_for_reading, open_for_writing, transaction, using
from joulemap.store.read import find_current_hardware, find_runs, find_workload
from joulemap.trace.source import ModelRequest, package_version, parse_input, resolve_model
from joulemap.workspace.plan import MODEL_VERSION, POWER_MODE, PlannedRun, check_settings, plan_runs, select_hardware

if TYPE_CHECKING:
    from joulemap.domain.catalogue import Catalogue
    from joulemap.domain.workload import Workload


@attrs.frozen(kw_only=True)
class Question:
    """A model on several hardware under one precision and runtime."""

    request: ModelRequest
    hardware: tuple[str, ...]
    """Ids; empty for those of the architectures, or the default four."""
    architecture: tuple[str, ...]
    precision: str
    runtime: str

    def plan(self, known: Mapping[str, tuple[str, str]]) -> tuple[PlannedRun, ...]:
        """Return the runs that it needs; `known` is id -> (architecture, digest)."""
        chosen = select_hardware(known, self.hardware, self.architecture)
        return plan_runs(self.request.key.digest, known, chosen, precision=self.precision, runtime=self.runtime)


def ask(
    model: str,
    *,
    hardware: Sequence[str] = (),
    architecture: Sequence[str] = (),
    batch: int | None = None,
    precision: str = "fp32",
    runtime: str = "fused",
    inputs: Sequence[str] = (),
    arguments: Mapping[str, object] | None = None,
) -> Question:
    """Return a checked question; raises UnknownNameError, UsageError or ModelError."""
    check_settings(precision, runtime)
    return Question(
        request=resolve_model(
            model,
            load_models(),
            batch=batch,
            inputs=[parse_input(text) for text in inputs],
            arguments=[(name, str(value)) for name, value in (arguments or {}).items()],
        ),
        hardware=(hardware,) if isinstance(hardware, str) else tuple(hardware),
        architecture=(architecture,) if isinstance(architecture, str) else tuple(architecture),
        precision=precision,
        runtime=runtime,
    )


@contextlib.contextmanager
def answering(
    path: Path, question: Question, talk: Callable[[str], None]
) -> Iterator[tuple[tuple[int, ...], Connection]]:
    """Give out the runs of a question, in the order of its hardware, and a connection that holds them.

    Reads only if everything is stored. Otherwise traces with no connection open, then evaluates and writes what is
    missing in one transaction.
    """
    is_traced = False
    connection = _open_if_there(path)
    if connection is not None:
        with using(connection, path):
            stored, is_traced = _look_up(connection, question)
            if stored:
                yield stored, connection
                return
    from joulemap.catalog.load import load_catalogue

    catalogue = load_catalogue()
    question.plan({entry.id: (entry.architecture, entry.digest) for entry in catalogue.hardware.values()})
    workload = None if is_traced else trace(question.request, talk)
    with using(open_for_writing(path), path) as connection:
        with transaction(connection):
            known = find_current_hardware(connection, catalogue_digest()) or store_catalogue(connection)
            run_ids = _evaluate(connection, question, workload, question.plan(known), catalogue)
        yield run_ids, connection


def _open_if_there(path: Path) -> Connection | None:
    """Return a read-only connection, or None where there is no database yet or a writer must migrate it first."""
    if path.exists():
        with contextlib.suppress(OlderDatabaseError):
            return open_for_reading(path)
    return None


def _look_up(connection: Connection, question: Question) -> tuple[tuple[int, ...], bool]:
    """Return (run ids if all are stored, whether the workload is)."""
    known = find_current_hardware(connection, catalogue_digest())
    planned = question.plan(known) if known else ()
    stored = find_runs(connection, [run.run_key for run in planned])
    is_traced = find_workload(connection, question.request.key.digest) is not None
    if not planned or any(run.run_key not in stored for run in planned):
        return (), is_traced
    return tuple(stored[run.run_key] for run in planned), is_traced


def trace(request: ModelRequest, talk: Callable[[str], None]) -> Workload:
    """Return the fused workload of a request. What a person's own code prints goes to stderr."""
    from joulemap.fuse import fuse
    from joulemap.trace.build import trace_request

    talk(f"tracing {request.model} …")
    with contextlib.redirect_stdout(sys.stderr):
        return fuse(trace_request(request))


def store_catalogue(connection: Connection) -> dict[str, tuple[str, str]]:
    """Make the package's catalogue the database's current one; return id -> (architecture, digest)."""
    from joulemap.catalog.load import load_catalogue
    from joulemap.store.write_catalogue import write_catalogue

    write_catalogue(connection, load_catalogue(), load_models().values(), package_version("joulemap"))
    return find_current_hardware(connection, catalogue_digest())


def _evaluate(
    connection: Connection,
    question: Question,
    workload: Workload | None,
    planned: Sequence[PlannedRun],
    catalogue: Catalogue,
) -> tuple[int, ...]:
    """Write the workload if it is new, evaluate the runs that are not stored, and return the ids of all."""
    from joulemap.domain.configuration import Configuration
    from joulemap.evaluate import evaluate
    from joulemap.store.read import read_batch, read_columns
    from joulemap.store.write_run import RunIdentity, RunWriter
    from joulemap.store.write_workload import write_workload

    request = question.request
    found = find_workload(connection, request.key.digest) if workload is None else write_workload(connection, workload)
    if found is None:
        raise DatabaseError(f"the workload of {request.model} has gone; run again")
    columns, batch = read_columns(connection, found), read_batch(connection, found)
    stored = find_runs(connection, [run.run_key for run in planned])
    writer = RunWriter(connection)
    for run in planned:
        if run.run_key in stored:
            continue
        configuration = Configuration(
            hardware=run.hardware, precision=question.precision, batch=batch, runtime=question.runtime
        )
        identity = RunIdentity(
            run_key=run.run_key,
            workload_id=found,
            hardware_digest=run.hardware_digest,
            power_mode=POWER_MODE,
            precision=question.precision,
            batch=batch,
            runtime=question.runtime,
            model_version=MODEL_VERSION,
            package_version=package_version("joulemap"),
        )
        try:
            evaluated = evaluate(columns, catalogue.find(run.hardware), configuration)
        except UnsupportedError as error:
            stored[run.run_key] = writer.add_refusal(identity, str(error))
        else:
            stored[run.run_key] = writer.add(identity, evaluated)
    writer.flush()
    return tuple(stored[run.run_key] for run in planned)
