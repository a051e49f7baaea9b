"""A person's own code: what it raises is one line, what it prints goes to stderr, what it changes is put back."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.nn.modules import module

from bad_model import TROUBLE, write_file
from conftest import Run
from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_input, resolve_model
from joulemap.system.errors import ExitCode, Interrupted, JoulemapError, ModelError, UsageError
from joulemap.trace.guest import default_device, hosting
from joulemap.workspace import Workspace

RAISED = {
    "raise GeneratorExit": "GeneratorExit",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise BaseException('own')": "BaseException: own",
    "raise Strange": "Strange",
    "def again(): again()\nagain()": "RecursionError: maximum recursion depth exceeded",
}
"""statement -> how it is told."""

PLACES = {"top": "", "build": "", "forward": "net.py:net: the forward pass failed: "}
"""Where a file's code runs -> what is said of it first."""


@pytest.mark.sample(8)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("statement", RAISED)
def test_whatever_a_model_raises_is_one_line(statement: str, place: str, joulemap: Run, tmp_path: Path) -> None:
    content = write_file(**{place: statement})
    (tmp_path / "net.py").write_bytes(content)
    done = joulemap("model", "show", "net.py:net")
    assert (done.returncode, done.stdout) == (ExitCode.MODEL, "")
    last = max(
        number for number, line in enumerate(content.decode().splitlines(), 1) if statement.split("\n")[0] in line
    )
    assert done.stderr.startswith(f"joulemap: {PLACES[place]}")
    assert RAISED[statement] in done.stderr
    assert f"net.py, line {last}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "joulemap.duckdb").exists()


def test_a_file_that_does_not_end_is_one_line(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("while True:\n    pass\n")
    done = joulemap("model", "show", "net.py:net", variables={"JOULEMAP_TRACE_SECONDS": "1"})
    assert (done.returncode, done.stdout) == (ExitCode.MODEL, "")
    assert done.stderr.startswith("joulemap: net.py, line ")
    assert "it took more than 1 s: it may loop without end" in done.stderr
    assert done.stderr.count("\n") == 1


def state() -> dict[str, object]:
    """Return what answers depend on and a model can change."""
    return {
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "arguments": list(sys.argv),
        "streams": (id(sys.stdout), id(sys.stderr), sys.stdout.closed, sys.stderr.closed),
        "descriptors": (os.fstat(1).st_ino, os.fstat(2).st_ino),
        "functions": (id(builtins.print), id(builtins.open)),
        "recursion": sys.getrecursionlimit(),
        "random": (random.getstate(), torch.get_rng_state().tolist()),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)],
        "alarm": signal.getitimer(signal.ITIMER_REAL),
        "dtype": torch.get_default_dtype(),
        "device": default_device(),
        "gradient": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "hooks": len(module._global_forward_hooks),
    }


CHANGES = (
    *(statement for statement in TROUBLE if statement.startswith("import ") and "nothing" not in statement),
    "import torch; torch.nn.modules.module.register_module_forward_hook(print)",
    "import torch; torch.manual_seed(1)",
    "import os; os.environ['JOULEMAP_CACHE'] = '/nowhere'",
    "import asyncio; asyncio.run(asyncio.sleep(0))",
)


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", PLACES)
def test_what_a_model_changes_is_put_back(place: str, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    for statement in CHANGES:
        path.write_bytes(write_file(**{place: statement}))
        before = state()
        with contextlib.suppress(ModelError):
            trace_request(resolve_model(f"{path}:net", {}))
        assert state() == before, statement


@pytest.mark.slow
def test_a_default_device_of_a_model_is_no_longer_there(tmp_path: Path) -> None:
    """In a process of its own: torch lists what makes tensors once, and a trace stands in for some of that."""
    (tmp_path / "net.py").write_bytes(write_file(forward="import torch; torch.set_default_device('meta')"))
    program = (
        "import torch\n"
        "from joulemap.construct.model import trace_request\n"
        "from joulemap.construct.source import resolve_model\n"
        "trace_request(resolve_model('net.py:net', {}))\n"
        "assert torch.tensor([1]).device.type == 'cpu'\n"
        "with torch.device('meta'):\n"
        "    assert torch.tensor([1]).device.type == 'meta'\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_streams_that_a_model_closes_are_open_again(joulemap_process: Run, tmp_path: Path) -> None:
    closing = "import os, sys; sys.__stdout__.close(); sys.__stderr__.detach(); os.close(2)"
    (tmp_path / "net.py").write_bytes(write_file(build=closing))
    done = joulemap_process("model", "show", "net.py:net", "--format", "json")
    assert (done.returncode, done.stdout[:1]) == (0, "{")
    assert "nothing.py" in joulemap_process("model", "show", "nothing.py:net").stderr


@pytest.mark.slow
def test_what_a_model_prints_goes_to_stderr_by_whatever_means(joulemap_process: Run, tmp_path: Path) -> None:
    printing = (
        "import ctypes, os, sys; print('by print'); os.write(1, b'by descriptor'); os.system('echo by process'); "
        "ctypes.CDLL(None).puts(b'by library'); sys.__stdout__.write('by stream')"
    )
    (tmp_path / "net.py").write_bytes(write_file(top=printing, build=printing, forward=printing))
    done = joulemap_process("model", "show", "net.py:net", "--format", "json")
    assert (done.returncode, done.stdout[:1], done.stdout[-2:]) == (0, "{", "}\n")
    for way in ("print", "descriptor", "process", "library", "stream"):
        assert done.stderr.count(f"by {way}") == 3
        assert f"by {way}" not in done.stdout


@pytest.mark.slow
def test_what_is_printed_to_a_closed_stdout_reaches_no_file(tmp_path: Path) -> None:
    """A file that is opened next would get the number of stdout: that was the log of the database."""
    marking = "import os; os.write(1, b'printed'); open('numbers', 'a').write(os.readlink('/proc/self/fd/1') + chr(10))"
    (tmp_path / "net.py").write_bytes(write_file(build=marking))
    command = 'exec "$0" -m joulemap sweep net.py:net --batch 1,2 --db x.duckdb --output answer <&- >&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "numbers").read_text().split() == ["/dev/null"] * 2
    assert list(Workspace(tmp_path / "x.duckdb").check().findings) == []


def test_a_thread_that_is_left_running_prints_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    go, gone = threading.Event(), threading.Event()

    def say() -> None:
        go.wait(30)
        print("late")
        gone.set()

    stdout = sys.stdout
    with hosting("net"):
        threading.Thread(target=say, daemon=True).start()
    try:
        go.set()
        assert gone.wait(30)
        print("answer")
    finally:
        sys.stdout = stdout
    assert capsys.readouterr() == ("answer\n", "late\n")


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", PLACES)
def test_a_model_that_changes_the_working_directory_moves_nothing(place: str, joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "net.py").write_bytes(write_file(**{place: f"import os; os.chdir({str(tmp_path / 'away')!r})"}))
    assert joulemap("model", "show", "net.py:net", "--output", "answer.txt").returncode == 0
    assert list((tmp_path / "away").iterdir()) == []
    assert {"joulemap.duckdb", "answer.txt"} <= {path.name for path in tmp_path.iterdir()}


def test_what_a_program_has_set_does_not_change_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_bytes(write_file())
    request = resolve_model(f"{path}:net", {})
    usual = trace_request(request)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        assert trace_request(request) == usual
        assert (torch.get_default_dtype(), default_device().type) == (torch.float64, "meta")
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def test_ctrl_c_is_no_error_of_a_model() -> None:
    with pytest.raises(ModelError, match="net: KeyboardInterrupt"), hosting("net"):
        raise KeyboardInterrupt

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    # a program that runs in the background of a shell ignores the signal
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), hosting("net"):
            signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, interrupt)
        with pytest.raises(Interrupted), hosting("net"):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_models_are_traced_in_threads_one_at_a_time(tmp_path: Path) -> None:
    path, stdout = tmp_path / "net.py", sys.stdout
    path.write_bytes(write_file(build="print('built')"))
    request, traced = resolve_model(f"{path}:net", {}), list[Any]()
    threads = [threading.Thread(target=lambda: traced.append(trace_request(request))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sys.stdout is stdout
    assert len(traced) == 6
    assert all(workload == traced[0] for workload in traced)


HEAD = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): return x * 2\ndef net():\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return Net(), torch.empty(2, 2**31, 2**28, device='meta')", "bytes moved, more than"),
        ("    m = torch.nn.Sequential()\n    m.add_module('\\udc80', Net())\n    return m, torch.zeros(2)", "not text"),
        (
            "    m = Net()\n    for _ in range(3000): m = torch.nn.Sequential(m)\n    return m, torch.zeros(2)",
            "Recursion",
        ),
        ("    return Net(), torch.zeros(2)\n" + "x = " + "-" * 100_000 + "1", "MemoryError|Recursion|nested"),
        ("    return Net(), torch.zeros(2)\nx = '\0'", "null bytes"),
        ("    return Net(), torch.zeros(2)\nx = '\udcff'", "can't decode byte 0xff|Non-UTF-8 code"),
    ],
)
def test_what_no_database_holds_is_refused(body: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_bytes((HEAD + body).encode(errors="surrogateescape"))
    with pytest.raises(ModelError, match=message):
        Workspace(tmp_path / "x.duckdb").profile(f"{path}:net")
    assert not (tmp_path / "x.duckdb").exists()


def test_an_error_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "net.py").write_text("import beside\n")
    with pytest.raises(ModelError, match=r"beside\.py, line 2: invalid syntax"):
        Workspace(tmp_path / "x.duckdb").profile(f"{tmp_path}/net.py:net")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("folder.py:net", ModelError, "folder.py is not a file"),
        ("pipe.py:net", ModelError, "pipe.py is not a file"),
        ("pipe.pt2", ModelError, "pipe.pt2 is not a file|there is no file"),
        ("a" * 300 + ".py:net", ModelError, "cannot be read: File name too long|there is no file"),
        ("a" * 300 + ".pt2", ModelError, "cannot be read: File name too long|there is no file"),
        ("net.py:", UsageError, "name the function"),
        ("net.py:a.b", ModelError, "has no a.b"),
        ("net.py:\udc80", UsageError, "is not text"),
        ("net\0.py:net", UsageError, "is not text"),
    ],
)
def test_a_name_of_no_model_file_is_told(
    name: str, error: type[JoulemapError], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.py").mkdir()
    os.mkfifo("pipe.py")
    (tmp_path / "net.py").write_bytes(write_file())
    with pytest.raises(error, match=message):
        Workspace(tmp_path / "x.duckdb").profile(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1," + "9" * 30, "is too large, expected at most"),
        ("9" * 5_000, "is too large, expected at most"),
        ("1,3,999999999,999999999", "is too large"),
        (",".join(["1"] * 2_000), "has 2000 dimensions, expected at most 64"),
        ("-1,3", "cannot read the input"),
        ("", "cannot read the input"),
        ("1,nan", "cannot read the input"),
        ("\u0661,2", "cannot read the input"),
    ],
)
def test_an_input_that_nothing_holds_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as told:
        parse_input(text)
    assert len(str(told.value)) < 200
