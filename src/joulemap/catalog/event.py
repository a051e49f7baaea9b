"""Load the events of architecture classes, and the roles of their actions, from their data files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, get_args

from joulemap.catalog.chip import list_architectures, load_class
from joulemap.catalog.schema import ArchitectureFile, EventEntry
from joulemap.domain.event import Event, EventTerm
from joulemap.domain.role import ActionRole
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.reference import (
    CLOCK_ACTION,
    CYCLE_ACTION,
    LINK_ACTION,
    LOSS_ACTION,
    MEMORY_ACTION,
    OTHER_ACTION,
    STANDBY_ACTION,
    STATIC_ACTION,
    ActionKey,
    cycle_action,
)
from joulemap.system.errors import CatalogueError

TERM: Final = re.compile(r"(-?)(?:(\d+) )?(\w+)\.(\w+)")
"""Pattern of a term of an event: sign, factor, component and action."""


def load_events(supplied: Iterable[str] = ()) -> tuple[Event, ...]:
    """Return the events of all classes, those that packages supply last; CatalogueError for an invalid one."""
    names = (*list_architectures(), *supplied)
    return tuple(event for name in names for event in resolve_events(load_class(name, "events")))


def resolve_events(shared: ArchitectureFile) -> Iterator[Event]:
    """Yield the events of a class; CatalogueError for an invalid one."""
    actions = {f"{one.component}.{one.action}" for one in shared.actions}
    divisors = {f"coefficient.{one.name}" for one in shared.coefficients} | {
        one.quantity for one in shared.defaults if one.quantity.startswith("geometry.") and not one.of
    }
    seen: dict[tuple[str, str], EventEntry] = {}
    for entry in shared.events:
        label = f"{shared.architecture}.toml: events.{entry.component}.{entry.event}"
        if (entry.component, entry.event) in seen:
            raise CatalogueError(f"{label}: is listed twice")
        if entry.divisor and entry.divisor not in divisors:
            raise CatalogueError(
                f"{label}.divisor: {entry.divisor!r} is neither a coefficient of the class nor a geometry with a "
                "default, so some chips lack it"
            )
        whole = seen.get((entry.component, entry.part_of))
        if entry.part_of and (whole is None or whole.per != entry.per):
            raise CatalogueError(
                f"{label}.part_of: {entry.part_of!r}, expected an earlier event counted in {entry.per}"
            )
        seen[entry.component, entry.event] = entry
        yield Event(
            architecture=shared.architecture,
            component=entry.component,
            event=entry.event,
            per=entry.per,
            part_of=entry.part_of,
            meaning=entry.meaning,
            divisor=entry.divisor,
            terms=tuple(_read_terms(entry, actions, label)),
        )


def _read_terms(entry: EventEntry, actions: set[str], label: str) -> Iterator[EventTerm]:
    factors = dict(_read_factor(text, label) for text in entry.terms)
    is_sum = min(factors.values()) > 0.0
    costs = entry.costs if entry.costs is not None else [name for name in factors if is_sum]
    for name in dict.fromkeys((*factors, *entry.floor, *costs)):
        if name not in actions:
            raise CatalogueError(f"{label}: no such action {name}")
        component, action = name.split(".")
        yield EventTerm(
            component=component,
            action=action,
            factor=factors.get(name, 0.0),
            floor=float(name in entry.floor),
            is_cost=name in costs,
        )


def _read_factor(text: str, label: str) -> tuple[str, float]:
    """Return (action, factor) of a term of an event."""
    match = TERM.fullmatch(text)
    if match is None:
        raise CatalogueError(f"{label}.terms: {text!r}, expected component.action, with a sign or a factor before it")
    sign, factor, component, action = match.groups()
    return f"{component}.{action}", float(f"{sign}{factor or 1}")


SHARED: Final[dict[ActionKey, str]] = {
    **dict.fromkeys(map(cycle_action, get_args(Precision)), "busy_cycle"),
    OTHER_ACTION: "busy_cycle",
    CYCLE_ACTION: "busy_cycle",
    CLOCK_ACTION: "clock",
    STANDBY_ACTION: "standby",
    MEMORY_ACTION: "busy_memory",
    LOSS_ACTION: "regulator",
    LINK_ACTION: "exchange",
    STATIC_ACTION: "static",
}
"""Action -> role, for actions that belong to no class: of the board, of links to other devices, and static power."""

WAYS: Final = {"busy_cycle": "come from a power limit or a measured load of the board"}
"""Role -> description, for roles that a class's file does not describe."""


STEP: Final = "instruction"
"""Role of the action that controls a unit; a class may count instructions or tokens."""


def load_roles(supplied: Iterable[str] = ()) -> tuple[ActionRole, ...]:
    """Return the role of each action of each class, those that packages supply last.

    Raises CatalogueError if a class describes a role that it does not use.
    """
    names = (*list_architectures(), *supplied)
    return tuple(role for name in names for role in resolve_roles(load_class(name, "roles")))


def resolve_roles(shared: ArchitectureFile) -> Iterator[ActionRole]:
    """Yield the role of each action of a class.

    Raise CatalogueError if the class describes a role that none of its actions has.
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
