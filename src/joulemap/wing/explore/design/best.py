"""Best design by each objective, and what makes it differ from its unchanged chip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from joulemap.catalog.design import name_design, write_design
from joulemap.domain import HardwareRef, name_constant, show_constant
from joulemap.physics import RETICLE, STATIC, Constant, Hardware, list_constants
from joulemap.show import join_names, show_count, show_plain, show_quantity
from joulemap.system import UsageError, frozen, write_text
from joulemap.wing.explore.design.outcome import DesignColumns, Objective, evaluate_model
from joulemap.wing.explore.design.survey import Survey, evaluate_rows
from joulemap.wing.explore.generated.row import BestDesign

if TYPE_CHECKING:
    from joulemap.wing.explore.design.question import DesignQuestion


UNITS: Final = "units"

MOST_REASONS: Final = 2
"""Maximum reasons of refusal that a message states."""


def show_objective(value: float, unit: str) -> str:
    """Return the value of an objective as text."""
    return f"{value:.3g} mm2" if unit == "mm2" else show_quantity(value, unit)


def name_parameter(survey: Survey, name: str) -> str:
    """Return the plain name of a varied constant, such as `memory bandwidth`."""
    return UNITS if name == "unit_count" else name_constant(find_constant(survey, name))


def find_constant(survey: Survey, name: str) -> Constant:
    """Return a varied constant of the first base chip that has it."""
    return next(one.space.law.constants[name] for one in survey.groups if name in one.space.law.constants)


def describe_design(done: Survey, row: int) -> str:
    """Return a text with the base chip and the parameters of a design."""
    base, values = describe_parts(done, row)
    return f"{base} with {values}"


def describe_parts(done: Survey, row: int) -> tuple[str, str]:
    """Return the base chip of a design, with what distinguishes it, and its parameters."""
    group = done.groups[int(done.group[row])]
    constants = group.space.law.constants
    values = (
        f"{name_parameter(done, name)} {show_constant(one, constants[name].unit)}"
        for name, one in done.values_at(row).items()
    )
    dimensions = {**group.dimensions, "batch": f"batch {group.batch}"}
    unlike = (
        value for name, value in dimensions.items() if len({str(find_dimension(one, name)) for one in done.groups}) > 1
    )
    return " ".join([group.hardware, *unlike]), ", ".join(values) or "unchanged"


def find_dimension(group: Any, name: str) -> object:
    """Return the value by which a group of designs differs from others, such as its batch, precision or base chip."""
    return group.batch if name == "batch" else group.dimensions.get(name, group.hardware)


def find_best(question: DesignQuestion, done: Survey, objective: Objective) -> BestDesign:
    """Return the best design by an objective."""
    return judge_design(question, done, objective, done.find_best(objective))


def judge_design(question: DesignQuestion, done: Survey, objective: Objective, row: int) -> BestDesign:
    """Return a design with its value by an objective."""
    outcomes = done.outcomes_at([row])
    value = float(outcomes.value(objective)[0])
    own = evaluate_rows(done.groups[int(done.group[row])], [{}])
    ratio = None if own.refusal[0] else (float(own.value(objective)[0]) / value) ** objective.sign
    return BestDesign(
        objective=objective.name,
        value=value,
        unit=objective.unit,
        half_width=outcomes.half_width(0, objective),
        design=describe_design(done, row),
        design_index=row,
        own_ratio=ratio,
        like_count=done.count_tied(row, objective, question.doubt),
    )


def evaluate_pair(done: Survey, row: int) -> tuple[DesignColumns, DesignColumns]:
    """Return the totals of the first model on a design, and on its unchanged chip."""
    group = done.groups[int(done.group[row])]
    values = {name: np.array([one]) for name, one in done.values_at(row).items()}
    design, unchanged = (evaluate_model(group.space, some, group.models[0], 1) for some in (values, {}))
    return design, unchanged


def write_best(best: BestDesign, question: DesignQuestion, done: Survey, path: Path) -> Path:
    """Write the best design by an objective as a hardware file; UsageError for a file that must not be replaced."""
    if path.suffix != ".toml":
        raise UsageError(f"{path}: a hardware file ends with .toml")
    ref = HardwareRef.read(done.groups[int(done.group[best.design_index])].hardware)
    notes = [f"Best {best.objective}: {best.design}.", *([f"Name it as {path}@{ref.mode}."] if ref.mode else [])]
    like, values = question.spelling.get(ref.label, ref.label), done.changes_at(best.design_index)
    write_text(path, write_design(name_design(path.stem), like, values, notes))
    return path


def describe_missed(done: Survey) -> str:
    """Return why no design is within the limits: the smallest excess, or why no design runs."""
    row = done.nearest_miss
    none = f"none of {len(done):,} designs" if len(done) > 1 else "no design"
    if row is None:
        counts = done.count_refusals()
        is_one = len(counts) == 1  # all designs share a single reason
        reasons = (
            reason if is_one else f"{show_count(count, 'design')}: {reason}" for reason, count in counts[:MOST_REASONS]
        )
        return f"{none} runs: {'; '.join(reasons)}"
    missed, outcomes = [], done.outcomes_at([row])
    for bound in done.bounds:
        excess, objective = float(bound.excess(outcomes)[0]), bound.objective
        if excess > 1.0:
            value, limit = (
                show_objective(one, objective.unit) for one in (float(getattr(outcomes, bound.column)[0]), bound.value)
            )
            missed.append(f"{objective.label} of {value} is {show_plain(excess)}x {bound.option} {limit}")
    base, values = describe_parts(done, row)
    return f"{none} meets the limits; the nearest is {base} with {values}, whose {join_names(missed)}"


FEW_CHIPS: Final = 3
"""A class with fewer chips than this is too small for a comparison of constants; all chips are compared."""


@frozen(kw_only=True)
class Beyond:
    """Constant that is more extreme in some designs than in any existing chip."""

    name: str
    value: float
    """Most extreme value of the constant among the designs."""
    unit: str
    known: str
    """Class of the existing chips in the comparison; empty if all chips were compared."""
    most: float
    """Most extreme value among existing chips: the maximum, or the minimum for energies and static power."""
    chip: str
    """Existing chip with the most extreme value."""


def find_beyond(done: Survey, rows: Sequence[int], chips: Sequence[Hardware]) -> Iterator[Beyond]:
    """Yield each constant that is more extreme in some designs than in any chip of their class.

    Energies and static power count if they are lower, other constants if they are higher.
    """
    rows = list(rows)
    groups = done.group[rows]
    for one in np.unique(groups).tolist():
        space = done.groups[one].space
        alike = [chip for chip in chips if chip.architecture == space.hardware.architecture]
        is_few = len(alike) < FEW_CHIPS
        stated = [(chip.id, list_constants(chip)) for chip in (chips if is_few else alike)]
        values = space.values_at(done.numbers[rows][groups == one])
        for name, column in values.items():
            unit = space.law.constants[name].unit
            known = [(at[name].value, chip) for chip, at in stated if name in at]
            is_less = unit == "J" or name == STATIC
            sign, value = (-1.0, float(column.min())) if is_less else (1.0, float(column.max()))
            own, chip = min(known) if is_less else max(known)
            if sign * value > sign * own:
                where = "" if is_few else space.hardware.architecture
                yield Beyond(name=name, value=value, unit=unit, known=where, most=own, chip=chip)


def find_oversize(done: Survey, rows: Sequence[int]) -> tuple[int, float]:
    """Return the number of designs that are larger than one die and larger than their base chip, and the largest area.

    An existing base chip may itself consist of several dies.
    """
    rows = list(rows)
    area = done.outcomes_at(rows).area_mm2
    built = [0.0 if one.space.hardware.projection else float(one.space.law.area.find_mm2({})[0]) for one in done.groups]
    return int((area > np.maximum(RETICLE.value, built)[done.group[rows]]).sum()), float(area.max())
