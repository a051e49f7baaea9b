"""A report: what the questions answer about models on several hardware, as one page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.compare.model import ModelsAnswer, compare_models
from joulemap.answer.report.chapter import list_badges, list_chapters, read_blocks
from joulemap.answer.report.finding import ModelFinding, find_out
from joulemap.answer.scope import describe_advantage, describe_chance, join_words
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.module import is_module_name
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.present.cell import PROJECTION_NOTE, show_quantity
from joulemap.present.document import Block, Document, Lines, Section
from joulemap.system.errors import UsageError
from joulemap.system.file import write_file
from joulemap.system.record import frozen
from joulemap.system.resource import package_version
from joulemap.webpage.page import write_page
from joulemap.webpage.report import Badges, Chapter, Report, Source as Behind

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.row.compare import Comparison, Recommendation

GOALS = ("energy", "energy_per_inference", "latency", "edp", "edp_per_inference")
"""What a report answers first."""

ALONE: Final[tuple[MetricName, ...]] = ("energy", "latency", "edp")
"""What it answers first about one run alone, which is not the best of any."""


@frozen(kw_only=True, repr=False)
class ReportAnswer(Answer):
    """Models on several hardware, from the answer to its sources; `html` is the page."""

    findings: tuple[ModelFinding, ...]
    """Model by model."""
    models: ModelsAnswer | None
    """The models beside each other, where there are several."""
    report: Report

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Every query behind it."""
        own = self.models.tables if self.models else ()
        return (*own, *self.report.tables)

    def data(self) -> dict[str, Any]:
        """Return what programs get: every row of every table."""
        return {
            "title": self.report.title,
            "verdict": self.report.verdict,
            "models": self.models.data() if self.models else None,
            "reports": {one.model: _collect(one) for one in self.findings},
        }

    def document(self) -> Document:
        """Return what it says first, and the comparison that its table is."""
        shown = [
            Section(one.title, tuple(block for block in one.blocks if isinstance(block, Block)))
            for one in self.report.chapters
        ]
        return Document(
            title=self.report.title,
            sections=(Section("", Lines(self.report.verdict)), *shown),
            data=self.data(),
            table=self.models.rows if self.models else self.findings[0].compare.rows,
            tables=self.tables,
        )

    def html(self) -> str:
        """Return it as one page that needs no network; MissingPackageError without vl-convert-python."""
        return write_page(self.report)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page to a file; UsageError where that holds something that joulemap did not write."""
        page = self.html()
        write_file(Path(path), lambda draft: draft.write_text(page, encoding="utf-8"), (), force=force)


def _collect(found: ModelFinding) -> dict[str, Any]:
    single = ("compare", "runs", "pareto", "parts", "sweep", "flip", "cost", "utilization")
    return {
        **{name: answer.data() if (answer := getattr(found, name)) else None for name in single},
        "edp": [one.data() for one in found.edp],
        "explain": [one.data() for one in found.explain],
        "tree": found.tree.records(),
        "accuracy": found.accuracy.records(),
        "sources": found.sources.records(),
    }


def report(
    source: Source,
    models: str | Sequence[str],
    settings: Settings = SETTINGS,
    *,
    between: Sequence[str | Hardware] = (),
    repeated: Sequence[str] = (),
) -> ReportAnswer:
    """Return a report on models on each hardware, whose `save` writes one page that needs no network.

    It asks `compare` and what follows on the same hardware; what takes the batch to sweep takes those of `sweep`.
    `between` names the two hardware that are explained, by default the best against each other; `repeated` are the
    options that the page's own command line has. Raises as `compare`, UsageError for several batches, precisions
    or runtimes.
    """
    settings.check_single("report")
    if between and len(between) != 2:
        raise UsageError(f"name two hardware to explain, A and B; found {len(between)}")
    names = tuple(dict.fromkeys((models,) if isinstance(models, str) else models))
    findings = tuple(find_out(source, name, settings, between) for name in names)
    beside = compare_models(source, names, settings) if len(names) > 1 else None
    return ReportAnswer(findings=findings, models=beside, report=_compose(findings, beside, names, repeated))


def _compose(
    findings: Sequence[ModelFinding], beside: ModelsAnswer | None, names: Sequence[str], repeated: Sequence[str]
) -> Report:
    scope = findings[0].compare.scope
    settings = scope.bounded(scope.title).partition(", ")[2]
    several = len(findings) > 1
    chapters: list[Chapter] = []
    verdict: list[str] = []
    if beside is not None:
        verdict += beside.insights()[:1]
        chapters.append(_compare_models(beside))
    for index, found in enumerate(findings):
        prefix = f"m{index + 1}-" if several else ""
        told = _judge(found)
        badges = Badges(badges=list_badges(found))
        listed = list_chapters(found, prefix)
        if several:
            verdict.append(f"{found.model}: {told[0]}")
            head = Chapter(name=f"{prefix}answer", title=found.model, blocks=(Lines(told), badges))
            titled = (attrs.evolve(one, title=f"{found.model}: {one.title}") for one in listed)
            chapters += [head, *titled]
        else:
            verdict += told
            chapters += [Chapter(name="answer", title="", blocks=(badges,)), *listed]
    is_held = any(map(is_module_name, names))
    joined = join_words(names)
    return Report(
        title=f"Which hardware for {joined}?",
        subject=settings,
        verdict=tuple(verdict),
        chapters=tuple(chapters),
        made=f"joulemap {package_version('joulemap')}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        command="" if is_held else shlex.join(["joulemap", "report", *names, *repeated]),
    )


def _compare_models(beside: ModelsAnswer) -> Chapter:
    """Return the models beside each other."""
    sections = beside.document().shown
    told = beside.insights()[1:]
    blocks = tuple(
        block for one in sections if one.title.startswith(("Energy", "Figures")) for block in read_blocks(one)
    )
    return Chapter(name="models", title="Models side by side", blocks=(*blocks, Lines(told), Behind(table=beside.rows)))


def _judge(found: ModelFinding) -> list[str]:
    """Return which hardware is best for what, how sure that is, and why."""
    answer = found.compare
    lines = [_recommend(found, row) for row in answer.recommendations if row.goal in GOALS]
    alone = [] if lines else [row for row in answer.rows if row.status == "ok"]
    lines += [_tell_alone(found, row, goal) for row in alone for goal in ALONE]
    if found.explain:
        lines += [f"Why: {line}" for line in found.explain[0].sentences()[1:3]]
    if found.flip:
        lines.append(f"What would flip it: {found.flip.say_nearest()}")
    names = {row.hardware for row in (*answer.recommendations, *alone)}
    return [*lines, *([PROJECTION_NOTE] if any(answer.scope.mark(name) != name for name in names) else [])]


def _tell_alone(found: ModelFinding, row: Comparison, goal: MetricName) -> str:
    """Return what the only run needs."""
    metric = METRIC[goal]
    value = show_quantity(getattr(row, metric.column), metric.unit)
    return f"{metric.label.capitalize()}: {found.compare.scope.mark(row.hardware)}, {value}"


def _recommend(found: ModelFinding, row: Recommendation) -> str:
    scope, metric = found.compare.scope, METRIC[row.goal]
    goal = f"{metric.best} {metric.label}"
    if row.tied_count == len(scope.evaluated_ids) > 1:
        return f"{goal.capitalize()}: all {row.tied_count} alike, {show_quantity(row.value, row.unit)}"
    text = f"{goal.capitalize()}: {scope.mark(row.hardware)}, {show_quantity(row.value, row.unit)}"
    if row.advantage_ratio is not None and row.runner_up is not None:
        text += f", {describe_advantage(row.advantage_ratio, scope.mark(row.runner_up))}"
    sure = describe_chance(row.probability_best, [scope.mark(name) for name in row.rivals])
    if sure:
        text += f"; {sure}" if row.rivals else f" ({sure} sure)"
    if not row.is_available and row.available_hardware is not None:
        value = show_quantity(row.available_value, row.unit)
        text += f"; of what can be had, {scope.mark(row.available_hardware)}, {value}"
    return text
