"""Operators that a chip's compiler supports, and those that fall back to a host."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.physics.record.kind import KINDS
from joulemap.physics.record.quantity import BASES
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CUTS: Final = ("first", "stretch", "each")
"""Ways to split a model with unsupported operators between chip and host.

The chip runs all operators up to the first unsupported one, one stretch of operators without a gap, or every supported
operator.
"""

UNLISTED_NAME: Final = "an unlisted compiler"
"""Name of the compiler of a chip without a known list of supported operators."""

EXCEPTED: Final = "!"
"""Prefix of an operator that falls back to the host although `*` supports nearly all others."""

REFUSED: Final = "-"
"""Prefix of an operator that makes a compiler refuse the whole model."""

EVERYTHING: Final = "*"
"""Entry of an operator list that supports every operator without an entry of its own."""

ANY: Final = "any"
"""Name in an entry that limits the sizes of all operators; it does not make an operator supported."""

SIZES: Final = ("kernel", "stride", "rank")
"""Sizes that an entry can limit: longest side and longest step of a window, and dimensions of the output."""

HOST_OPERATIONS: Final = (
    "cholesky", "eig", "eigh", "inverse", "lu", "qr", "solve", "svd", "sort", "nms", "scan", "fft", "histogram",
    "sparse_mm", "matrix_exp",
)  # fmt: skip
"""Operations that few fixed-function accelerators run. They are linear algebra, sorting (including top-k), selection
with a value-dependent result size (`scan`: nonzero, unique, masked_select), and transforms. Some published operator
lists in the catalogue contain top-k or non-maximum suppression; one also contains transforms and inverses.
"""


@frozen(kw_only=True)
class Limit:
    """Range of sizes at which a compiler supports an operator."""

    name: str
    """Limited operators: a kind (`pool`), an operation (`relu`), an operation of one kind (`conv.conv2d`), or `ANY`."""
    size: str = attrs.field(validator=attrs.validators.in_(SIZES))
    ranges: tuple[tuple[int, int], ...]
    """Allowed ranges of the size, each as (lowest, highest)."""

    def names(self, kind: str, operation: str) -> bool:
        """Return True if this limit applies to an operator; it never applies to views."""
        return kind != "view" and self.name in (ANY, kind, operation, f"{kind}.{operation}")

    def allows(self, size: Any) -> Any:
        """Return True if the size is within the limit. An array of sizes gives an array of bool."""
        return reduce(or_, ((low <= size) & (size <= high) for low, high in self.ranges))

    def describe(self, operation: str, size: int) -> str:
        """Describe an operation whose size is outside the limit, with the size and the limit."""
        spans = str(self).partition("=")[2].replace(",", " or ")
        return f"{operation} of {self.size} {size} (limit {spans})"

    def __str__(self) -> str:
        """Return the limit in the form of a hardware file."""
        spans = (str(low) if low == high else f"{low}-{high}" for low, high in self.ranges)
        return f"{self.size}={','.join(spans)}"


def _read_limit(name: str, text: str) -> Limit:
    """Parse one limit in an entry for operator `name`, such as `stride=1-7` or `kernel=1,3`; ValueError if it is
    invalid.
    """
    size, _, spans = text.partition("=")
    matches = [re.fullmatch(r"(\d+)(?:-(\d+))?", span) for span in spans.split(",")]
    if size not in SIZES or not all(matches):
        raise ValueError(f"{name} {text}: expected a size of {', '.join(SIZES)} and its range, such as stride=1-7")
    ranges = tuple((int(one[1]), int(one[2] or one[1])) for one in matches if one)
    return Limit(name=name, size=size, ranges=ranges)


def _names(_instance: object, attribute: attrs.Attribute[tuple[str, ...]], entries: tuple[str, ...]) -> None:
    for entry in entries:
        name, *limits = entry.split(" ")
        kind, dot, operation = name.removeprefix(REFUSED).partition(".")
        if not operation if dot else not name:
            raise ValueError(f"{attribute.name}: {name!r} is not a kind, operation or KIND.OPERATION")
        if dot and kind not in KINDS:
            raise ValueError(f"{attribute.name}: {name!r}: {kind} is none of {', '.join(KINDS)}")
        for limit in limits:
            _read_limit(name, limit)


@lru_cache(maxsize=4096)
def read_window(scalars: str, *, is_single: bool = False) -> tuple[int, int]:
    """Return (kernel size, stride) from an operator's arguments, each the largest over all dimensions; 1 without a
    window.

    `is_single` is True for a window that gives one output per channel, so that its stride has no effect.
    """
    kernel, stride = (
        max(map(int, re.findall(r"\d+", match[1])), default=0)
        if f"{name}=" in scalars and (match := re.search(rf"\b{name}=(\[[^]]*\]|\d+)", scalars))
        else 1
        for name in ("kernel", "stride")
    )
    return kernel or 1, 1 if is_single else stride or kernel or 1


def is_single_output(shape: Sequence[int]) -> bool:
    """Return True if an output has one spatial position; its channels come first, or last as in TFLite files."""
    is_last = len(shape) > 3 and all(size == 1 for size in shape[1:-1])
    return is_last or all(size == 1 for size in shape[2:])


def name_sizes(kernel: Any, stride: Any, rank: Any) -> dict[str, Any]:
    """Return the sizes that limits refer to as a mapping from their names; each may be a number or an array."""
    return {"kernel": kernel, "stride": stride, "rank": rank}


def read_limits(entries: Sequence[str]) -> tuple[Limit, ...]:
    """Return all size limits in a list of supported operators, such as `pool.max_pool kernel=1-7`."""
    split = (entry.split(" ") for entry in entries if " " in entry)
    return tuple(_read_limit(name, limit) for name, *limits in split for limit in limits)


def describe_excess(limits: Sequence[Limit], operation: str, sizes: Mapping[str, int]) -> str:
    """Describe an operation whose size is outside one of these limits, with the first such limit; empty if there is
    none.
    """
    return next((one.describe(operation, sizes[one.size]) for one in limits if not one.allows(sizes[one.size])), "")


@frozen(kw_only=True)
class Compiler:
    """Operators that a chip's compiler supports, according to its documentation."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    cut: str = attrs.field(validator=attrs.validators.in_(CUTS))
    operators: tuple[str, ...] = attrs.field(validator=_names)
    """Supported operators: a kind (`pool`), an operation (`relu`), an operation of one kind (`conv.conv2d`), `*` for
    all, `!NAME` for an exception, `-NAME` for one that makes the compiler refuse the whole model. Limits of sizes may
    follow a name (`pool.max_pool kernel=1-7 stride=1-8`); `ANY` limits every operator.
    """
    host: str = ""
    """Default host for fallback operators, as `NAME` or `NAME@MODE`; empty if there is none."""
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str = attrs.field(validator=attrs.validators.min_len(1))

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the entries, without their limits."""
        return frozenset(entry.partition(" ")[0] for entry in self.operators)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Limits of all entries."""
        return read_limits(self.operators)

    def is_run(self, kind: str, operation: str) -> bool:
        """Return True if the chip runs an operator at some size; views and the overhead of software run unless
        the compiler refuses them.
        """
        if operation in HOST_WORK or self.is_refused(kind, operation):
            return False
        names = self.names
        if kind in ("view", "overhead") or kind in names or operation in names or f"{kind}.{operation}" in names:
            return True
        return EVERYTHING in names and f"!{operation}" not in names

    def describe_excess(self, kind: str, operation: str, sizes: Mapping[str, int]) -> str:
        """Describe an operation whose size the compiler does not support, with the first limit that it breaks; empty if
        none.
        """
        return describe_excess([one for one in self.limits if one.names(kind, operation)], operation, sizes)

    def is_refused(self, kind: str, operation: str) -> bool:
        """Return True if the compiler refuses a model with this operator, instead of leaving it to a host."""
        return any(f"{REFUSED}{name}" in self.names for name in (kind, operation, f"{kind}.{operation}"))

    @property
    def is_unlisted(self) -> bool:
        """True if no list of supported operators is known."""
        return self.name == UNLISTED_NAME


HOST_WORK: Final = ("prepare_image", "find_boxes")
"""Operations before and after a model, such as image preparation, that always run on the processor of the host."""

UNLISTED: Final = Compiler(
    name=UNLISTED_NAME,
    cut="each",
    operators=("*", *(f"!{name}" for name in HOST_OPERATIONS)),
    basis="assumed",
    source="operators that no accelerator with a published list of operators runs; what else it lacks is not known",
)
"""Default compiler of a chip whose file lists none, in classes whose compilers do not support every operator."""
