"""Find the best hardware for each subgraph or operator, and the kinds of operator that each chip is best at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar, get_args

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.answer.compare.summary import SHOWN
from joulemap.ask.fact import Choice, Facts, Win
from joulemap.ask.scope import opening_scope
from joulemap.ask.win import find_parts
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import Contender, ModelFigure, Victory
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.show.page import Figures
from joulemap.show.present.cell import Number, show_quantity
from joulemap.show.present.document import Document, Grid, show_under
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.title import Title
from joulemap.show.win import COUNTED, describe_parts, describe_wins, list_part_reasons
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

PARTS_TITLE: Final = Template("{metric} of each {part}")
PART_HEADINGS: Final = {"subgraph": ("subgraph", "pattern"), "operator": ("operator", "kind")}
Mark = Callable[[str], str]
"""Function that marks the name of hardware that can be neither bought nor rented."""

WINNER: Final = ("best", "advantage")
MORE_ON: Final = Template("more on {name}")
ALIKE: Final = Template("{tied_count} tied")
STEPS_OF_PARTS: Final = Template("explain {model} {other} {best} --metric {metric} {repeated}")
STEPS_OF_SUBGRAPHS: Final = Template("analyze {model} {best} --level subgraph {repeated}")

Row = TypeVar("Row", bound=Contender | ModelFigure)

SHOWN_WINNERS: Final = 4
"""Maximum chips that a figure's caption names."""


@frozen(kw_only=True)
class ContestAnswer(RunAnswer):
    """Best hardware for each subgraph or operator by a metric, and the wins of each chip."""

    by: ModelDivision
    metric: PartMetricName
    rows: Table[Contender]
    """Value of each subgraph or operator on each chip, lowest value first."""
    victories: Table[Victory]
    """Kinds of subgraph or operator that each chip is best at; chips with most wins first."""

    facts: Facts
    """Wins of each chip, the best chip in all, and caveats, from which all sentences are made."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {**super().data(), "level": self.by, "metric": self.metric}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of each model's table; the details hold those of further models, and
        machine formats all rows.
        """
        workloads = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        pairs = {one.model: one.runs[:2] for one in reversed(self.facts.of(Choice)) if len(one.runs) > 1}
        is_several = len(workloads) > 1
        first, *others = (
            show_under(
                rows[0].model if is_several else "",
                lay_out(rows, self._mark, self.by, limit, pairs.get(rows[0].model if is_several else "", ())),
                *(self._count_left_out() if rows is workloads[0] else ()),
            )
            for rows in workloads
        )
        return self._compose_facts(
            self.facts,
            (first,),
            self.rows,
            title=self._title(),
            answer=self.describe_best(),
            reasons=list_part_reasons(self.facts),
            notes=[COUNTED] if self.facts.of(Win) else [],
            details=others,
            steps=self._steps(repeated),
        )

    def describe_best(self) -> str:
        """Return the decision in one sentence."""
        return describe_parts(self.facts)

    def describe_wins(self) -> list[str]:
        """Return one line per chip on the parts that it is best at."""
        models = dict.fromkeys(one.model for one in self.facts.of(Win))
        return [line for model in [*models][-1:] if not model for line in describe_wins(self.facts)] or [
            line for model in models if model for line in describe_wins(self.facts, model)
        ]

    def _title(self, model: str = "") -> Title:
        """Return the subject line of all models, or of one."""
        title = title_runs(self.scope)
        values = {**title.values, "models": (model,)} if model else title.values
        about = PARTS_TITLE(metric=METRIC[self.metric].label, part=self.by)
        return attrs.evolve(title, values=values, about=about)

    def figures(self) -> Figures:
        """Return one heatmap per model: subgraphs or operators by hardware, with the best hardware marked."""
        ids = dict.fromkeys(row.workload_id for row in self.rows)
        label = METRIC[self.metric].label
        texts = {"quantity": label, "part": self.by, "of": " of {model}" if len(ids) > 1 else ""}
        drawn = []
        for workload_id in ids:
            rows = tuple(row for row in self.rows if row.workload_id == workload_id)
            model = rows[0].model if len(ids) > 1 else ""
            subject = self._title(model)
            lines = [*describe_wins(self.facts, model)]
            facts = f"{'; '.join(lines[:SHOWN_WINNERS])}."
            drawn.append(self._draw_figure("heatmap", self.rows.with_rows(rows), subject, facts, texts))
        return tuple(drawn)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        """Return commands on the two best chips in all, or on the first by wins if the metric has no total."""
        choice = next(iter(self.facts.of(Choice)), None)
        named = [self.facts.runs[run_id].hardware for run_id in choice.runs[:2]] if choice is not None else []
        named = named or list(dict.fromkeys(row.hardware for row in self.victories))[:2]
        hardware = [self.scope.spell(name) for name in named]
        steps = [
            *([STEPS_OF_PARTS] if len(hardware) > 1 else []),
            *([STEPS_OF_SUBGRAPHS] if hardware and self.by == "subgraph" else []),
        ]
        return [
            one.words(
                model=self.scope.model, other=hardware[-1], best=hardware[0], metric=self.metric, repeated=repeated
            )
            for one in steps
        ]


def lay_out(rows: Iterable[Contender], mark: Mark, by: ModelDivision, limit: int, pair: Sequence[int] = ()) -> Grid:
    """Return a grid of the largest subgraphs or operators of one workload, with a column per chip, and a picture of the
    difference between the two runs of a `pair`.
    """
    listed = list(rows)
    contests = [list(group) for _, group in groupby(listed, lambda row: row.part_index)]
    sums: dict[int, float] = {}
    for row in listed:
        sums[row.run_id] = sums.get(row.run_id, 0.0) + row.value
    weights = [sum(row.value / (sums[row.run_id] or 1.0) for row in contest) for contest in contests]
    largest = sorted(sorted(range(len(contests)), key=lambda contest_index: -weights[contest_index])[:limit])

    def head(row: Contender) -> tuple[str, str]:
        return row.name, row.fusion_pattern if by == "subgraph" else row.kind

    def show_advantage(contest: Sequence[Contender]) -> tuple[str]:
        ratio = contest[1].ratio if len(contest) > 1 and contest[0].tied_count == 1 else None
        return ("" if ratio is None else Number(f"{ratio:.3g}x"),)

    drawn = lay_across(contests, mark, PART_HEADINGS[by], head, WINNER, show_advantage, largest)
    drawn = drawn.out_of(len(contests), limit, f"{by}s")
    if len(sums) < 2:
        return drop_winner(drawn, len(WINNER))
    if len(pair) < 2:
        return drawn
    kept = tuple(name for name in drawn.keep if name not in WINNER)  # marks show the best
    return attrs.evolve(drawn, keep=kept, pictures=(_draw(contests, largest, mark, pair),))


def _draw(contests: Sequence[Sequence[Contender]], shown: Iterable[int], mark: Mark, pair: Sequence[int]) -> Picture:
    """Return bars of how much more than the first run of a pair the second one takes for each part."""
    values = [{row.run_id: row.value for row in contests[contest_index]} for contest_index in shown]
    names = {row.run_id: mark(row.hardware) for row in contests[0]}
    first, second = pair
    return Picture(
        kind="difference",
        after=WINNER[-1],
        rows=tuple((one[second] - one[first],) if one.keys() >= {first, second} else () for one in values),
        heading=MORE_ON(name=names[second]),
        left=MORE_ON(name=names[first]),
        yields=True,
    )


def lay_across(
    contests: Sequence[Sequence[Row]],
    mark: Mark,
    heads: tuple[str, ...],
    head: Callable[[Row], tuple[str, ...]],
    winner: tuple[str, ...],
    show_more: Callable[[Sequence[Row]], tuple[str, ...]] = lambda _: (),
    shown: Sequence[int] | None = None,
) -> Grid:
    """Return a grid that compares chips: a row per contest, with the value of each chip and the best hardware.

    A contest holds the rows of all chips for one item, such as a subgraph; `shown` selects contests by index. `head`
    makes the first cells, under the headings `heads`. `winner` holds the headings of the best hardware and of the
    columns that `show_more` adds. If the best hardware is unavailable, the row also names the best available hardware.
    """
    runs = {row.hardware: row.run_id for contest in contests for row in contest}
    hardware = sorted(runs, key=lambda name: runs[name])
    marked: set[tuple[int, int]] = set()
    tied: set[tuple[int, int]] = set()
    cells: list[tuple[str, ...]] = []
    has_beside = any(contest[0].value is not None and not contest[0].is_available for contest in contests)
    for line, contest in enumerate(contests[index] for index in shown or range(len(contests))):
        first, rows = contest[0], {row.hardware: row for row in contest}
        best = [row for row in contest if row.value is not None and row.value == first.value]
        cells_of = [(line, len(heads) + hardware.index(row.hardware)) for row in best]
        (marked if len(best) == 1 else tied).update(cells_of)
        named = ALIKE(first) if first.tied_count > 1 else mark(first.hardware) if best else ""
        values = (
            show_quantity(rows[name].value, rows[name].unit) or "unsupported" if name in rows else ""
            for name in hardware
        )
        beside = (_name_available(contest, mark),) if has_beside else ()
        cells.append((*head(first), *values, named, *show_more(contest), *beside))
    names = tuple(map(mark, hardware))
    wins, had = (
        Counter(mark(row.hardware) for contest in contests for row in _list_best(contest, is_any=is_any))
        for is_any in (True, False)
    )
    last = (*winner, *(("best available",) if has_beside else ()))
    return Grid(
        headings=(*heads, *names, *last),
        rows=tuple(cells),
        keep=(*sorted(names, key=lambda name: (-had[name], -wins[name])), *last),
        best=frozenset(marked if len(hardware) > 1 else ()),
        tied=frozenset(tied if len(hardware) > 1 else ()),
    )


def drop_winner(drawn: Grid, count: int) -> Grid:
    """Return the grid of a single chip without its last `count` columns, which name the best chip."""
    kept = drawn.headings[:-count]
    keep = tuple(name for name in drawn.keep if name in kept)
    return attrs.evolve(drawn, headings=kept, rows=tuple(cells[:-count] for cells in drawn.rows), keep=keep)


def _list_best(contest: Sequence[Row], *, is_any: bool) -> list[Row]:
    """Return the first row with a value, of available hardware unless `is_any`; empty without any."""
    return [row for row in contest if row.value is not None and (is_any or row.is_available)][:1]


def _name_available(contest: Iterable[Row], mark: Mark) -> str:
    """Return the best available hardware among the rows of one contest; a text for a tie or if none is available."""
    best = [row for row in contest if row.value is not None and row.is_available]
    if len(best) > 1 and best[0].value == best[1].value:
        return ALIKE(tied_count=sum(row.value == best[0].value for row in best))
    return mark(best[0].hardware) if best else "none"


def compare_parts(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    by: ModelDivision = "subgraph",
    metric: PartMetricName = "energy",
) -> ContestAnswer:
    """Compare each subgraph or operator of the models on each chip by a metric.

    The EDP of a part is its share of the run's EDP. The memory of a part is its off-chip traffic in bytes. Raises like
    `compare`.
    """
    check_name("level", by, get_args(ModelDivision))
    check_name("metric", metric, PART_METRICS)
    settings.check_single("compare")
    with opening_scope(source, plan_runs(models, settings)) as scope:
        scope.check_evaluated()
        connection, ids = scope.connection, list(scope.run_ids)
        rows = start(connection, Contender, run_ids=ids, level=by, metric=metric)
        victories = fetch(connection, Victory, run_ids=ids, level=by, metric=metric)
        contended = rows()
        facts = find_parts(scope, contended.rows, metric, by)
        return ContestAnswer(scope=scope, by=by, metric=metric, victories=victories, rows=contended, facts=facts)
