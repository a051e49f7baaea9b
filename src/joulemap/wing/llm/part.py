"""Subgraphs of a pass by name, without evaluating every layer.

pass ─► one period of layers, folded ─► times of its subgraphs ─► a name for each subgraph of every layer
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from joulemap.physics import NO_KEY, Evaluator, WorkloadColumns, columns_of
from joulemap.physics.fuse import fuse
from joulemap.system import FS_PER_S, frozen
from joulemap.wing.llm.decoder.column import describe_columns, find_repeat
from joulemap.wing.llm.decoder.layer import build_graph

if TYPE_CHECKING:
    from joulemap.physics import Configuration, Hardware
    from joulemap.wing.llm.decoder.column import Asked, Repeat
    from joulemap.wing.llm.decoder.config import Decoder

LAYER = re.compile(r"(layers\.)(\d+)(\..*)")
"""Name of a subgraph in a layer."""


@frozen(kw_only=True, eq=False)
class NamedPass:
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


def name_pass(decoder: Decoder, asked: Asked, *, is_folded: bool = True) -> NamedPass:
    """Return the workload of a pass with its subgraphs; folded only if each period of its layers has its own."""
    step, batch = asked
    decoder = step.cut(decoder)
    repeat = find_repeat(decoder, is_folded=True) if is_folded else None
    if repeat is not None:
        graph = build_graph(repeat.cut(decoder, 1), step, batch, whole=decoder)
        names = [group.name for group in fuse(graph.form(NO_KEY, "", batch, ())).subgraphs]
        if rows := _repeat_names(names, repeat):
            return NamedPass(work=describe_columns(decoder, step, batch, is_folded=True), rows=rows)
    workload = fuse(build_graph(decoder, step, batch).form(NO_KEY, "", batch, ()))
    return NamedPass(work=columns_of(workload), rows={group.name: row for row, group in enumerate(workload.subgraphs)})


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
