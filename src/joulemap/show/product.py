"""Words on what fp32 means on the chips of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from joulemap.physics.record.engine import TENSORRT
from joulemap.physics.record.product import DEFAULT, FP32, HIGHEST, NVIDIA, Products, find_products
from joulemap.physics.record.runtime import RUNTIME
from joulemap.show.present.template import Template

CONVOLUTIONS: Final = Template("{precision} convolutions")
GEMMS: Final = Template("{precision} GEMMs")
PASSES: Final = {"default": "one bf16 pass", "high": "three bf16 passes", "highest": "six bf16 passes"}
"""Matmul precision -> text on the passes of an fp32 product through a systolic array."""
TRUE_FP32: Final = "fp32"
DEFAULT_OF: Final = Template("{products}, {library}'s default")
LIBRARIES: Final = {"TPU": "XLA", "AWS": "Neuron", "NVIDIA": "PyTorch"}
"""Makers of chips, as a title names them -> library whose default a framework's fp32 is."""
ON: Final = Template("{products} on {makers:and}")
GENERATIONS: Final = (Template("{maker} since Ampere"), Template("{maker} before Ampere"))
"""Chips of a maker with TF32, and those without it, where an answer has both."""
OF_SETTING: Final = Template("{setting}[, {products}]")


class Fp32Run(NamedTuple):
    """Arithmetic of a run at fp32, with the settings that decide it."""

    architecture: str
    vendor: str
    setting: str
    runtime: str
    products: Products

    @classmethod
    def of(cls, architecture: str, vendor: str, precisions: Collection[str], setting: str, runtime: str) -> Fp32Run:
        """Return a run of a chip that supports these precisions."""
        products = find_products(architecture, vendor, precisions, setting, is_engine=RUNTIME[runtime].is_built)
        return cls(architecture, vendor, setting, runtime, products)

    @property
    def maker(self) -> str:
        """Short name of the chips that compute like this run's."""
        return "TPU" if self.products.has_passes else self.vendor

    @property
    def form(self) -> str:
        """Text on the arithmetic; `fp32` where it is that."""
        one = self.products
        if one.has_passes:
            return PASSES[self.setting]
        if one.convolution == FP32:
            return TRUE_FP32
        return (GEMMS if one.gemm == one.convolution else CONVOLUTIONS)(precision=one.convolution.upper())

    @property
    def library(self) -> str:
        """Library whose setting decides."""
        is_tensorrt = RUNTIME[self.runtime].is_built and self.maker == NVIDIA
        return TENSORRT if is_tensorrt else LIBRARIES.get(self.maker, self.maker)


def describe_fp32(runs: Iterable[Fp32Run]) -> str:
    """Return what follows `fp32` in a title, in parentheses: the meaning of fp32 in an answer with these runs.

    It is empty if every chip computes in fp32. Only stored runs named by id may mix several settings.
    """
    distinct = list(dict.fromkeys(runs))
    settings = tuple(dict.fromkeys(one.setting for one in distinct))
    if len(settings) != 1:
        return " and ".join(settings)
    (setting,) = settings
    forms: dict[str, dict[str, None]] = {}
    for one in distinct:
        is_mixed = any(other.maker == one.maker and other.form != one.form for other in distinct)
        generation = GENERATIONS[one.form == TRUE_FP32] if is_mixed and one.maker == NVIDIA else None
        forms.setdefault(one.form, {})[one.maker if generation is None else generation(maker=one.maker)] = None
    narrow = {form: list(makers) for form, makers in sorted(forms.items()) if form != TRUE_FP32}
    if setting == HIGHEST:
        return HIGHEST
    if not narrow:
        return "" if setting == DEFAULT else setting
    whole = [ON(products=form, makers=makers) for form, makers in narrow.items()]
    if len(forms) == 1:
        (form,) = narrow
        libraries = sorted({one.library for one in distinct})
        whole = [DEFAULT_OF(products=form, library=" and ".join(libraries))] if setting == DEFAULT else [form]
    listed = ", ".join(whole)
    return listed if setting == DEFAULT else OF_SETTING(setting=setting, products=listed)
