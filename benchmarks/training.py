"""How far predicted training rates are from the few published ones that are known: `python benchmarks/training.py`.

Rows are of `training.csv`. Those of GPT are given in operations a second of a device, which the paper counts as
96 B s l h^2 (1 + s / 6 h + V / 16 l h) a step, recomputation in it; here they are turned to steps. Those of MPT have
the layers and width that give their number of parameters.
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
VOCABULARIES: Final = {"gpt": 51_200, "mpt": 50_368}


def write_config(model: str, tokens: int, folder: Path) -> tuple[str, dict[str, int]]:
    """Return the path of the configuration of a GPT or MPT, and its sizes."""
    sizes = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", model)}
    told = {
        "model_type": "gpt2", "n_layer": sizes["layers"], "n_embd": sizes["hidden"], "n_head": sizes["heads"],
        "n_positions": tokens, "n_ctx": tokens, "vocab_size": VOCABULARIES[model[:3]], "activation_function": "gelu",
    }  # fmt: skip
    path = folder / "_".join(map(str, (tokens, *sizes.values()))) / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told))
    return str(path), sizes


def count_samples(row: dict[str, str], sizes: dict[str, int]) -> float:
    """Return published samples a second of a GPT, of operations a second of a device."""
    batch, layers, hidden = int(row["batch"]), sizes["layers"], sizes["hidden"]
    step = 96.0 * batch * TOKENS * layers * hidden**2
    step *= 1 + TOKENS / (6 * hidden) + VOCABULARIES["gpt"] / (16 * layers * hidden)
    return batch * float(row["samples_per_s"]) * int(row["device_count"]) / step


def score(row: dict[str, str], workspace: Workspace, folder: Path, runtime: str) -> tuple[float, float, float]:
    """Return (published, predicted, half-width of the predicted interval) samples a second of a row."""
    tokens = int(row["tokens"]) if row["tokens"] else None
    is_made = row["model"][:4] in ("gpt(", "mpt(")
    model, sizes = write_config(row["model"], tokens or TOKENS, folder) if is_made else (row["model"], {})
    published = count_samples(row, sizes) if row["model"].startswith("gpt(") else float(row["samples_per_s"])
    training = Training(
        devices=(int(row["device_count"]),),
        tensor_devices=int(row["tensor_devices"]),
        sequence_parallel=row["sequence_parallel"] == "true",
        pipeline_devices=int(row["pipeline_devices"]),
        optimizer=row["optimizer"],
        recompute=row["recompute"] == "true",
        tokens=tokens,
        zero=int(row["zero"]),
        accumulate=int(row["accumulate"]),
    )
    told: dict[str, Any] = {"precision": row["precision"], "runtime": runtime or row["runtime"]}
    answer = workspace.train(model, hardware=row["hardware"], batch=int(row["batch"]), training=training, **told)
    (found,) = answer.rows
    return published, found.samples_per_s or math.nan, found.latency_half_width or math.nan


def main() -> None:
    """Print each row, the mean error and how many intervals held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", default="", help="in place of the rows' own")
    parser.add_argument("--only", default="", help="rows whose model or source has this text")
    asked = parser.parse_args()
    errors: dict[str, list[float]] = {}
    held = 0
    with tempfile.TemporaryDirectory() as name, ROWS.open(newline="", encoding="utf-8") as file:
        workspace = Workspace(Path(name) / "training.duckdb")
        for row in csv.DictReader(file):
            if asked.only not in row["model"] + row["source"]:
                continue
            published, predicted, width = score(row, workspace, Path(name), asked.runtime)
            error = math.log(published / predicted)
            errors.setdefault(row["source"].partition(",")[0], []).append(error)
            held += abs(error) <= width
            told = f"{row['model']} {row['hardware']} x{row['device_count']} {row['precision']} {row['tokens']}"
            ratio = predicted / published - 1.0
            print(f"{told:62s} published {published:9.4g}/s predicted {predicted:9.4g}/s {100.0 * ratio:+6.1f} %")
    every = [error for some in errors.values() for error in some]
    for source, some in {**errors, "all": every}.items():
        print(f"{source}: mean error {100.0 * math.expm1(sum(map(abs, some)) / len(some)):.1f} % of {len(some)} rows")
    print(f"{held} of {len(every)} within their 80 % interval")


if __name__ == "__main__":
    main()
