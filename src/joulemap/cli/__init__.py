"""The command line: parse, call one workspace method, hand rows to the report."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is imported before Ctrl-C is watched for is little
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line as the process; what takes time is imported once Ctrl-C is watched for."""
    import os
    import signal
    import sys

    def end(_number: int, _frame: object) -> None:
        os.write(2, b"joulemap: interrupted; nothing in the database is half written\n")
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    given = [name for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if name in os.environ]
    if not given and "measure" not in sys.argv:  # which times what others compute with
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads of numpy take longer to begin than its short arrays
    import gc

    gc.disable()  # a command is short: what it imports and makes is not worth collecting
    from joulemap.cli.interrupt import open_standard_descriptors, watch

    open_standard_descriptors()
    watch()
    from joulemap.cli.app import main as run

    run()
