"""Counts of transforms, linear algebra, losses, random numbers and gradients, by hand beside each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from joulemap.trace.formula import Call, count
from models import Function, trace


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


MATRICES = meta(3, 6, 6)
TALL = meta(3, 8, 6)
INDICES = meta(5, dtype=torch.int64)

COUNTS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str, int, int]] = {
    # 5 N log2 N for 4 transforms of 16; half for real ones; N = 16 x 8 for two dimensions
    "fft": (torch.fft.fft, (meta(4, 16, dtype=torch.complex64),), "fft", 4 * 5 * 16 * 4, 0),
    "rfft": (torch.fft.rfft, (meta(4, 16),), "fft", 4 * 5 * 16 * 4 // 2, 0),
    "irfft": (torch.fft.irfft, (meta(4, 9, dtype=torch.complex64),), "fft", 4 * 5 * 16 * 4 // 2, 0),
    "fft2": (torch.fft.fft2, (meta(4, 16, 8, dtype=torch.complex64),), "fft", 4 * 5 * 128 * 7, 0),
    # three matrices with n = 6: n^3 = 216
    "det": (torch.linalg.det, (MATRICES,), "lu", 3 * 144, 18),
    "lu of 8 x 6": (lambda x: torch.linalg.lu_factor(x)[0], (TALL,), "lu", 3 * (8 * 36 - 72), 18),
    "inverse": (torch.linalg.inv, (MATRICES,), "inverse", 3 * 432, 18),
    "solve for two": (torch.linalg.solve, (MATRICES, meta(3, 6, 2)), "solve", 3 * (144 + 2 * 36 * 2), 18),
    "cholesky": (torch.linalg.cholesky, (MATRICES,), "cholesky", 3 * 72, 18),
    "triangular": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), (MATRICES, meta(3, 6, 2)), "solve", 3 * 72, 0
    ),
    "qr of 8 x 6": (lambda x: torch.linalg.qr(x)[0], (TALL,), "qr", 3 * 2 * (2 * 8 * 36 - 144), 18),
    "r of 8 x 6": (lambda x: torch.linalg.qr(x, mode="r")[1], (TALL,), "qr", 3 * (2 * 8 * 36 - 144), 18),
    "singular values": (torch.linalg.svdvals, (MATRICES,), "svd", 3 * 576, 18),  # 8/3 n^3
    "singular vectors": (lambda x: torch.linalg.svd(x)[0], (MATRICES,), "svd", 3 * 1440, 18),  # 20/3 n^3
    "symmetric vectors": (lambda x: torch.linalg.eigh(x)[1], (MATRICES,), "eigh", 3 * 9 * 216, 18),
    "symmetric values": (torch.linalg.eigvalsh, (MATRICES,), "eigh", 3 * 288, 18),  # 4/3 n^3
    "eigenvectors": (lambda x: torch.linalg.eig(x)[1], (MATRICES,), "eig", 3 * 79 * 72, 18),
    # one number for each of 5 targets; 3 operations for each of 40 inputs
    "nll_loss": (functional.nll_loss, (meta(5, 8), INDICES), "nll_loss", 10, 0),
    "mse_loss": (functional.mse_loss, (meta(5, 8), meta(5, 8)), "mse_loss", 120, 0),
    "histc": (lambda x: torch.histc(x, 10, 0, 1), (meta(5, 8),), "histogram", 200, 0),
    # 25 operations of Philox and two more; logarithm, root, sine and cosine for two
    "rand_like": (torch.rand_like, (meta(5, 8),), "random", 27 * 40, 0),
    "randn_like": (torch.randn_like, (meta(5, 8),), "random", 27 * 40, 80),
    "multinomial": (lambda x: torch.multinomial(x, 1), (meta(5, 8),), "random", 28 * 40, 80),
    "bernoulli": (torch.bernoulli, (meta(5, 8),), "random", 27 * 40, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_by_hand(name: str) -> None:
    function, inputs, operation, elementwise, special = COUNTS[name]
    found = [one for one in trace(Function(function), *inputs).operators if one.operation == operation]
    assert [(one.kind != "uncounted", one.elementwise_count, one.special_count) for one in found] == [
        (True, elementwise, special)
    ]


def test_a_matrix_exponential_is_five_products() -> None:
    (found,) = trace(Function(torch.linalg.matrix_exp), MATRICES).operators
    assert (found.kind, found.elementwise_count) == ("reduction", 3 * 5 * 2 * 216)


def test_the_gradient_of_a_convolution_by_its_input_costs_as_much_again() -> None:
    def force(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            place = x.detach().requires_grad_(True)
            return torch.autograd.grad(functional.conv2d(place, weight).sum(), place)[0]

    workload = trace(Function(force), meta(1, 3, 8, 8), meta(6, 3, 3, 3))
    assert sum(one.mac_count for one in workload.operators) == 2 * 6 * 36 * 27


RARE: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "losses": (
        lambda x, t: (
            functional.cross_entropy(x, t) + functional.huber_loss(x, x) + functional.smooth_l1_loss(x, x)
            + functional.binary_cross_entropy(x, x) + functional.soft_margin_loss(x, x) + functional.kl_div(x, x)
            + functional.multi_margin_loss(x, t) + functional.binary_cross_entropy_with_logits(x, x)
        ),
        (meta(5, 8), INDICES),
    ),
    "distributions": (
        lambda x: (torch.distributions.Normal(x, x.exp(), False).rsample(), functional.gumbel_softmax(x), x.uniform_()),
        (meta(5, 8),),
    ),
    "special functions": (
        lambda x: (
            torch.special.i0e(x) + torch.special.bessel_j0(x) + torch.special.entr(x) + torch.special.log_ndtr(x)
            + torch.special.xlog1py(x, x) + torch.special.zeta(x, x) + torch.igamma(x, x) + torch.polygamma(1, x)
            + torch.isinf(x) + x.sgn() + torch.ldexp(x, x) + torch.special.chebyshev_polynomial_t(x, 3)
        ),
        (meta(5, 8),),
    ),
    "shapes": (
        lambda x: (
            torch.select_scatter(x, x[0], 0, 0), torch.diagonal_scatter(x, x[0, :5]), torch.mode(x), x.nanmedian(),
        ),
        (meta(5, 8),),
    ),
    "algebra": (
        lambda x, y: (
            torch.linalg.lstsq(x, y)[0], torch.linalg.pinv(x), torch.linalg.matrix_rank(x), torch.linalg.slogdet(x),
            torch.cholesky_solve(y, x), torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y), torch.linalg.eigvals(x),
            torch.linalg.householder_product(x, x[..., 0]), torch.linalg.ldl_factor(x)[0],
            torch.linalg.matrix_power(x, -2),
        ),
        (MATRICES, meta(3, 6, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RARE)
def test_a_rarer_operator_has_a_formula(name: str) -> None:
    function, inputs = RARE[name]
    workload = trace(Function(function), *inputs)
    assert {one.aten for one in workload.operators if one.kind == "uncounted"} == set()


def test_repeats_that_data_decides_are_once_each() -> None:
    workload = trace(Function(lambda x, times: torch.repeat_interleave(x, times, dim=0)), meta(5, 8), INDICES)
    assert "repeat_interleave: each element is assumed to be repeated once" in workload.notes[0]
    assert workload.operators[-1].output_shape == (5, 8)


@pytest.mark.parametrize(("groups", "has_mask"), [(1, True), (2, False)])
def test_a_deformable_convolution_counts_its_product_and_its_samples(groups: int, has_mask: bool) -> None:
    ops = pytest.importorskip("torchvision.ops")
    weight, offset, mask = meta(16, 8 // groups, 3, 3), meta(2, 18, 10, 12), meta(2, 9, 10, 12)

    def run(x: torch.Tensor) -> Any:
        return ops.deform_conv2d(x, offset, weight, padding=1, mask=mask if has_mask else None)

    found = next(one for one in trace(Function(run), meta(2, 8, 10, 12)).operators if one.operation == "deform_conv2d")
    positions = 2 * 10 * 12
    # two operations for the place of each tap of each input channel, eight weights, seven for their sum, one for a mask
    samples = positions * 8 * 9
    assert found.kind == ("conv" if groups == 1 else "grouped_conv")
    assert found.mac_count == positions * 16 * 8 // groups * 9
    assert found.elementwise_count == samples * (17 + has_mask) + positions * 16


def test_complex_numbers_count_as_real_ones() -> None:
    """A complex MAC is four real ones; a complex product takes six operations, a sum two."""
    left, right = (meta(*shape, dtype=torch.complex64) for shape in ((3, 4), (4, 5)))
    product = count("mm", Call((left, right), {}, (meta(3, 5, dtype=torch.complex64),), "aten.mm.default"))
    assert (product.mac_count, product.gemm) == (4 * 3 * 4 * 5, (3, 10, 8, 1))
    for name, each in (("add", 2), ("mul", 6), ("mul_", 6), ("div", 11)):
        cost = count(name, Call((left, left), {}, (left,), f"aten.{name}.Tensor"))
        assert cost.elementwise_count == each * 12


NEVER = "donot_use_mm_for_euclid_dist"
ALWAYS = "use_mm_for_euclid_dist"
PAIRS: list[tuple[dict[str, Any], int, int, bool]] = [
    # ATen multiplies matrices for Euclidean distances of more than 25 points on either side, unless told otherwise
    ({}, 25, 25, False),
    ({}, 26, 4, True),
    ({}, 4, 26, True),
    ({"p": 1.0}, 300, 300, False),
    ({"compute_mode": NEVER}, 300, 300, False),
    ({"compute_mode": ALWAYS}, 3, 4, True),
]


@pytest.mark.parametrize(("options", "rows", "columns", "multiplies"), PAIRS)
def test_distances_are_a_product_where_pytorch_makes_one(
    options: dict[str, Any], rows: int, columns: int, multiplies: bool
) -> None:
    left, right = meta(2, rows, 8), meta(2, columns, 8)
    (one,) = (
        one
        for one in trace(Function(lambda x, y: torch.cdist(x, y, **options)), left, right).operators
        if one.operation == "cdist"
    )
    pairs = 2 * rows * columns
    assert one.special_count == pairs
    if not multiplies:  # subtract, multiply and add for each of 8 features
        assert (one.mac_count, one.elementwise_count) == (0, 24 * pairs)
        return
    # each point with its squared norm and a one appended; squares, sums and a factor of -2 before, a clamp after
    assert one.mac_count == 10 * pairs
    assert (one.gemm_m, one.gemm_n, one.gemm_k, one.gemm_groups) == (rows, columns, 10, 2)
    assert one.elementwise_count == 3 * 16 * rows + 2 * 16 * columns + pairs


@pytest.mark.parametrize(("mode", "multiplies"), [(None, True), (0, True), (1, True), (2, False)])
def test_the_operator_behind_cdist_follows_its_mode(mode: int | None, multiplies: bool) -> None:
    cost = count("_cdist_forward", Call((meta(30, 8), meta(4, 8), 2.0, mode), {}, (meta(30, 4),)))
    assert (cost.mac_count == 30 * 4 * 10) == multiplies
