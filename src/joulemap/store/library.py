"""Queries: those that ship with joulemap, and query files in a user's folder.

A build renders the files of `queries` into `generated/sql`, as `make rows` does: the SQL of each topic in one file, and
the headers of all queries in another, one per line.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.domain.table import Column
from joulemap.store.contract import Parameter, Query
from joulemap.system.errors import SqlError, UnknownNameError, UsageError
from joulemap.system.resource import folder

SHIPPED: Final = Path(__file__).parents[1] / "generated" / "sql"
"""Folder with the shipped queries: plain SQL."""

HEADERS: Final = SHIPPED / "header.jsonl"
"""File with the header of each shipped query."""

START: Final = '{"title":"'
"""Beginning of each line of headers, before the title of a query."""

RENDER: Final = "run `make rows`"
"""Remedy for a checkout whose queries are not rendered, or are newer than what was rendered."""

VARIABLE = "JOULEMAP_QUERIES"
"""Environment variable that names a folder with the user's own query files."""


@cache
def _headers() -> dict[str, str]:
    """Return title of each shipped query -> its header as JSON.

    Raises UsageError in a checkout whose queries are not rendered, or are newer than what was rendered.
    """
    if not HEADERS.exists():
        raise UsageError(f"the queries are not rendered: {RENDER}")
    if newer := _find_newer(folder("queries"), HEADERS.stat().st_mtime_ns):
        raise UsageError(f"{newer} is newer than the rendered queries: {RENDER}")
    lines = HEADERS.read_text(encoding="utf-8").splitlines()
    return {line[len(START) : line.index('"', len(START))]: line for line in lines}


def _find_newer(sources: Path, rendered_ns: int) -> str:
    """Return a file in the folder of queries that changed after they were rendered; empty if there is none.

    The folder of an installed package has figures only.
    """
    places = [str(sources), *(one.path for one in os.scandir(sources) if one.is_dir())]
    files = (one for place in places for one in os.scandir(place) if one.name.endswith((".sql", ".toml")))
    return min((one.path for one in files if one.stat().st_mtime_ns > rendered_ns), default="")


@cache
def _topic(name: str) -> str:
    """Return the SQL of all queries of a shipped topic."""
    return (SHIPPED / f"{name}.sql").read_text(encoding="utf-8")


@cache
def _shipped() -> dict[str, dict[int, Path | None]]:
    """Return query name -> version -> None, of the shipped queries."""
    versions: dict[str, dict[int, Path | None]] = {}
    for title in _headers():
        name, _, version = title.partition("@")
        versions.setdefault(name, {})[int(version)] = None
    return versions


@cache
def _known(own: Path | None) -> dict[str, dict[int, Path | None]]:
    """Return query name -> version -> file of the user, or None if the query ships.

    Raises SqlError if one of the user's files has a shipped query's name.
    """
    if own is None:
        return _shipped()
    if not os.path.isdir(own):
        raise UsageError(f"there is no folder of queries at {own}")
    if misplaced := _find_misplaced(own):
        raise SqlError(f"{misplaced}: a query file lies in the folder of its topic: {os.path.join(own, 'TOPIC')}")
    versions: dict[str, dict[int, Path | None]] = {}
    for file in sorted(file for topic in own.iterdir() if topic.is_dir() for file in topic.glob("*.sql")):
        stem, _, version = file.stem.rpartition(".v")
        if not stem or not version.isdigit():
            raise SqlError(f"{file}: a query file is called NAME.vN.sql")
        versions.setdefault(f"{file.parent.name}.{stem}", {})[int(version)] = file
    for name in sorted(set(versions) & set(_shipped())):
        raise SqlError(f"{next(iter(versions[name].values()))}: {name} is the name of a built-in query; choose another")
    return {**_shipped(), **versions}


def _find_misplaced(folder: Path) -> str:
    """Return a query file that lies in the user's folder itself or below a topic; empty if there is none."""
    topics = [one.path for one in os.scandir(folder) if one.is_dir()]
    below = [one.path for topic in topics for one in os.scandir(topic) if one.is_dir()]
    files = [file for where in (str(folder), *below) for file in os.scandir(where)]
    return min((file.path for file in files if file.name.endswith(".sql") and file.is_file()), default="")


def name_queries() -> tuple[str, ...]:
    """Return the sorted names of all shipped queries."""
    return tuple(sorted(_shipped()))


def list_topic(topic: str, own: Path | None = None) -> tuple[str, ...]:
    """Return the sorted names of the queries of a topic, without the topic, including those in the folder `own`."""
    pairs = (name.partition(".") for name in _known(own))
    return tuple(sorted(name for name_topic, _, name in pairs if name_topic == topic))


def list_queries(own: Path | None = None) -> tuple[Query, ...]:
    """Return every version of every query, sorted by name and version, including those in the user's folder.

    Raises SqlError that names each invalid file of the user, and the reason.
    """
    queries, refused = [], []
    for name, versions in sorted(_known(own).items()):
        for version, path in sorted(versions.items()):
            try:
                queries.append(_load(name, version, path))
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
    versions = _known(own).get(stem)
    if versions is None:
        raise UnknownNameError("query", stem, _known(own), "see `joulemap query list`")
    if version and (not version.isdigit() or int(version) not in versions):
        raise UnknownNameError("version", version, [str(number) for number in versions], f"of query {stem}")
    number = int(version) if version else max(versions)
    return _load(stem, number, versions[number])


def _load(name: str, version: int, path: Path | None) -> Query:
    """Return a query of the user in a file, or a shipped one."""
    if path is not None:
        from joulemap.store.header import parse_query

        query = parse_query(path)
        if not all(column.type for column in query.columns) or not query.columns:
            raise SqlError(f"{path}: the header has no columns, or one without type and meaning")
        return query
    title, topic = f"{name}@{version}", name.partition(".")[0]
    head = json.loads(_headers()[title])
    text = _topic(topic)
    start = text.index("\n", text.index(f"\n-- {title}\n") + 1) + 1
    return Query(
        name=name,
        version=version,
        record=head["record"],
        schema=head["schema"],
        summary=head["summary"],
        grain=head["grain"],
        order=tuple(head["order"]),
        table=tuple(head["table"]),
        parameters=tuple(Parameter(**one) for one in head["parameters"]),
        columns=tuple(Column(**one) for one in head["columns"]),
        sql=text[start : text.index(";\n", start)],
        path=SHIPPED / f"{topic}.sql",
    )


def ships(query: Query) -> bool:
    """Return whether a query ships with joulemap."""
    return query.path.parent == SHIPPED
