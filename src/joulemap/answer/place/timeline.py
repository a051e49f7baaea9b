"""What runs when as a batch passes through the devices of a box: subgraphs and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from joulemap.answer.computed import told
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.box.candidate import Candidate
    from joulemap.box.line import Copy
    from joulemap.box.problem import Problem


@frozen(kw_only=True)
class EventRow:
    """A subgraph that runs, or a value on its way from one device to another."""

    placement: str = told("devices that have a part")
    form: str = told("alone, split or pipeline")
    event_index: int = told("in the order of time")
    kind: str = told("subgraph or copy")
    subgraph_index: int = told("that runs, or whose value is sent")
    operations: str = told("what it computes; empty of a copy")
    device: str = told("that runs it, or sends")
    receiver: str = told("of a copy; empty otherwise")
    start_s: float = told("of a batch by itself", "s")
    end_s: float = told("of a batch by itself", "s")
    taken_s: float = told("from start to end", "s")
    copied_bytes: float | None = told("of a copy", "B")


def list_events(problem: Problem, one: Candidate) -> list[EventRow]:
    """Return what happens to one batch that no other is beside; nothing where devices take batches of their own.

    The last event ends where the latency does, unless a power budget holds it back.
    """
    run = one.run
    if run is None:
        return []
    taken: dict[int, int] = {}
    for part in run.parts.values():
        taken |= dict(zip(part.subgraphs.subgraph_index.tolist(), part.subgraphs.latency_fs.tolist(), strict=True))
    sent: dict[int, list[Copy]] = {}
    for copy in run.copies:
        sent.setdefault(copy.subgraph, []).append(copy)
    names = list_operations(problem)
    found: list[EventRow] = []

    def add(start_fs: int, latency_fs: int, subgraph: int, device: int, copy: Copy | None = None) -> None:
        found.append(
            EventRow(
                placement=one.label,
                form=one.form,
                event_index=len(found),
                kind="copy" if copy else "subgraph",
                subgraph_index=subgraph,
                operations="" if copy else names[subgraph],
                device=problem.members[device].name,
                receiver="" if copy is None else problem.members[copy.end].name,
                start_s=start_fs / FS_PER_S,
                end_s=(start_fs + latency_fs) / FS_PER_S,
                taken_s=latency_fs / FS_PER_S,
                copied_bytes=None if copy is None else copy.byte_count,
            )
        )

    for node, subgraph in enumerate(problem.subgraph.tolist()):
        add(int(run.start_fs[node]), taken.get(subgraph, 0), subgraph, int(run.devices[node]))
        for copy in sent.get(subgraph, ()):
            add(copy.start_fs, copy.latency_fs, subgraph, copy.start, copy)
    return found


def list_operations(problem: Problem) -> dict[int, str]:
    """Return what each subgraph computes, by its index."""
    names: dict[int, dict[str, None]] = {}
    work = problem.work
    for index, operation in zip(work.subgraph_index.tolist(), work.operation.tolist(), strict=True):
        names.setdefault(index, {})[operation] = None
    return {index: "+".join(some) for index, some in names.items()}


def list_timeline(problem: Problem, found: Sequence[Candidate]) -> list[EventRow]:
    """Return what happens in the best placement, and in the best mixture where that is another."""
    run = [one for one in found if one.run is not None]
    mixed = [one for one in run if one.form != "alone"]
    shown = {id(one): one for one in (*run[:1], *mixed[:1])}
    return [row for one in shown.values() for row in list_events(problem, one)]
