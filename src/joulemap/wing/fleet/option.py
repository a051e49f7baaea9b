"""Options for the load, targets and limits of a fleet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import attrs

from joulemap.cli import LIMITS, read_as, read_quantity, repeat_options, split_pairs
from joulemap.cli.command import option
from joulemap.system import FileError, UsageError, frozen, read_real, read_text
from joulemap.wing.fleet.demand import Demand, Objective

Number = TypeVar("Number", int, float)

ROUNDED: Final = 1e-6
"""Tolerance within which shares must sum to 1."""


@frozen(kw_only=True)
class DemandOptions:
    """Options for the request load, latency targets and limits of a fleet."""

    panel: ClassVar[str] = "Load and targets"
    rate: str = option("", "Request rate (Poisson arrivals), e.g. 2000/s.", metavar="RATE")
    rates: Path | None = option(
        None,
        "Rates over a day (columns rate_per_s, and hour or time_s) or single requests (column arrival_s).",
        metavar="FILE.csv",
        is_advanced=True,
    )
    p99: str = option("", "Target p99 latency, e.g. 15ms.", metavar="TIME")
    first_token: str = option("", "Target p99 TTFT (time to first token).", "--first-token", "--ttft", metavar="TIME")
    between_tokens: str = option(
        "", "Target p99 TPOT (time per output token).", "--between-tokens", "--tpot", metavar="TIME"
    )
    beside: list[str] | None = option(
        None,
        "Other models and their shares of the requests, e.g. vit_b_16=0.2,resnet18=0.1.",
        metavar="MODEL=SHARE,...",
        is_advanced=True,
    )
    objective: Objective = option("cost", "Quantity to minimize.")
    max_power: str = option(
        "",
        "Maximum power of the fleet, hosts included, e.g. 10kW.",
        metavar="POWER",
        shown=False,
        panel=LIMITS,
        is_advanced=True,
    )
    max_cost: str = option(
        "",
        "Maximum cost of the fleet per month (with --rate or --rates), e.g. 5000USD.",
        metavar="PRICE",
        shown=False,
        panel=LIMITS,
        is_advanced=True,
    )
    release: bool = option(
        False, "Release rented devices and switch off owned ones when the rate is lower.", is_advanced=True
    )
    variation: float = option(
        0.0, "Coefficient of variation of batch times; 1 is exponential.", metavar="RATIO", is_advanced=True
    )

    node: int = option(1, "Devices per node; a fleet has whole nodes only.", min=1, is_advanced=True)

    def read(self) -> Demand:
        """Return the demand; UsageError names an option that cannot be read."""
        if self.rate and self.rates is not None:
            raise UsageError("--rate and --rates exclude each other: give one of the two")
        if not self.rate and self.rates is None:
            raise UsageError("no request rate: add --rate 2000/s, or --rates FILE.csv")
        return read_as(
            Demand,
            self,
            between_s=read_quantity("--between-tokens", self.between_tokens, "s"),
            beside=_read_each("--beside", self.beside, read_real, "vit_b_16=0.2"),
            max_cost_per_month=read_quantity("--max-cost", self.max_cost, "USD"),
            releases=self.release,
        )

    def repeat(self) -> tuple[str, ...]:
        """Return the options that differ from their defaults, as words of a command line."""
        names = [field.name for field in attrs.fields(type(self)) if field.name != "release"]
        return (*repeat_options(self, names), *(("--release",) if self.release else ()))


@frozen(kw_only=True)
class ReportDemandOptions(DemandOptions):
    """Options of `report` for its chapter on fleets."""

    chapter: ClassVar[str] = "fleet"

    def ask(self) -> Demand | None:
        """Return the demand, or None if no option is given."""
        return None if self == type(self)() else self.read()


def read_models(model: str, demand: Demand) -> tuple[str, Demand]:
    """Return the model to serve and the demand; a .toml file names several models with their shares.

    Its first model is returned, the others are added to the demand. Raise UsageError for a file that cannot be read,
    and for shares that do not sum to 1.
    """
    if not model.endswith(".toml"):
        return model, demand
    if demand.beside:
        raise UsageError(f"{model} names models and their shares: leave out --beside")
    import tomllib

    try:
        models = tomllib.loads(read_text(Path(model))).get("models")
    except (FileError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {model}: {error}") from error
    if not isinstance(models, dict) or not models:
        raise UsageError(f"{model} has no table [models] of lines such as resnet50 = 0.7")
    for name, share in models.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
            raise UsageError(
                f"{model}: the share of {name} is {share!r}, expected a number above 0 and at most 1, such as 0.7"
            )
    if abs(sum(models.values()) - 1.0) > ROUNDED:
        raise UsageError(f"{model}: the shares of {', '.join(models)} sum to {sum(models.values()):g}, expected 1")
    first, *others = models
    return first, attrs.evolve(demand, beside={name: float(models[name]) for name in others})


def _read_each(
    option: str, written: list[str] | None, read: Callable[[str], Number], example: str
) -> dict[str, Number]:
    """Return name -> number from texts such as `name=8`; UsageError names the option and the fault."""
    try:
        return {name: read(text) for name, text in split_pairs(written).items()}
    except (UsageError, ValueError) as error:
        given = ", ".join(written or ())
        raise UsageError(f"{option}: cannot read {given}: write {example}, each name once") from error
