"""Measurement files of other tools, which are recognized by their content.

No content is executed: pickles are refused, no text is evaluated, and no file is read beyond a size limit.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import re
import reprlib
import tomllib
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any, Final

import attrs

from joulemap.system import CatalogueError, FileError, Reason, decode, define, frozen, read_bytes
from joulemap.system.file import read_input
from joulemap.wing.verify.show.word import make_reason

STDIN: Final = "-"
"""File name that means standard input."""

MOST_BYTES: Final = 200_000_000
"""Maximum bytes of an uncompressed file: a trace of about a hundred steps of a large model."""

MOST_JSON_BYTES: Final = 50_000_000
"""Maximum bytes of JSON or CSV other than a trace; parsed objects take about ten times as much memory."""

HEAD: Final = 200_000
"""Characters at the start of a file that are searched for a format's identifying pattern."""

UNSAFE: Final = {b"\x80": "a pickle, which runs code when it is read", b"PK": "an archive of torch.save or a zip"}
"""First bytes of a refused file -> description of its kind."""

UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16, in which some shells write redirected output."""

BEFORE: Final = 5_000
"""Characters before a run's results that are searched for its settings."""

JSON: Final = re.compile(r"\s*(?:\{|\[\s*[\[{])")
"""Pattern of the start of JSON with objects; a bracket alone may also begin a log."""

HEADER: Final = re.compile(r'\s*"?\w+"?([,;\t])"?\w+"?\1')
"""Pattern of the start of CSV; group 1 is the delimiter."""

COMMA: Final = re.compile(r"-?\d+,\d+(?:[eE]-?\d+)?")
"""Pattern of a number with a decimal comma, for CSV with another delimiter than the comma."""

LINE: Final = r"^[#> \t]*+([A-Za-z][^:\n]*+):(.*)"
"""Pattern of a line with a name and a value, such as `Mean TTFT (ms): 54.6`; its quantifiers never retry a run of
characters, so that reading takes time in proportion to the length of a file.
"""

THOUSANDS: Final = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
TIMED: Final = re.compile(r"([\d.]+) ?(s|ms|us|ns)")
SCANNED: Final = 100
"""Maximum objects of a file that are examined to recognize its format."""

SCALE: Final[Mapping[str, float]] = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Unit of time -> seconds."""

TEXTS: Final = (
    "hardware", "model", "engine", "date", "weight_precision", "cache_precision", "speculative", "request_rate",
    "scenario", "scope",
)  # fmt: skip
"""Text columns; all others are numbers."""

MOST_TEXT: Final = 4_096
"""Maximum characters of a text column, which may be the path of a file."""

MEASURED: Final = ("_s", "_j", "_w")
"""Suffixes of the columns with measured quantities, in seconds, joules and watts."""

NEVER_SCORED: Final = ("requests_per_s",)
"""Columns with a measured suffix that are not compared with predictions, because they only determine the requests in
flight.
"""

LEFT_OUT: Final = "left out"
"""Key of a merged run under which the number of its rows without usable numbers stands, with the reasons."""

Cells = dict[str, Any]
"""Measurement column -> value read from a file; columns without a value have no key."""


Stated = Mapping[str, Any]
"""Option -> value that the user states because the file does not; empty or None if not stated."""


@frozen(kw_only=True)
class Format:
    """Description of a known file format."""

    name: str
    url: str
    """Address of the documentation, or of the source code that writes the format."""
    kind: str
    """Kind of measurement: served, single, or window (one run of several passes)."""
    reader: str
    """Name of the reader that builds a row from the values."""
    content: str = ""
    """Description of a file's content for error messages; empty to list `needs`."""
    needs: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Paths that each object of a run must have, in JSON, CSV or a Markdown table."""
    mark: str = ""
    """Pattern that identifies the format in the text of a file."""
    each: str = ""
    """Key of an object's list of runs; empty if the object itself is a run."""
    group: str = ""
    """Key whose value the objects of one run share; empty if each object is a run."""
    last: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Keys whose values the objects of one run share, if these are cumulative: only the last object is read."""
    line: str = LINE
    """Pattern of a text line with a name and a value."""
    split: str = ""
    """Pattern at the start of each run in a text; empty if the text is one run."""
    end: str = ""
    """Pattern at the end of a run; text after it describes the next run. Empty if no such text exists."""
    patterns: Mapping[str, str] = {}
    """Key -> pattern of its value in a text, in addition to name-value lines."""
    fixed: Cells = attrs.field(factory=dict)
    """Column -> value that is the same in every run."""
    columns: Mapping[str, list[str]] = {}
    """Column -> paths that may contain its value, in order of preference."""

    @property
    def expected(self) -> str:
        """Description of a file's content for error messages."""
        return self.content or ", ".join(self.needs)


@define(slots=False, eq=False)
class Content:
    """Text of a file and the objects parsed from it."""

    path: Path
    text: str

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """Objects of JSON (also in lists or one per line), or rows of CSV or Markdown; empty for other text."""
        if '"traceEvents"' in self.text[:HEAD]:
            return []
        is_json, header = JSON.match(self.text), HEADER.match(self.text)
        if (is_json or header) and len(self.text) > MOST_JSON_BYTES:
            raise CatalogueError(f"{self.path}: too large: JSON or CSV longer than {MOST_JSON_BYTES:,} bytes")
        try:
            if not is_json:
                return list(_read_table(self.text, header[1]) if header else _read_markdown(self.text[:HEAD]))
            parts = [part for one in decode_each(self.text) for part in (one if isinstance(one, list) else [one])]
        except (ValueError, RecursionError, csv.Error) as error:
            what = "nested too deep" if isinstance(error, RecursionError) else str(error)
            raise CatalogueError(f"{self.path}: the file is damaged or incomplete: {what}; write it again") from None
        return [one for one in parts if isinstance(one, dict)]

    def select(self, needs: Iterable[str], most: int | None = None) -> list[dict[str, Any]]:
        """Return the objects among the first `most` in which all these paths exist; a value may be null."""
        return [one for one in self.objects[:most] if needs and all(_has(one, path) for path in needs)]

    def describe(self) -> str:
        """Return a short description of the file for error messages."""
        if not self.text.strip():
            return "an empty file"
        if self.objects and JSON.match(self.text):
            return f"JSON with {', '.join(list(self.objects[0])[:6]) or 'nothing in it'}"
        return f"text that begins with {self.text.lstrip().splitlines()[0][:60]!r}"


def _read_table(text: str, mark: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of CSV with the delimiter `mark`; decimal commas become points if the delimiter is another
    character.
    """
    for row in csv.DictReader(io.StringIO(text.lstrip(), newline=""), delimiter=mark):
        for name, cell in row.items() if mark != "," else ():
            if isinstance(cell, str) and COMMA.fullmatch(cell):
                row[name] = cell.replace(",", ".")
        yield row


def _read_markdown(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of Markdown tables as column name -> text."""
    rows = [[one.strip() for one in line.strip("| \t").split("|")] for line in text.splitlines() if line[:1] == "|"]
    rules = [index for index, row in enumerate(rows) if not set("".join(row)) - set("-: ")]
    for index, after in itertools.pairwise([*rules, len(rows) + 1]):
        yield from (dict(zip(rows[index - 1], row, strict=False)) for row in rows[index + 1 : after - 1])


@cache
def list_formats() -> tuple[Format, ...]:
    """Return the known formats, in the order in which they are tried."""
    text = Path(__file__).with_name("format.toml").read_text(encoding="utf-8")
    formats = {one["name"]: one for one in tomllib.loads(text)["formats"]}
    return tuple(Format(**{**formats.get(one.pop("like", ""), {}), **one}) for one in formats.values())


def open_content(path: Path) -> Content:
    """Return the content of a file, or of standard input for `-`. Raise CatalogueError if it cannot be read."""
    try:
        if str(path) == STDIN:
            return Content(Path("stdin"), read_input(MOST_BYTES))
        raw = read_bytes(path, MOST_BYTES)
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                raw = stream.read(MOST_BYTES + 1)
            if len(raw) > MOST_BYTES:
                raise FileError(f"too large: longer than {MOST_BYTES:,} bytes unpacked; record fewer steps")
        for start, what in UNSAFE.items():
            if raw.startswith(start):
                raise FileError(f"{what}: write the tool's text, CSV or JSON")
        return Content(path, decode(raw.decode("utf-16").encode() if raw[:2] in UTF_16 else raw))
    except (FileError, OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error


def recognize(content: Content) -> Format:
    """Return the format of a file. Raise CatalogueError, which lists the known formats, if it has none of them."""
    for one in list_formats():
        is_marked = one.mark and re.search(one.mark, content.text[:HEAD], re.MULTILINE)
        if is_marked or content.select(one.needs, SCANNED):
            return one
    known = ", ".join(dict.fromkeys(one.name for one in list_formats()))
    raise CatalogueError(
        f"{content.path}: {content.describe()}, of unknown format; known formats: {known}; "
        "`joulemap measurements import` reads your own table"
    )


def decode_each(text: str, at: int = 0, end: str = "") -> Iterator[Any]:
    """Yield consecutive JSON values from position `at` to the character `end`. Raise ValueError for an incomplete
    value.
    """
    decoder, gap = json.JSONDecoder(), re.compile(r"[\s,]*")
    while True:
        skipped = gap.match(text, at)
        at = skipped.end() if skipped else at
        if text[at : at + 1] == end:
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def read_lines(text: str, line: str = LINE) -> dict[str, str]:
    """Return name -> value of lines such as `Mean TTFT (ms): 54.6`.

    Names are written as in JSON (`mean_ttft_ms`); the first value of a name counts.
    """
    match = re.findall(line, text, re.MULTILINE)
    return {re.sub(r"\W+", "_", name).strip("_").lower(): value.strip() for name, value in reversed(match)}


def list_runs(content: Content, form: Format) -> Iterator[dict[str, Any]]:
    """Yield the values of each run in a file. A run is one object, several objects with one name, or part of a text."""
    if own := content.select(form.needs):
        if form.last:
            own = list({tuple(filter(None, map(row.get, form.last))) or at: row for at, row in enumerate(own)}.values())
        for whole in _merge(own, form.group) if form.group else own:
            yield from ({**whole, **one} for one in (whole[form.each] if form.each else [whole]))
        return
    parts = re.split(form.split, content.text, flags=re.MULTILINE) if form.split else [content.text]
    for before, part in itertools.pairwise(parts if len(parts) > 1 else ["", *parts]):
        if form.end:  # text between two runs describes the next one
            above, below = (re.split(form.end, one, flags=re.MULTILINE) for one in (before[-BEFORE:], part))
            part = f"{below[0]}\n{above[-1]}"
        patterns = ((key, re.search(pattern, part, re.MULTILINE)) for key, pattern in form.patterns.items())
        matched = {key: match[1].strip() for key, match in patterns if match}
        yield {**(read_lines(part, form.line) if form.line else {}), **matched}


def _merge(rows: Iterable[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    """Yield one row per value of `key`: the medians of its numbers and, under `#`, the number of rows used.

    A row with a missing or negative number is excluded from the medians, and LEFT_OUT describes it.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    for name, group in groups.items():
        columns = [column for column in group[0] if column != key]
        faults = [next(filter(None, (find_fault(row, one, least=0.0) for one in columns)), None) for row in group]
        usable = [row for row, fault in zip(group, faults, strict=True) if not fault]
        if not usable:
            yield {**group[0], "#": 0}
            continue
        medians = {column: median(number(row[column]) or 0.0 for row in usable) for column in columns}
        lost = {"count": len(group) - len(usable), "total": len(group), "unit": "row", "name": name}
        lost["reasons"] = count_reasons(one.text for one in faults if one is not None)
        yield {**medians, key: name, "#": len(usable), **({LEFT_OUT: lost} if lost["reasons"] else {})}


def find(data: Any, path: str) -> Any:
    """Return the value at a path of keys, or None.

    `engine.model` is a nested key, `items.*.name` reads the first item, `gpus.#` counts items, and `gpus.+.power` sums
    over items.
    """
    keys = path.split(".")
    for index, key in enumerate(keys):
        parts = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
        if key == "+":
            rest = ".".join(keys[index + 1 :])
            if any(find_fault(one, rest, least=0.0) for one in parts):
                return math.nan  # a sum without one of its parts would pass for the whole
            values = [value for one in parts if (value := number(find(one, rest))) is not None]
            return sum(values) if values else None
        if key == "*":
            data = next(iter(parts), None)
        elif key == "#":
            data = len(parts)
        elif isinstance(data, list):
            data = data[int(key)] if key.isdecimal() and int(key) < len(data) else None
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data


def number(value: Any) -> float | None:
    """Return a finite number, parsed if it is text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value.replace(",", "") if isinstance(value, str) and THOUSANDS.fullmatch(value) else value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def need(data: Any, path: str) -> float:
    """Return the number at a path. Raise KeyError with the path if there is none."""
    value = number(find(data, path))
    if value is None:
        raise KeyError(path)
    return value


def pick(data: Any, columns: Mapping[str, Iterable[str]]) -> Cells:
    """Return column -> value for the columns found in `data`: texts, and positive numbers.

    Times are converted to seconds if a key or value names a unit of time.
    """
    cells: Cells = {}
    for column, path in ((name, path) for name, paths in columns.items() for path in paths):
        value = find(data, path)
        if isinstance(value, str) and (timed := TIMED.fullmatch(value)):
            value = float(timed[1]) * SCALE[timed[2]]
        count = number(value)
        if column in cells or value in (None, ""):
            continue
        if column in TEXTS:
            if len(str(value)) > MOST_TEXT:
                raise ValueError(f"{path} has {len(str(value)):,} characters, expected at most {MOST_TEXT:,}")
            cells[column] = str(value)
        elif count is not None and count < 0.0 and not is_measured(column):
            raise ValueError(f"{path} is {count:g}, expected a number above 0")
        elif count is not None and count > 0.0:
            beside = find(data, path.removesuffix("avg") + "unit") if path.endswith(".avg") else ""
            ends = [key.rpartition("_")[2] for key in path.split(".")]
            unit = next((end for end in ends if end in ("ms", "ns")), str(beside))
            cells[column] = count * SCALE.get(unit, 1.0)
    return cells


def is_measured(column: str) -> bool:
    """Return whether a column is a measured quantity that predictions are compared with."""
    return column.endswith(MEASURED) and column not in NEVER_SCORED


def _has(data: Any, path: str) -> bool:
    """Return whether a path exists in data, even if its value is null."""
    parent, _, key = path.rpartition(".")
    above = find(data, parent) if parent else data
    return find(data, path) is not None or (isinstance(above, dict) and key in above)


def find_fault(data: Any, path: str, *, least: float = math.ulp(0.0)) -> Reason | None:
    """Return why the value at a path is not a number of at least `least`; None if it is one or the path is absent."""
    value = find(data, path)
    count = number(value)
    if (count is not None and count >= least) or (isinstance(value, str) and TIMED.fullmatch(value)):
        return None
    values = {"field": path, "value": "", "bound": "above" if least else "from"}
    if value is None or (isinstance(value, str) and not value.strip()):
        return make_reason("empty", values) if value is not None or _has(data, path) else None
    shown = f"{count:g}" if count is not None else reprlib.repr(value).strip("'")
    return make_reason("unusable", {**values, "value": shown})


def find_faults(data: Any, columns: Mapping[str, Iterable[str]], known: Collection[str]) -> dict[str, Reason]:
    """Return column -> reason for measured quantities that have no usable number; columns in `known` have one."""
    faults: dict[str, Reason] = {}
    for column, paths in columns.items():
        if column not in known and is_measured(column):
            reasons = [fault for path in paths if (fault := find_fault(data, path)) is not None]
            faults |= {column: reasons[0]} if reasons else {}
    return faults


def list_substitutes(
    data: Any, columns: Mapping[str, Iterable[str]], known: Collection[str]
) -> Iterator[tuple[Reason, str]]:
    """Yield the fault of each first path of a measured quantity in `known`, and the later path that was read."""
    for column, paths in columns.items():
        faults = {path: find_fault(data, path) for path in paths if find(data, path) is not None}
        first = faults.get(next(iter(faults), ""))
        if column in known and is_measured(column) and first is not None:
            yield first, next(path for path, fault in faults.items() if fault is None)


def count_reasons(reasons: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return the distinct reasons in their order, each with its number."""
    return tuple(Counter(reasons).items())


def count_devices(name: str) -> tuple[int, str]:
    """Return (device count, device name) from names such as `4xNVIDIA_L40S` and `1 x NVIDIA L4`."""
    match = re.fullmatch(r"\s*(\d{1,5})\s*[x*]\s*(\S.*)", name)
    return (int(match[1]), match[2].replace("_", " ").strip()) if match else (1, name.strip())
