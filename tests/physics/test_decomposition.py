"""Factorizations and solvers: dependent steps, precision, and how sure a prediction of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.load import load_catalogue
from joulemap.physics.bulk import Total, evaluate_all
from joulemap.physics.interval.error_scale import DOUBTED, UNMEASURED
from joulemap.physics.interval.scale import Subject, find_scale
from joulemap.physics.record.compiler import HOST_OPERATIONS
from joulemap.physics.record.workload import BATCHED, SPREAD, Operator
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.system.units import FS_PER_S
from models import Function, trace

SOLVERS: dict[str, Callable[..., Any]] = {
    "cholesky": torch.linalg.cholesky,
    "eig": torch.linalg.eig,
    "eigh": torch.linalg.eigh,
    "inverse": torch.linalg.inv,
    "lu": torch.linalg.lu_factor,
    "matrix_exp": torch.linalg.matrix_exp,
    "qr": torch.linalg.qr,
    "solve": lambda x: torch.linalg.solve(x, x),
    "svd": torch.linalg.svd,
}


def find(name: str, *shape: int) -> Operator:
    (found,) = (one for one in trace(Function(SOLVERS[name]), matrix(*shape)).operators if one.operation == name)
    return found


def matrix(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def evaluate(name: str, *shape: int, hardware: str = "h100_sxm5", precision: str = "fp32") -> Total:
    workload = trace(Function(SOLVERS[name]), matrix(*shape))
    (total,) = evaluate_all((workload,), load_catalogue().hardware[hardware], precision, "fused")
    return total


def latency_s(name: str, *shape: int, hardware: str = "h100_sxm5", precision: str = "fp32") -> float:
    total = evaluate(name, *shape, hardware=hardware, precision=precision)
    assert total.latency_fs is not None, total.refusal
    return total.latency_fs / FS_PER_S


def test_a_cholesky_of_three_rows_by_hand() -> None:
    one, five = find("cholesky", 3, 3), find("cholesky", 5, 3, 3)
    assert (one.elementwise_count, one.special_count, one.step_count, one.gemm_groups) == (9, 3, 1, 1)  # 27 / 3
    assert (five.elementwise_count, five.special_count, five.step_count, five.gemm_groups) == (45, 15, 1, 5)


@pytest.mark.parametrize("name", SOLVERS)
def test_twice_the_rows_are_eight_times_the_work(name: str) -> None:
    small, large = find(name, 96, 96), find(name, 192, 192)
    assert large.elementwise_count == 8 * small.elementwise_count
    assert small.mac_count == large.mac_count == 0


def test_a_full_svd_of_a_tall_matrix_also_makes_the_rest_of_its_left_vectors() -> None:
    tall = matrix(8, 6)
    full, reduced = (
        trace(Function(lambda x, full=full: torch.linalg.svd(x, full_matrices=full)), tall).operators[0]
        for full in (True, False)
    )
    assert full.elementwise_count - reduced.elementwise_count == 4 * 8 * (8 - 6) * 6


@pytest.mark.parametrize(
    ("name", "shape", "steps", "word"),
    [
        ("lu", (64, 64), 64, SPREAD),  # a pivot for each column
        ("lu", (7, 64, 64), 64, SPREAD),  # side by side
        ("lu", (7, 8, 8), 8, BATCHED),
        ("inverse", (64, 64), 64 + 2 * 2, SPREAD),  # two triangular solves of 64 / 32 steps
        ("qr", (96, 96), 256, SPREAD),  # 4/3 for each column of R, as many of Q
        ("qr", (7, 96, 96), 7 * 256, SPREAD),  # one after the other
        ("svd", (96, 64), 18 * 64, ""),
        ("svd", (7, 8, 8), 18 * 8, BATCHED),
        ("svd", (7, 64, 64), 7 * 18 * 64, ""),
        ("eig", (64, 64), 64 * 64 // 8, ""),
        ("matrix_exp", (64, 64), 5, SPREAD),
    ],
)
def test_steps_by_hand(name: str, shape: tuple[int, ...], steps: int, word: str) -> None:
    found = find(name, *shape)
    assert found.is_decomposition
    assert (found.step_count, found.variant.split()[1:]) == (steps, word.split())


def test_times_on_a_gpu_are_those_that_people_publish() -> None:
    """PyTorch pull request 173515: cuSOLVER's Cholesky of 512 takes 376 us, of 2,048 1,954 us."""
    assert 0.2e-3 < latency_s("cholesky", 512, 512) < 1e-3
    assert 1e-3 < latency_s("cholesky", 2048, 2048) < 4e-3
    assert 1e-3 < latency_s("svd", 512, 512) < 100e-3


def test_operands_are_of_four_bytes_at_least() -> None:
    work = columns_of(trace(Function(SOLVERS["svd"]), matrix(64, 64)))
    for precision, factor in (("int8", 1.0), ("fp8", 1.0), ("fp16", 1.0), ("fp32", 1.0), ("fp64", 2.0)):
        assert set(Widths(work, precision).scale.tolist()) == {factor}, precision


def test_every_decomposition_needs_a_host_where_operators_are_not_listed() -> None:
    assert set(SOLVERS) <= set(HOST_OPERATIONS)
    refusal = evaluate("svd", 64, 64, hardware="rk3588_npu", precision="int8").refusal
    assert refusal is not None and (refusal.code, refusal.values["operations"]) == ("no_host", "svd")


def test_a_workload_of_steps_is_of_a_sort_that_nobody_measured() -> None:
    lone = trace(Function(torch.linalg.svd), matrix(64, 64))
    beside = trace(Function(lambda x: torch.linalg.cholesky(x[:3, :3]) + x[:3, :3].exp().sum(0)), matrix(64, 64))
    assert (lone.work, beside.work) == ("decomposition", "model")
    assert any("in fp32 or wider" in note for note in lone.notes)
    for name in ("h100_sxm5", "xeon_8490h", "tpu_v4"):
        hardware = load_catalogue().hardware[name]
        for quantity in DOUBTED:
            size = max(peak.rate.value for peak in hardware.peaks.values())
            subject = Subject(
                work=lone.work,
                architecture=hardware.architecture,
                runtime="fused",
                precision="fp32",
                hardware=name,
                ops_per_s=size,
            )
            scale = find_scale(load_doubt().scales, quantity, subject)
            assert scale is not None and scale.half_width >= UNMEASURED, (name, quantity)
