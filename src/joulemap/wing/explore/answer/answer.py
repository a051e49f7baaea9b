"""Exploration answer: the Pareto front of designs based on a chip, and the designs tied with it."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Answer, Figures
from joulemap.answer.computed import make_table
from joulemap.domain.block import name_column
from joulemap.domain.default import LIMITS, SETTINGS
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Limits, Settings, check_name
from joulemap.domain.silicon import count_dies
from joulemap.domain.table import Table
from joulemap.domain.value import show_constant
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_count, show_share
from joulemap.present.document import Document, Grid, Made, Section, grid
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.file import write_text
from joulemap.system.record import frozen
from joulemap.wing.explore.answer.pose import NO_SHARES, Posed, pose, read_bounds, read_target, solve_posed
from joulemap.wing.explore.answer.row import draw_designs, find_unit, list_rows
from joulemap.wing.explore.answer.tell import (
    BestDesign,
    Margin,
    RefusedDesigns,
    RuleRow,
    describe_design,
    find_best,
    list_margins,
    list_rules,
    name_question,
    say_beyond,
    say_missed,
    say_sure,
    say_targets,
    show_objective,
)

if TYPE_CHECKING:
    from joulemap.wing.explore.design.limit import Bound
    from joulemap.wing.explore.design.outcome import Objective
    from joulemap.wing.explore.design.solve import Target
    from joulemap.wing.explore.design.survey import Survey
    from joulemap.wing.explore.design.watch import Watch

OBJECTIVES: Final = ("energy", "latency")
"""Default objectives."""

MOST_BAND: Final = 2_000
"""Maximum designs tied with the front that are listed; all are counted."""

SHOWN: Final[Mapping[str, str]] = {
    "energy_per_inference_j": "energy",
    "latency_s": "latency",
    "throughput_per_s": "a second",
    "average_power_w": "power",
    "area_mm2": "mm2",
    "die_cost_usd": "die cost",
}
"""Column of a design -> its heading."""

NO_VALUES: Final[Mapping[str, str]] = {}


@frozen(kw_only=True)
class ExploreAnswer(Answer):
    """Designs based on some chips: the Pareto front, and the designs statistically tied with it."""

    about = (
        "objectives", "point_count", "design_count", "evaluated_count", "kept_count", "front_count", "band_count",
        "points_per_s",
    )  # fmt: skip

    title: str
    models: tuple[str, ...]
    objectives: tuple[str, ...]
    rows: Table[Any]
    """Front by the first objective, then the tied designs by the same objective."""
    best: Table[BestDesign]
    margins: Table[Margin]
    refused: Table[RefusedDesigns]
    rules: Table[RuleRow]
    point_count: int
    """Number of evaluated designs."""
    design_count: int
    """Number of designs in the space."""
    evaluated_count: int
    """Designs evaluated for this answer; the others were in the lake."""
    points_per_s: float
    """Evaluation rate of the designs evaluated for this answer."""
    kept_count: int
    """Designs within every limit."""
    front_count: int
    band_count: int
    """Designs tied with the front, without the front."""
    parameters: tuple[str, ...]
    spelling: Mapping[str, str]
    """Chip -> file or name that asks for it, where different from its id."""
    survey: Survey = attrs.field(repr=False, eq=False)
    sure: str = ""
    beyond: tuple[str, ...] = ()
    """Sentences on missed targets, and on constants of the best designs and the front beyond existing hardware."""
    is_limited: bool = False
    """True where designs must meet limits besides running at all."""
    is_usual: bool = False
    """True where the varied constants are the default ones."""

    def to_arrow(self) -> Any:
        """Return all evaluated designs as a `pyarrow.Table`."""
        return self.points().to_arrow()

    def points(self) -> Table[Any]:
        """Return all evaluated designs, in the order of their numbers."""
        return list_rows(self.survey, list(self.parameters), range(self.point_count))

    def figures(self) -> Figures:
        """Return the front and its band in the first two objectives; empty for a single objective."""
        from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN

        objectives = [KNOWN[name] for name in self.objectives]
        return draw_designs(self.survey, self.rows.records(), objectives, self.title, self._describe_front())

    def save(self, path: str | Path, *, objective: str = "", force: bool = False) -> Path:
        """Write the best design by an objective, by default the first, as a hardware file.

        Every question accepts the file, as `--hardware FILE` on the command line, with results equal to the femtojoule
        at the same settings. Raises UsageError for a file that must not be replaced.
        """
        from joulemap.catalog.design import name_design, write_design

        wanted = objective or self.objectives[0]
        check_name("objective", wanted, self.objectives)
        row = next(one.design_index for one in self.best if one.objective == wanted)
        group = self.survey.groups[int(self.survey.group[row])]
        place = Path(path)
        if place.suffix != ".toml":
            raise UsageError(f"{place}: a hardware file ends with .toml")
        ref = HardwareRef.read(group.hardware)
        notes = (
            f"Best at {wanted}: {describe_design(self.survey, row)}.",
            *([f"Ask it as {place}@{ref.mode}."] if ref.mode else ()),
        )
        values = self.survey.changes_at(row)
        text = write_design(name_design(place.stem), self.spelling.get(ref.label, ref.label), values, notes)
        write_text(place, text, force=force)
        return place

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` rows in each table."""
        front, band = self._select("front"), self._select("band")
        best = self._lay(
            self.best,
            "best by objective | *value | 80 % ±half_width | *design | over the chip own_ratio | tied like_count",
            value=lambda row: show_objective(row.value, row.unit, row.half_width),
            like_count=lambda row: show_count(row.like_count, "other"),
        )
        margins = self._lay(
            self.margins,
            "at the best by objective | parameter | is value | changes of | per % elasticity",
            value=lambda row: show_constant(row.value, row.unit),
            elasticity=lambda row: "" if row.elasticity is None else f"{row.elasticity:+.3f}",
        )
        refused = self._lay(self.refused, "why reason | designs design_count", limit=limit)
        return Document(
            title=self.title,
            answer=self._describe_front(),
            sections=(
                Section("", best),
                Section("Front", self._draw(front, limit)),
            ),
            insights=self._list_insights(),
            sure=self.sure,
            details=(
                Section(f"Statistically tied with the front ({self.band_count:,})", self._draw(band, limit)),
                Section("Elasticities at the best designs, dependent constants included", margins),
                Section("Cannot run", refused),
            ),
            notes=tuple(f"{row.text} ({row.basis})" for row in self.rules),
            steps=self._list_steps(repeated),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _select(self, status: str) -> Table[Any]:
        place = self.rows.names.index("status")
        return attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row[place] == status))

    def _draw(self, rows: Table[Any], limit: int) -> Grid:
        from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN

        places = {name: place for place, name in enumerate(rows.names)}
        named = ("hardware", "precision", "batch", "runtime")
        many = [name for name in named if len({row[places[name]] for row in rows}) > 1]
        shown: list[tuple[str, Any]] = [(name, name) for name in many]
        for name in self.parameters:
            unit = find_unit(self.survey, name)
            at = places[name_column(name, unit)]
            shown.append((name, lambda row, at=at, unit=unit: show_constant(row[at], unit)))
        judged = {KNOWN[name].column: KNOWN[name].label for name in self.objectives}
        headings = {**{name: label for name, label in judged.items() if name in places}, **SHOWN}
        units = {column.name: column.unit for column in rows.columns}
        widths = {KNOWN[one.objective].column: one.half_width for one in self.best}
        width = max((one for one in widths.values() if one), default=None)  # width for columns that are no objective
        for name, heading in headings.items():
            doubt = None if units[name] in ("mm2", "USD") else widths.get(name, width)
            if name == "area_mm2":
                told = partial(_show_area, place=places[name])
            else:
                told = partial(_show_judged, place=places[name], unit=units[name], half_width=doubt)
            shown.append((heading, Made(name, told)))
        shown.append(("clock left", lambda row: show_share(row[places["clock_fraction"]])))
        drawn = grid(
            rows,
            shown,
            limit=limit,
            noun="designs",
            keep=(*many, *self.parameters, "energy", "latency"),
            ranked=[headings.get(name, "energy") for name in judged],  # efficiency is the inverse of the energy
        )
        varied = [name for name in self.parameters if len(set(drawn.column(drawn.headings.index(name)))) > 1]
        return attrs.evolve(drawn, telling=(*many, *varied))

    def _describe_front(self) -> str:
        if self.point_count == 1:
            values = (f"{row.objective} {show_objective(row.value, row.unit, row.half_width)}" for row in self.best)
            return f"{self.best[0].design} has {' and '.join(values)}{self._describe_dies()}"
        names = " and ".join(self.objectives)
        beside = f", {self.band_count:,} more are statistically tied with it (80 %)" if self.band_count else ""
        front = f"one is best in {names}"
        if self.front_count > 1:
            front = f"{self.front_count:,} are on the Pareto front of {names}"
        verb = ("meet" if self.is_limited else "run") + "s" * (self.kept_count == 1)
        limits = " the limits" if self.is_limited else ""
        told = f"{self.kept_count:,} of {show_count(self.point_count, 'design')} {verb}{limits}; {front}{beside}"
        return f"{told}{self._describe_dies()}"

    def _describe_dies(self) -> str:
        """Return how many designs of the front need several dies; empty for none."""
        front = self._select("front")
        area = front.names.index("area_mm2")
        count = sum(count_dies(row[area]) > 1 for row in front)
        return f"; {count:,} of the front exceed{'s' * (count == 1)} the reticle limit of one die" if count else ""

    def _list_insights(self) -> tuple[str, ...]:
        lines = [*([self._describe_rate()] if self.design_count > 1 else ()), *self.beyond]
        if self.is_usual:
            lines.append(f"varied by default: {', '.join(self.parameters)}; choose with --vary units=16:1024:*2")
        for objective in self.objectives:
            moving = sorted(
                (
                    row
                    for row in self.margins
                    if row.objective == objective == row.of and row.elasticity and abs(row.elasticity) > 5e-4
                ),
                key=lambda row: -abs(row.elasticity or 0.0),
            )
            if moving:
                told_each = ", ".join(f"{row.parameter} {row.elasticity:+.2f} %" for row in moving[:3])
                lines.append(f"effect of +1 % at the best {objective}: {told_each}")
        return tuple(lines)

    def _describe_rate(self) -> str:
        """Return the number of evaluated designs and their rate, without those from a lake."""
        rest = f" of {self.design_count:,}" if self.design_count > self.point_count else ""
        known = self.point_count - self.evaluated_count
        rate = f"at {self.points_per_s:,.0f} a second" if self.evaluated_count else "none evaluated now"
        had = f"; {'all' if not self.evaluated_count else f'{known:,}'} were in the lake" if known else ""
        told = show_count(self.evaluated_count or self.point_count, "design")
        return f"{told.replace(' ', rest + ' ', 1)}, {rate}{had}" if rest or known else f"{told} {rate}"

    def _list_steps(self, repeated: Sequence[str]) -> tuple[str, ...]:
        """Return a command that lists the sensitivities of the best design's chip, for a single model."""
        first = self.best[0]
        chip = first.design.partition(":")[0].partition(" ")[0]
        step = ["joulemap", "sensitivity", self.models[0], chip, *repeated]
        return (shlex.join(step),) if len(self.models) == 1 else ()


def _show_area(row: Sequence[Any], *, place: int) -> str:
    """Return an area, with the number of dies where it exceeds one."""
    if row[place] is None:
        return ""
    shown, dies = show(row[place], "area_mm2"), count_dies(row[place])
    return shown if dies == 1 else f"{shown} ({dies} dies)"


def _show_judged(row: Sequence[Any], *, place: int, unit: str, half_width: float | None) -> str:
    return "" if row[place] is None else show_objective(row[place], unit, half_width)


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
    are sampled by `seed`, or searched with `search="optuna"`. `solve` names one or two constants to solve for as many
    `target`s, such as "latency = 10ms". Without any of these, units, clock and memory bandwidth are varied around the
    chip's own. Evaluation uses `jobs` processes or a `cluster`, and keeps designs in the folder `lake`; stored designs
    are not evaluated again. Raises as `compare`; UsageError for a constant that cannot be varied, UnsupportedError
    where no design meets the limits, with the nearest.
    """
    from joulemap.catalog.load import load_catalogue
    from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN
    from joulemap.wing.explore.design.survey import survey
    from joulemap.wing.explore.design.watch import Watch

    names = (models,) if isinstance(models, str) else tuple(models)
    for name in objectives:
        check_name("objective", name, KNOWN)
    if like:
        settings = attrs.evolve(settings, hardware=like)
    if not settings.hardware:
        raise UsageError("name a chip that designs are like: --like kpu_t256; see `joulemap hardware list`")
    if count is not None and count < 1:
        raise UsageError(f"count is {count}, expected a whole number from 1")
    bounds = read_bounds(limits, max_area_mm2, max_die_cost_usd)
    wanted = tuple(KNOWN[name] for name in dict.fromkeys(objectives))
    if "//" in cluster and lake is None:
        raise UsageError(f"--cluster {cluster} needs --lake FOLDER, which its workers see under the same path")
    is_kept = lake is not None or jobs > 1 or bool(cluster)
    is_usual = not (vary or solve or target)
    posed = pose(source, names, settings, None if is_usual else vary, share, count, seed, keeps=is_kept)
    watch = Watch(say=source.talk, move=source.progress)
    if search:
        posed = _search(posed, search, wanted, bounds, count, seed, watch)
    targets: list[Target] = []
    if solve or target:
        targets = [read_target(text) for text in _texts(target)]
        posed = solve_posed(posed, _texts(solve), targets)
    with tempfile.TemporaryDirectory() as beside:
        place = Path(lake) if lake is not None else Path(beside) / "lake" if is_kept else None
        done = survey(posed.groups, wanted, bounds, watch, place, jobs, cluster)
    parameters = list(dict.fromkeys(one.name for group in posed.groups for one in group.space.parameters))
    done.judge(posed.doubt)
    if not done.keeps.any():
        raise UnsupportedError(say_missed(done, bounds))
    return ExploreAnswer(
        title=name_question(posed),
        models=tuple(posed.models),
        objectives=tuple(one.name for one in wanted),
        rows=_list_told(done, wanted, parameters),
        best=make_table("best designs", BestDesign, [find_best(posed, done, one) for one in wanted]),
        margins=make_table("margins", Margin, list_margins(done, wanted)),
        refused=make_table(
            "refused designs",
            RefusedDesigns,
            [RefusedDesigns(reason=reason, design_count=number) for reason, number in done.count_refusals()],
        ),
        rules=make_table("rules", RuleRow, list_rules(posed)),
        point_count=len(done),
        evaluated_count=done.evaluated_count,
        design_count=posed.size,
        points_per_s=done.evaluated_count / max(done.seconds, 1e-9),
        kept_count=int(done.keeps.sum()),
        front_count=int(done.front.sum()),
        band_count=int(done.band.sum() - done.front.sum()),
        parameters=tuple(parameters),
        spelling=posed.spelling,
        survey=done,
        sure=say_sure(done, wanted),
        beyond=(
            *say_targets(done, wanted[0], targets),
            *say_beyond(done, _list_best(done), tuple(load_catalogue().hardware.values())),
        ),
        is_limited=bool(bounds),
        is_usual=is_usual,
    )


def _list_best(done: Survey) -> list[int]:
    """Return the designs of the front and the best design of each objective."""
    return sorted({*done.order(done.front, done.objectives[0]).tolist(), *map(done.find_best, done.objectives)})


def _search(
    posed: Posed,
    search: str,
    wanted: Sequence[Objective],
    bounds: tuple[Bound, ...],
    count: int | None,
    seed: int,
    watch: Watch,
) -> Posed:
    """Return a question restricted to the designs that a search visited."""
    from joulemap.wing.explore.design.search import SEARCHES, search_group

    check_name("search", search, SEARCHES)
    if count is None:
        raise UsageError("say how many designs are looked at: --search optuna --points 2000")
    groups = enumerate(posed.groups)
    return posed.keep({place: search_group(one, wanted, bounds, seed + place, watch.tell) for place, one in groups})


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _list_told(done: Survey, wanted: Sequence[Objective], parameters: list[str]) -> Table[Any]:
    front = done.order(done.front, wanted[0])
    band = done.order(done.band & ~done.front, wanted[0])[:MOST_BAND]
    return list_rows(done, parameters, [*front.tolist(), *band.tolist()])
