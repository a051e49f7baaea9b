"""Measurement of a model on a device of this machine, with one runtime."""

from __future__ import annotations

import logging
import platform
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.construct.builder import surrounding
from joulemap.construct.model import BuiltModel, build_request, count_samples
from joulemap.construct.source import ModelRequest
from joulemap.device.energy import EnergyCounter, Nvml, Rapl
from joulemap.device.processor import available_cpus, read_cpu, read_state
from joulemap.device.window import measure_window
from joulemap.domain.measurement import Trial
from joulemap.physics.record.product import DEFAULT, HIGHEST
from joulemap.physics.record.runtime import RUNTIME, RUNTIMES
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.name import join_choices
from joulemap.system.record import frozen
from joulemap.system.resource import package_version
from joulemap.trace.argument import replace_tensors
from joulemap.trace.guest import describe_place, first_line, hosting, refusing
from joulemap.trace.module import build_with_storage
from joulemap.trace.tensor import DTYPES

SEED: Final = 0

IMAGE_DIMENSIONS: Final = 4
"""Dimensions of a batch of images, and of the weights of a convolution over images."""

PRECISIONS: Final = ("fp32", "bf16", "fp16")
"""Precisions of weights and floating-point inputs that can be measured."""


@frozen(kw_only=True)
class Subject:
    """Model that is ready to run, with its inputs."""

    module: Any
    positional: Sequence[Any]
    named: Mapping[str, Any]
    batch: int

    def call(self) -> Any:
        """Run the model once on its inputs."""
        return self.module(*self.positional, **self.named)


def prepare(request: ModelRequest, precision: str, device: torch.device) -> Subject:
    """Build the model of a request; its constructors initialize the weights from a fixed seed.

    Floating-point inputs are uniform in 0 to 1. Integer inputs without example values are 0, boolean ones true.
    Raises ModelError if the model cannot be built or has no weights. Call it inside `hosting`.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"cannot measure at {precision}: expected one of {', '.join(PRECISIONS)}")
    torch.manual_seed(SEED)
    with build_with_storage(request.build_memory_bytes):
        built = build_request(request)
    if built.notes:
        raise ModelError(f"{request.model} cannot be measured: {built.notes[0]}")
    _refuse_missing_weights(request, built)
    dtype, batch = DTYPES[precision], count_samples(built, request)
    try:
        module = built.module.to(device=device, dtype=dtype)
        if request.kind != "exported":  # an exported module refuses eval(): it was exported for inference
            module = module.eval()
        positional, named = replace_tensors(
            (tuple(built.positional), dict(built.named)), lambda value: _fill(value, dtype, device)
        )
    except Exception as error:
        raise ModelError(f"{request.model} cannot be moved to {device} at {precision}: {first_line(error)}") from error
    return Subject(module=module, positional=positional, named=named, batch=batch)


def _refuse_missing_weights(request: ModelRequest, built: BuiltModel) -> None:
    tensors = [*built.module.named_parameters(), *built.module.named_buffers()]
    missing = [name for name, tensor in tensors if tensor.is_meta]
    if missing:
        raise ModelError(
            f"{request.model} has no storage for {missing[0]}, so it cannot run: build it on a device other than meta"
        )


def _fill(value: torch.Tensor, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an input on the device: random if it is floating-point, else its example values, or 0 or true without
    any.
    """
    if value.is_floating_point():
        return torch.rand(value.shape, dtype=torch.float32).to(device=device, dtype=dtype)
    if not value.is_meta:
        return value.to(device)
    if value.dtype == torch.bool:
        return torch.ones(value.shape, dtype=torch.bool, device=device)
    return torch.zeros(value.shape, dtype=value.dtype, device=device)


def set_channels_last(subject: Subject) -> tuple[Subject, str]:
    """Return a subject whose images and convolution weights are stored channels-last, and the name of the layout.

    Predictions for GPUs assume this layout; with PyTorch's own, tensor cores need each image transposed before and
    after a convolution. Models without convolutions over images are unchanged. A model that cannot run channels-last,
    such as one with a view of an image as a vector, keeps PyTorch's layout.
    """
    if not any(one.dim() == IMAGE_DIMENSIONS for one in subject.module.parameters()):
        return subject, ""
    positional, named = replace_tensors(
        (tuple(subject.positional), dict(subject.named)),
        lambda value: value.contiguous(memory_format=torch.channels_last) if value.dim() == IMAGE_DIMENSIONS else value,
    )
    changed = attrs.evolve(subject, positional=positional, named=named)
    subject.module.to(memory_format=torch.channels_last)
    try:
        with torch.inference_mode():
            changed.call()
    except RuntimeError:
        subject.module.to(memory_format=torch.contiguous_format)
        return subject, "contiguous layout, because the model fails channels-last"
    return changed, "channels-last"


DEVICES: Final = ("cpu", "cuda")

CAPTURE_WARM_UP: Final = 3
"""Calls before a CUDA graph is captured, so that libraries have chosen their kernels. Source: PyTorch, CUDA
semantics."""

CAPTURE_STREAMS: Final = 2
"""CUDA streams of a captured graph, which warms up on one and is captured on another; other runtimes use one."""

MEASURED: Final = tuple(one for one in RUNTIMES if not one.is_built)
"""Runtimes that PyTorch can run."""


def check_device(device: str, runtime: str) -> None:
    """Raise UsageError if the device is not available, or does not support the runtime."""
    if device not in DEVICES:
        raise UsageError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device here: measure with --device cpu")
    if RUNTIME[runtime].is_built:
        known = join_choices(one.name for one in MEASURED)
        raise UsageError(f"joulemap cannot run inference engines: use {known}, or import a measurement")
    if device == "cpu" and RUNTIME[runtime].is_captured:
        known = join_choices(one.name for one in MEASURED if not one.is_captured)
        raise UsageError(f"the runtime {runtime} replays a captured CUDA graph, which a CPU lacks: use {known}")


def run_trial(
    request: ModelRequest,
    *,
    device: str,
    precision: str,
    matmul_precision: str,
    runtime: str,
    threads: int | None,
    seconds: float,
) -> Trial:
    """Measure a model; ModelError if it cannot be built, compiled or run."""
    check_device(device, runtime)
    with hosting(request.model), surrounding(request):
        _set_matmul_precision(matmul_precision)
        return _run_trial(request, device, precision, matmul_precision, runtime, threads, seconds)


def _set_matmul_precision(setting: str) -> None:
    """Set what torch computes fp32 products in; the default stays as torch has it."""
    if setting != DEFAULT:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = setting != HIGHEST


def _run_trial(
    request: ModelRequest,
    device: str,
    precision: str,
    matmul_precision: str,
    runtime: str,
    threads: int | None,
    seconds: float,
) -> Trial:
    if threads is not None:
        torch.set_num_threads(threads)
    target = torch.device(device)
    subject = prepare(request, precision, target)
    state = read_state()
    counter: EnergyCounter | None
    wait: Callable[[], object]
    layout = ""
    if device == "cuda":
        subject, layout = set_channels_last(subject)
        counter, wait, scope = Nvml.find(str(torch.cuda.get_device_properties(0).uuid)), torch.cuda.synchronize, "board"
        torch.cuda.reset_peak_memory_stats()
    else:
        counter, wait, scope = Rapl.find(), _nothing, "package"
    is_alone = device == "cpu" and torch.get_num_threads() == 1
    failed = f"{request.model} failed while it was measured ({runtime}): "
    with (
        refusing(lambda error: f"{failed}{first_line(error)}{describe_place(error)}"),
        torch.inference_mode(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        timing = measure_window(_launcher(subject, runtime), wait, seconds, counter, is_alone=is_alone)
    quartiles = f"{timing.first_quartile_s:.4g} to {timing.third_quartile_s:.4g} s"
    parts = [
        *_versions(device),
        name_device(device),
        _threads(device),
        state,
        f"weights and inputs from seed {SEED}, inference mode, matmul precision {matmul_precision}",
        layout,
        f"{timing.repetition_count} repetitions of {timing.calls_per_repetition} in {timing.window_s:.3g} s after "
        f"{timing.warm_up_s:.3g} s of warm-up{'' if timing.is_steady else ' that did not become steady'}",
        f"processor time {timing.processor_s:.4g} s per call" if device == "cpu" else "",
        f"quartiles {quartiles}, spread {100.0 * timing.spread_fraction:.0f} %",
    ]
    return Trial(
        timing=timing,
        batch=subject.batch,
        scope=scope,
        peak_memory_bytes=torch.cuda.max_memory_allocated() if device == "cuda" else None,
        stream_count=(CAPTURE_STREAMS if RUNTIME[runtime].is_captured else 1) if device == "cuda" else None,
        device_name=name_device(device),
        conditions="; ".join(part for part in parts if part),
    )


def _nothing() -> None:
    return None


def _launcher(subject: Subject, runtime: str) -> Callable[[], object]:
    """Return a function that runs the model once with a runtime."""
    if RUNTIME[runtime].is_captured:
        return _capture(subject)
    if RUNTIME[runtime].is_compiled:
        return _compile(subject)
    return subject.call


def _capture(subject: Subject) -> Callable[[], object]:
    """Capture the eager kernels in a CUDA graph, and return the function that replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CAPTURE_WARM_UP):
            subject.call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        subject.call()
    return graph.replay


def _compile(subject: Subject) -> Callable[[], object]:
    """Compile the model with torch.compile, run it once, and return a function that runs it; ModelError if this
    fails.
    """
    for name in ("torch._inductor", "torch._dynamo", "torch.utils.cpp_extension"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    compiled: Any = torch.compile(subject.module)

    def call() -> object:
        return compiled(*subject.positional, **subject.named)

    try:
        call()
    except Exception as error:
        raise ModelError(
            f"torch.compile failed, which the runtime fused needs (on a CPU a C++ compiler too): {first_line(error)}"
        ) from error
    return call


def _versions(device: str) -> list[str]:
    release = re.match(r"[\d.]+", platform.release())
    return [
        f"joulemap {package_version('joulemap')}",
        f"torch {package_version('torch')}",
        f"torchvision {package_version('torchvision')}",
        f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}" if device == "cuda" else "",
        f"Python {platform.python_version()}",
        f"{platform.system()} {release[0] if release else ''}".strip(),
    ]


def name_device(device: str) -> str:
    """Return the name of a device of this machine."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        return read_cpu().name
    except UsageError:
        return platform.machine()


def _threads(device: str) -> str:
    count = torch.get_num_threads()
    return f"{count} thread{'' if count == 1 else 's'} on {available_cpus()} CPUs" if device == "cpu" else ""
