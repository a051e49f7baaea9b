"""Targets as people write them, and the designs that meet them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.explore.pose import Posed
from joulemap.design.outcome import OBJECTIVES
from joulemap.design.solve import Target, solve_values
from joulemap.design.space import Space
from joulemap.domain.settings import check_name
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.number import read_real
from joulemap.system.units import parse_si

if TYPE_CHECKING:
    from joulemap.design.group import Group

MOST_UNKNOWN: Final = 2


def solve_posed(posed: Posed, names: Sequence[str], asked: Sequence[Target]) -> Posed:
    """Return the one design of each group whose constants meet targets; UsageError for what cannot be solved.

    Raises UnsupportedError where none meets them, with the reason of the first.
    """
    if len(names) != len(asked) or not 1 <= len(asked) <= MOST_UNKNOWN:
        raise UsageError(
            f"--solve takes one or two constants and as many targets, found {len(names)} and {len(asked)}: "
            '--solve dram.bandwidth --for "latency = 10ms"'
        )
    found: dict[int, Group] = {}
    reasons: list[str] = []
    for place, group in enumerate(posed.groups):
        own = {one.name: list(one.values) for one in group.space.parameters}
        if group.space.size > 1:
            raise UsageError("--solve finds one design: vary other constants to one value each")
        unknown = Space.of(group.space.hardware, dict.fromkeys(names, "x1"), label="--solve {}")
        values = solve_values(group, [one.name for one in unknown.parameters], asked)
        if isinstance(values, str):
            reasons.append(f"{group.hardware}: {values}")
            continue
        space = Space.of(group.space.hardware, {**own, **{name: [value] for name, value in values.items()}})
        found[place] = attrs.evolve(group, space=space)
    if not found:
        raise UnsupportedError(reasons[0])
    return posed.keep(found)


def read_target(text: str) -> Target:
    """Return what `latency = 10ms` asks for; UsageError for a text that cannot be read."""
    name, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not written:
        raise UsageError(f'--for {text}: write OBJECTIVE=VALUE, as "latency = 10ms"')
    check_name("objective", name, OBJECTIVES)
    objective = OBJECTIVES[name]
    try:
        if objective.unit in ("mm2", "USD", "1/J"):
            value = read_real(written.removesuffix(objective.unit))
        else:
            value = parse_si(written, objective.unit)
    except ValueError as error:
        raise UsageError(f"--for {text}: {error}") from error
    if not value > 0.0:
        raise UsageError(f"--for {text}: it is not above 0")
    return Target(objective=objective, value=value)
