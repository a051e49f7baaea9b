"""Cause of a failed forward pass, in one line with a remedy.

This file contains only error texts, so the version of traces excludes it (`trace/version.py`).
"""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import torch

from joulemap.trace.cause import SIZES, text_of
from joulemap.trace.guest import describe_place, first_line
from joulemap.trace.limit import describe_limit

if TYPE_CHECKING:
    from joulemap.trace.tape import Tape


def explain(error: BaseException, recorder: Tape) -> str:
    """Return one line with the cause of an error, the last module called, and the line of the user's code."""
    where = recorder.calls[-1].module_path if recorder.calls else ""
    return _reason(error) + (f" (after {where})" if where else "") + describe_place(error)


def _reason(error: BaseException) -> str:
    limit = describe_limit(error)
    if limit:
        return limit + _installed_place(error)
    kernel = _triton_kernel(error)
    if kernel:
        return (
            f"it starts {kernel}, a Triton kernel, which runs compiled on a GPU alone: give its module a way in "
            "torch's operators, or make it one of its own (torch.library.triton_op), which joulemap.formula counts"
        )
    text = text_of(error)
    for pattern, explain_match in _REASONS:
        found = pattern.search(text)
        if found is not None:
            return explain_match(found)
    reason = first_line(error)
    if isinstance(error, AssertionError):
        return _describe_assertion(error, reason)
    if "meta" in reason and ("item" in reason or "data-dependent" in reason or "nonzero" in reason):
        return f"control flow depends on data ({reason})"
    return reason + next((note for note in getattr(error, "__notes__", ()) if note.startswith(SIZES)), "")


def _triton_kernel(error: BaseException) -> str:
    """Return the name of the Triton kernel that raised an error; empty if none did."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").startswith("triton."):
            kernel = frame.f_locals.get("self")
            name = getattr(kernel, "__name__", "") or getattr(getattr(kernel, "fn", None), "__name__", "")
            if name:
                return str(name)
    return ""


def _installed_place(error: BaseException) -> str:
    """Return the last line of a model's code in an error's traceback, if the line is in an installed package."""
    if describe_place(error):
        return ""
    ours = (torch.__path__[0], __file__.rpartition("/")[0])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(ours) and frame.filename.endswith(".py"):
            return f"; {frame.filename.rpartition('/')[2]}, line {frame.lineno}"
    return ""


def _describe_assertion(error: BaseException, reason: str) -> str:
    """Return the message of a failed assertion, or its source line if it has no message."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    if reason == "AssertionError" and line.startswith("assert"):
        return f"its own check does not hold: {line}"
    return reason


def _describe_missing(name: str) -> str:
    namespace, _, operator = name.partition("::")
    if namespace == "aten":
        shown = operator.split(".")[0].strip("_")
        if "nested" in shown:
            return _NESTED
        return f"{name} gives a result whose shape depends on data: leave it out of the forward pass"
    if namespace == "quantized":
        return (
            f"{name} has no rule for shapes: trace the float model, with --precision int8 for what its quantized form "
            "costs"
        )
    return (
        f"the operator {name} has no rule for shapes without data: register one with "
        f'torch.library.register_fake("{name}"), which returns an empty tensor of its output\'s shape'
    )


_NESTED: Final = (
    "it makes a nested tensor: only dense and jagged ones are counted; pad it, or give "
    "torch.nested.nested_tensor(..., layout=torch.jagged)"
)

_REASONS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern), explain_match)
    for pattern, explain_match in (
        (r"NestedTensorImpl", lambda _: _NESTED),
        (
            r"Sparse\w*TensorImpl|sparse (?:COO |CSR )?tensors?.*(?:meta|storage)|values \(meta\) must match",
            lambda _: "it uses a sparse tensor: only dense tensors are counted, as x.to_dense() makes them",
        ),
        (
            r"(\w+::\w+)(?:\.\w+)?: attempted to run this operator with Meta tensors",
            lambda found: _describe_missing(found[1]),
        ),
        (r"(\w+::\w+)(?:\.\w+)?: We could not find the fake impl", lambda found: _describe_missing(found[1])),
        (r"no fake impl registered for <CustomOpDef\((\w+::\w+)\)>", lambda found: _describe_missing(found[1])),
        (
            r"Could not run '(\w+::\w+)\S*' with arguments from the 'Meta' backend",
            lambda found: _describe_missing(found[1]),
        ),
        (
            r"NVIDIA driver|CUDA driver|CUDA error|not compiled with CUDA",
            lambda _: (
                "it asks for a CUDA device of this machine: streams, events and memory of a GPU are not part of a "
                "trace, leave them out of the forward pass"
            ),
        ),
        (
            r"no data!|Not available for 'meta' device type|data pointer",
            lambda _: "it reads the memory of a tensor, and a trace has shapes alone: compute with torch's operators",
        ),
    )
)
"""(pattern of a torch error message, function that explains a match for a traced model)."""
