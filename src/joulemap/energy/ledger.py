"""Count first, price second.

    energy_fj[operator, action] = round(action_count[operator, action] x energy_per_action_fj[action])

Every total anywhere is a sum of these integers, so it does not depend on the order of addition. An action without
a price raises. Leakage is an action: seconds x watts.
"""

from __future__ import annotations

import numpy as np

from joulemap.columns.run import LedgerColumns
from joulemap.columns.workload import Floats
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import STATIC_ACTION, ActionKey, EnergyReference
from joulemap.errors import ConservationError, UnpricedActionError, UnsupportedError

ActionCounts = dict[ActionKey, Floats]
"""action -> count per operator"""

MAX_LINE_FJ = 2**63 - 1


def price(counts: ActionCounts, hardware: Hardware, operator_count: int) -> LedgerColumns:
    """Return the ledger of these counts: one line for each operator and action that was counted.

    Raises UnpricedActionError for a counted action that the hardware has no price for, ConservationError for a
    negative or non-finite count, UnsupportedError for a line beyond 9.2 kJ (the batch is too large).
    """
    matrix = _count_matrix(counts, hardware, operator_count)
    operator_index, action_index = np.nonzero(matrix)
    action_count = matrix[operator_index, action_index]
    prices = prices_fj(hardware.reference)
    energy = np.rint(action_count * prices[action_index])
    if len(energy) and energy.max() >= float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{hardware.id}: one ledger line exceeds {MAX_LINE_FJ / 1e15:.0f} J, more than the store can hold; "
            "use a smaller batch"
        )
    return LedgerColumns(
        operator_index=operator_index.astype(np.int64),
        action_index=action_index.astype(np.int64),
        action_count=action_count,
        energy_fj=energy.astype(np.int64),
    )


def prices_fj(reference: EnergyReference) -> Floats:
    """Return the energy per action of each row, femtojoules."""
    return np.array([action.energy_per_action_fj for action in reference])


def _count_matrix(counts: ActionCounts, hardware: Hardware, operator_count: int) -> Floats:
    matrix = np.zeros((operator_count, len(hardware.reference)))
    for key, column in counts.items():
        total = float(column.sum())
        if not np.isfinite(total) or (len(column) and float(column.min()) < 0.0):
            raise ConservationError(f"{hardware.id}: the count of {'.'.join(key)} is negative or not finite")
        if total == 0.0:
            continue
        position = hardware.reference.position(key)
        if position is None:
            raise UnpricedActionError(hardware.id, ".".join(key), total)
        matrix[:, position] = column
    return matrix


def dynamic_energy_j(counts: ActionCounts, hardware: Hardware, operator_count: int) -> Floats:
    """Return each operator's energy without the static line, in joules (not rounded: for power and shares)."""
    matrix = _count_matrix(counts, hardware, operator_count)
    energy: Floats = matrix @ prices_fj(hardware.reference) / 1e15
    return energy


def static_counts(latency_s: Floats) -> ActionCounts:
    """Return the static line: each operator leaks for as long as it runs."""
    return {STATIC_ACTION: latency_s}
