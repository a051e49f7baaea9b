"""Command line: parse options, call a method of the workspace, write the answer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # keep imports few until Ctrl-C is handled
    from typing import NoReturn

    from joulemap.generated.cli import *
else:

    def __getattr__(name: str) -> object:
        from joulemap.system import make_lookup

        return make_lookup(__name__, "joulemap.generated.cli")[0](name)


def main() -> NoReturn:
    """Run the command line as the process. Slow imports come after Ctrl-C can be handled."""
    import os
    import signal
    import sys

    def end(_number: int, _frame: object) -> None:
        os.write(2, b"joulemap: interrupted; nothing in the database is half written\n")
        os._exit(130)

    signal.signal(signal.SIGINT, end)
    given = [name for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if name in os.environ]
    if not given and "measure" not in sys.argv:  # `measure` uses as many threads as other programs
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # starting threads of numpy takes longer than its short arrays
    import gc

    gc.disable()  # a command is too short to gain from collecting garbage
    from joulemap.cli.interrupt import open_standard_descriptors, watch

    open_standard_descriptors()
    watch()
    from joulemap.cli.app import main as run

    run()
