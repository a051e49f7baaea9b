"""What the compiler of a chip runs on it, and what it leaves to a host."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs

from joulemap.domain.kind import KINDS
from joulemap.domain.quantity import BASES
from joulemap.system.record import frozen

CUTS: Final = {
    "first": "all up to the first operator that it does not run",
    "stretch": "one stretch of operators without a gap",
    "each": "every operator that it runs, between those that it does not",
}
"""Where a compiler cuts a model that it does not run whole -> what it keeps on the chip."""


def _names(_instance: object, attribute: attrs.Attribute[tuple[str, ...]], names: tuple[str, ...]) -> None:
    for name in names:
        kind, dot, operation = name.partition(".")
        if not operation if dot else not name:
            raise ValueError(f"{attribute.name}: {name!r} is no kind, operation or KIND.OPERATION")
        if dot and kind not in KINDS:
            raise ValueError(f"{attribute.name}: {name!r}: {kind} is none of {', '.join(KINDS)}")


@frozen(kw_only=True)
class Compiler:
    """Which operators the compiler of a chip runs there, as its documentation lists them."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    cut: str = attrs.field(validator=attrs.validators.in_(tuple(CUTS)))
    operators: tuple[str, ...] = attrs.field(validator=_names)
    """Kinds (`pool`), operations (`relu`), or operations of one kind (`conv.conv2d`)."""
    host: str = ""
    """The hardware that computes the rest where none is named, `NAME` or `NAME@MODE`; empty for none."""
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str = attrs.field(validator=attrs.validators.min_len(1))

    def is_run(self, kind: str, operation: str, known: Collection[str]) -> bool:
        """Whether it runs an operator; `known` are its operators, and views are nothing to run."""
        return kind == "view" or kind in known or operation in known or f"{kind}.{operation}" in known
