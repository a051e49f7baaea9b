"""The skill for agents: its form, that its commands run, and that it names the tools of the server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import joulemap.wing.embed
from joulemap.cli.overview import find_commands
from joulemap.cli.tool import ALL

if TYPE_CHECKING:
    from conftest import Run

FILE = Path(joulemap.wing.embed.__file__).parent / "skill" / "joulemap" / "SKILL.md"
TEXT = FILE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"\| `joulemap (.*?)` \|", TEXT)
"""Commands of the table, without the program."""


def test_the_head_is_that_of_a_skill() -> None:
    """As docs/specification.mdx of agentskills/agentskills asks: the folder's name, and at most 1,024 characters."""
    head = re.match(r"---\nname: (.*)\ndescription: (.*)\n---\n", TEXT)
    assert head
    assert head[1] == FILE.parent.name
    assert len(head[2]) <= 1024
    assert len(TEXT) < 5000 * 4  # 5,000 tokens


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_every_command_runs(command: str, joulemap: Run) -> None:
    done = joulemap(*command.split())
    assert not done.returncode, done.stderr
    if "--format json" in command:
        document: dict[str, Any] = json.loads(done.stdout)
        assert document["command"] == command.split()[0]


def test_commands_and_tools_that_it_names_exist() -> None:
    named = {line.split()[0] for line in re.findall(r"`joulemap ([a-z][^`]*)`", TEXT)}
    assert named <= {*find_commands()}
    listed = re.search(r"`joulemap mcp` if you have them: (.*?)\. They", TEXT, re.DOTALL)
    assert listed
    assert {*re.findall(r"`(\w+)`", listed[1])} == {*ALL, "options"}
