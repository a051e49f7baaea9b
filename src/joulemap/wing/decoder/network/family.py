"""Model families: data files that map the keys of a configuration to the blocks of a decoder.

    model_type ─► family file ─► tables of block.toml with the changes of the family ─► Decoder

A family names its `types` and its base family (`like`). `[let]` names values, `[layer]` chooses the mixer and the
network of each layer, `[decoder]` fills the rest, `[defaults]` has the keys that a nested configuration may omit, and
any other table is a block. Expressions are those of `expression`.
"""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.catalog import DATA
from joulemap.system import FileError, ModelError, read_text
from joulemap.wing.decoder.network.config import (
    Attention,
    Compressed,
    Decoder,
    Experts,
    Indexer,
    Latent,
    Layer,
    Network,
    Recurrence,
)
from joulemap.wing.decoder.network.expression import Configuration, Evaluator, ExpressionError

FOLDER: Final = DATA / "model" / "family"
"""Folder of the built-in family files."""

ROOT: Final = "block"
"""Base of all families: the blocks, and their usual keys."""

ASSUMED: Final = "assumed"
"""Family that is assumed for an unknown model_type."""

MOST_BYTES: Final = 100_000
"""Maximum bytes of a family file."""

BLOCKS: Final[Mapping[str, type]] = {
    "attention": Attention,
    "latent": Latent,
    "compressed": Compressed,
    "indexer": Indexer,
    "recurrence": Recurrence,
    "network": Network,
    "experts": Experts,
}
"""Kind of block -> its record."""

PARTS: Final[Mapping[str, type]] = {"layer": Layer, "decoder": Decoder}
"""Table of a family that is not a block -> the record that it fills."""

_HEAD: Final = ("types", "like", "source", "ignored", "layer_types", "assumes", "defaults")
_BLOCK: Final = ("block", "like")


class Family:
    """Rules that read the layer sizes of some model types."""

    def __init__(self, name: str, tables: Mapping[str, Any]) -> None:
        """Keep the tables of a family file; the tables of its base family are included."""
        self.name, self.tables = name, tables

    @property
    def let(self) -> Mapping[str, Any]:
        """Named values, from the table `[let]`."""
        return typing.cast("Mapping[str, Any]", self.tables["let"])

    @property
    def layer_types(self) -> frozenset[str]:
        """Values in a configuration's `layer_types` for which the family has blocks."""
        return frozenset(self.tables["layer_types"])

    @cached_property
    def words(self) -> frozenset[str]:
        """Words in all expressions of the family: its own names, and the keys that it reads in any configuration."""
        return frozenset(re.findall(r"\w+", str(self.tables)))

    def find_defaults(self, model_type: str) -> Mapping[str, Any]:
        """Return the keys that a nested configuration of this type may omit, with their values."""
        defaults: Mapping[str, Any] = self.tables.get("defaults", {}).get(model_type.removesuffix("_text"), {})
        return defaults

    def is_ignored(self, key: str) -> bool:
        """Return True if a key of a configuration affects no size."""
        return any(re.search(pattern, key) for pattern in self.tables["ignored"])

    def block(self, name: str) -> tuple[type, Mapping[str, Any]]:
        """Return the record and the fields of a block; KeyError for an unknown name."""
        table = self.tables[name]
        if not isinstance(table, Mapping):
            raise KeyError(name)
        own = {key: value for key, value in table.items() if key not in _BLOCK}
        if "like" not in table:
            return BLOCKS[table["block"]], own
        kind, inner = self.block(table["like"])
        return kind, {**inner, **own}


@cache
def list_types() -> Mapping[str, str]:
    """Return model_type -> name of its built-in family."""
    families = {}
    for path in sorted(FOLDER.glob("*.toml")):
        types = path.read_text(encoding="utf-8").partition("types = [")[2].partition("]")[0]
        families.update(dict.fromkeys(types.split('"')[1::2], path.stem))
    return families


def find_family(model_type: str, classes: Iterable[Any] = ()) -> Family | None:
    """Return the built-in family of a model_type, or of model classes if it is unknown; None if all are unknown."""
    types = list_types()
    name = types.get(model_type) or types.get(model_type.removesuffix("_text"))
    if name is None:
        joined = {one.replace("_", ""): family for one, family in types.items()}
        # the end of a class's name states its head, as in LlamaForCausalLM
        names = (re.sub(r"(For[A-Z]\w*|LMHeadModel|Model)$", "", str(one)).lower() for one in classes)
        name = next((joined[one] for one in names if one in joined), None)
    return load_family(name) if name else None


@cache
def load_family(name: str) -> Family:
    """Return the built-in family of this name."""
    return read_family(FOLDER / f"{name}.toml", name)


def read_family(path: Path, name: str) -> Family:
    """Return the family of a file; ModelError, with the place in the file, if it is invalid."""
    try:
        tables = tomllib.loads(read_text(path, MOST_BYTES))
    except (FileError, ValueError, RecursionError) as error:
        raise ModelError(f"{name}: the family file cannot be read: {error}") from error
    like = tables.pop("like", "" if name == ROOT else ROOT)
    if like and not (FOLDER / f"{like}.toml").is_file():
        raise ModelError(f"{name}: like is {like!r}, expected a built-in family, e.g. {ROOT} or deepseek_v3")
    merged = dict(load_family(like).tables) if like else {}
    for key, value in tables.items():
        outer = merged.get(key)
        replaces = isinstance(value, Mapping) and _BLOCK[0] in value
        merged[key] = {**outer, **value} if isinstance(outer, Mapping) and not replaces else value
    family = Family(name, merged)
    _check(family)
    return family


def _check(family: Family) -> None:
    """Raise ModelError for a table, field or block that family files do not have."""
    for name, table in family.tables.items():
        if name in _HEAD or name == "let":
            continue
        try:
            kind, fields = (PARTS[name], table) if name in PARTS else family.block(name)
        except (KeyError, TypeError) as error:
            raise ModelError(
                f"{family.name}: [{name}] is not a block; its `block` is one of {', '.join(BLOCKS)}"
            ) from error
        known = {one.name for one in attrs.fields(kind)} | ({"skip", "count"} if name == "layer" else set())
        for field in fields:
            if field not in known:
                raise ModelError(f"{family.name}: [{name}] has no {field}; it has {', '.join(sorted(known))}")


@cache
def _list_choices(kind: type) -> Mapping[str, tuple[Any, ...]]:
    """Return field -> allowed texts, for the fields of a record that have a fixed choice."""
    hints = typing.get_type_hints(kind)
    return {name: typing.get_args(hint) for name, hint in hints.items() if typing.get_origin(hint) is typing.Literal}


class Builder:
    """Decoder under construction from a family and a configuration."""

    def __init__(self, family: Family, model: str, values: Mapping[str, Any]) -> None:
        """Prepare to read `values`, the configuration of `model`."""
        self.family, self.configuration = family, Configuration(model, values)
        self._evaluator = Evaluator(self.configuration, family.let, self._find)
        self._distinct: dict[Any, Any] = {}

    def build(self) -> Decoder:
        """Return the decoder; ModelError for missing keys, invalid sizes, and unknown blocks."""
        self._check_layers()
        rest = {
            name: self._value("decoder", Decoder, name, value, 0)
            for name, value in self.family.tables["decoder"].items()
        }
        layer = self.family.tables["layer"]
        layers = []
        for index in range(self._read("layer", "count", layer["count"], 0, int)):
            if self._read("layer", "skip", layer.get("skip", False), index, bool):
                continue
            fields = {
                name: self._value("layer", Layer, name, value, index)
                for name, value in layer.items()
                if name not in ("skip", "count")
            }
            layers.append(self._keep(Layer(**fields)))
        model_type = self.configuration.text("model_type")
        return Decoder(**{"name": self.configuration.model, "model_type": model_type, "layers": tuple(layers), **rest})

    def _check_layers(self) -> None:
        """Raise ModelError for a kind of layer that the family has no block for, and for a list that is too short.

        Published lists may be longer: they describe layers of multi-token prediction too.
        """
        for key in ("layer_types", "layers_block_type"):
            kinds = self.configuration.listed(key)
            count = self._read("layer", "count", self.family.tables["layer"]["count"], 0, int) if kinds else 0
            if len(kinds) < count:
                raise ModelError(f"{self.configuration.model}: {key} has {len(kinds)} entries for {count} layers")
            for one in kinds:
                if isinstance(one, str) and one not in self.family.layer_types:
                    remedy = "; a family.toml beside the configuration can describe it"
                    raise ModelError(
                        f"{self.configuration.model}: {key} has {one[:40]!r}, which is no known block"
                        f"{'' if self.family.name == ASSUMED else remedy}"
                    )

    def _keep(self, made: Any) -> Any:
        return self._distinct.setdefault(made, made)

    def _find(self, name: str, index: int) -> Any:
        """Return the block of a table at a layer; ExpressionError for any other name."""
        try:
            kind, fields = self.family.block(name)
        except (KeyError, TypeError):
            raise ExpressionError(f"{name} is not a value, a block or a key within a function") from None
        values = {field: self._value(name, kind, field, value, index) for field, value in fields.items()}
        return self._keep(kind(**values))

    def _value(self, table: str, kind: type, field: str, value: Any, index: int) -> Any:
        """Return the value of a field at a layer."""
        if isinstance(value, list):
            return tuple(self._value(table, kind, field, one, index) for one in value)
        if not isinstance(value, str) or not value or field == "notes" or value in _list_choices(kind).get(field, ()):
            return value
        return self._read(table, field, value, index, object)

    def _read(self, table: str, field: str, value: Any, index: int, kind: type) -> Any:
        try:
            number = self._evaluator.run(value, index) if isinstance(value, str) else value
        except ExpressionError as error:
            raise ModelError(f"{self.family.name}: [{table}] {field}: {error}") from error
        if not isinstance(number, kind):
            raise ModelError(f"{self.family.name}: [{table}] {field} is {str(number)[:40]!r}, expected a number")
        return number
