"""Ledger lines of a box: its parts, the copies between them, and devices that wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import numpy as np

from joulemap.physics import STATIC_ACTION, ActionKey, EnergyAction, Floats, Integers, RunColumns
from joulemap.physics.record.reference import LINK_ACTION
from joulemap.physics.run import LedgerColumns
from joulemap.system import FJ_PER_J, FS_PER_S, define, frozen
from joulemap.wing.place.box.hardware import CONVERSIONS, BoxHardware
from joulemap.wing.place.box.problem import Problem, converts
from joulemap.wing.place.record import PlacementLine

IDLE: Final = ("chip", "idle_power")
"""Component and action of a device that runs no part of the model."""


@frozen(kw_only=True)
class Copy:
    """Value copied from the device that made it to a device that reads it."""

    start: int
    end: int
    subgraph: int
    """Subgraph that produces the value."""
    value: int
    """Index of the value in the problem."""
    byte_count: float
    """Bytes that are sent, at the sender's precision."""
    latency_fs: int
    start_fs: int = 0
    """Start of the copy after the start of a batch, if no other batch runs."""


@define
class Lines:
    """Builder of a box's ledger; each line has an operator, a row of the reference table, and a count."""

    hardware: BoxHardware
    operator: list[Integers] = attrs.field(factory=list)
    action: list[Integers] = attrs.field(factory=list)
    count: list[Floats] = attrs.field(factory=list)

    def add(self, operator: Integers, action: Integers, count: Floats) -> None:
        """Add ledger lines; lines with a count of zero are skipped."""
        some = count > 0.0
        self.operator.append(operator[some])
        self.action.append(action[some])
        self.count.append(count[some])

    def add_each(self, operator: Integers, key: ActionKey, count: Floats) -> None:
        """Add one line per operator for an action; do nothing if the box has no energy for the action."""
        position = self.hardware.reference.position(key)
        if position is not None:
            self.add(operator, np.full(len(operator), position), count)

    def close(self, hardware: BoxHardware) -> LedgerColumns:
        """Return the ledger at a box's energies per action; lines with equal operator and action are merged."""
        size = len(hardware.reference)
        key = np.concatenate(self.operator) * size + np.concatenate(self.action)
        distinct, index = np.unique(key, return_inverse=True)
        counts: Floats = np.bincount(index, weights=np.concatenate(self.count), minlength=len(distinct)).astype(float)
        action = distinct % size
        return LedgerColumns(
            operator_index=distinct // size,
            action_index=action,
            action_count=counts,
            energy_fj=np.rint(counts * np.array(hardware.reference.prices_fj)[action]).astype(np.int64),
        )


def list_lines(device: str, run: RunColumns) -> Iterator[PlacementLine]:
    """Yield the lines of a device's part, by subgraph and action."""
    actions = run.hardware.reference.actions
    row = np.searchsorted(run.operators.operator_index, run.ledger.operator_index)
    subgraph = run.operators.subgraph_index[row]
    key = subgraph * len(actions) + run.ledger.action_index
    distinct, index = np.unique(key, return_inverse=True)
    counts = np.bincount(index, weights=run.ledger.action_count, minlength=len(distinct))
    energy = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(energy, index, run.ledger.energy_fj)
    for one, count, fj in zip(distinct.tolist(), counts.tolist(), energy.tolist(), strict=True):
        node, at = divmod(one, len(actions))
        yield _line(device, node, actions[at].key, count, actions[at], fj)


def _line(
    device: str, subgraph: int | None, key: ActionKey, count: float, price: EnergyAction, energy_fj: int | None = None
) -> PlacementLine:
    """Return a ledger line; energy per action, basis and source come from `price`, which may be another action."""
    each_fj = price.energy_per_action_fj
    return PlacementLine(
        device=device,
        subgraph_index=subgraph,
        component=key[0],
        action=key[1],
        per=price.per,
        action_count=count,
        energy_per_action_fj=each_fj,
        energy_fj=round(count * each_fj) if energy_fj is None else energy_fj,
        basis=price.basis,
        source=price.source,
    )


def list_transfers(problem: Problem, copies: tuple[Copy, ...]) -> list[PlacementLine]:
    """Return one ledger line per link that a copy crosses, and two lines for a conversion."""
    lines = []
    for copy in copies:
        sender, receiver = problem.members[copy.start], problem.members[copy.end]
        component, action = LINK_ACTION
        lines += [
            PlacementLine(
                device=sender.name,
                subgraph_index=copy.subgraph,
                component=component,
                action=action,
                per="B",
                action_count=copy.byte_count,
                energy_per_action_fj=hop.fj_per_byte,
                energy_fj=round(copy.byte_count * hop.fj_per_byte),
                basis=hop.basis,
                source=f"{hop.name}: {hop.source}",
            )
            for hop in problem.ways.hops[copy.start, copy.end]
            if hop.s_per_byte
        ]
        reference = receiver.hardware.reference
        for action, amount in list_conversions(problem, copy):
            if (position := reference.position(("dram", action))) is not None:
                price = reference.actions[position]
                lines.append(_line(receiver.name, copy.subgraph, ("dram", CONVERSIONS[action]), amount, price))
    return lines


def list_conversions(problem: Problem, copy: Copy) -> list[tuple[str, float]]:
    """Return the DRAM actions that convert a copied value where it arrives, with the bytes of each; empty for none."""
    if not converts(problem.members[copy.start], problem.members[copy.end]):
        return []
    return [("read", copy.byte_count), ("write", float(problem.value_bytes[copy.value, copy.end]))]


def list_waits(problem: Problem, worked_fs: Mapping[int, float], period_fs: float) -> list[PlacementLine]:
    """Return ledger lines of static or idle power, for the part of the period in which a device does not work.

    `worked_fs` is device -> the part of the period whose static power is among the lines of the device's part.
    """
    lines = []
    for number, member in enumerate(problem.members):
        is_used = number in worked_fs
        rest_s = (period_fs - worked_fs.get(number, 0)) / FS_PER_S
        power_w = member.static_w if is_used else member.idle_w
        component, action = STATIC_ACTION if is_used else IDLE
        quantity = member.find_rest(is_used=is_used)
        if rest_s > 0.0:
            lines.append(
                PlacementLine(
                    device=member.name,
                    subgraph_index=None,
                    component=component,
                    action=action,
                    per="s",
                    action_count=rest_s,
                    energy_per_action_fj=power_w * FJ_PER_J,
                    energy_fj=round(rest_s * power_w * FJ_PER_J),
                    basis=quantity.basis,
                    source=f"while others work: {quantity.source}",
                )
            )
    return lines
