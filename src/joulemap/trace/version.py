"""Version of the conversion of a module to a workload: a digest of the code that traces and fuses.

Changes of comments, docstrings, layout and error messages do not change it (`system/code.py`).

Workloads of an earlier version are therefore not mistaken for current ones. `make zoo` regenerates the shipped
workloads; until then they are not used, and a test fails.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code

RULES: Final = ("trace", "fuse", "domain/workload.py")
"""Packages and files that determine the content of a workload."""

WORDS: Final = ("trace/failure.py", "trace/version.py")
"""Files of `RULES` that contain only error messages or file lists, and do not affect `tracer_version`."""

CLOSED_FORMS: Final = ("domain/operator", "domain/workload.py", "trace/formula", "trace/single")
"""Folders and files that determine the workload of a single operator."""

BUILDERS: Final = ("hub",)
"""Packages that determine the module and inputs of a model without a shipped workload."""


@cache
def tracer_version() -> str:
    """Return sixteen hexadecimal digits that identify the tracing code; they are part of every workload's key."""
    return digest_code(*RULES, without=WORDS)


@cache
def builder_version() -> str:
    """Return sixteen hexadecimal digits that identify the tracing and model-building code.

    They are part of the key of workloads of files, saved programs and hub models. The files of `WORDS` count here,
    because the inputs that `hub` guesses depend on hints in error messages.
    """
    return digest_code(*RULES, *BUILDERS)


@cache
def operator_version() -> str:
    """Return sixteen hexadecimal digits that identify the code of single operators; they are part of their workloads'
    keys.
    """
    return digest_code(*CLOSED_FORMS)
