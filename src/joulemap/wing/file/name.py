"""Names of model files for the core: paths that end in `.onnx`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from joulemap.plan.name import ModelNames
from joulemap.system.errors import ModelError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

    from joulemap.domain.settings import Settings
    from joulemap.domain.workload import Workload
    from joulemap.plan.model import Model
    from joulemap.plan.source import Talk
    from joulemap.wing.file.graph import Program

KIND: Final = "onnx"
"""Kind of requests for ONNX files."""

SUFFIX: Final = ".onnx"


class FileNames(ModelNames):
    """Paths of ONNX files."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for a path with the suffix of ONNX files."""
        del settings
        return self.is_name(name)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the model of a file at a batch; ModelError for one that cannot be read."""
        from joulemap.plan.model import Model
        from joulemap.trace.source import ModelRequest, check_batch, parse_input
        from joulemap.wing.file.version import file_version

        if settings.arguments or settings.config:
            raise UsageError(f"{name} takes no {'--config' if settings.config else 'arguments'}: it is built already")
        inputs = tuple(parse_input(text) for text in settings.inputs)
        sizes = " ".join(map(str, inputs))
        digest = hashlib.sha256(f"{_read(Path(name))[1]} {sizes}".encode()).hexdigest()[:16]
        request = ModelRequest(
            model=name,
            kind=KIND,
            batch=check_batch(batch) or (inputs[0].shape[0] if inputs else 1),
            inputs=inputs,
            is_default=not inputs,
            path=Path(name),
            content_digest=digest,
            version=file_version(),
        )
        return Model(request=request, retrace=settings.retrace, names=self)

    def is_name(self, word: str) -> bool:
        """Return True for a path with the suffix of ONNX files."""
        return word.lower().endswith(SUFFIX) and "\0" not in word

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a file; ModelError for an operator without formula, UsageError for an open size."""
        from joulemap.fuse import fuse
        from joulemap.wing.file.assemble import assemble
        from joulemap.wing.file.graph import read_program
        from joulemap.wing.file.rewrite import join_chains

        del talk  # it takes no time to speak of
        request = model.request
        message, _ = _read(Path(request.model))
        program = read_program(message, request.model, request.inputs, request.batch)
        batch = request.batch or 1
        return fuse(assemble(join_chains(program), request.model, request.key, batch, describe_reading(program)))


def describe_reading(program: Program) -> tuple[str, ...]:
    """Return the notes on what a file does not show."""
    made_by = f" by {program.producer}" if program.producer else ""
    stored = sorted({one.dtype for one in program.weights if one.dtype in ("fp16", "bf16", "int8", "uint8")})
    notes = [
        f"read from an ONNX graph of operator set {program.opset}{made_by}: batch norms may be folded, and it does not "
        "show what eager execution would run"
    ]
    if stored:
        notes.append(f"the file stores weights as {' and '.join(stored)}; --precision sets what a run reads")
    if program.assumed:
        notes.append(f"sizes of {' and '.join(program.assumed)} depend on data: each is taken at its largest")
    return tuple(notes)


@lru_cache(maxsize=4)
def _read_once(path: Path, changed_ns: int, size: int) -> tuple[ModelProto, str]:
    """Return the message of a file as it is at this time, and its digest."""
    from joulemap.wing.file.proto import load_onnx

    del changed_ns, size
    message = load_onnx(path)
    return message, hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()


def _read(path: Path) -> tuple[ModelProto, str]:
    try:
        state = path.stat()
    except OSError as error:
        raise ModelError(f"{quote(str(path))} cannot be read: {error.strerror}") from error
    return _read_once(path, state.st_mtime_ns, state.st_size)


NAMES: Final = FileNames()
"""Names of model files."""
