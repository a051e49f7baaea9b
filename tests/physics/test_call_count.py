"""How many calls an evaluation makes: what decides how long it takes, and the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from joulemap.catalog.load import load_catalogue
from joulemap.physics.outcome import Asked
from joulemap.physics.pipeline import Evaluator, evaluate_together
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import MODES
from models import shipped

CATALOGUE = load_catalogue()
GPUS = tuple(one for one in CATALOGUE.hardware.values() if one.architecture == "gpu" and "fp16" in one.peaks)


def count_calls(function: Callable[[], object]) -> int:
    """Return the calls, to Python and C, that a function makes the second time: the first one prepares."""
    function()
    made = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return made


def asked(hardware: Hardware, precision: str, runtime: str) -> Asked:
    return hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime)


@pytest.mark.parametrize(
    ("hardware", "precision", "runtime", "most"),
    [
        ("tpu_v4", "bf16", "graph", 1518),
        ("h100_sxm5", "fp16", "fused", 4504),
        ("h100_sxm5", "fp16", "engine", 4510),
        ("h100_sxm5", "fp32", "fused", 4565),
        ("h100_sxm5", "fp32", "engine", 4585),
        ("xeon_8490h", "int8", "engine", 3400),
    ],
)
def test_one_evaluation_makes_no_more_calls(hardware: str, precision: str, runtime: str, most: int) -> None:
    chip = CATALOGUE.find(hardware)
    evaluator, one = Evaluator(shipped("resnet18")), asked(chip, precision, runtime)
    assert count_calls(lambda: evaluator.evaluate_all([one])) <= most


def test_workloads_that_are_evaluated_together_make_fewer_calls() -> None:
    evaluators = [Evaluator(shipped("resnet18", batch)) for batch in (1, 8, 32)]
    every = [
        (work, hardware, Configuration(hardware=hardware.id, precision="fp16", runtime="engine", batch=batch))
        for work, batch in enumerate((1, 8, 32))
        for hardware in GPUS[::4]
    ]
    alone = 0
    for work, evaluator in enumerate(evaluators):
        mine = [(hardware, one) for number, hardware, one in every if number == work]
        alone += count_calls(partial(evaluator.evaluate_totals, mine))
    assert count_calls(lambda: evaluate_together(evaluators, every)) < 0.7 * alone


def test_many_evaluations_make_few_calls_each() -> None:
    evaluator = Evaluator(shipped("resnet18"))
    many = [asked(hardware, "fp16", runtime) for runtime in MODES for hardware in GPUS]
    assert count_calls(lambda: evaluator.evaluate_all(many)) <= 1080 * len(many)
