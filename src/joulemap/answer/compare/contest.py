"""Find the best hardware for each subgraph or operator, and the kinds of operator that each chip is best at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar, get_args

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.compare import text
from joulemap.answer.compare.summary import SHOWN
from joulemap.answer.scope import Scope, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.present.cell import show_quantity
from joulemap.present.document import Document, Grid, Section
from joulemap.present.template import join_texts
from joulemap.row.compare import Contender, ModelFigure, Victory
from joulemap.store.query import fetch, start
from joulemap.system.record import frozen

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

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with a sentence for each chip that is best at any part."""
        return {**super().data(), "level": self.by, "metric": self.metric, "summary": self.sentences()}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of each model's table; machine formats contain all rows."""
        workloads = [list(rows) for _, rows in groupby(self.rows, lambda row: row.workload_id)]
        sections = [
            Section(
                rows[0].model if len(workloads) > 1 else text.PARTS_HEADING(part=self.by),
                (lay_out(rows, self.scope, self.by, limit), *self.scope.describe_left_out()),
                is_tight=True,
            )
            for rows in workloads
        ]
        answer = self.describe_best()
        return self._compose(
            text.PARTS_TITLE(title=self.scope.title, metric=METRIC[self.metric].label, part=self.by),
            sections,
            self.rows,
            answer=answer,
            insights=[line for line in self.sentences(is_winner=True) if not answer.startswith(line)],
            steps=self._steps(repeated),
        )

    def describe_best(self) -> str:
        """Return the headline: how many subgraphs or operators each chip is best at, available hardware first."""
        contests = [list(rows) for _, rows in groupby(self.rows, lambda row: (row.workload_id, row.part_index))]
        return count_wins(contests, self.scope, METRIC[self.metric].label, self.by) or f"{self.sentences()[0]}."

    def sentences(self, *, is_winner: bool = False) -> list[str]:
        """Return one sentence per chip on the kinds of subgraph or operator that it is best at.

        Chips that only tie are included unless `is_winner`.
        """
        is_several = len({row.workload_id for row in self.victories}) > 1
        lines = []
        for _, group in groupby(self.victories, lambda row: (row.workload_id, row.hardware)):
            first, *_ = kinds = list(group)
            if not first.hardware_won_count and (is_winner or not first.hardware_tied_count):
                continue
            count, tied = int(first.hardware_won_count), int(first.hardware_tied_count)
            won = {
                verdict: [text.WON_KIND(row) for row in kinds if row.verdict == verdict] for verdict in text.WON_KINDS
            }
            lines.append(
                self._fill(
                    text.WON if count else text.SHARED,
                    first,
                    of_model=first.model if is_several else "",
                    metric=METRIC[self.metric].label,
                    won=count_of(count or tied, int(first.all_part_count), self.by),
                    kinds=[text.WON_KINDS[verdict](kinds=some) for verdict, some in won.items() if some],
                    tied=tied or None,
                )
            )
        return lines

    def figures(self) -> Figures:
        """Return one heatmap per model: subgraphs or operators by hardware, with the best hardware marked."""
        ids = dict.fromkeys(row.workload_id for row in self.rows)
        label = METRIC[self.metric].label
        texts = {"quantity": label, "part": self.by, "of": " of {model}" if len(ids) > 1 else ""}
        drawn = []
        for workload_id in ids:
            rows = tuple(row for row in self.rows if row.workload_id == workload_id)
            model = f"{rows[0].model}, " if len(ids) > 1 else ""
            subject = text.PARTS_TITLE(title=f"{model}{self.scope.title}", metric=label, part=self.by)
            lines = [line for line in self.sentences() if not model or line.startswith(f"{rows[0].model}: ")]
            facts = f"{'; '.join(lines[:SHOWN_WINNERS])}."
            drawn.append(self._draw_figure("heatmap", self.rows.with_rows(rows), subject, facts, texts))
        return tuple(drawn)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        hardware = [self.scope.spell(name) for name in dict.fromkeys(row.hardware for row in self.victories)]
        steps = [
            *([text.STEPS_OF_PARTS] if len(hardware) > 1 else []),
            *([text.STEPS_OF_SUBGRAPHS] if hardware and self.by == "subgraph" else []),
        ]
        return [
            one.words(
                model=self.scope.model, other=hardware[-1], best=hardware[0], metric=self.metric, repeated=repeated
            )
            for one in steps
        ]


def lay_out(rows: Iterable[Contender], scope: Scope, by: ModelDivision, limit: int) -> Grid:
    """Return a grid of the largest subgraphs or operators of one workload, with a column per chip."""
    listed = list(rows)
    contests = [list(group) for _, group in groupby(listed, lambda row: row.part_index)]
    sums: dict[int, float] = {}
    for row in listed:
        sums[row.run_id] = sums.get(row.run_id, 0.0) + row.value
    weights = [sum(row.value / (sums[row.run_id] or 1.0) for row in contest) for contest in contests]
    largest = sorted(sorted(range(len(contests)), key=lambda place: -weights[place])[:limit])

    def head(row: Contender) -> tuple[str, str]:
        return row.name, row.fusion_pattern if by == "subgraph" else row.kind

    def show_advantage(contest: Sequence[Contender]) -> tuple[str]:
        ratio = contest[1].ratio if len(contest) > 1 and contest[0].tied_count == 1 else None
        return ("" if ratio is None else f"{ratio:.3g}x",)

    drawn = lay_across(contests, scope, text.PART_HEADINGS[by], head, text.WINNER, show_advantage, largest)
    return drawn.out_of(len(contests), limit, f"{by}s")


def lay_across(
    contests: Sequence[Sequence[Row]],
    scope: Scope,
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
    for place, contest in enumerate(contests[index] for index in shown or range(len(contests))):
        first, rows = contest[0], {row.hardware: row for row in contest}
        best = [row for row in contest if row.value is not None and row.value == first.value]
        cells_of = [(place, len(heads) + hardware.index(row.hardware)) for row in best]
        (marked if len(best) == 1 else tied).update(cells_of)
        named = text.ALIKE(first) if first.tied_count > 1 else scope.mark(first.hardware) if best else ""
        values = (
            show_quantity(rows[name].value, rows[name].unit) or text.REFUSED if name in rows else ""
            for name in hardware
        )
        beside = (_name_available(contest, scope),) if has_beside else ()
        cells.append((*head(first), *values, named, *show_more(contest), *beside))
    names = tuple(map(scope.mark, hardware))
    wins = Counter(scope.mark(contest[0].hardware) for contest in contests if contest[0].value is not None)
    last = (*winner, *((text.BEST_AVAILABLE,) if has_beside else ()))
    return Grid(
        headings=(*heads, *names, *last),
        rows=tuple(cells),
        keep=(*sorted(names, key=lambda name: -wins[name]), *last),
        best=frozenset(marked if len(hardware) > 1 else ()),
        tied=frozenset(tied if len(hardware) > 1 else ()),
    )


def _name_available(contest: Iterable[Row], scope: Scope) -> str:
    """Return the best available hardware among the rows of one contest; a text for a tie or if none is available."""
    best = [row for row in contest if row.value is not None and row.is_available]
    if len(best) > 1 and best[0].value == best[1].value:
        return text.ALIKE(tied_count=sum(row.value == best[0].value for row in best))
    return scope.mark(best[0].hardware) if best else text.NO_HARDWARE


def count_of(count: int, total: int, part: str) -> str:
    """Return a count out of a total in words, such as `both`."""
    forms = {1: text.OF_ONE, 2: text.OF_BOTH}
    form = text.OF_SOME if count < total else forms.get(total, text.OF_ALL)
    return form(count=count, total=total, part=part)


def count_wins(contests: Sequence[Sequence[Row]], scope: Scope, metric: str, part: str) -> str:
    """Return the wins of each available chip, then those of unavailable chips; empty if all winners are available."""
    if all(contest[0].is_available for contest in contests):
        return ""
    total = len(contests)
    had = Counter(_name_available(contest, scope) for contest in contests)
    beyond = Counter(scope.mark(contest[0].hardware) for contest in contests if not contest[0].is_available)
    unserved = had.pop(text.NO_HARDWARE, 0)
    ties = sum(had.pop(name) for name in [*had] if name not in map(scope.mark, scope.named.values()))
    lines = []
    for (best, count), *rest in [had.most_common()] if had else []:
        others = [text.WINS(hardware=name, count=number) for name, number in rest]
        others += [text.WINS(hardware=text.TIES, count=ties)] if ties else []
        lines.append(text.AVAILABLE(best=best, metric=metric, count=count_of(count, total, part), others=others))
    if unserved:
        clause = text.UNSERVED(count=count_of(unserved, total, part))
        lines.append(text.NONE_AVAILABLE() if unserved == total else clause)
    wins = [(name, count_of(number, total, part)) for name, number in beyond.most_common()]
    lines.append(text.BEYOND_PARTS(beyond=[text.BEYOND_WINS(hardware=name, count=count) for name, count in wins]))
    return join_texts(" ", lines)


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
    with holding_scope(source, plan_runs(models, settings)) as (scope, connection, ids):
        rows = start(connection, Contender, run_ids=ids, level=by, metric=metric)
        victories = fetch(connection, Victory, run_ids=ids, level=by, metric=metric)
        return ContestAnswer(scope=scope, by=by, metric=metric, victories=victories, rows=rows())
