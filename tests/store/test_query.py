from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest

from compare import assert_close
from joulemap.domain.metric import METRICS
from joulemap.domain.settings import Bounds
from joulemap.generated.database import StoredTable
from joulemap.store.catalogue import write_metrics
from joulemap.store.connection import Connection, configure, limit, writing
from joulemap.store.contract import Parameter, Query, write_query
from joulemap.store.header import parse_query
from joulemap.store.library import find_query, list_queries
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.query import check_query, parse_parameter, run_query, sample
from joulemap.store.run import mark_newest
from joulemap.store.statement import prepare
from joulemap.store.surface import load_surface
from joulemap.system.errors import SqlError, UnknownNameError, UsageError
from joulemap.system.resource import folder
from sample import each
from tools import PACKAGE
from tools.row import spell_modules


@pytest.fixture(scope="module")
def opened(database: Path) -> Iterator[Connection]:
    with duckdb.connect(str(database), read_only=True) as connection:
        yield connection


@pytest.fixture
def connection(opened: Connection) -> Connection:
    """A session of its own, with variables of its own."""
    return opened.cursor()


def titles(query: Query) -> str:
    return query.title


@pytest.mark.sample(25)
@pytest.mark.parametrize("query", list_queries(), ids=titles)
def test_a_header_says_what_the_engine_says(query: Query, connection: Connection) -> None:
    check_query(connection, query)


@each(list_queries(), titles)
def test_a_query_follows_the_house_rules(query: Query) -> None:
    assert query.schema <= SCHEMA_VERSION
    assert query.summary
    assert query.grain.startswith("one row")
    assert all(column.meaning for column in query.columns)
    assert all(parameter.meaning for parameter in query.parameters)
    code = re.sub(r"'[^']*'", "''", query.sql)
    assert not re.search(r"SELECT\s+\*", code)
    assert "ORDER BY" in code
    assert not code.rstrip().endswith(";")


def test_no_division_of_integers_is_by_zero() -> None:
    """The engine raises an error there since 2.0; before, the quotient was null."""
    views = load_surface().sql + (folder("schemas") / "lake" / "views.sql").read_text()
    code = [re.sub(r"--.*|'[^']*'", "", sql) for sql in (*(query.sql for query in list_queries()), views)]
    divisors = re.findall(r"(?://| %)\s*([\w.]+)", "\n".join(code))
    assert "nullif" in divisors
    # a batch is positive by a check of its table
    assert [one for one in divisors if one not in ("nullif", "batch", "c.batch") and not one.strip("0").isdigit()] == []


def test_what_is_shown_of_a_query_is_a_whole_query_file(tmp_path: Path) -> None:
    for query in list_queries():
        topic, _, name = query.name.partition(".")
        path = tmp_path / topic / f"{name}.v{query.version}.sql"
        path.parent.mkdir(exist_ok=True)
        path.write_text(write_query(query))
        shown = parse_query(path)
        for field in ("title", "record", "summary", "grain", "order", "parameters", "columns", "sql"):
            assert getattr(shown, field) == getattr(query, field), (query.name, field)


@pytest.mark.wings
def test_the_types_of_rows_are_what_the_headers_say() -> None:
    places = (*PACKAGE.glob("generated/[!_]*.py"), *PACKAGE.glob("wing/*/generated/[!_]*.py"))
    assert {path: path.read_text() for path in places} == spell_modules(), "make rows"


@pytest.mark.sample(8)
@pytest.mark.parametrize("query", list_queries(), ids=titles)
def test_a_cell_is_empty_only_where_the_header_says_so(query: Query, connection: Connection) -> None:
    ids = run_ids(connection, "workload_id = (SELECT workload_id FROM internal.run ORDER BY run_id LIMIT 1)")
    hardware = connection.execute("SELECT hardware FROM runs WHERE run_id = $1", [ids[0]]).fetchall()[0][0]
    values = {"run_id": ids[0], "run_ids": ids, "run_a": ids[0], "run_b": ids[1], "hardware": hardware}
    needed = {one.name: sample(one.type) for one in query.parameters if one.is_required}
    given = {
        one.name: values[one.name]
        for one in query.parameters
        if one.name in values and one.type.endswith("[]") == isinstance(values[one.name], list)
    }
    table = run_query(connection, query, {**needed, **given})
    empty = {name for row in table.records() for name, value in row.items() if value is None}
    assert empty <= {column.name for column in query.columns if column.null or column.of}


def test_a_row_is_its_cells_by_name() -> None:
    row = StoredTable.of(("run", 1, 2, "a run"))
    assert (row.table_name, *row[1:]) == ("run", 1, 2, "a run")
    assert row.record() == dict(zip(StoredTable.columns, row, strict=True))
    assert row.replace(row_count=7).row_count == 7
    assert repr(row).startswith("StoredTable(table_name='run', ")
    with pytest.raises(TypeError, match="know: column_count, meaning, row_count"):
        StoredTable(table_name="run")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="know: colour"):
        row.replace(colour=1)
    with pytest.raises(ValueError, match="shorter"):
        StoredTable.of(("run",))


def test_the_newest_version_answers_unless_one_is_named() -> None:
    assert find_query("compare.summary") == find_query("compare.summary@1")


def test_a_misspelt_query_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean compare\.summary"):
        find_query("compare.sumary")


def test_an_unknown_version_names_those_that_exist() -> None:
    with pytest.raises(UnknownNameError, match="known: 1"):
        find_query("compare.summary@7")


HEADER = """/*
name = "topic.name"
version = 1
schema = 2
summary = "s"
grain = "one row"
order = ["a"]
[columns]
a = { type = "INTEGER", meaning = "m" }
*/
SELECT 1 AS a ORDER BY a
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("/*", "--"), "starts with a"),
        (('grain = "one row"\n', ""), "missing grain"),
        (('order = ["a"]\n', ""), "missing order"),
        (('grain = "one row"', 'grain = "one row"\nauthor = "x"'), "unknown author"),
        (('summary = "s"', 'summary = "s"\nsummary = "t"'), "not valid TOML"),
        (('name = "topic.name"', 'name = "topic.other"'), "says topic.other"),
        (("version = 1", "version = 2"), "version 2"),
        (('meaning = "m"', 'meaning = "m", colour = "red"'), "colour"),
    ],
)
def test_a_header_that_breaks_the_rules_is_refused(change: tuple[str, str], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "topic" / "name.v1.sql"
    path.parent.mkdir()
    path.write_text(HEADER)
    assert parse_query(path).columns[0].type == "INTEGER"
    path.write_text(HEADER.replace(*change))
    with pytest.raises(SqlError, match=reason):
        parse_query(path)


def test_a_query_that_lies_about_its_columns_is_refused(connection: Connection, tmp_path: Path) -> None:
    path = tmp_path / "topic" / "name.v1.sql"
    path.parent.mkdir()
    path.write_text(HEADER.replace("1 AS a ORDER BY a", "1 AS b ORDER BY b"))
    with pytest.raises(SqlError, match="returned the columns b, its header says a"):
        run_query(connection, parse_query(path), {})


def test_parameters_are_compared_before_the_engine_sees_them(connection: Connection) -> None:
    connection.execute("SET VARIABLE run_id = 1")
    with pytest.raises(UsageError, match=r"needs -p run_id=INTEGER"):
        run_query(connection, find_query("edp.distribution"), {})
    with pytest.raises(UsageError, match="takes no parameter run; it takes: run_id"):
        run_query(connection, find_query("edp.distribution"), {"run_id": 1, "run": 2})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INTEGER", "7", 7),
        ("INTEGER[]", "1, 2,3", [1, 2, 3]),
        ("INTEGER[]", "[4]", [4]),
        ("DOUBLE", "1e-3", 1e-3),
        ("BOOLEAN", "true", True),
        ("VARCHAR", "x=y", "x=y"),
    ],
)
def test_a_parameter_is_read_as_its_type(kind: str, text: str, value: object) -> None:
    assert parse_parameter(Parameter(name="p", type=kind, meaning="m"), text) == value


@pytest.mark.parametrize(("kind", "text"), [("INTEGER", "ten"), ("INTEGER[]", "1,x"), ("DOUBLE", ""), ("BOOLEAN", "1")])
def test_a_parameter_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match="parameter p is"):
        parse_parameter(Parameter(name="p", type=kind, meaning="m"), text)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM internal.run",
        "CREATE TABLE t AS SELECT 1",
        "COPY run TO '/tmp/escaped.csv'",
        "SELECT content FROM read_text('/etc/hostname')",
        "ATTACH '/tmp/escaped.duckdb'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "PRAGMA database_list; DELETE FROM internal.run",
        "",
        "SELEC 1",
        "CREATE TEMP TABLE t (a INTEGER)",
        "PRAGMA threads = 1",
    ],
)
def test_typed_sql_cannot_write_or_reach_out(statement: str, own_database: Path) -> None:
    connection = duckdb.connect(str(own_database), read_only=True)
    configure(connection, limit(1e9))
    with pytest.raises(SqlError):
        prepare(connection, "sql", statement, {}, Bounds()).table()
    assert not Path("/tmp/escaped.csv").exists()


def run_ids(connection: Connection, condition: str = "TRUE") -> list[int]:
    return [
        int(row[0]) for row in connection.execute(f"SELECT run_id FROM runs WHERE {condition} ORDER BY 1").fetchall()
    ]


CORRUPTIONS = {
    "energy_fj is round(count x energy per action)": (
        "UPDATE internal.ledger_line SET energy_fj = energy_fj + 1 WHERE rowid = 5"
    ),
    "an action stands once per operator": "INSERT INTO internal.ledger_line SELECT * FROM internal.ledger_line LIMIT 1",
    "operator latencies sum to their subgraph": (
        "UPDATE internal.run_subgraph SET latency_fs = latency_fs + 1 WHERE rowid = 3"
    ),
    "kernels and bytes of operators sum to their subgraph": (
        "UPDATE internal.run_operator SET dram_bytes = dram_bytes + 1 WHERE rowid = 3"
    ),
    "a ledger line has a price": (
        "DELETE FROM internal.energy_per_action WHERE action_id = (SELECT min(action_id) FROM internal.ledger_line)"
    ),
    "a ledger line belongs to an operator of its subgraph": "DELETE FROM internal.run_operator WHERE rowid = 0",
    "an operator of a run stands in the same subgraph of its workload": (
        "UPDATE internal.workload_operator SET subgraph_index = subgraph_index + 1 WHERE rowid = 0"
    ),
    "a run with a ledger has subgraphs and lines": "DELETE FROM internal.ledger_line WHERE run_id = 2",
    "a run has its workload and hardware": "DELETE FROM internal.workload",
    "a run has its calibration": "UPDATE internal.run SET calibration_digest = 'gone' WHERE run_id = 1",
    "a row of a run belongs to a run": "DELETE FROM internal.run WHERE run_id = 1",
    "an operator is in exactly one subgraph of its workload": "DELETE FROM internal.workload_subgraph WHERE rowid = 2",
    "the newest run of a configuration is marked": "UPDATE internal.run SET is_newest = FALSE WHERE run_id = 1",
    "an operator of a run has its subgraph": "DELETE FROM internal.run_subgraph WHERE rowid = 3",
    "an operator that takes time has its static line": (
        "DELETE FROM internal.ledger_line WHERE run_id = 1 AND action_id IN (SELECT action_id "
        "FROM internal.action WHERE part = 'static')"
    ),
    "an operator that the runtime launches is in the run": "DELETE FROM internal.run_operator WHERE run_id = 2",
    "units used are at most those that exist": (
        "UPDATE internal.run_subgraph SET units_used_count = 9999 WHERE rowid = 1"
    ),
    "the MACs of an operator are those of its GEMM view": (
        "UPDATE internal.workload_operator SET mac_count = mac_count * 2"
    ),
    "from one batch to the next is at most the latency": (
        "UPDATE internal.run_operator SET interval_fs = latency_fs + 1 WHERE run_id = 1"
    ),
    "actions of a run are those of its ledger": (
        "UPDATE internal.run_action SET action_count = 2 * action_count WHERE rowid = 5"
    ),
    "totals of a run are those of its parts": "UPDATE internal.run_total SET energy_half_width = 0.5 WHERE run_id = 1",
    "static energy is static power x the time from one batch to the next": (
        "UPDATE internal.ledger_line SET action_count = action_count * 2 WHERE rowid = "
        "(SELECT min(l.rowid) FROM internal.ledger_line AS l "
        "JOIN internal.action AS a USING (action_id) WHERE a.part = 'static')"
    ),
}


def test_a_healthy_database_passes_the_audit(connection: Connection) -> None:
    assert run_query(connection, find_query("audit.conservation"), {}).rows == ()


@pytest.mark.parametrize("is_deleting", [False, True])
def test_the_audit_finds_all_that_is_broken_at_once(is_deleting: bool, own_database: Path) -> None:
    chosen = {rule: sql for rule, sql in CORRUPTIONS.items() if sql.startswith("DELETE") == is_deleting}
    chosen.pop("a run has its workload and hardware", None)  # without workloads nothing else can be said
    with duckdb.connect(str(own_database)) as connection:
        for sql in chosen.values():
            connection.execute(sql)
        rows = run_query(connection, find_query("audit.conservation"), {}).records()
    assert chosen.keys() <= {row["rule"] for row in rows}
    ids = {row["rule"]: (row["run_id"] is None, row["workload_id"] is None) for row in rows}
    workloads = {
        "an operator is in exactly one subgraph of its workload",
        "the MACs of an operator are those of its GEMM view",
    }
    assert all(both == (rule in workloads, rule not in workloads) for rule, both in ids.items())


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "rules"),
    [
        (
            "UPDATE internal.ledger_line SET subgraph_index = subgraph_index + 1 WHERE rowid = 4",
            ["a ledger line belongs to an operator of its subgraph"],
        ),
        (
            "INSERT INTO internal.ledger_line SELECT * REPLACE (subgraph_index + 1 AS subgraph_index) "
            "FROM internal.ledger_line "
            "WHERE rowid = 7",
            [
                "a ledger line belongs to an operator of its subgraph",
                "actions of a run are those of its ledger",
                "an action stands once per operator",
            ],
        ),
        (
            "INSERT INTO internal.ledger_line "
            "SELECT l.* REPLACE (action_count * 2 AS action_count, energy_fj * 2 AS energy_fj) "
            "FROM internal.ledger_line AS l JOIN internal.action AS a USING (action_id) "
            "WHERE a.part = 'static' LIMIT 1",
            [
                "actions of a run are those of its ledger",
                "an action stands once per operator",
                "static energy is static power x the time from one batch to the next",
            ],
        ),
    ],
)
def test_the_audit_names_the_one_line_that_is_wrong(statement: str, rules: list[str], own_database: Path) -> None:
    connection = duckdb.connect(str(own_database))
    connection.execute(statement)
    rows = run_query(connection, find_query("audit.conservation"), {}).rows
    assert [row[0] for row in rows if row[0] != "energy_fj is round(count x energy per action)"] == rules


def test_answers_do_not_depend_on_the_number_of_threads(database: Path) -> None:
    def answer(threads: int) -> list[object]:
        connection = duckdb.connect(str(database), read_only=True)
        connection.execute(f"SET threads = {threads}")
        ids = run_ids(connection)
        asked: list[tuple[str, dict[str, Any]]] = [
            ("compare.summary", {"run_ids": ids}),
            ("explain.energy", {"run_a": ids[0], "run_b": ids[1]}),
        ]
        return [run_query(connection, find_query(name), values).rows for name, values in asked]

    assert answer(1) == answer(2)


def test_columns_of_one_name_are_all_kept(connection: Connection) -> None:
    assert prepare(connection, "sql", "SELECT 1 AS a, 2 AS a, 3 AS b", {}, Bounds()).table().records() == [
        {"a": 1, "a_2": 2, "b": 3}
    ]


def test_metrics_of_the_database_are_those_of_the_program(connection: Connection) -> None:
    rows = connection.execute("SELECT name, column_name, unit, is_higher_better FROM metrics ORDER BY metric_index")
    assert rows.fetchall() == [(one.name, one.column, one.unit, one.is_higher_better) for one in METRICS]
    ids = run_ids(connection, "runtime = 'fused'")
    for one in METRICS[::8]:
        answer = run_query(connection, find_query("pareto.front"), {"run_ids": ids, "x": one.name})
        assert {row["x_unit"] for row in answer.records()} == {one.unit}


def test_a_new_metric_is_one_row(own_database: Path) -> None:
    with writing(own_database) as connection:
        clock = attrs.evolve(METRICS[0], name="clock", unit="1", column="idle_power_w")  # type: ignore[arg-type]
        write_metrics(connection, (*METRICS, clock))
        ids = run_ids(connection, "runtime = 'fused'")
        rows = run_query(
            connection, find_query("recommend.configuration"), {"run_ids": ids, "objective": "clock"}
        ).records()
    values = [(row["rank"] is None, row["objective_value"]) for row in rows]
    assert values == sorted(values)
    assert [is_unranked for is_unranked, _ in values] == [not row["is_available"] for row in rows]
    assert rows[0]["objective_unit"] == "1"


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("pareto.front", "x"),
        ("recommend.configuration", "objective"),
        ("compare.matrix", "metric"),
    ],
)
def test_an_unknown_metric_names_the_known_ones(name: str, parameter: str, connection: Connection) -> None:
    asked = {"run_ids": run_ids(connection), parameter: "beauty"}
    with pytest.raises(SqlError, match="unknown metric beauty, expected one of energy, energy_per_inference, latency"):
        run_query(connection, find_query(name), asked)


def test_energy_is_per_batch_and_energy_per_inference_its_own(connection: Connection) -> None:
    ids = run_ids(connection)
    whole, each = (
        {row["run_id"]: row["x_value"] for row in run_query(connection, find_query("pareto.front"), asked).records()}
        for asked in ({"run_ids": ids, "x": "energy"}, {"run_ids": ids, "x": "energy_per_inference", "y": "latency"})
    )
    batches = dict(connection.execute("SELECT run_id, batch FROM internal.run").fetchall())
    for run_id, energy_j in whole.items():
        assert_close(energy_j, each[run_id] * batches[run_id])


def test_a_newer_run_of_a_configuration_takes_its_flag(own_database: Path) -> None:
    with writing(own_database) as connection:
        assert connection.execute("SELECT bool_and(is_newest) FROM runs").fetchall() == [(True,)]
        for table in ("run_subgraph", "run_operator", "ledger_line", "run_action", "run_total"):
            connection.execute(
                f"INSERT INTO internal.{table} SELECT * REPLACE (9999 AS run_id) FROM internal.{table} WHERE run_id = 1"
            )
        connection.execute(
            "INSERT INTO internal.run SELECT * REPLACE (9999 AS run_id, 'x' AS run_key, 'other' AS formula_version) "
            "FROM internal.run WHERE run_id = 1"
        )
        mark_newest(connection)
        flags = (
            "SELECT run_id, bool_and(is_newest) FROM {} WHERE run_id IN (1, 2, 9999) GROUP BY run_id ORDER BY run_id"
        )
        for view in ("runs", "subgraph_results", "operator_results", "energy_ledger"):
            assert connection.execute(flags.format(view)).fetchall() == [(1, False), (2, True), (9999, True)]
