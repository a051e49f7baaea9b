"""Run every example of the help as printed (`make examples`; `make test-slow` adds --together).

python benchmarks/examples.py [--docs] [--together] [--match TEXT] [--without TEXT] [--folder FOLDER]

The examples of each `joulemap COMMAND --help` run in the order of the help, then the commands of README, and with
--docs those of docs/. Each is a shell line in one scratch folder, so all share one database and the files that earlier
examples wrote. With --together, a line with a single command and no shell syntax runs in this process, which saves the
start-up time. The folder has the user files that examples name: a model, a chip, prices, measurements, a saved program,
a repository. Examples that need something that a script cannot create are named and skipped.

Prints each failure (the line, its exit code, the last line that it printed) and the slowest examples. Exit code 1 after
a failure.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from command import run_here  # noqa: E402
from example import Example, list_examples, prepare, prepare_program, prepare_repository  # noqa: E402
from joulemap.system.errors import ExitCode  # noqa: E402

DATABASE: Final = "joulemap.duckdb"
DAMAGED: Final = "damaged.duckdb"
LONGEST_S: Final = 1800
"""Maximum seconds of an example on a busy machine."""
SHELL: Final = frozenset("|<>;&$`~*")
"""Characters with a meaning in the shell."""
SERVING: Final = ("mcp",)
"""Commands that read the streams of their process."""
OWN: Final = ("HOME", "JOULEMAP_CALIBRATION", "PATH")
"""Environment variables that are set for the scratch folder."""
SLOWEST: Final = 5
"""Number of the slowest examples that are listed."""


@attrs.frozen(kw_only=True)
class Outcome:
    """Outcome of one example."""

    example: Example
    code: int
    said: str
    """Last line of its errors, or of its output if it printed no errors."""
    seconds: float

    @property
    def failed(self) -> bool:
        """True if it ended in an error; a check that finds values beyond its bounds is no error."""
        return self.code not in (ExitCode.OK, ExitCode.BEYOND, ExitCode.OUTSIDE)


def list_missing() -> dict[str, str]:
    """Return text of an example -> the requirement that is missing here."""
    import torch

    missing = {
        "calibrate ./mychip.toml": "measurements of one's own chip",
        "path/to/": "a model file of one's own",
        "extend check": "a package whose numbers were replaced",
        "mine.py:segmenter": "the model file of its page",
        "detector": "a model file of one's own",
        "-q4_k_m.gguf": "a model file of one's own",
        "trace.jsonl": "recorded requests",
        "joulemap battery": "the wing of its page",
        "set_clock_hz": "the designs of its page",
        "run_ids=422554046038480": "the designs of its page",
        "hardware show acme_x1": "an installed package",
        "mobilenet_v2 acme_x1": "an installed package",
    }
    if not torch.cuda.is_available():
        missing["cuda"] = "a GPU"
    if find_spec("timm") is None:
        missing["timm:"] = "the package timm"
    if find_spec("transformers") is None:
        missing["hf:"] = "the package transformers"
    return missing


def make_folder(folder: Path) -> dict[str, str]:
    """Fill a folder with the files that examples name; return the environment variables of its shell."""
    prepare(folder)
    prepare_program(folder)
    prepare_repository(folder)
    (folder / "bin").mkdir()
    command = folder / "bin" / "joulemap"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m joulemap "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    own = {
        "HOME": str(folder),
        "JOULEMAP_CALIBRATION": str(folder / "calibration"),
        "PATH": os.pathsep.join([str(command.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "src"),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JOULEMAP_")}
    return {**kept, **own}


def run_example(example: Example, folder: Path, variables: Mapping[str, str], *, is_together: bool) -> Outcome:
    """Run an example as a shell line, or in this process if it is a single command without shell syntax."""
    start = time.monotonic()
    try:
        if is_together and example.words[0] not in SERVING and not SHELL & set(example.line):
            done = run_here(example.words, folder, {name: variables[name] for name in OWN})
        else:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", example.line],
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
            )
    except subprocess.TimeoutExpired:
        return Outcome(example=example, code=124, said=f"no end in {LONGEST_S} s", seconds=time.monotonic() - start)
    lines = [line for line in (done.stderr.strip() or done.stdout.strip()).splitlines() if line.strip()]
    return Outcome(
        example=example,
        code=done.returncode,
        said=lines[-1] if lines else "",
        seconds=time.monotonic() - start,
    )


def run_examples(examples: list[Example], folder: Path, *, is_together: bool) -> list[Outcome]:
    """Run examples in order on one database; save a damaged copy of it for the example of `db recover`."""
    variables = make_folder(folder)
    outcomes = []
    for example in examples:
        outcome = run_example(example, folder, variables, is_together=is_together)
        outcomes.append(outcome)
        if outcome.failed:
            print(f"FAILED {outcome.example.line}\n  exit {outcome.code}: {outcome.said}", flush=True)
        if (folder / DATABASE).exists() and not (folder / DAMAGED).exists():
            shutil.copy(folder / DATABASE, folder / DAMAGED)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--docs", action="store_true", help="run the commands of docs/ too")
    parser.add_argument("--together", action="store_true", help="run plain commands in this process")
    parser.add_argument("--match", default="", help="run only examples that hold this text")
    parser.add_argument("--without", action="append", default=[], help="leave out examples that hold this text")
    parser.add_argument("--folder", type=Path, help="an empty folder to run in, which is kept")
    options = parser.parse_args()
    asked = [
        one
        for one in list_examples()
        if (options.docs or one.place == "README" or one.place.partition(" ")[0] == "joulemap")
        and options.match in one.line
    ]
    missing = list_missing()
    lacks = {one.line: need for one in asked for text, need in missing.items() if text in one.line}
    for line, need in lacks.items():
        print(f"left out, needs {need}: {line}")
    with tempfile.TemporaryDirectory() as scratch:
        kept = [one for one in asked if one.line not in lacks and not any(text in one.line for text in options.without)]
        outcomes = run_examples(kept, options.folder or Path(scratch), is_together=options.together)
    failed = sum(outcome.failed for outcome in outcomes)
    for outcome in sorted(outcomes, key=lambda one: -one.seconds)[:SLOWEST]:
        print(f"{outcome.seconds:.1f} s: {outcome.example.line}")
    print(f"{len(asked)} examples: {len(outcomes) - failed} work, {failed} fail, {len(lacks)} left out")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
