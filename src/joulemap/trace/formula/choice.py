"""Cost of a call: by the user's own formula, else by the built-in one."""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.trace.formula.own import count_own
from joulemap.trace.formula.registry import Call, Cost, find_formula

COMPLEX_MACS: Final = 4
"""Real MACs of a complex one: (a + b i) (c + d i) + (e + f i) has four products of real numbers."""

COMPLEX_OPERATIONS: Final = {"mul": 6, "div": 11}
"""Elementwise operator -> its real operations on complex numbers; all others take two, one for each part.

Derived: four products and two sums; for a quotient, also a squared norm (three) and two divisions.
"""


def count(name: str, call: Call) -> Cost:
    """Return the cost of a call of the operator `name`; kind `uncounted` if no formula is registered.

    An in-place operator (`floor_`) costs as much as the operator that is not in place.
    """
    own = count_own(call)
    if own is not None:
        return own
    registered = find_formula(name, call.aten)
    if registered is None:
        return Cost(kind="uncounted", operation=name.strip("_"))
    cost = registered(call)
    return _count_complex(name, cost) if cost.operation != "fft" and _is_complex(call) else cost


def _is_complex(call: Call) -> bool:
    """Return True if a tensor argument has complex numbers."""
    return any(getattr(getattr(one, "dtype", None), "is_complex", False) for one in call.args)


def _count_complex(name: str, cost: Cost) -> Cost:
    """Return the cost of an operator on complex numbers, in real operations.

    A complex GEMM of M x K by K x N is a real one of M x 2 K by 2 K x 2 N.
    """
    each = COMPLEX_OPERATIONS.get(name.strip("_"), 2)
    gemm = cost.gemm and (cost.gemm[0], 2 * cost.gemm[1], 2 * cost.gemm[2], cost.gemm[3])
    return attrs.evolve(
        cost,
        mac_count=COMPLEX_MACS * cost.mac_count,
        elementwise_count=each * cost.elementwise_count,
        special_count=2 * cost.special_count,
        gemm=gemm,
    )
