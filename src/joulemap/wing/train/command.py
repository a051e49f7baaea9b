"""`joulemap train`."""

from __future__ import annotations

from joulemap.cli.command import command
from joulemap.cli.option.hardware import TrainedHardwareOptions
from joulemap.cli.option.limit import PriceOptions, UsageOptions
from joulemap.cli.option.plot import PageOptions
from joulemap.cli.option.run import Limit, Model
from joulemap.cli.output import OutputOptions
from joulemap.wing.train.option import TrainedRunOptions, TrainingOptions


@command
def train(
    model: Model,
    *,
    limit: Limit = 12,
    hardware: TrainedHardwareOptions,
    training: TrainingOptions,
    run: TrainedRunOptions,
    prices: PriceOptions,
    usage: UsageOptions,
    page: PageOptions,
    output: OutputOptions,
) -> None:
    """Predict time, energy and memory of a training step, its communication, and the cost of all samples.

    A step is the forward pass, the backward pass, the communication of gradients and the optimizer, listed operator by
    operator. It is a workload with a name, so `explain`, `edp` and other commands accept it.

    \b
    joulemap train resnet50 --batch 256 --hardware h100_sxm5 --devices 8
    joulemap train resnet50 h100_sxm5 a100 --batch 2048 --devices 8,64 --optimizer momentum --samples 1.28M --epochs 90
    joulemap train llama-3.1-8b h100_sxm5 --batch 8 --tokens 2048 --devices 8 --zero 1 --recompute
    joulemap train llama-3.1-70b h100_sxm5 --devices 1024 --tensor-devices 8 --zero 1 --recompute
    joulemap train llama-2-7b h100_sxm5 --batch 8 --tokens 512 --lora 16 --quantize nf4
    """
    answer = page.workspace(output).train(
        model,
        run.settings(**hardware.keywords()),
        training=training.read(),
        usage=usage.read(),
        prices=prices.read(),
    )
    document = answer.document(limit=limit, repeated=output.repeat(run))
    page.write(document, answer, output, subject="What training takes")
