"""Try the laws on random questions, and print what broke them.

python -m laws [--seed N] [--seconds 600] [--law NAME ...] [--workers 2] [--list 5] [--write]

Exit code 0 if every violation is explained, 1 if not, 2 if nothing can be tried. --law tries the questions of these
laws alone; --write writes docs/laws.md. Interrupted, it prints what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from multiprocessing import get_context

from joulemap.bundle.chip import load_chips
from joulemap.system.errors import CatalogueError
from laws.court import Court
from laws.page import describe, write_page
from laws.table import BY_NAME
from laws.trial import ignore_interrupt, make_jobs, run_job


def main() -> int:
    """Run the trials; return 1 if a violation is unexplained, 2 without the chips that every trial asks about."""
    arguments = _read_arguments()
    try:
        load_chips()
    except CatalogueError as error:
        print(f"laws: {error}", file=sys.stderr)
        return 2
    for variable in [name for name in os.environ if name.startswith("JOULEMAP_")]:
        del os.environ[variable]
    began = time.monotonic()
    court = Court()
    jobs = make_jobs(arguments.seed, arguments.seconds, arguments.workers, tuple(arguments.law))
    with contextlib.suppress(KeyboardInterrupt), get_context("spawn").Pool(arguments.workers, ignore_interrupt) as pool:
        for tally in pool.imap_unordered(run_job, jobs):
            court.add(tally)
    print(describe(court, seed=arguments.seed, seconds=time.monotonic() - began, most=arguments.list))
    if arguments.write:
        write_page(court, seed=arguments.seed, seconds=time.monotonic() - began)
    return int(bool(court.open))


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m laws", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--law", action="append", default=[], choices=sorted(BY_NAME), metavar="NAME")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", type=int, default=5, help="violations of each law to print")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
