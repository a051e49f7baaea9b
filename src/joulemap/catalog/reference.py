"""Energies per action of a chip: class energies scaled to its process node, with the chip's overrides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from joulemap.catalog.schema import ActionEntry, OverrideEntry
from joulemap.physics.record.configuration import BOARD
from joulemap.physics.record.hardware import Link
from joulemap.physics.record.quantity import Quantity, least_sure
from joulemap.physics.record.reference import (
    FJ_PER_J,
    LINK_ACTION,
    LOSS_ACTION,
    OFF_CORE,
    STATIC_ACTION,
    UNATTRIBUTED,
    EnergyAction,
    EnergyReference,
    price_by,
)
from joulemap.physics.record.silicon import SRAM_CELL_UM2

FJ_PER_PJ: Final = 1000.0

LOGIC_EXPONENT: Final = 0.57
"""Exponent of logic energy over process node. Source: Jouppi et al., Ten Lessons, ISCA 2021, Table 2: geometric mean of
eight operations from 45 to 7 nm falls by 2.87 = (45/7)^0.57.
"""

BELOW_7NM: Final = {
    "logic": {5.0: 0.70, 4.0: 0.65, 3.0: 0.48},
    "sram": {node: math.sqrt(area / SRAM_CELL_UM2[7.0]) for node, area in SRAM_CELL_UM2.items() if node < 7.0},
}
"""Kind of circuit -> node in nm -> energy relative to 7 nm; both follow LOGIC_EXPONENT from 7 nm up. Source for logic:
TSMC iso-speed power claims per node, compounded for 4 and 3 nm. SRAM arrays scale with the edge of a bit cell, which
sets the length of bit lines; their voltage is assumed not to fall.
"""

DIE_UNITS: Final = 108.0
DIE_NM: Final = 7.0
DIE_EXPONENT: Final = 0.4
"""Exponent with which the edge length of a unit grows with its process node."""

LEAST_LOSS: Final = 0.06
MOST_LOSS: Final = 0.2
"""Upper end of regulator loss, in joules per joule delivered: full current through two stages. The lower end,
`LEAST_LOSS`, holds for the best converters of servers.
"""

FINEST_NM: Final = 3.0
COARSEST_NM: Final = 65.0


def _relative_to_7nm(node_nm: float, circuit: str) -> float:
    if not FINEST_NM <= node_nm <= COARSEST_NM:
        raise ValueError(f"process node {node_nm:g} nm is outside {FINEST_NM:g} to {COARSEST_NM:g} nm")
    if node_nm >= 7.0:
        return float((node_nm / 7.0) ** LOGIC_EXPONENT)
    points = sorted({**BELOW_7NM[circuit], 7.0: 1.0}.items())
    for (low_nm, low), (high_nm, high) in itertools.pairwise(points):
        if low_nm <= node_nm <= high_nm:
            share = math.log(node_nm / low_nm) / math.log(high_nm / low_nm)
            return float(low * (high / low) ** share)
    raise AssertionError(node_nm)


def node_factor(from_nm: float, to_nm: float, circuit: str = "logic") -> float:
    """Return energy at `to_nm` divided by energy at `from_nm` for a kind of circuit, `logic` or `sram`.

    Wires and DRAM scale differently. Raises ValueError outside 3 to 65 nm.
    """
    return _relative_to_7nm(to_nm, circuit) / _relative_to_7nm(from_nm, circuit)


def die_factor(node_nm: float, unit_count: float) -> float:
    """Return the edge length of a die relative to an A100 with 108 units at 7 nm.

    The die is a square of units whose edge grows with the node to the power 0.4: 2.2 mm at 4 nm (AD104: 294 mm2, 60
    units), 2.76 at 7 (A100: 826 mm2, 108 units), 3.4 at 12 (TU104: 545 mm2, 48 units; V100: 815 mm2, 84 units), 3.8 at
    16 nm.
    """
    return float(math.sqrt(unit_count / DIE_UNITS) * (node_nm / DIE_NM) ** DIE_EXPONENT)


def resolve_reference(
    entries: Sequence[ActionEntry],
    overrides: Iterable[OverrideEntry],
    *,
    node_nm: float,
    unit_count: float,
    chip_energy: Quantity | None,
    static_power: Quantity,
    static_range: tuple[float, float] | None,
    regulator_loss: Quantity,
    links: Sequence[Link],
    priced_at: str,
) -> EnergyReference:
    """Return the class's energies per action at `node_nm`, with this chip's overrides, static power and regulators.

    `chip_energy` multiplies the class's energies of on-chip actions; overrides are not scaled. Energies fitted at the
    board, and their overrides, include regulator loss. That loss is divided out here, because it has a separate line,
    so that sums do not change.
    """
    is_whole = priced_at == BOARD
    carved = 1.0 + regulator_loss.value if is_whole else 1.0
    better: dict[tuple[str, str], OverrideEntry] = {}
    for override in overrides:
        key = f"energy_overrides.{override.component}.{override.action}"
        if (override.component, override.action) in better:
            raise ValueError(f"{key}: is listed twice")
        if not 0.0 <= override.energy_pj < math.inf:
            raise ValueError(f"{key}.energy_pj: {override.energy_pj:g} is not a number from 0")
        better[override.component, override.action] = override
    actions: list[EnergyAction] = []
    for entry in entries:
        reference = better.get((entry.component, entry.action))
        if reference is not None:
            factor, basis, source = 1.0, reference.basis, reference.source
            factors: tuple[str, ...] = ()
        else:
            factor, basis, source, factors = _scale(entry, node_nm, unit_count, chip_energy)
        energy_pj = (reference.energy_pj if reference is not None else entry.energy_pj * factor) / carved
        if is_whole:
            basis = least_sure("derived", basis)
            factors = (*factors, f"1 / {carved:g} (fitted to board power, whose regulator loss is a separate action)")
        actions.append(
            EnergyAction(
                category=entry.category,
                common_category=entry.common_category,
                component=entry.component,
                action=entry.action,
                part=entry.part,
                per=entry.per,
                energy_per_action_fj=energy_pj * FJ_PER_PJ,
                low_fj=None if reference else entry.low_pj * factor / carved * FJ_PER_PJ,
                high_fj=None if reference else entry.high_pj * factor / carved * FJ_PER_PJ,
                basis=basis,
                source=_add_factors(source, factors),
                count_formula=entry.count,
                evidence=None if reference else entry.evidence,
            )
        )
    static = static_action(static_power, static_range)
    surplus = better.keys() - {(entry.component, entry.action) for entry in entries}
    if surplus:
        raise ValueError(f"energy_overrides: no such action {', '.join('.'.join(key) for key in sorted(surplus))}")
    return EnergyReference((*actions, *link_actions(links), loss_action(regulator_loss), static))


def _add_factors(source: str, factors: Sequence[str]) -> str:
    """Return a source, followed by the factors with which its number was multiplied."""
    if not factors:
        return source
    return f"{source.rstrip('.')}. {'Factors' if len(factors) > 1 else 'Factor'}: {', '.join(factors)}"


def _scale(
    entry: ActionEntry, node_nm: float, unit_count: float, chip_energy: Quantity | None
) -> tuple[float, str, str, tuple[str, ...]]:
    """Return the factor on an action's class energy for a chip, with the basis and source of the result.

    The last item has a text for each part of the factor, with its reason.
    """
    factor, basis, source = 1.0, entry.basis, entry.source
    parts: list[str] = []
    if entry.scaling in BELOW_7NM:
        if entry.node_nm is None:
            raise ValueError(f"actions.{entry.component}.{entry.action}: scaling {entry.scaling} needs node_nm")
        factor = node_factor(entry.node_nm, node_nm, entry.scaling)
        if factor != 1.0:
            basis = least_sure("scaled", basis)
            parts.append(f"{factor:.3f} ({entry.node_nm:g} to {node_nm:g} nm)")
    elif entry.scaling == "die":
        factor = die_factor(node_nm, unit_count)
        basis = least_sure("scaled", basis)
        parts.append(f"{factor:.3f} (die of {unit_count:g} units at {node_nm:g} nm)")
    is_off_core = entry.category != UNATTRIBUTED and entry.common_category in OFF_CORE
    if chip_energy is not None and chip_energy.value != 1.0 and not is_off_core:
        factor *= chip_energy.value
        basis = least_sure(basis, chip_energy.basis)
        parts.append(f"{chip_energy.value:g} ({chip_energy.source})")
    return factor, basis, source, tuple(parts)


def link_actions(links: Sequence[Link]) -> Iterator[EnergyAction]:
    """Yield the energy per byte of the fastest link to other devices, or to the host if there is no such link."""
    own = (link for link in links if link.connects != "guest")  # a guest counts what crosses a port of its host
    for link in sorted(own, key=lambda link: (link.connects != "device", -link.bandwidth.value))[:1]:
        yield price_by(
            link.energy,
            LINK_ACTION,
            f"{link.name}: {link.energy.source}",
            category="links",
            common_category="communication",
            part="memory",
            per="B",
            count_formula="bytes that the device sends; as many are received",
        )


def loss_action(regulator_loss: Quantity) -> EnergyAction:
    """Return the loss per joule that passes the board's voltage regulators; a loss of 0 has no range."""
    return price_by(
        regulator_loss,
        LOSS_ACTION,
        category="board",
        common_category="board",
        part="control",
        per="J",
        low_fj=LEAST_LOSS * 1e15 if regulator_loss.value else None,
        high_fj=MOST_LOSS * 1e15 if regulator_loss.value else None,
        count_formula="energy of all actions on and off the chip; static power is the board's",
    )


def static_action(static_power: Quantity, watts: tuple[float, float] | None = None) -> EnergyAction:
    """Return the energy per second of static power, and its plausible range in watts if there is one."""
    low_w, high_w = watts or (None, None)
    return price_by(
        static_power,
        STATIC_ACTION,
        category="static",
        common_category="static",
        part="static",
        per="s",
        low_fj=None if low_w is None else low_w * FJ_PER_J,
        high_fj=None if high_w is None else high_w * FJ_PER_J,
        count_formula="latency",
    )
