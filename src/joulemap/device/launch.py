"""How long a thread of this machine takes to launch a kernel in an eager framework.

Blocks of one pixel are run call by call: their kernels are over before the next call, so that the time is that of
Python, of the dispatch and, on a GPU, of its driver. Without a GPU the dispatch on the CPU itself is timed:

    launch = calls of the same blocks here x LAUNCH_PER_DISPATCH
"""

from __future__ import annotations

from typing import Final

import torch

from joulemap.device.trial import check_device, name_device
from joulemap.device.window import measure_window
from joulemap.domain.measurement import Timing

BLOCKS: Final = 25
"""In a pass, whose calls are then about those of a small model."""
CALLS: Final = 4 * BLOCKS
"""Of the framework, in a pass."""

LAUNCH_PER_DISPATCH: Final = 5.56
"""Calls to a device over those that a CPU dispatches to itself, in clocks of a thread: 98,000 (`call_clocks`) over 4.65
us of one core of a Zen 5 at 3.79 GHz (torch 2.11), of these blocks."""


class _Block(torch.nn.Module):
    """A convolution, a batch norm, a relu and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 8, 1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.act = torch.nn.ReLU()

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self.act(self.norm(self.conv(value))) + value
        return summed


def time_calls(device: str, seconds: float) -> tuple[str, Timing]:
    """Return the name of a device and the timing of `CALLS` calls; UsageError for a device that is not here."""
    check_device(device, "eager")
    blocks = torch.nn.Sequential(*(_Block() for _ in range(BLOCKS))).eval().to(device)
    value = torch.ones(1, 8, 1, 1, device=device)
    torch.set_num_threads(1)

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    with torch.inference_mode():
        return name_device(device), measure_window(lambda: blocks(value), wait, seconds, is_alone=device == "cpu")
