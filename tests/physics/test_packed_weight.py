"""Weights as checkpoints store them: bytes worked out by hand, the work and the kernels of the float model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.catalog.load import load_catalogue
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import Workload
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.system.errors import ModelError
from joulemap.trace.module import build_on_meta
from joulemap.trace.packed.convert import store_weights
from models import patterns, trace
from packed_case import AWQ, COLUMNS, COUNT, FP8, GPTQ, INT8, NF4, ROWS, STORED, compressed

EXPERTS, TAKEN = 8, 2


NARROW = (
    "llm.int8", "fp8", "fp8 with one scale", "fp8 with scales of 8 bits", "mxfp8", "fbgemm", "compressed int8 of both",
    "compressed nvfp4", "modelopt fp8", "modelopt nvfp4", "torchao int8 by an old name", "torchao fp8 of both",
)  # fmt: skip
"""Cases whose products have two narrow operands."""


class Network(nn.Module):
    """Layers that repeat, one of which is stored by a checkpoint, and a head that is not."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.layers = nn.ModuleList([nn.Linear(COLUMNS, ROWS, bias=False)])
            self.head = nn.Linear(ROWS, 64, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(functional.relu(self.layers[0](x)))
        return out

    def get_output_embeddings(self) -> nn.Module:
        return self.head


def network(values: dict[str, Any] | None) -> tuple[Workload, tuple[str, ...]]:
    module = Network()
    named = None if values is None else {"ignore": ["head"], **values}
    notes = store_weights(module, named, "config.json")
    return trace(module, torch.empty(4, COLUMNS, device="meta")), notes


@pytest.mark.parametrize("name", STORED)
def test_a_product_reads_what_is_stored(name: str) -> None:
    values, stored = STORED[name]
    module = Network()
    notes = store_weights(module, {"ignore": ["head"], "modules_to_not_convert": ["head"], **values}, "config.json")
    workload, wide = trace(module, torch.empty(4, COLUMNS, device="meta")), network(None)[0]
    assert len(notes) == 1 and notes[0].endswith("; head not converted")
    columns = columns_of(workload)
    head = 64 * ROWS
    for precision, width in (("fp32", 4), ("bf16", 2)):
        assert Widths(columns, precision).weight_bytes == stored + width * head
        kernels = form_kernels(columns, precision, "fused")
        assert kernels.weight_bytes.sum() == stored + width * head
        assert kernels.kernel_count == form_kernels(columns_of(wide), precision, "fused").kernel_count == 2
        eager = form_kernels(columns, precision, "eager")
        assert eager.weight_bytes.sum() == stored + width * head
        assert eager.kernel_count == form_kernels(columns_of(wide), precision, "eager").kernel_count == 3
    assert workload.mac_count == wide.mac_count == 4 * (COUNT + head)
    assert workload.parameter_count == wide.parameter_count == COUNT + head
    assert patterns(workload) == ["linear+relu" if name in NARROW else "dequantize+linear+relu", "linear"]
    (product,) = (one for one in workload.operators if one.name == "layers.0")
    assert (product.kind, product.gemm_m, product.gemm_n, product.gemm_k) == ("linear", 4, ROWS, COLUMNS)
    assert Widths(columns, "bf16").peak_activation_bytes(is_fused=True) < COUNT


def test_what_makes_operands_wide_or_narrow_is_counted() -> None:
    def elementwise(values: dict[str, Any]) -> dict[str, int]:
        return {one.name: one.elementwise_count for one in network(values)[0].operators if one.elementwise_count}

    # convert, subtract, scale
    assert elementwise(GPTQ) == {"layers.0.dequantize": 3 * COUNT, "relu": 4 * ROWS}
    assert elementwise(NF4)["layers.0.dequantize"] == 2 * COUNT
    # magnitude, largest, scale and convert of each input; scale and add of each of two blocks of 128
    assert elementwise(FP8)["layers.0"] == 4 * 4 * COLUMNS + 2 * 2 * 4 * ROWS
    assert elementwise({"load_in_8bit": True})["layers.0"] == 4 * 4 * COLUMNS + 2 * 4 * ROWS
    # the scale of activations is known
    assert elementwise({"quant_method": "modelopt", "quant_algo": "FP8"})["layers.0"] == 2 * 4 * COLUMNS + 2 * 4 * ROWS


@pytest.mark.parametrize("name", ["l4", "xeon_8490h", "tpu_v5e", "kpu_t256"])
def test_a_run_is_that_of_weights_narrowed_alike(name: str) -> None:
    hardware = load_catalogue().find(name)
    plain = {"num_bits": 4, "strategy": "group", "group_size": 128, "symmetric": True}
    packed, wide = columns_of(network(compressed(plain))[0]), columns_of(network(None)[0])
    runs = [
        Evaluator(work).evaluate(hardware, Configuration(hardware=name, precision="bf16", weight_precision=weights))
        for work, weights in ((packed, "int4:128"), (wide, "int4:128"), (wide, ""))
    ]
    stored, asked, usual = runs
    assert stored.weight_bytes == asked.weight_bytes < usual.weight_bytes
    assert stored.operators.moved_bytes.sum() == asked.operators.moved_bytes.sum()
    if name != "xeon_8490h":  # weights in its cache save no time, and a core converts them
        assert stored.operators.latency_fs.sum() <= usual.operators.latency_fs.sum()


def test_a_precision_of_weights_that_is_asked_for_leaves_what_is_stored() -> None:
    columns = columns_of(network(GPTQ)[0])
    head = 64 * ROWS
    assert Widths(columns, "bf16", "int8:128").weight_bytes == STORED["gptq"][1] + head + head // 128 * 2
    assert form_kernels(columns, "bf16", "fused", "int8:128").weight_bytes.sum() == (
        STORED["gptq"][1] + head + head // 128 * 2
    )


class Experts(nn.Module):
    """Matrices of all experts, and the ways that models multiply by them."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.is_transposed = way == "bmm"
        with build_on_meta():
            shape = (EXPERTS, COLUMNS, ROWS) if self.is_transposed else (EXPERTS, ROWS, COLUMNS)
            self.up_proj = nn.Parameter(torch.empty(shape))

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        if self.way == "bmm":
            return torch.bmm(x.expand(EXPERTS, *x.shape), self.up_proj)
        if self.way == "loop":
            rows = [functional.linear(x, self.up_proj[expert]) for expert in range(TAKEN)]
            return torch.stack(rows)
        order = chosen.flatten().argsort()
        ends = torch.bincount(chosen.flatten(), minlength=EXPERTS).cumsum(0).to(torch.int32)
        out: Tensor = torch._grouped_mm(x[order // TAKEN], self.up_proj.transpose(-2, -1), offs=ends)
        return out


class Routed(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        with build_on_meta():
            self.router = nn.Linear(COLUMNS, EXPERTS, bias=False)
        self.experts = Experts(way)

    def forward(self, x: Tensor) -> Tensor:
        chosen = torch.topk(self.router(x), TAKEN).indices
        out: Tensor = self.experts(x, chosen)
        return out


@pytest.mark.parametrize(("way", "hit"), [("grouped", TAKEN), ("loop", TAKEN), ("bmm", EXPERTS)])
@pytest.mark.parametrize("method", ["mxfp4", "fp8"])
def test_only_the_experts_that_are_hit_are_read(way: str, hit: int, method: str) -> None:
    wide, module = trace(Routed(way), torch.empty(1, COLUMNS, device="meta")), Routed(way)
    values = {"quant_method": method, "modules_to_not_convert": ["router"]}
    (note,) = store_weights(module, values, "config.json")
    assert note.endswith("; router not converted")
    workload = trace(module, torch.empty(1, COLUMNS, device="meta"))
    each = COUNT // 2 + COUNT // 32 if method == "mxfp4" else COUNT + (ROWS // 128) * (COLUMNS // 128) * 4
    router = COLUMNS * EXPERTS * 2
    columns = columns_of(workload)
    assert Widths(columns, "bf16").weight_bytes == EXPERTS * each + router
    kernels = form_kernels(columns, "bf16", "fused")
    assert kernels.weight_bytes.sum() == hit * each + router
    assert kernels.kernel_count == form_kernels(columns_of(wide), "bf16", "fused").kernel_count
    assert workload.mac_count == wide.mac_count == COLUMNS * EXPERTS + hit * COUNT
    made_wide = sum(one.elementwise_count for one in workload.operators if one.operation == "dequantize")
    assert made_wide == (hit * COUNT * 2 if method == "mxfp4" else 0)
    assert workload.parameter_count == EXPERTS * (COUNT + COLUMNS)


def test_experts_may_be_narrower_than_the_rest() -> None:
    module = Routed("grouped")
    store_weights(module, {**FP8, "expert_dtype": "fp4", "modules_to_not_convert": []}, "config.json")
    workload = trace(module, torch.empty(1, COLUMNS, device="meta"))
    router = EXPERTS * COLUMNS + (COLUMNS // 128) * 4
    assert Widths(columns_of(workload), "bf16").weight_bytes == router + EXPERTS * (COUNT // 2 + COUNT // 32 * 4)
    # made wide to fp8, and multiplied by activations that are made narrow
    (product,) = (one for one in workload.operators if one.operation == "grouped_mm")
    assert product.elementwise_count == TAKEN * (4 * COLUMNS + 2 * ROWS)
    assert [one.elementwise_count for one in workload.operators if one.operation == "dequantize"] == [TAKEN * COUNT * 2]


class Transposed(nn.Module):
    """A linear layer whose weight lies the other way, as GPT-2 has it, and one that is used in another way."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.odd = nn.Linear(COLUMNS, ROWS)
            self.conv = Conv1D()

    def forward(self, x: Tensor) -> Tensor:
        scaled = functional.linear(x, self.odd.weight * 2.0, self.odd.bias) @ self.odd.weight.to(x.dtype)
        out: Tensor = self.conv(scaled)
        return out


class Conv1D(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(COLUMNS, ROWS))
        self.bias = nn.Parameter(torch.empty(ROWS))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)


def test_a_weight_may_lie_the_other_way_or_be_used_in_another() -> None:
    module = Transposed()
    assert store_weights(module, {**NF4, "llm_int8_skip_modules": []}, "config.json") == (
        "quantization_config: bitsandbytes, nf4 in groups of 64",
    )
    workload = trace(module, torch.empty(4, COLUMNS, device="meta"))
    assert workload.mac_count == 4 * 3 * COUNT
    stored = STORED["nf4"][1]
    read = sum(one.fused_byte_count for one in workload.accesses if one.role == "weight" and not one.item_bytes)
    assert read == 3 * stored
    assert sum(pattern.startswith("dequantize") for pattern in patterns(workload)) == 3
    assert Widths(columns_of(workload), "fp32").weight_bytes == 2 * stored + 2 * ROWS * 4
    names = {tensor.name for tensor in workload.tensors if tensor.role == "parameter"}
    assert names == {
        "odd.weight_packed", "odd.weight_scale", "odd.bias", "conv.weight_packed", "conv.weight_scale", "conv.bias",
    }  # fmt: skip


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "what is named": ({**AWQ, "modules_to_not_convert": ["layers"]}, "no weights of this model are converted"),
    "by its end": ({**FP8, "modules_to_not_convert": ["head"]}, "head not converted"),
    "nothing": ({**FP8, "modules_to_not_convert": []}, "rate)"),
    "all, and outside of blocks": ({**GPTQ, "dynamic": {"-:.*0": {}}}, "no weights of this model are converted"),
    "ends that alone are meant": (
        {**GPTQ, "modules_in_block_to_quantize": [["up"]]}, "no weights of this model are converted",
    ),
    "a head that is converted": ({**GPTQ, "lm_head": True}, "head not converted"),
    "an expression": (compressed(INT8, ignore=["re:.*ea.*"]), "head not converted"),
    "a class": (compressed(INT8, ignore=["Linear"]), "no weights of this model are converted"),
    "a part of a name is none": (compressed(INT8, ignore=["layers"]), "8 bits with a scale a row"),
    "anything behind a name": (
        {"quant_method": "modelopt", "quant_algo": "fp8", "exclude_modules": ["lay*"]}, "layers.0 not converted",
    ),
    "matrices of no experts": ({"quant_method": "mxfp4"}, "no weights of this model are converted"),
    "zeros that are not stored": (
        compressed(INT8, ignore=["head"], sparsity_config={"format": "sparse-24-bitmask"}),
        ", zeros of sparse weights counted; head not converted",
    ),
    "a part of a model of several inputs": (compressed(INT8, ignore=["language_model.head"]), "; head not converted"),
    "wide as it is loaded": ({**FP8, "dequantize": True}, "weights are at the precision asked for"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_converted_is_told(name: str) -> None:
    values, end = LEFT[name]
    (note,) = store_weights(Network(), values, "config.json")
    assert note.endswith(end)


def test_settings_of_some_modules_may_differ() -> None:
    workload, _ = network({**GPTQ, "dynamic": {"+:layers": {"bits": 8, "group_size": 64}}})
    assert Widths(columns_of(workload), "bf16").weight_bytes == COUNT + COUNT // 64 * 3 + 2 * 64 * ROWS


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"quant_method": "aqlm"}, "aqlm"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED"}, "modelopt MIXED"),
        ({"quant_method": "torchao", "quant_type": "autoquant"}, "torchao autoquant"),
    ],
)
def test_a_method_that_is_not_read_is_told(values: dict[str, Any], told: str) -> None:
    workload, notes = network(values)
    assert notes == (
        f"quantization_config says {told}, which is not read: weights are counted at the precision asked for; "
        "--weight-precision int4 narrows them",
    )
    assert Widths(columns_of(workload), "bf16").weight_bytes == 2 * (COUNT + 64 * ROWS)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bits": 4}, "has no quant_method"),
        ({"quant_method": "gptq"}, "has no bits"),
        ({**GPTQ, "bits": "four"}, "bits of the quantization_config is 'four', expected a whole number"),
        ({**GPTQ, "bits": 16}, "bits of the quantization_config is 16, expected 1 to 8"),
        ({**GPTQ, "group_size": 0}, "group_size of the quantization_config is 0, expected 1 or more, or -1"),
        ({**AWQ, "modules_to_not_convert": "head"}, "modules_to_not_convert of the quantization_config is not a list"),
        ({**FP8, "weight_block_size": [128]}, r"is \[128\], expected two sizes"),
        ({"quant_method": "bitsandbytes"}, "says neither 4 nor 8 bits"),
        ({"quant_method": "compressed-tensors"}, "has no config_groups with weights"),
        (compressed({"num_bits": 4, "strategy": "other"}), "the strategy other of the quantization_config"),
        ({**GPTQ, "quant_method": "auto-round", "packing_format": "llm"}, "packing_format llm"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=f"config.json: .*{message}"):
        store_weights(Network(), values, "config.json")
