"""Findings of a trace: values that Python reads from data, with their place in the model's code, and modules that never
ran.

    if x.item() > 0.9: break        read, net.py:12        layers.4 … layers.11 never ran
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from joulemap.physics.record.workload import IDLE, READ, READS_DATA, SIZED, Finding
from joulemap.trace.host import is_ours

if TYPE_CHECKING:
    import torch

READS: Final = {
    "_local_scalar_dense": "item", "equal": "equal", "allclose": "allclose", "tolist": "tolist", "numpy": "numpy",
    "format": "format", "_nested_tensor_from_mask_left_aligned": "is_left_aligned",
}  # fmt: skip
"""Operator or method that gives Python values of a tensor -> its name in a model's code."""

SIZES: Final = frozenset(
    {"nonzero", "masked_select", "nms", "_unique2", "unique_consecutive", "unique_dim", "repeat_interleave", "index"}
)
"""Operators whose result has a size that depends on data."""

CALLER: Final = "joulemap.trace.module"
"""Module of this package that calls the model."""

SHOWN: Final = 4
"""Maximum names of modules in a note."""


def find_frame() -> FrameType | None:
    """Return the innermost frame that runs the model's code; None if only torch and this package are running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def find_model_frame() -> FrameType | None:
    """Return the innermost frame of the model's code, as `find_frame`; None also if only the tracing program is left.

    Models of torch's own libraries have no code of their own; the frames around the trace are not the model's.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        if frame.f_globals.get("__name__") == CALLER:
            return None
        frame = frame.f_back
    return frame


def find_read(name: str, path: str, given: Any, frame: FrameType | None) -> Finding | None:
    """Return the finding on an assumption about operator `name` in module `path`; None if Python learns nothing."""
    kind = READ if name in READS else SIZED if name in SIZES else ""
    if not kind:
        return None
    return Finding(
        kind=kind,
        module_path=path,
        operator=READS.get(name, name),
        file=os.path.basename(frame.f_code.co_filename) if frame is not None else "",
        line=frame.f_lineno if frame is not None else 0,
        assumed=repr(given) if isinstance(given, (bool, int, float)) else "",
    )


def place_of(finding: Finding) -> tuple[object, ...]:
    """Return what makes a finding new: its place in the code, not the module that runs this code."""
    return finding.kind, finding.operator, finding.file, finding.line, finding.assumed


def find_idle(module: torch.nn.Module, ran: Collection[str], read: Iterable[str]) -> Iterator[Finding]:
    """Yield the modules with weights that were neither called nor read, without parts of such modules.

    `ran` has the names of the modules that were called, `read` the names of the weights that an operator read.
    """
    used = {name.rpartition(".")[0] for name in read} | {*ran}
    holders = {name.rpartition(".")[0] for name, _ in module.named_parameters()}
    reached = {name[:end] for name in used & holders for end in _ends(name)} | {""}
    idle: set[str] = set()
    for name in sorted(holders - used):
        top = next((name[:end] for end in _ends(name) if name[:end] not in reached), name)
        if top not in idle:
            idle.add(top)
    for name, _ in module.named_modules():
        if name in idle:
            yield Finding(kind=IDLE, module_path=name)


def _ends(name: str) -> Iterator[int]:
    """Yield the length of each prefix of a module's path, from its outermost parent to the path itself."""
    yield from (index for index, letter in enumerate(name) if letter == ".")
    yield len(name)


def note_idle(findings: Iterable[Finding]) -> list[str]:
    """Return the note on modules that never ran, with the places that may have decided so; an empty list without."""
    idle = [one.module_path for one in findings if one.kind == IDLE]
    if not idle:
        return []
    places = list(dict.fromkeys(_show_place(one) for one in findings if one.kind == READ))
    names = ", ".join(idle if len(idle) <= SHOWN else (*idle[: SHOWN - 1], "…", idle[-1]))
    what = f"{len(idle)} module{'s' if len(idle) > 1 else ''} with weights never ran: {names}"
    if not places:
        return [f"model: {what}, and no code read data that decides so"]
    return [f"model: {what}; {READS_DATA} at {', '.join(places[:SHOWN])}, and other values may run them"]


def describe_read(finding: Finding, assumption: str) -> str:
    """Return the text of a note on a value that Python reads, with its place and what it is assumed to be."""
    told = f"{finding.assumed} is assumed" if finding.assumed else assumption
    return f"{READS_DATA} at {_show_place(finding)}: {told}"


def _show_place(finding: Finding) -> str:
    where = f"{finding.file}:{finding.line}" if finding.line else "code of torch"
    return f"{where} ({finding.operator})"
