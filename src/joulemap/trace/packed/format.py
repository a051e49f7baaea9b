"""Storage format of a matrix of weights in a checkpoint: codes of few bits, and the scales that dequantize them.

    code x scale                  each block of rows x columns has a scale
    (code - zero point) x scale   and, for asymmetric codes, a zero point
    code x (scale x scale)        with double quantization: scales are codes of eight bits, and have scales

Rows are outputs of a GEMM, columns its inner dimension. A block of 0 is all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from joulemap.domain.weight import OPERATIONS

DYNAMIC: Final = 4
"""Elementwise operations that quantize an element of an activation: magnitude, maximum, scale, convert."""

STATIC: Final = 2
"""Elementwise operations that quantize an element with a known scale: scale, convert."""

NESTED_GROUP: Final = 256
"""Scales that share a second-level scale. Source: bitsandbytes, `quantize_4bit(compress_statistics=True)`."""

WORD: Final = 32
"""Bits of the words in which GPTQ, AWQ and compressed-tensors pack codes. Source: `qweight` of their linear layers,
int32."""


@attrs.frozen(kw_only=True)
class Part:
    """Tensor that is stored for a weight."""

    suffix: str
    """Suffix after the name of the weight, as in compressed-tensors; empty for codes in the layout of the weights."""
    shape: tuple[int, ...]
    dtype: str
    """Name of a torch dtype."""


@attrs.frozen(kw_only=True)
class PackedFormat:
    """Format in which a method stores the weights of a GEMM."""

    bits: int = attrs.field(validator=(attrs.validators.ge(1), attrs.validators.le(8)))
    """Bits of a code."""
    is_float: bool = False
    block: tuple[int, int] = (1, 0)
    """Rows and columns of weights that share a scale; 0 for all."""
    scale: str = "float16"
    """Dtype of a scale, by its name."""
    zero_bits: int = 0
    """Bits of the zero point of a block; 0 without one."""
    has_order: bool = False
    """True if each column has the number of its block."""
    is_flat: bool = False
    """True if blocks run over all weights, row after row."""
    is_nested: bool = False
    """True if scales are codes of eight bits, which share scales in turn."""
    has_global_scale: bool = False
    """True if all blocks share one more scale."""
    word_bits: int = 8
    """Bits of the words that hold the codes of a row, and the zero points of its blocks."""
    activations: str = ""
    """Precision to which a GEMM's other operand is quantized; empty if that is unchanged."""
    is_static: bool = False
    """True if the scale of activations is stored."""
    label: str = ""
    """Name of the codes if bits do not determine it: `nf4`."""

    @property
    def is_widened(self) -> bool:
        """True if a kernel dequantizes the weights before it multiplies by them."""
        return not self.activations or self.bits < int(self.activations.strip("intfp"))

    @property
    def weight_operations(self) -> int:
        """Elementwise operations that dequantize a weight: convert or look up, scale, subtract a zero point."""
        return int(OPERATIONS) + bool(self.zero_bits)

    @property
    def input_operations(self) -> int:
        """Elementwise operations on an element of a GEMM's input."""
        return (STATIC if self.is_static else DYNAMIC) if self.activations else 0

    def output_operations(self, columns: int) -> int:
        """Return the elementwise operations on a result: two scales, or a scale and a sum for each block of columns."""
        if not self.activations:
            return 0
        return 2 * (1 if self.is_widened else math.ceil(columns / (self.block[1] or columns)))

    def lay_out(self, rows: int, columns: int) -> Iterator[Part]:
        """Yield the tensors that are stored for a matrix of rows x columns weights."""
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
        """Return the format in words: `4 bits in groups of 128`."""
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
        label = self.label or (f"fp{self.bits} weights" if self.is_float else f"{self.bits} bits")
        return f"{label}{shared}{nested}"
