"""Load the roles of the actions of architecture classes from their data files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from joulemap.catalog.chip import list_architectures, load_class
from joulemap.catalog.schema import ArchitectureFile
from joulemap.domain.configuration import Precision
from joulemap.domain.reference import LINK_ACTION, LOSS_ACTION, MEMORY_ACTION, STATIC_ACTION, ActionKey, cycle_action
from joulemap.domain.role import ActionRole
from joulemap.system.errors import CatalogueError

SHARED: Final[dict[ActionKey, str]] = {
    **dict.fromkeys(map(cycle_action, get_args(Precision)), "busy_cycle"),
    MEMORY_ACTION: "busy_memory",
    LOSS_ACTION: "regulator",
    LINK_ACTION: "exchange",
    STATIC_ACTION: "static",
}
"""Actions that no class declares, with their roles: board, links to other devices, and static power."""

WAYS: Final = {"busy_cycle": "come from a power limit or a measured load of the board, which no circuit explains"}
"""Role -> its description in classes that do not describe it."""


STEP: Final = "instruction"
"""Role of the action that controls a unit, such as an instruction or a token."""


def load_roles() -> tuple[ActionRole, ...]:
    """Return the role of each action of each class; CatalogueError for the description of an unused role."""
    return tuple(role for name in list_architectures() for role in resolve_roles(load_class(name, "roles")))


def resolve_roles(shared: ArchitectureFile) -> Iterator[ActionRole]:
    """Yield the role of each action of a class; CatalogueError for the description of a role that no action of the
    class has.
    """
    roles = {(one.component, one.action): (one.role, one.amount) for one in shared.actions}
    surplus = shared.ways.keys() - {role for role, _ in roles.values()}
    if surplus:
        raise CatalogueError(f"{shared.architecture}.toml: ways: no action of the class has the role {min(surplus)}")
    for (component, action), (role, amount) in (roles | {key: (name, 1.0) for key, name in SHARED.items()}).items():
        yield ActionRole(
            architecture=shared.architecture,
            component=component,
            action=action,
            role=role,
            amount=amount,
            way=shared.ways.get(role, WAYS.get(role, "")),
            step=shared.control_step if role == STEP and amount else "",
        )
