"""How a checkpoint stores a matrix of weights: codes of few bits, and what makes them wide.

    code x scale                  each block of rows x columns has a scale
    (code - zero point) x scale   and, where codes are not symmetric, a zero point
    code x (scale x scale)        of a double quantization: scales are codes of eight bits, and have scales

Rows are outputs of a product, columns what it sums over. A block of 0 is all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from joulemap.domain.weight import OPERATIONS

DYNAMIC: Final = 4
"""Elementwise operations that make an element of an activation narrow: magnitude, largest, scale, convert."""

STATIC: Final = 2
"""The same where the scale is known: scale, convert."""

NESTED_GROUP: Final = 256
"""Scales of blocks that share a scale of their own. Source: bitsandbytes, `quantize_4bit(compress_statistics=True)`."""

WORD: Final = 32
"""Bits of what GPTQ, AWQ and compressed-tensors pack codes in. Source: `qweight` of their linear layers, int32."""


@attrs.frozen(kw_only=True)
class Part:
    """A tensor that is stored of a weight."""

    suffix: str
    """Behind the name of the weight, as compressed-tensors has it; empty for codes that lie as the weights do."""
    shape: tuple[int, ...]
    dtype: str
    """Name of a dtype of torch."""


@attrs.frozen(kw_only=True)
class PackedFormat:
    """How a method stores the weights of a product."""

    bits: int = attrs.field(validator=(attrs.validators.ge(1), attrs.validators.le(8)))
    """Of a code."""
    is_float: bool = False
    block: tuple[int, int] = (1, 0)
    """Rows and columns of weights that share a scale; 0 for all."""
    scale: str = "float16"
    """Name of the dtype of a scale."""
    zero_bits: int = 0
    """Of the zero point of a block."""
    has_order: bool = False
    """Whether each column says to which block it belongs."""
    is_flat: bool = False
    """Whether blocks are of all weights one row behind the other."""
    is_nested: bool = False
    """Whether scales are codes of eight bits, that share scales in turn."""
    has_global_scale: bool = False
    """Whether all blocks share one more scale."""
    word_bits: int = 8
    """Of what the codes of a row, and the zero points of its blocks, are packed in."""
    activations: str = ""
    """Precision that a product's other operand is made; empty where it stays what it is."""
    is_static: bool = False
    """Whether the scale of activations is stored."""
    label: str = ""
    """What the codes are called where bits do not tell: `nf4`."""

    @property
    def is_widened(self) -> bool:
        """Whether a kernel makes the weights wide before it multiplies by them."""
        return not self.activations or self.bits < int(self.activations.strip("intfp"))

    @property
    def weight_operations(self) -> int:
        """Elementwise operations that make a weight wide: convert it or look it up, scale it, take off a zero point."""
        return int(OPERATIONS) + bool(self.zero_bits)

    @property
    def input_operations(self) -> int:
        """Elementwise operations on an element that enters a product."""
        return (STATIC if self.is_static else DYNAMIC) if self.activations else 0

    def output_operations(self, columns: int) -> int:
        """Return elementwise operations on a result: two scales, or a scale and a sum for each block of columns."""
        if not self.activations:
            return 0
        return 2 * (1 if self.is_widened else math.ceil(columns / (self.block[1] or columns)))

    def lay_out(self, rows: int, columns: int) -> Iterator[Part]:
        """Yield what is stored of a matrix of rows x columns weights."""
        if self.is_flat:
            rows, columns = 1, rows * columns
        high, wide = self.block
        down, along = math.ceil(rows / (high or rows)), math.ceil(columns / (wide or columns))
        yield self._lay_out_codes(rows, columns)
        yield Part(suffix="_scale", shape=(down, along), dtype="uint8" if self.is_nested else self.scale)
        if self.is_nested:
            yield Part(suffix="_nested_scale", shape=(math.ceil(down * along / NESTED_GROUP),), dtype=self.scale)
        if self.zero_bits:
            yield Part(suffix="_zero_point", shape=(along, self._words(down * self.zero_bits)), dtype=self._word)
        if self.has_order:
            yield Part(suffix="_g_idx", shape=(columns,), dtype="int32")
        if self.has_global_scale:
            yield Part(suffix="_global_scale", shape=(1,), dtype="float32")

    def _lay_out_codes(self, rows: int, columns: int) -> Part:
        if self.bits == 8:
            return Part(suffix="", shape=(rows, columns), dtype="float8_e4m3fn" if self.is_float else "int8")
        return Part(suffix="_packed", shape=(rows, self._words(columns * self.bits)), dtype=self._word)

    def _words(self, bits: int) -> int:
        return math.ceil(bits / self.word_bits)

    @property
    def _word(self) -> str:
        return "int32" if self.word_bits == 32 else "uint8"

    def describe(self) -> str:
        """Return it in words: `4 bits in groups of 128`."""
        down, along = self.block
        if self.is_flat or (down == 1 and along):
            shared = f" in groups of {along}"
        elif (down, along) == (1, 0):
            shared = " with a scale a row"
        elif (down, along) == (0, 0):
            shared = " with one scale"
        else:
            shared = f" in blocks of {down} x {along}"
        nested = f", scales of 8 bits in groups of {NESTED_GROUP}" if self.is_nested else ""
        told = self.label or (f"fp{self.bits} weights" if self.is_float else f"{self.bits} bits")
        return f"{told}{shared}{nested}"
