"""Formulas of operators that need one element at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.trace.formula.registry import Call, Cost, formula

MAX_MULTIPLIED_POWER: Final = 4
"""Maximum integer exponent that the frameworks' kernels compute as products (x, x^2, x^3, x^4)."""


def _elementwise(names: Sequence[str], per_element: int, special: int = 0, operation: str = "") -> None:
    for name in names:
        label = operation or name.rstrip("_")

        def cost(call: Call, label: str = label) -> Cost:
            return Cost(
                kind="elementwise",
                operation=label,
                elementwise_count=per_element * call.output_count,
                special_count=special * call.output_count,
            )

        formula(name)(cost)


_elementwise(["relu", "relu_", "neg", "neg_", "abs", "abs_", "sign", "floor", "ceil", "round", "trunc"], 1)
_elementwise(["threshold", "threshold_"], 1)
_elementwise(["hardtanh", "hardtanh_", "relu6"], 2, operation="clamp")
_elementwise(["clamp_min", "clamp_min_", "clamp_max", "clamp_max_"], 1, operation="clamp")
_elementwise(["leaky_relu", "leaky_relu_", "prelu"], 2)
_elementwise(["hardsigmoid", "hardsigmoid_"], 4)
_elementwise(["hardswish", "hardswish_"], 5)
_elementwise(["silu", "silu_"], 3, 1)
_elementwise(["sigmoid", "sigmoid_", "log_sigmoid"], 2, 1)
_elementwise(["gelu", "gelu_"], 4, 1)
_elementwise(["mish", "mish_"], 4, 3)
_elementwise(["softplus"], 3, 2)
_elementwise(["elu", "elu_", "celu", "selu", "selu_"], 3, 1)
_elementwise(["glu"], 3, 1)
_elementwise(["tanh", "tanh_", "exp", "exp_", "exp2", "log", "log_", "log2", "log10", "log1p", "expm1"], 0, 1)
_elementwise(["sqrt", "sqrt_", "rsqrt", "reciprocal", "erf", "sin", "cos", "tan", "atan", "asin", "acos"], 0, 1)
_elementwise(["erfc", "erfinv", "lgamma", "digamma", "i0", "sinh", "cosh", "asinh", "acosh", "atanh"], 0, 1)
_elementwise(["atan2", "remainder", "fmod", "floor_divide", "xlogy"], 1, 1)
_elementwise(["sinc", "logit"], 2, 1)
_elementwise(["polar"], 2, 2)
_elementwise(["hypot"], 3, 1)
_elementwise(["logaddexp", "logaddexp2"], 3, 2)
_elementwise(["add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "maximum", "minimum", "square"], 1)
_elementwise(["fmax", "fmin", "copysign", "signbit", "deg2rad", "rad2deg"], 1)
_elementwise(["addcmul", "addcmul_", "addcdiv", "lerp", "addr", "frac", "heaviside"], 2)
_elementwise(["hardshrink", "rrelu_with_noise"], 2)
_elementwise(["softshrink", "nan_to_num", "linalg_cross"], 3)
_elementwise(["where", "masked_fill", "masked_fill_", "bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor"], 1)
_elementwise(["bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "__ilshift__", "__irshift__"], 1)
_elementwise(["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isnan"], 1)
_elementwise(["isinf", "isposinf", "isneginf", "sgn", "logical_xor"], 1)
_elementwise(["nextafter", "frexp", "_conj_physical", "conj_physical", "positive", "hash_tensor"], 1)
_elementwise(["gcd", "lcm", "ldexp", "angle", "special_entr", "special_xlog1py"], 1, 1)
_elementwise(["igamma", "igammac", "polygamma", "mvlgamma", "special_zeta", "special_ndtri", "special_log_ndtr"], 0, 1)
_elementwise(["special_i0e", "special_i1", "special_i1e", "special_erfcx", "special_airy_ai", "special_ndtr"], 0, 1)
_elementwise([f"special_bessel_{kind}{order}" for kind in "jy" for order in (0, 1)], 0, 1)
_elementwise([f"special_modified_bessel_{kind}{order}" for kind in "ik" for order in (0, 1)], 0, 1)
_elementwise(["special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1"], 0, 1)
_elementwise(["special_spherical_bessel_j0"], 0, 1)
for _letter in "tuvw":
    _elementwise([f"special_{kind}chebyshev_polynomial_{_letter}" for kind in ("", "shifted_")], 0, 1)
_elementwise(["special_hermite_polynomial_h", "special_hermite_polynomial_he"], 0, 1)
_elementwise(["special_laguerre_polynomial_l", "special_legendre_polynomial_p"], 0, 1)


@formula("clamp", "clamp_")
def clamp(call: Call) -> Cost:
    """One comparison per element and bound."""
    bounds = sum(call.value(position, name) is not None for position, name in ((1, "min"), (2, "max")))
    return Cost(kind="elementwise", operation="clamp", elementwise_count=bounds * call.output_count)


@formula("pow", "pow_")
def power(call: Call) -> Cost:
    """Multiplications for a small integer exponent; for any other, exp(y log x): two special functions."""
    exponent = call.value(1, "exponent")
    if isinstance(exponent, int | float) and exponent == int(exponent) and 1 <= exponent <= MAX_MULTIPLIED_POWER:
        return Cost(kind="elementwise", operation="pow", elementwise_count=(int(exponent) - 1) * call.output_count)
    return Cost(kind="elementwise", operation="pow", special_count=2 * call.output_count)
