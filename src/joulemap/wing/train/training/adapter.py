"""Low-rank adapters on the frozen linear layers of a forward pass (LoRA), and a quantized base (QLoRA).

    y = x W + (x A) B s        W frozen, n x k;  A: r x k;  B: n x r

All weights of the base are frozen; only A and B have gradients and optimizer state. A GEMM of the frozen base still
passes a gradient to its input where an earlier adapter is trained.

Source: Hu et al., LoRA, 2021; Dettmers et al., QLoRA, 2023; default layers of PEFT, utils/constants.py (recalled).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

import attrs

from joulemap.physics import KEPT, PRECISION_BYTES, ROUTED, STORED_AS, UNPACKED, Operator, read_weight_format
from joulemap.system import FROZEN, ModelError, UsageError
from joulemap.trace.formula import Cost
from joulemap.wing.train.training.forward import LOSS, Forward, is_weight
from joulemap.wing.train.training.recipe import ALL_LINEAR, BASE_FORMATS, Recipe
from joulemap.wing.train.training.tape import Call, Use, Value

DEFAULT_TARGETS: Final = (
    ("q_proj", "v_proj"),
    ("query", "value"),
    ("q_lin", "v_lin"),
    ("q", "v"),
    ("to_q", "to_v"),
    ("query_key_value",),
    ("qkv_proj",),
    ("qkv",),
    ("Wqkv",),
    ("c_attn",),
)
"""Names of the query and value projections, by family; the first family fully present in a model applies. Source:
PEFT's TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING (recalled)."""

SHOWN: Final = 12
"""Maximum layer names in an error."""

HEAD: Final = "lm_head"
"""Module that computes the logits; `all` leaves it out, as PEFT does."""


@attrs.frozen
class _Layer:
    """Linear layer of the forward pass: its call, its module and its weight."""

    call_index: int
    module: str
    weight: int


def adapt(forward: Forward, recipe: Recipe, model: str, devices: int) -> None:
    """Freeze the weights of a forward pass and add an adapter to each target layer, in place.

    `devices` is the number of devices that share each GEMM. Raises UsageError for a target that no linear layer has or
    a rank above a layer's smaller side, ModelError for a model without linear layers.
    """
    layers = _find_layers(forward)
    if not layers:
        raise ModelError(f"{model} has no linear layers, which LoRA adapts: train it without --lora")
    chosen = {one.call_index: one for one in _choose(layers, recipe.targets, model)}
    for one in chosen.values():
        _check_rank(forward.calls[one.call_index].operator, one.module, recipe.lora, devices)
    for index, value in enumerate(forward.values):
        if is_weight(value) and not value.name.endswith(FROZEN):
            forward.values[index] = attrs.evolve(value, name=f"{value.name}{FROZEN}")
    if recipe.quantize:
        forward.calls = [_store(forward, call, recipe.quantize) for call in forward.calls]
    calls: list[Call] = []
    adapters: dict[tuple[str, int], tuple[int, int]] = {}
    for position, call in enumerate(forward.calls):
        if position in chosen:
            calls += _add_adapter(forward, call, chosen[position], recipe.lora, adapters)
        else:
            calls.append(call)
    forward.calls = calls


def _find_weight(forward: Forward, call: Call) -> int | None:
    """Return the index of a call's weight matrix; None if it has none."""
    return next(
        (
            value
            for value, _ in call.reads
            if forward.values[value].role == "parameter" and len(forward.values[value].shape) > 1
        ),
        None,
    )


def _find_layers(forward: Forward) -> list[_Layer]:
    """Return the linear layers of a forward pass in order."""
    layers = []
    for index, call in enumerate(forward.calls):
        operator = call.operator
        weight = _find_weight(forward, call)
        if operator.kind != "linear" or not operator.mac_count or operator.gemm_groups > 1 or weight is None:
            continue
        if operator.module_path == LOSS or not call.writes:
            continue
        name = forward.values[weight].name.removesuffix(FROZEN)
        layers.append(_Layer(index, _name_module(operator.module_path, name), weight))
    return layers


def _name_module(path: str, weight: str) -> str:
    """Return the module of a GEMM from the path of its call and the name of its weight.

    A parent module may multiply by the weight of a child. Logits may be computed with the weight of an embedding.
    """
    owner, _, last = weight.rpartition(".")
    if last != "weight":
        return weight
    return owner if not path or owner.startswith(f"{path}.") else path


def _is_target(module: str, target: str) -> bool:
    return module == target or module.endswith(f".{target}") or fnmatchcase(module, target)


def _choose(layers: Sequence[_Layer], targets: Sequence[str], model: str) -> list[_Layer]:
    """Return the layers that the targets name; without targets, the query and value projections."""
    if tuple(targets) == (ALL_LINEAR,):
        return [one for one in layers if not _is_target(one.module, HEAD)]

    def is_there(target: str) -> bool:
        return any(_is_target(one.module, target) for one in layers)

    if not targets:
        targets = next((names for names in DEFAULT_TARGETS if all(map(is_there, names))), ())
        if not targets:
            raise UsageError(
                f"{model} has no query and value projections that LoRA adapts by default: name linear layers with "
                f"--lora-targets, or {ALL_LINEAR}; it has {_list_names(layers)}"
            )
    for target in targets:
        if not is_there(target):
            raise UsageError(f"--lora-targets {target}: {model} has no such linear layer; it has {_list_names(layers)}")
    return [one for one in layers if any(_is_target(one.module, target) for target in targets)]


def _list_names(layers: Iterable[_Layer]) -> str:
    tails = [(one.module, one.module.rpartition(".")[2]) for one in layers]
    spelled = (
        re.sub(r"\d+(?=.*\.)", "*", module) if tail.isdecimal() else tail or f"one without a name ({ALL_LINEAR})"
        for module, tail in tails
    )
    names = list(dict.fromkeys(spelled))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _check_rank(operator: Operator, module: str, rank: int, devices: int) -> None:
    rows, columns = operator.gemm_n, operator.gemm_k
    most = min(max(rows, columns), min(rows, columns) * devices)
    if rank > most:
        raise UsageError(
            f"--lora {rank} is above the smaller side of {module}, {rows} x {columns}: give at most {most}"
        )


def _store(forward: Forward, call: Call, quantize: str) -> Call:
    """Return a call whose weight is stored in a narrow format. A separate kernel dequantizes it to memory before each
    GEMM: forward, backward, and again where the forward pass is recomputed.

    The operator lists the format for every precision of a run, because a step's name states no precision. Source:
    bitsandbytes, `MatMul4Bit`, whose `forward` and `backward` dequantize. LoRA is 66 % faster than QLoRA (Vertex AI,
    LoRA and QLoRA recommendations), and 7B takes 1.2 and 3 s per step of 256 tokens (QwenLM/Qwen, README.md, with
    GPTQ weights).
    """
    operator = call.operator
    is_product = (operator.kind == "linear" or operator.operation in ROUTED) and operator.mac_count
    words = [word for word in operator.variant.split() if word != UNPACKED]
    if not is_product or _find_weight(forward, call) is None or KEPT in words or _is_target(operator.module_path, HEAD):
        return call
    name = read_weight_format(BASE_FORMATS.get(quantize, quantize)).name
    kept = [word for word in words if STORED_AS not in word]
    narrow = read_weight_format(name).item_bytes
    marks = [f"{precision}{STORED_AS}{name}" for precision, width in PRECISION_BYTES.items() if width > narrow]
    return attrs.evolve(call, operator=attrs.evolve(operator, variant=" ".join([*kept, UNPACKED, *marks])))


def find_stored_bytes(operator: Operator) -> float:
    """Return the mean bytes of a weight that an operator reads in a narrow format; 0 if it reads none."""
    names = (word.partition(STORED_AS)[2] for word in operator.variant.split() if STORED_AS in word)
    return next((read_weight_format(name).width_bytes for name in names), 0.0)


def _add_adapter(
    forward: Forward, call: Call, layer: _Layer, rank: int, adapters: dict[tuple[str, int], tuple[int, int]]
) -> Iterable[Call]:
    """Yield the calls of a frozen layer with its adapter: the layer, two GEMMs, and the scaled sum.

    A module that is called twice has one adapter.
    """
    operator, (result, result_bytes) = call.operator, call.writes[0]
    value = forward.values[result]
    m, n, k = operator.gemm_m, operator.gemm_n, operator.gemm_k
    width = value.byte_count // max(value.element_count, 1)

    def add_tensor(shape: tuple[int, ...], count: int, name: str = "", role: str = "activation") -> Use:
        made = Value(
            shape=shape, dtype=value.dtype, byte_count=width * count, item_bytes=value.item_bytes, role=role, name=name
        )
        return forward.add(made), made.byte_count

    key = layer.module, layer.weight
    if key not in adapters:
        down, up = (
            add_tensor(shape, shape[0] * shape[1], f"{layer.module}.lora_{letter}.weight".lstrip("."), "parameter")
            for letter, shape in (("A", (rank, k)), ("B", (n, rank)))
        )
        adapters[key] = down[0], up[0]
    first, second = ((one, forward.values[one].byte_count) for one in adapters[key])
    source = next(use for use in call.reads if use[0] != layer.weight and forward.values[use[0]].role != "parameter")
    base, narrow, wide = add_tensor(value.shape, m * n), add_tensor((m, rank), m * rank), add_tensor(value.shape, m * n)

    def multiply(letter: str, rows: int, columns: int) -> Operator:
        cost = Cost(kind="linear", operation="linear", mac_count=m * rows * columns, gemm=(m, rows, columns, 1))
        path = f"{operator.module_path}.lora_{letter}".lstrip(".")
        shape = (m, rows) if letter == "A" else operator.output_shape
        return cost.operator(f"{operator.name}.lora_{letter}", path, "aten.linear.default", shape, operator.dtype)

    total = Cost(kind="elementwise", operation="add", elementwise_count=2 * m * n).operator(
        f"{operator.name}.lora_add", operator.module_path, "aten.add.Tensor", operator.output_shape, operator.dtype
    )
    yield attrs.evolve(call, writes=((base[0], base[1]), *call.writes[1:]))
    yield Call(operator=multiply("A", rank, k), reads=(source, first), writes=(narrow,), origin=call.origin)
    yield Call(operator=multiply("B", n, rank), reads=(narrow, second), writes=(wide,), origin=call.origin)
    yield Call(operator=total, reads=(base, wide), writes=((result, result_bytes),), origin=call.origin)
