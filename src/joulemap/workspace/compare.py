"""Comparisons in depth, of one model or several: evaluate what is missing, ask every query."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from joulemap.domain.answer.calibration import RunCalibration
from joulemap.domain.answer.comparison import Caveat
from joulemap.domain.answer.level import (
    EnergyBranch,
    HardwareNumber,
    ModelFigure,
    PartFigure,
    RankedHardware,
    RunDetail,
    UtilizationSpread,
    Victory,
)
from joulemap.errors import UnsupportedError, UsageError
from joulemap.plan.question import answering_all, ask
from joulemap.query.level import Asked, DetailAnswer, MatrixAnswer, PartAnswer, RankingAnswer
from joulemap.store.connection import Connection
from joulemap.store.query import Answer, find_projected, run_queries
from joulemap.store.read import find_batches, find_refusals
from joulemap.workspace.settings import COMPARED, LEVELS, SORTS, Settings

Talk = Callable[[str], None]
Wanted = tuple[str, Mapping[str, object]]


def compare_parts(
    path: Path, talk: Talk, models: Sequence[str], level: str, metric: str, **settings: Unpack[Settings]
) -> PartAnswer:
    """Return who wins each part, as `Workspace.compare_parts` documents it."""
    _check("level", level, LEVELS)
    _check("metric", metric, COMPARED)
    with _asking(path, talk, models, settings) as (asked, connection):
        which = {"run_ids": list(asked.run_ids), "level": level, "metric": metric}
        part, victory = _answer(connection, [("compare.part", which), ("compare.victory", which)])
        return PartAnswer(
            asked=asked,
            level=level,
            metric=metric,
            rows=tuple(PartFigure(*row) for row in part.rows),
            victories=tuple(Victory(*row) for row in victory.rows),
            answers=(part, victory),
        )


def compare_runs(path: Path, talk: Talk, models: Sequence[str], **settings: Unpack[Settings]) -> DetailAnswer:
    """Return whole runs, as `Workspace.compare_runs` documents it."""
    with _asking(path, talk, models, settings) as (asked, connection):
        ids = {"run_ids": list(asked.run_ids)}
        detail, tree = _answer(connection, [("compare.detail", ids), ("compare.tree", ids)])
        return DetailAnswer(
            asked=asked,
            rows=tuple(RunDetail(*row) for row in detail.rows),
            tree=tuple(EnergyBranch(*row) for row in tree.rows),
            answers=(detail, tree),
        )


def compare_models(
    path: Path, talk: Talk, models: Sequence[str], metric: str, **settings: Unpack[Settings]
) -> MatrixAnswer:
    """Return several models beside each other, as `Workspace.compare_models` documents it."""
    _check("metric", metric, COMPARED)
    with _asking(path, talk, models, settings) as (asked, connection):
        (matrix,) = _answer(connection, [("compare.matrix", {"run_ids": list(asked.run_ids), "metric": metric})])
        return MatrixAnswer(
            asked=asked,
            metric=metric,
            rows=tuple(ModelFigure(*row) for row in matrix.rows),
            answers=(matrix,),
        )


def rank_hardware(
    path: Path,
    talk: Talk,
    model: str,
    sort: str,
    *,
    has_details: bool,
    has_parts: bool,
    **settings: Unpack[Settings],
) -> RankingAnswer:
    """Return hardware in order, as `Workspace.rank_hardware` documents it."""
    _check("sort", sort, SORTS)
    with _asking(path, talk, (model,), settings) as (asked, connection):
        ids = {"run_ids": list(asked.run_ids)}
        wanted: list[Wanted] = [("compare.ranking", {**ids, "sort": sort})]
        if has_details:
            wanted += [("compare.spread", ids), ("compare.geometry", ids)]
        if has_parts:
            wanted.append(("compare.part", {**ids, "metric": "latency" if sort == "throughput" else "energy"}))
        answers = dict(zip((name for name, _ in wanted), _answer(connection, wanted), strict=True))

        def rows(name: str) -> tuple[tuple[Any, ...], ...]:
            return answers[name].rows if name in answers else ()

        return RankingAnswer(
            asked=asked,
            sort=sort,
            rows=tuple(RankedHardware(*row) for row in answers["compare.ranking"].rows),
            spread=tuple(UtilizationSpread(*row) for row in rows("compare.spread")),
            numbers=tuple(HardwareNumber(*row) for row in rows("compare.geometry")),
            parts=tuple(PartFigure(*row) for row in rows("compare.part")),
            answers=tuple(answers.values()),
        )


def _check(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"unknown {what} {name!r}; known: {', '.join(known)}")


@contextlib.contextmanager
def _asking(path: Path, talk: Talk, models: Sequence[str], settings: Settings) -> Iterator[tuple[Asked, Connection]]:
    """Give out what was asked with its runs, and a connection that holds them.

    Raises UsageError without a model, UnsupportedError where no hardware can run any of them.
    """
    names = tuple(dict.fromkeys(models))
    if not names:
        raise UsageError("a comparison needs a model")
    questions = [ask(name, **settings) for name in names]
    with answering_all(path, questions, talk) as (run_ids, connection):
        refusals = find_refusals(connection, run_ids)
        reasons = tuple(dict.fromkeys(reason for one in run_ids if (reason := refusals[one]) is not None))
        if all(refusals[one] is not None for one in run_ids):
            raise UnsupportedError("; ".join(reasons))
        ids = {"run_ids": list(run_ids)}
        caveat, used = run_queries(connection, [("model.caveat", ids), ("calibration.run", ids)])
        yield (
            Asked(
                models=names,
                batches=find_batches(connection, run_ids),
                precision=questions[0].precision,
                runtime=questions[0].runtime,
                run_ids=run_ids,
                refusals=reasons,
                spelling=questions[0].spelling,
                caveats=tuple(Caveat(*row) for row in caveat.rows),
                calibrations=tuple(RunCalibration(*row) for row in used.rows),
            ),
            connection,
        )


def _answer(connection: Connection, wanted: Sequence[Wanted]) -> tuple[Answer, ...]:
    return tuple(find_projected(connection, answer) for answer in run_queries(connection, wanted))
