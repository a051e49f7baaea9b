"""Which runs a question needs, and under which keys they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain.catalogue import DEFAULT_HARDWARE
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.precision import PRECISION_BYTES
from joulemap.errors import UnknownNameError, UsageError

MODEL_VERSION: Final = 2
"""Version of the formulas, part of every run's key: raised whenever a formula changes an answer."""

POWER_MODE: Final = "default"
"""The operating point that runs are evaluated at."""


@attrs.frozen(kw_only=True)
class PlannedRun:
    """A run that a question needs."""

    hardware: str
    hardware_digest: str
    run_key: str


def check_settings(precision: str, runtime: str) -> None:
    """Raise UsageError for a precision or runtime that does not exist."""
    if precision not in PRECISION_BYTES:
        raise UsageError(f"unknown precision {precision!r}; known: {', '.join(PRECISION_BYTES)}")
    if runtime not in RUNTIMES:
        raise UsageError(f"unknown runtime {runtime!r}; known: {', '.join(RUNTIMES)}")


def select_hardware(
    known: Mapping[str, tuple[str, str]], names: Sequence[str], architectures: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids that a question names: by id, by architecture class, by both, or the default four.

    `known` is id -> (architecture, digest). Raises UnknownNameError for a name that is not in it.
    """
    classes = sorted({architecture for architecture, _ in known.values()})
    for architecture in architectures:
        if architecture not in classes:
            raise UnknownNameError("architecture", architecture, classes)
    for name in names:
        if name not in known:
            raise UnknownNameError("hardware", name, known, "see `joulemap hardware list`")
    candidates = list(dict.fromkeys(names)) or (list(known) if architectures else list(DEFAULT_HARDWARE))
    chosen = tuple(name for name in candidates if not architectures or known[name][0] in architectures)
    if not chosen:
        raise UsageError(f"none of {', '.join(candidates)} is of architecture {', '.join(architectures)}")
    return chosen


def plan_runs(
    workload_key: str,
    known: Mapping[str, tuple[str, str]],
    hardware: Sequence[str],
    *,
    precision: str,
    runtime: str,
) -> tuple[PlannedRun, ...]:
    """Return one planned run per hardware; the batch is the workload's."""
    planned = []
    for name in hardware:
        digest = known[name][1]
        parts = (workload_key, digest, POWER_MODE, precision, runtime, str(MODEL_VERSION))
        run_key = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
        planned.append(PlannedRun(hardware=name, hardware_digest=digest, run_key=run_key))
    return tuple(planned)
