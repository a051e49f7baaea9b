"""Commands where Windows lacks a module, a function or a character: in a process that cannot import them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from joulemap.cli.voice import LOOK_ALIKES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="plays locks of Windows by those of Linux")

TESTS = Path(__file__).parents[1]
MACHINE = TESTS / "here" / "machine" / "gaming_pc_windows.json"

RUN = """
import sys
from joulemap.cli.app import run
from joulemap.cli.voice import set_encodings
from joulemap.system.handle import IS_POSIX
set_encodings()
codes = [run(line.split(" ")) for line in sys.argv[1:]]
print(IS_POSIX, codes, file=sys.stderr)
"""

COMMANDS = (
    "compare mlp l4 h100_sxm5",
    "analyze mlp --hardware l4",
    "hardware show l4",
    "sql SELECT\tcount(*)\tAS\tn\tFROM\truns",
    "db check",
)

LOCKS = """
import os, sys
from joulemap.system.handle import *
file, one = Path("file"), 10**15
first, second = (open_descriptor(file, os.O_RDWR | os.O_CREAT) for _ in range(2))
write_at(first, b"a\\nb", 3)
told = [read_at(second, 3, 3) == b"a\\nb"]
told += [try_lock_bytes(first, one, 1, is_shared=True), try_lock_bytes(second, 0, one)]
told += [not try_lock_bytes(second, one), try_lock_bytes(second, one, is_shared=True)]
unlock_bytes(first, one, 1)
unlock_bytes(second, one)
told += [try_lock_bytes(first, one)]
told += [try_lock_file(first), not try_lock_file(second)]
os.close(second)
close_and_remove(first, file)
print(told, file.exists())
"""


def run_on_windows(script: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    path = os.pathsep.join((str(TESTS / "cli" / "windows"), *sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "0", **variables}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, cwd=folder, env=environment, check=False
    )


@pytest.mark.slow
def test_the_main_commands_run_without_the_modules_of_posix(tmp_path: Path) -> None:
    done = run_on_windows(
        RUN, *COMMANDS, folder=tmp_path, PYTHONIOENCODING="cp1252", JOULEMAP_DB=str(tmp_path / "runs.duckdb")
    )
    assert done.stderr.decode("cp1252").splitlines()[-1] == f"False {[0] * len(COMMANDS)}"
    text = done.stdout.decode("cp1252")
    assert "µs" in text and "\N{EN DASH}" in text
    assert [one.name for one in tmp_path.iterdir()] == ["runs.duckdb"]


@pytest.mark.slow
@pytest.mark.wings
def test_a_recorded_machine_is_answered_without_the_modules_of_posix(tmp_path: Path) -> None:
    command = f"here llama-3.1-8b --from {MACHINE}"
    done = run_on_windows(RUN, command, folder=tmp_path, JOULEMAP_DB=str(tmp_path / "runs.duckdb"))
    assert done.stderr.decode().splitlines()[-1] == "False [0]"


def test_locks_of_windows_are_shared_or_exclusive_and_leave_bytes_readable(tmp_path: Path) -> None:
    done = run_on_windows(LOCKS, folder=tmp_path)
    assert done.stderr == b""
    assert done.stdout.decode().strip() == f"{[True] * 8} False"


def test_a_worker_process_is_started_anew(tmp_path: Path) -> None:
    script = "import multiprocessing, os\nprint(multiprocessing.get_start_method(), hasattr(os, 'pread'))"
    assert run_on_windows(script, folder=tmp_path).stdout == b"spawn False\n"


def test_a_drawn_character_has_one_that_every_encoding_holds() -> None:
    assert "│└─ █→".translate(LOOK_ALIKES) == "|+- #>"
    assert max(LOOK_ALIKES.values()) < 128


@pytest.mark.slow
def test_a_module_of_ones_own_is_traced_without_the_functions_of_posix(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import torch\nnet = torch.nn.Linear(3, 4)\n")
    command = "compare ./own.py:net --input 1,3 l4"
    done = run_on_windows(RUN, command, folder=tmp_path, JOULEMAP_DB=str(tmp_path / "runs.duckdb"))
    assert done.stderr.decode().splitlines()[-1] == "False [0]"
