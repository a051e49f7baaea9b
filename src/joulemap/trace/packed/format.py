"""Storage format of a weight matrix in a checkpoint: codes of few bits, and the scales that dequantize them.

    code x scale                  each block of rows x columns has a scale
    (code - zero point) x scale   and, for asymmetric codes, a zero point
    code x (scale x scale)        with double quantization: scales are codes of eight bits, and have scales

Rows are outputs of a GEMM, columns its inner dimension. A block size of 0 means all rows or columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from joulemap.physics.record.weight import OPERATIONS

DYNAMIC: Final = 4
"""Elementwise operations per activation if the scale is computed at run time: magnitude, maximum, scale, convert."""

STATIC: Final = 2
"""Elementwise operations per activation if the scale is stored: scale, convert."""

NESTED_GROUP: Final = 256
"""Scales that share a second-level scale. Source: bitsandbytes, `quantize_4bit(compress_statistics=True)`."""

WORD: Final = 32
"""Bits of the words in which GPTQ, AWQ and compressed-tensors pack codes. Source: `qweight` of their linear layers,
int32."""


@attrs.frozen(kw_only=True)
class Part:
    """Tensor that a checkpoint stores for a weight."""

    suffix: str
    """Text appended to the weight's name, as in compressed-tensors; empty for codes in the layout of the weights."""
    shape: tuple[int, ...]
    dtype: str
    """Name of a torch dtype."""


@attrs.frozen(kw_only=True)
class PackedFormat:
    """Format in which a checkpoint stores the weights of a GEMM."""

    bits: int = attrs.field(validator=(attrs.validators.ge(1), attrs.validators.le(8)))
    """Bits per weight code."""
    is_float: bool = False
    block: tuple[int, int] = (1, 0)
    """(rows, columns) of weights that share a scale; 0 for all rows or columns."""
    scale: str = "float16"
    """Name of the dtype of scales."""
    zero_bits: int = 0
    """Bits of a block's zero point; 0 for symmetric codes, which have none."""
    has_order: bool = False
    """True if the checkpoint stores the block number of each column, because columns are reordered."""
    is_flat: bool = False
    """True if blocks ignore rows: consecutive weights of the flattened matrix share a scale."""
    is_nested: bool = False
    """True if scales are stored as eight-bit codes with scales of their own."""
    has_global_scale: bool = False
    """True if one more scale applies to the whole matrix."""
    word_bits: int = 8
    """Bits of the words that hold the codes of a row, and the zero points of its blocks."""
    activations: str = ""
    """Precision to which a GEMM's activations are quantized; empty if they are unchanged."""
    is_static: bool = False
    """True if the checkpoint stores the scale of activations."""
    label: str = ""
    """Name of the code format if bits do not determine it, such as `nf4`; else empty."""

    @property
    def is_widened(self) -> bool:
        """True if a kernel dequantizes the weights before it multiplies by them."""
        return not self.activations or self.bits < int(self.activations.strip("intfp"))

    @property
    def weight_operations(self) -> int:
        """Elementwise operations that dequantize one weight: convert or look up, scale, subtract a zero point."""
        return int(OPERATIONS) + bool(self.zero_bits)

    @property
    def input_operations(self) -> int:
        """Elementwise operations that quantize one element of a GEMM's input; 0 if it is unchanged."""
        return (STATIC if self.is_static else DYNAMIC) if self.activations else 0

    def output_operations(self, columns: int) -> int:
        """Return the elementwise operations per GEMM output over `columns` inner elements.

        They apply two scales, or a scale and a sum for each block of columns. The result is 0 if activations are not
        quantized.
        """
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
