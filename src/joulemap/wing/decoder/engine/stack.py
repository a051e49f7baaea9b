"""Serving stacks: an inference engine for language models at a date, and the time that it adds to the chip's.

    pass = ‖factor x kernels + device per layer x layers, host per layer x layers‖ + each x sequences
    each = host per sequence + state x recurrent layers

`joulemap.physics.overhead` has the norm. Graphs cover decode passes only, so a prefill pass is launched layer by layer.
Host work per sequence (sampling, stopping, detokenizing) takes place between passes.

Each file of `data/stack` describes one engine with its releases in order. A release lists the changes since the
previous one. The releases of an engine that is `like` another one begin with those of the other before its own first
release.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from joulemap.domain.operator.name import READ_ALL
from joulemap.physics import DEPLOYED_RUNTIME, RUNTIME_NAMES, Hardware, Precision, Quantity
from joulemap.physics.record.quantity import COUNTS, read_evidence
from joulemap.system import CatalogueError, UnknownNameError, UsageError, find_nearest, fold_name, frozen
from joulemap.wing.decoder.engine import ENGINE

RELEASES: Final = Path(__file__).parent / "data" / "stack"
"""Folder of the engines' files."""

NUMBERS: Final = RELEASES.with_name("coefficient.toml")
"""File with the meaning and the default of each number that an engine's file may state."""

FP4: Final = "fp4"

NARROW: Final[tuple[Precision, ...]] = ("fp8", "fp4")
"""Precisions at which GEMMs multiply weights of the same precision."""

PACKED: Final = ("machete", "marlin")
"""Kernels that unpack integer weights in registers."""

BACKENDS: Final[Mapping[str, str]] = {
    "cuda": "CUDA", "metal": "Metal", "rocm": "ROCm", "sycl": "SYCL", "vulkan": "Vulkan",
}  # fmt: skip
"""Backend of an engine with several -> its name in answers."""


@frozen(kw_only=True)
class Stack:
    """Release of an inference engine for language models."""

    name: str
    label: str
    """Name of the engine as answers show it."""
    date: str
    """First date of the release: `2025-01`."""
    runtime: str = attrs.field(validator=attrs.validators.in_(RUNTIME_NAMES))
    """Runtime that describes how the engine launches a pass."""
    mixes: bool
    """True if prefill chunks and decode tokens share a pass; False if prefill has its own passes, first."""
    reserves_output: bool
    """True if cache for the whole answer is reserved before a request starts."""
    waits: bool
    """True for static batching: the next batch starts when all sequences of the previous one have ended."""
    all_logits: bool
    """True if a prefill pass computes logits of all its tokens instead of the last token only."""
    narrows_cache: bool
    """True if keys and values default to fp8 instead of 16 bits where GEMMs multiply narrower operands."""
    fills_stages: bool
    """True if pipeline stages work at once on different sequences; False if they take turns on all sequences."""
    divides_layers: bool
    """True if devices without further options are pipeline stages, which hold different layers and overlap on
    `chained_passes` of a prompt; False if each holds a part of every layer.
    """
    shares_step: bool
    """True if data-parallel groups share the maximum tokens of a pass; False if each has as many."""
    compiles_all: bool
    """True if the engine runs whole language models, so that the compiler of a chip's other networks limits nothing."""
    compiles: bool
    """True if passes are compiled for the longest possible sequence and attend over all of it."""
    widens: bool
    """True if quantized weights are dequantized ahead of floating-point GEMMs."""
    streams: bool
    """True if GEMMs with few rows use kernels that stream the weights without tiles."""
    rescales: bool
    """True if int8 weights are used only in int8 GEMMs, whose outputs are rescaled to 16 bits for all other operators.
    """
    kernels: Mapping[str, str]
    """Microarchitecture or `any` -> family of attention kernels, as single operators name it."""
    packed: Mapping[str, str]
    """Microarchitecture -> kernel that unpacks integer weights in registers, one of `PACKED`."""
    products: Mapping[str, Mapping[str, str]]
    """Weight format of 4 bits -> microarchitecture -> precision at which GEMMs multiply it; 16 bits on all others."""
    methods: tuple[str, ...]
    """Quantization methods whose checkpoints the engine runs; empty if unknown."""
    weights: str
    """Default storage format of weights; empty for the precision of GEMMs."""
    reads_all: tuple[str, ...]
    """Weight formats of experts of which an expert-parallel device reads all that it holds, not only those chosen."""
    experts: str
    """Family of expert kernels, as single operators name it; empty for the default of the weight format."""
    coefficients: Mapping[str, Quantity]
    """Name, as in `NUMBERS` -> number that the engine states."""
    checked: str = ""
    """Date of the newest measurement that the release was compared with; empty for the release date."""
    groups: int = 1
    """Groups of devices, each of which computes passes of up to the maximum tokens and sequences at once."""
    backend: str = ""
    """Backend that runs the kernels, one of the engine's `backends`; empty if it is not named."""

    @property
    def title(self) -> str:
        """Engine with the year of its release, as in headers: `vLLM, 2025 release`."""
        first, last = self.date[:4], (self.checked or self.date)[:4]
        label = f"{self.label} on {BACKENDS[self.backend]}" if self.backend else self.label
        return f"{label}, {first} release" if first == last else f"{label}, releases of {first} to {last}"

    @property
    def named(self) -> str:
        """Name of the engine, with its backend if one is named: `llamacpp@vulkan`."""
        return f"{self.name}@{self.backend}" if self.backend else self.name

    @property
    def release(self) -> str:
        """Name, backend and first date of the release, by which prediction errors are grouped."""
        return f"{self.named} {self.date}"

    def divide(self, devices: int, stages: int) -> tuple[int, int]:
        """Return the tensor-parallel devices of a stage and the pipeline stages of `stages` times `devices` devices."""
        return (1, devices * stages) if self.divides_layers else (devices, stages)

    @property
    def vendors(self) -> tuple[str, ...]:
        """Vendors whose chips alone it runs on; empty if there is no such limit."""
        return tuple(_files()[self.name].get("vendors", ()))

    @property
    def chips(self) -> tuple[str, ...]:
        """Ids of the only chips of its vendors that it runs on; empty if there is no such limit."""
        return tuple(_files()[self.name].get("chips", ()))

    def value(self, name: str, *kinds: str) -> float:
        """Return the coefficient `name` of the engine as `find` does, or its default."""
        return (self.find(name, *kinds) or load_coefficients()[name]).value

    def find(self, name: str, *kinds: str) -> Quantity | None:
        """Return the coefficient `name` for the first of `kinds` that the engine states, else its general one.

        Return None if the engine states neither.
        """
        keys = (*(f"{name}.{kind}" for kind in kinds), name)
        return next((self.coefficients[key] for key in keys if key in self.coefficients), None)

    @property
    def id(self) -> str:
        """Engine with its date and backend, as `find_engine` reads it: `llamacpp@2026-vulkan`."""
        return f"{self.name}@{self.date}" + (f"-{self.backend}" if self.backend else "")

    @property
    def words(self) -> str:
        """Attention kernels as an argument of operators, such as `Hopper:flash_attention_3 flash_attention_2`."""
        return " ".join(word if key == "any" else f"{key}:{word}" for key, word in self.kernels.items())

    def choose_routing(self, expert_devices: int, weights: str) -> str:
        """Return the routing of passes whose devices read all experts that they hold; empty for those chosen alone."""
        return READ_ALL if expert_devices > 1 and weights.partition("_")[0] in self.reads_all else ""

    def choose_product(self, weights: str, microarchitecture: str, stated: str = FP4) -> str:
        """Return the precision at which GEMMs multiply FP4 weights of a format on a chip; empty for 16 bits.

        A format that is not named, as fp4, is that for which the engine has kernels on the chip. `stated` is the
        precision of activations that the checkpoint states. Weights for which it states none are not multiplied at 4
        bits.
        """
        if stated not in ("", FP4):
            return stated
        tables = [self.products[weights]] if weights in self.products else self.products.values()
        words = microarchitecture.split()
        names = ("".join(words), *words[::-1])
        found = next((table[one] for table in tables for one in names if one in table), "")
        return "" if found == FP4 and not stated else found

    @property
    def without_host_sequence(self) -> Stack:
        """Copy of the engine without host time per sequence, for speculative decoding that stays on the devices."""
        kept = {name: value for name, value in self.coefficients.items() if name != "host_sequence"}
        return attrs.evolve(self, coefficients=kept)

    @property
    def cache_share(self) -> float:
        """Fraction of the memory left by weights and activations that the KV cache takes."""
        return self.value("cache_share")

    def limit(self, name: Literal["step_tokens", "sequence_limit"], chip: Hardware) -> int:
        """Return the maximum tokens of a pass, or sequences in progress, on a chip.

        The engine's number may be that of a word of the chip's id, of its class, or of boards with less memory:
        `step_tokens.a100`, `.cpu`, `.below_70GB`.
        """
        sizes = (re.fullmatch(rf"{name}\.(below_(\d+)GB)", key) for key in self.coefficients)
        smaller = sorted((int(size[2]), size[1]) for size in sizes if size)
        memory = [word for size, word in smaller if chip.memory_capacity.value < size * 1e9]
        groups = 1 if self.shares_step and name == "step_tokens" else self.groups
        return round(self.value(name, *chip.id.split("_"), chip.architecture, *memory)) * groups


@frozen(kw_only=True)
class Coefficient:
    """Meaning and default value of a number in a stack file."""

    value: float
    unit: str
    meaning: str


@cache
def load_coefficients() -> Mapping[str, Coefficient]:
    """Return name -> meaning and default of each number that a stack file may state."""
    tables = tomllib.loads(NUMBERS.read_text(encoding="utf-8"))
    return {name: Coefficient(**table) for name, table in tables.items()}


_VARIANT: Final = re.compile(r"(?P<date>\d{4}(-(0[1-9]|1[0-2]))?)?(-(?=[a-z])|\b)(?P<backend>[a-z]+)?")
"""Pattern of what follows an engine's name: its date, its backend, or both: `2025-06`, `vulkan`, `2026-vulkan`."""

_FLAGS: Final = tuple(name for name, kind in Stack.__annotations__.items() if kind == "bool")


def stack_names() -> tuple[str, ...]:
    """Return the names of the built-in engines in alphabetical order."""
    return tuple(sorted(_releases()))


def find_stack(name: str = "", date: str = "", microarchitecture: str = "") -> Stack:
    """Return the newest release of an engine by `date`, or the newest one without a date.

    A backend may follow the name: `llamacpp@vulkan`. A date before the first known release gives that release. An
    engine's port to a microarchitecture may be another engine's code (`ports` in its file). Raises UnknownNameError for
    an unknown engine or backend.
    """
    name, _, backend = name.strip().partition("@")
    asked = _names().get(fold_name(name or ENGINE))
    if asked is None:
        near = find_nearest(name, [(one,) for one in stack_names()])
        raise UnknownNameError("engine", name, stack_names(), near=near)
    ports: Mapping[str, str] = _files()[asked].get("ports", {})
    asked = next((ports[word] for word in microarchitecture.split() if word in ports), asked)
    releases = _releases()[asked]
    release = next((one for one in reversed(releases) if not date or one.date <= date), releases[0])
    if not backend:
        return release
    known = _files()[asked].get("backends", ())
    if backend not in known:
        raise UnknownNameError(f"backend of {release.label}", backend, known)
    return attrs.evolve(release, backend=backend)


def find_engine(text: str) -> Stack:
    """Return an engine by `NAME` (newest release) or `NAME@DATE`, with a year or a year and month; `ENGINE` if empty.

    A backend may follow, as in `llamacpp@vulkan` or `llamacpp@2026-vulkan`. Raises UnknownNameError for an unknown
    engine or backend, UsageError for a date before its first known release.
    """
    name, at, rest = text.strip().partition("@")
    release = find_stack(name)
    if not at:
        return release
    releases = _releases()[release.name]
    told = _VARIANT.fullmatch(rest.lower())
    date, backend = (told["date"] or "", told["backend"] or "") if told else ("", "")
    if not (date or backend) or (date and date < releases[0].date[: len(date)]):
        known = ", ".join(one.id for one in releases)
        raise UsageError(
            f"engine {text}: expected a date from {releases[0].date} on, as 2025 or 2025-06; known: {known}"
        )
    return find_stack(f"{name}@{backend}" if backend else name, date)


def describe_engine(text: str) -> str:
    """Return the title of a requested engine, and whether it is the newest known release.

    Raises like `find_engine`.
    """
    release, told = find_engine(text), _VARIANT.fullmatch(text.partition("@")[2])
    asked = told["date"] if told else ""
    note = _files()[release.name].get("notes", {}).get(fold_name(text.partition("@")[0]), "")
    if note:
        return f"{release.title} ({note})"
    if not asked:
        return f"{release.title} (latest modelled)"
    if len(_releases()[release.name]) == 1:
        return f"{release.title} (the only one modelled)"
    is_later = asked[: len(release.date)] > release.date[: len(asked)]
    return f"{release.title} (latest modelled by {asked})" if is_later else release.title


def list_engine_files() -> tuple[Path, ...]:
    """Return the files that describe engines, and the one that describes their numbers."""
    return *RELEASES.glob("*.toml"), NUMBERS


@cache
def _names() -> dict[str, str]:
    """Return alias -> name of each engine."""
    return {fold_name(alias): name for name, raw in _files().items() for alias in (name, *raw.get("aliases", ()))}


@cache
def _files() -> dict[str, dict[str, Any]]:
    paths = sorted(RELEASES.glob("*.toml"))
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in paths}


@cache
def _releases() -> dict[str, tuple[Stack, ...]]:
    return {name: tuple(read_releases(name, raw)) for name, raw in _files().items()}


def read_releases(name: str, raw: dict[str, Any]) -> list[Stack]:
    """Return the releases of a file; CatalogueError for an invalid entry."""
    releases: list[Stack] = []
    plain: dict[str, Any] = {"runtime": DEPLOYED_RUNTIME, "kernels": {}, "packed": {}, "products": {}}
    plain |= {"methods": (), "reads_all": ()}
    plain |= dict.fromkeys(("weights", "experts", "checked"), "")
    plain |= dict.fromkeys(_FLAGS, False)
    numbers: dict[str, Quantity] = {}
    first = raw["releases"][0]["date"]
    parent = [one for one in _files()[raw["like"]]["releases"] if one["date"] <= first] if "like" in raw else []
    for release in (*parent, *raw["releases"]):
        for key, value in release.items():
            if key == "date":
                continue
            if key == "packed" and (unknown := set(value.values()) - set(PACKED)):
                raise CatalogueError(
                    f"{name}.toml: packed: {min(unknown)!r} is not a kernel; known: {', '.join(PACKED)}"
                )
            if key in plain:
                plain[key] = tuple(value) if isinstance(value, list) else value
                continue
            if (one := load_coefficients().get(key.partition(".")[0])) is None:
                known = ", ".join(load_coefficients())
                raise CatalogueError(f"{name}.toml: {key} is not a coefficient; known: {known}")
            if value.get("unit") != one.unit:
                raise CatalogueError(f"{name}.toml: {key}: unit {value.get('unit')!r}, expected {one.unit!r}")
            numbers[key] = _read_number(f"{name}.toml: {key}", value)
        plain["checked"] = release.get("checked", "")
        releases.append(Stack(name=name, label=raw["label"], date=release["date"], coefficients=dict(numbers), **plain))
    return releases


def _read_number(where: str, entry: Mapping[str, Any]) -> Quantity:
    """Return a number of a file with its evidence; CatalogueError, which begins with `where`, for an invalid one."""
    try:
        evidence = read_evidence(entry)
        return Quantity(**{key: value for key, value in entry.items() if key not in COUNTS}, evidence=evidence)
    except (ValueError, TypeError) as error:
        raise CatalogueError(f"{where}: {error.args[0]}") from error


CONTEXT: Final = 5e8
"""Bytes of device memory that a GPU process uses before any data: kernel code, stacks, driver state.

Source: recalled; nvidia-smi shows 0.4 to 0.6 GB for an empty PyTorch process.
"""

EXCHANGE: Final = 5e8
"""Bytes of additional device memory if devices exchange data: NCCL channels and all-reduce buffers.

Source: Llama 2 70B on four 40 GB A100, which leave hardly any room for a KV cache (LLM-Inference-Bench, TensorRT-LLM).
"""


def find_overhead(hardware: Hardware, *, exchanges: bool) -> float:
    """Return the bytes of a device that a process takes before any data; more if it exchanges data with others."""
    return (CONTEXT + EXCHANGE * exchanges) * (hardware.architecture == "gpu")
