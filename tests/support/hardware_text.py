"""Files that describe hardware, as a user writes them."""

from __future__ import annotations

from pathlib import Path

MINIMAL = """
id = "tiny"
architecture = "gpu"

[sources]
mine = "a data sheet"

[quantities]
unit_count = { value = 10, unit = "1", basis = "published", source = "mine" }
clock = { value = 2, unit = "GHz", basis = "published", source = "mine" }
memory_capacity = { value = 16, unit = "GB", basis = "published", source = "mine" }
memory_bandwidth = { value = 400, unit = "GB/s", basis = "published", source = "mine" }
tdp = { value = 50, unit = "W", basis = "published", source = "mine" }

[peaks.fp32]
rate = { value = 5.12, unit = "TFLOPS", basis = "published", source = "mine" }
"""


def write(folder: Path, text: str, name: str = "tiny.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def coefficient(name: str = "dram_efficiency.planar", value: str = "0.5", unit: str = "1", count: int = 1) -> str:
    entry = (
        f'\n[[coefficients]]\nname = "{name}"\nvalue = {value}\nunit = "{unit}"\nbasis = "assumed"\nsource = "mine"\n'
    )
    return MINIMAL + count * entry
