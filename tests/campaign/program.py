"""Run joulemap in this process, or in a process that can be stopped."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from unittest.mock import patch

import attrs

from campaign.trial import Trial
from command import Done, run_here
from joulemap.system.errors import ExitCode, JoulemapError

DATABASE: Final = "joulemap.duckdb"
CACHE: Final = "cache"
TEMPORARY: Final = "tmp"
HANG_S: Final = 60.0
"""Time after which a process counts as hanging."""

JOULEMAP: Final = ("-m", "joulemap")


def variables(place: Path) -> dict[str, str]:
    """Return the environment variables that keep a command's files within the folder of its trial."""
    return {
        "JOULEMAP_CACHE": str(place / CACHE),
        "JOULEMAP_CALIBRATION": str(place / "calibration"),
        "TMPDIR": str(place / TEMPORARY),
        "TORCHINDUCTOR_CACHE_DIR": str(place.with_name("torch")),
        "OPENBLAS_NUM_THREADS": "1",
    }


def prepare_place(place: Path) -> None:
    """Create the folders that a command expects."""
    for folder in (place, place / TEMPORARY, place / CACHE):
        folder.mkdir(parents=True, exist_ok=True)


def run_inside(arguments: Sequence[str], place: Path) -> Done:
    """Run a command in this process, in the folder `place`."""
    with patch.object(tempfile, "tempdir", None):
        return run_here(arguments, place, variables(place))


def run(trial: Trial, arguments: Sequence[str], place: Path) -> Done:
    """Run a command, in this process unless `is_alone`."""
    if trial.is_alone:
        with Process.start(arguments, place) as process:
            return process.finish()
    return run_inside(arguments, place)


def check(trial: Trial, place: Path) -> Done:
    """Return the result of `joulemap db check`, without its separate process.

    That process protects against crashes of the engine. Here a crash ends the worker, and the trial is repeated with
    `is_alone`.
    """
    from joulemap.store.check import check_database
    from joulemap.store.connection import Patience

    command = ("db", "check")
    if trial.is_alone:
        return run(trial, command, place)
    try:
        faults = check_database(place / DATABASE, Patience())
    except JoulemapError as error:
        return subprocess.CompletedProcess(["joulemap", *command], int(error.exit_code), "", f"joulemap: {error}")
    code, told = (ExitCode.CHECK_FAILED, f"joulemap: {faults[0]}") if faults else (ExitCode.OK, "")
    return subprocess.CompletedProcess(["joulemap", *command], int(code), "", told)


def succeed(arguments: Sequence[str], place: Path) -> Done:
    """Run a command that prepares trials; raise RuntimeError if it fails."""
    done = run_inside(arguments, place)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return done


def run_apart(trial: Trial, arguments: Sequence[str], place: Path) -> Done:
    """Run a command in a fork of this process, because its code may change the process.

    The command runs in a new process if another thread runs, if the fork ends without an answer, or if `is_alone`.
    """
    import torch

    assert torch is not None  # imported once, not by every copy
    if trial.is_alone or len(os.listdir("/proc/self/task")) > 1:
        return run(attrs.evolve(trial, is_alone=True), arguments, place)
    answer = place.with_name("answer.json")
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            done = run(trial, arguments, place)
            answer.write_text(json.dumps([done.returncode, done.stdout, done.stderr]), encoding="utf-8")
        os._exit(0)
    watched = os.pidfd_open(child)
    has_ended = bool(select.select([watched], [], [], HANG_S)[0])
    os.close(watched)
    if not has_ended:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not answer.exists():
        return run(attrs.evolve(trial, is_alone=True), arguments, place)
    code, stdout, stderr = json.loads(answer.read_text(encoding="utf-8"))
    return subprocess.CompletedProcess(["joulemap", *arguments], code, stdout, stderr)


_started: set[Process] = set()


def kill_started() -> None:
    """End all processes that were started here and are still running."""
    for process in list(_started):
        process.kill()


@attrs.define(eq=False)
class Process:
    """Command in its own process group, whose output goes to files next to its folder."""

    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        arguments: Sequence[str],
        place: Path,
        extra: Mapping[str, str] | None = None,
        program: Sequence[str] = JOULEMAP,
        file_bytes: int | None = None,
    ) -> Iterator[Process]:
        """Yield a started process, which is killed with its children when the block ends.

        `file_bytes` is the maximum size of its files.
        """
        files = [place.with_name(f"{place.name}.{name}") for name in ("stdout", "stderr")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("JOULEMAP_")}
        with files[0].open("wb") as stdout, files[1].open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=place,
                env={**environment, **variables(place), **(extra or {})},
                process_group=0,
                preexec_fn=None if file_bytes is None else lambda: _limit(file_bytes),
            )
        started = cls(tuple(arguments), process, *files)
        _started.add(started)
        try:
            yield started
        finally:
            started.kill()
            process.wait()
            _started.discard(started)
            for file in files:
                file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the process and its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Return whether the process ended within `seconds`."""
        if self.process.poll() is None:
            watched = os.pidfd_open(self.process.pid)
            try:
                select.select([watched], [], [], seconds)
            finally:
                os.close(watched)
        return self.process.poll() is not None

    def interrupt(self) -> None:
        """Send SIGINT to the process group, as a terminal does at Ctrl-C."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def finish(self, seconds: float = HANG_S) -> Done:
        """Return the finished process; one that does not end is killed, with the code -9."""
        if not self.wait(seconds):
            self.kill()
            self.process.wait()
        return subprocess.CompletedProcess(
            ["joulemap", *self.arguments], self.process.returncode, self._read(self.stdout), self._read(self.stderr)
        )

    @staticmethod
    def _read(file: Path) -> str:
        return file.read_text(encoding="utf-8", errors="replace")


def _limit(file_bytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def list_faults(done: Done) -> list[str]:
    """Return the faults of any command: crash, traceback, internal error, or a refusal that is not one line."""
    told = [line for line in done.stderr.splitlines() if line.strip()]
    shown = " ".join(done.args[1:])[:200]
    last = told[-1][:200] if told else ""
    if "Traceback (most recent call last)" in done.stderr:
        return [f"traceback: {shown!r}: {last}"]
    if done.returncode < 0:
        return [f"crash: {shown!r} ended by signal {-done.returncode}"]
    if done.returncode == 1 or "internal error" in done.stderr:
        return [f"internal: {shown!r}: {last}"]
    if done.returncode and (len(told) != 1 or not told[0].startswith("joulemap: ")):
        return [f"talk: {shown!r} exit {done.returncode}, {len(told)} lines: {last}"]
    return []
