"""Parts of a query that numpy computes: standings, differences, probabilities.

The formulas of uncertainty are implemented once, in `joulemap.physics.interval`. A query calls them with a common table
expression as the argument. Its columns are those that the function requires:

    candidate AS (SELECT ...),
    standing AS (FROM numpy.standing_among(candidate))

Such a query runs in two steps. First, the expressions before the first call provide the arguments, and numpy computes
the results. Then the results replace the calls as lists of numbers, so that any client of the engine can run the second
statement. Expressions that both steps read are stored in temporary tables, because planning takes longer than reading.
A Python function called by the engine would import pandas and pyarrow where these are installed, which takes longer
than most queries.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.store import literal
from joulemap.system.cache import cache_folder, read_cached, write_cached
from joulemap.system.errors import SqlError
from joulemap.system.record import frozen
from joulemap.system.resource import digest_code

if TYPE_CHECKING:
    import duckdb

    from joulemap.physics.interval.covariance import ErrorColumns
    from joulemap.physics.interval.probability import Powers

Records = Sequence[Mapping[str, Any]]
"""Input rows of a function, as column -> value."""

Rows = Sequence[Sequence[Any]]

Compute = Callable[["duckdb.DuckDBPyConnection", Records], Rows]

REMEMBERED: Final = 32
"""Maximum cached results; the newest are kept."""

REMEMBERED_ROWS: Final = 200
"""Maximum input rows of a cached result. For more rows, computing takes longer than importing numpy, which the cache
avoids.
"""


@frozen
class Computed:
    """Function that queries can call, with its input and output columns."""

    takes: tuple[str, ...]
    """Required input columns. Optional half-width columns replace the half-widths of the runs."""
    returns: Mapping[str, str]
    """Output column -> SQL type."""
    compute: Compute


def compute(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return, for each call in a query, SQL that contains the computed rows.

    Raises SqlError for a call whose argument lacks a column, duckdb.Error for SQL that the engine refuses.
    """
    calls = list(_CALL.finditer(sql))
    taken = _fetch_taken(connection, sql, calls, parameters) if calls else []
    return [
        _write_rows(COMPUTED[call[1]], COMPUTED[call[1]].compute(connection, rows))
        for call, rows in zip(calls, taken, strict=True)
    ]


@contextlib.contextmanager
def keep(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[str]:
    """Store the expressions before the first call that both steps read, and yield the statement that reads these tables
    instead; drop them afterwards. The statement has no parameters.
    """
    calls = list(_CALL.finditer(sql))
    starts = [one for one in _EXPRESSION.finditer(sql) if one.start() <= calls[0].start()] if calls else []
    ends = [one.start() for one in starts[1:]]
    parts = {one[1]: sql[one.start(1) : end] for one, end in zip(starts, ends, strict=False)}
    rest = sql[ends[-1] :] if ends else sql
    taken = _find_read(parts, " ".join(call[2] for call in calls))
    tables: list[str] = []
    for name in [one for one in parts if one in taken and one in _READ.findall(rest)]:
        table = f"kept_{len(tables)}"
        before = _join({one: text for one, text in parts.items() if one in _find_read(parts, name)})
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {before}{table} AS (FROM {name})\nFROM {table}")
        parts[name] = f"{name} AS (FROM {table}),\n"
        tables.append(table)
    yield _join({one: text for one, text in parts.items() if one in _find_read(parts, rest)}) + rest if tables else sql
    for table in tables:
        connection.execute(f"DROP TABLE {table}")


def _find_read(parts: Mapping[str, str], text: str) -> set[str]:
    """Return the expressions that a text names, and those that these name."""
    names: set[str] = set()
    words = set(_WORD.findall(text))
    for name in reversed(tuple(parts)):
        if name in words:
            names.add(name)
            words.update(_WORD.findall(parts[name]))
    return names


def _join(parts: Mapping[str, str]) -> str:
    """Return the beginning of a statement with these expressions, each of which ends with a comma."""
    return f"WITH {''.join(parts.values())}"


def insert_rows(sql: str, computed: Sequence[str]) -> str:
    """Return a query's SQL with each call replaced by its computed rows."""
    texts = iter(computed)
    return _CALL.sub(lambda _: next(texts), sql)


def insert_no_rows(sql: str) -> str:
    """Return a query's SQL with each call replaced by an empty table, so that the query can be planned."""
    return _CALL.sub(lambda call: _write_rows(COMPUTED[call[1]], ()), sql)


def _fetch_taken(
    connection: duckdb.DuckDBPyConnection, sql: str, calls: Sequence[re.Match[str]], parameters: Mapping[str, Any]
) -> list[Records]:
    """Return the input rows of each call. Raise SqlError if a required column is missing."""
    start = max((one.start() for one in _EXPRESSION.finditer(sql, 0, calls[0].start())), default=0)
    before = sql[:start].rstrip().removesuffix(",")
    lists = ", ".join(f"(SELECT list(t ORDER BY t) FROM {call[2]} AS t)" for call in calls)
    statement = f"{before}\nSELECT {lists}"
    names = set(_PARAMETER.findall(statement))
    used = {name: value for name, value in parameters.items() if name in names}
    ((*columns,),) = literal.execute(connection, statement, used).fetchall()
    taken = [rows or [] for rows in columns]
    for call, rows in zip(calls, taken, strict=True):
        missing = [name for name in COMPUTED[call[1]].takes if rows and name not in rows[0]]
        if missing:
            raise SqlError(f"{call[2]} has no column {', '.join(missing)}, which {call[1]} takes")
    return taken


def _write_rows(function: Computed, rows: Rows) -> str:
    """Return SQL for rows, with one text per column, which the engine parses faster than a literal per value."""
    columns = list(zip(*rows, strict=True)) or [()] * len(function.returns)
    cells = ", ".join(
        f"unnest(CAST({literal.quote_text(_write_column(values))} AS {kind}[])) AS {name}"
        for (name, kind), values in zip(function.returns.items(), columns, strict=True)
    )
    return f"(SELECT {cells})"


def _write_column(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(_write_value, values))}]"


def _write_value(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "NULL"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@frozen
class Facts:
    """Stored values, besides the input rows, from which the uncertainty of rows is computed."""

    runs: Records
    """Rows of `run_errors`; half-widths in the input rows replace those of the runs."""
    shares: Rows
    metrics: Rows

    @property
    def errors(self) -> ErrorColumns:
        """Errors of the runs, split into factors."""
        from joulemap.physics.interval.covariance import split_errors

        return split_errors(self.runs, {(quantity, factor): share for quantity, factor, share in self.shares})

    def list_powers(self, *, as_costs: bool) -> dict[str, Powers]:
        """Return metric -> its exponents of latency and energy; with `as_costs`, lower is better for every metric."""
        from joulemap.physics.interval.probability import Powers

        return {
            name: Powers(latency, energy).as_cost(is_higher_better=is_higher_better and as_costs)
            for name, latency, energy, is_higher_better in self.metrics
        }


def load_facts(connection: duckdb.DuckDBPyConnection, rows: Records, names: Sequence[str]) -> Facts:
    """Return the stored values of the runs whose ids are in the columns `names`."""
    run_ids = sorted({row[name] for row in rows for name in names})
    cursor = literal.execute(
        connection, f"FROM run_errors WHERE run_id IN (SELECT unnest(CAST('{run_ids}' AS BIGINT[])))"
    )
    columns = [entry[0] for entry in cursor.description or ()]
    runs = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    for name in ("latency_half_width", "energy_half_width"):
        served = {row["run_id"]: row[name] for row in rows if row.get(name) is not None}
        for run in runs:
            run[name] = served.get(run["run_id"], run[name])
    return Facts(
        sorted(runs, key=lambda run: int(run["run_id"])),
        connection.execute("SELECT quantity, factor, share FROM internal.error_share ORDER BY ALL").fetchall(),
        connection.execute(
            "SELECT name, latency_power, energy_power, is_higher_better FROM internal.metric ORDER BY metric_index"
        ).fetchall(),
    )


def remembering(compute: Callable[[Records, Facts], Rows], *names: str) -> Compute:
    """Return a function that caches the results of `compute`, because importing numpy takes longer than reading a
    cache.

    `names` are the input columns with run ids. Inputs with many rows are not cached.
    """

    def find(connection: duckdb.DuckDBPyConnection, rows: Records) -> Rows:
        facts = load_facts(connection, rows, names)
        if len(rows) > REMEMBERED_ROWS:
            return compute(rows, facts)
        from joulemap.physics.interval.error_scale import list_error_groups

        code = digest_code("physics/interval", "store/computed.py")
        added = [(one.work, one.new_source) for one in list_error_groups()]
        text = json.dumps([code, added, compute.__name__, rows, facts.runs, facts.shares, facts.metrics], default=str)
        key = hashlib.sha256(text.encode()).hexdigest()
        kept = cache_folder() / "computed.json"
        known = read_cached(kept)
        match known.get(key):
            case [[*stored], seal] if seal == _seal(stored):
                return stored
        computed = compute(rows, facts)
        known = {**known, key: [computed, _seal(computed)]}
        write_cached(kept, dict(list(known.items())[-REMEMBERED:]))
        return computed

    return find


def _seal(rows: Rows) -> str:
    """Return a digest of cached rows, by which a damaged cache is detected."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _compute_standings(rows: Records, facts: Facts) -> Rows:
    from joulemap.physics.interval.standing import Candidate, rank_candidates

    powers = facts.list_powers(as_costs=True)
    questions: dict[str, list[Candidate]] = {}
    for row in rows:
        one = Candidate(
            place=row["row_id"],
            run_id=row["run_id"],
            powers=powers[row["metric"]],
            cost=math.nan if row["cost"] is None else row["cost"],
            price_half_width=row["price_half_width"] or 0.0,
            price_key=row["price_key"] or "",
            seller=row["seller"] or "",
        )
        questions.setdefault(row["question"], []).append(one)
    errors = facts.errors
    return [
        (question, standing.place, standing.probability_best, standing.probability_ahead, bool(standing.is_likely_best))
        for question, candidates in questions.items()
        for standing in rank_candidates(candidates, errors)
    ]


def _compute_differences(rows: Records, facts: Facts) -> Rows:
    import numpy as np

    from joulemap.physics.interval.covariance import compare_pairs
    from joulemap.physics.interval.probability import is_told_apart, probability_above

    errors = facts.errors
    known = [row for row in rows if row["run_id"] in errors.places and row["other_run_id"] in errors.places]
    first, second = (errors.find([row[name] for row in known]) for name in ("run_id", "other_run_id"))
    pairs = compare_pairs(errors, first, second, is_other=[row.get("is_other_design", False) for row in known])
    powers = facts.list_powers(as_costs=False)
    widths = pairs.half_width([powers[row["metric"]] for row in known])
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.log(np.array([row.get("better_ratio") for row in known], dtype=float))
    better = probability_above(ahead, widths, pairs.thin_width([powers[row["metric"]] for row in known]))
    columns = (
        pairs.latency_square, pairs.energy_square, widths, better, is_told_apart(better),
    )  # fmt: skip
    return [
        (row["run_id"], row["other_run_id"], row["metric"], *values)
        for row, values in zip(known, zip(*(column.tolist() for column in columns), strict=True), strict=True)
    ]


def _compute_probabilities(_: duckdb.DuckDBPyConnection, rows: Records) -> Rows:
    import numpy as np

    from joulemap.physics.interval.probability import is_told_apart, probability_above

    ahead, widths = (np.array([row[name] for row in rows], dtype=float) for name in ("ahead", "half_width"))
    probabilities = probability_above(ahead, widths)
    return [
        (row["row_id"], *two)
        for row, two in zip(
            rows, zip(probabilities.tolist(), is_told_apart(probabilities).tolist(), strict=True), strict=True
        )
    ]


def _compute_front(rows: Records, facts: Facts) -> Rows:
    import numpy as np

    from joulemap.physics.interval.standing import Axis, estimate_front

    errors = facts.errors
    known = [row for row in rows if row["run_id"] in errors.places]
    if not known:
        return []
    powers = facts.list_powers(as_costs=True)
    axes = [
        Axis(
            powers=powers[known[0][f"{axis}_metric"]],
            costs=np.array([row[f"{axis}_cost"] for row in known], dtype=float),
            has_price=known[0][f"{axis}_metric"] == "cost",
        )
        for axis in "xy"
    ]
    prices = (
        [row["price_key"] or "" for row in known],
        [row["seller"] or "" for row in known],
        np.array([row["price_half_width"] or 0.0 for row in known], dtype=float),
    )
    run_ids = [row["run_id"] for row in known]
    chances = estimate_front(run_ids, (axes[0], axes[1]), prices, errors)
    return [(run_id, None if one != one else one) for run_id, one in zip(run_ids, chances.tolist(), strict=True)]


def _compute_totals(connection: duckdb.DuckDBPyConnection, rows: Records) -> Rows:
    from joulemap.store.total import compute_totals

    columns = compute_totals(connection)
    asked = {row["run_id"] for row in rows}
    names = COMPUTED["totals_of"].returns
    totals = zip(*(columns[name] for name in names), strict=True) if columns else ()
    return [row for row in totals if row[0] in asked]


def _compute_scales(connection: duckdb.DuckDBPyConnection, rows: Records) -> Rows:
    from joulemap.physics.interval.error_scale import DOUBTED
    from joulemap.physics.interval.scale import Subject, find_scale
    from joulemap.store.interval import load_record

    record = load_record(connection)
    scales = []
    for row in rows:
        subject = Subject(**{name: row[name] for name in SUBJECT})
        held_out = record.find_held_out(row["calibration_digest"], subject)
        for quantity, width in zip(DOUBTED, held_out, strict=True):
            scale = find_scale(record.scales, quantity, subject, record.floors)
            known = (scale.level, scale.half_width, scale.group_count, scale.row_count) if scale else (None,) * 4
            scales.append((row["row_id"], quantity, *known, width))
    return scales


SUBJECT: Final = ("work", "architecture", "runtime", "precision", "hardware", "ops_per_s")
"""Columns that describe a configuration whose errors are estimated."""

COMPUTED: Final[Mapping[str, Computed]] = {
    "totals_of": Computed(
        ("run_id",),
        {
            "run_id": "INTEGER",
            **dict.fromkeys(("latency_fs", "interval_fs", "energy_fj"), "HUGEINT"),
            "mac_count": "BIGINT",
            **dict.fromkeys(("computed_mac_count", "unit_fs"), "HUGEINT"),
            **dict.fromkeys(
                (
                    "dram_bytes",
                    "moved_bytes",
                    "latency_half_width",
                    "energy_half_width",
                    "edp_half_width",
                    "power_half_width",
                    "price_half_width",
                    "latency_own_half_width",
                    "energy_own_half_width",
                    "thin_half_width",
                ),
                "DOUBLE",
            ),
            **dict.fromkeys(("latency_basis", "energy_basis"), "VARCHAR"),
            **dict.fromkeys(("latency_group_count", "energy_group_count"), "INTEGER"),
        },
        _compute_totals,
    ),
    "scales_of": Computed(
        ("row_id", *SUBJECT, "calibration_digest"),
        {
            "row_id": "BIGINT",
            "quantity": "VARCHAR",
            "level": "INTEGER",
            "half_width": "DOUBLE",
            "group_count": "INTEGER",
            "row_count": "INTEGER",
            "held_out_half_width": "DOUBLE",
        },
        _compute_scales,
    ),
    "standing_among": Computed(
        ("question", "metric", "row_id", "run_id", "cost", "price_half_width", "price_key", "seller"),
        {
            "question": "VARCHAR",
            "row_id": "BIGINT",
            "probability_best": "DOUBLE",
            "probability_ahead": "DOUBLE",
            "is_likely_best": "BOOLEAN",
        },
        remembering(_compute_standings, "run_id"),
    ),
    "differences_of": Computed(
        ("run_id", "other_run_id", "metric"),
        {
            "run_id": "BIGINT",
            "other_run_id": "BIGINT",
            "metric": "VARCHAR",
            "latency_square": "DOUBLE",
            "energy_square": "DOUBLE",
            "half_width": "DOUBLE",
            "probability_better": "DOUBLE",
            "is_told_apart": "BOOLEAN",
        },
        remembering(_compute_differences, "run_id", "other_run_id"),
    ),
    "probabilities_of": Computed(
        ("row_id", "ahead", "half_width"),
        {"row_id": "BIGINT", "probability": "DOUBLE", "is_told_apart": "BOOLEAN"},
        _compute_probabilities,
    ),
    "front_among": Computed(
        ("run_id", "x_metric", "x_cost", "y_metric", "y_cost", "price_half_width", "price_key", "seller"),
        {"run_id": "BIGINT", "probability_front": "DOUBLE"},
        remembering(_compute_front, "run_id"),
    ),
}
"""Name in SQL -> function."""

_PARAMETER: Final = re.compile(r"\$(\w+)")
_CALL: Final = re.compile(rf"\bnumpy\.({'|'.join(COMPUTED)})\((\w+)\)")
_WORD: Final = re.compile(r"\w+")
_READ: Final = re.compile(r"\b(?:FROM|JOIN) (\w+)")
_EXPRESSION: Final = re.compile(r"^(?:WITH )?(\w+) AS (?:MATERIALIZED )?\(", re.MULTILINE)
"""Pattern of the start of a common table expression, with its name."""
