"""Toy chips with round numbers, one of each class, for values computed by hand.

Coefficients and actions have the names of the class. Unless the chip has other values, a coefficient is 1 (1 us if it
is a time) and an action costs 1 pJ. Regulators have no losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import attrs

import gpu_coefficient
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.configuration import FLOPS_PER_MAC, BoundaryName
from joulemap.physics.record.hardware import Hardware, MemoryLevel, Peak
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.reference import LOSS_ACTION, STATIC_ACTION, ActionKey, EnergyAction, EnergyReference
from joulemap.plan.target import AtBoundary, AtMode, Target
from joulemap.system.units import FJ_PER_J

CLOCK_HZ = 1e9
DRAM_BYTES_PER_S = 100e9 * 0.5
"""DRAM bandwidth at an efficiency of 0.5."""
LEVEL_BYTES_PER_S = 1e12
LAUNCH_S = 1e-6
HOST_S = 1e-5
KIB, MIB = 2.0**10, 2.0**20
FJ_PER_PJ = 1e3


def number(value: float, unit: str = "1") -> Quantity:
    """Return an assumed quantity of a toy chip."""
    return Quantity(value=value, unit=unit, basis="assumed", source="a toy chip")


@cache
def vocabulary(architecture: str) -> tuple[dict[str, str], dict[ActionKey, EnergyAction]]:
    """Return (coefficient -> unit, key -> action) of a class."""
    hardware = [one for one in load_catalogue().hardware.values() if one.architecture == architecture]
    units = {name: quantity.unit for one in hardware for name, quantity in one.coefficients.items()}
    return units, {action.key: action for one in hardware for action in one.reference}


def bound(hardware: Hardware, power_mode: str, boundary: BoundaryName) -> Hardware:
    """Return a chip, given at its anchor, bound to a power mode and a boundary."""
    return Target(hardware, (AtMode(power_mode), AtBoundary.of(hardware, boundary))).bind(hardware)


def level(
    name: str,
    capacity_bytes: float,
    *,
    kind: str = "scratchpad",
    per: str = "chip",
    bytes_per_s: float = LEVEL_BYTES_PER_S,
) -> MemoryLevel:
    """Return a memory level."""
    bandwidth = number(bytes_per_s, "B/s")
    return MemoryLevel(name=name, kind=kind, per=per, capacity=number(capacity_bytes, "B"), bandwidth=bandwidth)


def chip(
    architecture: str,
    *,
    units: int,
    macs_per_clock: Mapping[str, float],
    levels: tuple[MemoryLevel, ...],
    geometry: Mapping[str, float],
    coefficients: Mapping[str, float],
    units_of: Mapping[str, int] | None = None,
) -> Hardware:
    """Return a chip at 1 GHz with 100 GB/s of DRAM, a power cap that is never reached, and these MACs per clock and
    unit.

    `units_of` has the number of units for precisions that only some units have.
    """
    names, actions = vocabulary(architecture)
    assert coefficients.keys() <= names.keys()
    values = {
        "dram_efficiency": 0.5,
        "host_launch": HOST_S,
        "program_start": 0.0,
        "host_result": 0.0,
        "host_transfer": 0.0,
        **coefficients,
    }
    static = number(1.0, "W")
    prices = dict.fromkeys(actions, FJ_PER_PJ) | {STATIC_ACTION: static.value * FJ_PER_J, LOSS_ACTION: 0.0}
    peaks = {}
    for precision, macs in macs_per_clock.items():
        count = (units_of or {}).get(precision, units)
        operations = FLOPS_PER_MAC * macs
        rate = number(operations * count * CLOCK_HZ, "ops/s")
        peaks[precision] = Peak(rate=rate, operations_per_clock=operations, unit_count=count, clock_hz=CLOCK_HZ)
    return Hardware(
        id=f"toy_{architecture}",
        name="toy",
        vendor="toy",
        architecture=architecture,
        deployment=("edge",),
        microarchitecture="toy",
        unit_name="unit",
        memory_type="toy",
        process_node=number(7.0, "nm"),
        unit_count=number(float(units)),
        clock=number(CLOCK_HZ, "Hz"),
        memory_capacity=number(1e12, "B"),
        memory_bandwidth=number(100e9, "B/s"),
        tdp=number(1e9, "W"),
        static_power=static,
        geometry={name: number(value) for name, value in geometry.items()},
        memory_levels=levels,
        peaks=peaks,
        coefficients={
            name: number(values.get(name, LAUNCH_S if unit == "s" else 1.0), unit) for name, unit in names.items()
        },
        reference=EnergyReference(
            tuple(
                attrs.evolve(action, energy_per_action_fj=prices[key], low_fj=None, high_fj=None)
                for key, action in actions.items()
            )
        ),
        digest="toy",
    )


def cpu(**geometry: float) -> Hardware:
    """Return four cores with a 256-bit vector unit, a matrix unit for bf16, and int8 dot products."""
    return chip(
        "cpu",
        units=4,
        macs_per_clock={"fp32": 8.0, "fp16": 16.0, "bf16": 64.0, "int8": 32.0},
        levels=(
            level("l1", 32 * KIB, kind="cache", per="unit"),
            level("l2", MIB, kind="cache", per="unit"),
            level("l3", 16 * MIB, kind="cache"),
        ),
        geometry={
            "simd_width": 256.0,
            "flat_regions": 1.0,
            "fma_pipe_count": 1.0,
            "matrix_tile": 8192.0,
            "matrix_macs_per_instruction_bf16": 4096.0,
            **geometry,
        },
        coefficients={
            **{f"gemm_efficiency.{mode}": 0.5 for mode in ("vector", "matrix", "dot_int8", "dot_bf16")},
            "depthwise_efficiency": 0.25,
            "tile_rows": 8.0,
            "tile_columns": 16.0,
            "loads_per_fma": 0.5,
            "scalar_per_vector": 0.25,
            "pooled_tap_clocks": 10.0,
            "refill_ratio": 2.0,
            "fp32_share": 1.0,
            "engine_rate": 1.0,
            "product_share": 1.0,
            "request_share": 1.0,
            "serial_share": 0.0,
            "winograd_gain": 1.75,
        },
    )


def tpu() -> Hardware:
    """Return two cores with two arrays of 64 x 64 and 512 lanes each."""
    return chip(
        "tpu",
        units=4,
        macs_per_clock={"bf16": 4096.0, "int8": 8192.0, "fp32": 1024.0},
        levels=(level("vmem", MIB, per="core"), level("cmem", 64 * MIB)),
        geometry={"array_rows": 64.0, "array_columns": 64.0, "core_count": 2.0, "vector_lane_count": 512.0},
        coefficients={
            "row_block": 256.0,
            "fp32_passes": 6.0,
            "special_function_clocks": 8.0,
            "paged_sequence_clocks": 1000.0,
            "paged_query_clocks": 10.0,
            "paged_dram_efficiency": 0.25,
        },
    )


def kpu() -> Hardware:
    """Return 16 tiles of 16 x 16, of which four have fp32."""
    return chip(
        "kpu",
        units=16,
        macs_per_clock={"int8": 256.0, "fp32": 64.0},
        units_of={"fp32": 4},
        levels=(
            level("l1", KIB, per="processing_element"),
            level("l2", 16 * KIB, per="unit"),
            level("l3", 16 * MIB),
        ),
        geometry={"array_rows": 16.0, "array_columns": 16.0},
        coefficients={"elementwise_per_clock": 16.0},
    )


def dsp(*, has_matrix: bool = True) -> Hardware:
    """Return one unit with a matrix engine of 32 x 32, or four contexts without one; registers of 512 bits."""
    matrix = {"matrix_rows": 32.0, "matrix_columns": 32.0} if has_matrix else {}
    return chip(
        "dsp",
        units=1 if has_matrix else 4,
        macs_per_clock={"int8": 1024.0 if has_matrix else 64.0, "fp32": 32.0},
        levels=(level("l1", 32 * KIB, per="unit"), level("msmc", 8 * MIB)),
        geometry={"simd_width": 512.0, **matrix},
        coefficients={
            "gemm_efficiency.matrix": 0.5,
            "gemm_efficiency.vector": 0.25,
            "depthwise_efficiency": 0.5,
            "vector_tile_rows": 8.0,
            "vector_pipes": 2.0,
            "vector_per_packet": 2.0,
        },
    )


def npu(*, units: int, macs_per_clock: Mapping[str, float], **geometry: float) -> Hardware:
    """Return engines of this geometry with two vector engines of 1024 bits, and 16 MiB."""
    return chip(
        "npu",
        units=units,
        macs_per_clock=macs_per_clock,
        levels=(level("sram", 16 * MIB),),
        geometry={"vector_core_count": 2.0, "vector_width": 1024.0, **geometry},
        coefficients={
            "tensor_efficiency": 0.5,
            "row_block": 512.0,
            "tile_overhead": 16.0,
            "array_step": 4.0,
            "context_share.single": 0.75,
            "context_share.several": 0.6,
            "control_share": 0.75,
            "layer_switch": 0.1e-3,
            "reduction_layers": 4.0,
            "stream_width": 16.0,
            "unit_reach": 2.0,
        },
    )


def dpu() -> Hardware:
    """Return two cores of 4 pixels x 8 x 8 channels, with 40 GB/s of memory."""
    built = chip(
        "dpu",
        units=2,
        macs_per_clock={"int8": 256.0},
        levels=(level("buffer", MIB, per="unit"),),
        geometry={
            "pixel_parallelism": 4.0,
            "input_channel_parallelism": 8.0,
            "output_channel_parallelism": 8.0,
            "misc_pixel_parallelism": 2.0,
        },
        coefficients={
            "array_efficiency": 0.5,
            "depthwise_efficiency": 0.25,
            "port_bytes_per_clock": 16.0,
            "processor_rate": 1e9,
            "special_function_operations": 10.0,
        },
    )
    return attrs.evolve(built, memory_bandwidth=number(40e9, "B/s"))


def cgra() -> Hardware:
    """Return 16 units of 8 lanes and 5 stages, each with one inner product at a time."""
    return chip(
        "cgra",
        units=16,
        macs_per_clock={"fp32": 40.0, "fp16": 40.0, "int8": 40.0},
        levels=(level("pmu", 16 * MIB),),
        geometry={"lane_count": 8.0, "stage_count": 5.0},
        coefficients={
            "tile_rows": 16.0,
            "tile_columns": 16.0,
            "pipeline_depth": 32.0,
            "configuration_bytes": 1024.0,
            "operand_reuse": 4.0,
        },
    )


def gpu(*, units: int = 128, tensor_macs_per_clock: float = 1024.0, **geometry: float) -> Hardware:
    """Return units of 128 lanes with tensor cores at 0.8 GHz, 32 MiB of L2 at 8 TB/s, and 2 TB/s of memory.

    A lane does four int8 MACs per clock; only fp16 runs on tensor cores.
    """
    built = chip(
        "gpu",
        units=units,
        macs_per_clock={"fp32": 128.0, "int8": 512.0, "fp16": 0.8 * tensor_macs_per_clock},
        levels=(
            level("l1", 128 * KIB, kind="cache", per="unit"),
            level("l2", 32 * MIB, kind="cache", bytes_per_s=8e12),
        ),
        geometry={
            "fp32_lanes_per_unit": 128.0,
            "issue_slots_per_unit": 128.0,
            "threads_per_unit": 2048.0,
            "special_function_lanes_per_unit": 16.0,
            "warp_size": 32.0,
            **geometry,
        },
        coefficients=gpu_coefficient.COEFFICIENTS,
    )
    peaks = {name: attrs.evolve(peak, engine="cuda_core") for name, peak in built.peaks.items()}
    peaks["fp16"] = attrs.evolve(
        peaks["fp16"],
        engine="tensor_core",
        operations_per_clock=FLOPS_PER_MAC * tensor_macs_per_clock,
        clock_hz=0.8 * CLOCK_HZ,
    )
    return attrs.evolve(built, memory_bandwidth=number(2e12, "B/s"), peaks=peaks)
