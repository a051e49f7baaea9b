"""Version of the conversion of a module to a workload: a digest of the code that traces and fuses.

Comments, docstrings, layout and the wording of errors do not count (`system/code.py`).

Workloads of an earlier rule are therefore not mistaken for those of the current one. `make zoo` regenerates the shipped
ones; until then they are not used, and a test says so.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code

RULES: Final = ("trace", "fuse", "domain/workload.py")
"""Packages and files that determine the content of a workload."""

WORDS: Final = ("trace/failure.py", "trace/version.py")
"""Files among these that only contain error texts or list the other files."""

CLOSED_FORMS: Final = ("domain/operator", "domain/workload.py", "trace/formula", "trace/single")
"""Folders and files that determine the workload of a single operator."""

BUILDERS: Final = ("hub",)
"""Package that determines the module and inputs of a name without a shipped workload."""


@cache
def tracer_version() -> str:
    """Return sixteen hexadecimal digits, part of every workload's key."""
    return digest_code(*RULES, without=WORDS)


@cache
def builder_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of workloads of files, saved programs and hub models.

    The files of `WORDS` count here, because the inputs that `hub` guesses depend on hints in the texts of errors.
    """
    return digest_code(*RULES, *BUILDERS)


@cache
def operator_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of every single operator's workload."""
    return digest_code(*CLOSED_FORMS)
