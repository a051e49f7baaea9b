"""Communication and optimizer of a training step, bucket by bucket of weights.

With ZeRO each device holds a shard: of the optimizer state (1), of gradients (2), of weights (3). Sharded weights are
gathered bucket by bucket before they are read, forward and backward, and released afterwards. A micro-batch before the
last adds its gradients to the accumulated ones; with sharded gradients it exchanges them first.

Source: Li et al., PyTorch Distributed, 2020 (buckets, gradient accumulation); Rajbhandari et al., ZeRO, 2020; Zhao et
al., PyTorch FSDP, 2023.
"""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.physics import OPTIMIZER
from joulemap.physics.communication import AHEAD, BEHIND
from joulemap.trace.formula import Cost
from joulemap.wing.train.training.forward import FIXED, Forward
from joulemap.wing.train.training.recipe import OPTIMIZERS, Recipe
from joulemap.wing.train.training.tape import Tape, Use, Value

LIBRARY: Final = "nccl"
"""Library of collectives that training frameworks use; its ring algorithms are assumed."""


@attrs.define
class Unit:
    """Bucket of weights whose gradients are exchanged together."""

    index: int
    weights: list[int] = attrs.field(factory=list)
    waiting: set[int] = attrs.field(factory=set)
    """Weights whose gradients are not complete yet."""
    elements: int = 0
    gradients: dict[int, int] = attrs.field(factory=dict)
    """Weight -> index of its gradient's tensor."""
    shard: int = -1
    """Index of the tensor with this device's shard of the weights; -1 if weights are not sharded."""
    stored_bytes: float = 0.0
    """Bytes per element of frozen weights in a narrow format; 0 if they follow the precision of the run."""


@attrs.define
class Exchange:
    """Builder of a step's communication and optimizer."""

    forward: Forward
    recipe: Recipe
    stride: int = 1
    """Distance between device numbers that exchange gradients: the number of model-parallel devices."""
    tape: Tape = attrs.field(factory=Tape)
    kept: dict[int, int] = attrs.field(factory=dict)
    """Value of the forward pass -> its tensor in the step."""
    units: list[Unit] = attrs.field(factory=list)
    gathered: dict[tuple[str, int], dict[int, int]] = attrs.field(factory=dict)
    names: set[str] = attrs.field(factory=set)

    def name(self, name: str) -> str:
        """Return a unique operator name, with a number added to `name` if that is taken."""
        unique, number = name, 1
        while unique in self.names:
            number += 1
            unique = f"{name}:{number}"
        self.names.add(unique)
        return unique

    def add_up(self, gradient: int, name: str, module_path: str) -> None:
        """Write an operator that adds a gradient to the gradients accumulated over earlier micro-batches."""
        new = self.tape.tensors[gradient]
        item_bytes = self.tape.item_bytes[gradient]
        value = Value(shape=new.shape, dtype=new.dtype, byte_count=new.byte_count, item_bytes=item_bytes, name=name)
        held = self.tape.put(value, is_kept=True)
        self.tape.call(
            Cost(kind="elementwise", operation="add", elementwise_count=value.element_count).operator(
                self.name(f"{name}.backward.held"), module_path, "aten.add_.Tensor", new.shape, "fp32"
            ),
            [(gradient, new.byte_count), (held, new.byte_count)],
            [(held, new.byte_count)],
        )

    def share(self, byte_count: int) -> int:
        """Return the bytes of one device's shard of `byte_count` bytes."""
        return -(-byte_count // self.recipe.devices)

    def _collective(
        self, operation: str, name: str, word: str, elements: int, reads: list[Use], writes: list[Use]
    ) -> None:
        devices = self.recipe.devices
        is_sum = operation != "all_gather"
        cost = Cost(
            kind="communication",
            operation=operation,
            elementwise_count=(devices - 1) * self.share(elements) if is_sum else 0,
            gemm=(0, 0, self.stride, devices),
            variant=f"{LIBRARY} {word if self.recipe.overlap else ''}".strip(),
        )
        operator = cost.operator(self.name(name), "exchange", f"aten.{operation}.default", (elements,), "fp32")
        self.tape.call(operator, reads, writes)

    def exchange(self, unit: Unit) -> None:
        """Write the collective that exchanges the gradients of a bucket between devices."""
        if self.recipe.devices == 1 or (self.recipe.adds and self.recipe.zero < 2):
            return
        used = [(one, self.tape.tensors[one].byte_count) for one in unit.gradients.values()]
        if not self.recipe.zero:
            writes = list(used)
        elif self.recipe.zero == 1:
            writes = [(one, self.share(byte_count)) for one, byte_count in used]
        else:
            total = self.share(sum(byte_count for _, byte_count in used))
            made = self.tape.put(
                Value(
                    shape=(self.share(unit.elements),), dtype="fp32", byte_count=total,
                    item_bytes=self.tape.item_bytes[used[0][0]], name=f"exchange.{unit.index}.gradient",
                ),
                is_kept=not self.recipe.adds,
            )  # fmt: skip
            writes = [(made, total)]
            unit.gradients = {-1: made}
        operation = "reduce_scatter" if self.recipe.zero else "all_reduce"
        self._collective(operation, f"exchange.{unit.index}.{operation}", BEHIND, unit.elements, used, writes)
        if self.recipe.adds:
            self.add_up(made, f"exchange.{unit.index}.gradient", "exchange")

    def gather(self, unit: Unit, phase: str) -> dict[int, int]:
        """Write the all-gather of a bucket's weights for a phase, unless it exists; return weight -> full tensor."""
        key = ("forward" if phase == "forward" else "backward"), unit.index
        if key in self.gathered:
            return self.gathered[key]
        values = self.forward.values
        shard = self._add_shard(unit)
        whole, item_bytes = self._weigh(unit)
        memory = self.tape.add_storage(whole, item_bytes)
        made = {}
        for one in unit.weights:
            value = values[one]
            made[one] = self.tape.put(attrs.evolve(value, byte_count=0, role="activation",
                                                   name=f"{value.name}.gathered"),
                                      memory)  # fmt: skip
            self.tape.weights.add(made[one])
        writes = [(made[one], values[one].byte_count) for one in unit.weights]
        if unit.stored_bytes:  # each operator that reads a narrow weight makes it wide
            codes = Value(shape=(unit.elements,), dtype="uint8", byte_count=whole, item_bytes=0)
            writes = [(self.tape.put(codes, memory), whole), *((one, 0) for one in made.values())]
        self._collective(
            "all_gather", f"exchange.{unit.index}.{key[0]}", AHEAD, unit.elements, [(shard, self.share(whole))], writes
        )
        self.gathered[key] = made
        return made

    def _add_shard(self, unit: Unit) -> int:
        if unit.shard < 0:
            whole, item_bytes = self._weigh(unit)
            unit.shard = self.tape.put(
                Value(shape=(self.share(unit.elements),), dtype="fp32", byte_count=self.share(whole),
                      item_bytes=item_bytes, role="parameter", name=f"exchange.{unit.index}.weight")
            )  # fmt: skip
        return unit.shard

    def _weigh(self, unit: Unit) -> tuple[int, int]:
        """Return the bytes of a bucket's weights, and the bytes per element if they follow the precision of a run."""
        if unit.stored_bytes:
            return round(unit.elements * unit.stored_bytes), 0
        return sum(self.forward.values[one].byte_count for one in unit.weights), FIXED

    def optimize(self, unit: Unit) -> None:
        """Write the optimizer's update of a bucket of weights; with ZeRO, of the device's shard."""
        if not unit.gradients:
            return
        recipe, values = self.recipe, self.forward.values
        optimizer = OPTIMIZERS[recipe.optimizer]
        elements = self.share(unit.elements) if recipe.zero else unit.elements
        names = [*optimizer.states, *(("master",) if recipe.master else ())]
        states = []
        for name in names:
            state = Value(shape=(elements,), dtype="float32", byte_count=FIXED * elements, item_bytes=0,
                         name=f"optimizer.{unit.index}.{name}")  # fmt: skip
            states.append((self.tape.put(state, is_kept=True), state.byte_count))
        if recipe.zero == 3:
            weights = [(self._add_shard(unit), self.tape.tensors[unit.shard].byte_count)]
        else:
            weights = [(self.kept[one], values[one].byte_count) for one in unit.weights]
        if recipe.zero in (1, 2):
            weights = [(one, self.share(byte_count)) for one, byte_count in weights]
        gradients = [(one, self.tape.tensors[one].byte_count) for one in unit.gradients.values()]
        if recipe.zero == 1:
            gradients = [(one, self.share(byte_count)) for one, byte_count in gradients]
        own = [] if recipe.master else weights
        cost = Cost(
            kind="elementwise",
            operation=recipe.optimizer,
            elementwise_count=optimizer.elementwise_count * elements,
            special_count=optimizer.special_count * elements,
        )
        name, aten = self.name(f"optimizer.{unit.index}"), f"aten._fused_{recipe.optimizer}_.default"
        self.tape.call(
            cost.operator(name, OPTIMIZER, aten, (elements,), "fp32"),
            [*gradients, *own, *states],
            [*states, *weights],
            is_apart=True,
        )
        if recipe.zero in (1, 2):
            self._collective(
                "all_gather", f"exchange.{unit.index}.weights", "", unit.elements,
                weights, [(self.kept[one], values[one].byte_count) for one in unit.weights],
            )  # fmt: skip
