"""The check of a database in a process of its own: the engine may crash on a damaged file, and that is an answer too.

python -m joulemap.store.guard FILE SECONDS-TO-WAIT
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from joulemap.errors import DatabaseError, LockedDatabaseError, OlderDatabaseError
from joulemap.store.check import ADVICE, Fault, check_database
from joulemap.store.connection import Patience

REFUSALS: Final = {one.__name__: one for one in (DatabaseError, LockedDatabaseError, OlderDatabaseError)}

CRASHES: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
"""What ends a process that read what makes no sense."""


def check_apart(path: Path, patience: Patience) -> list[Fault]:
    """Return what `check_database` finds; DatabaseError, as it raises it, and for a file that crashes the engine."""
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(path), str(patience.limit_s)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | variables,
        check=False,
    )
    if -done.returncode in CRASHES:
        name = signal.Signals(-done.returncode).name
        raise DatabaseError(f"{path} is damaged: reading it crashes the engine ({name}); {ADVICE}")
    if done.returncode:
        raise RuntimeError(f"the check of {path} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    answer = json.loads(done.stdout)
    if "refusal" in answer:
        raise REFUSALS[answer["refusal"]](answer["reason"])
    return [(rule, run_id, place, expected, found) for rule, run_id, place, expected, found in answer["faults"]]


def main() -> None:
    """Print what a check of the named file finds, or why there is none, as JSON."""
    try:
        answer: object = {"faults": check_database(Path(sys.argv[1]), Patience(limit_s=float(sys.argv[2])))}
    except DatabaseError as error:
        answer = {"refusal": type(error).__name__, "reason": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
