"""The command line: parse, call one workspace method, hand rows to the report."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is imported before Ctrl-C is watched for is little
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line as the process; what takes time is imported once Ctrl-C is watched for."""
    import os
    import signal

    def end(_number: int, _frame: object) -> None:
        os.write(2, b"joulemap: interrupted; nothing in the database is half written\n")
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    import gc

    gc.disable()  # a command is short: what it imports and makes is not worth collecting
    from joulemap.cli.interrupt import watch

    watch()
    from joulemap.cli.app import main as run

    run()
