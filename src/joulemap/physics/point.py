"""Evaluation of many points, variants of one chip with other numbers: in blocks, to totals only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.kind import Kinds
from joulemap.physics.ledger import MAX_LINE_FJ
from joulemap.physics.outcome import Timed
from joulemap.physics.pipeline import decides, refuse_bytes
from joulemap.physics.record.address import SOURCE, STATIC_POWER, Address, read_number, set_numbers
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import STATIC_ACTION, EnergyAction
from joulemap.physics.run import THROUGHPUT_LIMITS
from joulemap.physics.sum import Sums
from joulemap.physics.timing import count_parts, find_parts
from joulemap.physics.workload import Booleans, Floats, Integers
from joulemap.system.errors import ConservationError, UnsupportedError
from joulemap.system.heap import keep_freed
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J

TOGETHER: Final = 262144
"""Maximum points x operators of distinct kernels evaluated at once. Fewer add call overhead, more spill the CPU caches.
"""

WIDE: Final = ("bound_fs", "share_fs")
"""Names of the columns with one number per bottleneck."""

MOST_BLOCKS: Final = 8
LEAST_POINTS: Final = 512
"""Limits for splitting a grid: at most `MOST_BLOCKS` blocks, or blocks of at least `LEAST_POINTS` points on average.

A grid that exceeds both limits is evaluated as a row.
"""

Block = tuple[Integers, ...]
"""Indices along each axis of a grid; a block is all their combinations."""

LIMIT: Final = f"<U{max(map(len, THROUGHPUT_LIMITS))}"
"""numpy type of a throughput limit."""


class Spent(NamedTuple):
    """Key of an energy share, by the properties that determine its uncertainty interval."""

    common_category: str
    basis: str
    """Basis of the energies per action."""
    is_own: bool
    """True if the energies per action are the hardware's own, have no class range and were not set by a question."""


@define(kw_only=True, eq=False)
class Points:
    """Grid of points under evaluation: the refused points, and the results of the others.

    The varied numbers are arrays that broadcast. A number has length 1 along an axis that it does not depend on, and so
    do the values that formulas derive from it.
    """

    kernels: KernelColumns
    hardware: Hardware
    numbers: Mapping[Address, Floats]
    shape: tuple[int, ...]
    whole: Hardware
    """Hardware with all varied numbers as arrays."""
    activation_bytes: Integers
    refusal: NDArray[np.object_]
    """Reason why each point cannot run; empty if it can."""
    columns: dict[str, NDArray[Any]] = attrs.field(factory=dict)
    spent: dict[Spent, Integers] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, kernels: KernelColumns, hardware: Hardware, varied: Mapping[Address, Floats], shape: tuple[int, ...]
    ) -> Self:
        """Return the points of a chip with varied numbers. Contradictory numbers and too little memory are refused."""
        numbers = {address: _narrow(np.broadcast_to(column, shape)) for address, column in varied.items()}
        whole = set_numbers(hardware, {address: column[..., None] for address, column in numbers.items()})
        activations = float(kernels.peak_activation_bytes) / count_parts(float(kernels.batch), whole)
        required, capacity = float(kernels.total_weight_bytes) + activations, whole.memory_capacity.value
        faults = [(is_wrong, text.format, values) for is_wrong, text, values in whole.contradictions()]
        faults.append(
            (required > capacity, lambda *sizes: refuse_bytes(hardware.id, *sizes).text, (required, capacity))
        )
        refusal = np.full(shape, "", dtype=object)
        for is_wrong, write, values in faults:
            wrong, *columns = np.broadcast_arrays(np.atleast_1d(is_wrong), *values)
            texts = np.full(wrong.shape, "", dtype=object)
            for index in map(tuple, np.argwhere(wrong).tolist()):
                texts[index] = write(*(float(one[index]) for one in columns))
            if wrong.any():
                refusal = np.where(refusal == "", texts[..., 0], refusal)
        return cls(
            kernels=kernels,
            hardware=hardware,
            numbers=numbers,
            shape=shape,
            whole=whole,
            activation_bytes=np.rint(of_points(activations, shape)).astype(np.int64),
            refusal=refusal,
        )

    def evaluate(self) -> None:
        """Evaluate the points that are not refused, in blocks on which all formulas branch alike."""
        decisions = decides(self.whole, self.kernels.work, self.kernels.precision, float(self.kernels.batch))
        decided = [np.asarray(one)[..., 0] for one in decisions if np.ndim(one) > 1]
        if self.kernels.work.of_kind("communication").any():
            decided += [column for address, column in self.numbers.items() if address.kind == "link"]
        decided += [*self.set_prices.values(), self.refusal != ""]
        groups = [_group(decided, axis, count) for axis, count in enumerate(self.shape)]
        if len(self.shape) > 1 and math.prod(map(len, groups)) > max(MOST_BLOCKS, self.refusal.size // LEAST_POINTS):
            self._as_row().evaluate()
            return
        keep_freed()
        most = max(1, TOGETHER // max(1, Kinds.of(self.kernels).kernels.work.operator_count))
        for block in itertools.product(*groups):
            if not self.refusal[tuple(one[0] for one in block)]:
                for part in _cut(block, most):
                    self._evaluate_block(part, 0.0)

    def _as_row(self) -> Self:
        """Return the same points as one row that writes to the same results, for points too different for a grid."""
        numbers = {address: np.broadcast_to(column, self.shape).ravel() for address, column in self.numbers.items()}
        return attrs.evolve(
            self,
            numbers=numbers,
            shape=(self.refusal.size,),
            whole=_set_arrays(self.hardware, numbers),
            activation_bytes=self.activation_bytes.ravel(),
            refusal=self.refusal.ravel(),
        )

    @cached_property
    def set_prices(self) -> dict[Address, Booleans]:
        """Varied energy per action -> mask of the points that change the hardware's value; others keep its basis."""
        return {
            address: column != read_number(self.hardware, address)
            for address, column in self.numbers.items()
            if address.kind == "price"
        }

    def _evaluate_block(self, block: Block, parts: float) -> None:
        """Write the results of a block. If the store cannot hold one, the block is halved to find the points at fault.

        An engine runs the batch in `parts` parts; 0 selects the fastest number of parts.
        """
        hardware = _set_arrays(self.hardware, _take(self.numbers, block))
        own = {address for address, is_set in _take(self.set_prices, block).items() if not is_set.flat[0]}
        kinds = Kinds.of(self.kernels).kernels
        try:
            each = np.asarray(parts or find_parts(kinds, hardware)[..., 0])
            for parts in np.unique(each).tolist():
                columns, spent = add_up(
                    Timed.of(self.kernels, hardware, np.array([parts])), frozenset(self.numbers) - own
                )
                self._write(block, each == parts, columns, spent)
        except (UnsupportedError, ConservationError) as error:
            if all(len(one) == 1 for one in block):
                self.refusal[np.ix_(*block)] = str(error)
                return
            for half in _cut(block, -(-math.prod(map(len, block)) // 2)):
                self._evaluate_block(half, parts)

    def _write(
        self, block: Block, is_mine: Booleans, columns: Mapping[str, NDArray[Any]], spent: Mapping[Spent, Integers]
    ) -> None:
        """Write the results of the points of a block that `is_mine` marks."""
        places = np.ix_(*block)

        def write(column: NDArray[Any], values: NDArray[Any], mask: Booleans) -> None:
            column[places] = values if mask.all() else np.where(mask, values, column[places])

        for name, values in columns.items():
            shape = (*self.shape, values.shape[-1]) if name in WIDE else self.shape
            if name not in self.columns:
                self.columns[name] = np.zeros(shape, dtype=LIMIT if values.dtype.kind == "U" else values.dtype)
            write(self.columns[name], values, is_mine[..., None] if name in WIDE else is_mine)
        for key, energy in spent.items():
            write(self.spent.setdefault(key, np.zeros(self.shape, dtype=np.int64)), energy, is_mine)


def _narrow(column: Floats) -> Floats:
    """Return an array with length 1 along each axis on which its numbers repeat."""
    for axis in range(column.ndim):
        first = column.take([0], axis)
        if (column == first).all():
            column = first
    return column


def _set_arrays(hardware: Hardware, numbers: Mapping[Address, Floats]) -> Hardware:
    """Return a chip with varied numbers; an array of equal values becomes a single number."""
    values = {
        address: float(one.flat[0]) if (one == one.flat[0]).all() else one[..., None]
        for address, one in numbers.items()
    }
    return set_numbers(hardware, values)


def of_points(values: Floats | float, shape: tuple[int, ...]) -> Floats:
    """Return a formula's array as one value per point: without its axis of operators, broadcast to `shape`."""
    column = np.asarray(values)
    return np.broadcast_to(column[..., 0] if column.ndim else column, shape)


def _take(columns: Mapping[Address, Any], block: Block) -> dict[Address, Any]:
    """Return the varied numbers of a block of points; an axis of length 1 keeps its only index."""
    return {
        address: column[np.ix_(*(one if count > 1 else [0] for one, count in zip(block, column.shape, strict=True)))]
        for address, column in columns.items()
    }


def _group(decided: Sequence[NDArray[Any]], axis: int, count: int) -> list[Integers]:
    """Return the indices along an axis in groups; within a group, all branch conditions are equal."""
    group = np.zeros(count, dtype=np.int64)
    for one in decided:
        if one.shape[axis] > 1 and (one != one.flat[0]).any():
            lines = np.moveaxis(one, axis, 0).reshape(count, -1)
            lines = lines[:, 0] if lines.shape[1] == 1 else lines
            values, index = np.unique(lines, axis=0, return_inverse=True)
            group = np.unique(group * len(values) + index.ravel(), return_inverse=True)[1].astype(np.int64)
    return [np.flatnonzero(group == one) for one in range(int(group.max(initial=0)) + 1)]


def _cut(block: Block, most: int) -> Iterator[Block]:
    """Yield parts of a block with at most `most` points, cut along its first axes first."""
    sizes = [math.prod(map(len, block[axis + 1 :])) for axis in range(len(block))]
    axis = next((axis for axis, size in enumerate(sizes) if size <= most), len(block) - 1)
    step = max(1, most // sizes[axis])
    for first in itertools.product(*(one.tolist() for one in block[:axis])):
        for start in range(0, len(block[axis]), step):
            yield (*(np.array([one]) for one in first), block[axis][start : start + step], *block[axis + 1 :])


def add_up(timed: Timed, varied: frozenset[Address]) -> tuple[dict[str, NDArray[Any]], dict[Spent, Integers]]:
    """Return (column name -> values, energies by `Spent` key) of timed points.

    Raises UnsupportedError for energies that the store cannot hold.
    """
    sums, timing = Sums(timed=timed), timed.timing
    spent = add_spent(sums, varied)
    columns: dict[str, NDArray[Any]] = {
        "clock_fraction": timing.clock_fraction[..., 0],
        "voltage_factor": np.asarray(timing.voltage_factor)[..., 0],
        "uncapped_power_w": timing.uncapped_power_w[..., 0],
        "bottleneck": np.argmax(sums.bottleneck_fs, axis=-1),
        "throughput_limit": timing.throughput_limit[..., 0],
        "breaks_law": timing.broken_laws[..., 0] > 0,
        "suppressed_s": timing.suppressed_s[..., 0],
        "energy_fj": np.asarray(sum(spent.values(), np.zeros(1, dtype=np.int64))),
        "computed_mac_count": sums.computed_mac_count.astype(np.float64),
        "latency_fs": sums.latency[..., 0],
        "interval_fs": sums.interval[..., 0],
        "dram_bytes": sums.dram_bytes[..., 0],
        "moved_bytes": sums.moved_bytes[..., 0],
        "bound_fs": sums.bottleneck_fs,
        "share_fs": sums.share_fs,
    }
    return columns, spent


def add_spent(sums: Sums, varied: frozenset[Address]) -> dict[Spent, Integers]:
    """Return the exact energy of each point in femtojoules, by `Spent` key.

    Raises UnsupportedError for more than 9.2 kJ.
    """
    hardware = sums.timed.hardware
    check_energy(hardware.id, sums.most_fj)
    energies: dict[Spent, Integers] = {}
    for row, energy in sums.energies.items():
        key = name_spent(hardware.reference.actions[row], varied)
        energies[key] = energies.get(key, np.zeros(1, dtype=np.int64)) + energy[..., 0]
    return energies


def check_energy(name: str, energy_fj: float) -> None:
    """Raise UnsupportedError for an energy of more than 9.2 kJ on the chip of this name."""
    if energy_fj >= MAX_LINE_FJ:
        raise UnsupportedError(
            f"{name}: its energy exceeds {MAX_LINE_FJ / FJ_PER_J:.0f} J, more than a point can hold; "
            "use a smaller batch",
            code="range",
            hardware=name,
        )


def name_spent(action: EnergyAction, varied: frozenset[Address]) -> Spent:
    """Return the `Spent` key of an action's energy, given the varied numbers of the hardware."""
    is_varied = Address.of(action) in varied
    is_varied |= action.key == STATIC_ACTION and STATIC_POWER in varied
    return Spent(
        common_category=action.common_category,
        basis="assumed" if is_varied else action.basis,
        is_own=(action.low_fj is None or action.key == STATIC_ACTION)
        and not is_varied
        and not action.source.endswith(SOURCE),
    )
