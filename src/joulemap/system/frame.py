"""Convert rows with columns for other libraries, and draw them for interactive use.

Numbers keep their type. Integers of more than 64 bits become decimals without fractional digits, and nullable integers
stay integers. pandas and polars are imported on demand.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from joulemap.system.resource import need_package

Heads = Sequence[tuple[str, str]]
"""(name, DuckDB type) of each column."""

SHOWN: Final = 10
"""Maximum number of drawn rows."""

MOST_CELL: Final = 28
"""Maximum characters of a cell drawn as text."""

_PLAIN: Final = {
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date32",
    "TIMESTAMP": "timestamp[us]",
}
"""DuckDB type -> Arrow type, for columns whose values have a Python equivalent."""

_WIDE: Final = ("HUGEINT", "UHUGEINT")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")


def to_arrow(heads: Heads, rows: Sequence[Sequence[Any]]) -> Any:
    """Convert rows to a `pyarrow.Table`; values without an Arrow type become text.

    Raises MissingPackageError if pyarrow is not installed.
    """
    pa = _import("pyarrow", "arrow")

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(heads)
    arrays = [_to_array(kind, values) for (_, kind), values in zip(heads, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in heads])


def tabulate(columns: Mapping[str, Any]) -> Any:
    """Convert arrays of equal length to a `pyarrow.Table`; MissingPackageError if pyarrow is not installed."""
    return _import("pyarrow", "arrow").table(dict(columns))


def to_pandas(heads: Heads, rows: Sequence[Sequence[Any]]) -> Any:
    """Convert rows to a `pandas.DataFrame` with nullable integers and booleans.

    Raises MissingPackageError if pandas is not installed.
    """
    pandas = _import("pandas")
    import pyarrow as pa

    widths = (8, 16, 32, 64)
    known = {pa.bool_(): pandas.BooleanDtype()}
    known |= {getattr(pa, f"int{width}")(): getattr(pandas, f"Int{width}Dtype")() for width in widths}
    known |= {getattr(pa, f"uint{width}")(): getattr(pandas, f"UInt{width}Dtype")() for width in widths}
    return to_arrow(heads, rows).to_pandas(types_mapper=known.get)


def to_polars(heads: Heads, rows: Sequence[Sequence[Any]]) -> Any:
    """Convert rows to a `polars.DataFrame`; MissingPackageError if polars is not installed."""
    return _import("polars").from_arrow(to_arrow(heads, rows))


def draw_text(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], count: int) -> str:
    """Draw the first rows as lines that fit the terminal; `count` is the number of all rows."""
    width = shutil.get_terminal_size().columns
    cells = [[_shorten(value) for value in row] for row in rows[:SHOWN]]
    heads = [name if name.isprintable() else repr(name) for name in names]  # of SQL, whose names may steer a terminal
    columns = [list(column) for column in zip(heads, *cells, strict=True)]
    sizes = [max(map(len, column)) for column in columns]
    fitting = 0
    while fitting < len(sizes) and sum(sizes[: fitting + 1]) + 2 * fitting + len("  …") <= width:
        fitting += 1
    fitting = max(fitting, 1)
    mark = "  …" if fitting < len(sizes) else ""
    padded = [[text.ljust(size) for text in column] for column, size in zip(columns[:fitting], sizes, strict=False)]
    lines = [("  ".join(line) + mark).rstrip() for line in zip(*padded, strict=True)]
    return "\n".join([_count(title, count, len(names)), *lines, *(["…"] if count > SHOWN else [])])


def draw_html(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], count: int) -> str:
    """Draw the first rows as an HTML table; `count` is the number of all rows."""
    cells = [["" if value is None else str(value) for value in row] for row in rows[:SHOWN]]
    more = f"<p>{count - SHOWN:,} more</p>" if count > SHOWN else ""
    return f"<p>{escape(_count(title, count, len(names)))}</p>{make_table(names, cells)}{more}"


def make_table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: frozenset[int] = frozenset()) -> str:
    """Format cells under headings as an HTML table; columns in `numbers` are right-aligned."""
    body = "".join(f"\n<tr>{make_cells(row, numbers)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{make_cells(headings, numbers, 'th')}</tr></thead>\n<tbody>{body}\n</tbody></table>"


def make_cells(row: Iterable[str], numbers: frozenset[int], tag: str = "td") -> str:
    """Format the cells of an HTML row; leading spaces, which show nesting, are kept."""
    made = []
    for index, cell in enumerate(row):
        rest = cell.lstrip(" ")
        text = "&nbsp;" * (len(cell) - len(rest)) + escape(rest).replace("\n", "<br>")
        side = "right" if index in numbers else "left"
        made.append(f'<{tag} style="text-align: {side}">{text}</{tag}>')
    return "".join(made)


def escape(text: str) -> str:
    """Escape a text for HTML."""
    import html

    return html.escape(text)


def _to_array(kind: str, values: Sequence[Any]) -> Any:
    import pyarrow as pa

    wanted = _find_type(kind)
    if wanted is not None:
        try:
            return pa.array(values, wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # the engine writes values that Python lacks as text
            pass
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _find_type(kind: str) -> Any:
    """Return the Arrow type of a DuckDB column type; None to infer it from the values."""
    import pyarrow as pa

    if kind.endswith("[]"):
        inner = _find_type(kind[:-2])
        return None if inner is None else pa.list_(inner)
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if kind in _WIDE:
        return pa.decimal128(38, 0)
    return pa.type_for_alias(_PLAIN[kind]) if kind in _PLAIN else None


def _import(name: str, extra: str = "frames") -> Any:
    need_package(name, extra)
    return import_module(name)


def _count(title: str, rows: int, columns: int) -> str:
    return f"{title}: {rows:,} row{'' if rows == 1 else 's'} x {columns} column{'' if columns == 1 else 's'}"


def _shorten(value: Any) -> str:
    text = "" if value is None else " ".join(str(value).split())
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…"
