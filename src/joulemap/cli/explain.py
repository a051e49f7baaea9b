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
    metric: PartMetricName = option("energy", "Metric to explain; memory is the peak of weights and activations."),
    level: DifferenceDivision | None = option(
        None,
        "Table: difference by category, purpose (language models), role, action or subgraph.",
        shown="category, or purpose with --phase",
    ),
    subgraph: str = option(
        "",
        "One subgraph, by its name in --level subgraph.",
        metavar="NAME",
        shown="the whole model",
    ),
    limit: Limit = 5,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Explain why two chips differ in energy, time or memory.

    The rows sum exactly to the difference. `--level action` lists its terms: actions of one chip only, different
    counts, different energies per action, and static energy.

    A difference in latency is split into launch, compute and memory time. json has every level, csv one table.

    \b
    joulemap explain resnet50 l4 rtx_4090 --precision fp16 --metric energy
    joulemap explain resnet18 xeon_8490h h100_sxm5 --precision bf16 --metric latency
    joulemap explain vit_b_16 h100_sxm5 tpu_v4 --precision bf16 --metric edp --level subgraph
    joulemap explain resnet18 l4 tpu_v4 --precision bf16 --level subgraph --subgraph layer4.0.conv2
    joulemap explain llama-3.1-8b h100_sxm5 h200_sxm --phase decode
    joulemap explain mobilenet_v2 Jetson-Orin-Nano hailo_8 --precision int8 --runtime engine --format csv
    """
    run = run.of_checkpoint(model)
    answer = output.workspace().explain(
        run.name(model), *hardware.read_both(), run.settings(), metric=metric, subgraph=subgraph
    )
    output.present(answer, run, by=level, limit=limit)
