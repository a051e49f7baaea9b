"""Process that runs ordered trials, one at a time.

python -m campaign.worker STAGE     reads {kind, seed, number, is_alone} per line, and answers with an outcome per line
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import attrs

from campaign.plan import KINDS
from campaign.program import kill_started
from campaign.trial import Outcome, Trial

TRIALS: Final = "trials"


def attempt(stage: Path, name: str, seed: int, number: int, *, is_alone: bool = False) -> Outcome:
    """Return the outcome of one trial, and remove its folder. An exception that escapes from a command is a failure."""
    place = stage / TRIALS / f"{name}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    trial = Trial(kind=name, seed=seed, number=number, stage=stage, place=place.resolve(), is_alone=is_alone)
    try:
        return KINDS[name].run(trial)
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"escaped: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Outcome(part="", outcomes={"escaped": 1}, failures=(" ".join(text.split())[:500],))
    finally:
        if not os.environ.get("CAMPAIGN_KEEP"):
            shutil.rmtree(place, ignore_errors=True)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    kill_started()
    os._exit(128 + number)


def main() -> None:
    """Answer until the input ends; commands have no input, and their output is discarded."""
    stage = Path(sys.argv[1])
    signal.signal(signal.SIGTERM, _end)
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    for line in orders:
        order = json.loads(line)
        outcome = attempt(stage, order["kind"], order["seed"], order["number"], is_alone=order["is_alone"])
        print(json.dumps(attrs.asdict(outcome)), file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
