"""Module and inputs of a request, and their trace."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.domain.name import FROZEN
from joulemap.domain.operator.name import find_operator
from joulemap.domain.workload import Workload
from joulemap.hub import detector, file, published, speech, tiny, transformers
from joulemap.hub.guess import NO_CACHE_NOTE, USE_CACHE, Guesses, describe_inputs
from joulemap.hub.past import build_past
from joulemap.system.errors import ModelError
from joulemap.trace import block, library
from joulemap.trace.argument import MOST_VALUES, has_values, named_tensors, replace_tensors, tensors_in
from joulemap.trace.formula.own import own_formulas
from joulemap.trace.guest import hosting
from joulemap.trace.limit import limited_time
from joulemap.trace.module import run_module, trace_module
from joulemap.trace.operator import build_operator
from joulemap.trace.source import InputSpec, ModelRequest, find_uncommon, is_text
from joulemap.trace.tensor import DTYPES
from joulemap.trace.way import NOTES, Way, construct

MOST: Final = 2**60
"""Maximum of any count; the sums of the store have 63 bits."""

MOST_LISTED: Final = 8
"""Maximum inputs that an error lists."""

KEPT: Final = ("exported", "module")
"""Kinds that are traced as a copy: an exported module refuses eval(), and an in-memory module belongs to the caller."""

Inputs = tuple[Sequence[Any], Mapping[str, Any]]


@attrs.frozen(kw_only=True)
class BuiltModel:
    """Built module with its inputs."""

    module: torch.nn.Module
    positional: Sequence[Any]
    named: Mapping[str, Any]
    batch: int
    notes: tuple[str, ...]
    """Differences between the module and the one that was requested."""
    way: Way = "meta"
    """Method by which the module was built."""
    others: Guesses | None = None
    """Keyword arguments to try if the module does not take these inputs."""


def build_request(request: ModelRequest) -> BuiltModel:
    """Build the module and the inputs of a request, most tensors without storage. Raise ModelError if that fails.

    Inside `build_with_storage` the module has its weights; inputs made from sizes stay without storage.
    """
    operator = find_operator(request.model) if request.kind == "operator" else None
    if operator is not None:
        batch = request.batch or 1
        built, sized = build_operator(operator, batch)
        return BuiltModel(module=built, positional=sized, named={}, batch=batch, notes=())
    made, way = construct(lambda: _make(request), request.model, request.build_memory_bytes)
    notes = made.notes
    if request.sizes is not None:

        def run(positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
            may_change = request.kind not in KEPT and way == "meta"
            return run_module(made.module, positional, named, model=request.model, may_change=may_change)

        (positional, named), remarks = build_past(made.module, made.own, request, run, is_sized=made.is_sized)
        notes += remarks
    else:
        own = made.own if made.guesses is None else next(made.guesses)
        is_given = request.inputs and made.guesses is None  # guesses already contain the given inputs
        positional, named = _given(request) if is_given else _own(own, request, is_sized=made.is_sized)
    batch, remarks = _batch_of(request, (positional, named))
    return BuiltModel(
        module=made.module,
        positional=positional,
        named=named,
        batch=batch,
        notes=(*notes, *remarks),
        way=way,
        others=None if request.sizes else made.guesses,
    )


@attrs.frozen(kw_only=True)
class _Made:
    module: torch.nn.Module
    own: Any = None
    """Inputs that the module brings."""
    guesses: Guesses | None = None
    notes: tuple[str, ...] = ()
    is_sized: bool = False
    """True if its own inputs have the requested sizes."""


def _make(request: ModelRequest) -> _Made:
    """Build the module of a request, with its inputs if it brings any."""
    if request.kind == "zoo":
        name = request.model.removeprefix(library.QUANTIZED)
        notes: tuple[str, ...] = () if name == request.model else (library.QUANTIZED_NOTE,)
        return _Made(module=library.build_torchvision(name, request.inputs[0].shape[-1]), notes=notes)
    if request.kind == "hf":
        module, guesses, notes = transformers.build_transformers(request)
        return _Made(module=module, guesses=guesses, notes=notes)
    if request.kind == "block":
        if request.model in tiny.NETWORKS:
            module, own = tiny.build_tiny(request.model, _values(request))
        elif request.model in detector.NETWORKS:
            module, own = detector.build_detector(request.model, _values(request))
        elif request.model in speech.NETWORKS:
            module, own = speech.build_whisper(request.model, _values(request))
        elif request.model in published.load_published():
            module, guesses, notes = published.build_published(request)
            return _Made(module=module, guesses=guesses, notes=notes, is_sized=True)
        else:
            module, own = block.build(request.model, _values(request))
    elif request.kind == "exported":
        from joulemap.hub.saved import load_exported  # torch.export takes as long to import as the rest of torch

        module, own = load_exported(request)
    elif request.kind == "file":
        module, own, is_sized = file.build_from_factory(request, _values(request))
        return _Made(module=module, own=own, is_sized=is_sized)
    elif request.kind == "module":
        module, own = request.held  # type: ignore[misc]
    else:
        module, own = library.build_timm(request, _values(request))
    return _Made(module=module, own=own)


def trace_request(request: ModelRequest) -> Workload:
    """Trace a request to a workload that is not yet fused; ModelError says what failed."""
    with hosting(request.model), limited_time(request.model), own_formulas():
        workload = _trace(request)
    _check_storable(workload)
    return workload


def _trace(request: ModelRequest) -> Workload:
    built = build_request(request)
    try:
        workload = _trace_with(built, built.positional, built.named, request)
    except ModelError as error:
        if request.kind != "hf" or request.sizes is not None:
            raise
        found = _trace_with_others(built, request, error)
        if found is None:
            raise ModelError(f"{error}; {describe_inputs(built.module, built.named)}") from error
        workload = found
    notes = (NOTES[built.way],) if NOTES[built.way] else ()
    return attrs.evolve(workload, notes=(*built.notes, *notes, *workload.notes))


def _trace_with(
    built: BuiltModel,
    positional: Sequence[Any],
    named: Mapping[str, Any],
    request: ModelRequest,
    keeps_values: bool = False,
) -> Workload:
    frozen = {name for name, one in built.module.named_parameters(remove_duplicate=False) if not one.requires_grad}
    workload = trace_module(
        built.module,
        positional,
        named,
        key=request.key,
        model=request.model,
        batch=built.batch,
        may_change=request.kind not in KEPT and built.way == "meta",
        keeps_values=keeps_values,
    )
    return _mark_frozen(workload, frozen) if frozen else workload


def _mark_frozen(workload: Workload, names: Collection[str]) -> Workload:
    """Return a workload whose named weights are marked as frozen, so that training does not change them."""
    tensors = tuple(
        attrs.evolve(one, name=f"{one.name}{FROZEN}") if one.role == "parameter" and one.name in names else one
        for one in workload.tensors
    )
    return attrs.evolve(workload, tensors=tensors)


def _trace_with_others(built: BuiltModel, request: ModelRequest, error: ModelError) -> Workload | None:
    """Return the workload with the first of the other inputs that a model takes; None if it takes none of them."""
    while built.others is not None:
        try:
            named = built.others.send(error)
        except (StopIteration, ModelError):
            break
        try:
            workload = _trace_with(built, (), named, request, keeps_values=True)
        except ModelError as failed:
            error = failed
        else:
            notes = () if named.get(USE_CACHE, True) else (NO_CACHE_NOTE,)
            return attrs.evolve(workload, notes=(*notes, *workload.notes))
    return None


def _check_storable(workload: Workload) -> None:
    """Raise ModelError for counts whose sums exceed the database's range, and for names that are not storable text."""
    counts: dict[str, int] = {
        "MACs": sum(operator.mac_count for operator in workload.operators),
        "elementwise operations": sum(operator.elementwise_count for operator in workload.operators),
        "special functions": sum(operator.special_count for operator in workload.operators),
        "bytes moved": sum(access.byte_count for access in workload.accesses),
        "parameters": workload.parameter_count,
    }
    for noun, count in counts.items():
        if count > MOST:
            raise ModelError(f"{workload.model} has {count:.3g} {noun}, more than the {MOST:.3g} that can be added up")
    for name in (*(operator.name for operator in workload.operators), *(tensor.name for tensor in workload.tensors)):
        if not is_text(name):
            raise ModelError(f"{workload.model}: the module name {name!r} is not text: it cannot be stored as UTF-8")


def _values(request: ModelRequest) -> dict[str, Any]:
    """Return a factory's arguments as Python literals, or as text if they are none."""

    def read(text: str) -> Any:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text

    return {name: read(value) for name, value in request.arguments}


def _given(request: ModelRequest) -> Inputs:
    if request.layout == "images":
        batch, *image = request.inputs[0].shape
        return ([_empty(attrs.evolve(request.inputs[0], shape=tuple(image)))] * batch,), {}
    positional = tuple(_empty(spec) for spec in request.inputs if not spec.name)
    return positional, {spec.name: _empty(spec) for spec in request.inputs if spec.name}


def _empty(spec: InputSpec) -> torch.Tensor:
    return torch.empty(spec.shape, dtype=DTYPES[spec.dtype], device="meta")


def _own(own: Any, request: ModelRequest, is_sized: bool = False) -> Inputs:
    """Return the inputs that a model brings, unchanged if `is_sized` and otherwise at the requested batch."""
    if own is None:
        raise ModelError(
            f"{request.model} has no example inputs: give --input 1,3,224,224, return (module, inputs), "
            "or set module.example_inputs"
        )
    for leaf in tensors_in(own):
        if leaf.dim() and leaf.shape[0] == 0:
            raise ModelError(f"{request.model} has an input of {_shape(leaf)}: its leading size is 0, expected a batch")
    sized = own
    if not is_sized and request.batch is not None and request.kind != "hf":
        sized = _with_batch(own, request.batch, request)
    if request.kind == "exported":
        positional, named = sized
        return positional, named
    if isinstance(sized, torch.Tensor):
        return (sized,), {}
    if isinstance(sized, Mapping):
        return (), dict(sized)
    if isinstance(sized, list | tuple):
        return tuple(sized), {}
    if not tensors_in(sized):
        raise ModelError(
            f"{request.model} has a {type(sized).__name__} as its inputs, expected a tensor, a tuple of arguments, "
            "a dictionary of keyword arguments or one object that holds tensors"
        )
    return (sized,), {}


def _with_batch(own: Any, batch: int, request: ModelRequest) -> Any:
    """Return inputs with the leading size of every tensor set, also inside caches and other objects; numbers stay.

    Values that a trace needs are repeated. Raises ModelError if the tensors disagree about the current leading size.
    """
    found = [(place, leaf) for place, leaf in named_tensors(own) if leaf.dim() or not has_values(leaf)]
    sizes = {leaf.shape[0] if leaf.dim() else None for _, leaf in found}
    if sizes == {batch}:
        return own
    if len(sizes) != 1 or None in sizes or request.kind == "exported":
        shapes = ", ".join(f"{place.lstrip('.')} {_shape(leaf)}".strip() for place, leaf in found[:MOST_LISTED])
        more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
        raise ModelError(
            f"{request.model} has inputs of {shapes}{more}: the batch cannot be set to {batch}; leave --batch out "
            "to take them as they are, or give --input"
        )

    def resize(value: torch.Tensor) -> torch.Tensor:
        if not value.dim():
            return value
        if has_values(value) and batch * value[0].numel() <= MOST_VALUES:
            return value.detach()[torch.arange(batch) % value.shape[0]]
        return torch.empty((batch, *value.shape[1:]), dtype=value.dtype, device="meta")

    return replace_tensors(own, resize)


def _shape(tensor: torch.Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def _batch_of(request: ModelRequest, arguments: Any) -> tuple[int, tuple[str, ...]]:
    """Return the batch as requested, else the leading size of the first tensor, and notes on it.

    If the leading size of another tensor of as many dimensions differs, as of nodes and edges, neither counts
    inferences: one forward pass is one.
    """
    if request.batch is not None:
        return request.batch, ()
    shapes = [tuple(leaf.shape) for leaf in tensors_in(arguments) if leaf.dim() > 0]
    if not shapes:
        return 1, ()
    other = find_uncommon(shapes)
    if other is None:
        return shapes[0][0], ()
    sizes = " and ".join("x".join(map(str, one)) for one in (shapes[0], other))
    return 1, (f"inputs of {sizes} have no common batch: one forward pass counts as one inference",)
