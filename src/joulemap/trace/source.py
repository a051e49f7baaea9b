"""What a person means by MODEL, and the key that its trace is stored under. Imports no torch."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from joulemap.domain.catalogue import ModelEntry
from joulemap.domain.workload import WorkloadKey
from joulemap.errors import ModelError, UnknownNameError, UsageError
from joulemap.trace import TRACER_VERSION

MAX_BATCH: Final = 1_000_000


@attrs.frozen(kw_only=True)
class ModelRequest:
    """A model and an input, resolved far enough to know the key of its workload."""

    model: str
    """As asked for."""
    kind: str = attrs.field(validator=attrs.validators.in_(("torchvision", "file")))
    batch: int
    input_shape: tuple[int, ...] = ()
    """Of the whole input, batch first; empty where the file brings its own inputs."""
    path: Path | None = None
    factory: str = ""
    content_digest: str = ""

    @property
    def key(self) -> WorkloadKey:
        """The key of its workload."""
        if self.kind == "torchvision":
            source = f"torchvision:{self.model}"
        else:
            source = f"file:{self.content_digest}:{self.factory}"
        shape = "x".join(map(str, self.input_shape)) if self.input_shape else "example_inputs"
        return WorkloadKey(
            source=source,
            input_spec=f"{shape}:fp32:batch={self.batch}",
            torch_version=package_version("torch"),
            torchvision_version=package_version("torchvision"),
            tracer_version=TRACER_VERSION,
        )


@cache
def package_version(name: str) -> str:
    """Return the installed version of a package without importing it, or `absent`."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def parse_input(text: str) -> tuple[int, ...]:
    """Return the shape in `1,3,224,224` or `1x3x224x224`; UsageError for anything else."""
    parts = re.split(r"[,x]", text.strip().lower())
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f"cannot read the input shape {text!r}: write positive sizes, batch first, e.g. 1,3,224,224")
    return tuple(int(part) for part in parts)


def resolve_model(
    name: str, models: dict[str, ModelEntry], *, batch: int | None = None, input_shape: tuple[int, ...] | None = None
) -> ModelRequest:
    """Return the request for a zoo name or `path/to/file.py:factory`.

    Raises UnknownNameError for a name that is neither, ModelError for a zoo model that cannot be traced or a file that
    is not there, UsageError for a batch that contradicts the input shape.
    """
    if batch is not None and not 1 <= batch <= MAX_BATCH:
        raise UsageError(f"batch is {batch}, expected a whole number from 1 to {MAX_BATCH}")
    if batch is not None and input_shape and input_shape[0] != batch:
        raise UsageError(f"--batch {batch} contradicts the input shape, which starts with {input_shape[0]}")
    size = batch if batch is not None else input_shape[0] if input_shape else 1
    path_text, separator, factory = name.rpartition(":")
    if not separator:
        path_text, factory = name, ""
    if path_text.endswith(".py"):
        return _resolve_file(name, Path(path_text), factory, size, input_shape)
    entry = models.get(name)
    if entry is None:
        raise UnknownNameError("model", name, models, "see `joulemap model list`, or give path/to/file.py:factory")
    if not entry.is_traceable:
        raise ModelError(f"{name} cannot be traced: {entry.reason}")
    shape = input_shape or (size, *entry.input_shape)
    if len(shape) != len(entry.input_shape) + 1:
        raise UsageError(
            f"{name} takes an input of {len(entry.input_shape) + 1} dimensions (batch first), "
            f"e.g. {','.join(map(str, (1, *entry.input_shape)))}"
        )
    return ModelRequest(model=name, kind="torchvision", batch=size, input_shape=shape)


def _resolve_file(name: str, path: Path, factory: str, batch: int, input_shape: tuple[int, ...] | None) -> ModelRequest:
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    if not factory:
        raise UsageError(f"name the function, class or module in {path} that makes the model: {path}:factory")
    return ModelRequest(
        model=name,
        kind="file",
        batch=batch,
        input_shape=input_shape or (),
        path=path,
        factory=factory,
        content_digest=hashlib.sha256(path.read_bytes()).hexdigest()[:16],
    )
