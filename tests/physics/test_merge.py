"""Kernels that an engine makes of several subgraphs: products of one input, and light work between products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from compare import assert_close
from gpu_case import single, timed
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.workload import WorkloadColumns
from joulemap.trace.module import build_on_meta
from models import columns, meta

WIDTH = 64


class Layer(nn.Module):
    """A layer of a decoder, with gates, rotations and residuals, as they are written out."""

    def __init__(self, width: int = WIDTH, keys: int = WIDTH // 4, hidden: int = 3 * WIDTH) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, count, bias=False) for count in (width, keys, keys))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.o, self.down = nn.Linear(width, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        def turn(y: Tensor) -> Tensor:
            left, right = y.chunk(2, -1)
            return y * cos + torch.cat((-right, left), -1) * sin

        def heads(y: Tensor) -> Tensor:
            return y.view(*y.shape[:-1], -1, keys.shape[-1]).transpose(1, 2)

        y = self.first(x)
        q, k, v = (heads(layer(y)) for layer in (self.q, self.k, self.v))
        k, v = torch.cat((keys, turn(k)), 2), torch.cat((values, v), 2)
        seen = functional.scaled_dot_product_attention(turn(q), k, v, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).flatten(2))
        y = self.second(x)
        out: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return out


def layer(tokens: int = 1, cached: int = 32) -> WorkloadColumns:
    size = WIDTH // 4
    past = meta(1, 1, cached, size)
    return columns(
        Layer().to("meta"), meta(1, tokens, WIDTH), *(meta(1, 1, tokens, size),) * 2, past, meta(*past.shape)
    )


def sizes(kernels: KernelColumns) -> list[list[float]]:
    """Columns of the products of each kernel that has any."""
    work = kernels.work
    found = [work.gemm_n[(kernels.kernel_index == one) & work.of_kind("linear")] for one in range(kernels.kernel_count)]
    return [sorted(one.tolist()) for one in found if len(one)]


def test_a_layer_of_a_decoder_is_eight_kernels() -> None:
    engine, fused = (form_kernels(layer(), "fp16", runtime) for runtime in ("engine", "fused"))
    # norm, q with k and v, rotations with appends, attention, o, norm, gate with up, down
    assert engine.kernel_count == 8
    assert fused.kernel_count == 13
    assert sizes(engine) == [[16, 16, 64], [64], [192, 192], [64]]
    for name in ("mac_count", "elementwise_count", "special_count"):
        assert getattr(engine.work, name).sum() == getattr(fused.work, name).sum()


def test_siblings_read_their_input_once_and_hand_on_inside() -> None:
    kernels = form_kernels(layer(tokens=4), "fp16", "engine")
    work = kernels.work
    first = np.flatnonzero(work.of_kind("linear"))
    q, k, v = first[:3]
    # four rows of 64, two bytes each, and the results
    assert kernels.per_kernel(kernels.input_bytes)[kernels.kernel_index[q]] == 4 * 64 * 2
    assert kernels.output_bytes[[q, k, v]].tolist() == [4 * 64 * 2, 4 * 16 * 2, 4 * 16 * 2]
    gate = next(row for row in first if work.gemm_n[row] == 192)
    mine = kernels.kernel_index == kernels.kernel_index[gate]
    # of the gate, its activation, what is beside it and their product only the last leaves the kernel
    assert kernels.output_bytes[mine].sum() == 4 * 192 * 2
    assert kernels.input_bytes[mine].sum() == 4 * 64 * 2
    assert kernels.weight_bytes[mine].sum() == 2 * 64 * 192 * 2


def test_siblings_are_tiled_as_the_product_of_all_their_columns() -> None:
    rows, inner = 16, 512

    class Three(nn.Module):
        def __init__(self, *widths: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(inner, width, bias=False) for width in widths)

        def forward(self, x: Tensor) -> list[Tensor]:
            return [layer(x) for layer in self.layers]

    def total(*widths: int, runtime: str = "engine") -> tuple[float, float, float]:
        times, _ = timed(columns(Three(*widths).to("meta"), meta(rows, inner)), "fp16", runtime)
        return float(times.busy_s.sum()), float(times.tiles.sum()), float(times.executed_macs.sum())

    together, whole, apart = total(1024, 256, 256), total(1536), total(1024, 256, 256, runtime="fused")
    for mine, expected in zip(together, whole, strict=True):
        assert_close(mine, expected)
    assert together[0] < apart[0]


def test_what_waits_for_another_or_reads_another_part_is_no_sibling() -> None:
    first, second = nn.Linear(WIDTH, WIDTH, device="meta"), nn.Linear(WIDTH, WIDTH, device="meta")

    def chained(x: Tensor) -> Tensor:
        out: Tensor = second(x) * torch.softmax(first(x), -1)
        return out

    def halves(x: Tensor) -> tuple[Tensor, Tensor]:
        return first(x[:, :WIDTH]), second(x[:, WIDTH:])

    def changed(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        one = first(y)
        y += one
        return one, second(y)

    class Both(nn.Module):
        def __init__(self, forward: object) -> None:
            super().__init__()
            self.first, self.second = first, second
            self.forward = forward  # type: ignore[assignment]

    for forward, inputs in ((halves, 2 * WIDTH), (changed, WIDTH)):
        kernels = form_kernels(columns(Both(forward), meta(4, inputs)), "fp16", "engine")
        assert sizes(kernels) == [[64], [64]]
    # what follows the second waits for a kernel that reads the first
    kernels = form_kernels(columns(Both(chained), meta(4, WIDTH)), "fp16", "engine")
    assert sizes(kernels) == [[64], [64]]


def test_light_work_behind_one_kernel_is_one_kernel() -> None:
    linear = nn.Linear(WIDTH, WIDTH, bias=False, device="meta")

    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = linear

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = self.linear(x)
            one, two = y.roll(1, 0), y.flip(0)
            return one, two, torch.softmax(one.sort(-1).values, -1)

    kernels = form_kernels(columns(Wide(), meta(4, WIDTH)), "fp16", "engine")
    names = [
        sorted(kernels.work.operation[kernels.kernel_index == one].tolist()) for one in range(kernels.kernel_count)
    ]
    assert ["flip", "roll"] in names


class Mixture(nn.Module):
    """Tokens that choose experts, whose products are two calls with a gate between, as transformers has them."""

    def __init__(self, *, leaks: bool = False) -> None:
        super().__init__()
        self.leaks = leaks
        with build_on_meta():
            self.router = nn.Linear(64, 16, bias=False)
            self.up = nn.Parameter(torch.empty(16, 64, 64))
            self.down = nn.Parameter(torch.empty(16, 64, 32))

    def forward(self, x: Tensor) -> Tensor:
        scores, experts = torch.topk(self.router(x).softmax(-1), 4, dim=-1)
        order = experts.flatten().argsort()
        ends = torch.bincount(experts.flatten(), minlength=16).cumsum(0).to(torch.int32)
        wide = torch._grouped_mm(x[order // 4], self.up.transpose(-2, -1), offs=ends)
        gate, value = wide.chunk(2, -1)
        out = torch._grouped_mm(functional.silu(gate) * value, self.down.transpose(-2, -1), offs=ends)
        out = (out * scores.flatten()[order].unsqueeze(-1))[order.argsort()].view(len(x), 4, -1).sum(1)
        summed: Tensor = x + out + (wide.sum() if self.leaks else 0.0)
        return summed


def test_products_of_experts_are_one_kernel_with_all_that_sorts_and_sums() -> None:
    tokens = torch.empty(8, 64, device="meta", dtype=torch.bfloat16)
    work = columns(nn.Sequential(Mixture(), Mixture()), tokens)
    kernels = form_kernels(work, "bf16", "engine")
    mixing = [np.flatnonzero(kernels.kernel_index == one) for one in np.unique(kernels.kernel_index[kernels.mixes])]
    assert len(mixing) == 2
    for members in mixing:
        found = kernels.work.operation[members].tolist()
        assert [found.count(name) for name in ("grouped_mm", "silu", "scan", "linear", "softmax")] == [2, 1, 1, 0, 0]
        # what sorts choices, not what chooses: 8 tokens and 32 choices, their scores and whose they are
        assert found.count("sort") == 2
        assert kernels.weight_bytes[members].sum() == kernels.own_weight_bytes[members].sum() > 0
        # x is read and the sum written; choices are numbers of eight bytes, scores of two
        assert kernels.input_bytes[members].sum() <= 8 * 64 * 2 + 32 * (8 + 2) + 16 * 8
    # a compiler of single kernels leaves them apart
    assert not form_kernels(work, "bf16", "fused").mixes.any()


def test_products_of_experts_whose_rows_others_read_stay_apart() -> None:
    work = columns(Mixture(leaks=True), torch.empty(8, 64, device="meta", dtype=torch.bfloat16))
    assert not form_kernels(work, "bf16", "engine").mixes.any()


@pytest.mark.parametrize("tokens", [1, 8, 512])
def test_a_traced_mixture_takes_as_long_as_a_call_of_experts(tokens: int) -> None:
    """Beside what reads the choices and their scores."""
    work = columns(Mixture(), torch.empty(tokens, 64, device="meta", dtype=torch.bfloat16))
    call = single(f"experts(rows={tokens},hidden=64,inner=32,taken=4,experts=16)")
    found = []
    for one in (work, call):
        times, kernels = timed(one, "fp16", "engine" if one is work else "graph")
        products = kernels.mixes & kernels.work.has_macs
        found.append((times.busy_s[products], times.memory_s[products], times.start_s[products]))
    for mine, theirs in zip(*found, strict=True):
        assert mine.tolist() == theirs.tolist()
