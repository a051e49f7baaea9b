"""Options for hardware and its power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import typer

from joulemap.cli.command import option
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.run import repeat_options
from joulemap.cli.panel import HARDWARE
from joulemap.system.config import Known, placing, read_flag, read_options
from joulemap.system.errors import UsageError
from joulemap.system.name import join_choices, split_names
from joulemap.system.number import parse_quantity
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


WHERE: Final = "--where"

FILTERS: Final[Mapping[str, Known]] = {
    "architecture": Known(
        field="architecture", read=split_names, example="cpu,gpu", meaning="architecture classes to include",
    ),
    "deployment": Known(
        field="deployment", read=split_names, example="edge", meaning="deployments: datacenter, edge or embedded",
    ),
    "kind": Known(
        field="kind", read=split_names, example="card",
        meaning="kinds of product: board, car, card, computer, laptop, microcontroller, phone or server",
    ),
    "scenario": Known(
        field="scenario", read=str, example="robot",
        meaning="use case with its power budget: datacenter, edge, embedded, robot, drone, camera, phone, stick, "
        "keyword or coin_cell",
    ),
    "power-budget": Known(
        field="power_budget_w", read=lambda text: parse_quantity(text, "W"), example="15W", unit="W",
        meaning="maximum power per device; each runs in its highest power mode within it",
    ),
    "power-mode": Known(
        field="power_mode", read=str, example="15W",
        meaning="power mode of hardware named without one; default means the chip's own",
    ),
    "all": Known(
        field="takes_all", read=read_flag, example="true",
        meaning="include hardware that cannot be bought or rented, marked ~",
    ),
}  # fmt: skip
"""Filter of hardware after `--where` -> what it is."""


def _complete_filter(incomplete: str) -> list[str]:
    return [f"{name}=" for name in FILTERS if name.startswith(incomplete)]


@frozen(kw_only=True)
class HardwareOptions:
    """Options that name or filter hardware, and its power where it is used."""

    panel: ClassVar[str] = HARDWARE
    where: list[str] | None = option(
        None,
        f"Filter by {join_choices(FILTERS)}.",
        metavar="NAME=VALUE",
        complete=_complete_filter,
    )
    hardware: str = several_hardware("xeon_8490h, h100_sxm5, tpu_v4, rtx_4090, kpu_t256")

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command repeats to ask about the same hardware."""
        return repeat_options(self, ["hardware", "where"])

    def keywords(self, named: Sequence[str] = ()) -> SettingsKeywords:
        """Return the settings of these options and of hardware named as arguments; UsageError names a filter that
        cannot be read.
        """
        asked: dict[str, Any] = {"hardware": join_hardware(named, self.hardware)}
        given = [one if "=" in one else f"{one}=true" for one in self.where or ()]
        for (name, _), one in read_options(FILTERS, given, WHERE).items():
            with placing(one.where):
                asked[FILTERS[name].field] = FILTERS[name].read(one.text)
        return cast("SettingsKeywords", asked)


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


@frozen(kw_only=True)
class CandidateHardwareOptions(NamedHardwareOptions):
    """Candidate hardware, from which an answer chooses."""

    hardware: str = several_hardware("all chips, in every power mode")
