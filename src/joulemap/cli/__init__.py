"""The command line: parse, call one workspace method, hand rows to the report."""

import gc

gc.disable()  # a command is short: what it imports and makes is not worth collecting

from joulemap.cli.app import main  # noqa: E402

__all__ = ["main"]
