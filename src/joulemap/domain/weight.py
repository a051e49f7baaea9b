"""How weights are stored where they are narrower than what they are multiplied by: their width, and their scales.

    bytes of K weights that one output adds up = K x width + ceil(K / group) x bytes of a scale

Weights of products alone are stored so: two dimensions or more, read by an operator that multiplies and accumulates.
Norms, biases and tables that are only looked up in keep the precision of activations, as weight-only quantizers leave
them. What a group makes no narrower keeps it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

import attrs

from joulemap.domain.configuration import PRECISION_BYTES, Precision
from joulemap.domain.name import name_precision
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

GROUP_SIZE: Final = 128
"""Weights along the sum of a product that share a scale.

Source: the groups of GPTQ (Frantar et al., arXiv 2210.17323) and AWQ (Lin et al., arXiv 2306.00978), and torchao's
default for int4."""

SCALE_BYTES: Final = 2.0
"""Of a scale: 16 bits. Source: as for `GROUP_SIZE`."""

NARROW_GROUPS: Final[Mapping[str, tuple[int, float]]] = {"fp4": (16, 1.0)}
"""precision -> (group, bytes of a scale), where a format has its own. Source: NVFP4, 16 values with one FP8 scale."""

OPERATIONS: Final = 2.0
"""Elementwise operations by which a kernel makes a weight what it multiplies: convert it, and multiply by its scale."""

PARTED: Final = "/"
"""Between the precision of activations and that of weights, where they are told in a word: `bf16/int4`."""

GROUPED: Final = ":"
"""Between the precision of weights and the size of their groups: `int4:64`."""


@frozen(kw_only=True)
class WeightFormat:
    """A precision that weights are stored at, with the scales of their groups."""

    precision: Precision
    group_size: int = attrs.field(validator=attrs.validators.ge(1))
    scale_bytes: float

    @property
    def item_bytes(self) -> float:
        """Bytes of one weight, its share of a scale left out."""
        return PRECISION_BYTES[self.precision]

    @property
    def name(self) -> str:
        """As it is asked for: `int4`, or `int4:64` where the group is not the usual one."""
        usual, _ = NARROW_GROUPS.get(self.precision, (GROUP_SIZE, SCALE_BYTES))
        return self.precision if self.group_size == usual else f"{self.precision}{GROUPED}{self.group_size}"

    def describe(self) -> str:
        """Return it in words, with the bytes of a weight."""
        width = self.item_bytes + self.scale_bytes / self.group_size
        return (
            f"{self.precision} in groups of {self.group_size} with a scale of {self.scale_bytes * 8.0:.0f} bits, "
            f"{width:.4g} bytes a weight"
        )


def read_weight_format(text: str) -> WeightFormat:
    """Return the format that a name means, e.g. `int4` or `int4:64`; UsageError for any other text."""
    name, colon, written = text.strip().partition(GROUPED)
    precision = name_precision(name.strip())
    if precision not in PRECISION_BYTES:
        raise UsageError(f"unknown weight precision {name!r}; known: {', '.join(PRECISION_BYTES)}")
    group_size, scale_bytes = NARROW_GROUPS.get(precision, (GROUP_SIZE, SCALE_BYTES))
    if colon:
        if not written.strip().isdecimal() or int(written) < 1:
            raise UsageError(f"weight precision {text!r}: write the size of its groups as {precision}:64")
        group_size = int(written)
    return WeightFormat(precision=precision, group_size=group_size, scale_bytes=scale_bytes)


def name_weight_precision(text: str) -> str:
    """Return the name of the format that is meant; UsageError as `read_weight_format`."""
    return read_weight_format(text).name


def find_weight_format(precision: str, weight_precision: str) -> WeightFormat | None:
    """Return how weights are stored beside activations of a precision; None where that is the same.

    Raises UsageError for weights that are no narrower.
    """
    if weight_precision in ("", precision):
        return None
    found = read_weight_format(weight_precision)
    if found.precision == precision:
        return None
    if PRECISION_BYTES[found.precision] >= PRECISION_BYTES[precision]:
        narrower = [name for name, width in PRECISION_BYTES.items() if width < PRECISION_BYTES[precision]]
        raise UsageError(
            f"weights at {found.precision} are no narrower than activations at {precision}; "
            + (f"narrower are {', '.join(narrower)}" if narrower else "nothing is narrower")
        )
    return found


def label_precision(precision: str, weight_precision: str) -> str:
    """Return both in a word: `bf16`, or `bf16/int4` where they differ."""
    return precision if weight_precision == precision else f"{precision}{PARTED}{weight_precision}"


def split_precision(label: str) -> tuple[str, str]:
    """Return (precision of activations, of weights) of one as tables show it; no second where it is the same."""
    precision, _, weights = label.partition(PARTED)
    return precision, weights


def spell_precision(label: str) -> list[str]:
    """Return a precision, as tables show it, as options that ask for it."""
    precision, weights = split_precision(label)
    return ["--precision", precision, *(["--weight-precision", weights] if weights else [])]


def keep_narrower(precision: str, weight_precisions: Iterable[str]) -> tuple[str, ...]:
    """Return those of the precisions of weights that are the same as that of activations, or narrower."""
    width = PRECISION_BYTES[precision]
    return tuple(
        name
        for name in weight_precisions
        if (found := read_weight_format(name).precision) == precision or PRECISION_BYTES[found] < width
    )


def pair_precisions(
    precisions: tuple[Precision, ...], weight_precisions: tuple[str, ...]
) -> tuple[tuple[Precision, str], ...]:
    """Return each precision with each that its weights are stored at, the same where none is asked for.

    Raises UsageError as `find_weight_format`.
    """
    pairs: dict[tuple[Precision, str], None] = {}
    for precision in precisions:
        for asked in weight_precisions or (precision,):
            weights = find_weight_format(precision, asked)
            pairs[precision, cast("str", precision) if weights is None else weights.name] = None
    return tuple(pairs)
