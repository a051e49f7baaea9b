"""Models of which a toy card runs a part, for values computed by hand."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor, nn

import chip
from joulemap.physics.record.compiler import Compiler
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import WorkloadColumns
from models import columns

BATCH, WIDTH = 8, 64


class Stages(nn.Module):
    """Products with an activation behind each but the last."""

    def __init__(self, *activations: str) -> None:
        super().__init__()
        self.products = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(len(activations) + 1))
        self.activations = [getattr(nn.functional, name) for name in activations]

    def forward(self, x: Tensor) -> Tensor:
        for product, activation in zip(self.products, self.activations, strict=False):
            x = activation(product(x))
        last: Tensor = self.products[-1](x)
        return last


def stages(*activations: str) -> WorkloadColumns:
    return columns(Stages(*activations).to("meta"), torch.empty(BATCH, WIDTH, device="meta"))


def compiler(cut: str = "each", *, host: str = "toy") -> Compiler:
    return Compiler(
        name="Toy", cut=cut, operators=("linear", "relu"), host=host, basis="assumed", source="a toy compiler"
    )


def card(cut: str = "each", *, is_counted: bool = False) -> Hardware:
    """Return a toy of 1 W in a toy host of 1 W."""
    own = attrs.evolve(chip.cpu(), needs_host="slot", compiler=compiler(cut))
    return own.with_host(attrs.evolve(chip.cpu(), id="host"), is_counted=is_counted)
