"""User-defined formulas for custom operators.

    @joulemap.formula("mylib::attend")
    def attend(call):
        rows, width = call.shape(0)
        return joulemap.OperatorCost(mac_count=2 * rows * rows * width, special_count=rows * rows)

A formula that a program registers applies from then on. One that a model's file registers, or a file that it imports,
applies to that model alone. Imports no torch.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.physics.record.kind import KINDS
from joulemap.system.errors import ModelError, UsageError
from joulemap.trace.formula.registry import Call, Cost, find_formula

if TYPE_CHECKING:
    from types import CodeType


PRODUCTS: Final = ("linear", "matmul", "conv", "grouped_conv", "depthwise_conv")
"""Kinds of operators that have MACs."""

COUNTED: Final = tuple(kind for kind in KINDS if kind not in ("view", "uncounted"))

_NAME: Final = re.compile(r"\w+::\w+")


@attrs.frozen
class OperatorCall(Call):
    """Call of an operator, with its arguments by position or name and its output tensors."""


def _whole(_record: OperatorCost, field: attrs.Attribute[int], value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{field.name} is {value!r}, expected a whole number of at least 0")


def _known(_record: OperatorCost, _field: attrs.Attribute[str], value: str) -> None:
    if value and value not in COUNTED:
        raise UsageError(f"kind is {value!r}; known: {', '.join(COUNTED)}")


def _sizes(record: OperatorCost, _field: attrs.Attribute[tuple[int, ...]], value: tuple[int, ...]) -> None:
    if value and (len(value) != 4 or math.prod(value) != record.mac_count):
        raise UsageError(f"gemm is {value!r}, expected (M, N, K, groups) whose product is the {record.mac_count} MACs")


@attrs.frozen(kw_only=True)
class OperatorCost:
    """Operation counts of one call of an operator, for the whole batch."""

    mac_count: int = attrs.field(default=0, validator=_whole)
    """Multiply-accumulate operations."""
    elementwise_count: int = attrs.field(default=0, validator=_whole)
    """Additions, multiplications and comparisons outside MACs."""
    special_count: int = attrs.field(default=0, validator=_whole)
    """Exponentials, roots, divisions and similar functions."""
    kind: str = attrs.field(default="", validator=_known)
    """Kind of operation, one of `operators.kind`. Empty means matmul for an operator with MACs, else elementwise."""
    gemm: tuple[int, ...] = attrs.field(default=(), validator=_sizes)
    """(M, N, K, groups) of the operator's GEMM.

    If empty, N is the last size of the output and K the MACs per output element.
    """


OwnFormula = Callable[[OperatorCall], OperatorCost]

_programs: Final[dict[str, OwnFormula]] = {}
_files: Final[dict[str, OwnFormula]] = {}
_scopes: Final[list[dict[str, OwnFormula]]] = [_programs]
_asked: Final[list[set[str]]] = []


def formula(*names: str) -> Callable[[OwnFormula], OwnFormula]:
    """Register the formula of the operators with these names, each `namespace::operator`; the last registration
    applies.

    The formula gets each traced call, of any overload, and returns its cost. Raises UsageError for a name in another
    form.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"the operator is called {name!r}, expected namespace::operator, such as mylib::attend")

    def register(function: OwnFormula) -> OwnFormula:
        _scopes[-1].update(dict.fromkeys(names, function))
        return function

    return register


@contextlib.contextmanager
def own_formulas() -> Iterator[None]:
    """Drop the formulas registered in this context when it ends."""
    _scopes.append(_files)
    try:
        yield
    finally:
        _scopes.pop()
        _files.clear()


def digest_own() -> str:
    """Return eight hexadecimal digits that identify the formulas registered by this program; empty without any."""
    if not _programs:
        return ""
    digest = hashlib.sha256()
    for name, function in sorted(_programs.items()):
        code: CodeType | None = getattr(function, "__code__", None)
        digest.update(name.encode() + (marshal.dumps(code) if code is not None else repr(function).encode()))
    return digest.hexdigest()[:8]


def count_own(call: Call) -> Cost | None:
    """Return the cost of a call by the user's formula, or None without one. Raise ModelError if the formula returns no
    cost.
    """
    name = "::".join(call.aten.split(".")[:2])
    function = _files.get(name) or _programs.get(name)
    if function is None:
        return None
    operation = name.rpartition("::")[2]
    cost = function(OperatorCall(call.args, call.kwargs, call.outputs, call.aten))
    if not isinstance(cost, OperatorCost):
        raise ModelError(f"the formula of {name} gives a {type(cost).__name__}, expected a joulemap.OperatorCost")
    kind = cost.kind or ("matmul" if cost.mac_count else "elementwise")
    if cost.mac_count and kind not in PRODUCTS:
        raise ModelError(f"the formula of {name} gives MACs and the kind {kind}, expected one of {', '.join(PRODUCTS)}")
    return Cost(
        kind=kind,
        operation=operation,
        mac_count=cost.mac_count,
        elementwise_count=cost.elementwise_count,
        special_count=cost.special_count,
        gemm=_four(cost.gemm) if cost.gemm else _product(call, cost.mac_count),
    )


def _four(sizes: tuple[int, ...]) -> tuple[int, int, int, int]:
    m, n, k, groups = sizes
    return m, n, k, groups


def _product(call: Call, macs: int) -> tuple[int, int, int, int]:
    """Return (M, N, K, groups) of a GEMM with these MACs and the shape of the output.

    K is the MACs per output element. If that is no integer, the result is (1, 1, MACs, 1).
    """
    if not macs:
        return (0, 0, 0, 0)
    shape = call.output_shape or (1,)
    outputs = max(math.prod(shape), 1)
    columns = shape[-1] or 1
    return (outputs // columns, columns, macs // outputs, 1) if macs % outputs == 0 else (1, 1, macs, 1)


COMPLEX_MACS: Final = 4
"""Real MACs per complex MAC: (a + b i) (c + d i) + (e + f i) has four real products."""

COMPLEX_OPERATIONS: Final = {"mul": 6, "div": 11}
"""Elementwise operator -> real operations per complex operation; all other operators take two, one for each part.

Derived: a product takes four products and two sums; a quotient also takes a squared norm (three) and two divisions.
"""


@contextlib.contextmanager
def noting_formulas() -> Iterator[set[str]]:
    """Yield a set to which this context adds each operator whose cost is asked for, such as `aten.conv2d`.

    These include operators that a workload does not contain, as in the branch of a condition that was not taken.
    """
    asked: set[str] = set()
    _asked.append(asked)
    try:
        yield asked
    finally:
        _asked.remove(asked)


def count(name: str, call: Call) -> Cost:
    """Return the cost of a call of the operator `name`; its kind is `uncounted` if no formula is registered.

    An in-place operator (`floor_`) costs as much as its out-of-place form.
    """
    for asked in _asked:
        asked.add(f"{call.aten.partition('.')[0]}.{name}")
    own = count_own(call)
    if own is not None:
        return own
    registered = find_formula(name, call.aten)
    if registered is None:
        return Cost(kind="uncounted", operation=name.strip("_"))
    cost = registered(call)
    return _count_complex(name, cost) if cost.operation != "fft" and _is_complex(call) else cost


def _is_complex(call: Call) -> bool:
    """Return whether a tensor argument contains complex numbers."""
    return any(getattr(getattr(one, "dtype", None), "is_complex", False) for one in call.args)


def _count_complex(name: str, cost: Cost) -> Cost:
    """Return the cost of an operator on complex numbers, in real operations.

    A complex GEMM of M x K by K x N is a real one of M x 2 K by 2 K x 2 N.
    """
    each = COMPLEX_OPERATIONS.get(name.strip("_"), 2)
    gemm = cost.gemm and (cost.gemm[0], 2 * cost.gemm[1], 2 * cost.gemm[2], cost.gemm[3])
    return attrs.evolve(
        cost,
        mac_count=COMPLEX_MACS * cost.mac_count,
        elementwise_count=each * cost.elementwise_count,
        special_count=2 * cost.special_count,
        gemm=gemm,
    )
