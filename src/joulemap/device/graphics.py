"""GPU of this machine, as torch and nvidia-smi report it."""

from __future__ import annotations

import torch

from joulemap.device.processor import run_tool
from joulemap.domain.machine import Gpu
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Limits:
    """Maximum clocks and power limit of a GPU."""

    clock_hz: float
    memory_clock_hz: float
    power_w: float


def parse_smi(text: str, uuid: str) -> Limits:
    """Return the limits of the GPU with this UUID from lines of `uuid, MHz, MHz, W`. Raises UsageError if its line or a
    value is missing.
    """
    plain = uuid.removeprefix("GPU-")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4 and cells[0].removeprefix("GPU-") == plain:
            try:
                clock, memory, power = (float(cell) for cell in cells[1:])
            except ValueError:
                break
            return Limits(clock_hz=clock * 1e6, memory_clock_hz=memory * 1e6, power_w=power)
    raise UsageError("nvidia-smi does not report clocks and power limit of this GPU: name it with --hardware")


def read_gpu() -> Gpu:
    """Return the first CUDA device. Raises UsageError if there is none, or if nvidia-smi does not report its clocks."""
    if not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here")
    properties = torch.cuda.get_device_properties(0)
    limits = parse_smi(
        run_tool(
            "nvidia-smi",
            "--query-gpu=uuid,clocks.max.sm,clocks.max.memory,power.limit",
            "--format=csv,noheader,nounits",
        ),
        str(properties.uuid),
    )
    return Gpu(
        name=properties.name,
        unit_count=properties.multi_processor_count,
        capability=(properties.major, properties.minor),
        clock_hz=limits.clock_hz,
        memory_bytes=properties.total_memory,
        memory_bus_bits=properties.memory_bus_width,
        memory_clock_hz=limits.memory_clock_hz,
        l2_bytes=properties.L2_cache_size,
        power_w=limits.power_w,
    )
