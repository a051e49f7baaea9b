"""Sentences and rows on designs: the best by each objective, elasticities there, and the nearest miss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.computed import told
from joulemap.answer.scope import name_tf32
from joulemap.domain.value import show_constant
from joulemap.present.cell import show_chosen_share, show_doubt, show_within
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.wing.explore.answer.pose import Posed
    from joulemap.wing.explore.design.limit import Bound
    from joulemap.wing.explore.design.outcome import Objective
    from joulemap.wing.explore.design.solve import Target
    from joulemap.wing.explore.design.survey import Survey


SAME: Final = 1e-3
"""Relative tolerance within which a target is met, by the digits shown."""


@frozen(kw_only=True)
class BestDesign:
    """Best design by one objective."""

    objective: str = told("objective by which the design is best")
    value: float = told("value of the objective, in `unit`")
    unit: str = told("unit of the value")
    half_width: float | None = told("half-width of the 80 % interval of the value's logarithm; null where unknown")
    design: str = told("base chip and parameters")
    design_index: int = told("number among all designs")
    own_ratio: float | None = told("improvement over the unchanged chip as a factor; null where that cannot run")
    like_count: int = told("other designs statistically tied with it in the objective")


@frozen(kw_only=True)
class Margin:
    """Elasticity of an objective in one parameter at a best design, dependent constants included."""

    objective: str = told("objective whose best design it applies to")
    parameter: str = told("varied constant")
    value: float = told("value at the design, in `unit`")
    unit: str = told("SI unit")
    of: str = told("objective that changes")
    elasticity: float | None = told(
        "d ln `of` / d ln parameter, percent per percent; for an integer the mean from half to twice its value"
    )


@frozen(kw_only=True)
class RefusedDesigns:
    """Reason why designs cannot run."""

    reason: str = told("message of the first such design")
    design_count: int = told("designs that cannot run for this reason")


@frozen(kw_only=True)
class RuleRow:
    """Scaling rule of dependent constants."""

    rule: str = told("name of the rule")
    text: str = told("statement of the rule")
    basis: str = told("basis of the rule: derived, scaled, recalled or assumed")
    source: str = told("document or arithmetic behind the rule")


def show_objective(value: float, unit: str, half_width: float | None = None) -> str:
    """Return the value of an objective as text, with the digits that its interval supports."""
    return f"{value:.3g} mm2" if unit == "mm2" else show_within(value, unit, half_width)


def describe_design(done: Survey, row: int) -> str:
    """Return the base chip of a design and its parameters."""
    group = done.groups[int(done.group[row])]
    constants = group.space.law.constants
    values = (f"{name} {show_constant(one, constants[name].unit)}" for name, one in done.values_at(row).items())
    others = [one.hardware for one in done.groups if one is not group]
    alike = {"hardware": group.hardware, **group.dimensions, "batch": f"batch {group.batch}"}
    told_apart = [
        value
        for name, value in alike.items()
        if name == "hardware" or len({str(_dimension(one, name)) for one in done.groups}) > 1
    ]
    return f"{' '.join(told_apart) if others else group.hardware}: {', '.join(values) or 'as it is'}"


def _dimension(group: Any, name: str) -> object:
    return group.batch if name == "batch" else group.dimensions.get(name, group.hardware)


def name_question(posed: Posed) -> str:
    """Return the title: models, settings and base chips."""
    shares = [name if value == 1.0 else f"{name} {show_chosen_share(value)}" for name, value in posed.models.items()]
    chips = list(dict.fromkeys(one.hardware for one in posed.groups))
    first = posed.groups[0]
    same = [
        value
        for name, value in (("batch", f"batch {first.batch}"), *first.dimensions.items())
        if len({_dimension(one, name) for one in posed.groups}) == 1
    ]
    if first.space.hardware.tf32:
        fast = name_tf32(one.dimensions.get("runtime", "") for one in posed.groups)
        same = [f"fp32 ({fast})" if value == "fp32" else value for value in same]
    who = ", ".join(chips) if len(chips) <= 3 else f"{len(chips)} chips"
    return f"{', '.join((' + '.join(shares), *same))}: designs like {who}"


def find_best(posed: Posed, done: Survey, objective: Objective) -> BestDesign:
    """Return the best design by an objective."""
    from joulemap.wing.explore.design.survey import evaluate_rows

    row = done.find_best(objective)
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
        like_count=done.count_like(row, objective, posed.doubt),
    )


def list_margins(done: Survey, wanted: Sequence[Objective]) -> list[Margin]:
    """Return the elasticities of all objectives at the best design of each objective."""
    from joulemap.wing.explore.design.survey import find_slopes

    found = []
    for objective in wanted:
        row = done.find_best(objective)
        group = done.groups[int(done.group[row])]
        values = done.values_at(row)
        for name, slopes in find_slopes(group, values, wanted).items():
            unit = group.space.law.constants[name].unit
            found += [
                Margin(
                    objective=objective.name,
                    parameter=name,
                    value=values[name],
                    unit=unit,
                    of=one.name,
                    elasticity=slope,
                )
                for one, slope in zip(wanted, slopes, strict=True)
            ]
    return found


def list_rules(posed: Posed) -> list[RuleRow]:
    """Return the rules that apply to the varied constants."""
    used = {
        rule.name: rule
        for group in posed.groups
        if group.space.parameters
        for rule in group.space.law.list_used(one.name for one in group.space.parameters)
    }
    return [RuleRow(rule=one.name, text=one.text, basis=one.basis, source=one.source) for one in used.values()]


def say_beyond(done: Survey, rows: Sequence[int], chips: Sequence[Hardware]) -> tuple[str, ...]:
    """Return sentences on constants beyond all chips of their class, and on dies above the reticle limit."""
    from joulemap.domain.silicon import RETICLE, count_dies
    from joulemap.wing.explore.design.beyond import find_beyond, find_oversize

    said = {
        f"{one.name} {show_constant(one.value, one.unit)} ({'highest' if one.value > one.most else 'lowest'} of any "
        f"{one.known or 'chip'} in the catalogue: {show_constant(one.most, one.unit)}, {one.chip})": None
        for one in find_beyond(done, rows, chips)
    }
    lines = [f"beyond existing hardware: {'; '.join(said)}"] if said else []
    if (found := find_oversize(done, rows)) is not None:
        which = "the best design is" if len(rows) == 1 else f"{found.design_count:,} of {len(rows):,} best designs are"
        lines.append(
            f"{which} larger than the reticle limit of one die, {RETICLE.value:.0f} mm2 ({RETICLE.source}; "
            f"{RETICLE.basis}): up to {found.largest_mm2:,.0f} mm2, which is {count_dies(found.largest_mm2)} dies in a "
            f"package; die cost assumes equal dies, without packaging and die-to-die links. {found.chip} itself "
            f"has {found.own_mm2:,.0f} mm2 by the same table"
        )
    return tuple(lines)


def say_targets(done: Survey, wanted: Objective, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the targets that the best design misses; an integer constant may have no exact solution."""
    outcomes = done.outcomes_at([done.find_best(wanted)])
    found = [(one, float(outcomes.value(one.objective)[0])) for one in targets]
    return tuple(
        f"no value gives {one.objective.label} {show_objective(one.value, one.objective.unit)} exactly; nearest: "
        f"{show_objective(value, one.objective.unit)}"
        for one, value in found
        if not math.isclose(value, one.value, rel_tol=SAME)
    )


def say_sure(done: Survey, wanted: Sequence[Objective]) -> str:
    """Return the uncertainty of the best designs' values."""
    parts = []
    for one in wanted:
        width = done.outcomes_at([done.find_best(one)]).half_width(0, one)
        if width is not None:
            parts.append(f"{show_doubt(width)} ({one.label})")
    if not parts:
        return "uncertainty unknown: the base chip does not run the models, or its error is not known"
    shared = "designs based on one chip share most of this error, so smaller differences are significant"
    return f"80 % of designs are within {', '.join(parts)} of the prediction; {shared}"


def say_missed(done: Survey, bounds: Sequence[Bound]) -> str:
    """Return that no design meets the limits, and by how much the nearest exceeds them."""
    row = done.nearest_miss
    none = f"none of {len(done):,} designs" if len(done) > 1 else "no design"
    if row is None:
        refusals = done.count_refusals()
        told_first = "; ".join(f"{count:,} x {reason}" for reason, count in refusals[:2])
        return f"{none} runs it: {told_first}"
    missed, outcomes = [], done.outcomes_at([row])
    for bound in bounds:
        excess, unit = float(bound.excess(outcomes)[0]), bound.objective.unit
        if excess > 1.0:
            value = show_objective(float(getattr(outcomes, bound.column)[0]), unit)
            limit = show_objective(bound.value, unit)
            missed.append(f"{bound.objective.label} {value}, {excess:.3g} times beyond {bound.option} {limit}")
    where = describe_design(done, row)
    return f"{none} meets the limits; the nearest, {where}, has {'; '.join(missed)}"
