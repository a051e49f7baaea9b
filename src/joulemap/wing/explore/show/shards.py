"""Words and tables for the files of a lake."""

from __future__ import annotations

from typing import Final

from joulemap.show import Asked, Document, Page, Template, compose, show_table
from joulemap.wing.explore.ask.shards import LakeAnswer
from joulemap.wing.explore.generated.row import ListedShard

TITLE: Final = Template("{path}: {content}")
CONTENT: Final = Template("{point_count:n point} in {files:n file}, {size_bytes:B}[; {skipped:n file} not read]")
GARBAGE: Final = Template("{files:n file} of garbage, {size_bytes:B}; --remove removes them")
NO_GARBAGE: Final = "no garbage"
REMOVED: Final = Template("removed {removed_count:n file}, {removed_bytes:B}")


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


def draw_lake(answer: LakeAnswer, _asked: Asked) -> Document:
    """Return the document of a lake's files."""
    files = show_table(answer, "", answer.shards, ListedShard.table)
    return compose(answer, files, answer.shards, title=title_lake(answer))


PAGES: Final = {LakeAnswer: Page[LakeAnswer](draw=draw_lake)}
