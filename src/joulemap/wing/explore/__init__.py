"""Design-space exploration: millions of designs of a chip evaluated in bulk, searched, and stored in lakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.explore.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.explore.generated.public")


def register() -> Wing:
    """Return the commands, questions and file kinds that this wing adds to the core."""
    return Wing(
        name="explore",
        commands={
            "explore": Command("joulemap.wing.explore.explore_command", "design", is_first=True),
            "lake": Command("joulemap.wing.explore.lake_command", merged="explore"),
        },
        questions={
            "explore": Ask("joulemap.wing.explore.ask.explore", "SettingsKeywords", is_of_model=True),
            "explore_all": Ask("joulemap.wing.explore.ask.regret", "SettingsKeywords"),
            "shards": Ask("joulemap.wing.explore.ask.shards", is_shared=False),
            "check_shards": Ask("joulemap.wing.explore.ask.shards", is_shared=False),
            "clean_shards": Ask("joulemap.wing.explore.ask.shards", is_shared=False),
        },
        parts={
            "folders": "joulemap.wing.explore.lake.folder:FOLDER",
            "words": "joulemap.wing.explore.show.word:WORDS",
        },
        queries=("explore",),
        public=("joulemap.wing.explore.lake.fill:fill", "joulemap.wing.explore.lake.block:describe_block"),
        uses=("decoder",),
    )
