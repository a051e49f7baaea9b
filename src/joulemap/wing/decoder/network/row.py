"""Tokens of a pass on one device, and the calls common to all parts of a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import attrs

from joulemap.domain import make_operator
from joulemap.physics import APPEND
from joulemap.system import frozen
from joulemap.trace.formula import Cost
from joulemap.trace.single import break_up
from joulemap.trace.single.flow import DTYPE, ITEM_BYTES, Shape
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.graph import Graph, Read

CACHE_DTYPES: Final = {
    "": DTYPE,
    "bf16": "bfloat16",
    "fp16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "int8": "float8_e4m3fn",
}
"""Storage precision of the KV cache -> traced dtype; the first entry follows the precision of the run."""

EXCHANGED: Final = "bfloat16"
"""Dtype of data that devices exchange. Source: engines reduce hidden states as they hold them, in 16 bits."""

TRTLLM: Final = "trtllm"
"""Word of TensorRT-LLM's kernels, of attention and of all-reduces alike."""

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]


@frozen
class Piece:
    """Sequences of equal length within a pass."""

    name: str
    sequences: int
    tokens: int
    cached: int

    @property
    def count(self) -> int:
        """Number of tokens that are computed."""
        return self.sequences * self.tokens

    def call(self, name: str) -> str:
        """Return the name of a call for these sequences."""
        return f"{name}_{self.name}" if self.name else name


@lru_cache(maxsize=1024)
def _count(kind: str, elements: int) -> tuple[str, Cost]:
    """Return the ATen operator of a kind of elementwise operation, and its cost."""
    (one,) = break_up(make_operator("elementwise", {"kind": kind, "elements": elements}), 1).operators
    cost = Cost(
        kind=one.kind,
        operation=one.operation,
        elementwise_count=one.elementwise_count,
        special_count=one.special_count,
    )
    return one.aten.removeprefix("aten."), cost


@attrs.define
class Pass:
    """Pass under construction."""

    graph: Graph
    decoder: Decoder
    step: DecoderPass
    sequences: int
    """Sequences on this device."""
    tables: int = -1
    """Id of the tensor with each token's additional embedding of every layer; -1 for none."""
    angles: dict[int, int] = attrs.field(factory=dict)
    """Rotary elements per head -> table of these tokens' angles."""
    gathered: dict[int, int] = attrs.field(factory=dict)
    """Tokens of one device -> gathered tokens of all devices."""
    keeps: bool = False
    """True if quantizers leave the weights of the operators being added at 16 bits."""
    shared: dict[int, list[tuple[int, ...]]] = attrs.field(factory=dict)
    """Attention window -> caches of the last such layer that has its own."""

    @property
    def count(self) -> int:
        """Number of tokens."""
        return self.sequences * self.step.tokens + self.step.chunk

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Decoding sequences of one length, and the chunk of another prompt."""
        step = self.step
        pieces = (Piece("", self.sequences, step.tokens, step.cached),)
        return (*pieces, Piece("chunk", 1, step.chunk, step.chunk_cached)) if step.chunk else pieces

    def norm(self, path: str, x: int, rows: int, columns: int) -> int:
        """Return a tensor with its rows normalized as in the model."""
        if self.decoder.norm == "rms_norm":
            return self.graph.run(path, "rms_norm", (x,), rows=rows, columns=columns)
        return self.graph.run(path, "layer_norm", (x,), rows=rows, columns=columns, bias=self.decoder.norm_bias)

    def scale(self, path: str, x: int, rows: int, columns: int, *, suffix: str) -> int:
        """Return a tensor with its rows normalized without weights."""
        return self.graph.run(path, "rms_norm", (x,), suffix=suffix, rows=rows, columns=columns, weight=False)

    def linear(
        self, path: str, x: int | Sequence[int], n: int, k: int, *, bias: bool = False, m: int = 0, keeps: bool = False
    ) -> int:
        """Return each row multiplied by weights, which quantizers leave at 16 bits if `keeps` is set."""
        inputs = (x,) if isinstance(x, int) else x
        made = self.graph.run(path, "gemm", inputs, m=m or self.count, n=n, k=k, bias=bias)
        if self.keeps or keeps:
            self.graph.keep_weights()
        return made

    def each(self, path: str, kind: str, *inputs: int, suffix: str = "") -> int:
        """Return the result of an elementwise operation on tensors of equal shape."""
        shape = self.graph.shape(inputs[0])
        aten, cost = _count(kind, math.prod(shape))
        return self.graph.call(path, cost, inputs, shape, suffix=suffix or kind, aten=aten)

    def compute(
        self,
        path: str,
        operation: str,
        reads: Sequence[Read],
        shape: Shape,
        count: int,
        special: int = 0,
        suffix: str = "",
    ) -> int:
        """Return the result of a kernel of `count` elementwise operations and `special` special functions."""
        cost = Cost(kind="elementwise", operation=operation, elementwise_count=count, special_count=special)
        return self.graph.call(path, cost, reads, shape, suffix=suffix or operation)

    def collect(
        self, path: str, operation: Collective, x: int, devices: int, elements: int, dtype: str = EXCHANGED, **more: Any
    ) -> int:
        """Return the result of a collective operation; `elements` counts the whole buffer.

        Devices exchange 16 bits per element unless `dtype` says otherwise, whatever the precision of GEMMs.
        TensorRT-LLM adds by its own kernels.
        """
        if devices == 1:
            return x
        sizes: dict[str, Any] = {"elements": elements, "devices": devices, **more}
        if operation == "all_reduce" and self.step.kernels == TRTLLM:
            sizes["kernel"] = TRTLLM
        return self.graph.run(path, operation, (x,), suffix=operation, dtype=dtype, **sizes)

    @property
    def held(self) -> int:
        """Tokens that a device holds between the parts of a layer."""
        return self.step.part(self.count) if self.step.sequence_parallel else self.count

    def sum_up(self, path: str, x: int, width: int = 0) -> int:
        """Return the sum over all devices for each token that one device holds, at the model's width or another."""
        elements = self.count * (width or self.decoder.hidden)
        operation: Collective = "reduce_scatter" if self.step.sequence_parallel else "all_reduce"
        return self.collect(path, operation, x, self.step.devices, elements)

    def gather(self, path: str, x: int) -> int:
        """Return all tokens, gathered from those that each device holds."""
        if not self.step.sequence_parallel:
            return x
        if x not in self.gathered:
            elements = self.count * self.decoder.hidden
            self.gathered[x] = self.collect(path, "all_gather", x, self.step.devices, elements)
        return self.gathered[x]

    def find_angles(self, rotary: int) -> int:
        """Return the table of rotary angles for `rotary` elements."""
        if rotary and rotary not in self.angles:
            self.angles[rotary] = self.graph.enter((self.count, rotary))
        return self.angles.get(rotary, -1)

    def turn(self, path: str, parts: Sequence[tuple[int, int]], width: int, rotary: int) -> int:
        """Return the heads of `parts` (tensor, heads) with rotary embedding on their first elements, in one kernel."""
        rows, heads = self.count, sum(count for _, count in parts)
        reads = [(tensor, ITEM_BYTES * rows * count * width) for tensor, count in parts]
        shape = rows, heads, width
        return self.compute(path, "rotary", (*reads, self.find_angles(rotary)), shape, 3 * rows * heads * rotary)

    def append(
        self,
        path: str,
        rows: Sequence[int | tuple[int, int]],
        piece: Piece,
        heads: int,
        width: int,
        window: int,
        suffix: str,
    ) -> int:
        """Return the cache of a piece with its new rows appended."""
        dtype = CACHE_DTYPES[self.step.cache]
        held = min(piece.cached, window - 1) if window else piece.cached
        shape = piece.sequences, heads, held + piece.tokens, width
        past = (self.graph.enter((piece.sequences, heads, held, width), dtype),) if held else ()
        cost = Cost(kind="data_movement", operation=APPEND, variant=APPEND if held else "")
        suffix = piece.call(suffix)
        return self.graph.keep(
            self.graph.call(path, cost, (*past, *rows), shape, suffix=suffix, aten="cat.default", dtype=dtype)
        )
