"""The command line: parse, call one workspace method, hand rows to the report."""

from joulemap.cli.app import main

__all__ = ["main"]
