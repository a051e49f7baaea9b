"""The graphics processor of this machine, as torch and nvidia-smi tell."""

from __future__ import annotations

import torch

from joulemap.device.graphics import parse_smi
from joulemap.device.read import run_tool
from joulemap.domain.machine import Gpu
from joulemap.errors import UsageError


def read_gpu() -> Gpu:
    """Return the first CUDA device; UsageError where there is none, or nvidia-smi does not tell its clocks."""
    if not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here")
    told = torch.cuda.get_device_properties(0)
    limits = parse_smi(
        run_tool(
            "nvidia-smi",
            "--query-gpu=uuid,clocks.max.sm,clocks.max.memory,power.limit",
            "--format=csv,noheader,nounits",
        ),
        str(told.uuid),
    )
    return Gpu(
        name=told.name,
        unit_count=told.multi_processor_count,
        capability=(told.major, told.minor),
        clock_hz=limits.clock_hz,
        memory_bytes=told.total_memory,
        memory_bus_bits=told.memory_bus_width,
        memory_clock_hz=limits.memory_clock_hz,
        l2_bytes=told.L2_cache_size,
        power_w=limits.power_w,
    )
