"""Models that a factory function, or a module, in a user's Python file provides."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from joulemap.construct.package import find_package, list_code
from joulemap.construct.source import ModelRequest, local_files
from joulemap.system.errors import ModelError, UsageError
from joulemap.trace.guest import describe_place, first_line, refusing
from joulemap.trace.module import build_on_meta

_imported: Final[set[str]] = set()
"""Paths of files that models may have imported in this process."""


def build_from_factory(request: ModelRequest, arguments: Mapping[str, Any]) -> tuple[torch.nn.Module, Any, bool]:
    """Return (module, its own inputs or None, whether these inputs have the requested sizes) of a factory.

    The factory's file is imported, which runs its code. Its folder, and the folder of its package, stay on `sys.path`
    until `hosting` removes them. Raises ModelError with the error and line in the file.
    """
    path = request.path
    assert path is not None
    whole = path.resolve()
    root, package = find_package(whole)
    name = ".".join(filter(None, (package, f"joulemap_user_{request.content_digest}")))
    specification = importlib.util.spec_from_file_location(name, whole)
    if specification is None or specification.loader is None:
        raise ModelError(f"{path} cannot be imported")
    namespace = importlib.util.module_from_spec(specification)
    sys.path[:0] = dict.fromkeys((str(whole.parent), str(root)))
    _forget([*local_files(whole), *list_code(whole)])
    with refusing(lambda error: _explain(path, whole, error)), build_on_meta():
        specification.loader.exec_module(namespace)
        made = _find(namespace, request.factory, path)
        sizes: Mapping[str, int] = {}
        if not isinstance(made, torch.nn.Module) and callable(made):
            sizes = _read_sizes(made, request)
            _check_switches(made, arguments)
            made = made(**{**sizes, **arguments})
        elif arguments:
            raise ModelError(f"{request.model} is not a factory: it takes no --model-arg")
    inputs: Any = None
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    if not isinstance(made, torch.nn.Module):
        raise ModelError(
            f"{request.model} returned a {type(made).__name__}, expected an nn.Module or a pair (module, inputs)"
        )
    return made, inputs if inputs is not None else getattr(made, "example_inputs", None), bool(sizes)


def _read_sizes(factory: Any, request: ModelRequest) -> Mapping[str, int]:
    """Return argument name -> size of the pass; empty unless the factory takes its sizes."""
    if request.sizes is None:
        return {}
    return request.sizes.choose_arguments(inspect.signature(factory).parameters, request.batch or 1)


def _check_switches(factory: Any, arguments: Mapping[str, Any]) -> None:
    """Raise UsageError for a text given to a boolean argument, because every text would count as true."""
    try:
        taken = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return
    for name, value in arguments.items():
        if isinstance(value, str) and name in taken and isinstance(taken[name].default, bool):
            raise UsageError(f"--model-arg {name}={value}: expected true or false")


def _forget(files: list[Path]) -> None:
    """Unload the modules of these files, so that their next import reads the files again in a long-lived process.

    Modules that earlier files imported are unloaded too, because one with the same name would replace a new one.
    """
    _imported.update(map(str, files))  # text, because a Path for each of thousands of modules takes a tenth of a second
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in _imported:
            del sys.modules[name]


def _find(namespace: Any, factory: str, path: Path) -> Any:
    made = getattr(namespace, factory, None)
    if made is None:
        import difflib

        near = difflib.get_close_matches(factory, [name for name in vars(namespace) if not name.startswith("_")], n=2)
        raise ModelError(f"{path} has no {factory}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    return made


def _explain(path: Path, whole: Path, error: BaseException) -> str:
    """Return an error of a user's file as text, with the last line of the file that was reached."""
    if isinstance(error, SyntaxError) and error.filename:
        line = f", line {error.lineno}" if error.lineno else ""
        return f"{path if Path(error.filename) == whole else error.filename}{line}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(whole)]
    return (
        f"{path}, line {lines[-1]}: {first_line(error)}"
        if lines
        else f"{path}: {first_line(error)}{describe_place(error)}"
    )
