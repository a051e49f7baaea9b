"""Expressions of family files: sizes of a block from the keys of a configuration.

    need(hidden_size, n_embd)               count, at least 1, under the first key that exists; an error if none does
    first(num_key_value_heads, 0)           count, at least 0, under the first key that exists; else the last argument
    flag(attention_bias, true)              true or false
    share(partial_rotary_factor, 0.5)       number from 0 to 1
    text(hidden_act)                        text; empty if the key has none
    listed(layer_types)                     list, or a text such as `3,4,5`; empty if the key has none
    expanded(attention_types)               list of (names, repetitions), with the names repeated
    has(kv_lora_rank)                       true if the key exists
    unknown(layer_types)                    an error that names the key and its value
    len, int, min, max, str                 as in Python, for any values

Only the functions above the last line take keys of the configuration, with a dot for nested ones. Other names are
values of `[let]`, tables of the family, `true`, `false`, `none`, and `i`, the index of the layer. Operators are + - *
// %, comparisons, `in`, `and`, `or`, `not`, `a if b else c`, indexing and list brackets.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from joulemap.system import ModelError
from joulemap.wing.hub import read_whole

INDEX: Final = "i"
"""Name of the layer index in expressions."""

CONSTANTS: Final[Mapping[str, Any]] = {"none": None, "true": True, "false": False}

KEYED: Final = ("need", "first", "flag", "share", "text", "listed", "has", "unknown", "expanded")
"""Functions whose arguments are keys of the configuration, the last one optionally a default."""

MOST: Final = 2**60
"""Maximum absolute result of arithmetic."""

_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: Final[Mapping[type, Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {"len": len, "int": int, "min": min, "max": max, "str": str}


class ExpressionError(ValueError):
    """Expression with a name, function or operator that family files do not have."""


@lru_cache(maxsize=2048)
def parse(text: str) -> ast.expr:
    """Return the tree of an expression; ExpressionError if it is invalid."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression") from error


def _split(value: Any) -> Any:
    """Return a text such as `3,4,5` as numbers, and any other value itself."""
    parts = value.replace(" ", "").split(",") if isinstance(value, str) else ()
    return tuple(map(int, parts)) if parts and all(part.isdecimal() for part in parts) else value


class Configuration:
    """Configuration of a model, whose values are checked when they are read."""

    def __init__(self, model: str, values: Mapping[str, Any]) -> None:
        """Keep `values`, the keys of the configuration; errors name `model`."""
        self.model, self.values = model, values
        self.read: set[str] = set()
        """Keys that were requested so far."""

    def value(self, key: str) -> Any:
        """Return the value of a key, with dots for nested objects; None if it is absent."""
        outer, _, inner = key.partition(".")
        self.read.add(outer)
        entry = self.values.get(outer)
        return entry.get(inner) if inner and isinstance(entry, Mapping) else None if inner else entry

    def _find(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """Return the first key that exists and its value; an empty key if none does."""
        for key in keys:
            value = self.value(key)
            if value is not None:
                self.read.update(other.partition(".")[0] for other in keys)
                return key, value
        return "", None

    def need(self, *keys: str, default: Any = None) -> Any:
        """Return the count under the first of `keys` that exists, at least 1; else the default, or ModelError without
        one.
        """
        key, value = self._find(keys)
        if key:
            return read_whole(key, value, self.model, 1)
        if default is None:
            raise ModelError(f"{self.model}: the configuration has no {' or '.join(keys)}")
        return default

    def first(self, *keys: str, default: Any = None) -> Any:
        """Return the count under the first of `keys` that exists, else the default."""
        key, value = self._find(keys)
        return read_whole(key, value, self.model) if key else default

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Return the flag under the first key that exists, else the default; ModelError if it is not a boolean."""
        key, value = self._find(keys)
        if value not in (None, False, True):
            raise ModelError(f"{self.model}: {key} is {str(value)[:60]!r}, expected true or false")
        return default if value is None else bool(value)

    def share(self, *keys: str, default: float = 1.0) -> float:
        """Return the number under the first key that exists, else the default; ModelError unless it is from 0 to 1."""
        key, value = self._find(keys)
        share = value if key else default
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
            raise ModelError(f"{self.model}: {key} is {str(share)[:60]!r}, expected a number from 0 to 1")
        return share

    def text(self, *keys: str, default: str = "") -> str:
        """Return the first value of `keys` that is a text, else the default."""
        values = (self.value(key) for key in keys)
        return next((one for one in values if isinstance(one, str)), default)

    def listed(self, *keys: str, default: Any = ()) -> tuple[Any, ...]:
        """Return the first value of `keys` that is a list, or a text of whole numbers with commas; else the default."""
        values = (_split(self.value(key)) for key in keys)
        return tuple(next((one for one in values if isinstance(one, list | tuple)), default))

    def has(self, *keys: str) -> bool:
        """Return whether one of these keys exists."""
        return bool(self._find(keys)[0])

    def unknown(self, *keys: str) -> Any:
        """Raise ModelError, which says that the value of a key names no known block."""
        key, value = self._find(keys)
        raise ModelError(f"{self.model}: {key or keys[0]} is {str(value)[:60]!r}, which names no known block")

    def expanded(self, *keys: str) -> tuple[Any, ...]:
        """Return the names in a list of (names, repetitions), each group repeated that often."""
        return tuple(one for names, count in self.listed(*keys) for one in list(names) * int(count))


class Evaluator:
    """Evaluation of expressions over one configuration, with the named values of a family."""

    def __init__(self, configuration: Configuration, let: Mapping[str, Any], find: Callable[[str, int], Any]) -> None:
        """Keep the named values `let`, and `find`, which returns the value of any other name at a layer or raises
        ExpressionError.
        """
        self.configuration, self._let, self._find = configuration, let, find
        self._known: dict[str, Any] = {}
        self._reads_index = False
        """True if the expression at hand has read the index of its layer so far."""
        self._open: list[str] = []

    def run(self, text: str, index: int) -> Any:
        """Return the value of an expression at a layer; one that does not read the index is evaluated once."""
        if text in self._known:
            return self._known[text]
        before, self._reads_index = self._reads_index, False
        value = self._run(parse(text), index)
        if not self._reads_index:
            self._known[text] = value
        self._reads_index |= before
        return value

    def name(self, name: str, index: int) -> Any:
        """Return the value of a name that the family defines."""
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in self._let:
            return self._find(name, index)
        if name in self._open:
            raise ExpressionError(f"{name} is defined by itself")
        self._open.append(name)
        value = self._let[name]
        result = self.run(value, index) if isinstance(value, str) else value
        self._open.pop()
        return result

    def _run(self, node: ast.expr, index: int) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            self._reads_index |= node.id == INDEX
            return index if node.id == INDEX else self.name(node.id, index)
        if isinstance(node, ast.BoolOp):
            return self._decide(node, index)
        if isinstance(node, ast.IfExp):
            return self._run(node.body if self._run(node.test, index) else node.orelse, index)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            operand = self._run(node.operand, index)
            return not operand if isinstance(node.op, ast.Not) else -operand
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self._multiply(node, index)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            one, other = self._run(node.left, index), self._run(node.comparators[0], index)
            return _COMPARED[type(node.ops[0])](one, other)
        if isinstance(node, ast.Subscript):
            return self._run(node.value, index)[self._run(node.slice, index)]
        if isinstance(node, ast.List):
            return [self._run(one, index) for one in node.elts]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, node.args, index)
        raise ExpressionError(f"{ast.unparse(node)!r} is not part of family files")

    def _decide(self, node: ast.BoolOp, index: int) -> Any:
        is_or, result = isinstance(node.op, ast.Or), None
        for one in node.values:
            result = self._run(one, index)
            if bool(result) == is_or:
                break
        return result

    def _multiply(self, node: ast.BinOp, index: int) -> Any:
        one, other = self._run(node.left, index), self._run(node.right, index)
        if not all(isinstance(value, int | float) for value in (one, other)):
            raise ExpressionError(f"{ast.unparse(node)!r} is not a product of numbers")
        product = _BINARY[type(node.op)](one, other)
        if abs(product) > MOST:
            raise ExpressionError(f"{ast.unparse(node)!r} is too large")
        return product

    def _call(self, name: str, arguments: list[ast.expr], index: int) -> Any:
        if name in _PLAIN:
            return _PLAIN[name](*(self._run(one, index) for one in arguments))
        if name not in KEYED:
            raise ExpressionError(f"{name} is not a function of family files")
        keys, default = [], dict[str, Any]()
        for position, one in enumerate(arguments):
            key = self._read_key(one)
            if key:
                keys.append(key)
            elif position == len(arguments) - 1:
                default["default"] = self._run(one, index) if not self._has_any(name, keys) else None
            else:
                raise ExpressionError(f"{ast.unparse(one)!r} is not a key of a configuration")
        return getattr(self.configuration, name)(*keys, **default)

    def _has_any(self, function: str, keys: list[str]) -> bool:
        """Return True if one of the keys exists, so that the default of `need` or `first` is not evaluated.

        The default may refer to missing keys.
        """
        return function in ("need", "first") and any(self.configuration.value(key) is not None for key in keys)

    def _read_key(self, node: ast.expr) -> str:
        """Return the key that an argument names; empty for an expression."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return f"{node.value.id}.{node.attr}"
        if not isinstance(node, ast.Name) or node.id in CONSTANTS or node.id == INDEX or node.id in self._let:
            return ""
        return node.id
