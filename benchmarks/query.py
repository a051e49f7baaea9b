"""Time and rows read of every query and every read-only answer, on a database with 12,000 runs.

python benchmarks/query.py [--small] [DATABASE]

Without a database, that of benchmarks/sweep.py is made and removed. A query runs for one model, on all its hardware at
one batch, and for all runs if it takes several. Times are medians of 3 in one process. Rows are those that the engine's
scans read, before filters, except in row groups that it skips.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import attrs
import duckdb

from joulemap.domain.settings import Settings
from joulemap.store.connection import Connection
from joulemap.store.contract import Query
from joulemap.store.engine import connect
from joulemap.store.library import list_queries
from joulemap.store.literal import execute
from joulemap.store.query import COMPUTED, bind, run_query
from joulemap.store.statement import blaming
from joulemap.system.errors import SqlError
from joulemap.workspace import Workspace
from sweep import BATCHES, SMALL_STEP, classifiers, store_workloads, sweep

MODEL: Final = "resnet50"
BATCH: Final = 8
ROW_GROUP: Final = 122_880
"""Rows of a row group; DuckDB 2 counts the row groups that a scan reads, 1.5 their rows."""
HARDWARE: Final = ("xeon_8490h", "h100_sxm5", "tpu_v4", "kpu_t256")
REPEATS: Final = 3
PAIRWISE: Final = ("compare.probability", "explore.doubt")
"""Queries with a row for each pair of runs, which run for one model only. All pairs of 20,000 runs are 400 million
rows: `explore.doubt` took 3.8 GB for 2,000 runs and four times that for 4,000.
"""
CHUNK: Final = 10_000
ONE_LIMIT_S: Final = 0.15
ALL_LIMIT_S: Final = 1.0
BY_TYPE: Final[Mapping[str, Any]] = {"INTEGER": 1, "BIGINT": 1, "DOUBLE": 1.0, "VARCHAR": "", "BOOLEAN": False}
"""Value of a parameter without a default and without a known name, by type."""


@attrs.frozen
class Timing:
    """Time of one query or answer."""

    name: str
    scope: str
    seconds: float
    row_count: int
    read_count: int | None
    """None for an answer of several queries."""

    @property
    def limit_s(self) -> float:
        """Maximum seconds."""
        return ALL_LIMIT_S if self.scope == "all" else ONE_LIMIT_S


def choose(connection: Connection) -> tuple[dict[str, Any], list[int]]:
    """Return a value for each parameter of queries, about runs of one model with ledgers, and the ids of all runs.

    The model is `MODEL` on `HARDWARE` where its ledgers are stored, else that of most runs with a ledger.
    """
    rows = connection.execute(
        """
        SELECT run_id, workload_id, hardware, model
        FROM runs
        WHERE has_ledger
            AND model = coalesce(
                (SELECT any_value(model) FROM runs WHERE has_ledger AND model = $model),
                (SELECT mode(model) FROM runs WHERE has_ledger)
            )
        QUALIFY batch = abs(max(CASE WHEN batch = $batch THEN batch ELSE -batch END) OVER ())
        ORDER BY run_id
        """,
        {"model": MODEL, "batch": BATCH},
    ).fetchall()
    by_hardware = {hardware: run_id for run_id, _, hardware, _ in rows}
    run_a, run_b = (by_hardware[name] for name in sorted(by_hardware, key=lambda name: name not in HARDWARE[1:3])[:2])
    values = {
        "run_id": run_a,
        "run_a": run_a,
        "run_b": run_b,
        "run_ids": [run_id for run_id, _, _, _ in rows],
        "workload_id": rows[0][1],
        "hardware": HARDWARE[1],
        "hardware_digest": HARDWARE[1],
        "model": rows[0][3],
    }
    return values, [
        run_id for (run_id,) in connection.execute("SELECT run_id FROM internal.run ORDER BY run_id").fetchall()
    ]


def fill(query: Query, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of a parameter: the known value of this name, else its default, else one of its type."""
    given = {}
    for parameter in query.parameters:
        if parameter.name in values:
            value = values[parameter.name]
            is_list = parameter.type.endswith("[]") and not isinstance(value, list)
            given[parameter.name] = [value] if is_list else value
        elif parameter.is_required:
            kind = parameter.type.upper()
            given[parameter.name] = [] if kind.endswith("[]") else BY_TYPE[kind]
    return bind(query, given)


def timed(ask: Callable[[], int], repeats: int = REPEATS) -> tuple[float, int]:
    """Return (median time after a first call, rows) of a query; without repeats, the time of the first call."""
    row_count, elapsed = 0, []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        row_count = ask()
        elapsed.append(time.perf_counter() - start)
    return statistics.median(elapsed[1:] or elapsed), row_count


def count_read(connection: Connection, query: Query, given: Mapping[str, Any]) -> int:
    """Return the rows that the scans of a query read, at most."""
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {query.sql}"
    text = connection.execute(statement, dict(given)).fetchall() if given else connection.execute(statement).fetchall()
    plan = json.loads(text[0][1])
    waiting: list[Any] = list(plan.get("operator", plan.get("children")))  # DuckDB 2 and 1.5
    total = 0
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        total += int(node.get("operator_rows_scanned", node.get("row_groups_scanned", 0) * ROW_GROUP))
    return total


def ask_queries(path: Path, failures: list[str], repeats: int = REPEATS) -> list[Timing]:
    """Return the timing of every query for one model, and for all runs if the query takes them.

    Errors of the engine are added to `failures`; refusals of a query are printed.
    """
    timings = []
    connection = connect(path, is_reading=True)
    values, everything = choose(connection)
    for query in list_queries():
        names = {parameter.name for parameter in query.parameters}
        about_one = fill(query, values)
        asked = [("one" if names & values.keys() else "all", about_one)]
        if "run_ids" in names and query.name not in PAIRWISE:
            asked.append(("all", {**about_one, "run_ids": everything}))
        elif names & {"model", "hardware"} and not any(parameter.is_required for parameter in query.parameters):
            asked.append(("all", bind(query, {})))
        for scope, given in asked:
            try:
                seconds, row_count = timed(partial(count_rows, connection, query, given), repeats)
                is_plain = COMPUTED not in query.sql
                read_count = count_read(connection, query, given) if repeats and is_plain else None
            except SqlError as error:
                if "workloads" not in str(error):  # the error states that the query refuses this many runs
                    failures.append(f"{query.title}, {scope}: {error}")
                continue
            except duckdb.Error as error:
                failures.append(f"{query.title}, {scope}: {error}")
                continue
            timings.append(Timing(query.title, scope, seconds, row_count, read_count))
    connection.close()
    return timings


def count_rows(connection: Connection, query: Query, given: Mapping[str, Any]) -> int:
    """Return the number of rows of a query's answer, read batch by batch: over all runs it may have millions.

    A query whose rows numpy computes runs as a whole.
    """
    if COMPUTED in query.sql:
        return len(run_query(connection, query, given).rows)
    count = 0
    with blaming():
        cursor = execute(connection, query.sql, given)
        while batch := cursor.fetchmany(CHUNK):
            count += len(batch)
    return count


def ask_answers(path: Path, models: Sequence[str]) -> list[Timing]:
    """Return the timing of answers that consist of several queries; everything that they need is stored."""
    workspace = Workspace(path)
    every = Settings(hardware=HARDWARE, batch=BATCH)
    answers: list[tuple[str, str, Callable[[], int]]] = [
        ("compare", "one", lambda: len(workspace.compare(MODEL, every).rows)),
        (
            "compare --level run",
            "one",
            lambda: len(workspace.compare_breakdowns([MODEL], every, level="run", by="action").rows),
        ),
        ("compare --level subgraph", "one", lambda: len(workspace.compare_parts([MODEL], every).rows)),
        (
            "compare --level operator",
            "one",
            lambda: len(workspace.compare_parts([MODEL], every, by="operator").rows),
        ),
        ("compare, all models", "all", lambda: len(workspace.compare_models(models, every).rows)),
        ("compare --metric efficiency", "one", lambda: len(workspace.compare(MODEL, every, metric="efficiency").rows)),
        ("analyze", "one", lambda: len(workspace.analyze(MODEL, HARDWARE[1], batch=BATCH).operators)),
        ("explain", "one", lambda: len(workspace.explain(MODEL, *HARDWARE[:2], batch=BATCH).terms)),
        (
            "explain --metric edp",
            "one",
            lambda: len(workspace.explain(MODEL, *HARDWARE[:2], metric="edp", batch=BATCH).metric_terms or ()),
        ),
        ("edp", "one", lambda: len(workspace.edp(MODEL, HARDWARE[1], batch=BATCH).operators)),
        ("utilization", "one", lambda: len(workspace.utilization(MODEL, every, has_advice=False).rows)),
        (
            "utilization --pairing",
            "all",
            lambda: len(workspace.utilization(MODEL, every, has_advice=False, is_pairing=True).pairings or ()),
        ),
        ("sweep", "one", lambda: len(workspace.sweep(MODEL, hardware=HARDWARE, batch=BATCHES).points)),
        (
            "sweep, all models",
            "all",
            lambda: len(workspace.sweep(models, hardware=HARDWARE, batch=BATCHES).points),
        ),
    ]
    return [Timing(name, scope, *timed(ask), None) for name, scope, ask in answers]


def show(timings: Sequence[Timing]) -> None:
    """Print a line for each timing, and the number within their limit."""
    print(f"{'question':<28} {'about':<5} {'median s':>9} {'rows':>9} {'rows read':>12}")
    for one in timings:
        read = "" if one.read_count is None else f"{one.read_count:,}"
        late = f"  over {one.limit_s:g}" if one.seconds > one.limit_s else ""
        print(f"{one.name:<28} {one.scope:<5} {one.seconds:>9.3f} {one.row_count:>9,} {read:>12}{late}")
    kept = sum(one.seconds <= one.limit_s for one in timings)
    print(f"{kept} of {len(timings)} within {ONE_LIMIT_S:g} s for one model and {ALL_LIMIT_S:g} s over all runs")


def main() -> None:
    """Print the time of every query and answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path, nargs="?", help="one that benchmarks/sweep.py --keep left")
    parser.add_argument("--small", action="store_true", help=f"every {SMALL_STEP}th model and {MODEL}")
    arguments = parser.parse_args()
    models = sorted({*classifiers()[:: SMALL_STEP if arguments.small else 1], MODEL})
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.database
        if path is None:
            path = Path(folder) / "query.duckdb"
            process = get_context("spawn").Process(target=store_workloads, args=(path, models))
            process.start()
            process.join()
            sweep(path, models)
        connection = duckdb.connect(str(path), read_only=True)
        counts = [
            f"{connection.execute(f'SELECT count(*) FROM internal.{table}').fetchall()[0][0]:,} {name}"
            for table, name in (("run", "runs"), ("run_subgraph", "allocations"), ("ledger_line", "ledger lines"))
        ]
        stored = {model for (model,) in connection.execute("SELECT DISTINCT model FROM internal.workload").fetchall()}
        connection.close()
        print(", ".join(counts))
        failures: list[str] = []
        show([*ask_queries(path, failures), *ask_answers(path, [model for model in models if model in stored])])
        print(*failures, sep="\n")


if __name__ == "__main__":
    main()
