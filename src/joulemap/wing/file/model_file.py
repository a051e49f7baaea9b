"""Names of model files for the core: paths that end in `.onnx` or `.tflite`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, cast

import attrs

from joulemap.domain import SETTINGS
from joulemap.plan import JOIN, ModelNames
from joulemap.plan.model_name import find_names
from joulemap.system import ModelError, Reading, UsageError, digest_code
from joulemap.trace.version import CLOSED_FORMS, FORMULA_CODE

if TYPE_CHECKING:
    from onnx import ModelProto

    from joulemap.construct import InputSpec, ModelRequest
    from joulemap.domain import Settings
    from joulemap.physics import Precision, Workload
    from joulemap.plan import Model, Talk
    from joulemap.wing.file.graph import Program
    from joulemap.wing.file.lite import LiteModel


CODE: Final = ("wing/file", "catalog/data/model/tflite.toml", "physics/fuse")


@cache
def file_version() -> str:
    """Return a digest of the code that reads files, as sixteen hexadecimal digits.

    It is part of the key of a file's workload, so that changed code reads the file again. It contains the formulas of
    all operators, because those of a file are unknown until it is read.
    """
    return digest_code(*CLOSED_FORMS, FORMULA_CODE, *CODE)


ONNX: Final = ".onnx"

TFLITE: Final = ".tflite"


class FileNames(ModelNames):
    """Recognition of paths of ONNX and TFLite files as model names."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for a path with the suffix of a model file."""
        del settings
        return self.is_name(name)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the model of a file at a batch; ModelError for one that cannot be read."""
        from joulemap.construct import ModelRequest, check_batch, parse_input
        from joulemap.plan import Model, replace_batch

        if settings.arguments or settings.config:
            raise UsageError(
                f"{name} takes no {'--config' if settings.config else 'arguments'}: its file fixes the model"
            )
        given = self.turn(name, [parse_input(text) for text in settings.inputs])
        given = replace_batch(given, settings.batch, batch)
        batch = check_batch(batch, given)
        inputs = tuple(self.turn(name, given))
        sizes = " ".join(map(str, inputs))
        digest = hashlib.sha256(f"{_find_digest(Path(name))} {sizes}".encode()).hexdigest()[:16]
        request = ModelRequest(
            model=name,
            kind=Path(name).suffix.lower().removeprefix("."),
            batch=batch or self.find_batch(name) or 1,
            inputs=inputs,
            is_default=not inputs,
            path=Path(name),
            content_digest=digest,
            version=file_version(),
        )
        return Model(request=request, retrace=settings.retrace, names=self)

    def find_batch(self, model: str) -> int | None:
        """Return the batch size that a file fixes; None if the batch is dynamic, and for models without a file."""
        if not self.is_name(model):
            return None
        if model.lower().endswith(TFLITE):
            from joulemap.wing.file.lite_graph import find_lite_batch

            with Reading(model):
                return find_lite_batch(_read_lite(Path(model))[0])
        from joulemap.wing.file.graph import find_fixed_batch

        with Reading(model):
            return find_fixed_batch(_read_onnx(Path(model))[0])

    def turn(self, model: str, inputs: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs in the file's order of axes.

        The first two sizes are exchanged for an input whose batch is the second axis in the file.
        """
        if not inputs or not model.lower().endswith(ONNX):
            return list(inputs)
        from joulemap.wing.file.graph import find_batch_axes, match_inputs

        with Reading(model):
            axes = find_batch_axes(_read_onnx(Path(model))[0])
        late = [spec for name, spec in match_inputs(model, [*axes], inputs).items() if axes[name]]
        return [
            attrs.evolve(spec, shape=(*spec.shape[1::-1], *spec.shape[2:]))
            if any(spec is one for one in late)
            else spec
            for spec in inputs
        ]

    def is_name(self, word: str) -> bool:
        """Return True for a path with the suffix of a model file, but not for a pipeline whose last stage is one."""
        is_path = word.lower().endswith((ONNX, TFLITE)) and "\0" not in word
        return is_path and (JOIN not in word or Path(word).is_file())

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return a file's workload; ModelError for an operator without a formula, UsageError for a dynamic size."""
        from joulemap.physics.fuse import fuse
        from joulemap.wing.file.assemble import assemble
        from joulemap.wing.file.rewrite import join_chains

        del talk  # too fast for a progress message
        request = model.request
        program, notes = _read_graph(request)
        made = assemble(join_chains(program), request.model, request.key, request.batch or 1, notes)
        if all(one.is_view for one in made.operators):
            raise ModelError(f"{request.model} has no operators that compute or move data")
        with Reading(request.model):
            return fuse(made)

    def list_precisions(self, model: str) -> tuple[tuple[Precision, ...], tuple[str, ...]] | None:
        """Return the precisions of a file's activations and weights; None if the file has no precision below fp32, or
        if the files that a name joins differ.
        """
        precisions, *others = dict.fromkeys(map(find_precision, find_names(model).list_parts(model) or (model,)))
        if others or not any(precisions):
            return None
        return (cast("Precision", precisions[0] or SETTINGS.precision[0]),), (precisions[1],) if precisions[1] else ()

    def apply_published(
        self, models: tuple[str, ...], settings: Settings, shared: Collection[str]
    ) -> tuple[tuple[str, ...], Settings]:
        """Return the models, and the settings with the precision that quantized and fp16 files have, also joined with
        other models.

        Settings with a stated precision are unchanged. If a chip does not support the precision, it applies to weights
        alone.

        Raise UsageError for models of different precisions in one question.
        """
        precisions = {
            part: find_precision(part) for one in models for part in find_names(one).list_parts(one) or (one,)
        }
        if (
            settings.states_precision
            or settings.precision != SETTINGS.precision
            or settings.weight_precision
            or not any(map(any, precisions.values()))
        ):
            return models, settings
        if len(set(precisions.values())) > 1:
            listed = ", ".join(
                f"{one} has {' and '.join(filter(None, has)) or 'wide'}" for one, has in precisions.items()
            )
            raise UsageError(f"{listed} numbers: ask about one file at a time, or state --precision for all models")
        activations, weights = next(iter(precisions.values()))
        if activations in shared:
            settings = attrs.evolve(settings, precision=(cast("Precision", activations),))
        elif activations:
            weights = weights or activations
        return models, attrs.evolve(settings, weight_precision=(weights,) if weights else ())


def find_precision(name: str) -> tuple[str, str]:
    """Return the precision of a file's activations, and of its weights if that is narrower.

    A text is empty if the file has no precision below fp32, and for names of other models.
    """
    if not NAMES.is_name(name):
        return "", ""
    if name.lower().endswith(ONNX):
        from joulemap.wing.file.graph import measure_onnx_precision

        with Reading(name):
            return measure_onnx_precision(_read_onnx(Path(name))[0])
    from joulemap.wing.file.lite_graph import measure_precision

    with Reading(name):
        return measure_precision(_read_lite(Path(name))[0])


def _read_graph(request: ModelRequest) -> tuple[Program, tuple[str, ...]]:
    """Return the graph of a file, and notes on information that the file lacks."""
    if request.model.lower().endswith(TFLITE):
        from joulemap.wing.file.lite_graph import read_lite_program

        content, _ = _read_lite(Path(request.model))
        program = read_lite_program(content, request.model, request.inputs, request.batch)
        return program, describe_lite(program, find_precision(request.model))
    from joulemap.wing.file.graph import read_program

    message, _ = _read_onnx(Path(request.model))
    program = read_program(message, request.model, request.inputs, request.batch)
    return program, describe_reading(program)


def describe_lite(program: Program, precision: tuple[str, str]) -> tuple[str, ...]:
    """Return notes on what a TFLite file does not state, and on its precision."""
    made_by = f" ({program.producer})" if program.producer else ""
    activations, weights = precision
    notes = [f"read from a TFLite graph{made_by}: batch norms are folded, and delegates may run other operators"]
    if activations or weights:
        notes.append(
            f"the file stores activations as {activations or 'real numbers'} and weights as {weights or activations}; "
            "--precision and --weight-precision set the precisions of a run"
        )
    if activations == "fp16":  # seven float16 networks on a Raspberry Pi 3B+ (NetsPresso): 18 % off so, 61 % on 4 cores
        notes.append(
            "TensorFlow Lite computes fp16 files at fp32 on a CPU unless told, by default on one core: compare "
            "--precision fp32 on raspberry_pi_5@1core"
        )
    return (*notes, *describe_assumed(program))


def describe_reading(program: Program) -> tuple[str, ...]:
    """Return notes on what an ONNX file does not state."""
    from joulemap.wing.file.graph import STORED

    made_by = f" by {program.producer}" if program.producer else ""
    stored = sorted({one.dtype for one in program.weights if one.dtype in STORED})
    notes = [
        f"read from an ONNX graph of operator set {program.opset}{made_by}: batch norms may be folded, and eager "
        "execution of the original model may run other operators"
    ]
    if stored:
        notes.append(f"the file stores weights as {' and '.join(stored)}; --precision sets the precision of a run")
    return (*notes, *describe_assumed(program))


def describe_assumed(program: Program) -> tuple[str, ...]:
    """Return notes on output sizes that depend on data, and on branches that were not counted."""
    notes = []
    if program.assumed:
        notes.append(f"sizes of {' and '.join(program.assumed)} depend on data: the maximum of each is assumed")
    if program.branch_count:
        notes.append(
            f"conditions on data: {program.branch_count}; of each, the branch with more matrix products is counted"
        )
    return tuple(notes)


@lru_cache(maxsize=4)
def _load_onnx(path: Path, changed_ns: int, size: int) -> tuple[ModelProto, str]:
    """Return the parsed message of an ONNX file, and its digest; results are cached per state of the file."""
    from joulemap.wing.file.proto import load_onnx

    del changed_ns, size
    message = load_onnx(path)
    return message, hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()


@lru_cache(maxsize=4)
def _load_lite(path: Path, changed_ns: int, size: int) -> tuple[LiteModel, str]:
    """Return the parsed content of a TFLite file, and its digest; results are cached per state of the file."""
    from joulemap.wing.file.lite import load_lite

    del changed_ns, size
    content = load_lite(path)
    return content, content.digest


def _find_state(path: Path) -> tuple[int, int]:
    """Return the modification time and the size of a file; ModelError if it does not exist."""
    try:
        state = path.stat()
    except OSError as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error.strerror}") from error
    return state.st_mtime_ns, state.st_size


def _read_onnx(path: Path) -> tuple[ModelProto, str]:
    return _load_onnx(path, *_find_state(path))


def _read_lite(path: Path) -> tuple[LiteModel, str]:
    return _load_lite(path, *_find_state(path))


def _find_digest(path: Path) -> str:
    return (_read_lite if path.suffix.lower() == TFLITE else _read_onnx)(path)[1]


NAMES: Final = FileNames()
"""Names of model files."""
