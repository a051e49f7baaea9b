"""What nvidia-smi prints about a graphics processor."""

from __future__ import annotations

import attrs

from joulemap.errors import UsageError


@attrs.frozen(kw_only=True)
class Limits:
    """Largest clocks and power of a graphics processor."""

    clock_hz: float
    memory_clock_hz: float
    power_w: float


def parse_smi(text: str, uuid: str) -> Limits:
    """Return the limits of the GPU with a UUID from lines of `uuid, MHz, MHz, W`; UsageError where one is missing."""
    plain = uuid.removeprefix("GPU-")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4 and cells[0].removeprefix("GPU-") == plain:
            try:
                clock, memory, power = (float(cell) for cell in cells[1:])
            except ValueError:
                break
            return Limits(clock_hz=clock * 1e6, memory_clock_hz=memory * 1e6, power_w=power)
    raise UsageError("nvidia-smi does not tell clocks and power limit of this GPU: name it with --hardware")
