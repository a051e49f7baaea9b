"""Commands of common tools that measure what an answer about a machine predicted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from joulemap.domain.hardware_ref import HardwareRef
from joulemap.present.template import Template
from joulemap.wing.here.match import CPU, GPU, Device
from joulemap.wing.here.record import ServedHere
from joulemap.wing.here.serve import USUAL_WEIGHTS, Asked

LLAMA_BENCH: Final = Template("llama-bench -m {file} -p {prompt} -n {output} -ngl {layers} -o json")
TRTEXEC: Final = Template("trtexec --onnx={file} --fp16 --useCudaGraph")
BENCHMARK_APP: Final = Template("benchmark_app -m {file} -d {device} -hint latency")
VERIFY: Final = Template("{command} | joulemap verify - --hardware {hardware}")

VERIFY_OWN: Final = Template(
    "joulemap hardware detect --output this.toml && {command} | "
    "JOULEMAP_HARDWARE=this.toml joulemap verify - --hardware {hardware}"
)
"""Shell command that describes a chip missing from the catalogue, then checks a prediction for it."""

LAYERS: Final = re.compile(r"(\d+) of \d+ layers")

ALL_LAYERS: Final = 99
"""Value of -ngl that puts every layer on the GPU."""


def list_served_checks(model: str, device: Device, asked: Asked, row: ServedHere | None) -> Iterator[str]:
    """Yield the command that measures a row of a language model, piped into the comparison with its prediction."""
    weights = row.weights if row is not None else asked.weights or USUAL_WEIGHTS
    file = model if model.endswith(".gguf") else f"{model}-{weights}.gguf"
    divided = LAYERS.match(row.fits) if row is not None else None
    layers = int(divided[1]) if divided else 0 if device.kind == CPU else ALL_LAYERS
    command = LLAMA_BENCH(file=shlex.quote(file), prompt=asked.prompt, output=asked.output, layers=layers)
    if divided:
        yield command  # `verify` compares with one chip
    else:
        yield from _compare(command, device)


def list_run_checks(model: str, device: Device) -> Iterator[str]:
    """Yield the command that measures another model on a chip; none for a chip without a common tool."""
    file = shlex.quote(model if model.endswith(".onnx") else f"{model}.onnx")
    if device.kind == GPU and device.printed.upper().startswith(("NVIDIA", "TESLA", "QUADRO")):
        yield from _compare(TRTEXEC(file=file), device)
    elif "intel" in device.printed.lower():
        yield BENCHMARK_APP(file=file, device={CPU: "CPU", GPU: "GPU"}.get(device.kind, "NPU"))


def _compare(command: str, device: Device) -> Iterator[str]:
    """Yield a command whose output `verify` reads; one that describes a chip the catalogue lacks goes before it."""
    if isinstance(device.hardware, str):
        ref = HardwareRef.read(device.hardware)  # `verify` takes no set constants
        yield VERIFY(command=command, hardware=shlex.quote(str(HardwareRef(ref.id, "", ref.mode))))
    else:
        yield VERIFY_OWN(command=command, hardware=device.label)
