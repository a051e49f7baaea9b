"""Commands of common tools that measure what a prediction states, with the settings that it assumed."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from joulemap.catalog.digest import DATA
from joulemap.physics.record.product import DEFAULT
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME, Runtime
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry

LANGUAGE: Final = "language"
NETWORK: Final = "network"

ALL_LAYERS: Final = 99
"""Value of -ngl that puts every layer on the GPU."""

APPLE: Final = "Apple"
"""Vendor whose GPUs are the device `mps` of PyTorch."""


LEAST_REQUESTS: Final = 200
"""Minimum requests of a load test; fewer give no reliable p99."""

LOAD_S: Final = 60.0
"""Duration in seconds of a load test at an arrival rate."""

TURNS: Final = 10
"""Minimum requests per concurrent request of a load test, so that its start and end have little weight."""

DTYPES: Final[Mapping[str, str]] = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}

TFLITE: Final = ".tflite"

TO_ONNX: Final = "python -m tf2onnx.convert --tflite {file} --output {onnx}"
"""Command that converts a TFLite file for tools that read ONNX alone. Source: README of onnx/tensorflow-onnx."""


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
    matmul_precision: str = DEFAULT
    """Setting of the tool's library for products at fp32."""
    batch: int = 1
    runtime: str = DEPLOYED_RUNTIME
    engine: str = ""
    """Serving engine of a language model; empty for other models."""
    phase: str = ""
    """Part of a request that is measured alone, as a tool's commands call it; empty for a whole request, or for a model
    without parts.
    """
    prompt: int = 0
    output: int = 0
    cached: int = 0
    devices: int = 1
    """Tensor-parallel devices."""
    pipeline_devices: int = 1
    expert_devices: int = 1
    data_devices: int = 1
    cache: str = ""
    """Precision of keys and values; empty for that of the activations."""
    speculates: bool = False
    """True if steps check draft tokens."""
    reuses_prefixes: bool = False
    """True if a prefix cache supplies a part of the prompts."""
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

    @property
    def settings(self) -> Mapping[str, str]:
        """Name of the option -> description of each setting of a language model that differs from a tool's default."""
        if self.kind != LANGUAGE:
            return {}
        # Tools divide the experts among all devices or none.
        experts = "expert_devices" if self.expert_devices == self.devices else "some_expert_devices"
        is_fp8 = self.precision == "fp8" and self.weights in ("", self.precision)
        given = {
            "devices": self.devices > 1 and "several devices",
            "pipeline_devices": self.pipeline_devices > 1 and "pipeline stages",
            experts: self.expert_devices > 1 and "these expert-parallel devices",
            "data_devices": self.data_devices > 1 and "data-parallel attention",
            "precision_fp8": is_fp8 and "fp8",
            f"cache_{self.cache}": self.cache not in ("", *DTYPES) and f"an {self.cache} cache",
            "prefix": self.reuses_prefixes and "cached prefixes",
            "speculate": self.speculates and "an assumed acceptance of draft tokens",
        }
        return {name: words for name, words in given.items() if words}


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
    chip = _name_chip(entry)
    tools = [one for one in _list_tools(chip, run) if not _list_lacking(one, run)]
    tools = [one for one in tools if "runtimes" in one] or tools
    direct = [one for one in _list_tools(chip, run) if _reads_file(one, run)]
    tools = direct or tools
    power = next((str(one["command"]) for one in _load()["power"] if _matches(one, chip)), "")
    values = _fill(entry, run)
    for tool in tools[:1] if run.kind == LANGUAGE else tools:
        options = tool.get("precision", {})
        own = f"{run.precision}_{run.matmul_precision}"
        words = {
            **values,
            "device": tool.get("device", {}).get(entry.architecture, ""),
            "precision": options.get(own, options.get(run.precision, "")),
            "options": " ".join(tool["option"][name] for name in run.settings).format_map(values),
        }
        commands = _choose_commands(tool["command"], run)
        needs = tool.get("needs", "")
        needs = needs if isinstance(needs, str) else needs[run.precision]
        if run.model.endswith(TFLITE) and "{onnx}" in str(commands):
            commands, needs = (commands.replace("{onnx}", "{file}") if direct else f"{TO_ONNX} && {commands}"), ""
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


def _reads_file(tool: Mapping[str, Any], run: CheckedRun) -> bool:
    """Return True if a tool reads a file of the run's format other than ONNX, without a conversion."""
    return any(run.model.lower().endswith(suffix) for suffix in (tool.get("suffix"), *tool.get("reads", ())) if suffix)


def list_lacking(entry: HardwareEntry, run: CheckedRun) -> Sequence[str]:
    """Return the settings of a run that keep the first tool for its chip from measuring it; empty without a tool."""
    return next((_list_lacking(one, run) for one in _list_tools(_name_chip(entry), run)), ())


def _list_tools(chip: str, run: CheckedRun) -> Sequence[Mapping[str, Any]]:
    """Return the tools for a run on a chip, whether or not they have options for all its settings."""
    return [one for one in _load()["tool"] if _applies(one, chip, run)]


def _list_lacking(tool: Mapping[str, Any], run: CheckedRun) -> Sequence[str]:
    """Return the settings of a run for which a tool has no option."""
    return tuple(words for name, words in run.settings.items() if name not in tool.get("option", {}))


def _name_chip(entry: HardwareEntry) -> str:
    """Return `vendor/architecture/id` of a chip, which the patterns of tools match."""
    return f"{entry.vendor}/{entry.architecture}/{entry.described}".lower()


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


def _name_weights(run: CheckedRun) -> str:
    """Return the formats that the checkpoint must have; empty if the engine can convert any checkpoint to them."""
    if run.weights not in ("", run.precision):
        return f"{run.weights} weights"
    is_made = run.precision in DTYPES or "precision_fp8" in run.settings
    return "" if is_made else f"{run.precision} weights and activations"


def _join_sizes(run: CheckedRun, option: str, begin: str, between: str, end: str = "") -> str:
    """Return a tool's option that states the open sizes of inputs; empty if no size is open.

    `begin`, `between` and `end` separate the sizes as the tool expects.
    """
    shapes = ",".join(f"{name}{begin}{between.join(map(str, sizes))}{end}" for name, sizes in run.inputs)
    return option + shlex.quote(shapes) if shapes else ""


def _prepare_module(runtime: Runtime) -> str:
    """Return the statement that prepares a torch module for a runtime; empty if it needs none."""
    if runtime.is_captured:
        return "m = torch.compile(m, mode='reduce-overhead'); "
    return "m = torch.compile(m); " if runtime.is_compiled else ""


def _fill(entry: HardwareEntry, run: CheckedRun) -> dict[str, Any]:
    """Return placeholder -> value for the template of a benchmark command."""
    is_gpu = entry.architecture == "gpu"
    file, is_code, _ = run.model.partition(".py:")
    is_file = run.model.endswith((".onnx", ".gguf", TFLITE, ".py"))
    stem = PurePath(file).stem if is_file or is_code else run.model
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
        "weights": _name_weights(run),
        "batch": run.batch,
        "prompt": run.prompt,
        "output": run.output,
        "cached": run.cached,
        "context": run.batch * (max(run.prompt, run.cached) + max(run.output, 64)),
        "devices": run.devices,
        "pipeline_devices": run.pipeline_devices,
        "arrivals": f"--max-concurrency {run.in_flight}" if run.in_flight else f"--request-rate {run.rate_per_s:.3g}",
        "requests": max(LEAST_REQUESTS, math.ceil(run.rate_per_s * LOAD_S), TURNS * run.in_flight),
        "layers": layers,
        "flash": int(is_gpu),
        "dtype": DTYPES.get(run.precision, "auto"),
        "torch_device": ("mps" if entry.vendor == APPLE else "cuda") if is_gpu else "cpu",
        "compile": _prepare_module(RUNTIME[run.runtime]),
        "shape": ", ".join(map(str, run.shape)),
        "shapes": _join_sizes(run, "--shapes=", ":", "x"),
        "layout": _join_sizes(run, "-shape ", "[", ",", "]"),
    }
