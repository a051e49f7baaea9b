"""The library's front object. Each question imports what it needs, so that reading costs no more than reading."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.errors import DatabaseError, OlderDatabaseError, UnsupportedError, UsageError
from joulemap.query import Answer, find_query, run_query, run_sql
from joulemap.store.connection import (
    Connection,
    confine,
    open_for_reading,
    open_for_writing,
    open_in_memory,
    read_everything,
    transaction,
    using,
)
from joulemap.store.read import find_current_hardware, find_runs, find_workload

if TYPE_CHECKING:
    from joulemap.domain.answer import EdpShare, Finding
    from joulemap.domain.catalogue import Catalogue
    from joulemap.domain.workload import Workload
    from joulemap.trace.source import ModelRequest
    from joulemap.workspace.answer import CompareAnswer, DatabaseInfo, ExplainAnswer
    from joulemap.workspace.plan import PlannedRun

METRICS: Final = ("energy",)
"""What an explanation decomposes: each is a query `explain.METRIC`."""

Talk = Callable[[str], None]


def _silent(_message: str) -> None:
    return None


class Workspace:
    """A results database and the questions it answers.

    Nothing is opened until a question is asked, and nothing stays open after it. Questions that need runs which are
    not stored trace, evaluate and write them in one transaction; all others only read.
    """

    def __init__(self, path: str | Path = "joulemap.duckdb", *, talk: Talk = _silent) -> None:
        """Use the database at `path`, made when first written; `talk` is told what takes time."""
        self.path = Path(path)
        self._talk = talk

    def compare(
        self,
        model: str,
        *,
        hardware: Sequence[str] = (),
        architecture: Sequence[str] = (),
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        baseline: str = "",
        input_shape: tuple[int, ...] | None = None,
    ) -> CompareAnswer:
        """Return the model on each hardware: the named ones, those of the named architectures, or the default four.

        A hardware that cannot run the configuration is an `unsupported` row with its reason. Raises UnknownNameError,
        UsageError, ModelError or DatabaseError; UnsupportedError if no hardware can run it.
        """
        from joulemap.domain.answer import Comparison, Insight, Recommendation
        from joulemap.workspace.answer import CompareAnswer

        request = _resolve(model, precision, runtime, batch, input_shape)
        with self._answering(request, hardware, architecture, precision, runtime) as (run_ids, connection):
            ids = {"run_ids": list(run_ids)}
            summary = run_query(connection, find_query("compare.summary"), {**ids, "baseline": baseline})
            rows = tuple(Comparison(*row) for row in summary.rows)
            if all(row.status != "ok" for row in rows):
                raise UnsupportedError("; ".join(row.reason for row in rows))
            if baseline and all(row.hardware != baseline or row.status != "ok" for row in rows):
                raise UnsupportedError(f"the baseline {baseline} is not among the runs that could be answered")
            best = run_query(connection, find_query("compare.recommendation"), ids)
            insight = run_query(connection, find_query("compare.insight"), ids)
            return CompareAnswer(
                model=request.model,
                batch=request.batch,
                precision=precision,
                runtime=runtime,
                run_ids=run_ids,
                rows=rows,
                recommendations=tuple(Recommendation(*row) for row in best.rows),
                insights=tuple(Insight(*row) for row in insight.rows),
                uncounted=run_query(connection, find_query("model.uncounted"), ids),
                answers=(best, summary, insight),
            )

    def explain(
        self,
        model: str,
        hardware_a: str,
        hardware_b: str,
        *,
        metric: str = "energy",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        input_shape: tuple[int, ...] | None = None,
    ) -> ExplainAnswer:
        """Return why B differs from A in a metric, as terms that sum to the difference exactly.

        Raises as `compare`; UnsupportedError if either cannot run the configuration.
        """
        from joulemap.domain.answer import Comparison, EnergyTerm, EnergyTotal
        from joulemap.workspace.answer import ExplainAnswer

        if metric not in METRICS:
            raise UsageError(f"cannot explain {metric!r}; known: {', '.join(METRICS)}")
        request = _resolve(model, precision, runtime, batch, input_shape)
        pair = (hardware_a, hardware_b)
        with self._answering(request, pair, (), precision, runtime) as (run_ids, connection):
            summary = run_query(connection, find_query("compare.summary"), {"run_ids": list(run_ids)})
            refused = [row for row in (Comparison(*values) for values in summary.rows) if row.status != "ok"]
            if refused:
                raise UnsupportedError("; ".join(row.reason for row in refused))
            sides = {"run_a": run_ids[0], "run_b": run_ids[-1]}
            total = run_query(connection, find_query("explain.total"), sides)
            terms = run_query(connection, find_query(f"explain.{metric}"), sides)
            return ExplainAnswer(
                total=EnergyTotal(*total.rows[0]),
                terms=tuple(EnergyTerm(*row) for row in terms.rows),
                answers=(total, terms),
            )

    def edp(self, run_id: int) -> tuple[EdpShare, ...]:
        """Return how a run's energy-delay product spreads over its subgraphs, largest share first."""
        from joulemap.domain.answer import EdpShare

        return tuple(EdpShare(*row) for row in self.query("edp.distribution", {"run_id": run_id}).rows)

    def query(self, name: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Run a query of `queries/` read-only; raises UnknownNameError, UsageError, SqlError or DatabaseError."""
        query = find_query(name)
        with using(open_for_reading(self.path), self.path) as connection:
            return run_query(connection, query, parameters or {})

    def describe(self, name: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Run a query about the catalogue, whether or not there is a database.

        Reads the database if it holds the current catalogue, else a catalogue loaded for the occasion.
        """
        query = find_query(name)
        with using(self._open_with_catalogue(), self.path) as connection:
            return run_query(connection, query, parameters or {})

    def sql(self, statement: str) -> Answer:
        """Run one ad-hoc statement read-only, without access to files or settings."""
        with using(open_for_reading(self.path), self.path) as connection:
            confine(connection)
            return run_sql(connection, statement)

    def check(self) -> tuple[Finding, ...]:
        """Return every rule that the database breaks; an empty answer proves that the parts add up."""
        from joulemap.domain.answer import Finding

        return tuple(Finding(*row) for row in self.query("audit.conservation").rows)

    def scan(self) -> None:
        """Read every table whole; DatabaseError names the first one with a damaged block."""
        with using(open_for_reading(self.path), self.path) as connection:
            read_everything(connection, self.path)

    def info(self) -> DatabaseInfo:
        """Return what the database file is and holds."""
        from joulemap.store.migration import schema_version
        from joulemap.workspace.answer import DatabaseInfo

        with using(open_for_reading(self.path), self.path) as connection:
            return DatabaseInfo(
                path=str(self.path),
                schema_version=schema_version(connection) or 0,
                size_bytes=self.path.stat().st_size,
                content=run_query(connection, find_query("database.content"), {}),
            )

    def migrate(self) -> int:
        """Make or update the database; return its schema version."""
        from joulemap.store.migration import SCHEMA_VERSION

        open_for_writing(self.path).close()
        return SCHEMA_VERSION

    def _open_with_catalogue(self) -> Connection:
        from joulemap.catalog.digest import catalogue_digest

        if self.path.exists():
            connection = open_for_reading(self.path)
            if find_current_hardware(connection, catalogue_digest()):
                return connection
            connection.close()
        connection = open_in_memory()
        self._store_catalogue(connection)
        return connection

    def _store_catalogue(self, connection: Connection) -> dict[str, tuple[str, str]]:
        from joulemap.catalog.digest import catalogue_digest
        from joulemap.catalog.load import load_catalogue
        from joulemap.catalog.model import load_models
        from joulemap.store.write_catalogue import write_catalogue
        from joulemap.trace.source import package_version

        write_catalogue(connection, load_catalogue(), load_models().values(), package_version("joulemap"))
        return find_current_hardware(connection, catalogue_digest())

    @contextlib.contextmanager
    def _answering(
        self,
        request: ModelRequest,
        names: Sequence[str],
        architectures: Sequence[str],
        precision: str,
        runtime: str,
    ) -> Iterator[tuple[tuple[int, ...], Connection]]:
        """Give out the runs of a question, in the order of its hardware, and a connection that holds them.

        Reads only if everything is stored. Otherwise traces with no connection open, then evaluates and writes what is
        missing in one transaction.
        """
        from joulemap.catalog.digest import catalogue_digest
        from joulemap.workspace.plan import plan_runs, select_hardware

        workload_key = request.key.digest

        def plan(known: Mapping[str, tuple[str, str]]) -> tuple[PlannedRun, ...]:
            chosen = select_hardware(known, names, architectures)
            return plan_runs(workload_key, known, chosen, precision=precision, batch=request.batch, runtime=runtime)

        is_traced = False
        with contextlib.suppress(OlderDatabaseError, FileNotFoundError), self._reading_if_there() as connection:
            known = find_current_hardware(connection, catalogue_digest())
            planned = plan(known) if known else ()
            stored = find_runs(connection, [run.run_key for run in planned])
            is_traced = find_workload(connection, workload_key) is not None
            if planned and len(stored) == len({run.run_key for run in planned}):
                yield tuple(stored[run.run_key] for run in planned), connection
                return

        from joulemap.catalog.load import load_catalogue

        catalogue = load_catalogue()
        plan({hardware.id: (hardware.architecture, hardware.digest) for hardware in catalogue.hardware.values()})
        workload = None if is_traced else self._trace(request)
        with using(open_for_writing(self.path), self.path) as connection:
            with transaction(connection):
                known = find_current_hardware(connection, catalogue_digest()) or self._store_catalogue(connection)
                planned = plan(known)
                run_ids = self._evaluate(connection, request, workload, planned, catalogue)
            yield run_ids, connection

    @contextlib.contextmanager
    def _reading_if_there(self) -> Iterator[Connection]:
        if not self.path.exists():
            raise FileNotFoundError(self.path)
        with using(open_for_reading(self.path), self.path) as connection:
            yield connection

    def _trace(self, request: ModelRequest) -> Workload:
        from joulemap.fuse import fuse
        from joulemap.trace.build import trace_request

        self._talk(f"tracing {request.model} …")
        return fuse(trace_request(request))

    def _evaluate(
        self,
        connection: Connection,
        request: ModelRequest,
        workload: Workload | None,
        planned: Sequence[PlannedRun],
        catalogue: Catalogue,
    ) -> tuple[int, ...]:
        """Write the workload if it is new, evaluate the runs that are not stored, and return the ids of all."""
        from joulemap.evaluate import evaluate
        from joulemap.store.read import read_columns
        from joulemap.store.write_run import RunIdentity, RunWriter
        from joulemap.store.write_workload import write_workload
        from joulemap.trace.source import package_version
        from joulemap.workspace.plan import MODEL_VERSION

        if workload is not None:
            workload_id: int | None = write_workload(connection, workload)
        else:
            workload_id = find_workload(connection, request.key.digest)
        if workload_id is None:
            raise DatabaseError(f"{self.path}: the workload of {request.model} has gone; run again")
        columns = read_columns(connection, workload_id)
        stored = find_runs(connection, [run.run_key for run in planned])
        writer = RunWriter(connection)
        for run in planned:
            if run.run_key in stored:
                continue
            settings = run.configuration
            identity = RunIdentity(
                run_key=run.run_key,
                workload_id=workload_id,
                hardware_digest=run.hardware_digest,
                power_mode=settings.power_mode,
                precision=settings.precision,
                batch=settings.batch,
                runtime=settings.runtime,
                model_version=MODEL_VERSION,
                package_version=package_version("joulemap"),
            )
            try:
                evaluated = evaluate(columns, catalogue.find(settings.hardware), settings)
            except UnsupportedError as error:
                stored[run.run_key] = writer.add_refusal(identity, str(error))
            else:
                stored[run.run_key] = writer.add(identity, evaluated)
        writer.flush()
        return tuple(stored[run.run_key] for run in planned)


def _resolve(
    model: str, precision: str, runtime: str, batch: int | None, input_shape: tuple[int, ...] | None
) -> ModelRequest:
    from joulemap.catalog.model import load_models
    from joulemap.trace.source import resolve_model
    from joulemap.workspace.plan import check_settings

    check_settings(precision, runtime)
    return resolve_model(model, load_models(), batch=batch, input_shape=input_shape)
