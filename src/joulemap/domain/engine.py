"""Which inference engine the runtime `engine` stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry

ENGINES: Final[Mapping[tuple[str, str], str]] = {
    ("gpu", "NVIDIA"): "TensorRT",
    ("gpu", "AMD"): "MIGraphX",
    ("gpu", "Apple"): "Core ML",
    ("gpu", "Intel"): "OpenVINO",
    ("cpu", "Intel"): "OpenVINO",
    ("cpu", "AMD"): "OpenVINO",
}
"""Class and vendor -> the engine that people deploy with."""

ELSEWHERE: Final[Mapping[str, str]] = {"cpu": "XNNPACK or ncnn"}
"""Class -> the engine of vendors without one of their own; other classes have nothing but their vendor's compiler."""


def name_engine(architecture: str, vendor: str) -> str:
    """Return the engine of a class of hardware of a vendor."""
    found = ENGINES.get((architecture, vendor)) or ELSEWHERE.get(architecture)
    return found or f"the compiler of {vendor}"


def has_framework(architecture: str) -> bool:
    """Whether a compiler of the framework serves a class of hardware beside its engines: CPUs and GPUs."""
    return architecture in {known for known, _ in ENGINES}


def is_deployed(engine: str) -> bool:
    """Whether an engine is one that people choose to deploy with, and not a vendor's only compiler."""
    return engine in {*ENGINES.values(), *ELSEWHERE.values()}


def group_engines(entries: Iterable[HardwareEntry]) -> dict[str, list[str]]:
    """Return engine -> the hardware that is deployed with it, in the order given."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        names = found.setdefault(name_engine(entry.architecture, entry.vendor), [])
        if entry.id not in names:
            names.append(entry.id)
    return found
