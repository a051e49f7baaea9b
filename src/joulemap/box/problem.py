"""What is to be placed: subgraphs in an order in which they can run, and what each device takes for each.

    cost of a placement = sum over subgraphs of cost(subgraph, device)
                        + sum over values and devices that read them of copy(value, from who made it, to the device)

A value is sent once to each device that reads it, however many subgraphs do:

    copy = way + command + conversion + what it costs both devices that the value leaves the chip and enters another

What a device takes for a subgraph is its part of a run of all that the device can run, with memory enough; what a value
costs that leaves or enters is the difference to a run in which every value does, in proportion to bytes. Runs of the
parts themselves say what a placement takes in the end (`box.run`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.box.member import Member, Ways, time_way
from joulemap.domain.configuration import MERGING
from joulemap.model.fallback import LEAKS, cross, find_fallen, find_writers, split_work
from joulemap.model.pipeline import Evaluator
from joulemap.model.run import RunColumns
from joulemap.model.workload import (
    KIND_CODE,
    ROLE_CODE,
    Booleans,
    Floats,
    Integers,
    WorkloadColumns,
    precision_scale,
    sum_by,
)
from joulemap.system.errors import JoulemapError, UnsupportedError
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J, FS_PER_S

ENOUGH: Final = 1e18
"""Bytes that any model fits in."""


@define(kw_only=True, eq=False, slots=False)
class Problem:
    """Subgraphs, values and devices. Times in seconds, energies in joules but for static power."""

    work: WorkloadColumns
    members: tuple[Member, ...]
    ways: Ways
    subgraph: Integers
    """Of each node: its subgraph in the workload."""
    seconds: Floats
    """Node x device; infinite where the device cannot run it."""
    paced_s: Floats
    """The same, of one batch among others that follow it on the device."""
    joules: Floats
    """Node x device, without static power."""
    dram_bytes: Floats
    """Node x device."""
    weight_bytes: Floats
    """Node x device: of weights that no node before it reads."""
    activation_bytes: Floats
    """Of each device, the most that are alive at a time."""
    maker: Integers
    """Of each value: the node that makes it."""
    readers: tuple[tuple[int, ...], ...]
    """Of each value: the nodes that read it."""
    value_bytes: Floats
    """Value x device: as that device keeps it."""
    leave_s: Floats
    """Value x device: what the device takes longer where the value leaves it."""
    leave_j: Floats
    enter_s: Floats
    """The same where it enters."""
    enter_j: Floats
    refusals: tuple[str, ...]
    """Of each device: why it runs nothing; empty where it runs something."""

    @property
    def node_count(self) -> int:
        """Subgraphs that compute."""
        return len(self.subgraph)

    @cached_property
    def reads(self) -> list[list[int]]:
        """The values that each node reads."""
        found: list[list[int]] = [[] for _ in range(self.node_count)]
        for value, nodes in enumerate(self.readers):
            for node in nodes:
                found[node].append(value)
        return found

    @cached_property
    def makes(self) -> list[list[int]]:
        """The values that each node makes."""
        found: list[list[int]] = [[] for _ in range(self.node_count)]
        for value, node in enumerate(self.maker.tolist()):
            found[node].append(value)
        return found

    @cached_property
    def kinds(self) -> dict[str, list[int]]:
        """Device of the box -> its members, alike."""
        found: dict[str, list[int]] = {}
        for number, member in enumerate(self.members):
            found.setdefault(member.device.name, []).append(number)
        return found

    @cached_property
    def can_run(self) -> Booleans:
        """Node x device."""
        mask: Booleans = np.isfinite(self.seconds)
        return mask

    @cached_property
    def way_s(self) -> Floats:
        """Value x from x to: seconds of links, commands and conversions; 0 within a device, infinite without a way."""
        return self._pass(lambda sent, start, end: time_copy(self, sent, start, end))

    @cached_property
    def copy_s(self) -> Floats:
        """The same with what both devices take longer."""
        return self._with_ends(self.way_s, self.leave_s, self.enter_s)

    @cached_property
    def copy_j(self) -> Floats:
        """Value x from x to: joules of links and conversions, and what both devices take more."""

        def price(sent: Floats, start: int, end: int) -> Floats:
            way, kept = self.ways.hops[start, end], self.value_bytes[:, end]
            energy = sent * sum(hop.fj_per_byte for hop in way)
            if converts(self.members[start], self.members[end]):
                read, write = conversion_fj(self.members[end])
                energy = energy + sent * read + kept * write
            return energy / FJ_PER_J

        return self._with_ends(self._pass(price), self.leave_j, self.enter_j)

    def _pass(self, price: Callable[[Floats, int, int], Floats]) -> Floats:
        count = len(self.members)
        found = np.zeros((len(self.maker), count, count))
        for start in range(count):
            for end in range(count):
                if start != end:
                    has_way = self.ways.reaches(start, end)
                    found[:, start, end] = price(self.value_bytes[:, start], start, end) if has_way else np.inf
        return found

    def _with_ends(self, way: Floats, leave: Floats, enter: Floats) -> Floats:
        others = ~np.eye(len(self.members), dtype=bool)
        return way + np.where(others, leave[:, :, None] + enter[:, None, :], 0.0)


def time_copy(problem: Problem, sent: Floats, start: int, end: int) -> Floats:
    """Return how long copies of so many bytes take that there is a way for, until the receiver works on them."""
    way, receiver = problem.ways.hops[start, end], problem.members[end]
    fixed = time_way(way, 0.0)
    seconds = fixed + sent * (time_way(way, 1.0) - fixed) + receiver.hardware.coefficient("host_launch")
    if converts(problem.members[start], receiver):
        seconds = seconds + (sent + problem.value_bytes[:, end]) / memory_rate(receiver)
    return seconds


def converts(first: Member, second: Member) -> bool:
    """Whether what one device hands to another is made anew there: of another precision or layout."""
    return (
        first.configuration.precision != second.configuration.precision or first.device.layout != second.device.layout
    )


def memory_rate(member: Member) -> float:
    """Return the bytes per second that a device streams through its memory."""
    efficiency = member.hardware.coefficients.get("dram_efficiency")
    return member.hardware.memory_bandwidth.value * (efficiency.value if efficiency else 1.0)


def conversion_fj(member: Member) -> tuple[float, float]:
    """Return what a byte read and one written take, where a device converts what it is sent."""
    reference = member.hardware.reference
    places = [reference.position(("dram", action)) for action in ("read", "write")]
    read, write = (0.0 if at is None else reference.prices_fj[at] for at in places)
    return read, write


def pose(work: WorkloadColumns, members: Sequence[Member], ways: Ways) -> Problem:
    """Return a workload to be placed on devices.

    UnsupportedError for an operator that none of them runs, or where none runs anything.
    """
    is_fused = members[0].configuration.runtime in MERGING
    computed = (work.kind != KIND_CODE["view"]) & ~(work.is_foldable & is_fused)
    maker_of, pairs, traced_bytes, items = _find_values(work, computed)
    order = _sort(np.unique(work.subgraph_index[computed]), maker_of, pairs)
    place = np.full(work.subgraph_count, -1)
    place[order] = np.arange(len(order))
    shape = len(order), len(members)
    columns = {name: np.full(shape, np.inf) for name in ("seconds", "paced_s", "joules")}
    columns |= {name: np.zeros(shape) for name in ("dram_bytes", "weight_bytes", "longer_s", "more_j")}
    activations, refusals = np.zeros(len(members)), [""] * len(members)
    lacking: dict[str, None] = {}
    for number, member in enumerate(members):
        odd = np.zeros(work.operator_count, dtype=bool)
        if member.hardware.compiler is not None:
            odd = find_fallen(work, attrs.evolve(member.hardware.compiler, cut="each"))
            lacking |= dict.fromkeys(work.operation[odd].tolist())
        bad = np.zeros(work.subgraph_count, dtype=bool)
        bad[work.subgraph_index[odd & computed]] = True
        left = bad[work.subgraph_index]
        try:
            run = run_all(work, member, left)
            apart = run_all(cross(work, work.subgraph_index), member, left)
        except JoulemapError as error:
            refusals[number] = str(error)
            continue
        rows = place[run.subgraphs.subgraph_index]
        mine = (rows >= 0) & ~bad[run.subgraphs.subgraph_index]
        rows, some = rows[mine], run.subgraphs.subgraph_index[mine]
        columns["seconds"][rows, number] = run.subgraphs.latency_fs[mine] / FS_PER_S
        interval_fs = run.operators.interval_fs.astype(np.float64)
        paced = sum_by(run.operators.subgraph_index, interval_fs, work.subgraph_count)
        columns["paced_s"][rows, number] = paced[some] / FS_PER_S
        columns["joules"][rows, number] = dynamic_fj(run, work.subgraph_count)[some] / FJ_PER_J
        columns["dram_bytes"][rows, number] = run.subgraphs.dram_bytes[mine]
        longer_fs = apart.subgraphs.latency_fs[mine] - run.subgraphs.latency_fs[mine]
        columns["longer_s"][rows, number] = np.maximum(longer_fs, 0) / FS_PER_S
        more_fj = dynamic_fj(apart, work.subgraph_count) - dynamic_fj(run, work.subgraph_count)
        columns["more_j"][rows, number] = np.maximum(more_fj[some], 0.0) / FJ_PER_J
        weights = _weight_bytes(work, member)
        columns["weight_bytes"][:, number] = weights[order]
        activations[number] = run.activation_bytes
    maker, readers = place[maker_of], _list_readers(pairs, place, len(maker_of))
    ends = {
        f"{side}_{unit}": column
        for unit, name in (("s", "longer_s"), ("j", "more_j"))
        for side, column in zip(
            ("leave", "enter"), _share_ends(columns.pop(name), traced_bytes, maker, readers), strict=True
        )
    }
    problem = Problem(
        work=work,
        members=tuple(members),
        ways=ways,
        subgraph=order,
        activation_bytes=activations,
        maker=maker,
        readers=readers,
        value_bytes=np.stack(
            [traced_bytes * precision_scale(items, one.configuration.precision) for one in members], axis=1
        ),
        refusals=tuple(refusals),
        **ends,
        **columns,
    )
    _check(problem, tuple(lacking))
    return problem


def run_all(work: WorkloadColumns, member: Member, left: Booleans) -> RunColumns:
    """Return the run of all operators that are not left out on one device, with memory enough. Raises as `evaluate`."""
    roomy = attrs.evolve(member.hardware.memory_capacity, value=ENOUGH)
    hardware = attrs.evolve(member.hardware, compiler=None, memory_capacity=roomy)
    evaluator = Evaluator(*split_work(work, left)[0]) if left.any() else Evaluator(work)
    return evaluator.evaluate(hardware, member.configuration)


def dynamic_fj(run: RunColumns, subgraph_count: int) -> Floats:
    """Return what each subgraph takes, but for static power."""
    kept = is_dynamic(run)
    row = np.searchsorted(run.operators.operator_index, run.ledger.operator_index[kept])
    owner = run.operators.subgraph_index[row]
    return sum_by(owner, run.ledger.energy_fj[kept].astype(np.float64), subgraph_count)


def is_dynamic(run: RunColumns) -> Booleans:
    """Return which lines of a run's ledger are no leakage."""
    leaks = [run.hardware.reference.position(key) for key in LEAKS]
    mask: Booleans = ~np.isin(run.ledger.action_index, [at for at in leaks if at is not None])
    return mask


def _weight_bytes(work: WorkloadColumns, member: Member) -> Floats:
    """Return the bytes of the weights that each subgraph is the first to read, as a device stores them."""
    reads = work.first_reads
    configuration = member.configuration
    scale = work.stored_scale(configuration.precision, configuration.weight_precision)
    owner = work.subgraph_index[work.access_operator[reads]]
    return sum_by(owner, (work.access_tensor_bytes * scale)[reads], work.subgraph_count)


def _find_values(work: WorkloadColumns, computed: Booleans) -> tuple[Integers, Integers, Floats, Floats]:
    """Return what subgraphs hand to others: who makes each value, (value, who reads it), traced bytes, bytes an item.

    A value is what one operator leaves in one buffer.
    """
    writer = find_writers(work)
    owner = work.subgraph_index
    read = (writer >= 0) & computed[writer] & computed[work.access_operator]
    read &= owner[writer] != owner[work.access_operator]
    rows = np.flatnonzero(read)
    key = work.access_buffer[rows] * (work.operator_count + 1) + writer[rows]
    values, first, number = np.unique(key, return_index=True, return_inverse=True)
    maker_operator = writer[rows[first]]
    outputs = np.flatnonzero((work.access_role == ROLE_CODE["output"]) & (work.access_buffer >= 0))
    made = work.access_buffer[outputs] * (work.operator_count + 1) + work.access_operator[outputs]
    traced, items = np.zeros(len(values)), np.ones(len(values))
    at = np.minimum(np.searchsorted(values, made), max(len(values) - 1, 0))
    is_one = values[at] == made if len(values) else np.zeros(len(made), dtype=bool)
    np.maximum.at(traced, at[is_one], work.access_bytes[outputs[is_one]])
    items[at[is_one]] = work.access_item_bytes[outputs[is_one]]
    pairs = np.unique(np.stack([number.ravel(), owner[work.access_operator[rows]]]), axis=1)
    return owner[maker_operator], pairs, traced, items


def _share_ends(
    more: Floats, value_bytes: Floats, maker: Integers, readers: Sequence[Sequence[int]]
) -> tuple[Floats, Floats]:
    """Return what of the nodes' extra cost each value has as it leaves its maker, and as it enters a reader."""
    crossing = np.zeros(len(more))
    np.add.at(crossing, maker, value_bytes)
    for value, nodes in enumerate(readers):
        crossing[list(nodes)] += value_bytes[value]
    each = more / np.maximum(crossing, 1.0)[:, None]
    enter = np.array([each[list(nodes)].mean(axis=0) for nodes in readers]).reshape(len(maker), more.shape[1])
    return each[maker] * value_bytes[:, None], enter * value_bytes[:, None]


def _sort(nodes: Integers, maker: Integers, pairs: Integers) -> Integers:
    """Return subgraphs in an order in which each follows those that it reads of, else as in the model."""
    waits = dict.fromkeys(nodes.tolist(), 0)
    follow: dict[int, list[int]] = {node: [] for node in waits}
    for before, after in sorted({(int(maker[value]), int(reader)) for value, reader in pairs.T}):
        follow[before].append(after)
        waits[after] += 1
    ready = [node for node, count in waits.items() if not count]
    heapq.heapify(ready)
    found = []
    while ready:
        node = heapq.heappop(ready)
        found.append(node)
        for after in follow[node]:
            waits[after] -= 1
            if not waits[after]:
                heapq.heappush(ready, after)
    assert len(found) == len(waits), "subgraphs that wait for each other"
    return np.array(found, dtype=np.int64)


def _list_readers(pairs: Integers, place: Integers, count: int) -> tuple[tuple[int, ...], ...]:
    found: list[list[int]] = [[] for _ in range(count)]
    for value, reader in pairs.T.tolist():
        found[value].append(int(place[reader]))
    return tuple(tuple(sorted(one)) for one in found)


def _check(problem: Problem, lacking: Sequence[str]) -> None:
    """Raise UnsupportedError where a subgraph has no device."""
    if all(problem.refusals):
        told = "; ".join(f"{member.name}: {why}" for member, why in zip(problem.members, problem.refusals, strict=True))
        raise UnsupportedError(f"no device of the box runs the model: {told}")
    alone = ~problem.can_run.any(axis=1)
    if alone.any():
        mine = np.isin(problem.work.subgraph_index, problem.subgraph[alone])
        names = [name for name in dict.fromkeys(problem.work.operation[mine].tolist()) if name in lacking]
        raise UnsupportedError(f"no device of the box runs {', '.join(names) or 'a subgraph of the model'}")
