"""Values and operators of a model file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ELEMENTS: Final = 2**48
"""Maximum elements of a value."""

LARGEST_INTEGER: Final = 2**63 - 1
"""Largest integer of an ONNX file."""

MOST_RANK: Final = 64
"""Maximum axes of a value, as in numpy."""

MOST_NODES: Final = 100_000
"""Maximum operators of a graph after functions, branches and loops are expanded. The largest exported graphs have about
50,000; each takes a few kilobytes while it is read.
"""

MOST_LINKS: Final = 1_000_000
"""Maximum inputs and outputs of all operators of a graph: ten per operator, of which most have three."""

DTYPES: Final[Mapping[int, tuple[str, int]]] = {
    1: ("fp32", 4), 2: ("uint8", 1), 3: ("int8", 1), 4: ("uint16", 2), 5: ("int16", 2), 6: ("int32", 4),
    7: ("int64", 8), 8: ("string", 8), 9: ("bool", 1), 10: ("fp16", 2), 11: ("fp64", 8), 12: ("uint32", 4),
    13: ("uint64", 8), 16: ("bf16", 2), 17: ("fp8_e4m3fn", 1), 19: ("fp8_e5m2", 1), 21: ("uint4", 1), 22: ("int4", 1),
}  # fmt: skip
"""Number of an ONNX element type -> (dtype, bytes per element)."""

FLOATS: Final = frozenset({"fp32", "fp16", "fp64", "bf16"})
"""Floating-point dtypes, whose bytes per element follow the precision of a run."""


def check_shape(owner: str, shape: Sequence[int]) -> None:
    """Raise ModelError for a shape with a negative size, too many axes or too many elements."""
    if len(shape) > MOST_RANK or min(shape, default=0) < 0 or math.prod(shape) > MOST_ELEMENTS:
        shown = "x".join(map(str, shape[:MOST_RANK]))[:80]
        raise ModelError(
            f"{owner} has the shape {shown}, expected at most {MOST_RANK} axes, sizes of at least 0 and at most "
            f"{MOST_ELEMENTS:,} elements"
        )


@attrs.define(eq=False)
class Value:
    """Tensor of a file's graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "fp32"
    item_size: int = 4
    _known: NDArray[Any] | Callable[[], NDArray[Any] | None] | None = None
    is_weight: bool = False
    """True if the file stores the value, or if it follows from stored values without arithmetic."""
    is_input: bool = False
    is_fixed: bool = False
    """True if the value is computed from weights alone, so that a compiler evaluates it once."""

    @property
    def known(self) -> NDArray[Any] | None:
        """Elements of a small value that depends on no input; None for others. Stored ones are decoded at first use."""
        if callable(self._known):
            self._known = self._known()
        return self._known

    @known.setter
    def known(self, elements: NDArray[Any] | None) -> None:
        self._known = elements

    @property
    def count(self) -> int:
        """Number of elements of the value."""
        return math.prod(self.shape)

    @property
    def byte_count(self) -> int:
        """Bytes of the value's elements."""
        return self.count * self.item_size

    @property
    def item_bytes(self) -> int:
        """Bytes per element if they follow the precision of a run, else 0."""
        return self.item_size if self.dtype in FLOATS else 0


def list_present(values: Iterable[Value | None]) -> list[Value]:
    """Return the values that are not omitted."""
    return [one for one in values if one is not None]


@attrs.define(eq=False)
class Node:
    """Operator of a graph; attributes are numbers, texts or lists."""

    op: str
    name: str
    inputs: Sequence[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any]

    def value(self, index: int) -> Value | None:
        """Return the input at a position; None if it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def given(self, index: int) -> Value:
        """Return the input at a position; ModelError if it is omitted."""
        value = self.value(index)
        if value is None:
            raise ModelError(f"{self.title} lacks its input {index + 1}")
        return value

    def __str__(self) -> str:
        """Return the operator and the name, for errors."""
        return self.title

    @property
    def title(self) -> str:
        """Operator and name, for errors."""
        return f"{self.op} {self.name[:80]!r}"

    def integer(
        self, attribute: str, default: int | None = None, *, least: int = 0, most: int = LARGEST_INTEGER
    ) -> int:
        """Return an attribute that is one integer; ModelError if it is not, is out of range, or lacks a default."""
        number = self.attributes.get(attribute, default)
        if number is None:
            raise ModelError(f"{self.title} lacks its attribute {attribute}")
        if not isinstance(number, int) or not least <= number <= most:
            limit = f"at least {least}" if most == LARGEST_INTEGER else f"{least} to {most}"
            raise ModelError(f"{self.title} has {attribute}={number!r:.40}, expected an integer of {limit}")
        return number

    def integers(self, attribute: str, default: Sequence[int] | None = None, *, least: int | None = 0) -> list[int]:
        """Return an attribute that is a list of integers; ModelError as for `integer`. Without `least`, any integer."""
        numbers = self.attributes.get(attribute, default)
        if numbers is None:
            raise ModelError(f"{self.title} lacks its attribute {attribute}")
        if isinstance(numbers, str | int | float) or not all(isinstance(one, int) for one in numbers):
            raise ModelError(f"{self.title} has {attribute}={numbers!r:.40}, expected a list of integers")
        if least is not None and min(numbers, default=least) < least:
            raise ModelError(f"{self.title} has {attribute}={numbers!r:.40}, expected integers of at least {least}")
        return list(numbers)

    def axis(self, rank: int, default: int) -> int:
        """Return the attribute `axis`, counted from the first axis; ModelError for one that the rank does not have."""
        axis = self.integer("axis", default, least=-rank)
        if axis >= max(rank, 1):
            raise ModelError(f"{self.title} has axis={axis}, expected less than {rank}")
        return axis % max(rank, 1)

    def numbers(self, index: int, attribute: str = "") -> list[float] | None:
        """Return the known elements of an input, or of an attribute, which older operator sets use instead."""
        value = self.value(index)
        if value is not None:
            return None if value.known is None else [float(one) for one in value.known.reshape(-1)]
        numbers = self.attributes.get(attribute)
        return None if numbers is None else [float(one) for one in numbers]
