"""Workload of a requested model: stored, shipped, or traced."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_models
from joulemap.construct.source import (
    OWN,
    InputSpec,
    ModelRequest,
    parse_input,
    resolve_model,
)
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.operator.name import find_operator
from joulemap.plan.catalogue import ensure_catalogue, writing
from joulemap.plan.model import Model
from joulemap.plan.model_name import find_batch, list_known, list_names, suggest
from joulemap.plan.reader import reading_if_there
from joulemap.store.connection import Connection, open_in_memory, transaction, using
from joulemap.store.workload import find_workloads, read_workload, write_workloads
from joulemap.system.errors import DatabaseError, ModelError, UnbatchedError, UntrustedError, UsageError
from joulemap.system.resource import need_torch, remember

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.physics.record.workload import Workload
    from joulemap.plan.source import Source, Talk


MOST_OPERATORS: Final = 10_000
"""Operators of gathered workloads above which they are stored; a larger number saves little time."""

PASS_SIZES: Final = ("tokens", "cached", "logits", "data_devices")
"""Arguments of a traced model's pass, which distinguish its name from a factory with arguments."""

_MEASURED: Final = re.compile(r"(?P<model>.+?)\((?P<rest>[^()]*)\)")

_INPUT: Final = re.compile(r"(?:[A-Za-z_]\w*=)?[0-9]+(?:x[0-9]+)*:\w+")


def find_model(name: str, settings: Settings, batch: int | None) -> Model:
    """Return a model at a batch; UnknownNameError, UsageError or ModelError if there is none."""
    if not isinstance(name, str):
        raise UsageError(f"the model is of type {type(name).__name__}, expected a name here")
    if (measured := split_measured(name)) is not None and not (settings.inputs or settings.arguments):
        before, arguments, inputs = measured
        is_stated = {parse_input(text).shape[:1] for text in inputs} == {(batch,)}  # as the question that was measured
        asked = attrs.evolve(settings, arguments=arguments, inputs=inputs)
        return find_model(before, asked, None if is_stated else batch)
    for names in list_names():
        if names.claims(name, settings):
            return names.find_claimed(name, settings, batch)
    module = settings.modules.get(name)
    if isinstance(module, Model):
        return _batch_module(module, settings, batch)
    written = replace_batch([parse_input(text) for text in settings.inputs], settings.batch, batch)
    named = [one.name for one in written if one.name]
    if len(set(named)) < len(named):
        raise UsageError(f"the input {max(named, key=named.count)} is given twice")
    models = load_models()
    for names in list_names():
        if (model := names.find(name, settings, batch)) is not None:
            return model
    if settings.config:
        raise UsageError(f"{name} takes no --config")
    request = resolve_model(
        find_model_name(name, models),
        models,
        batch=batch,
        inputs=written,
        arguments=[(name, str(value)) for name, value in settings.arguments.items()],
        is_trusted=settings.trust,
        others=list_known,
        suggest=suggest,
    )
    request = attrs.evolve(request, build_memory_bytes=settings.build_memory_bytes)
    if request.kind == "file" and request.path is not None:
        from joulemap.construct.package import digest_package

        own = digest_package(request.path)  # a file in a package may import any other file of it
        request = attrs.evolve(request, content_digest=own or request.content_digest)
    return Model(request=request, retrace=settings.retrace, may_run=settings.is_named or settings.trust)


def choose_batches(models: Sequence[str], settings: Settings, usual: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch sizes of settings; without any, the only sizes that the models take, or else `usual`."""
    if settings.batch:
        return settings.batch
    fixed = {find_batch(model) or _find_own_batch(model, settings) for model in models}
    return tuple(sorted(filter(None, fixed))) or usual


def _find_own_batch(name: str, settings: Settings) -> int | None:
    """Return the only batch size of a user's model, found by a trace at batch 2; None if it takes any."""
    model = find_model(name, settings, None)
    if model.request.kind not in OWN or model.request.sizes is not None or not model.may_run:
        return None

    def try_other() -> str:
        try:
            trace(find_model(name, settings, 2), _ignore_message)
        except UnbatchedError:
            return str(trace(model, _ignore_message).batch)
        except ModelError:
            pass  # the question meets this error again, and reports it
        return ""

    only = remember(f"only batch of {model.request.key.digest}", try_other)
    return int(only) if only else None


def replace_batch(inputs: Sequence[InputSpec], batches: Sequence[int], batch: int | None) -> list[InputSpec]:
    """Return inputs with the given batch size, if several batches are requested or the inputs have batch size 1.

    Other inputs stay unchanged.
    """
    sizes = {spec.shape[0] for spec in inputs[:1] if spec.shape}
    if batch is None or not sizes or (len(batches) == 1 and sizes != {1}):
        return list(inputs)
    return [
        attrs.evolve(spec, shape=(batch, *spec.shape[1:])) if set(spec.shape[:1]) == sizes else spec for spec in inputs
    ]


def trace_user_module(module: object, example_inputs: object) -> Model:
    """Trace a PyTorch module of this program and return its model; raises UsageError or ModelError."""
    need_torch("tracing a module")
    from joulemap.construct.held import request_module
    from joulemap.physics.fuse import fuse

    request, workload = request_module(module, example_inputs)
    return Model(request=request, retrace=False, traced=fuse(workload))


def _batch_module(model: Model, settings: Settings, batch: int | None) -> Model:
    """Return the model of a PyTorch module at another batch size; None keeps its batch size."""
    from joulemap.construct.held import request_batch
    from joulemap.physics.fuse import fuse

    for values, what in ((settings.inputs, "inputs"), (settings.arguments, "arguments"), (settings.config, "config")):
        if values:
            raise UsageError(f"{model.request.model} is built and has example inputs: leave out {what}")
    if batch is None or (model.traced is not None and model.traced.batch == batch):
        return model
    request, workload = request_batch(model.request, batch)
    return Model(request=request, retrace=False, traced=fuse(workload))


def name_model(request: ModelRequest) -> str:
    """Return a model's name, with arguments and inputs that distinguish its workload."""
    own = [*filter(None, [request.configuration])]
    own += [f"{name}={value}" for name, value in request.arguments]
    own += [str(spec) for spec in request.inputs]
    return request.model if request.is_default or not own else f"{request.model}({', '.join(own)})"


def split_measured(name: str) -> tuple[str, dict[str, str], tuple[str, ...]] | None:
    """Return (model, arguments, inputs) of a name that `name_model` extended; None for any other name.

    The name of a model's pass is not split: its brackets contain sizes and no inputs.
    """
    match = _MEASURED.fullmatch(name)
    if match is None:
        return None
    parts = match["rest"].split(", ")
    inputs = tuple(one for one in parts if _INPUT.fullmatch(one))
    pairs = [one.partition("=") for one in parts if one not in inputs]
    if not all(key and equals for key, equals, _ in pairs):
        return None
    arguments = {key: value for key, _, value in pairs}
    if not inputs and (not _is_file(match["model"]) or not arguments.keys().isdisjoint(PASS_SIZES)):
        return None
    return match["model"], arguments, inputs


def _is_file(name: str) -> bool:
    """Return True for the name of a factory in a Python file."""
    return ".py:" in name


def stored_key(connection: Connection, model: Model) -> str | None:
    """Return the key of a model's stored workload; None if it is not stored."""
    stored = find_stored(connection, [model])
    return next(iter(stored.values()))[0] if stored else None


def find_stored(connection: Connection, models: Sequence[Model]) -> dict[int, tuple[str, int]]:
    """Return index in `models` -> (key, id) of the stored workload, for models that have one."""
    ids = find_workloads(connection, [key for model in models for key in model.workload_keys])
    firsts = (next((key for key in model.workload_keys if key in ids), None) for model in models)
    return {index: (key, ids[key]) for index, key in enumerate(firsts) if key is not None}


def find_workload_id(connection: Connection, workload_key: str) -> int:
    """Return the id of a workload, which must be stored."""
    return find_workloads(connection, [workload_key])[workload_key]


def trace(model: Model, talk: Talk) -> Workload:
    """Return the fused workload of a model; ModelError if it cannot be built or traced, UsageError if too large.

    Raises UntrustedError for code that may not run.
    """
    if model.traced is not None:
        return model.traced
    if model.request.is_closed:
        return describe_closed(model, talk)
    request = model.request
    need_torch(f"tracing {name_model(request)}", request.package)
    from joulemap.construct.model import trace_request
    from joulemap.physics.fuse import fuse

    if request.kind == "file" and not model.may_run:
        raise UntrustedError("a row of a file names this code; JOULEMAP_TRUST=1 (in Python trust=True) runs it")
    talk(f"tracing {request.model} …")
    return fuse(trace_request(request))


def find_workload_of(model: Model, talk: Talk) -> Workload:
    """Return the workload of a model without storing it: shipped, or traced."""
    if model.shipped is None:
        return trace(model, talk)
    with using(open_in_memory(has_surface=False), "the shipped workloads") as scratch:
        ensure_known(scratch, (model,))
        return read_workload(scratch, find_workload_id(scratch, model.workload_keys[-1]))


def describe_closed(model: Model, talk: Talk) -> Workload:
    """Return the workload that a model's name defines; UsageError for a workload that is too large."""
    request = model.request
    if model.names is not None:
        return model.names.describe(model, talk)
    from joulemap.trace.single import describe

    operator = find_operator(request.model)
    assert operator is not None
    return describe(operator, request.batch or 1, request.key)


def _ignore_message(_text: str) -> None:
    """Discard a message: shipped and closed workloads take no noticeable time."""


def ensure_workload(connection: Connection, model: Model, workload: Workload | None) -> str:
    """Store a model's workload if it is missing, and return its key.

    `workload` is the traced workload; None if the workload is shipped or follows from the model's name.
    """
    key = stored_key(connection, model)
    if key is not None:
        return key
    if workload is not None:
        write_workloads(connection, [(workload, model.dimensions)])
        return model.request.key.digest
    ensure_known(connection, (model,))
    key = stored_key(connection, model)
    if key is None:
        raise DatabaseError(f"the workload of {model.request.model} was deleted meanwhile; run again")
    return key


def ensure_known(connection: Connection, models: Sequence[Model]) -> None:
    """Store the missing workloads of models that are shipped or follow from a name, together, which is faster."""
    known = [model for model in models if model.traced is None and not model.is_traced]
    stored = find_workloads(connection, [key for model in known for key in model.workload_keys])
    missing = {model.workload_keys[-1]: model for model in known if stored.keys().isdisjoint(model.workload_keys)}
    wanted = {key: model for key, model in missing.items() if model.shipped is not None}
    if wanted:
        from joulemap.store.zoo import Shipped, read_shipped

        shipped = [
            Shipped(
                model.request.model,
                batch=model.request.batch or 1,
                workload_key=key,
                input_spec=model.request.key.input_spec,
            )
            for key, model in wanted.items()
        ]
        read_shipped(connection, ZOO, shipped)
    named: list[tuple[Workload, Mapping[str, str]]] = []
    for model in (model for key, model in missing.items() if key not in wanted):
        named.append((describe_closed(model, _ignore_message), model.dimensions))
        if sum(len(workload.operators) for workload, _ in named) > MOST_OPERATORS:
            write_workloads(connection, named)
            named.clear()
    if named:
        write_workloads(connection, named)


@contextlib.contextmanager
def opening_workload(source: Source, model: Model) -> Iterator[tuple[int, Connection]]:
    """Yield the id of a model's workload and an open connection to it; store the workload if it is missing."""
    with reading_if_there(source) as connection:
        key = stored_key(connection, model) if connection is not None else None
        if connection is not None and key is not None:
            yield find_workload_id(connection, key), connection
            return
    workload = None
    if not model.shipped:
        source = source.anchor()
        workload = trace(model, source.talk)
    with writing(source) as connection:
        with transaction(connection):
            ensure_catalogue(connection)
            key = ensure_workload(connection, model, workload)
        yield find_workload_id(connection, key), connection


def list_operations() -> frozenset[str]:
    """Return the names of PyTorch operators that a trace counts; an operation has one of them or a common name."""
    from joulemap.trace.formula import FORMULAS

    return frozenset(FORMULAS)
