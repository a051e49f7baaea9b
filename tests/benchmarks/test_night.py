"""The page of a night: what is shown of each step, and how it differs from the last one."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import night
from night import Night, Outcome, Step, choose_lines, compare, find_nights, run, write_page

STEPS = (Step(name="a", command=(), minutes=1), Step(name="b", command=(), minutes=1))


def outcome(code: int = 0, lines: tuple[str, ...] = ("12 passed",)) -> Outcome:
    return Outcome(code=code, took_s=90.0, spent_s=60.0, lines=lines)


def test_lines_are_the_last_that_tell() -> None:
    assert choose_lines("a 1\n\nb 2 \nc 3\n", r"[bc]") == ("b 2", "c 3")
    assert len(choose_lines("x\n" * 100, "")) == night.SHOWN


def test_changes_are_the_lines_that_went_and_came() -> None:
    assert compare(("a", "b", "c"), ("a", "c", "d")) == ("-b", "+d")
    assert compare(("a",), ("a",)) == ()


def test_a_page_has_every_step_and_what_changed() -> None:
    now = Night(date="2025-01-02T0100", commit="b", version="1", steps={"a": outcome(1, ("11 passed",))})
    then = Night(date="2025-01-01T0100", commit="a", version="1", steps={"a": outcome()})
    page = write_page(now, then, STEPS).splitlines()
    assert "| a | exit 1 | ok | 1.5 | 1.0 | 1.0 |" in page
    assert "| b | not reached |  |  |  |  |" in page
    assert page[page.index("```diff") + 1 :][:2] == ["-12 passed", "+11 passed"]
    assert "| a | exit 1 |  | 1.5 | 1.0 |  |" in write_page(now, None, STEPS)
    assert "As last night." in write_page(then, then, STEPS)


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


def test_nights_of_a_folder_are_the_newest_first(tmp_path: Path) -> None:
    assert not [*find_nights(tmp_path)]
    for day in ("01", "02"):
        write_night(tmp_path, day, "a")
    last, *others = find_nights(tmp_path)
    assert (last.date, last.steps["a"].lines, len(others)) == ("2025-01-02T0100", ("x",), 1)


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
