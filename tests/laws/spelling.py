"""Laws of one network written in several ways, and of sizes that a library may pad."""

from __future__ import annotations

import random
import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.workload import columns_of
from joulemap.system.record import frozen
from laws.court import Court, Place
from laws.network import Layer, Network, draw_layer, is_traceable
from laws.panel import Table, draw_cells, find_chip, list_chips, load_columns, predict
from laws.part import BLOCKS, UNEVEN, Part
from laws.question import Question

CHIPS: Final = 60

RUNTIMES: Final = ("fused", "engine")
"""Runtimes that merge operators; in others each operator is a kernel, so that spellings are other kernels."""

STEPS: Final = (8, 32, 128)
"""Multiples to which a library may pad a size."""

PRODUCTS: Final = tuple(one for one in BLOCKS if re.search(r"Conv|Linear", one.module))
"""Parts whose libraries pad most."""

UNLIKE: Final = tuple(one for one in BLOCKS if re.search(r"Transpose|groups", one.module))
"""Convolutions whose channels are no K of their GEMM."""

FAR: Final = 1.3
"""Ratio of sizes above which nobody pads: as much more work as the law allows."""

PASS_S: Final = 2e-6
"""Time of a pass that pads, in seconds: a start on a GPU."""


@frozen(kw_only=True)
class Spelled:
    """Network in several spellings; the first is the reference."""

    name: str
    inputs: tuple[str, ...]
    spellings: tuple[tuple[str, str], ...]
    """Name and Python text of each spelling."""

    def list_parts(self) -> list[Part]:
        """Return a part of random networks for each spelling."""
        return [Part(name=f"{self.name}: {own}", module=text, inputs=self.inputs) for own, text in self.spellings]


@frozen(kw_only=True)
class Explained:
    """Difference between spellings that a kernel explains, which was measured or which a compiler's list states."""

    spelling: str
    """Pattern of `case: spelling`."""
    of_class: str = "*"
    """Pattern of the class of a chip."""
    chip: str = "*"
    runtime: str = "*"
    most: float
    """Largest ratio, in either direction, that it explains."""
    kernel: str
    source: str
    is_fault: bool = False
    """True for a known fault that is to be mended."""

    def covers(self, spelling: str, chip: str, runtime: str) -> bool:
        """Return whether it explains a difference of this spelling from the reference."""
        pairs = (
            (spelling, self.spelling), (chip, self.chip), (runtime, self.runtime),
            (find_chip(chip).architecture, self.of_class),
        )  # fmt: skip
        return all(fnmatchcase(one, pattern) for one, pattern in pairs)


@cache
def read_cases() -> tuple[Spelled, ...]:
    """Return the networks that are written in several spellings."""
    entries = tomllib.loads((Path(__file__).parent / "spellings.toml").read_text())["cases"]
    return tuple(
        Spelled(name=one["name"], inputs=tuple(one["inputs"]), spellings=tuple(one["spellings"].items()))
        for one in entries
    )


@cache
def read_explained() -> tuple[Explained, ...]:
    """Return the differences that a kernel explains."""
    return tuple(
        Explained(**one) for one in tomllib.loads((Path(__file__).parent / "kernels.toml").read_text())["kernels"]
    )


def find_most(spelling: str, chip: str, runtime: str) -> float:
    """Return the largest ratio of a spelling to the reference that a kernel explains, at least 1."""
    return max((one.most for one in read_explained() if one.covers(spelling, chip, runtime)), default=1.0)


def try_spellings(court: Court, rng: random.Random) -> None:
    """Compare the spellings of a network on many chips.

    A spelling of more kernels, whose number follows from the fusing of compilers, may take so many times as long: each
    has a start, reads and writes. Chips whose compiler leaves a part of either to a host are left out: its list of
    operators (catalog/data/compiler) is the reason.
    """
    case, runtime = rng.choice(read_cases()), rng.choice(RUNTIMES)
    first, *others = case.list_parts()
    layer = draw_layer(rng, first)
    tables: list[tuple[str, Table]] = []
    cells = draw_cells(rng, CHIPS)
    for part in (first, *others):
        one = attrs.evolve(layer, part=part)
        if not is_traceable(one):
            return
        question = Question(model=Network((one,)), runtime=runtime)
        table = predict(question, cells, [1, 2], court)  # batches that are traced already
        if table is None:
            return
        tables.append((part.name, table))
    (_, reference), *rest = tables
    for name, table in rest:
        counts = np.array([_count_kernels(one) for one in (table, reference)])
        many = counts.max(axis=0) / counts.min(axis=0)
        most = np.maximum(many, np.array([[find_most(name, chip, runtime)] for chip, _ in cells]))
        is_whole = np.array([[not any(_falls_back(one, chip) for one in (table, reference))] for chip, _ in cells])
        for law, value in (("spellings take one time", "latency_s"), ("spellings take one energy", "energy_j")):
            left, right = (getattr(one.prediction, value) for one in (table, reference))
            is_there = ~np.isnan(left) & ~np.isnan(right) & is_whole
            high, low = (np.where(is_there, find(left, right), np.nan) for find in (np.maximum, np.minimum))
            court.compare(law, high / most, low, partial(_ask_both, table, reference))


def _ask_both(first: Table, second: Table, place: Place) -> tuple[Question, Question]:
    return first.ask(place), second.ask(place)


def _count_kernels(table: Table) -> list[int]:
    """Return the number of kernels at each batch size."""
    model, runtime = table.question.model, table.question.runtime
    assert isinstance(model, Network)
    return [form_kernels(columns_of(model.trace(batch)), "fp16", runtime).kernel_count for batch in table.batches]


def _falls_back(table: Table, chip: str) -> bool:
    return Evaluator(load_columns(table.question.model)).falls_back(find_chip(chip))


@cache
def list_boards() -> list[str]:
    """Return the ids of GPUs, whose libraries pad most."""
    return [one for one in list_chips() if find_chip(one).architecture == "gpu"]


def try_padding(court: Court, rng: random.Random) -> None:
    """Compare a layer with the same at the next multiples of a size, as which a library may compute it."""
    layer = draw_layer(rng, rng.choice(rng.choice((BLOCKS, PRODUCTS, UNLIKE, UNLIKE))))
    name, size = rng.choice(layer.sizes) if layer.sizes else ("", 0)
    if name in UNEVEN:
        step = rng.choice(STEPS)
        size = rng.choice((step, 2 * step, -(-size // step) * step)) - rng.randint(1, 7)
        layer = _resize(layer, name, size)
    padded = {-(-size // step) * step for step in STEPS}
    layers = [layer, *(_resize(layer, name, one) for one in sorted(padded) if size < one <= FAR * size)]
    if len(layers) == 1 or not all(map(is_traceable, layers)):
        return
    question, boards = Question(runtime=rng.choice(RUNTIMES)), rng.sample(list_boards(), CHIPS // 2)
    cells = [*draw_cells(rng, CHIPS // 2), *((one, rng.choice(sorted(find_chip(one).peaks))) for one in boards)]
    own, *larger = (predict(question.replace(model=Network((one,))), cells, [1], court) for one in layers)
    for table in larger:
        if own is None or table is None:
            return
        for law, value, extra in (("padding is time", "latency_s", PASS_S), ("padding is energy", "energy_j", 0.0)):
            left, right = (getattr(one.prediction, value) for one in (own, table))
            is_there = ~np.isnan(left) & ~np.isnan(right) & (own.prediction.latency_s > PASS_S)
            left, right = np.where(is_there, left - extra, np.nan), np.where(is_there, right, np.nan)
            court.compare(law, left, right, partial(_ask_both, own, table))


def _resize(layer: Layer, name: str, size: int) -> Layer:
    return attrs.evolve(layer, sizes=tuple((key, size if key == name else own) for key, own in layer.sizes))
