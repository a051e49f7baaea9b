"""Event trace of a run for Perfetto and chrome://tracing: kernels, power and memory over time.

An operator is a slice, or an instant if it has no time of its own, as in the epilogue of another. The operators of a
subgraph that is one kernel are inside a slice for the kernel. The counter `power` is the energy of a kernel over its
time, so that the area under it is the energy of the batch. Times are on a grid of 2^-10 us (0.98 ns), which doubles
represent exactly. The end of a slice then equals the start of the next, also in floating-point sums. Exact times are in
the arguments.

Source: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.exchange.subject import Subject
from joulemap.generated.export import OperatorSpan
from joulemap.system.record import define

GRID: Final = 1024
"""Time grid points per microsecond."""

FS_PER_US: Final = 1_000_000_000

PROCESS: Final = 1
KERNELS: Final = 1
"""Thread id under which all slices are shown."""

PARTS: Final = ("compute", "memory", "control", "static")
"""Names of the parts into which each energy is split."""

OPERATOR: Final = ("operation", "kind", "aten", "module_path", "output_shape", "operator_index", "fusion_pattern")
"""Operator fields shown on its slice."""

SUBGRAPH: Final = ("subgraph", "subgraph_index", "bottleneck", "units_used_count", "units_total_count", "unit_name")
"""Subgraph fields shown on each slice of the subgraph."""

SUMMED: Final = ("kernel_count", "mac_count", "moved_bytes", "dram_bytes", "latency_fs", "energy_fj")
"""Fields that a slice sums over its operators, such as bytes and energy in femtojoules."""


def write_trace(subject: Subject, spans: Iterable[OperatorSpan], live_bytes: Mapping[int, int]) -> Iterator[bytes]:
    """Yield the JSON of a trace in pieces; `live_bytes` maps each operator index to the activation bytes in memory."""
    head = {"displayTimeUnit": "ns", "otherData": attrs.asdict(subject)}
    yield (_dump(head)[:-1] + ', "traceEvents": [\n').encode()
    before = ""
    for event in _list_events(subject, spans, live_bytes):
        yield (before + _dump(event)).encode()
        before = ",\n"
    yield b"\n]}\n"


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)


@define
class _Power:
    """Energy since a start time, emitted as average power when the next kernel with nonzero time begins."""

    start_fs: int = 0
    time_fs: int = 0
    parts_fj: list[int] = attrs.field(factory=lambda: [0] * len(PARTS))

    def add(self, kernel: Sequence[OperatorSpan], start_fs: int) -> Iterator[dict[str, Any]]:
        """Add a kernel, and yield the power counters of the time before it.

        A kernel without time adds its energy to the kernel before it.
        """
        time_fs = sum(span.latency_fs for span in kernel)
        if time_fs and self.time_fs:
            yield from self.emit()
            self.start_fs, self.time_fs, self.parts_fj = start_fs, 0, [0] * len(PARTS)
        self.time_fs += time_fs
        for span in kernel:
            for index, part in enumerate((span.compute_fj, span.memory_fj, span.control_fj, span.static_fj)):
                self.parts_fj[index] += part

    def emit(self) -> Iterator[dict[str, Any]]:
        """Yield counter events with the average power in watts, in total and by part."""
        if self.time_fs:
            yield _count("power (W)", self.start_fs, {"total": sum(self.parts_fj) / self.time_fs})
            by_part = zip(PARTS, (part / self.time_fs for part in self.parts_fj), strict=True)
            yield _count("power by part (W)", self.start_fs, dict(by_part))


def _list_events(
    subject: Subject, spans: Iterable[OperatorSpan], live_bytes: Mapping[int, int]
) -> Iterator[dict[str, Any]]:
    for name, value in (("process_name", subject.title), ("thread_name", "kernels")):
        yield {"ph": "M", "name": name, "pid": PROCESS, "tid": KERNELS, "args": {"name": value}}
    start_fs, power = 0, _Power()
    for _, group in itertools.groupby(spans, lambda span: span.kernel_index):
        kernel = list(group)
        yield from power.add(kernel, start_fs)
        activations = max(live_bytes[span.operator_index] for span in kernel)
        memory = {"weights": subject.weight_bytes, "activations": activations}
        yield _count("memory (B)", start_fs, memory)
        if kernel[0].is_fused:
            yield _draw_kernel(kernel, start_fs)
        for span in kernel:
            fields = {name: getattr(span, name) for name in OPERATOR}
            yield _slice(span.name, "operator", (span,), start_fs, fields)
            start_fs += span.latency_fs
    yield from power.emit()
    yield _count("power (W)", start_fs, {"total": 0.0})
    yield _count("power by part (W)", start_fs, dict.fromkeys(PARTS, 0.0))


def _count(name: str, start_fs: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": PROCESS, "ts": _round_to_grid(start_fs) / GRID, "args": values}


def _draw_kernel(kernel: Sequence[OperatorSpan], start_fs: int) -> dict[str, Any]:
    """Return the slice of a subgraph that runs as one kernel."""
    first = kernel[0]
    fields = {"fusion_pattern": first.fusion_pattern, "operator_count": len(kernel)}
    return _slice(f"{first.subgraph} [{first.fusion_pattern}]", "kernel", kernel, start_fs, fields)


def _slice(
    name: str, category: str, spans: Sequence[OperatorSpan], start_fs: int, fields: Mapping[str, object]
) -> dict[str, Any]:
    """Return a slice event that starts at `start_fs`, with sums over its operators as arguments."""
    shared = {name: getattr(spans[0], name) for name in SUBGRAPH}
    summed = {name: sum(getattr(span, name) for span in spans) for name in SUMMED}
    start, end = _round_to_grid(start_fs), _round_to_grid(start_fs + summed["latency_fs"])
    shape = {"ph": "X", "dur": (end - start) / GRID} if end > start else {"ph": "i", "s": "t"}
    return {
        **shape,
        "name": name,
        "cat": category,
        "pid": PROCESS,
        "tid": KERNELS,
        "ts": start / GRID,
        "args": {**fields, **shared, **summed, "start_fs": start_fs},
    }


def _round_to_grid(time_fs: int) -> int:
    """Return the grid point nearest to a time in femtoseconds."""
    return (time_fs * GRID + FS_PER_US // 2) // FS_PER_US
