"""Rooms and what each may import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BELOW: dict[str, set[str]] = {
    "system": set(),
    "physics": set(),
    "bundle": {"physics"},
    "domain": {"physics"},
    "catalog": {"domain", "generated", "physics"},
    "trace": {"domain", "physics"},
    "construct": {"domain", "physics", "trace"},
    "device": {"construct", "domain", "physics", "trace"},
    "calibrate": {"domain", "physics"},
    "store": {"bundle", "domain", "generated", "physics"},
    "plan": {"construct", "catalog", "domain", "physics", "store", "trace"},
    "prediction": {"bundle", "catalog", "domain", "physics", "plan", "trace"},
    "exchange": {"generated"},
    "ask": {
        "calibrate",
        "catalog",
        "construct",
        "device",
        "domain",
        "exchange",
        "generated",
        "physics",
        "plan",
        "store",
    },
    "show": {"ask", "domain", "generated", "physics"},
    "question": {"plan"},
    "workspace": {"ask", "domain", "generated", "physics", "plan", "question", "show", "store"},
    "shortcut": {"domain", "generated", "physics", "question", "workspace"},
    "generated": {"domain", "physics"},
    "records": {"generated"},
    "extend": {"generated"},
    "cli": {
        "ask",
        "construct",
        "domain",
        "physics",
        "show",
        "store",
        "workspace",
    },
}
"""room -> rooms that it may import. Every edge points down: the graph is checked to have no cycle."""


def loaded_after(code: str, cwd: Path) -> set[str]:
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd, check=False)
    assert not done.returncode, done.stderr
    return set(done.stdout.splitlines())
