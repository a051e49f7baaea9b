"""Rates of `joulemap.predict`, of `predict_step` and of adapters for other programs, beside a loop that adds numbers.

python benchmarks/predict.py

The first line is a fresh interpreter up to its first answer: processor time and peak memory, median of five. The others
are rates per second of processor time, best of three, without the first call.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import joulemap
from joulemap import Passes, predict_step
from joulemap.bundle.chip import load_chips
from joulemap.wing.embed import SglangPredictor, predict_token_costs, write_serving_profile

FIRST = """
import time, resource
import joulemap
joulemap.predict("resnet50", "h100_sxm5", batch=8)
print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""

MODELS = ("resnet50", "mobilenet_v2", "vit_b_16", "bert-base-uncased", "yolov8n", "efficientnet_b0")

LANGUAGE_MODELS = ("llama-3.1-8b", "qwen3-8b", "gemma-2-2b", "phi-3-mini-4k", "mistral-7b-v0.1", "qwen2.5-1.5b")

BOARDS = ("h100_sxm5", "h200_sxm", "mi300x")

ADDED = 20_000_000


def measure_first() -> tuple[float, float]:
    """Return seconds of processor time and bytes of memory up to the first answer of an interpreter."""
    runs = [subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True) for _ in range(5)]
    seconds, memory = zip(*(map(float, one.stdout.split()) for one in runs), strict=True)
    return statistics.median(seconds), statistics.median(memory)


def rate(action: Callable[[], object], number: float) -> float:
    """Return how many of `number` results of an action a second of processor time gives."""
    action()
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        action()
        best = max(best, number / (time.process_time() - start))
    return best


def list_rates() -> Iterator[tuple[str, float]]:
    """Yield names and rates."""
    chips, batches = sorted(load_chips().ids), count(100)

    def ask(batch: int) -> object:
        return joulemap.predict("resnet50", "l4", batch=batch, runtime="engine")

    yield "calls of one cell", rate(lambda: [ask(8) for _ in range(50)], 50)
    yield "calls of one cell, each with a new batch", rate(lambda: [ask(next(batches)) for _ in range(50)], 50)
    models = np.array(MODELS)[:, None]
    table = rate(lambda: joulemap.predict(models, chips, precision="fp16"), len(MODELS) * len(chips))
    yield f"cells in one call, {len(MODELS)} models on {len(chips)} chips", table
    clock, bandwidth = np.meshgrid(np.linspace(1e9, 2e9, 100), np.linspace(1e12, 4e12, 100))
    for model in ("vit_b_16", "resnet18", "resnet50"):

        def vary(model: str = model) -> object:
            changes = {"clock": clock, "memory_bandwidth": bandwidth}
            return joulemap.predict(model, "h100_sxm5", runtime="engine", changes=changes)

        yield f"designs of one chip, {model}", rate(vary, clock.size)
    steps = predict_step("llama-3.1-8b", "h100_sxm5", engine="vllm")
    fast = steps.table(sequences=256, context_tokens=8192, prompt_tokens=2048)
    numbers = np.arange(1, 257)
    yield "serving steps by table, one by one", rate(lambda: [fast.step(int(one), 1000.0) for one in numbers], 256)
    contexts = count(1000)  # priced steps are kept, so each call asks for others

    def price_together() -> object:
        return steps.price(Passes.of(numbers[:64], context=next(contexts)))

    def price_alone() -> object:
        return [steps.price(Passes.of(int(one), context=next(contexts))) for one in numbers[:32]]

    yield "serving steps, exact, with intervals", rate(price_together, 64)
    yield "serving steps, exact, one by one", rate(price_alone, 32)
    costs = rate(lambda: predict_token_costs(LANGUAGE_MODELS, BOARDS), len(LANGUAGE_MODELS) * len(BOARDS))
    yield f"costs of tokens, {len(LANGUAGE_MODELS)} models on {len(BOARDS)} chips", costs


def list_adapter_rates() -> Iterator[tuple[str, float]]:
    """Yield names and rates of adapters."""
    predictor = SglangPredictor(predict_step("qwen3-8b", "h100_sxm5", engine="sglang"))
    batch = SimpleNamespace(reqs=[SimpleNamespace(extend_length=1, past_kv_length=1024)] * 64)
    yield "batches of SGLang's simulator", rate(lambda: [predictor.predict_infer_time(batch) for _ in range(500)], 500)
    steps = predict_step("llama-3.1-8b", "rtx_4090")
    with tempfile.TemporaryDirectory() as folder:

        def write() -> Path:
            return write_serving_profile(
                steps, folder, hardware="RTX4090", model="meta-llama/Llama-3.1-8B", tokens=128, sequences=16,
                context_tokens=1024,
            )  # fmt: skip

        rows = (write() / "tp1" / "attention.csv").read_text(encoding="utf-8").count("\n") - 1
        yield "rows of attention for LLMServingSim", rate(write, rows)


def main() -> None:
    """Print the figures."""
    start, total = time.process_time(), 0
    for number in range(ADDED):
        total += number
    print(f"a loop adds {ADDED:,} numbers in {time.process_time() - start:.2f} s of processor time")
    seconds, memory = measure_first()
    print(f"first answer of an interpreter: {seconds:.2f} s of processor time, {memory / 1e6:.0f} MB")
    for name, found in chain(list_rates(), list_adapter_rates()):
        print(f"{name:<42} {found:>9,.0f} /s", flush=True)


if __name__ == "__main__":
    main()
