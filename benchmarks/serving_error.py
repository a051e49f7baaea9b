"""Errors of predictions of served models on a table of measured rows, grouped by columns of the table.

python benchmarks/serving_error.py TABLE.csv [--every 5] [--source argonne,splitwise] [--by source,hardware,engine]
                                   [--refused] [--out PREDICTIONS.csv]

A printed row has a group, a quantity, the number of rows, mean and median of |predicted / measured - 1| in per cent,
and the median of predicted / measured, which shows a common factor in the errors of a group.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from joulemap.catalog.load import find_hardware as load_hardware
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.calibration import use_calibration
from joulemap.system.errors import Reason, UnknownNameError
from joulemap.wing.llm.row import ServingRow, read_serving_row
from joulemap.wing.llm.serving.predict import predict

SHOWN = (
    "time_to_first_token_s",
    "inter_token_latency_s",
    "request_latency_s",
    "energy_per_output_token_j",
    "energy_per_request_j",
    "power_w",
)


def read_table(path: Path) -> list[ServingRow]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [read_serving_row(cells) for cells in csv.DictReader(stream)]


def find_hardware(names: set[str]) -> dict[str, Hardware]:
    """Return name -> hardware of the catalogue or of a family, with its calibration; unknown names are omitted."""
    used, found = use_calibration("auto"), {}
    for name in sorted(names):
        with contextlib.suppress(UnknownNameError):
            one = load_hardware(name)
            found[name] = used.target(one, "default", "board").bind(one)
    return found


def score(rows: Sequence[ServingRow]) -> Iterator[tuple[ServingRow, str, float, float | str]]:
    """Yield (row, quantity, measured, predicted or the reason why not)."""
    hardware = find_hardware({row.hardware for row in rows})
    by_hardware: dict[str, list[ServingRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.model):
        by_hardware[row.hardware].append(row)
    for name, some in by_hardware.items():
        missing = Reason(text=f"{name} is not in the catalogue")
        found = predict(some, hardware[name]) if name in hardware else [missing] * len(some)
        for row, one in zip(some, found, strict=True):
            for quantity, measured in row.measured().items():
                if isinstance(one, Reason):
                    yield row, quantity, measured, one.text
                elif (value := getattr(one, quantity)) is not None:
                    yield row, quantity, measured, value


def main() -> None:
    """Print the errors of each group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--source", default="")
    parser.add_argument("--hardware", default="")
    parser.add_argument("--by", default="source,hardware,engine")
    parser.add_argument("--refused", action="store_true")
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    rows = read_table(told.table)
    for what in ("source", "hardware"):
        wanted = set(filter(None, getattr(told, what).split(",")))
        rows = [row for row in rows if not wanted or getattr(row, what) in wanted]
    keys = told.by.split(",")
    ratios: dict[tuple[str, ...], list[float]] = defaultdict(list)
    reasons: Counter[str] = Counter()
    written = []
    for row, quantity, measured, found in score(rows[:: told.every]):
        if isinstance(found, str):
            reasons[f"{row.source}: {found}"] += 1
        else:
            written.append((row, quantity, measured, found))
            if quantity in SHOWN:
                ratios[*(str(getattr(row, key)) for key in keys), quantity].append(found / measured)
    print(f"| {' | '.join(keys)} | quantity | rows | mean | median | ratio |")
    print("|" + "---|" * (len(keys) + 5))
    for group, values in sorted(ratios.items()):
        errors = [100.0 * abs(value - 1.0) for value in values]
        told_of = f"{statistics.mean(errors):.0f} | {statistics.median(errors):.0f} | {statistics.median(values):.2f}"
        print(f"| {' | '.join(group)} | {len(values)} | {told_of} |")
    if told.refused:
        for reason, count in reasons.most_common():
            print(f"{count:6} {reason}")
    if told.out:
        write(told.out, written)


def write(path: Path, written: Sequence[tuple[ServingRow, str, float, float]]) -> None:
    """Write each prediction with its measurement."""
    keys = ["source", "hardware", "engine", "date", "model", "weight_precision", "device_count", "tensor_parallel"]
    keys += ["pipeline_parallel", "prompt_tokens", "output_tokens", "batch", "scope"]
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream)
        out.writerow([*keys, "quantity", "measured", "predicted"])
        for row, *values in written:
            out.writerow([*(getattr(row, key) for key in keys), *values])


if __name__ == "__main__":
    main()
