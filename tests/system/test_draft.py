"""Drafts are swept when their process is gone, and nothing else ever is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joulemap.store.connection import reading
from joulemap.system.cache import CACHE
from joulemap.system.draft import DRAFTS, MARKER, discard, drafting, sweep


def test_a_draft_is_empty_and_gone_afterwards_with_its_place(tmp_path: Path) -> None:
    with drafting(tmp_path) as folder:
        assert list(folder.iterdir()) == []
        assert folder.parent == tmp_path / DRAFTS
        (folder / "half").write_text("x")
        (folder / "half").replace(tmp_path / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_drafts_of_several_stand_side_by_side(tmp_path: Path) -> None:
    with drafting(tmp_path) as one:
        with drafting(tmp_path) as other:
            assert one != other
        assert one.is_dir()
        assert not other.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), drafting(tmp_path / "no"):
        pass


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_holds_is_not(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from joulemap.system.draft import drafting
with drafting(Path({str(tmp_path)!r})) as folder:
    (folder / "half").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        sweep(tmp_path)
        assert (left / "half").exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    assert (left / "half").exists()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_question_sweeps_the_cache_which_is_seldom_written(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    place = tmp_path / DRAFTS
    (place / ("c" * 32)).mkdir(parents=True)
    for name in (MARKER, f"{'c' * 32}.lock"):
        (place / name).touch()
    with reading(database):
        assert not place.exists()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    others = [tmp_path / ".joulemap.duckdb.bak", tmp_path / ".git.bak", tmp_path / DRAFTS]
    for other in others:
        other.mkdir()
        (other / f"{'a' * 32}.lock").touch()
        (other / ("a" * 32)).mkdir()
        os.utime(other, (0, 0))
    sweep(tmp_path)
    with drafting(tmp_path / ".git.bak"):
        pass
    assert all((other / ("a" * 32)).is_dir() for other in others)
    (tmp_path / DRAFTS / MARKER).touch()
    (tmp_path / DRAFTS / "mine").mkdir()
    sweep(tmp_path)
    assert sorted(path.name for path in (tmp_path / DRAFTS).iterdir()) == [MARKER, "mine"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in (MARKER, f"{'b' * 32}.lock"):
        (elsewhere / name).touch()
    here = tmp_path / "here"
    here.mkdir()
    (here / DRAFTS).symlink_to(elsewhere)
    sweep(here)
    assert len(list(elsewhere.iterdir())) == 2


def test_an_empty_place_goes(tmp_path: Path) -> None:
    (tmp_path / DRAFTS).mkdir()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_discards_its_own(tmp_path: Path) -> None:
    with drafting(tmp_path):
        discard()
        assert list(tmp_path.iterdir()) == []
