"""Counts of actions and their energies: the ledger.

    energy_fj[operator, action] = round(action_count[operator, action] x energy_per_action_fj[action] x factor[action])

The factor is the run's voltage factor for on-chip actions, and 1 for off-chip memory, board and static power.

Counts come first, then energies per action. Every total is a sum of these integers, so it does not depend on the order
of addition. An action without an energy raises an error. Static power is an action: seconds x watts. Regulator loss is
an action too: joules of on-chip and off-chip actions x the loss share, without static power, which is measured at the
board. Board energy counts toward the power limit at every boundary, but a ledger at the chip boundary has no lines of
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joulemap.physics.column import is_one
from joulemap.physics.record.configuration import BOUNDARY
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import (
    AWAKE_ACTION,
    HOST_ACTION,
    LOSS_ACTION,
    MEMORY_ACTION,
    OTHER_ACTION,
    STATIC_ACTION,
    ActionKey,
    EnergyReference,
    cycle_action,
)
from joulemap.physics.run import LedgerColumns
from joulemap.physics.workload import Booleans, Floats, Integers
from joulemap.system.errors import ConservationError, UnpricedActionError, UnsupportedError
from joulemap.system.units import FJ_PER_J

ActionCounts = dict[ActionKey, Floats]
"""Action -> count per operator."""

MAX_LINE_FJ = 2**63 - 1


Counts = dict[int, Floats]
"""Row of the hardware's reference table of energies -> count per operator, in the order of the table."""


def order_counts(counts: ActionCounts, hardware: Hardware) -> Counts:
    """Return the counts of the actions that occur, by row of the reference table.

    Raises UnpricedActionError for a counted action without an energy in the hardware, ConservationError for a negative
    or non-finite count.
    """
    reference = hardware.reference
    keys = list(counts)
    lowest, totals = np.zeros((2, len(keys)))
    plain = [index for index, key in enumerate(keys) if counts[key].ndim == 1]
    if plain:
        columns = np.array([counts[keys[index]] for index in plain], dtype=np.float64)
        lowest[plain], totals[plain] = columns.min(axis=1, initial=0.0), columns.sum(axis=1)
    for index, column in enumerate(counts.values()) if len(plain) < len(keys) else ():
        if column.ndim > 1:
            lowest[index], totals[index] = column.min(initial=0.0), column.sum()
    wrong = np.flatnonzero(~(np.isfinite(totals) & (lowest >= 0.0)))
    if len(wrong):
        raise ConservationError(f"{hardware.id}: the count of {'.'.join(keys[wrong[0]])} is negative or not finite")
    by_row: Counts = {}
    for index in np.flatnonzero(totals).tolist():
        position = reference.position(keys[index])
        if position is None:
            raise UnpricedActionError(hardware.id, ".".join(keys[index]), float(totals[index]))
        by_row[position] = counts[keys[index]]
    return dict(sorted(by_row.items()))


def with_static(counts: Counts, hardware: Hardware, latency_s: Floats) -> Counts:
    """Return the counts with static power added: of the chip, of links to its peers, and of a host whose energy counts,
    while an operator runs.
    """
    position = hardware.reference.position(STATIC_ACTION)
    if position is None:
        raise UnpricedActionError(hardware.id, ".".join(STATIC_ACTION), float(latency_s.sum()))
    others = (hardware.reference.position(one) for one in (HOST_ACTION, AWAKE_ACTION))
    return {**counts, position: latency_s, **{one: latency_s for one in others if one is not None}}


def with_unattributed(
    counts: ActionCounts,
    hardware: Hardware,
    precision: str,
    has_products: Booleans,
    compute_s: Floats,
    memory_s: Floats,
) -> ActionCounts:
    """Return the counts with clock cycles of all units and of memory, if the hardware has unattributed power.

    Cycles of operators without products are an action of their own, whose energy is the same at all precisions.
    Cycles are busy time x the full clock of the power mode. If the bandwidth of a memory level follows the clock, its
    energy then does not depend on a lowered clock. Memory beyond the die does not follow a clock that is raised above
    the die's highest.
    """
    clock, added = hardware.clock.value, dict(counts)
    for key, is_mine in ((cycle_action(precision), has_products), (OTHER_ACTION, ~has_products)):
        if key in hardware.reference:
            added[key] = compute_s * clock * np.rint(hardware.unit_count.value) * is_mine
    if MEMORY_ACTION in hardware.reference:
        die = hardware.clock_die
        added[MEMORY_ACTION] = memory_s * (clock if die is None else np.minimum(clock, die.value))
    return added


def close_counts(counts: Counts, hardware: Hardware, latency_s: Floats, voltage_factor: Floats) -> Counts:
    """Return the counts with the actions that follow from time and energy: static power and regulator losses.

    At the boundary `chip`, board actions are removed. At `system`, actions around the board are added: they are counted
    in joules of all other actions, except the static power of a host.
    """
    whole = with_static(counts, hardware, latency_s)
    reference = hardware.reference
    if not BOUNDARY[hardware.boundary].includes_board:
        whole = {row: count for row, count in whole.items() if not reference.on_board[row]}
    elif np.any(np.greater(reference.loss_j, 0.0)):
        chip_j, memory_j = _delivered_j(counts, reference)
        row = reference.position(LOSS_ACTION)
        assert row is not None
        whole[row] = chip_j * voltage_factor + memory_j
    if reference.around:
        board_j = _spent_j(whole, reference, voltage_factor)
        whole |= dict.fromkeys(reference.around, board_j)
    return dict(sorted(whole.items()))


def _spent_j(counts: Counts, reference: EnergyReference, voltage_factor: Floats) -> Floats:
    """Return the energy of each operator in joules, over all counted actions except the host's static power."""
    host = reference.position(HOST_ACTION)
    spent_j = np.zeros(1)
    for row, count in sorted(counts.items()):
        if row != host:
            joules = count * (reference.prices_fj[row] / FJ_PER_J)
            spent_j = spent_j + (joules * voltage_factor if reference.on_chip[row] else joules)
    return spent_j


def energies_fj(counts: Counts, hardware: Hardware, voltage_factor: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield (row of the reference table, whole femtojoules per operator) for each counted action.

    `voltage_factor` is the energy of an on-chip action, relative to its energy at the highest voltage of the die.
    """
    reference = hardware.reference
    is_full = is_one(voltage_factor)
    for row, count in counts.items():
        energy = count * reference.prices_fj[row]
        if not is_full and reference.on_chip[row]:
            energy = energy * voltage_factor
        yield row, np.rint(energy, out=energy if energy.ndim else None)


def price(counts: Counts, hardware: Hardware, voltage_factor: Floats, row: Integers, points: int) -> LedgerColumns:
    """Return the ledger of these counts: one line for each operator and action that was counted.

    `row` maps each operator of a point to the index of its counts. Raises UnsupportedError for a line beyond 9.2 kJ
    (the batch is too large).
    """
    actions = np.array(list(counts), dtype=np.int64)
    often, energies = np.empty((2, len(counts), points, len(row)))
    for index, ((_, energy), count) in enumerate(
        zip(energies_fj(counts, hardware, voltage_factor), counts.values(), strict=True)
    ):
        often[index], energies[index] = count[..., row], energy[..., row]
    check_range(energies, hardware, "one ledger line")
    often, energies = np.reshape([often, energies], (2, len(counts), points * len(row)))
    operator_index, line = np.nonzero(often.T)
    return LedgerColumns(
        operator_index=operator_index,
        action_index=actions[line],
        action_count=often[line, operator_index],
        energy_fj=energies[line, operator_index].astype(np.int64),
    )


def operator_fj(counts: Counts, hardware: Hardware, voltage_factor: Floats) -> Integers:
    """Return the exact sum of the ledger lines of each operator for these counts, in femtojoules.

    Raises UnsupportedError for an operator beyond 9.2 kJ.
    """
    energies = [energy for _, energy in energies_fj(counts, hardware, voltage_factor)]
    check_range(sum(energies, np.zeros(1)), hardware, "the energy of one operator")
    total: Integers = sum((energy.astype(np.int64) for energy in energies), np.zeros(1, dtype=np.int64))
    return total


def check_range(energy: Floats, hardware: Hardware, what: str) -> None:
    """Raise UnsupportedError for an energy that the store cannot hold."""
    if energy.size and energy.max() >= float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{hardware.id}: {what} exceeds {MAX_LINE_FJ / 1e15:.0f} J, more than the store can hold; "
            "use a smaller batch",
            code="range",
            hardware=hardware.id,
        )


def split_j(counts: Counts, hardware: Hardware) -> tuple[Floats, Floats]:
    """Return each operator's energy (part that scales with the chip's voltage, rest) in joules at the full voltage.

    Energies are not rounded, because they serve to compute power. Regulator losses and board actions are included at
    any boundary.
    """
    reference = hardware.reference
    chip_j, memory_j = _delivered_j(counts, reference)
    if np.any(np.greater(reference.loss_j, 0.0)):
        chip_j, memory_j = chip_j * (1.0 + reference.loss_j), memory_j * (1.0 + reference.loss_j)
    for row, count in counts.items():
        if reference.on_board[row]:
            joules = count * (reference.prices_fj[row] / FJ_PER_J)
            chip_j, memory_j = (chip_j + joules, memory_j) if reference.on_chip[row] else (chip_j, memory_j + joules)
    return chip_j, memory_j


def _delivered_j(counts: Counts, reference: EnergyReference) -> tuple[Floats, Floats]:
    """Return the (on-chip, off-chip) energy of each operator in joules at the full voltage, without board actions.

    Actions are added one by one, so that no sum depends on the number of operators evaluated together.
    """
    chip_j = memory_j = np.zeros(1)
    for row, count in counts.items():
        if reference.on_board[row]:
            continue
        if reference.on_chip[row]:
            chip_j = chip_j + count * (reference.prices_fj[row] / FJ_PER_J)
        else:
            memory_j = memory_j + count * (reference.prices_fj[row] / FJ_PER_J)
    return chip_j, memory_j
