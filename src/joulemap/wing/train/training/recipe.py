"""Recipe of a training step: optimizer, devices, sharding and recomputation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from joulemap.domain import Argument, Value
from joulemap.physics import PRECISION_BYTES, read_weight_format
from joulemap.physics.record.configuration import CARRIED
from joulemap.system import UsageError, frozen


@frozen
class Optimizer:
    """Operations and state of an optimizer per weight."""

    states: tuple[str, ...]
    """Names of the values that the optimizer stores per weight, in single precision."""
    elementwise_count: int
    """Elementwise operations per weight."""
    special_count: int = 0
    """Number of square roots and divisions per weight."""


OPTIMIZERS: Final[Mapping[str, Optimizer]] = {
    "sgd": Optimizer((), 2),
    "momentum": Optimizer(("momentum",), 4),
    "adam": Optimizer(("exp_avg", "exp_avg_sq"), 12, 2),
    "adamw": Optimizer(("exp_avg", "exp_avg_sq"), 14, 2),
}
"""Name -> optimizer. Source: update rules (Kingma and Ba 2015, Loshchilov and Hutter 2019) as one fused pass."""

MOST_DEVICES: Final = 65_536

MOST_RANK: Final = 65_536
"""Maximum rank of an adapter."""

ALL_LINEAR: Final = "all"
"""Target for every linear layer except the logits."""

JOINED: Final = "+"
"""Separator of target layers in a step's name; a comma would end the argument."""

BASE_FORMATS: Final[Mapping[str, str]] = {"nf4": "nf4_double"}
"""Value of `quantize` -> weight format; other values name the format. Source: QLoRA (Dettmers et al. 2023), NF4 with
double quantization.
"""

_TARGET: Final = re.compile(r"[A-Za-z0-9_.*?\[\]!-]{1,200}")


@attrs.frozen
class Targets(Argument):
    """Argument with names or patterns of layers, joined by `+`; case matters."""

    def read(self, kind: str, text: str) -> Value:
        """Return the text unchanged; UsageError if it is no name or pattern of a layer."""
        return check_targets(f"{kind}: {self.name}", text)


def check_targets(asked: str, text: str) -> str:
    """Return names or patterns of layers unchanged; UsageError for any other text.

    `asked` is the beginning of the error message.
    """
    for one in text.split(JOINED):
        if not _TARGET.fullmatch(one):
            raise UsageError(f"{asked} {one!r:.60}: expected a layer's name or pattern, such as q_proj")
    return text


ARGUMENTS: Final = (
    Argument("optimizer", default="adamw", choices=tuple(OPTIMIZERS)),
    Argument("devices", default=1),
    Argument("zero", default=0, least=0),
    Argument("recompute", default=False),
    Argument("master", default=True),
    Argument("bucket", default=25),
    Argument("overlap", default=True),
    Argument("adds", default=False),
    Argument("lora", default=0),
    Targets("lora_targets", default=""),
    Argument("quantize", default=""),
)
"""Arguments in a training step's name, in their order there."""


@frozen(kw_only=True)
class Recipe:
    """Settings of a training step: optimizer, devices, sharding, recomputation and adapters."""

    optimizer: str = "adamw"
    devices: int = 1
    """Data-parallel devices; each has the whole model, or its part of a divided model, and a part of the batch."""
    zero: int = 0
    """ZeRO stage: 1 shards the optimizer state over devices, 2 gradients too, 3 weights too."""
    recompute: bool = False
    """True to recompute activations between checkpoints (gradient checkpointing)."""
    master: bool = True
    """True if the optimizer keeps single-precision master weights in addition to the run's weights."""
    bucket: int = 25
    """Minimum size of a gradient bucket in megabytes, at two bytes per gradient."""
    overlap: bool = True
    """True to exchange a bucket while the next gradients are computed."""
    adds: bool = False
    """True for a micro-batch before the last, which accumulates gradients and updates no weight."""
    lora: int = 0
    """Rank of the adapters; 0 trains all weights."""
    lora_targets: str = ""
    """Linear layers with an adapter, joined by `+`; empty for the query and value projections."""
    quantize: str = ""
    """Format in which the frozen base is stored; empty for the precision of the run."""

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Recipe:
        """Return the recipe of parsed arguments; UsageError for an invalid combination."""
        recipe = cls(**{one.name: values.get(one.name, one.default) for one in ARGUMENTS})  # type: ignore[arg-type]
        recipe.check()
        return recipe

    def check(self) -> None:
        """Raise UsageError for arguments that exclude each other."""
        if self.zero > 3:
            raise UsageError(f"zero is {self.zero}, expected a stage from 0 to 3")
        if self.zero and self.devices == 1:
            raise UsageError(f"zero={self.zero} needs several devices: leave it out, or add devices")
        if self.devices > MOST_DEVICES:
            raise UsageError(f"devices is {self.devices}, expected at most {MOST_DEVICES:,}")
        if not 0 <= self.lora <= MOST_RANK:
            raise UsageError(f"LoRA rank is {self.lora}, expected a whole number from 1 to {MOST_RANK:,}")
        given = {"--lora-targets": self.lora_targets, "--quantize": self.quantize}
        option = next((name for name, text in given.items() if text), "")
        if option and not self.lora:
            raise UsageError(f"{option} needs adapters: add --lora with a rank, such as --lora 16")
        if self.lora_targets:
            check_targets("--lora-targets", self.lora_targets)
        if self.quantize:
            width = read_weight_format(BASE_FORMATS.get(self.quantize, self.quantize)).item_bytes
            if width >= PRECISION_BYTES[CARRIED]:
                raise UsageError(f"--quantize {self.quantize} has 16 or more bits per weight: give nf4, int8 or int4")

    @property
    def targets(self) -> tuple[str, ...]:
        """Layers with an adapter; empty for the query and value projections."""
        return tuple(self.lora_targets.split(JOINED)) if self.lora_targets else ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments that differ from their defaults, as a step's name spells them."""
        values = [(one.name, getattr(self, one.name), one.default) for one in ARGUMENTS]
        return tuple(
            f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value, default in values
            if value != default
        )

    def spell(self, model: str) -> str:
        """Return the canonical name of a training step of `model`."""
        return f"train({','.join((model, *self.arguments))})"
