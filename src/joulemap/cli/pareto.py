"""`joulemap pareto`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.run import CandidateRunOptions, Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import MetricName


@command
def pareto(
    model: Model,
    *,
    x: MetricName = option("latency", "First metric."),
    y: MetricName = option("energy_per_inference", "Second metric."),
    limit: Limit = 5,
    hardware: CandidateHardwareOptions,
    run: CandidateRunOptions,
    output: OutputOptions,
) -> None:
    """Find the Pareto front of configurations in two metrics.

    Combines all hardware, power modes, precisions and batch sizes. Latency, memory, energy and edp are per batch; cost
    and carbon are per million inferences.

    \b
    joulemap pareto resnet18
    joulemap pareto vit_b_16 --x throughput --y power --where deployment=datacenter --precision bf16
    joulemap pareto mobilenet_v2 --x cost --y latency --hardware l4,t4,Jetson-Orin-Nano --batch 1,4,16
    """
    answer = output.workspace().pareto(model, run.settings(**hardware.keywords()), x=x, y=y)
    output.present(answer, run, limit=limit)
