"""Readers of the outputs of system tools: each is a function from text to records, without access to the machine."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.device.processor import ARM_FLAGS, describe_cpu, parse_fields
from joulemap.domain import Cpu, MemoryConfiguration
from joulemap.domain.printed import find_vendors
from joulemap.system import UsageError
from joulemap.wing.here.machine import Graphics, Machine, Memory
from joulemap.wing.here.recording import SYSTEM, Recording
from joulemap.wing.here.show.word import (
    NO_CIM,
    NO_COUNT,
    NO_DMIDECODE,
    NO_DRIVER,
    NO_GRAPHICS,
    NO_MEMORY_SPEED,
    NO_PROCESSOR,
    NO_PROFILER,
)

MIB: Final = 2.0**20
GIB: Final = 2.0**30
MEGA: Final = 1e6

MEMORY_KINDS: Final = {24: "DDR3", 26: "DDR4", 29: "LPDDR3", 30: "LPDDR4", 34: "DDR5", 35: "LPDDR5"}
"""SMBIOS memory type -> memory standard. Source: DMTF DSP0134, SMBIOS 3.7, table 78."""

LARGEST: Final = 1e18
"""Largest number that a tool reports, in SI units; the next larger is no machine's."""

LARGEST_COUNT: Final = 10**15

CIM: Final = "Get-CimInstance"

MODULE_BITS: Final = 64
"""Data width of a memory module whose tool states none."""

PRESENT_X86: Final = frozenset({"avx", "avx2", "fma"})
"""Vector instruction sets of an x86 processor whose system reports none. Source: assumed; all processors since Haswell
and Zen have them.
"""

APPLE_FLAGS: Final = frozenset({"asimd", "asimddp", "asimdhp"})
"""Vector features of every Apple M processor. Source: Arm A-profile 8.4, which all of them implement."""

DISPLAYS: Final = re.compile(r"^\S+ (?:VGA compatible|3D|Display) controller: (.+?)(?: \(rev \w+\))?$", re.MULTILINE)
NEURAL: Final = re.compile(r"^\S+ (?:Processing accelerators|Signal processing controller): (.*(?:NPU|IPU|Neural).*?)"
                           r"(?: \(rev \w+\))?$", re.MULTILINE | re.IGNORECASE)  # fmt: skip
NEURAL_UNITS: Final = {
    "0x7d1d": "Meteor Lake NPU",
    "0xad1d": "Arrow Lake NPU",
    "0x643e": "Lunar Lake NPU",
    "0xb03e": "Panther Lake NPU",
    "0x1502": "Phoenix NPU",
    "0x17f0 0x10": "Strix Point NPU",
    "0x17f0 0x11": "Strix Halo NPU",
    "0x17f0 0x20": "Krackan Point NPU",
}
"""PCI device, with its revision where units share one -> neural unit. Source: Linux, drivers/accel/ivpu/ivpu_drv.h and
drivers/accel/amdxdna/amdxdna_pci_drv.c.
"""
IN_PROCESSOR: Final = re.compile(r"\b(?:with|w/)\s+(Radeon\s+(?:\d+M|\d+S|Vega \d+)\b)", re.IGNORECASE)
"""Pattern of the GPU's name in an AMD processor's name, such as `with Radeon 780M`."""

SERVER_GRAPHICS: Final = ("aspeed", "matrox", "virtio", "vmware", "qxl", "cirrus", "microsoft", "red hat")
"""Words in the names of display adapters that cannot run models, such as those of servers and virtual machines."""

CHANNEL: Final = re.compile(
    r"(p\d|cpu\d|controller\d)?.*?channel[ -]?([a-z0-9])|dimm[ _]?([a-z])\d?|\b(?:ddr\d|slot)?[ _]?([a-h])\d\b",
    re.IGNORECASE,
)
"""Pattern of the memory channel in a module's locator: `P0 CHANNEL A`, `ChannelB-DIMM0`, `DIMM_A2`, `DDR5_A1`."""


def read_machine(recording: Recording, memory: str = "") -> Machine:
    """Return the machine that a recording describes; `memory`, such as DDR5-5600x2, replaces its memory configuration.

    Raise UsageError if `memory` is invalid. Unreadable items of the recording are listed in `gaps`.
    """
    system = recording.get(SYSTEM, "") or _guess_system(recording)
    machine = {"Darwin": _read_mac, "Windows": _read_windows}.get(system, _read_linux)(recording, system)
    graphics = [
        *read_nvidia(recording.get("nvidia-smi", ""), recording.get("nvml", "")),
        *read_rocm(recording.get("rocm-smi", "")),
        *read_xpu(recording.get("xpu-smi", "")),
    ]
    seen = frozenset[str]().union(*(find_vendors(one.name) for one in graphics))
    others = [one for one in machine.graphics if not find_vendors(one.name) & seen or _is_apple(one)]
    named = _name_inside([*graphics, *others], machine.cpu)
    gaps = [*machine.gaps]
    gaps += [NO_DRIVER(name=one.name) for one in others if "nvidia" in find_vendors(one.name)]
    if memory:
        machine = attrs.evolve(machine, memory=parse_memory(memory, machine.memory))
    if not named and not recording.keys() & {"lspci", "system_profiler", "cim"}:
        gaps.append(NO_GRAPHICS)
    if (
        machine.memory.bytes_per_s is None
        and not machine.board
        and not any(map(_is_apple, named))
        and (named or machine.cpu)
    ):
        machine = attrs.evolve(machine, memory=attrs.evolve(machine.memory, is_unknown=True))
        gaps.append(NO_MEMORY_SPEED(system=system) if system != "Linux" else NO_DMIDECODE)
    return attrs.evolve(machine, graphics=tuple(named), gaps=tuple(gaps))


def _guess_system(recording: Recording) -> str:
    return "Darwin" if "system_profiler" in recording else "Windows" if "cim" in recording else "Linux"


def _is_apple(one: Graphics) -> bool:
    return "apple" in find_vendors(one.name)


def _name_inside(graphics: list[Graphics], cpu: Cpu | None) -> list[Graphics]:
    """Return the GPUs, including the integrated GPU that an AMD processor's name states.

    The GPU takes the name stated there. If no tool reports it, it is added.
    """
    inside = IN_PROCESSOR.search(cpu.name) if cpu else None
    if inside is None:
        return graphics
    name = f"AMD {inside[1]}"
    own = next((one for one in graphics if inside[1].lower() in one.name.lower()), None)
    unnamed = [
        one for one in graphics if "amd" in find_vendors(one.name) and not re.search(r"\bRX\b|\bPro W", one.name)
    ]
    replaced = own or next(iter(unnamed), None) or Graphics(name=name, source="the processor's name")
    kept = [one for one in graphics if one is not replaced]
    return [*kept, attrs.evolve(replaced, name=name, memory_bytes=None)]


def read_nvidia(smi: str, nvml: str = "") -> list[Graphics]:
    """Return the GPUs in nvidia-smi's CSV, with core count and bus width from `nvml` if known."""
    lines = [[cell.strip() for cell in line.split(",")] for line in smi.strip().splitlines()]
    if len(lines) < 2 or "name" not in lines[0]:
        return []
    heads = [cell.partition(" [")[0] for cell in lines[0]]
    more = _list(_load(nvml))
    graphics = []
    for index, line in enumerate(lines[1:]):
        cells = dict(zip(heads, line, strict=False))
        extra = more[index] if index < len(more) else {}
        version = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", cells.get("compute_cap", ""))
        if not cells.get("name"):
            continue
        graphics.append(
            Graphics(
                name=cells["name"],
                memory_bytes=_number(cells.get("memory.total"), MIB),
                power_w=_number(cells.get("power.limit")),
                clock_hz=_number(cells.get("clocks.max.sm"), MEGA),
                memory_clock_hz=_number(cells.get("clocks.max.memory"), MEGA),
                capability=(int(version[1]), int(version[2])) if version else None,
                core_count=_count("nvml", extra, "cores") or None,
                memory_bus_bits=_count("nvml", extra, "bus_bits") or None,
                source="nvidia-smi",
            )
        )
    return graphics


def read_rocm(text_: str) -> list[Graphics]:
    """Return the GPUs in rocm-smi's JSON; none if it cannot be read."""
    cards = _decode(text_)
    graphics = []
    for name, values in sorted(cards.items()):
        if not name.startswith("card") or not isinstance(values, dict):
            continue
        fields = {str(key).lower(): str(value) for key, value in values.items()}
        title = fields.get("card series") or fields.get("device name") or fields.get("card model", "")
        if title:
            graphics.append(
                Graphics(
                    name=_shorten_pci(title),
                    memory_bytes=_number(fields.get("vram total memory (b)")),
                    power_w=_number(fields.get("max graphics package power (w)")),
                    source="rocm-smi",
                )
            )
    return graphics


def read_xpu(text_: str) -> list[Graphics]:
    """Return the GPUs in xpu-smi's JSON; none if it cannot be read."""
    return [
        Graphics(name=str(one["device_name"]), source="xpu-smi")
        for one in _list(_decode(text_).get("device_list"))
        if one.get("device_type") == "GPU" and one.get("device_name")
    ]


def read_lspci(text_: str) -> tuple[list[Graphics], list[str]]:
    """Return the display controllers and the neural units in lspci's list."""
    displays = [one for one in DISPLAYS.findall(text_) if not any(name in one.lower() for name in SERVER_GRAPHICS)]
    graphics = [Graphics(name=_shorten_pci(one), source="lspci") for one in displays]
    return graphics, [_shorten_pci(one) for one in NEURAL.findall(text_)]


def _add_memory(graphics: list[Graphics], amdgpu: str) -> list[Graphics]:
    """Return the GPUs in the same order, AMD's with the memory sizes that the text `amdgpu` lists in bytes."""
    sizes = iter([size for one in amdgpu.split() if (size := _number(one)) is not None])
    return [
        attrs.evolve(one, memory_bytes=next(sizes, None)) if "amd" in find_vendors(one.name) else one
        for one in graphics
    ]


def _shorten_pci(name: str) -> str:
    """Return the brand name in a PCI name: `AD103 [GeForce RTX 4080]` of NVIDIA is `NVIDIA GeForce RTX 4080`."""
    vendors = find_vendors(name)
    vendor = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}.get(next(iter(sorted(vendors)), ""), "")
    plain = re.sub(r"\[AMD(?:/ATI)?\]|\(rev \w+\)", "", name)
    product = re.search(r"\[([^\]]+)\]\s*$", plain.strip())
    kept = product[1] if product else re.sub(r"^.*(?:Corporation|Inc\.)\s+", "", plain).strip()
    return kept if find_vendors(kept) & vendors and kept.startswith(vendor) else f"{vendor} {kept}".strip()


def read_dmidecode(text_: str) -> Memory:
    """Return the memory that dmidecode lists; all fields are empty if it lists no module."""
    modules = []
    for block in text_.split("Memory Device")[1:]:
        fields = parse_fields(block)
        size = re.fullmatch(r"([0-9]{1,9}) ([MG])i?B", fields.get("Size", ""))
        if size is not None:
            speed = fields.get("Configured Memory Speed") or fields.get("Speed", "")
            modules.append(
                {
                    "bytes": int(size[1]) * (MIB if size[2] == "M" else GIB),
                    "rate": (_number(speed) or 0.0) * MEGA,
                    "bits": int(_number(fields.get("Data Width")) or MODULE_BITS),
                    "kind": fields.get("Type", ""),
                    "labels": (fields.get("Bank Locator", ""), fields.get("Locator", "")),
                }
            )
    return _join_modules(modules, "dmidecode")


def _join_modules(modules: list[dict[str, Any]], source: str) -> Memory:
    """Return the total memory of modules: each channel's width counts once, and the slowest module sets the rate."""
    if not modules:
        return Memory()
    widths: dict[str, int] = {}
    for index, one in enumerate(modules):
        channel = next((slot for label in one["labels"] if (slot := _find_channel(label))), f"module {index}")
        widths[channel] = max(widths.get(channel, 0), one["bits"])
    rates = [one["rate"] for one in modules if one["rate"]]
    return Memory(
        capacity_bytes=sum(one["bytes"] for one in modules),
        kind=modules[0]["kind"],
        transfers_per_s=min(rates) if rates else None,
        width_bits=sum(widths.values()),
        source=source,
    )


def _find_channel(label: str) -> str:
    match = CHANNEL.search(label)
    return "".join(part.lower() for part in match.groups() if part) if match else ""


def parse_memory(text: str, memory: Memory) -> Memory:
    """Return `memory` with a configuration such as `DDR5-5600x2`; UsageError for any other form."""
    read = MemoryConfiguration.read(text)
    return attrs.evolve(
        memory,
        kind=read.kind,
        transfers_per_s=read.transfers_per_s,
        width_bits=read.width_bits,
        source="--memory",
        configuration=read,
    )


def _read_linux(recording: Recording, system: str) -> Machine:
    graphics, neural = read_lspci(recording.get("lspci", ""))
    graphics = _add_memory(graphics, recording.get("amdgpu", ""))
    accel = recording.get("accel", "")
    named = [name for mark, name in NEURAL_UNITS.items() if mark in accel]
    if named or (not neural and {"amdxdna", "intel_vpu"} & set(accel.split())):
        neural = named or ["NPU"]
    memory = read_dmidecode(recording.get("dmidecode", ""))
    if "cim" in recording:  # Linux inside Windows
        outside = _read_windows(recording, system)
        memory, graphics, neural = outside.memory, list(outside.graphics), list(outside.neural)
    cpu, gaps = None, []
    try:
        cpu = describe_cpu(
            recording.get("lscpu", ""),
            recording.get("cpuinfo", ""),
            recording.get("meminfo", ""),
            frequencies={
                "base_frequency": recording.get("base-frequency", "").strip(),
                "cpuinfo_max_freq": recording.get("max-frequency", "").strip(),
            },
            vector_bytes=recording.get("vector-length", "").strip(),
        )
    except UsageError as error:
        gaps.append(NO_PROCESSOR(reason=str(error)))
    limit = recording.get("cgroup-memory", "").strip()
    capacity = float(cpu.memory_bytes) if cpu and cpu.memory_bytes else memory.capacity_bytes
    most = _number(limit) if limit.isdecimal() else None
    if most is not None and (capacity is None or most < capacity):
        capacity = most
    memory = attrs.evolve(memory, capacity_bytes=capacity)
    return Machine(
        system=system,
        board=recording.get("model", "").strip(),
        cpu=cpu,
        graphics=tuple(graphics),
        neural=tuple(neural),
        memory=memory,
        gaps=tuple(gaps),
    )


def _read_mac(recording: Recording, system: str) -> Machine:
    profile = _decode(recording.get("system_profiler", ""))
    hardware = next(iter(_list(profile.get("SPHardwareDataType"))), {})
    values = parse_fields(recording.get("sysctl", ""))
    name = str(values.get("machdep.cpu.brand_string") or hardware.get("chip_type") or hardware.get("cpu_type") or "")
    cores = [int(one) for one in re.findall(r"\b[0-9]{1,4}\b", str(hardware.get("number_processors", "")))]
    memory_bytes = _number(values.get("hw.memsize")) or _number(hardware.get("physical_memory"), GIB)
    is_apple = name.startswith("Apple")
    count = int(_number(values.get("hw.physicalcpu")) or (cores[0] if cores else 0))
    cpu = None
    if name and count:
        cpu = Cpu(
            name=name,
            vendor="Apple" if is_apple else "Intel",
            core_count=count,
            threads_per_core=1 if is_apple else 2,
            flags=APPLE_FLAGS if is_apple else PRESENT_X86,
            clock_hz=_number(values.get("hw.cpufrequency")),
            clock_source="sysctl hw.cpufrequency",
            memory_bytes=int(memory_bytes) if memory_bytes else None,
        )
    parts = "+".join(f"{many}{kind}" for many, kind in zip(cores[1:3], "PE", strict=False))
    graphics = []
    for one in _list(profile.get("SPDisplaysDataType")):
        title, units = str(one.get("sppci_model", "")), _number(one.get("sppci_cores"))
        if title.startswith("Apple") and units:
            title = f"{title} {parts}+{units:g}GPU" if parts else f"{title} {units:g}GPU"
        if title:
            units_count = int(units) if units else None
            graphics.append(Graphics(name=title, core_count=units_count, source="system_profiler"))
    kinds = [str(one.get("dimm_type", "")) for one in _list(profile.get("SPMemoryDataType"))]
    return Machine(
        system=system,
        cpu=cpu,
        graphics=tuple(graphics),
        neural=(f"{name} Neural Engine",) if is_apple else (),
        memory=Memory(capacity_bytes=memory_bytes, kind=next(iter(kinds), ""), source="system_profiler"),
        gaps=() if cpu else (NO_PROCESSOR(reason=NO_PROFILER),),
    )


def _read_windows(recording: Recording, system: str) -> Machine:
    objects = _decode(recording.get("cim", ""))
    processors = [one for one in _list(objects.get("processor")) if one.get("Name")]
    modules = [
        {
            "bytes": float(_count(CIM, one, "Capacity")),
            "rate": (_count(CIM, one, "ConfiguredClockSpeed") or _count(CIM, one, "Speed")) * MEGA,
            "bits": _count(CIM, one, "DataWidth") or MODULE_BITS,
            "kind": MEMORY_KINDS.get(_count(CIM, one, "SMBIOSMemoryType"), ""),
            "labels": (str(one.get("BankLocator", "")), str(one.get("DeviceLocator", ""))),
        }
        for one in _list(objects.get("memory"))
    ]
    memory = _join_modules(modules, "Get-CimInstance")
    cpu = None
    if processors:
        first = processors[0]
        count = sum(_count(CIM, one, "NumberOfCores") for one in processors)
        threads = _count(CIM, first, "NumberOfLogicalProcessors") // max(_count(CIM, first, "NumberOfCores"), 1)
        name = " ".join(str(first["Name"]).split())
        vendor = next((one for one in ("AMD", "Qualcomm") if one.lower() in find_vendors(name)), "Intel")
        cpu = Cpu(
            name=name,
            vendor=vendor,
            core_count=max(count, 1),
            socket_count=len(processors),
            threads_per_core=max(threads, 1),
            flags=ARM_FLAGS if vendor == "Qualcomm" else PRESENT_X86,
            clock_hz=_count(CIM, first, "MaxClockSpeed") * MEGA or None,
            clock_source="Win32_Processor MaxClockSpeed",
            memory_bytes=int(memory.capacity_bytes) if memory.capacity_bytes else None,
        )
    graphics = [
        Graphics(name=str(one["Name"]), source="Get-CimInstance")
        for one in _list(objects.get("video"))
        if one.get("Name") and not any(name in str(one["Name"]).lower() for name in SERVER_GRAPHICS)
    ]
    return Machine(
        system=system,
        cpu=cpu,
        graphics=tuple(graphics),
        neural=tuple(str(one["Name"]) for one in _list(objects.get("neural")) if one.get("Name")),
        memory=memory,
        gaps=() if cpu else (NO_PROCESSOR(reason=NO_CIM),),
    )


def _list(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects in a PowerShell value; PowerShell writes a list of one object as the bare object."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _load(text_: str) -> object:
    """Return the value of a JSON text; None for any other text."""
    try:
        return json.loads(text_)
    except (ValueError, RecursionError):
        return None


def _decode(text_: str) -> dict[str, Any]:
    """Return the JSON object in a text; empty if there is none."""
    content = _load(text_[max(text_.find("{"), 0) :])
    return content if isinstance(content, dict) else {}


def _count(tool: str, fields: Mapping[str, Any], name: str) -> int:
    """Return a whole number that a tool reports, 0 if it reports none; UsageError for any other value."""
    value = fields.get(name)
    if value is None or value == "":
        return 0
    number = None if isinstance(value, bool | list | dict) else _number(value)
    if number is None or number > LARGEST_COUNT:
        raise UsageError(NO_COUNT(tool=tool, field=name, value=str(value)[:40]))
    return int(number)


def _number(value: object, factor: float = 1.0) -> float | None:
    """Return the number at the beginning of a value, times a factor; None if there is none, or none of a machine."""
    match = re.match(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)(?![0-9])", str(value)) if value is not None else None
    number = float(match[1]) * factor if match else math.inf
    return number if number <= LARGEST else None
