"""Stack the kernels of many workloads, so that one placement serves all of them.

Most architectures place each kernel from its own columns and the common columns of its workload. The kernels of all
workloads at one precision and runtime can then be placed together, and kernels with equal columns only once:

    latency of a workload = sum over its distinct kernels of count x seconds

Hardware does not declare this property; it is tested. The stack is used if its placement gives the same latencies as
placing each workload alone. Otherwise each workload is placed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.architecture import Architecture
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import with_unattributed
from joulemap.physics.placement import Placement, balance, unbalance
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import ActionKey
from joulemap.physics.timing import called_once, find_parts, place, place_parts, split
from joulemap.physics.workload import WORK_COLUMNS, Floats, Integers, Work, sum_by
from joulemap.system.errors import UnpricedActionError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

ALONE: Final = "subgraph_index"
"""Operator column that a stack computes anew, because it numbers the subgraphs of one workload."""

OWN: Final = (
    "work",
    "precision",
    "weight_precision",
    "runtime",
    "operator_index",
    "operator_count",
    "kernel_index",
    "kernel_count",
    "leader",
    "times",
    "workload_index",
    "workload_count",
)
"""Fields of kernels that a stack computes anew instead of joining them."""

SAME: Final = 1e-9
"""Maximum relative difference between latencies that count as equal."""


@frozen(kw_only=True, eq=False)
class ObservedKernels:
    """Kernels of one workload, and the observations of it."""

    kernels: KernelColumns
    covered: tuple[tuple[int, tuple[int, ...] | None], ...]
    """Pairs of observation row and the operators that it covers; None for all operators."""
    times: float = 1.0
    """Number of parts that the batch is cut into; the kernels are those of one part."""

    @classmethod
    def of(
        cls, kernels: KernelColumns, covered: Sequence[tuple[int, tuple[int, ...] | None]], hardware: Hardware
    ) -> ObservedKernels:
        """Return the kernels of one part of a batch, if this hardware's engine cuts the batch."""
        times = float(find_parts(kernels, hardware).flat[0])
        if times > 1.0:
            whole = split(kernels, hardware)[1]
            kernels = called_once(kernels, np.full(len(whole), times), whole)
        return cls(kernels=kernels, covered=tuple(covered), times=times)


@frozen(kw_only=True, eq=False)
class Stack:
    """Kernels at one precision and runtime, and how often each kernel occurs in each observation (row)."""

    blocks: tuple[KernelColumns, ...]
    """Blocks of kernels that are placed separately; kernels are numbered through all blocks."""
    row_count: int
    pair_row: Integers
    """Row of each pair (row, kernel), in ascending order."""
    pair_kernel: Integers
    pair_count: Floats

    def seconds(self, hardware: Hardware, architecture: Architecture[Placement]) -> Floats:
        """Return the latency of each row in seconds at the full clock."""
        return self.rows(self.kernel_seconds(hardware, architecture))

    def rows(self, values: Floats) -> Floats:
        """Sum values of kernels over the kernels of each row."""
        return sum_by(self.pair_row, values[self.pair_kernel] * self.pair_count, self.row_count)

    def kernel_seconds(self, hardware: Hardware, architecture: Architecture[Placement]) -> Floats:
        """Return the latency of each kernel in seconds at the full clock."""
        launch, compute, memory, _ = self.components(hardware, architecture)
        seconds: Floats = launch + np.maximum(compute, memory)
        return seconds

    def components(self, hardware: Hardware, architecture: Architecture[Placement]) -> NDArray[np.float64]:
        """Return an array with one column per kernel: fixed cost, compute time, memory time and sharpness.

        Times are in seconds at the full clock; sharpness describes how compute and memory time overlap.
        """
        components = []
        for kernels in self.blocks:
            placement = place_parts(*split(kernels, hardware), hardware, architecture)
            compute, memory = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
            sharpness = np.full(kernels.kernel_count, placement.sharpness)
            components.append(np.stack([placement.launch_s, compute, memory, sharpness]))
        return np.concatenate(components, axis=1)

    def only(self, kernels: Integers) -> Stack:
        """Return a stack of these kernels alone, renumbered in order; the original stack must have a single block."""
        (block,) = self.blocks
        number = np.full(block.kernel_count, -1)
        number[kernels] = np.arange(len(kernels))
        members = _members(block)
        kept = number[self.pair_kernel] >= 0
        return Stack(
            blocks=(_join([(block, [members[kernel] for kernel in kernels.tolist()])]),),
            row_count=self.row_count,
            pair_row=self.pair_row[kept],
            pair_kernel=number[self.pair_kernel[kept]],
            pair_count=self.pair_count[kept],
        )

    def joules(
        self, hardware: Hardware, architecture: Architecture[Placement], scales: Mapping[ActionKey, int]
    ) -> NDArray[np.float64]:
        """Return the dynamic energy of each row in joules at full voltage, including regulator loss.

        The result has the shape (2, rows, scales + 1): actions that follow the voltage, then the others. The last
        column holds actions without a scale. `scales` maps actions to columns. Raises UnpricedActionError as an
        evaluation does.
        """
        width = max(scales.values(), default=-1) + 2
        joules = []
        for kernels in self.blocks:
            part, times = split(kernels, hardware)
            placement = place(part, hardware, architecture)
            columns = np.zeros((2, width, kernels.work.operator_count))
            counts = with_unattributed(
                architecture.count(part, placement, hardware),
                hardware,
                part.precision,
                part.work.has_macs,
                *placement.busy_s,
            )
            for key, count in counts.items():
                position = hardware.reference.position(key)
                if position is None:
                    if count.any():
                        raise UnpricedActionError(hardware.id, ".".join(key), float(count.sum()))
                    continue
                action = hardware.reference.actions[position]
                side = 0 if action.follows_voltage else 1
                taken = 1.0 if action.is_on_board else 1.0 + hardware.reference.loss_j
                columns[side, scales.get(key, -1)] += count * times * (action.energy_per_action_fj * taken / FJ_PER_J)
            joules.append(np.array([[kernels.per_kernel(column) for column in side] for side in columns]))
        per_kernel = np.concatenate(joules, axis=2)
        return np.array([np.stack([self.rows(column) for column in side], axis=1) for side in per_kernel])

    def seconds_at(self, components: NDArray[np.float64], law: PowerLaw, clock: Floats) -> Floats:
        """Return the latency of each row in seconds at its `clock`, from the result of `components`."""
        launch, compute, memory, (sharpness, *_) = components[:, self.pair_kernel]
        at, stretch = clock[self.pair_row], law.stretch(clock)[self.pair_row]
        compute, memory = unbalance(compute, memory, sharpness)
        seconds = launch * stretch + np.maximum(*balance(compute / at, memory * stretch, sharpness))
        return sum_by(self.pair_row, seconds * self.pair_count, self.row_count)


def stack(
    parts: Sequence[ObservedKernels], row_count: int, hardware: Hardware, architecture: Architecture[Placement]
) -> Stack:
    """Stack the kernels of these parts; equal kernels are merged if this hardware allows it."""
    together, apart = _merge(parts, row_count), _side_by_side(parts, row_count)
    expected = apart.seconds(hardware, architecture)
    if np.allclose(together.seconds(hardware, architecture), expected, rtol=SAME, atol=0.0):
        return together
    return apart


def _side_by_side(parts: Sequence[ObservedKernels], row_count: int) -> Stack:
    """Return a stack with one block per part; nothing is merged."""
    first = 0
    pairs: list[tuple[int, int, float]] = []
    for part in parts:
        for row, operators in part.covered:
            pairs += [(row, first + kernel, part.times) for kernel in _covered(part.kernels, operators)]
        first += part.kernels.kernel_count
    return _paired(tuple(part.kernels for part in parts), row_count, pairs)


def _merge(parts: Sequence[ObservedKernels], row_count: int) -> Stack:
    """Return a stack of one block in which every distinct kernel occurs once."""
    picked: list[tuple[KernelColumns, list[list[int]]]] = []
    pairs: list[tuple[int, int, float]] = []
    first = 0
    for part in parts:
        members = _members(part.kernels)
        numbers, distinct = _distinct(part.kernels, members)
        picked.append((part.kernels, [members[kernel] for kernel in distinct]))
        for row, operators in part.covered:
            covered = [numbers[kernel] for kernel in _covered(part.kernels, operators)]
            counts = part.times * np.bincount(np.array(covered, dtype=np.int64), minlength=len(distinct))
            pairs += [(row, first + int(kernel), float(counts[kernel])) for kernel in np.flatnonzero(counts)]
        first += len(distinct)
    return _paired((_join(picked),), row_count, pairs)


def _paired(blocks: tuple[KernelColumns, ...], row_count: int, pairs: Iterable[tuple[int, int, float]]) -> Stack:
    ordered = sorted(pairs)
    return Stack(
        blocks=blocks,
        row_count=row_count,
        pair_row=np.array([row for row, _, _ in ordered], dtype=np.int64),
        pair_kernel=np.array([kernel for _, kernel, _ in ordered], dtype=np.int64),
        pair_count=np.array([count for _, _, count in ordered], dtype=np.float64),
    )


def _covered(kernels: KernelColumns, operators: tuple[int, ...] | None) -> list[int]:
    """Return the indices of the kernels whose leading operator is among `operators`; all kernels for None."""
    if operators is None:
        return list(range(kernels.kernel_count))
    asked = set(operators)
    leaders = kernels.operator_index[kernels.leader].tolist()
    return [kernel for kernel, leader in enumerate(leaders) if leader in asked]


def _members(kernels: KernelColumns) -> list[list[int]]:
    """Return the operator rows of each kernel, the leading operator first."""
    members: list[list[int]] = [[leader] for leader in kernels.leader.tolist()]
    for row in np.flatnonzero(~kernels.leads).tolist():
        members[int(kernels.kernel_index[row])].append(row)
    return members


def _distinct(kernels: KernelColumns, members: list[list[int]]) -> tuple[list[int], list[int]]:
    """Number the distinct kernels; return the number of each kernel, and the first kernel with each number."""
    columns = [_as_numbers(column) for column in _per_operator(kernels).values()]
    matrix = np.ascontiguousarray(np.stack(columns, axis=1))
    rows = [row.tobytes() for row in matrix]
    known: dict[tuple[bytes, ...], int] = {}
    numbers: list[int] = []
    first: list[int] = []
    for kernel, operators in enumerate(members):
        signature = tuple(rows[operator] for operator in operators)
        number = known.setdefault(signature, len(known))
        if number == len(first):
            first.append(kernel)
        numbers.append(number)
    return numbers, first


def _as_numbers(column: Any) -> Floats:
    """Encode a column as numbers; equal values get equal numbers."""
    if column.dtype.kind == "U":
        column = np.unique(column, return_inverse=True)[1]
    numbers: Floats = np.asarray(column, dtype=np.float64)
    return numbers


def _per_operator(kernels: KernelColumns) -> dict[str, Any]:
    """Return all columns of the kernels and of their workload, with one value per operator."""
    work = kernels.work
    columns = {f"work.{name}": getattr(work, name) for name in WORK_COLUMNS if name != ALONE}
    for field in attrs.fields(KernelColumns):
        if field.name not in OWN:
            value = getattr(kernels, field.name)
            columns[field.name] = value if isinstance(value, np.ndarray) else np.full(work.operator_count, float(value))
    return columns


def _join(picked: Sequence[tuple[KernelColumns, list[list[int]]]]) -> KernelColumns:
    """Join kernels picked from several workloads into one block."""
    taken: dict[str, list[Any]] = {}
    sizes: list[int] = []
    siblings = []
    for kernels, members in picked:
        order = np.array([operator for operators in members for operator in operators], dtype=np.int64)
        for name, column in _per_operator(kernels).items():
            taken.setdefault(name, []).append(column[order])
        siblings.append(kernels.is_sibling[order])
        sizes += [len(operators) for operators in members]
    columns: dict[str, Any] = {name: np.concatenate(parts) for name, parts in taken.items()}
    kernel_index = np.repeat(np.arange(len(sizes)), sizes)
    first, _ = picked[0]
    work = Work(
        subgraph_index=2 * kernel_index + np.concatenate(siblings),
        **{name.removeprefix("work."): column for name, column in columns.items() if name.startswith("work.")},
    )
    return KernelColumns(
        work=work,
        precision=first.precision,
        weight_precision=first.weight_precision,
        runtime=first.runtime,
        operator_index=np.arange(len(kernel_index)),
        operator_count=len(kernel_index),
        kernel_index=kernel_index,
        kernel_count=len(sizes),
        leader=np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64),
        workload_index=np.zeros(len(kernel_index), dtype=np.int64),
        workload_count=1,
        **{name: column for name, column in columns.items() if not name.startswith("work.")},
    )
