"""Write a hardware file for this machine from detected values, derived values and rules for the rest.

    peak = cores x lanes x FMA pipes x 2 x clock

Memory bandwidth and TDP cannot be read from a running machine. They come from rules, are marked `assumed`, and should
be replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.domain.machine import Cpu, CpuCache, Gpu
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.system.record import frozen

HEAD: Final = """\
# This machine, as it describes itself. Numbers marked `assumed` could not be read: replace those that you know,
# memory_bandwidth and tdp first. Check with `joulemap hardware check FILE`, use with `--hardware FILE`.
"""

SERVER_NAMES: Final = ("xeon", "epyc", "neoverse", "altra", "ampere", "graviton", "platinum")
"""Parts of the names of server processors, which have many memory channels."""

CORE_BANDWIDTH_GB_PER_S: Final = 20.0
CHIP_BANDWIDTH_GB_PER_S: Final = {True: 300.0, False: 60.0}
"""True for a server CPU, False for any other -> assumed bandwidth of all memory channels in GB/s.

Server: 8 channels of DDR5-4800. Other: 2 channels of DDR5 at sustained rate.
"""

CORE_POWER_W: Final = 5.0
ASSUMED_CLOCK_GHZ: Final = 2.5

ALL_CORE_SHARE: Final = 0.8
"""Position of the all-core clock under load, from the base clock (0) to the maximum (1). Measured positions are 0.63 on
a Xeon 8490H, 0.88 on EPYC 9654 and 1 on EPYC 9754.
"""
ASSUMED_MEMORY_GB: Final = 16.0
LEVEL_RATIO: Final = 4.0
"""Assumed ratio of a shared cache's bandwidth to memory bandwidth, by the class's rule for unstated bandwidths."""

FP32_BITS: Final = 32
ZEN_3_AND_4: Final = 25
"""x86 family of AMD cores with a 256-bit vector unit, with or without AVX-512."""

AMX_OPERATIONS: Final = {"bf16": ("amx_bf16", 1024, 8192), "int8": ("amx_int8", 2048, 16384)}
"""Precision -> (flag, operations per clock of a core, MACs of one tile multiply)."""

AMX_TILE_BITS: Final = 8192
AMX_SOURCE: Final = "Intel 64 and IA-32 Architectures Software Developer's Manual, AMX"

RATES: Final = (
    ("fp16", ("avx512_fp16", "asimdhp"), 2),
    ("bf16", ("avx512_bf16", "avx_bf16", "bf16"), 2),
    ("int8", ("avx512_vnni", "avx_vnni", "asimddp"), 4),
)
"""(precision, processor flags, operations relative to fp32); any one of the flags enables the precision."""


CPU_DOUBTS: Final = (
    "Memory bandwidth and TDP are estimated by rules, not read from this machine. Other numbers follow from them.",
    "A virtual machine: its cores may be threads that share one; caches and channels are shared with others.",
)
"""Caveats that the file states; the second one applies only to virtual machines."""


@frozen
class _Vector:
    """Vector unit of a core, derived from processor flags."""

    bits: int
    instruction_bits: int
    """Instruction width; larger than `bits` if an instruction takes two passes of the unit."""
    pipes: int
    reason: str

    @property
    def operations(self) -> int:
        """Operations per clock of one core at fp32."""
        return self.bits // FP32_BITS * self.pipes * FLOPS_PER_MAC


def _vector(cpu: Cpu) -> _Vector:
    flags = cpu.flags
    if "avx512f" in flags:
        if cpu.vendor == "AMD" and cpu.family == ZEN_3_AND_4:
            return _Vector(256, 512, 2, "avx512f on a core of AMD family 25, whose unit is 256 bits wide")
        return _Vector(512, 512, 2, "flag avx512f")
    if "avx2" in flags and "fma" in flags:
        return _Vector(256, 256, 2, "flags avx2 and fma")
    if "avx" in flags:
        return _Vector(256, 256, 1, "flag avx without fma: an adder and a multiplier count as one pipe")
    if cpu.vector_bits is not None and cpu.vector_bits > 128:
        return _Vector(cpu.vector_bits, cpu.vector_bits, 2, "flag sve and the kernel's vector length")
    if flags & {"asimd", "neon"}:
        return _Vector(128, 128, 2, "flag asimd or neon")
    return _Vector(128, 128, 1, "no known vector flag: taken as SSE or the like")


def slug(name: str) -> str:
    """Return a name as part of an id: lower case, without trademark signs, clock and generic words."""
    plain = re.sub(r"\((?:r|tm|c)\)|@.*|\bwith\b.*|\bw/.*|\b(?:cpu|processor|\d+-core)\b", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_") or "unknown"


def cpu_id(cpu: Cpu) -> str:
    """Return the id of a processor's description; it states the cores, because part of a server is another chip."""
    return f"this_{slug(cpu.name)}_{cpu.core_count}_core{'' if cpu.core_count == 1 else 's'}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _File:
    """Builder of a hardware file: its head, sources and tables."""

    def __init__(self, head: Mapping[str, str], doubts: Sequence[str]) -> None:
        self.head = [f"{key} = {_text(value)}" for key, value in head.items()]
        self.head += ["doubts = [", *(f"    {_text(doubt)}," for doubt in doubts), "]"]
        self.sources: dict[str, str] = {}
        self.quantities: list[str] = []
        self.geometry: list[str] = []
        self.levels: list[str] = []
        self.peaks: list[str] = []

    def value(self, value: float, unit: str, basis: str, key: str, source: str = "", note: str = "") -> str:
        """Format a number with its source; the source's description is added under a new key."""
        if source:
            self.sources[key] = source
        tail = f", note = {_text(note)}" if note else ""
        return f'{{ value = {value:.6g}, unit = "{unit}", basis = "{basis}", source = "{key}"{tail} }}'

    def quantity(self, name: str, *given: Any) -> None:
        """Add a number to `[quantities]`; `given` are the arguments of `value`."""
        self.quantities.append(f"{name} = {self.value(*given)}")

    def shape(self, name: str, *given: Any) -> None:
        """Add a number to `[geometry]`; `given` are the arguments of `value`."""
        self.geometry.append(f"{name} = {self.value(*given)}")

    def level(self, name: str, per: str, capacity: str, bandwidth: str = "") -> None:
        """Add a cache level."""
        lines = ["[[memory_levels]]", f'name = "{name}"', 'kind = "cache"', f'per = "{per}"', f"capacity = {capacity}"]
        self.levels.append("\n".join([*lines, *([f"bandwidth = {bandwidth}"] if bandwidth else [])]))

    def peak(
        self, name: str, operations: float, units: int, ghz: float, engine: str = "", basis: str = "derived"
    ) -> None:
        """Add a dense peak."""
        source = f"derived: {units} units x {operations:g} operations/clk x {ghz:.6g} GHz"
        unit = "TOPS" if name.startswith("int") else "TFLOPS"
        rate = self.value(units * operations * ghz / 1000.0, unit, basis, f"derived_{name}", source)
        tail = f'\nengine = "{engine}"' if engine else ""
        self.peaks.append(f"[peaks.{name}]\nrate = {rate}\noperations_per_clock = {operations:g}{tail}")

    def compose(self) -> str:
        """Return the text of the file."""
        sources = (f"{key} = {_text(source)}" for key, source in self.sources.items())
        tables = [["[sources]", *sources], ["[quantities]", *self.quantities], ["[geometry]", *self.geometry]]
        return HEAD + "\n\n".join(["\n".join(self.head), *map("\n".join, tables), *self.levels, *self.peaks]) + "\n"


def cpu_text(cpu: Cpu) -> str:
    """Return a hardware file of this processor that `hardware check` accepts."""
    cores = f"{cpu.core_count} core{'' if cpu.core_count == 1 else 's'}"
    head = {
        "id": cpu_id(cpu),
        "name": f"{cpu.name}, {cores}, as detected",
        "vendor": cpu.vendor,
        "architecture": "cpu",
        "unit_name": "core",
    }
    file = _File(head, CPU_DOUBTS if cpu.is_virtual else CPU_DOUBTS[:1])
    file.head.append("works_at_limit = true")
    vector = _vector(cpu)
    ghz, basis, clock_source = (cpu.clock_hz or 0.0) / 1e9, "measured", cpu.clock_source
    if not ghz:
        ghz, basis, clock_source = ASSUMED_CLOCK_GHZ, "assumed", "rule: the machine reports no clock"
    elif cpu.clock_max_hz and cpu.clock_max_hz / 1e9 > ghz:
        ghz += ALL_CORE_SHARE * (cpu.clock_max_hz / 1e9 - ghz)
        basis = "assumed"
        clock_source = f"rule: {ALL_CORE_SHARE:g} of the way to the largest clock from the {clock_source}"
    file.quantity("unit_count", cpu.core_count, "1", "measured", "lscpu", "lscpu or /proc/cpuinfo of this machine",
                  "physical cores that the system sees")  # fmt: skip
    file.quantity("clock", ghz, "GHz", basis, "clock", clock_source, "the clock that the peaks are quoted at")
    if cpu.clock_max_hz:
        file.quantity("clock_boost", cpu.clock_max_hz / 1e9, "GHz", "measured", "cpufreq", "cpufreq or lscpu")
    _add_memory(cpu, file)
    file.shape("simd_width", vector.bits, "bit", "derived", "flags", "processor flags", vector.reason)
    file.shape("fma_pipe_count", vector.pipes, "1", "assumed", "pipes",
               "rule: two FMA pipes per core, one without FMA instructions",
               "some chips have one at 512 bits")  # fmt: skip
    file.shape("threads_per_unit", cpu.threads_per_core, "1", "measured", "lscpu")
    if vector.instruction_bits != vector.bits:
        file.shape("vector_instruction_width", vector.instruction_bits, "bit", "derived", "flags")
    matrix = {name: macs for name, (flag, _, macs) in AMX_OPERATIONS.items() if flag in cpu.flags}
    if matrix:
        file.shape("matrix_tile", AMX_TILE_BITS, "bit", "published", "amx", AMX_SOURCE)
    for name, macs in matrix.items():
        file.shape(f"matrix_macs_per_instruction_{name}", macs, "1", "published", "amx")
    for cache in cpu.caches:
        if cache.level <= 3:
            _add_level(cache, cpu, file)
    for name, operations in _operations(cpu, vector).items():
        file.peak(name, operations, cpu.core_count, ghz, basis="assumed" if basis == "assumed" else "derived")
    return file.compose()


def _bandwidth(cpu: Cpu) -> tuple[float, str]:
    """Return the memory bandwidth in GB/s and its source, which is a rule if no tool reports the channels."""
    if cpu.memory_bytes_per_s is not None:
        return cpu.memory_bytes_per_s / 1e9, f"{cpu.memory_source}: data rate x width of all channels"
    whole = CHIP_BANDWIDTH_GB_PER_S[any(part in cpu.name.lower() for part in SERVER_NAMES)]
    rule = f"rule: {CORE_BANDWIDTH_GB_PER_S:g} GB/s for each core that runs, at most {whole:g} GB/s of all channels"
    return min(CORE_BANDWIDTH_GB_PER_S * cpu.core_count, whole), rule


def _add_memory(cpu: Cpu, file: _File) -> None:
    """Add capacity, bandwidth and TDP; only the capacity can be read from the machine."""
    if cpu.memory_bytes is not None:
        file.quantity("memory_capacity", cpu.memory_bytes / 1e9, "GB", "measured", "meminfo", "/proc/meminfo, MemTotal")
    else:
        file.quantity("memory_capacity", ASSUMED_MEMORY_GB, "GB", "assumed", "meminfo",
                      "rule: the machine does not report it")  # fmt: skip
    bandwidth, rule = _bandwidth(cpu)
    is_read = cpu.memory_bytes_per_s is not None
    file.quantity("memory_bandwidth", bandwidth, "GB/s", "derived" if is_read else "assumed", "bandwidth_rule", rule,
                  "" if is_read else "cannot be read: replace it, e.g. with channels x 8 B x transfers/s")  # fmt: skip
    file.quantity("tdp", CORE_POWER_W * cpu.core_count, "W", "assumed", "tdp_rule",
                  f"rule: {CORE_POWER_W:g} W for each core, as for server CPUs of the catalogue",
                  "cannot be read: replace it with that of the data sheet")  # fmt: skip


def _add_level(cache: CpuCache, cpu: Cpu, file: _File) -> None:
    """Add a cache level: private caches per core, the last level as a whole if cores share it."""
    is_last = cache is cpu.caches[-1]
    is_shared = is_last and cache.level > 1 and (cache.level == 3 or cache.instance_count < cpu.core_count)
    whole = cache.capacity_bytes * cache.instance_count
    instances = f"{cache.instance_count} of {cache.capacity_bytes / 1024:g} KiB"
    kib = (whole if is_shared else whole / cpu.core_count) / 1024
    capacity, bandwidth = file.value(kib, "KiB", "measured", "caches", cache.source, instances), ""
    if is_shared:
        rule = f"rule: {LEVEL_RATIO:g} x memory bandwidth, as the class's"
        bandwidth = file.value(LEVEL_RATIO * _bandwidth(cpu)[0], "GB/s", "assumed", "level_rule", rule)
    file.level(f"l{cache.level}", "chip" if is_shared else "unit", capacity, bandwidth)


def _operations(cpu: Cpu, vector: _Vector) -> dict[str, int]:
    """Return precision -> dense operations of a core per clock."""
    operations = {"fp64": vector.operations // 2, "fp32": vector.operations}
    for precision, flags, factor in RATES:
        if cpu.flags & set(flags):
            operations[precision] = vector.operations * factor
    if "i8mm" in cpu.flags:
        operations["int8"] = vector.operations * 8
    operations |= {precision: rate for precision, (flag, rate, _) in AMX_OPERATIONS.items() if flag in cpu.flags}
    return operations


TENSOR_OPERATIONS: Final = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192}
"""Compute capability -> dense fp16 operations of an SM's tensor cores per clock, accumulating in fp32. Source: the
NVIDIA GPUs of the catalogue.
"""

GEFORCE_ADA: Final = 512
"""Tensor operations per clock and SM of a GeForce of capability 8.9, if fp32 accumulation halves the rate."""

NARROW: Final = ((7, 0), (7, 2), (7, 5), (8, 0))
"""Compute capabilities with 64 fp32 lanes per SM; all others have 128. Source: CUDA C++ Programming Guide."""

AMPERE: Final = (8, 0)


def gpu_id(gpu: Gpu) -> str:
    """Return the id of a graphics processor's description."""
    return f"this_{slug(gpu.name)}"


def gpu_text(gpu: Gpu) -> str:
    """Return a hardware file of this graphics processor that `hardware check` accepts."""
    tensor = TENSOR_OPERATIONS.get(gpu.capability)
    if tensor and gpu.capability == (8, 9) and "geforce" in gpu.name.lower():
        tensor = GEFORCE_ADA
    version = ".".join(map(str, gpu.capability))
    head = {
        "id": gpu_id(gpu),
        "name": f"{gpu.name}, as detected",
        "vendor": "NVIDIA",
        "architecture": "gpu",
        "unit_name": "SM",
    }
    doubts = [] if tensor else [f"No tensor-core rate is known for compute capability {version}: only fp32 is given."]
    file = _File(head, doubts)
    ghz = gpu.clock_hz / 1e9
    origin = ("measured", "driver", "the CUDA driver, as torch and nvidia-smi show it")
    file.quantity("unit_count", gpu.unit_count, "1", *origin)
    file.quantity("clock", ghz, "GHz", *origin, "the largest clock; the peaks are quoted at it")
    file.quantity("memory_capacity", gpu.memory_bytes / 1e9, "GB", *origin)
    bandwidth = 2 * gpu.memory_clock_hz * gpu.memory_bus_bits / 8 / 1e9
    file.quantity("memory_bandwidth", bandwidth, "GB/s", "derived", "bus", "2 x memory clock x bus width / 8",
                  "the data rate is taken as two transfers a clock")  # fmt: skip
    file.quantity("tdp", gpu.power_w, "W", *origin, "the power limit")
    lanes = 64 if gpu.capability in NARROW else 128
    guide = f"CUDA C++ Programming Guide, compute capability {version}"
    file.shape("fp32_lanes_per_unit", lanes, "1", "published", "lanes", guide)
    file.shape("warp_size", 32, "1", "published", "lanes")
    file.peak("fp32", lanes * FLOPS_PER_MAC, gpu.unit_count, ghz, "cuda_core")
    rates: dict[str, float] = {"fp16": tensor} if tensor else {}
    if tensor and gpu.capability >= AMPERE:
        rates = {"tf32": tensor / 2, "fp16": tensor, "bf16": tensor}
    for name, rate in rates.items():
        file.peak(name, rate, gpu.unit_count, ghz, "tensor_core")
    l1 = file.value(128, "KiB", "assumed", "l1_rule", "class rule: 128 KiB per unit, shared memory included")
    file.level("l1", "unit", l1)
    file.level("l2", "chip", file.value(gpu.l2_bytes / 1024, "KiB", *origin))
    return file.compose()
