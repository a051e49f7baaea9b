"""How a model is trained: devices, optimizer, and what is kept or divided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from joulemap.cli.complete import complete_optimizers
from joulemap.cli.option.run import GIVEN, RunOptions, precisions, repeat_options
from joulemap.cli.value import read_counts, read_quantity
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Training


@frozen(kw_only=True)
class TrainingOptions:
    """How a model is trained."""

    devices: Annotated[
        str, typer.Option("--devices", help="That work together, each with a part of the batch; comma-separated.")
    ] = "1"
    tensor_devices: Annotated[
        int, typer.Option("--tensor-devices", min=1, help="Of those, that divide each product of a language model.")
    ] = 1
    pipeline_devices: Annotated[
        int,
        typer.Option("--pipeline-devices", min=1, help="Stages of a language model's layers, as many devices in each."),
    ] = 1
    accumulate: Annotated[
        int,
        typer.Option("--accumulate", min=1, help="Small batches whose gradients are added up; they fill a pipeline."),
    ] = 1
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", min=1, help="Of each sequence of a language model.", show_default="2048"),
    ] = None
    optimizer: Annotated[
        str,
        typer.Option("--optimizer", help="sgd, momentum, adam or adamw.", autocompletion=complete_optimizers),
    ] = "adamw"
    zero: Annotated[
        int,
        typer.Option(
            "--zero",
            help="Divided over devices: 1 what the optimizer holds, 2 gradients as well, 3 weights too.",
        ),
    ] = 0
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute activations between layers once more in place of keeping them.")
    ] = False
    samples: Annotated[
        str, typer.Option("--samples", help="Of an epoch, e.g. 1.28M: what all of them take and cost.")
    ] = ""
    epochs: Annotated[float, typer.Option("--epochs", help="How often all of them are learned from.")] = 1.0

    def read(self) -> Training:
        """Return how it is trained; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Training

        return Training(
            devices=read_counts("--devices", self.devices),
            tensor_devices=self.tensor_devices,
            pipeline_devices=self.pipeline_devices,
            accumulate=self.accumulate,
            tokens=self.tokens,
            optimizer=self.optimizer.lower(),
            zero=self.zero,
            recompute=self.recompute,
            samples=read_quantity("--samples", self.samples, "1"),
            epochs=self.epochs,
        )


@frozen(kw_only=True)
class TrainedRunOptions(RunOptions):
    """How a model is run as it is trained."""

    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            "-b",
            help="Samples, or sequences, of a step on all devices together; comma-separated.",
            show_default="256; of a language model a sequence for each device",
        ),
    ] = ""
    precision: Annotated[str, precisions("Of activations and products, comma-separated: bf16, fp16, tf32, fp32.")] = (
        "bf16"
    )
    weight_precision: Annotated[str, typer.Option("--weight-precision", hidden=True)] = ""

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command about one of the steps must repeat."""
        return repeat_options(self, ("runtime", *GIVEN))
