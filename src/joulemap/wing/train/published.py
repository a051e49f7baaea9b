"""Published training rates compared with predictions.

Rates of GPT are published in operations per second of a device. The paper counts the operations of a step, with
recomputation, for a batch B of s tokens, l layers of width h and a vocabulary V:

    96 B s l h^2 (1 + s / (6 h) + V / (16 l h))

A model that is published only by its number of parameters gets layers and a width with that number.

Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section
5.1 (operations per step).
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from joulemap.catalog import DATA
from joulemap.domain import Settings, Table, make_table
from joulemap.plan import Source, known_hardware
from joulemap.wing.train.ask.train import train
from joulemap.wing.train.generated.row import PublishedRate
from joulemap.wing.train.setting import Training

ROWS: Final = DATA / "training" / "published.csv"

TOKENS: Final = 2048
"""Tokens per sequence of a model that is given by layers and width."""

VOCABULARIES: Final = {"gpt": 51_200, "mpt": 50_368}
"""Vocabulary of each family of models that are given by layers and width."""


def published_training(source: Source) -> Table[PublishedRate]:
    """Return every published training rate with its prediction; steps not in the database are evaluated."""
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder, ROWS.open(newline="", encoding="utf-8") as file:
        return make_table("train published", PublishedRate, _predict(source, Path(folder), list(csv.DictReader(file))))


def _predict(source: Source, folder: Path, rows: list[dict[str, str]]) -> Iterator[PublishedRate]:

    for row in rows:
        tokens = int(row["tokens"]) if row["tokens"] else None
        sizes = read_sizes(row["model"])
        model = _write_config(row["model"], sizes, tokens or TOKENS, folder) if sizes else row["model"]
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
        fields: dict[str, Any] = {name: row[name] for name in ("hardware", "precision", "runtime")}
        settings = Settings(batch=(int(row["batch"]),), **fields)
        (predicted,) = train(source, model, settings, training=training).rows
        rate = float(row["samples_per_s"])
        yield PublishedRate(
            source=row["source"],
            model=row["model"],
            hardware=row["hardware"],
            architecture=known_hardware()[row["hardware"]].architecture,
            device_count=int(row["device_count"]),
            precision=row["precision"],
            runtime=row["runtime"],
            batch=int(row["batch"]),
            tokens=tokens,
            basis=row["basis"],
            measured_per_s=count_samples(row, sizes) if row["model"].startswith("gpt(") else rate,
            predicted_per_s=predicted.samples_per_s,
            latency_half_width=predicted.latency_half_width,
        )


def read_sizes(model: str) -> dict[str, int]:
    """Return name -> number for the sizes of a model given by layers and width; empty for a model given by name."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", model)}


def _write_config(model: str, sizes: Mapping[str, int], tokens: int, folder: Path) -> str:
    """Write a Hugging Face configuration of a GPT or MPT into a folder and return its path."""
    config = {
        "model_type": "gpt2",
        "n_layer": sizes["layers"],
        "n_embd": sizes["hidden"],
        "n_head": sizes["heads"],
        "n_positions": tokens,
        "n_ctx": tokens,
        "vocab_size": VOCABULARIES[model[:3]],
        "activation_function": "gelu",
    }
    path = folder / "_".join(map(str, (tokens, *sizes.values()))) / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def count_samples(row: Mapping[str, str], sizes: Mapping[str, int]) -> float:
    """Return the samples per second of all devices, from a rate in operations per second of one device."""
    batch, layers, hidden = int(row["batch"]), sizes["layers"], sizes["hidden"]
    step = 96.0 * batch * TOKENS * layers * hidden**2
    step *= 1 + TOKENS / (6 * hidden) + VOCABULARIES["gpt"] / (16 * layers * hidden)
    return batch * float(row["samples_per_s"]) * int(row["device_count"]) / step
