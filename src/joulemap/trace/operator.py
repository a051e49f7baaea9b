"""Single operators that ship as models, because somebody measured them alone: `op_` and their sizes.

The names say the sizes of one sample, but for `linear` and the elementwise ones, whose rows or elements are all of the
input: ci, co channels in and out, hw height and width, k kernel, s stride (of `sdpa` and `layer_norm`: rows), g groups,
m, k, n of a matrix product, n elements, c channels, h heads, d features.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import torch
from torch import nn
from torch.nn import functional

PREFIX: Final = "op_"

NAMES: Final = (
    *(
        f"conv2d_{sizes}"
        for sizes in (
            "ci3_co64_hw224_k7_s2_g1",
            "ci64_co64_hw56_k3_s1_g1",
            "ci96_co96_hw112_k3_s1_g96",
            "ci128_co128_hw28_k3_s1_g1",
            "ci256_co256_hw14_k3_s1_g1",
            "ci256_co1024_hw14_k1_s1_g1",
            "ci384_co384_hw14_k3_s1_g384",
            "ci512_co512_hw7_k3_s1_g1",
        )
    ),
    *(
        f"linear_{sizes}"
        for sizes in (
            "m1_k2048_n1000",
            "m1_k4096_n4096",
            "m32_k2048_n1000",
            "m197_k768_n768",
            "m197_k768_n3072",
            "m1024_k1024_n1024",
            "m2048_k2048_n2048",
            "m6304_k768_n768",
            "m6304_k768_n3072",
            "m6304_k3072_n768",
        )
    ),
    *(f"{name}_n{2**power}" for name in ("relu", "add", "gelu") for power in (14, 17, 20, 23, 26)),
    *(f"{name}_{sizes}" for name in ("batch_norm", "avg_pool") for sizes in ("c64_hw56", "c512_hw7")),
    *(f"max_pool2d_{sizes}_k3_s2" for sizes in ("c64_hw56", "c512_hw7")),
    *(f"sdpa_{sizes}_d64" for sizes in ("h12_s197", "h16_s1024")),
    *(f"softmax_{sizes}" for sizes in ("h12_s197_s197", "h16_s1024_s1024")),
    "layer_norm_s197_d768",
)


class OneOperator(nn.Module):
    """A module or function on inputs of given sizes, one sample each."""

    def __init__(self, run: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.run = run
        self.example_inputs = tuple(torch.empty(1, *shape, device="meta") for shape in shapes)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return what the operator makes of its inputs."""
        return self.run(*inputs)


def _convolve(ci: int, co: int, hw: int, k: int, s: int, g: int) -> OneOperator:
    return OneOperator(nn.Conv2d(ci, co, k, s, k // 2, groups=g, bias=False), (ci, hw, hw))


def _multiply(m: int, k: int, n: int) -> OneOperator:
    return OneOperator(nn.Linear(k, n), (m, k))


def _attend(h: int, s: int, d: int) -> OneOperator:
    return OneOperator(functional.scaled_dot_product_attention, *((h, s, d),) * 3)


MAKERS: Final[dict[str, Callable[..., OneOperator]]] = {
    "conv2d": _convolve,
    "linear": _multiply,
    "relu": lambda n: OneOperator(functional.relu, (n,)),
    "gelu": lambda n: OneOperator(functional.gelu, (n,)),
    "add": lambda n: OneOperator(torch.add, (n,), (n,)),
    "batch_norm": lambda c, hw: OneOperator(nn.BatchNorm2d(c), (c, hw, hw)),
    "avg_pool": lambda c, hw: OneOperator(nn.AdaptiveAvgPool2d(1), (c, hw, hw)),
    "max_pool2d": lambda c, hw, k, s: OneOperator(nn.MaxPool2d(k, s, k // 2), (c, hw, hw)),
    "sdpa": _attend,
    "softmax": lambda h, s: OneOperator(nn.Softmax(-1), (h, s, s)),
    "layer_norm": lambda s, d: OneOperator(nn.LayerNorm(d), (s, d)),
}
"""operator -> module of the sizes that its name says, by their letters."""


def _maker(name: str) -> Callable[[], OneOperator]:
    found = re.fullmatch(r"(?P<operator>[a-z_]+(?:2d)?)(?P<sizes>(?:_[a-z]+\d+)+)", name)
    assert found is not None, f"{name} is not an operator and its sizes"
    sizes = {letters: int(number) for letters, number in re.findall(r"_([a-z]+)(\d+)", found["sizes"])}
    return partial(_make, MAKERS[found["operator"]], sizes)


def _make(maker: Callable[..., OneOperator], sizes: dict[str, int]) -> OneOperator:
    return maker(**sizes)


OPERATORS: Final = {f"{PREFIX}{name}": _maker(name) for name in NAMES}
"""Name -> what makes it."""
