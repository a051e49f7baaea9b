"""The record of what a module dispatches: calls in order, with module paths, tensors and data flow.

                forward hooks ──► module path
    module(x) ──► ATen call ──► composite not kept? decompose, each part comes back here
                          └──► run on meta ──► producers by tensor, writes by storage ──► RecordedCall

A view is recognized by storage, not by name. A read depends on the producer of the tensor and on the last later
writer of its storage, so in-place updates through any alias are followed.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import attrs
import torch
from torch._ops import HigherOrderOperator
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from joulemap.trace.branch import run_higher_order
from joulemap.trace.formula import ATTENTION, KEPT_COMPOSITES
from joulemap.trace.host import stay
from joulemap.trace.inference import (
    INDEX_NOTE,
    STAND_INS,
    attended_on_meta,
    copied_operands,
    expand_masks,
    run_on_zeros,
)
from joulemap.trace.limit import OutOfOperatorsError, operator_limit
from joulemap.trace.tensor import storage_of

_IGNORED_NAMESPACES = ("prim",)
_IGNORED = frozenset(
    {"detach", "detach_", "_assert_async", "_assert_tensor_metadata", "sym_size", "lift_fresh", "device"}
)
_OURS: Final = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
"""Folders whose code is no model's: torch's, and this package."""

ANSWER_NOTE: Final = "a question about data is answered True, for False ends in an error"

Site = tuple[CodeType, int]
"""A place in a model's code: a function and an instruction of it."""


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
    score_operations: int = 0
    """For each score of an attention: what a score function of one's own computes."""


class Recorder(TorchDispatchMode):
    """Records every dispatched operator until it is left. Keeps strong references to all tensors."""

    supports_higher_order_operators = True

    def __init__(self, module: torch.nn.Module, answered_true: Collection[Site] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.has_left_torch = False
        """Whether data went to numpy, so that what comes from there may be made of it."""
        self.asked: Site | None = None
        """Where a yes or no was read from data last, and the answer was False."""
        self._answered_true = answered_true
        self._operator_limit = operator_limit()
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
                if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                    self.held_until[storage_of(unwrap(leaf))] = len(self.calls) - 1

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

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an input without values in the place of a tensor that was made outside of torch."""
        twin = tensor.to("meta")
        self.add_input(twin)
        return twin

    def add_product(self, tensor: torch.Tensor) -> None:
        """Declare what the last call gives besides its outputs, and need not write."""
        self._add(tensor, producer=len(self.calls) - 1, role="activation", new_version=True)

    @contextlib.contextmanager
    def on_trial(self) -> Iterator[Callable[[], list[RecordedCall]]]:
        """Record what runs inside as if it had not run; what is given returns its calls so far."""
        kept = {name: copy.copy(getattr(self, name)) for name in _RECORD}
        start = len(self.calls)
        try:
            yield lambda: self.calls[start:]
        finally:
            for name, before in kept.items():
                setattr(self, name, before)

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
        if isinstance(func, HigherOrderOperator):
            with self:
                return run_higher_order(self, func, args, kwargs)
        if any(map(_acts_itself, types)):
            return NotImplemented
        namespace, _, qualified = func.name().partition("::")
        name = qualified.split(".")[0]
        if namespace in _IGNORED_NAMESPACES or name in _IGNORED:
            return func(*args, **kwargs)
        args, kwargs = stay(args, kwargs)
        is_composite = name not in KEPT_COMPOSITES and torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        )
        args, kwargs = self._on_one_device(args, kwargs, keeps_whole_numbers=is_composite)
        if is_composite:
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
        result = self._run(func, name, args, kwargs)
        outputs = tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        if outputs or func._schema.is_mutable:
            self._record(func, name, args, kwargs, reads, read_indices, outputs)
        return result

    def _on_one_device(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, keeps_whole_numbers: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with real tensors sent to meta where they meet others there.

        Tensors that a forward pass makes without naming a device are real: what is computed from shapes keeps its
        values until it meets an activation. An operator that is made of others may read whole numbers (lengths,
        sections): it keeps those.
        """
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if not any(tensor.is_meta for tensor in tensors) or all(tensor.is_meta for tensor in tensors):
            return args, kwargs

        def move(value: Any) -> Any:
            if keeps_whole_numbers and isinstance(value, torch.Tensor) and not value.is_floating_point():
                return value
            if isinstance(value, torch.Tensor) and not value.is_meta and value.dim() > 0:
                return self._twins.setdefault(id(value), (value, value.to("meta")))[1]
            return value

        return tree_map(move, args), tree_map(move, kwargs)

    def _run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the operator gives, or the worst case of what it could where that depends on data."""
        on_meta = any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in tree_leaves((args, kwargs)))
        if not on_meta:
            return func(*args, **kwargs)
        if name == ATTENTION and args[0].dim() > 3:
            return attended_on_meta(*args, **kwargs)
        if name in STAND_INS:
            give, assumption = STAND_INS[name]
            given = give(*args, **kwargs)
            if given is False:
                given = self._answer()
            self.note(name, ANSWER_NOTE if given is True else assumption)
            return given
        if name == "index":
            indices, has_mask = expand_masks(list(args[1]))
            if has_mask:
                self.note(name, INDEX_NOTE)
                return func(args[0], indices)
        try:
            return func(*args, **kwargs)
        except NotImplementedError:
            if func.namespace != "aten":
                raise
            given = run_on_zeros(func, args, kwargs)
            if given is NotImplemented:
                raise
            self.note(name, "its result has the shape that it has for zeros")
            return given

    def _answer(self) -> bool:
        """Return the answer to a question about data that is asked now: False, where the pass can go on with that."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        if frame is None:
            return False
        site = (frame.f_code, frame.f_lasti)
        if site in self._answered_true:
            return True
        self.asked = site
        return False

    def note(self, name: str, assumption: str) -> None:
        """Tell an assumption about an operator of the module that runs now."""
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
        if call_index >= self._operator_limit:
            raise OutOfOperatorsError
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
            )
        )


_RECORD: Final = ("calls", "tensors", "notes", "_by_id", "_owner", "_writer", "_twins", "held_until")
"""What a recorder has recorded."""


def unwrap(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that functorch (`torch.vmap`, `torch.func.grad`) wraps, however often."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _acts_itself(kind: type) -> bool:
    """Whether tensors of a class run operators as others on the tensors that they hold, which are recorded then."""
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl  # type: ignore[attr-defined]


def _mutated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[bool, torch.Tensor]]:
    """Yield (is written, tensor) for each tensor argument of a call, by its schema."""
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        written = argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, torch.Tensor):
            yield written, value
