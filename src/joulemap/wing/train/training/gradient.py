"""Gradients of operators by kind: operations, reads and writes, from the operator's counts.

With M, N, K of a GEMM, dy the incoming gradient and x, W the operands:

    dx = dy W      M x K/taps x N taps          as many MACs as the GEMM
    dW = dy x      N x K x M                    as many again; no dx where nothing before the input is trained
    attention      recomputed scores, then four GEMMs of as many MACs: scores are not kept
    normalization  reads dy and x twice: once for its weights and sums, once for its result
    elementwise    reads dy and the kept input or output; an addition passes dy on as it is
    pooling        spreads dy by the kept indices; a sum spreads it evenly
    table rows     zeros as large as the table, and dy added at the gathered rows

Source: PyTorch, tools/autograd/derivatives.yaml (recalled); tests compare MACs with torch.utils.flop_counter, and kept
tensors with torch.autograd.graph.saved_tensors_hooks; attention: Dao, FlashAttention-2, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.physics import Operator
from joulemap.physics.fuse.group import GATHERING, JOINING
from joulemap.physics.workload import OPERANDS
from joulemap.system import frozen
from joulemap.wing.train.training.forward import ATTENTION, LOSS, SAVES_INPUT, SAVES_OUTPUT, Forward
from joulemap.wing.train.training.tape import Call, Use

ADDING: Final = frozenset({"add", "sub", "rsub", "neg", "masked_fill", "copy"})
"""Elementwise functions whose gradient equals the incoming gradient."""

MIRRORED: Final[Mapping[str, str]] = {
    "all_reduce": "all_reduce",
    "all_gather": "reduce_scatter",
    "reduce_scatter": "all_gather",
    "all_to_all": "all_to_all",
    "send": "send",
}
"""Collective of the forward pass -> collective of its gradient. Source: Shoeybi et al., Megatron-LM, 2019 (f and g)."""

PLAIN: Final[Mapping[str, str]] = {"conv": "linear", "grouped_conv": "matmul"}
"""Kind of a convolution -> kind of the GEMM that computes its weight gradient.

That GEMM has few outputs, each a sum over all positions, which libraries split over units like any such GEMM.
"""

PRODUCTS: Final = frozenset({"conv", "depthwise_conv", "grouped_conv", "linear", "matmul"})


@frozen(kw_only=True)
class Gradient:
    """Operator that computes part of another operator's gradient."""

    results: tuple[Use, ...]
    """Values of the forward pass whose gradients are computed, each with its bytes."""
    what: str = ""
    """Suffix of the operator's name, after `backward`."""
    operator: Operator | None = None
    """Operator that computes the gradient; None if dy is passed on unchanged."""
    reads: tuple[Use, ...] = ()
    """Tensors of the forward pass that the operator reads."""
    takes: int | None = None
    """Bytes of dy that the operator reads; None for all."""
    is_first: bool = False
    """True if no dy is needed, as for the gradient of a loss."""


@frozen
class Backward:
    """Operator of the forward pass whose gradient is derived, and the values that need one."""

    forward: Forward
    call_index: int
    needs: frozenset[int]

    @property
    def call(self) -> Call:
        """Call of the operator in the forward pass."""
        return self.forward.calls[self.call_index]

    @property
    def result(self) -> Use:
        """First output of the call."""
        return self.call.writes[0]

    def wanted(self) -> tuple[Use, ...]:
        """Return the operator's reads that need a gradient."""
        return tuple(use for use in self.call.reads if use[0] in self.needs)

    def count(self, use: Use) -> int:
        """Return the number of elements in part of a value, given as (value, bytes)."""
        return self.forward.count(use)

    def part(self, results: tuple[Use, ...], what: str = "", *reads: Use, **counts: Any) -> Gradient:
        """Return the gradient of `results` as an operator like that of the forward pass.

        Its counts are 0 except for those given in `counts`.
        """
        operator = self.call.operator
        count = sum(map(self.count, results))
        value = self.forward.values[results[0][0]]
        is_whole = len(results) == 1 and results[0][1] >= value.byte_count
        plain: dict[str, Any] = {
            "mac_count": 0, "elementwise_count": 0, "special_count": 0, "gemm_m": 0, "gemm_n": 0, "gemm_k": 0,
            "gemm_groups": 0, "tap_count": 1, "is_foldable": False, "variant": "", "output_element_count": count,
            "output_shape": value.shape if is_whole else (count,),
            "step_count": operator.step_count if operator.mac_count else 1,
            "aten": f"aten.{operator.operation}_backward.default",
        }  # fmt: skip
        name = ".".join(filter(None, (operator.name, "backward", what)))
        return Gradient(
            results=results, what=what, reads=reads, operator=attrs.evolve(operator, name=name, **{**plain, **counts})
        )

    def sum_up(self, use: Use, what: str = "") -> Gradient:
        """Return the gradient that sums dy over the broadcast dimensions of an operand."""
        count, upstream = self.count(use), self.count(self.result)
        return self.part(
            (use,), what, kind="reduction", operation="reduce", aten="aten.sum.dim_IntList",
            elementwise_count=upstream + count,
        )  # fmt: skip


Rule = Callable[[Backward], Iterator[Gradient]]


def differentiate(one: Backward) -> Iterator[Gradient]:
    """Yield the operators that compute an operator's gradient."""
    operator = one.call.operator
    if operator.module_path == LOSS and operator.operation == "log_softmax":
        yield from _lose(one)
    elif operator.aten == ATTENTION:
        yield from _attend(one)
    elif operator.kind in PRODUCTS and operator.mac_count:
        yield from _multiply(one)
    elif operator.operation == "batch_norm" or operator.kind == "normalization":
        yield from _normalize(one)
    else:
        yield from _RULES.get(operator.kind, _compute)(one)


def _lose(one: Backward) -> Iterator[Gradient]:
    (kept,) = one.call.extras
    logits = one.call.reads[0]
    count = one.count(logits)
    made = one.part((logits,), "", (kept, one.forward.values[kept].byte_count), kind="softmax",
                    aten="aten._log_softmax_backward_data.default", elementwise_count=2 * count,
                    special_count=count)  # fmt: skip
    yield attrs.evolve(made, is_first=True)


def _multiply(one: Backward) -> Iterator[Gradient]:
    """Yield the gradients of a GEMM: a GEMM for each operand, with equal MACs, and the sum for a bias."""
    operator, reads, values = one.call.operator, one.call.reads, one.forward.values
    index = next(
        (at for at, (value, _) in enumerate(reads) if at and values[value].role == "parameter"
         and len(values[value].shape) > 1), min(1, len(reads) - 1)
    )  # fmt: skip
    sources, weight, others = reads[:index] or reads, reads[index], reads[index + 1 :]
    m, n, k = operator.gemm_m, operator.gemm_n, operator.gemm_k
    taps = 1 if operator.operation.startswith("conv_transpose") else max(operator.tap_count, 1)
    counts: dict[str, Any] = {
        "mac_count": operator.mac_count,
        "gemm_groups": operator.gemm_groups,
        "variant": operator.variant,
    }
    wanted = tuple(use for use in sources if use[0] in one.needs)
    if wanted:
        yield one.part(wanted, "input", weight, gemm_m=m, gemm_n=k // taps, gemm_k=n * taps, tap_count=taps, **counts)
    if weight[0] in one.needs and index:
        kind = PLAIN.get(operator.kind, operator.kind)
        counts["variant"] = f"{operator.variant} {OPERANDS}".strip()
        yield one.part((weight,), "weight", *sources, kind=kind, gemm_m=n, gemm_n=k, gemm_k=m, **counts)
    for use in others:
        if use[0] in one.needs:
            yield one.sum_up(use, "bias")


def _attend(one: Backward) -> Iterator[Gradient]:
    """Yield the gradients of keys, values and queries as one kernel, with recomputed scores and softmax."""
    calls = one.forward.calls
    scores, softmax, summed = (calls[one.call_index - back] for back in (2, 1, 0))
    if summed.operator.kind != "matmul" or not summed.extras:
        return
    inner = {value for value, _ in (*scores.writes, *softmax.writes)}
    query, key = scores.reads[0], scores.reads[1] if len(scores.reads) > 1 else scores.reads[0]
    apart = [use for use in summed.reads if use[0] not in inner]
    value = apart[0] if apart else key
    (kept,) = summed.extras
    statistics = kept, one.forward.values[kept].byte_count
    yield Gradient(
        results=tuple(use for use in (value, key, query) if use[0] in one.needs),
        what="attention",
        operator=summed.operator,
        reads=(query, key, value, one.result, statistics),
    )


def _normalize(one: Backward) -> Iterator[Gradient]:
    """Yield the gradients of weights and bias, which are sums over rows; then the gradient of the input."""
    source, *weights = one.call.reads
    trained = tuple(use for use in weights if use[0] in one.needs)
    statistics = tuple((extra, one.forward.values[extra].byte_count) for extra in one.call.extras)
    count = one.count(one.result)
    if trained:
        width = sum(map(one.count, trained))
        yield one.part(
            trained, "weight", source, *statistics, kind="reduction", operation="reduce", aten="aten.sum.dim_IntList",
            elementwise_count=4 * count + width,
        )  # fmt: skip
    if source[0] in one.needs:
        operator = one.call.operator
        yield one.part(
            (source,), "input", source, *statistics, *weights[:1], elementwise_count=8 * count, kind=operator.kind,
            special_count=operator.special_count, aten=f"aten.native_{operator.operation}_backward.default",
        )  # fmt: skip


def _compute(one: Backward) -> Iterator[Gradient]:
    """Yield the gradient of each operand of an elementwise function; also used for operations without a rule."""
    operator = one.call.operator
    upstream = one.count(one.result)
    for use in dict.fromkeys(one.wanted()):
        others = tuple(other for other in one.call.reads if other != use)
        if operator.operation in ADDING:
            kept: tuple[Use, ...] | None = None
        elif operator.operation in ("mul", "div"):
            kept = others + ((use,) if operator.operation == "div" and use != one.call.reads[0] else ())
        elif operator.operation in SAVES_OUTPUT:
            kept = (one.result,)
        elif operator.operation == "rotary" or operator.operation.startswith("upsample"):
            kept = tuple(other for other in others if other[0] not in one.needs)
        else:
            kept = tuple(one.call.reads)
        what = "" if len(one.wanted()) == 1 else f"input_{one.call.reads.index(use)}"
        is_spread = one.count(use) < upstream and operator.operation in (*ADDING, "mul", "div")
        if kept is None and is_spread:
            yield one.sum_up(use, what)
        elif kept is None:
            yield Gradient(results=(use,))
        else:
            is_light = operator.operation not in SAVES_INPUT
            count = one.count(use)
            made = one.part(
                (use,), what, *kept, elementwise_count=(2 if is_light else 8) * max(count, upstream),
                special_count=0 if is_light else operator.special_count,
                kind="reduction" if is_spread else "elementwise",
                operation="reduce" if is_spread else "gradient",
            )  # fmt: skip
            yield attrs.evolve(made, takes=use[1]) if operator.operation == "rotary" else made


def _normalize_rows(one: Backward) -> Iterator[Gradient]:
    """Yield the gradient of a softmax, which follows from its output."""
    for use in one.wanted():
        yield one.part((use,), "", one.result, elementwise_count=4 * one.count(one.result),
                       aten="aten._softmax_backward_data.default")  # fmt: skip


def _move(one: Backward) -> Iterator[Gradient]:
    """Yield the gradient of a data movement: dy itself for a join, a move back, or an addition at the gathered rows."""
    operator = one.call.operator
    for use in one.wanted():
        if operator.operation in JOINING and operator.operation != "repeat":
            yield Gradient(results=(use,), takes=use[1])
        elif operator.operation in GATHERING:
            whole = use[0], one.forward.values[use[0]].byte_count
            yield one.part((whole,), "", operation="index_put", elementwise_count=one.count(one.result),
                           aten="aten.index_put_.default")  # fmt: skip
        elif operator.operation == "repeat":
            yield one.sum_up(use)
        else:
            yield one.part((use,), "")


def _pool(one: Backward) -> Iterator[Gradient]:
    """Yield the gradient of a pooling: each window spreads its gradient over its inputs."""
    operator = one.call.operator
    kept = tuple((extra, one.forward.values[extra].byte_count) for extra in one.call.extras)
    for use in one.wanted():
        held = use[0], 0  # frameworks read only the shape of this tensor but keep all of it
        yield one.part((use,), "", *kept, held, tap_count=operator.tap_count, elementwise_count=one.count(use))


def _spread(one: Backward) -> Iterator[Gradient]:
    """Yield the gradient of a reduction, which is equal for all its inputs."""
    for use in one.wanted():
        yield one.part((use,), "", kind="elementwise", operation="gradient", elementwise_count=one.count(use),
                       aten="aten.expand_backward.default")  # fmt: skip


def _exchange(one: Backward) -> Iterator[Gradient]:
    operator = one.call.operator
    operation = MIRRORED[operator.operation]
    for use in one.wanted():
        count = operator.output_element_count
        made = one.part((use,), "", operation=operation, gemm_groups=operator.gemm_groups, variant=operator.variant,
                        elementwise_count=operator.elementwise_count, aten=f"aten.{operation}.default")  # fmt: skip
        assert made.operator is not None
        yield attrs.evolve(made, operator=attrs.evolve(made.operator, output_element_count=count))


_RULES: Final[Mapping[str, Rule]] = {
    "softmax": _normalize_rows,
    "data_movement": _move,
    "pool": _pool,
    "reduction": _spread,
    "communication": _exchange,
}
"""Kind -> rule of its gradient; GEMMs and normalizations are handled separately, all other kinds are elementwise."""
