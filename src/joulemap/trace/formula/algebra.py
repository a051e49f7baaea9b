"""Formulas of dense linear algebra: the leading terms of LAPACK's routines.

An addition and a multiplication are two operations: factorizations run as vector code, not at the rate of a matrix
unit. They are sequences of dependent steps: `STEPS` per column, and one for each `BLOCK` columns of a triangular solve.
Libraries process small matrices in parallel, and large matrices of `ONE_BY_ONE` operations one after another.

Sources: E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999, section 3.4 (LU 2/3 n^3, singular values 8/3 n^3,
with vectors 20/3 n^3, eigenvalues 10 n^3, with vectors 79/3 n^3); LAPACK Working Note 41 (Cholesky 1/3 n^3, QR 2 m n^2
- 2/3 n^3, triangular solves n^2 for each right-hand side); G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed.,
section 8.3 (symmetric eigenvalues 4/3 n^3, with vectors 9 n^3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from joulemap.physics.record.workload import BATCHED, DECOMPOSITION, SPREAD
from joulemap.trace.formula.registry import Call, Cost, Shape, formula

STEPS: Final[Mapping[str, Fraction | int]] = {
    "cholesky": Fraction(1, 3),
    "lu": 1,
    "qr": Fraction(4, 3),
    "eigh": 8,
    "svd": 18,
}
"""Operation -> steps of one matrix for each of its columns.

Chosen so that a step takes the `step_cost.exchange` of a GPU in published times of PyTorch with cuSOLVER: pull requests
173515 (Cholesky of 512: 376 us), 5586 of FlagGems (R of 512: 1.5 ms) and issue 174674 (eigh of 100: 1.8 ms). LU: one
search for a pivot. SVD: nine Jacobi sweeps (`gesvdj`, the default) of n - 1 rounds; each round finds rotations and
applies them. LAPACK on two Zen 5 cores (svd of 512: 25 ms, eigh: 8.6 ms, QR: 4.9 ms) agrees to a factor of 3."""

BULGE: Final = 8
"""Columns that one step of a QR iteration processes; each eigenvalue of a general matrix needs an iteration over all
columns. Chosen with LAPACK's `geev` on two cores of a CPU: 3.4, 91 and 477 ms for 128, 512 and 1024 columns.
"""

BLOCK: Final = 32
"""Columns that a triangular solve takes in one step. Source: the block size of LAPACK Working Note 41, table 3."""

SMALL: Final = 32
"""Maximum rows and columns of a matrix that a single compute unit decomposes. Source: cuSOLVER, `gesvdjBatched`."""

ONE_BY_ONE: Final = ("qr", "svd", "eigh", "eig")
"""Operations without a batched kernel for matrices larger than `SMALL`. Source: PyTorch, BatchLinearAlgebraLib.cpp."""

TWO_SIDED: Final = ("svd", "eigh", "eig")
"""Operations whose steps multiply the matrix by single vectors. Their time is limited by memory, not by the number of
units. Source: J. Dongarra, S. Hammarling, D. Sorensen, J. Comput. Appl. Math. 27 (1989) 215."""


def _matrices(shape: Shape) -> tuple[int, int, int]:
    """Return (number of matrices, rows, columns) of a tensor of matrices."""
    *batch, rows, columns = shape
    return math.prod(batch), rows, columns


def _cost(operation: str, shape: Shape, work: Fraction | int, steps: Fraction | int, special: int = 0) -> Cost:
    """Return the cost of an operation on all matrices of a shape; `work`, `steps` and `special` are per matrix."""
    count, *size = _matrices(shape)
    is_small = max(size) <= SMALL
    turns = count if operation in ONE_BY_ONE and not is_small else 1
    second = BATCHED if is_small else "" if operation in TWO_SIDED else SPREAD
    step_count = max(math.ceil(steps), 1) * max(turns, 1)
    return Cost(
        kind="reduction",
        operation=operation,
        elementwise_count=math.ceil(count * work),
        special_count=count * special,
        gemm=(0, 0, 0, count),
        step_count=step_count,
        scalars=f"steps={step_count}",
        variant=f"{DECOMPOSITION} {second}".strip(),
    )


def _solve_steps(order: int) -> Fraction:
    """Return the number of steps of one triangular solve."""
    return Fraction(order, BLOCK)


def _right_sides(shape: Shape, order: int) -> int:
    """Return the number of right-hand sides per linear system of this order; a tensor of vectors has one per system."""
    return shape[-1] if len(shape) > 1 and shape[-2] == order else 1


@formula("linalg_lu_factor_ex", "linalg_lu", "_linalg_det", "_linalg_slogdet", "lu_with_info")
def factorize(call: Call) -> Cost:
    """LU of m x n, with n the smaller size: m n^2 - 1/3 n^3, or 2/3 n^3 for a square one; n reciprocals."""
    _, rows, columns = _matrices(call.shape(0))
    large, small = max(rows, columns), min(rows, columns)
    return _cost("lu", call.shape(0), large * small**2 - Fraction(small**3, 3), STEPS["lu"] * small, small)


@formula("linalg_inv_ex")
def invert(call: Call) -> Cost:
    """LU and the inverse of its factors: 2 n^3; n reciprocals."""
    order = call.shape(0)[-1]
    steps = STEPS["lu"] * order + 2 * _solve_steps(order)
    return _cost("inverse", call.shape(0), 2 * order**3, steps, order)


@formula("_linalg_solve_ex")
def solve(call: Call) -> Cost:
    """LU, 2/3 n^3, and two triangular solves: 2 n^2 for each right-hand side; n reciprocals."""
    order = call.shape(0)[-1]
    sides = _right_sides(call.shape(1), order)
    steps = STEPS["lu"] * order + 2 * _solve_steps(order)
    return _cost("solve", call.shape(0), Fraction(2 * order**3, 3) + 2 * order**2 * sides, steps, order)


@formula("linalg_lu_solve", "lu_solve", "cholesky_solve", "linalg_ldl_solve")
def solve_factorized(call: Call) -> Cost:
    """Two triangular solves: 2 n^2 for each column of the output."""
    _, order, sides = _matrices(call.output_shape)
    return _cost("solve", call.output_shape, 2 * order**2 * sides, 2 * _solve_steps(order))


@formula("linalg_solve_triangular", "triangular_solve")
def solve_triangular(call: Call) -> Cost:
    """n^2 for each column of the output."""
    _, rows, columns = _matrices(call.output_shape)
    is_left = bool(call.kwargs.get("left", True))
    order, sides = (rows, columns) if is_left else (columns, rows)
    return _cost("solve", call.output_shape, order**2 * sides, _solve_steps(order))


@formula("linalg_cholesky_ex", "cholesky")
def factorize_symmetric(call: Call) -> Cost:
    """1/3 n^3; n roots."""
    order = call.shape(0)[-1]
    return _cost("cholesky", call.shape(0), Fraction(order**3, 3), STEPS["cholesky"] * order, order)


@formula("linalg_ldl_factor_ex")
def factorize_indefinite(call: Call) -> Cost:
    """1/3 n^3 and n reciprocals, like Cholesky; a search for a pivot in each column, like LU."""
    order = call.shape(0)[-1]
    return _cost("cholesky", call.shape(0), Fraction(order**3, 3), STEPS["lu"] * order, order)


@formula("cholesky_inverse")
def invert_factorized(call: Call) -> Cost:
    """The inverse from a Cholesky factor: 2/3 n^3."""
    order = call.shape(0)[-1]
    return _cost("inverse", call.shape(0), Fraction(2 * order**3, 3), 2 * _solve_steps(order))


def _orthogonalize(rows: int, columns: int) -> Fraction:
    large, small = max(rows, columns), min(rows, columns)
    return 2 * large * small**2 - Fraction(2 * small**3, 3)


@formula("linalg_qr", "qr")
def orthogonalize(call: Call) -> Cost:
    """2 m n^2 - 2/3 n^3 for R, with n the smaller size, again for the reduced Q; 4 m (m - n) n for the rest of Q."""
    _, rows, columns = _matrices(call.shape(0))
    mode, small = call.value(1, "mode", "reduced"), min(rows, columns)
    parts = 1 if mode == "r" else 2
    work = _orthogonalize(rows, columns) * parts
    if mode == "complete" and rows > columns:
        work += 4 * rows * (rows - columns) * columns
    return _cost("qr", call.shape(0), work, STEPS["qr"] * small * parts, small)


@formula("geqrf", "linalg_householder_product", "orgqr")
def reflect(call: Call) -> Cost:
    """2 m n^2 - 2/3 n^3, with n the smaller size."""
    _, rows, columns = _matrices(call.shape(0))
    small = min(rows, columns)
    return _cost("qr", call.shape(0), _orthogonalize(rows, columns), STEPS["qr"] * small, small)


@formula("ormqr")
def apply_reflections(call: Call) -> Cost:
    """Four operations for each of k reflections and each element of the operand, without half of the k x k square."""
    _, rows, columns = _matrices(call.output_shape)
    reflections = call.shape(1)[-1]
    order = rows if call.value(3, "left", True) else columns
    other = columns if order == rows else rows
    work = 4 * order * other * reflections - 2 * other * reflections**2
    return _cost("qr", call.output_shape, work, _solve_steps(reflections))


@formula("_linalg_svd")
def decompose(call: Call) -> Cost:
    """4 m n^2 - 4/3 n^3 for the values, with n the smaller size; 2 m n^2 + 2 n^3 more for both sets of vectors.

    4 m (m - n) n for the rest of the larger set.
    """
    _, rows, columns = _matrices(call.shape(0))
    large, small = max(rows, columns), min(rows, columns)
    has_vectors = bool(call.value(2, "compute_uv", True))
    work = _singular(rows, columns, has_vectors=has_vectors)
    if has_vectors and call.value(1, "full_matrices", False):
        work += 4 * large * (large - small) * small
    return _cost("svd", call.shape(0), work, STEPS["svd"] * small, small)


def _singular(rows: int, columns: int, *, has_vectors: bool) -> Fraction:
    large, small = max(rows, columns), min(rows, columns)
    values = 4 * large * small**2 - Fraction(4 * small**3, 3)
    return values + (2 * large * small**2 + 2 * small**3 if has_vectors else 0)


@formula("linalg_svdvals")
def find_singular_values(call: Call) -> Cost:
    """4 m n^2 - 4/3 n^3, with n the smaller size."""
    _, rows, columns = _matrices(call.shape(0))
    small = min(rows, columns)
    return _cost("svd", call.shape(0), _singular(rows, columns, has_vectors=False), STEPS["svd"] * small, small)


@formula("linalg_pinv", "linalg_polar")
def pseudo_invert(call: Call) -> Cost:
    """Singular values and vectors, and the product of the vectors: 2 m n^2, with n the smaller size; n reciprocals."""
    _, rows, columns = _matrices(call.shape(0))
    large, small = max(rows, columns), min(rows, columns)
    work = _singular(rows, columns, has_vectors=True) + 2 * large * small**2
    return _cost("svd", call.shape(0), work, STEPS["svd"] * small, small)


@formula("_linalg_eigh", "linalg_matrix_sqrth")
def diagonalize_symmetric(call: Call) -> Cost:
    """9 n^3 for values and vectors of a symmetric matrix, 4/3 n^3 for values alone."""
    order = call.shape(0)[-1]
    factor = Fraction(9) if call.value(2, "compute_v", True) else Fraction(4, 3)
    return _cost("eigh", call.shape(0), factor * order**3, STEPS["eigh"] * order, order)


@formula("linalg_eigvalsh")
def find_symmetric_eigenvalues(call: Call) -> Cost:
    """4/3 n^3 for values alone."""
    order = call.shape(0)[-1]
    return _cost("eigh", call.shape(0), Fraction(4 * order**3, 3), STEPS["eigh"] * order, order)


@formula("linalg_eig")
def diagonalize(call: Call) -> Cost:
    """79/3 n^3 for values and right vectors."""
    order = call.shape(0)[-1]
    return _cost("eig", call.shape(0), Fraction(79 * order**3, 3), Fraction(order**2, BULGE), order)


@formula("linalg_eigvals", "_linalg_eigvals")
def find_eigenvalues(call: Call) -> Cost:
    """10 n^3 for values alone."""
    order = call.shape(0)[-1]
    return _cost("eig", call.shape(0), 10 * order**3, Fraction(order**2, BULGE), order)


@formula("linalg_lstsq")
def fit(call: Call) -> Cost:
    """QR, 2 m n^2 - 2/3 n^3, then 4 m n for the reflections and n^2 for the solve of each right-hand side."""
    _, rows, columns = _matrices(call.shape(0))
    sides = _right_sides(call.shape(1), rows)
    small = min(rows, columns)
    work = _orthogonalize(rows, columns) + (4 * rows * small + small**2) * sides
    return _cost("solve", call.shape(0), work, STEPS["qr"] * small + 2 * _solve_steps(small), small)


@formula("linalg_matrix_exp", "matrix_exp")
def exponentiate(call: Call) -> Cost:
    """Five products of n x n: the Taylor polynomial of degree 18, without squarings, whose number depends on data.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, `compute_T18`, after P. Bader, S. Blanes, F. Casas, Mathematics 7
    (2019) 1174.
    """
    return _cost("matrix_exp", call.shape(0), 10 * call.shape(0)[-1] ** 3, 5)
