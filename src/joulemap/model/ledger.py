"""Counts of actions and their prices: the ledger.

    energy_fj[operator, action] = round(action_count[operator, action] x energy_per_action_fj[action] x factor[action])

The factor is the run's voltage factor for what happens on the chip, and 1 for off-chip memory, the board and leakage.

Count first, price second. Every total anywhere is a sum of these integers, so it does not depend on the order of
addition. An action without a price raises. Leakage is an action: seconds x watts. So is what regulators lose: joules
that actions on and off the chip take x their share, leakage left out because static power is the board's. What the
board takes is counted and held to the power limit at every boundary; a ledger of the chip has no lines of it.
"""

from __future__ import annotations

import numpy as np

from joulemap.domain.configuration import CHIP
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import (
    HOST_ACTION,
    LOSS_ACTION,
    MEMORY_ACTION,
    STATIC_ACTION,
    ActionKey,
    EnergyReference,
    cycle_action,
)
from joulemap.model.column import table
from joulemap.model.run import LedgerColumns
from joulemap.model.workload import Booleans, Floats, Integers
from joulemap.system.errors import ConservationError, UnpricedActionError, UnsupportedError
from joulemap.system.units import FJ_PER_J

ActionCounts = dict[ActionKey, Floats]
"""action -> count per operator"""

MAX_LINE_FJ = 2**63 - 1


def count_matrix(counts: ActionCounts, hardware: Hardware, operator_count: int) -> Floats:
    """Return how often each action of the reference table happens: a row per operator, a column per action.

    Raises UnpricedActionError for a counted action that the hardware has no price for, ConservationError for a
    negative or non-finite count.
    """
    reference = hardware.reference
    if not counts:
        return np.zeros((operator_count, len(reference)))
    whole = np.zeros((len(reference), operator_count))
    columns = np.array(list(counts.values()), dtype=np.float64)
    lowest, totals = columns.min(axis=1, initial=0.0), columns.sum(axis=1)
    wrong = np.flatnonzero(~(np.isfinite(totals) & (lowest >= 0.0)))
    keys = list(counts)
    if len(wrong):
        raise ConservationError(f"{hardware.id}: the count of {'.'.join(keys[wrong[0]])} is negative or not finite")
    happen = np.flatnonzero(totals).tolist()
    positions = []
    for number in happen:
        position = reference.position(keys[number])
        if position is None:
            raise UnpricedActionError(hardware.id, ".".join(keys[number]), float(totals[number]))
        positions.append(position)
    whole[positions] = columns[happen]
    return np.ascontiguousarray(whole.T)


def with_leakage(matrix: Floats, hardware: Hardware, latency_s: Floats) -> Floats:
    """Return the counts with the static lines: each operator leaks for as long as it runs, and so does a host."""
    position = hardware.reference.position(STATIC_ACTION)
    if position is None:
        raise UnpricedActionError(hardware.id, ".".join(STATIC_ACTION), float(latency_s.sum()))
    whole = matrix.copy()
    whole[:, position] = latency_s
    host = hardware.reference.position(HOST_ACTION)
    if host is not None:
        whole[:, host] = latency_s
    return whole


def with_unattributed(
    counts: ActionCounts, hardware: Hardware, precision: str, compute_s: Floats, memory_s: Floats
) -> ActionCounts:
    """Return the counts with clocks of all units and seconds of memory, where what is unattributed has a price.

    Times in which they are busy, at the full clock of the power mode.
    """
    found = {cycle_action(precision): compute_s * hardware.clock.value * hardware.units, MEMORY_ACTION: memory_s}
    return {**counts, **{key: count for key, count in found.items() if key in hardware.reference}}


def close_counts(matrix: Floats, hardware: Hardware, latency_s: Floats, voltage_factor: Floats) -> Floats:
    """Return the counts with what follows from time and energy: leakage, and what regulators lose.

    `voltage_factor` is per operator. At the boundary `chip` nothing of the board is counted.
    """
    whole = with_leakage(matrix, hardware, latency_s)
    reference = hardware.reference
    if hardware.boundary == CHIP:
        whole[:, np.array(reference.on_board, dtype=bool)] = 0.0
    elif np.any(np.greater(reference.loss_j, 0.0)):
        chip_j, memory_j = _delivered_j(matrix, reference)
        whole[:, reference.position(LOSS_ACTION)] = chip_j * voltage_factor + memory_j
    return whole


def price(matrix: Floats, hardware: Hardware, voltage_factor: Floats) -> LedgerColumns:
    """Return the ledger of these counts: one line for each operator and action that was counted.

    `voltage_factor` is what an action on the chip costs, relative to the highest voltage of the die, per operator.
    Raises UnsupportedError for a line beyond 9.2 kJ (the batch is too large).
    """
    operator_index, action_index = np.nonzero(matrix)
    energy = _energy_fj(matrix, hardware, voltage_factor)[operator_index, action_index]
    _check_range(energy, hardware, "one ledger line")
    return LedgerColumns(
        operator_index=operator_index,
        action_index=action_index,
        action_count=matrix[operator_index, action_index],
        energy_fj=energy.astype(np.int64),
    )


def _energy_fj(matrix: Floats, hardware: Hardware, voltage_factor: Floats) -> Floats:
    """Return what the actions of each operator take, whole femtojoules."""
    reference = hardware.reference
    prices = table(reference, prices_fj)
    follows = table(reference, on_chip)
    factor = np.where(follows[:, None], voltage_factor.reshape(len(prices), -1, 1), 1.0)
    energy: Floats = np.rint(_blocks(matrix, prices) * prices[:, None] * factor)
    return energy.reshape(matrix.shape)


def _blocks(matrix: Floats, prices: Floats) -> Floats:
    """Return the rows of each hardware together: hardware x operator x action."""
    return matrix.reshape(len(prices), len(matrix) // len(prices), matrix.shape[1])


def operator_fj(matrix: Floats, hardware: Hardware, voltage_factor: Floats) -> Integers:
    """Return what the ledger lines of these counts add up to for each operator, to the last femtojoule.

    Raises UnsupportedError for an operator beyond 9.2 kJ.
    """
    energy = _energy_fj(matrix, hardware, voltage_factor)
    _check_range(energy.sum(axis=1), hardware, "the energy of one operator")
    total: Integers = energy.astype(np.int64).sum(axis=1)
    return total


def _check_range(energy: Floats, hardware: Hardware, what: str) -> None:
    if len(energy) and energy.max() >= float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{hardware.id}: {what} exceeds {MAX_LINE_FJ / 1e15:.0f} J, more than the store can hold; "
            "use a smaller batch"
        )


def prices_fj(reference: EnergyReference) -> Floats:
    """Return the energy per action of each row, femtojoules."""
    return np.array(reference.prices_fj, dtype=np.float64)


def on_chip(reference: EnergyReference) -> Booleans:
    """Return of each row whether its energy follows the voltage of the chip."""
    return np.array(reference.on_chip, dtype=bool)


def split_j(matrix: Floats, hardware: Hardware) -> tuple[Floats, Floats]:
    """Return each operator's energy (what follows the chip's voltage, the rest) in joules at the full voltage.

    Not rounded, for power: with what regulators lose of it and the rest of the board, whatever the boundary is.
    """
    reference = hardware.reference
    chip_j, memory_j = _delivered_j(matrix, reference)
    if np.any(np.greater(reference.loss_j, 0.0)):
        chip_j, memory_j = chip_j * (1.0 + reference.loss_j), memory_j * (1.0 + reference.loss_j)
    rest = table(reference, _board_prices_j)
    return chip_j, memory_j + _sum_priced(matrix, rest) if rest.any() else memory_j


def _delivered_j(matrix: Floats, reference: EnergyReference) -> tuple[Floats, Floats]:
    """Return what the actions of each operator take (on the chip, off it) in joules at the full voltage."""
    return _sum_priced(matrix, table(reference, _chip_prices_j)), _sum_priced(
        matrix, table(reference, _memory_prices_j)
    )


def _sum_priced(matrix: Floats, prices: Floats) -> Floats:
    """Return the sum of each operator's actions at the prices of its hardware."""
    # row by row, so that a row does not depend on those beside it
    total: Floats = (_blocks(matrix, prices) * prices[:, None]).sum(axis=2).ravel()
    return total


def _chip_prices_j(reference: EnergyReference) -> Floats:
    return np.where(on_chip(reference), prices_fj(reference) / FJ_PER_J, 0.0)


def _memory_prices_j(reference: EnergyReference) -> Floats:
    inside = on_chip(reference) | np.array(reference.on_board, dtype=bool)
    return np.where(inside, 0.0, prices_fj(reference) / FJ_PER_J)


def _board_prices_j(reference: EnergyReference) -> Floats:
    return np.where(reference.on_board, prices_fj(reference) / FJ_PER_J, 0.0)
