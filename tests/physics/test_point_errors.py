"""Intervals of points: as wide as those of runs, and no point depends on those beside it."""

from __future__ import annotations

import math
import pickle
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

import chip
from chips import FORMS
from compare import assert_close
from joulemap.catalog.error_scale import load_doubt
from joulemap.physics.interval.error_record import ErrorRecord
from joulemap.physics.interval.error_scale import BasisSpread, Doubt, ErrorScale
from joulemap.physics.interval.point import Case, PointErrors
from joulemap.physics.interval.scale import Subject
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.address import Address, read_number
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.quantity import BASES
from joulemap.physics.total import PointColumns, evaluate_points, evaluate_totals
from models import shipped

ERRORS = PointErrors(load_doubt())
ONE_OF_EACH_CLASS = tuple({one.architecture: one for one in reversed(FORMS)}.values())


def rows(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def test_a_width_follows_by_hand() -> None:
    """A latency known within 0.3 and a power within 0.4: the energy is within 0.5, whatever its energies say."""
    scales = tuple(
        ErrorScale(
            quantity=quantity, level=7, architecture="", work="", runtime="", precision="", hardware="",  # type: ignore[arg-type]
            half_width=width, group_count=1, row_count=1,
        )
        for quantity, width in (("latency", 0.3), ("power", 0.4))
    )  # fmt: skip
    none = chip.number(1e-9)
    spreads = tuple(BasisSpread(number_basis=basis, half_width=none) for basis in BASES)
    errors = PointErrors(Doubt(scales=scales, shares=(), spreads=spreads))
    hardware = chip.bound(chip.kpu(), "default", "board")
    configuration = Configuration(hardware=hardware.id, precision="int8", runtime="eager")
    points = evaluate_totals(Evaluator(shipped("resnet18")), [(hardware, configuration)])
    found = errors.find_half_widths(points, [Case(hardware=hardware, configuration=configuration)], rows(0))
    assert_close(float(found.latency[0]), 0.3)
    assert_close(float(found.energy[0]), 0.5)


def evaluate(asked: list[Case]) -> PointColumns:
    evaluator = Evaluator(shipped("resnet18"))
    return evaluate_totals(evaluator, [(one.hardware, one.configuration) for one in asked])


def test_no_interval_depends_on_the_points_beside_it() -> None:
    chips = [chip.bound(one, "default", "board") for one in ONE_OF_EACH_CLASS]
    cases = [
        Case(hardware=one, configuration=Configuration(hardware=one.id, precision=precision, runtime=runtime))
        for one in chips
        for precision in ("int8", "fp4")
        for runtime in ("eager", "engine")
    ]
    points = evaluate(cases)
    assert {"", *points.refusal.tolist()} != {""}  # no chip of these has fp4
    together = ERRORS.find_half_widths(points, cases, np.arange(len(cases)))
    for number, case in enumerate(cases):
        alone = PointErrors(load_doubt()).find_half_widths(evaluate([case]), [case], rows(0))
        for field in attrs.fields(type(alone)):
            assert getattr(alone, field.name)[0] == getattr(together, field.name)[number], (case, field.name)
    assert (together.energy[points.refusal != ""] == 0.0).all()
    assert (together.energy[points.refusal == ""] > 0.0).all()


def test_points_of_one_case_share_its_errors_until_their_chip_is_of_another_size() -> None:
    hardware = chip.bound(chip.kpu(), "default", "board")
    configuration = Configuration(hardware=hardware.id, precision="int8", runtime="engine")
    peak = Address("peak", "int8")
    rates = read_number(hardware, peak) * np.array([1.0, 2.0, 1e-5])
    points = evaluate_points(Evaluator(shipped("resnet18")), hardware, configuration, {peak: rates})
    assert (points.refusal == "").all()
    case = Case(hardware=hardware, configuration=configuration, varied=frozenset({peak}))
    found = ERRORS.find_half_widths(points, [case], rows(0, 0, 0))
    levels = []
    for number, rate in enumerate(rates.tolist()):
        half_width, level, *_ = ERRORS.record.find_errors(case.describe(rate))
        assert found.latency[number] >= half_width
        levels.append(level)
    assert levels[0] == levels[1]


def test_held_out_errors_of_a_calibration_replace_those_of_a_group() -> None:
    widths = {"bf16": (0.1, 0.2), "fp32": (0.3, None)}
    record = ErrorRecord(scales=(), floors=(), held_out={("c", "h200_sxm", "eager"): widths})

    def find(**changes: Any) -> tuple[float | None, float | None]:
        like = Subject(work="model", architecture="gpu", runtime="eager", precision="bf16", hardware="h200_sxm")
        return record.find_held_out("c", attrs.evolve(like, **changes))

    assert find() == (0.1, 0.2)
    assert find(precision="fp32") == (0.3, 0.2)  # the largest of other precisions where its own is missing
    assert find(precision="int8") == (0.3, 0.2)
    assert find(runtime="engine") == find(work="decode") == find(hardware="l4") == (None, None)
    unknown = record.find_errors(
        Subject(work="model", architecture="gpu", runtime="eager", precision="bf16", hardware="l4")
    )
    assert all(map(math.isnan, unknown))


def test_errors_are_sent_to_other_processes_without_what_they_found() -> None:
    hardware = chip.bound(chip.kpu(), "default", "board")
    case = Case(hardware=hardware, configuration=Configuration(hardware=hardware.id, precision="int8"))
    found = ERRORS.find_half_widths(evaluate([case]), [case], rows(0))
    again = pickle.loads(pickle.dumps(ERRORS))
    assert len(pickle.dumps(ERRORS)) < 200_000
    assert again.find_half_widths(evaluate([case]), [case], rows(0)).energy[0] == found.energy[0]
