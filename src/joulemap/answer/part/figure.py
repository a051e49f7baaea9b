"""Figures of one run: the tree of its energy, and the roofline of its subgraphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from joulemap.answer.part.text import NO_ROOF, ROOF_CAPTION, TREE_ACTION, TREE_CAPTION
from joulemap.domain.table import Table
from joulemap.row.analyze import SubgraphRoof
from joulemap.row.report import EnergyLeaf
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.figure.figure import Figure

NAMED_ACTIONS: Final = 3
"""Maximum actions named in a caption."""


def draw_tree(leaves: Table[EnergyLeaf], subject: str) -> Figure:
    """Return the tree of a run's energy by category, action and subgraph."""
    from joulemap.figure.figure import make_figure

    return make_figure("tree", leaves, subject, _describe_actions(leaves))


def draw_roof(roofs: Table[SubgraphRoof], subject: str) -> Figure:
    """Return the roofline figure of a run's subgraphs."""
    from joulemap.figure.figure import make_figure

    return make_figure("roofline", roofs, subject, _describe_roof(list(roofs)))


def _describe_actions(leaves: Iterable[EnergyLeaf]) -> str:
    amounts: dict[str, int] = {}
    for leaf in leaves:
        amounts[leaf.action] = amounts.get(leaf.action, 0) + leaf.energy_fj
    whole = sum(amounts.values())
    largest = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:NAMED_ACTIONS]
    named = [TREE_ACTION(action=action, share=amount / whole) for action, amount in largest if whole]
    return TREE_CAPTION(energy=whole / FJ_PER_J, actions=named) if named else ""


def _describe_roof(roofs: list[SubgraphRoof]) -> str:
    drawn = [row for row in roofs if row.roofline_fraction is not None and row.attained_ops_per_s > 0.0]
    if not drawn:
        return NO_ROOF
    below = sum((row.dram_intensity_ops_per_byte or row.ridge_ops_per_byte) < row.ridge_ops_per_byte for row in drawn)
    return ROOF_CAPTION(
        below=below,
        drawn=len(drawn),
        nearest=max(drawn, key=lambda row: row.roofline_fraction or 0.0),
        longest=max(drawn, key=lambda row: row.latency_s),
        within=sum(row.dram_intensity_ops_per_byte is None for row in drawn) or None,
        missing=len(roofs) - len(drawn) or None,
    )
