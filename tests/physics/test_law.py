"""A run that breaks a law: found by evaluation, kept with its name, and never sure."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
from torch import nn

import chips
import joulemap as library
from conftest import Run
from joulemap.physics import law, timing
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.physics.interval.half_width import BROKEN
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.workload import Integers, columns_of
from joulemap.system.errors import LawError
from laws.table import LAWS
from models import meta, trace


@pytest.fixture
def _half_the_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only half of the cycles of a kernel exist, which boards with GDDR count all; numbers stay as they are."""
    strict = (attrs.evolve(one, tolerance=0.5) if one.name == "cycles exist" else one for one in law.LAWS)
    monkeypatch.setattr(law, "LAWS", tuple(strict))


@pytest.mark.usefixtures("_half_the_cycles")
def test_evaluation_raises_where_it_is_asked_to() -> None:
    with pytest.raises(LawError, match="cycles exist"):
        library.predict("resnet18", "rtx_4090", precision="fp16")


@pytest.mark.usefixtures("_half_the_cycles")
def test_a_prediction_that_breaks_a_law_has_no_narrow_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(law.VARIABLE)
    found = library.predict("resnet18", np.array(["rtx_4090", "h100_sxm5"]), precision="fp16")
    widths = np.log(found.energy_high_j / found.energy_j), np.log(found.latency_high_s / found.latency_s)
    assert min(one[0] for one in widths) >= BROKEN * (1.0 - 1e-9)
    assert max(one[1] for one in widths) < 1.0


@pytest.mark.usefixtures("_half_the_cycles")
def test_a_user_keeps_the_run_and_reads_the_law_first(joulemap: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(law.VARIABLE)
    done = joulemap("compare", "resnet18", "rtx_4090,l4", "--precision", "fp16", "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["how_sure"].startswith("the numbers of rtx_4090 break a law (cycles exist)")
    assert all(max(one["probabilities"]) < TOLD_APART for one in answer["recommendations"] if one["probabilities"])
    found = joulemap("sql", "SELECT broken_laws FROM runs ORDER BY hardware", "--format", "csv").stdout
    assert "cycles exist" in found


def test_steps_read_their_weights_and_waits_have_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[law.Evaluated] = []

    def find_broken(one: law.Evaluated) -> Integers:
        seen.append(one)
        return law.find_broken(one)

    monkeypatch.setattr(timing, "find_broken", find_broken)
    layer = Evaluator(columns_of(trace(nn.LSTM(3072, 3072, device="meta"), meta(50, 1, 3072))))
    layer.evaluate(chips.find("l4"), Configuration(hardware="l4", precision="fp16"))
    one = seen[-1]
    with pytest.raises(LawError, match="steps"):
        law.find_broken(attrs.evolve(one, kernel_s=one.kernel_s / 20.0))
    waiting = attrs.evolve(one.placement, memory_s=one.placement.memory_s * 60.0)
    with pytest.raises(LawError, match="waits"):
        law.find_broken(attrs.evolve(one, placement=waiting))


def test_each_number_of_a_broken_law_has_its_name() -> None:
    assert law.name_broken(0) == ""
    assert law.name_broken((1 << len(law.LAWS)) - 1).split(law.SEPARATOR) == [one.name for one in law.LAWS]


def test_laws_have_names_of_their_own_and_a_sentence() -> None:
    assert len(LAWS) >= 40
    assert len({one.name for one in LAWS}) == len(LAWS)
    assert all(one.sentence.endswith(".") and one.tolerance >= 1.0 and one.reason for one in LAWS)
