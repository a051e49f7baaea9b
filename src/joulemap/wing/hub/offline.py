"""Model libraries without network access: nothing is downloaded, and each attempted request raises an error with its
address.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final, NoReturn
from unittest.mock import patch

VARIABLES: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
"""Environment variables that these libraries read at import. Source: huggingface_hub/constants.py."""

CONSTANTS: Final = "huggingface_hub.constants"
OFFLINE: Final = "HF_HUB_OFFLINE"

_ADDRESS: Final = re.compile(r"https?://[^\s'\"]*[^\s'\":.,;)]")


class OfflineError(ConnectionError):
    """Network access that was attempted while offline."""


@contextlib.contextmanager
def offline() -> Iterator[None]:
    """Block network access of this thread and of threads that it starts in this context. Use it inside `hosting`.

    Libraries with an offline setting get it before they are imported; any other connection is refused.
    """
    was_set = os.environ.get(OFFLINE, "").upper() in ("1", "ON", "YES", "TRUE")
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    constants = sys.modules.get(CONSTANTS)
    before = was_set if constants is None else getattr(constants, OFFLINE, was_set)
    if constants is not None:
        setattr(constants, OFFLINE, True)
    here = threading.get_ident()
    others = {thread.ident for thread in threading.enumerate()} - {here}
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            refuse(address)
        connect(self, address)

    def look_up_nothing(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        refuse((host, port))
        return look_up(host, port, *rest, **named)

    def refuse(address: Any) -> None:
        if threading.get_ident() not in others:
            _refuse(address)

    try:
        with (
            patch.object(socket.socket, "connect", connect_here),
            patch.object(socket, "getaddrinfo", look_up_nothing),
        ):
            yield
    finally:
        if (constants := sys.modules.get(CONSTANTS)) is not None:
            setattr(constants, OFFLINE, before)


def _refuse(address: Any) -> NoReturn:
    raise OfflineError(f"http://{':'.join(map(str, address[:2]))} was asked for")


def describe_error(error: BaseException) -> str:
    """Return an error's type and the first line of its text, with the first web address of the whole text."""
    from joulemap.trace.guest import first_line

    line, found = first_line(error), _ADDRESS.search(str(error))
    return line if found is None or found[0] in line else f"{line} ({found[0]})"


def find_request(error: BaseException) -> str:
    """Return the address that an `OfflineError` in the causes of an error reports as requested; empty without one."""
    cause: BaseException | None = error
    while cause is not None:
        is_refusal = isinstance(cause, OfflineError) or type(cause).__name__ == "OfflineModeIsEnabled"
        if is_refusal and (found := _ADDRESS.search(str(cause))):
            return found[0]
        cause = cause.__cause__ or cause.__context__
    return ""
