"""Types and texts of expressions, from annotations and constants: no function is called.

A test of the code of a package reads the scopes of its modules. What annotations and constants do not state stays
unknown: None for a type, an empty list or braces for a text.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from joulemap.show.present.template import Template

TEXT_METHODS: Final = frozenset({"format", "replace"})
"""Methods whose results name the parts of the text itself."""


class Typed(NamedTuple):
    """Annotation, and the module in which its names are known."""

    node: ast.expr
    module: ModuleType


class Scope(NamedTuple):
    """Function or method whose expressions a test reads."""

    module: ModuleType
    owner: type[Any] | None
    function: ast.FunctionDef

    @property
    def parameters(self) -> Mapping[str, ast.expr | None]:
        given = self.function.args
        return {one.arg: one.annotation for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}

    def list_bound(self, name: str) -> list[ast.expr]:
        """Return the expressions that are assigned to a local name, except from itself; of a loop, what is iterated."""
        found = []
        for node in ast.walk(self.function):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    found.append(value)
                case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                    found.append(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    pairs = zip(targets, values, strict=False)
                    found += [value for one, value in pairs if isinstance(one, ast.Name) and one.id == name]
                case ast.comprehension(
                    target=ast.Tuple(elts=[_, ast.Name(id=target)]),
                    iter=ast.Call(func=ast.Attribute(value=value, attr="items")),
                ) if target == name:
                    found.append(value)
        return [one for one in found if name not in {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}]


@cache
def read_tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


@cache
def list_imports(module: ModuleType) -> Mapping[str, str]:
    """Return name -> module that it is imported from, also for type checkers alone."""
    nodes = (node for node in ast.walk(read_tree(module)) if isinstance(node, ast.ImportFrom))
    return {one.asname or one.name: str(node.module) for node in nodes for one in node.names}


def find_value(name: str, module: ModuleType) -> Any:
    """Return the value of a name in a module; None for an unknown name."""
    source = list_imports(module).get(name)
    if hasattr(module, name) or source is None:
        return getattr(module, name, None)
    return getattr(importlib.import_module(source), name, None)


def find_class(typed: Typed) -> type[Any] | None:
    value = find_value(typed.node.id, typed.module) if isinstance(typed.node, ast.Name) else None
    return value if isinstance(value, type) else None


def find_member(owner: type[Any], name: str) -> Typed | None:
    """Return the type of an attribute of a class, or what its property or method returns."""
    for one in owner.__mro__:
        if annotation := inspect.get_annotations(one).get(name):
            return annotate(annotation, one.__module__)
        member = one.__dict__.get(name)
        if function := getattr(member, "fget", None) or getattr(member, "func", None) or member:
            return find_returned(function)
    return None


def find_returned(function: Any) -> Typed | None:
    annotation = getattr(function, "__annotations__", {}).get("return")
    return annotate(annotation, function.__module__) if annotation else None


def annotate(text: Any, module: str) -> Typed:
    return Typed(ast.parse(str(text), mode="eval").body, sys.modules[module])


def find_type(node: ast.expr, scope: Scope) -> Typed | None:
    """Return the type of an expression; None if no annotation states it."""
    match node:
        case ast.Name(id="self") if scope.owner is not None:
            return annotate(scope.owner.__name__, scope.owner.__module__)
        case ast.Name(id=name) if annotation := scope.parameters.get(name):
            return Typed(annotation, scope.module)
        case ast.Name(id=name):
            return next(filter(None, (find_type(one, scope) for one in scope.list_bound(name))), None)
        case ast.Call(func=ast.Name(id="make_table"), args=[_, row, *_]):
            return Typed(ast.Subscript(value=ast.Name(id="Table"), slice=row), scope.module)
        case ast.Call(func=ast.Name(id=name)):
            return find_returned(find_value(name, scope.module))
        case ast.Call(func=ast.Attribute(value=value, attr="with_rows")):
            return find_type(value, scope)
        case ast.Call(func=ast.Attribute() as member):
            return find_type(member, scope)
        case ast.Attribute(value=value, attr=name):
            owner = find_type(value, scope)
            kind = None if owner is None else find_class(owner)
            return None if kind is None else find_member(kind, name)
        case ast.Subscript(value=value):
            match find_type(value, scope):
                case Typed(node=ast.Subscript(slice=ast.Tuple(elts=[_, held])), module=module):
                    return Typed(held, module)
    return None


def list_rows(table: Typed | None) -> list[Any]:
    """Return the types that the rows of a table may have."""
    match table:
        case Typed(node=ast.BinOp(left=left, right=right), module=module):
            return [*list_rows(Typed(left, module)), *list_rows(Typed(right, module))]
        case Typed(node=ast.Subscript(slice=ast.Name() as row), module=module):
            return list(list_kinds(find_value(row.id, module)))
        case Typed(node=ast.Name() as alias, module=module):
            return list(list_kinds(find_value(alias.id, module)))
    return []


def list_kinds(value: Any) -> Iterator[Any]:
    """Yield the types of a union, and those of the rows of a table."""
    parts = getattr(value, "__args__", None)
    if parts is None:
        yield value
    else:
        for one in parts:
            yield from list_kinds(one)


def find_constant(node: ast.expr, scope: Scope) -> Any:
    """Return the value of a constant of this module or of an imported one; None for any other expression."""
    match node:
        case ast.Name(id=name) if name not in scope.parameters and not scope.list_bound(name):
            return find_value(name, scope.module)
        case ast.Attribute(value=ast.Name(id=name), attr=constant):
            module = find_value(name, scope.module)
            return getattr(module, constant) if isinstance(module, ModuleType) else None
    return None


def spell(node: ast.expr, scope: Scope) -> list[str]:
    """Return the texts that an expression may be, with what is not known in braces."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.Name(id=name) if bound := scope.list_bound(name):
            return [text for one in bound for text in spell(one, scope)]
        case ast.Name() | ast.Attribute():
            return list_texts(find_constant(node, scope))
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return spell(value, scope)
        case ast.ListComp(generators=[ast.comprehension(iter=value)]):
            return spell(value, scope)
        case ast.IfExp(body=body, orelse=other):
            return [*spell(body, scope), *spell(other, scope)]
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
            return [text for one in values for text in spell(one, scope)]
        case ast.BinOp(left=value, op=ast.Mult()):
            return spell(value, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in spell(left, scope) or ["{}"] for b in spell(right, scope) or ["{}"]]
        case ast.JoinedStr(values=values):
            texts = [""]
            for one in values:
                parts = spell(one.value if isinstance(one, ast.FormattedValue) else one, scope) or ["{}"]
                texts = [text + part for text in texts for part in parts]
            return texts
        case ast.GeneratorExp(elt=part):
            return spell(part, scope)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=between), attr="join"), args=args):
            if between == " " and isinstance(args[0], ast.Subscript):
                return [" ".join(list_texts(one)) for one in find_constant(args[0].value, scope).values()]
            return [text for one in args for text in spell(one, scope)]
        case ast.Call(func=function, args=args, keywords=keywords):
            is_method = isinstance(function, ast.Attribute) and function.attr in TEXT_METHODS
            source = function.value if is_method and isinstance(function, ast.Attribute) else function
            texts = spell(source, scope) or [text for one in args for text in spell(one, scope)]
            for keyword in keywords:
                slot = f"{{{keyword.arg}}}"
                parts = [part for part in spell(keyword.value, scope) if part] or [slot]
                texts = [text.replace(slot, part) for text in texts for part in parts]
            return texts
    return []


def list_texts(value: Any) -> list[str]:
    """Return the texts in a constant: a text, a template, or several of those."""
    if isinstance(value, Mapping | tuple):
        return [text for one in (value.values() if isinstance(value, Mapping) else value) for text in list_texts(one)]
    text = value.text if isinstance(value, Template) else value
    return [re.sub(r"[\[\]]", "", text)] if isinstance(text, str) else []


def list_attributes(kind: type[Any]) -> set[str]:
    return {*dir(kind), *(name for one in kind.__mro__ for name in inspect.get_annotations(one))}


def read_scopes(module: ModuleType) -> Iterator[Scope]:
    for node in read_tree(module).body:
        if isinstance(node, ast.FunctionDef):
            yield Scope(module, None, node)
        elif isinstance(node, ast.ClassDef):
            owner = getattr(module, node.name)
            yield from (Scope(module, owner, one) for one in node.body if isinstance(one, ast.FunctionDef))
