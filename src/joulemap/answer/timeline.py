"""What runs when as a model passes through the devices of a box: subgraphs and copies, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.answer.computed import told
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.box.candidate import Candidate
    from joulemap.box.problem import Problem
    from joulemap.box.run import Copy


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

    Devices take turns: a subgraph begins when the one before it is done and copies of what that made have come, so
    that the last event ends where the latency does, unless a power budget holds it back.
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
    now = 0

    def add(kind: str, subgraph: int, latency_fs: int, device: int, receiver: int | None, size: float | None) -> None:
        nonlocal now
        found.append(
            EventRow(
                placement=one.label,
                form=one.form,
                event_index=len(found),
                kind=kind,
                subgraph_index=subgraph,
                operations="" if kind == "copy" else names[subgraph],
                device=problem.members[device].name,
                receiver="" if receiver is None else problem.members[receiver].name,
                start_s=now / FS_PER_S,
                end_s=(now + latency_fs) / FS_PER_S,
                taken_s=latency_fs / FS_PER_S,
                copied_bytes=size,
            )
        )
        now += latency_fs

    for node, subgraph in enumerate(problem.subgraph.tolist()):
        add("subgraph", subgraph, taken.get(subgraph, 0), int(run.devices[node]), None, None)
        for copy in sent.get(subgraph, ()):
            add("copy", subgraph, copy.latency_fs, copy.start, copy.end, copy.byte_count)
    return found


def list_operations(problem: Problem) -> dict[int, str]:
    """Return what each subgraph computes, by its index."""
    names: dict[int, dict[str, None]] = {}
    work = problem.work
    for index, operation in zip(work.subgraph_index.tolist(), work.operation.tolist(), strict=True):
        names.setdefault(index, {})[operation] = None
    return {index: "+".join(some) for index, some in names.items()}
