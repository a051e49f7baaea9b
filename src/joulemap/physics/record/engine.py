"""Inference engine that the runtime `engine` represents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TENSORRT: Final = "TensorRT"

ENGINES: Final[Mapping[tuple[str, str], str]] = {
    ("gpu", "NVIDIA"): TENSORRT,
    ("gpu", "AMD"): "MIGraphX",
    ("gpu", "Apple"): "Core ML",
    ("gpu", "Intel"): "OpenVINO",
    ("cpu", "Intel"): "OpenVINO",
    ("cpu", "AMD"): "OpenVINO",
}
"""(class, vendor) -> common deployment engine."""

ELSEWHERE: Final[Mapping[str, str]] = {"cpu": "XNNPACK or ncnn"}
"""Class -> common deployment engine for vendors that are not in `ENGINES`. Other classes only have their vendor's
compiler.
"""

OVERLAY: Final = "Vitis AI's DPU overlay (not a circuit by hls4ml or FINN)"
"""Engine of a DPU. Circuits that other tools build for one network in the same FPGA have other latencies."""


def name_engine(architecture: str, vendor: str) -> str:
    """Return the inference engine for hardware of a class and vendor."""
    if architecture == "dpu":
        return OVERLAY
    engine = ENGINES.get((architecture, vendor)) or ELSEWHERE.get(architecture)
    return engine or f"{vendor}'s compiler"


def has_framework(architecture: str) -> bool:
    """Return True if a framework's compiler, such as torch.compile, also supports the class, as for CPUs and GPUs."""
    return architecture in {known for known, _ in ENGINES}


def is_deployed(engine: str) -> bool:
    """Return True if users choose to deploy with the engine; False for a vendor's only compiler."""
    return engine in {*ENGINES.values(), *ELSEWHERE.values()}
