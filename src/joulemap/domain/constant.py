"""Plain names of the numbers of a chip, for people.

They stand outside `physics`, because no result depends on them: an edit here outdates no stored run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.physics.record.address import Address
from joulemap.physics.record.constant import UNATTRIBUTED, Constant

NAMES: Final[Mapping[str, str]] = {
    "unit_count": "number of units",
    "clock": "clock",
    "clock_boost": "highest clock",
    "clock_die": "highest clock of its die",
    "memory_capacity": "memory size",
    "memory_bandwidth": "memory bandwidth",
    "tdp": "power limit",
    "static_power": "static power",
    "idle_power": "idle power",
    "price_purchase": "purchase price",
    "price_cloud": "rental price",
    "host_share": "cost of the host",
    "board.regulator_loss": "loss of the regulators",
    "chassis.fans_and_regulators": "fans and regulators around the board",
    "host.static_power": "power of the host",
    "psu.conversion_loss": "loss of the power supply",
    "board.unattributed_product_cycle": "unattributed energy per clock of a unit in GEMMs",
    "board.unattributed_issue_cycle": "unattributed energy per clock of a unit in other work",
    "board.unattributed_other_cycle": "unattributed energy per clock of a unit without products",
    "board.unattributed_cycle": "unattributed energy per clock of a unit that works",
    "unit.active_cycle": "energy per clock of a unit that works",
    "chip.clock_cycle": "energy per clock of all units",
    "dram.standby": "energy of memory at full clock",
    "board.unattributed_memory_cycle": "unattributed energy per clock of the memory",
    "coefficient.device_time_scale": "device time",
    "coefficient.launch_time_scale": "launch time",
    "coefficient.cap_share": "dynamic share of the power limit",
    "coefficient.epilogue_passes": "passes after a GEMM",
    "coefficient.lone_step_clocks": "step time of a lone block",
    "coefficient.call_clocks": "clocks of a kernel launch",
    "coefficient.host_launch": "host time per operator launch",
    "coefficient.dram_efficiency": "attained memory bandwidth",
    "use.electricity": "price of electricity",
    "use.grid": "carbon intensity of the grid",
    "use.host": "cost of the host",
    "use.hours": "hours of use per year",
    "use.lifetime": "lifetime",
    "use.pue": "datacenter overhead (PUE)",
    "use.utilization": "busy share of the hours",
}
"""Constant -> plain name, if the identifier does not give one."""

MEANINGS: Final[Mapping[str, str]] = {
    "coefficient.voltage_floor": "lowest voltage, as a share of that at the highest clock of the die",
    "coefficient.voltage_knee": "clock below which the voltage falls no further, as a share of the die's highest clock",
    "coefficient.cap_share": "share of the power between static power and the limit that a capped chip draws",
}
"""Constant -> meaning, if no data file states it."""

SPELLED: Final[Mapping[str, str]] = {
    short: short.upper()
    for short in (
        "alu", "axi", "cmem", "cuda", "dma", "dram", "dsp", "fifo", "fma", "gemm", "l1", "l2", "l3", "mac", "msmc",
        "mla", "mxu", "noc", "pe", "pmu", "sdpa", "simd", "simt", "sram", "tlb", "vliw", "vmem", "vpu",
    )
} | {
    "b": "byte", "op": "operation", "conv": "convolution", "triton": "Triton", "marlin": "Marlin", "cutlass": "CUTLASS",
    "trtllm": "TensorRT-LLM", "flashinfer": "FlashInfer",
}  # fmt: skip
"""Name part -> spelling in plain text."""


def name_constant(constant: Constant) -> str:
    """Return the plain name of a constant; in a box, followed by the name of its device."""
    name = name_number(constant.address, constant.per)
    return f"{name} of {constant.of}" if constant.of else name


def name_number(address: Address, per: str = "") -> str:
    """Return the plain name of a number, without its device. `per` is the unit of one count of an action.

    Names outside `NAMES` are spelled from their parts: `dram.read` is the energy per byte of DRAM read.
    """
    name = address.own
    if name in NAMES:
        return NAMES[name]
    match address.kind:
        case "peak":
            return f"peak at {address.name}"
        case "memory":
            return f"{'size' if address.field == 'capacity' else address.field} of {_spell(address.name)}"
        case "link":
            return f"{'energy per byte' if address.field == 'energy' else address.field} of {address.name}"
        case "geometry" | "coefficient":
            return _spell(address.name)
    if name.startswith(UNATTRIBUTED):
        return f"unattributed energy per {_spell(name.removeprefix(UNATTRIBUTED))}"
    one, what = _spell(per.partition(".")[0]), _spell(name)
    return f"energy per {what}" if not one or one in what else f"energy per {one} of {what}"


def _spell(name: str) -> str:
    """Spell the parts of a name as words."""
    return " ".join(SPELLED.get(part, part) for part in name.replace(".", "_").lower().split("_"))
