"""Read measurements: built-in ones and the user's files.

A file holds rows with the fields of `Measurement`, or of a kind that a wing registers, as CSV or as a JSON list. Files
of one benchmark keep their own columns; a TOML file next to them gives the meanings. Profiles list device time by ATen
operator as recorded; a TOML file next to them gives the conditions. `make profile` reduces each profile to times of
traced operators, in a Parquet file next to it. Databases hold the reduced profiles.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import reprlib
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import attrs

from joulemap.catalog.digest import DATA, PROFILES
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, ModelEntry, find_entry, find_model_name
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.measurement import Measurement, PowerState
from joulemap.domain.operator.name import is_operator
from joulemap.physics.record.configuration import (
    BOUNDARY,
    BOUNDARY_NAMES,
    MAX_BATCH,
    MEASURED_AT,
    PRECISION_BYTES,
    name_precision,
)
from joulemap.physics.record.product import DEFAULT, MATMUL_PRECISIONS, choose_setting
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.system.errors import CatalogueError, UnknownNameError, UsageError
from joulemap.system.file import FileError, read_text
from joulemap.system.key import keep_once
from joulemap.system.name import fold_into
from joulemap.system.number import read_real
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

FOLDER: Final = DATA / "measurement"

BENCH_RUNTIME: Final = {"host_launched": "eager", "device": "graph", "compiled": "fused"}
"""Execution mode of a benchmark -> runtime."""

IDLE: Final = "idle_power_w"
DRAWN: Final = ("energy_j", "power_w")
"""Columns of energy and power, which need a measurement boundary."""

FIGURES: Final = ("latency_s", "throughput_per_s", "energy_j", "power_w", "wall_power_w", "peak_memory_bytes")
WHOLE: Final[Mapping[str, int]] = {
    "batch": MAX_BATCH,
    "stream_count": 2**31 - 1,
    "device_count": 2**31 - 1,
    "peak_memory_bytes": 2**60,
}
"""Column of integers -> largest allowed value."""
COUNTS: Final = ("batch", "stream_count", "device_count")

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "_per_s": (1e-9, 1e15),
    "_s": (1e-12, 1e9),
    "_j": (1e-15, 1e15),
    "_w": (1e-9, 1e12),
    "_tokens": (1.0, 1e8),
    "_bytes": (1.0, 2.0**60),
    "batch": (1e-9, 1e7),
    "_count": (1.0, 1e7),
    "_parallel": (1.0, 1e7),
}
"""Suffix of a column name -> plausible range of a measured value in SI units.

Source: assumed; from a picosecond to thirty years, from a femtojoule to weeks of a power station's output. A value
outside means noise or a unit other than the column's, and could overflow a double in arithmetic.
"""

TEXTS: Final = ("hardware", "model", "precision", "source")

T = TypeVar("T")

ARGUMENTS: Final = re.compile(r"[\w.+-]+\(.+\)")
"""Pattern of a model name that belongs to a wing, such as a training step."""

NUMBER: Final = "measurement_id"
"""Column of exported rows that is an id of one database, not data."""

KNOWN: Final = tuple(field.name for field in attrs.fields(Measurement))
"""Columns that a table of single runs may have."""

SHOWN_FAULTS: Final = 5

MOST_ABOVE_CAP: Final = 5.0
"""Ratio of a measured power to a chip's cap above which the unit of the measurement counts as wrong.

Source: assumed; the ratio is at most 1.22 in the 1,005 built-in energies and powers, and mJ read as J is a factor of
1,000.
"""

MAX_FILE_BYTES: Final = 100_000_000


class MeasuredRow(Protocol):
    """Row of a table of measurements."""

    @property
    def source(self) -> str:
        """Publication or person that measured."""

    @property
    def hardware(self) -> str:
        """Hardware id, with its power mode if one is named."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def batch(self) -> float:
        """Samples or sequences per call."""


class MeasuredKind(Protocol):
    """Kind of measurements other than of single runs; wings register kinds at `measured`."""

    record: type
    """Class of the rows."""
    columns: tuple[str, ...]
    """Columns that a table of this kind may have."""

    def is_table(self, columns: Collection[str]) -> bool:
        """Return True if a table with these columns is of this kind."""
        ...

    def check(self, row: Mapping[str, Any], name_hardware: Callable[[str], str]) -> MeasuredRow:
        """Return a row of a user's table; ValueError, TypeError or UsageError if it is invalid.

        `name_hardware` returns a chip's id, or the name unchanged if the catalogue does not have it.
        """
        ...

    def read(self, cells: Mapping[str, str], seen: Mapping[str, str], conditions: Mapping[str, str]) -> MeasuredRow:
        """Return a row of a built-in table; its source selects the coefficients fitted with it, and conditions."""
        ...

    def write(self, connection: Connection, rows: Sequence[Any]) -> int:
        """Store rows that are not stored yet; return their number. The caller holds the transaction."""
        ...


def list_kinds() -> tuple[MeasuredKind, ...]:
    """Return the kinds of measurements that wings register."""
    return tuple(find_parts("measured"))


@cache
def load_measurements() -> tuple[Measurement, ...]:
    """Return the built-in measurements."""
    rows: list[Measurement] = []
    for path in sorted(FOLDER.glob("*.csv")):
        beside = path.with_suffix(".toml")
        rows += _read_bench(path, beside) if beside.exists() else _read_plain(path)
    return tuple(rows)


def _read_plain(path: Path) -> Iterator[Measurement]:
    for _, row in _read_rows(path):
        yield make_measurement(row, find_seen(row["hardware"], row["model"]))


def _read_bench(path: Path, beside: Path) -> Iterator[Measurement]:
    header = tomllib.loads(beside.read_text(encoding="utf-8"))
    for _, row in _read_rows(path):
        details = [header["conditions"], f"{row['image_px']} pixels"]
        if row.get("sm_clock_mhz"):
            details.append(f"SM clock {float(row['sm_clock_mhz']):.0f} MHz")
        yield make_measurement(
            {
                **{name: row.get(name, "") for name in ("hardware", "model", "precision", *COUNTS, *FIGURES)},
                "matmul_precision": header.get("matmul_precision", ""),
                "runtime": BENCH_RUNTIME[row["mode"]],
                "scope": "board",
                "boundary": "board",
                "source": header["source"],
                "conditions": "; ".join(details),
            },
            find_seen(row["hardware"], row["model"]),
        )


def find_boundary(text: str) -> str:
    """Return the boundary that a text ends with, such as `streaming, board`; empty for any other text."""
    word = text.split()[-1] if text.strip() else ""
    return MEASURED_AT.get(fold_into(word, MEASURED_AT), "")


def make_measurement(row: Mapping[str, Any], seen: str = "") -> Measurement:
    """Build a measurement from a row; `seen` names the fitted coefficients if the row does not."""
    given = (name for name in (*FIGURES, IDLE, *COUNTS) if row.get(name) not in (None, ""))
    numbers: dict[str, Any] = {name: int(float(row[name])) if name in WHOLE else float(row[name]) for name in given}
    drawn = not numbers.keys().isdisjoint(DRAWN)
    return Measurement(
        **{name: row[name] for name in (*TEXTS, "runtime")},
        **numbers,
        matmul_precision=choose_setting(row.get("matmul_precision") or DEFAULT, row["precision"]),
        scope=row.get("scope") or "not given",
        boundary=row.get("boundary") or (find_boundary(row.get("scope") or "") if drawn else ""),
        conditions=row.get("conditions") or "not given",
        seen=row.get("seen") or seen,
    )


@cache
def _read_seen() -> tuple[dict[str, str], ...]:
    with (FOLDER / "seen" / "coefficient.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def find_seen(hardware: str, model: str) -> str:
    """Return the coefficients fitted with measurements of this hardware and model; empty if there are none.

    Entries for a model replace those for all models of its hardware.
    """
    of_hardware = [row for row in _read_seen() if row["hardware"] == hardware]
    of_model = [row for row in of_hardware if row["model"] == model]
    rows = of_model or [row for row in of_hardware if row["model"] == ""]
    return "; ".join(row["coefficients"] for row in rows if row["coefficients"])


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, row) of a CSV or JSON file; CatalogueError for any other file."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error
    if path.suffix == ".json":
        try:
            rows = json.loads(text, object_pairs_hook=keep_once)
        except (ValueError, RecursionError) as error:
            raise CatalogueError(f"{path}: not valid JSON: {error}") from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise CatalogueError(f"{path}: expected a list of objects")
        yield from enumerate(rows, start=1)
        return
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        names = [name.strip() for name in reader.fieldnames or ()]
        mark = next((mark for mark in (";", "\t") if len(names) == 1 and mark in names[0]), "")
        if mark:
            raise CatalogueError(f"{path}, line 1: columns are separated by {mark!r}, expected commas")
        reader.fieldnames = names
        for name in names:
            if names.count(name) > 1:
                raise CatalogueError(f"{path}, line 1: the column {name!r} occurs twice")
        for row in reader:
            if None in row or None in row.values():
                raise CatalogueError(
                    f"{path}, line {reader.line_num}: {'more' if None in row else 'fewer'} cells than the header has"
                )
            yield reader.line_num, {name: _unmark(value.strip()) for name, value in row.items()}
    except csv.Error as error:
        raise CatalogueError(f"{path}, line {reader.line_num}: {error}") from error


def _unmark(cell: str) -> str:
    """Remove the apostrophe with which `--format csv` marks texts that a spreadsheet would read as formulas."""
    return cell[1:] if re.match(r"'[=+\-@\t\r]", cell) else cell


def read_measurements(
    path: Path, find_known: Callable[[Iterable[str]], Mapping[str, HardwareEntry]], models: Mapping[str, ModelEntry]
) -> tuple[Measurement, ...] | tuple[MeasuredRow, ...]:
    """Read the measurements of a user's file and check every row; `find_known` returns the entries of named hardware.

    Hardware is an id or alias. A model is a known name or anything that `compare` takes (`gemm(m=1,n=4096,k=4096)`,
    `file.py:factory`). Rows of a wing's kind may have unknown hardware and models; the score states why such a row is
    not predicted. Raises CatalogueError with the invalid lines and reasons; then no row is imported.
    """
    rows = list(_read_rows(path))
    entries = find_known(dict.fromkeys(str(row.get("hardware") or "") for _, row in rows))
    kind = next((one for one in list_kinds() if any(one.is_table(row) for _, row in rows[:1])), None)
    if kind is not None:
        check, name_hardware = kind.check, cache(lambda name: name_or_keep(name, entries))
        return _check_all(path, rows, kind.columns, lambda row: check(row, name_hardware))
    return _check_all(path, rows, KNOWN, lambda row: check_single(row, entries, models))


def list_measured(path: Path) -> list[str]:
    """Return the hardware of the rows of a file as written, each once; CatalogueError for a file that is no table."""
    return list(dict.fromkeys(str(row["hardware"]) for _, row in _read_rows(path) if row.get("hardware")))


def check_single(
    row: Mapping[str, Any], entries: Mapping[str, HardwareEntry], models: Mapping[str, ModelEntry]
) -> Measurement:
    """Parse cells into the measurement of a single run; ValueError, UsageError or UnknownNameError if invalid."""
    check_columns(row, KNOWN)
    for name in (*TEXTS, "batch", "runtime"):
        if row.get(name) in (None, ""):
            raise ValueError(f"{name} is missing")
    for name in (*TEXTS, "matmul_precision", "runtime", "scope", "boundary", "conditions", "seen"):
        check_text(name, "" if row.get(name) is None else row[name])
    figures = {name: _number(row, name) for name in (*FIGURES, *COUNTS) if row.get(name) not in (None, "")}
    boundary = _read_boundary(row, figures)
    idle = _read_idle(row, figures)
    for name, most in WHOLE.items():
        count = figures.get(name)
        if count is not None and not (1 <= count <= most and (count == int(count) or name not in COUNTS)):
            raise ValueError(f"{name} is {row[name]!r}, expected a whole number from 1 to {most}")
    counts: dict[str, float] = {name: figures.pop(name) for name in COUNTS if name in figures}
    if not figures:
        raise ValueError(f"none of {', '.join(FIGURES)} is given")
    for name, value in figures.items():
        if not value > 0.0:
            raise ValueError(f"{name} is {row[name]!r}, expected a number above 0")
        check_range(name, value)
    runtime, precision = fold_into(str(row["runtime"]), RUNTIME_NAMES), name_precision(str(row["precision"]))
    if runtime not in RUNTIME_NAMES:
        raise ValueError(f"runtime is {row['runtime']!r}, expected one of {', '.join(RUNTIME_NAMES)}")
    if precision not in PRECISION_BYTES:
        raise ValueError(f"precision is {row['precision']!r}, expected one of {', '.join(PRECISION_BYTES)}")
    setting = fold_into(str(row.get("matmul_precision") or DEFAULT), MATMUL_PRECISIONS)
    if setting not in MATMUL_PRECISIONS:
        known_settings = ", ".join(MATMUL_PRECISIONS)
        raise ValueError(f"matmul_precision is {row['matmul_precision']!r}, expected one of {known_settings}")
    model = find_model_name(str(row["model"]), models)
    if PowerState.read(model) is not None and {*figures} != {"power_w"}:
        raise ValueError(f"a power state has power_w, found {', '.join(figures)}")
    is_written = ":" in model or model.endswith(".pt2") or is_operator(model) or ARGUMENTS.fullmatch(model)
    if model not in models and not is_written:
        raise UnknownNameError("model", model, models, "see `joulemap model list`")
    names = {
        "hardware": _name_hardware(str(row["hardware"]), entries),
        "model": model,
        "precision": precision,
        "matmul_precision": setting,
        "runtime": runtime,
    }
    if boundary and not BOUNDARY[boundary].is_at_wall:
        _check_power(figures, find_entry(entries, HardwareRef.read(names["hardware"]).label))
    if boundary and BOUNDARY[boundary].is_at_wall:
        figures = _move_to_wall(figures, counts)
        boundary = ""
    return make_measurement(
        {**row, **dict.fromkeys(DRAWN, ""), **figures, **counts, **names, "boundary": boundary, IDLE: idle}
    )


def _check_all(
    path: Path,
    numbered: Sequence[tuple[int, dict[str, Any]]],
    known: Sequence[str],
    check: Callable[[Mapping[str, Any]], T],
) -> tuple[T, ...]:
    """Return the result of `check` for all rows; CatalogueError names the lines that fail."""
    rows: list[T] = []
    faults: list[str] = []
    word = "row" if path.suffix == ".json" else "line"
    for line, row in numbered:
        try:
            rows.append(check(row))
        except (ValueError, TypeError, UnknownNameError, UsageError) as error:
            faults.append(f"{word} {line}: {error}")
    if not numbered:
        raise CatalogueError(f"{path}: there is no row; columns are {', '.join(known)}")
    if faults:
        more = len(faults) - SHOWN_FAULTS
        raise CatalogueError(
            f"{path}: nothing imported: {'; '.join(faults[:SHOWN_FAULTS])}" + (f"; and {more} more" if more > 0 else "")
        )
    return tuple(rows)


def check_range(name: str, value: float) -> None:
    """Raise ValueError for a number outside the plausible range of its column."""
    ends = next((ends for ending, ends in RANGES.items() if name.endswith(ending)), None)
    if ends is not None and not ends[0] <= value <= ends[1]:
        raise ValueError(f"{name} is {value:g}, expected a number from {ends[0]:g} to {ends[1]:g}")


def name_or_keep(name: str, entries: Mapping[str, HardwareEntry]) -> str:
    """Return a chip's id, or the name unchanged if the catalogue does not have it."""
    try:
        return _name_hardware(name, entries)
    except UnknownNameError:
        return name


def _name_hardware(name: str, entries: Mapping[str, HardwareEntry]) -> str:
    """Return a chip's id, with @MODE if a power mode is named; UnknownNameError for an unknown one."""
    ref = HardwareRef.read(name)
    entry = find_entry(entries, ref.label)
    mode = entry.mode_of(ref)
    return f"{entry.id}@{mode}" if ref.mode or mode != DEFAULT_MODE else entry.id


def check_columns(row: Mapping[str, Any], known: Iterable[str], number: str = NUMBER) -> None:
    """Raise ValueError for columns that are unknown; `number` is the id of an exported row."""
    surplus = sorted(set(row) - {number, *known})
    for name in surplus:
        meant = [one for one in known if one.rpartition("_")[0] == name or one.partition("_per_")[0] == name]
        if meant:
            raise ValueError(f"{name} has no unit in its name, expected {' or '.join(meant)}")
        meant = [one for one in known if one.rpartition("_")[0] == name.rpartition("_")[0] != ""]
        if meant:
            raise ValueError(f"unknown column {name}, expected {' or '.join(meant)}")
    if surplus:
        raise ValueError(
            f"unknown column {', '.join(surplus)}; known: {', '.join(known)}"
            f"{'; a day stands in conditions, as measured on 2026-05-17' if 'date' in surplus else ''}"
        )


def _check_power(figures: Mapping[str, float], entry: HardwareEntry) -> None:
    """Raise ValueError if the power of a device, or its energy over its latency, is far above its cap."""
    powers = {"power_w": figures.get("power_w")}
    if "energy_j" in figures and "latency_s" in figures:
        powers["energy_j / latency_s"] = figures["energy_j"] / figures["latency_s"]
    most = max((*entry.caps_w, *entry.limits_w))
    for name, power in powers.items():
        if power is not None and power > MOST_ABOVE_CAP * most:
            raise ValueError(f"{name} is {power:.4g} W, but {entry.id} draws at most {most:g} W: check the units")


def _read_boundary(row: Mapping[str, Any], figures: Collection[str]) -> str:
    """Return the boundary of a row's energy and power; ValueError if they have none."""
    stated = str(row.get("boundary") or "")
    drawn = next((name for name in DRAWN if name in figures), "")
    known = find_boundary(stated or str(row.get("scope") or ""))
    if (stated and not known) or (drawn and not known):
        fault = f"boundary is {stated!r}" if stated else f"{drawn} is given without a boundary"
        raise ValueError(f"{fault}, expected {', '.join(BOUNDARY_NAMES)}")
    return known if drawn else ""


def _read_idle(row: Mapping[str, Any], figures: Collection[str]) -> float | str:
    """Return the idle power in watts that was subtracted from a row's energy; empty if none was.

    Raise ValueError for an unusable number, or without an energy.
    """
    if row.get(IDLE) in (None, ""):
        return ""
    if "energy_j" not in figures:
        raise ValueError(f"{IDLE} is given without energy_j, from which it was subtracted")
    try:
        idle_w = _number(row, IDLE)
    except ValueError:
        raise ValueError(f"{IDLE} is {row[IDLE]!r}, expected the idle power in W that was subtracted") from None
    if not idle_w > 0.0:
        raise ValueError(f"{IDLE} is {row[IDLE]!r}, expected a number above 0")
    return idle_w


def _move_to_wall(figures: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of a whole system with its power per device as `wall_power_w`, instead of energy and power.

    Raise ValueError for an energy without a time.
    """
    moved = {name: value for name, value in figures.items() if name not in DRAWN}
    if "wall_power_w" in figures:
        raise ValueError("wall_power_w and the boundary system are both given, expected one of them")
    power = figures.get("power_w")
    if power is None:
        batches = figures["throughput_per_s"] / counts["batch"] if "throughput_per_s" in figures else None
        if batches is None and "latency_s" not in figures:
            raise ValueError("energy_j at the boundary system needs latency_s or throughput_per_s")
        power = figures["energy_j"] * (batches or 1.0 / figures["latency_s"])
    return moved | {"wall_power_w": power / counts.get("device_count", 1.0)}


def check_text(name: str, value: object) -> None:
    """Raise ValueError for a value that no database can store as text."""
    is_text = isinstance(value, str) and "\0" not in value and value == value.encode(errors="replace").decode()
    if not is_text:
        raise ValueError(f"{name} is {reprlib.repr(value)}, expected a text")


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row[name]
    try:
        if isinstance(value, bool):
            raise ValueError(value)
        number = read_real(value) if isinstance(value, str) else float(value)
        if math.isfinite(number):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} is {reprlib.repr(value)}, expected a finite number")


@frozen(kw_only=True)
class Profile:
    """Conditions of one profile, and the location of its rows."""

    path: Path
    """Path of the TOML file."""
    hardware: str
    runtime: str
    matmul_precision: str = DEFAULT
    """Setting of the library for products at fp32."""
    source: str
    conditions: str

    @property
    def operators(self) -> Path:
        """Path of the file with times by traced operator."""
        return self.path.with_suffix(".parquet")


def load_profiles(folder: Path = PROFILES) -> tuple[Profile, ...]:
    """Return the built-in profiles without their rows."""
    return tuple(
        Profile(path=path, **tomllib.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.toml"))
    )
