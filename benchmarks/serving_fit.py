"""Fit the host times of an engine to measured rows, and print fitted and held-out errors.

python benchmarks/serving_fit.py TABLE.csv --engine vllm [--source argonne] [--every 4] [--leave hardware]

The two numbers of a stack, per layer and per sequence, minimize the mean |log ratio| of the rows' latencies by the
simplex method of Nelder and Mead. Each group of `--leave` is scored by a fit to all others.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np

from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.system.errors import Reason
from joulemap.wing.decoder.engine.stack import Stack, find_stack, load_coefficients
from joulemap.wing.llm.row import ServingRow
from joulemap.wing.llm.serving import predict as prediction
from serving_error import find_hardware, read_table

NAMES = ("host_layer", "host_sequence")
START = (1e-4, 5e-5)
QUANTITIES = ("request_latency_s", "inter_token_latency_s")
STEPS = 60

Point = tuple[float, ...]


class Fit:
    """Fit of an engine's host times, by trial."""

    def __init__(self, hardware: dict[str, Hardware]) -> None:
        """Replace `find_stack`, so that trial numbers apply."""
        self.hardware = hardware
        self.numbers: Point = START

        def find(name: str = "", date: str = "") -> Stack:
            stack = find_stack(name, date)
            numbers = {
                key: Quantity(value=abs(value), unit=load_coefficients()[key].unit, basis="assumed", source="a trial")
                for key, value in zip(NAMES, self.numbers, strict=True)
            }
            return attrs.evolve(stack, coefficients={**stack.coefficients, **numbers})

        vars(prediction)["find_stack"] = find

    def ratios(self, rows: Sequence[ServingRow], numbers: Point) -> list[float]:
        """Return predicted / measured for each latency of the rows; rows without a prediction are skipped."""
        self.numbers = numbers
        found = []
        for row in rows:
            (one,) = prediction.predict([row], self.hardware[row.hardware])
            if isinstance(one, Reason):
                continue
            for name in QUANTITIES:
                measured, predicted = getattr(row, name), getattr(one, name)
                if measured is not None and predicted is not None:
                    found.append(predicted / measured)
        return found

    def fit(self, rows: Sequence[ServingRow]) -> Point:
        """Return the numbers with the lowest mean |log ratio| of the rows."""
        return descend(lambda point: statistics.fmean(abs(math.log(one)) for one in self.ratios(rows, point)), START)


def descend(function: Callable[[Point], float], start: Point) -> Point:
    """Return the absolute coordinates of a function's minimum. Source: Nelder and Mead, 1965."""
    points = [np.array(start), *(np.array(start) * (1.0 + 0.5 * row) for row in np.eye(len(start)))]
    values = [function(tuple(point)) for point in points]
    for _ in range(STEPS):
        order = np.argsort(values)
        points, values = [points[place] for place in order], [values[place] for place in order]
        middle = np.mean(points[:-1], axis=0)
        for stretch in (1.0, 2.0, -0.5):
            trial = middle + stretch * (middle - points[-1])
            value = function(tuple(trial))
            if value < values[-1]:
                points[-1], values[-1] = trial, value
                break
        else:
            points = [points[0], *(points[0] + 0.5 * (point - points[0]) for point in points[1:])]
            values = [values[0], *(function(tuple(point)) for point in points[1:])]
    best = points[int(np.argmin(values))]
    return tuple(abs(float(one)) for one in best)


def tell(ratios: Sequence[float]) -> str:
    """Return the text of the number of rows, the mean and median error in per cent, and the median ratio."""
    errors = [100.0 * abs(one - 1.0) for one in ratios]
    mean, median = statistics.fmean(errors), statistics.median(errors)
    return f"{len(errors)} rows, mean {mean:.1f}, median {median:.1f}, ratio {statistics.median(ratios):.2f}"


def main() -> None:
    """Print the fit of an engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--source", default="")
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--leave", default="hardware")
    told = parser.parse_args()
    name = find_stack(told.engine).name
    rows = [row for row in read_table(told.table) if not told.source or row.source == told.source]
    rows = [row for row in rows if row.engine in (told.engine, name)][:: told.every]
    hardware = find_hardware({row.hardware for row in rows})
    rows = sorted((row for row in rows if row.hardware in hardware), key=lambda row: row.model)
    fit = Fit(hardware)
    print(f"no host: {tell(fit.ratios(rows, (0.0, 0.0)))}")
    numbers = fit.fit(rows)
    print(f"in view: {tell(fit.ratios(rows, numbers))}; {dict(zip(NAMES, numbers, strict=True))}")
    left: list[float] = []
    groups = sorted({getattr(row, told.leave) for row in rows})
    for group in groups if len(groups) > 1 else ():
        others = [row for row in rows if getattr(row, told.leave) != group]
        mine = [row for row in rows if getattr(row, told.leave) == group]
        found = fit.ratios(mine, fit.fit(others))
        left += found
        print(f"  without {group}: {tell(found) if found else 'nothing is predicted'}")
    if left:
        print(f"left out by {told.leave}: {tell(left)}")


if __name__ == "__main__":
    main()
