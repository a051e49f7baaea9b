"""Training step as a workload: forward pass, backward pass in reverse order, communication, optimizer.

    forward ─► loss ─► gradients, last layer first ─► optimizer
                            └─ each bucket of them is exchanged while the next is computed

A value that gradients read is kept until they have read it; with recomputation, values between checkpoints are computed
again. With ZeRO each device holds a shard: of the optimizer state (1), of gradients (2), of weights (3). Sharded
weights, frozen ones too, are gathered bucket by bucket before they are read, forward and backward, and released
afterwards.

Source: Li et al., PyTorch Distributed, 2020 (buckets); Rajbhandari et al., ZeRO, 2020; Zhao et al., PyTorch FSDP, 2023.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.physics import Operator, Workload, WorkloadKey
from joulemap.physics.fuse import fuse
from joulemap.physics.workload import number_calls
from joulemap.system import ModelError
from joulemap.trace.formula import Cost
from joulemap.wing.train.training.adapter import adapt, find_stored_bytes
from joulemap.wing.train.training.exchange import Exchange, Unit
from joulemap.wing.train.training.forward import INTEGERS, is_trained, is_weight, read_forward
from joulemap.wing.train.training.gradient import Backward, Gradient, differentiate
from joulemap.wing.train.training.recipe import Recipe
from joulemap.wing.train.training.segment import find_segments
from joulemap.wing.train.training.tape import Call, Use, Value

BUCKET_ITEM: Final = 2
"""Bytes per element of a bucket, at any precision."""


def describe_training(inner: Workload, recipe: Recipe, name: str, key: WorkloadKey) -> Workload:
    """Return the fused workload of a model's training step; ModelError for a model that cannot be trained as traced."""
    from joulemap.trace.single import check_counts

    groups = [one.gemm_groups for one in inner.operators if one.kind == "communication"]
    forward, devices = read_forward(inner), max(groups, default=1)
    if recipe.lora:
        adapt(forward, recipe, inner.model, devices)
    made = _Step(forward, recipe, devices)
    made.run()
    if not made.units or not any(unit.gradients for unit in made.units):
        raise ModelError(f"no output of {inner.model} depends on its weights")
    count = sum(unit.elements for unit in made.units)
    notes = (*inner.notes, *made.forward.notes)
    formed = made.tape.form(key, name, inner.batch, count, notes)
    return fuse(check_counts(attrs.evolve(formed, inner_batch=inner.inner_batch, findings=inner.findings)))


@attrs.define
class _Step(Exchange):
    again: dict[int, int] = attrs.field(factory=dict)
    """Value of the forward pass -> its recomputed tensor."""
    gradients: dict[int, list[Use]] = attrs.field(factory=dict)
    unit_of: dict[int, Unit] = attrs.field(factory=dict)
    """Trained weight -> its bucket."""
    frozen: dict[int, Unit] = attrs.field(factory=dict)
    """Frozen weight -> its bucket, whose weights are sharded; empty below ZeRO 3."""
    needs: frozenset[int] = frozenset()
    segments: list[int] = attrs.field(factory=list)
    crossing: set[int] = attrs.field(factory=set)
    """Values that are read in another segment than the one that makes them."""
    starts: list[int] = attrs.field(factory=list)
    """Index of the first call of each call's ATen operator, by call."""
    places: list[int] = attrs.field(factory=list)
    """Index in the step of each operator of the forward pass."""
    made_at: dict[int, int] = attrs.field(factory=dict)
    memories: dict[tuple[str, int], int] = attrs.field(factory=dict)

    def run(self) -> None:
        """Write all operators of the step."""
        calls = self.forward.calls
        self._look()
        for index in range(len(calls)):
            self._copy_call(index, "forward", self.kept, "")
        self._release_as_called()
        first: dict[int, int] = {}
        for index, call in enumerate(calls):
            for value, _ in call.reads:
                first.setdefault(value, index)
        for index in range(len(calls) - 1, -1, -1):
            self._reverse(index)
            for value in dict.fromkeys(use[0] for use in calls[index].reads):
                if first[value] == index and value in self.unit_of:
                    self._finish(value)
        for unit in self.units if not self.recipe.adds else ():
            self.optimize(unit)

    def _look(self) -> None:
        """Find the values that need a gradient, the buckets of weights and, for recomputation, the segments."""
        values, calls = self.forward.values, self.forward.calls
        needs, sharded = set[int](), dict[float, list[Unit]]()
        for index, call in enumerate(calls):
            for value, _ in call.writes:
                self.made_at[value] = index
            for value, _ in call.reads:
                if is_trained(values[value]) and value not in needs:
                    needs.add(value)
                    self._put(value, self.units, self.unit_of).waiting.add(value)
                elif self.recipe.zero == 3 and is_weight(values[value]) and not self._find_unit(value):
                    stored = find_stored_bytes(call.operator) if len(values[value].shape) > 1 else 0.0
                    self._put(value, sharded.setdefault(stored, []), self.frozen).stored_bytes = stored
            if needs.intersection(use[0] for use in call.reads):
                needs.update(one for one, _ in call.writes if not values[one].dtype.startswith(INTEGERS))
        self.needs = frozenset(needs.difference(*(call.extras for call in calls)))
        numbers = number_calls([call.operator.aten for call in calls]).tolist()
        self.starts = [numbers.index(one) for one in numbers]
        self.places = [0] * len(calls)
        self.segments = find_segments(self.forward) if self.recipe.recompute else [0] * len(calls)
        self.crossing = {
            value
            for index, call in enumerate(calls)
            for value in (*(use[0] for use in call.reads), *call.waits)
            if self.segments[self.made_at.get(value, index)] != self.segments[index]
        }

    def _put(self, value: int, units: list[Unit], unit_of: dict[int, Unit]) -> Unit:
        """Add a weight to the last of some buckets, or to a new one if that is full; return the bucket."""
        if not units or units[-1].elements >= self.recipe.bucket * 1_000_000 // BUCKET_ITEM:
            units.append(Unit(len({id(one) for one in (*self.unit_of.values(), *self.frozen.values())})))
        units[-1].weights.append(value)
        units[-1].elements += self.forward.values[value].element_count
        unit_of[value] = units[-1]
        return units[-1]

    def _find_unit(self, weight: int) -> Unit | None:
        """Return the bucket of a weight; None for other values, and for frozen weights that no device shards."""
        return self.unit_of.get(weight) or self.frozen.get(weight)

    def _read(self, value: int, phase: str) -> int:
        """Return the tensor to read for a value in a phase; write its recomputation or gathering if it is not in
        memory.
        """
        traced = self.forward.values[value]
        if traced.role == "activation":
            if phase == "forward" or self._is_kept(value):
                return self.kept[value] if value in self.kept else self._enter(value, traced)
            if value not in self.again:
                self._copy_call(self.made_at[value], "again", self.again, ".again")
            return self.again[value]
        if self.recipe.zero == 3 and (unit := self._find_unit(value)):
            return self.gather(unit, phase)[value]
        return self._enter(value, traced)

    def _enter(self, value: int, traced: Value) -> int:
        """Return the tensor of an input, weight or constant; add it at its first use."""
        if value not in self.kept:
            memory = None
            if traced.memory is not None:
                memory = self._memory("forward", traced)
            self.kept[value] = self.tape.put(traced, memory)
        return self.kept[value]

    def _memory(self, scope: str, traced: Value) -> int:
        """Return the storage of a value, shared by all values with the same memory in a scope."""
        assert traced.memory is not None
        key = scope, traced.memory
        if key not in self.memories:
            self.memories[key] = self.tape.add_storage(traced.byte_count, traced.item_bytes)
        storage = self.tape.memories[self.memories[key]]
        storage.byte_count = max(storage.byte_count, traced.byte_count)
        return self.memories[key]

    def _is_kept(self, value: int) -> bool:
        """Return True if a value's tensor of the forward pass stays in memory for the backward pass; gathered ones do
        not.
        """
        if value in self.made_at and self.forward.calls[self.made_at[value]].operator.operation == "all_gather":
            return False
        if not self.recipe.recompute or value not in self.made_at:
            return True
        piece = self.segments[self.made_at[value]]
        return piece == self.segments[-1] or value in self.crossing

    def _release_as_called(self) -> None:
        """Set how long values of the forward pass stay in memory where a runtime launches call by call, as in
        inference.
        """
        ends: dict[int, int] = {}
        for index, call in enumerate(self.forward.calls):
            ends[call.origin] = self.places[index]
        last = max(self.places)
        for value, tensor in self.kept.items():
            memory = self.tape.tensors[tensor].buffer_index
            if memory is not None:
                self.tape.memories[memory].release = ends.get(self.forward.values[value].release, last)

    def _copy_call(self, position: int, phase: str, made: dict[int, int], suffix: str) -> None:
        """Write the operators of an ATen call of the forward pass, or recompute them in another phase."""
        calls, first = self.forward.calls, self.starts[position]
        if phase == "forward" and first != position:
            return
        last = first
        while last + 1 < len(calls) and self.starts[last + 1] == first:
            last += 1
        together = calls[first : last + 1]
        inner = {value for call in together for value, _ in call.writes}
        for call in together:
            for value, _ in call.reads:
                if value not in inner:
                    self._read(value, phase)
        for index, call in enumerate(together, first):
            at = self._copy(call, phase, made, suffix)
            if phase == "forward":
                self.places[index] = at

    def _copy(self, call: Call, phase: str, made: dict[int, int], suffix: str) -> int:
        reads = [(self._read(value, phase), byte_count) for value, byte_count in call.reads]
        waits = [self._read(value, phase) for value in call.waits if value in self.made_at]
        writes = []
        for value, byte_count in call.writes:
            traced = self.forward.values[value]
            if value not in made:
                memory = None if traced.memory is None else self._memory(phase, traced)
                made[value] = self.tape.put(traced, memory)
            writes.append((made[value], byte_count))
        has_weights = any(value in self.unit_of for value, _ in call.reads)
        operator = attrs.evolve(
            call.operator,
            name=self.name(call.operator.name + suffix),
            is_foldable=call.operator.is_foldable and not has_weights and not suffix,
        )
        return self.tape.call(operator, reads, writes, waits)

    def _reverse(self, index: int) -> None:
        """Write the operators that compute the gradient of a call."""
        call = self.forward.calls[index]
        one = Backward(self.forward, index, self.needs)
        if not call.writes or not any(value in self.needs for value, _ in call.reads):
            return
        upstream = self._collect(call.writes[0][0], call.operator)
        parts = tuple(differentiate(one)) if upstream is not None or call.extras else ()
        for part in parts:
            if upstream is None and not part.is_first:
                continue
            if part.what == "attention":
                assert upstream is not None
                self._attend(part, index, upstream)
                continue
            if part.operator is None:
                assert upstream is not None
                for value, byte_count in part.results:
                    self.gradients.setdefault(value, []).append((upstream[0], byte_count))
                continue
            dy = [] if upstream is None else [(upstream[0], part.takes or upstream[1])]
            reads = [(self._read(value, "backward"), byte_count) for value, byte_count in part.reads]
            self._add_gradient(part.operator, [*dy, *reads], part.results)

    def _add_gradient(
        self, operator: Operator, reads: Iterable[Use], results: Iterable[Use], waits: Iterable[int] = ()
    ) -> int:
        """Write an operator that computes the gradients of `results`; return the first of them."""
        writes = []
        for value, byte_count in results:
            traced = self.forward.values[value]
            whole = byte_count >= traced.byte_count
            shape = traced.shape if whole else (self.forward.count((value, byte_count)),)
            made = self.tape.put(
                Value(shape=shape, dtype=traced.dtype, byte_count=byte_count, item_bytes=traced.item_bytes)
            )
            self.gradients.setdefault(value, []).append((made, byte_count))
            writes.append((made, byte_count))
        self.tape.call(attrs.evolve(operator, name=self.name(operator.name)), reads, writes, waits)
        return writes[0][0]

    def _collect(self, value: int, of: Operator) -> Use | None:
        """Return the gradient of a value as (tensor, bytes); None if it has none.

        Gradients from several readers are added, and gradients of slices concatenated.
        """
        gradients = self.gradients.pop(value, [])
        if not gradients:
            return None
        traced = self.forward.values[value]
        whole = [use for use in gradients if use[1] >= traced.byte_count]
        slices = [use for use in gradients if use[1] < traced.byte_count]
        if slices:
            joined = sum(byte_count for _, byte_count in slices)
            operation = "cat" if joined >= traced.byte_count else "pad"
            whole.append((self._join(value, of, operation, "data_movement", slices), traced.byte_count))
        while len(whole) > 1:
            first, second, *rest = whole
            whole = [(self._join(value, of, "add", "elementwise", (first, second)), traced.byte_count), *rest]
        return whole[0]

    def _join(self, value: int, of: Operator, operation: str, kind: str, parts: Iterable[Use]) -> int:
        traced = self.forward.values[value]
        adds = operation == "add"
        cost = Cost(kind=kind, operation=operation, elementwise_count=traced.element_count if adds else 0)
        name, aten = ("sum", "aten.add.Tensor") if adds else ("join", "aten.cat.default")
        operator = cost.operator(f"{of.name}.backward.{name}", of.module_path, aten, traced.shape, of.dtype)
        made = self._add_gradient(operator, parts, ((value, traced.byte_count),))
        self.gradients.pop(value)
        return made

    def _attend(self, part: Gradient, index: int, upstream: Use) -> None:
        """Write the gradient of an attention in three operators: recomputed scores and softmax with dv, ds with dq, and
        dk.

        Scores and their gradients never leave the chip.
        """
        calls, values = self.forward.calls, self.forward.values
        scores, softmax, summed = (calls[index - back].operator for back in (2, 1, 0))
        query, key, value, result, statistics = (
            (self._read(one, "backward"), byte_count) for one, byte_count in part.reads
        )
        inner = values[calls[index - 2].writes[0][0]]
        wanted = {use[0] for use in part.results}
        results = dict(zip("qkv", part.reads[:3], strict=True))
        base = f"{summed.name}.backward"

        def pass_on(operator: Operator, name: str, reads: Iterable[Use], waits: Iterable[int] = ()) -> int:
            made = self.tape.put(attrs.evolve(inner, memory=None, role="activation"))
            self.tape.call(
                attrs.evolve(operator, name=self.name(f"{base}.{name}")), reads, ((made, inner.byte_count),), waits
            )
            return made

        def give(operator: Operator, name: str, reads: Iterable[Use], of: str) -> None:
            use = results[of]
            count = self.forward.count(use)
            shown = attrs.evolve(operator, name=f"{base}.{name}", output_shape=(count,), output_element_count=count)
            made = self._add_gradient(shown, reads, (use,))
            if use[0] not in wanted:
                self.gradients[use[0]] = [one for one in self.gradients[use[0]] if one[0] != made]

        def whole(tensor: int) -> Use:
            return tensor, inner.byte_count

        shape = scores.gemm_m, scores.gemm_n, scores.gemm_k
        again = pass_on(scores, "scores_again", (query, key))
        weights = pass_on(softmax, "softmax_again", (whole(again), statistics))
        give(summed, "value", (upstream, whole(weights)), "v")
        dp = attrs.evolve(scores, gemm_k=summed.gemm_n, mac_count=summed.mac_count)
        raised = pass_on(dp, "weights", (upstream, value))
        slope = pass_on(softmax, "softmax", (whole(raised), result, statistics))
        dq = attrs.evolve(summed, gemm_n=shape[2], mac_count=scores.mac_count)
        give(dq, "query", (key, whole(slope)), "q")
        dk = attrs.evolve(dq, aten="aten.bmm.default", gemm_m=shape[1], gemm_k=shape[0])
        give(dk, "key", (query,), "k")

    def _finish(self, weight: int) -> None:
        """Complete the gradient of a weight; if it is the last one of its bucket, exchange the bucket."""
        unit = self.unit_of[weight]
        operator = next(call.operator for call in self.forward.calls if weight in {use[0] for use in call.reads})
        use = self._collect(weight, operator)
        if use is not None:
            unit.gradients[weight] = use[0]
            if self.recipe.zero < 2 and not self.recipe.adds:
                self.tape.keep(use[0])
            elif self.recipe.zero < 2:
                self.add_up(use[0], operator.name, operator.module_path)
            tensor = self.tape.tensors[use[0]]
            self.tape.tensors[use[0]] = attrs.evolve(tensor, name=f"{self.forward.values[weight].name}.gradient")
        unit.waiting.discard(weight)
        if not unit.waiting and unit.gradients:
            self.exchange(unit)
