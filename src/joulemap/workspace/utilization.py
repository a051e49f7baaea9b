"""How well a model uses several hardware: evaluate what is missing, ask every query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from joulemap.domain.answer.comparison import Caveat
from joulemap.domain.answer.utilization import Pairing, Utilization, UtilizationFlag
from joulemap.errors import UnsupportedError, UsageError
from joulemap.plan.question import answering, ask
from joulemap.query.utilization import UtilizationAnswer
from joulemap.store.query import find_projected, run_queries
from joulemap.store.read import find_parameter_count

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware


def judge(
    path: Path,
    talk: Callable[[str], None],
    model: str,
    *,
    hardware: Sequence[str | Hardware],
    architecture: Sequence[str],
    deployment: Sequence[str],
    power_mode: str,
    batch: int | None,
    precision: str,
    runtime: str,
    limits: Mapping[str, float],
    is_pairing: bool,
    inputs: Sequence[str],
    arguments: Mapping[str, object] | None,
    retrace: bool,
    calibration: str | Calibration,
) -> UtilizationAnswer:
    """Return how much of each hardware is used, as `Workspace.utilization` documents it."""
    for name, value in limits.items():
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} is {value:g}, expected from 0 to 1")
    question = ask(
        model,
        hardware=hardware,
        architecture=architecture,
        deployment=deployment,
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
        ids = {"run_ids": list(run_ids)}
        asked: list[tuple[str, Mapping[str, object]]] = [
            ("utilization.summary", {**ids, **limits}),
            ("utilization.flag", {**ids, **limits}),
            ("model.caveat", ids),
        ]
        if is_pairing:
            size = find_parameter_count(connection, run_ids[0])
            asked.append(("utilization.pairing", {"parameter_count": size, "precision": precision, "runtime": runtime}))
        summary, flag, caveat, *pairing = (
            find_projected(connection, answer) for answer in run_queries(connection, asked)
        )
        rows = tuple(Utilization(*row) for row in summary.rows)
        if all(row.status != "ok" for row in rows):
            raise UnsupportedError("; ".join(row.reason for row in rows))
        return UtilizationAnswer(
            model=rows[0].model,
            batch=rows[0].batch,
            precision=precision,
            runtime=runtime,
            rows=rows,
            flags=tuple(UtilizationFlag(*row) for row in flag.rows),
            pairings=tuple(Pairing(*row) for one in pairing for row in one.rows),
            caveats=tuple(Caveat(*row) for row in caveat.rows),
            spelling=question.spelling,
            answers=(summary, flag, caveat, *pairing),
        )
