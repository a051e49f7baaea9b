"""Outputs of a machine's tools by name, read from this machine, a folder of text files, or one JSON file.

An answer knows a machine only by its recording, so a recorded machine and this machine get equal answers.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from joulemap.device import run_tool
from joulemap.device.processor import CPUS, read_text
from joulemap.system import FileError, UsageError, decode, read_bytes

Recording = Mapping[str, str]

SYSTEM: Final = "system"

MOST_BYTES: Final = 4_000_000
"""Maximum size in bytes of a recorded file."""

SMI_FIELDS: Final = "name,memory.total,power.limit,clocks.max.sm,clocks.max.memory,compute_cap"
OLD_SMI_FIELDS: Final = "name,memory.total,power.limit,clocks.max.sm,clocks.max.memory"

TOOLS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "": {
        "nvidia-smi": ("nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv"),
        "rocm-smi": ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--json"),
        "xpu-smi": ("xpu-smi", "discovery", "-j"),
    },
    "Linux": {
        "lscpu": ("lscpu",),
        "lspci": ("lspci",),
        "dmidecode": ("dmidecode", "--type", "memory"),
    },
    "Darwin": {
        "sysctl": ("sysctl", "hw", "machdep.cpu"),
        "system_profiler": ("system_profiler", "-json", "SPHardwareDataType", "SPDisplaysDataType", "SPMemoryDataType"),
    },
    "Windows": {
        "cim": (
            "powershell",
            "-NoProfile",
            "-Command",
            "@{processor=@(Get-CimInstance Win32_Processor | Select-Object Name,NumberOfCores,"
            "NumberOfLogicalProcessors,MaxClockSpeed,L2CacheSize,L3CacheSize);"
            "video=@(Get-CimInstance Win32_VideoController | Select-Object Name,AdapterRAM);"
            "memory=@(Get-CimInstance Win32_PhysicalMemory | Select-Object Capacity,Speed,ConfiguredClockSpeed,"
            "SMBIOSMemoryType,TotalWidth,DataWidth,DeviceLocator,BankLocator);"
            "neural=@(Get-CimInstance Win32_PnPEntity -Filter \"PNPClass='ComputeAccelerator'\" | Select-Object Name)}"
            " | ConvertTo-Json -Depth 4",
        ),
    },
}
"""System -> name of an output -> command that prints it; commands under the empty system run on all systems."""

FILES: Final[Mapping[str, str]] = {
    "cpuinfo": "/proc/cpuinfo",
    "meminfo": "/proc/meminfo",
    "model": "/proc/device-tree/model",
    "cgroup-memory": "/sys/fs/cgroup/memory.max",
    "base-frequency": f"{CPUS}/cpu0/cpufreq/base_frequency",
    "max-frequency": f"{CPUS}/cpu0/cpufreq/cpuinfo_max_freq",
    "vector-length": "/proc/sys/abi/sve_default_vector_length",
}
"""Name of an output -> Linux file that holds it."""


NAMES: Final = frozenset(
    {SYSTEM, "nvml", "amdgpu", "accel", *FILES, *(name for tools in TOOLS.values() for name in tools)}
)
"""Names of all outputs."""


def record() -> Recording:
    """Return the outputs of this machine's tools; missing and failing tools are omitted."""
    system = platform.system()
    outputs = {SYSTEM: system}
    for commands in (TOOLS[""], TOOLS.get(system, {})):
        outputs |= {name: run_tool(*command) for name, command in commands.items()}
    if not outputs["nvidia-smi"]:
        outputs["nvidia-smi"] = run_tool("nvidia-smi", f"--query-gpu={OLD_SMI_FIELDS}", "--format=csv")
    if outputs["nvidia-smi"]:
        outputs["nvml"] = _read_nvml()
    if "microsoft" in platform.release().lower():  # Linux inside Windows, which knows the memory and the display
        outputs["cim"] = run_tool("powershell.exe", *TOOLS["Windows"]["cim"][1:])
    if system == "Linux":
        outputs |= {name: read_text(Path(path)).replace("\0", "") for name, path in FILES.items()}
        drivers = sorted(Path("/sys/class/accel").glob("accel*/device/driver"))
        memories = sorted(Path("/sys/class/drm").glob("card*/device/mem_info_vram_total"))
        outputs["amdgpu"] = "\n".join(map(read_text, memories))
        outputs["accel"] = "\n".join(
            " ".join((path.resolve().name, *(read_text(path.with_name(one)).strip() for one in ("device", "revision"))))
            for path in drivers
        )
    return {name: text for name, text in outputs.items() if text.strip()}


def _read_nvml() -> str:
    """Return the core count and memory bus width of each NVIDIA GPU as JSON; empty without `nvidia-ml-py`."""
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]

        pynvml.nvmlInit()
        boards = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            boards.append(
                {
                    "cores": pynvml.nvmlDeviceGetNumGpuCores(device),
                    "bus_bits": pynvml.nvmlDeviceGetMemoryBusWidth(device),
                }
            )
        return json.dumps(boards)
    except Exception:  # a missing library, driver or function: the answer then knows less
        return ""


def load_recording(path: Path) -> Recording:
    """Return the outputs in a folder, one file each, or in a JSON file; UsageError for anything else.

    Only regular files of limited size are read, in a folder those that are named after an output.
    """
    try:
        if path.is_dir():
            files = [one for one in sorted(path.iterdir()) if one.stem in NAMES and one.is_file()]
            outputs = {one.stem: read_bytes(one, MOST_BYTES).decode("utf-8", errors="replace") for one in files}
        else:
            outputs = json.loads(decode(read_bytes(path, MOST_BYTES)))
    except FileError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a JSON file of a recorded machine: {error}") from error
    if not isinstance(outputs, dict) or not all(isinstance(text, str) for text in outputs.values()):
        raise UsageError(f"{path} is not a recording of a machine: write one with `joulemap here --record FILE.json`")
    if not outputs.keys() & NAMES:
        raise UsageError(f"{path} has no output of a tool: expected lscpu, nvidia-smi, system_profiler, cim or others")
    return {name: text.encode("utf-8", errors="replace").decode("utf-8") for name, text in outputs.items()}


def dump_recording(recording: Recording) -> str:
    """Return a recording as the text of a JSON file."""
    return json.dumps(dict(recording), indent=1, ensure_ascii=False)
