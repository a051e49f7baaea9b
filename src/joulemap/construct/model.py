"""Build of a requested module with its inputs, and the trace of both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.construct import block, file, library
from joulemap.construct.builder import Guesses, MadeModule, find_builder, surrounding
from joulemap.construct.source import (
    BOXES,
    OWN,
    Inputs,
    InputSpec,
    ModelRequest,
    find_uncommon,
    is_text,
    read_arguments,
    read_candidates,
)
from joulemap.domain.operator.name import find_operator
from joulemap.physics.fuse.group import GATHERING
from joulemap.physics.record.workload import Workload
from joulemap.physics.step import SUPPRESSION
from joulemap.system.errors import ModelError, UnbatchedError, UsageError
from joulemap.system.name import FROZEN
from joulemap.trace.argument import MOST_VALUES, has_values, named_tensors, replace_tensors, tensors_in
from joulemap.trace.formula.own import own_formulas
from joulemap.trace.formula.pooling import CANDIDATES
from joulemap.trace.guest import hosting
from joulemap.trace.limit import limited_time
from joulemap.trace.module import run_module, trace_module
from joulemap.trace.operator import build_operator
from joulemap.trace.tensor import DTYPES
from joulemap.trace.way import NOTES, Way, construct

MOST: Final = 2**60
"""Maximum of any count; the database sums in signed 64-bit integers."""

MOST_LISTED: Final = 8
"""Maximum inputs listed in an error message."""

KEPT: Final = ("exported", "module")
"""Kinds of models that are copied before a trace: an exported module refuses eval(), and an in-memory module belongs to
the caller.
"""

ROUNDED: Final = 1e-3
"""Relative deviation of a count that rounding explains, as of tokens among experts."""


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
    """Way in which the module was built: without weights (`meta`) or with them (`real`)."""
    others: Guesses | None = None
    """Further guesses of keyword arguments, to try if the forward pass fails with these inputs."""
    describe: Callable[[Mapping[str, Any]], str] | None = None
    """Function that describes given inputs and those that the module takes; None if they are not guessed."""
    own: str = ""
    """Description of the model's own inputs, if given inputs replaced them; else empty."""
    is_fixed: bool = False
    """True for an exported program that takes no other leading size than the one of its inputs."""


def build_request(request: ModelRequest) -> BuiltModel:
    """Build the module and the inputs of a request; most tensors have no storage. Raise ModelError if that fails.

    Inside `build_with_storage` the module has its weights; inputs made from sizes have no storage.
    """
    operator = find_operator(request.model) if request.kind == "operator" else None
    if operator is not None:
        batch = request.batch or 1
        built, sized = build_operator(operator, batch)
        return BuiltModel(module=built, positional=sized, named={}, batch=batch, notes=())
    made, way = construct(lambda: _make(request), request.model, request.build_memory_bytes)
    notes, replaced = made.notes, ""
    is_open = bool(made.sizes) and all(one and one[0] is None for one in made.sizes.values())
    if request.sizes is not None:

        def run(positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
            may_change = request.kind not in KEPT and way == "meta"
            return run_module(made.module, positional, named, model=request.model, may_change=may_change)

        (positional, named), remarks = request.sizes.build_inputs(
            made.module, made.own, request, run, is_sized=made.is_sized
        )
        notes += remarks
    else:
        own, remarks = (made.own, ()) if made.guesses is None else next(made.guesses)
        notes += remarks
        is_given = bool(request.inputs) and made.guesses is None  # guesses already contain the given inputs
        merged = _merge(made.module, own, request) if is_given and own is not None else None
        if merged is not None:
            positional, named = merged
            if find_uncommon([tuple(leaf.shape) for leaf in tensors_in(merged)]):
                request = attrs.evolve(request, batch=None)
        else:
            positional, named = (
                _given(request) if is_given else _own(own, request, is_sized=made.is_sized, is_open=is_open)
            )
        _check_exported(request, made.sizes, positional, named)
        replaced = _list_shapes(named_tensors(own)) if is_given and own is not None else ""
    batch, remarks = _batch_of(request, (positional, named))
    return BuiltModel(
        module=made.module,
        positional=positional,
        named=named,
        batch=batch,
        notes=(*notes, *remarks),
        way=way,
        others=None if request.sizes else made.guesses,
        describe=None if request.sizes else made.describe,
        own=replaced,
        is_fixed=request.kind == "exported" and not is_open,
    )


def _make(request: ModelRequest) -> MadeModule:
    """Build the module of a request, with its own inputs if there are any."""
    if request.kind == "zoo":
        name = request.model.removeprefix(library.QUANTIZED)
        notes: tuple[str, ...] = () if name == request.model else (library.QUANTIZED_NOTE,)
        return MadeModule(module=library.build_torchvision(name, request.inputs[0].shape[-1]), notes=notes)
    if request.kind == "exported":
        from joulemap.construct.saved import load_exported  # torch.export takes as long to import as the rest of torch

        module, own, sizes = load_exported(request)
        return MadeModule(module=module, own=own, sizes=sizes)
    if request.kind == "file":
        module, own, is_sized = file.build_from_factory(request, read_arguments(request))
        return MadeModule(module=module, own=own, is_sized=is_sized)
    if request.kind == "module":
        module, own = request.held  # type: ignore[misc]
        return MadeModule(module=module, own=own)
    if request.kind == "block" and request.model in block.BLOCKS:
        module, own = block.build(request.model, read_arguments(request))
        return MadeModule(module=module, own=own)
    return find_builder(request).make(request)


def trace_request(request: ModelRequest) -> Workload:
    """Return the workload of a request, before fusion. Raise ModelError if the module cannot be built or traced."""
    with hosting(request.model), surrounding(request), limited_time(request.model), own_formulas():
        return _trace(request)


def _trace(request: ModelRequest) -> Workload:
    if request.kind in OWN and request.sizes is None:
        return _trace_own(request)
    return _trace_built(build_request(request), request)


def _trace_own(request: ModelRequest) -> Workload:
    """Return the workload of a user's model, at batch 1 if no size of its inputs is a batch.

    Raises UnbatchedError for a larger batch of such a model.
    """
    if request.batch in (None, 1):
        built = build_request(attrs.evolve(request, batch=None))
        workload = _trace_built(built, request)
        if built.batch == 1:
            return workload
        if not _is_batch(built, workload, request):
            note = f"one forward pass counts as one inference: {_describe_unbatched(built)}"
            return attrs.evolve(workload, batch=1, notes=(*workload.notes, note))
        if request.batch is None:
            return workload
        if request.inputs:
            raise UsageError(f"--batch 1 contradicts the input shape, which starts with {built.batch}")
    try:
        built = build_request(request)
        workload = _trace_built(built, request)
        is_batch = _is_batch(built, workload, request)
    except UnbatchedError:
        raise
    except ModelError:
        is_batch = False
    if is_batch:
        return workload
    built = build_request(attrs.evolve(request, batch=None))
    _trace_built(built, request)  # raises the error of a model that also fails with its own inputs
    raise UnbatchedError(
        f"{request.model} takes one input at a time: {_describe_unbatched(built)}; leave --batch {request.batch} out"
    )


def count_samples(built: BuiltModel, request: ModelRequest) -> int:
    """Return the batch size of a built model: 1 if the leading size of its inputs is no batch."""
    if built.batch == 1 or request.kind not in OWN or request.sizes is not None:
        return built.batch
    return built.batch if _is_batch(built, _trace_built(built, request), request) else 1


def _is_batch(built: BuiltModel, workload: Workload, request: ModelRequest) -> bool:
    """Return whether a model treats the leading size of its inputs as independent samples.

    Twice the samples then take twice the operations in as many sequential steps. Channels of an image, boxes before a
    suppression and steps of a sequence do not; nodes of a graph and points of a cloud are mixed. An exported program of
    fixed sizes passes its batch on to each output.
    """
    size, inputs = built.batch, (tuple(built.positional), dict(built.named))
    if built.is_fixed:
        return all(one.shape[:1] == (size,) for one in workload.tensors if one.is_output)
    leaves = [leaf for leaf in tensors_in(inputs) if leaf.dim()]
    widened = [leaf for leaf in leaves if leaf.shape[0] == size]
    if any(has_values(leaf) and 2 * leaf.numel() > MOST_VALUES for leaf in widened):
        return True  # a trace of twice the samples lacks their values
    positional, named = replace_tensors(
        inputs, lambda leaf: _resize(leaf, 2 * size) if leaf.dim() and leaf.shape[0] == size else leaf
    )
    try:
        double = _trace_with(built, positional, named, request)
    except ModelError:
        return False
    (count, steps), (twice, same) = _measure(workload), _measure(double)
    least = 2.0 - ROUNDED if len(widened) == len(leaves) else 1.0
    is_proportional = least * count <= twice <= (2.0 + ROUNDED) * count
    return is_proportional and steps == same and not _mixes(workload, double)


def _mixes(workload: Workload, double: Workload) -> bool:
    """Return whether twice the samples give results of the same size, as points of a cloud do, or an operator gathers
    as many rows of them, as edges of a graph do.
    """
    if len(workload.tensors) != len(double.tensors) or len(workload.operators) != len(double.operators):
        return False
    grows = [one.shape != other.shape for one, other in zip(workload.tensors, double.tensors, strict=True)]
    grown = [(one.operator_index, one.role == "output") for one in workload.accesses if grows[one.tensor_index]]
    reading = {operator for operator, is_output in grown if not is_output} - {
        one for one, is_output in grown if is_output
    }
    is_lost = not any(grow for grow, one in zip(grows, workload.tensors, strict=True) if one.is_output)
    return is_lost or any(workload.operators[index].operation in GATHERING for index in reading)


def _measure(workload: Workload) -> tuple[int, int]:
    """Return (operations, sequential steps) of the operators that inputs affect: MACs, or without any, other counts."""
    operators = [one for one in workload.operators if not one.is_foldable]
    macs = sum(one.mac_count for one in operators)
    simple = sum(one.elementwise_count + one.special_count + one.output_element_count for one in operators)
    return macs or simple, max((one.step_count for one in operators), default=1)


def _describe_unbatched(built: BuiltModel) -> str:
    sizes = dict.fromkeys(_shape(leaf) for leaf in tensors_in((tuple(built.positional), dict(built.named))))
    return f"no size of its inputs of {' and '.join(sizes)} is a batch"


def _trace_built(built: BuiltModel, request: ModelRequest) -> Workload:
    try:
        workload = _trace_with(built, built.positional, built.named, request)
    except ModelError as error:
        if built.own:
            raise ModelError(f"{error}; its default inputs are {built.own}") from error
        if built.describe is None:
            raise
        found = _trace_with_others(built, request, error)
        if found is None:
            raise ModelError(f"{error}; {built.describe(built.named)}") from error
        workload = found
    _check_storable(workload)
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
    candidates = read_candidates(request)
    workload = trace_module(
        built.module,
        positional,
        named,
        key=request.key,
        model=request.model,
        batch=built.batch,
        may_change=request.kind not in KEPT and built.way == "meta",
        keeps_values=keeps_values,
        candidates=candidates or CANDIDATES,
    )
    if candidates and all(one.operation != SUPPRESSION for one in workload.operators):
        raise UsageError(f"{request.model} has no non-maximum suppression: leave out {BOXES}")
    return _mark_frozen(workload, frozen) if frozen else workload


def _mark_frozen(workload: Workload, names: Collection[str]) -> Workload:
    """Return a workload with these weights marked as frozen, so that training does not update them."""
    tensors = tuple(
        attrs.evolve(one, name=f"{one.name}{FROZEN}") if one.role == "parameter" and one.name in names else one
        for one in workload.tensors
    )
    return attrs.evolve(workload, tensors=tensors)


def _trace_with_others(built: BuiltModel, request: ModelRequest, error: ModelError) -> Workload | None:
    """Return the workload with the first guess of further inputs that the model accepts; None if it accepts none."""
    while built.others is not None:
        try:
            named, notes = built.others.send(error)
        except (StopIteration, ModelError):
            break
        try:
            workload = _trace_with(built, (), named, request, keeps_values=True)
        except ModelError as failed:
            error = failed
        else:
            return attrs.evolve(workload, notes=(*notes, *workload.notes))
    return None


def _check_storable(workload: Workload) -> None:
    """Raise ModelError if the database cannot store a workload: its counts overflow when summed, or a name is not valid
    text.
    """
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


def _given(request: ModelRequest) -> Inputs:
    if request.layout == "images":
        batch, *image = request.inputs[0].shape
        return ([_empty(attrs.evolve(request.inputs[0], shape=tuple(image)))] * batch,), {}
    names = [spec.name for spec in request.inputs if spec.name]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--input {name} is given twice")
    positional = tuple(_empty(spec) for spec in request.inputs if not spec.name)
    return positional, {spec.name: _empty(spec) for spec in request.inputs if spec.name}


def _empty(spec: InputSpec) -> torch.Tensor:
    return torch.empty(spec.shape, dtype=DTYPES[spec.dtype], device="meta")


def _merge(module: torch.nn.Module, own: Any, request: ModelRequest) -> Inputs | None:
    """Return a model's own inputs, with each given input in place of the own input of the same name; None if a name is
    unknown.

    A name is an argument of `forward` or a key inside an argument. If all own inputs have the same leading size, those
    not replaced get the requested batch size.
    """
    if request.kind == "exported":
        positional, named = own
    else:
        positional, named = _own(own, attrs.evolve(request, batch=None))
    try:
        arguments = dict(inspect.signature(module.forward).bind_partial(*positional, **named).arguments)
    except (TypeError, ValueError):
        return None
    places = {f"['{name}']": value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    leaves = named_tensors((positional, named))
    for place, leaf in leaves:
        places.setdefault(place[place.rfind("[") :], leaf)
    asked = {f"['{spec.name}']": spec for spec in request.inputs}
    if len(asked) < len(request.inputs) or not places.keys() >= asked.keys():
        return None
    given = {id(places[name]): _empty(spec) for name, spec in asked.items()}
    sizes = [spec.shape for spec in request.inputs]
    has_common = len({leaf.shape[0] for _, leaf in leaves if leaf.dim()}) == 1 and find_uncommon(sizes) is None
    batch = sizes[0][0] if has_common else None

    def put(leaf: torch.Tensor) -> torch.Tensor:
        if id(leaf) in given:
            return given[id(leaf)]
        return leaf if batch is None or not leaf.dim() or leaf.shape[0] == batch else _resize(leaf, batch)

    positional, named = replace_tensors((tuple(positional), dict(named)), put)
    return positional, named


def _check_exported(
    request: ModelRequest, sizes: Mapping[str, tuple[int | None, ...]], positional: Sequence[Any], named: Any
) -> None:
    """Raise UsageError if an input's sizes contradict those with which a program was exported."""
    given = {**dict(zip(sizes, positional, strict=False)), **named}
    for name, exported in sizes.items():
        value = given.get(name)
        if not isinstance(value, torch.Tensor):
            continue
        has_them = len(exported) == value.dim() and all(
            a in (None, b) for a, b in zip(exported, value.shape, strict=True)
        )
        if not has_them:
            shown = "x".join("?" if one is None else str(one) for one in exported) or "a number"
            raise UsageError(f"{request.model}: input {name} was exported as {shown}, not {_shape(value)}")


def _own(own: Any, request: ModelRequest, is_sized: bool = False, is_open: bool = False) -> Inputs:
    """Return a model's own inputs, unchanged if `is_sized` and otherwise at the requested batch size.

    Raises ModelError if an exported program needs another batch size, unless `is_open`.
    """
    if own is None:
        raise ModelError(
            f"{request.model} has no example inputs: give --input 1,3,224,224, return (module, inputs), "
            "or set module.example_inputs"
        )
    for leaf in tensors_in(own):
        if leaf.dim() and leaf.shape[0] == 0:
            raise ModelError(f"{request.model} has an input of {_shape(leaf)}: its leading size is 0, expected a batch")
    sized = own
    if not is_sized and request.batch is not None:
        sized = _with_batch(own, request.batch, request, can_resize=is_open or request.kind != "exported")
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


def _with_batch(own: Any, batch: int, request: ModelRequest, *, can_resize: bool = True) -> Any:
    """Return inputs with another leading size of every tensor, also inside caches and other objects. Numbers stay
    unchanged.

    Values that a trace needs are repeated. Raises ModelError if tensors have different leading sizes or the batch is
    fixed.
    """
    found = [(place, leaf) for place, leaf in named_tensors(own) if leaf.dim() or not has_values(leaf)]
    sizes = {leaf.shape[0] if leaf.dim() else None for _, leaf in found}
    if batch == _batch_of(attrs.evolve(request, batch=None), own)[0]:
        return own
    if len(sizes) != 1 or None in sizes or not can_resize:
        way_out = "give --input" if can_resize else "export it with a dynamic first size"
        raise UnbatchedError(
            f"{request.model} has inputs of {_list_shapes(found)}: the batch cannot be set to {batch}; leave "
            f"--batch out to take them as they are, or {way_out}"
        )
    return replace_tensors(own, lambda leaf: _resize(leaf, batch) if leaf.dim() else leaf)


def _resize(value: torch.Tensor, batch: int) -> torch.Tensor:
    """Return an input with another leading size; its values are repeated if a trace needs them."""
    if has_values(value) and batch * value[0].numel() <= MOST_VALUES:
        return value.detach()[torch.arange(batch) % value.shape[0]]
    return torch.empty((batch, *value.shape[1:]), dtype=value.dtype, device="meta")


def _list_shapes(found: Sequence[tuple[str, torch.Tensor]]) -> str:
    shapes = ", ".join(f"{place.lstrip('.')} {_shape(leaf)}".strip() for place, leaf in found[:MOST_LISTED])
    return f"{shapes} and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else shapes


def _shape(tensor: torch.Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def _batch_of(request: ModelRequest, arguments: Any) -> tuple[int, tuple[str, ...]]:
    """Return (batch size, notes): the requested batch, else the common leading size of the input tensors.

    If leading sizes differ, as those of nodes and edges of a graph, one forward pass counts as one inference.
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
