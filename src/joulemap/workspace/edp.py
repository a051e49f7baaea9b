"""One run's energy-delay product: evaluate what is missing, ask every query, beside other hardware if asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from joulemap.domain.answer.comparison import Caveat
from joulemap.domain.answer.edp import (
    EdpBound,
    EdpComparison,
    EdpCut,
    EdpOperatorShare,
    EdpPattern,
    EdpShare,
    EdpTotal,
)
from joulemap.errors import UnsupportedError, UsageError
from joulemap.plan.question import answering, ask, read_names
from joulemap.query.edp import EdpAnswer
from joulemap.store.query import find_projected, run_queries
from joulemap.store.read import find_refusals

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware


def take_apart(
    path: Path,
    talk: Callable[[str], None],
    model: str,
    hardware: str | Hardware,
    *,
    against: Sequence[str | Hardware],
    power_mode: str,
    batch: int | None,
    precision: str,
    runtime: str,
    inputs: Sequence[str],
    arguments: Mapping[str, object] | None,
    retrace: bool,
    calibration: str | Calibration,
) -> EdpAnswer:
    """Return a run's energy-delay product taken apart, as `Workspace.edp` documents it."""
    names, _ = read_names((hardware,))
    if len(names) != 1:
        raise UsageError(f"{hardware} holds {len(names)} hardware, expected one; name its file")
    question = ask(
        model,
        hardware=(hardware, *against),
        power_mode=power_mode,
        batch=batch,
        precision=precision,
        runtime=runtime,
        inputs=inputs,
        arguments=arguments,
        retrace=retrace,
        calibration=calibration,
    )
    with answering(path, question, talk) as (run_ids, connection):
        refusals = find_refusals(connection, run_ids)
        run_id = run_ids[0]
        refused = refusals[run_id]
        if refused is not None:
            raise UnsupportedError(refused)
        of_run = {"run_id": run_id}
        compared = [one for one in run_ids if refusals[one] is None]
        asked: list[tuple[str, Mapping[str, object]]] = [
            ("edp.total", of_run),
            ("edp.distribution", of_run),
            ("edp.operator", of_run),
            ("edp.cut", {**of_run, "level": "subgraph"}),
            ("edp.cut", {**of_run, "level": "operator"}),
            ("edp.pattern", of_run),
            ("edp.bound", of_run),
            ("model.caveat", {"run_ids": [run_id]}),
        ]
        if len(run_ids) > 1:
            asked.append(("edp.comparison", {"run_ids": compared}))
        answers = run_queries(connection, asked)
        total, subgraph, operator, few, few_operators, pattern, bound, caveat, *others = answers
        if not total.rows:
            raise UnsupportedError(
                f"{model}: none of its operators runs as a kernel, so there is nothing to take apart"
            )
        total, *rest = (find_projected(connection, answer) for answer in (total, *others))
        return EdpAnswer(
            total=EdpTotal(*total.rows[0]),
            subgraphs=tuple(EdpShare(*row) for row in subgraph.rows),
            operators=tuple(EdpOperatorShare(*row) for row in operator.rows),
            cuts=tuple(EdpCut(*row) for row in (*few.rows, *few_operators.rows)),
            patterns=tuple(EdpPattern(*row) for row in pattern.rows),
            bounds=tuple(EdpBound(*row) for row in bound.rows),
            comparison=tuple(EdpComparison(*row) for one in rest for row in one.rows),
            refusals=tuple(reason for one in run_ids if (reason := refusals[one]) is not None),
            caveats=tuple(Caveat(*row) for row in caveat.rows),
            spelling=question.spelling,
            answers=(total, subgraph, operator, few, few_operators, pattern, bound, caveat, *rest),
        )
