"""Scope of an answer: its models and runs, and the notes that a reader needs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.assumed import describe_assumed, is_whole, show_assumed, tells_energy
from joulemap.answer.caveat import describe_caveat
from joulemap.answer.surrounding import Plugged, describe_plugged, find_plugged
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.configuration import MEASURED_HOST, SYSTEM
from joulemap.domain.engine import group_engines, has_framework, is_deployed
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.host import suggest_host
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.domain.weight import find_weight_format, label_precision, split_precision
from joulemap.plan.hold import StoredRuns, holding_runs
from joulemap.plan.run import Plan
from joulemap.plan.selection import Selection, describe_meanings
from joulemap.plan.source import Source
from joulemap.present.cell import (
    join_names,
    mark_projected,
    show_chance,
    show_count,
    show_doubt,
    show_quantity,
    show_share,
    show_span,
)
from joulemap.present.document import EnergyCell, Text
from joulemap.row.calibration import StoredCalibration
from joulemap.row.model import Caveat
from joulemap.store.connection import Connection
from joulemap.store.query import fetch, fetch_none
from joulemap.store.run import (
    AssumedEnergy,
    Outline,
    find_assumed,
    find_configurations,
    find_launches,
    find_outlines,
    find_projected_hardware,
    find_unlisted_hardware,
)
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.plan.budget import Budget
    from joulemap.row.run import Fallback


SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which it rounds to zero."""

SHOWN_LEFT_OUT: Final = 12
"""Maximum hardware named as left out by a power budget; machine formats list all."""

TOLD_FALLEN: Final = 0.02
"""Share of the time on a host above which every answer states it."""

SHOWN_FALLEN: Final = 4
"""Maximum hardware named on one line about the same fallback."""

FALLEN_SHARES: Final = ("latency_fraction", "energy_fraction")
"""Columns shown of a fallback to a host."""

FEW: Final = 0.8
"""Credibility below which a calibration's few measurements are noted."""

SHOWN_UNCALIBRATED: Final = 6
"""Maximum uncalibrated hardware named beside calibrated hardware."""

SHOWN_CHANGES: Final = 3
"""Maximum hardware with distinct changes named in a heading; the notes have the others."""

SHOWN_NUMBERS: Final = 6
"""Maximum changed numbers named per hardware; a design from a file has dozens."""

LEAST_OWN: Final = 0.1
"""Half width due to a hardware's own numbers below which it is not stated."""

DOUBTED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "energy": ("energy",),
    "efficiency": ("energy",),
    "latency": ("latency",),
    "throughput": ("latency",),
    "edp": ("latency", "energy"),
    "power": ("latency", "energy"),
}
"""Metric -> quantities whose uncertainty it includes."""

TORCH_TF32: Final = "TF32 convolutions, PyTorch's default"
"""Operators that frameworks compute in TF32 in an fp32 run on an NVIDIA GPU."""

FP32: Final = re.compile(r"(?<=[ ,])fp32(?=,| and |$)")
"""Pattern of fp32 in a title without a description of TF32; fp32 with other weights never runs in TF32."""

TIE_RATIO: Final = 1.005
"""Ratio below which two values look equal at the digits shown."""


@frozen(kw_only=True)
class Scope:
    """Models, runs and hardware of an answer, with the facts that its notes state."""

    models: tuple[str, ...]
    """Models, as the caller named them."""
    batches: tuple[int, ...]
    """Batch sizes of the runs, smallest first."""
    settings: Settings
    precisions: tuple[tuple[str, str], ...]
    """Distinct pairs of the runs: precision of activations, stored precision of product weights."""
    run_ids: tuple[int, ...]
    """Runs in the order of the question: by model, batch, hardware."""
    refused: Mapping[int, str]
    """Refused run -> the reason why its hardware cannot run it."""
    spelling: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware as the answer names it -> its name in a question, if it comes from a file."""
    meanings: Mapping[str, str] = attrs.field(factory=dict)
    """Class named in place of a hardware -> hardware that represents it."""
    budget: Budget | None = None
    """Maximum cap of power modes; None without a budget."""
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware without a power mode within the budget -> its lowest power, as `at least 75 W`."""
    unplugged: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware without the boundary that was asked for -> reason."""
    fallback_boundary: str = ""
    """Boundary of that hardware; empty if it is left out."""
    plugged: tuple[Plugged, ...] = ()
    """Hardware of the runs at the boundary `system`."""
    hardware: tuple[str, ...]
    """Ids of the runs' hardware, in alphabetical order."""
    projected: frozenset[str]
    """Hardware that can be neither bought nor rented."""
    unlisted: frozenset[str] = frozenset()
    """Hardware whose compiler has no list of supported operators."""
    caveats: Table[Caveat]
    """Assumptions of the traces, and operators that they could not count."""
    calibrations: Table[StoredCalibration]
    """Calibrations that the runs used; empty if all used class defaults."""
    uncalibrated: tuple[str, ...]
    """Hardware of the runs without a calibration."""
    boundaries: tuple[str, ...]
    """Boundaries of the energies: `board`, `chip` or `system`; several occur only for stored runs named by number."""
    tf32: str = ""
    """Description of the TF32 operators of fp32 runs; empty without any."""
    changes: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Hardware at its power mode -> numbers that a question changed, with their former values."""
    slots: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware that needs a host -> its kind of connection, as `PCIe slot`."""
    hosts: Mapping[str, str] = attrs.field(factory=dict)
    """Hardware that needs a host -> host that is counted with it; empty for none."""
    launches: tuple[tuple[str, str, bool, float], ...] = ()
    """Launches as returned by `find_launches`."""
    placements: Mapping[str, str] = attrs.field(factory=dict)
    """Box at its power mode -> placement of its runs."""
    fallen: tuple[Fallback, ...] = ()
    """Operators that a host computes because a chip's compiler does not support them."""
    assumed: Mapping[int, AssumedEnergy] = attrs.field(factory=dict)
    """Run -> assumed part of its energy."""
    named: Mapping[int, str] = attrs.field(factory=dict)
    """Run -> its hardware at its power mode."""
    doubts: Mapping[str, Mapping[str, tuple[float, float]]] = attrs.field(factory=dict)
    """Hardware at its power mode -> latency and energy -> two half widths of the 80 % interval of the logarithm: the
    total, and the part due to the hardware's own numbers; the largest of its runs.
    """
    new: tuple[str, ...] = ()
    """Hardware whose class has no measurements of this kind of work."""
    engines: Mapping[str, list[str]] = attrs.field(factory=dict)
    """Inference engine -> hardware deployed with it.

    Empty unless the engine runtime is requested, or hardware that has only such an engine is compared with hardware
    that a compiler of the framework supports.
    """

    def warn_unlisted(self, headline: str) -> str:
        """Return a clause on hardware of a headline without a list of supported operators; empty for none."""
        named = [
            name for name in self.hardware if name in self.unlisted and re.search(rf"(?<!\w){name}(?!\w)", headline)
        ]
        return f"operator support of {join_names(named)} is unknown" if named else ""

    def warn_unhosted(self, headline: str) -> str:
        """Return a clause on hardware of an energy headline whose energy leaves out the host that it needs.

        Empty if all of the hardware needs one, because the omission then favours none.
        """
        alone = [] if SYSTEM in self.boundaries else [name for name, host in self.hosts.items() if not host]
        if len(alone) == len(self.hardware) or not tells_energy(headline):
            return ""
        named = [name for name in alone if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", headline)]
        if not named:
            return ""
        hosts = dict.fromkeys(suggest_host(self.slots.get(name, "")) for name in named)
        options = " or ".join(f"--host {host}" for host in hosts)
        if len(named) == 1:
            return f"the energy of {named[0]} leaves out the host that it needs: {options} adds it"
        return f"the energies of {join_names(named)} leave out the hosts that they need: {options} adds them"

    @property
    def evaluated_ids(self) -> tuple[int, ...]:
        """Runs that were not refused."""
        return tuple(run_id for run_id in self.run_ids if run_id not in self.refused)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Distinct reasons why hardware was refused."""
        return tuple(dict.fromkeys(self.refused.values()))

    @property
    def model(self) -> str:
        """First model; the only one of most answers."""
        return self.models[0]

    @property
    def title(self) -> str:
        """Models, batch sizes, precisions and runtimes on one line."""
        batches = join_names([str(batch) for batch in self.batches])
        settings = self.settings
        precisions = [label_precision(*pair) for pair in self.precisions]
        return ", ".join([*self.models, f"batch {batches}", *precisions, *settings.runtime])

    def describe_runtime(self) -> str:
        """Return the precisions and runtimes of the runs."""
        precisions = join_names([label_precision(*pair) for pair in self.precisions])
        return f"{precisions}, {join_names(list(self.settings.runtime))}"

    def bounded(self, title: str) -> str:
        """Return a title with the boundary of its energies, inserted before any colon."""
        subject, colon, rest = self._mark_tf32(title).partition(": ")
        told = self.describe_changes()
        hidden = len(told) - SHOWN_CHANGES
        changed = (*told[:SHOWN_CHANGES], *((f"{hidden} more changed",) if hidden > 0 else ()))
        hosts = [f"with host {host}" for host in dict.fromkeys(filter(None, self.hosts.values()))]
        return f"{', '.join((subject, ' and '.join(self.boundaries), *hosts, *changed))}{colon}{rest}"

    def _mark_tf32(self, title: str) -> str:
        """Return a title in which fp32 states the operators that run in TF32.

        The statement is appended if fp32 is the only precision and the title does not name it. A title that names none
        of several precisions stays unchanged; a note states it instead.
        """
        if not self.tf32:
            return title
        marked, count = FP32.subn(f"fp32 ({self.tf32})", title, count=1)
        if count or self.precisions != (("fp32", "fp32"),):
            return marked
        subject, colon, rest = title.partition(": ")
        return f"{subject}, fp32 ({self.tf32}){colon}{rest}"

    def describe_changes(self) -> list[str]:
        """Return the changed numbers, with hardware that has the same changes grouped."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for hardware, told in self.changes.items():
            groups.setdefault(told, []).append(self.mark(hardware))
        return [f"{join_names(names)} with {join_names(_shorten(told))}" for told, names in groups.items()]

    def say_doubts(self, quantities: Collection[str]) -> list[str]:
        """Return the uncertainty of each hardware's figures, and the part due to its own assumed numbers."""
        lines = []
        for name, widths in self.doubts.items():
            told = [
                show_doubt(width) + (f", of which {self._own(name)} {show_doubt(own)}" if own >= LEAST_OWN else "")
                for quantity, (width, own) in widths.items()
                if quantity in quantities
            ]
            lines += [f"{self.mark(name)} {' and '.join(told)}"] if told else []
        return lines

    def say_spread(self) -> str:
        """Return the 80 % interval of the most and the least certain figures on one line; empty for none."""
        spans = []
        for quantity in ("energy", "latency"):
            widths = sorted(found[quantity][0] for found in self.doubts.values() if quantity in found)
            ends = dict.fromkeys(show_doubt(width) for width in (*widths[:1], *widths[-1:]))
            spans += [f"{' to '.join(ends)} ({quantity})"] if ends else []
        told = [f"4 in 5 measurements are within {' and '.join(spans)} of the figure"] if spans else []
        return ", ".join((*told, *self._say_new(), *self.say_own_doubts(is_yours=True)))

    def _say_new(self) -> list[str]:
        """Return the hardware whose uncertainty is estimated from other kinds of work."""
        if not self.new:
            return []
        whose = "" if len(self.new) == len(self.doubts) else f"for {join_names([self.mark(one) for one in self.new])} "
        its = "its class, which has" if len(self.new) == 1 else "their classes, which have"
        return [f"{whose}estimated from other work of {its} no measurements of this kind"]

    def say_own_doubts(
        self, quantities: Collection[str] = ("latency", "energy"), *, is_yours: bool = False
    ) -> list[str]:
        """Return the uncertainty due to the assumed numbers of each hardware that has any.

        `is_yours` restricts the result to hardware from the user's own files.
        """
        told = []
        for name, widths in self.doubts.items():
            if is_yours and HardwareRef.read(name).label not in self.spelling:
                continue
            parts = [
                f"{show_doubt(own)} ({quantity})"
                for quantity, (_, own) in widths.items()
                if own >= LEAST_OWN and quantity in quantities
            ]
            told += [f"{self._own(name)} of {self.mark(name)} contribute {' and '.join(parts)}"] if parts else []
        less = len(told) - SHOWN_UNCALIBRATED
        more = f" and those of {less} more" if less > 0 else ""
        return [f"of which {'; '.join(told[:SHOWN_UNCALIBRATED])}{more}"] if told else []

    def _own(self, name: str) -> str:
        return "your assumed numbers" if HardwareRef.read(name).label in self.spelling else "assumed numbers"

    def check_evaluated(self) -> None:
        """Raise UnsupportedError with the reasons if every run was refused."""
        if not self.evaluated_ids:
            meant = [f"{name} means {hardware}" for name, hardware in self.meanings.items()]
            raise UnsupportedError("; ".join((*self.refusals, *meant)))

    def mark(self, hardware: str) -> str:
        """Return a hardware's displayed name, marked if it can be neither bought nor rented."""
        return mark_projected(hardware, self.projected)

    def can_flip(self, *hardware: str) -> bool:
        """Return whether `flip` accepts these hardware: chips, but no boxes."""
        return not set(hardware) & set(self.placements)

    def spell(self, hardware: str) -> str:
        """Return the name of a hardware in a question."""
        return self.spelling.get(hardware, hardware)

    def say_left_out(self) -> tuple[Text, ...]:
        """Return the line below a table on omitted hardware: the count, and the first reason of each kind."""
        budget = "" if self.budget is None else f" within {show_quantity(self.budget.power_w, 'W')}"
        told = [
            f"{len(names)} {what} ({self.mark(first)}{more})"
            for what, names, first, more in (
                ("unsupported", self.refused, next(iter(self.refusals), ""), ""),
                (f"without a mode{budget}", self.left_out, *_first(self.left_out)),
            )
            if names
        ]
        return (Text(f"Left out: {'; '.join(told)}"),) if told else ()

    def describe_refusals(self) -> list[str]:
        """Return a line for each reason why hardware was refused."""
        return [f"unsupported: {self.mark(reason)}" for reason in self.refusals]

    def describe(self) -> list[str]:
        """Return the notes: classes named as hardware, omissions, calibrations and caveats."""
        return [
            *describe_meanings(self.meanings),
            *self._describe_weights(),
            *((f"fp32 runs of NVIDIA GPUs use {self.tf32} (--tf32 never)",) if self.tf32 else ()),
            *(f"{name} runs it {told}" for name, told in self.placements.items()),
            *(f"set: {told}" for told in self.describe_changes()[SHOWN_CHANGES:]),
            *self._describe_budget(),
            *describe_plugged(self.plugged, self.unplugged, self.fallback_boundary),
            *self._describe_hosts(),
            *self._describe_engines(),
            *(line for row in self.calibrations for line in describe_calibration(row, self.hardware)),
            *self._describe_uncalibrated(),
            *(f"uncertainty: {line.removeprefix('of which ')}" for line in self.say_own_doubts()),
            *(describe_caveat(row, self.settings.runtime) for row in self.caveats),
        ]

    def _describe_weights(self) -> list[str]:
        """Return the storage format of weights that are narrower than activations."""
        pairs = (find_weight_format(*pair) for pair in self.precisions)
        told = dict.fromkeys(weights.describe() for weights in pairs if weights is not None)
        if not told:
            return []
        return [
            f"weights of products are stored as {'; '.join(told)}; the kernel that multiplies by them converts them, "
            "and norms, biases and tables keep the precision of activations"
        ]

    def _describe_budget(self) -> list[str]:
        if self.budget is None:
            return []
        lines = [f"each hardware at its largest power mode within {self.budget}"]
        if self.left_out:
            told = [f"{self.mark(name)} ({reason})" for name, reason in self.left_out.items()]
            rest = len(told) - SHOWN_LEFT_OUT
            more = f" and {rest} more, which --format json has" if rest > 0 else ""
            shown = ", ".join(told[:SHOWN_LEFT_OUT])
            lines.append(f"left out, no mode within {show_quantity(self.budget.power_w, 'W')}: {shown}{more}")
        return lines

    def _describe_hosts(self) -> list[str]:
        """Return the hardware whose power is that of a card or module alone, and the hosts that are counted."""
        lines = []
        if self.settings.host and not any(self.hosts.values()) and not self.launches:
            lines.append(f"{self.settings.host} is not counted: none of the hardware needs a host")
        groups: dict[tuple[str, str], list[str]] = {}
        for name, host in self.hosts.items() if SYSTEM not in self.boundaries else ():
            groups.setdefault((host, "" if host else suggest_host(self.slots.get(name, ""))), []).append(
                self.mark(name)
            )
        for (host, other), names in groups.items():
            verb = "needs" if len(names) == 1 else "need"
            if host:
                lines.append(f"{join_names(names)} {verb} a host: the static power of {host} is in energy and power")
            else:
                told = f"whose energy is not included: `--host {other}`, for example, adds it"
                lines.append(f"{join_names(names)} {verb} a host, {told}; `recommend` ranks with a host")
        return [*lines, *self._describe_launches(), *describe_fallen(self.fallen, self.mark)]

    def _describe_launches(self) -> list[str]:
        """Return the host that launches the kernels of `eager`, and the time per launch."""
        groups: dict[str, list[str]] = {}
        for hardware, host, has_link, seconds in self.launches:
            who = host or (MEASURED_HOST if has_link else "a core beside it")
            more = (
                "" if host or not has_link else "; `--host` names another, `joulemap measure host` times this machine"
            )
            groups.setdefault(f"launched by {who} in {show_quantity(seconds, 's')} each{more}", []).append(hardware)
        return [f"eager: kernels of {join_names([*map(self.mark, some)])} are {told}" for told, some in groups.items()]

    def tell_fallen(self) -> list[str]:
        """Return a sentence on the share of time that hosts compute; empty if it is small."""
        shares: dict[str, float] = {}
        for run_id in dict.fromkeys(row.run_id for row in self.fallen):
            some = [row for row in self.fallen if row.run_id == run_id]
            share = sum(row.latency_fraction for row in some)
            shares[some[0].configured_hardware] = max(share, shares.get(some[0].configured_hardware, 0.0))
        told = [f"{show_share(share)} on {self.mark(name)}" for name, share in shares.items() if share >= TOLD_FALLEN]
        if not told:
            return []
        return [f"a host computes what the chip's compiler does not run: of the time {join_names(told)}"]

    def show_assumed(self, energy: EnergyCell) -> str:
        """Return the assumed share of a run's energy for a table cell; empty up to a third, or for a part of a run."""
        whole = self.assumed.get(energy.run_id)
        is_part = whole is not None and energy.field == "energy_j" and not is_whole(whole, energy.value)
        return "" if is_part else show_assumed(whole)

    def describe_assumed(self, headline: str, chosen: Collection[int] | None = None) -> str:
        """Return the assumed share of the energies in a headline; empty up to a third.

        For hardware with `chosen` runs, only those count.
        """
        energies: dict[str, list[AssumedEnergy]] = {self.mark(name): [] for name in self.named.values()}
        picked = {self.named[run_id] for run_id in chosen or () if run_id in self.named}
        for run_id, name in self.named.items():
            if run_id in self.assumed and (name not in picked or run_id in (chosen or ())):
                energies[self.mark(name)].append(self.assumed[run_id])
        return describe_assumed(headline, {name: each for name, each in energies.items() if each})

    def show_power(self, hardware: str, power_w: float | None) -> str:
        """Return a power for people, marked if it omits the host that the hardware needs."""
        if power_w is None:
            return ""
        is_alone = self.hosts.get(HardwareRef.read(hardware).label) == "" and SYSTEM not in self.boundaries
        return show_quantity(power_w, "W") + (" + host" if is_alone else "")

    def _describe_engines(self) -> list[str]:
        if not self.engines:
            return []
        told = {
            engine: f"{engine} on {join_names(list(map(self.mark, names)))}" for engine, names in self.engines.items()
        }
        if "engine" in self.settings.runtime:
            return [f"engine stands for {'; '.join(told.values())}; `--runtime fused` is the framework's compiler"]
        only = [text for engine, text in told.items() if not is_deployed(engine)]
        deployed = [text for engine, text in told.items() if is_deployed(engine)]
        return [
            f"fused stands for {'; '.join(only)}, and for the framework's compiler elsewhere, where people deploy with "
            f"{'; '.join(deployed)}: `--runtime engine`"
        ]

    def _describe_uncalibrated(self) -> list[str]:
        """Return a note if some of the hardware is calibrated and some is not."""
        if not self.calibrations or not self.uncalibrated:
            return []
        calibrated = sorted({row.hardware for row in self.calibrations} & set(self.hardware))
        calibrated += [name for row in self.calibrations for name in row.inheritors]
        less = len(self.uncalibrated) - SHOWN_UNCALIBRATED
        shown = ", ".join(self.uncalibrated[:SHOWN_UNCALIBRATED]) + (f" and {less} more" if less > 0 else "")
        verbs = ["is" if len(names) == 1 else "are" for names in (calibrated, self.uncalibrated)]
        return [
            f"{join_names(calibrated)} {verbs[0]} calibrated, {shown} {verbs[1]} not: part of the difference is that; "
            "`--calibration none` compares class defaults"
        ]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {
            "models": self.models,
            "batches": self.batches,
            "precisions": tuple(dict.fromkeys(precision for precision, _ in self.precisions)),
            "weight_precisions": tuple(dict.fromkeys(weights for _, weights in self.precisions)),
            "runtimes": self.settings.runtime,
            "boundaries": self.boundaries,
            "tf32": self.tf32,
            "run_ids": self.run_ids,
            "class_defaults": self.meanings,
            "unsupported": self.refusals,
            "power_budget_w": None if self.budget is None else self.budget.power_w,
            "left_out": {**self.left_out, **({} if self.fallback_boundary else self.unplugged)},
            "caveats": self.caveats.records(),
            "calibrations": self.calibrations.records(),
            "uncalibrated": self.uncalibrated,
            "hosts": dict(self.hosts),
            "fallback": tuple(row.record() for row in self.fallen),
            "engines": dict(self.engines),
            "changes": dict(self.changes),
            "half_widths": {
                name: {quantity: {"all": width, "own": own} for quantity, (width, own) in widths.items()}
                for name, widths in self.doubts.items()
            },
        }


def _shorten(told: Sequence[str]) -> tuple[str, ...]:
    """Return the changed numbers of one hardware: the first few, and the count of the rest."""
    hidden = len(told) - SHOWN_NUMBERS
    return (*told[:SHOWN_NUMBERS], f"{hidden} more numbers") if hidden > 1 else tuple(told)


def _first(reasons: Mapping[str, str]) -> tuple[str, str]:
    """Return the first name, and its reason as a suffix; empty for none."""
    return next(((name, f": {reason}") for name, reason in reasons.items()), ("", ""))


def find_scope(runs: StoredRuns) -> Scope:
    """Return the scope of an answer about the runs of a plan."""
    ids, plan = list(runs.ids), runs.plan
    scope = Scope(
        models=tuple(dict.fromkeys(model.request.model for model in plan.models)),
        settings=plan.settings,
        precisions=plan.settings.precisions,
        engines=_find_engines(plan),
        **_find_of_runs(runs.connection, ids),
    )
    return widen(scope, plan.selection)


def _find_engines(plan: Plan) -> dict[str, list[str]]:
    """Return the value of `Scope.engines`; a box has the engines of its devices."""
    boxes = plan.selection.parts
    entries = [
        one
        for entry, _ in plan.selection.pairs
        for one in (map(HardwareEntry.of, boxes[entry.id]) if entry.id in boxes else (entry,))
    ]
    runtimes = plan.settings.runtime
    is_mixed = "fused" in runtimes and len({has_framework(entry.architecture) for entry in entries}) > 1
    return group_engines(entries) if "engine" in runtimes or is_mixed else {}


@contextlib.contextmanager
def holding_scope(source: Source, plan: Plan) -> Iterator[tuple[Scope, Connection, list[int]]]:
    """Yield the scope of an answer about the runs of a plan, a connection that holds them, and their ids.

    Raises as `holding_runs`, and UnsupportedError with the reasons if every run was refused.
    """
    with holding_runs(source, plan) as runs:
        scope = find_scope(runs)
        scope.check_evaluated()
        yield scope, runs.connection, list(runs.ids)


def widen(scope: Scope, selection: Selection) -> Scope:
    """Return the scope of stored runs, with the selection of their hardware."""
    return attrs.evolve(
        scope,
        spelling=selection.spelling,
        meanings=selection.meanings,
        budget=selection.budget,
        left_out=selection.left_out,
        unplugged=selection.unplugged,
        fallback_boundary=selection.fallback_boundary,
    )


def find_stored_scope(connection: Connection, run_ids: Sequence[int]) -> Scope:
    """Return the scope of an answer about stored runs, which name their hardware."""
    from joulemap.domain.settings import Settings

    models, labels, runtimes = find_configurations(connection, run_ids)
    precisions = tuple(map(split_precision, labels))
    activations = tuple(dict.fromkeys(precision for precision, _ in precisions))
    return Scope(
        models=models,
        settings=Settings(precision=activations, runtime=runtimes),  # type: ignore[arg-type]
        precisions=tuple((precision, weights or precision) for precision, weights in precisions),
        **_find_of_runs(connection, list(run_ids)),
    )


def _find_of_runs(connection: Connection, ids: list[int]) -> dict[str, Any]:
    runs = find_outlines(connection, ids)
    find = fetch if any(run.is_calibrated for run in runs.values()) else fetch_none
    return {
        "batches": tuple(sorted({run.batch for run in runs.values()})),
        "run_ids": tuple(ids),
        "refused": {run_id: run.refusal for run_id, run in runs.items() if run.refusal is not None},
        "projected": find_projected_hardware(connection),
        "unlisted": find_unlisted_hardware(connection),
        "caveats": fetch(connection, Caveat, run_ids=ids),
        "changes": {run.configured_hardware: tuple(run.changes) for run in runs.values() if run.changes},
        "placements": _find_placements(runs.values()),
        "hosts": {run.hardware: run.host for run in runs.values() if run.needs_host},
        "slots": {run.hardware: run.needs_host for run in runs.values() if run.needs_host},
        "launches": find_launches(connection, ids) if any(run.runtime == "eager" for run in runs.values()) else (),
        "fallen": _find_fallen(connection, [run_id for run_id, run in runs.items() if run.has_helper]),
        "doubts": _find_doubts(runs.values()),
        "new": tuple(dict.fromkeys(run.configured_hardware for run in runs.values() if run.is_new)),
        "calibrations": find(connection, StoredCalibration, run_ids=ids),
        "hardware": tuple(sorted({run.hardware for run in runs.values()})),
        "boundaries": tuple(sorted({run.boundary for run in runs.values()})),
        "plugged": find_plugged(connection, ids) if any(run.boundary == SYSTEM for run in runs.values()) else (),
        "assumed": find_assumed(connection, ids),
        "named": {run_id: run.configured_hardware for run_id, run in runs.items()},
        "tf32": name_tf32(run.runtime for run in runs.values() if run.tf32),
        "uncalibrated": tuple(sorted({run.hardware for run in runs.values() if not run.is_calibrated})),
    }


def name_tf32(runtimes: Iterable[str]) -> str:
    """Return the operators that run in TF32 in fp32 runs of these runtimes, with the library whose default it is."""
    told = {"TF32 products, TensorRT's default" if runtime == "engine" else TORCH_TF32 for runtime in runtimes}
    return "; ".join(sorted(told))


def _find_placements(runs: Iterable[Outline]) -> dict[str, str]:
    """Return the value of `Scope.placements`."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        if run.placement:
            form, _, devices = run.placement.rpartition(" ")
            found.setdefault(run.configured_hardware, {})[f"{form} on {devices}"] = None
    return {name: " or ".join(told) for name, told in found.items()}


def _find_fallen(connection: Connection, ids: list[int]) -> tuple[Fallback, ...]:
    """Return the operators of these runs that a host computes; queries only if a record may exist."""
    if not ids:
        return ()
    from joulemap.row.run import Fallback

    return tuple(fetch(connection, Fallback, run_ids=ids))


def _find_doubts(runs: Iterable[Outline]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the value of `Scope.doubts`."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for run in runs:
        widths = found.setdefault(run.configured_hardware, {})
        for quantity, width, own in (
            ("latency", run.latency_half_width, run.latency_own_half_width),
            ("energy", run.energy_half_width, run.energy_own_half_width),
        ):
            if width is not None:
                widths[quantity] = max(widths.get(quantity, (0.0, 0.0)), (width, own or 0.0))
    return found


def describe_calibration(row: StoredCalibration, hardware: Collection[str]) -> list[str]:
    """Return the origin, data and errors of a calibration that applies to some of this hardware."""
    errors = [
        f"{show_share(error)} of {name}"
        for name, error in (("latency", row.latency_error_fraction), ("energy", row.energy_error_fraction))
        if error is not None
    ]
    rows = show_count(row.measurement_count, "measurement")
    families = show_count(row.family_count, "family", "families")
    told = f"fitted to {rows} of {families}" + (f", median error {' and '.join(errors)}" if errors else "")
    lines = []
    if row.hardware in hardware:
        lines.append(
            f"{row.hardware} is calibrated by {row.calibration} ({row.place}), {told}; `--calibration none` disables it"
        )
        lines += describe_weight(row)
    if row.inheritors:
        told = "" if lines else f" ({row.place}), {told}"
        verb = "uses" if len(row.inheritors) == 1 else "use"
        lines.append(
            f"{join_names(row.inheritors)} {verb} the calibration of {row.hardware}, of the same generation "
            f"({row.hardware_generation}): {row.calibration}{told}; `--calibration own` disables that"
        )
    return lines


def describe_weight(row: StoredCalibration) -> list[str]:
    """Return the weight of a calibration's few measurements; empty if they are many."""
    shares = {
        name: share
        for name, share in (("time", row.latency_credibility_fraction), ("energy", row.energy_credibility_fraction))
        if 0.0 < share < FEW
    }
    if not shares or row.most_moved is None or row.most_moved_ratio is None:
        return []
    weights = " and ".join(f"{show_share(share)} in {name}" for name, share in shares.items())
    farthest = max(row.most_moved_ratio, 1.0 / row.most_moved_ratio) - 1.0
    verb = "counts" if row.measurement_count == 1 else "count"
    return [
        f"{show_count(row.measurement_count, 'measurement')} of {row.hardware} {verb} for {weights}, the class for the "
        f"rest: its numbers moved by {show_share(farthest)} at most ({row.most_moved}), and {row.determined_count} of "
        f"{row.moved_count} are determined"
    ]


def describe_fallen(rows: Iterable[Fallback], mark: Callable[[str], str]) -> list[str]:
    """Return a line for each compiler that leaves the same part of a model to the same host, with the shares.

    Hardware, power modes and batches that differ only in the shares are one line with their range.
    """
    runs: dict[int, list[Fallback]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    alike: dict[tuple[str, str, str], list[list[Fallback]]] = {}
    for some in runs.values():
        first = some[0]
        others = sum(row.operator_count for row in some if row.is_compiled)
        behind = {"first": "behind the first of them", "stretch": "outside the offloaded segment"}.get(first.cut, "")
        more = f" and {show_count(others, 'operator')} {behind}" if others else ""
        names = join_names([row.operation for row in some if not row.is_compiled])
        alike.setdefault((f"{first.compiler} does not run {names}", first.helper, more), []).append(some)
    lines = []
    for (start, helper, more), found in alike.items():
        hardware = list(dict.fromkeys(mark(some[0].configured_hardware) for some in found))
        rest = len(hardware) - SHOWN_FALLEN
        named = [*hardware[:SHOWN_FALLEN], *([f"{rest} more"] if rest > 0 else [])]
        shares = []
        for name in FALLEN_SHARES:
            ends = sorted(sum(getattr(row, name) for row in some) for some in found)
            shares.append(show_span(*map(show_share, (ends[0], ends[-1]))))
        lines.append(
            f"{start}: beside {join_names(named)} {helper} computes that{more}, copies included: {shares[0]} of the "
            f"time, {shares[1]} of the energy"
        )
    return lines


def describe_recalled(fraction: float | None, hardware: str) -> list[str]:
    """Return the line on energy priced by unchecked public numbers; empty if it rounds to zero."""
    if not fraction or fraction < SHOWN_FRACTION:
        return []
    share = show_share(fraction)
    return [f"{share} of the energy of {hardware} is priced by public numbers not checked at their source"]


def describe_chance(probability: float | None, rivals: Sequence[str]) -> str:
    """Return the confidence in a winner: its probability, or the rivals that it is tied with; empty for None."""
    if probability is None:
        return ""
    if not rivals:
        return show_chance(probability)
    more = f" and {len(rivals) - 1} more" if len(rivals) > 1 else ""
    return f"cannot be told apart from {rivals[0]}{more}"


def describe_advantage(ratio: float, other: str) -> str:
    """Return the factor by which one thing is better than another, or that they look equal."""
    return f"same as {other} to three digits" if ratio < TIE_RATIO else f"{ratio:.3g}x better than {other}"
