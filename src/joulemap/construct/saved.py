"""Loading of a program that `torch.export.save` wrote, so that no code in it runs unless the user trusts it.

Loading can run code. Pickles call functions. Parts of the program become Python code: names are inserted into a
function, sympy evaluates sizes, an operator can name any attribute of torch, and the structure of inputs imports
modules. A program is therefore refused unless each part is of a kind found in exported modules of ATen operators. Its
tensors are read by `torch.load(weights_only=True)`.

Source: torch/export/pt2_archive/_package.py (`load_pt2`), torch/_export/serde/serialize.py, torch/fx/graph.py.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from torch.export.pt2_archive import PT2ArchiveReader
from torch.export.pt2_archive._package import load_pt2
from torch.utils import _pytree

from joulemap.construct.source import ModelRequest
from joulemap.system.errors import Interrupted, ModelError
from joulemap.trace.guest import first_line

_INERT: Final = re.compile(
    r"archive_format|archive_version|byteorder|version|\.(data|format)[/_].*|\.storage_alignment|extra/.*"
    r"|data/(weights|constants)/(weight|tensor)_\d+"
)
"""Pattern of archive members that are harmless: text, bytes, or tensor data."""

_PICKLED: Final = re.compile(r"data/(weights|constants|sample_inputs)/[^/]+\.pt")
_CONFIGURATION: Final = re.compile(r"(?P<folder>data/(weights|constants)/)[^/]+_config\.json")
_PROGRAM: Final = re.compile(r"models/[\w.-]+\.json")
_PAYLOAD: Final = re.compile(r"(weight|tensor)_\d+")

_OPERATOR: Final = re.compile(
    r"torch\.ops\.(?P<namespace>aten|prims|quantized|torchvision)\.(?P<name>\w+)\.(?P<overload>\w+)"
)
_FILES: Final = ("from_file",)
"""Names of operators that open files, which are refused."""

_ARITHMETIC: Final = re.compile(
    r"_operator\.(abs|add|and_|eq|floordiv|ge|getitem|gt|index|invert|le|lshift|lt|mod|mul|ne|neg|not_|or_|pos|pow"
    r"|rshift|sub|truediv|truth|xor)|math\.[a-z]\w*|torch\._?sym_[a-z]\w*"
)
_HIGHER_ORDER: Final = re.compile(
    r"torch\.ops\.higher_order\.(associative_scan|auto_functionalized(_v2)?|cond|flex_attention|invoke_subgraph|map_impl"
    r"|out_dtype|scan|while_loop|wrap_with_autocast|wrap_with_set_grad_enabled)"
)

_FUNCTION: Final = re.compile(
    r"Abs|Add|And|Ceil(Div|ToInt)|CleanDiv|Equality|ExprCondPair|Float|Float(Pow|TrueDiv)|Floor(Div|ToInt)|GreaterThan"
    r"|Identity|Infinity|IntInfinity|IntTrueDiv|Integer|IsNonOverlappingAndDenseIndicator|LShift|LessThan|Max|Min|Mod"
    r"|ModularIndexing|Mul|NegativeInfinity|Not|OpaqueUnaryFn_\w+|Or|Piecewise|Pow|PowByNatural|PythonMod|RShift|Rational"
    r"|Round(Decimal|ToInt)|Strict(Greater|Less)Than|Symbol|ToFloat|TruncTo(Float|Int)|Unequality|Where|ceiling|floor"
)
"""Pattern of functions allowed in expressions of sizes, in the notation of sympy's `srepr`."""

_NUMBERS: Final = ("true", "false", "oo", "int_oo")
_EXPRESSION: Final = re.compile(r"[\w (),='.+-]*")
_QUOTED: Final = re.compile(r"[\w.+-]*")
_SIZE: Final = (ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)
_CONTAINER: Final = re.compile(
    r"builtins\.(tuple|list|dict)|collections\.OrderedDict|torch\.Size|torch\.return_types\.\w+"
    r"|torch\.fx\.immutable_collections\.immutable_(dict|list)"
)
"""Pattern of container types allowed in the structure of inputs and outputs."""

_PLAIN: Final = re.compile(r"""[^"'`\\(){}\x00-\x1f\x7f]*""")
"""Pattern of text that cannot end a quoted string or call a function."""

_NAMES: Final = frozenset({"name", "as_name", "forward_arg_names"})
"""Keys whose texts become names of variables."""

_NAMED: Final = frozenset(
    {"tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values", "custom_obj_values"}
)
_MAPPED: Final = _NAMED | {"as_string_to_argument", "range_constraints", "treespec_namedtuple_fields"}
"""Keys of mappings whose own keys are names chosen by the program."""

_REMARKS: Final = frozenset({"metadata", "as_string", "as_strings", "guards_code"})
"""Keys whose texts never become code; guards are not checked when a program is traced."""


class _CodeFoundError(Exception):
    """Part of a saved program that may run code when it is loaded."""


Sizes = dict[str, tuple[int | None, ...]]
"""Input name -> its sizes; None for a dynamic dimension."""


def load_exported(request: ModelRequest) -> tuple[torch.nn.Module, Any, Sizes]:
    """Return (module, example inputs, sizes of each input) of a saved program.

    The example inputs are (positional, keyword) arguments used at export, or None if they were not saved. Raises
    ModelError for a file that is damaged, is something else, or may run code and is not trusted.
    """
    path = request.path
    assert path is not None
    name_return_types()
    try:
        with _quiet():
            program = torch.export.load(path) if request.is_trusted else _load_without_code(path)
            module = program.module(check_guards=False)
    except _CodeFoundError as found:
        raise ModelError(
            f"{path} may run code of its own when it is loaded: {found}; JOULEMAP_TRUST=1 (in Python "
            "trust=True) loads it"
        ) from None
    except (ModelError, Interrupted):
        raise
    except BaseException as error:
        raise ModelError(f"{path} cannot be read as a torch.export program: {first_line(error)}") from error
    return module, program.example_inputs, _read_sizes(program)


def _read_sizes(program: torch.export.ExportedProgram) -> Sizes:
    """Return input name -> sizes of the tensors that a program takes."""
    given = {*program.graph_signature.user_inputs}
    found = {one.name: one.meta.get("val") for one in program.graph.nodes if one.op == "placeholder"}
    return {
        name: tuple(size if isinstance(size, int) else None for size in value.shape)
        for name, value in found.items()
        if name in given and isinstance(value, torch.Tensor)
    }


@cache
def name_return_types() -> None:
    """Give `torch.return_types` (topk, sort, max along a dimension) the names that PyTorch 2.15 uses in saved programs.

    Earlier versions have no names for these types. Without them, torch can neither save a program that returns such a
    type, nor load one saved by 2.15.
    """
    for kind in torch.return_types.all_return_types:
        known = _pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
        if known is not None and known.serialized_type_name == _pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
            name = f"{kind.__module__}.{kind.__qualname__}"
            _pytree.SUPPORTED_SERIALIZED_TYPES[kind] = known._replace(serialized_type_name=name)
            _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = kind


def _load_without_code(path: Path) -> torch.export.ExportedProgram:
    """Return the program in a file of torch's current format. Raise an error if any part of it may run code."""
    with zipfile.ZipFile(path) as members:
        if "version" in members.namelist():
            raise _CodeFoundError("it has a form that torch no longer writes")
    with path.open("rb") as file:
        _refuse_code(PT2ArchiveReader(file))
        file.seek(0)
        with _weights_only():
            programs = load_pt2(file).exported_programs
    if "model" not in programs:
        raise ModelError(f"{path} holds no program: saving it failed, or it was saved under another name than 'model'")
    return programs["model"]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _weights_only() -> Iterator[None]:
    """Make `torch.load` refuse everything but tensors in this context, whatever its caller requests. Use it inside
    `hosting`.
    """
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    try:
        yield
    finally:
        del os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"]


def _refuse_code(archive: PT2ArchiveReader) -> None:
    """Raise _CodeFoundError if an archive has a member that may run code when it is loaded."""
    members = archive.get_file_names()
    if len({member.lower() for member in members}) < len(members):  # the reader ignores case
        raise _CodeFoundError("two of its members have the same name")
    for member in members:
        configuration = _CONFIGURATION.fullmatch(member)
        if _PICKLED.fullmatch(member):
            _check_pickle(member, archive.read_bytes(member))
        elif configuration:
            _check_payloads(archive, configuration["folder"], json.loads(archive.read_string(member)))
        elif _PROGRAM.fullmatch(member):
            _check_program(json.loads(archive.read_string(member)), "")
        elif not _INERT.fullmatch(member):
            raise _CodeFoundError(f"it holds {member}")


def _check_payloads(archive: PT2ArchiveReader, folder: str, configuration: Any) -> None:
    """Raise _CodeFoundError unless every tensor in a folder is stored as raw bytes or as a pickle of tensors."""
    for payload in configuration["config"].values():
        name = payload["path_name"]
        if not _PAYLOAD.fullmatch(name):
            raise _CodeFoundError(f"{folder}{name} is an object")
        if payload["use_pickle"]:
            _check_pickle(f"{folder}{name}", archive.read_bytes(f"{folder}{name}"))


def _check_pickle(member: str, content: bytes) -> None:
    if not content:
        return
    try:
        torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except Exception as error:
        raise _CodeFoundError(
            f"{member} is a pickle of {_unsafe_globals(content) or 'more than tensors alone'}"
        ) from error


def _unsafe_globals(content: bytes) -> str:
    """Return up to three names that a pickle imports and tensors do not need; empty if it cannot be read."""
    try:
        found = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content))
    except Exception:
        return ""
    return ", ".join(sorted(found)[:3])


def _check_program(value: Any, key: str) -> None:
    """Raise _CodeFoundError if a text in a program may run code when it is loaded; `key` is the key of `value`."""
    if isinstance(value, dict):
        for name, child in value.items():
            _check_text(name, "name" if key in _NAMED else "")
            if name not in _REMARKS or key in _MAPPED:
                _check_program(child, name)
    elif isinstance(value, list):
        for child in value:
            _check_program(child, key)
    elif isinstance(value, str):
        _check_text(value, key)


def _check_text(text: str, key: str) -> None:
    if key in ("target", "as_operator"):
        is_known = _is_operator(text)
    elif key == "expr_str":
        is_known = _is_size(text)
    elif key in ("in_spec", "out_spec"):
        is_known = _is_tree(json.loads(text)[1])
    elif key in _NAMES:
        is_known = not text or text.isidentifier()
    else:
        is_known = _PLAIN.fullmatch(text) is not None
    if not is_known:
        raise _CodeFoundError(f"{key or 'a name'} is {text[:60]!r}")


def _is_operator(text: str) -> bool:
    found = _OPERATOR.fullmatch(text)
    if found is None:
        return (_ARITHMETIC.fullmatch(text) or _HIGHER_ORDER.fullmatch(text)) is not None
    overload = "" if found["overload"] == "default" else f".{found['overload']}"
    is_dispatched = torch._C._dispatch_has_kernel(f"{found['namespace']}::{found['name']}{overload}")
    return is_dispatched and found["name"] not in _FILES


def _is_size(text: str) -> bool:
    """Return whether a sympy expression calls only functions of numbers, and quotes only names and digits."""
    if not _EXPRESSION.fullmatch(text):
        return False
    tree = ast.parse(text, mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return all(_is_part_of_size(node, id(node) in called) for node in ast.walk(tree))


def _is_part_of_size(node: ast.AST, is_called: bool) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _NUMBERS or (is_called and _FUNCTION.fullmatch(node.id) is not None)
    if isinstance(node, ast.Constant):
        return _QUOTED.fullmatch(node.value) is not None if isinstance(node.value, str) else True
    return isinstance(node, _SIZE)


def _is_tree(node: Any) -> bool:
    """Return whether the structure of inputs or outputs uses only known containers with plain keys."""
    if node["type"] is None:
        return True
    keys = json.loads(node["context"]) or []
    are_plain = all(isinstance(key, str | int) and _PLAIN.fullmatch(str(key)) for key in keys)
    is_known = isinstance(keys, list) and _CONTAINER.fullmatch(node["type"]) is not None
    return is_known and are_plain and all(map(_is_tree, node["children_spec"]))
