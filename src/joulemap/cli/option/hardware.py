"""Which hardware is asked about, and the power that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from joulemap.cli.command import option
from joulemap.cli.complete import complete_architectures, complete_deployments, complete_hardware
from joulemap.cli.value import read_quantity
from joulemap.domain.name import split_names
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import SettingsKeywords

ONE_HARDWARE: Final = (
    "An id, alias, class or file, with @MODE or without; see `joulemap hardware list`. Also as --hardware."
)
SEVERAL_HARDWARE: Final = (
    "Ids, aliases, classes, files or folders, comma-separated, each with @MODE or without; see `joulemap hardware "
    "list`. A class means its default chip, its plural all of it: gpu, gpus."
)


def several_hardware(shown: str) -> Any:
    """Return the option that names hardware, which says what is meant where none is named."""
    return option("", SEVERAL_HARDWARE, "--hardware", shown=shown, complete=complete_hardware)


def join_hardware(named: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Return hardware as arguments and an option name it; each text may name several, or be a path with a comma."""
    return (*(named or ()), *((option,) if option else ()))


@frozen(kw_only=True)
class ModeOptions:
    """At which operating point one hardware runs."""

    power_mode: str = option("", "Operating point of hardware named without one, e.g. 15W.", shown="the chip's own")

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return {"power_mode": self.power_mode}


@frozen(kw_only=True)
class ScenarioOptions(ModeOptions):
    """Where hardware is used, and the power that it gets there."""

    scenario: str = option(
        "",
        "Hardware for a use, at its largest power mode within the power there: datacenter, edge, embedded, "
        "robot, camera or stick.",
        shown="any",
    )
    power_budget: str = option(
        "",
        "Run each hardware at its largest power mode capped within this, e.g. 15W.",
        shown="that of the scenario or deployment",
    )

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them; UsageError names the option that cannot be read."""
        budget = read_quantity("--power-budget", self.power_budget, "W")
        return {**super().keywords(), "scenario": self.scenario, "power_budget_w": budget}


@frozen(kw_only=True)
class FilterOptions(ScenarioOptions):
    """Which hardware is asked about, beside names."""

    architecture: str = option(
        "",
        "Only these classes, e.g. cpu,gpu; where one chip of each class is taken anyhow, their default chips.",
        shown="all",
        complete=complete_architectures,
    )
    deployment: str = option(
        "", "All hardware for datacenter, edge or embedded.", shown="any", complete=complete_deployments
    )

    takes_all: bool = option(False, "Rank what can be neither bought nor rented too, marked ~.", "--all")

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        names: dict[str, Any] = {"deployment": split_names(self.deployment), "takes_all": self.takes_all}
        return cast("SettingsKeywords", {**super().keywords(), **names, "architecture": split_names(self.architecture)})


@frozen(kw_only=True)
class HardwareOptions(FilterOptions):
    """Which hardware is asked about."""

    hardware: str = several_hardware("one each of cpu, gpu, tpu, kpu")

    def keywords(self, named: Sequence[str] = ()) -> SettingsKeywords:
        """Return what is asked by them, and by hardware that was named among the arguments."""
        return {**super().keywords(), "hardware": join_hardware(named, self.hardware)}


@frozen(kw_only=True)
class NamedHardwareOptions(HardwareOptions):
    """Which hardware is asked about, by arguments or as an option."""

    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HARDWARE]...", help="As with --hardware.", autocompletion=complete_hardware),
    ] = None

    def keywords(self, named: Sequence[str] = ()) -> SettingsKeywords:
        """Return what is asked by them, and by hardware that was named elsewhere."""
        return super().keywords((*(self.named or ()), *named))


@frozen(kw_only=True)
class ServedHardwareOptions(NamedHardwareOptions):
    """Which hardware serves language models."""

    hardware: str = several_hardware("six that models of all sizes are served on")


@frozen(kw_only=True)
class TrainedHardwareOptions(NamedHardwareOptions):
    """Which hardware trains models."""

    hardware: str = several_hardware("three that models are trained on")


@frozen(kw_only=True)
class OneHardwareOptions:
    """Which one hardware is asked about, by an argument or as an option."""

    named: Annotated[
        list[str] | None, typer.Argument(metavar="HARDWARE", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None
    option: str = option("", "", "--hardware", hidden=True, complete=complete_hardware)

    def read(self) -> str:
        """Return how it is named; UsageError where it is not."""
        hardware = " ".join(join_hardware(self.named, self.option))
        if not hardware.strip():
            raise UsageError("name a hardware after the model; see `joulemap hardware list`")
        return hardware


@frozen(kw_only=True)
class TwoHardwareOptions:
    """Which two hardware are asked about, by arguments or as an option."""

    named: Annotated[
        list[str] | None, typer.Argument(metavar="A B", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None
    option: str = option("", "", "--hardware", hidden=True, complete=complete_hardware)

    def read(self) -> tuple[str, str]:
        """Return how they are named; UsageError where they are not two."""
        from joulemap.answer.name import list_hardware

        found = list_hardware(join_hardware(self.named, self.option))
        if len(found) != 2:
            names = f" ({', '.join(found)})" if found else ""
            raise UsageError(f"name two hardware after the model, A and B; found {len(found)}{names}")
        return found[0], found[1]


@frozen(kw_only=True)
class ClassHardwareOptions(NamedHardwareOptions):
    """Which hardware stands for the architecture classes."""

    hardware: str = several_hardware("one of each class")
    deployment: str = option(
        "", "Of those, only for datacenter, edge or embedded.", shown="any", complete=complete_deployments
    )


@frozen(kw_only=True)
class CandidateHardwareOptions(NamedHardwareOptions):
    """Which hardware is chosen from."""

    hardware: str = several_hardware("the whole catalogue")
    power_mode: str = option(
        "",
        "Operating point of hardware named without one, e.g. 15W; default for the chip's own.",
        shown="every one that it has",
    )
