"""Registry of formulas, and the records that formulas read (`Call`) and return (`Cost`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.physics.record.workload import Operator

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
Formula = Callable[["Call"], "Cost"]


@attrs.frozen(kw_only=True)
class Cost:
    """Operation counts of one operator, for the whole batch."""

    kind: str
    operation: str
    mac_count: int = 0
    elementwise_count: int = 0
    special_count: int = 0
    gemm: tuple[int, int, int, int] = (0, 0, 0, 0)
    """(M, N, K, groups) of the operator's GEMM; zeros without one."""
    tap_count: int = 1
    gathers: bool = False
    """True if the operator reads only the rows that it returns (embedding, gather), not its whole first input."""
    gathered_count: int | None = None
    """Maximum elements read from the first input by an operator that `gathers`; None for the elements that it returns.
    """
    scalars: str = ""
    variant: str = ""
    step_count: int = 1
    read_counts: tuple[tuple[int, int], ...] = ()
    """(position of an argument, maximum elements read from it); all other arguments are read in full."""
    written_count: int | None = None
    """Elements that the operator writes; None if it writes its whole output."""

    def operator(
        self, name: str, path: str, aten: str, shape: Shape, dtype: str, *, is_foldable: bool = False
    ) -> Operator:
        """Return a workload's operator with these counts; `path` is the path of its module."""
        m, n, k, groups = self.gemm
        return Operator(
            name=name,
            module_path=path,
            operation=self.operation,
            kind=self.kind,
            aten=aten,
            output_shape=shape,
            dtype=dtype,
            mac_count=self.mac_count,
            elementwise_count=self.elementwise_count,
            special_count=self.special_count,
            output_element_count=math.prod(shape),
            gemm_m=m,
            gemm_n=n,
            gemm_k=k,
            gemm_groups=groups,
            tap_count=self.tap_count,
            is_foldable=is_foldable,
            scalars=self.scalars,
            variant=self.variant,
            step_count=self.step_count,
        )


@attrs.frozen
class Call:
    """Dispatched call of an operator, with its outputs."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[torch.Tensor, ...]
    aten: str = ""
    """Name with namespace and overload: `aten.conv2d.default`, `mylib.op.default`."""
    known: Mapping[int, torch.Tensor] = attrs.field(factory=dict)
    """id of a tensor argument -> its values, if the trace knows or assumes them."""

    def known_value(self, tensor: Any) -> torch.Tensor | None:
        """Return the known or assumed values of a tensor argument; None if its values are unknown."""
        return self.known.get(id(tensor))

    def value(self, position: int, name: str, default: Any = None) -> Any:
        """Return the argument at a position, else the keyword argument of this name, else `default`."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, default)

    def shape(self, position: int, name: str = "") -> Shape:
        """Return the shape of a tensor argument."""
        return tuple(self.value(position, name).shape)

    @property
    def output_shape(self) -> Shape:
        """Shape of the first output."""
        return tuple(self.outputs[0].shape) if self.outputs else ()

    @property
    def output_count(self) -> int:
        """Elements of the first output."""
        return math.prod(self.output_shape)

    @property
    def input_count(self) -> int:
        """Elements of the first argument, a tensor."""
        return math.prod(self.shape(0))


ATTENTION: Final = "scaled_dot_product_attention"
"""Operator that is counted as three operators: scores, softmax and weighted sum."""

FORMULAS: Final[dict[str, Formula]] = {}

KEPT_COMPOSITES: Final = frozenset(
    {
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "batch_norm",
        "contiguous", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        "dropout", "embedding", "feature_dropout", "gru", "group_norm", "instance_norm", "layer_norm", "linear",
        "log_sigmoid", "log_softmax", "matmul", "max_pool1d", "max_pool2d", "max_pool3d", "pad", "prelu", "reshape",
        "rms_norm", "scaled_dot_product_attention", "softmax", "square", "to", "type_as", "upsample_bicubic2d",
        "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
        "upsample_nearest_exact1d", "upsample_nearest_exact2d", "upsample_nearest_exact3d", "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
        "linalg_eigvals", "linalg_eigvalsh", "linalg_svdvals",
        "upsample_trilinear3d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
        "lstm", "rnn_relu", "rnn_tanh",
    }
)  # fmt: skip
"""Composite operators that stay whole because they are one kernel; every other composite is decomposed."""


def formula(*names: str) -> Callable[[Formula], Formula]:
    """Register a formula for the ATen operators of these names. Raise ValueError if an operator already has one."""

    def register(function: Formula) -> Formula:
        for name in names:
            if name in FORMULAS:
                raise ValueError(f"the operator {name} has two formulas")
            FORMULAS[name] = function
        return function

    return register


def write_scalars(**scalars: Any) -> str:
    """Return scalar arguments as text: `kernel=[3, 3] stride=[1, 1]`."""
    return " ".join(f"{name}={value}" for name, value in scalars.items())


NAMESPACES: Final = ("", "aten", "prims", "torchvision", "quantized")
"""Namespaces whose operators are looked up by name alone."""


def find_formula(name: str, aten: str = "") -> Formula | None:
    """Return the formula of an operator; None if there is none. An in-place form (`floor_`) shares the formula of its
    out-of-place form.
    """
    if aten.partition(".")[0] not in NAMESPACES:
        return None
    return FORMULAS.get(name, FORMULAS.get(name.removesuffix("_")))
