"""Measure the time that a thread of this machine takes to launch a kernel on a device."""

from __future__ import annotations

from typing import Any, Final

from joulemap.ask.answer import Answer
from joulemap.ask.measure import LONGEST_WINDOW_S, find_here
from joulemap.domain.computed import described, make_table
from joulemap.domain.settings import Device
from joulemap.domain.table import Table
from joulemap.physics.record.configuration import LAUNCH
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.source import Source
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.resource import need_torch

EXAMPLE: Final = "l4"
"""GPU named in the follow-up command if the catalogue knows no GPU of this machine."""


@frozen(kw_only=True)
class HostPace:
    """Times that a CPU thread of this machine needs to launch kernels in an eager framework."""

    device: str = described("processor that ran the timed calls")
    call_s: float = described("median time of one call", "s")
    launch_s: float = described("time of a launch on a device beside this CPU: host_launch of a GPU in it", "s")
    is_scaled: bool = described("true if launch_s is scaled from calls on the CPU itself, for lack of a GPU")
    spread_fraction: float = described("spread of the repetitions, (third - first quartile) / median", "1")


@frozen(kw_only=True)
class HostAnswer(Answer):
    """Measured kernel launch times of this machine as a host."""

    paces: Table[HostPace]
    """Measured times; one row."""
    chip: str = EXAMPLE
    """Catalogue id of a GPU that the launch time applies to."""

    @property
    def pace(self) -> HostPace:
        """Measured times of this machine."""
        return self.paces[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the `--set` value."""
        return {**self.paces.records()[0], "setting": self.setting}

    @property
    def setting(self) -> str:
        """Value for `--set` that applies this result."""
        return f"{LAUNCH}={self.pace.launch_s * 1e6:.3g}us"


def measure_host(source: Source, *, device: Device = "cpu", seconds: float = 2.0) -> HostAnswer:
    """Time the calls of an eager framework on this machine; return the time of a kernel launch on a GPU.

    Raises UsageError for a device that is not present.
    """
    if not 0.0 < seconds <= LONGEST_WINDOW_S:
        raise UsageError(f"--seconds is {seconds:g}, expected above 0 and at most {LONGEST_WINDOW_S:g}")
    need_torch("timing this machine")
    from joulemap.device.launch import CALLS, LAUNCH_PER_DISPATCH, time_calls

    source.talk(f"timing the calls of an eager framework for about {seconds:g} s …")
    name, timing = time_calls(device, seconds)
    call_s, is_scaled = timing.latency_s / CALLS, device == "cpu"
    pace = HostPace(
        device=name,
        call_s=call_s,
        launch_s=call_s * (LAUNCH_PER_DISPATCH if is_scaled else 1.0),
        is_scaled=is_scaled,
        spread_fraction=timing.spread_fraction,
    )
    here = EXAMPLE if is_scaled else find_here(device).id
    return HostAnswer(
        paces=make_table("measure host", HostPace, [pace]),
        chip=here if here in known_hardware() else EXAMPLE,
    )
