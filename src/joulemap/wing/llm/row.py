"""Measurements of served language models: rows of a table, their quantities, and the kind of table for the core."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog.measurement import FIGURES, check_columns, check_range, check_text, name_or_keep
from joulemap.domain import SCOPE
from joulemap.physics import BOARD, BOUNDARY_NAMES, MEASURED_AT, BoundaryName
from joulemap.system import UsageError, frozen
from joulemap.wing.llm.client import CLIENTS

if TYPE_CHECKING:
    from joulemap.domain import HardwareEntry
    from joulemap.store import Connection


QUANTITIES: Final = (
    "time_to_first_token_s",
    "inter_token_latency_s",
    "request_latency_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "energy_per_output_token_j",
    "energy_per_request_j",
    "power_w",
)
"""Measured quantities; tokens per second, joules and watts are of all devices together."""

IDLE: Final = "idle_power_w"

ON_EXPERTS: Final = "experts "
"""Start of a split that leaves the routed experts of some layers to a processor."""

EXPERTS_AWAY: Final = 0.85
"""Additional half-width of times and energies of a model whose routed experts are partly on the processor.

Source: assumed; with it, ranges reach the factor of 2.5 by which the slowest of known runs was below its prediction
(the fastest 1.4). None states its division and its memory: for llmfit's users (commit 3f44fd3), the fastest division is
1.2 to 1.7 times too fast on an RTX 2080 (three models) and 1.4 times on an RTX 5070; all experts on the processor would
be within 11 % on the former. Six dense models that are divided by layers are within 0.84 to 1.21.
"""

STATISTICS: Final = ("mean", "median")

LOCALSCORE: Final = "localscore"
"""Kind of prompt of the LocalScore benchmark: its values are means over nine tests."""

PROMPTS: Final = ("", "short", LOCALSCORE)

SPLIT: Final = re.compile(r"(?:experts )?\d{1,4}(?:/\d{1,4})+")
"""Pattern of the layers on each of several chips."""

_SECONDS: Final = re.compile(r"\d{10}")
"""Pattern of a date in seconds since 1970, as `llama-bench` logs it."""

BOOLEANS: Final = {"yes": True, "true": True, "no": False, "false": False}

NOTES: Final[Sequence[tuple[str, re.Pattern[str], object]]] = (
    ("cached_tokens", re.compile(r"(\d+) tokens already in the cache"), None),
    ("uses_cache", re.compile(r"\b(?i:no) cache\b"), False),
    ("file_bytes", re.compile(r"weights (\d+) bytes"), None),
    ("context_tokens", re.compile(r"context length (\d+)"), None),
    ("statistic", re.compile(r"between tokens: median(?!s over requests)|\bmedian TPOT\b"), "median"),
    ("client", re.compile(r"medians over requests|lengths vary"), "steady"),
    ("length_spread", re.compile(r"lengths uniform in 80-100 %"), 1.0 / 9.0),
    ("prompt_kind", re.compile(r"prompt[^;]*(?:\bshort\b|some ten tokens)"), "short"),
    ("prompt_kind", re.compile(r"means over nine tests"), LOCALSCORE),
    ("phases", re.compile(r"prefill and decode on separate devices"), "separate"),
)
"""Column, pattern and value. If the pattern matches the notes and the column's cell is empty, the column gets this
value, or the matched number if the value is None.
"""

SEPARATE: Final = "separate"
"""Value of `phases` if prefill and decode have devices of their own; no column says how many have which phase."""

_one, _positive, _any = attrs.validators.ge(1), attrs.validators.gt(0.0), attrs.validators.ge(0.0)


def _maybe(check: Any) -> Any:
    """Return the field of a number that a row may not state."""
    return attrs.field(default=None, validator=attrs.validators.optional(check))


@frozen(kw_only=True)
class ServingRow:
    """One measured configuration. Values not stated or not measured are None; words not stated are empty."""

    source: str
    hardware: str
    model: str
    scope: str = attrs.field(validator=attrs.validators.in_(tuple(SCOPE)))
    engine: str = ""
    engine_version: str = ""
    date: str = ""
    """Date of the measurement, as `2025-11-02`; an engine's software changes monthly. A table may also state it in
    seconds since 1970.
    """
    commit: str = ""
    device_count: int | None = _maybe(_one)
    tensor_parallel: int | None = _maybe(_one)
    pipeline_parallel: int | None = _maybe(_one)
    expert_parallel: int | None = _maybe(_one)
    data_parallel: int | None = _maybe(_one)
    other_hardware: str = ""
    """Other chips that hold a part of the model, joined by `+`; a processor comes last. Empty for none."""
    layer_split: str = attrs.field(default="")
    """Layers on the hardware and on each other chip, as `20/12`. If a processor has the routed experts alone, those of
    23 of 36 layers, `experts 36/23`.
    """
    weight_precision: str = ""
    activation_precision: str = ""
    cache_precision: str = ""
    prompt_tokens: float | None = _maybe(_any)
    """Prompt tokens per sequence; for a single pass that reads no prompt, tokens in the cache before it."""
    output_tokens: float | None = _maybe(_any)
    """Output tokens per sequence."""
    batch: float = attrs.field(default=1.0, validator=attrs.validators.gt(0.0))
    """Sequences per call; for steady serving, the mean number of requests in flight."""
    time_to_first_token_s: float | None = _maybe(_positive)
    inter_token_latency_s: float | None = _maybe(_positive)
    """Time of one step of the whole batch."""
    request_latency_s: float | None = _maybe(_positive)
    output_tokens_per_s: float | None = _maybe(_positive)
    total_tokens_per_s: float | None = _maybe(_positive)
    """Prompt and output tokens per second."""
    energy_per_output_token_j: float | None = _maybe(_positive)
    energy_per_request_j: float | None = _maybe(_positive)
    power_w: float | None = _maybe(_positive)
    power_boundary: str = ""
    """Boundary of joules and watts: `chip`, `board` (also `device`, `module`) or `system` (also `wall`)."""
    idle_power_w: float | None = _maybe(_positive)
    """Idle power of all devices that was subtracted from the joules; None for joules that contain it."""
    speculative: str = ""
    """Method of speculative decoding; empty or `none` without it."""
    cached_tokens: float | None = _maybe(_any)
    """Tokens per sequence already cached before its prefill."""
    uses_cache: bool = True
    """True if keys and values are cached between steps, so that a step does not compute earlier tokens again."""
    context_tokens: float | None = _maybe(_positive)
    """Tokens per sequence for which the kernels were compiled."""
    file_bytes: float | None = _maybe(_positive)
    """Size of the stored weights."""
    client: str = attrs.field(default="", validator=attrs.validators.in_(("", *CLIENTS)))
    """Start of the requests in flight, one of `CLIENTS`; empty if unknown."""
    requests: float | None = _maybe(_one)
    """Number of requests, over which times are means."""
    length_spread: float | None = _maybe(_any)
    """Relative spread of the lengths around their means, both ways; 0 for equal lengths."""
    statistic: str = attrs.field(default="mean", validator=attrs.validators.in_(STATISTICS))
    """Statistic of the times between tokens."""
    prompt_kind: str = attrs.field(default="", validator=attrs.validators.in_(PROMPTS))
    """Description of a prompt of unknown length."""
    phases: str = attrs.field(default="", validator=attrs.validators.in_(("", SEPARATE)))
    """`SEPARATE`, or empty if all devices compute both phases."""
    notes: str = ""
    seen: str = ""
    """Coefficients fitted with this row; empty if there are none."""

    @staticmethod
    def split_experts(counts: str) -> str:
        """Return the `layer_split` that leaves the routed experts of the last count of layers to a processor."""
        return f"{ON_EXPERTS}{counts}"

    @staticmethod
    def doubt_split(split: str) -> float:
        """Return the half-width that a `layer_split` adds to times and energies."""
        return EXPERTS_AWAY if split.startswith(ON_EXPERTS) else 0.0

    @property
    def other_chips(self) -> tuple[str, ...]:
        """Names of the other chips that hold a part of the model."""
        return tuple(self.other_hardware.split("+")) if self.other_hardware else ()

    @layer_split.validator
    def _check_split(self, _field: object, value: str) -> None:
        count = len(self.other_chips)
        if not (SPLIT.fullmatch(value) and value.count("/") == count if count else not value):
            raise ValueError(
                f"layer_split is {value!r}, expected the layers on each of {count + 1} chips, such as 20/12"
                if count
                else f"layer_split is {value!r} without other_hardware"
            )

    @property
    def has_unknown_client(self) -> bool:
        """True for means over a load of an unknown client, who may keep requests together."""
        return self.scope == "steady_serving" and not self.client and self.statistic == "mean"

    @property
    def boundary(self) -> BoundaryName:
        """Energy boundary of joules and watts; `board` if the row states none or an unknown one."""
        return MEASURED_AT.get(self.power_boundary, BOARD)

    def measured(self) -> dict[str, float]:
        """Return quantity -> value for every quantity in the row."""
        values = {name: getattr(self, name) for name in QUANTITIES}
        return {name: value for name, value in values.items() if value is not None}


@frozen(kw_only=True)
class Prediction:
    """Predicted quantities of a measured configuration, `QUANTITIES`; None for quantities outside its scope."""

    engine: str = ""
    """Name, backend and release of the engine that is assumed; empty if none is."""
    work: str = ""
    """Kind of work: `model`, or `experts` for a mixture of experts; empty for an unknown model."""
    time_to_first_token_s: float | None = None
    inter_token_latency_s: float | None = None
    request_latency_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    energy_per_output_token_j: float | None = None
    energy_per_request_j: float | None = None
    power_w: float | None = None
    prompt_half_width: float = 0.0
    """Part of the half-width of times of prompts that thinly measured numbers of the engine add."""
    token_half_width: float = 0.0
    """Part of the half-width of all other times."""


COLUMNS: Final = tuple(ServingRow.__annotations__)
"""Columns of a table, in any order."""

REQUIRED: Final = ("source", "hardware", "model", "scope")


def read_serving_row(cells: Mapping[str, str]) -> ServingRow:
    """Parse the cells of a table's row; an empty cell means that nothing is stated. Raises UsageError for invalid
    cells.
    """
    for name in REQUIRED:
        if not cells.get(name):
            raise UsageError(f"{name} is empty")
    values = read_notes(cells.get("notes", ""))
    for name, text in cells.items():
        if name not in COLUMNS or not text:
            continue
        values[name] = _read(name, text.strip())
    try:
        return ServingRow(**values)  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(str(error)) from error


def read_notes(notes: str) -> dict[str, object]:
    """Return column -> value for each statement in the notes that `NOTES` assigns to a column."""
    columns: dict[str, object] = {}
    for name, pattern, value in NOTES:
        match = pattern.search(notes)
        if match:
            columns[name] = float(match[1]) if value is None else value
    return columns


def _read(name: str, text: str) -> object:
    if name == "uses_cache":
        if text.lower() not in BOOLEANS:
            raise UsageError(f"{name} is {text!r}, expected yes or no")
        return BOOLEANS[text.lower()]
    if name == "date" and _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(int(text), UTC).date().isoformat()
    kind = ServingRow.__annotations__[name]
    if kind == "str":
        return text
    try:
        value = int(text) if kind.startswith("int") else float(text)
    except ValueError as error:
        expected = "the idle power in W that was subtracted" if name == IDLE else "a number"
        raise UsageError(f"{name} is {text!r}, expected {expected}") from error
    if not math.isfinite(value):
        raise UsageError(f"{name} is {text!r}, expected a finite number")
    return value


NUMBER: Final = "serving_measurement_id"
"""Column of exported rows that is an id of one database, not data."""

SERVED_LENGTHS: Final = ("prompt_tokens", "output_tokens")
SERVED: Final = frozenset({"prompt_tokens", "output_tokens", *QUANTITIES}) - set(FIGURES)
"""Columns that identify a table of served language models."""


def check_measured(row: Mapping[str, Any], entries: Mapping[str, HardwareEntry]) -> ServingRow:
    """Parse cells into the measurement of a served model; ValueError, TypeError or UsageError if invalid."""
    return _check(row, lambda name: name_or_keep(name, entries))


def _check(row: Mapping[str, Any], name_hardware: Callable[[str], str]) -> ServingRow:
    check_columns(row, COLUMNS, NUMBER)
    cells = {
        name: "" if value is None else value if isinstance(value, str) else repr(value) for name, value in row.items()
    }
    for name, cell in cells.items():
        check_text(name, cell)
    serving_row = read_serving_row(cells)
    if not serving_row.measured():
        raise ValueError(f"none of {', '.join(QUANTITIES)} is given")
    _check_drawn(serving_row)
    for name in COLUMNS:
        value = getattr(serving_row, name)
        is_needed = name in SERVED_LENGTHS and not SCOPE[serving_row.scope].is_pass
        if isinstance(value, int | float) and not isinstance(value, bool) and (value or is_needed):
            check_range(name, float(value))
    return attrs.evolve(serving_row, hardware=name_hardware(serving_row.hardware))


def _check_drawn(row: ServingRow) -> None:
    """Raise ValueError for energies of a served model without a boundary, and for an idle power without energies."""
    drawn = [name for name in row.measured() if name.endswith(("_j", "_w"))]
    if drawn and row.power_boundary not in MEASURED_AT:
        fault = (
            f"power_boundary is {row.power_boundary!r}" if row.power_boundary else f"{drawn[0]} has no power_boundary"
        )
        raise ValueError(f"{fault}, expected {', '.join(BOUNDARY_NAMES)}")
    if row.idle_power_w is not None and not any(name.endswith("_j") for name in drawn):
        raise ValueError(f"{IDLE} is given without an energy from which it was subtracted")


def write_serving_rows(connection: Connection, rows: Iterable[ServingRow]) -> int:
    """Store serving measurements that are not stored yet; return their number. The caller holds the transaction."""
    from joulemap.store import Digester, insert_records, next_id
    from joulemap.store.digest import SERVING_MEASUREMENT

    stored = set(read_serving_rows(connection).values())
    fresh = [one for one in dict.fromkeys(rows) if one not in stored]
    first = next_id(connection, "serving_measurement", "serving_measurement_id")
    numbers = range(first, first + len(fresh))
    insert_records(connection, "serving_measurement", fresh, serving_measurement_id=numbers, content_digest="")
    Digester(connection).seal(SERVING_MEASUREMENT, numbers)
    return len(fresh)


def read_serving_rows(connection: Connection) -> dict[int, ServingRow]:
    """Return id -> row of all stored serving measurements."""
    rows = connection.execute(
        f"SELECT serving_measurement_id, {', '.join(COLUMNS)} FROM internal.serving_measurement "
        "ORDER BY serving_measurement_id"
    ).fetchall()
    return {number: ServingRow(**dict(zip(COLUMNS, values, strict=True))) for number, *values in rows}


class ServingKind:
    """Measurements of served language models for the core."""

    record = ServingRow
    columns = COLUMNS

    def is_table(self, columns: Collection[str]) -> bool:
        """Return True for columns that only tables of served language models have."""
        return not SERVED.isdisjoint(columns)

    def check(self, row: Mapping[str, Any], name_hardware: Callable[[str], str]) -> ServingRow:
        """Return a row of a user's table; ValueError, TypeError or UsageError if it is invalid."""
        return _check(row, name_hardware)

    def read(self, cells: Mapping[str, str], seen: Mapping[str, str], conditions: Mapping[str, str]) -> ServingRow:
        """Return a row of a built-in table, with the coefficients fitted with it and further conditions."""
        row = read_serving_row(cells)
        notes = "; ".join(filter(None, (row.notes, conditions.get(row.source, ""))))
        return attrs.evolve(row, seen=seen.get(row.source, ""), notes=notes)

    def write(self, connection: Connection, rows: Sequence[ServingRow]) -> int:
        """Store rows that are not stored yet; return their number. The caller holds the transaction."""
        return write_serving_rows(connection, rows)


KIND: Final = ServingKind()
