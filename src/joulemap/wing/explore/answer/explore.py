"""Exploration answer: the Pareto front of designs based on a chip, and the designs tied with it."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.ask.fact import Choice, Facts
from joulemap.domain.computed import make_table
from joulemap.domain.default import LIMITS, SETTINGS
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Limits, Settings, check_name
from joulemap.domain.table import Table
from joulemap.domain.value import show_constant
from joulemap.physics.record.product import FP32
from joulemap.physics.record.silicon import count_dies
from joulemap.plan.source import Source
from joulemap.show.caveat import describe_trust, list_notes
from joulemap.show.layout import lay
from joulemap.show.page import Figures
from joulemap.show.plain import list_facts
from joulemap.show.present.cell import Number, number, show_plain, show_share
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template
from joulemap.show.product import Fp32Run, describe_fp32
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.file import write_text
from joulemap.system.record import frozen
from joulemap.system.resource import need_package
from joulemap.wing.explore.answer.row import RefusedDesigns, RuleRow, draw_designs, list_rows
from joulemap.wing.explore.ask import find_facts
from joulemap.wing.explore.block import name_column
from joulemap.wing.explore.design.best import (
    BestDesign,
    Beyond,
    Margin,
    describe_design,
    describe_parts,
    find_best,
    find_beyond,
    find_constant,
    find_dimension,
    find_oversize,
    list_margins,
    name_parameter,
    show_objective,
    show_objective_interval,
)
from joulemap.wing.explore.design.question import (
    NO_SHARES,
    prepare_question,
    read_bounds,
    read_target,
    search_question,
    solve_question,
)
from joulemap.wing.explore.design.rule import RULES
from joulemap.wing.explore.show import (
    BEST_DESIGN,
    CHANGE,
    EFFECT,
    MISSED_LIMIT,
    NO_DESIGN,
    NONE_MEETS,
    NONE_OF,
    NONE_RUNS,
    NOT_SURE,
    REFUSAL,
    RULE,
    SAVED,
    SAVED_MODE,
    SHARED,
    STILL,
    THIS_DESIGN,
    VARIED,
    describe_answer,
    name_objective,
)

if TYPE_CHECKING:
    from joulemap.wing.explore.design.outcome import Bound, Objective
    from joulemap.wing.explore.design.question import DesignQuestion
    from joulemap.wing.explore.design.solve import Target
    from joulemap.wing.explore.design.survey import Survey

DESIGNS_TITLE: Final = Template("{models}, {settings:list}: designs based on {chips:list}")
MODEL_SHARE: Final = Template("{name} {share:set %}")
BATCH: Final = Template("batch {batch}")
CHIP_COUNT: Final = Template("{count:n chip}")
BEST: Final = (
    "best by objective | *value | *design | gain over the unchanged chip own_ratio | "
    "other designs statistically tied like_count"
)
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
BAND_HEADING: Final = Template("Statistically tied with the front ({band_count:#})")
MARGINS_HEADING: Final = "Elasticities at the best designs, including dependent constants"
MARGINS: Final = "best by objective | parameter | value | effect on of | % per % elasticity"
NEXT: Final = Template("joulemap sensitivity {model} {chip}")

OBJECTIVES: Final = ("energy", "latency")
"""Default objectives of an exploration; the first one orders the tables."""

MOST_BAND: Final = 2_000
"""Maximum designs tied with the front that are listed; all are counted."""

NAMED_CHIPS: Final = 3
"""Maximum base chips named in the title."""

MOVING: Final = 5e-3
"""Elasticity below which an objective counts as unaffected by a parameter."""

NAMED_PARAMETERS: Final = 3
"""Maximum parameters whose effect on an objective is stated."""

SAME: Final = 1e-3
"""Relative tolerance of a target, and of a clock that counts as unthrottled."""

NO_VALUES: Final[Mapping[str, str]] = {}


@frozen(kw_only=True)
class ExploreAnswer(Answer):
    """Answer of an exploration: the Pareto front of designs based on some chips, and the designs statistically tied
    with it.
    """

    about = (
        "objectives", "point_count", "design_count", "evaluated_count", "kept_count", "front_count", "band_count",
        "points_per_s",
    )  # fmt: skip

    title: str
    models: tuple[str, ...]
    objectives: tuple[str, ...]
    rows: Table[Any]
    """Designs of the Pareto front, then the designs tied with it; both are sorted by the first objective."""
    best: Table[BestDesign]
    margins: Table[Margin]
    refused: Table[RefusedDesigns]
    rules: Table[RuleRow]
    point_count: int
    """Number of designs that the answer compares, including those read from a lake."""
    design_count: int
    """Number of designs in the whole space, including designs that were not sampled."""
    evaluated_count: int
    """Number of designs evaluated for this answer; the results of the other compared designs were in the lake."""
    points_per_s: float
    """Designs evaluated per second for this answer."""
    kept_count: int
    """Number of designs within every limit."""
    front_count: int
    band_count: int
    """Number of designs that are tied with the front but not on it."""
    parameters: tuple[str, ...]
    spelling: Mapping[str, str]
    """Chip id -> file or name as requested, where it differs from the id."""
    survey: Survey = attrs.field(repr=False, eq=False)
    facts: Facts
    """Best designs, sizes and caveats, from which the first line is made."""
    is_usual: bool = False
    """True if the default constants are varied."""

    def to_arrow(self) -> Any:
        """Return all evaluated designs as a `pyarrow.Table`."""
        return self.points().to_arrow()

    def points(self) -> Table[Any]:
        """Return all evaluated designs, sorted by their number in the space."""
        return list_rows(self.survey, list(self.parameters), range(self.point_count))

    def figures(self) -> Figures:
        """Return a figure of the front and the tied designs in the first two objectives; empty for one objective."""
        from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN

        objectives = [KNOWN[name] for name in self.objectives]
        return draw_designs(self.survey, self.rows.records(), objectives, self.title, self.describe_best())

    def save(self, path: str | Path, *, objective: str = "", force: bool = False) -> Path:
        """Write the best design by an objective, by default the first, as a hardware file.

        Every question accepts the file, as `--hardware FILE` on the command line, and then predicts the same energy and
        latency for this design. Raises UsageError for a file that must not be replaced.
        """
        from joulemap.catalog.design import name_design, write_design

        wanted = objective or self.objectives[0]
        check_name("objective", wanted, self.objectives)
        row = next(one.design_index for one in self.best if one.objective == wanted)
        group = self.survey.groups[int(self.survey.group[row])]
        target = Path(path)
        if target.suffix != ".toml":
            raise UsageError(f"{target}: a hardware file ends with .toml")
        ref = HardwareRef.read(group.hardware)
        notes = (
            SAVED(objective=wanted, design=describe_design(self.survey, row)),
            *([SAVED_MODE(path=target, mode=ref.mode)] if ref.mode else ()),
        )
        values = self.survey.changes_at(row)
        written = write_design(name_design(target.stem), self.spelling.get(ref.label, ref.label), values, notes)
        write_text(target, written, force=force)
        return target

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` rows in each table."""
        front, band = self._select("front"), self._select("band")
        best = self._lay(
            self.best,
            BEST,
            value=lambda row: show_objective_interval(row.value, row.unit, row.half_width),
        )
        margins = self._lay(
            self.margins,
            MARGINS,
            parameter=lambda row: name_parameter(self.survey, row.parameter),
            value=lambda row: Number(show_constant(row.value, row.unit)),
            elasticity=lambda row: "" if row.elasticity is None else Number(f"{row.elasticity:+.3f}"),
        )
        answer, sure = self.describe_best(), describe_trust(self.facts)
        return Document(
            title=self.title,
            answer=answer,
            sections=(Section("", best), Section("Front", self._lay_designs(front, limit))),
            is_decision=True,
            insights=tuple(self._list_effects()),
            sure=sure,
            details=(
                Section(BAND_HEADING(self), self._lay_designs(band, limit)),
                Section(MARGINS_HEADING, margins),
                Section("Cannot run", self._lay(self.refused, "reason | designs design_count", limit=limit)),
            ),
            notes=(*list_notes(self.facts), *self._list_notes()),
            steps=self._list_steps(repeated),
            data={**self.data(), "answer": answer, "how_sure": sure, **list_facts(self.facts)},
            table=self.rows,
            tables=self.tables,
        )

    def describe_best(self) -> str:
        """Return what the best designs gain over the unchanged chip, and how many designs are as good."""
        from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN

        return describe_answer(self.facts, {name for name in self.objectives if KNOWN[name].is_higher_better})

    def _select(self, status: str) -> Table[Any]:
        column = self.rows.names.index("status")
        return self.rows.with_rows(row for row in self.rows if row[column] == status)

    def _lay_designs(self, rows: Table[Any], limit: int) -> Grid:
        """Return a table of designs with the settings that differ, the parameters and the outcomes."""
        from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN

        places = {name: index for index, name in enumerate(rows.names)}
        named_parameters = {name: name_parameter(self.survey, name) for name in self.parameters}
        named = ("hardware", "precision", "batch", "runtime")
        many = [name for name in named if len({row[places[name]] for row in rows}) > 1]
        columns = [f"*{name}" for name in many]
        cells: dict[str, Any] = {}
        for name in self.parameters:
            unit = find_constant(self.survey, name).unit
            column = name_column(name, unit)
            columns.append(f"*{named_parameters[name]} {column}")
            cells[column] = partial(_format_constant, column=places[column], unit=unit)
        judged = {KNOWN[name].column: KNOWN[name].label for name in self.objectives}
        headings = {**{name: label for name, label in judged.items() if name in places}, **OUTCOMES}
        units = {column.name: column.unit for column in rows.columns}
        for name, heading in headings.items():
            columns.append(f"{'*' if heading in ('energy', 'latency') else ''}{heading} {name}")
            cells[name] = partial(_format_outcome, name=name, column=places[name], unit=units[name])
        drawn = lay(
            rows,
            " | ".join(columns),
            limit=limit,
            noun="designs",
            # a ranking by efficiency is one by energy, whose column stands for it
            ranked=" | ".join(headings.get(name, "energy") for name in judged),
            **cells,
        )
        headed = named_parameters.values()
        varied = [heading for heading in headed if len(set(drawn.column(drawn.headings.index(heading)))) > 1]
        return attrs.evolve(drawn, distinguishing=(*many, *varied))

    def _list_effects(self) -> Iterator[str]:
        """Yield a sentence for each objective: the effect of one percent more of each parameter at its best design."""
        for objective in self.objectives:
            still = [
                name_parameter(self.survey, row.parameter)
                for row in self.margins
                if row.objective == objective == row.of and row.elasticity is not None and abs(row.elasticity) <= MOVING
            ]
            moving = [
                (abs(row.elasticity), name_parameter(self.survey, row.parameter), row.elasticity, row.clock_fraction)
                for row in self.margins
                if row.objective == objective == row.of and row.elasticity and abs(row.elasticity) > MOVING
            ]
            moving.sort(key=lambda one: -one[0])
            design = BEST_DESIGN(objective=name_objective(objective)) if self.point_count > 1 else THIS_DESIGN
            changes = tuple(
                CHANGE(parameter=name, change=f"{change:+.2f}") for _, name, change, _ in moving[:NAMED_PARAMETERS]
            )
            if changes:
                clock = min(fraction for *_, fraction in moving)
                yield EFFECT(
                    design=design,
                    objective=name_objective(objective),
                    changes=changes,
                    clock=clock if clock < 1.0 - SAME else None,
                )
            elif still:
                yield STILL(design=design, objective=name_objective(objective), parameters=still)

    def _list_notes(self) -> Iterator[str]:
        """Yield notes on the rules, the default parameters, and intervals that are unknown."""
        for row in self.rules:
            yield RULE(row)
        if self.is_usual:
            yield VARIED(names=[name_parameter(self.survey, name) for name in self.parameters])
        if all(one.value.half_width is None for one in self.facts.of(Choice)):
            yield NOT_SURE
        elif len(self.survey) > 1:
            yield SHARED

    def _list_steps(self, repeated: Sequence[str]) -> tuple[str, ...]:
        """Return the next command to run, a sensitivity analysis of the best design's base chip; empty for several
        models.
        """
        ref = HardwareRef.read(self.survey.groups[int(self.survey.group[self.best[0].design_index])].hardware)
        named = HardwareRef.at(self.spelling.get(ref.label, ref.label), ref.mode)
        step = [*NEXT.words(model=self.models[0], chip=str(named)), *repeated]
        return (shlex.join(step),) if len(self.models) == 1 else ()


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


def explore(
    source: Source,
    models: str | Sequence[str],
    settings: Settings = SETTINGS,
    *,
    like: str | Sequence[str] = (),
    vary: Mapping[str, str | Sequence[float]] = NO_VALUES,
    share: Mapping[str, float] = NO_SHARES,
    limits: Limits = LIMITS,
    max_area_mm2: float | None = None,
    max_die_cost_usd: float | None = None,
    objectives: Sequence[str] = OBJECTIVES,
    count: int | None = None,
    seed: int = 0,
    search: str = "",
    solve: str | Sequence[str] = (),
    target: str | Sequence[str] = (),
    lake: str | Path | None = None,
    jobs: int = 1,
    cluster: str = "",
) -> ExploreAnswer:
    """Return the Pareto front of designs based on some chips, and the designs statistically tied with it.

    `vary` is constant -> values as on the command line (`"16:1024:*2"`, `"1TB/s,2TB/s"`) or numbers in SI units;
    dependent constants follow the rules of the answer. Without `count` every design is evaluated; with it, that many
    are sampled by `seed`, or searched with `search="optuna"`. `solve` names one or two constants, and `target` states
    as many goals, such as "latency = 10ms". Without `vary` and `solve`, units, clock and memory bandwidth are varied
    around the chip's values. Evaluation uses `jobs` processes or a `cluster`, and keeps designs in the folder `lake`;
    stored designs are not evaluated again. Raises like `compare`; UsageError for a constant that cannot be varied;
    MissingPackageError without pyarrow; UnsupportedError if no design meets the limits, with the smallest excess.
    """
    need_package("pyarrow", "arrow")
    from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN
    from joulemap.wing.explore.design.survey import Watch, survey

    names = (models,) if isinstance(models, str) else tuple(models)
    for name in objectives:
        check_name("objective", name, KNOWN)
    if like:
        settings = attrs.evolve(settings, hardware=like)
    if not settings.hardware:
        raise UsageError(
            "name the chip that designs are based on, as in --like kpu_t256; `joulemap hardware list` lists chips"
        )
    if count is not None and count < 1:
        raise UsageError(f"count is {count}, expected a whole number from 1")
    bounds = read_bounds(limits, max_area_mm2, max_die_cost_usd)
    wanted = tuple(KNOWN[name] for name in dict.fromkeys(objectives))
    if "//" in cluster and lake is None:
        raise UsageError(f"--cluster {cluster} needs --lake FOLDER, which its workers see under the same path")
    is_kept = lake is not None or jobs > 1 or bool(cluster)
    is_usual = not (vary or solve or target)
    question = prepare_question(
        source, names, settings, None if is_usual else vary, share, count, seed, is_kept=is_kept
    )
    watch = Watch(say=source.talk, move=source.progress)
    if search:
        question = search_question(question, search, wanted, bounds, count, seed, watch)
    targets: list[Target] = []
    if solve or target:
        targets = [read_target(text) for text in _texts(target)]
        question = solve_question(question, _texts(solve), targets)
    with tempfile.TemporaryDirectory() as beside:
        lake_folder = Path(lake) if lake is not None else Path(beside) / "lake" if is_kept else None
        done = survey(question.groups, wanted, bounds, watch, lake_folder, jobs, cluster)
    parameters = list(dict.fromkeys(one.name for group in question.groups for one in group.space.parameters))
    done.judge(question.doubt)
    if not done.is_within.any():
        code = "no_design" if done.nearest_miss is None else "limits"
        raise UnsupportedError(_describe_missed(done, bounds), code=code, designs=len(done))
    best = [find_best(question, done, one) for one in wanted]
    missed = [*_list_missed_targets(done, wanted[0], targets)]
    over = find_oversize(done, _list_best(done))
    counts = {
        "points": len(done),
        "kept": int(done.is_within.sum()),
        "front": int(done.front.sum()),
        "band": int(done.band.sum() - done.front.sum()),
    }
    asked, beyond = [one.name for one in wanted], _list_beyond(done)
    facts = find_facts(best, asked, counts, oversize=over, beyond=beyond, missed=missed)
    return ExploreAnswer(
        facts=facts,
        title=_name_question(question),
        models=tuple(question.models),
        objectives=tuple(one.name for one in wanted),
        rows=_list_designs(done, wanted, parameters),
        best=make_table("best designs", BestDesign, best),
        margins=make_table("margins", Margin, list_margins(done, wanted)),
        refused=make_table(
            "refused designs",
            RefusedDesigns,
            [RefusedDesigns(reason=reason, design_count=number) for reason, number in done.count_refusals()],
        ),
        rules=make_table("rules", RuleRow, _list_rules(question)),
        point_count=len(done),
        evaluated_count=done.evaluated_count,
        design_count=question.size,
        points_per_s=done.evaluated_count / max(done.seconds, 1e-9),
        kept_count=counts["kept"],
        front_count=counts["front"],
        band_count=counts["band"],
        parameters=tuple(parameters),
        spelling=question.spelling,
        survey=done,
        is_usual=is_usual,
    )


def _list_best(done: Survey) -> list[int]:
    """Return the row numbers of the front and of the best design by each objective."""
    return sorted({*done.order(done.front, done.objectives[0]).tolist(), *map(done.find_best, done.objectives)})


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _list_designs(done: Survey, wanted: Sequence[Objective], parameters: list[str]) -> Table[Any]:
    front = done.order(done.front, wanted[0])
    band = done.order(done.band & ~done.front, wanted[0])[:MOST_BAND]
    return list_rows(done, parameters, [*front.tolist(), *band.tolist()])


def _name_question(question: DesignQuestion) -> str:
    """Return the title: models, settings and base chips."""
    models = (name if share == 1.0 else MODEL_SHARE(name=name, share=share) for name, share in question.models.items())
    chips = list(dict.fromkeys(one.hardware for one in question.groups))
    first = question.groups[0]
    settings = [
        value
        for name, value in (("batch", BATCH(batch=first.batch)), *first.dimensions.items())
        if len({find_dimension(one, name) for one in question.groups}) == 1
    ]
    bases = ((one.space.hardware, one.models[0].configuration) for one in question.groups)
    wide = (
        Fp32Run.of(chip.architecture, chip.vendor, chip.peaks, chip.matmul_precision, configuration.runtime)
        for chip, configuration in bases
        if configuration.precision == FP32
    )
    if meaning := describe_fp32(wide).title:
        settings = [f"fp32 ({meaning})" if value == "fp32" else value for value in settings]
    named = chips if len(chips) <= NAMED_CHIPS else [CHIP_COUNT(count=len(chips))]
    return DESIGNS_TITLE(models=" + ".join(models), settings=settings, chips=named)


def _list_rules(question: DesignQuestion) -> list[RuleRow]:
    """Return the rules that apply to the varied constants."""
    used = {
        name: RULES[name]
        for group in question.groups
        if group.space.parameters
        for name in group.space.law.list_used(one.name for one in group.space.parameters)
    }
    return [RuleRow(rule=name, text=one.text, basis=one.basis, source=one.source) for name, one in used.items()]


def _list_missed_targets(
    done: Survey, wanted: Objective, targets: Sequence[Target]
) -> Iterator[tuple[Objective, float, float]]:
    """Yield each target that the best design misses, which happens if a constant must be an integer, with its value."""
    outcomes = done.outcomes_at([done.find_best(wanted)])
    for one in targets:
        value = float(outcomes.value(one.objective)[0])
        if not math.isclose(value, one.value, rel_tol=SAME):
            yield one.objective, one.value, value


def _list_beyond(done: Survey) -> list[tuple[str, Beyond]]:
    """Return the constants of the best designs that no chip of their class reaches, with their names for people."""
    from joulemap.catalog.load import load_catalogue

    chips = tuple(load_catalogue().hardware.values())
    numbers = find_beyond(done, _list_best(done), chips)
    return list(dict.fromkeys((name_parameter(done, one.name), one) for one in numbers))


def _describe_missed(done: Survey, bounds: Sequence[Bound]) -> str:
    """Return a sentence on why no design is within the limits: the smallest excess, or why no design runs."""
    row = done.nearest_miss
    none = NONE_OF(count=len(done)) if len(done) > 1 else NO_DESIGN
    if row is None:
        counts = done.count_refusals()
        some = len(counts) > 1  # all designs share a single reason
        reasons = (REFUSAL(count=count if some else None, reason=reason) for reason, count in counts[:2])
        return NONE_RUNS(none=none, reasons="; ".join(reasons))
    missed, outcomes = [], done.outcomes_at([row])
    for bound in bounds:
        excess, unit = float(bound.excess(outcomes)[0]), bound.objective.unit
        if excess > 1.0:
            missed.append(
                MISSED_LIMIT(
                    label=bound.objective.label,
                    value=show_objective(float(getattr(outcomes, bound.column)[0]), unit),
                    excess=excess,
                    option=bound.option,
                    limit=show_objective(bound.value, unit),
                )
            )
    base, values = describe_parts(done, row)
    return NONE_MEETS(none=none, base=base, values=values, missed=missed)
