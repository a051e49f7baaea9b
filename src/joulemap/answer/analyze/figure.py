"""Figures of one run: the tree of its energy, and the roofline of its subgraphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from joulemap.domain.table import Table
from joulemap.present.cell import show_count, show_share
from joulemap.row.analyze import SubgraphRoof
from joulemap.row.report import EnergyLeaf
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.figure.figure import Figure

TOLD_ACTIONS: Final = 3
"""Maximum actions named in a sentence."""


def draw_tree(leaves: Table[EnergyLeaf], subject: str) -> Figure:
    """Return the tree of a run's energy by category, action and subgraph."""
    from joulemap.figure.figure import make_figure

    return make_figure("tree", leaves, subject, _tell_actions(leaves))


def draw_roof(roofs: Table[SubgraphRoof], subject: str) -> Figure:
    """Return the roofline figure of a run's subgraphs."""
    from joulemap.figure.figure import make_figure

    return make_figure("roofline", roofs, subject, _tell_roof(roofs))


def _tell_actions(leaves: Iterable[EnergyLeaf]) -> str:
    amounts: dict[str, int] = {}
    for leaf in leaves:
        amounts[leaf.action] = amounts.get(leaf.action, 0) + leaf.energy_fj
    whole = sum(amounts.values())
    most = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:TOLD_ACTIONS]
    told = ", ".join(f"{action} {show_share(amount / whole)}" for action, amount in most if whole)
    return f"Most of its {whole / FJ_PER_J:.3g} J: {told}." if told else ""


def _tell_roof(roofs: Iterable[SubgraphRoof]) -> str:
    listed = list(roofs)
    drawn = [row for row in listed if row.roofline_fraction is not None and row.attained_ops_per_s > 0.0]
    if not drawn:
        return "No subgraph multiplies."
    within = sum(row.dram_intensity_ops_per_byte is None for row in drawn)
    below = sum((row.dram_intensity_ops_per_byte or row.ridge_ops_per_byte) < row.ridge_ops_per_byte for row in drawn)
    nearest, longest = (
        max(drawn, key=lambda row: row.roofline_fraction or 0.0),
        max(drawn, key=lambda row: row.latency_s),
    )
    lines = [
        f"{below} of {show_count(len(drawn), 'subgraph')} are under the roof of the memory",
        f"nearest to its roof is {nearest.name} at {show_share(nearest.roofline_fraction)}",
        f"{longest.name}, which takes longest, is at {show_share(longest.roofline_fraction)}, bound by "
        f"{longest.bottleneck}",
        *([f"{within} move nothing off chip"] if within else []),
        *([f"{len(listed) - len(drawn)} without products are not drawn"] if len(drawn) < len(listed) else []),
    ]
    return f"{'; '.join(lines)}."
