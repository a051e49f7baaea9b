"""Operators that a chip's compiler supports, and those that fall back to a host."""

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
"""Partitioning of a model that the compiler supports only in part -> operators that stay on the chip."""


UNLISTED_NAME: Final = "an unlisted compiler"
"""Name of the compiler of a chip without a known list of supported operators."""

EXCEPTED: Final = "!"
"""Prefix of an operator that a compiler of nearly all operators leaves to a host."""

REFUSED: Final = "-"
"""Prefix of an operator that makes a compiler refuse the whole model."""

HOST_OPERATIONS: Final = (
    "cholesky", "eig", "eigh", "inverse", "lu", "qr", "solve", "svd", "sort", "nms", "scan", "fft", "histogram",
    "sparse_mm", "matrix_exp",
)  # fmt: skip
"""Operations that no fixed-function accelerator is known to run. They are linear algebra, sorting (including top-k),
selection with a value-dependent result size (`scan`: nonzero, unique, masked_select), and transforms. No published
operator list of an accelerator in the catalogue contains them.
"""


def _names(_instance: object, attribute: attrs.Attribute[tuple[str, ...]], names: tuple[str, ...]) -> None:
    for name in names:
        kind, dot, operation = name.removeprefix(REFUSED).partition(".")
        if not operation if dot else not name:
            raise ValueError(f"{attribute.name}: {name!r} is not a kind, operation or KIND.OPERATION")
        if dot and kind not in KINDS:
            raise ValueError(f"{attribute.name}: {name!r}: {kind} is none of {', '.join(KINDS)}")


@frozen(kw_only=True)
class Compiler:
    """Operators that a chip's compiler supports, according to its documentation."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    cut: str = attrs.field(validator=attrs.validators.in_(tuple(CUTS)))
    operators: tuple[str, ...] = attrs.field(validator=_names)
    """Supported operators: a kind (`pool`), an operation (`relu`), an operation of one kind (`conv.conv2d`), `*` for
    all, `!NAME` for an exception, `-NAME` for one that makes the compiler refuse the whole model.
    """
    host: str = ""
    """Default host for fallback operators, as `NAME` or `NAME@MODE`; empty for none."""
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str = attrs.field(validator=attrs.validators.min_len(1))

    def is_run(self, kind: str, operation: str, known: Collection[str]) -> bool:
        """Return True if the chip runs an operator, given its supported operators `known`; views always run."""
        if operation in HOST_WORK:
            return False
        if kind == "view" or kind in known or operation in known or f"{kind}.{operation}" in known:
            return True
        return "*" in known and f"!{operation}" not in known

    def is_refused(self, kind: str, operation: str) -> bool:
        """Return True if the compiler refuses a model with this operator, instead of leaving it to a host."""
        return any(f"{REFUSED}{name}" in self.operators for name in (kind, operation, f"{kind}.{operation}"))

    @property
    def is_unlisted(self) -> bool:
        """True if no list of supported operators is known."""
        return self.name == UNLISTED_NAME


HOST_WORK: Final = ("prepare_image", "find_boxes")
"""Operations around a model that the processor of an accelerator's host computes, whatever its compiler supports."""

UNLISTED: Final = Compiler(
    name=UNLISTED_NAME,
    cut="each",
    operators=("*", *(f"!{name}" for name in HOST_OPERATIONS)),
    basis="assumed",
    source="operators that no accelerator with a published list of operators runs; what else it lacks is not known",
)
"""Default compiler of a chip whose file lists none, in classes whose compilers do not support every operator."""
