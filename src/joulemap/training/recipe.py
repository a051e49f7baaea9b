"""How a model is trained: the optimizer, over how many devices, and what is kept or computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.domain.operator.name import Argument, Value
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

ARGUMENTS: Final = (
    Argument("optimizer", default="adamw", choices=tuple(OPTIMIZERS)),
    Argument("devices", default=1),
    Argument("zero", default=0, least=0),
    Argument("recompute", default=False),
    Argument("master", default=True),
    Argument("bucket", default=25),
    Argument("overlap", default=True),
    Argument("adds", default=False),
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

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a name says of it, without what is so anyway."""
        told = [(one.name, getattr(self, one.name), one.default) for one in ARGUMENTS]
        return tuple(f"{name}={str(value).lower()}" for name, value, default in told if value != default)

    def spell(self, model: str) -> str:
        """Return the one spelling of a step of a model of this name."""
        return f"train({','.join((model, *self.arguments))})"
