"""The page of a night: what is shown of each step, and how it differs from the last one."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import night
from night import Step, find_nights, run

STEPS = (Step(name="a", command=(), minutes=1), Step(name="b", command=(), minutes=1))


def test_a_step_ends_with_all_its_processes_at_its_limit(tmp_path: Path) -> None:
    child = tmp_path / "child"
    inner = f"import time\nwhile True: open({str(child)!r}, 'a').write('x'); time.sleep(0.05)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    begun = time.monotonic()
    found = run(Step(name="a", command=(sys.executable, "-c", program), minutes=1), tmp_path / "log", 2.0)
    assert (found.code, found.text) == (-1, "time was up")
    assert time.monotonic() - begun < 20.0
    assert child.exists()  # it ran
    size = child.stat().st_size
    time.sleep(0.3)
    assert child.stat().st_size == size


def write_night(folder: Path, day: str, step: str, commit: str = "a") -> None:
    """Write the night of a day, with one step."""
    (folder / f"2025-01-{day}T0100.json").write_text(
        f'{{"date": "2025-01-{day}T0100", "commit": "{commit}", "version": "1", "steps": {{"{step}": {{"code": 0, '
        '"took_s": 1.0, "spent_s": 1.0, "lines": ["x"]}}}'
    )


@pytest.mark.parametrize(("is_same", "ran"), [(True, ["b"]), (False, ["a", "b"])])
def test_a_night_goes_on_where_one_of_the_same_commit_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_same: bool, ran: list[str]
) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=night.ROOT, capture_output=True, text=True)
    write_night(tmp_path, "02", "a", commit.stdout.strip() if is_same else "other")
    steps = tuple(Step(name=name, command=("sh", "-c", f"echo {name} >> {tmp_path}/ran"), minutes=1.0) for name in "ab")
    monkeypatch.setattr(night, "STEPS", steps)
    monkeypatch.setattr(sys, "argv", ["night.py", "--folder", str(tmp_path), "--resume"])
    assert night.main() == 0
    assert (tmp_path / "ran").read_text().split() == ran
    assert {*next(find_nights(tmp_path)).steps} == {"a", "b"}
