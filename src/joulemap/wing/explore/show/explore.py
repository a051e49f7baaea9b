"""Words and tables for explorations: what the best designs gain over the unchanged chip, and how many are as good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask import Choice, Entry, Facts, Share
from joulemap.domain import TIE_RATIO, HardwareRef, Table, find_unknown, make_table, show_constant
from joulemap.physics import FP32
from joulemap.physics.record.silicon import count_dies
from joulemap.show import (
    Figures,
    Grid,
    Part,
    Sheet,
    Template,
    fits,
    list_notes,
    show_interval,
    show_plain,
    show_quantity,
    show_share,
)
from joulemap.show.present.cell import Number, number
from joulemap.show.product import Fp32Run, describe_fp32
from joulemap.wing.explore.ask.explore import ALIKE, SAME, ExploreAnswer
from joulemap.wing.explore.block import name_column
from joulemap.wing.explore.design.best import (
    describe_design,
    find_constant,
    find_dimension,
    name_parameter,
    show_objective,
)
from joulemap.wing.explore.generated.row import Dot

if TYPE_CHECKING:
    from joulemap.wing.explore.design.outcome import Objective

TITLE: Final = Template("{models}, {settings:list}: designs based on {chips:list}")
MODEL_SHARE: Final = Template("{name} {share:set %}")
BATCH: Final = Template("batch {batch}")
WIDE: Final = Template("fp32 ({meaning})")
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

STILL: Final = Template("at {design}, {objective} hardly depends on {parameters:or}")
EFFECT: Final = Template(
    "at {design}, {objective} changes by {changes:and}[; the power limit lowers the clock there to {clock:%} of the "
    "full clock]"
)
BEST_DESIGN: Final = Template("the design with the best {objective}")
THIS_DESIGN: Final = "this design"
CHANGE: Final = Template("{change} % for 1 % more {parameter}")
MOVING: Final = 5e-3
"""Elasticity below which an objective counts as unaffected by a parameter."""

NAMED_PARAMETERS: Final = 3
"""Maximum parameters whose effect on an objective is stated."""

NOT_SURE: Final = "uncertainty unknown: the base chip does not run the models, or its error is not known"
SHARED: Final = (
    "designs based on one chip share most of their error, so differences smaller than these intervals can be "
    "significant"
)
VARIED: Final = Template("varied by default: {names:list}; choose with --vary units=16:1024:*2")
RULE: Final = Template("{text} ({basis})")
LIKE: Final = "statistically tied with the front (80 %)"
LETTERS: Final = "letters: the front"


GAINS: Final = Template("{subject} {gains} than the unchanged chip[; {rest}].")
ONE: Final = "The best design has"
SEVERAL: Final = "The best designs have"
GAIN: Final = Template("{ratio:x} {direction} {noun}[ ({design})]")
LOWER, HIGHER = "lower", "higher"
NO_GAIN: Final = Template("No design improves on the unchanged chip[; {rest}].")
FRONT: Final = Template("{front:#} of {points:n design} are on the Pareto front")
MANY_TIED: Final = Template("{count:#} others are statistically tied on {noun:and}")
TIED: Final = Template("{band:#} of {points:n design} are statistically tied with it")
WHOLE: Final = Template("{rest} of {objectives:and}.")
ALONE: Final = Template("{subject} {values:and}.")
HAS: Final = Template("{design} has")
VALUE: Final = Template("{noun} {value}")
OBJECTIVES: Final[Mapping[str, str]] = {"edp": "EDP"}
"""Objective -> its name in a sentence, if that differs."""
MOST_ALIKE: Final = 0.5
"""Share of the other designs, statistically tied with the best, from which the first line says so."""
SHORT: Final = 4
"""Maximum words of a design among others in the first line."""
MOST_NAMED: Final = 3
"""Maximum objectives whose gains the first line states."""


def describe_answer(answer: ExploreAnswer) -> str:
    """Return the gains of the best designs over the unchanged chip, or the size of the front."""
    facts, higher = answer.facts, {one.name for one in answer.survey.objectives if one.is_higher_better}
    choices = facts.of(Choice)
    (sizes,) = (one.values for one in facts.of(Entry) if not one.runs)
    count = {name: round(value.value) for name, value in sizes.items()}
    if count["points"] == 1:
        shown = [(one.metric, show_quantity(one.value.value, one.value.unit)) for one in choices[:MOST_NAMED]]
        values = [VALUE(noun=name_objective(metric), value=value) for metric, value in shown]
        return ALONE(subject=HAS(design=_name_design(facts, choices[0])), values=values)
    is_one = count["front"] == 1
    known = [one for one in choices if one.ratio is not None]
    rest = None if is_one and not count["band"] else TIED(**count) if is_one else FRONT(**count)
    if not known:
        names = [name_objective(one) for one in facts.asked]
        return WHOLE(rest=FRONT(**count), objectives=names)
    many = {one.metric: one.total for one in facts.of(Share) if one.level == ALIKE and one.share >= MOST_ALIKE}
    gained = [one for one in known if one.ratio is not None and one.ratio > TIE_RATIO]
    if not gained:
        return NO_GAIN(rest=rest)
    gained = gained[:MOST_NAMED]
    is_same = len({one.runs[0] for one in gained}) == 1
    designs = [_name_design(facts, one) for one in gained]
    is_named = not is_same and all(one.count(" ") < SHORT for one in designs)
    gains = [
        GAIN(
            ratio=one.ratio,
            direction=HIGHER if one.metric in higher else LOWER,
            noun=name_objective(one.metric),
            design=name if is_named else None,
        )
        for one, name in zip(gained, designs, strict=True)
    ]
    if tied := [one.metric for one in gained if one.metric in many]:
        nouns = [name_objective(one) for one in tied if many[one] == many[tied[0]]]
        rest = MANY_TIED(count=many[tied[0]], noun=nouns)
    word = " and " if is_one or is_same else " or "
    subject = HAS(design=designs[0]) if is_same else ONE if is_one else SEVERAL
    whole = GAINS(subject=subject, gains=word.join(gains), rest=rest)
    return whole if fits(whole) else GAINS(subject=subject, gains=word.join(gains), rest=None)


def _name_design(facts: Facts, choice: Choice) -> str:
    """Return the chip of the best design with its numbers."""
    return facts.runs[choice.runs[0]].hardware


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
    ).title
    settings = [WIDE(meaning=meaning) if meaning and dimensions[name] == FP32 else dimensions[name] for name in alike]
    named = chips if len(chips) <= NAMED_CHIPS else [CHIP_COUNT(count=len(chips))]
    return TITLE(models=" + ".join(models), settings=settings, chips=named)


def choose(answer: ExploreAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the columns of designs, and those that rank them."""
    judged = {one.column: one.label for one in answer.survey.objectives}
    # a ranking by efficiency is one by energy, whose column stands for it
    ranked = " ".join(name if name in answer.rows.names else "energy_per_inference_j" for name in judged)
    tables = {"front": answer.front, "band": answer.band}
    return {**{f"{name}_columns": _list_columns(answer, rows) for name, rows in tables.items()}, "ranked": ranked,
            "band_count": f"{answer.band_count:,}"}  # fmt: skip


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


def _list_columns(answer: ExploreAnswer, rows: Table[Any]) -> str:
    """Return the columns of designs: the settings that differ, the parameters and the outcomes."""
    main = ("energy", "latency")
    outcomes = (f"{'*' if head in main else ''}{head} {name}" for name, head in _head_outcomes(answer).items())
    parameters = (f"*{heading} {column}" for heading, (column, _) in _list_parameters(answer).items())
    return " | ".join([*(f"*{name}" for name in _list_differing(rows)), *parameters, *outcomes])


def format_designs(answer: ExploreAnswer) -> dict[str, Any]:
    """Return the cells of the parameters and outcomes of designs."""
    columns = {one.name: (place, one.unit) for place, one in enumerate(answer.rows.columns)}
    outcomes = _head_outcomes(answer)
    return {
        **{column: partial(_format_constant, column=columns[column][0], unit=unit)
           for column, unit in _list_parameters(answer).values()},
        **{name: partial(_format_outcome, name=name, column=columns[name][0], unit=columns[name][1])
           for name in outcomes},
    }  # fmt: skip


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


def mark_varied(answer: ExploreAnswer, drawn: Grid, *_: Any, **__: Any) -> Grid:
    """Return a table of designs that names the columns which distinguish them."""
    headed = _list_parameters(answer)
    columns = {heading: drawn.column(place) for place, heading in enumerate(drawn.headings)}
    varied = [heading for heading in headed if len(set(columns[heading])) > 1]
    settings = [name for name in _list_differing(answer.rows) if name in drawn.headings]
    return attrs.evolve(drawn, distinguishing=(*settings, *varied))


def list_effects(answer: ExploreAnswer) -> Iterator[str]:
    """Yield a sentence for each objective: the effect of one percent more of each parameter at its best design."""
    for objective in answer.objectives:
        known = [
            (name_parameter(answer.survey, row.parameter), row.elasticity, row.clock_fraction)
            for row in answer.margins
            if row.objective == objective == row.of and row.elasticity is not None
        ]
        still = [name for name, change, _ in known if abs(change) <= MOVING]
        moving = sorted((one for one in known if abs(one[1]) > MOVING), key=lambda one: -abs(one[1]))
        noun = name_objective(objective)
        design = BEST_DESIGN(objective=noun) if answer.point_count > 1 else THIS_DESIGN
        if moving:
            changes = [CHANGE(parameter=name, change=f"{change:+.2f}") for name, change, _ in moving[:NAMED_PARAMETERS]]
            clock = min(fraction for *_, fraction in moving)
            slowed = clock if clock < 1.0 - SAME else None
            yield EFFECT(design=design, objective=noun, changes=changes, clock=slowed)
        elif still:
            yield STILL(design=design, objective=noun, parameters=still)


def list_all_notes(answer: ExploreAnswer) -> Iterator[str]:
    """Yield notes on caveats, the rules, the default parameters, and intervals that are unknown."""
    yield from list_notes(answer.facts)
    yield from map(RULE, answer.rules)
    if answer.is_usual:
        yield VARIED(names=[name_parameter(answer.survey, name) for name in answer.survey.parameters])
    if all(one.value.half_width is None for one in answer.facts.of(Choice)):
        yield NOT_SURE
    elif len(answer.survey) > 1:
        yield SHARED


def list_bases(answer: ExploreAnswer) -> list[dict[str, str]]:
    """Return the model and the base chip of the best design; empty for several models."""
    ref = HardwareRef.read(answer.survey.groups[int(answer.survey.group[answer.best[0].design_index])].hardware)
    named = HardwareRef.at(answer.question.spelling.get(ref.label, ref.label), ref.mode)
    return [{"model": name, "chip": str(named)} for name in answer.models if len(answer.models) == 1]


def draw_designs(answer: ExploreAnswer) -> Figures:
    """Return a figure of the front and the tied designs in the first two objectives; empty for one objective."""
    from joulemap.show import make_figure

    if len(answer.objectives) < 2:
        return ()
    x, y = answer.survey.objectives[:2]
    dots = [_dot(answer, record, x, y) for record in answer.rows.records()]
    texts = {**_format_axis(x, "x_"), **_format_axis(y, "y_"), "label": "{hardware}"}
    table = make_table("designs", Dot, dots)
    made = make_figure("pareto", table, title_question(answer), describe_answer(answer), texts)
    return (attrs.evolve(made, sketch=tuple({**one, "others": LIKE, "notes": [LETTERS]} for one in made.sketch)),)


def _dot(answer: ExploreAnswer, record: dict[str, Any], x: Objective, y: Objective) -> Dot:
    is_front = record["status"] == "front"
    fields = {**find_unknown(Dot), **{name: record[name] for name in ("precision", "batch", "runtime")}}
    fields |= {"x_value": record[x.column], "y_value": record[y.column], "dominated_by": None if is_front else LIKE}
    status, design = "front" if is_front else "dominated", describe_design(answer.survey, record["design_index"])
    return Dot(**fields, status=status, hardware=design, is_available=True)


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


DESIGNS: Final = {"noun": "designs", "ranked": "{ranked}"}

PAGES: Final = {
    ExploreAnswer: Sheet(
        title=title_question,
        first=describe_answer,
        reasons=list_effects,
        is_decision=True,
        notes=list_all_notes,
        csv="rows",
        steps=("sensitivity {model} {chip}",),
        each=list_bases,
        choices=choose,
        draw=draw_designs,
        limit=12,
        shown_count=2,
        parts=(
            Part(
                table="best",
                columns="objective | *value | *design | own_ratio | like_count",
                lay={
                    "value": lambda row: (
                        show_objective(row.value, row.unit)
                        if row.unit == "mm2"
                        else show_interval(row.value, row.unit, row.half_width)
                    ),
                },
            ),
            Part(
                title="Front",
                table="front",
                columns="{front_columns}",
                is_long=True,
                lay=DESIGNS,
                cells=format_designs,
                draw=mark_varied,
            ),
            Part(
                title="Statistically tied with the front ({band_count})",
                table="band",
                columns="{band_columns}",
                is_long=True,
                lay=DESIGNS,
                cells=format_designs,
                draw=mark_varied,
            ),
            Part(
                title="Elasticities at the best designs, including dependent constants",
                table="margins",
                columns="objective | parameter | value | of | elasticity",
                lay={
                    "value": lambda row: Number(show_constant(row.value, row.unit)),
                    "elasticity": lambda row: "" if row.elasticity is None else Number(f"{row.elasticity:+.3f}"),
                },
                cells=lambda answer: {"parameter": lambda row: name_parameter(answer.survey, row.parameter)},
            ),
            Part(title="Cannot run", table="refused", columns="reason | design_count", is_long=True),
        ),
    )
}
