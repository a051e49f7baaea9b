"""Commands of common tools that measure what a prediction states, with the settings that it assumed."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from joulemap.catalog.digest import DATA
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry

LANGUAGE: Final = "language"
NETWORK: Final = "network"

ALL_LAYERS: Final = 99
"""Value of -ngl that puts every layer on the GPU."""

APPLE: Final = "Apple"
"""Vendor whose GPUs are the device `mps` of PyTorch."""

WITHOUT_TF32: Final = "_without_tf32"
"""Suffix of a precision in the table of tools, for options that forbid TF32 in its GEMMs."""

LEAST_REQUESTS: Final = 200
"""Minimum requests of a load test; fewer give no reliable p99."""

LOAD_S: Final = 60.0
"""Duration in seconds of a load test at an arrival rate."""

TURNS: Final = 10
"""Minimum requests per concurrent request of a load test, so that its start and end have little weight."""

DTYPES: Final[Mapping[str, str]] = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}

COMPILED: Final[Mapping[str, str]] = {
    "eager": "",
    "graph": "m = torch.compile(m, mode='reduce-overhead'); ",
    "fused": "m = torch.compile(m); ",
}
"""Runtime -> statement that prepares a torch module."""

DEVICES: Final[Mapping[str, str]] = {"cpu": "CPU", "gpu": "GPU"}
"""Class -> OpenVINO device; any other is an NPU."""

CORE_ML: Final[Mapping[str, str]] = {"gpu": "CPUAndGPU", "npu": "CPUAndNeuralEngine"}
"""Class -> compute units of Core ML."""


@frozen(kw_only=True)
class CheckedRun:
    """Settings that a prediction assumed and that a tool must use."""

    model: str
    """Model by name or file, without the arguments of a pass."""
    checkpoint: str = ""
    """Name of a language model in a hub; empty if it equals `model`."""
    kind: str = NETWORK
    precision: str = "fp32"
    weights: str = ""
    """Format of the weights, if it differs from the precision."""
    allows_tf32: bool = True
    batch: int = 1
    runtime: str = "engine"
    engine: str = ""
    """Serving engine of a language model; empty for other models."""
    phase: str = ""
    """`prefill` or `decode`; empty for a whole request, or for a model without passes."""
    prompt: int = 0
    output: int = 0
    cached: int = 0
    devices: int = 1
    rate_per_s: float = 0.0
    """Arrival rate of random requests at one server; 0 for none."""
    in_flight: int = 0
    """Concurrent requests at one server, each replaced when it ends; 0 for none.

    If the arrival rate is 0 too, the run is one batch.
    """
    layers: int | None = None
    """Layers on the GPU under llama.cpp; None for all layers."""
    shape: tuple[int, ...] = ()
    """Shape of one sample, for a model with a single input."""
    inputs: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Name and sizes of inputs whose sizes the model leaves open."""

    @property
    def is_load(self) -> bool:
        """True for random requests to a server, False for a batch."""
        return self.rate_per_s > 0.0 or self.in_flight > 0


@frozen(kw_only=True)
class Check:
    """Command that measures a run on a chip."""

    hardware: str
    tool: str
    command: str
    prints: str
    """Quantity that the tool prints."""
    needs: str
    """Form in which the tool reads the model; empty if the command states it."""
    power: str
    """Command that reads the power while the tool runs; empty if only a meter at the supply can."""
    source: str


@cache
def _load() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "check" / "tool.toml").read_text(encoding="utf-8"))


def list_checks(entry: HardwareEntry, run: CheckedRun, hardware: str = "") -> Iterator[Check]:
    """Yield the command of each tool that measures a run on a chip; none for a chip without a common tool.

    `hardware` is the name of the chip in the answer, by default its id.
    """
    chip = f"{entry.vendor}/{entry.architecture}/{entry.described}".lower()
    found = [one for one in _load()["tool"] if _applies(one, chip, run)]
    found = [one for one in found if "runtimes" in one] or found
    power = next((str(one["command"]) for one in _load()["power"] if _matches(one, chip)), "")
    values = _fill(entry, run)
    for tool in found[:1] if run.kind == LANGUAGE else found:
        options = tool.get("precision", {})
        own = run.precision if run.allows_tf32 else f"{run.precision}{WITHOUT_TF32}"
        words = {**values, "precision": options.get(own, options.get(run.precision, ""))}
        commands = _choose_commands(tool["command"], run)
        needs = tool.get("needs", "")
        needs = needs if isinstance(needs, str) else needs[run.precision]
        for command in [commands] if isinstance(commands, str) else commands:
            yield Check(
                hardware=hardware or entry.id,
                tool=tool["name"],
                command=re.sub(r"(?<=\S)  +(?=\S)", " ", command.format_map(words)).rstrip(),
                prints=_choose_prints(tool, run).format_map(words),
                needs="" if "{weights}" in needs and not values["weights"] else needs.format_map(words),
                power=power,
                source=tool["source"],
            )


def _choose_commands(commands: Mapping[str, Any], run: CheckedRun) -> Any:
    """Return the command templates of a tool for a run.

    If the tool cannot generate a load, they are those for one batch of requests.
    """
    whole = "request" if run.kind == LANGUAGE else "run"
    return commands[run.phase] if run.phase else commands.get("load" if run.is_load else whole, commands[whole])


def _choose_prints(tool: Mapping[str, Any], run: CheckedRun) -> str:
    """Return the template for the quantity that a tool prints for a run."""
    is_load = run.is_load and "load" in tool["command"]
    return str(tool["prints_load" if is_load else "prints"])


def _matches(one: Mapping[str, Any], chip: str) -> bool:
    return any(re.fullmatch(pattern, chip) for pattern in one["chips"])


def _applies(tool: Mapping[str, Any], chip: str, run: CheckedRun) -> bool:
    """Return True if a tool measures this run on this chip."""
    return (
        run.kind in tool["kinds"]
        and _matches(tool, chip)
        and run.model.lower().endswith(tool.get("suffix", ""))
        and run.batch <= tool.get("largest_batch", run.batch)
        and run.engine.partition("@")[0] in tool.get("engines", [run.engine.partition("@")[0]])
        and run.runtime in tool.get("runtimes", [run.runtime])
        and (run.kind == LANGUAGE or run.weights in ("", run.precision))
        and run.precision in tool.get("precision", {run.precision: ""})
        and not ("{shape}" in str(tool["command"]) and not run.shape)
    )


def _join_sizes(run: CheckedRun, option: str, begin: str, between: str, end: str = "") -> str:
    """Return a tool's option that states the open sizes of inputs; empty if no size is open.

    `begin`, `between` and `end` separate the sizes as the tool expects.
    """
    shapes = ",".join(f"{name}{begin}{between.join(map(str, sizes))}{end}" for name, sizes in run.inputs)
    return option + shlex.quote(shapes) if shapes else ""


def _fill(entry: HardwareEntry, run: CheckedRun) -> dict[str, Any]:
    """Return placeholder -> value for the template of a benchmark command."""
    is_gpu = entry.architecture == "gpu"
    stem = PurePath(run.model).stem if run.model.endswith((".onnx", ".gguf", ".tflite")) else run.model
    weights = (run.weights or run.precision).partition("+")[0]
    gguf = run.model if run.model.endswith(".gguf") else f"{stem}-{weights}.gguf"
    onnx = run.model if run.model.endswith(".onnx") else f"{stem}.onnx"
    layers = (ALL_LAYERS if is_gpu else 0) if run.layers is None else run.layers
    return {
        "model": run.model,
        "checkpoint": shlex.quote(run.checkpoint or run.model),
        "gguf": shlex.quote(gguf),
        "onnx": shlex.quote(onnx),
        "stem": shlex.quote(stem),
        "file": shlex.quote(run.model),
        "weights": "" if run.weights == run.precision else run.weights,
        "batch": run.batch,
        "prompt": run.prompt,
        "output": run.output,
        "cached": run.cached,
        "context": run.batch * (max(run.prompt, run.cached) + max(run.output, 64)),
        "devices": run.devices,
        "arrivals": f"--max-concurrency {run.in_flight}" if run.in_flight else f"--request-rate {run.rate_per_s:.3g}",
        "requests": max(LEAST_REQUESTS, math.ceil(run.rate_per_s * LOAD_S), TURNS * run.in_flight),
        "layers": layers,
        "flash": int(is_gpu),
        "dtype": DTYPES.get(run.precision, "auto"),
        "device": DEVICES.get(entry.architecture, "NPU"),
        "core_ml": CORE_ML.get(entry.architecture, ""),
        "torch_device": ("mps" if entry.vendor == APPLE else "cuda") if is_gpu else "cpu",
        "compile": COMPILED.get(run.runtime, ""),
        "shape": ", ".join(map(str, run.shape)),
        "shapes": _join_sizes(run, "--shapes=", ":", "x"),
        "layout": _join_sizes(run, "-shape ", "[", ",", "]"),
    }
