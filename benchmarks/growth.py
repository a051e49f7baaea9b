"""Time and memory of all commands and queries on one database as it grows.

python benchmarks/growth.py [--runs 20000] [--steps 5] [--brief] [--keep DATABASE]

The database grows by sweeps, recommendations and imports of different models. At each step, every example of `--help`
that needs no user file and no torch runs (with --brief, one example per command), and every built-in query, about one
model and about all runs. Exit codes 1, 3, 5 and 6 are failures (internal error, unknown name, database error, rows that
break a rule); the last line counts them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import resource
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import duckdb

from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.cli.app import run
from joulemap.cli.overview import list_commands
from joulemap.system.errors import ExitCode
from query import BATCH, HARDWARE, MODEL, Timing, ask_queries
from tools.manual import Manual, read_manual

FAILURES: Final = (ExitCode.INTERNAL, ExitCode.UNKNOWN_NAME, ExitCode.DATABASE, ExitCode.CHECK_FAILED)

NEEDING_MORE: Final = (
    "./",
    "mine.",
    "this.",
    "chips/",
    ".pt2",
    "--queries",
    "--file ",
    "prices.csv",
    "gemm.csv",
)
"""User files that examples refer to."""

NEEDING_OTHERS: Final = ("lake",)
"""Commands whose examples read the output of other examples."""

NOT_ASKED: Final = ("measure", "completion", "calibrate", "model trace", "db recover", "db import", "db migrate")
"""Commands that need torch or another database, or change the database."""


@attrs.define
class Growth:
    """Database that grows, and on which commands run."""

    path: Path
    failures: list[str] = attrs.field(factory=list)

    def ask(self, *words: str) -> float:
        """Run a command on the database; return its seconds."""
        start = time.perf_counter()
        told = io.StringIO()
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.redirect_stderr(told):
            code = run([*words, "--db", str(self.path)])
        if code in FAILURES:
            self.failures.append(f"{shlex.join(words)}: exit {code}: {told.getvalue().strip()}")
        return time.perf_counter() - start

    def grow(self, models: Iterator[str], least: int) -> int:
        """Store runs of one model after another until `least` are stored; return the number stored."""
        while (count := self.count()) < least:
            model = next(models)
            self.ask(
                "sweep", model, "--where", "deployment=datacenter", "--precision", "int8,bf16", "--batch", "1,8,32"
            )
            self.ask("recommend", next(models), "--max-latency", "50ms")
            self._import(next(models))
        return count

    def count(self) -> int:
        """Return the number of evaluated runs."""
        if not self.path.exists():
            return 0
        with contextlib.closing(duckdb.connect(str(self.path), read_only=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM internal.run_total").fetchall()[0][0])

    def _import(self, model: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other = Growth(Path(folder) / "other.duckdb")
            other.ask("sweep", model, "gpus", "--batch", "1,16")
            other.ask("db", "export", f"{folder}/runs")
            self.ask("db", "import", f"{folder}/runs")
            self.failures += other.failures

    def ask_everything(self, examples: Sequence[tuple[str, ...]]) -> tuple[list[float], list[Timing]]:
        """Run every example and every query; return the time of each. Queries of one run need a run with a ledger."""
        seconds = [self.ask(*words) for words in examples]
        self.ask("explain", MODEL, *HARDWARE[1:3], "--batch", str(BATCH))
        return seconds, ask_queries(self.path, self.failures, repeats=0)


def list_examples(*, is_brief: bool = False) -> list[tuple[str, ...]]:
    """Return the words of the examples of `--help` that need no user file; one per command if brief."""
    found = _list_examples()
    alone = [words for words in reversed(found) if words[0] not in NEEDING_OTHERS]
    return list({words[0]: words for words in alone}.values()) if is_brief else found


def _list_examples() -> list[tuple[str, ...]]:
    manuals = [read_manual(name) for name in list_commands()]
    shown = [
        line.partition(" > ")[0].replace(" | head -3", " --limit 3") for one in manuals for line in _list_lines(one)
    ]
    return [
        tuple(shlex.split(line)[1:])
        for line in shown
        if line.startswith("joulemap")
        and not any(more in line for more in NEEDING_MORE)
        and not line.removeprefix("joulemap ").startswith(NOT_ASKED)
    ]


def _list_lines(manual: Manual) -> list[str]:
    return [*manual.examples, *(line for inner in manual.commands for line in _list_lines(inner))]


def read_peak_bytes() -> int:
    """Return the peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def grow(path: Path, run_count: int, step_count: int, examples: Sequence[tuple[str, ...]]) -> list[str]:
    """Grow a database to `run_count` runs in `step_count` steps, print its times at each, and return every failure."""
    shipped = load_shipped()
    models = itertools.cycle([name for name, one in load_models().items() if one.task != "block" and name in shipped])
    growth = Growth(path)
    print(
        f"{'runs':>7} {'MB':>7} {'growing s':>10} {'slowest command s':>18} {'slowest query s':>16} "
        f"{'peak RSS MB':>12} {'failures':>9}"
    )
    for step in range(1, step_count + 1):
        start = time.perf_counter()
        count = growth.grow(models, run_count * step**2 // step_count**2)
        grown = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            seconds, timings = growth.ask_everything(examples)
        slowest = max(timings, key=lambda one: one.seconds)
        print(
            f"{count:>7,} {path.stat().st_size / 1e6:>7.0f} {grown:>10.1f} {max(seconds):>18.2f} "
            f"{slowest.seconds:>16.2f} {read_peak_bytes() / 1e6:>12,.0f} {len(growth.failures):>9}",
            flush=True,
        )
    return growth.failures


def main() -> int:
    """Print a line per step, then each failure; return 1 after a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--brief", action="store_true", help="ask one example of each command")
    parser.add_argument("--keep", type=Path, help="where the database stays")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "grown.duckdb"
        examples = list_examples(is_brief=arguments.brief)
        failures = grow(Path(os.path.abspath(path)), arguments.runs, arguments.steps, examples)
        print(*failures, f"{len(failures)} failures", sep="\n")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
