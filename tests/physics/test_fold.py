"""Operators that a compiler leaves out, and formulas that it makes one operator of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.record.kind import KINDS
from joulemap.physics.record.runtime import RUNTIME
from models import columns

X = torch.empty(2, 16, 64, device="meta")


class Call(nn.Module):
    """Function of a tensor with the parameters of some modules."""

    def __init__(self, function: Callable[..., Tensor], *parts: nn.Module) -> None:
        super().__init__()
        self.parts, self.function = nn.ModuleList(parts), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.parts, x)


def form(module: nn.Module, x: Tensor, runtime: str) -> KernelColumns:
    return form_kernels(columns(module.to("meta"), x), "fp16", runtime)


def attend(x: Tensor, bias: float | None) -> Tensor:
    q, k, v = (x.view(2, 16, 4, 16).transpose(1, 2) for _ in range(3))
    scores = q @ k.transpose(-1, -2) / 4
    scores = scores if bias is None else scores + x.new_full((16, 16), bias).cumsum(0)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("runtime", "bias", "count"), [("fused", None, 2), ("engine", None, 2), ("engine", 1.0, 3)])
def test_an_attention_kernel_takes_any_strides(runtime: str, bias: float | None, count: int) -> None:
    kernels = form(Call(lambda m, x: m[0](attend(x, bias)), nn.Linear(64, 64)), X, runtime)
    assert kernels.kernel_count == count
    assert not kernels.work.of_operation("clone", "contiguous", "reshape").any()


def test_a_compiler_copies_around_attention_with_biases_of_positions() -> None:
    assert form(Call(lambda _, x: attend(x, 1.0)), X, "fused").work.of_operation("contiguous").any()


@pytest.mark.parametrize("runtime", RUNTIME)
def test_an_engine_pads_within_a_convolution(runtime: str) -> None:
    x = torch.empty(1, 8, 16, 16, device="meta")
    own = form(nn.Conv2d(8, 8, 3, padding=1), x, runtime)
    padded = form(nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(8, 8, 3)), x, runtime)
    assert padded.kernel_count == 1 + (not RUNTIME[runtime].is_built)
    if RUNTIME[runtime].is_built:
        assert padded.moved_bytes.sum() == own.moved_bytes.sum()
    twice = form(
        Call(
            lambda m, y: m[0](functional.pad(y, (1,) * 4)) + functional.pad(y, (1,) * 4)[..., :14, :14],
            nn.Conv2d(8, 8, 5),
        ),
        x,
        runtime,
    )
    assert twice.work.of_operation("pad").any()


@pytest.mark.parametrize("runtime", RUNTIME)
def test_kernels_write_into_the_concatenation_that_alone_reads_them(runtime: str) -> None:
    def join(m: nn.ModuleList, x: Tensor) -> Tensor:
        return torch.cat([m[0](x), m[1](x)], -1)

    def keep(m: nn.ModuleList, x: Tensor) -> Tensor:
        one: Tensor = m[0](x)
        return torch.cat([one, x], -1).relu_() + one.repeat(1, 1, 2)

    parts = nn.Linear(64, 64), nn.Linear(64, 64)
    joined, kept = (form(Call(one, *parts), X, runtime) for one in (join, keep))
    assert joined.work.of_operation("cat").any() == (not RUNTIME[runtime].merges)
    assert kept.work.of_operation("cat").any()
    whole = form(nn.Linear(64, 128), X, runtime)
    if RUNTIME[runtime].merges:
        assert joined.output_bytes.sum() == joined.leaving_bytes.sum() == whole.leaving_bytes.sum()


@pytest.mark.parametrize(
    ("formula", "module"),
    [
        (lambda _, x: (lambda e: e / e.sum(-1, keepdim=True))((x - x.amax(-1, keepdim=True)).exp()), nn.Softmax(-1)),
        (
            lambda m, x: (x - x.mean(-1, keepdim=True))
            * torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * m[0].weight + m[0].bias,
            nn.LayerNorm(64),
        ),
        (lambda m, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * m[0].weight, nn.RMSNorm(64)),
    ],
    ids=["softmax", "layer_norm", "rms_norm"],
)  # fmt: skip
@pytest.mark.parametrize("runtime", ["fused", "engine"])
def test_a_formula_is_the_operator_that_it_computes(
    formula: Callable[..., Tensor], module: nn.Module, runtime: str
) -> None:
    written, own = form(Call(formula, module), X, runtime), form(module, X, runtime)
    names = [KINDS[kind] for kind in written.work.kind]
    assert names == [KINDS[kind] for kind in own.work.kind]
    assert written.work.operation.tolist() == own.work.operation.tolist()
    for name in ("input_bytes", "weight_bytes", "output_bytes"):
        assert getattr(written, name).tolist() == getattr(own, name).tolist()


def test_a_filled_result_of_the_model_is_a_kernel() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x + 1.0, torch.zeros_like(x)

    assert form(Both(), X, "fused").work.of_operation("zeros_like").any()
