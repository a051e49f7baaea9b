"""Values that a trace knows although its tensors have no storage: values computed from shapes, and the routing of
tokens.

A tensor on the meta device that is computed from known values alone (`arange`, `zeros`, a comparison of both) has a
real twin here, which is computed along with it. If such a tensor decides the number of rows, or which branch is taken,
the answer is correct and needs no stand-in.

The experts of a token depend on data. A choice of k of n (`topk`, `argmax`) for each of T tokens gets a balanced answer
instead, with as many different experts as independent choices hit on average:

    hit(T, k, n) = ⌈n (1 - (1 - k / n)^T)⌉        at least k, at most n
    choice j of token t = (t k + j) mod hit       different for the choices of one token; loads differ by 1 at most

A loop over experts, a count of tokens for each, and a grouped GEMM then see T k rows in all. A choice starts after
the one before, modulo n: a router that takes one expert after the other takes two different ones. A router that sorts
all of its scores and takes the first k has row t start at t.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import torch
from torch.utils._pytree import tree_map

from joulemap.physics.record.workload import EVENLY
from joulemap.trace.formula.product import hit_count
from joulemap.trace.tensor import storage_of, tensors_in

MOST_ELEMENTS: Final = 2**25
"""Maximum elements of a tensor whose values are kept although they follow from an assumed choice."""

MOST_PLAIN: Final = 2**18
"""Maximum elements of a tensor whose values are kept and follow from no assumed choice."""

MOST_CHOSEN: Final = 2**20
"""Maximum data-dependent choices of one operator that get assumed values."""

MOST_BYTES: Final = 2**29
"""Maximum bytes of all known values; the least recently used are forgotten first."""

_CHOICES: Final = {"topk": 2, "argmax": 1, "max": 1, "sort": 1, "argsort": 1}
"""Operator that chooses elements by value -> position of its dimension argument."""

_ORDERS: Final = frozenset({"sort", "argsort"})
"""Operators of `_CHOICES` that sort all elements; a router may take the first of them."""

_UNINITIALIZED: Final = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Operators whose result is uninitialized memory."""


@attrs.frozen
class Known:
    """Known values of a tensor on meta."""

    tensor: torch.Tensor
    """Tensor on meta, kept alive so that its id is not reused."""
    value: torch.Tensor
    assumptions: frozenset[str]
    """Assumptions about data on which the values depend."""
    byte_count: int = 0
    """Bytes of the values' memory; 0 if another known value owns it."""


@attrs.frozen
class Computed:
    """Result of an operator on known values, with the assumptions behind them."""

    result: Any
    assumptions: frozenset[str]


def balanced_choices(rows: int, taken: int, choices: int, first: int = 0) -> torch.Tensor:
    """Return a (rows x taken) tensor of choices, spread evenly over the options that independent choices would hit."""
    hit = max(hit_count(rows, taken, choices), 1)
    return ((torch.arange(rows * taken) % hit + first) % choices).reshape(rows, taken)


class Values:
    """Known values of the tensors of one trace."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._sharing: dict[int, set[int]] = {}
        self._bytes = 0
        self._next = 0
        """First option of the next balanced choice."""

    def find(self, tensor: torch.Tensor) -> Known | None:
        """Return the known values of a tensor, or None."""
        if not tensor.is_meta:
            return Known(tensor, tensor, frozenset())
        known = self._known.get(id(tensor))
        if known is not None:
            self._known.move_to_end(id(tensor))
        return known

    def learn(
        self,
        tensor: torch.Tensor,
        value: torch.Tensor,
        assumptions: frozenset[str] = frozenset(),
        *,
        is_shared: bool = False,
    ) -> None:
        """Store the values of a tensor on meta, unless it is large; `is_shared` if others own their memory."""
        most = MOST_ELEMENTS if assumptions else MOST_PLAIN
        if not tensor.is_meta or value.is_meta or value.numel() > most or tensor.shape != value.shape:
            return
        if id(tensor) in self._known:
            is_shared = is_shared or self._known[id(tensor)].value is value
            self._drop(id(tensor))
        byte_count = 0 if is_shared else value.numel() * value.element_size()
        self._known[id(tensor)] = Known(tensor, value, assumptions, byte_count)
        self._sharing.setdefault(storage_of(tensor), set()).add(id(tensor))
        self._bytes += byte_count
        while self._bytes > MOST_BYTES and len(self._known) > 1:
            self._drop(next(iter(self._known)))

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget the values of every tensor that shares memory with `tensor`."""
        for key in self._sharing.get(storage_of(tensor), set()).copy():
            self._drop(key)

    def _drop(self, key: int) -> None:
        known = self._known.pop(key)
        self._bytes -= known.byte_count
        self._sharing[storage_of(known.tensor)].discard(key)

    def compute(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Computed | None:
        """Return the result of an operator on known values; None if a value is unknown or the operator fails."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            return None
        values: dict[int, torch.Tensor] = {}
        assumptions: frozenset[str] = frozenset()
        for leaf in tensors_in((args, kwargs)):
            if id(leaf) not in values:
                known = self.find(leaf)
                if known is None:
                    return None
                values[id(leaf)] = known.value
                assumptions |= known.assumptions

        def real(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return values[id(leaf)]
            return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

        given, named = tree_map(real, (tuple(args), dict(kwargs)))
        try:
            return Computed(func(*given, **named), assumptions)
        except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError):
            return self._in_floats(func, given, named, assumptions)

    @staticmethod
    def _in_floats(func: Any, args: Any, kwargs: Any, assumptions: frozenset[str]) -> Computed | None:
        """Return an operator's result computed in fp64, for operators that CPUs do not offer for integers (`histc`);
        None if that fails.
        """
        if not args or not isinstance(args[0], torch.Tensor) or args[0].is_floating_point() or func._schema.is_mutable:
            return None
        try:
            given = func(args[0].double(), *args[1:], **kwargs)
        except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError):
            return None
        return Computed(given.to(args[0].dtype), assumptions) if isinstance(given, torch.Tensor) else None

    def follow(
        self,
        func: Any,
        name: str,
        args: Any,
        kwargs: Mapping[str, Any],
        reads: Sequence[torch.Tensor],
        result: Any,
    ) -> None:
        """Store the values of an operator's results if they follow from known values, and forget values that it
        overwrote.
        """
        follows = (
            all(id(tensor) in self._known or not tensor.is_meta for tensor in reads) and name not in _UNINITIALIZED
        )
        if not follows and name not in _CHOICES and not (self._known and func._schema.is_mutable):
            return
        outputs = tensors_in(result)
        if not outputs or not outputs[0].is_meta:
            return
        if follows and self._learn_computed(func, args, kwargs, reads, outputs):
            return
        if func._schema.is_mutable:
            for output in outputs:
                self.forget(output)
        self._choose(name, args, kwargs, outputs)

    def _learn_computed(
        self,
        func: Any,
        args: Any,
        kwargs: Mapping[str, Any],
        reads: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
    ) -> bool:
        """Compute and store the outputs of an operator on known values; return whether that was possible."""
        known = [one for one in map(self.find, reads) if one is not None]
        most = MOST_ELEMENTS if any(one.assumptions for one in known) else MOST_PLAIN
        if any(output.numel() > most for output in outputs):
            return False
        computed = self.compute(func, args, kwargs)
        if computed is None:
            return False
        owned = {one.value.untyped_storage().data_ptr() for one in known}
        values = tensors_in(computed.result)
        for output, value in zip(outputs, values, strict=False):
            shared = value.untyped_storage().data_ptr() in owned
            self.learn(output, value, computed.assumptions, is_shared=shared)
        return True

    def _choose(self, name: str, args: Any, kwargs: Mapping[str, Any], outputs: Sequence[torch.Tensor]) -> None:
        """Store assumed balanced results of an operator that makes a data-dependent choice; ignore other operators."""
        position = _CHOICES.get(name)
        if position is None or outputs[-1].dtype != torch.int64:
            return
        source, indices = args[0], outputs[-1]
        unnamed = None if name in ("argmax", "max") else -1
        named = args[position] if len(args) > position else kwargs.get("dim", unnamed)
        if not isinstance(named, int) or isinstance(named, bool) or not source.dim() or not source.numel():
            return
        dimension = named % source.dim()
        choices = source.shape[dimension]
        rows = source.numel() // choices
        taken = indices.numel() // rows
        if indices.numel() > MOST_CHOSEN or not 0 < taken <= choices:
            return
        others = [size for axis, size in enumerate(source.shape) if axis != dimension]
        if name in _ORDERS:
            chosen = (torch.arange(choices) + torch.arange(rows).unsqueeze(-1)) % choices
            text = f"each of {rows:,} rows is assumed to order its {choices:,} values; each row starts one value later"
        else:
            chosen = balanced_choices(rows, taken, choices, self._next)
            hit = hit_count(rows, taken, choices)
            self._next += hit
            text = (
                f"each of {rows:,} rows is assumed to choose {taken:,} of {choices:,} {EVENLY} {hit:,} are hit: "
                "n (1 - (1 - k / n)^rows), rounded up"
            )
        placed = chosen.reshape(*others, taken).movedim(-1, dimension).reshape(indices.shape)
        self.learn(indices, placed.contiguous(), frozenset({text}))


def to_meta(result: Any) -> Any:
    """Return a copy of nested results with every tensor on the meta device, in the same memory layout."""
    return tree_map(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf, result)
