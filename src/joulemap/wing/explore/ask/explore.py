"""Explore designs based on a chip: the Pareto front, the designs tied with it, and the best by each objective."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

import attrs

from joulemap.ask import (
    UNKNOWN,
    Answer,
    Change,
    Choice,
    Entry,
    Fact,
    Facts,
    Finding,
    Quantity,
    Share,
    Subject,
    Term,
    weigh_findings,
)
from joulemap.ask.cause import share_energies
from joulemap.ask.knee import find_knee
from joulemap.catalog.load import load_catalogue
from joulemap.domain import LIMITS, SETTINGS, TIE_RATIO, Limits, Settings, Table, check_name, make_table
from joulemap.physics import RETICLE
from joulemap.plan import Source
from joulemap.system import FJ_PER_J, FS_PER_S, UnsupportedError, UsageError, frozen
from joulemap.system.resource import need_package
from joulemap.wing.explore.design.best import (
    describe_missed,
    evaluate_pair,
    find_best,
    find_beyond,
    find_oversize,
    judge_design,
    name_parameter,
    write_best,
)
from joulemap.wing.explore.design.outcome import OBJECTIVES as KNOWN, DesignColumns
from joulemap.wing.explore.design.question import (
    NO_SHARES,
    DesignQuestion,
    prepare_question,
    read_bounds,
    read_target,
    search_question,
    solve_question,
)
from joulemap.wing.explore.design.rule import RULES
from joulemap.wing.explore.design.solve import Target
from joulemap.wing.explore.design.survey import Survey, Watch, evaluate_rows, survey
from joulemap.wing.explore.design.table import list_rows
from joulemap.wing.explore.generated.row import BestDesign, RefusedDesigns, RuleRow

OBJECTIVES: Final = ("energy", "latency")
"""Default objectives of an exploration; the first one orders the tables."""

MOST_BAND: Final = 2_000
"""Maximum designs tied with the front that are listed; all are counted."""

SAME: Final = 1e-3
"""Relative tolerance of a target."""

ALIKE: Final = "tied"
"""Level of the share of the other designs that are statistically tied with the best by an objective."""

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

    rows: Table[Any]
    """Designs of the Pareto front, then the designs tied with it; both are sorted by the first objective."""
    best: Table[BestDesign]
    refused: Table[RefusedDesigns]
    rules: Table[RuleRow]
    question: DesignQuestion = attrs.field(repr=False, eq=False)
    survey: Survey = attrs.field(repr=False, eq=False)
    facts: Facts
    """Best designs, sizes and caveats, from which the first line is made."""
    is_usual: bool = False
    """True if the default constants are varied."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that every design runs."""
        return tuple(self.question.models)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives, the first of which orders the tables."""
        return tuple(one.name for one in self.survey.objectives)

    @property
    def point_count(self) -> int:
        """Number of designs that the answer compares, including those read from a lake."""
        return len(self.survey)

    @property
    def design_count(self) -> int:
        """Number of designs in the whole space, including designs that were not sampled."""
        return self.question.size

    @property
    def evaluated_count(self) -> int:
        """Number of designs evaluated for this answer; the results of the other compared designs were in the lake."""
        return self.survey.evaluated_count

    @property
    def kept_count(self) -> int:
        """Number of designs within every limit."""
        return int(self.survey.is_within.sum())

    @property
    def front_count(self) -> int:
        """Number of designs on the Pareto front."""
        return int(self.survey.front.sum())

    @property
    def band_count(self) -> int:
        """Number of designs that are tied with the front but not on it."""
        return int(self.survey.band.sum()) - self.front_count

    @property
    def knee(self) -> int | None:
        """Number of the knee of the front in the first two objectives; None without one."""
        first, *_ = objectives = self.survey.objectives
        rows = self.survey.order(self.survey.front, first).tolist()
        costs = [(math.exp(one[0]), math.exp(one[1])) for one in self.survey.costs[rows]] if len(objectives) > 1 else []
        place = find_knee(costs)
        return None if place is None else rows[place]

    @property
    def points_per_s(self) -> float:
        """Designs evaluated per second for this answer."""
        return self.survey.evaluated_count / max(self.survey.seconds, 1e-9)

    @property
    def front(self) -> Table[Any]:
        """Designs of the Pareto front."""
        return self.rows.with_rows(self.rows.rows[: self.front_count])

    @property
    def band(self) -> Table[Any]:
        """Listed designs that are tied with the front but not on it."""
        return self.rows.with_rows(self.rows.rows[self.front_count :])

    def to_arrow(self) -> Any:
        """Return all evaluated designs as a `pyarrow.Table`."""
        return self.points().to_arrow()

    def points(self) -> Table[Any]:
        """Return all evaluated designs, sorted by their number in the space."""
        return list_rows(self.survey, range(self.point_count))

    def save(self, path: str | Path, *, objective: str = "") -> Path:
        """Write the best design by an objective, by default the first, as a hardware file.

        Every question accepts the file, as `--hardware FILE` on the command line, and then predicts the same energy and
        latency for this design. Raises UsageError for a file that must not be replaced.
        """
        wanted = objective or self.objectives[0]
        check_name("objective", wanted, self.objectives)
        best = next(one for one in self.best if one.objective == wanted)
        return write_best(best, self.question, self.survey, Path(path))


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
        source, _texts(models), settings, None if is_usual else vary, share, count, seed, is_kept=is_kept
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
    done.judge(question.doubt)
    if not done.is_within.any():
        code = "no_design" if done.nearest_miss is None else "limits"
        raise UnsupportedError(describe_missed(done), code=code, designs=len(done))
    best = [find_best(question, done, one) for one in wanted]
    sensible = find_sensible(done)
    judged = [] if sensible is None else [judge_design(question, done, one, sensible) for one in wanted]
    gained = (one for one in judged if one.own_ratio is not None and one.own_ratio > TIE_RATIO)
    picked = [next(gained, judged[0])] if judged else []
    front, band = (done.order(mask, wanted[0]).tolist() for mask in (done.front, done.band & ~done.front))
    refused = [RefusedDesigns(reason=reason, design_count=number) for reason, number in done.count_refusals()]
    return ExploreAnswer(
        facts=_find_facts(done, [*picked, *best], targets),
        question=question,
        survey=done,
        rows=list_rows(done, [*front, *band[:MOST_BAND]]),
        best=make_table("best designs", BestDesign, best),
        refused=make_table("refused designs", RefusedDesigns, refused),
        rules=make_table("rules", RuleRow, _list_rules(question)),
        is_usual=is_usual,
    )


def find_sensible(done: Survey) -> int | None:
    """Return the design to take by two objectives: the knee of the front designs that beat their unchanged chip in
    both, or of the front; None without a knee, or by another number of objectives.
    """
    if len(done.objectives) != 2:
        return None
    rows = done.order(done.front, done.objectives[0]).tolist()
    own = {index: evaluate_rows(group, [{}]) for index, group in enumerate(done.groups)}

    def beats(row: int) -> bool:
        base = own[int(done.group[row])]
        if base.refusal[0]:
            return False
        known = zip(done.costs[row].tolist(), done.objectives, strict=True)
        gains: list[float] = [math.log(float(base.value(one)[0])) * one.sign - cost for cost, one in known]
        return min(gains) >= -SAME and max(gains) > math.log(TIE_RATIO)

    for some in (list(filter(beats, rows)), rows):
        place = find_knee([(math.exp(one[0]), math.exp(one[1])) for one in done.costs[some]])
        if some and (place is not None or some is not rows):
            return int(some[place or 0])
    return None


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _list_rules(question: DesignQuestion) -> list[RuleRow]:
    """Return the rules that apply to the varied constants."""
    laws = [(one.space.law, one.space.parameters) for one in question.groups if one.space.parameters]
    used = dict.fromkeys(name for law, varied in laws for name in law.list_used(one.name for one in varied))
    return [RuleRow(rule=name, text=(rule := RULES[name]).text, basis=rule.basis, source=rule.source) for name in used]


def _find_facts(done: Survey, best: Sequence[BestDesign], targets: Sequence[Target]) -> Facts:
    """Return the facts of designs; a run of the facts is a design that is best by an objective, and its negative number
    the unchanged chip of this design.
    """
    keys = {index: key for key, index in enumerate(dict.fromkeys(row.design_index for row in best), 1)}
    values = [Quantity(row.value, row.unit, row.half_width) for row in best]
    choices = [
        Choice(runs=(keys[row.design_index],), metric=row.objective, value=value, ratio=row.own_ratio)
        for row, value in zip(best, values, strict=True)
    ]
    others = len(done) - 1
    alike = [
        Share(runs=(keys[row.design_index],), metric=cast("Any", row.objective), level=ALIKE,
              share=row.like_count / others, total=row.like_count)
        for row in best
        if others > 0 and row.like_count
    ]  # fmt: skip
    entries: list[Fact] = [
        Entry(runs=(key,), values={one.metric: one.value for one in choices if one.runs == (key,)})
        for key in keys.values()
    ]
    designs = {keys[row.design_index]: row for row in best}
    moved = [one for key, row in designs.items() for one in _compare(done, row, key)]
    counts = {"points": len(done), "kept": done.is_within.sum(), "front": done.front.sum()}
    counts["band"] = done.band.sum() - done.front.sum()
    sizes = Entry(runs=(), values={name: Quantity(float(count)) for name, count in counts.items()})
    caveats = weigh_findings([*_find_missed(done, targets), *_find_own(done, list(keys.values()))], choices)
    names = {key: row.design for key, row in designs.items()}
    names |= {-key: done.groups[int(done.group[row.design_index])].hardware for key, row in designs.items()}
    return Facts(
        asked=tuple(one.name for one in done.objectives),
        runs={key: Subject(hardware=name) for key, name in names.items()},
        facts=(*choices, *alike, *entries, *moved, sizes, *caveats),
    )


def _compare(done: Survey, best: BestDesign, key: int) -> Iterator[Change | Term]:
    """Yield each objective of the unchanged chip and of a best design, then what makes the difference of energies, the
    voltages, and the peaks.
    """
    runs = (-key, key)
    if best.own_ratio is None:
        return
    row = best.design_index
    group = done.groups[int(done.group[row])]
    own, design = evaluate_rows(group, [{}]), done.outcomes_at([row])
    for one in done.objectives:
        ends = [Quantity(float(some.value(one)[0]), one.unit) for some in (own, design)]
        yield Change(runs=runs, metric=one.name, before=ends[0], after=ends[1])
    if len(group.models) > 1:
        return
    pair, batch = evaluate_pair(done, row), group.models[0].configuration.batch

    def read(column: Callable[[DesignColumns], Any]) -> tuple[float, float]:
        design, unchanged = (float(column(one)[0]) for one in pair)
        return design, unchanged

    energies = {
        name: read(lambda one, name=name: one.category_fj.get(name, [0.0]))  # type: ignore[misc]
        for name in pair[0].category_fj
    }
    parts = {name: (own / FJ_PER_J / batch, rival / FJ_PER_J / batch) for name, (own, rival) in energies.items()}
    times = read(lambda one: one.interval_fs / FS_PER_S / batch)
    yield from share_energies((key, -key), parts, times)
    for metric, unit, column in (("voltage", "1", "voltage_factor"), ("peak", "ops/s", "peak_ops_per_s")):
        new, old = (Quantity(one, unit) for one in read(attrgetter(column)))
        if new != old:
            yield Change(runs=runs, metric=metric, before=old, after=new)


def _find_missed(done: Survey, targets: Sequence[Target]) -> Iterator[Finding]:
    """Yield targets that the best design misses, which happens if a constant must be an integer."""
    outcomes = done.outcomes_at([done.find_best(done.objectives[0])])
    for one in targets:
        value, unit = float(outcomes.value(one.objective)[0]), one.objective.unit
        if not math.isclose(value, one.value, rel_tol=SAME):
            ends = {"target": Quantity(one.value, unit), "value": Quantity(value, unit)}
            yield Finding(kind="missed_target", values={"objective": one.objective.label, **ends}, doubt=UNKNOWN)


def _find_own(done: Survey, keys: Sequence[int]) -> Iterator[Finding]:
    """Yield designs of the front that are larger than one die, and constants that no existing chip has."""
    rows = sorted({*done.order(done.front, done.objectives[0]).tolist(), *map(done.find_best, done.objectives)})
    count, most_mm2 = find_oversize(done, rows)
    for key in keys if count else ():
        values = {"count": count, "limit_mm2": RETICLE.value, "most_mm2": most_mm2}
        yield Finding(kind="oversize", run_id=key, values=values, doubt=UNKNOWN)
    for one in dict.fromkeys(find_beyond(done, rows, tuple(load_catalogue().hardware.values()))):
        ends = {"value": Quantity(one.value, one.unit), "most": Quantity(one.most, one.unit)}
        chip = {"end": "maximum" if one.value > one.most else "minimum", "class": one.known, "chip": one.chip}
        yield Finding(kind="beyond", values={"name": name_parameter(done, one.name), **ends, **chip}, doubt=UNKNOWN)
