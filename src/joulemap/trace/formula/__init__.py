"""Cost of each ATen operator: MACs, elementwise and special operations, and its sizes as a GEMM.

Each operator has one small pure function, registered on its ATen name without overload, in the module of its kind. An
operator without a formula has the kind `uncounted`: its bytes are known, its arithmetic is not. Users register formulas
of their own by namespace and name (`own`), which take precedence.
"""

from joulemap.trace.formula import (
    algebra,
    elementwise,
    gemm,
    gradient,
    loss,
    movement,
    normalization,
    placement,
    pooling,
    product,
    sampling,
    transform,
)
from joulemap.trace.formula.own import count
from joulemap.trace.formula.registry import ATTENTION, FORMULAS, KEPT_COMPOSITES, Call, Cost, formula

MODULES = (
    gemm, product, normalization, pooling, elementwise, movement, placement, algebra, transform, loss, sampling,
    gradient,
)  # fmt: skip
"""Modules with formulas, in the order of the documentation page."""

__all__ = ["ATTENTION", "FORMULAS", "KEPT_COMPOSITES", "MODULES", "Call", "Cost", "count", "formula"]
