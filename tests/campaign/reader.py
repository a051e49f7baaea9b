"""Changed ONNX, TFLite and GGUF files, read in the process of the trial.

A file must become a workload that the database takes, or be refused in one line that names it, within limits of time
and memory.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from campaign.trial import Outcome, Trial
from joulemap.domain.settings import Settings
from joulemap.domain.sound import check_workload
from joulemap.plan.model_name import list_names
from joulemap.plan.workload import find_model, find_workload_of
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.reading import ContradictionError
from model_file import FORMATS

FILES: Final = 50
"""Files of one trial."""

SLOW_S: Final = 10.0
MOST_MEMORY_KB: Final = 1_000_000
MEMORY: Final = Path("/proc/self/status")
PEAK: Final = Path("/proc/self/clear_refs")


def prepare(stage: Path) -> None:
    """Prepare nothing: files are changed in memory."""
    del stage


def read_changed(trial: Trial) -> Outcome:
    """Read changed files of one format."""
    random = trial.random()
    suffix = sorted(FORMATS)[trial.number % len(FORMATS)]
    outcomes, failures, longest = Counter[str](), [], 0.0
    for number in range(FILES):
        path = trial.place / f"{number}.{suffix}"
        path.write_bytes(FORMATS[suffix](Random(random.random())))
        started = time.process_time()
        outcome, failure = read_one(path)
        seconds = time.process_time() - started
        longest = max(longest, seconds)
        if seconds > SLOW_S:
            failure = f"slow: {path.name} took {seconds:.0f} s of processor time"
        outcomes[outcome] += 1
        failures += [failure] * bool(failure)
    return Outcome(
        part=f"{suffix} files", outcomes=dict(outcomes), failures=tuple(failures), count=FILES, seconds=longest
    )


def read_one(path: Path) -> tuple[str, str]:
    """Return (outcome, failure) of reading a file; the failure is empty if it is read or refused as it should be."""
    name, settings = str(path), Settings()
    before = _reset_peak()
    try:
        model = find_model(name, settings, None)
        for names in list_names():
            names.apply_published((name,), settings, ("fp32", "fp16", "int8"))
        check_workload(find_workload_of(model, print))
        outcome, text = "read", ""
    except ContradictionError as error:
        outcome, text = f"refused after {type(error.__cause__).__name__}", str(error)
    except (ModelError, UsageError) as error:
        outcome, text = "refused", str(error)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", f"escaped: {path.name}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"[
            :400
        ]
    peak = _read_memory("VmHWM") - before
    if peak > MOST_MEMORY_KB:
        return outcome, f"memory: {path.name} took {peak:,} kB"
    if text and (path.name not in text or len(text.splitlines()) > 1 or len(text) > 600):
        return outcome, f"text: {path.name}: {text[:200]!r}"
    return outcome, ""


def _reset_peak() -> int:
    """Reset the peak of this process's memory, and return its memory in kB; 0 where the system does not tell."""
    if not PEAK.exists():
        return 0
    PEAK.write_text("5", encoding="ascii")
    return _read_memory("VmRSS")


def _read_memory(name: str) -> int:
    if not MEMORY.exists():
        return 0
    lines = MEMORY.read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])
