"""`joulemap train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from joulemap.cli import (
    GIVEN,
    Limit,
    Model,
    OutputOptions,
    PageOptions,
    RunOptions,
    offer,
    precisions,
    read_as,
    read_counts,
    read_quantity,
)
from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import TrainedHardwareOptions
from joulemap.system import frozen, split_names

if TYPE_CHECKING:
    from joulemap.wing.train.setting import Training


complete_optimizers: Final = offer("joulemap.wing.train.training.recipe:OPTIMIZERS")


@frozen(kw_only=True)
class TrainingOptions:
    """Options for training a model."""

    panel: ClassVar[str] = "Training"
    devices: str = option("1", "Devices that share the batch; several values are compared.", metavar="N,...")
    tensor_devices: int = option(
        1, "Tensor-parallel devices of a language model, out of --devices.", min=1, is_advanced=True
    )
    sequence_parallel: bool = option(
        False, "Split tokens over --tensor-devices between GEMMs, as Megatron-LM does.", is_advanced=True
    )
    pipeline_devices: int = option(1, "Pipeline stages of a language model.", min=1, is_advanced=True)
    accumulate: int = option(1, "Gradient accumulation steps (micro-batches).", min=1, is_advanced=True)
    tokens: int | None = option(None, "Sequence length of a language model.", metavar="TOKENS", min=1, shown="2048")
    optimizer: str = option(
        "adamw", "Optimizer: sgd, momentum, adam or adamw.", metavar="NAME", complete=complete_optimizers
    )
    zero: int = option(0, "ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 weights too.", metavar="STAGE")
    recompute: bool = option(False, "Recompute activations instead of storing them.")
    lora: int | None = option(
        None, "Rank of LoRA adapters on frozen weights, e.g. 16.", metavar="RANK", min=1, is_advanced=True
    )
    lora_targets: str = option(
        "",
        "Linear layers with adapters: names, patterns or all, comma-separated.",
        metavar="NAME,...",
        shown="query and value",
        is_advanced=True,
    )
    quantize: str = option(
        "", "Format of the frozen weights (QLoRA), e.g. nf4 or int8.", metavar="FORMAT", is_advanced=True
    )
    samples: str = option("", "Samples per epoch, e.g. 1.28M, for total time and cost.", metavar="COUNT")
    epochs: float = option(1.0, "Number of epochs.", is_advanced=True)

    def read(self) -> Training:
        """Return the settings of training; UsageError names an option that cannot be read."""
        from joulemap.wing.train.setting import Training

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
    """Options for the runs of a training step."""

    repeated: ClassVar[tuple[str, ...]] = ("runtime", *GIVEN)
    batch: str = option(
        "",
        "Global batch sizes: samples or sequences per step.",
        "--batch",
        "-b",
        metavar="N,...",
        shown="256; 1 per device for language models",
    )
    precision: str = precisions("bf16", "Compute precision: bf16, fp16, tf32, fp32, or fp8 (GEMMs only).")
    weight_precision: str = option("", is_absent=True)


@command
def train(
    model: Model,
    *,
    limit: Limit = 12,
    hardware: TrainedHardwareOptions,
    training: TrainingOptions,
    run: TrainedRunOptions,
    page: PageOptions,
    output: OutputOptions,
) -> None:
    """Predict time, energy, memory and cost of training.

    A step is the forward pass, the backward pass, communication between devices and the optimizer. A step is also a
    named workload, which `explain`, `edp` and other commands break down.

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
    )
    page.present(answer, output, run, limit=limit)
