"""Kernel launch overhead of one thread of this machine in an eager framework.

A model of small blocks runs on an image of one pixel, so that each kernel ends before the next call. The measured time
is then that of Python, the dispatcher and, on a GPU, its driver. Without a GPU, the same calls on the CPU are timed:

    launch = time of the same calls on this CPU x LAUNCH_PER_DISPATCH
"""

from __future__ import annotations

from typing import Final

import torch

from joulemap.device.trial import check_device, name_device
from joulemap.device.window import measure_window
from joulemap.domain.measurement import Timing

BLOCKS: Final = 25
"""Blocks per pass; together they make about as many framework calls as a small model."""
CALLS: Final = 4 * BLOCKS
"""Framework calls per pass."""

LAUNCH_PER_DISPATCH: Final = 5.56
"""Ratio of the launch time on a GPU to the time of the same call on a CPU, in clocks of a thread: 98,000
(`call_clocks`) / (4.65 us x 3.79 GHz). The second time was measured with these blocks on one core of a Zen 5 (torch
2.11).
"""


class _Block(torch.nn.Module):
    """Convolution, batch norm, ReLU and residual addition."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 8, 1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.act = torch.nn.ReLU()

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self.act(self.norm(self.conv(value))) + value
        return summed


def time_calls(device: str, seconds: float) -> tuple[str, Timing]:
    """Time an eager pass of `CALLS` framework calls, and return the device name and the timing.

    Raises UsageError if the device is not available.
    """
    check_device(device, "eager")
    blocks = torch.nn.Sequential(*(_Block() for _ in range(BLOCKS))).eval().to(device)
    value = torch.ones(1, 8, 1, 1, device=device)
    torch.set_num_threads(1)

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    with torch.inference_mode():
        return name_device(device), measure_window(lambda: blocks(value), wait, seconds, is_alone=device == "cpu")
