"""`joulemap sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.option import DEFAULT_DATABASE, Database, FormatOption, Output, emit_answer, open_workspace
from joulemap.report.format import Format


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT over the views.")],
    form: FormatOption = Format.TABLE,
    output: Output = None,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Run one SQL statement on the results, read-only.

    Views: runs, subgraph_results, operator_results, energy_ledger, operators, hardware, hardware_facts,
    energy_reference, measurements, prediction_errors, uncounted, refused_runs, cost_assumptions, grid_regions.

    \b
    joulemap sql "SELECT hardware, energy_j, latency_s FROM runs ORDER BY energy_j"
    joulemap sql "SELECT category, sum(energy_j) FROM energy_ledger WHERE run_id = 1 GROUP BY ALL" -f csv
    """
    emit_answer(open_workspace(db, form).sql(statement), form, output)
