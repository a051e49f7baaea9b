"""The record of what a module dispatches: calls in order, with module paths, tensors and data flow.

                forward hooks ──► module path
    module(x) ──► ATen call ──► composite not kept? decompose, each part comes back here
                          └──► run on meta ──► producers by tensor, writes by storage ──► RecordedCall

A view is recognized by storage, not by name. A read depends on the producer of the tensor and on the last later
writer of its storage, so in-place updates through any alias are followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import torch
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from joulemap.trace.formula import KEPT_COMPOSITES
from joulemap.trace.formula.movement import GATHERED
from joulemap.trace.formula.placement import PLACED
from joulemap.trace.formula.product import GROUP_NOTE, GROUPED
from joulemap.trace.inference import (
    INDEX_NOTE,
    STAND_INS,
    attended_on_meta,
    copied_operands,
    expand_masks,
    is_mask,
)
from joulemap.trace.tensor import storage_of
from joulemap.trace.value import Computed, Values, to_meta

_IGNORED_NAMESPACES = ("prim",)
_IGNORED = frozenset(
    {"detach", "detach_", "_assert_async", "_assert_tensor_metadata", "sym_size", "lift_fresh", "device"}
)
_TO = frozenset({"to", "_to_copy"})
ATTENTION = "scaled_dot_product_attention"


@attrs.define(kw_only=True)
class RecordedTensor:
    """A value as seen while recording; `base` is the index of the value that owns the memory."""

    tensor: torch.Tensor
    index: int
    base: int
    storage: int
    producer: int | None
    role: str
    name: str = ""


@attrs.define(kw_only=True)
class RecordedCall:
    """One dispatched operator."""

    name: str
    """Without namespace and overload: `conv2d`."""
    aten: str
    module_path: str
    invocation: int
    """Which call of which module this is part of; calls of one invocation share it."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[torch.Tensor, ...]
    reads: tuple[int, ...]
    """Tensor indices read, each once, in argument order."""
    writes: tuple[int, ...]
    depends: tuple[tuple[int, int], ...]
    """(producer call, tensor index) pairs."""
    is_view: bool
    depends_on_input: bool
    mutates: bool = False
    """Whether it writes to an argument."""
    known: dict[int, torch.Tensor] = attrs.field(factory=dict)
    """id of a tensor argument -> its values, for a formula that asks for them."""


class Recorder(TorchDispatchMode):
    """Records every dispatched operator until it is left. Keeps strong references to all tensors."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[RecordedCall] = []
        self.tensors: list[RecordedTensor] = []
        self.notes: list[str] = []
        self._by_id: dict[int, int] = {}
        self._owner: dict[int, int] = {}
        self._writer: dict[int, tuple[int, int]] = {}
        self._parameters = {
            storage_of(tensor): (name, tensor) for name, tensor in [*module.named_parameters(), *module.named_buffers()]
        }
        self._twins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.values = Values()
        self._path: list[tuple[str, int]] = [("", 0)]
        self._invocations = 0
        self.held_until: dict[int, int] = {}
        """storage -> the last call before the last module call that it was passed to returned"""
        self._names = {id(child): name for name, child in module.named_modules()}

    @contextlib.contextmanager
    def paths(self) -> Iterator[None]:
        """Follow module paths, and how long the arguments of modules are held, by global forward hooks."""

        def enter(module: torch.nn.Module, _args: Any) -> None:
            self._invocations += 1
            self._path.append((self._names.get(id(module), self._path[-1][0]), self._invocations))

        def leave(_module: torch.nn.Module, args: Any, _output: Any) -> None:
            self._path.pop()
            for leaf in tree_leaves(args):
                if isinstance(leaf, torch.Tensor):
                    self.held_until[storage_of(leaf)] = len(self.calls) - 1

        before = torch_module.register_module_forward_pre_hook(enter)
        after = torch_module.register_module_forward_hook(leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def add_input(self, tensor: torch.Tensor) -> None:
        """Declare a model input."""
        self._add(tensor, producer=None, role="input")

    def find(self, tensor: torch.Tensor) -> int:
        """Return the index of a tensor, declaring parameters and constants when first seen."""
        known = self._by_id.get(id(tensor))
        if known is not None:
            return known
        parameter = self._parameters.get(storage_of(tensor))
        if parameter is not None:
            return self._add(tensor, producer=None, role="parameter", name=parameter[0])
        return self._add(tensor, producer=None, role="constant")

    def _add(
        self,
        tensor: torch.Tensor,
        *,
        producer: int | None,
        role: str,
        name: str = "",
        new_version: bool = False,
    ) -> int:
        index = len(self.tensors)
        storage = storage_of(tensor)
        if new_version:
            self._owner[storage] = index
        base = self._owner.setdefault(storage, index)
        if base != index and role == "activation":
            role = self.tensors[base].role if producer is None else role
        self.tensors.append(
            RecordedTensor(
                tensor=tensor,
                index=index,
                base=base,
                storage=storage,
                producer=producer,
                role=role,
                name=name,
            )
        )
        self._by_id[id(tensor)] = index
        return index

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        namespace, _, qualified = func.name().partition("::")
        name = qualified.split(".")[0]
        if namespace in _IGNORED_NAMESPACES or name in _IGNORED:
            result = func(*args, **kwargs)
            self.values.follow(func, name, args, kwargs, [one for one in args if isinstance(one, torch.Tensor)], result)
            return result
        if name not in KEPT_COMPOSITES and torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        ):
            with self:
                decomposed = func.decompose(*args, **kwargs)
            if decomposed is not NotImplemented:
                return decomposed
        args, kwargs = self._on_one_device(args, kwargs)
        if name == "matmul":
            with self:
                args = copied_operands(*args)
        reads = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        read_indices = tuple(dict.fromkeys(self.find(tensor) for tensor in reads))
        result = self._tell(func, name, args, kwargs, reads)
        outputs = tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        if outputs or func._schema.is_mutable:
            self._record(func, name, args, kwargs, reads, read_indices, outputs)
        return result

    def _on_one_device(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with real tensors sent to meta where they meet others there.

        Tensors that a forward pass makes without naming a device are real: what is computed from shapes keeps its
        values until it meets an activation.
        """
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if not any(tensor.is_meta for tensor in tensors) or all(tensor.is_meta for tensor in tensors):
            return args, kwargs

        def move(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and not value.is_meta and value.dim() > 0:
                if id(value) not in self._twins:
                    self._twins[id(value)] = (value, value.to("meta"))
                    self.values.learn(self._twins[id(value)][1], value)
                return self._twins[id(value)][1]
            return value

        return tree_map(move, args), tree_map(move, kwargs)

    def _tell(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reads: list[torch.Tensor]
    ) -> Any:
        """Return what the operator gives: by known values where they decide it, and else as `_run` finds."""
        is_decided = name in STAND_INS or (name in _TO and _leaves_meta(args, kwargs))
        if is_decided and any(tensor.is_meta for tensor in reads):
            computed = self.values.compute(func, args, kwargs)
            if computed is not None:
                return self._told(name, computed, on_host=name in _TO)
        if name == "index":
            args = (args[0], [place for index in args[1] for place in self._selected(name, index)])
        try:
            result = self._run(func, name, args, kwargs)
        except (RuntimeError, NotImplementedError):
            on_meta = any(tensor.is_meta for tensor in reads)
            computed = self.values.compute(func, args, kwargs) if on_meta else None
            if computed is None:
                raise
            return self._told(name, computed)
        self.values.follow(func, name, args, kwargs, reads, result)
        return result

    def _selected(self, name: str, index: Any) -> list[Any]:
        """Return an index, or for a mask that is known the positions that it selects."""
        known = self.values.find(index) if is_mask(index) else None
        if known is None:
            return [index]
        told: list[Any] = self._told(name, Computed(list(known.value.nonzero().unbind(1)), known.assumptions))
        return told

    def _told(self, name: str, computed: Computed, *, on_host: bool = False) -> Any:
        """Return what known values tell of an operator that data decides, and note what it assumes."""
        for assumption in sorted(computed.assumptions):
            self.note_choice(name, assumption)
        if on_host:
            return computed.result
        result = to_meta(computed.result)
        for given, value in zip(tree_leaves(result), tree_leaves(computed.result), strict=True):
            if isinstance(given, torch.Tensor):
                self.values.learn(given, value, computed.assumptions)
        return result

    def _run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the operator gives, or the worst case of what it could where that depends on data."""
        on_meta = any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in tree_leaves((args, kwargs)))
        if not on_meta:
            return func(*args, **kwargs)
        if name == ATTENTION and args[0].dim() > 3:
            return attended_on_meta(*args, **kwargs)
        if name in STAND_INS:
            give, assumption = STAND_INS[name]
            self._note(name, assumption)
            return give(*args, **kwargs)
        if name == "index":
            indices, has_mask = expand_masks(list(args[1]))
            if has_mask:
                self._note(name, INDEX_NOTE)
                return func(args[0], indices)
        return func(*args, **kwargs)

    def note_choice(self, name: str, assumption: str) -> None:
        """Note what was assumed of a choice by data, once for all modules of which it is true."""
        if not any(note.endswith(assumption) for note in self.notes):
            self._note(name, assumption)

    def _asked(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.Tensor]:
        """Return the known arguments of an operator whose cost depends on them; of indices those that data chose."""
        if name not in GROUPED and name not in PLACED and name not in GATHERED:
            return {}
        asked: dict[int, torch.Tensor] = {}
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and not leaf.is_floating_point():
                known = self.values.find(leaf)
                if known is not None and (known.assumptions or name not in GATHERED):
                    asked[id(leaf)] = known.value
                    for assumption in sorted(known.assumptions) if name in GROUPED else ():
                        self.note_choice(name, assumption)
        if name in GROUPED and not asked:
            self._note(name, GROUP_NOTE)
        return asked

    def _note(self, name: str, assumption: str) -> None:
        note = f"{self._path[-1][0] or 'model'}: {name}: {assumption}"
        if note not in self.notes:
            self.notes.append(note)

    def _record(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reads: list[torch.Tensor],
        read_indices: tuple[int, ...],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        call_index = len(self.calls)
        depends: dict[tuple[int, int], None] = {}
        on_input = False
        for index in read_indices:
            value = self.tensors[index]
            on_input |= value.role == "input" or self.tensors[value.base].role == "input"
            if value.producer is not None:
                depends[(value.producer, index)] = None
            writer = self._writer.get(value.storage)
            if writer is not None and (value.producer is None or writer[0] > value.producer):
                depends[writer] = None
        on_input |= any(self.calls[producer].depends_on_input for producer, _ in depends)
        read_storages = {storage_of(tensor) for tensor in reads}
        mutates = (
            bool(func._schema.is_mutable) and torch.Tag.inplace_view not in func.tags
        )  # `transpose_` writes nothing
        is_view = not mutates and bool(outputs) and all(storage_of(tensor) in read_storages for tensor in outputs)
        mutated = {storage_of(tensor) for argument, tensor in _mutated(func, args, kwargs) if argument and mutates}
        writes = []
        for tensor in outputs:
            storage = storage_of(tensor)
            written = storage in mutated
            index = self._add(
                tensor,
                producer=call_index,
                role="activation",
                new_version=written or storage not in read_storages,
            )
            writes.append(index)
            if written:
                self._writer[storage] = (call_index, index)
        self.calls.append(
            RecordedCall(
                name=name,
                aten=str(func),
                module_path=self._path[-1][0],
                invocation=self._path[-1][1],
                args=args,
                kwargs=kwargs,
                outputs=outputs,
                reads=read_indices,
                writes=tuple(writes),
                depends=tuple(depends),
                is_view=is_view,
                depends_on_input=on_input,
                mutates=mutates,
                known=self._asked(name, args, kwargs),
            )
        )


def _leaves_meta(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a conversion asks for a device that holds values."""
    devices = [leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, torch.device)]
    return any(device.type == "cpu" for device in devices)


def _mutated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[bool, torch.Tensor]]:
    """Yield (is written, tensor) for each tensor argument of a call, by its schema."""
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        written = argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, torch.Tensor):
            yield written, value
