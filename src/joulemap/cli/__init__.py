"""The command line: parse, call one workspace method, hand rows to the report."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line as the process; what takes time is imported once Ctrl-C is watched for."""
    import gc

    gc.disable()  # a command is short: what it imports and makes is not worth collecting
    from joulemap.cli.interrupt import watch

    watch()
    from joulemap.cli.app import main as run

    run()
