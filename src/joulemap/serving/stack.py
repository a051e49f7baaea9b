"""A stack: an engine that serves language models, as it was at a date, and what it adds to what the chip takes.

    pass = (what devices take ^ 2.5 + (host for a layer x layers) ^ 2.5) ^ (1 / 2.5) + host for a sequence x sequences

The host launches layers while devices compute, and now and then one waits for the other: the norm of a kernel's
compute and memory. What it does for each sequence, to sample, to stop, to turn a token to words, is between two passes.

Files of `data/stack` hold an engine each, with its releases in order. A release says what changed since the one before.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.name import find_nearest, fold_name
from joulemap.domain.quantity import Quantity
from joulemap.system.errors import CatalogueError, UnknownNameError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

DEFAULT: Final = "vllm"
"""The engine where none is named."""


@frozen(kw_only=True)
class Stack:
    """An engine at a date."""

    name: str
    label: str
    """As people write it."""
    date: str
    """From which on it is so: `2025-01`."""
    runtime: str = attrs.field(validator=attrs.validators.in_(RUNTIMES))
    """How it launches a pass."""
    mixes: bool
    """Whether pieces of prompts and tokens of answers share a pass; else prompts have passes of their own, first."""
    reserves_output: bool
    """Whether the room of a whole answer is set aside before it starts."""
    waits: bool
    """Whether a batch is a whole: the next starts when all of the one before has ended."""
    all_logits: bool
    """Whether a pass over prompts makes the logits of all of their tokens, not of the last alone."""
    narrows_cache: bool
    """Whether keys and values are stored at the precision of products where nothing is said, not at 16 bits."""
    compiles: bool
    """Whether passes are compiled for the longest that a sequence may become, and attend over all of that."""
    widens: bool
    """Whether weights that are stored narrower are made wide ahead where products are of floating point."""
    streams: bool
    """Whether products of few rows are by kernels that stream weights past them and cut no tiles."""
    kernels: Mapping[str, str]
    """Word of a microarchitecture, or `any` -> family of the kernels of attention, as single operators name it."""
    weights: str
    """How weights are stored where a measurement says nothing; empty for the precision of products."""
    experts: str
    """Family of the kernels of experts, as single operators name it; empty for that of how weights are stored."""
    coefficients: Mapping[str, Quantity]
    """Name -> number; the names are those of `COEFFICIENTS`."""

    def value(self, name: str, kind: str = "") -> float:
        """Return a number of the engine, that of a kind first, or what it is where nothing is said."""
        found = self.coefficients.get(f"{name}.{kind}") or self.coefficients.get(name)
        return COEFFICIENTS[name].value if found is None else found.value

    def attention(self, hardware: Hardware) -> str:
        """Return the family of the kernels of attention on a hardware; empty for what our kernels do."""
        word = hardware.microarchitecture.partition(" ")[0]
        return self.kernels.get(word, self.kernels.get("any", "")) if hardware.architecture == "gpu" else ""

    @property
    def memory_share(self) -> float:
        """Of the memory of a device, what weights, cache and activations may take."""
        return self.value("memory_share")

    @property
    def sequence_limit(self) -> int:
        """Most sequences in work at once."""
        return round(self.value("sequence_limit"))

    @property
    def step_tokens(self) -> int:
        """Most tokens of a pass."""
        return round(self.value("step_tokens"))


@frozen(kw_only=True)
class Coefficient:
    """What a number of a stack is, and what it is where nothing is said."""

    value: float
    unit: str
    meaning: str


COEFFICIENTS: Final[Mapping[str, Coefficient]] = {
    "host_layer": Coefficient(value=0.0, unit="s", meaning="the host for a layer of a pass, beside devices"),
    "host_sequence": Coefficient(value=0.0, unit="s", meaning="the host for each sequence between passes"),
    "request": Coefficient(value=0.0, unit="s", meaning="a request before its prompt may start"),
    "memory_rate": Coefficient(value=1.0, unit="1", meaning="share of the rate of memory that our kernels reach"),
    "compute_rate": Coefficient(value=1.0, unit="1", meaning="share of the rate of products of many rows"),
    "memory_share": Coefficient(value=0.95, unit="1", meaning="of a device's memory, for weights, cache, activations"),
    "sequence_limit": Coefficient(value=1024.0, unit="1", meaning="sequences in work at once, at most"),
    "step_tokens": Coefficient(value=8192.0, unit="1", meaning="tokens of a pass, at most"),
}
"""Numbers that a file of a stack may state; `memory_rate.LPDDR` is that of a kind of memory."""

_FLAGS: Final = ("mixes", "reserves_output", "waits", "all_logits", "narrows_cache", "compiles", "widens", "streams")


def stack_names() -> tuple[str, ...]:
    """Return the engines that ship, in the order of the alphabet."""
    return tuple(sorted(_releases()))


def find_stack(name: str = "", date: str = "") -> Stack:
    """Return an engine as it was at a date, or as it is; UnknownNameError for one that does not ship.

    Before its first release that is known it is as it was at that.
    """
    asked = _names().get(fold_name(name or DEFAULT))
    if asked is None:
        near = find_nearest(name, [(one,) for one in stack_names()])
        raise UnknownNameError("engine", name, stack_names(), near=near)
    releases = _releases()[asked]
    before = [one for one in releases if not date or one.date <= date]
    return before[-1] if before else releases[0]


@cache
def _names() -> dict[str, str]:
    """Return how each engine may be written -> its name."""
    return {fold_name(alias): name for name, raw in _files().items() for alias in (name, *raw.get("aliases", ()))}


@cache
def _files() -> dict[str, dict[str, Any]]:
    paths = sorted((DATA / "stack").glob("*.toml"))
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in paths}


@cache
def _releases() -> dict[str, tuple[Stack, ...]]:
    return {name: tuple(_read(name, raw)) for name, raw in _files().items()}


def _read(name: str, raw: dict[str, Any]) -> list[Stack]:
    """Return the releases of a file; CatalogueError for what it may not say."""
    found: list[Stack] = []
    plain: dict[str, Any] = {"runtime": "engine", "kernels": {}, "weights": "", "experts": ""}
    plain |= dict.fromkeys(_FLAGS, False)
    numbers: dict[str, Quantity] = {}
    for release in raw["releases"]:
        for key, value in release.items():
            if key == "date":
                continue
            if key in plain:
                plain[key] = value
            elif (one := COEFFICIENTS.get(key.partition(".")[0])) is not None and value.get("unit") == one.unit:
                numbers[key] = Quantity(**value)
            else:
                raise CatalogueError(f"{name}.toml: {key} is no number of a stack in its unit")
        found.append(Stack(name=name, label=raw["label"], date=release["date"], coefficients=dict(numbers), **plain))
    return found
