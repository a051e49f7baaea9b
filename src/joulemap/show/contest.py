"""Tables and figures of contests: parts of a model, or models, in rows, and chips in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, TypeVar

import attrs

from joulemap.ask.contest import ContestAnswer, ModelsAnswer
from joulemap.ask.fact import Choice, Entry, Win
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import Division
from joulemap.generated.compare import Contender, ModelFigure
from joulemap.show.choice import MOST_WHY
from joulemap.show.column import show_table
from joulemap.show.layout import draw_ranges
from joulemap.show.page import (
    Asked,
    Drawings,
    Figures,
    Page,
    compose_runs,
    count_left_out_below,
    draw_figure,
    fill_steps,
    sketch,
)
from joulemap.show.present.cell import Number, mark_projected, show_quantity
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.title import Title
from joulemap.show.win import (
    COUNTED,
    describe_models,
    describe_parts,
    list_model_reasons,
    list_part_reasons,
    list_wins,
)

OF_EACH: Final = Template("{metric} of each {part}")
BEST: Final = ("best", "advantage")
MORE_ON: Final = Template("more on {name}")
ALIKE: Final = Template("{count} tied")

EXPLAIN: Final = Template("explain {model} {other} {best} --metric {metric}")
ANALYZE: Final = Template("analyze {model} {best} --level subgraph")
MODEL_STEPS: Final = (
    Template("compare {model} --level subgraph --hardware {some} --metric {metric}"),
    Template("compare {models} --level run --hardware {best}"),
)

SHOWN_HARDWARE: Final = 4
"""Maximum chips that the follow-up command compares by subgraph."""

Row = TypeVar("Row", bound=Contender | ModelFigure)


def lay_parts(
    rows: Iterable[Contender],
    projected: frozenset[str],
    by: str,
    limit: int,
    pair: Sequence[int] = (),
    *,
    takes_all: bool = False,
) -> Grid:
    """Return a grid of the largest subgraphs or operators of one workload, with a column per chip, and a picture of the
    difference between the two runs of a `pair`.
    """
    listed = list(rows)
    contests = [list(group) for _, group in groupby(listed, lambda row: row.part_index)]
    sums = Counter[int]()
    for row in listed:
        sums[row.run_id] += row.value  # type: ignore[assignment]
    weights = [sum(row.value / (sums[row.run_id] or 1.0) for row in contest) for contest in contests]
    shown = [contests[index] for index in sorted(sorted(range(len(contests)), key=lambda one: -weights[one])[:limit])]

    def head(row: Contender) -> tuple[str, str]:
        return row.name, row.fusion_pattern if by == "subgraph" else row.kind

    def show_advantage(contest: Sequence[Contender]) -> tuple[str]:
        least, following = (*(row.value for row in contest[:2]), 0.0)[:2]
        return (Number(f"{following / least:.3g}x") if following > least > 0.0 else "",)

    heads = (by, "pattern" if by == "subgraph" else "kind")
    drawn = lay_contests(contests, shown, projected, heads, head, show_advantage, takes_all=takes_all)
    drawn = drawn.out_of(len(contests), limit, f"{by}s")
    if len(sums) < 2 or len(pair) < 2:
        return drawn
    kept = tuple(name for name in drawn.keep if name not in BEST)  # marks show the best
    picture = _draw_difference(shown, projected, pair)
    return attrs.evolve(drawn, keep=kept, pictures=(picture,))


def _draw_difference(
    contests: Sequence[Sequence[Contender]], projected: frozenset[str], pair: Sequence[int]
) -> Picture:
    """Return bars of how much more than the first run of a pair the second one takes for each part."""
    values = [{row.run_id: row.value for row in contest} for contest in contests]
    names = {row.run_id: mark_projected(row.hardware, projected) for contest in contests for row in contest}
    first, second = pair
    return Picture(
        kind="difference",
        after=BEST[-1],
        rows=tuple((one[second] - one[first],) if one.keys() >= {first, second} else () for one in values),
        heading=MORE_ON(name=names[second]),
        left=MORE_ON(name=names[first]),
        yields=True,
    )


def lay_contests(
    contests: Sequence[Sequence[Row]],
    shown: Iterable[Sequence[Row]],
    projected: frozenset[str],
    heads: tuple[str, ...],
    head: Callable[[Row], tuple[str, ...]],
    show_more: Callable[[Sequence[Row]], tuple[str, ...]] | None = None,
    *,
    takes_all: bool = False,
) -> Grid:
    """Return a grid that compares chips: a row per shown contest, with the value of each chip and the best of several.

    A contest holds the rows of all chips for one item, such as a subgraph, best first: the columns have the order of
    the first one. `head` makes the first cells, under the headings `heads`, and `show_more` that of the advantage.
    Unavailable hardware is the best only if a contest has no other, or if the question `takes_all`.
    """
    hardware = list(dict.fromkeys(row.hardware for contest in contests for row in contest))
    places = {name: column for column, name in enumerate(hardware, len(heads))}
    is_several = len(hardware) > 1
    marked: set[tuple[int, int]] = set()
    tied: set[tuple[int, int]] = set()
    cells: list[tuple[str, ...]] = []
    for line, contest in enumerate(shown):
        rows = {row.hardware: row for row in contest}
        had = _list_choosable(contest, takes_all=takes_all) or contest[:1]
        first = had[0]
        best = [row for row in had if row.value is not None and row.value == first.value]
        (marked if len(best) == 1 else tied).update((line, places[row.hardware]) for row in best)
        values = [
            show_quantity(rows[name].value, rows[name].unit) or "unsupported" if name in rows else ""
            for name in hardware
        ]
        winner = ALIKE(count=len(best)) if len(best) > 1 else mark_projected(first.hardware, projected) if best else ""
        more = (winner, *(show_more(had) if show_more is not None else ())) if is_several else ()
        cells.append((*head(first), *values, *more))
    names = tuple(mark_projected(name, projected) for name in hardware)
    bests = (_list_choosable(contest, takes_all=takes_all)[:1] for contest in contests)
    wins = Counter(mark_projected(row.hardware, projected) for own in bests for row in own)
    last = BEST[: (1 if show_more is None else 2) * is_several]
    return Grid(
        headings=(*heads, *names, *last),
        rows=tuple(cells),
        keep=(*sorted(names, key=lambda name: -wins[name]), *last),
        best=frozenset(marked if is_several else ()),
        tied=frozenset(tied if is_several else ()),
    )


def _list_choosable(contest: Iterable[Row], *, takes_all: bool) -> list[Row]:
    """Return the rows with a value whose hardware can be the best, best first: the available ones if there are any."""
    valued = [row for row in contest if row.value is not None]
    return [row for row in valued if row.is_available or takes_all] or valued


def title_parts(answer: ContestAnswer, model: str = "") -> Title:
    """Return the subject line of all models, or of one."""
    title = title_runs(answer.scope)
    values = {**title.values, "models": (model,)} if model else title.values
    return attrs.evolve(title, values=values, about=OF_EACH(metric=METRIC[answer.metric].label, part=answer.by))


def list_part_steps(answer: ContestAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return steps on the best chip in all and the one with most wins, or on the two best in all if they are one, or on
    the first by wins if the metric has no total.
    """
    facts = answer.facts
    choice = next(iter(facts.of(Choice)), None)
    best, *others = [facts.runs[run_id].hardware for run_id in choice.runs[:2]] if choice is not None else [""]
    leads = [facts.runs[one.run].hardware for one in list_wins(facts)[:1]]
    ranked = [best, *leads, *others] if best else [*leads, *(row.hardware for row in answer.rows)]
    named = list(dict.fromkeys(ranked))[:2]
    hardware = [answer.scope.spell(name) for name in named]
    steps = [EXPLAIN] * (len(hardware) > 1) + [ANALYZE] * (bool(hardware) and answer.by == "subgraph")
    best, other = next(iter(hardware), ""), next(reversed(hardware), "")
    return fill_steps(steps, None, repeated, model=answer.scope.model, metric=answer.metric, best=best, other=other)


def show_models(answer: ContestAnswer, those: slice, limit: int) -> list[Section]:
    """Return the section of each of some models; the only model is not named."""
    pairs = {one.model: one.runs[:2] for one in reversed(answer.facts.of(Choice)) if len(one.runs) > 1}
    takes_all, is_several = answer.scope.settings.takes_all, len(answer.workloads) > 1
    named = [(rows[0].model if is_several else "", rows) for rows in answer.workloads[those]]
    return [
        Section(
            model,
            lay_parts(rows, answer.projected, answer.by, limit, pairs.get(model, ()), takes_all=takes_all),
        )
        for model, rows in named
    ]


def draw_parts(answer: ContestAnswer, asked: Asked) -> Document:
    """Return the document of a contest by parts: a section of each model."""
    most = asked.most(10)
    first = count_left_out_below(answer.scope, show_models(answer, slice(1), most))
    others = show_models(answer, slice(1, None), most)
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.rows,
        title=title_parts(answer),
        headline=describe_parts(answer.facts),
        reasons=list_part_reasons(answer.facts)[:MOST_WHY],
        details=[attrs.evolve(one, is_tight=True) for one in others],
        notes=[COUNTED] if answer.facts.of(Win) else [],
        steps=list_part_steps(answer, asked.repeated),
    )


def draw_heatmaps(answer: ContestAnswer) -> Figures:
    """Return one heatmap per model: subgraphs or operators by hardware, with the best hardware marked."""
    is_several = len(answer.workloads) > 1
    texts = {"quantity": METRIC[answer.metric].label, "part": answer.by, "of": " of {model}" if is_several else ""}
    drawn = []
    for rows in answer.workloads:
        model = rows[0].model if is_several else ""
        told = describe_parts(answer.facts)
        drawn.append(draw_figure(answer.scope, "heatmap", rows, title_parts(answer, model), told, texts))
    return tuple(drawn)


def lay_models(answer: ModelsAnswer) -> Grid:
    """Return a grid with a row per model, a column per chip, the best chip, and the interval of its value."""
    contests = [list(rows) for _, rows in groupby(answer.rows, lambda row: row.workload_id)]
    takes_all = answer.scope.settings.takes_all
    drawn = lay_contests(
        contests, contests, answer.projected, ("model",), lambda row: (row.model,), takes_all=takes_all
    )
    widths = {one.run: one.values[answer.metric].half_width for one in answer.facts.of(Entry)}
    firsts = [next((row.run_id for row in contest if row.run_id in widths), None) for contest in contests]
    if not any(widths.get(run_id or 0) for run_id in firsts):
        return drawn
    unit = METRIC[answer.metric].unit
    picture = draw_ranges(answer.facts, answer.metric, firsts, drawn.headings[-1], unit=unit, yields=True)
    return attrs.evolve(drawn, pictures=(picture,))


def draw_models(answer: ModelsAnswer, asked: Asked) -> Document:
    """Return the document of a contest of models."""
    of, about = ModelFigure, OF_EACH(metric=METRIC[answer.metric].label, part="model")
    answered = sorted((row for row in answer.rows if row.status == "ok"), key=lambda row: not row.is_available)
    hardware = list(dict.fromkeys(answer.scope.spell(row.hardware) for row in answered))
    named = {"model": answer.rows[0].model, "models": answer.scope.models, "metric": answer.metric}
    figures = show_table(answer, "Figures (per batch)", answer.rows, of.table)
    return compose_runs(
        answer,
        answer.facts,
        count_left_out_below(answer.scope, [Section("", lay_models(answer))]),
        answer.rows,
        title=attrs.evolve(title_runs(answer.scope), about=about),
        headline=describe_models(answer.facts),
        reasons=list_model_reasons(answer.facts)[:MOST_WHY],
        details=figures,
        steps=fill_steps(
            MODEL_STEPS, None, asked.repeated, some=",".join(hardware[:SHOWN_HARDWARE]), best=hardware[0], **named
        ),
    )


def sketch_models(answer: ModelsAnswer, _by: Division) -> Drawings:
    """Return the drawing of the metric of each model."""
    return (sketch("models", answer.rows, {"quantity": METRIC[answer.metric].label}),)


PAGES: Final = {
    ContestAnswer: Page[ContestAnswer](draw=draw_parts, draw_figures=draw_heatmaps),
    ModelsAnswer: Page[ModelsAnswer](draw=draw_models, sketch=sketch_models),
}
