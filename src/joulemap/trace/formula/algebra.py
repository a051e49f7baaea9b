"""Formulas of dense linear algebra: the leading terms of what LAPACK's routines compute.

An addition and a multiplication are two operations: factorizations run as vector code, at no rate of a matrix unit.
Sources: E. Anderson et al., LAPACK Users' Guide, 3rd ed., SIAM 1999, section 3.4 (LU 2/3 n^3, singular values 8/3 n^3,
with vectors 20/3 n^3, eigenvalues 10 n^3, with vectors 79/3 n^3); LAPACK Working Note 41 (Cholesky 1/3 n^3,
QR 2 m n^2 - 2/3 n^3, triangular solves n^2 for each right-hand side); G. H. Golub, C. F. Van Loan, Matrix Computations,
4th ed., section 8.3 (symmetric eigenvalues 4/3 n^3, with vectors 9 n^3).

Columns wait for one another: a factorization has a step for each, a substitution one for each unknown. A reduction to
Hessenberg or tridiagonal form has one for each reflection, to bidiagonal form two. Iterations then take about two
sweeps for each value, and each sweep waits for the last. Matrices of a batch take their steps side by side.
Source: Golub, Van Loan, sections 7.5.6, 8.3.5 and 8.6.3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from joulemap.trace.formula.registry import Call, Cost, Shape, formula


def _matrices(shape: Shape) -> tuple[int, int, int]:
    """Return (matrices, rows, columns)."""
    *batch, rows, columns = shape
    return math.prod(batch), rows, columns


DECOMPOSITIONS: Final = frozenset({"lu", "inverse", "solve", "cholesky", "qr", "svd", "eigh", "eig"})
"""Operations of this module, of which no time was ever measured."""

SWEEPS: Final = 2
"""Sweeps of an iteration for each singular value or eigenvalue."""


def _cost(operation: str, count: Fraction | int, special: int = 0, *, steps: int) -> Cost:
    return Cost(
        kind="reduction",
        operation=operation,
        elementwise_count=math.ceil(count),
        special_count=special,
        step_count=max(steps, 1),
        scalars=f"steps={max(steps, 1)}",
    )


def _right_sides(shape: Shape, order: int) -> int:
    """Return the right-hand sides of each system: one where the last sizes are of no matrix of the order."""
    return shape[-1] if len(shape) > 1 and shape[-2] == order else 1


@formula("linalg_lu_factor_ex", "linalg_lu", "_linalg_det", "_linalg_slogdet", "lu_with_info")
def factorize(call: Call) -> Cost:
    """LU of m x n: m n^2 - 1/3 n^3 with the smaller as n, 2/3 n^3 for a square one; n reciprocals."""
    count, rows, columns = _matrices(call.shape(0))
    large, small = max(rows, columns), min(rows, columns)
    return _cost("lu", count * (large * small**2 - Fraction(small**3, 3)), count * small, steps=small)


@formula("linalg_inv_ex")
def invert(call: Call) -> Cost:
    """LU and the inverse of its factors: 2 n^3; n reciprocals."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("inverse", 2 * count * order**3, count * order, steps=2 * order)


@formula("_linalg_solve_ex")
def solve(call: Call) -> Cost:
    """LU, 2/3 n^3, and two triangular solves: 2 n^2 for each right-hand side; n reciprocals."""
    count, order, _ = _matrices(call.shape(0))
    sides = _right_sides(call.shape(1), order)
    return _cost("solve", count * (Fraction(2 * order**3, 3) + 2 * order**2 * sides), count * order, steps=3 * order)


@formula("linalg_lu_solve", "lu_solve", "cholesky_solve", "linalg_ldl_solve")
def solve_factorized(call: Call) -> Cost:
    """Two triangular solves: 2 n^2 for each column of the output."""
    count, order, sides = _matrices(call.output_shape)
    return _cost("solve", 2 * count * order**2 * sides, steps=2 * order)


@formula("linalg_solve_triangular", "triangular_solve")
def solve_triangular(call: Call) -> Cost:
    """n^2 for each column of the output."""
    count, rows, columns = _matrices(call.output_shape)
    is_left = bool(call.kwargs.get("left", True))
    order, sides = (rows, columns) if is_left else (columns, rows)
    return _cost("solve", count * order**2 * sides, steps=order)


@formula("linalg_cholesky_ex", "cholesky", "linalg_ldl_factor_ex")
def factorize_symmetric(call: Call) -> Cost:
    """1/3 n^3; n roots."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("cholesky", count * Fraction(order**3, 3), count * order, steps=order)


@formula("cholesky_inverse")
def invert_factorized(call: Call) -> Cost:
    """The inverse from a Cholesky factor: 2/3 n^3."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("inverse", count * Fraction(2 * order**3, 3), count * order, steps=order)


def _orthogonalize(rows: int, columns: int) -> Fraction:
    large, small = max(rows, columns), min(rows, columns)
    return 2 * large * small**2 - Fraction(2 * small**3, 3)


@formula("linalg_qr", "qr")
def orthogonalize(call: Call) -> Cost:
    """2 m n^2 - 2/3 n^3 for R with the smaller as n, as much for the reduced Q; 4 m (m - n) n for the rest of it."""
    count, rows, columns = _matrices(call.shape(0))
    mode = call.value(1, "mode", "reduced")
    work = _orthogonalize(rows, columns) * (1 if mode == "r" else 2)
    if mode == "complete" and rows > columns:
        work += 4 * rows * (rows - columns) * columns
    return _cost("qr", count * work, count * min(rows, columns), steps=min(rows, columns))


@formula("geqrf", "linalg_householder_product", "orgqr")
def reflect(call: Call) -> Cost:
    """2 m n^2 - 2/3 n^3 with the smaller as n."""
    count, rows, columns = _matrices(call.shape(0))
    small = min(rows, columns)
    return _cost("qr", count * _orthogonalize(rows, columns), count * small, steps=small)


@formula("ormqr")
def apply_reflections(call: Call) -> Cost:
    """Four operations for each of k reflections and element of what they are applied to, half the square left out."""
    count, rows, columns = _matrices(call.output_shape)
    reflections = call.shape(1)[-1]
    order = rows if call.value(3, "left", True) else columns
    other = columns if order == rows else rows
    work = 4 * order * other * reflections - 2 * other * reflections**2
    return _cost("qr", count * work, steps=reflections)


@formula("_linalg_svd")
def decompose(call: Call) -> Cost:
    """4 m n^2 - 4/3 n^3 for the values with the smaller as n, 2 m n^2 + 2 n^3 more for both sets of vectors."""
    count, rows, columns = _matrices(call.shape(0))
    work = _singular(rows, columns, has_vectors=bool(call.value(2, "compute_uv", True)))
    small = min(rows, columns)
    return _cost("svd", count * work, count * small, steps=(2 + SWEEPS) * small)


def _singular(rows: int, columns: int, *, has_vectors: bool) -> Fraction:
    large, small = max(rows, columns), min(rows, columns)
    values = 4 * large * small**2 - Fraction(4 * small**3, 3)
    return values + (2 * large * small**2 + 2 * small**3 if has_vectors else 0)


@formula("linalg_svdvals")
def find_singular_values(call: Call) -> Cost:
    """4 m n^2 - 4/3 n^3 with the smaller as n."""
    count, rows, columns = _matrices(call.shape(0))
    small = min(rows, columns)
    work = _singular(rows, columns, has_vectors=False)
    return _cost("svd", count * work, count * small, steps=(2 + SWEEPS) * small)


@formula("linalg_pinv", "linalg_polar")
def pseudo_invert(call: Call) -> Cost:
    """Singular values and vectors, and the product of these: 2 m n^2 with the smaller as n; n reciprocals."""
    count, rows, columns = _matrices(call.shape(0))
    large, small = max(rows, columns), min(rows, columns)
    work = _singular(rows, columns, has_vectors=True) + 2 * large * small**2
    return _cost("svd", count * work, count * small, steps=(2 + SWEEPS) * small)


@formula("_linalg_eigh", "linalg_matrix_sqrth")
def diagonalize_symmetric(call: Call) -> Cost:
    """9 n^3 for values and vectors of a symmetric matrix, 4/3 n^3 for values alone."""
    count, order, _ = _matrices(call.shape(0))
    factor = Fraction(9) if call.value(2, "compute_v", True) else Fraction(4, 3)
    return _cost("eigh", count * factor * order**3, count * order, steps=(1 + SWEEPS) * order)


@formula("linalg_eigvalsh")
def find_symmetric_eigenvalues(call: Call) -> Cost:
    """4/3 n^3 for values alone."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("eigh", count * Fraction(4 * order**3, 3), count * order, steps=(1 + SWEEPS) * order)


@formula("linalg_eig")
def diagonalize(call: Call) -> Cost:
    """79/3 n^3 for values and right vectors."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("eig", count * Fraction(79 * order**3, 3), count * order, steps=(1 + SWEEPS) * order)


@formula("linalg_eigvals", "_linalg_eigvals")
def find_eigenvalues(call: Call) -> Cost:
    """10 n^3 for values alone."""
    count, order, _ = _matrices(call.shape(0))
    return _cost("eig", 10 * count * order**3, count * order, steps=(1 + SWEEPS) * order)


@formula("linalg_lstsq")
def fit(call: Call) -> Cost:
    """QR, 2 m n^2 - 2/3 n^3, then 4 m n for the reflections and n^2 for the solve of each right-hand side."""
    count, rows, columns = _matrices(call.shape(0))
    sides = _right_sides(call.shape(1), rows)
    small = min(rows, columns)
    work = _orthogonalize(rows, columns) + (4 * rows * small + small**2) * sides
    return _cost("solve", count * work, count * small, steps=3 * small)


@formula("linalg_matrix_exp", "matrix_exp")
def exponentiate(call: Call) -> Cost:
    """Five products of n x n: the Taylor polynomial of degree 18, without squarings, whose number depends on data.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, `compute_T18`, after P. Bader, S. Blanes, F. Casas, Mathematics 7
    (2019) 1174.
    """
    count, order, _ = _matrices(call.shape(0))
    return Cost(
        kind="matmul", operation="matmul", mac_count=5 * count * order**3, gemm=(order, order, order, 5 * count)
    )
