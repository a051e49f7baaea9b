"""Sorts of work, by which errors of predictions are told apart."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from joulemap.trace.module import trace_module
from models import KEY


class Attention(nn.Module):
    """So many tokens before so many keys."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(query, keys, keys)


class Written(nn.Module):
    """The same, written as two products."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.softmax(query @ keys.mT, dim=-1) @ keys


class Mixture(nn.Module):
    """A loop over experts, of which each token takes two."""

    def __init__(self, is_routed: bool) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.is_routed = is_routed

    def forward(self, x: Tensor) -> Tensor:
        chosen = torch.topk(self.router(x), 2, dim=-1).indices
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows = torch.where(chosen == index)[0] if self.is_routed else torch.arange(len(x))
            out.index_add_(0, rows, expert(x[rows]))
        return out


def sort_of(module: nn.Module, *inputs: Tensor) -> str:
    return trace_module(module, inputs, key=KEY, model="net", batch=1).work


@pytest.mark.parametrize("module", [Attention(), Written()])
@pytest.mark.parametrize(("queries", "keys", "work"), [(1, 2048, "decode"), (4, 64, "decode"), (64, 64, "model")])
def test_a_few_tokens_behind_a_cache_are_a_step(module: nn.Module, queries: int, keys: int, work: str) -> None:
    assert sort_of(module, torch.zeros(1, 8, queries, 64), torch.zeros(1, 8, keys, 64)) == work


def test_tokens_that_choose_weights_are_work_of_their_own() -> None:
    assert sort_of(Mixture(is_routed=True), torch.zeros(8, 16)) == "experts"
    assert sort_of(Mixture(is_routed=False), torch.zeros(8, 16)) == "model"
    assert sort_of(nn.Linear(16, 16), torch.zeros(1, 16)) == "model"
