"""What a taken-apart energy-delay product says in sentences: each stands for a row, and only where it is so."""

from __future__ import annotations

from typing import Final

from joulemap.domain.answer.edp import EdpBound, EdpTotal
from joulemap.present.cell import mark_projected, show, show_quantity
from joulemap.query.edp import EdpAnswer
from joulemap.report.level import EdpLevel

PARTS: Final = ("compute", "memory", "control", "static")

WORTH_SAYING: Final = 0.01
"""Part of the energy-delay product below which nothing is said about a saving."""


def _share(value: float) -> str:
    return show(value, "share_fraction")


def _product(value: float) -> str:
    return show_quantity(value, "Js")


def insights(answer: EdpAnswer) -> list[str]:
    """Return what the numbers say, largest first; nothing that they do not."""
    total = answer.total
    half = next(row for row in answer.cuts if row.level == EdpLevel.SUBGRAPH)
    top = answer.subgraphs[0]
    lines = [
        f"top {half.top_count} of {half.total_count} subgraphs = {_share(half.reached_fraction)} of E x T",
        f"halving energy and time of {top.name} alone would take {_share(top.halving_fraction)} off E x T",
    ]
    if len(answer.patterns) > 1:
        pattern = answer.patterns[0]
        macs = "" if pattern.mac_fraction is None else f" with {_share(pattern.mac_fraction)} of the MACs"
        lines.append(
            f"{pattern.fusion_pattern} takes {_share(pattern.share_fraction)} of it in {pattern.subgraph_count} "
            f"subgraphs{macs}"
        )
    part = max(PARTS, key=lambda name: getattr(total, f"{name}_share_fraction"))
    lines.append(f"the largest part is {part}: {_share(getattr(total, f'{part}_share_fraction'))} of it")
    lines += [_sentence(row, total) for row in answer.bounds if row.saving_fraction >= WORTH_SAYING]
    lines += _fusion(total)
    lines += _winners(answer)
    return lines


def _sentence(row: EdpBound, total: EdpTotal) -> str:
    saving = _share(row.saving_fraction)
    where = f"{row.subgraph_count} of {row.total_count} subgraphs"
    if row.remedy == "roofline":
        return f"with every subgraph at its roofline, {_product(row.edp_js)} would be left, {saving} less"
    if row.remedy == "no_memory_wait":
        return f"{where} wait for memory: without waiting, at most {saving} would go"
    if row.remedy == "full_units":
        return f"tiles leave units idle or pad them in {where}: full units would take off at most {saving}"
    if row.remedy == "no_launch":
        return f"the fixed cost of kernels: without it, {saving} would go"
    if row.remedy == "no_static":
        return f"static power is {_share(total.static_energy_fraction)} of the energy: without it, {saving} would go"
    return f"control energy: without it, {saving} would go"


def _fusion(total: EdpTotal) -> list[str]:
    """Return what fewer or more kernels would change, where that is worth saying."""
    ratio = total.separate_edp_js / total.edp_js
    separate = _product(total.separate_edp_js)
    lines = []
    if total.runtime == "fused":
        if ratio >= 1.0 + WORTH_SAYING:
            lines.append(f"fusing saves {_share(1.0 - 1.0 / ratio)}: operators as kernels of their own take {separate}")
        elif ratio <= 1.0 - WORTH_SAYING:
            lines.append(f"fusing costs here: operators as kernels of their own take {separate}")
        if total.alone_share_fraction >= WORTH_SAYING and total.alone_count < total.subgraph_count:
            lines.append(
                f"{total.alone_count} subgraphs of one operator, fused with nothing, take "
                f"{_share(total.alone_share_fraction)}"
            )
    elif total.runtime == "eager" and ratio <= 1.0 - WORTH_SAYING:
        lines.append(f"without launches by the host (--runtime graph), operators take {separate}")
    return lines


def _winners(answer: EdpAnswer) -> list[str]:
    """Return for how many subgraphs each compared hardware has the least share."""
    best = [row.hardware for row in answer.comparison if row.is_best]
    counts = sorted({name: best.count(name) for name in best}.items(), key=lambda item: (-item[1], item[0]))
    projected = answer.answers[0].projected
    return [f"{mark_projected(name, projected)} has the least EDP share in {count} of {len(best)} subgraphs"
            for name, count in counts]  # fmt: skip
