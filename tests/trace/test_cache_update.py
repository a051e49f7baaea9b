"""Updates of a cache move what they write; what a causal mask hides is told beside the count of torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import joulemap
from chip import cpu
from gpu_case import single
from joulemap.domain.operator.name import find_operator
from joulemap.physics.architecture.cpu import ARCHITECTURE as CPU
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import Workload
from joulemap.trace.single import describe
from models import KEY, Function, Masked, meta, trace

ROWS, WIDTH = 512, 64
ROW_BYTES = 4 * WIDTH
CACHE_BYTES = ROWS * ROW_BYTES

Update = Callable[[Tensor, Tensor, Tensor], Tensor]


class Cache(nn.Module):
    """A buffer that an update writes to, and that is read as a whole afterwards."""

    held: Tensor

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.update = update
        self.register_buffer("held", torch.empty(1, ROWS, WIDTH, device="meta"))

    def forward(self, row: Tensor, place: Tensor) -> Tensor:
        held = self.update(self.held, row, place)
        return row @ held.transpose(1, 2)


def assign(held: Tensor, row: Tensor, _place: Tensor) -> Tensor:
    held[:, 7:8] = row
    return held


def assign_at(held: Tensor, row: Tensor, place: Tensor) -> Tensor:
    held[:, place] = row
    return held


def copy_slice(held: Tensor, row: Tensor, _place: Tensor) -> Tensor:
    held.narrow(1, 7, 1).copy_(row)
    return held


UPDATES: dict[str, Update] = {
    "index_copy_": lambda held, row, place: held.index_copy_(1, place, row),
    "index_put_": lambda held, row, place: held.index_put_((torch.zeros_like(place), place), row[0]),
    "scatter_": lambda held, row, place: held.scatter_(1, place.view(1, 1, 1).expand(1, 1, WIDTH), row),
    "slice": assign,
    "index": assign_at,
    "copy_": copy_slice,
    "slice_scatter": lambda held, row, _place: torch.slice_scatter(held, row, 1, 7, 8),
    "index_copy": lambda held, row, place: torch.index_copy(held, 1, place, row),
    "select_scatter": lambda held, row, _place: torch.select_scatter(held, row[:, 0], 1, 7),
    "index_put": lambda held, row, place: torch.index_put(held, (torch.zeros_like(place), place), row[0]),
}


def bytes_of(workload: Workload, operation: int, role: str) -> int:
    return sum(
        access.byte_count
        for access in workload.accesses
        if access.operator_index == operation and access.role == role and access.item_bytes
    )


def last(workload: Workload, kind: str) -> int:
    return max(index for index, one in enumerate(workload.operators) if one.kind == kind)


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_moves_the_row_and_what_reads_the_cache_reads_all_of_it(name: str) -> None:
    workload = trace(Cache(UPDATES[name]), meta(1, 1, WIDTH), meta(1, dtype=torch.int64))
    update, product = last(workload, "data_movement"), last(workload, "matmul")
    assert bytes_of(workload, update, "input") == ROW_BYTES
    assert bytes_of(workload, update, "output") == ROW_BYTES
    assert bytes_of(workload, product, "input") == CACHE_BYTES + ROW_BYTES
    assert workload.weight_bytes == 0


@pytest.mark.parametrize("name", UPDATES)
def test_a_cache_is_held_once_and_crosses_the_boundary(name: str) -> None:
    workload = trace(Cache(UPDATES[name]), meta(1, 1, WIDTH), meta(1, dtype=torch.int64))
    assert [buffer.byte_count for buffer in workload.buffers].count(CACHE_BYTES) == 1
    product = last(workload, "matmul")
    assert (
        sum(
            access.fused_byte_count
            for access in workload.accesses
            if access.operator_index == product and access.is_boundary and access.role == "input"
        )
        == CACHE_BYTES + ROW_BYTES
    )


def test_a_buffer_that_is_replaced_as_a_whole_is_no_weight() -> None:
    class Shifted(nn.Module):
        held: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("held", torch.empty(1, ROWS, WIDTH, device="meta"))

        def forward(self, row: Tensor) -> Tensor:
            self.held.copy_(torch.cat((self.held[:, 1:], row), 1))
            return self.held.sum(1)

    workload = trace(Shifted(), meta(1, 1, WIDTH))
    assert workload.weight_bytes == 0
    assert [buffer.byte_count for buffer in workload.buffers].count(CACHE_BYTES) == 2  # and what `cat` makes


def test_an_addition_to_rows_reads_them_too() -> None:
    workload = trace(
        Function(lambda held, rows, place: held.index_add_(0, place, rows)),
        meta(ROWS, WIDTH),
        meta(3, WIDTH),
        meta(3, dtype=torch.int64),
    )
    (one,) = workload.operators
    assert one.elementwise_count == 3 * WIDTH
    assert bytes_of(workload, 0, "input") == 2 * 3 * ROW_BYTES
    assert bytes_of(workload, 0, "output") == 3 * ROW_BYTES


def test_a_copy_is_made_of_what_is_still_needed() -> None:
    def forward(held: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.slice_scatter(held, row, 0, 7, 8)
        return made, held * 2

    workload = trace(Function(forward), meta(ROWS, WIDTH), meta(1, WIDTH))
    assert bytes_of(workload, 0, "input") == CACHE_BYTES + ROW_BYTES
    assert bytes_of(workload, 0, "output") == CACHE_BYTES


def test_a_parameter_is_copied_because_the_next_inference_needs_it() -> None:
    class Scattered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.empty(ROWS, WIDTH, device="meta"))

        def forward(self, row: Tensor) -> Tensor:
            return torch.slice_scatter(self.table, row, 0, 7, 8)

    workload = trace(Scattered(), meta(1, WIDTH))
    assert bytes_of(workload, 0, "weight") == CACHE_BYTES
    assert bytes_of(workload, 0, "output") == CACHE_BYTES


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def test_a_causal_mask_hides_half_and_both_counts_are_kept() -> None:
    held = meta(2, 3, 8, 16)
    workload = trace(Function(causal), held, held, held)
    pairs = 2 * 3 * 8 * 8
    assert workload.mac_count == 2 * pairs * 16
    # of 8 x 8 pairs 28 lie above the diagonal
    assert workload.skipped_mac_count == 2 * 2 * 3 * 28 * 16
    assert [one.skipped_mac_count for one in workload.operators if one.kind == "softmax"] == [0]


def test_a_cpu_leaves_out_blocks_of_keys_but_not_in_an_engine() -> None:
    def computed(runtime: str, mask: str) -> float:
        kernels = form_kernels(single(f"attention(queries=1024,heads=8,head_dim=64{mask})"), "fp32", runtime)
        return float(CPU.place(kernels, cpu()).real_macs(kernels).sum())

    dense = 2.0 * 8 * 1024 * 1024 * 64
    assert computed("eager", "") == computed("engine", ",causal=true") == dense
    # 4 blocks of 256 queries see 256, 512, 768 and 1024 keys
    assert computed("eager", ",causal=true") == computed("fused", ",causal=true") == dense * 640 / 1024


def test_keys_that_are_cached_are_seen_by_all_queries() -> None:
    operator = find_operator("attention(queries=4,cached=12,heads=2,head_dim=8,causal=true)")
    assert operator is not None
    workload = describe(operator, 1, KEY)
    assert workload.mac_count == 2 * 2 * 4 * 16 * 8
    assert workload.skipped_mac_count == 2 * 2 * 6 * 8


def test_a_mask_that_is_a_tensor_hides_nothing_from_the_kernel() -> None:
    held = meta(1, 2, 8, 16)
    workload = trace(
        Function(lambda x, mask: functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)),
        held,
        meta(8, 8, dtype=torch.bool),
    )
    assert workload.skipped_mac_count == 0


def test_operators_and_patterns_of_a_profile_sum_to_the_model(tmp_path: Path) -> None:
    answer = joulemap.Workspace(tmp_path / "own.duckdb").profile(Masked(), torch.ones(2, 8))
    shown, patterns = answer.profile, answer.patterns
    assert sum(row.operator_count for row in patterns) == shown.operator_count == 2
    assert sum(row.subgraph_count for row in patterns) == shown.subgraph_count
    assert sum(row.fused_moved_bytes for row in patterns) == shown.fused_moved_bytes
    constant = next(row for row in patterns if row.fusion_pattern == "constant")  # the mask, which no input changes
    assert (constant.subgraph_count, constant.operator_count, constant.mac_fraction) == (1, 1, None)


def test_the_profile_tells_what_is_skipped_and_what_is_read(tmp_path: Path) -> None:
    workspace = joulemap.Workspace(tmp_path / "own.duckdb")
    attention = "attention(queries=8,heads=2,head_dim=16,causal=true)"
    shown = workspace.profile(attention).profile
    rows = workspace.operators(attention).records()
    product = workspace.profile("gemm(m=1,n=32,k=16)").profile
    assert (shown.mac_count, shown.skipped_mac_count) == (2 * 2 * 64 * 16, 2 * 2 * 28 * 16)
    assert [row["skipped_mac_count"] for row in rows] == [2 * 28 * 16, 0, 2 * 28 * 16]
    assert (product.weight_bytes, product.weight_read_bytes) == (4 * 32 * 16, 4 * 32 * 16)
