"""Blocks on the workers of a Dask cluster, which write shards to a folder that all of them share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from typing import Any, Final

from joulemap.lake.task import BESIDE, HEED_S, TRIES, One, read_cluster
from joulemap.system.errors import JoulemapError, MissingPackageError, UsageError

LOOK_S: Final = 1.0
"""How often workers are counted, which is a question to the scheduler: they come and go."""


def run_on_cluster(
    work: Callable[[One], None], tasks: Iterator[One], cluster: str, news: Callable[[], None]
) -> Generator[One]:
    """Yield tasks as workers end them. What a lost worker had is given to another.

    Nothing is asked of one that has ended well: its shard is there, and to fetch a result is half of the work here.

    Raises UsageError where there is no scheduler, MissingPackageError without Dask, JoulemapError where workers were
    lost with a task again and again.
    """
    try:
        engine: Any = import_module("distributed")
    except ImportError as error:
        raise MissingPackageError("distributed", "dask") from error
    with contextlib.ExitStack() as stack:
        client = _open(stack, engine, cluster)
        pending: dict[Any, One] = {}
        source = iter(tasks)
        room, looked_s = 0, -LOOK_S
        while True:
            if time.monotonic() - looked_s > LOOK_S:
                room = BESIDE * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
                looked_s = time.monotonic()
            while len(pending) < room and (task := next(source, None)) is not None:
                pending[client.submit(work, task, key=f"block-{task.block.digest}", retries=TRIES)] = task
            if not pending:
                return
            try:
                ended = engine.wait(list(pending), timeout=HEED_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                news()
                continue
            for future in ended:
                try:
                    if future.status != "finished":
                        future.result()
                except engine.KilledWorker as error:
                    raise JoulemapError(f"workers of {cluster} were lost with one block: {error}") from error
                yield pending.pop(future)


def _open(stack: contextlib.ExitStack, engine: Any, cluster: str) -> Any:
    address, count = read_cluster(cluster)
    try:
        if count:
            address = stack.enter_context(
                engine.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
            )
        return stack.enter_context(engine.Client(address, timeout=10))
    except OSError as error:
        raise UsageError(f"--cluster {cluster}: no scheduler answers there ({error})") from error
