"""Commands of common tools that measure what an answer about a machine predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.present.template import Template
from joulemap.wing.here.match import CPU, GPU, Device
from joulemap.wing.here.serve import Asked

LLAMA_BENCH: Final = Template("llama-bench -m {file} -p {prompt} -n {output} -ngl {layers} -o json")
TRTEXEC: Final = Template("trtexec --onnx={file} --fp16 --useCudaGraph")
BENCHMARK_APP: Final = Template("benchmark_app -m {file} -d {device} -hint latency")
VERIFY: Final = Template("{command} | joulemap verify - --hardware {hardware}")

ALL_LAYERS: Final = 99
"""Value of -ngl that puts every layer on the GPU."""


def list_served_checks(model: str, device: Device, asked: Asked, layers: int | None = None) -> Iterator[str]:
    """Yield the command that measures a language model on a chip, piped into the comparison with its prediction."""
    file = model if model.endswith(".gguf") else f"{model}-{asked.weights or 'q4_k_m'}.gguf"
    count = 0 if device.kind == CPU else ALL_LAYERS if layers is None else layers
    command = LLAMA_BENCH(file=file, prompt=asked.prompt, output=asked.output, layers=count)
    yield VERIFY(command=command, hardware=_quote(device))


def list_run_checks(model: str, device: Device) -> Iterator[str]:
    """Yield the command that measures another model on a chip; none for a chip without a common tool."""
    file = model if model.endswith(".onnx") else f"{model}.onnx"
    if device.kind == GPU and device.printed.upper().startswith(("NVIDIA", "TESLA", "QUADRO")):
        yield VERIFY(command=TRTEXEC(file=file), hardware=_quote(device))
    elif "intel" in device.printed.lower():
        yield BENCHMARK_APP(file=file, device={CPU: "CPU", GPU: "GPU"}.get(device.kind, "NPU"))


def _quote(device: Device) -> str:
    from shlex import quote

    name = device.hardware if isinstance(device.hardware, str) else "this.toml"
    return quote(str(name))
