"""The cost of each ATen operator: MACs, elementwise and special operations, GEMM view.

One small pure function per operator, registered on its ATen name without overload, in the module of its kind. An
operator without a formula becomes a row of kind `uncounted`: its bytes are known, its arithmetic is not.
"""

from joulemap.trace.formula import elementwise, gemm, movement, normalization, pooling
from joulemap.trace.formula.registry import ATTENTION, FORMULAS, KEPT_COMPOSITES, Call, Cost, count, formula

__all__ = [
    "ATTENTION",
    "FORMULAS",
    "KEPT_COMPOSITES",
    "Call",
    "Cost",
    "count",
    "elementwise",
    "formula",
    "gemm",
    "movement",
    "normalization",
    "pooling",
]
