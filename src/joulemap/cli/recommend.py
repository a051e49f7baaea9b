"""`joulemap recommend`."""

from __future__ import annotations

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import CandidateHardwareOptions
from joulemap.cli.option.limit import LimitOptions
from joulemap.cli.option.run import CandidateRunOptions, Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.domain.metric import MetricName
from joulemap.system.errors import UnsupportedError


@command
def recommend(
    model: Model,
    *,
    limits: LimitOptions,
    objective: MetricName = option("energy_per_inference", "Metric to optimize."),
    limit: Limit = 6,
    hardware: CandidateHardwareOptions,
    run: CandidateRunOptions,
    output: OutputOptions,
) -> None:
    """Recommend a configuration within limits.

    Combines all hardware, power modes, precisions and batch sizes, and shows by how much the others miss a limit. If
    none meets every limit, the answer is the nearest miss and the exit code is 4.

    The nearest miss is the one that exceeds its limits by the smallest percentage.

    \b
    joulemap recommend resnet18 --max-latency 50ms --max-power 15W
    joulemap recommend mobilenet_v2 --where deployment=edge --min-throughput 30/s --max-price 300USD
    joulemap recommend vit_b_16 --objective cost --max-latency 20ms --max-price 2USD/h --precision bf16,int8
    """
    bounds = limits.read()
    answer = output.workspace().recommend(
        model, run.settings(**hardware.keywords()), objective=objective, limits=bounds
    )
    output.present(answer, run, limit=limit)
    if answer.misses_limits:
        raise UnsupportedError("no configuration that can be bought meets every limit")
