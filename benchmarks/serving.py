"""Ratio of simulated time to run time of the simulation of a language model server, on one core.

python benchmarks/serving.py [--requests N]

Passes have a linear time similar to Llama 3.1 8B on an H100, so that only the simulation is timed. The last lines are
for predictions of that model and board, including the table of passes that the simulation interpolates.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import attrs

from joulemap.catalog.load import load_catalogue
from joulemap.wing.llm.row import ServingRow
from joulemap.wing.llm.serving.load import Limits, Load
from joulemap.wing.llm.serving.predict import find_deployment
from joulemap.wing.llm.serving.serve import open_deployment, simulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "llm"))

from pass_surface import StraightPass

SURFACE = StraightPass(pass_s=0.008, sequence_s=2e-5, cached_s=4e-8, prompt_s=3e-5, attend_s=1e-9, watts=600.0)
LIMITS = Limits(step_tokens=2048, sequences=256, cache_tokens=400_000)

LOADS = {
    "one user": Load(in_flight=1, prompt_tokens=1024, output_tokens=1024),
    "64 in flight": Load(in_flight=64, prompt_tokens=1024, output_tokens=1024, spread_fraction=0.2),
    "256 in flight, preempting": Load(in_flight=256, prompt_tokens=2048, output_tokens=512, spread_fraction=0.5),
    "long prompts": Load(in_flight=32, prompt_tokens=32_000, output_tokens=256, spread_fraction=0.5),
    "2 a second": Load(rate_per_s=2.0, prompt_tokens=1024, output_tokens=256, spread_fraction=0.5),
    "10 a second": Load(rate_per_s=10.0, prompt_tokens=1024, output_tokens=256, spread_fraction=0.5),
    "40 a second, growing": Load(rate_per_s=40.0, prompt_tokens=1024, output_tokens=256, spread_fraction=0.5),
    "short answers": Load(rate_per_s=30.0, prompt_tokens=512, output_tokens=16, spread_fraction=0.5),
}


def main() -> None:
    """Print a row for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    count = parser.parse_args().requests
    print("| load | simulated s | steps | step ms | taken s | times faster |")
    print("|---|---|---|---|---|---|")
    least = float("inf")
    for name, load in LOADS.items():
        start = time.process_time()
        served = simulate(SURFACE, attrs.evolve(load, requests=count), LIMITS)
        taken = time.process_time() - start
        ratio = served.duration_s / taken
        least = min(least, ratio)
        step = (served.duration_s - served.window.idle_s) / served.steps
        print(
            f"| {name} | {served.duration_s:,.0f} | {served.steps:,} | {1e3 * step:.1f} | {taken:.3f} | {ratio:,.0f} |"
        )
    print(f"the least is {least:,.0f}")
    predict(count)


def predict(count: int) -> None:
    """Print the run time of one load of a model on a board, with the prediction of its passes."""
    row = ServingRow(source="", hardware="h100_sxm5", model="llama-3.1-8b", scope="steady_serving", engine="vllm")
    start = time.process_time()
    deployment = find_deployment(row, load_catalogue().find(row.hardware))
    load = attrs.evolve(LOADS["10 a second"], requests=count)
    table, limits = open_deployment(deployment, load)
    asked = time.process_time()
    served = simulate(table, load, limits)
    taken = time.process_time() - asked
    print(f"llama-3.1-8b on h100_sxm5, 10 a second: passes at knots {asked - start:.2f} s,", end=" ")
    print(f"then {served.duration_s:,.0f} s in {taken:.3f} s, {served.duration_s / taken:,.0f} times faster;", end=" ")
    print(f"both together {served.duration_s / (time.process_time() - start):,.0f}")


if __name__ == "__main__":
    main()
