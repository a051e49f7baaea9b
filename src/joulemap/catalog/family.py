"""Families: chips that share a description, with one line of a table each.

`data/family/NAME.toml` is a hardware file without the numbers that differ; it states which keys each column of
`NAME.csv` fills, and in `documents` which cells of which members a document states. A member is resolved when it is
named, like a separate hardware file; questions about all hardware omit it. Members of a family with `listed` belong to
the catalogue like any other chip.

    peak = units x operations per clock x clock            if a peak states no rate
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.catalog.digest import DATA, catalogue_digest
from joulemap.system.cache import cache_folder, read_cached, write_cached
from joulemap.system.errors import CatalogueError
from joulemap.system.name import fold_name, split_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.physics.record.hardware import Hardware

FOLDER: Final = DATA / "family"

PARTS: Final = FOLDER / "part"
"""Folder of fragments that several families include."""

TEXTS: Final = frozenset(
    [
        "name",
        "vendor",
        "microarchitecture",
        "unit_name",
        "memory_type",
        "needs_host",
        "projection",
        "unavailable",
        "sold_in",
    ]
)
"""Columns whose cells are texts in the hardware file."""

LISTS: Final = frozenset(("aliases", "deployment", "doubts"))
"""Columns whose cells are lists in the hardware file; `;` separates the items."""

OWN_KEYS: Final = frozenset(("listed", "parts", "columns", "documents", "variants"))
"""Keys of a family's file that no hardware file has."""

MOST_WORDS: Final = 12
"""Words of the longest part of a text that is looked up as one name; printed names of chips have up to ten."""

_IN_USE: Final[set[str]] = set()
"""Ids of the members that this process has resolved."""

PEAK_RULE: Final = "units x operations per clock x clock"
"""Source of a peak that is computed because no rate is stated."""


@frozen(kw_only=True)
class Member:
    """Names of a family's member, by which it is found before it is resolved.

    A name may include or omit the words `vendor` and `architecture`.
    """

    id: str
    family: str
    line: int
    name: str
    vendor: str
    architecture: str
    aliases: Sequence[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Id, aliases, and display name with and without its bracketed part."""
        return self.id, *self.aliases, self.name, self.name.partition("(")[0].strip()

    @property
    def needless_words(self) -> frozenset[str]:
        """Words that a name may omit, because they only state vendor and class."""
        from joulemap.domain.catalogue import list_needless

        return list_needless(self.vendor, self.architecture)


@cache
def list_members() -> Mapping[str, Member]:
    """Return every member of a built-in family by id, without resolving it."""
    kept, digest = cache_folder() / "families.json", catalogue_digest()
    cached = read_cached(kept)
    if cached.get("digest") != digest:
        cached = {"digest": digest, "members": [attrs.asdict(one) for one in _read_members()]}
        write_cached(kept, cached)
    return {one["id"]: Member(**one) for one in cached["members"]}


def load_listed() -> tuple[Hardware, ...]:
    """Return the members of families that belong to the catalogue; questions about all hardware include them."""
    paths = (FOLDER / f"{name}.toml" for name in list_families())
    return tuple(one for path in paths if _read_shared(path).get("listed") for one in load_family(path))


def list_families() -> tuple[str, ...]:
    """Return the names of the built-in families."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def find_family(name: str) -> tuple[Hardware, ...]:
    """Return the members of a built-in family by its name."""
    return load_family(FOLDER / f"{name}.toml")


def is_family(name: str) -> bool:
    """Return whether a name is that of a built-in family, and so stands for all its members."""
    return fold_name(name) in _fold_families()


@cache
def _fold_families() -> frozenset[str]:
    return frozenset(fold_name(one.family) for one in list_members().values())


def _read_members() -> Iterator[Member]:
    for family in list_families():
        path = FOLDER / f"{family}.toml"
        shared = _read_shared(path)
        if shared.get("listed"):
            continue
        for line, row in _read_rows(path):
            yield Member(
                id=row["id"],
                family=family,
                line=line,
                name=row.get("name") or row["id"],
                vendor=row.get("vendor") or str(shared.get("vendor", "")),
                architecture=str(shared.get("architecture", "")),
                aliases=_split(row.get("aliases", "")),
            )


def find_members(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the members that texts name, singly or by their family.

    A text may contain several names, separated by commas or spaces.
    """
    return tuple(dict.fromkeys(member for text in texts for part in split_names(text) for member in _find_named(part)))


@lru_cache(512)
def _find_named(part: str) -> tuple[str, ...]:
    """Return the ids of the members that a text names, singly, by their family, or several separated by spaces."""
    from joulemap.domain.catalogue import find_alike
    from joulemap.domain.hardware_ref import HardwareRef

    known = list_members()
    plain = HardwareRef.read(part).id
    folded = fold_name(plain)
    if folded in _fold_families():
        return tuple(one.id for one in known.values() if fold_name(one.family) == folded)
    names: dict[str, None] = {}
    words = plain.split()
    spans = (
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(min(len(words), start + MOST_WORDS), start, -1)
    )
    for name in dict.fromkeys((plain, *spans)):
        alike = find_alike(cast("Mapping[str, HardwareEntry]", known), name)
        names.update(dict.fromkeys(one.id for one in alike))
        if name == plain and alike:
            break
    return tuple(names)


@cache
def load_member(name: str) -> Hardware:
    """Return the hardware of a member by id; CatalogueError names the table's file, line and reason."""
    member = list_members()[name]
    path = FOLDER / f"{member.family}.toml"
    row = dict(_read_rows(path))[member.line]
    _IN_USE.add(name)
    return resolve_member(path, member.line, row)


def describe_member(name: str) -> dict[str, Any] | None:
    """Return the contents of the hardware file that a member's line represents; None if no family has the id."""
    for family in list_families():
        path = FOLDER / f"{family}.toml"
        for _, row in _read_rows(path):
            if row["id"] == name:
                return _complete(_read_shared(path), row)
    return None


def find_described(digests: Collection[str]) -> dict[str, Hardware]:
    """Return digest -> member with that digest. Members used in this process are tried first, which is faster."""
    by_digest: dict[str, Hardware] = {}
    for name in sorted(list_members(), key=lambda name: name not in _IN_USE):
        if len(by_digest) == len(digests):
            break
        hardware = load_member(name)
        if hardware.digest in digests:
            by_digest[hardware.digest] = hardware
    return by_digest


def load_family(path: Path) -> tuple[Hardware, ...]:
    """Return the members of a family's file, in the order of its table; CatalogueError names file, line and reason."""
    return tuple(resolve_member(path, line, row) for line, row in _read_rows(path))


def resolve_member(path: Path, line: int, row: Mapping[str, str]) -> Hardware:
    """Return the hardware of one line of a family's table."""
    from joulemap.catalog.chip import load_content

    table = path.with_suffix(".csv")
    label = f"{table.name if path.is_relative_to(DATA) else table} line {line} ({row['id']})"
    try:
        content = _complete(_read_shared(path), row)
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogueError(f"{label}: {error.args[0]}") from error
    return load_content(content, label)


def _complete(shared: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, Any]:
    """Return the contents of a member's hardware file: those of the family, its variants and cells, with computed
    peaks.
    """
    columns: Mapping[str, Mapping[str, Any]] = shared.get("columns", {})
    variants: Mapping[str, Mapping[str, Any]] = shared.get("variants", {})
    stated = _find_stated(shared, row["id"])
    content = {key: deepcopy(value) for key, value in shared.items() if key not in OWN_KEYS}
    for column, by_value in variants.items():
        value = row.get(column, "")
        if value not in by_value:
            raise ValueError(f"{column}: {value!r} is none of {', '.join(by_value)}")
        _merge(content, by_value[value])
    for column, cell in row.items():
        if column in TEXTS or column == "id":
            if cell:
                content[column] = cell
        elif column in LISTS:
            if cell:
                content[column] = [*content.get(column, ()), *_split(cell)]
        elif column in columns:
            if cell:
                _write_cell(content, column, cell, {**columns[column], **stated.get(column, {})})
        elif column not in variants:
            raise ValueError(f"{column}: no column of that name in [columns], which has {', '.join(columns)}")
    _complete_peaks(content)
    return content


def _find_stated(shared: Mapping[str, Any], member: str) -> dict[str, Mapping[str, str]]:
    """Return column -> basis and source of a member's cells that a document states."""
    by_column: dict[str, Mapping[str, str]] = {}
    for document in shared.get("documents", ()):
        if unknown := sorted(set(document["columns"]) - set(shared.get("columns", {}))):
            raise ValueError(f"documents: {unknown[0]!r} is no column")
        if member in document["members"]:
            stated = {key: value for key, value in document.items() if key not in ("columns", "members")}
            by_column.update(dict.fromkeys(document["columns"], stated))
    return by_column


def _write_cell(content: dict[str, Any], column: str, cell: str, entry: Mapping[str, Any]) -> None:
    """Write the number of a table's cell at the keys of the hardware file that its column fills."""
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"{column}: {cell!r} is not a number") from None
    number = {"value": value, **{key: one for key, one in entry.items() if key != "to"}}
    for target in entry["to"]:
        *path, last = target.split(".")
        at: Any = content
        for key in path:
            at = next(one for one in at if one["name"] == key) if isinstance(at, list) else at.setdefault(key, {})
        at[last] = dict(number)


def _complete_peaks(content: dict[str, Any]) -> None:
    """Add the missing rates of peaks: units x operations per clock x clock."""
    quantities = content["quantities"]
    for precision, peak in content.get("peaks", {}).items():
        if "rate" in peak:
            continue
        content["sources"]["peak_rule"] = PEAK_RULE
        rate = quantities["unit_count"]["value"] * peak["operations_per_clock"] * quantities["clock"]["value"] / 1e3
        unit = "TOPS" if precision.startswith("int") else "TFLOPS"
        peak["rate"] = {"value": rate, "unit": unit, "basis": "derived", "source": "peak_rule"}


def _merge(content: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add a fragment to a file's contents: tables are merged, lists joined, other values replaced.

    Where the contents have a list of named items, the fragment's table adds to the item of each name.
    """
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(content.get(key), list):
            for item in content[key]:
                _merge(item, value.get(item["name"], {}))
        elif isinstance(value, dict):
            _merge(content.setdefault(key, {}), value)
        elif isinstance(value, list) and key != "deployment":
            content[key] = [*content.get(key, ()), *deepcopy(value)]
        else:
            content[key] = value


def _split(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(";") if part.strip())


@cache
def _read_shared(path: Path) -> Mapping[str, Any]:
    """Return the numbers that all members of a family share, from its file and the fragments that it includes."""
    import tomllib

    try:
        own = tomllib.loads(path.read_text(encoding="utf-8"))
        content: dict[str, Any] = {}
        for part in own.get("parts", ()):
            _merge(content, tomllib.loads((PARTS / f"{part}.toml").read_text(encoding="utf-8")))
        _merge(content, own)
    except (OSError, ValueError) as error:
        raise CatalogueError(f"{path.name}: {error}") from error
    return content


@cache
def _read_rows(path: Path) -> tuple[tuple[int, Mapping[str, str]], ...]:
    """Return (line number, row) of each line in a family's table."""
    table = path.with_suffix(".csv")
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = [(number, row) for number, row in enumerate(csv.DictReader(file), start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CatalogueError(f"{table.name}: {error}") from error
    for number, row in rows:
        if None in row or None in row.values() or not row.get("id"):
            raise CatalogueError(f"{table.name} line {number}: its number of cells differs from the header's")
    return tuple(rows)
