"""Options of a training step: devices, optimizer, recomputation and sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from joulemap.cli.command import option
from joulemap.cli.complete import offer
from joulemap.cli.option.run import GIVEN, RunOptions, precisions
from joulemap.cli.value import read_as, read_counts, read_quantity
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Training

complete_optimizers: Final = offer("wing.train.training.recipe.OPTIMIZERS")


@frozen(kw_only=True)
class TrainingOptions:
    """Options of a training step."""

    devices: str = option("1", "Devices that train together, each on a part of the batch; comma-separated.")
    tensor_devices: int = option(
        1, "Tensor-parallel devices: each matrix product of a language model is divided over them.", min=1
    )
    sequence_parallel: bool = option(False, "Divide tokens over --tensor-devices between products, as Megatron-LM.")
    pipeline_devices: int = option(1, "Pipeline stages: the layers of a language model are divided over them.", min=1)
    accumulate: int = option(1, "Micro-batches per step whose gradients are accumulated; they fill a pipeline.", min=1)
    tokens: int | None = option(None, "Tokens per sequence of a language model.", min=1, shown="2048")
    optimizer: str = option("adamw", "sgd, momentum, adam or adamw.", complete=complete_optimizers)
    zero: int = option(0, "ZeRO stage: 1 shards the optimizer state over devices, 2 gradients too, 3 weights too.")
    recompute: bool = option(
        False, "Recompute activations between layers instead of keeping them (gradient checkpointing)."
    )
    lora: int | None = option(None, "Train adapters of this rank on frozen weights (LoRA), e.g. 16.", min=1)
    lora_targets: str = option(
        "", "Linear layers with an adapter: names, patterns or all; comma-separated.", shown="query and value"
    )
    quantize: str = option("", "Format of the frozen weights beside adapters (QLoRA), e.g. nf4, int8.")
    samples: str = option("", "Samples per epoch, e.g. 1.28M; adds the time and cost of all epochs.")
    epochs: float = option(1.0, "Number of epochs.")

    def read(self) -> Training:
        """Return the training settings; UsageError names the option that cannot be read."""
        from joulemap.domain.name import split_names
        from joulemap.domain.settings import Training

        return read_as(
            Training,
            self,
            devices=read_counts("--devices", self.devices),
            optimizer=self.optimizer.lower(),
            lora_targets=split_names(self.lora_targets),
            samples=read_quantity("--samples", self.samples, "1"),
        )


@frozen(kw_only=True)
class TrainedRunOptions(RunOptions):
    """Settings of a run, with the defaults of training."""

    repeated: ClassVar[tuple[str, ...]] = ("runtime", *GIVEN)
    batch: str = option(
        "",
        "Samples, or sequences, per step over all devices; comma-separated.",
        "--batch",
        "-b",
        shown="256; of a language model a sequence for each device",
    )
    precision: str = precisions(
        "bf16", "Precision of activations and products: bf16, fp16, tf32, fp32; fp8 for products only."
    )
    weight_precision: str = option("", hidden=True)
