"""How far batches on the line between two recorded ones are from `predict`, and from served rows: medians and p90.

python benchmarks/record_line.py

A record has whole models at 1, 8 and 256 samples, and servers at 4 and 64 requests; `record score` draws lines between.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import joulemap
from joulemap.prediction import find_chip
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.predict import predict_together
from joulemap.wing.record.point import LENGTHS, REQUESTS, load_groups
from joulemap.wing.verify.reader import OFFLINE_BATCH

MODELS = (
    "resnet18",
    "resnet50",
    "vit_b_16",
    "mobilenet_v2",
    "efficientnet_b0",
    "convnext_tiny",
    "swin_t",
    "densenet121",
)
SERVED = (("llama-3.1-8b", 1), ("qwen3-32b", 1), ("gpt-oss-20b", 1), ("llama-3.1-70b", 8), ("deepseek-r1", 8))
BATCHES = np.array([1, 2, 4, 8, 16, 32, 64, 128, OFFLINE_BATCH])
ENDS = ((0, 3), (3, 8))
AT_ONCE = (REQUESTS[0], 8, 16, 32, REQUESTS[1])
NAMES = ("request_latency_s", "inter_token_latency_s", "energy_per_output_token_j")


def list_wholes() -> Iterator[tuple[str, list[float]]]:
    """Yield quantity and relative distances of whole models under an engine on cards of servers."""
    chips = [chip for group in load_groups() if group.is_offline for chip in group.chips]
    grid = np.array(MODELS)[:, None, None], np.array(chips)[None, :, None]
    found = joulemap.predict(*grid, precision="int8", batch=BATCHES[None, None, :], runtime="engine")
    for name, values in (("latency", found.latency_s), ("energy", found.energy_j)):
        far: list[float] = []
        for low, high in ENDS:
            for place in range(low + 1, high):
                share = (BATCHES[place] - BATCHES[low]) / (BATCHES[high] - BATCHES[low])
                line = values[..., low] + share * (values[..., high] - values[..., low])
                distance = np.abs(line / values[..., place] - 1.0).ravel()
                far += distance[np.isfinite(distance)].tolist()
        yield f"whole models, {name}", far


def list_served() -> Iterator[tuple[str, list[float]]]:
    """Yield quantity and relative distances of servers."""
    chips = [chip for group in load_groups() if "vllm" in group.servers for chip in group.chips]
    asked = [
        (
            ServingRow(
                source="", hardware=chip, model=model, scope="steady_serving", engine="vllm", device_count=devices,
                tensor_parallel=devices, prompt_tokens=float(prompt), output_tokens=float(output), batch=float(batch),
            ),
            find_chip(chip)[0],
        )
        for chip in chips
        for model, devices in SERVED
        for prompt, output in LENGTHS
        for batch in AT_ONCE
    ]  # fmt: skip
    found = predict_together(asked)
    loads = [found[start : start + len(AT_ONCE)] for start in range(0, len(found), len(AT_ONCE))]
    for name in NAMES:
        far: list[float] = []
        for load in loads:
            if not all(isinstance(one, Prediction) for one in load):
                continue
            scale = np.array(AT_ONCE) if name.endswith("_j") else 1.0
            values = np.array([getattr(one, name) for one in load]) * scale
            line = np.interp(AT_ONCE, (AT_ONCE[0], AT_ONCE[-1]), (values[0], values[-1]))
            far += np.abs(line / values - 1.0)[1:-1].tolist()
        yield f"servers, {name}", far


def main() -> None:
    """Print the distances."""
    for list_some in (list_wholes, list_served):
        for name, far in list_some():
            middle, most = 100.0 * np.median(far), 100.0 * np.quantile(far, 0.9)
            print(f"{name:<38} {len(far):>5} cells: median {middle:5.1f} %, nine in ten {most:5.1f} %")


if __name__ == "__main__":
    main()
