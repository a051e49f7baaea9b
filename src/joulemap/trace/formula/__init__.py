"""The cost of each ATen operator: MACs, elementwise and special operations, GEMM view.

One small pure function per operator, registered on its ATen name without overload, in the module of its kind. An
operator without a formula becomes a row of kind `uncounted`: its bytes are known, its arithmetic is not. A person
registers formulas of their own by namespace and name (`own`), which come first.
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
from joulemap.trace.formula.choice import count
from joulemap.trace.formula.registry import ATTENTION, FORMULAS, KEPT_COMPOSITES, Call, Cost, formula

MODULES = (
    gemm, product, normalization, pooling, elementwise, movement, placement, algebra, transform, loss, sampling,
    gradient,
)  # fmt: skip
"""Where formulas are, as pages list them."""

__all__ = ["ATTENTION", "FORMULAS", "KEPT_COMPOSITES", "MODULES", "Call", "Cost", "count", "formula"]
