"""Causes of a difference from the prediction; each cause is a prediction for another configuration.

    misfit = mean over quantities of |ln (measured / predicted)| / half width of the interval

A setting that the file or an option states is never a cause, except a chip that the file names and an option
contradicts. Causes are sorted by the number of measurements that they bring inside their intervals. Ties go to that
chip, then to settings that were assumed, then to those that no file states, then to the smallest misfit. Causes that
explain no measurement are listed only if none explains one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask import find_workloads
from joulemap.domain import DEFAULT_MODE, SCOPE, HardwareEntry, HardwareRef, Measurement
from joulemap.physics import ROLE_CODE, RUNTIME, RUNTIME_NAMES, Calibration
from joulemap.plan import Source, known_hardware, read_known
from joulemap.system import UnknownNameError, frozen
from joulemap.wing.decoder import find_stack
from joulemap.wing.llm.serve import ServingRow
from joulemap.wing.verify.forecast import Case, Figure, Forecast, forecast, measured_of
from joulemap.wing.verify.generated.row import CauseRow
from joulemap.wing.verify.show.word import describe_change

if TYPE_CHECKING:
    from joulemap.wing.verify.file import Reading

SHARES: Final = (0.85, 0.7, 0.5)
"""Fractions of the highest clock and of the power limit that are tried as causes."""

STORED: Final = ("bf16", "fp8", "int8", "awq")
"""Weight formats that are tried as causes."""

ENGINES: Final = ("vllm", "sglang", "tensorrt_llm", "llamacpp", "transformers")
"""Inference engines that are tried as causes."""

MOST: Final = 3
"""Maximum measurements outside their intervals for which causes are sought; those furthest outside come first."""

BETTER: Final = 0.95
"""Ratio of the misfit with a cause to the misfit without it, below which the cause is listed."""

VARIED: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "weight_precision": ("precision", {"file_bytes": None}),
    "cache_precision": ("cache", {}),
    "engine": ("engine", {"date": ""}),
}
"""Column that a cause changes -> the cause, if its name differs, and columns to reset because they no longer apply."""

STATED: Final = {
    "precision": {"precision", "weight_precision"},
    "runtime": {"runtime"},
    "engine": {"engine"},
    "devices": {"device_count"},
}
"""Cause -> columns by which a file may state its setting; no file states the settings of other causes."""

STANDINGS: Final = ("stated", "assumed", "open")
"""Standing of a cause, most likely first: its setting is in the file but an option has another, it was assumed, or no
file states it.
"""


@frozen(kw_only=True)
class Supposition:
    """Change of one setting of a measurement."""

    cause: str
    """Name of the cause, as in the table."""
    kind: str
    """Kind of the change, whose words are in `show`."""
    values: Mapping[str, str | float] = attrs.field(factory=dict, hash=False)
    """Values of the change, such as the `old` and the `new` setting."""
    hardware: str = ""
    """Chip of the measurement at the changed power mode; empty if another setting changes."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that is equal for equal changes, also of different chips."""
        return (self.cause, self.kind, *self.values.items())


Supposed = tuple[Supposition, Case]
"""Change, and the changed configuration."""


@frozen(kw_only=True)
class Cause:
    """Cause as a row of the table, with its change."""

    row: CauseRow
    supposed: Supposition
    case: int
    """Configuration that the row shows, counted from 1."""
    before: Figure
    """Prediction of the row's quantity without the cause."""


def find_causes(
    source: Source, outside: Mapping[int, tuple[Reading, Forecast]], calibration: str | Calibration
) -> list[Cause]:
    """Return causes that bring measurements closer to their intervals, best first.

    `outside` has the configurations outside their intervals (1, 2, ...), each with its prediction.
    """
    tried: list[tuple[int, Supposed]] = []
    for case in sorted(outside, key=lambda case: -_miss(*outside[case]))[:MOST]:
        reading, predicted = outside[case]
        row, other = reading.row, reading.other_hardware
        tried += [(case, one) for one in list_suppositions(source, row, predicted, reading.assumed)]
        if other:
            change = Supposition(cause="hardware", kind="hardware", values={"new": other, "old": row.hardware})
            tried.append((case, (change, Case(row=attrs.evolve(row, hardware=other)))))
    results = forecast(source, [changed for _, (_, changed) in tried], calibration)
    groups: dict[tuple[Any, ...], list[tuple[int, Supposition, Forecast]]] = {}
    for (case, (supposed, _)), predicted in zip(tried, results, strict=True):
        if predicted.figures:
            groups.setdefault(supposed.key, []).append((case, supposed, predicted))
    causes = [_judge(group, outside) for group in groups.values()]
    better = [one for one in causes if one.row.inside_count]
    better = better or [one for one in causes if one.row.misfit < BETTER * one.row.plain_misfit]
    better.sort(key=_rank)
    return [attrs.evolve(one, row=one.row.replace(rank=number)) for number, one in enumerate(better, start=1)]


def _miss(reading: Reading, predicted: Forecast) -> float:
    return predicted.miss(measured_of(reading.row))


def _rank(one: Cause) -> tuple[Any, ...]:
    return (-one.row.inside_count, STANDINGS.index(one.row.standing), one.row.misfit, one.row.change)


def _judge(
    group: Sequence[tuple[int, Supposition, Forecast]], outside: Mapping[int, tuple[Reading, Forecast]]
) -> Cause:
    """Return a cause with its misfit over all measurements for which it was predicted.

    `group` has the configuration of each measurement, the change, and its prediction with the cause.
    """
    fits = [(measured_of(outside[case][0].row), predicted, outside[case][1]) for case, _, predicted in group]
    first, supposed, _ = group[0]
    measured, predicted, own = fits[0]
    shared = [name for name in measured if name in own.figures and name in predicted.figures]
    name = max(shared, key=lambda one: own.figures[one].miss(measured[one]))
    figure, cause = predicted.figures[name], supposed.cause
    row = CauseRow(
        rank=0,
        standing="stated" if cause == "hardware" else "assumed" if cause in STATED else "open",
        cause=cause,
        change=describe_change(supposed.kind, supposed.values),
        inside_count=sum(bool(with_it.holds(numbers)) for numbers, with_it, _ in fits),
        judged_count=len(group),
        misfit=sum(with_it.miss(numbers) for numbers, with_it, _ in fits) / len(group),
        plain_misfit=sum(without.miss(numbers) for numbers, _, without in fits) / len(group),
        quantity=name,
        measured=measured[name],
        predicted=figure.value,
        low=figure.low,
        high=figure.high,
        is_inside=figure.holds(measured[name]),
    )
    return Cause(row=row, supposed=supposed, case=first, before=own.figures[name])


def _is_stated(cause: str, assumed: Collection[str]) -> bool:
    """Return whether a file or an option states the setting of a cause; `assumed` has the columns that none states."""
    return cause in STATED and STATED[cause].isdisjoint(assumed)


def list_suppositions(
    source: Source, row: Measurement | ServingRow, predicted: Forecast, assumed: Collection[str]
) -> Iterator[Supposed]:
    """Yield configurations that a measurement may have had instead; `assumed` has the columns that nothing states."""
    entry = known_hardware().get(HardwareRef.read(row.hardware).label)
    if entry is None:
        return
    for change in _list_points(row, entry):
        yield change, Case(row=attrs.evolve(row, hardware=change.hardware))
    for column, values in _list_values(row, entry).items():
        cause, beside = VARIED.get(column, (column, {}))
        if _is_stated(cause, assumed):
            continue
        old = getattr(row, column) or "bf16"
        for new in values:
            if new != old:
                change = Supposition(cause=cause, kind=column, values={"new": new, "old": old})
                yield change, Case(row=attrs.evolve(row, **{column: new}, **beside))
    if isinstance(row, ServingRow):
        yield from (one for one in _suppose_served(row) if not _is_stated(one[0].cause, assumed))
    elif row.latency_s is not None:
        is_slow = row.latency_s > predicted.figures["latency_s"].value
        yield from _suppose_copy(source, row, entry) if is_slow else _suppose_kept(row, entry)


def _list_values(row: Measurement | ServingRow, entry: HardwareEntry) -> Mapping[str, Iterable[Any]]:
    """Return column -> values to try; no values for a column that is certain."""
    if not isinstance(row, ServingRow):  # an engine's own log proves that the engine ran
        return {"precision": entry.precisions, "runtime": () if RUNTIME[row.runtime].is_built else RUNTIME_NAMES}
    return {
        "weight_precision": STORED,
        "cache_precision": () if row.cache_precision else ("fp8",),
        "engine": () if row.layer_split else ENGINES,
        "batch": (row.batch / 2.0,) if row.batch > 1.0 else (),
    }


def _list_points(row: Measurement | ServingRow, entry: HardwareEntry) -> Iterator[Supposition]:
    """Yield changes to other clocks, power caps and power modes of the chip."""
    if mode := HardwareRef.read(row.hardware).mode:
        yield Supposition(cause="power mode", kind="default_mode", values={"mode": mode}, hardware=entry.id)
        return
    clock, cap = entry.full_clock_hz, entry.caps_w[0]
    drawn = None if isinstance(row, ServingRow) else row.power_w
    watts = [*(cap * share for share in SHARES), *([drawn] if drawn is not None and drawn < cap else [])]
    points: list[tuple[str, str, dict[str, str | float], str]] = []
    points += [("power mode", "mode", {"mode": mode}, mode) for mode in entry.power_modes]
    points += [("clock", "clock", {"share": share}, f"{clock * share / 1e6:.0f}MHz") for share in SHARES]
    points += [("power cap", "cap", {"new": round(watt), "old": round(cap)}, f"{watt:.0f}W") for watt in watts]
    for cause, kind, values, mode in points:
        with contextlib.suppress(UnknownNameError):  # out of range for this chip
            if (point := entry.find_mode(mode)) != DEFAULT_MODE:
                yield Supposition(cause=cause, kind=kind, values=values, hardware=f"{entry.id}@{point}")


def _suppose_served(row: ServingRow) -> Iterator[Supposed]:
    """Yield configurations with other numbers of devices, and one in which half of the prompt was cached."""
    count = row.device_count or 1
    for new in () if row.layer_split else {max(1, count // 2), count * 2} - {count}:
        tensor, stages = find_stack(row.engine, row.date).divide(new, 1)
        case = Case(row=attrs.evolve(row, device_count=new, tensor_parallel=tensor, pipeline_parallel=stages))
        yield Supposition(cause="devices", kind="devices", values={"new": new, "old": count}), case
    if SCOPE[row.scope].is_prompt and row.prompt_tokens:
        half, kept = row.prompt_tokens / 2.0, row.cached_tokens or 0.0
        cached = attrs.evolve(row, prompt_tokens=half, cached_tokens=kept + half)
        yield Supposition(cause="cache", kind="cached"), Case(row=cached)


def _suppose_copy(source: Source, row: Measurement, entry: HardwareEntry) -> Iterator[Supposed]:
    """Yield a configuration that copies the inputs from the host before each run, if the chip has a link to a host."""
    links = [one for one in read_known([entry.digest])[entry.digest].links if one.connects == "host"]
    links = [] if entry.architecture == "cpu" else links  # a processor's are its ports
    work = find_workloads(source, [(row.model, row.batch)])[row.model, row.batch]
    if links and not isinstance(work, str):
        enters = work.access_is_boundary & (work.access_role == ROLE_CODE["input"])
        sizes = dict(zip(work.access_tensor[enters].tolist(), work.access_tensor_bytes[enters].tolist(), strict=True))
        seconds = sum(sizes.values()) / links[0].bandwidth.value + links[0].latency.value
        values = {"size": sum(sizes.values()), "added_s": seconds}
        yield Supposition(cause="copy", kind="copied", values=values), Case(row=row, added_s=seconds)


def _suppose_kept(row: Measurement, entry: HardwareEntry) -> Iterator[Supposed]:
    """Yield a configuration whose weights and inputs stay in the last-level on-chip memory between calls.

    Yield nothing if that memory is no faster than the main memory.
    """
    hardware = read_known([entry.digest])[entry.digest]
    levels = [(one.name, one.bandwidth.value) for one in hardware.memory_levels if one.bandwidth is not None]
    if levels and levels[-1][1] > hardware.memory_bandwidth.value:
        name, rate = levels[-1]
        change = Supposition(cause="cache", kind="kept", values={"level": name, "rate": rate})
        yield change, Case(row=row, changes=(("memory_bandwidth", rate),))
