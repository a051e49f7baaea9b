"""Models that ask for their device: told of a GPU, and of a CPU where they fail on that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from joulemap.system.errors import ModelError
from joulemap.trace.module import trace_module
from models import KEY

Forward = Callable[[nn.Module, Tensor], Any]
MACS = 2 * 16 * 16
"""Of a linear layer of 16 features on two rows."""


class Net(nn.Module):
    def __init__(self, function: Forward) -> None:
        super().__init__()
        self.lin = nn.Linear(16, 16)
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self.lin, x)


def count_macs(function: Forward) -> int:
    workload = trace_module(Net(function), (torch.zeros(2, 16),), key=KEY, model="net", batch=2)
    return sum(one.mac_count for one in workload.operators)


def cast(lin: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        x = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        y: Tensor = lin(x)
    assert y.dtype == torch.float32, "the precision is that of a run"
    return y


def draw(lin: nn.Module, x: Tensor) -> Any:
    generator = torch.Generator(device=x.device).manual_seed(0)
    return lin(x) + torch.randn(x.shape, generator=generator, device=x.device)


def make(lin: nn.Module, x: Tensor) -> Any:
    counts = torch.arange(16, device=x.device)
    with torch.device(x.device):
        ones = torch.ones(16)
    more = torch.zeros(2, 16, device=str(x.device)) + torch.tensor([1.0], device=x.device).to(x.device)
    return lin(x + counts + ones + more).to(x)


def need_gpu(lin: nn.Module, x: Tensor) -> Any:
    assert x.is_cuda and x.get_device() == 0
    assert torch.arange(3).device == x.device == next(lin.parameters()).device
    with torch.cuda.device(x.device):
        return make(lin, x) + draw(lin, x)


def choose(lin: nn.Module, x: Tensor) -> Any:
    if x.device.type not in ("cpu", "cuda"):
        raise ValueError(f"no device {x.device}")
    return lin(lin(x)) if x.is_cuda else lin(x)


def need_cpu(lin: nn.Module, x: Tensor) -> Any:
    if x.is_cuda:
        raise NotImplementedError("a kernel of another library")
    assert x.is_cpu and x.device == torch.arange(3).device
    return make(lin, x) + draw(lin, x)


@pytest.mark.parametrize(
    ("function", "times"), [(cast, 1), (draw, 1), (make, 1), (need_gpu, 2), (need_cpu, 2), (choose, 2)]
)
def test_a_model_that_asks_for_its_device_is_counted(function: Forward, times: int) -> None:
    assert count_macs(function) == times * MACS


def test_a_model_that_fails_on_every_device_is_told_where_it_came_furthest() -> None:
    def fail(lin: nn.Module, x: Tensor) -> Any:
        if x.is_cuda:
            raise ValueError("no kernel for a GPU")
        lin(x)
        raise ValueError("broken behind its layer")

    with pytest.raises(ModelError, match="broken behind its layer"):
        count_macs(fail)


def test_the_code_of_torch_is_told_the_truth() -> None:
    encoder = nn.TransformerEncoderLayer(16, 4, dim_feedforward=16, batch_first=True).eval()
    # Per token: query, key, value and output 4 x 16 x 16, two layers 2 x 16 x 16; scores and sums 2 x 2 x 16 each.
    assert count_macs(lambda _, x: encoder(x[None])) == 2 * 6 * 16 * 16 + 2 * 2 * 2 * 16
