"""Words and tables for the files of a lake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.show import Part, Sheet, Template
from joulemap.wing.explore.ask.shards import LakeAnswer

TITLE: Final = Template("{path}: {content}")
CONTENT: Final = Template("{point_count:n point} in {files:n file}, {size_bytes:B}[; {skipped:n file} not read]")
GARBAGE: Final = Template("{files:n file} of garbage, {size_bytes:B}; --remove removes them")
NO_GARBAGE: Final = "no garbage"
REMOVED: Final = Template("removed {removed_count:n file}, {removed_bytes:B}")
NOTE: Final = Template("{state}: {meaning}")
STATES: Final = {
    "whole": "read by `--db`",
    "stale": "evaluated by other formulas or design rules than this version's; not read",
    "damaged": "changed since it was written; not read; the next run writes it again, `lake clean --remove` deletes it",
    "twice": "duplicate of another shard; not read",
    "unfinished": "being written, or left by a process that was killed",
}
"""State of a file -> its meaning."""


def title_lake(answer: LakeAnswer) -> str:
    """Return the path of a lake, and its content, its garbage, or what was removed."""
    files = len(answer.shards)
    if answer.removed_count:
        content = REMOVED(answer)
    elif answer.is_clean:
        content = GARBAGE(answer, files=files) if files else NO_GARBAGE
    else:
        content = CONTENT(answer, files=files, skipped=files - answer.count("whole") or None)
    return TITLE(answer, content=content)


def list_notes(answer: LakeAnswer) -> Iterator[str]:
    """Yield the meaning of each state that a listed file has."""
    for state, meaning in STATES.items():
        if answer.count(state):
            yield NOTE(state=state, meaning=meaning)


PAGES: Final = {
    LakeAnswer: Sheet(
        title=title_lake,
        notes=list_notes,
        csv="shards",
        parts=(
            Part(
                table="shards",
                columns="*state | *model | hardware | precision | varied | *point_count | *size_bytes | file",
            ),
        ),
    )
}
