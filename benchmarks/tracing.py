"""Seconds of tracing and fusing per model, without imports, compared with torch.export of the same modules.

python benchmarks/tracing.py [--all]
"""

from __future__ import annotations

import resource
import statistics
import sys
import time

import torch

from joulemap.catalog.sheet import load_models
from joulemap.construct.library import build_torchvision
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.physics.fuse import fuse
from joulemap.trace.module import trace_module

TWELVE = (
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "efficientnet_b0",
    "efficientnet_b7",
    "densenet201",
    "vit_b_16",
    "swin_t",
    "convnext_base",
    "maxvit_t",
    "inception_v3",
    "googlenet",
)
REPEATS = 3


def trace_seconds(name: str) -> float:
    """Return the median seconds to trace and fuse a model that is already built without weights."""
    request = resolve_model(name, load_models())
    module = build_torchvision(name, request.inputs[0].shape[-1])
    inputs = [torch.empty(request.inputs[0].shape, device="meta")]
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        fuse(trace_module(module, inputs, key=request.key, model=name, batch=1, may_change=True))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def export_seconds(name: str) -> float:
    """Return the seconds of one torch.export of the same module."""
    shape = load_models()[name].input_shape
    module = build_torchvision(name, shape[-1]).to("meta").eval()
    start = time.perf_counter()
    torch.export.export(module, (torch.empty(1, *shape, device="meta"),))
    return time.perf_counter() - start


def main() -> None:
    """Print a line per model, the ratio of the sums, and with --all the CPU time and memory of the whole zoo."""
    trace_seconds("alexnet")
    export_seconds("alexnet")
    ours, theirs = [], []
    print("trace and fuse, built before; medians of 3")
    print(f"{'model':<18} {'joulemap s':>10} {'export s':>10} {'goal s':>7}")
    for name in TWELVE:
        ours.append(trace_seconds(name))
        theirs.append(export_seconds(name))
        print(f"{name:<18} {ours[-1]:>10.3f} {theirs[-1]:>10.3f} {0.3:>7.2f}")
    print(f"torch.export over joulemap, summed: {sum(theirs) / sum(ours):.1f} (goal 6)")
    if "--all" in sys.argv:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, slowest = time.process_time(), (0.0, "")
        for name in load_models():
            one = time.perf_counter()
            fuse(trace_request(resolve_model(name, load_models())))
            slowest = max(slowest, (time.perf_counter() - one, name))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        done = f"all {len(load_models())} models built, traced, fused"
        print(f"{done}: {time.process_time() - start:.1f} s of CPU (goal 40), {grown:.0f} MB more")
        print(f"slowest: {slowest[1]} {slowest[0]:.2f} s")


if __name__ == "__main__":
    main()
