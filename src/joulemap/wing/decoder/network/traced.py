"""Decoder whose passes are traced: columns of many passes are interpolated from a few traces.

Each number of a pass is a polynomial in its sizes: linear in the sequences and in the cached tokens, quadratic in the
tokens. A series of passes that differ in one size is interpolated from its first and last pass, and a middle one for a
quadratic. One more trace must agree in every digit, at both ends of the other sizes; else each half is a series.

    v(x) = sum of v(node) x product of (x - others) / (node - others)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from joulemap.physics import EVENLY, NO_KEY, ROLE_CODE, WorkloadColumns, columns_of
from joulemap.physics.bulk import JOINED, join
from joulemap.physics.fuse import fuse
from joulemap.system import ModelError, UsageError, define
from joulemap.wing.decoder.network.column import NAMED
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import ARGUMENTS, DecoderPass, list_overhead
from joulemap.wing.decoder.network.graph import Graph

Sizes = tuple[int, int, int]
"""(tokens, sequences, cached tokens) of a pass."""

TAKEN: Final = ("tokens", "cached", "logits", "data_devices")
"""Arguments of a pass that can be traced: sizes of inputs."""

PARTED: Final = (*TAKEN, "chunk", "chunk_cached", "engine")
"""Arguments of a pass that can be composed of traced passes; `engine` has no effect on a trace."""

TRACED_ARGUMENTS: Final = tuple(one for one in ARGUMENTS if one.name in TAKEN)

DEGREES: Final = (2, 1, 1)
"""Degree of the polynomial in tokens, sequences and cached tokens."""


@define(kw_only=True, eq=False, slots=False)
class TracedDecoder(Decoder):
    """Decoder whose sizes are unknown, so that its passes are traced."""

    model_type: str = "traced"
    hidden: int = 0
    vocabulary: int = 0
    layers: tuple[()] = ()
    prompt: int
    """Tokens of the longest requested pass; a longer pass may fail."""
    sample: Callable[[DecoderPass, int], tuple[WorkloadColumns, tuple[str, ...]]] = attrs.field(repr=False)
    """Function that traces a pass of a number of sequences; returns its columns and its notes."""
    _samples: dict[tuple[Sizes, str], WorkloadColumns] = attrs.field(factory=dict, init=False, repr=False)
    _held: dict[int, float] = attrs.field(factory=dict, init=False, repr=False)

    is_traced: ClassVar[bool] = True

    @property
    def longest_pass(self) -> int:
        """Maximum tokens of a sequence in one pass."""
        return self.prompt

    @cached_property
    def layer_count(self) -> int:
        """Number of layers with attention, found from their two GEMMs each; at least 1."""
        return max(1, int(self._sample((1, 1, self.prompt), "last").of_kind("matmul").sum()) // 2)

    expert_count: ClassVar[int] = 0
    routed_count: ClassVar[int] = 0
    recurrent_count: ClassVar[int] = 0
    delta_count: ClassVar[int] = 0
    """Always 0, as `expert_count`: a trace does not show which parts are recurrent or belong to experts."""

    @cached_property
    def is_routed(self) -> bool:
        """True if a router chooses experts for each token."""
        self._sample((1, 1, self.prompt), "last")
        return any(EVENLY in note for note in self.notes)

    def cache_bytes(self, tokens: int, item_bytes: float = 2.0, devices: int = 1) -> float:
        """Return the cache bytes of a sequence of `tokens` tokens: the inputs of a decode step other than its token.

        Two lengths are traced: one after a prompt and the first requested one. Other lengths follow linearly.
        """
        if not self._held:
            for length in (self.prompt, max(tokens, self.prompt + 1)):
                held = _count_held(self._sample((1, 1, length), "last"))
                self._held[length] = held
                if not held:
                    raise ModelError(
                        f"{self.name}: a step has no floating-point input for the state of earlier tokens: pass "
                        "its keys and values as inputs, not inside the module"
                    )
        low, high = self._held
        slope = (self._held[high] - self._held[low]) / (high - low)
        return max(0.0, self._held[high] + slope * (tokens - high)) * item_bytes / devices

    def describe(self, asked: Iterable[tuple[DecoderPass, int]]) -> dict[tuple[DecoderPass, int], WorkloadColumns]:
        """Return (pass, number of sequences) -> columns; ModelError if a pass cannot be traced."""
        wanted = {one: [(places, logits) for places, logits in _list_parts(*one)] for one in asked}
        groups: dict[tuple[bool, bool, str], set[Sizes]] = {}
        for parts in wanted.values():
            for sizes, logits in parts:
                groups.setdefault(_group(sizes, logits), set()).add(sizes)
        parts_by_size: dict[tuple[Sizes, str], WorkloadColumns] = {}
        for (_, _, logits), several in groups.items():
            axes = [sorted({sizes[axis] for sizes in several}) for axis in range(len(DEGREES))]
            grid = self._span(axes, (), logits)
            parts_by_size |= {(sizes, logits): grid[sizes] for sizes in several}
        return {
            one: attrs.evolve(
                _join([*(parts_by_size[part] for part in parts), *self._add_overhead(*one)]), batch=one[1]
            )
            for one, parts in wanted.items()
        }

    def _add_overhead(self, step: DecoderPass, count: int) -> list[WorkloadColumns]:
        """Return the columns of a pass's overhead, as the only element; empty without an engine."""
        operators = list_overhead(self, step, count)
        return [columns_of(fuse(Graph(operators=operators).form(NO_KEY, "", count, ())))] if operators else []

    def _span(self, axes: Sequence[list[int]], fixed: tuple[int, ...], logits: str) -> dict[Sizes, WorkloadColumns]:
        """Return sizes -> columns of a pass, for all combinations of the `axes` whose first sizes are `fixed`."""
        if len(fixed) == len(axes):
            tokens, sequences, cached = fixed
            return {(tokens, sequences, cached): self._sample((tokens, sequences, cached), logits)}
        by_size: dict[int, dict[Sizes, WorkloadColumns]] = {}
        axis = len(fixed)

        def ask(size: int) -> dict[Sizes, WorkloadColumns]:
            if size not in by_size:
                by_size[size] = self._span(axes, (*fixed, size), logits)
            return by_size[size]

        def prove(size: int) -> dict[Sizes, WorkloadColumns]:
            ends = [sorted({several[0], several[-1]}) for several in axes[axis + 1 :]]
            return self._span([*axes[: axis + 1], *ends], (*fixed, size), logits)

        _fill(by_size, axes[axis], axis, ask, prove)
        return {sizes: work for size in axes[axis] for sizes, work in by_size[size].items()}

    def _sample(self, sizes: Sizes, logits: str) -> WorkloadColumns:
        if (sizes, logits) not in self._samples:
            tokens, sequences, cached = sizes
            step = DecoderPass(tokens=tokens, cached=cached, logits=logits)
            self._samples[sizes, logits], notes = self.sample(step, sequences)
            self.notes = tuple(dict.fromkeys((*self.notes, *notes)))
        return self._samples[sizes, logits]

    def check_division(self, devices: int, expert_devices: int, pipeline_devices: int) -> None:
        """Raise UsageError if GEMMs or experts are to be divided: a trace does not show how."""
        if max(devices, expert_devices, pipeline_devices) > 1:
            raise UsageError(
                f"{self.name} is traced on one device: only data_devices can divide its work, by sequences; "
                "other divisions need a model known by its configuration"
            )


def _list_parts(step: DecoderPass, count: int) -> list[tuple[Sizes, str]]:
    """Return (sizes, logits) of the traced passes that compose a pass; an additional prompt chunk is one of its own."""
    others = [one for one in step.arguments if one.partition("=")[0] not in PARTED]
    if others:
        raise UsageError(f"a traced model runs as written, on one device: leave out {', '.join(others)}")
    parts = [((step.tokens, -(-count // step.data_devices), step.cached), _logits(step.tokens, step.logits))]
    return parts + [((step.chunk, 1, step.chunk_cached), _logits(step.chunk, step.logits))] * bool(step.chunk)


def _logits(tokens: int, logits: str) -> str:
    return logits if tokens > 1 else "last"


def _group(sizes: Sizes, logits: str) -> tuple[bool, bool, str]:
    """Return the key of passes with the same operators: one token or more, with or without cached tokens."""
    tokens, _, cached = sizes
    return tokens > 1, cached > 0, logits


def _fill(
    by_size: dict[int, dict[Sizes, WorkloadColumns]],
    sizes: Sequence[int],
    axis: int,
    ask: Callable[[int], dict[Sizes, WorkloadColumns]],
    prove: Callable[[int], dict[Sizes, WorkloadColumns]],
) -> None:
    """Fit passes along an axis from a few samples if another sample agrees at each end; else fit each half."""
    needed = DEGREES[axis] + 2
    if len(sizes) < needed:
        for size in sizes:
            ask(size)
        return
    nodes = [sizes[round(index * (len(sizes) - 1) / (needed - 1))] for index in range(needed)]
    proof = nodes.pop(1)
    known = {node: ask(node) for node in nodes}
    if not _agree(_through(known, proof, axis), prove(proof)):
        middle = len(sizes) // 2
        _fill(by_size, sizes[: middle + 1], axis, ask, prove)
        _fill(by_size, sizes[middle:], axis, ask, prove)
        return
    for size in sizes:
        if size not in by_size:
            made = _through(known, size, axis)
            assert made is not None
            by_size[size] = made


def _through(
    known: Mapping[int, Mapping[Sizes, WorkloadColumns]], size: int, axis: int
) -> dict[Sizes, WorkloadColumns] | None:
    """Return the passes at `size` on an axis, interpolated by polynomials through known ones; None if operators
    differ.
    """
    nodes = list(known)
    weights = [
        math.prod(((size - other) / (node - other) for other in nodes if other != node), start=np.longdouble(1.0))
        for node in nodes
    ]
    made = {}
    for several in zip(*(known[node].items() for node in nodes), strict=True):
        sizes = list(several[0][0])
        sizes[axis] = size
        work = _mix([one for _, one in several], weights)
        if work is None:
            return None
        made[sizes[0], sizes[1], sizes[2]] = attrs.evolve(work, batch=sizes[1])
    return made


def _mix(works: Sequence[WorkloadColumns], weights: Sequence[Any]) -> WorkloadColumns | None:
    """Return the weighted sum of columns, rounded; None if a column that is not a count differs."""
    first, changes = works[0], dict[str, Any]()
    for name in NAMED:
        several = [getattr(one, name) for one in works]
        base = several[0]
        if not isinstance(base, np.ndarray):
            continue
        if any(one.shape != base.shape for one in several):
            return None
        alike = all(np.array_equal(base, one) for one in several[1:])
        if not alike and base.dtype != np.float64:
            return None
        if not alike:
            total = sum((weight * one for weight, one in zip(weights, several, strict=True)), start=np.longdouble(0.0))
            changes[name] = np.rint(total).astype(np.float64)
    return attrs.evolve(first, **changes)


def _agree(made: Mapping[Sizes, WorkloadColumns] | None, traced: Mapping[Sizes, WorkloadColumns]) -> bool:
    """Return True if interpolated columns equal traced ones in every digit."""
    return made is not None and all(
        np.array_equal(getattr(made[sizes], name), getattr(work, name))
        for sizes, work in traced.items()
        for name in NAMED
        if isinstance(getattr(work, name), np.ndarray)
    )


def _join(parts: Sequence[WorkloadColumns]) -> WorkloadColumns:
    """Return the concatenation of several passes as one workload."""
    if len(parts) == 1:
        return parts[0]
    both = join(parts)
    return WorkloadColumns(
        batch=parts[0].batch, weight_bytes=parts[0].weight_bytes, **{name: getattr(both, name) for name in JOINED}
    )


def _count_held(work: WorkloadColumns) -> float:
    """Return the number of floating-point elements among a pass's inputs."""
    is_given = (work.access_role == ROLE_CODE["input"]) & work.access_is_boundary & (work.access_buffer >= 0)
    buffers = np.unique(work.access_buffer[is_given])
    item_bytes = work.buffer_item_bytes[buffers]
    return float((work.buffer_bytes[buffers] / np.maximum(item_bytes, 1.0))[item_bytes > 0.0].sum())
