"""`joulemap explain`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import TwoHardwareOptions
from joulemap.cli.option.phase import PassRunOptions
from joulemap.cli.option.run import Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import PartMetricName
from joulemap.domain.settings import DifferenceDivision


@command
def explain(
    model: Model,
    *,
    hardware: TwoHardwareOptions,
    metric: PartMetricName = option("energy", "What to explain; memory is the peak, weights and activations."),
    level: DifferenceDivision | None = option(
        None,
        "The table to show: by category, by what the work is for in a language model, by what "
        "energy is for, action by action, by subgraph.",
        shown="category; purpose for a pass of a language model",
    ),
    subgraph: str = option(
        "",
        "Look inside this subgraph, as --level subgraph names it: terms sum to its difference.",
        shown="the whole runs",
    ),
    limit: Limit = 12,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Explain why B needs more or less than A: what each spends on what, and why the greater is greater.

    The table adds up to the difference exactly. `--level action` shows its terms: an action that only one side has, a
    shared action that happens more often (count) or costs more each time (price), static energy; a term of the latency
    is likewise of what bounds each subgraph. json has every level, csv the table of one.

    \b
    joulemap explain resnet18 h100_sxm5 tpu_v4 --metric energy
    joulemap explain resnet18 xeon_8490h h100_sxm5 --metric latency
    joulemap explain vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --metric edp --level subgraph
    joulemap explain resnet18 l4 tpu_v4 --level subgraph --subgraph layer4.0.conv2
    joulemap explain llama-3.1-8b h100_sxm5 h200_sxm --phase decode
    joulemap explain mobilenet_v2 xeon_8490h kpu_t256 --batch 8 --format csv
    """
    run = run.of_checkpoint(model)
    answer = output.workspace().explain(
        run.name(model), *hardware.read(), run.settings(), metric=metric, subgraph=subgraph
    )
    repeated = output.repeat(run)
    output.write(answer.document(by=level, limit=limit, repeated=repeated))
