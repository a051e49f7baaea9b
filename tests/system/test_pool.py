"""Worker processes end with their parent, and leave nothing that holds its pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import time
from joulemap.cli.interrupt import watch
from joulemap.system.pool import open_pool, shielded

def work(_):
    print("at work", flush=True)
    time.sleep(60)

if __name__ == "__main__":
    watch()
    with open_pool(2) as pool:
        with shielded():
            found = pool.map(work, range(2))
        list(found)
"""


@pytest.mark.skipif(os.name != "posix", reason="process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group of the terminal, a kill the parent alone."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    parent = subprocess.Popen(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    )
    assert parent.stdout is not None
    assert [parent.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)
    else:
        parent.kill()
    rest, _ = parent.communicate(timeout=10)  # ends when the last process with the pipe ends
    assert (parent.returncode, rest.count("\n")) == ((130, 1) if number == signal.SIGINT else (-number, 0))
