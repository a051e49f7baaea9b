"""Random invalid inputs: options of every command, files of every format, and statements.

Each `bad_…` function returns the arguments of a command and the files of its folder, as name -> content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs
import typer

from joulemap.catalog.digest import DATA
from joulemap.cli.app import build
from joulemap.cli.overview import list_commands
from joulemap.system.resource import folder


@attrs.frozen
class Input:
    """Arguments of a command, and the files of its folder."""

    arguments: Sequence[str]
    files: Mapping[str, bytes] = attrs.field(factory=dict)
    then: Sequence[str] = ()
    """Arguments of a second command, which runs if the first succeeds."""


RAN: Final = "ran"
"""File that code of an input creates, which must not run."""

EVIL: Final = f"open({RAN!r}, 'w')\nimport torch\ndef net(): return torch.nn.Linear(4, 4), torch.zeros(1, 4)\n".encode()


WORDS: Final = (
    "", " ", "\t", "\n", "é", "日本語", "🜁", "\u202e", "\x1b[31m", "\x9b", "x\udcff", "\ud800", "'", '"', "`", "\\",
    "/", "//", "..", ".", "~", "*", "%s", "{}", "{0}", "$HOME", "-", "--", "=", "=1+1", "None", "true", "[]", "[[", "{",
    "a" * 300, "x" * 131_073, "[" * 2_000, "(" * 1_000, "a.b" * 100, "md:x", ":memory:", "a/b", ",", ",,", ";", ":",
    "@", "l4", "l4@15W", "l4@", "@x", "cpu", "gpu,cpu", "edge", "resnet18", "alexnet", "linear", "fp32", "fp16,int8",
    "fp17", "fused", "eager", "auto", "none", "json", "csv", "markdown", "table", "parquet", "energy", "latency",
    "edp", "memory", "subgraph", "operator", "hardware", "own.toml", "./own.toml", "own.py:f", "no.pt2", "timm:x",
    "hf:", "1,2,4,...,16", "4,...,1", "...,1", "1,...", "10ms", "1J", "512MB", "15W", "2USD/h", "500USD",
    "10 parsecs", "$5", "/s", "1,3,224,224", "ids=1,128:int64", "1,3,0,0", "=1,2", "1,2:float7", "tokens=4",
    "width=[[[[", "a=b=c", "us", "Norway", "run.list", "run.list@1", "run.list@0", "run.list@x", "@", "1:2",
)  # fmt: skip

NUMBERS: Final = (
    "0", "-0", "1", "2", "7", "-1", "0.5", "1.5", "1e3", "1e308", "1e309", "-1e309", "5e-324", "nan", "inf", "-inf",
    "1_000", "0x10", "1,5", "\u0663", "1" * 19, "9" * 400, "9" * 5_000, str(2**31), str(2**63), str(2**64), "",
)  # fmt: skip

LITERALS: Final = (
    "true", '""', '"x"', "[]", "{}", "[[]]", "[1, 'a']", "1979-05-27T07:32:00Z", "nan", "-inf", "1e400", "0x1F", "-1",
    "0", "1e-300", "9" * 25, "9" * 5_000, "[" * 2_000, '"\\u001b[31m"', '"' + "a" * 5_000 + '"', "{ value = 1 }", "",
    '"none"', '"W"', '"nm"', '"unit"',
)  # fmt: skip
"""Unexpected values after `name =` in TOML."""


def draw_word(random: Random) -> str:
    """Return an unexpected word or number."""
    return random.choice(NUMBERS if random.random() < 0.4 else WORDS).replace("\0", "")


@cache
def find_commands() -> tuple[tuple[tuple[str, ...], Any], ...]:
    """Return (words, command) of every command."""
    commands: list[tuple[tuple[str, ...], Any]] = []
    for name in list_commands():
        command: Any = typer.main.get_command(build([name]))
        outer = command.commands[name] if hasattr(command, "commands") and name in command.commands else command
        inner = getattr(outer, "commands", None)
        commands += [((name, word), one) for word, one in inner.items()] if inner else [((name,), outer)]
    return tuple(commands)


SLOW: Final = frozenset({("measure",), ("calibrate",), ("sweep",), ("hardware", "sanity"), ("validate",)})
"""Commands that take seconds if no argument is refused."""


def bad_options(random: Random) -> Input:
    """Return any command with random options and arguments."""
    words, command = random.choice([one for one in find_commands() if one[0] not in SLOW or random.random() < 0.05])
    typed = list(words)
    for parameter in command.params:
        is_option = any(name.startswith("-") for name in parameter.opts)
        if not is_option:
            if random.random() < 0.9:
                typed.append(draw_word(random))
        elif random.random() < 0.25 and parameter.expose_value:
            typed.append(random.choice(parameter.opts))
            if not parameter.is_flag:
                typed.append(draw_word(random))
    if random.random() < 0.1:
        random.shuffle(typed)
    return Input(typed)


def bad_hardware(random: Random) -> Input:
    """Return a changed hardware file, which may break a rule, and a command that reads it."""
    text = _example(random, DATA / "hardware", "*.toml")
    text = re.sub(r"^id = .*$", 'id = "own"', text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^aliases = (\[[^\]]*\])", "aliases = []", text, count=1, flags=re.MULTILINE)
    command = random.choice(
        (
            ("hardware", "check", "own.toml"),
            ("hardware", "show", "./own.toml"),
            ("compare", "alexnet", "--hardware", "./own.toml"),
            ("analyze", "transformer_encoder_layer", "./own.toml", "--precision", random.choice(("fp16", "int8"))),
        )
    )
    return Input(command, {"own.toml": change_toml(random, text)})


def bad_calibration(random: Random) -> Input:
    """Return a changed calibration file, and a command that reads it."""
    command = random.choice((("hardware", "show", "h200_sxm"), ("compare", "alexnet", "--hardware", "h200_sxm")))
    content = change_toml(random, _example(random, DATA / "calibration", "*.toml"))
    return Input((*command, "--calibration", "./own.toml"), {"own.toml": content})


def bad_measurements(random: Random) -> Input:
    """Return a file of measurements with random rows, as CSV or JSON, to import."""
    names = ["hardware", "model", "precision", "batch", "runtime", "source", "latency_s", "energy_j", "conditions"]
    right = ["tpu_v4", "resnet18", "fp32", "1", "fused", "mine", "0.1", "0.2", ""]
    right[1] = random.choice(("resnet18", "resnet18", "./own.py:net", "own.py:net"))
    rows = [
        [draw_word(random) if random.random() < 0.1 else cell for cell in right] for _ in range(random.randint(0, 4))
    ]
    if random.random() < 0.5:
        name, text = "own.json", json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    else:
        heads = [random.choice(names) if random.random() < 0.05 else name for name in names]
        name = "own.csv"
        text = "\n".join(",".join(cell.replace(",", "") for cell in row) for row in [heads, *rows])
    content = _damage(random, text) if random.random() < 0.7 else text.encode(errors="replace")
    return Input(
        ("measurements", "import", name),
        {name: content, "own.py": EVIL},
        then=("validate", "--hardware", "tpu_v4", "--source", "mine"),
    )


def bad_query(random: Random) -> Input:
    """Return a changed query file, and a command that lists or runs it."""
    path = random.choice(sorted(folder("queries").glob("*/*.sql")))
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'^name = ".*"$', 'name = "own.ask"', text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^version = .*$", "version = 1", text, count=1, flags=re.MULTILINE)
    content = change_toml(random, text) if random.random() < 0.7 else _damage(random, text)
    command = random.choice((("query", "list"), ("query", "show", "own.ask"), ("query", "run", "own.ask")))
    return Input((*command, "--queries", "qs"), {"qs/own/ask.v1.sql": content})


def change_toml(random: Random, text: str) -> bytes:
    """Return TOML with lines dropped, doubled or moved, values of another type, and sometimes changed bytes."""
    lines = text.split("\n")
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines))
        way = random.randrange(7)
        if way == 0:
            del lines[at : at + random.randint(1, 5)]
        elif way == 1:
            lines.insert(random.randrange(len(lines)), lines[at])
        elif way == 2:
            lines[at] = re.sub(r'"[^"]*"', lambda _: json.dumps(_scalar(draw_word(random))), lines[at], count=1)
        elif way == 3:
            lines[at] = re.sub(r"-?\d[\d.e+-]*", lambda _: random.choice(NUMBERS) or "0", lines[at], count=1)
        elif way == 4:
            lines[at] = re.sub(r"^(\w+) = .*", lambda match: f"{match[1]} = {random.choice(LITERALS)}", lines[at])
        elif way == 5:
            lines[at] = re.sub(r"^(\W*)(\w+)", lambda match: match[1] + (draw_word(random) or "x")[:80], lines[at])
        else:
            lines[at] = re.sub(r'(unit|basis|per|kind) = "[^"]*"', r'\1 = "x"', lines[at])
        lines = lines or [""]
    changed = "\n".join(lines)
    return _damage(random, changed) if random.random() < 0.15 else changed.encode("utf-8", errors="surrogatepass")


def _scalar(text: str) -> str:
    """Return a text without surrogates, each replaced by a question mark."""
    return text.encode("utf-8", errors="replace").decode()


BYTES: Final = (b"\xff", b"\0", b"\xed\xa0\x80", b'"', b"[" * 3_000, b"\x1b[2J", b"\xfe\xff")


def _damage(random: Random, text: str) -> bytes:
    """Return the bytes of a text, some of them changed."""
    content = bytearray(text.encode("utf-8", errors="replace"))
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        at = random.randrange(len(content) + 1)
        way = random.randrange(4)
        if way == 0 and at < len(content):
            content[at] ^= 1 << random.randrange(8)
        elif way == 1:
            content[at:at] = random.choice(
                (b"\xff", b"\0", b"\xed\xa0\x80", b'"', b"[" * 3_000, b"\x1b[2J", b"\xfe\xff")
            )
        elif way == 2:
            del content[at:]
        else:
            del content[at : at + random.randint(1, 40)]
    return bytes(content)


def _example(random: Random, place: Path, pattern: str) -> str:
    return random.choice(sorted(place.glob(pattern))).read_text(encoding="utf-8")


NASTY: Final = (
    "UPDATE EXTENSIONS", "SELECT now()", "SELECT current_timestamp, current_date, current_time", "SELECT ''",
    "SELECT", "", ";", ";;", "--", "/*", "/* */", "SELECT 1;", "SELECT 1; SELECT 2", "SELECT 1 AS a, 1 AS a",
    "VALUES (1), (NULL)", "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "DESCRIBE runs", "SUMMARIZE runs",
    "SHOW TABLES", "SHOW ALL TABLES", "FROM runs LIMIT 1", "TABLE runs",
    "PIVOT runs ON hardware USING sum(energy_j) GROUP BY model", "SELECT * FROM runs",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b INTO NAME n VALUE v", "CALL pragma_version()", "PRAGMA database_size",
    "SET threads = 1", "RESET threads", "SET VARIABLE a = 1", "PREPARE a AS SELECT 1", "EXECUTE a", "DEALLOCATE a",
    "BEGIN", "COMMIT", "ROLLBACK", "CHECKPOINT", "VACUUM", "ANALYZE", "LOAD json", "INSTALL json", "USE memory",
    "ATTACH ':memory:' AS x", "DETACH results", "COPY runs TO 'x.csv'", "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE 'x'", "IMPORT DATABASE 'x'", "CREATE TABLE x (a INTEGER)", "CREATE MACRO f() AS 1",
    "DROP VIEW runs", "CREATE TEMP VIEW v AS SELECT 1", "CREATE SECRET (TYPE s3)",
    "INSERT INTO internal.run FROM internal.run", "DELETE FROM internal.run", "UPDATE internal.run SET batch = 1",
    "MERGE INTO internal.run USING internal.run AS r ON true WHEN MATCHED THEN DELETE", "TRUNCATE internal.run",
    "SELECT * FROM 'x.csv'",
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('own.toml')", "SELECT * FROM glob('/*')",
    "SELECT getenv('HOME')", "SELECT * FROM duckdb_secrets()", "SELECT * FROM pragma_user_agent()",
    "SELECT * FROM query('SELECT 1')", "SELECT * FROM query_table('run')", "SELECT getvariable('x')", "SELECT $1",
    "SELECT ?", "SELECT $a", "SELECT $model, $batch", "SELECT 1 / 0, 1.0 / 0, 0.0 / 0, 1 % 0", "SELECT 'x'::INTEGER",
    "SELECT 1e400", "SELECT 9223372036854775807 + 1", "SELECT 170141183460469231731687303715884105727 * 2",
    "SELECT sqrt(-1)", "SELECT ln(0)", "SELECT factorial(1000)", "SELECT chr(0)", "SELECT chr(27) || '[31m'",
    "SELECT repeat('x', -1)", "SELECT repeat('x', 1000000)", "SELECT length(repeat('x', 2000000000))",
    "SELECT len(range(300000000))", "SELECT unnest([1, 2]), unnest([3])", "SELECT [1, 'a']",
    "SELECT {'a': 1}.b", "SELECT map([1, 1], [2, 3])", "SELECT [][1]", "SELECT DATE '0000-00-00'",
    "SELECT DATE 'infinity', TIMESTAMP '-infinity', '290000-01-01'::DATE", "SELECT TIME '24:00:00'",
    "SELECT INTERVAL '1' YEAR * 1000000", "SELECT TIMESTAMPTZ 'infinity'",
    "SELECT TIMESTAMP_NS '2262-04-11 23:47:16'", "SELECT uuid(), random(), txid_current()", "SELECT 'a'::BIT",
    "SELECT ''::BIT", "SELECT '\\xFF'::BLOB", "SELECT NULL::INTEGER[]", "SELECT union_value(k := NULL)",
    "SELECT ROW()", "SELECT ROW(1, NULL)", "SELECT 'x'::ENUM('x')", "SELECT 1::BIGNUM", "SELECT list_value()",
    "SELECT array_value(1, 2)", "SELECT '{\"a\": [1]}'::JSON", "SELECT json('[')", "SELECT 'x'::VARIANT",
    "SELECT COLUMNS(*) FROM runs", "SELECT COLUMNS('nothing') FROM runs",
    "SELECT * EXCLUDE (run_id) FROM runs LIMIT 1", "SELECT * FROM runs, LATERAL (SELECT 1) LIMIT 3",
    "SELECT count(*) FROM runs a, runs b, runs c", "SELECT max(max(1))",
    "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a", "SELECT (SELECT 1 UNION ALL SELECT 2)",
    "SELECT (SELECT 1, 2)", "SELECT * FROM runs ORDER BY 99", "SELECT 1 LIMIT -1", "SELECT 1 LIMIT 'x'",
    "SELECT row_number() OVER ()", "SELECT lag(1) OVER (ORDER BY)", "SELECT \"\"", "SELECT 1 AS \"\"",
    "SELECT 1 AS \"a\nb\", 2 AS \"\u202e\"", "SELECT 'unclosed", "SELECT \"unclosed", "SELECT $$x$$",
    "SELECT E'\\x1b'", "SELECT 1 -- x", "SELECT 1 /* x", "SELECT 1; -- x", "SELECT regexp_matches('a', '(')",
    "SELECT regexp_replace('a', 'a', '\\9')", "SELECT strftime(DATE '2024-01-01', '%')", "SELECT strptime('x', '%Y')",
    "SELECT format('{}', 1, 2)", "SELECT format('{')", "SELECT printf('%s')", "SELECT error('boom')",
    "SELECT list_transform([1], lambda x: x / 0)", "SELECT decode('\\xFF'::BLOB)", "SELECT bar(1, 0, 0)",
    "SELECT range(10)", "SELECT * FROM range(3, 1)", "SELECT * FROM range(1, 3, 0)", "SELECT nextval('x')",
    "SELECT currval('x')", "SELECT current_setting('x')", "SELECT * FROM duckdb_settings()",
    "SELECT is_histogram_other_bin(1)", "SELECT version(), current_schema(), current_database(), current_user",
    "SELECT * FROM information_schema.tables", "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM runs TABLESAMPLE 200%", "SELECT * FROM runs USING SAMPLE -1",
    "SELECT * FROM runs AT (VERSION => 1)", "SELECT * FROM runs POSITIONAL JOIN hardware LIMIT 1",
    "SELECT * FROM nothing", "SELECT nothing FROM runs", "SELECT runs FROM runs LIMIT 1",
    "SELECT {'a': runs} FROM runs LIMIT 1", "SELECT joules(1)", "SELECT joules('x')",
    "SELECT operator_kind(NULL)",
    "SELECT run_id::ENUM('x') FROM runs", "SELECT list(runs) FROM runs", "SELECT 0::DECIMAL(38, 38)",
    "SELECT 1::DECIMAL(39, 0)", "SELECT 1::DECIMAL(0, 0)", "SELECT '\u0661'::INTEGER", "SELECT 1::nothing",
    "SELECT " + "(" * 2_000 + "1", "SELECT " + "-" * 3_000 + "1", "SELECT " + "NOT " * 5_000 + "true",
    "SELECT " + "1+" * 20_000 + "1", "SELECT " + "[" * 60 + "]" * 60, "SELECT " + ", ".join(["1"] * 5_000),
    "SELECT '" + "x" * 1_000_000 + "'", "SELECT " + "CASE WHEN 1 THEN " * 900 + "1" + " END" * 900,
    "SELECT 1" + " UNION ALL SELECT 1" * 1_500, "SELECT * FROM " + "(SELECT * FROM " * 300 + "runs" + ")" * 300,
    "SELECT '\x1b[31m\x07'", "SELECT '\u202e'", "SELECT '\u2028'", "SELECT '\x85'", "SELECT 'x\udcff'",
    "\ufeffSELECT 1",
)  # fmt: skip

TABLES: Final = (
    "runs", "hardware", "energy_ledger", "operators", "subgraph_results", "measurements", "range(9)", "metrics",
)  # fmt: skip
COLUMNS: Final = (
    "run_id", "hardware", "energy_j", "latency_s", "batch", "model", "is_newest", "created_at", "range", "name",
)  # fmt: skip
FUNCTIONS: Final = (
    "sum", "avg", "min", "max", "count", "list", "abs", "length", "lower", "hash", "typeof", "first", "any_value",
    "mode", "median", "round", "sqrt", "to_json", "stddev", "string_agg", "unnest", "array_agg", "epoch", "year",
    "md5", "len", "reverse", "histogram", "approx_quantile", "arg_max", "coalesce", "isnan", "bit_count", "to_days",
    "hex", "ascii",
)  # fmt: skip
TYPES: Final = (
    "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "VARCHAR", "BLOB", "BIT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ",
    "UUID", "INTERVAL", "BOOLEAN", "DECIMAL(9, 3)", "INTEGER[]", "VARCHAR[2]", "STRUCT(a INTEGER)",
    "MAP(VARCHAR, INTEGER)", "JSON", "TIMESTAMP_NS", "TIMETZ", "UTINYINT", "FLOAT",
)  # fmt: skip
CONSTANTS: Final = (
    "1", "-1", "0", "NULL", "'x'", "''", "1.5", "1e308", "'nan'::DOUBLE", "true", "[1, 2]", "{'a': 1}",
    "MAP {'k': 1}", "DATE '2024-02-29'", "INTERVAL 1 MONTH", "now()", "'\\xFF'::BLOB", "'101'::BIT", "*", "$a",
    "'infinity'::DATE",
)  # fmt: skip
OPERATORS: Final = (
    "+", "-", "*", "/", "//", "%", "**", "||", "=", "<", "<>", "AND", "OR", "IN", "LIKE", "IS", "->>", "~", "<<",
)  # fmt: skip


def bad_sql(random: Random) -> Input:
    """Return a command that runs a statement of a random grammar, one of `NASTY`, or a changed one."""
    way = random.random()
    text = random.choice(NASTY) if way < 0.4 else _select(random, 0)
    if way > 0.85:
        text = _damage(random, text).decode("utf-8", errors="replace").replace("\0", "")
    words = ["sql", text, "--timeout", "3", "--max-memory", "300MB", "--max-rows", "2000"]
    while random.random() < 0.25:
        words += ["-p", f"{random.choice(('a', 'model', 'batch', draw_word(random)))}={draw_word(random)}"]
    return Input([*words, "--format", random.choice(("table", "json", "csv", "markdown"))])


def _select(random: Random, depth: int) -> str:
    many = random.randint(1, 4)
    text = f"SELECT {', '.join(_expression(random, depth + 1) for _ in range(many))}"
    if random.random() < 0.8:
        text += f" FROM {_source(random, depth + 1)}"
    if random.random() < 0.3:
        text += f" WHERE {_expression(random, depth + 1)}"
    if random.random() < 0.2:
        text += f" GROUP BY {random.choice(('ALL', '1', _expression(random, depth + 1)))}"
    if random.random() < 0.3:
        text += f" ORDER BY {random.choice(('ALL', '1', '1 DESC NULLS LAST', _expression(random, depth + 1)))}"
    if random.random() < 0.3:
        text += f" LIMIT {random.choice(('0', '3', '10%', 'NULL'))}"
    return f"{text} UNION ALL {_select(random, depth + 1)}" if depth < 2 and random.random() < 0.1 else text


def _source(random: Random, depth: int) -> str:
    if depth < 3 and random.random() < 0.2:
        return f"({_select(random, depth)}) AS t{depth}"
    if random.random() < 0.2:
        join = random.choice((", ", " JOIN ", " LEFT JOIN ", " CROSS JOIN ", " NATURAL JOIN ", " ASOF JOIN "))
        return f"{random.choice(TABLES)} AS a{join}{random.choice(TABLES)} AS b"
    return random.choice(TABLES)


def _expression(random: Random, depth: int) -> str:
    way = random.random()
    if depth > 4 or way < 0.4:
        return random.choice(COLUMNS if random.random() < 0.6 else CONSTANTS)
    inner = _expression(random, depth + 1)
    if way < 0.55:
        return f"{random.choice(FUNCTIONS)}({inner})"
    if way < 0.7:
        return f"({inner} {random.choice(OPERATORS)} {_expression(random, depth + 1)})"
    if way < 0.85:
        return f"CAST({inner} AS {random.choice(TYPES)})"
    if way < 0.9:
        return f"CASE WHEN {inner} THEN {_expression(random, depth + 1)} END"
    if way < 0.95:
        return f"({_select(random, depth + 2)})" if depth < 3 else inner
    return f"sum({inner}) OVER (ORDER BY {random.choice(COLUMNS)})"


FAMILIES: Final[Mapping[str, Callable[[Random], Input]]] = {
    "options": bad_options,
    "hardware": bad_hardware,
    "calibration": bad_calibration,
    "measurements": bad_measurements,
    "query files": bad_query,
    "SQL": bad_sql,
}
"""Kind of input -> function that returns one."""
