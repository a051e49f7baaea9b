"""Arithmetic of the products (GEMMs and convolutions) of an fp32 run.

`--precision fp32` means what a library does by default with fp32 tensors on a chip, `--matmul-precision` another
setting of that library:

    setting    NVIDIA GPUs with TF32             class tpu             AWS NPUs    every other chip
    default    TF32: convolutions in frameworks,
               all products in an engine         one bf16 pass         bf16        fp32
    high       TF32                              three bf16 passes     TF32        fp32
    highest    fp32                              six bf16 passes       fp32        fp32

NVIDIA: PyTorch's defaults are torch.backends.cudnn.allow_tf32 = True and torch.backends.cuda.matmul.allow_tf32 = False,
TensorRT's is BuilderFlag.TF32. Source: PyTorch documentation, CUDA semantics, TensorFloat-32, and
torch.set_float32_matmul_precision; TensorRT documentation, builder flags.

TPU: the default is one bf16 pass with fp32 sums; jax_default_matmul_precision `high` and `highest` take three and six.
Source: JAX documentation, Matmul precision, https://docs.jax.dev/en/latest/201/precision.html, and issue 1856 of
google/jax. The numbers of passes are coefficients of the class.

AWS: the compiler casts fp32 matrix products to bf16 unless `--auto-cast` or `--auto-cast-type tf32` says otherwise.
Source: AWS Neuron documentation, Mixed Precision and Performance-accuracy Tuning (neuronx-cc).

Every other chip: oneDNN, ROCm and Metal compute fp32 products in fp32 unless asked otherwise, and the `high` of
torch.set_float32_matmul_precision equals `highest` where no faster algorithm is available; ROCm's TF32 also needs an
environment variable (recalled). OpenVINO is predicted as with `-infer_precision f32`, because its published fp32 rates
are; its own default is narrower on some chips. NPUs without a peak at fp32 refuse it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, get_args

from joulemap.physics.record.configuration import TF32
from joulemap.system.record import frozen

MatmulPrecision = Literal["default", "high", "highest"]

MATMUL_PRECISIONS: Final[tuple[MatmulPrecision, ...]] = get_args(MatmulPrecision)
"""Settings of a library for the products of fp32 tensors, the default first."""

DEFAULT: Final[MatmulPrecision] = "default"
HIGH: Final[MatmulPrecision] = "high"
HIGHEST: Final[MatmulPrecision] = "highest"

FP32: Final = "fp32"
PASS: Final = "bf16"
"""Precision of one pass of an fp32 product through a systolic array."""

PASSES: Final = "fp32_passes"
"""Name of a coefficient of systolic arrays: bf16 passes of an fp32 product, with the setting as a suffix."""

NVIDIA: Final = "NVIDIA"
AWS: Final = "AWS"


def choose_setting(setting: MatmulPrecision, precision: str) -> MatmulPrecision:
    """Return the setting that a run at a precision has: a matmul precision affects fp32 alone."""
    return setting if precision == FP32 else DEFAULT


@frozen(kw_only=True)
class Products:
    """Precisions in which a library computes the products of an fp32 run."""

    convolution: str = FP32
    gemm: str = FP32
    """Precision of GEMMs that are not convolutions."""
    has_passes: bool = False
    """True if the products take a number of passes that the setting determines."""


def find_products(
    architecture: str, vendor: str, precisions: Collection[str], setting: str, *, is_engine: bool
) -> Products:
    """Return the arithmetic of fp32 products on a chip that supports these precisions.

    `is_engine` is true for the runtime of an inference engine, false for a framework.
    """
    if architecture == "tpu" and PASS in precisions:
        return Products(convolution=PASS, gemm=PASS, has_passes=True)
    if architecture == "npu" and vendor == AWS and setting != HIGHEST:
        narrow = PASS if setting == DEFAULT else TF32
        return Products(convolution=narrow, gemm=narrow) if narrow in precisions else Products()
    if architecture == "gpu" and vendor == NVIDIA and TF32 in precisions and setting != HIGHEST:
        is_whole = is_engine or setting == HIGH
        return Products(convolution=TF32, gemm=TF32 if is_whole else FP32)
    return Products()
