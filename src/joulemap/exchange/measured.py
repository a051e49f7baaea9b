"""Measurement files of other tools: opened, and recognized by their content.

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

from joulemap.system.errors import CatalogueError
from joulemap.system.file import FileError, decode, read_bytes, read_input
from joulemap.system.record import define, frozen

STDIN: Final = "-"
"""Name of a file that represents stdin."""

MOST_BYTES: Final = 200_000_000
"""Maximum bytes of an unpacked file: a trace of a hundred steps of a large model. Longer traces need fewer steps."""

MOST_JSON_BYTES: Final = 50_000_000
"""Maximum bytes of JSON other than a trace; its objects take about ten times as much memory."""

HEAD: Final = 200_000
"""Characters at the start of a file that are searched for the mark of a format."""

UNSAFE: Final = {b"\x80": "a pickle, which runs code when it is read", b"PK": "an archive of torch.save or a zip"}
"""First bytes of a refused file -> description of its kind."""

UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16, as in text that another shell has redirected."""

BEFORE: Final = 5_000
"""Characters before a run that are searched for its settings."""

JSON: Final = re.compile(r"\s*(?:\{|\[\s*[\[{])")
"""Start of JSON with objects; a log may begin with a bracket too."""

HEADER: Final = re.compile(r'\s*"?\w+"?([,;\t])"?\w+"?\1')
"""Pattern of the start of CSV; group 1 is the delimiter."""

COMMA: Final = re.compile(r"-?\d+,\d+(?:[eE]-?\d+)?")
"""Number with a decimal comma, in CSV with another delimiter."""

LINE: Final = r"^[#>\s]*([A-Za-z][^:\n]*?)[ \t]*:[ \t]*(\S.*?|)[ \t\r]*$"
"""Line such as `Mean TTFT (ms): 54.6`."""

THOUSANDS: Final = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
TIMED: Final = re.compile(r"([\d.]+) ?(s|ms|us|ns)")
SCANNED: Final = 100
"""Maximum objects of a file that are searched for a format."""

SCALE: Final[Mapping[str, float]] = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Unit of time -> seconds."""

TEXTS: Final = (
    "hardware", "model", "engine", "date", "weight_precision", "cache_precision", "speculative", "request_rate",
    "scenario", "scope",
)  # fmt: skip
"""Text columns; all others are numbers."""

MEASURED: Final = ("_s", "_j", "_w")
"""Endings of the columns that hold measured quantities."""

NEVER_SCORED: Final = ("requests_per_s",)
"""Measured columns that only state the number of requests in flight."""

LEFT_OUT: Final = "left out"
"""Key of a merged run that lists the parts without a usable number."""

Cells = dict[str, Any]
"""Column of a measurement -> value in the file; unknown values have no key."""


Stated = Mapping[str, Any]
"""Option -> value that a user states about a file; empty or None if none is stated."""


@frozen(kw_only=True)
class Format:
    """Known file format."""

    name: str
    url: str
    """Documentation, or the source code that writes the format."""
    kind: str
    """Served, single, or window (a single run of several passes)."""
    reader: str
    """Name of the reader that builds a row from the values."""
    content: str = ""
    """Description of the content of a file; empty if `needs` describes it."""
    needs: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Paths that each object of a run has, in JSON, CSV or a Markdown table."""
    mark: str = ""
    """Pattern that identifies the text."""
    each: str = ""
    """Key of the list of runs in an object; empty if each object is a run."""
    group: str = ""
    """Key that names a run of several objects; empty if each object is a run."""
    last: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    """Keys that identify a run whose objects are cumulative: only its last object is read."""
    line: str = LINE
    """Pattern of a text line with a name and a value."""
    split: str = ""
    """Pattern in front of each run of a text; empty for one run."""
    end: str = ""
    """Pattern after a run; the text after it describes the next run. Empty if no text does."""
    patterns: Mapping[str, str] = attrs.field(factory=dict)
    """Key -> pattern of its value in a text, in addition to the lines."""
    fixed: Cells = attrs.field(factory=dict)
    """Column -> value that is the same in every run."""
    columns: Mapping[str, list[str]] = attrs.field(factory=dict)
    """Column -> paths at which its value may be found."""

    @property
    def expected(self) -> str:
        """Description of the content of a file."""
        return self.content or ", ".join(self.needs)


@define(slots=False, eq=False)
class Content:
    """Text of a file, and the objects in it."""

    path: Path
    text: str

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """Objects of JSON, also in lists and one per line, or rows of CSV or Markdown; empty for a trace or any other
        text.
        """
        if '"traceEvents"' in self.text[:HEAD]:
            return []
        is_json, header = JSON.match(self.text), HEADER.match(self.text)
        if (is_json or header) and len(self.text) > MOST_JSON_BYTES:
            raise CatalogueError(f"{self.path}: too large: JSON or CSV longer than {MOST_JSON_BYTES:,} bytes")
        try:
            if not is_json:
                return list(_read_table(self.text, header[1]) if header else _read_markdown(self.text[:HEAD]))
            found = [part for one in decode_each(self.text) for part in (one if isinstance(one, list) else [one])]
        except (ValueError, RecursionError, csv.Error) as error:
            what = "nested too deep" if isinstance(error, RecursionError) else str(error)
            raise CatalogueError(f"{self.path}: the file is damaged or incomplete: {what}; write it again") from None
        return [one for one in found if isinstance(one, dict)]

    def select(self, needs: Iterable[str], most: int | None = None) -> list[dict[str, Any]]:
        """Return the objects that have each of these paths, among the first `most`; a value may be null."""
        return [one for one in self.objects[:most] if needs and all(_has(one, path) for path in needs)]

    def describe(self) -> str:
        """Return a short description of the file."""
        if not self.text.strip():
            return "an empty file"
        if self.objects and JSON.match(self.text):
            return f"JSON with {', '.join(list(self.objects[0])[:6]) or 'nothing in it'}"
        return f"text that begins with {self.text.lstrip().splitlines()[0][:60]!r}"


def _read_table(text: str, mark: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of CSV; with a delimiter other than the comma, decimal commas become points."""
    for row in csv.DictReader(io.StringIO(text.lstrip(), newline=""), delimiter=mark):
        for name, cell in row.items() if mark != "," else ():
            if isinstance(cell, str) and COMMA.fullmatch(cell):
                row[name] = cell.replace(",", ".")
        yield row


def _read_markdown(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of Markdown tables, keyed by the names above the rule."""
    rows = [[one.strip() for one in line.strip("| \t").split("|")] for line in text.splitlines() if line[:1] == "|"]
    rules = [place for place, row in enumerate(rows) if not set("".join(row)) - set("-: ")]
    for place, after in itertools.pairwise([*rules, len(rows) + 1]):
        yield from (dict(zip(rows[place - 1], row, strict=False)) for row in rows[place + 1 : after - 1])


@cache
def list_formats() -> tuple[Format, ...]:
    """Return the known formats, in the order in which they are tried."""
    text = Path(__file__).with_name("format.toml").read_text(encoding="utf-8")
    formats = {one["name"]: one for one in tomllib.loads(text)["formats"]}
    return tuple(Format(**{**formats.get(one.pop("like", ""), {}), **one}) for one in formats.values())


def open_content(path: Path) -> Content:
    """Return the content of a file, or of stdin for `-`; CatalogueError, in one line, if it cannot be read."""
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
    """Return the format of a file; CatalogueError with a description of the file and the known formats."""
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
    """Yield consecutive JSON values from position `at` on, up to `end`; ValueError for an incomplete value."""
    decoder, gap = json.JSONDecoder(), re.compile(r"[\s,]*")
    while True:
        skipped = gap.match(text, at)
        at = skipped.end() if skipped else at
        if text[at : at + 1] == end:
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def read_lines(text: str, line: str = LINE) -> dict[str, str]:
    """Return the values of lines such as `Mean TTFT (ms): 54.6`.

    Names are spelled as in JSON, `mean_ttft_ms`; the first value of a name counts.
    """
    match = re.findall(line, text, re.MULTILINE)
    return {re.sub(r"\W+", "_", name).strip("_").lower(): value for name, value in reversed(match)}


def list_runs(content: Content, form: Format) -> Iterator[dict[str, Any]]:
    """Yield the values of each run: of an object, of several objects with one name, or of a part of a text."""
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
        found = {key: match[1].strip() for key, match in patterns if match}
        yield {**(read_lines(part, form.line) if form.line else {}), **found}


def _merge(rows: Iterable[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    """Yield one row per name: the medians of its numbers and, under `#`, the number of rows that have them.

    A row in which a number is missing or negative is omitted from the medians and is described under LEFT_OUT.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    for name, group in groups.items():
        columns = [column for column in group[0] if column != key]
        faults = [next(filter(None, (find_fault(row, one, least=0.0) for one in columns)), "") for row in group]
        usable = [row for row, fault in zip(group, faults, strict=True) if not fault]
        if not usable:
            yield {**group[0], "#": 0}
            continue
        medians = {column: median(number(row[column]) or 0.0 for row in usable) for column in columns}
        left = count_reasons(filter(None, faults))
        lost = len(group) - len(usable)
        match = [f"{lost} of {len(group)} rows of {name} left out: {left}"] if left else []
        yield {**medians, key: name, "#": len(usable), LEFT_OUT: match}


def find(data: Any, path: str) -> Any:
    """Return the value at a path of keys, or None.

    `engine.model` is nested, `items.*.name` is of the first item, `gpus.#` is a count, and `gpus.+.power` is a sum.
    """
    keys = path.split(".")
    for place, key in enumerate(keys):
        parts = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
        if key == "+":
            rest = ".".join(keys[place + 1 :])
            if any(find_fault(one, rest, least=0.0) for one in parts):
                return math.nan  # a sum without one of its parts would pass for the whole
            found = [value for one in parts if (value := number(find(one, rest))) is not None]
            return sum(found) if found else None
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
    """Return a finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value.replace(",", "") if isinstance(value, str) and THOUSANDS.fullmatch(value) else value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def need(data: Any, path: str) -> float:
    """Return the number at a path; KeyError with the path if there is none."""
    value = number(find(data, path))
    if value is None:
        raise KeyError(path)
    return value


def pick(data: Any, columns: Mapping[str, Iterable[str]]) -> Cells:
    """Return the columns found in data: texts, and positive numbers, in seconds where a key names a unit of time."""
    found: Cells = {}
    for column, path in ((name, path) for name, paths in columns.items() for path in paths):
        value = find(data, path)
        if isinstance(value, str) and (timed := TIMED.fullmatch(value)):
            value = float(timed[1]) * SCALE[timed[2]]
        count = number(value)
        if column in found or value in (None, ""):
            continue
        if column in TEXTS:
            found[column] = str(value)
        elif count is not None and count < 0.0 and not is_measured(column):
            raise ValueError(f"{path} is {count:g}, expected a number above 0")
        elif count is not None and count > 0.0:
            beside = find(data, path.removesuffix("avg") + "unit") if path.endswith(".avg") else ""
            ends = [key.rpartition("_")[2] for key in path.split(".")]
            unit = next((end for end in ends if end in ("ms", "ns")), str(beside))
            found[column] = count * SCALE.get(unit, 1.0)
    return found


def is_measured(column: str) -> bool:
    """Return whether a column holds a measured quantity that can be scored."""
    return column.endswith(MEASURED) and column not in NEVER_SCORED


def _has(data: Any, path: str) -> bool:
    """Return whether a path exists, even with a null value."""
    parent, _, key = path.rpartition(".")
    above = find(data, parent) if parent else data
    return find(data, path) is not None or (isinstance(above, dict) and key in above)


def find_fault(data: Any, path: str, *, least: float = math.ulp(0.0)) -> str:
    """Return why the value at a path is not a number of at least `least`; empty if it is, or if the path is
    absent.
    """
    value = find(data, path)
    if value is None:
        return f"{path} is empty" if _has(data, path) else ""
    if isinstance(value, str) and TIMED.fullmatch(value):
        return ""
    count = number(value)
    if count is not None and count >= least:
        return ""
    if isinstance(value, str) and not value.strip():
        return f"{path} is empty"
    shown = f"{count:g}" if count is not None else reprlib.repr(value).strip("'")
    return f"{path} is {shown}, expected a finite number {'from 0' if least == 0.0 else 'above 0'}"


def find_faults(data: Any, columns: Mapping[str, Iterable[str]], found: Collection[str]) -> dict[str, str]:
    """Return, by column, why a measured quantity in the data has no usable number; `found` columns have one."""
    faults: dict[str, str] = {}
    for column, paths in columns.items():
        if column not in found and is_measured(column):
            reasons = [fault for path in paths if (fault := find_fault(data, path))]
            faults |= {column: reasons[0]} if reasons else {}
    return faults


def list_substitutes(data: Any, columns: Mapping[str, Iterable[str]], found: Collection[str]) -> Iterator[str]:
    """Yield a note for each measured quantity in `found` that was read from another path because the first is
    unusable.
    """
    for column, paths in columns.items():
        faults = {path: find_fault(data, path) for path in paths if find(data, path) is not None}
        first = next(iter(faults), "")
        if column in found and is_measured(column) and faults.get(first):
            yield f"{faults[first]}: {next(path for path, fault in faults.items() if not fault)} is read instead"


def count_reasons(reasons: Iterable[str]) -> str:
    """Return the different reasons in one line, each with its count if there are several."""
    counts = Counter(reasons)
    return "; ".join(f"{count}: {one}" if len(counts) > 1 else one for one, count in counts.items())


def count_devices(name: str) -> tuple[int, str]:
    """Return (device count, device name) of names such as `4xNVIDIA_L40S` and `1 x NVIDIA L4`."""
    match = re.fullmatch(r"\s*(\d{1,5})\s*[x*]\s*(\S.*)", name)
    return (int(match[1]), match[2].replace("_", " ").strip()) if match else (1, name.strip())
