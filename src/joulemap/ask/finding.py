"""Result of a rule, and the rules that are functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from joulemap.ask.fact import Refusal, Value
from joulemap.ask.scope import Scope
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Finding:
    """Result of a rule about one run, or about the whole answer."""

    kind: str
    run_id: int | None = None
    """None for a finding about the whole answer, whose `doubt` is its weight."""
    values: Mapping[str, Value] = {}
    bias: float = 0.0
    """Natural logarithm of the factor that the run's value lacks, as far as it is known."""
    doubt: float = 0.0
    """Natural logarithm of the factor by which the value may be off in either direction."""


Rule: TypeAlias = Callable[[Scope], Iterable[Finding | Refusal]]

RULES: Final[list[Rule]] = []


def rule(find: Rule) -> Rule:
    """Register a rule on how the runs were selected or traced."""
    RULES.append(find)
    return find
