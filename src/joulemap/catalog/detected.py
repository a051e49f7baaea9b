"""The text of a hardware file for the machine at hand: what it tells, what follows, and rules for what it does not.

    peak = cores x lanes x FMA pipes x 2 x clock

Neither memory bandwidth nor TDP can be read from a running machine: they are rules, marked `assumed`, to be replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

import attrs

from joulemap.domain.machine import Cpu, CpuCache, Gpu
from joulemap.domain.precision import FLOPS_PER_MAC

HEAD: Final = """\
# This machine, as it describes itself. What is marked `assumed` could not be read: replace it where you know better,
# memory_bandwidth and tdp first. Check with `joulemap hardware check FILE`, use with `--hardware FILE`.
"""

SERVER_NAMES: Final = ("xeon", "epyc", "neoverse", "altra", "ampere", "graviton", "platinum")
"""Parts of the names of processors with many memory channels."""

CORE_BANDWIDTH_GB_PER_S: Final = 20.0
CHIP_BANDWIDTH_GB_PER_S: Final = {True: 300.0, False: 60.0}
"""Of all channels: of a server (8 of DDR5-4800) or not (2 of DDR5, at what they sustain)."""

CORE_POWER_W: Final = 5.0
ASSUMED_CLOCK_GHZ: Final = 2.5
ASSUMED_MEMORY_GB: Final = 16.0
LEVEL_RATIO: Final = 4.0
"""As the class's rule for a shared cache that a file leaves out."""

FP32_BITS: Final = 32
ZEN_3_AND_4: Final = 25
"""x86 family of AMD cores whose vector unit is 256 bits wide, AVX-512 or not."""

AMX_OPERATIONS: Final = {"bf16": ("amx_bf16", 1024, 8192), "int8": ("amx_int8", 2048, 16384)}
"""precision -> (flag, operations per clock of a core, MACs of one tile multiply). Source: Intel Optimization Reference
Manual, Intel AMX: 512 bf16 or 1024 int8 MACs a cycle."""

AMX_TILE_BITS: Final = 8192

RATES: Final = (
    ("fp16", ("avx512_fp16", "asimdhp"), 2),
    ("bf16", ("avx512_bf16", "avx_bf16", "bf16"), 2),
    ("int8", ("avx512_vnni", "avx_vnni", "asimddp"), 4),
)
"""(precision, flags of which one gives it to the vector unit, its operations over those at fp32)."""


@attrs.frozen
class _Vector:
    """What the flags tell of a core's vector unit."""

    bits: int
    instruction_bits: int
    """Wider than `bits` where an instruction passes the unit twice."""
    pipes: int
    reason: str

    @property
    def operations(self) -> int:
        """Of a core per clock at fp32."""
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
    """Return a name as part of an id: lower case, without marks, clock and what every name has."""
    plain = re.sub(r"\((?:r|tm|c)\)|@.*|\bwith\b.*|\b(?:cpu|processor|\d+-core)\b", " ", name.lower())
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_") or "unknown"


def cpu_id(cpu: Cpu) -> str:
    """Return the id of a processor's description: cores count, as a part of a server is another target."""
    return f"this_{slug(cpu.name)}_{cpu.core_count}_core{'' if cpu.core_count == 1 else 's'}"


class _File:
    """Lines of a hardware file and the sources that they name."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def quantity(self, value: float, unit: str, basis: str, key: str, source: str, note: str = "") -> str:
        self.sources[key] = source
        tail = f", note = {_text(note)}" if note else ""
        return f'{{ value = {value:.6g}, unit = "{unit}", basis = "{basis}", source = "{key}"{tail} }}'


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def cpu_text(cpu: Cpu) -> str:
    """Return a hardware file of this processor; `hardware check` accepts it."""
    file = _File()
    vector = _vector(cpu)
    ghz = (cpu.clock_hz or 0.0) / 1e9
    clock_source = cpu.clock_source
    if not ghz:
        ghz, clock_source = ASSUMED_CLOCK_GHZ, "rule: the machine tells no clock"
    quantities = [
        ("unit_count", file.quantity(cpu.core_count, "1", "measured", "lscpu", "lscpu or /proc/cpuinfo of this machine",
                                     "physical cores that the system sees")),
        ("clock", file.quantity(ghz, "GHz", "measured" if cpu.clock_hz else "assumed", "clock", clock_source,
                                "the clock that the peaks are quoted at")),
    ]  # fmt: skip
    if cpu.clock_max_hz:
        quantities.append(
            ("clock_boost", file.quantity(cpu.clock_max_hz / 1e9, "GHz", "measured", "cpufreq", "cpufreq or lscpu"))
        )
    quantities += _memory(cpu, file)
    geometry = [
        ("simd_width", file.quantity(vector.bits, "bit", "derived", "flags", "processor flags", vector.reason)),
        ("fma_pipe_count", file.quantity(vector.pipes, "1", "assumed", "pipes", "rule: two FMA pipes per core, one "
                                         "without FMA instructions", "some chips have one at 512 bits")),
        ("threads_per_unit", file.quantity(cpu.threads_per_core, "1", "measured", "lscpu", file.sources["lscpu"])),
    ]  # fmt: skip
    if vector.instruction_bits != vector.bits:
        geometry.append(("vector_instruction_width", file.quantity(vector.instruction_bits, "bit", "derived", "flags",
                                                                   file.sources["flags"])))  # fmt: skip
    matrix = [(name, macs) for name, (flag, _, macs) in AMX_OPERATIONS.items() if flag in cpu.flags]
    amx = "Intel 64 and IA-32 Architectures Software Developer's Manual, AMX"
    if matrix:
        geometry.append(("matrix_tile", file.quantity(AMX_TILE_BITS, "bit", "published", "amx", amx)))
    geometry += [
        (f"matrix_macs_per_instruction_{name}", file.quantity(macs, "1", "published", "amx", amx))
        for name, macs in matrix
    ]
    levels = _levels(cpu, file)
    peaks = _peaks(cpu, vector, ghz, file)
    return _compose(
        {
            "id": cpu_id(cpu),
            "name": f"{cpu.name}, {cpu.core_count} core{'' if cpu.core_count == 1 else 's'}, as detected",
            "vendor": cpu.vendor,
            "architecture": "cpu",
            "unit_name": "core",
        },
        _cpu_doubts(cpu),
        file,
        quantities,
        geometry,
        levels,
        peaks,
    )


def _bandwidth(cpu: Cpu) -> tuple[float, str]:
    """Return (GB/s, rule) of the memory."""
    whole = CHIP_BANDWIDTH_GB_PER_S[any(part in cpu.name.lower() for part in SERVER_NAMES)]
    rule = f"rule: {CORE_BANDWIDTH_GB_PER_S:g} GB/s for each core that runs, at most {whole:g} GB/s of all channels"
    return min(CORE_BANDWIDTH_GB_PER_S * cpu.core_count, whole), rule


def _memory(cpu: Cpu, file: _File) -> list[tuple[str, str]]:
    """Return capacity, bandwidth and TDP, of which only the first can be read."""
    bandwidth, rule = _bandwidth(cpu)
    known = cpu.memory_bytes is not None
    capacity = cpu.memory_bytes / 1e9 if cpu.memory_bytes is not None else ASSUMED_MEMORY_GB
    return [
        ("memory_capacity", file.quantity(capacity, "GB", "measured" if known else "assumed", "meminfo",
                                          "/proc/meminfo, MemTotal" if known else "rule: the machine does not tell")),
        ("memory_bandwidth", file.quantity(bandwidth, "GB/s", "assumed", "bandwidth_rule", rule,
                                           "cannot be read: replace it, e.g. by channels x 8 B x transfers/s")),
        ("tdp", file.quantity(CORE_POWER_W * cpu.core_count, "W", "assumed", "tdp_rule",
                              f"rule: {CORE_POWER_W:g} W for each core, as the server CPUs of the catalogue",
                              "cannot be read: replace it by the data sheet's")),
    ]  # fmt: skip


def _levels(cpu: Cpu, file: _File) -> list[str]:
    """Return the cache levels: private ones by core, the last one whole if cores share it."""
    texts = []
    for cache in cpu.caches:
        if cache.level > 3:
            continue
        is_last = cache is cpu.caches[-1]
        is_shared = is_last and cache.level > 1 and (cache.level == 3 or cache.instance_count < cpu.core_count)
        texts.append(_level(cache, cpu, is_shared, file))
    return texts


def _level(cache: CpuCache, cpu: Cpu, is_shared: bool, file: _File) -> str:
    whole = cache.capacity_bytes * cache.instance_count
    instances = f"{cache.instance_count} of {cache.capacity_bytes / 1024:g} KiB"
    capacity = whole if is_shared else whole / cpu.core_count
    lines = [
        "[[memory_levels]]",
        f'name = "l{cache.level}"',
        'kind = "cache"',
        f'per = "{"chip" if is_shared else "unit"}"',
        f"capacity = {file.quantity(capacity / 1024, 'KiB', 'measured', 'caches', cache.source, instances)}",
    ]
    if is_shared:
        bandwidth, _ = _bandwidth(cpu)
        rule = f"rule: {LEVEL_RATIO:g} x memory bandwidth, as the class's"
        lines.append(f"bandwidth = {file.quantity(LEVEL_RATIO * bandwidth, 'GB/s', 'assumed', 'level_rule', rule)}")
    return "\n".join(lines)


def _peaks(cpu: Cpu, vector: _Vector, ghz: float, file: _File) -> list[str]:
    """Return the dense peaks of the precisions that the core computes in."""
    operations = {"fp64": vector.operations // 2, "fp32": vector.operations}
    for precision, flags, factor in RATES:
        if cpu.flags & set(flags):
            operations[precision] = vector.operations * factor
    if "i8mm" in cpu.flags:
        operations["int8"] = vector.operations * 8
    for precision, (flag, rate, _) in AMX_OPERATIONS.items():
        if flag in cpu.flags:
            operations[precision] = rate
    return [_peak(name, rate, cpu.core_count, ghz, file, name.startswith("int")) for name, rate in operations.items()]


def _peak(name: str, operations: float, units: int, ghz: float, file: _File, is_integer: bool, engine: str = "") -> str:
    source = f"derived: {units} units x {operations:g} operations/clk x {ghz:.6g} GHz"
    unit = "TOPS" if is_integer else "TFLOPS"
    rate = file.quantity(units * operations * ghz / 1000.0, unit, "derived", f"derived_{name}", source)
    tail = f'\nengine = "{engine}"' if engine else ""
    return f"[peaks.{name}]\nrate = {rate}\noperations_per_clock = {operations:g}{tail}"


def _cpu_doubts(cpu: Cpu) -> list[str]:
    doubts = ["Memory bandwidth and TDP are rules of joulemap, not of this machine; so is what follows from them."]
    if cpu.is_virtual:
        doubts.append(
            "A virtual machine: its cores may be threads that share one; caches and channels are shared with others."
        )
    return doubts


def _compose(
    head: Mapping[str, str],
    doubts: list[str],
    file: _File,
    quantities: list[tuple[str, str]],
    geometry: list[tuple[str, str]],
    levels: list[str],
    peaks: list[str],
) -> str:
    lines = [f"{key} = {_text(value)}" for key, value in head.items()]
    lines += ["doubts = [", *(f"    {_text(doubt)}," for doubt in doubts), "]"]
    tables = [
        "\n".join(["[sources]", *(f"{key} = {_text(source)}" for key, source in file.sources.items())]),
        "\n".join(["[quantities]", *(f"{key} = {value}" for key, value in quantities)]),
        "\n".join(["[geometry]", *(f"{key} = {value}" for key, value in geometry)]),
        *levels,
        *peaks,
    ]
    return HEAD + "\n".join(lines) + "\n\n" + "\n\n".join(tables) + "\n"


TENSOR_OPERATIONS: Final = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 9): 1024, (9, 0): 4096, (10, 0): 8192}
"""compute capability -> operations of an SM's tensor cores per clock at fp16, dense, adding up in fp32. Source: the
NVIDIA GPUs of the catalogue."""

GEFORCE_ADA: Final = 512
"""Of a GeForce of capability 8.9, where adding up in fp32 halves the rate."""

NARROW: Final = ((7, 0), (7, 2), (7, 5), (8, 0))
"""Capabilities with 64 fp32 lanes for each SM; others have 128. Source: CUDA C++ Programming Guide."""

AMPERE: Final = (8, 0)


def gpu_id(gpu: Gpu) -> str:
    """Return the id of a graphics processor's description."""
    return f"this_{slug(gpu.name)}"


def gpu_text(gpu: Gpu) -> str:
    """Return a hardware file of this graphics processor; `hardware check` accepts it."""
    file = _File()
    ghz = gpu.clock_hz / 1e9
    lanes = 64 if gpu.capability in NARROW else 128
    driver = "the CUDA driver, as torch and nvidia-smi show it"
    bandwidth = 2 * gpu.memory_clock_hz * gpu.memory_bus_bits / 8 / 1e9
    note = "the data rate is taken as two transfers a clock"
    quantities = [
        ("unit_count", file.quantity(gpu.unit_count, "1", "measured", "driver", driver)),
        (
            "clock",
            file.quantity(ghz, "GHz", "measured", "driver", driver, "the largest clock; the peaks are quoted at it"),
        ),
        ("memory_capacity", file.quantity(gpu.memory_bytes / 1e9, "GB", "measured", "driver", driver)),
        (
            "memory_bandwidth",
            file.quantity(bandwidth, "GB/s", "derived", "bus", "2 x memory clock x bus width / 8", note),
        ),
        ("tdp", file.quantity(gpu.power_w, "W", "measured", "driver", driver, "the power limit")),
    ]
    version = ".".join(map(str, gpu.capability))
    lane_source = f"CUDA C++ Programming Guide, compute capability {version}"
    geometry = [
        ("fp32_lanes_per_unit", file.quantity(lanes, "1", "published", "lanes", lane_source)),
        ("warp_size", file.quantity(32, "1", "published", "lanes", lane_source)),
    ]
    peaks = [_peak("fp32", lanes * FLOPS_PER_MAC, gpu.unit_count, ghz, file, False, "cuda_core")]
    tensor = TENSOR_OPERATIONS.get(gpu.capability)
    if tensor and gpu.capability == (8, 9) and "geforce" in gpu.name.lower():
        tensor = GEFORCE_ADA
    if tensor:
        names = {"tf32": tensor / 2, "fp16": tensor, "bf16": tensor} if gpu.capability >= AMPERE else {"fp16": tensor}
        peaks += [_peak(name, rate, gpu.unit_count, ghz, file, False, "tensor_core") for name, rate in names.items()]
    rule = "class rule: 128 KiB per unit, shared memory included"
    l1 = file.quantity(128, "KiB", "assumed", "l1_rule", rule)
    l2 = file.quantity(gpu.l2_bytes / 1024, "KiB", "measured", "driver", driver)
    levels = [
        f'[[memory_levels]]\nname = "l1"\nkind = "cache"\nper = "unit"\ncapacity = {l1}',
        f'[[memory_levels]]\nname = "l2"\nkind = "cache"\nper = "chip"\ncapacity = {l2}',
    ]
    head = {
        "id": gpu_id(gpu),
        "name": f"{gpu.name}, as detected",
        "vendor": "NVIDIA",
        "architecture": "gpu",
        "unit_name": "SM",
    }
    doubts = [] if tensor else [f"No tensor-core rate is known for compute capability {version}: only fp32 is given."]
    return _compose(head, doubts, file, quantities, geometry, levels, peaks)
