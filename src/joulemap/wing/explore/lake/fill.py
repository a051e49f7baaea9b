"""Blocks that a lake lacks: planned, evaluated in this process, in several, or on a cluster, and kept as they come.

A block that has its shard is not evaluated. Whoever is stopped or killed leaves whole shards, and the same call goes on
from there; two that fill one lake at once evaluate some blocks twice and keep each once. The workers of a Dask cluster
write shards to a folder that all of them share.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import attrs

from joulemap.system.errors import JoulemapError, MissingPackageError, UsageError
from joulemap.system.record import define
from joulemap.wing.explore.lake.database import survey
from joulemap.wing.explore.lake.shard import open_lake, write_shard

if TYPE_CHECKING:
    from joulemap.domain.block import Block
    from joulemap.wing.explore.lake.shard import Points


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


@define(kw_only=True)
class Filled:
    """What filling a lake came to; told as it goes on too."""

    block_count: int = 0
    """That were asked for, as far as they have been counted."""
    questions: set[str] = attrs.field(factory=set, repr=False)
    """Digests of those of them that have their shard."""
    known_count: int = 0
    """Of those, that had their shard before."""
    known_point_count: int = 0
    """Points of these."""
    written_count: int = 0
    point_count: int = 0
    """Points that were evaluated now."""


def fill(
    lake: Path,
    tasks: Iterable[One],
    evaluate: Callable[[One], Points],
    *,
    jobs: int = 1,
    cluster: str = "",
    tell: Callable[[Filled], None] | None = None,
) -> Filled:
    """Evaluate the tasks whose blocks have no shard in a lake, and keep their points there; return what it came to.

    `evaluate` is a function of a module, for other processes find it by its name. `jobs` processes of this machine
    work, or those of a `cluster`: `tcp://HOST:PORT` of a Dask scheduler, or `local:N` for N workers here. `tell` is
    told at each shard and now and then; what it raises ends the filling, with every finished shard kept.
    Raises UsageError for a folder that cannot be a lake, or a cluster that is not there.
    """
    open_lake(lake)
    told = Filled()
    work = partial(run_task, lake.absolute(), evaluate)
    missing = _list_missing(lake, tasks, told)

    def news() -> None:
        if tell is not None:
            tell(told)

    if cluster:
        results = run_on_cluster(work, missing, cluster, news)
    elif jobs > 1:
        results = _run_in_processes(work, missing, jobs, news)
    else:
        results = _run_here(work, missing)
    with contextlib.closing(results):
        for task in results:
            told.written_count += 1
            told.questions.add(task.block.digest)
            told.point_count += task.block.point_count
            news()
    news()
    return told


def _list_missing(lake: Path, tasks: Iterable[One], told: Filled) -> Iterator[One]:
    """Yield the tasks whose blocks have no whole shard, each question once."""
    known = {one.question for one in survey(lake).shards}
    for task in tasks:
        told.block_count += 1
        if task.block.digest in known:
            told.known_count += 1
            told.known_point_count += task.block.point_count
            told.questions.add(task.block.digest)
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
    """Yield tasks in the order in which processes end them; one that is killed is replaced."""
    tries: dict[str, int] = {}
    again: list[One] = []
    source = iter(tasks)
    pool = _open_pool(jobs)
    pending: dict[Future[None], One] = {}
    try:
        while True:
            while len(pending) < BESIDE * jobs and (task := again.pop() if again else next(source, None)) is not None:
                with _shielded():
                    pending[pool.submit(work, task)] = task
            if not pending:
                return
            ended, _ = wait(pending, timeout=HEED_S, return_when=FIRST_COMPLETED)
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
                pool = _open_pool(jobs)
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
                f"{task.block.point_count} points: is there memory for them? use smaller blocks or fewer jobs"
            )


def _open_pool(jobs: int) -> ProcessPoolExecutor:
    """Return processes that start anew: a copy of this one would share what it has open."""
    import multiprocessing
    from multiprocessing import resource_tracker

    # its process says on stderr what it removes where this one is stopped, which is what it is for
    sys.warnoptions.append(silence := "ignore:resource_tracker")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(silence)
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_process)


@contextlib.contextmanager
def _shielded() -> Iterator[None]:
    """Keep Ctrl-C from processes that begin inside, before they are far enough to leave it to this one."""
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process() -> None:
    """Leave Ctrl-C to the process that asks, and end with it."""
    import multiprocessing
    import signal
    from threading import Thread

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=follow, daemon=True).start()


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
