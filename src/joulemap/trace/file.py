"""A model from a person's own file: what a factory in it makes, or a saved `torch.export` program."""

from __future__ import annotations

import importlib.util
import logging
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from joulemap.errors import Interrupted, ModelError
from joulemap.trace.module import build_on_meta
from joulemap.trace.source import ModelRequest, local_files


def build_from_factory(request: ModelRequest, arguments: Mapping[str, Any]) -> tuple[torch.nn.Module, Any]:
    """Return (module, its own inputs or None) of a factory, whose file is imported, so that its code runs.

    ModelError gives the file's own error and line.
    """
    path = request.path
    assert path is not None
    specification = importlib.util.spec_from_file_location(f"joulemap_user_{request.content_digest}", path)
    if specification is None or specification.loader is None:
        raise ModelError(f"{path} cannot be imported")
    namespace = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.parent))
    _forget(local_files(path))
    try:
        with build_on_meta():
            specification.loader.exec_module(namespace)
            made = _find(namespace, request.factory, path)
            if not isinstance(made, torch.nn.Module) and callable(made):
                made = made(**arguments)
            elif arguments:
                raise ModelError(f"{request.model} is not a factory: it takes no --model-arg")
    except (ModelError, Interrupted):
        raise
    except SyntaxError as error:
        raise ModelError(f"{path}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise ModelError(f"{path}{_line_in(path, error)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    inputs: Any = None
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    if not isinstance(made, torch.nn.Module):
        raise ModelError(
            f"{request.model} gave a {type(made).__name__}, expected an nn.Module or a pair (module, inputs)"
        )
    return made, inputs if inputs is not None else getattr(made, "example_inputs", None)


def _forget(files: list[Path]) -> None:
    """Let files be imported as they are now, also where a long-lived process imported them before."""
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None)
        if place is not None and Path(place) in files:
            del sys.modules[name]


def _find(namespace: Any, factory: str, path: Path) -> Any:
    made = getattr(namespace, factory, None)
    if made is None:
        import difflib

        near = difflib.get_close_matches(factory, [name for name in vars(namespace) if not name.startswith("_")], n=2)
        raise ModelError(f"{path} has no {factory}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    return made


def _line_in(path: Path, error: BaseException) -> str:
    whole = path.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == whole]
    return f", line {lines[-1]}" if lines else ""


def load_exported(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
    """Return (module, (positional, named) inputs it was exported with, or None if it keeps none).

    Raises ModelError for a file that is damaged or something else.
    """
    assert request.path is not None
    logger = logging.getLogger("torch.export")
    before = logger.disabled
    logger.disabled = True
    try:
        program = torch.export.load(request.path)
        module = program.module(check_guards=False)
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"{request.path} cannot be read as a torch.export program: {reason[0] if reason else type(error).__name__}"
        ) from error
    finally:
        logger.disabled = before
    return module, program.example_inputs
