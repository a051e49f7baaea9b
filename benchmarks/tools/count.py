"""Formulas of each class's action counts, read from the code that counts them.

The value of an entry of `ActionCounts` is the formula of the action in its key. Records, coefficients and functions of
numpy become the symbols of `joulemap.physics`. A variable that equals a single symbol becomes that symbol; other
variables are explained next to the formulas.
"""

from __future__ import annotations

import ast
import copy
import fnmatch
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.physics.record.configuration import PRECISION_BYTES

SYMBOLS: Final = {
    "mac_count": "MACs",
    "elementwise_count": "EW",
    "special_count": "SF",
    "output_element_count": "O",
    "tap_count": "taps",
    "gemm_m": "M",
    "gemm_n": "N",
    "gemm_k": "K",
    "gemm_groups": "G",
    "input_bytes": "in",
    "weight_bytes": "w",
    "output_bytes": "out",
    "entering_bytes": "model inputs",
    "leaving_bytes": "model outputs",
    "outside_read_share": "share",
    "dram_read_bytes": "DRAM read",
    "dram_write_bytes": "DRAM write",
    "host_launch_count": "launches by the host",
    "start_count": "1 per kernel",
    "has_macs": "with MACs",
    "is_gemm": "a GEMM",
    "tile_count": "tiles",
    "wave_count": "waves",
    "units_total": "U",
    "units_used": "units used",
    "macs_per_s": "MACs per second",
    "issue_hz": "clocks of all units per second",
    "issue_share": "instructions of a unit in a clock / 128",
}
"""Field of a record -> symbol; any other field keeps its name."""

PLAIN: Final = {"instruction_bytes": "W"}
"""Field of any other record -> symbol."""

RECORDS: Final = frozenset({"work", "kernels", "placement", "engine", "device"})
"""Variable names of the records whose fields become symbols."""

ENTRY: Final = re.compile(
    r'(component = "(\w+)"\naction = "(\w+)"\n(?:(?!count|\[\[).*\n)*)count = "[^"\n]*"',
)
"""Pattern of an action in a class's file, up to its count."""

Counts = dict[tuple[str, str], str]


@cache
def read_counts(architecture: str) -> tuple[Counts, dict[str, str]]:
    """Return (component, action) -> formula of a class, and name -> formula of its intermediate values.

    A part of a key that depends on the precision or a level is written as `*`.
    """
    module = import_module(f"joulemap.physics.architecture.{architecture}")
    tree = ast.parse(inspect.getsource(module))
    numbers: dict[str, ast.expr] = {
        name: _number(value) for name, value in vars(module).items() if isinstance(value, int | float)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and any(_entries(node))]
    functions.sort(key=lambda function: function.name != "count")
    counts: dict[tuple[str, str], list[str]] = {}
    made: dict[str, str] = {}
    outer = _Symbols(numbers)
    for function in functions:
        spelled = _Symbols(numbers | _given(function, functions[0], outer))
        made |= _make(function, spelled)
        if function is functions[0]:
            outer = spelled
        for key, value in _entries(function):
            formula = _write(spelled.visit(copy.deepcopy(value)))
            if formula not in counts.setdefault(key, []):
                counts[key].append(formula)
    formulas = {key: " or ".join(alternatives) for key, alternatives in counts.items()}
    return formulas, _needed(formulas, made)


def _given(function: ast.FunctionDef, caller: ast.FunctionDef, outer: _Symbols) -> dict[str, ast.expr]:
    """Return the arguments that the caller passes for the parameters of a function, except records."""
    names = [one.arg for one in function.args.args if one.arg != "self"]
    for node in ast.walk(caller):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == function.name:
            given = [outer.visit(copy.deepcopy(one)) for one in node.args]
            return {name: value for name, value in zip(names, given, strict=True) if not _is_record(value)}
    return {}


def _make(function: ast.FunctionDef, spelled: _Symbols) -> dict[str, str]:
    """Return name -> formula of a function's intermediate values; single symbols are added to `spelled.known`."""
    assigned = list(_assignments(function))
    names = [name for name, _ in assigned]
    made: dict[str, ast.expr] = {}
    for name, value in assigned:
        if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(value)) and name in made:
            spelled.known[name] = made[name]
        simple = spelled.visit(copy.deepcopy(value))
        spelled.known.pop(name, None)
        if isinstance(simple, ast.Name | ast.Constant) and names.count(name) == 1:
            spelled.known[name] = simple
        elif name in made and name not in ast.unparse(value).split():
            made[name] = ast.BoolOp(ast.Or(), [made[name], simple])
        else:
            made[name] = simple
    written = {name: _write(value) for name, value in made.items()}
    return {name: formula for name, formula in written.items() if formula != f"{name}()"}


def find_formula(architecture: str, component: str, action: str) -> str:
    """Return the formula of an action; KeyError if the class does not count it."""
    counts, _ = read_counts(architecture)
    counted = counts.get((component, action)) or next(
        (
            formula
            for (one, other), formula in counts.items()
            if fnmatch.fnmatch(component, one) and fnmatch.fnmatch(action, other)
        ),
        None,
    )
    if counted is None:
        raise KeyError(f"{architecture} never counts {component}.{action}")
    return counted


def write_counts() -> None:
    """Write the formulas into the data files of the classes."""
    for path in sorted((DATA / "architecture").glob("*.toml")):
        parts = ENTRY.split(path.read_text(encoding="utf-8"))
        for index in range(1, len(parts), 4):  # head, component, action, text before the next entry
            head, component, action = parts[index : index + 3]
            parts[index : index + 3] = head, f'count = "{describe_formula(path.stem, component, action)}"', ""
        path.write_text("".join(parts), encoding="utf-8")


def describe_formula(architecture: str, component: str, action: str) -> str:
    """Return the formula of an action, with its definition if it is a single name."""
    formula = find_formula(architecture, component, action)
    made = read_counts(architecture)[1].get(formula)
    return f"{formula} = {made}" if made else formula


def _needed(formulas: Counts, made: dict[str, str]) -> dict[str, str]:
    """Return the intermediate values that the formulas use, directly or through others, in the order of the code."""
    needed: set[str] = set()
    waiting = list(formulas.values())
    while waiting:
        text = waiting.pop()
        for name in made.keys() - needed:
            if name in text.replace("(", " ").replace(")", " ").replace(",", " ").split():
                needed.add(name)
                waiting.append(made[name])
    return {name: formula for name, formula in made.items() if name in needed}


def _entries(function: ast.FunctionDef) -> Iterator[tuple[tuple[str, str], ast.expr]]:
    """Yield ((component, action), value) of each count in a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Tuple) and len(key.elts) == 2:
                    yield (_pattern(key.elts[0]), _pattern(key.elts[1])), value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0].slice
            if isinstance(target, ast.Tuple) and len(target.elts) == 2:
                yield (_pattern(target.elts[0]), _pattern(target.elts[1])), node.value


def _pattern(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    if isinstance(part, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "*" for one in part.values)
    return "*_mac" if "mac" in ast.unparse(part).lower() else "*"


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            targets = node.targets[0].elts
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(targets)
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value


class _Symbols(ast.NodeTransformer):
    """Rewriter of the code of action counts as formulas."""

    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = dict(known)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return _number(node.value) if isinstance(node.value, float) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operator = ast.Not() if isinstance(node.op, ast.Invert) else node.op
        return ast.UnaryOp(operator, self.visit(node.operand))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "value":
            return self._read(node.value)
        if ast.unparse(node.value).split(".")[-1] in RECORDS:
            return _named(SYMBOLS.get(node.attr, node.attr))
        inner = self.visit(node.value)
        if node.attr in PLAIN:
            return _named(PLAIN[node.attr])
        return ast.Attribute(inner, node.attr, ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        base = ast.unparse(node.value).split(".")[-1]
        if base == "geometry":
            parts = node.slice.values if isinstance(node.slice, ast.JoinedStr) else [node.slice]
            return _named("".join(str(one.value) if isinstance(one, ast.Constant) else "PRECISION" for one in parts))
        if base == "PRECISION_BYTES":
            written = node.slice
            return _number(PRECISION_BYTES[str(written.value)]) if isinstance(written, ast.Constant) else _named("p")
        return self._read(node.value)

    def _read(self, node: ast.expr) -> ast.expr:
        expression: ast.expr = self.visit(node)
        return expression

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = ast.unparse(node.func).split(".")[-1]
        if name == "coefficient":
            return _named(".".join(str(one.value) for one in node.args[:2] if isinstance(one, ast.Constant)))
        if name == "of_kind":
            kinds = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
            return _named(kinds[0]) if len(kinds) == 1 else _named(f"one of {', '.join(kinds)}")
        if name == "any":
            names = [str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)]
            return _named(f"the chip has {names[0] if names else 'one'}")
        arguments = [self.visit(one) for one in node.args]
        if name == "where":
            return ast.IfExp(*arguments)
        if name == "ceil_divide":
            return ast.Call(_named("ceil"), [ast.BinOp(arguments[0], ast.Div(), arguments[1])], [])
        if name == "at_leader":
            return ast.Call(_named("of the leader"), arguments, [])
        if name in ("zeros", "zeros_like"):
            return ast.Constant(0)
        shorter = {"maximum": "max", "minimum": "min"}.get(name, name.lstrip("_"))
        return ast.Call(_named(shorter), [one for one in arguments if not _is_record(one)], [])


def _is_record(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {*RECORDS, "hardware", "precision", "self"}


def _named(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _number(value: float) -> ast.Constant:
    return ast.Constant(int(value) if float(value).is_integer() else value)


def _write(node: ast.expr) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    return (
        text.replace(" * ", " · ")
        .replace("of the leader(1)", "1 per kernel")
        .replace("following is None", "last level")
    )
