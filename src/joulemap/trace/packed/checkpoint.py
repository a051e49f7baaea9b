"""Storage of weights according to a checkpoint's configuration: formats and excluded modules.

A reader for each method takes the `quantization_config` of a `config.json`. If the configuration names no exceptions,
the library's exceptions apply: the output embeddings, tied modules, and the last of the parameters. Source:
transformers, `quantizers/` and `utils/quantization_config.py`; compressed-tensors, `utils/match.py`; optimum,
`gptq/quantizer.py`; vllm, `is_layer_skipped_awq` and `is_layer_skipped_bnb`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, Literal

import attrs

from joulemap.physics.record.weight import GROUP_SIZE
from joulemap.system.errors import ModelError
from joulemap.trace.packed.format import PackedFormat

Kind = Literal["linear", "conv1d", "experts"]
"""Kind of weight matrix: of a linear layer, of a linear layer with a transposed weight (GPT-2), or of several experts.
"""

Rule = Literal["path", "exact", "component", "substring"]
"""Rule for matching an excluded name with a module's path.

`path` matches its beginning, its end or as a regular expression. `component` (bitsandbytes) also matches any name
between its dots, `substring` (AWQ) any part of it. `exact` is the rule of compressed-tensors.
"""

ANY: Final = ("Linear",)
"""Targets that mean all linear layers, including experts."""

LONGEST_EXPRESSION: Final = 1_000
"""Maximum characters of a regular expression in a configuration."""

_ENDLESS: Final = re.compile(r"[+*}]\)[+*{]|\([^()]*\|[^()]*\)[+*{]")
"""Pattern of a repeated group that contains repetitions or alternatives; matching it takes exponential time."""


@attrs.frozen(kw_only=True)
class Matrix:
    """Weight matrix of a model that a checkpoint may store packed."""

    names: tuple[str, ...]
    """Names that checkpoints use for its module."""
    kind: Kind = "linear"
    classes: tuple[str, ...] = ANY
    """Names of its module's class and base classes."""
    is_in_blocks: bool = True
    """True if the matrix is in one of the repeated layers."""


@attrs.frozen(kw_only=True)
class Group:
    """Matrices of a checkpoint that are stored in one format."""

    stored: PackedFormat
    targets: tuple[str, ...] = ANY
    """Module names, class names, or regular expressions with the prefix `re:` that select the matrices."""
    kinds: frozenset[Kind] = frozenset({"linear", "conv1d", "experts"})


@attrs.frozen(kw_only=True)
class Checkpoint:
    """Formats in which a quantization method stores a model's weights, and the matrices that it excludes."""

    method: str
    groups: tuple[Group, ...]
    skipped: tuple[str, ...] = ()
    """Names that the configuration excludes from conversion."""
    has_default_skips: bool = False
    """True if the library's default exceptions are excluded too."""
    rule: Rule = "path"
    kinds: frozenset[Kind] = frozenset({"linear", "experts"})
    is_in_blocks: bool = False
    """True if only matrices in the repeated layers are converted, except those in `outside`."""
    outside: tuple[str, ...] = ()
    """Names outside the repeated layers that are converted in spite of `is_in_blocks`."""
    only: tuple[str, ...] = ()
    """Name suffixes of the matrices that are converted; empty for all."""
    overrides: tuple[tuple[str, PackedFormat | None], ...] = ()
    """(regular expression, format) of matrices that differ from their group; format None means not converted."""
    named: Mapping[str, PackedFormat | None] = attrs.field(factory=dict)
    """Module name -> format, which takes precedence over groups; None if the module is not converted."""
    remark: str = ""
    """Remark on simplified counts, which `describe` appends to the format."""

    def find(self, matrix: Matrix, defaults: Collection[str]) -> PackedFormat | None:
        """Return the format of a weight matrix, or None if it is not converted. `defaults` are the library's
        exceptions.
        """
        names = matrix.names
        if matrix.kind not in self.kinds or self._is_skipped(matrix, defaults):
            return None
        if self.only and not any(name.endswith(self.only) for name in names):
            return None
        if own := next((name for name in names if name in self.named), None):
            return self.named[own]
        for pattern, stored in self.overrides:
            if any(_matches(pattern, name) for name in names):
                return stored
        for group in self.groups:
            is_meant = self.rule != "exact" or _find_targets(group.targets).match(matrix)
            if is_meant and matrix.kind in group.kinds:
                return group.stored
        return None

    def _is_skipped(self, matrix: Matrix, defaults: Collection[str]) -> bool:
        if self.is_in_blocks and not matrix.is_in_blocks and not set(matrix.names) & set(self.outside):
            return True
        if self.rule == "exact":
            return _find_targets(self.skipped).match(matrix)
        own = self.skipped
        if self.rule == "substring":
            if any(key in name for key in own for name in matrix.names):
                return True
            own = ()
        if self.rule == "component" and any(not set(own).isdisjoint(name.split(".")) for name in matrix.names):
            return True
        skipped = (*own, *(defaults if self.has_default_skips else ()))
        ends, expression = _compile_names(skipped)
        return any(name.endswith(ends) or bool(expression and expression.match(name)) for name in matrix.names)

    def describe(self) -> str:
        """Return the method and its formats in words: `gptq, 4 bits in groups of 128`."""
        formats = dict.fromkeys(group.stored for group in self.groups)
        names = " and ".join(stored.describe() for stored in formats)
        activations = dict.fromkeys(stored.activations for stored in formats if stored.activations)
        narrow = "".join(
            f", activations of {name} in their products (--precision {name} has these at its rate)"
            for name in activations
        )
        return f"{self.method}, {names}{narrow}{self.remark}"


@cache
def _compile(pattern: str) -> re.Pattern[str] | None:
    """Compile a regular expression of a configuration; None if it is invalid or may take exponential time."""
    if len(pattern) > LONGEST_EXPRESSION or _ENDLESS.search(pattern):
        return None
    with contextlib.suppress(re.error, OverflowError, RecursionError):
        return re.compile(pattern)
    return None


def _matches(pattern: str, name: str) -> bool:
    found = _compile(pattern)
    return pattern == name if found is None else found.match(name) is not None


@attrs.frozen
class _Targets:
    """Targets of compressed-tensors, split into plain names and regular expressions."""

    plain: frozenset[str]
    expressions: tuple[str, ...]

    def match(self, matrix: Matrix) -> bool:
        """Return whether a matrix or its class is one of the targets."""
        if not self.plain.isdisjoint(matrix.names) or not self.plain.isdisjoint(matrix.classes):
            return True
        return any(_matches(one, name) for one in self.expressions for name in matrix.names)


@lru_cache(maxsize=64)
def _find_targets(targets: tuple[str, ...]) -> _Targets:
    plain = frozenset(one for one in targets if not one.startswith("re:"))
    return _Targets(plain, tuple(one.removeprefix("re:") for one in targets if one not in plain))


def _end_path(key: str) -> str:
    """Return a key as a regular expression in which a final dot is literal."""
    return rf"{key[:-1]}\." if key.endswith(".") and not key.endswith("\\.") else key


@lru_cache(maxsize=64)
def _compile_names(keys: tuple[str, ...]) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Return (suffixes, expression) that match names of modules not converted; the expression matches from the start to
    a dot or the end.

    All keys form one expression, because a list may name every module of every layer.
    """
    ends = tuple(key for key in keys if key)
    known = [key for key in ends if _compile(key) is not None]
    for several in ([_end_path(key) for key in known], [re.escape(key) for key in known]):
        with contextlib.suppress(re.error):  # flags and repeated group names are invalid in a joined one
            joined = "|".join(f"(?:{key})" for key in several)
            return ends, re.compile(rf"(?:{joined})(?:(?<=\.)|(?=\.|$))") if known else None
    return ends, None


@attrs.frozen
class Settings:
    """Settings in the `quantization_config` of a file."""

    values: Mapping[str, Any]
    source: str
    """Name of the file in error messages."""

    def read_number(self, name: str, default: int | None = None) -> int:
        """Return an integer setting. Raise ModelError if it is absent without a default, or is no integer."""
        value = self.values.get(name)
        value = default if value is None else value
        if value is None:
            raise ModelError(f"{self.source}: the quantization_config has no {name}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise ModelError(f"{self.source}: {name} of the quantization_config is {value!r}, expected a whole number")
        return value

    def read_bits(self, name: str = "bits", default: int | None = None) -> int:
        """Return the bits of a code. Raise ModelError unless they are 1 to 8."""
        bits = self.read_number(name, default)
        if not 1 <= bits <= 8:
            raise ModelError(f"{self.source}: {name} of the quantization_config is {bits}, expected 1 to 8")
        return bits

    def read_group(self, name: str = "group_size", default: int = GROUP_SIZE) -> int:
        """Return the number of weights in a row that share a scale; 0 for the whole row."""
        size = self.read_number(name, default)
        if size == 0 or size < -1:
            raise ModelError(f"{self.source}: {name} of the quantization_config is {size}, expected 1 or more, or -1")
        return max(size, 0)

    def read_names(self, *names: str) -> tuple[str, ...] | None:
        """Return the list of the first of these settings that exists, or None. Raise ModelError if it is not a list of
        names.
        """
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
                    raise ModelError(f"{self.source}: {name} of the quantization_config is not a list of names")
                return tuple(value)
        return None

    def read_block(self, block: Any) -> tuple[int, int]:
        """Return (rows, columns) of a block that shares a scale; (0, 0) for None. Raise ModelError if the block is not
        two sizes.
        """
        if block is None:
            return 0, 0
        is_pair = isinstance(block, list | tuple) and len(block) == 2 and all(type(one) is int for one in block)
        if not is_pair or min(block) < 1:
            raise ModelError(f"{self.source}: the block of the quantization_config is {block!r}, expected two sizes")
        return block[0], block[1]

    def read_part(self, name: str) -> Mapping[str, Any]:
        """Return a nested object of settings; empty if there is none."""
        value = self.values.get(name)
        return value if isinstance(value, Mapping) else {}

    def read_skips(self, *names: str) -> tuple[tuple[str, ...], bool]:
        """Return (names that are not converted, whether to apply the library's own exceptions)."""
        found = self.read_names(*names)
        return found or (), found is None

    def narrow(self, values: Mapping[str, Any]) -> Settings:
        """Return `values`, a nested part of the configuration, as settings of the same source."""
        return Settings(values, self.source)


def split_lists(values: Sequence[Any]) -> Iterator[str]:
    """Yield the names in a list, also in nested lists."""
    for value in values:
        yield from split_lists(value) if isinstance(value, list | tuple) else (str(value),)
