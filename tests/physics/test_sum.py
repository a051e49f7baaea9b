"""Totals of runs are the sums of their ledgers, on every class, runtime and precision."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import joulemap.physics.sum
from chips import FORMS
from joulemap.physics.pipeline import Evaluator, evaluate_together
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.run import RunColumns, RunFacts, RunTotals
from joulemap.system.units import FS_PER_S
from models import shipped

CASES = (
    ("mobilenet_v2", 7),
    *(pytest.param(model, 1, marks=pytest.mark.slow) for model in ("mobilenet_v2", "vit_b_16")),
)
"""Models, and how many configurations one of those asked stands for: a seventh has all classes and all runtimes."""

FACTS = tuple(field.name for field in attrs.fields(RunFacts) if field.name not in ("configuration", "hardware"))


def _sum_by_hand(run: RunColumns) -> dict[str, object]:
    """Return the totals of a run from its parts."""
    parts = run.subgraphs
    launch = np.minimum(np.rint(parts.launch_s * FS_PER_S).astype(np.int64), parts.latency_fs)
    computes = parts.compute_s >= parts.memory_s
    passes = np.minimum(np.rint(parts.pass_s * FS_PER_S).astype(np.int64), parts.latency_fs - launch)
    busy = parts.latency_fs - launch - passes
    actions = np.unique(run.ledger.action_index)
    return {
        **{name: getattr(run, name) for name in FACTS},
        "latency_fs": run.latency_fs,
        "interval_fs": run.interval_fs,
        "energy_fj": run.energy_fj,
        "compute_fs": int(busy[computes].sum()),
        "memory_fs": int(busy[~computes].sum() + passes.sum()),
        "launch_fs": int(launch.sum()),
        "bottleneck_fs": tuple(int(parts.latency_fs[parts.bottleneck == code].sum()) for code in range(3)),
        "unit_fs": sum(int(n) * int(t) for n, t in zip(parts.units_used_count, parts.latency_fs, strict=True)),
        "dram_bytes": float(parts.dram_bytes.sum()),
        "moved_bytes": float(parts.moved_bytes.sum()),
        "computed_mac_count": int(parts.computed_mac_count.sum()),
        "action_index": actions.tolist(),
        "action_fj": [int(run.ledger.energy_fj[run.ledger.action_index == one].sum()) for one in actions],
    }


def _list_asked(chips: tuple[Hardware, ...]) -> list[tuple[Hardware, Configuration]]:
    return [
        (one, Configuration(hardware=one.id, power_mode=one.power_mode, precision=precision, runtime=runtime, batch=1))
        for one in chips
        for precision in (*one.peaks, "fp64")
        for runtime in RUNTIME_NAMES
    ]


@pytest.mark.parametrize(("model", "every"), CASES)
def test_totals_equal_the_sums_of_the_ledger(model: str, every: int) -> None:
    evaluator, asked = Evaluator(shipped(model)), _list_asked(FORMS)[::every]
    runs, points = evaluator.evaluate_all(asked), evaluator.evaluate_totals(asked)
    assert {one.architecture for one, _ in asked} == {one.architecture for one in FORMS}
    done = [run for run in runs if isinstance(run, RunColumns)]
    slow = {run.hardware.id for run in done if run.latency_fs >= joulemap.physics.sum.MOST}
    for run, point in zip(runs, points, strict=True):
        if not isinstance(run, RunColumns):
            assert str(point) == str(run)
            continue
        assert isinstance(point, RunTotals | RunColumns)
        expected = _sum_by_hand(run)
        if isinstance(point, RunColumns):
            assert point.hardware.id in slow or evaluator.falls_back(point.hardware)
            assert _sum_by_hand(point) == expected
            continue
        found = {name: getattr(point, name) for name in expected}
        found |= {name: getattr(point, name).tolist() for name in ("action_index", "action_fj")}
        assert found == expected
        counts = np.bincount(run.ledger.action_index, run.ledger.action_count)[point.action_index]
        assert np.allclose(point.action_count, counts, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("model", "every"), CASES)
def test_workloads_together_equal_each_alone(model: str, every: int) -> None:
    batches = (1, 8, 48)  # 48 may be cut into parts of 3, 6, 12 …; 8 may not
    evaluators = [Evaluator(shipped(model, batch)) for batch in batches]
    asked = [
        (work, chip, attrs.evolve(one, batch=batch))
        for work, batch in enumerate(batches)
        for chip, one in _list_asked(FORMS)[::every]
    ]
    together = iter(evaluate_together(evaluators, asked))
    names = [field.name for field in attrs.fields(RunTotals) if field.name not in ("configuration", "hardware")]
    for work, evaluator in enumerate(evaluators):
        for alone in evaluator.evaluate_totals([(chip, one) for number, chip, one in asked if number == work]):
            found = next(together)
            if isinstance(alone, RunTotals):
                for name in names:
                    assert np.array_equal(getattr(found, name), getattr(alone, name)), (alone.hardware.id, name)
            else:
                assert type(found) is type(alone) and (isinstance(alone, RunColumns) or str(found) == str(alone))


def test_a_duplicate_is_answered_twice_among_workloads_that_lack_chips() -> None:
    """Chips that only some of the workloads ask for form groups of their own."""
    evaluators = [Evaluator(shipped("resnet18", batch)) for batch in (1, 8)]
    (first, *_), (second, *_) = (_list_asked(FORMS[at : at + 1]) for at in (0, 1))
    asked = [(0, *first), (1, *first), (0, *second), (0, *first)]
    for (work, chip, one), found in zip(asked, evaluate_together(evaluators, asked), strict=True):
        (alone,) = evaluators[work].evaluate_totals([(chip, one)])
        assert isinstance(found, RunTotals) and isinstance(alone, RunTotals)
        assert (found.hardware, found.energy_fj, found.latency_fs) == (chip, alone.energy_fj, alone.latency_fs)


def test_totals_beyond_64_bits_come_with_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joulemap.physics.sum, "MOST", 1.0)
    found = Evaluator(shipped("mobilenet_v2")).evaluate_totals(_list_asked(FORMS[:1]))
    assert any(isinstance(one, RunColumns) for one in found)
    assert not any(isinstance(one, RunTotals) for one in found)
