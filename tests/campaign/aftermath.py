"""State of the database and its folder after a command was stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from campaign.program import DATABASE, check, list_faults, run
from campaign.scene import Reference, Scene, fill
from campaign.state import compare_content, list_files, read_content
from campaign.trial import Trial
from joulemap.system.errors import JoulemapError

LOG_OF_DATABASE: Final = f"{DATABASE}.wal"
"""Log with commits that are not in the database file yet; part of the database."""

REMEMBERED: Final = frozenset({"cache/code.json", "cache/computed.json", "cache/entry_points.txt"})
"""Cache files that any command may leave; a prepared folder may have them already."""

CHECKED_EVERY: Final = 3
"""One in this many trials runs `db check`, because it takes as long as the rest of the judgement."""


def judge(trial: Trial, scene: Scene, reference: Reference, acknowledged: int, place: Path) -> list[str]:
    """Return the failures after a stopped scene: lost or partial runs, refused next commands, leftover files."""
    path = place / DATABASE
    promised = [reference.before, *reference.after[:acknowledged]]
    if not path.exists() and any(promised):
        return ["lost: the database is gone"]
    failures = _compare(path, scene, reference, acknowledged)
    if failures:
        return failures
    typed = [run(trial, fill(command, trial.stage), place) for command in scene.follow()]
    if trial.number % CHECKED_EVERY == 0:
        typed.append(check(trial, place))
    for done in typed:
        if done.returncode:
            failures += [f"next command: {done.args[1]} exit {done.returncode}: {done.stderr.strip()[:300]}"]
        failures += list_faults(done)
    if not failures:
        failures += _compare(path, scene, reference, len(reference.after))
    left = sorted(set(list_files(place)) - {*reference.files, LOG_OF_DATABASE} - REMEMBERED)
    if left and not failures:
        failures.append(f"debris: {', '.join(left)[:300]}")
    return failures


def _compare(path: Path, scene: Scene, reference: Reference, acknowledged: int) -> list[str]:
    promised = [reference.before, *reference.after[:acknowledged]]
    try:
        return compare_content(read_content(path), promised, reference.after[-1])
    except JoulemapError as error:
        return [f"lost: {scene.name}: {error}"]


def count_acknowledged(log: Path, exit_code: int | None, command_count: int) -> int:
    """Return the number of a scene's commands that reported success."""
    if command_count == 1:
        return int(exit_code == 0)
    return log.read_bytes().count(b"\n") if os.path.exists(log) else 0
