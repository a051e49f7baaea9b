"""Options for hardware and its power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import attrs
import typer

from joulemap.cli.command import advanced, option, optional
from joulemap.cli.complete import complete_architectures, complete_deployments, complete_hardware, complete_kinds
from joulemap.cli.option.run import repeat_options
from joulemap.cli.panel import HARDWARE
from joulemap.cli.value import read_quantity
from joulemap.system.errors import UsageError
from joulemap.system.name import split_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import SettingsKeywords

ONE_HARDWARE: Final = "Chip id, alias, class or file, optionally with @MODE; see `joulemap hardware list`."
SEVERAL_HARDWARE: Final = "Ids, aliases, classes (gpu: default chip, gpus: all), files or folders."


def several_hardware(shown: str) -> Any:
    """Return the option `--hardware` with a description of its default."""
    return option("", SEVERAL_HARDWARE, "--hardware", metavar="NAME,...", shown=shown, complete=complete_hardware)


def join_hardware(named: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Return the hardware of arguments and of an option; each text may name several, or be a path with a comma."""
    return (*(named or ()), *((option,) if option else ()))


@frozen(kw_only=True)
class ModeOptions:
    """Option for the power mode of one chip."""

    panel: ClassVar[str] = HARDWARE
    power_mode: str = advanced(
        "",
        "Power mode of hardware named without one, e.g. 15W.",
        metavar="MODE",
        shown="the chip's own",
    )

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        return {"power_mode": self.power_mode}


@frozen(kw_only=True)
class HardwareOptions(ModeOptions):
    """Options that name or filter hardware, and its power where it is used."""

    scenario: str = optional(
        "Use case with its power budget: datacenter, edge, embedded, robot, drone, camera, phone, stick, keyword or "
        "coin_cell.",
        "NAME",
        is_advanced=True,
    )
    power_budget: str = advanced(
        "",
        "Maximum power per device, e.g. 15W; each runs in its highest power mode within it.",
        metavar="POWER",
        shown="from the scenario or deployment",
    )
    architecture: str = optional(
        "Architecture classes to include, e.g. cpu,gpu.", "NAME,...", complete=complete_architectures
    )
    deployment: str = optional("Deployments: datacenter, edge or embedded.", "NAME,...", complete=complete_deployments)
    kind: str = optional(
        "Kinds of product: board, car, card, computer, laptop, microcontroller, phone or server.",
        "NAME,...",
        complete=complete_kinds,
        is_advanced=True,
    )
    takes_all: bool = advanced(False, "Include hardware that cannot be bought or rented, marked ~.", "--all")
    hardware: str = several_hardware("xeon_8490h, h100_sxm5, tpu_v4, rtx_4090, kpu_t256")

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command repeats to ask about the same hardware."""
        return repeat_options(self, [one.name for one in reversed(attrs.fields(HardwareOptions))])

    def keywords(self, named: Sequence[str] = ()) -> SettingsKeywords:
        """Return the settings of these options and of hardware named as arguments; UsageError names an option that
        cannot be read.
        """
        names: dict[str, Any] = {
            "scenario": self.scenario,
            "power_budget_w": read_quantity("--power-budget", self.power_budget, "W"),
            "architecture": split_names(self.architecture),
            "deployment": split_names(self.deployment),
            "kind": split_names(self.kind),
            "takes_all": self.takes_all,
            "hardware": join_hardware(named, self.hardware),
        }
        return cast("SettingsKeywords", {**super().keywords(), **names})


@frozen(kw_only=True)
class NamedHardwareOptions(HardwareOptions):
    """Hardware named by arguments or by an option."""

    named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HARDWARE]...",
            help="Hardware, as for --hardware; NAME@MODE sets a power mode.",
            autocompletion=complete_hardware,
        ),
    ] = None

    def keywords(self, named: Sequence[str] = ()) -> SettingsKeywords:
        """Return the settings of these options as keywords; `named` is further hardware from arguments."""
        return super().keywords((*(self.named or ()), *named))


@frozen(kw_only=True)
class ServedHardwareOptions(NamedHardwareOptions):
    """Options that name hardware to serve language models."""

    hardware: str = several_hardware("six common serving chips")


@frozen(kw_only=True)
class TrainedHardwareOptions(NamedHardwareOptions):
    """Options that name hardware to train models."""

    hardware: str = several_hardware("three common training chips")


@frozen(kw_only=True)
class OneHardwareOptions:
    """One chip, as an argument or as an option."""

    panel: ClassVar[str] = HARDWARE

    named: Annotated[
        list[str] | None, typer.Argument(metavar="HARDWARE", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None
    option: str = option("", "", "--hardware", hidden=True, complete=complete_hardware)

    def read(self) -> str:
        """Return the name of the hardware; UsageError if there is none."""
        hardware = " ".join(join_hardware(self.named, self.option))
        if not hardware.strip():
            raise UsageError("name a chip; see `joulemap hardware list`")
        return hardware


@frozen(kw_only=True)
class TwoHardwareOptions(OneHardwareOptions):
    """Two chips, as arguments or as an option."""

    named: Annotated[
        list[str] | None, typer.Argument(metavar="A B", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None

    def read_both(self) -> tuple[str, str]:
        """Return the two names; UsageError if there are more or fewer."""
        from joulemap.ask.subject import list_hardware

        chips = list_hardware(join_hardware(self.named, self.option))
        if len(chips) != 2:
            names = f" ({', '.join(chips)})" if chips else ""
            raise UsageError(f"name two chips after the model, A and B; found {len(chips)}{names}")
        return chips[0], chips[1]


@frozen(kw_only=True)
class ClassHardwareOptions(NamedHardwareOptions):
    """Hardware that represents the architecture classes."""

    hardware: str = several_hardware("one of each class")
    deployment: str = optional(
        "Deployment to restrict the chips to: datacenter, edge or embedded.", "NAME,...", complete=complete_deployments
    )


@frozen(kw_only=True)
class CandidateHardwareOptions(NamedHardwareOptions):
    """Candidate hardware, from which an answer chooses."""

    hardware: str = several_hardware("all chips")
    power_mode: str = advanced(
        "",
        "Power mode of hardware named without one, e.g. 15W; default means the chip's own.",
        metavar="MODE",
        shown="every mode",
    )
