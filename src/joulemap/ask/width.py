"""Bytes of a model's profile at the precisions of its file.

bytes of an access = traced bytes x bytes per element at the file's precision / bytes per element at the traced dtype
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from joulemap.physics.width import Widths
from joulemap.physics.workload import ROLE_CODE, Floats, columns_of, sum_by

if TYPE_CHECKING:
    from joulemap.domain.table import Table
    from joulemap.generated.model import ModelProfile, OperationShare, PatternShare
    from joulemap.physics.record.workload import Workload

CONSTANT: Final = "constant"
"""Fusion pattern of operators that depend on no input."""


def scale_rows(
    totals: Table[ModelProfile],
    mix: Table[OperationShare],
    patterns: Table[PatternShare],
    work: Workload,
    precision: str,
    weights: str,
) -> dict[str, Table[Any]]:
    """Return the tables of a profile by name, with bytes at a precision of activations and one of stored weights.

    `weights` is empty if weights have the precision of activations.
    """
    columns = columns_of(work)
    widths = Widths(columns, precision, weights)
    moved, fused = columns.access_bytes * widths.stored_scale, columns.access_fused_bytes * widths.stored_scale
    fused = fused * ~columns.is_foldable[columns.access_operator]
    each, each_fused = (sum_by(columns.access_operator, one, columns.operator_count) for one in (moved, fused))
    return {
        "totals": totals.with_rows([_scale_total(totals[0], widths, moved, fused)]),
        "mix": _scale_mix(mix, work, each),
        "patterns": _scale_patterns(patterns, work, each, each_fused),
    }


def _scale_total(total: ModelProfile, widths: Widths, moved: Floats, fused: Floats) -> ModelProfile:
    every, least = float(moved.sum()), float(fused.sum())
    peak, fused_peak = (round(widths.peak_activation_bytes(is_fused=is_fused)) for is_fused in (False, True))
    return total.replace(
        weight_bytes=round(widths.weight_bytes),
        weight_read_bytes=round(float(moved[widths.work.access_role == ROLE_CODE["weight"]].sum())),
        moved_bytes=round(every),
        fused_moved_bytes=round(least),
        peak_activation_bytes=peak,
        fused_peak_activation_bytes=fused_peak,
        arithmetic_intensity_ops_per_byte=2 * (total.mac_count + total.foldable_mac_count) / every if every else None,
        fused_arithmetic_intensity_ops_per_byte=2 * total.mac_count / least if least else None,
    )


def _scale_mix(mix: Table[OperationShare], work: Workload, each: Floats) -> Table[OperationShare]:
    moved = Counter[tuple[str, str]]()
    for operator, size in zip(work.operators, each.tolist(), strict=True):
        if not operator.is_foldable:
            moved[operator.operation, operator.kind] += size
    sizes = [moved[row.operation, row.kind] for row in mix]
    whole = sum(sizes) or 1.0
    scaled = [
        row.replace(moved_bytes=round(size), moved_fraction=size / whole) for row, size in zip(mix, sizes, strict=True)
    ]
    return mix.with_rows(sorted(scaled, key=lambda row: (-row.mac_count, -row.moved_bytes, row.operation, row.kind)))


def _scale_patterns(
    patterns: Table[PatternShare], work: Workload, each: Floats, each_fused: Floats
) -> Table[PatternShare]:
    pattern_of = {index: one.pattern for one in work.subgraphs for index in one.operator_indices}
    moved, fused = Counter[str](), Counter[str]()
    for index, operator in enumerate(work.operators):
        pattern = CONSTANT if operator.is_foldable else pattern_of[index]
        moved[pattern] += each[index]
        fused[pattern] += each_fused[index]
    return patterns.with_rows(
        row.replace(
            moved_bytes=round(moved[row.fusion_pattern]),
            fused_moved_bytes=round(fused[row.fusion_pattern]),
            saved_fraction=1.0 - fused[row.fusion_pattern] / moved[row.fusion_pattern]
            if moved[row.fusion_pattern]
            else None,
        )
        for row in patterns
    )
