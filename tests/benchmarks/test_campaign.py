"""A few trials of each kind of the campaign; `make campaign` has the rest."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import attrs
import pytest

from campaign import damage, fault, full, fuzz, interrupt, kill, race
from campaign.scene import SCENES, prepare_base
from campaign.trial import Trial
from sample import thin

SEED = 7
KILLED = tuple(scene for scene in SCENES if scene.name in ("compare", "new database", "import"))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    if shutil.which("cc") is not None:
        fault.build(folder)
    prepare_base(folder)
    return folder


@pytest.fixture
def trial(stage: Path, tmp_path: Path) -> Trial:
    return Trial(kind="sample", seed=SEED, number=0, stage=stage, place=tmp_path)


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("number", thin(range(3), 3))
def test_a_kill_at_a_write_loses_nothing(trial: Trial, number: int) -> None:
    assert kill.kill_at_write(attrs.evolve(trial, number=number), KILLED).failures == ()


@pytest.mark.slow
@pytest.mark.parametrize("number", thin(range(2), 2))
def test_a_kill_at_random_loses_nothing(trial: Trial, number: int) -> None:
    assert kill.kill_at_random(attrs.evolve(trial, number=number), KILLED).failures == ()


@pytest.mark.slow
@pytest.mark.parametrize("number", thin(range(2), 2))
def test_an_interrupt_is_obeyed_at_once(trial: Trial, number: int) -> None:
    assert interrupt.interrupt(attrs.evolve(trial, number=number), KILLED).failures == ()


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("number", thin(range(2), 2))
def test_a_full_disk_loses_nothing(trial: Trial, number: int) -> None:
    assert full.fill_disk(attrs.evolve(trial, number=number), KILLED).failures == ()


@pytest.mark.slow
def test_a_damaged_file_answers_rightly_or_is_refused(trial: Trial) -> None:
    damage.prepare(trial.stage)
    failures: list[str] = []
    for number in range(3):
        outcome = damage.ask_damaged(attrs.evolve(trial, number=number, place=trial.place / str(number)))
        failures += outcome.failures
    assert failures == []


@pytest.mark.slow
def test_processes_that_write_and_read_all_succeed(trial: Trial) -> None:
    assert race.race(trial, writer_count=2, reader_count=1, round_count=2).failures == ()


@pytest.mark.slow
def test_threads_share_a_workspace(trial: Trial) -> None:
    assert race.share(trial, thread_count=4, call_count=3).failures == ()


@pytest.mark.slow
@pytest.mark.parametrize("family", [one for one in fuzz.FAMILIES if not one.runs_code], ids=lambda family: family.name)
def test_inputs_that_nobody_means_are_refused_in_one_line(trial: Trial, family: fuzz.Family) -> None:
    random = Random(SEED)
    failures: list[str] = []
    for number in range(8):
        place = trial.place / str(number)
        failures += fuzz.feed_family(attrs.evolve(trial, place=place), family, random).failures
    assert failures == []
