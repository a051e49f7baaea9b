"""Words and tables of configurations to choose from: their subject, limits, costs, notes and follow-up commands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

import attrs

from joulemap.ask.candidate import CandidateAnswer, RankedAnswer, find_busy_hours, find_chip, list_first
from joulemap.ask.decision import PAID
from joulemap.ask.fact import Choice, Facts
from joulemap.domain.column import Col
from joulemap.domain.metric import METRIC, Metric, MetricName, RunMetricName
from joulemap.domain.offer import describe_pay
from joulemap.domain.settings import Limits
from joulemap.domain.table import Table
from joulemap.generated.cost import AssumedNumber
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.physics.record.weight import split_precision
from joulemap.show.caveat import find_unpriced
from joulemap.show.choice import MOST_TIED
from joulemap.show.column import SPEAKING, alter, find_column, show_table
from joulemap.show.layout import shorten
from joulemap.show.page import Figures, draw_figure
from joulemap.show.present.cell import Number, mark_projected, show, show_bound
from joulemap.show.present.document import Grid, Section, choose_rows
from joulemap.show.present.template import Template
from joulemap.show.run import repeat_boundary, show_sure
from joulemap.show.title import Title

Row = TypeVar("Row")

SUBJECT: Final = Template("{model}[, batch {batch}][{origin}][, {common:list}]")
MODEL: Final = Template("{model}")
USED: Final = Template("{pay}, each chip busy {busy_hours:plain} of 24 hours[ for {years:plain} years]")

LIMIT: Final = Template("{metric.meaning}: {word} {bound}")
BOUND: Final = Template("{metric.label} {word} {bound}")
PACED: Final = Template("power at {rate} of {word} {bound}")
FULL_SPEED: Final = "full speed"
WITH_HOST: Final = Template("{label} with host")
AT_MOST, AT_LEAST = "at most", "at least"

CONFIGURATIONS: Final = Template("{count:n configuration}")
FACTOR: Final = Template("[{ratio:x}]")

UNRANKED: Final = Template("chips that can be neither bought nor rented are not ranked (`--where all` does): {names}")

ANALYZE: Final = Template(
    "analyze {model} {hardware} --precision {precision} [--weight-precision {weights}] --batch {batch} "
    "[--runtime {runtime}] {repeated}"
)
COMPARE: Final = Template(
    "{question} {model} --hardware {hardware} --precision {precision} [--weight-precision {weights}] --batch {batch} "
    "[--runtime {runtime}] [--metric {metric}] {repeated}"
)

SHOWN_NAMES: Final = 6
"""Maximum chips listed in a note."""

COMMON: Final = ("precision", "batch", "runtime")
"""Settings that the subject line states where all configurations share them."""


def describe_use(assumptions: Table[AssumedNumber], pay: str, kind: str = "") -> str:
    """Return the assumptions of a cost in words: way to pay, kind of seller, busy hours per day and lifetime."""
    years = next(row.value for row in assumptions if row.assumption == "lifetime")
    return USED(
        pay=describe_pay(pay, kind),
        busy_hours=find_busy_hours(assumptions),
        years=None if pay == "rented" else years,
    )


def list_metrics(row: type[Row], names: Iterable[MetricName], but: Collection[str] = ()) -> list[Col[Row]]:
    """Return the columns of metrics, without those in `but`."""
    return [find_column(row, METRIC[name].column).headed(METRIC[name].label) for name in names if name not in but]


def show_assumptions(answer: CandidateAnswer) -> list[Section]:
    """Return the section of the assumptions of cost and carbon, with sources."""
    of = AssumedNumber
    value = of.value.by(lambda row: Number(f"{row.value:,.6g}" if row.value < 1000.0 else f"{row.value:,.0f}")).kept
    unit = of.unit.by(lambda row: "" if row.unit == "1" else row.unit).kept
    return show_table(answer, "Assumptions", answer.stated, alter(of.table, value, unit))


def show_metric(name: str, value: float | None) -> str:
    """Return a metric's value for display; empty if unknown."""
    metric = METRIC[name]
    return show(value, metric.column, metric.unit)


def find_limited(name: str) -> Metric:
    """Return a metric as limits refer to it: a limit on the purchase price includes the host."""
    metric = METRIC[name]
    return attrs.evolve(metric, label=WITH_HOST(label=metric.label)) if name == "purchase" else metric


def describe_limits(limits: Limits, template: Template, rate: str = "") -> list[str]:
    """Return one sentence per limit. At a fixed `rate`, the power limit applies to the average power."""
    return [
        (PACED if limits.min_throughput_per_s and name == "power" else template)(
            metric=find_limited(name),
            rate=rate or FULL_SPEED,
            word=AT_LEAST if METRIC[name].is_higher_better else AT_MOST,
            bound=show_bound(bound, METRIC[name].unit),
        )
        for name, bound in limits.bounds
    ]


def title_candidates(answer: CandidateAnswer, about: str, rows: Sequence[Any]) -> Title:
    """Return the subject line: the model, the batch size of all configurations, if they share one, its origin if the
    input fixes it, and what else `rows` share.
    """
    settings, batches = answer.scope.settings, answer.scope.batches
    shared = {name: getattr(rows[0], name) for name in COMMON if len({getattr(row, name) for row in rows}) == 1}
    if len(batches) == 1:
        shared.pop("batch", None)
    values = {
        "model": answer.scope.model,
        "batch": batches[0] if len(batches) == 1 else None,
        "origin": " as in the input (--batch tries others)" if settings.inputs and not settings.batch else None,
        "common": [str(one) if name in SPEAKING else f"{name} {one}" for name, one in shared.items()],
    }
    return Title(form=SUBJECT, values=values, about=about)


def draw_candidates(
    answer: CandidateAnswer, name: Any, rows: Table[Any], about: str, told: str, more: str = "", **texts: str
) -> Figures:
    """Return a figure of configurations, with their names as labels and `more` after them."""
    label = "{hardware} {precision} batch {batch}" + (" {runtime}" if len(answer.scope.runtimes) > 1 else "") + more
    title = Title(form=MODEL, values={"model": answer.scope.model}, about=about)
    return (draw_figure(answer.scope, name, rows, title, told, {"label": label, **texts}),)


def mark_ranked(answer: RankedAnswer, drawn: Grid, table: Table[Any], limit: int, label: str) -> Grid:
    """Return the grid of a table of ranked configurations with marks at the best value in the column `label`, and at
    those that are statistically tied with it.
    """
    rows, choices = choose_rows(table.rows, limit, is_best(answer)), answer.facts.of(Choice)
    if not choices or len(rows) < 2:
        return drawn
    choice = choices[0]
    close = {*choice.tied, *choice.equal, *(choice.runs[:1] if len(choice.tied) > MOST_TIED else ())}
    return drawn.mark_best(label, [row.run_id for row in rows], {*choice.runs[:1]} - close, close)


def is_best(answer: RankedAnswer) -> Callable[[Any], bool]:
    """Return a function that is True for the best configuration."""
    best = answer.best
    return lambda row: row is best


def show_odds(answer: CandidateAnswer, chance: float | None, *rows: Any) -> str:
    """Return a chance that rests on some configurations; empty if the support of one, or a named price, is unknown."""
    chips = (row.hardware for row in rows if row is not None)
    return "" if find_unpriced(answer.facts) else show_sure(answer.scope, chance, *chips)


def describe_lost(facts: Facts) -> list[str]:
    """Return lines on named hardware that a missing price leaves out."""
    return list(dict.fromkeys(find_unpriced(facts).values()))


def describe_unranked(answer: CandidateAnswer, rows: Iterable[Any]) -> list[str]:
    """Return a note on hardware that is not ranked because it can be neither bought nor rented."""
    marked = [mark_projected(find_chip(row), answer.projected) for row in list_first(rows)]
    return [UNRANKED(names=", ".join(shorten(marked, SHOWN_NAMES)))] if marked else []


def ask_next(
    answer: CandidateAnswer, compared: Sequence[Any], analyzed: Iterable[Any], repeated: Sequence[str]
) -> list[list[str]]:
    """Return the words of the command that compares two configurations, if there are two, and of those that analyze
    others, each once.
    """
    pair = [(COMPARE, compared)] if len(compared) > 1 else []
    steps = [*pair, *((ANALYZE, [row]) for row in {row.run_id: row for row in analyzed}.values())]
    return [step.words(**_spell(answer, rows, repeated)) for step, rows in steps]


def _spell(answer: CandidateAnswer, rows: Sequence[Any], repeated: Sequence[str]) -> Mapping[str, Any]:
    """Return the options of a command about configurations, with every option in which they differ."""
    pairs = [split_precision(row.precision) for row in rows]
    is_usual = {row.runtime for row in rows} == {USUAL_RUNTIME}
    options = {
        "hardware": [answer.scope.spell(row.hardware) for row in rows],
        "precision": [precision for precision, _ in pairs],
        "weights": [weights for _, weights in pairs if weights],
        "batch": [str(batch) for batch in sorted({row.batch for row in rows})],
        "runtime": [] if is_usual else [row.runtime for row in rows],
    }
    joined = {name: ",".join(dict.fromkeys(values)) for name, values in options.items()}
    given = repeat_boundary(answer.scope, (row.hardware for row in rows), repeated)
    name = answer.objective if isinstance(answer, RankedAnswer) else ""
    name = "edp" if name == "edp_per_inference" else name
    metric = name if name in get_args(RunMetricName) and name != "energy" else ""  # energy is the default
    question = "cost" if name in PAID else "compare"
    return {"model": answer.scope.model, "repeated": given, "question": question, "metric": metric, **joined}
