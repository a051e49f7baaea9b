"""Attention and batched products as a device runs them: what is one call, what is copied, what only renames memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.physics.record.workload import Operator, Workload
from joulemap.system.errors import ModelError
from joulemap.trace.inference import copied_operands
from joulemap.trace.module import build_on_meta
from models import Function, SelfAttention, meta, trace, trace_zoo

TOKENS, WIDTH, HEADS = 5, 16, 4


def computing(workload: Workload) -> list[Operator]:
    return [one for one in workload.operators if not one.is_view]


def operations(workload: Workload) -> list[str]:
    return [one.operation for one in computing(workload)]


class Asked(nn.Module):
    """Multi-head attention of a sequence with itself, called in the way that a test asks for."""

    def __init__(self, mask: Tensor | None = None, *, need_weights: bool = False) -> None:
        super().__init__()
        self.mask, self.need_weights = mask, need_weights
        with build_on_meta():
            self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attention(x, x, x, attn_mask=self.mask, need_weights=self.need_weights)[0]
        return out


@pytest.mark.parametrize("batch", [1, 4])
def test_self_attention_is_projection_attention_projection(batch: int) -> None:
    workload = trace(SelfAttention(), meta(batch, TOKENS, WIDTH))
    assert operations(workload) == ["linear", "matmul", "softmax", "matmul", "linear"]
    first, scores, softmax, weighted, last = computing(workload)
    # one projection for query, key and value, whose parts are read in place
    assert first.mac_count == batch * TOKENS * WIDTH * 3 * WIDTH
    assert scores.mac_count == weighted.mac_count == batch * HEADS * TOKENS * TOKENS * (WIDTH // HEADS)
    assert last.mac_count == batch * TOKENS * WIDTH * WIDTH
    # the three of attention are one ATen call
    assert len({one.aten for one in (scores, softmax, weighted)}) == 1
    assert "scaled_dot_product_attention" in scores.aten


def usual(mask: Tensor | None, *, need_weights: bool, batch: int = 4) -> list[str]:
    return operations(trace(Asked(mask, need_weights=need_weights), meta(batch, TOKENS, WIDTH)))


def test_whoever_asks_for_weights_or_masks_gets_the_usual_way() -> None:
    plain = usual(None, need_weights=False)
    assert plain == ["linear", "matmul", "softmax", "matmul", "linear"]
    # a mask is no plain self-attention: query, key and value are copied from behind each other
    masked = usual(meta(TOKENS, TOKENS), need_weights=False)
    assert masked != plain
    assert "contiguous" in masked
    # weights that the caller wants are computed, so no fused attention does
    asked = usual(None, need_weights=True)
    assert asked != plain
    traced = trace(Asked(need_weights=True), meta(4, TOKENS, WIDTH))
    assert not any("scaled_dot_product_attention" in one.aten for one in traced.operators)


def test_a_module_that_a_trace_patched_is_itself_again() -> None:
    before = nn.MultiheadAttention.forward
    trace(SelfAttention(), meta(1, TOKENS, WIDTH))
    assert nn.MultiheadAttention.forward is before
    with pytest.raises(ModelError):
        trace(SelfAttention(), meta(1, TOKENS, WIDTH + 1))
    assert nn.MultiheadAttention.forward is before


def test_heads_lie_side_by_side_after_attention() -> None:
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attended = functional.scaled_dot_product_attention(query, key, value)
        return torch.relu(attended.transpose(1, 2).reshape(2, TOKENS, -1))

    workload = trace(Function(attend), *(meta(2, HEADS, TOKENS, 4) for _ in range(3)))
    # transpose and reshape rename memory
    assert operations(workload) == ["matmul", "softmax", "matmul", "relu"]


def test_operands_that_lie_one_behind_the_other_are_not_copied() -> None:
    left, right = meta(2, 3, 5, 8), meta(2, 3, 8, 7)
    for found, given in zip(copied_operands(left, right), (left, right), strict=True):
        assert found is given
    # a matrix for all of a batch is no batched product
    assert copied_operands(left, meta(8, 7))[0] is left


def test_heads_that_lie_side_by_side_are_copied() -> None:
    # (batch, tokens, heads, width) seen as (batch, heads, tokens, width): heads are nearer than tokens
    heads = meta(2, 5, 3, 8).transpose(1, 2)
    other = meta(2, 3, 8, 7)
    found = copied_operands(heads, other)
    assert found[0].is_contiguous() and not heads.is_contiguous()
    assert found[0].shape == heads.shape
    assert found[1] is other
    # at batch 1 as at any other, so that a trace grows evenly
    assert copied_operands(meta(1, 5, 3, 8).transpose(1, 2), meta(1, 3, 8, 7))[0].is_contiguous()
    # with one batch dimension any stride will do
    sliced = meta(4, 5, 8)[::2]
    assert copied_operands(sliced, meta(2, 8, 7))[0] is sliced


def test_a_window_attention_copies_what_its_products_cannot_take() -> None:
    found = operations(trace_zoo("swin_t"))
    # query, key and value of each of 12 blocks: heads of a token lie side by side
    products = found.count("matmul")
    assert products == 2 * 12
    assert found.count("contiguous") >= 3 * 12
