"""Mixtures of experts: their work is that of the tokens routed, and the weights they read those of the experts hit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from joulemap.physics.record.workload import Workload
from joulemap.trace.formula.product import hit_count
from joulemap.trace.inference import grouped_on_meta
from joulemap.trace.module import build_on_meta
from joulemap.trace.value import balanced_choices
from models import Function, meta, trace

EXPERTS, TAKEN, WIDTH, HIDDEN = 8, 2, 16, 32
EXPERT = WIDTH * HIDDEN
"""Elements of one of an expert's two matrices."""


class Experts(nn.Module):
    """A router, and experts of two products each."""

    def __init__(self) -> None:
        super().__init__()
        with build_on_meta():
            self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.expand = nn.Parameter(torch.empty(EXPERTS, WIDTH, HIDDEN))
            self.reduce = nn.Parameter(torch.empty(EXPERTS, HIDDEN, WIDTH))

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores, experts = torch.topk(self.router(x).softmax(-1), TAKEN, dim=-1)
        return scores, experts

    def compute(self, x: Tensor, expert: Tensor | int) -> Tensor:
        return functional.relu(x @ self.expand[expert]) @ self.reduce[expert]


class GroupedExperts(Experts):
    """Tokens sorted by expert, and one grouped product for all of them."""

    def forward(self, x: Tensor) -> Tensor:
        scores, experts = self.route(x)
        order = experts.flatten().argsort()
        rows = x[order // TAKEN]
        counts = torch.bincount(experts.flatten(), minlength=EXPERTS)
        ends = counts.cumsum(0).to(torch.int32)
        hidden = functional.relu(torch._grouped_mm(rows, self.expand, offs=ends))
        out = torch._grouped_mm(hidden, self.reduce, offs=ends) * scores.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add_(0, order // TAKEN, out)


class LoopedExperts(Experts):
    """A loop over the experts that are hit, each with the rows of a one-hot mask."""

    def forward(self, x: Tensor) -> Tensor:
        scores, experts = self.route(x)
        mask = functional.one_hot(experts, EXPERTS).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for expert in mask.sum((-1, -2)).greater(0).nonzero():
            choice, token = torch.where(mask[expert[0]])
            out.index_add_(0, token, self.compute(x[token], expert[0]) * scores[token, choice, None])
        return out


class CountedExperts(Experts):
    """A loop over all experts with as many rows as a list of counts says; those without any are left out."""

    def forward(self, x: Tensor) -> Tensor:
        _scores, experts = self.route(x)
        order = experts.flatten().argsort()
        counts = torch.bincount(experts.flatten(), minlength=EXPERTS).tolist()
        parts = [
            self.compute(rows, number) for number, rows in enumerate(x[order // TAKEN].split(counts)) if rows.shape[0]
        ]
        return torch.zeros_like(x).index_add_(0, order // TAKEN, torch.cat(parts))


class MaskedExperts(Experts):
    """Each expert takes the rows that a boolean mask selects."""

    def forward(self, x: Tensor) -> Tensor:
        _scores, experts = self.route(x)
        out = torch.zeros_like(x)
        for number in range(EXPERTS):
            mask = (experts == number).any(-1)
            if mask.any():
                out[mask] += self.compute(x[mask], number)
        return out


class NamedExperts(Experts):
    """Experts that are looked up by a name that is written of their number."""

    def forward(self, x: Tensor) -> Tensor:
        _scores, experts = self.route(x)
        mask = functional.one_hot(experts, EXPERTS).sum(1)
        out = torch.zeros_like(x)
        for number in mask.sum(0).nonzero().squeeze(-1):
            token = mask[:, number].nonzero().squeeze(-1)
            out[token] += self.compute(x[token], int(f"{number}"))
        return out


class GatheredExperts(Experts):
    """Each choice of a token takes a copy of its expert's matrices."""

    def forward(self, x: Tensor) -> Tensor:
        _scores, experts = self.route(x)
        chosen = experts.flatten()
        rows = x.repeat_interleave(TAKEN, 0).unsqueeze(1)
        hidden = functional.relu(torch.bmm(rows, self.expand[chosen]))
        return torch.bmm(hidden, self.reduce[chosen]).view(-1, TAKEN, WIDTH).sum(1)


FORMS = (GroupedExperts, LoopedExperts, CountedExperts, MaskedExperts, NamedExperts, GatheredExperts)


def expert_weight_bytes(workload: Workload) -> int:
    """Return what is read of the experts' matrices."""
    named = {index for index, tensor in enumerate(workload.tensors) if tensor.name in ("expand", "reduce")}
    return sum(access.byte_count for access in workload.accesses if access.tensor_index in named)


@pytest.mark.sample(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("tokens", "hit"), [(1, 2), (2, 4), (4, 6), (64, 8)])
def test_macs_are_those_of_the_tokens_routed_and_weights_those_of_the_experts_hit(
    form: type[Experts], tokens: int, hit: int
) -> None:
    workload = trace(form(), meta(tokens, WIDTH))
    routed = tokens * TAKEN * 2 * EXPERT
    assert workload.mac_count == routed + tokens * WIDTH * EXPERTS
    assert expert_weight_bytes(workload) == 4 * hit * 2 * EXPERT
    assert workload.weight_bytes == 4 * (EXPERTS * 2 * EXPERT + WIDTH * EXPERTS)


@pytest.mark.parametrize("form", [LoopedExperts, CountedExperts, MaskedExperts, GatheredExperts])
def test_macs_are_those_that_the_flop_counter_of_torch_finds_on_data(form: type[Experts]) -> None:
    module = form().to_empty(device="cpu")
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(torch.randn(24, WIDTH))
    assert counter.get_total_flops() == 2 * trace(form(), meta(24, WIDTH)).mac_count


def test_a_router_that_takes_one_after_the_other_takes_two() -> None:
    class Successive(LoopedExperts):
        def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
            scores = self.router(x)
            first = scores.max(-1).indices
            second = scores.scatter(1, first.unsqueeze(-1), 0.0).max(-1).indices
            return scores[:, :TAKEN], torch.stack((first, second), -1)

    workload = trace(Successive(), meta(1, WIDTH))
    assert workload.mac_count == 2 * 2 * EXPERT + WIDTH * EXPERTS
    assert expert_weight_bytes(workload) == 4 * 2 * 2 * EXPERT


@pytest.mark.parametrize(("tokens", "hit"), [(1, 2), (3, 4), (64, 8)])
def test_a_router_that_sorts_its_scores_sends_each_token_to_the_first(tokens: int, hit: int) -> None:
    class Sorted(LoopedExperts):
        def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
            scores, experts = self.router(x).sort(-1, descending=True)
            return scores[:, :TAKEN], experts[:, :TAKEN]

    workload = trace(Sorted(), meta(tokens, WIDTH))
    assert workload.mac_count == tokens * (TAKEN * 2 * EXPERT + WIDTH * EXPERTS)
    assert expert_weight_bytes(workload) == 4 * hit * 2 * EXPERT


def test_the_workload_says_what_it_took_routing_to_be() -> None:
    (note,) = trace(GroupedExperts(), meta(4, WIDTH)).notes
    assert "each of 4 rows is assumed to choose 2 of 8 evenly, so that 6 are hit: n (1 - (1 - k / n)^rows)" in note


def test_a_thousand_tokens_grow_a_loop_by_nothing() -> None:
    few, many = (trace(LoopedExperts(), meta(tokens, WIDTH)) for tokens in (64, 1024))
    assert len(few.operators) == len(many.operators)


@pytest.mark.parametrize(
    ("rows", "taken", "choices", "hit"),
    [
        (1, 2, 8, 2),  # of one token those that it takes
        (4, 2, 8, 6),  # 8 (1 - 0.75^4) = 5.47
        (2048, 2, 8, 8),
        (1, 8, 256, 8),
        (16, 8, 256, 102),  # 256 (1 - 0.96875^16) = 101.96
        (3, 1, 1, 1),
        (0, 2, 8, 0),
    ],
)
def test_experts_hit_are_the_expected_number_rounded_up(rows: int, taken: int, choices: int, hit: int) -> None:
    assert hit_count(rows, taken, choices) == hit


def test_choices_are_balanced_and_those_of_one_row_differ() -> None:
    chosen = balanced_choices(10, 3, 16)
    loads = torch.bincount(chosen.flatten(), minlength=16)
    hit = hit_count(10, 3, 16)
    assert int((loads > 0).sum()) == hit
    assert int(loads[:hit].max() - loads[:hit].min()) <= 1
    assert all(len(set(row.tolist())) == 3 for row in chosen)


def test_a_grouped_product_whose_groups_are_inputs_takes_each_row_to_choose_alone() -> None:
    workload = trace(
        Function(lambda x, w, ends: torch._grouped_mm(x, w, offs=ends)),
        meta(3, 16, dtype=torch.bfloat16),
        meta(8, 16, 32, dtype=torch.bfloat16),
        meta(8, dtype=torch.int32),
    )
    (product,) = (one for one in workload.operators if not one.is_view)
    assert product.mac_count == 3 * 16 * 32
    assert (product.gemm_m, product.gemm_n, product.gemm_k, product.gemm_groups) == (1, 32, 16, 3)
    (note,) = workload.notes
    assert "each row is assumed to choose one of the groups" in note


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8], ids=str)
@pytest.mark.parametrize(
    ("left", "right", "groups"),
    [
        ((8, 16), (4, 16, 24), 4),
        ((4, 8, 16), (16, 8), 4),
        ((16, 8), (8, 24), 4),
        ((4, 8, 16), (4, 16, 24), 0),
        ((4, 8, 16), (3, 16, 24), 0),
        ((8, 16), (5, 16, 24), 4),
        ((8, 16), (4, 8, 24), 4),
        ((8, 16), (4, 16, 21), 4),  # strides of the second are no multiples of 16 bytes
        ((8, 20), (4, 20, 4), 4),
        ((4, 8, 16), (4, 16, 24), 4),
        ((8, 16), (4, 16, 24), 0),
        ((16,), (4, 16, 24), 4),
    ],
)
def test_a_grouped_product_has_the_shape_that_its_kernel_gives_or_is_refused_with_it(
    left: tuple[int, ...], right: tuple[int, ...], groups: int, dtype: torch.dtype
) -> None:
    """The kernel of the CPU takes types that torch before 2.15 refuses on tensors without storage."""
    ends = 2 * torch.arange(1, groups + 1, dtype=torch.int32) if groups else None
    given = [torch.zeros(left, dtype=dtype), torch.zeros(right, dtype=dtype)]
    bare = [one.to("meta") for one in given]
    bare_ends = None if ends is None else ends.to("meta")
    try:
        made = torch._grouped_mm(given[0], given[1], offs=ends)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            grouped_on_meta(bare[0], bare[1], bare_ends)
    else:
        found = grouped_on_meta(bare[0], bare[1], bare_ends)
        assert (found.shape, found.dtype, found.stride()) == (made.shape, made.dtype, made.stride())


def test_what_follows_from_shapes_needs_no_stand_in() -> None:
    def forward(x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)
        even = (positions % 2 == 0).nonzero().squeeze(-1)
        return x[:, even] if bool((positions < 100).all()) else x

    workload = trace(Function(forward), meta(1, 10))
    assert workload.operators[-1].output_shape == (1, 5)
    assert not workload.notes


def test_a_value_that_is_overwritten_from_data_is_not_known_any_more() -> None:
    def forward(x: Tensor) -> Tensor:
        flags = torch.zeros(6, device=x.device)
        flags[2:4] = x[0, :2]
        return x[0, flags.nonzero().squeeze(-1)]

    workload = trace(Function(forward), meta(1, 10))
    assert workload.operators[-1].output_shape == (6,)
    assert any("every element is assumed to be nonzero" in note for note in workload.notes)
