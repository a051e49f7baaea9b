"""Placement problem: subgraphs in execution order, and the cost of each on each device.

    cost of a placement = sum over subgraphs of cost(subgraph, device)
                        + sum over values and devices that read them of copy(value, from its maker, to the device)

A value is sent once to each device that reads it, whatever the number of its readers there:

    copy = way + command + conversion + extra cost on both devices of leaving one chip and entering another

A device's cost of a subgraph is its share of a run of everything that the device supports, with unlimited memory. The
extra cost of a value is the difference to a run in which every value leaves the chip, in proportion to bytes. The final
cost of a placement comes from runs of its parts (`box.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from joulemap.physics import (
    RUNTIME,
    Booleans,
    Evaluator,
    Floats,
    Integers,
    RunColumns,
    Widths,
    WorkloadColumns,
    precision_scale,
    split_work,
)
from joulemap.physics.fallback import STATIC_ACTIONS, cross, find_fallen
from joulemap.physics.run import SubgraphColumns
from joulemap.physics.workload import KIND_CODE, sum_by
from joulemap.system import FJ_PER_J, FS_PER_S, JoulemapError, Reason, UnsupportedError, define
from joulemap.wing.place.box.flow import find_values, list_readers, share_ends, sort_nodes
from joulemap.wing.place.box.member import Member, Ways, find_ways, time_way
from joulemap.wing.place.box.search import group_values
from joulemap.wing.place.record import Box

ENOUGH: Final = 1e18
"""Memory capacity in bytes that stands for unlimited memory."""


@define(kw_only=True, eq=False, slots=False)
class Problem:
    """Subgraphs, values and devices of a placement; times are in seconds, energies in joules without static power."""

    work: WorkloadColumns
    box: Box
    members: tuple[Member, ...]
    ways: Ways
    subgraph: Integers
    """Index of each node's subgraph in the workload."""
    seconds: Floats
    """Time of a node: node x device; infinite if the device cannot run it."""
    paced_s: Floats
    """Time of a node where batches follow each other in a pipeline: node x device."""
    joules: Floats
    """Energy of a node without static power: node x device."""
    dram_bytes: Floats
    """Bytes of DRAM traffic of a node: node x device."""
    weight_bytes: Floats
    """Bytes of weights that a node is the first to read: node x device."""
    activation_bytes: Floats
    """Peak bytes of activations on each device."""
    maker: Integers
    """Index of the node that makes each value."""
    readers: tuple[tuple[int, ...], ...]
    """Indices of the nodes that read each value."""
    value_bytes: Floats
    """Bytes of a value at the precision of a device: value x device."""
    leave_s: Floats
    """Extra time of the sending device for a value that leaves its chip: value x device."""
    leave_j: Floats
    enter_s: Floats
    """Extra time of the receiving device for a value that enters its chip: value x device."""
    enter_j: Floats
    refusals: tuple[Reason | None, ...]
    """Reason why a device can run no subgraph, by device; empty if it can run some."""

    @property
    def node_count(self) -> int:
        """Number of nodes: subgraphs of the workload that compute."""
        return len(self.subgraph)

    @cached_property
    def node_of(self) -> Integers:
        """Node of each subgraph of the workload; -1 for a subgraph that does not compute."""
        return number_nodes(self.subgraph, self.work.subgraph_count)

    def draw_w(self, used: Collection[int]) -> float:
        """Return the power of the box in watts without dynamic power: static power of used devices, idle power of
        others.
        """
        return sum(one.static_w if number in used else one.idle_w for number, one in enumerate(self.members))

    def list_operations(self, nodes: Booleans) -> list[str]:
        """Return the distinct operations of the subgraphs of some nodes."""
        mine = np.isin(self.work.subgraph_index, self.subgraph[nodes])
        return list(dict.fromkeys(self.work.operation[mine].tolist()))

    @cached_property
    def reads(self) -> list[list[int]]:
        """Indices of the values that each node reads."""
        return group_values(self.readers, self.node_count)

    @cached_property
    def makes(self) -> list[list[int]]:
        """Indices of the values that each node makes."""
        return group_values([(node,) for node in self.maker.tolist()], self.node_count)

    @cached_property
    def kinds(self) -> dict[str, list[int]]:
        """Device name -> indices of the members with that name; identical devices share a name."""
        kinds: dict[str, list[int]] = {}
        for number, member in enumerate(self.members):
            kinds.setdefault(member.device.name, []).append(number)
        return kinds

    @cached_property
    def can_run(self) -> Booleans:
        """True if the device can run the node: node x device."""
        mask: Booleans = np.isfinite(self.seconds)
        return mask

    @cached_property
    def way_s(self) -> Floats:
        """Seconds of links, commands and conversions: value x sender x receiver.

        Zero within a device, infinite without a route.
        """

        def price(sent: Floats, start: int, end: int) -> Floats:
            way, receiver = self.ways[start, end], self.members[end]
            fixed = time_way(way, 0.0)
            seconds = fixed + sent * (time_way(way, 1.0) - fixed) + receiver.hardware.coefficient("host_launch")
            if converts(self.members[start], receiver):
                seconds = seconds + (sent + self.value_bytes[:, end]) / memory_rate(receiver)
            return seconds

        return self._pass(price)

    @cached_property
    def copy_s(self) -> Floats:
        """Time of a copy with the extra time on both devices: value x sender x receiver."""
        return self._with_ends(self.way_s, self.leave_s, self.enter_s)

    @cached_property
    def copy_j(self) -> Floats:
        """Energy of a copy with the extra energy on both devices: value x sender x receiver."""

        def price(sent: Floats, start: int, end: int) -> Floats:
            way, kept = self.ways[start, end], self.value_bytes[:, end]
            energy = sent * sum(hop.fj_per_byte for hop in way)
            if converts(self.members[start], self.members[end]):
                read, write = conversion_fj(self.members[end])
                energy = energy + sent * read + kept * write
            return energy / FJ_PER_J

        return self._with_ends(self._pass(price), self.leave_j, self.enter_j)

    def _pass(self, price: Callable[[Floats, int, int], Floats]) -> Floats:
        count = len(self.members)
        costs = np.zeros((len(self.maker), count, count))
        for start in range(count):
            for end in range(count):
                if start != end:
                    has_way = (start, end) in self.ways
                    costs[:, start, end] = price(self.value_bytes[:, start], start, end) if has_way else np.inf
        return costs

    def _with_ends(self, way: Floats, leave: Floats, enter: Floats) -> Floats:
        others = ~np.eye(len(self.members), dtype=bool)
        return way + np.where(others, leave[:, :, None] + enter[:, None, :], 0.0)


def converts(first: Member, second: Member) -> bool:
    """Return True if a value is converted on arrival, because precision or layout differ."""
    return (
        first.configuration.precision != second.configuration.precision or first.device.layout != second.device.layout
    )


def memory_rate(member: Member) -> float:
    """Return the bytes per second at which a device streams data through its memory."""
    efficiency = member.hardware.coefficients.get("dram_efficiency")
    return member.hardware.memory_bandwidth.value * (efficiency.value if efficiency else 1.0)


def conversion_fj(member: Member) -> tuple[float, float]:
    """Return femtojoules per byte read and per byte written when a device converts a value."""
    reference = member.hardware.reference
    places = [reference.position(("dram", action)) for action in ("read", "write")]
    read, write = (0.0 if at is None else reference.prices_fj[at] for at in places)
    return read, write


def build_problem(work: WorkloadColumns, box: Box, members: Sequence[Member]) -> Problem:
    """Return the placement problem of a workload on the devices of a box.

    Raises UnsupportedError for an operator that no device runs, or if no device runs anything; UsageError for a device
    without a link.
    """
    ways = find_ways(box, members)
    is_fused = RUNTIME[members[0].configuration.runtime].merges
    computed = (work.kind != KIND_CODE["view"]) & ~(work.is_foldable & is_fused)
    maker_of, pairs, traced_bytes, items = find_values(work, computed)
    order = sort_nodes(np.unique(work.subgraph_index[computed]), maker_of, pairs)
    node_of = number_nodes(order, work.subgraph_count)
    shape = len(order), len(members)
    columns = {name: np.full(shape, np.inf) for name in ("seconds", "paced_s", "joules")}
    columns |= {name: np.zeros(shape) for name in ("dram_bytes", "weight_bytes", "longer_s", "more_j")}
    activations, refusals = np.zeros(len(members)), list[Reason | None]([None] * len(members))
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
            refusals[number] = error.reason
            continue
        some = order[~bad[order]]  # a subgraph that a kernel of another one computes takes no time of its own
        rows = node_of[some]
        latency_fs, apart_fs = (_spread(one, one.latency_fs, work)[some] for one in (run.subgraphs, apart.subgraphs))
        columns["seconds"][rows, number] = latency_fs / FS_PER_S
        interval_fs = run.operators.interval_fs.astype(np.float64)
        paced = sum_by(run.operators.subgraph_index, interval_fs, work.subgraph_count)
        columns["paced_s"][rows, number] = paced[some] / FS_PER_S
        columns["joules"][rows, number] = dynamic_fj(run, work.subgraph_count)[some] / FJ_PER_J
        columns["dram_bytes"][rows, number] = _spread(run.subgraphs, run.subgraphs.dram_bytes, work)[some]
        columns["longer_s"][rows, number] = np.maximum(apart_fs - latency_fs, 0) / FS_PER_S
        more_fj = dynamic_fj(apart, work.subgraph_count) - dynamic_fj(run, work.subgraph_count)
        columns["more_j"][rows, number] = np.maximum(more_fj[some], 0.0) / FJ_PER_J
        weights = _weight_bytes(work, member)
        columns["weight_bytes"][:, number] = weights[order]
        activations[number] = run.activation_bytes
    maker, readers = node_of[maker_of], list_readers(pairs, node_of, len(maker_of))
    ends = {
        f"{side}_{unit}": column
        for unit, name in (("s", "longer_s"), ("j", "more_j"))
        for side, column in zip(
            ("leave", "enter"), share_ends(columns.pop(name), traced_bytes, maker, readers), strict=True
        )
    }
    problem = Problem(
        work=work,
        box=box,
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


def number_nodes(subgraph: Integers, subgraph_count: int) -> Integers:
    """Return the place of each subgraph in a list of subgraphs; -1 for a subgraph that it lacks."""
    nodes: Integers = np.full(subgraph_count, -1)
    nodes[subgraph] = np.arange(len(subgraph))
    return nodes


def run_all(work: WorkloadColumns, member: Member, left: Booleans) -> RunColumns:
    """Return the run on one device of all operators that `left` does not exclude, with unlimited memory.

    Raises like `evaluate`.
    """
    roomy = attrs.evolve(member.hardware.memory_capacity, value=ENOUGH)
    hardware = attrs.evolve(member.hardware, compiler=None, memory_capacity=roomy)
    evaluator = Evaluator(*split_work(work, left)[0]) if left.any() else Evaluator(work)
    return evaluator.evaluate(hardware, member.configuration)


def dynamic_fj(run: RunColumns, subgraph_count: int) -> Floats:
    """Return the energy of each subgraph in femtojoules, without static power."""
    kept = is_dynamic(run)
    row = np.searchsorted(run.operators.operator_index, run.ledger.operator_index[kept])
    owner = run.operators.subgraph_index[row]
    return sum_by(owner, run.ledger.energy_fj[kept].astype(np.float64), subgraph_count)


def is_dynamic(run: RunColumns) -> Booleans:
    """Return True for ledger lines that are not static power."""
    leaks = [run.hardware.reference.position(key) for key in STATIC_ACTIONS]
    mask: Booleans = ~np.isin(run.ledger.action_index, [at for at in leaks if at is not None])
    return mask


def _spread(subgraphs: SubgraphColumns, values: Floats | Integers, work: WorkloadColumns) -> Floats:
    """Return a value of each subgraph of a workload, 0 for those without a kernel."""
    every = np.zeros(work.subgraph_count)
    every[subgraphs.subgraph_index] = values
    return every


def _weight_bytes(work: WorkloadColumns, member: Member) -> Floats:
    """Return the bytes of the weights that each subgraph is the first to read, as a device stores them."""
    reads = work.first_reads
    configuration = member.configuration
    scale = Widths(work, configuration.precision, configuration.weight_precision).stored_scale
    owner = work.subgraph_index[work.access_operator[reads]]
    return sum_by(owner, (work.access_tensor_bytes * scale)[reads], work.subgraph_count)


def _check(problem: Problem, lacking: Sequence[str]) -> None:
    """Raise UnsupportedError if a subgraph can run on no device."""
    if all(problem.refusals):
        reasons = "; ".join(
            f"{member.name}: {why.text}"
            for member, why in zip(problem.members, problem.refusals, strict=True)
            if why is not None
        )
        devices = tuple(member.name for member in problem.members)
        raise UnsupportedError(f"no device of the box runs the model: {reasons}", code="no_device", devices=devices)
    alone: Booleans = np.logical_not(problem.can_run.any(axis=1))
    if alone.any():
        names = [name for name in problem.list_operations(alone) if name in lacking]
        raise UnsupportedError(
            f"no device of the box runs {', '.join(names) or 'a subgraph of the model'}",
            code="no_device",
            operators=tuple(names),
        )
