"""A stack: an engine that serves language models, as it was at a date, and what it adds to what the chip takes.

    pass = (what devices take ^ 2.5 + (host for a layer x layers) ^ 2.5) ^ (1 / 2.5) + host for a sequence x sequences

The host launches layers while devices compute, and now and then one waits for the other: the norm of a kernel's
compute and memory. Graphs hold passes of answers alone: one over prompts is launched layer by layer. What the host does
for each sequence, to sample, to stop, to turn a token to words, is between two passes.

Files of `data/stack` hold an engine each, with its releases in order. A release says what changed since the one before.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.catalog.digest import DATA
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.name import find_nearest, fold_name
from joulemap.domain.quantity import Quantity
from joulemap.system.errors import CatalogueError, UnknownNameError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT: Final = "vllm"
"""The engine where none is named."""

NORM: Final = 2.5
"""Of the times of devices and host, which go on side by side.

Source: as that of compute and memory; vLLM, TensorRT-LLM and DeepSpeed-MII on 1 to 4 A100 and H100
(LLM-Inference-Bench, commit 4211f5d): 8 % mean, 10 % where both are added up."""

Number = TypeVar("Number", float, "NDArray[np.float64]")
"""One, or a column of them."""


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
    fills_stages: bool
    """Whether stages of a pipeline work at once, each on a part of the sequences, not in turn on all."""
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
    checked: str = ""
    """Date of the newest measurement that it was compared with; empty for that of the release."""

    @property
    def title(self) -> str:
        """The engine with the year of its release, as headers show it: `vLLM, 2025 release`."""
        first, last = self.date[:4], (self.checked or self.date)[:4]
        return f"{self.label}, {first} release" if first == last else f"{self.label}, releases of {first} to {last}"

    @property
    def release(self) -> str:
        """What tells its errors from those of others: its name and from when on it is so."""
        return f"{self.name} {self.date}"

    def value(self, name: str, *kinds: str) -> float:
        """Return a number of the engine, that of the first kind that has one, or what it is where nothing is said."""
        keys = (*(f"{name}.{kind}" for kind in kinds), name)
        found = next((self.coefficients[key] for key in keys if key in self.coefficients), COEFFICIENTS[name])
        return found.value

    @property
    def id(self) -> str:
        """The engine with its date, as `find_engine` reads it."""
        return f"{self.name}@{self.date}"

    @property
    def words(self) -> str:
        """What operators of attention are told of their kernels: `Hopper:flash_attention_3 flash_attention_2`."""
        return " ".join(word if key == "any" else f"{key}:{word}" for key, word in self.kernels.items())

    def launch(self, layers: int, experts: int, *kinds: str) -> float:
        """Return the seconds of the host for all layers of a pass, and for all experts of these; see `COEFFICIENTS`."""
        return layers * self.value("host_layer", *kinds) + experts * self.value("host_expert")

    def add_host(self, device_s: Number, launch_s: Number, sequences: Number) -> Number:
        """Return the time of passes of so many sequences with what the host adds to that of devices."""
        together_s: Number = (device_s**NORM + launch_s**NORM) ** (1.0 / NORM)
        whole_s: Number = together_s + self.value("host_sequence") * sequences
        return whole_s

    @property
    def without_host_sequence(self) -> Stack:
        """The engine where the host looks at no token of a pass: guesses go from pass to pass on devices."""
        kept = {name: value for name, value in self.coefficients.items() if name != "host_sequence"}
        return attrs.evolve(self, coefficients=kept)

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
    "host_expert": Coefficient(value=0.0, unit="s", meaning="the host for each expert of a layer, taken one by one"),
    "host_sequence": Coefficient(value=0.0, unit="s", meaning="the host for each sequence between passes"),
    "sample_energy": Coefficient(value=0.0, unit="J", meaning="the device for each logit that a token is chosen of"),
    "request": Coefficient(value=0.0, unit="s", meaning="a request before its prompt may start"),
    "memory_rate": Coefficient(value=1.0, unit="1", meaning="share of the rate of memory that our kernels reach"),
    "compute_rate": Coefficient(value=1.0, unit="1", meaning="share of the rate of products of many rows"),
    "integer_rate": Coefficient(value=0.0, unit="1", meaning="share of the rate of int8, of products of 16 bits"),
    "memory_share": Coefficient(value=0.95, unit="1", meaning="of a device's memory, for weights, cache, activations"),
    "sequence_limit": Coefficient(value=1024.0, unit="1", meaning="sequences in work at once, at most"),
    "step_tokens": Coefficient(value=8192.0, unit="1", meaning="tokens of a pass, at most"),
}
"""Numbers that a file of a stack may state; `memory_rate.LPDDR` is that of a kind of memory, `host_layer.prompt` of
passes over prompts, `host_layer.int8` of weights so stored."""

_DATE: Final = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?")
_FLAGS: Final = (
    "mixes",
    "reserves_output",
    "waits",
    "all_logits",
    "narrows_cache",
    "fills_stages",
    "compiles",
    "widens",
    "streams",
)


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


def find_engine(text: str) -> Stack:
    """Return an engine by its name, as it is, or by `NAME@DATE`, as it was then: a year, or a year and month.

    Raises UnknownNameError for an engine that does not ship, UsageError for a date of which nothing is known.
    """
    name, at, date = text.strip().partition("@")
    found = find_stack(name)
    if not at:
        return found
    releases = _releases()[found.name]
    if not _DATE.fullmatch(date) or date < releases[0].date[: len(date)]:
        known = ", ".join(one.id for one in releases)
        raise UsageError(
            f"engine {text}: expected a date from {releases[0].date} on, as 2025 or 2025-06; known: {known}"
        )
    return find_stack(name, date)


def describe_engine(text: str) -> str:
    """Return the title of an engine that is asked for, and whether no newer release of it is known.

    Raises as `find_engine`.
    """
    found, asked = find_engine(text), text.partition("@")[2]
    if not asked:
        return f"{found.title}, the newest known"
    if len(_releases()[found.name]) == 1:
        return f"{found.title}, the only one known"
    is_later = asked[: len(found.date)] > found.date[: len(asked)]
    return f"{found.title}, the newest known by {asked}" if is_later else found.title


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
    plain: dict[str, Any] = {"runtime": "engine", "kernels": {}, "weights": "", "experts": "", "checked": ""}
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
        plain["checked"] = release.get("checked", "")
        found.append(Stack(name=name, label=raw["label"], date=release["date"], coefficients=dict(numbers), **plain))
    return found
