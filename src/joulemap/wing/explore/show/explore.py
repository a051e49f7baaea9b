"""Words and tables for explorations: what the best designs gain over the unchanged chip, and how many are as good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from joulemap.ask import Change, Choice, Entry, Facts, Share, Term
from joulemap.domain import TIE_RATIO, Col, Column, HardwareRef, Table, find_unknown, make_table, show_constant
from joulemap.physics import FP32
from joulemap.physics.record.silicon import count_dies
from joulemap.show import (
    Asked,
    Document,
    Figures,
    Grid,
    Page,
    Section,
    Template,
    alter,
    compose,
    fill_steps,
    join_names,
    list_notes,
    show_interval,
    show_plain,
    show_quantity,
    show_share,
    show_table,
)
from joulemap.show.present.cell import number
from joulemap.show.product import Fp32Run, describe_fp32
from joulemap.show.term import describe_causes
from joulemap.wing.explore.ask.explore import ExploreAnswer
from joulemap.wing.explore.block import name_column
from joulemap.wing.explore.design.best import (
    describe_design,
    describe_parts,
    find_constant,
    find_dimension,
    name_parameter,
    show_objective,
)
from joulemap.wing.explore.design.outcome import Objective
from joulemap.wing.explore.generated.row import BestDesign, Dot, RefusedDesigns

TITLE: Final = Template("{models}, {settings:list}: designs based on {chips:list}")
MODEL_SHARE: Final = Template("{name} {share:set %}")
BATCH: Final = Template("batch {batch}")
WIDE: Final = Template("fp32 ({meaning})")
BAND: Final = Template("Statistically tied with the front ({count})")
SENSITIVITY: Final = Template("sensitivity {model} {chip}")
MAIN: Final = ("energy", "latency")
"""Headings of columns that fold late."""
CHIP_COUNT: Final = Template("{count:n chip}")
NAMED_CHIPS: Final = 3
"""Maximum base chips named in the title."""

OUTCOMES: Final[Mapping[str, str]] = {
    "energy_per_inference_j": "energy",
    "latency_s": "latency",
    "throughput_per_s": "throughput",
    "average_power_w": "power",
    "area_mm2": "area, mm2",
    "die_cost_usd": "die cost",
    "clock_fraction": "share of full clock",
}
"""Column of a design's outcome -> heading in the table."""
DIES: Final = Template("{area} ({dies} dies)", is_number=True)

VOLTAGE: Final = Template("its clock needs another voltage, at which an on-chip action takes {ratio:x} the energy")
PEAK: Final = Template("its peak is {after}, {ratio:x} that of {chip}")

UNPRICED: Final = "area and die cost leave out memory interfaces, so more memory bandwidth costs nothing here"
NOT_SURE: Final = "uncertainty unknown: the base chip does not run the models, or its error is not known"
VARIED: Final = Template("varied by default: {names:list}; choose with --vary units=16:1024:*2")
RULE: Final = Template("{text} ({basis})")
LIKE: Final = "statistically tied with the front (80 %)"
PICK: Final = (Column(name="pick", type="VARCHAR", meaning="reason to choose a design"),)
"""Column that the dots of a chart have in addition to their own."""
BEST: Final[Mapping[str, str]] = {"latency": "fastest", "energy": "least energy", "cost": "cheapest"}
BEST_BY: Final = Template("best {noun}")
"""Reason to choose the best design by an objective, and by one without words of its own."""
KNEE, AS_IS = "knee", "unchanged"
ENERGIES: Final = ("energy", "efficiency", "edp")
"""Objectives that the parts of an energy explain."""
TAKE: Final = Template("Build {design}: {gains:and} [at {losses} of {chip}][than {chip_alone}][; {rest}].")
KEEP: Final = Template("Keep {chip}: no design[ within its {limit:W}] has better {objectives:or}")
GAIN: Final[Mapping[bool, Template]] = {
    False: Template("{ratio:x} less {noun}"),
    True: Template("{ratio:x} the {noun}"),
}
"""True if more of an objective is better -> words on its improvement."""
LOSS: Final = Template("{ratio:x} the {noun}")
MANY_TIED: Final = Template("{count:n other|others} may be as good")
FRONT: Final = Template("{front:#} of {points:n design} are on the Pareto front of {objectives:and}.")
ALONE: Final = Template("{design} is the only design: {values:and}.")
VALUE: Final = Template("{noun} {value}")
OBJECTIVES: Final[Mapping[str, str]] = {"edp": "EDP"}
"""Objective -> its name in a sentence, if that differs."""
MOST_NAMED: Final = 3
"""Maximum objectives whose values the first line states."""


def describe_answer(answer: ExploreAnswer) -> str:
    """Return the design to take with its gain and its cost over the unchanged chip, or that none is better."""
    facts, higher = answer.facts, {one.name for one in answer.survey.objectives if one.is_higher_better}
    choices, (sizes,) = facts.of(Choice), (one.values for one in facts.of(Entry) if not one.runs)
    count = {name: round(value.value) for name, value in sizes.items()}
    if count["points"] == 1:
        shown = [(one.metric, show_quantity(one.value.value, one.value.unit)) for one in choices[:MOST_NAMED]]
        values = [VALUE(noun=name_objective(metric), value=value) for metric, value in shown]
        return ALONE(design=_name_design(facts, choices[0]), values=values)
    names = [name_objective(one) for one in facts.asked]
    if all(one.ratio is None for one in choices):
        return FRONT(**count, objectives=names)
    pick = _find_better(facts)
    if pick is None:
        limits_w = {one.space.hardware.tdp.value for one in answer.survey.groups}
        limit = limits_w.pop() if len(limits_w) == 1 and "tdp" not in answer.survey.parameters else None
        return KEEP(chip=_name_base(facts, choices[0]), objectives=names, limit=limit) + "."
    moved = [one for one in facts.of(Change) if one.runs[1] == pick.run and one.metric in facts.asked]
    ratios = {one.metric: one.after.value / one.before.value for one in moved if one.metric != pick.metric}
    better = {name: ratio if name in higher else 1.0 / ratio for name, ratio in ratios.items()}
    gained = {pick.metric: pick.ratio, **{name: ratio for name, ratio in better.items() if ratio > TIE_RATIO}}
    lost = {name: ratios[name] for name, ratio in better.items() if ratio * TIE_RATIO < 1.0}
    losses = [LOSS(ratio=ratio, noun=name_objective(name)) for name, ratio in lost.items()]
    many = [one.total for one in facts.of(Share) if one.metric == pick.metric and one.total]
    chip = _name_base(facts, pick)
    return TAKE(
        design=_name_design(facts, pick),
        gains=[GAIN[name in higher](ratio=ratio, noun=name_objective(name)) for name, ratio in gained.items()],
        losses=join_names(losses),
        chip=chip,
        chip_alone=None if losses else chip,
        rest=MANY_TIED(count=many[0]) if many else None,
    )


def _find_better(facts: Facts) -> Choice | None:
    """Return the first choice of a design that is better than its unchanged chip; None if no design is."""
    return next((one for one in facts.of(Choice) if one.ratio is not None and one.ratio > TIE_RATIO), None)


def _name_base(facts: Facts, choice: Choice) -> str:
    """Return the unchanged chip of the best design."""
    return facts.runs[-choice.run].hardware


def _name_design(facts: Facts, choice: Choice) -> str:
    """Return the chip of the best design with its numbers."""
    return facts.runs[choice.run].hardware


def name_objective(objective: str) -> str:
    """Return the name of an objective as it reads in a sentence."""
    return OBJECTIVES.get(objective, objective)


def title_question(answer: ExploreAnswer) -> str:
    """Return the models, the settings that all designs share, and the base chips."""
    groups = answer.question.groups
    models = [MODEL_SHARE(name=name, share=share) if share < 1.0 else name
              for name, share in answer.question.models.items()]  # fmt: skip
    chips = list(dict.fromkeys(one.hardware for one in groups))
    dimensions = {"batch": BATCH(batch=groups[0].batch), **groups[0].dimensions}
    alike = (name for name in dimensions if len({find_dimension(one, name) for one in groups}) == 1)
    bases = ((one.space.hardware, one.models[0].configuration) for one in groups)
    meaning = describe_fp32(
        Fp32Run.of(chip.architecture, chip.vendor, chip.peaks, chip.matmul_precision, configuration.runtime)
        for chip, configuration in bases
        if configuration.precision == FP32
    )
    settings = [WIDE(meaning=meaning) if meaning and dimensions[name] == FP32 else dimensions[name] for name in alike]
    named = chips if len(chips) <= NAMED_CHIPS else [CHIP_COUNT(count=len(chips))]
    return TITLE(models=" + ".join(models), settings=settings, chips=named)


def _head_outcomes(answer: ExploreAnswer) -> dict[str, str]:
    """Return column -> heading of the outcomes of a design, the objectives first."""
    judged = {one.column: one.label for one in answer.survey.objectives if one.column in answer.rows.names}
    return {**judged, **OUTCOMES}


def _list_differing(rows: Table[Any]) -> list[str]:
    """Return the settings that differ between designs."""
    settings = ("hardware", "precision", "batch", "runtime")
    places = {one.name: place for place, one in enumerate(rows.columns)}
    return [name for name in settings if len({row[places[name]] for row in rows}) > 1]


def _list_parameters(answer: ExploreAnswer) -> dict[str, tuple[str, str]]:
    """Return heading -> column and unit of each varied constant."""
    units = {name: find_constant(answer.survey, name).unit for name in answer.survey.parameters}
    return {name_parameter(answer.survey, name): (name_column(name, unit), unit) for name, unit in units.items()}


def _find_places(answer: ExploreAnswer) -> dict[str, tuple[int, str]]:
    """Return column of a design -> its place and unit."""
    return {one.name: (place, one.unit) for place, one in enumerate(answer.rows.columns)}


def list_columns(answer: ExploreAnswer, rows: Table[Any]) -> Iterator[Col[Any]]:
    """Yield the columns of designs: the settings that differ, the parameters, the reason to choose, the outcomes.

    They are those of the varied numbers and the objectives, so that no type of rows has them.
    """
    places = _find_places(answer)
    index, picks = places["design_index"][0], name_picks(answer)
    yield from (Col[Any](name).kept for name in _list_differing(rows))
    for heading, (name, unit) in _list_parameters(answer).items():
        yield Col[Any](name).headed(heading).by(partial(_format_constant, column=places[name][0], unit=unit)).kept
    yield Col[Any]("pick").by(lambda row: picks.get(row[index], "")).if_any.kept
    judged = {one.column for one in answer.survey.objectives}
    # a ranking by efficiency is one by energy, whose column stands for it
    ranked = {name if name in answer.rows.names else "energy_per_inference_j" for name in judged}
    for name, heading in _head_outcomes(answer).items():
        place, unit = places[name]
        column = Col[Any](name).headed(heading).by(partial(_format_outcome, name=name, column=place, unit=unit))
        column = column.ranking if name in ranked else column
        yield column.kept if heading in MAIN else column


def show_designs(answer: ExploreAnswer, title: str, rows: Table[Any], most: int) -> list[Section]:
    """Return the section of designs."""
    index, picks = _find_places(answer)["design_index"][0], name_picks(answer)
    return show_table(
        answer,
        title,
        rows,
        list_columns(answer, rows),
        limit=most,
        noun="designs",
        stays=lambda row: row[index] in picks,
        change=partial(mark_varied, answer),
    )


@number
def _format_constant(row: Sequence[Any], *, column: int, unit: str) -> str:
    return show_constant(row[column], unit)


def _format_outcome(row: Sequence[Any], *, name: str, column: int, unit: str) -> str:
    """Return an outcome as text; an area of several dies also states their number."""
    value = row[column]
    if value is None:
        return ""
    if name == "clock_fraction":
        return show_share(value)
    if name != "area_mm2":
        return show_objective(value, unit)
    dies = count_dies(value)
    return show_plain(value) if dies == 1 else DIES(area=show_plain(value), dies=dies)


def name_picks(answer: ExploreAnswer) -> dict[int, str]:
    """Return number of a design -> reason to choose it: best by an objective, the knee, or the unchanged chip."""
    done = answer.survey
    picks = {row: AS_IS for row in done.order(done.front, done.objectives[0]).tolist() if not done.changes_at(row)}
    for row in reversed(answer.best.rows):
        text = BEST.get(row.objective) or BEST_BY(noun=name_objective(row.objective))
        picks[row.design_index] = f"{text}, {AS_IS}" if AS_IS in picks.get(row.design_index, "") else text
    return picks if answer.knee is None else {answer.knee: KNEE, **picks}


def mark_varied(answer: ExploreAnswer, drawn: Grid) -> Grid:
    """Return a table of designs that names the columns which distinguish them."""
    headed = _list_parameters(answer)
    columns = {heading: drawn.column(place) for place, heading in enumerate(drawn.headings)}
    varied = [heading for heading in headed if len(set(columns[heading])) > 1]
    settings = [name for name in _list_differing(answer.rows) if name in drawn.headings]
    return attrs.evolve(drawn, distinguishing=(*settings, *varied))


def list_causes(answer: ExploreAnswer) -> Iterator[str]:
    """Yield what makes the design to take better or worse than its unchanged chip, each as two products or rates."""
    facts = answer.facts
    pick = _find_better(facts)
    if pick is None:
        return
    chip, is_energy = _name_base(facts, pick), pick.metric in ENERGIES
    if is_energy:
        terms = [one for one in facts.of(Term) if one.run == pick.run]
        yield from describe_causes(attrs.evolve(facts, facts=tuple(terms)), 1)
    for one in (change for change in facts.of(Change) if change.runs[1] == pick.run):
        ratio, after = one.after.value / one.before.value, show_quantity(one.after.value, one.after.unit)
        if one.metric == "voltage" and is_energy:
            yield VOLTAGE(ratio=ratio)
        elif one.metric == "peak":
            yield PEAK(chip=chip, after=after, ratio=ratio)


def list_all_notes(answer: ExploreAnswer) -> Iterator[str]:
    """Yield notes on caveats, the rules, the default parameters, and intervals that are unknown."""
    yield from list_notes(answer.facts)
    yield from map(RULE, answer.rules)
    if answer.is_usual:
        yield VARIED(names=[name_parameter(answer.survey, name) for name in answer.survey.parameters])
    if "memory_bandwidth" in answer.survey.parameters:
        yield UNPRICED
    if all(one.value.half_width is None for one in answer.facts.of(Choice)):
        yield NOT_SURE


def list_bases(answer: ExploreAnswer) -> list[dict[str, str]]:
    """Return the model and the base chip of the best design; empty for several models."""
    ref = HardwareRef.read(answer.survey.groups[int(answer.survey.group[answer.best[0].design_index])].hardware)
    named = HardwareRef.at(answer.question.spelling.get(ref.label, ref.label), ref.mode)
    return [{"model": name, "chip": str(named)} for name in answer.models if len(answer.models) == 1]


def draw_designs(answer: ExploreAnswer) -> Figures:
    """Return a figure of the front, the tied designs and the unchanged chip in the first two objectives; empty for one
    objective or design.
    """
    from joulemap.show import make_figure

    if len(answer.objectives) < 2 or answer.front_count < 2:
        return ()
    done, picks = answer.survey, name_picks(answer)
    x, y = done.objectives[:2]
    dots = [(_dot(answer, record, x, y), picks.get(record["design_index"])) for record in answer.rows.records()]
    changes = {one.metric: one.before.value for one in answer.facts.of(Change)}
    if len(done.groups) == 1 and {x.name, y.name} <= changes.keys() and not any(AS_IS in one for one in picks.values()):
        chip = done.groups[0].hardware
        own = dots[0][0].replace(status=AS_IS, x_value=changes[x.name], y_value=changes[y.name], hardware=chip,
                           dominated_by=AS_IS)  # fmt: skip
        dots.append((own, AS_IS))
    texts = {**_format_axis(x, "x_"), **_format_axis(y, "y_"), "label": "{hardware}"}
    table = make_table("designs", Dot, [one for one, _ in dots]).with_columns(PICK, ((pick,) for _, pick in dots))
    made = make_figure("pareto", table, title_question(answer), describe_answer(answer), texts)
    return (attrs.evolve(made, sketch=tuple({**one, "others": LIKE} for one in made.sketch)),)


def _dot(answer: ExploreAnswer, record: dict[str, Any], x: Objective, y: Objective) -> Dot:
    is_front = record["status"] == "front"
    fields = {**find_unknown(Dot), **{name: record[name] for name in ("precision", "batch", "runtime")}}
    fields |= {"x_value": record[x.column], "y_value": record[y.column], "dominated_by": None if is_front else LIKE}
    index, is_single = record["design_index"], len(answer.survey.groups) == 1
    name = describe_parts(answer.survey, index)[1] if is_single else describe_design(answer.survey, index)
    return Dot(**fields, status="front" if is_front else "dominated", hardware=name, is_available=True)


def _format_axis(objective: Objective, prefix: str) -> dict[str, str]:
    """Return the texts of an objective on an axis, in the form of a metric's."""
    unit = objective.unit if objective.unit.isalpha() and objective.unit != "USD" else ""
    texts = {
        "quantity": objective.label,
        "title": f"{objective.label} ({objective.unit})",
        "unit": unit,
        "scale": "" if objective.unit == "1/J" else objective.unit,
    }
    return {f"{prefix}{name}": text for name, text in texts.items()}


def draw_explored(answer: ExploreAnswer, asked: Asked) -> Document:
    """Return the document of an exploration."""
    most, best = asked.most(6), BestDesign.value.by(_show_best).kept
    return compose(
        answer,
        show_designs(answer, "", answer.front, most),
        answer.rows,
        title=title_question(answer),
        headline=describe_answer(answer),
        reasons=list_causes(answer),
        details=[
            *show_table(answer, "Best designs", answer.best, alter(BestDesign.table, best)),
            *show_designs(answer, BAND(count=f"{answer.band_count:,}"), answer.band, most),
            *show_table(answer, "Cannot run", answer.refused, RefusedDesigns.table, limit=most),
        ],
        notes=list_all_notes(answer),
        facts=answer.facts,
        steps=[step for one in list_bases(answer) for step in fill_steps([SENSITIVITY], None, asked.repeated, **one)],
        picture=partial(draw_designs, answer),
    )


def _show_best(row: BestDesign) -> str:
    """Return the best value of an objective with its interval."""
    if row.unit == "mm2":
        return show_objective(row.value, row.unit)
    return show_interval(row.value, row.unit, row.half_width)


PAGES: Final = {ExploreAnswer: Page[ExploreAnswer](draw=draw_explored, draw_figures=draw_designs)}
