"""Record of the operators that a module dispatches: calls in order, with module paths, tensors and data flow.

                forward hooks ──► module path
    module(x) ──► ATen call ──► composite not kept? decompose; each part is dispatched again
                          └──► run on meta ──► producers by tensor, writes by storage ──► RecordedCall

A view is recognized by storage, not by name. A read depends on the producer of the tensor and on the last later writer
of its storage, so in-place updates through any alias are followed.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, Final

import attrs
import torch
from torch._ops import HigherOrderOperator
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from joulemap.physics.record.workload import READ, Finding
from joulemap.physics.workload import SPLIT_CALLS
from joulemap.trace.argument import MOST_VALUES
from joulemap.trace.branch import run_higher_order
from joulemap.trace.cause import add_sizes
from joulemap.trace.finding import describe_read, find_frame, find_model_frame, find_read, place_of
from joulemap.trace.formula import ATTENTION, KEPT_COMPOSITES
from joulemap.trace.formula.movement import GATHERED
from joulemap.trace.formula.placement import PLACED
from joulemap.trace.formula.pooling import CANDIDATES
from joulemap.trace.formula.product import GROUP_NOTE, GROUPED
from joulemap.trace.host import is_asked_by_nested, stay
from joulemap.trace.inference import (
    INDEX_NOTE,
    STAND_INS,
    attended_on_meta,
    copied_operands,
    expand_masks,
    find_filled_mask,
    grouped_on_meta,
    is_mask,
    run_on_zeros,
    selects,
)
from joulemap.trace.limit import MOST_ASKED, OutOfAnswersError, OutOfOperatorsError, operator_limit
from joulemap.trace.origin import decided_by, find_origins
from joulemap.trace.packed.weight import name_parts
from joulemap.trace.recurrence import CELLS, Recurrence
from joulemap.trace.sparse import is_about_sparse, run_sparse
from joulemap.trace.tensor import storage_of, tensors_in
from joulemap.trace.value import Computed, Values, to_meta

_IGNORED_NAMESPACES = ("prim",)
_IGNORED = frozenset(
    {"detach", "detach_", "_assert_async", "_assert_tensor_metadata", "sym_size", "lift_fresh", "device"}
)
_TO = frozenset({"to", "_to_copy"})
_BY_MASK: Final = frozenset({"index", "_unsafe_index"})
_SELECTING: Final = frozenset({"nonzero", "masked_select"})
_READ_BY_HOST: Final = frozenset(
    {"_pack_padded_sequence", "_pad_packed_sequence", "lstm", "gru", "rnn_tanh", "rnn_relu"}
)
"""Operators whose kernels read lengths from the host's memory."""
_SENDS: Final = frozenset({"to", "_to_copy", "type_as"})
_MAKES: Final = frozenset({"arange", "full", "ones", "zeros"})
MOST_REAL: Final = 2**22
"""Maximum elements of a tensor whose values a trace computes."""

ANSWER_NOTE: Final = "a question about data is answered True, for False ends in an error"

Site = tuple[CodeType, int]
"""Place in a model's code: (function, instruction)."""


@attrs.define(kw_only=True)
class RecordedTensor:
    """Tensor seen during a forward pass; `base` is the index of the tensor that owns its memory."""

    tensor: torch.Tensor
    index: int
    base: int
    storage: int
    producer: int | None
    role: str
    name: str = ""
    is_late: bool = False
    """True if the tensor was first seen after the host had read a number that depends on an input."""


@attrs.define(kw_only=True)
class RecordedCall:
    """Dispatched operator of a forward pass."""

    name: str
    """Name without namespace and overload: `conv2d`."""
    aten: str
    func: Any
    """ATen overload that was dispatched."""
    module_path: str
    invocation: int
    """Number of the innermost module call around this operator; operators of one module call share it."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[torch.Tensor, ...]
    reads: tuple[int, ...]
    """Indices of the tensors read, each once, in argument order."""
    writes: tuple[int, ...]
    depends: tuple[tuple[int, int], ...]
    """(index of the producing call, tensor index) for each data dependence."""
    is_view: bool
    depends_on_input: bool
    mutates: bool = False
    """True if the call writes to an argument."""
    known: dict[int, torch.Tensor] = attrs.field(factory=dict)
    """id of a tensor argument -> its known values, for operators whose cost depends on them."""
    score_operations: int = 0
    """Operations per score of an attention with a user-defined score function."""


class Recorder(TorchDispatchMode):
    """Mode that records every dispatched operator in its context; it keeps strong references to all tensors."""

    supports_higher_order_operators = True

    def __init__(
        self,
        module: torch.nn.Module,
        answered_true: Collection[Site] = (),
        settled: Collection[int] = (),
        candidates: int = CANDIDATES,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.has_left_torch = False
        """True if data were converted to numpy; arrays from numpy may depend on them."""
        self.asked: Site | None = None
        """Place in the model of the last data-dependent condition that was assumed False."""
        self._asked_times: Counter[Site] = Counter()
        self.origins: set[int] = set()
        """Indices of calls that compute the masks and counts for which stand-ins were used."""
        self._answered_true = answered_true
        self._settled = settled
        """Indices of calls whose masks are assumed to be all true, and whose counts are assumed to be 1."""
        self._candidates = candidates
        """Maximum boxes that are assumed to reach a non-maximum suppression after data selected them."""
        self._operator_limit = operator_limit()
        self.calls: list[RecordedCall] = []
        self.tensors: list[RecordedTensor] = []
        self.notes: list[str] = []
        self.findings: list[Finding] = []
        """Places where the pass read data or took a size from it, each once."""
        self.ran: set[str] = set()
        """Names of the modules that were called."""
        self._by_id: dict[int, int] = {}
        self._owner: dict[int, int] = {}
        self._writer: dict[int, tuple[int, int]] = {}
        self._parameters = {
            storage_of(part): (own, part)
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]
            for own, part in name_parts(name, tensor)
        }
        self._twins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._originals: dict[int, int] = {}
        """Storage of a meta twin -> storage of the tensor with values that it represents."""
        self._places: dict[int, torch.Tensor] = {}
        self._held: list[torch.Tensor] = []
        """Tensors kept alive so that their storage identifiers are not reused."""
        self._unknown: set[int] = set()
        """Storages whose values are no longer known, because a tensor without values overwrote them."""
        self._has_read_input = False
        """True if the host read a number that depends on an input; later tensors may depend on it."""
        self.values = Values()
        self._path: list[tuple[str, int]] = [("", 0)]
        self._invocations = 0
        self.held_until: dict[int, int] = {}
        """Storage -> index of the last call in the last module call that got the storage as an argument."""
        self._names = {id(child): name for name, child in module.named_modules()}

    @contextlib.contextmanager
    def paths(self) -> Iterator[None]:
        """Track module paths and the lifetime of module arguments by global forward hooks."""

        def enter(module: torch.nn.Module, _args: Any) -> None:
            self._invocations += 1
            name = self._names.get(id(module))
            if name is not None:
                self.ran.add(name)
            self._path.append((self._path[-1][0] if name is None else name, self._invocations))

        def leave(_module: torch.nn.Module, args: Any, _output: Any) -> None:
            self._path.pop()
            for leaf in tree_leaves(args):
                if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                    self.held_until[self._storage(unwrap(leaf))] = len(self.calls) - 1

        before = torch_module.register_module_forward_pre_hook(enter)
        after = torch_module.register_module_forward_hook(leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def add_input(self, tensor: torch.Tensor) -> None:
        """Record a tensor as an input of the model."""
        self._add(tensor, producer=None, role="input")

    def read(self, tensor: torch.Tensor) -> None:
        """Note that the host reads values of a tensor, on which later tensors may depend; booleans are ignored."""
        if tensor.dtype != torch.bool:
            self._has_read_input |= self._depends_on_input(tensor)

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        """Record a tensor made outside torch as a model input, and return a copy without storage."""
        twin = tensor.to("meta")
        self.add_input(twin)
        return twin

    def add_call(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        reads: Sequence[torch.Tensor],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Record a call under another operator name, with these dense tensors as its reads and outputs."""
        indices = tuple(dict.fromkeys(map(self.find, reads)))
        self._record(func, name, args, {}, reads, indices, outputs)

    def stand_for(self, tensor: torch.Tensor, other: torch.Tensor) -> None:
        """Treat `tensor` and `other` as the same memory."""
        self.find(other)
        if storage_of(tensor) != storage_of(other):
            self._originals[storage_of(tensor)] = self._storage(other)
            self._held.append(tensor)

    def name_of(self, tensor: torch.Tensor) -> str:
        """Return the name of the parameter or buffer that owns a tensor's memory; empty for any other tensor."""
        return self.tensors[self.find(tensor)].name

    def add_product(self, tensor: torch.Tensor) -> None:
        """Record a tensor that the last call computes besides its outputs, like a sum that a kernel need not write."""
        self._add(tensor, producer=len(self.calls) - 1, role="activation", new_version=True)

    @contextlib.contextmanager
    def on_trial(self) -> Iterator[Callable[[], list[RecordedCall]]]:
        """Record the calls of this context and discard them afterwards. The yielded function returns the calls recorded
        so far.
        """
        kept = {name: copy.copy(getattr(self, name)) for name in _RECORD}
        start = len(self.calls)
        try:
            yield lambda: self.calls[start:]
        finally:
            for name, before in kept.items():
                setattr(self, name, before)

    def find(self, tensor: torch.Tensor) -> int:
        """Return the index of a tensor; a tensor seen for the first time is recorded."""
        known = self._by_id.get(id(tensor))
        if known is not None:
            return known
        parameter = self._parameters.get(storage_of(tensor))
        if parameter is not None:
            return self._add(tensor, producer=None, role="parameter", name=parameter[0])
        owner = self._owner.get(self._storage(tensor))
        if owner is not None:  # another object with the same memory, as `detach` returns
            return self._add(tensor, producer=self.tensors[owner].producer, role=self.tensors[owner].role)
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
        storage = self._storage(tensor)
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
                is_late=self._has_read_input,
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
            result = func(*args, **kwargs)
            self.values.follow(func, name, args, kwargs, [one for one in args if isinstance(one, torch.Tensor)], result)
            return result
        if is_about_sparse(name, args, kwargs):
            return run_sparse(self, func, name, args, kwargs)
        is_known = name in _TO and args[0].is_meta and self.values.find(args[0]) is not None
        if not is_known:
            args, kwargs = stay(args, kwargs)
        if name not in KEPT_COMPOSITES and torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        ):
            args, kwargs = self._floats_on_one_device(func, args, kwargs)
            start = len(self.calls)
            with self:
                decomposed = func.decompose(*args, **kwargs)
            if (gates := f"aten.{name}.gates") in SPLIT_CALLS:
                for call in self.calls[start:][-SPLIT_CALLS[gates] :]:
                    call.aten = gates
            if decomposed is not NotImplemented:
                return decomposed
        if name in _SENDS and not is_known and (dtype := self._sent_as(func, args, kwargs)) is not None:
            with self:
                return args[0].to(dtype)
        if name == "index_put_" and self._is_known(args[2]):
            with self:
                mask = find_filled_mask(args, kwargs)
                if mask is not None:
                    return args[0].masked_fill_(mask, args[2].item())
        args, kwargs, result = self._on_one_device(func, name, args, kwargs)
        if name == "matmul":
            with self:
                args = copied_operands(*args)
        reads = tensors_in((args, kwargs))
        read_indices = tuple(dict.fromkeys(self.find(tensor) for tensor in reads))
        if result is None:
            result = self._evaluate(func, name, args, kwargs, reads)
        outputs = tuple(tensors_in(result))
        if outputs or func._schema.is_mutable:
            self._record(func, name, args, kwargs, reads, read_indices, outputs)
        return result

    def _storage(self, tensor: torch.Tensor) -> int:
        """Return the identifier of a tensor's memory; a meta twin shares that of its original."""
        storage = storage_of(tensor)
        return self._originals.get(storage, storage)

    def _is_known(self, value: Any) -> bool:
        """Return whether a value is a tensor with values that equal those of a real inference."""
        return isinstance(value, torch.Tensor) and not value.is_meta and storage_of(value) not in self._unknown

    def _sent_as(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
        """Return the resulting dtype of a call that moves a tensor to another device; None for any other call.

        A trace has only one device, so such a call converts the dtype at most.
        """
        names = [argument.name for argument in func._schema.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        other = given.get("other")
        device = other.device if isinstance(other, torch.Tensor) else given.get("device")
        dtype = other.dtype if isinstance(other, torch.Tensor) else given.get("dtype")
        if device is None or torch.device(device).type == args[0].device.type:
            return None
        return dtype or args[0].dtype

    def _on_one_device(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Return (args, kwargs, result) with real tensors moved to meta if another argument is on meta. The result is
        None unless known masks determine it.

        Small integer inputs and tensors that the model makes without a device are real. Values computed from shapes,
        lengths and ids stay known until they are combined with an activation or become too large.
        """
        tensors = tensors_in((args, kwargs))
        if not tensors and "device" in kwargs:
            return args, {**kwargs, "device": _place_of_made(name, args, kwargs)}, None
        real = [tensor for tensor in tensors if not tensor.is_meta]
        has_meta = len(real) < len(tensors)
        if not real or name in _READ_BY_HOST:
            return args, kwargs, None
        if not has_meta and all(self._is_known(tensor) for tensor in real) and _broadcast_elements(real) <= MOST_REAL:
            return args, kwargs, None
        result = None
        if name == "masked_select" and self._is_known(args[1]):
            count = int(torch.broadcast_to(args[1], torch.broadcast_shapes(args[0].shape, args[1].shape)).sum())
            result = torch.empty(count, dtype=args[0].dtype, device="meta")
        if name in _BY_MASK and any(self._is_known(index) and selects(index) for index in args[1]):
            result = func(self.move(args[0], func).to("meta"), [*self._positions(args[1])])
        moved = tree_map(lambda value: self.move(value, func), (args, kwargs))
        return moved[0], moved[1], result

    def _floats_on_one_device(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return (args, kwargs) with real floating-point tensors moved to meta if another argument is on meta.

        Integers keep their values, because composite operators read them as lengths or sections.
        """
        tensors = tensors_in((args, kwargs))
        if not any(tensor.is_meta for tensor in tensors) or all(tensor.is_meta for tensor in tensors):
            return args, kwargs

        def move(value: Any) -> Any:
            is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
            return self.move(value, func) if is_float else value

        moved: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(move, (args, kwargs))
        return moved

    def _positions(self, indices: Any) -> Iterator[Any]:
        """Yield indices on meta; a known mask is replaced by the positions that it selects."""
        for index in indices:
            if self._is_known(index) and selects(index):
                yield from (position.to("meta") for position in index.nonzero(as_tuple=True))
            else:
                yield index.to("meta") if isinstance(index, torch.Tensor) else index

    def move(self, value: Any, func: Any = None) -> Any:
        """Return the meta twin of a tensor with values; twins of tensors that share memory share memory.

        Other values are returned unchanged, and so is a zero-dimensional tensor that `func` only reads.
        """
        if not isinstance(value, torch.Tensor) or value.is_meta:
            return value
        if func is not None and value.dim() == 0 and not func._schema.is_mutable and "masked_fill" not in func.name():
            return value
        known = self._twins.get(id(value))
        if known is not None:
            return known[1]
        storage = storage_of(value)
        if storage not in self._places:
            self._places[storage] = torch.empty(value.untyped_storage().nbytes(), dtype=torch.uint8, device="meta")
        twin = torch.empty(0, dtype=value.dtype, device="meta").set_(
            self._places[storage].untyped_storage(), value.storage_offset(), value.size(), value.stride()
        )
        self._by_id[id(twin)] = self.find(value)
        self._twins[id(value)] = (value, twin)
        self._originals[storage_of(twin)] = storage
        if self._is_known(value):
            self.values.learn(twin, value)
        return twin

    def _evaluate(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reads: list[torch.Tensor]
    ) -> Any:
        """Return the result of an operator, from known values if they determine it, else from `_run`."""
        is_decided = name in STAND_INS or (name in _TO and _leaves_meta(args, kwargs))
        if is_decided and any(tensor.is_meta for tensor in reads):
            computed = self.values.compute(func, args, kwargs)
            if computed is not None:
                return self._take_known(name, computed, on_host=name in _TO)
        if name == "index":
            args = (args[0], [place for index in args[1] for place in self._selected(name, index)])
        try:
            result = self._run(func, name, args, kwargs)
        except (RuntimeError, NotImplementedError) as error:
            on_meta = any(tensor.is_meta for tensor in reads)
            computed = self.values.compute(func, args, kwargs) if on_meta else None
            if computed is not None:
                return self._take_known(name, computed)
            if not on_meta or not isinstance(error, NotImplementedError) or func.namespace != "aten":
                add_sizes(error, name, reads)
                raise
            result = run_on_zeros(func, args, kwargs)
            if result is NotImplemented:
                raise
            self.note(name, "its result has the shape that it has for zeros")
        self.values.follow(func, name, args, kwargs, reads, result)
        return result

    def _selected(self, name: str, index: Any) -> list[Any]:
        """Return the positions that a known mask selects; any other index as a list of itself."""
        known = self.values.find(index) if is_mask(index) else None
        if known is None:
            return [index]
        indices: list[Any] = self._take_known(name, Computed(list(known.value.nonzero().unbind(1)), known.assumptions))
        return indices

    def _take_known(self, name: str, computed: Computed, *, on_host: bool = False) -> Any:
        """Return the result of an operator computed from known values, and note the assumptions behind them."""
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
        """Return the result of an operator on meta; if its shape depends on data, the worst case."""
        tensors = tensors_in((args, kwargs))
        if not any(tensor.is_meta for tensor in tensors):
            if name == "_local_scalar_dense":
                self.read(args[0])
            return func(*args, **kwargs)
        if name == ATTENTION and args[0].dim() > 3:
            return attended_on_meta(*args, **kwargs)
        if name == "_grouped_mm":
            return grouped_on_meta(*args, **kwargs)
        if name in CELLS:
            return Recurrence.of(name, func, args, kwargs).outputs()
        if name in STAND_INS:
            give, assumption = STAND_INS[name]
            self._find_origins(name, args)
            given = give(*args, **kwargs)
            if given is False:
                given = self._answer()
            self.note(name, ANSWER_NOTE if given is True else assumption, given)
            return given
        if name == "index":
            indices, has_mask = expand_masks(list(args[1]))
            if has_mask:
                self._find_origins(name, args)
                self.note(name, INDEX_NOTE)
                return func(args[0], indices)
        return func(*args, **kwargs)

    def _find_origins(self, name: str, args: tuple[Any, ...]) -> None:
        is_number = name == "_local_scalar_dense"
        for tensor in decided_by(name, args):
            if isinstance(tensor, torch.Tensor):
                self.origins |= find_origins(
                    self.find(tensor), self.tensors, self.calls, self.values, is_number=is_number
                )

    def _settle(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Assume data-dependent masks in a call's outputs to be all true, and counts to be 1."""
        for output in outputs:
            assumption = INDEX_NOTE if output.dtype == torch.bool else STAND_INS["repeat_interleave"][1]
            self.values.learn(output, torch.ones(output.shape, dtype=output.dtype), frozenset({assumption}))

    def _depends_on_input(self, tensor: torch.Tensor) -> bool:
        value = self.tensors[self.find(tensor)]
        if "input" in (value.role, self.tensors[value.base].role):
            return True
        writer = self._writer.get(value.storage, (value.producer, 0))[0]
        return any(call is not None and self.calls[call].depends_on_input for call in (value.producer, writer))

    def known(self, tensor: torch.Tensor, name: str) -> torch.Tensor | None:
        """Return the values that the host reads from a tensor without storage; None if they are unknown."""
        found = self.values.find(tensor)
        if found is None:
            return None
        for assumption in sorted(found.assumptions):
            self.note_choice(name, assumption)
        return found.value

    def note_choice(self, name: str, assumption: str) -> None:
        """Note an assumption about a data-dependent choice, unless a module has the same note already."""
        if not any(assumption in note for note in self.notes):
            self.note(name, assumption)

    def _known_arguments(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.Tensor]:
        """Return id -> values of the known integer arguments on which an operator's cost depends."""
        if name not in GROUPED and name not in PLACED and name not in GATHERED:
            return {}
        asked: dict[int, torch.Tensor] = {}
        for leaf in tensors_in((args, kwargs)):
            if not leaf.is_floating_point():
                known = self.values.find(leaf)
                if known is not None and (known.assumptions or name not in GATHERED):
                    asked[id(leaf)] = known.value
                    for assumption in sorted(known.assumptions) if name in GROUPED else ():
                        self.note_choice(name, assumption)
        if name in GROUPED and not asked:
            self.note(name, GROUP_NOTE)
        return asked

    def _count_candidates(self, args: tuple[Any, ...], depends: Iterable[int]) -> dict[str, int]:
        """Return the assumed number of boxes that reach a non-maximum suppression, as an argument of its formula.

        The result is empty if no earlier call selects boxes by data, so that all reach it. `depends` are the calls that
        produce the boxes and scores.
        """
        waiting, seen = [*depends], set[int]()
        while waiting:
            call = self.calls[producer := waiting.pop()]
            if call.name in _SELECTING or (call.name in _BY_MASK and any(map(is_mask, call.args[1]))):
                boxes = len(args[0])
                if boxes > self._candidates:
                    self.note("nms", f"{self._candidates:,} of {boxes:,} boxes are assumed to reach suppression")
                return {"candidates": self._candidates}
            if producer not in seen:
                seen.add(producer)
                waiting += [one for one, _ in call.depends]
        return {}

    def _answer(self) -> bool:
        """Return the assumed result of a data-dependent condition: False, or True where False led to an error."""
        frame = find_frame()
        if frame is None:
            return False
        site = (frame.f_code, frame.f_lasti)
        if site in self._answered_true:
            return True
        self.asked = site
        self._asked_times[site] += 1
        if self._asked_times[site] > MOST_ASKED:
            raise OutOfAnswersError
        return False

    def note(self, name: str, assumption: str, given: Any = None) -> None:
        """Add a note on an assumption about operator `name` in the module that is running.

        `given` is the result that stands for the unknown one. For a value that Python reads, the note and a finding
        state the place in the model's code.
        """
        path = self._path[-1][0]
        finding = find_read(name, path, given, find_model_frame())
        if finding is not None and all(place_of(finding) != place_of(one) for one in self.findings):
            self.findings.append(finding)
        told = (
            f"{name}: {assumption}" if finding is None or finding.kind != READ else describe_read(finding, assumption)
        )
        note = f"{path or 'model'}: {told}"
        if note not in self.notes:
            self.notes.append(note)

    def _record(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reads: Sequence[torch.Tensor],
        read_indices: tuple[int, ...],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        call_index = len(self.calls)
        if call_index >= self._operator_limit:
            raise OutOfOperatorsError
        if call_index in self._settled:
            self._settle(outputs)
        depends: dict[tuple[int, int], None] = {}
        on_input = False
        for index in read_indices:
            value = self.tensors[index]
            owner = self.tensors[value.base]
            on_input |= "input" in (value.role, owner.role) or (owner.role == "constant" and owner.is_late)
            if value.producer is not None:
                depends[(value.producer, index)] = None
            writer = self._writer.get(value.storage)
            if writer is not None and (value.producer is None or writer[0] > value.producer):
                depends[writer] = None
        on_input |= self._has_read_input and not read_indices
        on_input |= any(self.calls[producer].depends_on_input for producer, _ in depends)
        on_input |= torch.Tag.nondeterministic_seeded in func.tags and name != ATTENTION  # new in each pass
        read_storages = {self._storage(tensor) for tensor in reads}
        if name == "nms":
            kwargs = kwargs | self._count_candidates(args, [producer for producer, _ in depends])
        mutates = (
            bool(func._schema.is_mutable) and torch.Tag.inplace_view not in func.tags
        )  # `transpose_` writes nothing
        is_view = not mutates and bool(outputs) and all(self._storage(tensor) in read_storages for tensor in outputs)
        mutated = {self._storage(tensor) for argument, tensor in _mutated(func, args, kwargs) if argument and mutates}
        if any(tensor.is_meta for tensor in reads):
            self._unknown |= mutated
        writes = []
        for tensor in outputs:
            storage = self._storage(tensor)
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
                func=func,
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
                known=self._known_arguments(name, args, kwargs),
            )
        )


def _place_of_made(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """Return the device for a new tensor: CPU for small integers, meta for large tensors, else the requested one."""
    device: torch.device | None = kwargs["device"]
    if is_asked_by_nested():
        return device
    is_span = name.startswith("arange")
    spans = args if is_span else args[0] if args and isinstance(args[0], list | tuple) else ()
    if not all(isinstance(size, int) for size in spans) or 0 in spans[: 0 if is_span else None]:
        return device
    count = len(range(*spans)) if is_span and 0 < len(spans) < 4 and 0 not in spans[2:] else math.prod(spans)
    if count > MOST_REAL:
        return torch.device("meta")
    dtype = kwargs.get("dtype")
    filled = args[1] if name == "full" and len(args) > 1 else 0 if is_span else 0.0
    is_whole = isinstance(filled, int) if dtype is None else not (dtype.is_floating_point or dtype.is_complex)
    return torch.device("cpu") if name in _MAKES and is_whole and count <= MOST_VALUES else device


def _broadcast_elements(tensors: list[torch.Tensor]) -> int:
    """Return the number of elements of an elementwise result, or of the largest tensor if shapes differ."""
    try:
        return math.prod(torch.broadcast_shapes(*(tensor.shape for tensor in tensors)))
    except RuntimeError:
        return max(tensor.numel() for tensor in tensors)


def _leaves_meta(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a conversion targets a device with storage."""
    devices = [leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, torch.device)]
    return any(device.type == "cpu" for device in devices)


_RECORD: Final = (
    "calls", "tensors", "notes", "findings", "_by_id", "_owner", "_writer", "_twins", "_originals", "_places", "_held",
    "_unknown", "_has_read_input", "held_until",
)  # fmt: skip
"""Recorder attributes that `on_trial` saves and restores."""


def unwrap(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that functorch (`torch.vmap`, `torch.func.grad`) wraps, at any depth."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _acts_itself(kind: type) -> bool:
    """Return whether a tensor class dispatches operators to inner tensors; those operators are recorded instead."""
    return kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl  # type: ignore[attr-defined]


def _mutated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[bool, torch.Tensor]]:
    """Yield (whether the operator's schema writes it, tensor) for each tensor argument of a call."""
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        written = argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, torch.Tensor):
            yield written, value
