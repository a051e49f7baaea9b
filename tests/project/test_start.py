"""What a command makes before it answers: modules imported, records finished, patterns compiled; habits are read first.

Times differ from machine to machine; these counts do not, and time follows them. Whoever needs more raises the number
here, and pays for it elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

COUNT = """
import contextlib, io, json, sys
import re._compiler
before, patterns, compile = set(sys.modules), [], re._compiler.compile
re._compiler.compile = lambda *given: patterns.append(given[0]) or compile(*given)
from joulemap.cli.app import run
with contextlib.redirect_stdout(io.StringIO()):
    code = run(sys.argv[1:])
assert code == 0, code
new = set(sys.modules) - before
own = [name for name in new if name.split(".")[0] == "joulemap"]
kinds = [kind for name in own for kind in vars(sys.modules[name]).values()
    if isinstance(kind, type) and kind.__module__ == name and isinstance(vars(kind).get("__attrs_attrs__"), tuple)]
print(json.dumps([len(own), len(new), len(kinds), len(patterns)]))
"""


class Budget(NamedTuple):
    """The most that a command may take."""

    own: int
    """Modules of joulemap."""
    modules: int
    """All modules, beside those of a bare interpreter."""
    records: int
    """Classes of joulemap that attrs made: what `joulemap.system.record` has not finished does not count."""
    patterns: int
    """Regular expressions compiled, by libraries too."""


BUDGETS = {
    ("--help",): Budget(37, 133, 0, 35),
    ("sql", "SELECT hardware FROM runs"): Budget(105, 301, 15, 84),
    ("query", "run", "run.list"): Budget(105, 301, 17, 84),
    ("hardware", "list"): Budget(133, 332, 26, 94),
    ("compare", "resnet18"): Budget(218, 502, 60, 121),
    ("compare", "mobilenet_v2"): Budget(269, 557, 116, 128),
    ("fleet", "mobilenet_v2", "--rate", "200/s", "--p99", "50ms"): Budget(332, 660, 165, 133),
    ("llm", "llama-3.1-8b", "h100_sxm5", "--batch", "1"): Budget(361, 655, 174, 155),
}
"""Command -> its budget, a little above what it takes on Python 3.11; the last three evaluate."""

NEWER = 4 if sys.version_info >= (3, 12) else 0
"""Further modules of the standard library that those of newer interpreters import."""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=pytest.mark.slow) if one[0] == "fleet" else one for one in BUDGETS],  # it takes 10 s
    ids=" ".join,
)
def test_a_command_makes_no_more_than_its_budget(command: tuple[str, ...], own_database: Path) -> None:
    subprocess.run([sys.executable, "-c", "from joulemap.system.wing import list_wings\nlist_wings()"], check=True)
    environment = {**os.environ, "JOULEMAP_DB": str(own_database)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *command], capture_output=True, text=True, env=environment, check=True
    )
    taken = Budget(*json.loads(done.stdout.splitlines()[-1]))
    budget = BUDGETS[command]._replace(modules=BUDGETS[command].modules + NEWER)
    for name, count, most in zip(taken._fields, taken, budget, strict=True):
        assert count <= most, f"{name}: {count}, at most {most}; all of it: {taken}"
