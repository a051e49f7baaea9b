"""Settings of training."""

from __future__ import annotations

import attrs

from joulemap.domain import ABOVE_0, each_count, each_text, is_count
from joulemap.system import frozen


@frozen(kw_only=True)
class Training:
    """Training setup: devices, parallelism, optimizer, and memory savings."""

    devices: tuple[int, ...] = attrs.field(default=(1,), converter=each_count, validator=is_count)
    """Total numbers of devices to compare."""
    tensor_devices: int = attrs.field(default=1, validator=is_count)
    """Number of devices among which each GEMM of a language model is split (tensor parallelism), as part of
    `devices`.
    """
    sequence_parallel: bool = False
    """True if the tensor-parallel devices also divide the tokens of norms and residual sums (sequence parallelism).
    Each then stores only its part of these results.
    """
    pipeline_devices: int = attrs.field(default=1, validator=is_count)
    """Pipeline stages of a language model's layers; each has an equal share of the devices."""
    accumulate: int = attrs.field(default=1, validator=is_count)
    """Micro-batches whose gradients are accumulated before an optimizer step."""
    tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(is_count))
    """Tokens per sequence of a language model; None for 2,048."""
    optimizer: str = "adamw"
    zero: int = 0
    """ZeRO stage: 1 shards the optimizer state, 2 also gradients, 3 also weights."""
    recompute: bool = False
    """True if activations are recomputed instead of stored."""
    lora: int | None = attrs.field(default=None, validator=attrs.validators.optional(is_count))
    """Rank of LoRA adapters, the only trained weights; None trains all weights."""
    lora_targets: tuple[str, ...] = attrs.field(default=(), converter=each_text)
    """Names or patterns of the linear layers with an adapter, or `all`; empty for query and value projections."""
    quantize: str = ""
    """Storage format of the frozen weights under adapters, such as nf4 (QLoRA); empty if they have the run's
    precision.
    """
    samples: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Training samples per epoch."""
    epochs: float = attrs.field(default=1.0, validator=ABOVE_0)
