"""Options for design spaces, objectives and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs

from joulemap.cli import LIMITS, complete_hardware, read_as, read_quantity, repeat_options, split_pairs
from joulemap.cli.command import advanced, option, optional
from joulemap.cli.value import split_assignments
from joulemap.system import UsageError, frozen, read_real, split_names


@frozen(kw_only=True)
class DesignOptions:
    """Options for a design space and its evaluation."""

    panel: ClassVar[str] = "Designs"

    like: str = optional(
        "Base chips: ids, aliases, classes or files, optionally with @MODE.", "NAME,...", complete=complete_hardware
    )
    vary: list[str] | None = option(
        None,
        "Constant and values: units=16:1024:*2, clock=0.5GHz:2GHz:16 (16 values) or tdp=x0.5,x1; repeatable.",
        metavar="NAME=VALUES",
    )
    share: list[str] | None = advanced(None, "Fractions of all inferences that run a model.", metavar="MODEL=SHARE,...")
    random: int | None = option(None, "Number of designs to draw at random, instead of all.", min=1)
    search: str = optional("Optimizer for large spaces: NSGA-II, or TPE for one objective.", "optuna", is_advanced=True)
    points: int | None = advanced(None, "Number of designs that --search evaluates.", min=1)
    seed: int = advanced(0, "Random seed.", min=0)
    solve: str = optional("Find the values of one or two constants that meet --for.", "NAME,...", is_advanced=True)
    target: list[str] | None = advanced(
        None,
        'Target of --solve, e.g. "latency = 10ms"; repeatable.',
        "--for",
        metavar="METRIC=VALUE",
    )
    lake: Path | None = option(None, "Folder to store designs in (`joulemap lake`).", metavar="FOLDER")
    jobs: int = advanced(1, "Number of processes.", min=1, max=1024)
    cluster: str = optional("Dask scheduler, tcp://HOST:PORT or local:N; needs --lake.", "ADDRESS", is_advanced=True)
    objective: str = option(
        "energy,latency",
        "Metrics to optimize: latency, energy (per inference), edp, throughput, efficiency, power, memory, area or "
        "cost (die).",
        metavar="NAME,...",
    )
    max_latency: str = optional("Maximum latency of a batch of each model, e.g. 33ms.", "TIME", panel=LIMITS)
    max_energy_per_inference: str = optional(
        "Maximum energy of one inference, e.g. 100mJ.", "ENERGY", panel=LIMITS, is_advanced=True
    )
    max_power: str = optional("Maximum power of the chip, host excluded, e.g. 15W.", "POWER", panel=LIMITS)
    max_memory: str = optional(
        "Maximum memory for weights and activations, e.g. 512MB.", "SIZE", panel=LIMITS, is_advanced=True
    )
    min_throughput: str = optional("Minimum inferences per second, e.g. 30/s.", "RATE", panel=LIMITS, is_advanced=True)
    max_area: str = optional("Maximum area of units and memories, e.g. 100mm2.", "AREA", panel=LIMITS, is_advanced=True)
    max_die_cost: str = optional("Maximum cost of the die, e.g. 20USD.", "PRICE", panel=LIMITS, is_advanced=True)

    def list_design_options(self) -> list[str]:
        """Return the names of the given options that apply only to designs, not to existing chips."""
        own = (
            "--vary", "--random", "--search", "--points", "--solve", "--for", "--lake", "--jobs", "--cluster",
            "--max-area", "--max-die-cost",
        )  # fmt: skip
        return [word for word in repeat_options(self, [*attrs.fields_dict(type(self))]) if word in own]

    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `explore`; UsageError names an option that cannot be read."""
        from joulemap.domain import Limits

        if (self.points is not None) != bool(self.search) or (self.search and self.random is not None):
            raise UsageError("--search optuna and --points 2000 go together; --random N needs no --search")
        return {
            **{name: getattr(self, name) for name in ("search", "seed", "lake", "jobs", "cluster")},
            "like": split_names(self.like) if "/" not in self.like else self.like,
            "vary": _read_variations(self.vary),
            "share": _read_shares(self.share),
            "objectives": split_names(self.objective),
            "count": self.random if self.points is None else self.points,
            "solve": split_names(self.solve),
            "target": tuple(self.target or ()),
            "limits": read_as(Limits, self),
            "max_area_mm2": read_area(self.max_area),
            "max_die_cost_usd": read_quantity("--max-die-cost", self.max_die_cost, "USD"),
        }


def read_area(text: str) -> float | None:
    """Return an area such as `100mm2` or `1cm2` in mm2; None for an empty text.

    Raise UsageError for a number without a unit of area.
    """
    if not text:
        return None
    for unit, factor in (("mm2", 1.0), ("mm²", 1.0), ("cm2", 100.0), ("cm²", 100.0)):
        if text.strip().endswith(unit):
            try:
                return read_real(text.strip().removesuffix(unit)) * factor
            except ValueError as error:
                raise UsageError(f"--max-area: {error}") from error
    raise UsageError(f"--max-area: {text!r} is not an area: write 100mm2")


def _read_variations(written: list[str] | None) -> dict[str, str]:
    """Return constant -> values of `--vary`, whose commas separate values."""
    try:
        return split_assignments(written)
    except UsageError as error:
        hint = "write NAME=VALUES, each name once, e.g. units=16:1024:*2"
        raise UsageError(f"--vary: {error}: {hint}") from None


def _read_shares(written: list[str] | None) -> dict[str, float]:
    """Return model -> fraction of `--share`."""
    try:
        pairs = split_pairs(written)
    except UsageError as error:
        raise UsageError(f"--share: {error}: write MODEL=SHARE") from None
    return {name: _read_share(name, text) for name, text in pairs.items()}


def _read_share(name: str, text: str) -> float:
    try:
        return read_real(text)
    except ValueError as error:
        raise UsageError(f"--share {name}: {error}") from error
