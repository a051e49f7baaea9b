"""Text on what fp32 means on the chips of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from joulemap.answer import text
from joulemap.domain.configuration import ENGINE
from joulemap.domain.engine import TENSORRT
from joulemap.domain.product import DEFAULT, FP32, HIGHEST, NVIDIA, Products, find_products


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
        products = find_products(architecture, vendor, precisions, setting, is_engine=runtime == ENGINE)
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
            return text.PASSES[self.setting]
        if one.convolution == FP32:
            return text.TRUE_FP32
        return (text.GEMMS if one.gemm == one.convolution else text.CONVOLUTIONS)(precision=one.convolution.upper())

    @property
    def library(self) -> str:
        """Library whose setting decides."""
        is_tensorrt = self.runtime == ENGINE and self.maker == NVIDIA
        return TENSORRT if is_tensorrt else text.LIBRARIES.get(self.maker, self.maker)


class Meaning(NamedTuple):
    """Meaning of fp32 in an answer."""

    title: str = ""
    """Text that follows `fp32` in a title, in parentheses; empty if every chip computes in fp32."""
    settings: tuple[str, ...] = ()
    """Matmul precisions of the runs at fp32. Only stored runs named by id may mix several."""


def describe_fp32(runs: Iterable[Fp32Run]) -> Meaning:
    """Return the meaning of fp32 in an answer with these runs."""
    found = list(dict.fromkeys(runs))
    settings = tuple(dict.fromkeys(one.setting for one in found))
    if len(settings) != 1:
        return Meaning(title=" and ".join(settings), settings=settings)
    (setting,) = settings
    forms: dict[str, dict[str, None]] = {}
    for one in found:
        is_mixed = any(other.maker == one.maker and other.form != one.form for other in found)
        generation = text.GENERATIONS[one.form == text.TRUE_FP32] if is_mixed and one.maker == NVIDIA else None
        forms.setdefault(one.form, {})[one.maker if generation is None else generation(maker=one.maker)] = None
    narrow = {form: list(makers) for form, makers in sorted(forms.items()) if form != text.TRUE_FP32}
    if setting == HIGHEST:
        return Meaning(title=HIGHEST, settings=settings)
    if not narrow:
        return Meaning(title="" if setting == DEFAULT else setting, settings=settings)
    whole = [text.ON(products=form, makers=makers) for form, makers in narrow.items()]
    if len(forms) == 1:
        (form,) = narrow
        libraries = sorted({one.library for one in found})
        whole = [text.DEFAULT_OF(products=form, library=" and ".join(libraries))] if setting == DEFAULT else [form]
    listed = ", ".join(whole)
    title = listed if setting == DEFAULT else text.OF_SETTING(setting=setting, products=listed)
    return Meaning(title=title, settings=settings)
