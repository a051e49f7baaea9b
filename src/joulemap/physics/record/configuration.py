"""Configurations (hardware, power mode, precision, batch, runtime) and the storage size of each precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast, get_args

import attrs

from joulemap.physics.record.runtime import RUNTIME_NAMES, STORES_FP16, USUAL_RUNTIME
from joulemap.system.name import fold_into
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
"""Precision -> bytes per stored element; tf32 is stored as fp32."""

PRECISION_NAMES: Final[dict[str, Precision]] = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "single": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
    "float4": "fp4",
}
"""Name of a precision in a framework -> name in joulemap."""

OPERAND_ONLY: Final = ("fp8", "fp4")
"""Precisions used only for the operands of GEMMs; all other tensors of such a run are stored at `CARRIED`.

Their mantissas of at most three bits are too short for norms, sums and attention. Source: OCP 8-bit Floating Point
Specification, section 3: GEMMs accumulate wider; FP8 and NVFP4 checkpoints of compressed-tensors, TensorRT Model
Optimizer and DeepSeek-V3, whose norms, residuals, attention and logits have 16 bits.
"""

CARRIED: Final = "bf16"
"""Precision of all tensors except GEMM operands in runs at a precision of `OPERAND_ONLY`."""

FLOPS_PER_MAC: Final = 2
"""Operations per multiply-accumulate; the only place where MACs become FLOPs."""


def carried_precision(precision: str) -> str:
    """Return the precision of all tensors that are not operands of a GEMM with weights, for a run at a precision."""
    return CARRIED if precision in OPERAND_ONLY else precision


LAUNCH: Final = "host_launch"
"""Name of the coefficient for the host time of one call of an eager framework, in seconds."""

BUSY_SHARE: Final = "busy_share"
"""Name of a coefficient of boards whose power no class was fitted to: share of the power limit that a board draws while
all its units work, above what it draws whether they work or not.
"""

CLOCK_ENERGY, STANDBY_ENERGY = "clock_energy", "standby_energy"
"""Names of coefficients of these boards: energy per clock of a unit, working or not, while kernels run, and energy of
memory at full clock per byte that it could move.
"""

WORKING_BYTES: Final = "working_bytes"
"""Name of a coefficient of GPUs: bytes per clock with which a unit that waits for memory works all the time."""

LIMIT_SHARE: Final = "limit_share"
"""Name of a coefficient of discrete boards: share of the power limit that a large GEMM or a copy draws at least."""

MAX_BATCH: Final = 1_000_000
"""Largest batch size."""

NO_HOST: Final = "none"
"""Host name that stands for a device alone: no transfers over its link, and no operators on a host."""

LINK_LANES: Final = "host_link_lanes"
"""Geometry constant of a chip without its own memory: lanes of the link to the host's memory."""

HOST_TRANSFER: Final = "host_transfer"
"""Name of the coefficient for transfers of inputs and outputs over the host link, in seconds per byte. It applies to
chips with their own memory.
"""

LINK_SHARE: Final = 0.8
"""Share of a host link's bandwidth that transfers reach. Assumed: protocol headers and set-up of DMA take the rest."""

TF32: Final = "tf32"

CALL_CLOCKS: Final = "call_clocks"
"""Name of a coefficient of CPUs: clock cycles that a thread needs for one call of an eager framework."""

BoundaryName = Literal["chip", "board", "system"]

CHIP: Final[BoundaryName] = "chip"
BOARD: Final[BoundaryName] = "board"
SYSTEM: Final[BoundaryName] = "system"


@frozen(kw_only=True)
class Boundary:
    """Boundary of the energy of a run."""

    name: BoundaryName
    includes_board: bool
    """True if it contains everything under the power limit of the board, such as voltage regulators."""
    is_at_wall: bool
    """True if it contains everything that the wall plug feeds: host, fans and power supply."""
    aliases: tuple[str, ...]
    """Other names in questions."""
    scopes: tuple[str, ...]
    """Words of sources of measurements that mean this boundary, besides its names."""


BOUNDARY: Final[Mapping[str, Boundary]] = {
    one.name: one
    for one in (
        Boundary(name="chip", includes_board=False, is_at_wall=False, aliases=(), scopes=()),
        Boundary(name="board", includes_board=True, is_at_wall=False,
                 aliases=(), scopes=("device", "package", "socket", "module", "card")),
        Boundary(name="system", includes_board=True, is_at_wall=True, aliases=("wall",), scopes=("node",)),
    )
}  # fmt: skip
"""Name -> energy boundary."""

BOUNDARY_NAMES: Final[tuple[BoundaryName, ...]] = get_args(BoundaryName)

BOUNDARIES: Final = tuple(BOUNDARY[name] for name in BOUNDARY_NAMES)
"""Energy boundaries in the order of their names; KeyError at import for a name without a record."""

BOUNDARY_ALIASES: Final[Mapping[str, BoundaryName]] = {alias: one.name for one in BOUNDARIES for alias in one.aliases}
"""Alias of an energy boundary -> boundary."""

MEASURED_AT: Final[Mapping[str, BoundaryName]] = {
    word: one.name for one in BOUNDARIES for word in (*one.scopes, *one.aliases, one.name)
}
"""Word for an energy boundary in a source of measurements -> boundary of joulemap.

For a processor or SoC without a separate board, `board` is the package with its regulators.
"""


@frozen(kw_only=True)
class Configuration:
    """Settings of a run other than its workload."""

    hardware: str
    """Id of the hardware in the catalogue."""
    precision: str = attrs.field(default="fp32", validator=attrs.validators.in_(tuple(PRECISION_BYTES)))
    """Precision of activations and GEMMs, and of weights unless `weight_precision` differs."""
    weight_precision: str = ""
    """Storage precision of GEMM weights, as `int4` or `int4:64`; empty for `precision`."""
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    runtime: str = attrs.field(default=USUAL_RUNTIME, validator=attrs.validators.in_(RUNTIME_NAMES))
    power_mode: str = "default"

    @property
    def arithmetic(self) -> tuple[str, str]:
        """Precisions (of activations and GEMMs, of stored weights) in which the runtime computes: TensorFlow Lite
        dequantizes fp16 weights and computes in fp32.

        Source: TensorFlow documentation, Post-training float16 quantization: on a CPU, weights become float32.
        """
        if self.precision == "fp16" and self.runtime in STORES_FP16:
            return "fp32", self.weight_precision or "fp16"
        return self.precision, self.weight_precision


def name_precision(name: str) -> Precision:
    """Return the precision that a name means; upper case and names of frameworks are allowed. Other texts stay
    unchanged.
    """
    folded = fold_into(name, (*PRECISION_BYTES, *PRECISION_NAMES))
    return cast("Precision", PRECISION_NAMES.get(folded, folded))
