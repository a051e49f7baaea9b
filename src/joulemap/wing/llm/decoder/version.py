"""Version of the code that makes the workload of a pass from the sizes of a model."""

from __future__ import annotations

from functools import cache
from typing import Final

from joulemap.system.resource import digest_code
from joulemap.trace.version import CLOSED_FORMS

CODE: Final = ("wing/llm/decoder", "fuse")


@cache
def decoder_version() -> str:
    """Return sixteen hexadecimal digits, part of the key of every pass of a decoder that is known by its sizes."""
    return digest_code(*CLOSED_FORMS, *CODE)
