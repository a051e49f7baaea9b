"""Kernel profiles for BLIS: what its loader checks, and the times of a profile that it ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from joulemap import predict_step
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.embed import write_kernel_profile


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    path = tmp_path_factory.mktemp("blis") / "kernel_profile.yaml"
    steps = predict_step("qwen2.5-7b", "h100_sxm5")
    write_kernel_profile(
        steps, path, gpu="h100_sxm", model="Qwen/Qwen2.5-7B", tokens=1024, sequences=64, context_tokens=256
    )
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def test_it_passes_the_checks_of_the_loader(profile: dict[str, Any]) -> None:
    """As `validate` of sim/latency/kernel_profile.go there."""
    assert profile["tp"] > 0
    assert (profile["num_layers"], profile["num_dense_layers"], profile["num_moe_layers"]) == (28, 28, 0)
    for name in ("gemm", "allreduce", "logits_gemm"):
        one = profile[name]
        assert len(one["tokens"]) == len(one["latency_us"]) > 0
        assert one["tokens"] == sorted(one["tokens"])
    for name, first, second in (
        ("context_attention", "batch_size", "isl"),
        ("generation_attention", "tokens", "context"),
    ):
        one = profile[name]
        assert len(one["latency_us"]) == len(one[second]) > 0
        assert all(len(row) == len(one[first]) > 0 for row in one["latency_us"])


@pytest.mark.parametrize(
    "given", [{"tokens": 0}, {"sequences": -4}, {"context_tokens": 1.5}, {"gpu": None}, {"model": 1}]
)
def test_sizes_and_names_that_no_profile_has_are_refused(given: dict[str, object], tmp_path: Path) -> None:
    (name,) = given
    with pytest.raises(UsageError, match=f"{name} is"):
        write_kernel_profile(
            predict_step("qwen2.5-7b", "h100_sxm5"),
            tmp_path / "kernel_profile.yaml",
            **{"gpu": "h", "model": "m", **given},  # type: ignore[arg-type]
        )
    assert not [*tmp_path.iterdir()]


def test_a_profile_of_one_token_has_all_tables(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    path, steps = tmp_path / "kernel_profile.yaml", predict_step("qwen2.5-7b", "h100_sxm5")
    write_kernel_profile(steps, path, gpu="h", model="m", tokens=1, sequences=1, context_tokens=1)
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["context_attention"]["isl"] == [1]


def test_what_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    steps = predict_step("qwen2.5-7b", "h100_sxm5")
    for path in (tmp_path, tmp_path / "none" / "profile.yaml"):
        with pytest.raises(UsageError, match="cannot write"):
            write_kernel_profile(steps, path, gpu="h", model="m")
    with pytest.raises(UnsupportedError, match="of them for weights, but"):
        write_kernel_profile(predict_step("llama-3.1-70b", "l4"), tmp_path / "profile.yaml", gpu="l4", model="m")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_attention_beyond_memory_grows_with_the_sequences(tmp_path: Path) -> None:
    # of 128 KiB per token, fewer than 50,000 tokens fit beside the weights in 24 GB
    yaml = pytest.importorskip("yaml")
    path, steps = tmp_path / "kernel_profile.yaml", predict_step("llama-3.1-8b", "l4")
    write_kernel_profile(steps, path, gpu="l4", model="m", tokens=64, sequences=64, context_tokens=4096)
    one = yaml.safe_load(path.read_text(encoding="utf-8"))["generation_attention"]
    assert (one["tokens"], one["context"][-1]) == ([1, 4, 16, 64], 4096)
    assert one["latency_us"][-1][3] == 4.0 * one["latency_us"][-1][2]
    with pytest.raises(UnsupportedError, match="of them for weights, but"):
        write_kernel_profile(steps, path, gpu="l4", model="m", tokens=64, sequences=4, context_tokens=100_000)
