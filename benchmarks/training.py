"""How far predicted training rates are from the few published ones that are known: `python benchmarks/training.py`.

Rows are of `training.csv`. Those of GPT are given in operations a second of a device, which the paper counts as
96 B s l h^2 (1 + s / 6 h + V / 16 l h) a step, recomputation in it; here they are turned to steps.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from joulemap.domain.settings import Training
from joulemap.workspace import Workspace

ROWS: Final = Path(__file__).with_suffix(".csv")
TOKENS: Final = 2048
VOCABULARY: Final = 51_200


def write_config(model: str, folder: Path) -> tuple[str, dict[str, int]]:
    """Return the path of the configuration of a GPT, and its sizes."""
    sizes = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", model)}
    told = {
        "model_type": "gpt2", "n_layer": sizes["layers"], "n_embd": sizes["hidden"], "n_head": sizes["heads"],
        "n_positions": TOKENS, "n_ctx": TOKENS, "vocab_size": VOCABULARY, "activation_function": "gelu",
    }  # fmt: skip
    path = folder / "_".join(map(str, sizes.values())) / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told))
    return str(path), sizes


def count_samples(row: dict[str, str], sizes: dict[str, int]) -> float:
    """Return published samples a second of a GPT, of operations a second of a device."""
    batch, layers, hidden = int(row["batch"]), sizes["layers"], sizes["hidden"]
    step = 96.0 * batch * TOKENS * layers * hidden**2
    step *= 1 + TOKENS / (6 * hidden) + VOCABULARY / (16 * layers * hidden)
    return batch * float(row["samples_per_s"]) * int(row["device_count"]) / step


def score(row: dict[str, str], workspace: Workspace, folder: Path, runtime: str) -> tuple[float, float, float]:
    """Return (published, predicted, half-width of the predicted interval) samples a second of a row."""
    is_gpt = row["model"].startswith("gpt(")
    model, sizes = write_config(row["model"], folder) if is_gpt else (row["model"], {})
    published = count_samples(row, sizes) if is_gpt else float(row["samples_per_s"])
    training = Training(
        devices=(int(row["device_count"]),),
        tensor_devices=int(row["tensor_devices"]),
        optimizer=row["optimizer"],
        recompute=row["recompute"] == "true",
        tokens=TOKENS if is_gpt else None,
    )
    told: dict[str, Any] = {"precision": row["precision"], "runtime": runtime or row["runtime"]}
    answer = workspace.train(model, hardware=row["hardware"], batch=int(row["batch"]), training=training, **told)
    (found,) = answer.rows
    return published, found.samples_per_s or math.nan, found.latency_half_width or math.nan


def main() -> None:
    """Print each row, the mean error and how many intervals held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", default="", help="in place of the rows' own")
    asked = parser.parse_args()
    errors, held = [], 0
    with tempfile.TemporaryDirectory() as name, ROWS.open(newline="", encoding="utf-8") as file:
        workspace = Workspace(Path(name) / "training.duckdb")
        for row in csv.DictReader(file):
            published, predicted, width = score(row, workspace, Path(name), asked.runtime)
            error = math.log(published / predicted)
            errors.append(error)
            held += abs(error) <= width
            told = f"{row['model']} {row['hardware']} x{row['device_count']} {row['precision']}"
            ratio = predicted / published - 1.0
            print(f"{told:62s} published {published:9.4g}/s predicted {predicted:9.4g}/s {ratio:+7.1%}")
    mean = sum(map(abs, errors)) / len(errors)
    print(f"mean error {math.expm1(mean):.1%} of {len(errors)} rows, all recalled; {held} within their 80 % interval")


if __name__ == "__main__":
    main()
