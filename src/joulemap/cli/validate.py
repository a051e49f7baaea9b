"""`joulemap validate`."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

import attrs

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_hardware, complete_models
from joulemap.cli.option.run import CALIBRATION_HELP
from joulemap.cli.output import OutputOptions
from joulemap.domain.settings import ScoreDivision
from joulemap.system.config import habit

SCORES: Final = (
    "quantity | hardware | part | measurement_count | mean_error_fraction | median_error_fraction | bias_fraction | "
    "worst_error_fraction | worst_case | rank_correlation | covered_fraction | seen_fraction | calibration"
)

OPERATORS: Final = (
    "hardware | kind | group_count | device_time_s | device_time_fraction | time_bias_fraction | "
    "time_weighted_error_fraction | scored_count | mean_error_fraction | median_error_fraction | bias_fraction | "
    "worst_error_fraction | worst_case | seen_fraction"
)

KEPT: Final = "hardware kind part mean_error_fraction median_error_fraction measurement_count covered_fraction"

KEPT_TOGETHER: Final = "part measurement_count mean_error_fraction median_error_fraction bias_fraction covered_fraction"

EVIDENCE: Final = (
    "architecture | hardware | boundary | subject | quantity | measurement_count | held_out_count | net_count | "
    "mean_error_fraction | median_error_fraction | bias_fraction | covered_fraction | sources"
)

KEPT_EVIDENCE: Final = "architecture hardware boundary measurement_count mean_error_fraction"

SOURCES: Final = 2
"""Maximum sources per quantity on a screen; those with the most rows come first."""


@command
def validate(
    *,
    hardware: str = option(
        "", "Hardware to score.", metavar="NAME", shown="all with measurements", complete=complete_hardware
    ),
    model: str = optional("Model or operator type to score.", "NAME", complete=complete_models),
    precision: str = optional("Precision to score.", "NAME"),
    by: Literal[ScoreDivision, "operator"] | None = option(None, "Grouping of the measurements.", shown="runtime"),
    evidence: bool = option(False, "Count the measured energies of each class, hardware and boundary instead."),
    source: str = optional("Score only measurements whose source contains this text.", "TEXT"),
    calibration: str = option("auto", CALIBRATION_HELP, metavar="NAME"),
    output: OutputOptions,
) -> None:
    """Score predictions against measurements.

    The first line has the median errors and the interval coverage. The first rows of the table show those of each
    quantity overall, the others those of each group; without --hardware or --by, a screen shows the groups with
    --show details. Configurations that are not stored are evaluated first, in about half a minute for all built-in
    measurements. Each measurement at fp32 is predicted in the arithmetic that it ran in: `default` or, where TF32 was
    off, `highest`.

    Measurements used for fitting do not test the model; `--by split` separates them. A throughput is scored against the
    predicted throughput, never against 1 / latency. Power at the wall plug is scored against the boundary `system`,
    with the host shared by as many devices as were measured.

    Single operators are scored separately from models: `--by kind` groups them by type. `--by operator` scores device
    times of operators inside models. Each quantity of a served language model has its own score; unpredicted
    measurements are counted below with the reason. `--by source` and `--by quantity` combine all hardware.

    `--evidence` lists how many energies of each hardware were measured at which boundary and by whom, with the error
    and the coverage of their predictions. Classes without measured energy are listed as such.

    \b
    joulemap validate --hardware h200_sxm
    joulemap validate --hardware A100-40GB --by model
    joulemap validate --by batch --format json
    joulemap validate --by hardware --source MLPerf
    joulemap validate --by source --model resnet50
    joulemap validate --hardware h200_sxm --by operator --precision fp16
    joulemap validate --evidence
    """
    workspace, chosen = output.workspace(), cast("Any", precision)
    if evidence:
        from joulemap.show.validate import describe_evidence

        table = workspace.energy_evidence(hardware, source=source, calibration=calibration, trust=habit("trust"))
        output.write_table(table, EVIDENCE, keep=KEPT_EVIDENCE, answer=describe_evidence(table))
        return
    if by == "operator":
        operators = workspace.validate_operators(
            hardware, model, precision=chosen, calibration=calibration, trust=habit("trust")
        )
        output.write_table(operators, OPERATORS, keep=KEPT)
        return
    group: ScoreDivision = by or "runtime"
    scores = workspace.validate(
        hardware, model, precision=chosen, by=group, source=source, calibration=calibration, trust=habit("trust")
    )
    is_together = by == "all" or (by in ("source", "quantity") and not hardware)
    overall = workspace.validate(
        hardware, model, precision=chosen, by="all", source=source, calibration=calibration, trust=habit("trust")
    )
    scores = attrs.evolve(scores, rows=(*overall.rows, *(row for row in scores.rows if by != "all")))
    columns = SCORES.replace(" part ", f" {group} part ").replace("hardware | ", "" if is_together else "hardware | ")
    most = 1 + SOURCES if by == "source" else None if by or hardware or model or source else 1  # the overall row is one
    from joulemap.show.validate import describe_scores

    kept, answer = KEPT_TOGETHER if is_together else KEPT, describe_scores(overall)
    output.write_table(scores, columns, keep=kept, most=most, most_of="quantity", answer=answer)
