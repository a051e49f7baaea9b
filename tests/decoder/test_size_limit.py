"""Configurations of language models that no model has: one line each, soon, and nothing stored."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Run
from joulemap.system.errors import ExitCode, ModelError
from joulemap.wing.decoder.network.pass_name import find_decoder, load_shipped
from joulemap.wing.decoder.network.read import read_config
from joulemap.wing.hub.configuration import read_configuration

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096,
}  # fmt: skip

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
WRONG = (0, -4, 10**12, 1e308, 2.5, True, "32", [1], {"a": 1}, 10**400)

CHANGES: dict[str, dict[str, Any]] = {
    "a million heads": {"num_attention_heads": 1_000_000, "num_key_value_heads": 1_000_000},
    "a million layers": {"num_hidden_layers": 1_000_000},
    "heads of nothing": {"head_dim": 0},
    "more heads than elements": {"num_attention_heads": 512, "num_key_value_heads": 512},
    "a rotary part beyond a head": {"partial_rotary_factor": 1e308},
    "a rotary part that is a list": {"partial_rotary_factor": [0.5]},
    "a window of text": {"sliding_window": "big"},
    "a flag of text": {"attention_bias": "no"},
    "every size at its limit": dict.fromkeys(("hidden_size", "intermediate_size"), 4194304)
    | {"num_hidden_layers": 2_000, "vocab_size": 100_000_000},
}
EXPERTS: dict[str, dict[str, Any]] = {
    "a million experts": {"num_local_experts": 1_000_000},
    "more experts taken than there are": {"num_experts_per_tok": 9},
    "no expert taken": {"num_experts_per_tok": 0},
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", WRONG, ids=lambda value: str(value)[:12])
def test_sizes_are_whole_positive_and_bounded(name: str, value: Any) -> None:
    with pytest.raises(ModelError, match=name):
        read_config({**LLAMA, name: value}, "own.json")


@pytest.mark.parametrize("case", CHANGES)
def test_configurations_that_no_model_has_are_refused(case: str) -> None:
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"own\.json"):
        read_config({**LLAMA, **CHANGES[case]}, "own.json")
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize("case", EXPERTS)
def test_experts_are_bounded(case: str) -> None:
    mixture = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    assert read_config(mixture, "own.json").is_routed
    with pytest.raises(ModelError, match=r"own\.json"):
        read_config({**mixture, **EXPERTS[case]}, "own.json")


@pytest.mark.slow
def test_every_shipped_configuration_is_within_the_limits() -> None:
    for name, entry in load_shipped().items():
        assert read_config(entry["config"], name).layers


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 30)


FILES: dict[str, Callable[[Path], Any]] = {
    "a named pipe": make_pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a gigabyte": make_huge,
    "deep nesting": lambda path: path.write_text('{"a":' * 100_000),
    "nesting that ends": lambda path: path.write_text('{"a":' * 500 + "1" + "}" * 500),
    "no object": lambda path: path.write_text("[1, 2]"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "NaN": lambda path: path.write_text(json.dumps({**LLAMA, "rms_norm_eps": float("nan")})),
    "more than a double": lambda path: path.write_text('{"model_type": "llama", "rope_theta": 1e999}'),
    "half a file": lambda path: path.write_text('{"model_type": "llama"'),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_configuration_are_refused(case: str, tmp_path: Path, joulemap: Run) -> None:
    path = tmp_path / "config.json"
    FILES[case](path)
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"config\.json"):
        read_configuration(path, str(path))
    with pytest.raises(ModelError):
        find_decoder(str(path))
    assert time.monotonic() - started < 5.0
    # with transformers by its content when it is built, without them by what it needs
    assert joulemap("model", "show", f"hf:{path}").returncode == ExitCode.MODEL


@pytest.mark.slow
def test_nothing_is_stored_of_what_is_refused(joulemap: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for change in ({"num_attention_heads": 1_000_000}, {"vocab_size": 0}):
        path.write_text(json.dumps({**LLAMA, **change}))
        refused = joulemap("llm", str(path), "l4", "--batch", "1")
        assert refused.returncode == ExitCode.MODEL
        assert len(refused.stderr.strip().splitlines()) == 1
    path.write_text(json.dumps(LLAMA))
    assert joulemap("llm", str(path), "l4", "--batch", "1").returncode == ExitCode.OK
    assert joulemap("db", "check").returncode == ExitCode.OK
