"""Models of timm: their arguments are those of their classes."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from joulemap.construct.model import trace_request
from joulemap.system.errors import UsageError
from joulemap.wing.hub import name as hub_name
from joulemap.wing.hub.name import request_hub


class Resizable(nn.Module):
    """A model of timm: its arguments are those of its class."""

    def __init__(self, num_classes: int = 5, in_chans: int = 3, img_size: int = 8) -> None:
        super().__init__()
        self.pretrained_cfg = {"input_size": (3, 8, 8)}
        self.head = nn.Linear(in_chans * img_size**2, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(x.flatten(1))
        return out


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package timm of one model."""

    def create(name: str, *, pretrained: bool, **arguments: Any) -> nn.Module:
        return Resizable(**arguments)

    package = SimpleNamespace(list_models=lambda: ["resizable"], create_model=create)
    monkeypatch.setitem(sys.modules, "timm", package)
    monkeypatch.setattr(hub_name, "package_version", lambda name: "0")


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("arguments", "macs"),
    [
        ((), 3 * 8 * 8 * 5),
        ((("num_classes", "10"),), 3 * 8 * 8 * 10),
        ((("in_chans", "1"), ("img_size", "16")), 16 * 16 * 5),
    ],
)
def test_arguments_of_timm_act(arguments: tuple[tuple[str, str], ...], macs: int) -> None:
    assert trace_request(request_hub("timm:resizable", arguments=arguments)).mac_count == macs


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("depth", "timm:resizable takes no argument depth; it takes: num_classes, in_chans, img_size"),
        ("pretrained", "timm:resizable .*leave out pretrained"),
    ],
)
def test_an_argument_that_timm_does_not_take_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        trace_request(request_hub("timm:resizable", arguments=[(name, "3")]))
