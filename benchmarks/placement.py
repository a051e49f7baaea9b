"""Compare published placement decisions with joulemap's: `python benchmarks/placement.py [WORDS]`.

Rows come from `placement.toml`; WORDS select rows by name. A row is decided correctly if the placement that was
published as better is better in the prediction too. Its predicted gain is printed in percent of the published gain.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import Any, Final

from joulemap.ask.hardware_file import template_text
from joulemap.domain.settings import Settings
from joulemap.workspace import Workspace

ROWS: Final = Path(__file__).with_suffix(".toml")
RIGHT_PERCENT: Final = 10.0
SPEED: Final = ("unit_count", "clock")


def write_hardware(told: dict[str, Any], folder: Path, memory_gb: float | None = None) -> Path:
    """Write a hardware file that changes some numbers of another chip, optionally its memory, and return the path."""
    text = re.sub(r'^id = ".*"', f'id = "own_{told["name"]}"', template_text(told["like"], ""), flags=re.MULTILINE)
    text = re.sub(r"^aliases = .*$", "aliases = []", text, flags=re.MULTILINE)
    text = re.sub(r"^power_limit_(lowest|highest) = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r'^name = ".*"', f'name = "{told["name"]}"', text, count=1, flags=re.MULTILINE)
    numbers = told["set"] | ({} if memory_gb is None else {"memory_capacity": memory_gb})
    for key, value in numbers.items():
        text = re.sub(rf"^({key} = {{ value = )[0-9.e+-]+", rf"\g<1>{value}", text, flags=re.MULTILINE)
    (units,), (clock,) = (re.findall(rf"^{key} = {{ value = ([0-9.]+)", text, re.MULTILINE) for key in SPEED)
    text = re.sub(
        r"^(rate = { value = )[0-9.]+(.*\n)(operations_per_clock = )(\d+)",
        lambda found: (
            f"{found[1]}{float(units) * float(clock) * float(found[4]) / 1e3:.6g}{found[2]}{found[3]}{found[4]}"
        ),
        text,
        flags=re.MULTILINE,
    )
    for name, level in told.get("levels", {}).items():
        capacity, bandwidth = (one.split()[0] for one in level.split(","))
        text = re.sub(rf'(name = "{name}"(?:\n(?!\[).*)*?\ncapacity = {{ value = )[0-9.]+', rf"\g<1>{capacity}", text)
        text = re.sub(rf'(name = "{name}"(?:\n(?!\[).*)*?\nbandwidth = {{ value = )[0-9.]+', rf"\g<1>{bandwidth}", text)
    path = folder / f"{told['name']}_{memory_gb or 'own'}.toml"
    path.write_text(text)
    return path


def list_rows(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows, with a series expanded into single rows."""
    rows = list(told["row"])
    for series in told["series"]:
        for memory_mb, rate in zip(series["memory_mb"], series["rates"], strict=True):
            better = series["better"] | {"rate": rate}
            gb = (memory_mb - series["held_mb"]) / 1e3
            rows.append(
                series
                | {"name": series["name"].format(memory_mb), "better": better, "memory_gb": gb}
                | {"batch": 1, "goal": "latency"}
            )
    return rows


def rate_ways(
    row: dict[str, Any], hardware: dict[str, dict[str, Any]], folder: Path
) -> tuple[dict[tuple[str, str], float], str]:
    """Return ((placement, form) -> rate, 0 if refused; the best placement) of a row."""
    devices = []
    for one in filter(None, row.get("on", "").split(",")):
        name, _, own = one.partition("=")
        if own in hardware:
            memory = row.get("memory_gb") if name == row.get("limited") else None
            own = str(write_hardware(hardware[own], folder, memory))
        devices.append(f"{name}={own}")
    settings = Settings(
        precision=row["precision"],
        weight_precision=row.get("weight_precision", ()),
        runtime="engine",
        batch=row["batch"],
    )
    answer = Workspace(folder / "placement.duckdb").place(
        row["model"],
        row.get("box", ""),
        settings=settings,
        on=tuple(devices),
        links=(row["link"],) if "link" in row else (),
        goal=row["goal"],
    )
    rates = {(one.placement, one.form): 0.0 if one.refusal else (one.throughput_per_s or 0.0) for one in answer.rows}
    return rates, f"{answer.best.placement} ({answer.best.form})"


def score(row: dict[str, Any], hardware: dict[str, dict[str, Any]], folder: Path) -> tuple[float, float, str]:
    """Return (published gain, predicted gain, best predicted placement)."""
    rates, best = rate_ways(row, hardware, folder)
    better, other = (rates.get((row[side]["placement"], row[side]["form"]), 0.0) for side in ("better", "other"))
    gain = better / other if other else float("inf")
    return row["better"]["rate"] / row["other"]["rate"], gain, f"{best}, {better:.4g} and {other:.4g} a second"


def score_stages(row: dict[str, Any], folder: Path) -> tuple[float, float, str]:
    """Return the same as `score` for stages, some of which move from the large device to small ones."""
    workspace = Workspace(folder / "placement.duckdb")

    def take(stage: dict[str, Any], hardware: str) -> float:
        told = {"precision": row["precision"], "runtime": "engine", "batch": stage["batch"]}
        (found,) = workspace.compare(stage["model"], hardware=hardware, **told).rows
        return float(stage["times"]) * (found.latency_s or float("inf"))

    alone = sum(take(one, row["large"]) for one in row["stage"])
    kept = sum(take(one, row["large"]) for one in row["stage"] if not one.get("moves"))
    moved = sum(take(one, row["small"]) for one in row["stage"] if one.get("moves")) / row["small_count"]
    best = (
        f"{row['large']}+{row['small_count']} {row['small']}, {1 / max(kept, moved):.4g} and {1 / alone:.4g} a second"
    )
    return row["better"] / row["other"], alone / max(kept, moved), best


def judge_family(row: dict[str, Any], hardware: dict[str, dict[str, Any]], folder: Path) -> list[tuple[str, bool, str]]:
    """Return (name, whether the prediction agrees, best) of each model, with enough GPU memory and with too little."""
    found = []
    for model, weight_gb in row["weight_gb"].items():
        for share, is_worth in row["pays"].items():
            rates, best = rate_ways(row | {"model": model, "memory_gb": float(share) * weight_gb}, hardware, folder)
            alone, pair = rates.get(("gpu", "alone"), 0.0), rates.get(("cpu+gpu", "split"), 0.0)
            pays = pair > row["most_gain"] * max(alone, rates.get(("cpu", "alone"), 0.0))
            name = f"{row['name']}, {model}, memory {share} times the weights"
            found.append((name, pays == is_worth, f"{best}, {pair:.4g} and {alone:.4g} a second"))
    return found


def main(words: list[str]) -> None:
    """Print a line per row, and the number of correct decisions."""
    told = tomllib.loads(ROWS.read_text())
    hardware = {one["name"]: one for one in told["hardware"]}
    rows = [row for row in list_rows(told) if all(word in row["name"] for word in words)]
    stages = [row for row in told["stages"] if all(word in row["name"] for word in words)]
    families = [row for row in told["family"] if all(word in row["name"] for word in words)]
    right = near = 0
    print(f"{'':58} published    here  off by")
    with tempfile.TemporaryDirectory() as folder:
        for row in [*rows, *stages]:
            ask = partial(score_stages, row) if "stage" in row else partial(score, row, hardware)
            published, gain, best = ask(Path(folder))
            percent = 100.0 * (gain / published - 1.0)
            right += gain > 1.0
            near += abs(percent) <= RIGHT_PERCENT
            print(f"{row['name'][:57]:58} {published:6.3g}x  {gain:6.3g}x  {percent:+5.0f} %  best {best}")
        told_near = f"{near} with a gain within {RIGHT_PERCENT:.0f} %"
        print(f"{right} of {len(rows) + len(stages)} decided as published, {told_near}")
        for row in families:
            for name, is_right, best in judge_family(row, hardware, Path(folder)):
                print(f"{name}: {'as told' if is_right else 'NOT as told'}, best {best}")


if __name__ == "__main__":
    main(sys.argv[1:])
