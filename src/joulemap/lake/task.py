"""A task: a block that is to be evaluated, in whatever process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from joulemap.store.shard import write_shard
from joulemap.system.errors import UsageError

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


def run_task(lake: Path, evaluate: Callable[[One], Points], task: One) -> None:
    """Evaluate a task and keep its points: what a process does with one. Its shard is all that comes of it."""
    write_shard(lake, task.block, evaluate(task))


def read_cluster(text: str) -> tuple[str, int]:
    """Return address and workers of a cluster, one of which is empty; UsageError for what is neither."""
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest) > 0:
        return "", int(rest)
    if kind in ("tcp", "tls", "ucx", "ws", "wss") and rest.startswith("//") and len(rest) > 2:
        return text, 0
    raise UsageError(f"--cluster {text!r}: write tcp://HOST:PORT of a Dask scheduler, or local:N for N workers here")
