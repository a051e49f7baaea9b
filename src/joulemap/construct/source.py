"""Request for a model by its name, and the key of its workload. Imports no torch."""

from __future__ import annotations

import ast
import hashlib
import math
import os
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from joulemap.domain.catalogue import ModelEntry
from joulemap.domain.operator.name import find_operator
from joulemap.physics.record.configuration import MAX_BATCH
from joulemap.physics.record.workload import WorkloadKey
from joulemap.system.errors import ModelError, UnknownNameError, UsageError
from joulemap.system.name import find_meant, is_module_name
from joulemap.system.resource import package_version
from joulemap.system.wing import MODEL_PREFIXES
from joulemap.trace.version import builder_version, operator_version, tracer_version

if TYPE_CHECKING:
    import torch

MOST_BYTES: Final = 10_000_000
"""Maximum bytes of a code file."""

PART_BYTES: Final = 2**20
"""Bytes read from a file at a time."""

MAX_DIMENSIONS: Final = 64
"""Maximum dimensions of a tensor in torch's kernels."""
MAX_ELEMENTS: Final = 2**48
"""Maximum elements of one input: a petabyte of fp32."""

BOXES: Final = "nms_candidates"
"""Argument of a model that states how many boxes, selected by data, are assumed to reach a non-maximum suppression."""

MODEL_HINT: Final = "see `joulemap model list`, or give path/to/file.py:factory"

FILE_FORMATS: Final = "known are .gguf, .safetensors beside a config.json, .onnx, .tflite, .pt2 and file.py:factory"

DTYPES: Final = ("fp64", "fp32", "fp16", "bf16", "int64", "int32", "int8", "bool")
"""Dtypes that an input can have."""

SHIPPING: Final = ("zoo", "block")
"""Kinds of models whose workloads ship with joulemap."""

KINDS: Final = ("zoo", "block", "operator", "file", "exported", "module")
"""Kinds of models of the core; wings add others."""

FILES: Final = ("file", "exported")
"""Kinds of models that are a file. A copy of it is a model of its own."""

OWN: Final = (*FILES, "module")
"""Kinds of models whose inputs are the user's own, so that only a trace shows which of their sizes is a batch."""

_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = 60
quote: Final = _SHORT.repr
"""Function that quotes a text for an error message; the middle of a long text is omitted."""

_INPUT: Final = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>[0-9]+(?:[,x][0-9]+)*)(?::(?P<dtype>\w+))?")

_LENGTH: Final = re.compile(r"-\d+$")
"""Number of tokens at the end of a name, as in `bert-base-uncased-384`."""

_WORDS: Final = {"true": True, "false": False, "null": None}

_OF_WHOLE_NUMBERS: Final = re.compile(r"(?:\w+_)?(?:ids|mask|lengths|grid_thw)")
"""Pattern of input names that default to integers, such as `input_ids` and `attention_mask`."""


def _digest_own_formulas() -> str:
    """Return the digest of user-defined formulas; empty without any. Imports no module."""
    own = sys.modules.get("joulemap.trace.formula.own")
    return "" if own is None else str(own.digest_own())


@attrs.frozen
class InputSpec:
    """One input of a model."""

    shape: tuple[int, ...]
    """Shape of the tensor, batch first."""
    dtype: str = "fp32"
    name: str = ""
    """Name of a keyword argument; empty for a positional one."""

    def __str__(self) -> str:
        prefix = f"{self.name}=" if self.name else ""
        return f"{prefix}{'x'.join(map(str, self.shape))}:{self.dtype}"


Inputs = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and keyword arguments of a forward pass."""

Run = Callable[[Sequence[Any], Mapping[str, Any]], Any]
"""Function (positional, keyword arguments) -> result that runs a module as in a trace."""


class Sizes(Protocol):
    """Sizes of a forward pass that a wing sets; their text is part of the workload's key."""

    def choose_arguments(self, taken: Collection[str], batch: int) -> Mapping[str, int]:
        """Return argument name -> size for a factory that takes these arguments; empty unless it takes all it needs.

        The inputs that a factory makes with them have these sizes.
        """
        ...

    def build_inputs(
        self, module: torch.nn.Module, own: Any, request: ModelRequest, run: Run, *, is_sized: bool
    ) -> tuple[Inputs, tuple[str, ...]]:
        """Return (inputs of these sizes, notes); ModelError if the module takes none.

        `own` are the module's own inputs, which already have these sizes if `is_sized`.
        """
        ...


@attrs.frozen(kw_only=True)
class ModelRequest:
    """Model and its inputs as requested by the user, resolved far enough to compute the workload's key."""

    model: str
    """Name of the model as requested."""
    kind: str
    """One of `KINDS`, or a wing's kind with a `version` or a `builder`."""
    batch: int | None
    """Batch size; None to use the model's own inputs unchanged."""
    inputs: tuple[InputSpec, ...] = ()
    """Inputs given by the user; empty to use the model's own."""
    layout: str = "tensors"
    """Form of the inputs: `tensors`, or `images`, a list with one image per sample."""
    arguments: tuple[tuple[str, str], ...] = ()
    """(name, value) of a factory's arguments, as written by the user."""
    is_default: bool = False
    """True if at most the batch size differs from the shipped workload."""
    is_trusted: bool = False
    """True to let a saved program run code when it is loaded."""
    build_memory_bytes: float | None = attrs.field(default=None, eq=False)
    """Maximum memory for building the model; None for half of the free memory."""
    path: Path | None = None
    """File of the model, or of its configuration."""
    factory: str = ""
    content_digest: str = ""
    held: object = attrs.field(default=None, eq=False, repr=False)
    """In-memory module with its example inputs; None for other kinds."""
    sizes: Sizes | None = None
    """Sizes of the forward pass; None if the inputs determine them."""
    package: str = ""
    """Package that provides the model's classes besides torch; empty if none is needed."""

    version: str = ""
    """Version of the wing's code that builds the workload from the name; empty for a model that is traced."""
    builder: str = ""
    """Version of the wing's code that builds the module or its inputs; empty if the core builds both."""

    def __attrs_post_init__(self) -> None:
        if not (self.version or self.builder) and self.kind not in KINDS:
            raise ValueError(f"a model is of the kind {self.kind!r}, expected one of {', '.join(KINDS)}")

    @property
    def is_closed(self) -> bool:
        """True if the workload can be built from the name alone, without torch."""
        return self.kind == "operator" or bool(self.version)

    @property
    def configuration(self) -> str:
        """Name and digest of the configuration file, as an argument; empty without one."""
        is_given = self.path is not None and self.kind not in FILES
        return f"config={self.path.name}:{self.content_digest}" if is_given and self.path else ""

    @property
    def key(self) -> WorkloadKey:
        """Key of the workload."""
        return self.make_key(_digest_own_formulas())

    def make_key(self, formulas: str) -> WorkloadKey:
        """Return the key of the workload as traced with the user's own formulas of this digest, or with none."""
        if self.is_closed:
            sizes = self.model.replace("(", " ").replace(",", " ").removesuffix(")")
            return WorkloadKey(
                source=":".join(filter(None, (self.kind, self.content_digest, sizes))),
                input_spec=f"batch={self.batch}",
                torch_version="",
                torchvision_version="",
                tracer_version=self.version or operator_version(),
            )
        if self.kind == "zoo":
            source = f"torchvision:{self.model}"
        elif self.kind == "module":
            source = f"module:{self.content_digest}:"
        elif self.kind in FILES:
            source = f"{self.kind}:{self.content_digest}:{os.path.normpath(self.model)}"
        else:
            source = self.model if ":" in self.model else f"{self.kind}:{self.model}"
            if self.package and not self.is_default:  # shipped workloads are the same under every version
                source += f"@{package_version(self.package)}"
        own = [*filter(None, [self.configuration]), *(f"{name}={value}" for name, value in self.arguments)]
        if own:
            source += f"({', '.join(own)})"
        if formulas:
            source += f" formulas={formulas}"
        inputs = " ".join(map(str, self.inputs)) or str(self.sizes or "example_inputs")
        return WorkloadKey(
            source=source,
            input_spec=inputs if self.batch is None else f"{inputs} batch={self.batch}",
            torch_version=package_version("torch"),
            torchvision_version=package_version("torchvision"),
            tracer_version=tracer_version() if self.kind in SHIPPING else f"{builder_version()}{self.builder}",
        )


def parse_input(text: str) -> InputSpec:
    """Return the input written as `1,3,224,224`, `1x128:int64` or `mask=1,128:bool`; UsageError for anything else."""
    found = _INPUT.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"cannot read the input {quote(text)}: write sizes, batch first, e.g. 1,3,224,224 or ids=1,128:int64"
        )
    sizes = re.split("[,x]", found["shape"])
    if len(sizes) > MAX_DIMENSIONS:
        raise UsageError(f"the input {quote(text)} has {len(sizes)} dimensions, expected at most {MAX_DIMENSIONS}")
    shape = tuple(int(size) if len(size) < 20 else MAX_ELEMENTS + 1 for size in sizes)
    if not all(shape):
        raise UsageError(f"the input {quote(text)} has a size of 0, expected positive sizes")
    if math.prod(shape) > MAX_ELEMENTS:
        raise UsageError(f"the input {quote(text)} is too large, expected at most {MAX_ELEMENTS:,} elements")
    dtype = found["dtype"] or ("int64" if _OF_WHOLE_NUMBERS.fullmatch(found["name"] or "") else "fp32")
    if dtype not in DTYPES:
        raise UsageError(f"the input {quote(text)} has the dtype {quote(dtype)}; known: {', '.join(DTYPES)}")
    return InputSpec(shape, dtype, found["name"] or "")


def check_text(name: str) -> None:
    """Raise UsageError for the name of a model that cannot be stored."""
    if not is_text(name):
        raise UsageError(f"the model {quote(name)} is not text: it cannot be stored as UTF-8")


def is_text(value: str) -> bool:
    """Return whether a name can be stored: it has no null character and no lone surrogate, which undecodable bytes
    leave.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def parse_argument(text: str) -> tuple[str, str]:
    """Return (name, value) of a model's argument written as `name=value`; UsageError for anything else.

    Dots nest a name: `text_config.num_hidden_layers`.
    """
    name, separator, value = text.partition("=")
    if not separator or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"cannot read the model argument {quote(text)}: write name=value")
    if not is_text(value):
        raise UsageError(f"the model argument {quote(text)} is not text: it cannot be stored as UTF-8")
    return name, value


def read_setting(text: str) -> Any:
    """Return a value parsed as a Python or JSON literal, or the text itself if it is neither."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def read_arguments(request: ModelRequest) -> dict[str, Any]:
    """Return the arguments of a request's factory, parsed where possible."""
    return {name: read_setting(value) for name, value in request.arguments if name != BOXES}


def read_candidates(request: ModelRequest) -> int | None:
    """Return the number of boxes that a request assumes to reach a suppression; None for the usual number.

    Raises UsageError for a value that is not a whole number above 0.
    """
    text = dict(request.arguments).get(BOXES)
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) <= MAX_ELEMENTS:
        raise UsageError(f"{BOXES} is {quote(text)}, expected a whole number from 1 to {MAX_ELEMENTS:,}")
    return int(text)


def check_batch(batch: int | None, inputs: Sequence[InputSpec] = ()) -> int | None:
    """Return a batch size, or that of the inputs if it is None. Raise UsageError if it is invalid or contradicts the
    inputs.
    """
    if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise UsageError(f"batch is {batch!r}, expected a whole number from 1 to {MAX_BATCH}")
    if batch is not None and not 1 <= batch <= MAX_BATCH:
        raise UsageError(f"batch is {batch}, expected a whole number from 1 to {MAX_BATCH}")
    if batch is not None and inputs and inputs[0].shape[0] != batch:
        raise UsageError(f"--batch {batch} contradicts the input shape, which starts with {inputs[0].shape[0]}")
    if inputs and inputs[0].shape[0] > MAX_BATCH:
        raise UsageError(f"batch is {inputs[0].shape[0]}, expected a whole number from 1 to {MAX_BATCH}")
    return batch if batch is not None or not inputs else inputs[0].shape[0]


def find_uncommon(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the first shape whose leading size differs from that of the first nonempty shape; None without one.

    Leading sizes of 1 and shapes with fewer dimensions, such as masks or numbers, are ignored.
    """
    first = next(filter(None, shapes), ())
    if not first or first[0] == 1:
        return None
    return next((one for one in shapes if len(one) >= len(first) and one[0] not in (first[0], 1)), None)


def resolve_model(
    name: str,
    models: Mapping[str, ModelEntry],
    *,
    batch: int | None = None,
    inputs: Sequence[InputSpec] = (),
    arguments: Iterable[tuple[str, str]] = (),
    is_trusted: bool = False,
    others: Callable[[], Sequence[str]] = tuple,
    suggest: Callable[[str], tuple[Sequence[str], str]] = lambda _: ((), ""),
) -> ModelRequest:
    """Return the request for a known model, an operator, `FILE.py:FACTORY` or `FILE.pt2`.

    `is_trusted` lets a saved program run code. `others` returns further names that an error may suggest, and `suggest`
    the names that are meant by an unknown one, with a hint. Raises UnknownNameError for a name that is none of these,
    ModelError for a missing file. Raises UsageError for a name that cannot be stored, a batch that contradicts the
    inputs, or inputs that the model does not take.
    """
    check_text(name)
    is_own = ".py:" in name or name.endswith(".pt2")  # then a trace shows whether the first size of inputs is a batch
    size = check_batch(batch, () if is_own and batch in (None, 1) else inputs)
    given = tuple(arguments)
    nested = next((entry for entry, _ in given if "." in entry), None)
    if nested is not None:
        raise UsageError(f"{name} takes no argument {nested}: its arguments are not nested by dots")
    if name not in models and (operator := find_operator(name, given)) is not None:
        if inputs:
            raise UsageError(f"{operator.kind} takes no --input: its sizes are its arguments")
        return ModelRequest(model=str(operator), kind="operator", batch=size or 1, is_default=True)
    path_text, separator, factory = name.rpartition(":")
    if not separator:
        path_text, factory = name, ""
    if path_text.endswith(".py"):
        if not factory:
            raise UsageError(f"name the function, class or module in {path_text} that makes it: {path_text}:factory")
        return _resolve_path(name, path_text, "file", batch, inputs, given, factory)
    if name.endswith(".pt2"):
        _refuse_arguments(name, given)
        request = _resolve_path(name, name, "exported", batch, inputs, given, "")
        return attrs.evolve(request, is_trusted=is_trusted)
    if name not in models and not is_module_name(name):
        plain = name.partition("(")[0]
        if plain in models:
            raise UsageError(f"{plain} is not a language model: it takes no arguments in brackets and has no phases")
        if is_text(name) and os.path.isfile(name):
            raise ModelError(f"{quote(name)} is a file of no known format: {FILE_FORMATS}")
        if wing := MODEL_PREFIXES.get(plain.partition(":")[0]):
            raise ModelError(f"{quote(plain)} needs the wing {wing}, which this installation lacks")
        is_folder = is_text(plain) and "/" not in plain and os.path.isdir(plain)
        near, hint = suggest(plain)
        raise UnknownNameError(
            "model",
            plain,
            (),
            hint or (f"the folder here is ./{plain}" if is_folder else MODEL_HINT),
            near=near or _find_meant(plain, models, others()),
        )
    return _resolve_known(name, models, size, inputs, given)


def _find_meant(name: str, models: Mapping[str, ModelEntry], others: Iterable[str]) -> list[str]:
    """Return known names similar to a misspelt one, best first; of a model with several token counts, one name."""
    named = {alias: _LENGTH.sub("", entry.name) for entry in models.values() for alias in (*entry.aliases, entry.name)}
    found: dict[str, str] = {}
    for near in find_meant(name, (*named, *others)):
        found.setdefault(named.get(near, near), near)
    return list(found.values())


def _refuse_arguments(name: str, arguments: tuple[tuple[str, str], ...]) -> None:
    if any(one != BOXES for one, _ in arguments):
        raise UsageError(f"{name} takes no --model-arg except {BOXES}; a factory in a file and the building blocks do")


def _resolve_known(
    name: str,
    models: Mapping[str, ModelEntry],
    batch: int | None,
    inputs: Sequence[InputSpec],
    arguments: tuple[tuple[str, str], ...],
) -> ModelRequest:
    entry = models.get(name)
    if entry is None:
        raise UnknownNameError(
            "model",
            name,
            (),
            "it was a module in a program's memory: ask that program, or write it "
            "to a file and give path/to/file.py:factory",
        )
    if not entry.is_traceable:
        raise ModelError(f"{name} cannot be traced: {entry.reason}")
    batch = batch or 1
    if not entry.input_shape:
        return ModelRequest(
            model=name,
            kind="block",
            batch=batch,
            inputs=tuple(inputs),
            arguments=arguments,
            is_default=not inputs and not arguments,
            package=entry.package,
        )
    _refuse_arguments(name, arguments)
    shape = (batch, *entry.input_shape)
    count = 2 if entry.input_layout == "pair" else 1
    if inputs and len(inputs) != count:
        raise UsageError(f"{name} takes {count} input{'s' if count > 1 else ''}, {len(inputs)} given")
    wanted = tuple(inputs) or (InputSpec(shape),) * count
    for spec in wanted:
        if len(spec.shape) != len(shape):
            raise UsageError(
                f"{name} takes an input of {len(shape)} dimensions (batch first), e.g. {','.join(map(str, shape))}"
            )
    layout = "images" if entry.input_layout == "images" else "tensors"
    return ModelRequest(
        model=name,
        kind="zoo",
        batch=batch,
        inputs=wanted,
        layout=layout,
        arguments=arguments,
        is_default=not arguments and all(spec == InputSpec(shape) for spec in wanted),
    )


def _resolve_path(
    name: str,
    path_text: str,
    kind: str,
    batch: int | None,
    inputs: Sequence[InputSpec],
    arguments: tuple[tuple[str, str], ...],
    factory: str,
) -> ModelRequest:
    path = Path(path_text)
    try:
        if not path.is_file():
            raise ModelError(f"{path} is not a file" if path.exists() else f"there is no file {path}")
        content_digest = _content_digest(path)
    except OSError as error:
        raise ModelError(f"{quote(path_text)} cannot be read: {error.strerror}") from error
    return ModelRequest(
        model=name,
        kind=kind,
        batch=batch,
        inputs=tuple(inputs),
        path=path,
        factory=factory,
        arguments=arguments,
        content_digest=content_digest,
    )


def local_files(path: Path) -> list[Path]:
    """Return a Python file and every file in its folder that it imports, also indirectly; any other file alone."""
    top = path.resolve()
    waiting, seen = [top], list[Path]()
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.append(current)
            if current.suffix == ".py":
                waiting.extend(sorted(_local_imports(current, top.parent)))
    return seen


def _content_digest(path: Path) -> str:
    digest = hashlib.sha256()
    folder = path.resolve().parent
    for index, file in enumerate(local_files(path)):
        digest.update(os.fsencode(file.relative_to(folder)) if index else b"")
        with file.open("rb") as stream:
            while part := stream.read(PART_BYTES):
                digest.update(part)
    return digest.hexdigest()[:16]


def _local_imports(file: Path, folder: Path) -> set[Path]:
    """Return the files under `folder` that a Python file imports."""
    if file.stat().st_size > MOST_BYTES:
        raise ModelError(f"{file} is longer than {MOST_BYTES:,} bytes: it is not code")
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return set()
    named: set[tuple[Path, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named.update((folder, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = folder
            if node.level:
                start = file.parents[node.level - 1]
                if not start.is_relative_to(folder):
                    continue
            stem = node.module or ""
            named.add((start, stem))
            named.update((start, f"{stem}.{alias.name}".strip(".")) for alias in node.names)
    files: set[Path] = set()
    for start, name in named:
        parts = [part for part in name.split(".") if part and part != "*"]
        for length in range(1, len(parts) + 1):
            place = start.joinpath(*parts[:length])
            files.update(found for found in (place.with_suffix(".py"), place / "__init__.py") if found.is_file())
    return files
