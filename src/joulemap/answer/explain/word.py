"""The words of a difference: what is spent on what, and why the greater is greater."""

from __future__ import annotations

from typing import Final

from joulemap.answer.run import CATEGORIES
from joulemap.domain.role import ROLES, Role
from joulemap.row.explain import CategoryDifference, RoleDifference

SPENT: Final = {**CATEGORIES, "on_chip_memory": "on-chip memory", "board": "rest of the board"}
"""Common category, all memories on a chip together -> what energy is spent on."""

BOUND: Final = {"compute": "time computing", "memory": "time for memory", "launch": "fixed time"}
"""What bounds time -> what is spent on."""

PURPOSES: Final = {
    "weights": "products with weights",
    "experts": "experts",
    "cache": "keys and values",
    "attention": "attention",
    "logits": "logits",
    "communication": "communication",
    "host": "starts of kernels",
    "static": "static power",
    "rest": "norms and the rest",
}
"""What work is for in a language model -> its words."""

Words = tuple[str, str]
"""What is said of the greater, and of the lesser."""

COUNT, PRICE, PRESENCE = "count", "price", "presence"

CAUSES: Final[dict[str, Words]] = {
    COUNT: ("more of it", "less"),
    PRICE: ("dearer", "cheaper"),
    PRESENCE: ("extra acts", ""),
}

MORE_PARTS: Final = ("more parts", "")

OF_CATEGORY: Final[dict[tuple[str, str], dict[str, Words]]] = {
    ("energy", "static"): {COUNT: ("longer", "shorter"), PRICE: ("more watts", "fewer watts")},
    ("time", "compute"): {COUNT: ("more work", "less"), PRICE: ("slower", "faster"), PRESENCE: MORE_PARTS},
    ("time", "memory"): {COUNT: ("more bytes", "fewer"), PRICE: ("slower", "faster"), PRESENCE: MORE_PARTS},
    ("time", "launch"): {
        COUNT: ("more kernels", "fewer"), PRICE: ("longer each", "shorter each"), PRESENCE: MORE_PARTS,
    },
}  # fmt: skip
"""Quantity and category -> words in place of those that hold for all."""

TOLD: Final = 0.25
"""Of the difference: a cause that moves less is not mentioned beside a larger one."""


def name_category(row: CategoryDifference) -> str:
    """Return what is spent on."""
    return (SPENT if row.quantity == "energy" else BOUND)[row.category]


def say_why(row: CategoryDifference) -> str:
    """Return in a few words why the greater is greater: the largest cause, and what goes against it or with it."""
    difference = abs(row.difference_exact)
    if not difference:
        return ""
    if not (row.spent_a_exact and row.spent_b_exact):
        return "only there"
    words = {**CAUSES, **OF_CATEGORY.get((row.quantity, row.category), {})}
    sign = 1 if row.difference_exact > 0 else -1
    moved = {COUNT: row.by_count_exact, PRICE: row.by_price_exact, PRESENCE: row.by_presence_exact}
    told = sorted(
        ((cause, sign * exact) for cause, exact in moved.items() if abs(exact) >= TOLD * difference),
        key=lambda one: -one[1],
    )
    but = "" if row.category == "static" else "but "
    along = [words[cause][0] for cause, exact in told if exact > 0]
    against = [f"{but}{words[cause][1]}" for cause, exact in told[::-1] if exact < 0 and words[cause][1]]
    first, *others = [along[0], *against, *along[1:]]
    return ", ".join([first.removesuffix(" of it"), others[0].removesuffix(" of it")]) if others else first


def find_role(row: RoleDifference) -> Role:
    """Return the role of a row; one of its own for an action that none is known of."""
    return ROLES.get(row.role) or Role(row.role, row.role, "count")
