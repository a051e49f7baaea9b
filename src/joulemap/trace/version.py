"""Version of the rules by which a module becomes a workload: a digest of the code that traces and fuses.

Comments, docstrings, layout and the wording of errors do not count (`system/code.py`).

So a rule cannot change while workloads of the old one are taken for what it gives. Those that ship are made anew by
`make zoo`; until then they are left alone, and a test says so.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code

RULES: Final = ("trace", "fuse", "domain/workload.py")
"""Rooms and files that decide what a workload is."""

WORDS: Final = ("trace/failure.py", "trace/version.py")
"""Files in them that only word errors, or say which files count."""

CLOSED_FORMS: Final = ("domain/operator", "domain/workload.py", "trace/formula", "trace/single")
"""Folders and files that decide what the workload of a single operator is."""

BUILDERS: Final = ("hub",)
"""Room that decides which module and inputs a name stands for that ships no workload."""


@cache
def tracer_version() -> str:
    """Return sixteen hexadecimal digits, part of every workload's key."""
    return digest_code(*RULES, without=WORDS)


@cache
def builder_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of workloads of files, saved programs and hubs' models.

    The files of `WORDS` count here, because a hub's guesses follow hints in the texts of errors.
    """
    return digest_code(*RULES, *BUILDERS)


@cache
def operator_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of every single operator's workload."""
    return digest_code(*CLOSED_FORMS)
