"""CPU of this machine, from the texts that Linux reports about it; `describe_cpu` takes the texts of any machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from joulemap.domain.machine import Cpu, CpuCache
from joulemap.system.errors import UsageError

CPUS: Final = Path("/sys/devices/system/cpu")

PATIENCE_S: Final = 10.0
"""Seconds to wait for a tool; one that takes longer counts as missing."""

SIZES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}

BITS_PER_BYTE: Final = 8

MHZ: Final = 1e6
KHZ: Final = 1e3
MOST_HZ: Final = 1e12
"""Clock above which a text states no clock of a processor."""

MOMENT_HZ: Final = 1e8

ARM_FLAGS: Final = frozenset({"asimd", "neon"})


def read_cpu() -> Cpu:
    """Return this machine's CPU. Raises UsageError if it does not run Linux, or reports too little."""
    if platform.system() != "Linux":
        raise UsageError(
            f"the processor is read from /proc and /sys, which only Linux has; this is {platform.system()}"
        )
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
    """Return the machine state that affects a latency, as text: clock, governor, load average."""
    clock = read_text(CPUS / "cpu0" / "cpufreq" / "scaling_cur_freq")
    governor = read_text(CPUS / "cpu0" / "cpufreq" / "scaling_governor")
    parts = [
        f"clock {int(clock) / 1e6:.2f} GHz" if clock.isdecimal() else "clock not readable",
        f"governor {governor}" if governor else "governor not readable",
    ]
    try:
        parts.append(f"load average {os.getloadavg()[0]:.2f} over {available_cpus()} CPUs")
    except (OSError, AttributeError):  # Windows has none
        parts.append("load average not readable")
    return ", ".join(parts)


def available_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def read_text(path: Path) -> str:
    """Return a file's text without surrounding space; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def run_tool(*command: str) -> str:
    """Return the output of a tool in the C locale; empty if the tool is missing or fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def parse_fields(text: str) -> dict[str, str]:
    """Return the first value of each name in `Name: value` lines, as of lscpu or /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields


def parse_size(text: str) -> int:
    """Return the bytes in `48K`, `96 KiB` or `1.5 MiB`; UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([KMG]?)(?:i?B)?", text.strip())
    if match is None:
        raise UsageError(f"cannot read the cache size {text[:40]!r}")
    return round(float(match[1]) * SIZES[match[2]])


def describe_cpu(
    lscpu: str,
    cpuinfo: str,
    meminfo: str = "",
    *,
    caches: Iterable[Mapping[str, str]] = (),
    frequencies: Mapping[str, str] | None = None,
    vector_bytes: str = "",
) -> Cpu:
    """Return the CPU that these texts describe; UsageError if they lack its name or core count.

    `caches` contains the files of each `cpu*/cache/index*`, `frequencies` those of `cpu0/cpufreq` (kHz), and
    `vector_bytes` is `/proc/sys/abi/sve_default_vector_length`.
    """
    fields = parse_fields(lscpu)
    first = parse_fields(cpuinfo)
    name = (
        next((text for text in (fields.get("Model name"), first.get("model name")) if text and text != "-"), None)
        or first.get("Hardware")
        or _arm_name(first)
    )
    processors = len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE))
    total = _whole(fields.get("CPU(s)")) or processors
    if not name or not total:
        raise UsageError(
            "this machine reports neither the name nor the cores of its processor: lscpu or /proc/cpuinfo is missing"
        )
    threads = _whole(fields.get("Thread(s) per core")) or _siblings(first)
    cores = _cores(fields, total, threads)
    flags = frozenset((fields.get("Flags") or first.get("flags") or first.get("Features") or "").lower().split())
    clock, clock_source, largest = _clock(name, fields, first, frequencies or {})
    family = _whole(fields.get("CPU family")) or _whole(first.get("cpu family"))
    described = _caches_of_files(caches) or _caches_of_lscpu(fields, cores)
    memory = re.search(r"^MemTotal:\s*([0-9]{1,15}) kB", meminfo, re.MULTILINE)
    length = _whole(vector_bytes)
    return Cpu(
        name=" ".join(name.split()),
        vendor=_vendor(fields.get("Vendor ID") or first.get("vendor_id") or ("ARM" if flags & ARM_FLAGS else "")),
        family=family,
        core_count=cores,
        socket_count=_whole(fields.get("Socket(s)")) or 1,
        threads_per_core=threads,
        flags=flags,
        clock_hz=clock,
        clock_source=clock_source,
        clock_max_hz=largest,
        vector_bits=length * BITS_PER_BYTE if length and "sve" in flags else None,
        caches=described,
        memory_bytes=int(memory[1]) * 1024 if memory else None,
        is_virtual="Hypervisor vendor" in fields or "hypervisor" in flags,
    )


ARM_PARTS: Final = {
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
}
"""Part number -> name of Arm's own cores. Source: their technical reference manuals, register MIDR_EL1."""

ARM_IMPLEMENTER: Final = "0x41"


def _arm_name(first: Mapping[str, str]) -> str:
    if first.get("CPU implementer") != ARM_IMPLEMENTER:
        return ""
    part = first.get("CPU part", "")
    return ARM_PARTS.get(part, f"Arm part {part}")


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,15}", text) else None


def _siblings(first: Mapping[str, str]) -> int:
    siblings, cores = _whole(first.get("siblings")), _whole(first.get("cpu cores"))
    return max(siblings // cores, 1) if siblings and cores else 1


def _cores(fields: Mapping[str, str], total: int, threads: int) -> int:
    for each, count in (("Core(s) per socket", "Socket(s)"), ("Core(s) per cluster", "Cluster(s)")):
        cores, groups = _whole(fields.get(each)), _whole(fields.get(count))
        if cores and groups:
            return cores * groups
    return max(total // threads, 1)


def _vendor(text: str) -> str:
    return {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "ARM": "Arm"}.get(text, text or "not given")


def _clock(
    name: str, fields: Mapping[str, str], first: Mapping[str, str], frequencies: Mapping[str, str]
) -> tuple[float | None, str, float | None]:
    """Return (clock of the quoted peaks, source of this clock, maximum clock) in Hz. An unknown clock is None."""
    largest_text = frequencies.get("cpuinfo_max_freq")
    largest = _clock_hz(largest_text, KHZ) if largest_text else _clock_hz(fields.get("CPU max MHz"), MHZ)
    if base := _clock_hz(frequencies.get("base_frequency"), KHZ):
        return base, "cpufreq base_frequency", largest
    quoted = re.search(r"@\s*([0-9]{1,2}(?:\.[0-9]{1,4})?)\s*GHz", name)
    if quoted:
        return float(quoted[1]) * 1e9, "the clock in the processor's name", largest
    if largest:
        return largest, "the largest clock that the kernel reports; the base clock is unknown", largest
    now = _clock_hz(first.get("cpu MHz"), MHZ) or _clock_hz(fields.get("CPU MHz"), MHZ)
    rounded = round(now / MOMENT_HZ) * MOMENT_HZ if now else None  # so that two readings agree
    return rounded, "/proc/cpuinfo at the time of the call, to 0.1 GHz; base and largest clock are unknown", None


def _clock_hz(text: str | None, unit_hz: float) -> float | None:
    """Return the clock in a text; None for a text without a number, or for a clock that no processor has."""
    try:
        value = float(text) * unit_hz if text else 0.0
    except ValueError:
        return None
    return value if 0.0 < value < MOST_HZ else None


def _caches_of_files(files: Iterable[Mapping[str, str]]) -> tuple[CpuCache, ...]:
    """Return the data caches of each level from the files of Linux. CPUs with an equal `shared_cpu_list` share an
    instance.
    """
    shared: dict[int, set[str]] = {}
    sizes: dict[int, int] = {}
    for file in files:
        if file.get("type") == "Instruction" or not file.get("size"):
            continue
        level = int(file["level"])
        shared.setdefault(level, set()).add(file.get("shared_cpu_list", ""))
        sizes[level] = max(sizes.get(level, 0), parse_size(file["size"]))
    return tuple(
        CpuCache(
            level=level,
            capacity_bytes=sizes[level],
            instance_count=len(shared[level]),
            source="/sys/devices/system/cpu/cpu*/cache",
        )
        for level in sorted(sizes)
        if sizes[level]
    )


def _caches_of_lscpu(fields: Mapping[str, str], cores: int) -> tuple[CpuCache, ...]:
    """Return the caches that lscpu lists.

    New versions print the total, as in `96 KiB (2 instances)`; older ones print the size of one instance, as in `32K`.
    """
    caches = []
    for level, label in ((1, "L1d"), (2, "L2"), (3, "L3")):
        text = fields.get(f"{label} cache") or fields.get(label, "")
        match = re.fullmatch(r"([^(]+?)(?:\s*\(([0-9]{1,6}) instances?\))?", text)
        if match is None or match[1].strip() in ("", "unknown size"):
            continue
        size = parse_size(match[1])
        count = int(match[2]) if match[2] else cores if level < 3 else (_whole(fields.get("Socket(s)")) or 1)
        each = size // max(count, 1) if match[2] else size
        if each == 0:
            continue
        caches.append(CpuCache(level=level, capacity_bytes=each, instance_count=count, source="lscpu"))
    return tuple(caches)
