"""Options of a design space: varied constants, objectives and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from joulemap.cli.command import option
from joulemap.cli.complete import complete_hardware
from joulemap.cli.value import read_as, read_quantity, split_assignments
from joulemap.domain.name import split_names
from joulemap.system.errors import UsageError
from joulemap.system.number import read_real
from joulemap.system.record import frozen


@frozen(kw_only=True)
class DesignOptions:
    """Options of a design space and the objectives of its designs."""

    like: str = option(
        "",
        "Base chips of the designs: ids, aliases, classes or files, with or without @MODE; comma-separated.",
        complete=complete_hardware,
        shown="none",
    )
    vary: list[str] | None = option(
        None,
        "Constant and its values: units=16:1024:*2 (doubling steps), clock=0.5GHz:2GHz:16 (16 even "
        "steps), dram.bandwidth=1TB/s,2TB/s, tdp=x0.5,x1; repeat for several.",
        metavar="NAME=VALUES",
    )
    share: list[str] | None = option(
        None, "Share of the inferences of one model of several; repeat.", metavar="MODEL=SHARE"
    )
    random: int | None = option(None, "Sample this many designs at random instead of all.", min=1, shown="all")
    search: str = option(
        "",
        "Search a large space (NSGA-II; TPE for one objective) instead of sampling evenly.",
        metavar="optuna",
        shown="none",
    )
    points: int | None = option(None, "Designs that --search evaluates.", min=1, shown="none")
    seed: int = option(0, "Random seed.", min=0)
    solve: str = option(
        "", "Solve for the value of one or two constants that meet --for.", metavar="NAME[,NAME]", shown="none"
    )
    target: list[str] | None = option(
        None, 'Target of --solve, such as "latency = 10ms"; repeat for two.', "--for", metavar="OBJECTIVE=VALUE"
    )
    lake: Path | None = option(
        None, "Folder that keeps every design; stored designs are not evaluated again. See `joulemap lake`."
    )
    jobs: int = option(1, "Worker processes.", min=1, max=1024)
    cluster: str = option("", "tcp://HOST:PORT of a Dask scheduler, or local:N; needs --lake.")
    objective: str = option(
        "energy,latency",
        "Objectives, comma-separated: latency, energy, edp, throughput, efficiency, power, "
        "memory, area or cost (of the die). Energy is per inference.",
    )
    max_latency: str = option("", "Maximum latency of a batch of each model, e.g. 33ms.", shown="any")
    max_energy_per_inference: str = option("", "Maximum energy per inference, e.g. 100mJ.", shown="any")
    max_power: str = option("", "Maximum power of the chip alone, without a host, e.g. 15W.", shown="any")
    max_memory: str = option("", "Maximum memory for weights and activations, e.g. 512MB.", shown="any")
    min_throughput: str = option("", "Minimum throughput in inferences, e.g. 30/s.", shown="any")
    max_area: str = option("", "Maximum area of units and memories, e.g. 100mm2.", shown="any")
    max_die_cost: str = option("", "Maximum cost of the die, e.g. 20USD.", shown="any")

    def list_design_options(self) -> list[str]:
        """Return the given options that apply only to designs, not to unchanged chips of the catalogue."""
        names = ("vary", "random", "search", "points", "solve", "target", "lake", "jobs", "cluster", "max_area")
        default = DesignOptions()
        given = [name for name in (*names, "max_die_cost") if getattr(self, name) != getattr(default, name)]
        return ["--for" if name == "target" else f"--{name.replace('_', '-')}" for name in given]

    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Limits

        if (self.points is not None) != bool(self.search) or (self.search and self.random is not None):
            raise UsageError("--search optuna and --points 2000 go together; --random N draws evenly, without --search")
        return {
            **{name: getattr(self, name) for name in ("search", "seed", "lake", "jobs", "cluster")},
            "like": split_names(self.like) if "/" not in self.like else self.like,
            "vary": _read_pairs("--vary", self.vary, "units=16:1024:*2"),
            "share": {name: _read_share(name, text) for name, text in _read_pairs("--share", self.share, "").items()},
            "objectives": split_names(self.objective),
            "count": self.random if self.points is None else self.points,
            "solve": split_names(self.solve),
            "target": tuple(self.target or ()),
            "limits": read_as(Limits, self),
            "max_area_mm2": read_area(self.max_area),
            "max_die_cost_usd": read_quantity("--max-die-cost", self.max_die_cost, "USD"),
        }


def read_area(text: str) -> float | None:
    """Return an area such as `100mm2` or `1cm2` in mm2; UsageError for another unit, or none."""
    if not text:
        return None
    for unit, factor in (("mm2", 1.0), ("mm²", 1.0), ("cm2", 100.0), ("cm²", 100.0)):
        if text.strip().endswith(unit):
            try:
                return read_real(text.strip().removesuffix(unit)) * factor
            except ValueError as error:
                raise UsageError(f"--max-area: {error}") from error
    raise UsageError(f"--max-area: {text!r} is no area: write 100mm2")


def _read_pairs(option: str, written: list[str] | None, example: str) -> dict[str, str]:
    try:
        return split_assignments(written)
    except UsageError as error:
        told = f": write NAME=VALUES, each name once, e.g. {example}" if example else ": write MODEL=SHARE"
        raise UsageError(f"{option}: {error}{told}") from None


def _read_share(name: str, text: str) -> float:
    try:
        return read_real(text)
    except ValueError as error:
        raise UsageError(f"--share {name}: {error}") from error
