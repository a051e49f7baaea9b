"""Random networks: parts with drawn sizes, as Python text, as a traced workload, and as the file of a command."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Workload, WorkloadKey
from joulemap.system.errors import JoulemapError
from joulemap.system.record import frozen
from joulemap.trace.formula import FORMULAS
from joulemap.trace.module import build_on_meta, trace_module
from laws.part import BLOCKS, HEADER, SIZES, UNEVEN, Part, find_call

KEY: Final = WorkloadKey(source="laws", input_spec="", torch_version="", torchvision_version="", tracer_version="")

FOOTER: Final = """

class Network(nn.Module):
    def __init__(self, parts, counts):
        super().__init__()
        self.parts, self.counts = nn.ModuleList(parts), counts

    def forward(self, *inputs):
        results, start = [], 0
        for part, count in zip(self.parts, self.counts):
            results.append(part(*inputs[start : start + count]))
            start += count
        return results


def net(batch={batch}):
    parts = [
{parts}
    ]
    inputs = (
{inputs}
    )
    return Network(parts, {counts}), inputs
"""


@frozen
class Layer:
    """Part with its sizes."""

    part: Part
    sizes: tuple[tuple[str, int], ...]

    def write(self, text: str) -> str:
        """Return a text of the part with its sizes; the batch stays a name."""
        return text.format(b="batch", **dict(self.sizes))

    @property
    def has_batch(self) -> bool:
        """True if each input has the batch as its first dimension."""
        return all("({b}," in one for one in self.part.inputs)


@frozen
class Network:
    """Layers side by side, each with inputs of its own."""

    layers: tuple[Layer, ...]

    @property
    def has_batch(self) -> bool:
        """True if the batch is the first dimension of all inputs."""
        return all(one.has_batch for one in self.layers)

    @property
    def name(self) -> str:
        """Names of the parts."""
        return " + ".join(one.part.name for one in self.layers)

    def write(self, batch: int = 1) -> str:
        """Return the text of a file whose function `net` makes the network and its inputs."""
        return HEADER + FOOTER.format(
            batch=batch,
            parts="\n".join(f"        {one.write(one.part.module)}," for one in self.layers),
            inputs="\n".join(f"        {one.write(text)}," for one in self.layers for text in one.part.inputs),
            counts=[len(one.part.inputs) for one in self.layers],
        )

    def trace(self, batch: int = 1) -> Workload:
        """Return the fused workload. Raises ModelError for a network that cannot be traced."""
        return _trace(self, batch)

    def half(self) -> Network:
        """Return the first half of the layers."""
        return Network(self.layers[: max(1, len(self.layers) // 2)])

    def turned(self) -> Network:
        """Return the network with its layers in the opposite order."""
        return Network(self.layers[::-1])

    def with_identity(self) -> Network:
        """Return the network with an identity layer around each part."""
        return self._wrap("nn.Sequential({}, nn.Identity())")

    def renamed(self) -> Network:
        """Return the network with each part one module deeper, so that all modules have other names."""
        return self._wrap("nn.Sequential({})")

    def _wrap(self, text: str) -> Network:
        """Return the network with the text of another module around the parts of one input and one result."""
        return Network(
            tuple(
                attrs.evolve(one, part=attrs.evolve(one.part, module=text.format(one.part.module)))
                if len(one.part.inputs) == 1
                else one
                for one in self.layers
            )
        )

    def grow(self, rng: random.Random) -> Network | None:
        """Return the network with one size of one layer at its next value; None if none can grow."""
        at = rng.randrange(len(self.layers))
        layer = self.layers[at]
        grown = [
            attrs.evolve(
                layer, sizes=tuple((key, _next(key, value) if key == name else value) for key, value in layer.sizes)
            )
            for name, size in layer.sizes
            if _next(name, size) > size
        ]
        return Network((*self.layers[:at], rng.choice(grown), *self.layers[at + 1 :])) if grown else None

    def save(self, folder: Path, batch: int) -> Path:
        """Write the file of the network at a batch size; return its path."""
        text = self.write(batch)
        path = folder / f"net_{abs(hash(text)) % 10**8:08d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def _next(name: str, size: int) -> int:
    larger = [one for one in SIZES[name] if one > size]
    return larger[0] if larger else size


@cache
def _trace(network: Network, batch: int) -> Workload:
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(network.write(batch), names)
        with build_on_meta():
            module, inputs = names["net"]()
        return fuse(trace_module(module, inputs, key=KEY, model=network.name, batch=batch))


def is_traceable(layer: Layer) -> bool:
    """Return whether a layer alone makes a network that computes something at batches 1 and 2."""
    try:
        return all(_trace(Network((layer,)), batch).operators for batch in (1, 2))
    except (JoulemapError, RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return False


def draw_network(rng: random.Random, *, blocks: int = 4, calls: int = 3) -> Network:
    """Return a random network of some blocks and of some single operators."""
    parts = [*rng.choices(BLOCKS, k=blocks), *filter(None, map(find_call, rng.choices(list_names(), k=calls)))]
    layers = [draw_layer(rng, one) for one in parts]
    kept = tuple(one for one in layers if is_traceable(one))
    return Network(kept) if kept else draw_network(rng, blocks=blocks, calls=calls)


def draw_layer(rng: random.Random, part: Part) -> Layer:
    """Return a part with random sizes."""
    text = " ".join((part.module, *part.inputs))
    return Layer(part, tuple((name, draw_size(rng, name)) for name in SIZES if f"{{{name}}}" in text))


def draw_size(rng: random.Random, name: str) -> int:
    """Return a usual size, any size between the usual ones, or one beside a multiple of 8, 32 or 128."""
    values = SIZES[name]
    kind = rng.choice(("usual", "any", "beside")) if name in UNEVEN else "usual"
    if kind == "usual":
        return rng.choice(values)
    size = round(math.exp(rng.uniform(math.log(values[0]), math.log(values[-1]))))
    step = rng.choice((8, 32, 128))
    return max(values[0], round(size / step) * step + rng.choice((-1, 1))) if kind == "beside" else size


@cache
def list_names() -> Sequence[str]:
    """Return the ATen operators that have a formula."""
    return tuple(sorted(map(str, FORMULAS)))


def list_reached(network: Network) -> set[str]:
    """Return the names without overload of the ATen operators of a network."""
    return {one.aten.split(".")[1] for one in network.trace(1).operators if "." in one.aten}
