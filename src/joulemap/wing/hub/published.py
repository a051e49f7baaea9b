"""Published models by name: classes of transformers, diffusers and timm that a data file lists, built without weights.

bert-base-uncased       transformers.BertModel, with the settings and the default input of the data file
bert-base-uncased-384   the same model with another number of tokens
sd-1.5-vae-decoder      method `decode` of diffusers.AutoencoderKL, without the parts that only encode
sdxl-unet-guided        two samples in each input of one inference
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import torch
from torch import nn

from joulemap.construct import Guesses, InputSpec, ModelRequest, parse_input, read_setting
from joulemap.domain import ModelEntry
from joulemap.system import ModelError, UnknownNameError, UsageError, frozen
from joulemap.trace.module import build_on_meta
from joulemap.trace.tensor import DTYPES
from joulemap.wing.hub import transformers
from joulemap.wing.hub.name import hub_version
from joulemap.wing.hub.offline import describe_error
from joulemap.wing.hub.timm import build_timm

TABLE: Final = Path(__file__).with_name("published.toml")
"""Data file that lists the models."""


@frozen(kw_only=True)
class Published:
    """Entry of a published model: its class, the settings that differ from the class's defaults, and its default
    inputs.
    """

    name: str
    library: str
    """Name of the Python package with the class."""
    kind: str
    """Name of the class in the package."""
    family: str
    """Model family under which its errors are reported."""
    task: str
    aliases: tuple[str, ...]
    """Alternative names, and names of models with equal sizes."""
    inputs: tuple[InputSpec, ...]
    """Default inputs of one inference."""
    basis: str
    source: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    """Settings that differ from the defaults of the class."""
    shared: tuple[InputSpec, ...] = ()
    """Inputs that have no batch dimension and are shared by all samples."""
    calls: Mapping[str, str] = attrs.field(factory=dict)
    """Method that one inference runs -> name of its input; empty to run the forward pass."""
    untied: tuple[str, ...] = ()
    """Paths of modules with a weight of their own in the checkpoint, although the library ties it to the embedding."""
    lacks: tuple[str, ...] = ()
    """Parts of the model that the methods in `calls` do not use."""
    note: str = ""
    """Note on what one inference computes; empty if the model's name is clear."""


@cache
def load_published() -> Mapping[str, Published]:
    """Return name -> published model; each further number of tokens is a model of its own."""
    found = {}
    for name, entry in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        library, kind = entry.pop("class").split(".")
        lengths = entry.pop("lengths", ())
        for field in ("inputs", "shared"):
            entry[field] = tuple(map(_parse, entry.get(field, ())))
        for field in ("aliases", "lacks", "untied"):
            entry[field] = tuple(entry.get(field, ()))
        made = Published(name=name, library=library, kind=kind, **entry)
        found[name] = made
        for tokens in lengths:
            longer = attrs.evolve(
                made,
                name=f"{name}-{tokens}",
                aliases=tuple(f"{alias}-{tokens}" for alias in made.aliases),
                inputs=tuple(attrs.evolve(spec, shape=(1, tokens)) for spec in made.inputs),
                shared=tuple(attrs.evolve(spec, shape=(1, tokens)) for spec in made.shared),
            )
            found[longer.name] = longer
    return found


def list_published() -> Iterator[ModelEntry]:
    """Yield the row of each published model; its parameters are counted when its workload is traced."""
    for model in load_published().values():
        yield ModelEntry(
            name=model.name, family=model.family, task=model.task, package=model.library, aliases=model.aliases
        )


def _parse(text: str) -> InputSpec:
    """Return the input written as `NAME=sizes`; dots in the name stand for nested dictionaries."""
    name, _, sizes = text.partition("=")
    return attrs.evolve(parse_input(f"{name.rpartition('.')[2]}={sizes}"), name=name)


def build_published(request: ModelRequest) -> tuple[nn.Module, Guesses, tuple[str, ...]]:
    """Return (module, its inputs, notes) of a published model. The request's inputs and arguments override listed ones.

    Raises ModelError if the package is missing or the model cannot be built, UnknownNameError for an unknown setting,
    UsageError for an unknown input.
    """
    model = load_published()[request.model]
    batch = request.batch or 1
    listed = {spec.name: attrs.evolve(spec, shape=(batch * spec.shape[0], *spec.shape[1:])) for spec in model.inputs}
    given = {spec.name: spec for spec in request.inputs}
    if "" in given and len(given) == len(listed) == 1:
        (own,) = listed.values()
        given = {own.name: attrs.evolve(own, shape=given[""].shape)}
    unknown = next((name for name in given if name not in listed), None)
    if unknown is not None:
        raise UsageError(
            f"{model.name} takes --input {' or '.join(listed)}, as in --input {next(iter(listed.values()))}"
        )
    inputs = tuple(given.get(name, spec) for name, spec in listed.items())
    sizes = ", ".join(f"{spec.name} {'x'.join(map(str, spec.shape[1:]))}" for spec in inputs if len(spec.shape) > 1)
    notes = (f"inputs of one sample: {sizes}", *filter(None, (model.note,)))
    if model.library == "transformers":
        shared = tuple(spec for spec in model.shared if not given)
        settings = (*_flatten(model.settings), *request.arguments)
        asked = attrs.evolve(
            request,
            kind="hf",
            builder=hub_version(),
            factory=model.kind,
            arguments=settings,
            inputs=(*inputs, *shared),
            batch=batch,
        )
        module, guesses, differences = transformers.build_transformers(asked)
        if guesses is not None and not model.calls and not model.untied:
            return module, guesses, (*notes, *differences)
    elif model.library == "timm":
        given_settings = {name: read_setting(text) for name, text in request.arguments}
        module, _ = build_timm(attrs.evolve(request, factory=model.kind), given_settings)
    else:
        module = _build_diffusers(model, request)
    for name in model.untied:
        part = module.get_submodule(name)
        assert isinstance(part.weight, torch.Tensor)
        part.weight = nn.Parameter(torch.empty_like(part.weight))
    whole = Part(module, model.calls, model.lacks) if model.calls else module
    return whole, _make_inputs(inputs, model.shared), notes


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Return nested settings as (dotted name, literal) pairs."""
    found: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and "model_type" not in value:
            found += _flatten(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", repr(value)))
    return tuple(found)


class Part(nn.Module):
    """Module that runs some methods of a model, and drops the parts that they do not use."""

    def __init__(self, whole: nn.Module, calls: Mapping[str, str], lacks: Sequence[str]) -> None:
        super().__init__()
        for name in lacks:
            setattr(whole, name, None)
        self.whole = whole
        self.calls = calls

    def forward(self, **inputs: torch.Tensor) -> list[Any]:
        """Return the results of the methods, in order."""
        return [getattr(self.whole, method)(inputs[name]) for method, name in self.calls.items()]


def _build_diffusers(model: Published, request: ModelRequest) -> nn.Module:
    """Return a diffusers module. Raise ModelError if it cannot be built, UnknownNameError for an unknown setting."""
    import diffusers

    kind = getattr(diffusers, model.kind)
    known = [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")]
    settings = dict(model.settings)
    for name, text in request.arguments:
        if name not in known:
            raise UnknownNameError(f"setting of {model.name}", name, known)
        settings[name] = read_setting(text)
    try:
        with build_on_meta():
            module: nn.Module = kind(**settings)
    except Exception as error:
        raise ModelError(f"{model.name} could not be built: {describe_error(transformers.deepest(error))}") from error
    return module


def _make_inputs(inputs: Sequence[InputSpec], shared: Sequence[InputSpec]) -> Guesses:
    """Yield the inputs of a model once, as keyword arguments; dots in a name make nested dictionaries."""
    made: dict[str, Any] = {}
    for spec in (*inputs, *shared):
        *parts, last = spec.name.split(".")
        place = made
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = torch.empty(spec.shape, dtype=DTYPES[spec.dtype], device="meta")
    yield made, ()
