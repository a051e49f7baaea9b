"""Version of the code that converts a file to a workload."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code
from joulemap.trace.version import CLOSED_FORMS

CODE: Final = ("wing/file", "catalog/data/model/tflite.toml", "fuse")


@cache
def file_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of every workload of a file."""
    return digest_code(*CLOSED_FORMS, *CODE)
