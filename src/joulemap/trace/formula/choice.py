"""Cost of a call: by the user's own formula, else by the built-in one."""

from __future__ import annotations

from joulemap.trace.formula.own import count_own
from joulemap.trace.formula.registry import Call, Cost, find_formula


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
    return registered(call)
