"""Versions of the conversion of a module to a workload: digests of the code that traces and fuses.

    recorder: all code that traces and fuses, and what it takes from `trace/formula` ─┐
    operators of a shipped workload ─► their formulas in `trace/formula` ─────────────┴─► version of the workload

A shipped workload therefore stays valid if a formula is added or changed that none of its operators has. The operators
of a model that is still to be traced are unknown, so its key contains all formulas. Changes of comments, docstrings,
layout and error messages do not change any version (`system/code.py`).

Workloads of an earlier version are not mistaken for current ones. `make zoo` traces shipped workloads again; until then
those of another version are not used, and a test fails.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from joulemap.system.resource import digest_code, list_code, remember

RULES: Final = ("trace", "physics/fuse", "physics/record/workload.py")
"""Packages and files that determine the content of a workload."""

FORMULA_CODE: Final = "trace/formula"
"""Package with the formulas of operators; the recorder's version contains the names that it imports from there."""

WORDS: Final = ("trace/failure.py", "trace/version.py")
"""Files of `RULES` that contain only error messages or file lists, and do not affect a version."""

CLOSED_FORMS: Final = ("domain/operator", "physics/record/workload.py", "trace/single")
"""Folders and files that determine the workload of a single operator, besides formulas."""

BUILDERS: Final = ("construct",)
"""Packages that determine the module and inputs of a model without a shipped workload."""

_PACKAGE: Final = "joulemap.trace.formula"


@cache
def recorder_version() -> str:
    """Return sixteen hexadecimal digits that identify the code that traces and fuses, without formulas of operators."""
    return remember("recorder", lambda: read_rules(*RULES, without=WORDS))


@cache
def tracer_version() -> str:
    """Return sixteen hexadecimal digits that identify the tracing code with all formulas.

    They are part of the key of a workload that is traced here.
    """
    return _join(recorder_version(), digest_code(FORMULA_CODE))


@cache
def builder_version() -> str:
    """Return sixteen hexadecimal digits that identify the tracing and model-building code with all formulas.

    They are part of the key of workloads of files, saved programs and models that wings build. The files of `WORDS`
    count here, because the inputs that a wing guesses may depend on hints in error messages.
    """
    return _join(tracer_version(), digest_code(*WORDS, *BUILDERS))


@cache
def operator_version() -> str:
    """Return sixteen hexadecimal digits that identify the code of single operators; they are part of their workloads'
    keys.
    """
    return closed_version()


def closed_version(*places: str) -> str:
    """Return sixteen hexadecimal digits that identify the code of workloads that are built of single operators.

    `places` are the further files and folders that build them.
    """

    def read() -> str:
        from joulemap.trace.single import COUNTED

        return _join(read_rules(*CLOSED_FORMS, *places), digest_formulas(f"aten.{name}" for name in COUNTED))

    return remember(" ".join(("closed forms", *places)), read)


def read_rules(*places: str, without: Iterable[str] = ()) -> str:
    """Return a digest of the code of files and folders, without the package of formulas but with what they import from
    it.
    """
    from joulemap.system.code import normalize_node
    from joulemap.system.definition import find_mentions, write_definitions

    left_out = {*without, *list_code(FORMULA_CODE)}
    files = {name: path for place in places for name, path in list_code(place).items() if name not in left_out}
    code, taken = [], []
    for name, path in files.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        code.append(f"{name}\n{normalize_node(tree)}")
        if _PACKAGE in text:
            taken += find_mentions(tree, _PACKAGE)
    return _join(*code, write_definitions(taken, _PACKAGE, "formula"))


def workload_version(operators: Iterable[str]) -> str:
    """Return the version of a shipped workload with these operators, such as `aten.conv2d`.

    It consists of the recorder's version and a digest of the operators' formulas.
    """
    return f"{recorder_version()}-{digest_formulas(operators)}"


def digest_formulas(operators: Iterable[str]) -> str:
    """Return sixteen hexadecimal digits that identify the formulas of operators, such as `aten.conv2d`."""
    return _join(*(f"{name} {_digest_formula(name)}" for name in sorted(set(operators))))


@cache
def _digest_formula(operator: str) -> str:
    """Return the digest of an operator's formula with all code and values that it uses; empty without a formula.

    A formula that is registered later therefore changes the version of workloads in which the operator was uncounted.
    """
    from joulemap.trace.formula.registry import find_formula

    formula = find_formula(operator.partition(".")[2], operator)
    return "" if formula is None else _join(_write(formula))


def _write(value: object) -> str:
    """Return the normal form of a formula: its code, defaults, and the values that it was made with."""
    from fractions import Fraction
    from types import FunctionType

    from joulemap.system.definition import write_definitions

    if isinstance(value, FunctionType):
        code = write_definitions([(value.__module__, value.__qualname__.partition(".")[0])], _PACKAGE, "formula")
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{code}\n{_write((value.__defaults__, value.__kwdefaults__, cells))}"
    if isinstance(value, tuple | list):
        return f"({' '.join(map(_write, value))})"
    if isinstance(value, Mapping):
        return f"{{{' '.join(f'{_write(name)}: {_write(one)}' for name, one in value.items())}}}"
    if isinstance(value, set | frozenset):
        return f"{{{' '.join(sorted(map(_write, value)))}}}"
    if value is None or isinstance(value, str | int | float | Fraction):
        return repr(value)
    raise TypeError(
        f"a formula is made with {value!r}, of which no digest is taken: expected numbers, texts or functions"
    )


def _join(*parts: str) -> str:
    """Return sixteen hexadecimal digits of a SHA-256 over the parts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
