"""How a model is trained: devices, optimizer, and what is kept or divided."""

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
    """How a model is trained."""

    devices: str = option("1", "That work together, each with a part of the batch; comma-separated.")
    tensor_devices: int = option(1, "Of those, that divide each product of a language model.", min=1)
    sequence_parallel: bool = option(False, "Divide tokens over --tensor-devices between products, as Megatron-LM.")
    pipeline_devices: int = option(1, "Stages of a language model's layers, as many devices in each.", min=1)
    accumulate: int = option(1, "Small batches whose gradients are added up; they fill a pipeline.", min=1)
    tokens: int | None = option(None, "Of each sequence of a language model.", min=1, shown="2048")
    optimizer: str = option("adamw", "sgd, momentum, adam or adamw.", complete=complete_optimizers)
    zero: int = option(0, "Divided over devices: 1 what the optimizer holds, 2 gradients as well, 3 weights too.")
    recompute: bool = option(False, "Compute activations between layers once more in place of keeping them.")
    lora: int | None = option(None, "Train adapters of this rank on frozen weights (LoRA), e.g. 16.", min=1)
    lora_targets: str = option(
        "", "Linear layers with an adapter: names, patterns or all; comma-separated.", shown="query and value"
    )
    quantize: str = option("", "Format of the frozen weights beside adapters (QLoRA), e.g. nf4, int8.")
    samples: str = option("", "Of an epoch, e.g. 1.28M: what all of them take and cost.")
    epochs: float = option(1.0, "How often all of them are learned from.")

    def read(self) -> Training:
        """Return how it is trained; UsageError names the option that cannot be read."""
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
    """How a model is run as it is trained."""

    repeated: ClassVar[tuple[str, ...]] = ("runtime", *GIVEN)
    batch: str = option(
        "",
        "Samples, or sequences, of a step on all devices together; comma-separated.",
        "--batch",
        "-b",
        shown="256; of a language model a sequence for each device",
    )
    precision: str = precisions("bf16", "Of activations and products: bf16, fp16, tf32, fp32, fp8 of products alone.")
    weight_precision: str = option("", hidden=True)
