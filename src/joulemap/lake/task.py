"""A task: a block that is to be evaluated, in whatever process, and what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from joulemap.store.shard import write_shard
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.block import Block
    from joulemap.store.shard import Points


class Task(Protocol):
    """What is evaluated together: anything that can be sent to another process."""

    @property
    def block(self) -> Block:
        """What its points are."""


One = TypeVar("One", bound=Task)

BESIDE: Final = 2
"""Tasks of each process that are on their way, so that none waits for the next."""

TRIES: Final = 3
"""How often a task is given to a process that is then killed: one that kills each would go on without end."""

HEED_S: Final = 0.2
"""How often who waits is told, so that it can stop the filling."""


@frozen
class Done:
    """A block that has its shard now."""

    question: str
    point_count: int
    refused_count: int
    evaluate_s: float
    write_s: float


def run_task(lake: Path, evaluate: Callable[[One], Points], task: One) -> Done:
    """Evaluate a task and keep its points: what a process does with one."""
    began = time.perf_counter()
    points = evaluate(task)
    evaluated = time.perf_counter()
    shard = write_shard(lake, task.block, points)
    refused = int(np.count_nonzero(np.asarray(points.refusal) != ""))
    return Done(shard.question, task.block.point_count, refused, evaluated - began, time.perf_counter() - evaluated)


def read_cluster(text: str) -> tuple[str, int]:
    """Return address and workers of a cluster, one of which is empty; UsageError for what is neither."""
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest) > 0:
        return "", int(rest)
    if kind in ("tcp", "tls", "ucx", "ws", "wss") and rest.startswith("//") and len(rest) > 2:
        return text, 0
    raise UsageError(f"--cluster {text!r}: write tcp://HOST:PORT of a Dask scheduler, or local:N for N workers here")
