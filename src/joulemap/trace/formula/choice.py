"""The cost of a call: by a formula of a person's own, else by the one that ships."""

from __future__ import annotations

from joulemap.trace.formula.own import count_own
from joulemap.trace.formula.registry import Call, Cost, find_formula


def count(name: str, call: Call) -> Cost:
    """Return the cost of a call of the operator `name`; kind `uncounted` where no formula is registered.

    An operator that works in place (`floor_`) costs what the one that does not costs.
    """
    own = count_own(call)
    if own is not None:
        return own
    registered = find_formula(name, call.aten)
    if registered is None:
        return Cost(kind="uncounted", operation=name.strip("_"))
    return registered(call)
