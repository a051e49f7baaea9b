"""Read what Linux tells of this machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Final

from joulemap.device.processor import describe_cpu
from joulemap.domain.machine import Cpu
from joulemap.errors import UsageError

CPUS: Final = Path("/sys/devices/system/cpu")

PATIENCE_S: Final = 10.0


def read_cpu() -> Cpu:
    """Return this machine's processor; UsageError where it is no Linux machine, or tells too little."""
    if platform.system() != "Linux":
        raise UsageError(f"the processor is read from Linux's /proc and /sys, this is {platform.system()}")
    return describe_cpu(
        run_tool("lscpu"),
        read_text(Path("/proc/cpuinfo")),
        read_text(Path("/proc/meminfo")),
        caches=[
            {name: read_text(index / name) for name in ("level", "type", "size", "shared_cpu_list")}
            for index in sorted(CPUS.glob("cpu[0-9]*/cache/index[0-9]*"))
        ],
        frequencies={
            name: read_text(CPUS / "cpu0" / "cpufreq" / name) for name in ("base_frequency", "cpuinfo_max_freq")
        },
        vector_bytes=read_text(Path("/proc/sys/abi/sve_default_vector_length")),
    )


def read_state() -> str:
    """Return the state of this machine that a latency depends on, in words: clock, governor, load."""
    clock = read_text(CPUS / "cpu0" / "cpufreq" / "scaling_cur_freq")
    governor = read_text(CPUS / "cpu0" / "cpufreq" / "scaling_governor")
    parts = [
        f"clock {int(clock) / 1e6:.2f} GHz" if clock.isdecimal() else "clock not readable",
        f"governor {governor}" if governor else "governor not readable",
    ]
    try:
        parts.append(f"load average {os.getloadavg()[0]:.2f} over {available_cpus()} CPUs")
    except OSError:
        parts.append("load average not readable")
    return ", ".join(parts)


def available_cpus() -> int:
    """Return the CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def read_text(path: Path) -> str:
    """Return a file's text without surrounding space; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def run_tool(*command: str) -> str:
    """Return what a tool prints in plain English; empty where it is not there or fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
