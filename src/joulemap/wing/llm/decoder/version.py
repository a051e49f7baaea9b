"""Version of the code that builds the workload of a pass from the sizes of a model."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code
from joulemap.trace.version import CLOSED_FORMS

CODE: Final = ("wing/llm/decoder", "fuse")


@cache
def decoder_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of every decoder pass that is built from sizes."""
    return digest_code(*CLOSED_FORMS, *CODE)
