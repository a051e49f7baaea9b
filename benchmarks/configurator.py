"""Predict rows of benchmarks/peer/pipeweave.csv with aiconfigurator, and write them to benchmarks/peer/prediction.csv.

In an environment with aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), which needs no other part of this repository:

    python benchmarks/configurator.py

It interpolates NVIDIA's own measurements of kernels. Rows of boards without tables of SGLang are left out. A static
batch is predicted, with the newest table of the board and the mean length of the prompts, as joulemap gets it.
"""

import csv
import importlib
import json
import tempfile
from pathlib import Path
from typing import Any, Final

PEER: Final = Path(__file__).parent / "peer"
NAME: Final = "aiconfigurator"
ENGINE: Final = "sglang"

SYSTEMS: Final = {
    "a100_sxm4_80gb": "a100_sxm",
    "h100_sxm5": "h100_sxm",
    "h200_sxm": "h200_sxm",
    "rtx_pro_6000_server": "rtx_pro_6000_server",
}
"""Hardware -> system with tables of SGLang."""

MODELS: Final = {"meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B"}
"""Model -> its name there, where it differs."""

QWEN: Final = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 152064,
    "max_position_embeddings": 131072,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
}
"""Configuration of Qwen2.5-14B, which the package does not ship."""


def predict(row: dict[str, str], model: str) -> dict[str, float]:
    """Return quantity -> prediction of a row, in seconds."""
    sdk = "aiconfigurator_core.sdk"
    config, common, databases, models, backends = (
        importlib.import_module(f"{sdk}.{name}")
        for name in ("config", "common", "perf_database", "models", "backends.factory")
    )
    system = SYSTEMS[row["hardware"]]
    database = databases.get_database_view(system, ENGINE, databases.get_latest_database_version(system, ENGINE))
    of_model = config.ModelConfig(
        tp_size=int(row["tensor_parallel"]),
        gemm_quant_mode=common.GEMMQuantMode.bfloat16,
        kvcache_quant_mode=common.KVCacheQuantMode.bfloat16,
        fmha_quant_mode=common.FMHAQuantMode.bfloat16,
    )
    output = int(row["output_tokens"])
    load = config.RuntimeConfig(batch_size=int(row["batch"]), isl=round(float(row["prompt_tokens"])), osl=output)
    built: Any = models.get_model(model, of_model, ENGINE)
    backend: Any = backends.get_backend(ENGINE)
    first, others = (
        backend.run_static_latency_only(built, database, load, part) / 1e3 for part in ("static_ctx", "static_gen")
    )
    return {
        "time_to_first_token_s": first,
        "inter_token_latency_s": others / (output - 1),
        "request_latency_s": first + others,
    }


def main() -> None:
    """Replace the predictions of aiconfigurator."""
    path = PEER / "prediction.csv"
    with path.open(encoding="utf-8", newline="") as file:
        kept = [row for row in csv.DictReader(file) if row["peer"] != NAME]
    with (PEER / "pipeweave.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(QWEN), encoding="utf-8")
        for place, row in enumerate(rows, 1):
            if row["hardware"] not in SYSTEMS:
                continue
            model = folder if row["model"] == "Qwen/Qwen2.5-14B" else MODELS.get(row["model"], row["model"])
            for quantity, predicted in predict(row, model).items():
                told = {"source": "PipeWeave", "row": str(place), "quantity": quantity, "peer": NAME}
                kept.append({**told, "predicted": f"{predicted:.6g}"})
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(kept[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(kept)


if __name__ == "__main__":
    main()
