"""The page of a night: what is shown of each step, and how it differs from the last one."""

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import night
from night import Night, Outcome, Step, choose_lines, compare, find_last, run, write_page

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
    now = Night(date="2027-01-02T0100", commit="b", version="1", steps={"a": outcome(1, ("11 passed",))})
    then = Night(date="2027-01-01T0100", commit="a", version="1", steps={"a": outcome()})
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


def test_the_last_night_is_the_newest_of_the_folder(tmp_path: Path) -> None:
    assert find_last(tmp_path) is None
    for day in ("01", "02"):
        (tmp_path / f"2027-01-{day}T0100.json").write_text(
            f'{{"date": "2027-01-{day}T0100", "commit": "a", "version": "1", "steps": {{"a": {{"code": 0, '
            '"took_s": 1.0, "spent_s": 1.0, "lines": ["x"]}}}'
        )
    last = find_last(tmp_path)
    assert last is not None
    assert (last.date, last.steps["a"].lines) == ("2027-01-02T0100", ("x",))
