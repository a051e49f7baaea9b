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


UNLISTED_NAME: Final = "an unlisted compiler"
"""Name of the compiler of a chip whose operators nobody has listed."""

HOST_OPERATIONS: Final = (
    "cholesky", "eig", "eigh", "inverse", "lu", "qr", "solve", "svd", "sort", "nms", "scan", "fft", "histogram",
    "sparse_mm", "matrix_exp",
)  # fmt: skip
"""Operations that no fixed-function accelerator is known to run: linear algebra, sorting (top-k too), selection whose
result has a size that depends on values (`scan`: nonzero, unique, masked_select), and transforms. No list of operators
of the accelerators in the catalogue that has one contains them."""


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
    """Kinds (`pool`), operations (`relu`), operations of one kind (`conv.conv2d`), `*` for all, `!NAME` for all but
    this operation."""
    host: str = ""
    """The hardware that computes the rest where none is named, `NAME` or `NAME@MODE`; empty for none."""
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str = attrs.field(validator=attrs.validators.min_len(1))

    def is_run(self, kind: str, operation: str, known: Collection[str]) -> bool:
        """Whether it runs an operator; `known` are its operators, and views are nothing to run."""
        if kind == "view" or kind in known or operation in known or f"{kind}.{operation}" in known:
            return True
        return "*" in known and f"!{operation}" not in known

    @property
    def is_unlisted(self) -> bool:
        """True if its operators are not listed."""
        return self.name == UNLISTED_NAME


UNLISTED: Final = Compiler(
    name=UNLISTED_NAME,
    cut="each",
    operators=("*", *(f"!{name}" for name in HOST_OPERATIONS)),
    basis="assumed",
    source="operators that no accelerator with a published list of operators runs; what else it lacks is not known",
)
"""Compiler of a chip of a class whose compilers do not run every operator, where its file lists none."""
