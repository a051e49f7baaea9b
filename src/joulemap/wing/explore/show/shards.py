"""Words and tables for the files of a lake."""

from __future__ import annotations

from typing import Final

from joulemap.show import Part, Sheet, Template
from joulemap.wing.explore.ask.shards import LakeAnswer

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


PAGES: Final = {
    LakeAnswer: Sheet(
        title=title_lake,
        csv="shards",
        parts=(
            Part(
                table="shards",
                columns="*state | *model | hardware | precision | varied | *point_count | *size_bytes | file",
            ),
        ),
    )
}
