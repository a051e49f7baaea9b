"""Run the campaign and print its results.

python -m campaign [--minutes 30] [--seed 1] [--only KIND ...] [--trial N ...] [--count N] [--workers 2] [--write]

--trial repeats these trials of one kind; --write writes the table to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import compileall
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import joulemap
from campaign.plan import KINDS, prepare
from campaign.pool import Pool
from campaign.report import Report, write_page


def main() -> int:
    """Run the campaign; return 1 if a trial failed, else 0."""
    arguments = _read_arguments()
    for variable in [name for name in os.environ if name.startswith("JOULEMAP_")]:
        del os.environ[variable]
    _compile_once()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    names = arguments.only or list(KINDS)
    started = time.monotonic()
    end = started + 60.0 * arguments.minutes
    report = Report(seed=arguments.seed, workers=arguments.workers)
    with tempfile.TemporaryDirectory(prefix="joulemap-campaign-") as folder:
        stage = Path(folder).resolve()
        refused = prepare(stage, names)
        pool = Pool(stage, arguments.workers)
        try:
            rest = sum(KINDS[name].share for name in names)
            for name in names:
                kind = KINDS[name]
                if name in refused:
                    report.leave_out(kind, refused[name])
                    continue
                now = time.monotonic()
                deadline = now + (end - now) * kind.share / rest
                rest -= kind.share
                numbers = arguments.trial or range(arguments.count or kind.count)
                for number, outcome in pool.try_all(kind, arguments.seed, numbers, deadline):
                    for line in report.add(kind, number, outcome):
                        print(line, flush=True)
                _tell(f"{name}: {report.count(kind)} trials, {time.monotonic() - started:.0f} s")
        finally:
            pool.close()
    text = report.table()
    print(text)
    if arguments.write:
        write_page(report.table(has_parts=False))
    return int(report.has_failures)


def _compile_once() -> None:
    """Compile all modules, and let no trial do so: Python before 3.13 keeps half a bytecode file on a full disk."""
    compileall.compile_dir(Path(joulemap.__file__).parent, quiet=2)
    compileall.compile_dir(Path(__file__).parent, quiet=2)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="at most so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--trial", action="append", type=int, metavar="N", help="exactly this one again")
    parser.add_argument("--count", type=int, default=0, help="trials of each kind")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time")
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    arguments = parser.parse_args()
    if arguments.trial and len(arguments.only or ()) != 1:
        parser.error("--trial needs one --only KIND")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
