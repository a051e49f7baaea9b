"""Questions about a lake's shards: their state, their integrity, and garbage to remove."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from joulemap.ask import Answer
from joulemap.domain import Table, make_table
from joulemap.plan import Source
from joulemap.store import Shard
from joulemap.store.shard import is_abandoned
from joulemap.system import DatabaseError, frozen
from joulemap.wing.explore.generated.row import ListedShard
from joulemap.wing.explore.lake.database import Survey, survey
from joulemap.wing.explore.lake.footer import Footer

WORKED_ON_S: Final = 900.0
"""Seconds without a write after which a file unfinished by another machine is garbage; a shard takes a few seconds."""


@frozen(kw_only=True)
class LakeAnswer(Answer):
    """Answer on the files of a lake."""

    about = ("path", "point_count", "size_bytes", "removed_count", "removed_bytes")

    path: str
    shards: Table[ListedShard]
    removed_count: int = 0
    """Number of files removed."""
    removed_bytes: int = 0
    is_clean: bool = False
    """True if the answer lists garbage instead of all files."""

    def count(self, state: str) -> int:
        """Return the number of listed files in a state, such as `stale`."""
        return sum(one.state == state for one in self.shards)

    @property
    def point_count(self) -> int:
        """Number of points that can be queried."""
        return sum(one.point_count or 0 for one in self.shards if one.state == "whole")

    @property
    def size_bytes(self) -> int:
        """Total size of all listed files in bytes."""
        return sum(one.size_bytes for one in self.shards)


def shards(source: Source, lake: str | Path) -> LakeAnswer:
    """Return the files of a lake and their contents; DatabaseError for a folder that is not a lake."""
    del source
    return _list(Path(lake), survey(Path(lake)))


def check_shards(source: Source, lake: str | Path) -> LakeAnswer:
    """List the shards of a lake after reading and verifying every byte of each."""
    del source
    return _list(Path(lake), survey(Path(lake), is_thorough=True))


def clean_shards(source: Source, lake: str | Path, *, remove: bool = False) -> LakeAnswer:
    """Return the garbage of a lake: stale, damaged, duplicate or unfinished files; `remove` deletes it.

    A file that was just written may be in use and stays. Raise DatabaseError for a folder that is not a lake, or
    a file that cannot be removed.
    """
    del source
    folder = Path(lake)
    listed = _list(folder, survey(folder, is_thorough=True))
    garbage = [one for one in listed.shards if one.state != "whole" and not _is_worked_on(folder, one)]
    removed: list[ListedShard] = []
    for one in garbage if remove else ():
        try:
            (folder / one.file).unlink(missing_ok=True)
            removed.append(one)
        except OSError as error:
            raise DatabaseError(f"cannot remove {folder / one.file}: {error.strerror or error}") from error
    for parent in {(folder / one.file).parent for one in removed}:
        with contextlib.suppress(OSError):
            parent.rmdir()
    return LakeAnswer(
        path=str(folder),
        shards=make_table("garbage", ListedShard, garbage),
        removed_count=len(removed),
        removed_bytes=sum(one.size_bytes for one in removed),
        is_clean=True,
    )


def _is_worked_on(folder: Path, one: ListedShard) -> bool:
    with contextlib.suppress(OSError):
        return one.state == "unfinished" and not is_abandoned(folder / one.file, WORKED_ON_S)
    return False


def _list(folder: Path, surveyed: Survey) -> LakeAnswer:
    stated = {
        "whole": surveyed.shards,
        "stale": surveyed.stale,
        "damaged": tuple(one for one, _ in surveyed.damaged),
        "twice": surveyed.twice,
    }
    rows = [_row(folder, state, one, surveyed.footers.get(one.path)) for state, some in stated.items() for one in some]
    for path in surveyed.unfinished:
        with contextlib.suppress(FileNotFoundError):
            rows.append(_row(folder, "unfinished", Shard(path, "", "", path.lstat().st_size), None))
    return LakeAnswer(path=str(folder), shards=make_table("shards", ListedShard, rows))


def _row(folder: Path, state: str, shard: Shard, footer: Footer | None) -> ListedShard:
    return ListedShard(
        state=state,
        model=_join(footer.workloads if footer else (), "model"),
        hardware=_join(footer.hardware if footer else (), "hardware"),
        precision=str(footer.fixed.get("precision", "")) if footer else "",
        varied=", ".join(map(str, footer.varied)) if footer else "",
        point_count=footer.point_count if footer else None,
        refused_count=footer.refused_count if footer else None,
        size_bytes=shard.size_bytes,
        file=str(shard.path.relative_to(folder)),
    )


def _join(rows: Sequence[Mapping[str, str | int]], name: str) -> str:
    return ",".join(dict.fromkeys(str(one[name]) for one in rows))
