"""Evaluation of the blocks that a lake lacks: in this process, in several, or on a cluster; results are stored
immediately.

A block that has a shard is not evaluated. A stopped or killed call leaves only whole shards, and the same call resumes
from there. Two calls that fill one lake at once evaluate some blocks twice and keep each once. The workers of a Dask
cluster write shards to a folder that all of them share.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import attrs

from joulemap.system import JoulemapError, MissingPackageError, UsageError, define
from joulemap.system.pool import open_pool, shielded
from joulemap.wing.explore.block import Block
from joulemap.wing.explore.lake.database import survey
from joulemap.wing.explore.lake.shard import Points, open_lake, store_points


class Task(Protocol):
    """Unit of evaluation; must be picklable, so that another process can evaluate it."""

    @property
    def block(self) -> Block:
        """Description of the points that the task evaluates."""


One = TypeVar("One", bound=Task)

QUEUED: Final = 2
"""Queued tasks per process, so that no process waits for its next task."""

TRIES: Final = 3
"""Maximum retries of a task after its process was killed; a task that kills every process is given up."""

CALLBACK_S: Final = 0.2
"""Interval in seconds at which the caller is called back, so that it can stop the filling."""


def run_task(lake: Path, evaluate: Callable[[One], Points], task: One) -> None:
    """Evaluate a task in a worker process and store its points; the shard is the only result."""
    store_points(lake, task.block, evaluate(task))


def read_cluster(text: str) -> tuple[str, int]:
    """Return (scheduler address, 0) or ("", number of local workers) of a cluster; UsageError for any other text."""
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest) > 0:
        return "", int(rest)
    if kind in ("tcp", "tls", "ucx", "ws", "wss") and rest.startswith("//") and len(rest) > 2:
        return text, 0
    raise UsageError(f"--cluster {text!r}: write tcp://HOST:PORT of a Dask scheduler, or local:N for N workers here")


@define(kw_only=True)
class Filled:
    """Progress and result of filling a lake."""

    questions: set[str] = attrs.field(factory=set, repr=False)
    """Digests of the blocks that have a shard."""
    known_point_count: int = 0
    """Number of points in blocks that had a shard before."""
    point_count: int = 0
    """Number of points evaluated in this call."""


def fill(
    lake: Path,
    tasks: Iterable[One],
    evaluate: Callable[[One], Points],
    *,
    jobs: int = 1,
    cluster: str = "",
    report: Callable[[Filled], None] | None = None,
) -> Filled:
    """Evaluate the tasks whose blocks have no shard in a lake, store their points there, and return the counts.

    `evaluate` must be a module-level function, because other processes import it by name. The work runs in `jobs`
    local processes, or on a `cluster`: `tcp://HOST:PORT` of a Dask scheduler, or `local:N` for N workers here. `report`
    is called at each shard and at intervals. An exception from it ends the filling, with every finished shard kept.
    Raise UsageError for a folder that cannot be a lake, or an unreachable cluster.
    """
    open_lake(lake)
    filled = Filled()
    work = partial(run_task, lake.absolute(), evaluate)
    missing = _list_missing(lake, tasks, filled)

    def news() -> None:
        if report is not None:
            report(filled)

    if cluster:
        results = run_on_cluster(work, missing, cluster, news)
    elif jobs > 1:
        results = _run_in_processes(work, missing, jobs, news)
    else:
        results = _run_here(work, missing)
    with contextlib.closing(results):
        for task in results:
            filled.questions.add(task.block.digest)
            filled.point_count += task.block.point_count
            news()
    news()
    return filled


def _list_missing(lake: Path, tasks: Iterable[One], filled: Filled) -> Iterator[One]:
    """Yield the tasks for which the lake has no whole shard, each block once."""
    known = {one.subject for one in survey(lake).shards}
    for task in tasks:
        if task.block.digest in known:
            filled.known_point_count += task.block.point_count
            filled.questions.add(task.block.digest)
            continue
        known.add(task.block.digest)
        yield task


def _run_here(work: Callable[[One], None], tasks: Iterator[One]) -> Generator[One]:
    for task in tasks:
        work(task)
        yield task


def _run_in_processes(
    work: Callable[[One], None], tasks: Iterator[One], jobs: int, news: Callable[[], None]
) -> Generator[One]:
    """Yield tasks in the order in which they finish; tasks of a killed process run again."""
    tries: dict[str, int] = {}
    again: list[One] = []
    source = iter(tasks)
    pool = open_pool(jobs)
    pending: dict[Future[None], One] = {}
    try:
        while True:
            while len(pending) < QUEUED * jobs and (task := again.pop() if again else next(source, None)) is not None:
                with shielded():
                    pending[pool.submit(work, task)] = task
            if not pending:
                return
            ended, _ = wait(pending, timeout=CALLBACK_S, return_when=FIRST_COMPLETED)
            if not ended:
                news()
            broken = False
            for future in ended:
                task = pending.pop(future)
                try:
                    future.result()
                except BrokenProcessPool:
                    broken = True
                    again.append(task)
                else:
                    yield task
            if broken:
                again += pending.values()
                pending.clear()
                pool.shutdown(wait=False, cancel_futures=True)
                pool = open_pool(jobs)
                _count_tries(again, tries)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(getattr(pool, "_processes", None) or ()):
            with contextlib.suppress(Exception):
                pool._processes[process].terminate()


def _count_tries(again: list[Any], tries: dict[str, int]) -> None:
    for task in again:
        digest = task.block.digest
        tries[digest] = tries.get(digest, 0) + 1
        if tries[digest] > TRIES:
            raise JoulemapError(
                f"a process was killed {tries[digest]} times while it evaluated a block of "
                f"{task.block.point_count} points, probably for lack of memory: use smaller blocks or fewer jobs"
            )


COUNT_S: Final = 1.0
"""Interval in seconds at which cluster workers are counted, because workers come and go."""


def run_on_cluster(
    work: Callable[[One], None], tasks: Iterator[One], cluster: str, news: Callable[[], None]
) -> Generator[One]:
    """Yield tasks as cluster workers finish them; reassign the tasks of a lost worker.

    Workers write the shards, so that no result travels to this process.

    Raise UsageError if there is no scheduler, MissingPackageError without Dask, JoulemapError if a task lost its worker
    too often.
    """
    try:
        engine: Any = import_module("distributed")
    except ImportError as error:
        raise MissingPackageError("distributed", "dask") from error
    for name in logging.root.manager.loggerDict:
        if name.startswith("distributed"):
            logging.getLogger(name).disabled = True  # what ends a call is one line; Dask's log has dozens
    with contextlib.ExitStack() as stack:
        client = _open(stack, engine, cluster)
        pending: dict[Any, One] = {}
        source = iter(tasks)
        room, looked_s = 0, -COUNT_S
        while True:
            if time.monotonic() - looked_s > COUNT_S:
                room = QUEUED * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
                looked_s = time.monotonic()
            while len(pending) < room and (task := next(source, None)) is not None:
                pending[client.submit(work, task, key=f"block-{task.block.digest}", retries=TRIES)] = task
            if not pending:
                return
            try:
                ended = engine.wait(list(pending), timeout=CALLBACK_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                news()
                continue
            except (OSError, CancelledError) as error:
                raise JoulemapError(f"the scheduler of {cluster} was lost: finished blocks are in the lake") from error
            for future in ended:
                try:
                    if future.status != "finished":
                        future.result()
                except (engine.KilledWorker, CancelledError) as error:
                    raise JoulemapError(f"workers of {cluster} were lost with one block: {error}") from error
                yield pending.pop(future)


def _open(stack: contextlib.ExitStack, engine: Any, cluster: str) -> Any:
    address, count = read_cluster(cluster)
    try:
        resource_tracker.ensure_running()  # its start would end the shielding
        with shielded():  # workers inherit it: Ctrl-C reaches this process, which then stops them
            if count:
                address = stack.enter_context(
                    engine.LocalCluster(
                        n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
                    )
                )
            return stack.enter_context(engine.Client(address, timeout=10))
    except OSError as error:
        raise UsageError(f"--cluster {cluster}: no scheduler answers there ({error})") from error
    except RuntimeError as error:
        raise JoulemapError(f"--cluster {cluster}: a worker ended while it started: {error}") from error
