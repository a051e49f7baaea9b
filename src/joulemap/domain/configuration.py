"""A configuration: hardware, power mode, precision, batch, runtime; precisions and their widths."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from joulemap.system.record import frozen

Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4"]

PRECISION_BYTES: Final[dict[str, float]] = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
}
"""precision -> bytes of one stored element (tf32 is stored as fp32)"""

OPERAND_ONLY: Final = ("fp8", "fp4")
"""Precisions that only what products multiply is stored at: no kernel normalizes, adds up or attends over numbers of
three bits. Source: OCP 8-bit Floating Point Specification, section 3: products accumulate wider; FP8 and NVFP4
checkpoints of compressed-tensors, TensorRT Model Optimizer and DeepSeek-V3, whose norms, residuals, attention and
logits are of 16 bits."""

CARRIED: Final = "bf16"
"""What everything else of such a run is stored and computed at."""

FLOPS_PER_MAC: Final = 2
"""One multiply-accumulate is two operations; the only place where MACs become FLOPs."""


def carried_precision(precision: str) -> str:
    """Return the precision of what no product with weights takes, in a run of a precision."""
    return CARRIED if precision in OPERAND_ONLY else precision


Runtime = Literal["eager", "graph", "fused", "engine"]

RUNTIMES: Final[tuple[Runtime, ...]] = get_args(Runtime)
"""How the software stack launches work: a kernel per operator launched by the host, a kernel per operator without host
cost, a kernel per subgraph as a compiler of the framework makes them (its products go to a library), a kernel per
subgraph as an ahead-of-time inference engine makes them (everything in one kernel, built for the shape)."""

MERGING: Final[tuple[Runtime, ...]] = ("fused", "engine")
"""Runtimes that compute a subgraph in one kernel."""

LAUNCH: Final = "host_launch"
"""Coefficient: seconds of a call of an eager framework, on the host that it was measured with."""

MEASURED_HOST: Final = "a virtual 5th-generation Xeon"
"""That host."""

LIMIT_SHARE: Final = "limit_share"
"""Coefficient of boards that are sold: share of the power limit that a large product and a copy draw at least."""

Tf32 = Literal["allowed", "never"]
"""Permission of libraries to compute fp32 products in TF32."""

TF32: Final = "tf32"

TF32_ALLOWED: Final = "tf32_allowed"
"""Coefficient of GPUs: 1 where libraries may compute fp32 products in TF32, 0 where they compute in fp32."""

TF32_VENDOR: Final = "NVIDIA"
"""Vendor whose libraries use TF32 unless they are told not to."""

CALL_CLOCKS: Final = "call_clocks"
"""Coefficient of a CPU: clocks of a thread for such a call."""

Boundary = Literal["chip", "board"]

BOUNDARIES: Final[tuple[Boundary, ...]] = get_args(Boundary)
"""What an energy contains: the chip and its memory, or with them all that the board's power limit holds."""

CHIP: Final[Boundary] = "chip"
BOARD: Final[Boundary] = "board"


@frozen(kw_only=True)
class Configuration:
    """The settings of a run beside its workload."""

    hardware: str
    """Catalogue id."""
    precision: str = attrs.field(default="fp32", validator=attrs.validators.in_(tuple(PRECISION_BYTES)))
    """Of activations and products, and of weights unless they are stored at another."""
    weight_precision: str = ""
    """That the weights of products are stored at, as `int4` or `int4:64`; empty for the same."""
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    runtime: str = attrs.field(default="fused", validator=attrs.validators.in_(RUNTIMES))
    power_mode: str = "default"
