"""How a model is trained: the optimizer, over how many devices, and what is kept or computed again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from joulemap.domain.configuration import CARRIED, PRECISION_BYTES
from joulemap.domain.operator.name import Argument, Value
from joulemap.domain.weight import read_weight_format
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen


@frozen
class Optimizer:
    """What an optimizer does with a weight."""

    states: tuple[str, ...]
    """What it holds of each weight, in single precision."""
    elementwise_count: int
    """Operations for each weight."""
    special_count: int = 0
    """Roots and quotients of it."""


OPTIMIZERS: Final[Mapping[str, Optimizer]] = {
    "sgd": Optimizer((), 2),
    "momentum": Optimizer(("momentum",), 4),
    "adam": Optimizer(("exp_avg", "exp_avg_sq"), 12, 2),
    "adamw": Optimizer(("exp_avg", "exp_avg_sq"), 14, 2),
}
"""Name -> what it is. Source: their update rules (Kingma and Ba 2015, Loshchilov and Hutter 2019), one fused pass."""

MOST_DEVICES: Final = 65_536

MOST_RANK: Final = 65_536
"""Maximum rank of an adapter."""

ALL_LINEAR: Final = "all"
"""Target that means every linear layer but that of the logits."""

JOINED: Final = "+"
"""Separator of target layers in a step's name, where a comma ends an argument."""

BASE_FORMATS: Final[Mapping[str, str]] = {"nf4": "nf4_double"}
"""Name of a base's format -> weight format. Source: QLoRA (Dettmers et al. 2023), NF4 with double quantization."""

_TARGET: Final = re.compile(r"[A-Za-z0-9_.*?\[\]!-]{1,200}")


@attrs.frozen
class Targets(Argument):
    """Argument of names or patterns of layers, joined by `+`; upper and lower case differ."""

    def read(self, kind: str, text: str) -> Value:
        """Return the text; UsageError for one that names no layer."""
        return check_targets(f"{kind}: {self.name}", text)


def check_targets(asked: str, text: str) -> str:
    """Return names or patterns of layers as they are; UsageError, which begins with what was asked, for other text."""
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
"""Of a training step, in the order of a name."""


@frozen(kw_only=True)
class Recipe:
    """How a model is trained."""

    optimizer: str = "adamw"
    devices: int = 1
    """That each have the whole model, or its share of what is divided, and a part of the batch."""
    zero: int = 0
    """What is divided over them: 1 what the optimizer holds, 2 gradients as well, 3 weights too."""
    recompute: bool = False
    """Whether activations between a few are computed once more."""
    master: bool = True
    """Whether the optimizer holds weights in single precision beside those of the run."""
    bucket: int = 25
    """Megabytes of gradients, of two bytes each, that are exchanged together at least."""
    overlap: bool = True
    """Whether they are exchanged while others are computed."""
    adds: bool = False
    """Whether it is one of several small batches before the last: gradients are added up, and no weight changes."""
    lora: int = 0
    """Rank of the adapters; 0 trains all weights."""
    lora_targets: str = ""
    """Linear layers with an adapter, joined by `+`; empty for the query and value projections."""
    quantize: str = ""
    """Format in which the frozen base is stored; empty for the precision of the run."""

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Recipe:
        """Return the recipe of arguments as they are read; UsageError for what does not go together."""
        found = cls(**{one.name: values.get(one.name, one.default) for one in ARGUMENTS})  # type: ignore[arg-type]
        found.check()
        return found

    def check(self) -> None:
        """Raise UsageError for what does not go together."""
        if self.zero > 3:
            raise UsageError(f"zero is {self.zero}, expected a stage from 0 to 3")
        if self.zero and self.devices == 1:
            raise UsageError(f"zero={self.zero} divides over devices, and there is one: leave it out, or add devices")
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
                raise UsageError(f"--quantize {self.quantize} has 16 bits or more a weight: give nf4, int8 or int4")

    @property
    def targets(self) -> tuple[str, ...]:
        """Layers with an adapter; none for the query and value projections."""
        return tuple(self.lora_targets.split(JOINED)) if self.lora_targets else ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a name says of it, without what is so anyway."""
        told = [(one.name, getattr(self, one.name), one.default) for one in ARGUMENTS]
        return tuple(
            f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value, default in told
            if value != default
        )

    def spell(self, model: str) -> str:
        """Return the one spelling of a step of a model of this name."""
        return f"train({','.join((model, *self.arguments))})"
