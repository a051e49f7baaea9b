"""Check and recovery of a damaged database in a separate process, because the engine may crash on it.

python -m joulemap.store.guard check FILE SECONDS-TO-WAIT
python -m joulemap.store.guard recover FILE NEW-FILE
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any, Final

import attrs

from joulemap.store.check import ADVICE, Fault, check_database
from joulemap.store.connection import Patience, reporting_failures
from joulemap.store.recover import Recovery, save_readable
from joulemap.system.errors import DatabaseError, EngineError, JoulemapError, LockedDatabaseError, OlderDatabaseError
from joulemap.system.handle import IS_POSIX

REFUSALS: Final[dict[str, type[JoulemapError]]] = {
    one.__name__: one for one in (DatabaseError, EngineError, LockedDatabaseError, OlderDatabaseError)
}

CRASHES: Final[Mapping[int, str]] = {
    **{-one: one.name for one in signal.Signals if one.name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")},
    0xC0000005: "access violation",
    0xC0000409: "stack overrun",
    0xC00000FD: "stack overflow",
}
"""Exit code of a crashed process -> name of the signal or Windows exception."""


NEW_GROUP: Final[int] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""Windows flag for starting a process that Ctrl-C in the terminal does not reach; 0 elsewhere."""


LEAST_S: Final = 60.0
PER_BYTE_S: Final = 2e-6
"""Processor time in seconds that a check may take: a constant part, and one per byte of the file. A sound database
takes a tenth of it. A damaged index can lead the engine in circles.
"""


class CrashError(DatabaseError):
    """Crash of the engine while it read a database."""


def check_apart(path: Path, patience: Patience) -> list[Fault]:
    """Run `check_database` in another process and return its faults.

    Raises its DatabaseError, CrashError if the file crashes the engine, or DatabaseError if reading it does not end.
    """
    faults = _ask("check", path, patience.limit_s)
    return [tuple(fault) for fault in faults]


def recover_apart(path: Path, sound: Path) -> Recovery:
    """Run `save_readable` in another process and return its result, without damaged blocks if reading them crashes the
    engine.

    Raises its DatabaseError, or CrashError if the file crashes the engine in any case.
    """
    try:
        return Recovery(**_ask("recover-boldly", path, sound))
    except CrashError:
        for left in sound.parent.glob("*.duckdb*"):
            left.unlink()
        return Recovery(**_ask("recover", path, sound))


def _ask(task: str, path: Path, *more: object) -> Any:
    """Run a task in another process and return its result. The process ignores Ctrl-C and ends with this one."""
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", __name__, task, str(path), *map(str, more)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | variables,
        process_group=0 if IS_POSIX else None,
        creationflags=NEW_GROUP,
    ) as done:
        assert done.stdout is not None
        output = done.stdout.read()
        done.wait()
    if done.returncode and (name := CRASHES.get(done.returncode)):
        raise CrashError(f"{path} is damaged: reading it crashes the engine ({name}); {ADVICE}")
    if done.returncode:
        raise RuntimeError(f"the {task} of {path} ended with {done.returncode}: {output.decode()[-2000:]}")
    answer = json.loads(output)
    if "refusal" in answer:
        raise REFUSALS[answer["refusal"]](answer["reason"])
    return answer["result"]


def main() -> None:
    """Run the task given in `sys.argv`, and print its result, or the error that it raised, as JSON."""
    Thread(target=_end_with_parent, daemon=True).start()
    task, path, more = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    try:
        with reporting_failures(path):
            if task == "check":
                Thread(target=_end_when_endless, args=(path,), daemon=True).start()
                answer: object = {"result": check_database(path, Patience(limit_s=float(more)))}
            else:
                answer = {"result": attrs.asdict(save_readable(path, Path(more), is_bold=task != "recover"))}
    except (DatabaseError, EngineError) as error:
        answer = _refuse(error)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(1)
    print(json.dumps(answer))


def _refuse(error: JoulemapError) -> dict[str, str]:
    return {"refusal": type(error).__name__, "reason": str(error)}


def _end_when_endless(path: Path) -> None:
    """End this process with a refusal when it has used the processor time that a file of this size may take."""
    most_s = LEAST_S + PER_BYTE_S * path.stat().st_size
    while time.process_time() < most_s:
        time.sleep(1.0)
    print(json.dumps(_refuse(DatabaseError(f"{path} is damaged: reading it does not end; {ADVICE}"))), flush=True)
    os._exit(0)


def _end_with_parent() -> None:
    """End this process when stdin closes, because that means that the parent process has ended.

    Reads without the interpreter's buffer, because a waiting thread would hold its lock while the interpreter ends.
    """
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
