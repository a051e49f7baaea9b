"""Columns of decoder passes, without building every layer and every cached length.

Layers repeat. Every number of a pass is linear in the index of a layer and in the number of layers, so a full pass is
extrapolated from two passes with few layers. A step of a fixed number of tokens is linear in the cached tokens between
the lengths at which a window is full, so two lengths determine all lengths between them.

A folded pass has one period of layers, which represents all periods, so that totals are those of the full pass.

Subgraphs of a pass have a name in every layer; their times come from one period of layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from joulemap.physics import NO_KEY, Configuration, Evaluator, Hardware, WorkloadColumns, columns_of
from joulemap.physics.fuse import fuse
from joulemap.system import FS_PER_S, frozen
from joulemap.wing.decoder.network.config import Decoder, Mixer
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import build_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray


LONGEST: Final = 12
"""Maximum layers of a repeated pattern that is searched for."""

NAMED: Final = tuple(
    field.name for field in attrs.fields(WorkloadColumns) if field.name not in ("origin", "kernel_group")
)


Asked = tuple[DecoderPass, int]
"""(pass, number of sequences)."""


@frozen
class Repeat:
    """Repetition in a decoder's layers: from layer `head` on, the same `period` layers occur `count` times."""

    head: int
    period: int
    count: int

    def cut(self, decoder: Decoder, count: int) -> Decoder:
        """Return the decoder with `count` periods in place of all."""
        start, end = self.head, self.head + self.period * self.count
        layers = decoder.layers
        kept = (*layers[:start], *layers[start : start + self.period] * count, *layers[end:])
        return attrs.evolve(decoder, layers=kept)


def find_repeat(decoder: Decoder, *, is_folded: bool = False) -> Repeat | None:
    """Return the repetition that leaves the fewest layers to build; None if none helps.

    At least one layer stays on each side. A pass is built with one period and with two; a folded pass is built with
    one. Models with layers that use the caches of other layers are built in full. The layer before the first period
    must equal the layer before every other period, so that it fuses in the same way.
    """
    if decoder.shares_caches:
        return None
    layers = decoder.layers
    same = list(range(len(layers)))
    for first, layer in enumerate(layers):
        same[first] = next(one for one in range(first + 1) if layers[one] == layer)
    best, least = None, 0.7 * len(layers)
    fewest = 2 if is_folded else 3
    for period in range(1, min(LONGEST, len(layers) // fewest) + 1):
        first = 1
        while first + 2 * period < len(layers):
            end = first + period
            while end < len(layers) - 1 and same[end] == same[end - period]:
                end += 1
            start = first + (same[first - 1] != same[first + period - 1])
            count = (end - start) // period
            beside = len(layers) - period * count
            needed = beside + period if is_folded else 2 * beside + 3 * period
            if count >= fewest and needed < least:
                best, least = Repeat(start, period, count), needed
            first = max(end - period, first) + 1
    return best


def describe_columns(decoder: Decoder, step: DecoderPass, batch: int, *, is_folded: bool = False) -> WorkloadColumns:
    """Return the columns of a pass of `batch` sequences, identical to those of `describe_step` unless `is_folded`."""
    decoder = step.cut(decoder)
    repeat = find_repeat(decoder, is_folded=is_folded)
    if repeat is None:
        return _columns(decoder, step, batch)[0]
    one, marks = _columns(repeat.cut(decoder, 1), step, batch, decoder)
    start, end = marks[repeat.head - 1], marks[repeat.head + repeat.period - 1]
    if is_folded:
        return _fold(one, start, end, repeat.count)
    two, _ = _columns(repeat.cut(decoder, 2), step, batch, decoder)
    more = repeat.count - 1
    names = [name for name in NAMED if isinstance(getattr(one, name), np.ndarray)]
    changes: dict[str, Any] = {
        name: _extend(getattr(one, name), getattr(two, name), start[_find_kind(name)], end[_find_kind(name)], more)
        for name in names
    }
    return attrs.evolve(one, **changes, weight_bytes=one.weight_bytes + more * (two.weight_bytes - one.weight_bytes))


def _fold(work: WorkloadColumns, start: Sequence[int], end: Sequence[int], times: int) -> WorkloadColumns:
    """Return the columns of a pass whose only period of layers represents `times` periods.

    Weights of a period add up over these periods, and so do its results that no later layer reads, such as caches: they
    are alive until the end.
    """
    equal, buffers = np.ones(work.operator_count), np.ones(len(work.buffer_bytes))
    equal[start[0] : end[0]] = times
    last = np.zeros(len(buffers), dtype=work.access_operator.dtype)
    has_buffer = work.access_buffer >= 0
    np.maximum.at(last, work.access_buffer[has_buffer], work.access_operator[has_buffer])
    period = slice(start[2], end[2])
    is_result = (work.buffer_death == work.operator_count - 1) & (last < end[0])
    buffers[period] = np.where(is_result[period], times, 1.0)
    folded = attrs.evolve(work, times=equal, buffer_times=buffers)
    weights = folded.access_tensor_bytes * folded.access_times
    return attrs.evolve(folded, weight_bytes=round(float(weights[folded.first_reads].sum())))


def _find_kind(name: str) -> int:
    """Return the index into a mark of `Graph.marks` that applies to a column: 0 operators, 1 accesses, 2 buffers."""
    return 1 if name.startswith("access_") else 2 if name.startswith("buffer_") else 0


def _columns(
    decoder: Decoder, step: DecoderPass, batch: int, whole: Decoder | None = None
) -> tuple[WorkloadColumns, list[tuple[int, int, int]]]:
    """Return the columns of a whole pass, and the number of operators, accesses and buffers at each layer's end."""
    graph = build_graph(decoder, step, batch, whole=whole)
    return columns_of(fuse(graph.form(NO_KEY, "", batch, ()))), graph.marks


def _extend(one: NDArray[Any], two: NDArray[Any], start: int, end: int, more: int) -> NDArray[Any]:
    """Return a column of 1 + `more` periods, extrapolated from columns of one and two periods.

    Each number is linear in the index of its period and in the number of periods.
    """
    size = end - start
    block, after = two[start:end], two[end : end + size]
    if not np.issubdtype(one.dtype, np.number):
        return np.concatenate((one[:end], *([block] * more), one[end:]))
    grown = np.concatenate((two[:end], two[end + size :]))
    base = one + more * (grown - one)
    repeats = np.arange(1, more + 1, dtype=np.int64)[:, np.newaxis]
    repeated = base[start:end][np.newaxis, :] + repeats * (after - block)[np.newaxis, :]
    return np.concatenate((base[:end], repeated.ravel(), base[end:]))


def pass_columns(decoder: Decoder, asked: Iterable[Asked], *, is_folded: bool = False) -> dict[Asked, WorkloadColumns]:
    """Return the columns of passes; only a few passes are built, and all others are interpolated.

    Passes that differ in the cached length are built at the shortest and the longest one. Passes that differ only in
    the number of sequences are built for the fewest and the most.
    """
    groups: dict[tuple[DecoderPass, int, int], list[DecoderPass]] = {}
    for step, count in dict.fromkeys(asked):
        groups.setdefault((attrs.evolve(step, cached=0), _stretch(decoder, step), count), []).append(step)
    ends: dict[DecoderPass, set[int]] = {}
    for (_, _, count), group in groups.items():
        group.sort(key=lambda step: step.cached)
        for end in (group[0], group[-1]):
            ends.setdefault(end, set()).add(count)
    columns: dict[Asked, WorkloadColumns] = {}
    for step, counts in ends.items():
        _fill_counts(columns, decoder, step, sorted(counts), is_folded)
    for (_, _, count), group in groups.items():
        _fill(columns, decoder, group, count, is_folded)
    return columns


def _fill_counts(
    columns: dict[Asked, WorkloadColumns], decoder: Decoder, step: DecoderPass, counts: Sequence[int], is_folded: bool
) -> None:
    """Add a pass at several numbers of sequences to `columns`.

    Columns are interpolated, unless routed experts or data-parallel groups make them nonlinear in the sequences.
    """
    first, last = counts[0], counts[-1]
    ends = {first, last}
    columns |= {(step, count): describe_columns(decoder, step, count, is_folded=is_folded) for count in ends}
    is_linear = (
        step.data_devices == 1 and not decoder.is_routed and _is_alike(columns[step, first], columns[step, last])
    )
    for count in counts[1:-1]:
        if is_linear:
            between = _between(columns[step, first], columns[step, last], (count - first) / (last - first))
            columns[step, count] = attrs.evolve(between, batch=count)
        else:
            columns[step, count] = describe_columns(decoder, step, count, is_folded=is_folded)


def _fill(
    columns: dict[Asked, WorkloadColumns], decoder: Decoder, group: Sequence[DecoderPass], count: int, is_folded: bool
) -> None:
    """Add passes, ordered by cached length, to `columns`.

    They are interpolated if the first and the last fuse alike; else the group is split in half.
    """
    first, last = group[0], group[-1]
    for end in (first, last):
        if (end, count) not in columns:
            columns[end, count] = describe_columns(decoder, end, count, is_folded=is_folded)
    low, high = columns[first, count], columns[last, count]
    if len(group) > 2 and not _is_alike(low, high):
        middle = len(group) // 2
        _fill(columns, decoder, group[: middle + 1], count, is_folded)
        _fill(columns, decoder, group[middle:], count, is_folded)
        return
    for step in group[1:-1]:
        columns[step, count] = _between(low, high, (step.cached - first.cached) / (last.cached - first.cached))


def _is_alike(one: WorkloadColumns, other: WorkloadColumns) -> bool:
    """Return whether two passes have the same operators, fused in the same way."""
    return len(one.kind) == len(other.kind) and np.array_equal(one.subgraph_index, other.subgraph_index)


def _list_limits(mixer: Mixer) -> tuple[int, int]:
    """Return the numbers of tokens at which the window and the selection of a mixer are full; 0 for unlimited."""
    return getattr(mixer, "window", 0), getattr(mixer, "selected", 0) * getattr(mixer, "ratio", 1)


def _stretch(decoder: Decoder, step: DecoderPass) -> int:
    """Return a key of a cached length; between lengths with equal keys, a pass is linear in the cached tokens."""
    cached, tokens = step.cached, step.tokens
    if not cached:
        return -1
    windows = {limit for layer in decoder.layers for one in layer.mixers for limit in _list_limits(one)} - {0}
    if any(window - tokens < cached < window for window in windows):
        return cached + len(windows) + 1
    return sum(cached >= window for window in windows)


def _between(one: WorkloadColumns, other: WorkloadColumns, share: float) -> WorkloadColumns:
    """Return the columns interpolated between two passes, at a share of the way from `one` to `other`."""
    changes: dict[str, Any] = {}
    for name in NAMED:
        low, high = getattr(one, name), getattr(other, name)
        if isinstance(low, np.ndarray) and low.dtype == np.float64 and low is not high:
            changes[name] = low + np.rint(share * (high - low))
    return attrs.evolve(one, **changes)


LAYER = re.compile(r"(layers\.)(\d+)(\..*)")
"""Name of a subgraph in a layer."""


@frozen(kw_only=True, eq=False)
class LayeredPass:
    """Workload of a pass, and where it has the subgraphs of all layers."""

    work: WorkloadColumns
    rows: Mapping[str, int]
    """Name of each subgraph of the pass, in order -> the equal subgraph of `work`."""

    def time(self, chips: Sequence[Hardware], configuration: Configuration) -> dict[str, float]:
        """Return the seconds of each subgraph on the chip on which the pass takes the least time."""
        evaluator = Evaluator(self.work)
        runs = [evaluator.evaluate(chip, configuration) for chip in chips]
        latency = [
            sum(times[row] for row in self.rows.values()) for times in (one.subgraphs.latency_fs for one in runs)
        ]
        seconds = runs[latency.index(min(latency))].subgraphs.latency_fs / FS_PER_S
        return {name: float(seconds[row]) for name, row in self.rows.items()}


def name_pass(decoder: Decoder, asked: Asked, *, is_folded: bool = True) -> LayeredPass:
    """Return the workload of a pass with its subgraphs; folded only if each period of its layers has its own."""
    step, batch = asked
    decoder = step.cut(decoder)
    repeat = find_repeat(decoder, is_folded=True) if is_folded else None
    if repeat is not None:
        graph = build_graph(repeat.cut(decoder, 1), step, batch, whole=decoder)
        names = [group.name for group in fuse(graph.form(NO_KEY, "", batch, ())).subgraphs]
        if rows := _repeat_names(names, repeat):
            return LayeredPass(work=describe_columns(decoder, step, batch, is_folded=True), rows=rows)
    workload = fuse(build_graph(decoder, step, batch).form(NO_KEY, "", batch, ()))
    return LayeredPass(
        work=columns_of(workload), rows={group.name: row for row, group in enumerate(workload.subgraphs)}
    )


def _repeat_names(names: Sequence[str], repeat: Repeat) -> dict[str, int]:
    """Return name of each subgraph of all layers -> its row, given the names with one period; empty if mixed."""
    layers = [int(found[2]) if (found := LAYER.fullmatch(name)) else -1 for name in names]
    period = [row for row, layer in enumerate(layers) if repeat.head <= layer < repeat.head + repeat.period]
    if not period or period[-1] - period[0] + 1 != len(period):
        return {}
    copies = [(row, copy) for copy in range(repeat.count) for row in period]
    before, after = range(period[0]), range(period[-1] + 1, len(names))
    places = [*((row, 0) for row in before), *copies, *((row, repeat.count - 1) for row in after)]
    return {_shift(names[row], copy * repeat.period): row for row, copy in places}


def _shift(name: str, layers: int) -> str:
    """Return the name of the same subgraph so many layers later; unchanged outside of layers."""
    found = LAYER.fullmatch(name)
    return name if found is None else f"{found[1]}{int(found[2]) + layers}{found[3]}"
