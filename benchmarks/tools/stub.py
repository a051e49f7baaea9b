"""Stubs of the questions, as methods and as functions; each is written as its home module declares it."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Final

from joulemap.question import ModelQuestion, Question, list_questions
from joulemap.system.wing import BUILT_IN, list_wings
from tools import GENERATED, PACKAGE

METHODS: Final = "joulemap.generated.question"
"""Stub of the questions as methods: the base class of the workspace, for type checkers."""

FUNCTIONS: Final = "joulemap.generated.shortcut"
"""Stub of the questions as functions of the package."""

CLASS: Final = "Questions"
"""Name of the class of methods."""

WIDTH: Final = 120

MODULE: Final = ("module: torch.nn.Module", "example_inputs: ExampleInputs | None", "/")
"""Parameters of a question's overload for a torch module, in place of the model's name."""

MORE: Final = {
    "AbstractContextManager": ("contextlib", "AbstractContextManager"),
    "ExampleInputs": ("joulemap.question", "ExampleInputs"),
    **{name: ("joulemap.domain.settings", name) for name in ("ModelKeywords", "RunKeywords", "SettingsKeywords")},
    **{name: ("typing", name) for name in ("Unpack", "overload")},
}
"""Names that stubs need in addition to those of the questions -> (module, name in it)."""


@cache
def read(module: str) -> ast.Module:
    """Return the syntax tree of a module of this package."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))


def list_imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return imported name -> (its module, its name there)."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def list_definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return name -> definition of a module's classes, functions and aliases, without type variables."""
    definitions: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            definitions[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            definitions[node.target.id] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec")
            definitions |= {} if is_variable else {node.targets[0].id: node}
    return definitions


def find_names(node: ast.AST | None) -> Iterator[str]:
    """Yield the names in an annotation, also in one that is a string."""
    for one in ast.walk(node) if node else ():
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            with contextlib.suppress(SyntaxError):
                yield from find_names(ast.parse(one.value, mode="eval").body)


def spell_imports(modules: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the lines that import names from modules."""
    for module, names in sorted(modules.items()):
        line = f"from {module} import {', '.join(names)}"
        yield from [line] if len(line) <= WIDTH else [f"from {module} import (", *(f"    {one}," for one in names), ")"]


def find_stub(module: str) -> Path:
    """Return the path of a stub."""
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".pyi")


def list_asked() -> dict[str, Question]:
    """Return the questions of the core and of the built-in wings by name."""
    others = {name for wing in list_wings() if wing.name not in BUILT_IN for name in wing.questions}
    return {name: one for name, one in list_questions().items() if name not in others}


def spell_methods() -> str:
    """Return the code of the stub of a class with all questions."""
    modules: dict[str, set[str]] = {}
    pieces: list[str] = []
    for name, question in list_asked().items():
        home = question.home
        known = {**list_imports(read(home)), **{name: (home, name) for name in list_definitions(read(home))}, **MORE}
        for code in _spell_question(name, question):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Name) and node.id in known:
                    modules.setdefault(known[node.id][0], set()).add(known[node.id][1])
            pieces.append(indent(code, "    "))
    ours = {name: sorted(names, key=_order) for name, names in modules.items() if name.startswith("joulemap.")}
    others = {name: sorted(names, key=_order) for name, names in modules.items() if name not in ours}
    head = [f"# {GENERATED}", '"""Questions with the signatures of the functions that answer them."""', ""]
    imports = [*spell_imports(others), "", "import torch", "", *spell_imports(ours)]
    text = '    """Questions about a database, each a method of the workspace."""'
    return "\n".join([*head, *imports, "", f"class {CLASS}:", text, "", *pieces]).rstrip() + "\n"


def spell_functions() -> str:
    """Return the code of the stub of the questions that are functions of the package."""
    names = [name for name, one in list_asked().items() if one.is_shared]
    head = [f"# {GENERATED}", '"""Questions as functions, asked of one workspace."""', ""]
    asked = ["from joulemap.workspace import Workspace", "", "_asked: Workspace"]
    return "\n".join([*head, *asked, *(f"{name} = _asked.{name}" for name in names)]) + "\n"


def _order(name: str) -> tuple[bool, bool, str]:
    """Return the sort key of a name in an import: constants, then classes, then functions."""
    return not name.isupper(), not name[0].isupper(), name


def _spell_question(name: str, question: Question) -> Iterator[str]:
    """Yield the code of a question; one about a model has an overload that takes a module."""
    node = list_definitions(read(question.home))[name]
    assert isinstance(node, ast.FunctionDef)
    _, *parameters = _list_parameters(node.args)
    if question.keywords:
        parameters.append(f"**keywords: Unpack[{question.keywords}]")
    mine = ["self", *parameters]
    if isinstance(question, ModelQuestion):
        of_module = _spell_function(node, ["self", *MODULE, *parameters[1:]], has_text=False)
        yield f"@overload\n{_spell_function(node, mine)}"
        yield f"@overload\n{of_module}"
    else:
        yield _spell_function(node, mine)


def _spell_function(node: ast.FunctionDef, parameters: Iterable[str], *, has_text: bool = True) -> str:
    returned = ast.unparse(node.returns or ast.Constant(None))
    if any(ast.unparse(one) == "contextlib.contextmanager" for one in node.decorator_list):
        returned = returned.replace("Iterator", "AbstractContextManager", 1)
    lines = "".join(f"    {one},\n" for one in parameters)
    head = f"def {node.name}(\n{lines}) -> {returned}:" if lines else f"def {node.name}() -> {returned}:"
    return f"{head}\n{_spell_text(node)}" if has_text else f"{head} ..."


def _spell_text(node: ast.FunctionDef) -> str:
    text = ast.get_docstring(node) or ""
    return indent(f'"""{text}\n"""' if "\n" in text else f'"""{text}"""', "    ")


def _list_parameters(arguments: ast.arguments) -> list[str]:
    """Return the parameters of a function, each with its type and default."""
    plain, named = arguments.args, arguments.kwonlyargs
    missing = [None] * (len(plain) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    written = [_spell_parameter(one, default) for one, default in zip([*plain, *named], defaults, strict=True)]
    rest = [f"**{ast.unparse(arguments.kwarg)}"] if arguments.kwarg else []
    return [*written[: len(plain)], *(["*"] if named else []), *written[len(plain) :], *rest]


def _spell_parameter(one: ast.arg, default: ast.expr | None) -> str:
    return (ast.unparse(one) + (f" = {ast.unparse(default)}" if default else "")).replace("'", '"')
