"""Rows of a model over the devices of a box: placements, what devices have of the best, where subgraphs run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.answer.computed import told
from joulemap.answer.place.timeline import list_operations
from joulemap.box.doubt import half_width
from joulemap.domain.weight import label_precision
from joulemap.plan.selection import name_pair
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from joulemap.box.candidate import Candidate
    from joulemap.box.doubt import PlacedDoubt
    from joulemap.box.problem import Problem
    from joulemap.box.run import PlacedRun


@frozen(kw_only=True)
class PlacementRow:
    """A way to run the model on the box."""

    placement: str = told("devices that have a part")
    form: str = told("alone, split, pipeline or side by side")
    is_best: bool = told("whether it is the best for the goal")
    latency_s: float | None = told("of a batch by itself; none where it is refused", "s")
    latency_half_width: float | None = told("of the 80 % interval of its logarithm")
    throughput_per_s: float | None = told("samples, batch after batch", "1/s")
    throughput_half_width: float | None = told("of the 80 % interval of its logarithm")
    tokens_per_s: float | None = told("of a language model that decodes: tokens, pass after pass", "1/s")
    energy_j: float | None = told("of a batch, the whole box", "J")
    energy_half_width: float | None = told("of the 80 % interval of its logarithm")
    energy_per_inference_j: float | None = told("of a sample, the whole box", "J")
    average_power_w: float | None = told("of the whole box, batch after batch", "W")
    copy_s: float | None = told("of a batch, between devices", "s")
    copied_bytes: float | None = told("of a batch, between devices", "B")
    copy_count: int | None = told("values that one device hands another, of a batch")
    worse_probability: float | None = told("that the best is better than it; none of the best")
    limit: str = told("what the time between batches is")
    gap_fraction: float | None = told("that a placement which was not looked at could save at most", "1")
    refusal: str = told("why it cannot be; empty where it can")


@frozen(kw_only=True)
class DeviceRow:
    """What a device of the box has of the best placement."""

    device: str = told("name in the box")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    precision: str = told("that it computes at")
    subgraph_count: int = told("that it runs")
    busy_s: float = told("of a batch", "s")
    busy_fraction: float = told("of the time that a batch takes the box", "1")
    weight_bytes: int = told("that its memory holds", "B")
    activation_bytes: int = told("most that are alive at a time", "B")
    memory_fraction: float = told("of its memory", "1")
    energy_j: float = told("of a batch, its static and idle power included", "J")


@frozen(kw_only=True)
class SubgraphRow:
    """Where a subgraph runs."""

    subgraph_index: int = told("in the model")
    operations: str = told("what it computes")
    device: str = told("that runs it")
    latency_s: float = told("there", "s")
    other: str = told("the device that would take least time of the others; empty where none runs it")
    other_s: float | None = told("what that takes", "s")


def form_row(
    one: Candidate, best: Candidate, batch: int, *, doubt: PlacedDoubt | None, worse: float | None, tokens: float
) -> PlacementRow:
    """Return a candidate as a row; `tokens` are those of a batch, 0 for what decodes none."""
    run = one.run
    widths = (
        dict.fromkeys(("latency_half_width", "throughput_half_width", "energy_half_width"))
        if doubt is None
        else {
            "latency_half_width": half_width(doubt.latency),
            "throughput_half_width": half_width(doubt.interval),
            "energy_half_width": half_width(doubt.energy),
        }
    )
    return PlacementRow(
        placement=one.label,
        form=one.form,
        is_best=one is best,
        latency_s=None if one.refusal else one.latency_s,
        throughput_per_s=None if one.refusal else batch / one.interval_s,
        tokens_per_s=None if one.refusal or not tokens else tokens / one.interval_s,
        energy_j=None if one.refusal else one.energy_j,
        energy_per_inference_j=None if one.refusal else one.energy_j / batch,
        average_power_w=None if one.refusal else one.energy_j / one.interval_s,
        copy_s=None if run is None else run.copy_fs / FS_PER_S,
        copied_bytes=None if run is None else sum(copy.byte_count for copy in run.copies),
        copy_count=None if run is None else len(run.copies),
        worse_probability=worse,
        limit=one.limit,
        gap_fraction=None if one.refusal else one.gap,
        refusal=one.refusal,
        **widths,
    )


def list_devices(problem: Problem, run: PlacedRun | None) -> list[DeviceRow]:
    """Return what each device has of a placement; nothing of one side by side."""
    found = []
    for number, member in enumerate(problem.members if run is not None else ()):
        assert run is not None
        part, one = run.parts.get(number), member.configuration
        needed = part.weight_bytes + part.activation_bytes if part else 0
        busy_s = part.latency_fs / FS_PER_S if part else 0.0
        found.append(
            DeviceRow(
                device=member.name,
                hardware=name_pair(one.hardware, one.power_mode),
                precision=label_precision(one.precision, one.weight_precision or one.precision),
                subgraph_count=int((run.devices == number).sum()),
                busy_s=busy_s,
                busy_fraction=busy_s / (run.period_fs / FS_PER_S),
                weight_bytes=part.weight_bytes if part else 0,
                activation_bytes=part.activation_bytes if part else 0,
                memory_fraction=needed / member.hardware.memory_capacity.value,
                energy_j=sum(line.energy_fj for line in run.lines if line.device == member.name) / FJ_PER_J,
            )
        )
    return found


def list_subgraphs(problem: Problem, run: PlacedRun | None) -> list[SubgraphRow]:
    """Return where each subgraph of a placement runs; nothing of one side by side."""
    if run is None:
        return []
    names, found = list_operations(problem), []
    taken: dict[int, int] = {}
    for part in run.parts.values():
        taken |= dict(zip(part.subgraphs.subgraph_index.tolist(), part.subgraphs.latency_fs.tolist(), strict=True))
    for node, subgraph in enumerate(problem.subgraph.tolist()):
        own = int(run.devices[node])
        others = {at: problem.seconds[node, at] for at in range(len(problem.members)) if at != own}
        able = {at: float(seconds) for at, seconds in others.items() if seconds < float("inf")}
        other = min(able, key=lambda at: able[at], default=None)
        found.append(
            SubgraphRow(
                subgraph_index=subgraph,
                operations=names[subgraph],
                device=problem.members[own].name,
                latency_s=taken.get(subgraph, 0) / FS_PER_S,
                other="" if other is None else problem.members[other].name,
                other_s=None if other is None else able[other],
            )
        )
    return found
