"""Time of a report beyond its queries, its size, and the time until a browser has drawn it. Medians of 3.

python benchmarks/report.py
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from joulemap.physics.record.configuration import Precision
from joulemap.show.webpage.page import start_drawing
from joulemap.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from browser import DESKTOP, PHONE, running_browser, visiting, why_not

REPEATS = 3
GOALS = {"beyond s": 2.0, "MB": 1.5, "drawn s": 1.5}
"""Goals for one model on 12 chips, and for the size on 20 chips."""

TWELVE = (
    "xeon_8490h", "epyc_9654", "l4", "t4", "a100_sxm4_80gb", "h100_sxm5", "h200_sxm", "mi300x", "tpu_v4", "tpu_v5e",
    "kpu_t256", "jetson_orin_nano_8gb",
)  # fmt: skip


@attrs.frozen
class Case:
    """Models, hardware and precision of one report."""

    models: tuple[str, ...]
    hardware: tuple[str, ...]
    precision: Precision


def main() -> None:
    """Print a line for each report."""
    reason = why_not()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(os.path.join(folder, "bench.duckdb"))
        twenty = tuple(row.hardware for row in workspace.hardware_list(precision="int8"))[:20]
        cases = (
            Case(("resnet18",), (), "fp32"),
            Case(("resnet18",), TWELVE, "fp16"),
            Case(("vit_b_16",), twenty, "int8"),
            Case(("resnet18", "mobilenet_v2"), ("l4", "h100_sxm5"), "bf16"),
        )
        print(
            f"{'models':24} {'hardware':>8} {'queries s':>10} {'beyond s':>9} {'MB':>6} {'drawn s':>8} {'phone s':>8}"
        )
        for case in cases:
            asked, beyond, size, drawn, phone = _time(workspace, case, Path(folder) / "page.html", reason)
            count = len(case.hardware) or 4
            print(
                f"{' '.join(case.models):24} {count:8} {asked:10.2f} {beyond:9.2f} {size / 1e6:6.2f} "
                f"{drawn:>8} {phone:>8}"
            )
        goals = ", ".join(f"{name} {goal}" for name, goal in GOALS.items())
        print(f"goals: {goals}" + (f"; not drawn: {reason}" if reason else ""))


def _time(workspace: Workspace, case: Case, path: Path, reason: str) -> tuple[float, float, int, str, str]:
    """Return (seconds of the queries with all runs stored, of the page, its bytes, seconds until drawn, on a phone)."""
    asked, beyond = [], []
    workspace.report(case.models, hardware=case.hardware, precision=case.precision)
    start_drawing()
    page = ""
    for _ in range(REPEATS):
        begun = time.perf_counter()
        answer = workspace.report(case.models, hardware=case.hardware, precision=case.precision)
        told = time.perf_counter()
        page = answer.html()
        asked.append(told - begun)
        beyond.append(time.perf_counter() - told)
    path.write_text(page, encoding="utf-8")
    shown = [_open(path, size) if not reason else "" for size in (DESKTOP, PHONE)]
    return statistics.median(asked), statistics.median(beyond), len(page.encode()), shown[0], shown[1]


def _open(path: Path, size: Sequence[int]) -> str:
    """Return the text of the median seconds from opening a page until every visible figure is drawn."""
    times = []
    with running_browser() as browser:
        for _ in range(REPEATS):
            with visiting(browser, path, size=(size[0], size[1])) as visit:
                visit.wait()
                times.append(float(visit.ask("() => document.documentElement.dataset.ready")) / 1e3)
    return f"{statistics.median(times):.2f}"


if __name__ == "__main__":
    main()
