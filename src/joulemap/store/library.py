"""Query files: those that ship with joulemap, and those in a user's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.domain.table import Column
from joulemap.store.contract import Parameter, Query, parse_query, read_entries, read_toml
from joulemap.system.errors import SqlError, UnknownNameError, UsageError
from joulemap.system.file import read_text
from joulemap.system.resource import digest_code, folder, remember_all

READERS: Final = (
    "store/contract.py", "store/include.py", "domain/use.py", "domain/metric.py", "domain/table.py",
    *(f"physics/record/{name}.py" for name in ("configuration", "runtime")), "domain/scope.py",
    "store/surface.py",
)  # fmt: skip
"""Code files whose change invalidates cached parses of query files."""

Words = tuple[Mapping[str, Parameter], Mapping[str, Column]]
"""(parameter name -> parameter, column name -> column)."""

VARIABLE = "JOULEMAP_QUERIES"
"""Environment variable that names a folder with the user's own query files."""


@cache
def _files(own: Path | None = None) -> dict[str, dict[int, str]]:
    """Return query name -> version -> file. Raise SqlError if one of the user's files has a shipped query's name."""
    if own is not None and not os.path.isdir(own):
        raise UsageError(f"there is no folder of queries at {own}")
    if own is not None and (misplaced := _find_misplaced(own)):
        raise SqlError(f"{misplaced}: a query file lies in the folder of its topic: {os.path.join(own, 'TOPIC')}")
    found: dict[str, dict[int, str]] = {}
    for topic, file in _scan(own or folder("queries")):
        stem, _, version = file.name.removesuffix(".sql").rpartition(".v")
        if stem and version.isdigit():
            found.setdefault(f"{topic}.{stem}", {})[int(version)] = file.path
        elif own is not None:
            raise SqlError(f"{file.path}: a query file is called NAME.vN.sql")
    if own is None:
        return found
    for name in sorted(set(found) & set(_files())):
        raise SqlError(f"{next(iter(found[name].values()))}: {name} is the name of a built-in query; choose another")
    return {**_files(), **found}


def _scan(place: Path) -> list[tuple[str, os.DirEntry[str]]]:
    """Return sorted (topic, query file) pairs of a folder. Uses `scandir`, because each command calls this and globs
    are slower.
    """
    topics = [one for one in os.scandir(place) if one.is_dir()]
    found = [(one.name, file) for one in topics for file in os.scandir(one) if file.name.endswith(".sql")]
    return sorted(found, key=lambda one: (one[0], one[1].name))


def _find_misplaced(place: Path) -> str:
    """Return a query file that lies in the user's folder itself or below a topic; empty if there is none."""
    topics = [one.path for one in os.scandir(place) if one.is_dir()]
    below = [one.path for topic in topics for one in os.scandir(topic) if one.is_dir()]
    files = [file for where in (str(place), *below) for file in os.scandir(where)]
    return min((file.path for file in files if file.name.endswith(".sql") and file.is_file()), default="")


def name_queries() -> tuple[str, ...]:
    """Return the sorted names of all shipped queries, without opening files."""
    return tuple(sorted(_files()))


def list_topic(topic: str, own: Path | None = None) -> tuple[str, ...]:
    """Return the sorted names of the queries of a topic, without the topic, including those in the folder `own`."""
    pairs = (name.partition(".") for name in _files(own))
    return tuple(sorted(name for found, _, name in pairs if found == topic))


def list_queries(own: Path | None = None) -> tuple[Query, ...]:
    """Return every version of every query, sorted by name and version, including those in the user's folder.

    Raises SqlError that names each invalid file of the user, and the reason.
    """
    queries, refused = [], []
    paths = [Path(path) for _, versions in sorted(_files(own).items()) for _, path in sorted(versions.items())]
    _remember([path for path in paths if ships(path)])
    for path in paths:
        try:
            queries.append(_load(path))
        except SqlError as error:
            refused.append(str(error))
    if refused:
        raise SqlError("; ".join(refused))
    return tuple(queries)


@cache
def find_query(name: str, own: Path | None = None) -> Query:
    """Return the newest version of `topic.name`, or the version in `topic.name@version`. Raise UnknownNameError
    otherwise.
    """
    stem, _, version = name.partition("@")
    versions = _files(own).get(stem)
    if versions is None:
        raise UnknownNameError("query", stem, _files(own), "see `joulemap query list`")
    if not version:
        return _load(Path(versions[max(versions)]))
    if not version.isdigit() or int(version) not in versions:
        raise UnknownNameError("version", version, [str(number) for number in versions], f"of query {stem}")
    return _load(Path(versions[int(version)]))


def _load(path: Path) -> Query:
    """Return the query in a file; in a shipped query, calls of other queries are replaced by their SQL."""
    if not ships(path):
        query = parse_query(path)
        if not query.columns:
            raise SqlError(f"{path}: the header has no columns")
        return query
    (found,) = _remember([path])
    return Query(
        **{
            **found,
            "path": path,
            "parameters": tuple(Parameter(**one) for one in found["parameters"]),
            "columns": tuple(Column(**one) for one in found["columns"]),
            "order": tuple(found["order"]),
        }
    )


def ships(path: Path) -> bool:
    """Return whether a query file ships with joulemap."""
    return folder("queries") in path.parents


def _remember(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the fields of shipped queries from a cache, which is renewed when a query file or the code changes."""
    digest = digest_code(*READERS)

    def make(path: Path) -> dict[str, Any]:
        return attrs.asdict(_fill(path)) | {"path": ""}

    return remember_all("queries", {f"{one.parent.name}/{one.name} {digest}": partial(make, one) for one in paths})


@cache
def _words() -> Words:
    """Return the parameters and columns of `words.toml`, which mean the same in every shipped query."""
    from joulemap.store.surface import fill_choices

    tables = read_toml(fill_choices(read_text(folder("queries") / "words.toml")))
    parameters, columns = read_entries(Parameter, tables["parameters"]), read_entries(Column, tables["columns"])
    return {one.name: one for one in parameters}, {one.name: one for one in columns}


def _fill(path: Path) -> Query:
    """Return a shipped query with calls replaced by SQL, and with the columns that called queries declare."""
    from joulemap.domain.use import fill_costs
    from joulemap.store.include import include, inherit

    query = parse_query(path)
    try:
        query = _fill_metrics(attrs.evolve(query, written=fill_costs(query.written)))
        query = inherit(query, _files().__contains__, find_query, _words())
        return attrs.evolve(query, sql=include(query.written, _files().__contains__, find_query))
    except SqlError as error:
        raise SqlError(f"{path.name}: {error}") from error


def _fill_metrics(query: Query) -> Query:
    """Return a query in which `, r.{metric}` is replaced by a column for each run metric that it lacks."""
    if "{metric}" not in query.written:
        return query
    from joulemap.domain.metric import METRICS
    from joulemap.store.include import list_cells

    own = {*list_cells(query.written), *(column.name for column in query.columns)}
    new = [one for one in METRICS if one.is_of_runs and one.column not in own]
    sql = re.sub(r", (\w)\.{metric}", lambda row: "".join(f", {row[1]}.{one.column}" for one in new), query.written)
    columns = [Column(name=one.column, type="DOUBLE", null=True, unit=one.unit, meaning=one.label) for one in new]
    return attrs.evolve(query, written=sql, columns=(*query.columns, *columns))


def share_queries(asked: Sequence[tuple[Query, Mapping[str, str]]]) -> tuple[dict[str, str], list[str]]:
    """Return (table name -> SQL, SQL of each query) of shipped queries, like `include.share`."""
    from joulemap.store.include import share

    return share(asked, _files().__contains__, find_query)
