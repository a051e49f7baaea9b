"""Find query files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from joulemap.errors import UnknownNameError
from joulemap.query.contract import Query, parse_query
from joulemap.resource import folder


@cache
def _files() -> dict[str, dict[int, Path]]:
    """Name -> version -> file, by file names alone."""
    found: dict[str, dict[int, Path]] = {}
    for path in sorted(folder("queries").glob("*/*.v*.sql")):
        stem, _, version = path.stem.rpartition(".v")
        if version.isdigit():
            found.setdefault(f"{path.parent.name}.{stem}", {})[int(version)] = path
    return found


def list_queries() -> tuple[Query, ...]:
    """Return every query, every version, by name and version."""
    return tuple(parse_query(path) for _, versions in sorted(_files().items()) for _, path in sorted(versions.items()))


@cache
def find_query(name: str) -> Query:
    """Return `topic.name` in its newest version, or `topic.name@version`; UnknownNameError otherwise."""
    stem, _, version = name.partition("@")
    versions = _files().get(stem)
    if versions is None:
        raise UnknownNameError("query", stem, _files(), "see `joulemap query list`")
    if not version:
        return parse_query(versions[max(versions)])
    if not version.isdigit() or int(version) not in versions:
        raise UnknownNameError("version", version, [str(number) for number in versions], f"of query {stem}")
    return parse_query(versions[int(version)])
