"""Machines from the texts that Linux prints about them, and the hardware files that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.ask.hardware_file import check_files
from joulemap.ask.measure import is_name_of
from joulemap.catalog.chip import load_text
from joulemap.catalog.detected import cpu_text, gpu_text
from joulemap.catalog.load import load_catalogue
from joulemap.device.energy import Rapl, span_uj
from joulemap.device.graphics import parse_smi
from joulemap.device.processor import describe_cpu, parse_size
from joulemap.domain.machine import Cpu, Gpu
from joulemap.physics.record.hardware import Hardware
from joulemap.system.errors import UsageError

TEXTS = Path(__file__).parent / "machine"
MEMORY = "MemTotal:       16384000 kB\nMemFree:        1024 kB\n"


def read(name: str) -> str:
    return (TEXTS / name).read_text()


INTEL = describe_cpu(read("intel.lscpu"), "", MEMORY, frequencies={"base_frequency": "2000000"})
AMD = describe_cpu(read("amd.lscpu"), "", MEMORY)
ARM = describe_cpu(read("arm.lscpu"), "", MEMORY)
GRAVITON = describe_cpu("", read("graviton.cpuinfo"), MEMORY, vector_bytes="32")
MACHINES = {"intel": INTEL, "amd": AMD, "arm": ARM, "graviton": GRAVITON}

H200 = Gpu(
    name="NVIDIA H200",
    unit_count=132,
    capability=(9, 0),
    clock_hz=1.98e9,
    memory_bytes=150_754_820_096,
    memory_bus_bits=6144,
    memory_clock_hz=3.201e9,
    l2_bytes=60 * 2**20,
    power_w=700.0,
)


def describe(cpu: Cpu) -> Hardware:
    return load_text(cpu_text(cpu), "detected")


def test_an_intel_server_has_tiles_and_wide_vectors() -> None:
    assert (INTEL.core_count, INTEL.threads_per_core, INTEL.vendor) == (56, 2, "Intel")
    hardware = describe(INTEL)
    assert hardware.id == "this_intel_xeon_platinum_8480_56_cores"
    # 0.8 of the way from 2 to 3.8 GHz; 56 cores x 16 lanes x 2 pipes x 2 x 3.44 GHz
    assert_close(hardware.clock.value, 3.44e9, rel=1e-5)
    assert_close(hardware.peaks["fp32"].rate.value, 56 * 16 * 2 * 2 * 3.44e9, rel=1e-5)
    assert hardware.peaks["fp32"].rate.basis == hardware.clock.basis == "assumed"
    # 512 bf16 MACs of AMX a clock
    assert_close(hardware.peaks["bf16"].rate.value, 56 * 1024 * 3.44e9, rel=1e-5)
    assert hardware.geometry["matrix_macs_per_instruction_int8"].value == 16384
    assert_close(hardware.level("l2").capacity.value, 2 * 2**20, rel=1e-5)
    assert_close(hardware.level("l3").capacity.value, 105 * 2**20, rel=1e-5)
    assert hardware.level("l3").per == "chip"
    for quantity in (hardware.memory_bandwidth, hardware.tdp):
        assert quantity.basis == "assumed"
        assert "cannot be read" in quantity.note


def test_an_amd_core_passes_wide_instructions_twice() -> None:
    hardware = describe(AMD)
    assert hardware.geometry["simd_width"].value == 256
    assert hardware.geometry["vector_instruction_width"].value == 512
    # no base clock is told: 5.132 GHz, and a source that says so
    assert_close(hardware.peaks["fp32"].rate.value, 8 * 8 * 2 * 2 * 5.132e9, rel=1e-5)
    assert "base clock is unknown" in hardware.clock.source
    # two channels, not the twelve of a server
    assert hardware.memory_bandwidth.value == 60e9
    assert "fp16" not in hardware.peaks
    assert_close(hardware.memory_capacity.value, 16384000 * 1024, rel=1e-5)


def test_an_arm_board_has_a_shared_second_level() -> None:
    hardware = describe(ARM)
    assert (ARM.core_count, ARM.vendor) == (4, "Arm")
    assert_close(hardware.peaks["fp32"].rate.value, 4 * 4 * 2 * 2 * 1.8e9, rel=1e-5)
    assert set(hardware.peaks) == {"fp64", "fp32"}
    last = hardware.memory_levels[-1]
    assert (last.name, last.per) == ("l2", "chip")
    assert_close(last.capacity.value, 2**20, rel=1e-5)


def test_an_arm_server_without_lscpu_is_known_by_its_part_and_vector_length() -> None:
    hardware = describe(GRAVITON)
    assert (GRAVITON.name, GRAVITON.core_count, GRAVITON.vector_bits) == ("Neoverse-V1", 2, 256)
    assert hardware.clock.basis == "assumed"
    fp32 = hardware.peaks["fp32"].operations_per_clock
    assert fp32 == 8 * 2 * 2
    # matrix instructions at eight times fp32, dot products of bf16 at twice, fp16 lanes at twice
    rates = {name: peak.operations_per_clock / fp32 for name, peak in hardware.peaks.items()}
    assert rates == {"fp64": 0.5, "fp32": 1.0, "fp16": 2.0, "bf16": 2.0, "int8": 8.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_detected_file_passes_the_check(name: str, tmp_path: Path) -> None:
    path = tmp_path / "this.toml"
    path.write_text(cpu_text(MACHINES[name]))
    (check,) = check_files([path]).checks
    assert not any(trial.reason for trial in check.trials)


def test_caches_of_the_kernel_count_what_is_shared() -> None:
    files = [
        {"level": "1", "type": kind, "size": "48K", "shared_cpu_list": str(cpu)}
        for cpu in range(4)
        for kind in ("Data", "Instruction")
    ]
    files += [
        {"level": "2", "type": "Unified", "size": "2048K", "shared_cpu_list": shared} for shared in ("0-1", "2-3")
    ]
    files += [{"level": "3", "type": "Unified", "size": "32M", "shared_cpu_list": "0-3"}] * 4
    cpu = describe_cpu(read("arm.lscpu"), "", MEMORY, caches=files)
    assert [(one.level, one.capacity_bytes, one.instance_count) for one in cpu.caches] == [
        (1, 48 * 1024, 4),
        (2, 2 * 2**20, 2),
        (3, 32 * 2**20, 1),
    ]
    # a level shared by pairs below another level is the core's half of it
    assert_close(describe(cpu).level("l2").capacity.value, 2**20, rel=1e-5)


def test_part_of_a_processor_keeps_shared_caches_and_the_cores_own() -> None:
    part = describe(INTEL.with_cores(4))
    assert part.id == "this_intel_xeon_platinum_8480_4_cores"
    assert part.units == 4
    assert_close(part.level("l2").capacity.value, 2 * 2**20, rel=1e-5)
    assert_close(part.level("l3").capacity.value, 105 * 2**20, rel=1e-5)
    assert INTEL.with_cores(500) is INTEL


def test_a_machine_that_tells_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="neither the name nor the cores"):
        describe_cpu("", "")
    with pytest.raises(UsageError, match="cannot read the cache size 'big'"):
        parse_size("big")
    assert parse_size("1.5 MiB") == 3 * 2**19


def test_a_graphics_processor_follows_from_its_driver(tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    path.write_text(gpu_text(H200))
    (check,) = check_files([path]).checks
    assert check.hardware == "this_nvidia_h200"
    assert not any(trial.reason for trial in check.trials)
    hardware = load_text(gpu_text(H200), "detected")
    assert_close(hardware.peaks["fp32"].rate.value, 132 * 128 * 2 * 1.98e9, rel=1e-5)
    assert_close(hardware.peaks["bf16"].rate.value, 132 * 4096 * 1.98e9, rel=1e-5)
    assert_close(hardware.memory_bandwidth.value, 2 * 3.201e9 * 6144 / 8, rel=1e-5)


def test_nvidia_smi_is_asked_for_one_board() -> None:
    text = "GPU-aa, 1980, 3201, 700.00\nGPU-bb, 1410, 1593, 400.00\n"
    assert parse_smi(text, "bb").power_w == 400.0
    for told in (text.replace("bb", "cc"), "GPU-bb, 1410, 1593, [N/A]", ""):
        with pytest.raises(UsageError, match="name it with --hardware"):
            parse_smi(told, "bb")


def test_the_name_of_a_chip_is_found_in_what_its_device_says() -> None:
    catalogue = load_catalogue().hardware
    epyc = catalogue["epyc_9654"]
    assert is_name_of(epyc, "AMD EPYC 9654 96-Core Processor")
    assert not is_name_of(epyc, "AMD EPYC 9654P 96-Core Processor")
    assert not is_name_of(epyc, "AMD EPYC")
    assert is_name_of(catalogue["xeon_8490h"], "Intel(R) Xeon(R) Platinum 8490H")
    assert is_name_of(catalogue["h200_sxm"], "NVIDIA H200")
    assert not is_name_of(catalogue["h100_sxm5"], "NVIDIA H200")


def test_a_counter_may_begin_again_once() -> None:
    assert span_uj(10, 30, 100) == 20
    assert span_uj(90, 5, 100) == 15
    assert span_uj(90, 5, 0) is None


def zone(folder: Path, name: str, kind: str, count: int) -> Path:
    path = folder / name
    path.mkdir()
    (path / "name").write_text(f"{kind}\n")
    (path / "energy_uj").write_text(f"{count}\n")
    (path / "max_energy_range_uj").write_text("1000000\n")
    return path


def test_packages_are_summed_and_their_parts_left_out(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 900_000)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 0)
    core = zone(tmp_path, "intel-rapl:0:0", "core", 0)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    counter = Rapl.find(tmp_path)
    assert counter is not None
    counter.start()
    (first / "energy_uj").write_text("100000")  # began again
    (second / "energy_uj").write_text("300000")
    (core / "energy_uj").write_text("777777")
    joules = counter.stop()
    assert_close(joules, 0.2 + 0.3)
    (second / "energy_uj").unlink()
    assert counter.stop() is None
    assert Rapl.find(tmp_path / "absent") is None
