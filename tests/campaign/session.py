"""Run several commands and acknowledge each that succeeds.

python session.py LOG COMMANDS     COMMANDS is a JSON list of lists; LOG gets a line for each that exits with 0
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    """Run the commands; return the exit code of the first that fails, or 0."""
    from joulemap.cli.app import run

    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for command in json.loads(sys.argv[2]):
        code = run(command)
        if code:
            return code
        os.write(log, b"done\n")
    return 0


if __name__ == "__main__":
    os._exit(main())
