"""Worker processes that run trials in parallel; a worker that crashes or hangs is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, cast

import attrs

from campaign.trial import Kind, Outcome

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 2.0
"""Maximum seconds for a worker to end its processes."""

RECYCLED: Final = 400
"""Trials after which a worker is replaced, so that leftovers of trials do not accumulate."""


@attrs.define
class Worker:
    """Worker process and its current trial."""

    process: subprocess.Popen[str]
    log: Path
    number: int = -1
    is_alone: bool = False
    deadline: float = 0.0
    done_count: int = 0

    @classmethod
    def start(cls, stage: Path, index: int) -> Worker:
        """Return a worker that waits for orders; its other output goes to a file."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JOULEMAP_", "COLUMNS"))}
        path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests", "tests/support"))
        log = stage / f"worker-{index}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "campaign.worker", str(stage)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**kept, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )
        return cls(process, log)

    @property
    def answers(self) -> IO[str]:
        """Stream of the worker's answers."""
        return cast("IO[str]", self.process.stdout)

    def order(self, kind: Kind, seed: int, number: int, *, is_alone: bool) -> None:
        """Send a trial to the worker."""
        self.number, self.is_alone = number, is_alone
        self.deadline = time.monotonic() + kind.limit_s
        order = {"kind": kind.name, "seed": seed, "number": number, "is_alone": is_alone}
        stream = cast("IO[str]", self.process.stdin)
        stream.write(json.dumps(order) + "\n")
        stream.flush()

    def end(self) -> int:
        """End the worker and its processes, which it does itself unless it hangs; return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.terminate()
            self.process.wait(PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return code


@attrs.define
class Pool:
    """Workers with one prepared folder."""

    stage: Path
    size: int
    _idle: list[Worker] = attrs.field(factory=list)
    _started: int = 0

    def try_all(self, kind: Kind, seed: int, numbers: Iterable[int], deadline: float) -> Iterator[tuple[int, Outcome]]:
        """Yield (number, outcome) of each trial as it ends; none starts after the deadline on the monotonic clock.

        A trial that ends its worker is repeated with commands in separate processes, and the repetition counts. A trial
        that does not end is a hang.
        """
        waiting = deque((number, False) for number in numbers)
        busy: dict[int, Worker] = {}
        try:
            with selectors.DefaultSelector() as selector:
                while busy or (waiting and time.monotonic() < deadline):
                    while waiting and len(busy) < self.size and time.monotonic() < deadline:
                        number, is_alone = waiting.popleft()
                        worker = self._idle.pop() if self._idle else self._start()
                        selector.register(worker.answers, selectors.EVENT_READ, worker)
                        busy[id(worker)] = worker
                        worker.order(kind, seed, number, is_alone=is_alone)
                    limit = min((worker.deadline for worker in busy.values()), default=0.0)
                    ready = selector.select(max(0.0, limit - time.monotonic()))
                    finished = [cast("Worker", key.data) for key, _ in ready]
                    late = [worker for worker in busy.values() if worker.deadline <= time.monotonic()]
                    for worker in {id(one): one for one in (*finished, *late)}.values():
                        selector.unregister(worker.answers)
                        del busy[id(worker)]
                        line = worker.answers.readline() if worker in finished else ""
                        if line:
                            yield worker.number, Outcome(**json.loads(line))
                            self._put_back(worker)
                            continue
                        code = worker.end()
                        is_late = worker not in finished
                        if not is_late and not worker.is_alone:
                            waiting.appendleft((worker.number, True))
                            continue
                        yield worker.number, _tell_end(kind, code, is_late=is_late)
        finally:
            for worker in busy.values():
                worker.end()

    def close(self) -> None:
        """End every worker."""
        while self._idle:
            self._idle.pop().end()

    def _start(self) -> Worker:
        self._started += 1
        return Worker.start(self.stage, self._started)

    def _put_back(self, worker: Worker) -> None:
        worker.done_count += 1
        if worker.done_count >= RECYCLED:
            worker.end()
        else:
            self._idle.append(worker)


def _tell_end(kind: Kind, code: int, *, is_late: bool) -> Outcome:
    text = f"hang: did not end within {kind.limit_s:.0f} s" if is_late else f"crash: the worker ended with {code}"
    word = "hang" if is_late else "crash"
    return Outcome(part="", outcomes={word: 1}, failures=(text,))
