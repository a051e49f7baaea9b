"""Random networks reach the operators, and a fixed sample of questions obeys the laws."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from laws import alone, ordered
from laws.court import Court
from laws.door import Doors
from laws.network import Network, draw_layer, is_traceable, list_names, list_reached
from laws.page import describe
from laws.panel import list_chips
from laws.part import BLOCKS, find_call
from laws.trial import TRIALS

UNREACHED = {
    "torch divides them into others that are reached": """
        adaptive_max_pool1d argsort binary_cross_entropy_with_logits channel_shuffle chunk conj_physical embedding_bag
        expand_copy feature_dropout feature_dropout_ grid_sampler histogram lu_solve matrix_exp meshgrid nll_loss
        nll_loss2d one_hot orgqr positive relu6 repeat_interleave selu selu_ special_ndtr split_with_sizes_copy unbind
        linalg_polar linalg_ldl_solve""",
    "views, and what only allocates": """
        as_strided as_strided_scatter _unsafe_view _efficientzerotensor empty_permuted empty_strided lift_fresh""",
    "training alone runs them": """
        _batch_norm_with_update _fused_rms_norm native_batch_norm native_group_norm dropout_ _sample_dirichlet
        binomial""",
    "weights packed for one kind of processor, which no meta device has": """
        fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation mkldnn_linear _mixed_dtypes_linear _sparse_semi_structured_linear
        _weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros _scaled_grouped_mm
        _trilinear""",
    "sizes that depend on data, which the meta device lacks": """
        _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _jagged_to_padded_dense_forward
        _padded_dense_to_jagged_forward _pack_padded_sequence coalesce to_sparse""",
}
"""Reason -> operators with a formula that no random network calls; backward operators and names of other versions of
torch are left out too.
"""


def exists(name: str) -> bool:
    """Return whether this version of torch has an operator of the name."""
    return bool(torch._C._jit_get_schemas_for_operator(f"aten::{name}")) or name in ("nms", "roi_align", "roi_pool")


@pytest.mark.slow
def test_random_networks_reach_every_operator_with_a_formula() -> None:
    rng = random.Random(1)
    layers = [draw_layer(rng, part) for part in (*BLOCKS, *filter(None, map(find_call, list_names())))]
    reached = set().union(*(list_reached(Network((one,))) for one in layers if is_traceable(one)))
    known = {name for names in UNREACHED.values() for name in names.split()}
    missing = {name for name in set(list_names()) - reached if exists(name) and not name.endswith("_backward")}
    assert missing == known & missing
    assert len(reached) > 470


@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS, ids=[one.name for one in TRIALS])
def test_questions_of_each_kind_obey_their_laws(trial: object, tmp_path: Path) -> None:
    doors = Doors(Court(), tmp_path)
    for seed in range(2):
        trial.attempt(doors, random.Random(seed))  # type: ignore[attr-defined]
    assert not doors.court.open, describe(doors.court, seed=0, seconds=0.0, most=3)


def test_operators_obey_the_laws_of_batches_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()
    for module in (alone, ordered):
        monkeypatch.setattr(module, "draw_model", lambda _: "gemm(m=1,n=512,k=512)")
    monkeypatch.setattr(alone, "CHIPS", 25)
    for attempt in (alone.try_batches, ordered.try_numbers, ordered.try_chips):
        attempt(court, random.Random(1))
    assert not court.open, describe(court, seed=1, seconds=0.0, most=3)
    assert sum(court.compared.values()) > 10_000
    assert len(list_chips()) > 1_000
