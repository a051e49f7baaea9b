"""Statements and query files that a person wrote."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import Run
from joulemap.domain.table import Column
from joulemap.store.parquet import save_table
from joulemap.store.query import Rows, read_value
from joulemap.system.errors import ExitCode, SqlError, UnknownNameError, UsageError
from joulemap.workspace import Workspace

STATEMENT = "SELECT hardware, energy_j FROM runs WHERE model = $model AND list_contains($runs, run_id) ORDER BY run_id"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("1.5", 1.5),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"8"', "8"),
        ("resnet18", "resnet18"),
        ("O'Brien; DROP TABLE internal.run", "O'Brien; DROP TABLE internal.run"),
    ],
)
def test_a_parameter_without_a_type_is_what_json_makes_of_it(text: str, value: object) -> None:
    assert read_value(text) == value


def test_a_statement_takes_the_parameters_in_it_and_no_other(database: Path) -> None:
    workspace = Workspace(database)
    assert len(workspace.sql(STATEMENT, {"model": "resnet18", "runs": [1, 2]}).rows) == 2
    assert workspace.sql(STATEMENT, {"model": "'; DELETE FROM internal.run; --", "runs": [1]}).rows == ()
    with pytest.raises(UsageError, match="needs -p model=VALUE, -p runs=VALUE"):
        workspace.sql(STATEMENT)
    with pytest.raises(UsageError, match=r"has no \$batch"):
        workspace.sql(STATEMENT, {"model": "resnet18", "runs": [1], "batch": 1})


def test_a_variable_of_the_program_is_no_table(database: Path) -> None:
    with pytest.raises(SqlError, match="name given does not exist"):
        Workspace(database).sql("SELECT * FROM given")


def test_a_file_answers_like_the_statement_in_every_format(joulemap: Run, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "question.sql"
    file.write_text(f"-- which hardware\n{STATEMENT};\n")
    asked = ("sql", "--file", file, "-p", "model=resnet18", "-p", "runs=[1, 2, 3]", "--db", database)
    typed = joulemap("sql", STATEMENT, *asked[3:], "-f", "json").stdout
    records = json.loads(joulemap(*asked, "-f", "json").stdout)
    assert records == json.loads(typed)
    rows = list(csv.DictReader(io.StringIO(joulemap(*asked, "-f", "csv").stdout)))
    assert [(row["hardware"], float(row["energy_j"])) for row in rows] == [tuple(one.values()) for one in records]
    done = joulemap(*asked, "-f", "parquet", "-o", tmp_path / "answer.parquet")
    assert (done.returncode, done.stdout) == (ExitCode.OK, "")
    assert pq.read_table(tmp_path / "answer.parquet").to_pylist() == records


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no statement"),
        (("SELECT 1", "--file", "a.sql"), "not both"),
        (("--file", "absent.sql"), "cannot read absent.sql"),
        (("SELECT 1", "-f", "parquet"), "needs a file"),
        (("SELECT 1", "-p", "a"), "does not have the form key=value"),
        (("SELECT $a", "-p", "a=1", "-p", "a=2"), "given twice"),
    ],
)
def test_a_question_that_cannot_be_read_is_one_line(
    arguments: tuple[str, ...], message: str, joulemap: Run, database: Path
) -> None:
    done = joulemap("sql", *arguments, "--db", database)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_refused_statement_leaves_no_file(joulemap: Run, database: Path, tmp_path: Path) -> None:
    place = tmp_path / "answer.parquet"
    done = joulemap("sql", "DELETE FROM internal.run", "-f", "parquet", "-o", place, "--db", database)
    assert done.returncode == ExitCode.SQL
    assert list(tmp_path.iterdir()) == []


def test_parquet_keeps_types_and_says_what_it_is(tmp_path: Path) -> None:
    answer = Rows(
        title="topic.name@1",
        columns=(
            Column(name='odd "name"', type="VARCHAR", meaning="m"),
            Column(name="energy_fj", type="HUGEINT", unit="fJ", meaning="exact"),
            Column(name="energy_j", type="DECIMAL(38,15)", unit="J", meaning="exact"),
            Column(name="run_ids", type="INTEGER[]", meaning="list"),
            Column(name="is_fused", type="BOOLEAN", meaning="flag"),
        ),
        rows=(("a", 2**70 + 1, Decimal("0.000000000000001"), [1, 2], True), (None, None, None, None, None)),
        sql="SELECT 'it''s'",
        parameters={"run_id": 1},
    )
    save_table(tmp_path / "a.parquet", answer)
    table = pq.read_table(tmp_path / "a.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == list(answer.rows)
    assert table.column_names == list(answer.names)
    about = json.loads(table.schema.metadata[b"joulemap"])
    assert (about["title"], about["sql"], about["parameters"]) == (answer.title, answer.sql, {"run_id": 1})
    assert about["columns"][1]["unit"] == "fJ"


def test_an_answer_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    answer = Rows(title="t", columns=(Column(name="a", type="DOUBLE", meaning=""),), rows=(), sql="", parameters={})
    save_table(tmp_path / "a.parquet", answer)
    assert pq.read_table(tmp_path / "a.parquet").column_names == ["a"]


LIGHT = """/*
name = "mine.light"
version = 1
schema = 1
summary = "Runs below an energy"
grain = "one row per run"
order = ["energy_j", "run_id"]
[parameters]
max_energy_j = { type = "DOUBLE", default = 1e9, meaning = "limit" }
[columns]
run_id = { type = "INTEGER", meaning = "run" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "of the batch" }
*/
SELECT run_id, energy_j FROM runs WHERE energy_j < $max_energy_j ORDER BY energy_j, run_id
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "questions" / "mine" / "light.v1.sql"
    path.parent.mkdir(parents=True)
    path.write_text(LIGHT)
    return path.parents[1]


def test_an_own_query_is_listed_shown_and_run(joulemap: Run, database: Path, folder: Path) -> None:
    own = {"JOULEMAP_QUERIES": str(folder)}
    names = [one["query"] for one in json.loads(joulemap("query", "list", "-f", "json", variables=own).stdout)]
    assert "mine.light@1" in names
    assert "run.list@1" in names
    assert joulemap("query", "show", "mine.light@1", "--queries", folder).stdout == LIGHT
    asked = ("query", "run", "mine.light", "-p", "max_energy_j=0.1", "--db", database)
    rows: list[dict[str, Any]] = json.loads(joulemap(*asked, "-f", "json", variables=own).stdout)
    assert rows
    assert all(row["energy_j"] < 0.1 for row in rows)
    assert joulemap(*asked, "--show=sql", variables=own).stderr.startswith("-- mine.light@1: Runs below an energy")
    assert Workspace(database).query("mine.light", {"max_energy_j": 0.1}, queries=folder).records() == rows
    with pytest.raises(UnknownNameError, match=r"mine\.light"):
        Workspace(database).query("mine.light")


SELECT = LIGHT[LIGHT.index("SELECT") :].rstrip()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((SELECT, "DELETE FROM internal.run"), "expected a SELECT, found DELETE"),
        ((SELECT, "COPY run TO '/tmp/escaped.csv'"), "expected a SELECT, found COPY"),
        ((SELECT, "FROM force_checkpoint()"), "expected a SELECT that only reads; force_checkpoint does more"),
        ((SELECT, 'SELECT x FROM (FROM "Enable_Logging"())'), "only reads; enable_logging does more"),
        ((SELECT, f"{SELECT}; SELECT 1"), "expected one statement, found 2"),
        ((SELECT, ""), "expected one statement, found 0"),
        (("run_id, energy_j FROM", "run_id, latency_s FROM"), "its columns are run_id INTEGER, latency_s DOUBLE"),
        (("SELECT run_id, energy_j", "SELECT CAST(run_id AS BIGINT) AS run_id, energy_j"), "run_id BIGINT, energy_j"),
        (("$max_energy_j", "1.0"), "takes the parameters none, its header says max_energy_j"),
        ((" ORDER BY energy_j, run_id", ""), "no ORDER BY"),
        (("FROM runs", "FROM read_csv('/etc/hostname')"), "disabled by configuration"),
        (("FROM runs", "FROM nowhere"), "nowhere does not exist"),
        (("schema = 1", "schema = 99"), "written for schema 99"),
        (('type = "DOUBLE", default', 'type = "BLOB", default'), "no type BLOB"),
        (('version = 1', 'version = "1"'), "version is not a whole number"),
        (('order = ["energy_j", "run_id"]', "order = [1]"), "order is not a list of texts"),
        (('run_id = { type = "INTEGER", meaning = "run" }', "run_id = 5"), "columns is not a table of tables"),
        (('"INTEGER", meaning', '"INTEGER", uint = "J", meaning'), "columns.run_id: unknown key uint"),
        (('type = "DOUBLE", default', 'type = "DOUBLE", deflt = 1.0, default'), "did you mean default?"),
    ],
)  # fmt: skip
def test_an_own_query_that_breaks_the_contract_is_refused(
    change: tuple[str, str], reason: str, database: Path, folder: Path
) -> None:
    path = folder / "mine" / "light.v1.sql"
    assert change[0] in LIGHT
    path.write_text(LIGHT.replace(*change))
    workspace = Workspace(database)
    asked: tuple[Callable[[], Rows], ...] = (
        lambda: workspace.query("mine.light", queries=folder),
        lambda: workspace.list_queries(folder),
    )
    for ask in asked:
        with pytest.raises(SqlError) as refused:
            ask()
        assert "light.v1.sql" in str(refused.value)
        assert reason in str(refused.value)


@pytest.mark.parametrize("place", [".", "mine/more"])
def test_a_query_file_outside_of_the_folder_of_a_topic_is_named(place: str, database: Path, folder: Path) -> None:
    stray = folder / place / "stray.v1.sql"
    stray.parent.mkdir(exist_ok=True)
    stray.write_text(LIGHT)
    with pytest.raises(SqlError, match=re.escape(str(stray))):
        Workspace(database).query("mine.light", queries=folder)


def test_every_refused_file_of_a_folder_is_named(joulemap: Run, folder: Path) -> None:
    for name, statement in (("evil", "DELETE FROM internal.run"), ("twice", f"{SELECT}; {SELECT}")):
        text = LIGHT.replace(SELECT, statement).replace("mine.light", f"mine.{name}")
        (folder / "mine" / f"{name}.v1.sql").write_text(text)
    done = joulemap("query", "list", "--queries", folder)
    assert done.returncode == ExitCode.SQL
    assert "evil.v1.sql: expected a SELECT" in done.stderr
    assert "twice.v1.sql: expected one statement" in done.stderr
    assert "light.v1.sql" not in done.stderr


def test_an_own_query_cannot_take_a_name_that_ships(folder: Path, database: Path) -> None:
    path = folder / "run" / "list.v9.sql"
    path.parent.mkdir()
    path.write_text(LIGHT.replace("mine.light", "run.list").replace("version = 1", "version = 9"))
    with pytest.raises(SqlError, match=r"run\.list is the name of a built-in query"):
        Workspace(database).query("run.list", queries=folder)


def test_a_folder_that_is_not_there_is_said(joulemap: Run) -> None:
    done = joulemap("query", "list", "--queries", "absent")
    assert done.returncode == ExitCode.USAGE
    assert "no folder of queries at absent" in done.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "command",
    [
        ("hardware", "list", "--deployment", "edge"),
        ("measurements", "list", "--hardware", "t4"),
        ("model", "list"),
        ("model", "trace", "resnet18"),
        ("query", "run", "run.list"),
        ("query", "list"),
    ],
    ids=" ".join,
)
def test_an_answer_that_is_one_table_is_also_parquet(
    command: tuple[str, ...], joulemap: Run, database: Path, tmp_path: Path
) -> None:
    rows = json.loads(joulemap(*command, "-f", "json", "--db", database).stdout)
    assert joulemap(*command, "-f", "parquet", "--db", database).returncode == ExitCode.USAGE
    joulemap(*command, "-f", "parquet", "-o", tmp_path / "a.parquet", "--db", database)
    records = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert json.loads(json.dumps(records, default=str)) == [
        {name: str(value).replace("T", " ") if name == "created_at" else value for name, value in row.items()}
        for row in rows
    ]


PIVOT = "PIVOT (SELECT model, hardware, energy_j FROM runs WHERE runtime = 'fused') ON hardware USING sum(energy_j)"


def test_a_pivot_takes_its_columns_from_the_data(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", f"/* one column for each chip */ {PIVOT}", "--format", "json", "--db", database)
    assert done.returncode == ExitCode.OK
    (row,) = json.loads(done.stdout)
    assert row["model"] == "resnet18"
    assert {"h100_sxm5", "tpu_v4"} <= set(row)


@pytest.mark.parametrize(
    "statement",
    [
        f"COPY ({PIVOT}) TO 'escaped.csv'",
        f"CREATE TEMP TABLE t AS {PIVOT}",
        f"WITH p AS ({PIVOT}) INSERT INTO internal.run FROM p",
        "PIVOT read_text('/etc/hostname') ON filename USING first(content)",
        f"{PIVOT}; DELETE FROM internal.run",
    ],
)
def test_a_pivot_neither_writes_nor_reaches_out(
    statement: str, joulemap: Run, own_database: Path, tmp_path: Path
) -> None:
    before = own_database.read_bytes()
    assert joulemap("sql", statement, "--db", own_database).returncode == ExitCode.SQL
    assert own_database.read_bytes() == before
    assert not (tmp_path / "escaped.csv").exists()


@pytest.mark.parametrize(
    "asked",
    [
        ("edp.total", "-p", "run_id=999"),
        ("compare.summary", "-p", "run_ids=1,999"),
        ("explain.total", "-p", "run_a=1", "-p", "run_b=999"),
    ],
)
def test_a_run_that_is_not_stored_is_an_unknown_name(asked: tuple[str, ...], joulemap: Run, database: Path) -> None:
    done = joulemap("query", "run", *asked, "--db", database)
    assert (done.returncode, done.stdout) == (ExitCode.UNKNOWN_NAME, "")
    assert done.stderr == "joulemap: unknown run '999'; see `joulemap query run run.list`\n"


def test_a_list_that_is_cut_says_so(joulemap: Run, database: Path) -> None:
    asked = ("query", "run", "run.list", "-f", "csv", "--db", database)
    cut, whole = joulemap(*asked, "-p", "most=2"), joulemap(*asked, "-p", "most=0")
    assert (len(cut.stdout.splitlines()), cut.stderr) == (3, "2 rows at most: -p most=0 for all\n")
    assert cut.stdout.splitlines() == whole.stdout.splitlines()[:3]
    assert Workspace(database).query("run.list", {"most": 2}).notes == ("2 rows at most: -p most=0 for all",)
