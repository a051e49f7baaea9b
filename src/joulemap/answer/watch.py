"""Calls of a module of this program, timed module by module beside the prediction for a hardware."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.computed import make_table, told
from joulemap.answer.measure import find_here
from joulemap.answer.model import SPLIT, WORK, ModulesAnswer, draw_modules, modules
from joulemap.domain.measurement import LARGEST_SPREAD
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_count, show_quantity, show_share
from joulemap.present.document import Document, Section
from joulemap.system.errors import ModelError, UnsupportedError, UsageError
from joulemap.system.record import define, frozen
from joulemap.system.resource import need_torch

if TYPE_CHECKING:
    import torch

    from joulemap.device.call import CallKind, CallRecorder, TimedCall
    from joulemap.domain.configuration import Precision
    from joulemap.domain.hardware import Hardware

WATCHED: Final = Settings(precision=(), runtime="eager")
"""What runs without a compiler, at a precision that its calls show."""

FEW: Final = 3
"""Calls below which it is said that the first ones are no sample."""


@frozen(kw_only=True)
class WatchedModule:
    """A module with all that runs inside it, per call of the model: measured here, and predicted."""

    module: str = told("its path, that of its first use where several hold it; empty for the model itself")
    depth: int = told("modules that it is inside of")
    output_shape: str = told("of the last operator that runs inside it; empty where none does")
    weight_count: int = told("elements of the parameters and buffers that its operators read, each once", is_wide=True)
    mac_count: int = told("multiply-accumulates", is_wide=True)
    call_count: float = told("times that it was called itself in a call of the model")
    measured_latency_s: float = told("here, of modules that were timed", "s")
    own_measured_latency_s: float = told("of that, in no module that it called", "s")
    predicted_latency_s: float | None = told("on the hardware; None without a prediction", "s")
    predicted_energy_j: float | None = told("on the hardware", "J")
    predicted_energy_fraction: float | None = told("of the model's")
    own_energy_fj: int | None = told("of the operators that it calls itself, exact", "fJ", is_wide=True)


@frozen(kw_only=True)
class WatchAnswer(Answer):
    """What calls of a module took here, and what one is predicted to take."""

    model: str
    hardware: str
    """What it is predicted for, marked where it can be neither bought nor rented."""
    is_here: bool
    """Whether that is the machine that it ran on."""
    rows: Table[WatchedModule]
    """The model first, each module before those inside it."""
    prediction: ModulesAnswer | None
    """None where there is none."""
    refusal: str
    """Why; empty where there is one."""
    told: tuple[str, ...]
    """Of the calls that were timed, in sentences."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The rows, and the queries behind the prediction."""
        return (self.rows, *(self.prediction.tables if self.prediction else ()))

    def data(self) -> dict[str, Any]:
        """Return what programs get: every module, and the run that it is predicted by."""
        own = {"model": self.model, "hardware": self.hardware, "refusal": self.refusal or None}
        predicted = self.prediction.total.record() if self.prediction else None
        return {**own, "modules": self.rows.records(), "prediction": predicted, "notes": list(self.told)}

    def document(self, *, depth: int | None = None) -> Document:
        """Return it with the modules down to a depth, None for as deep as one screen holds; programs get all."""
        whole, found = self.rows[0], self.prediction
        predicted = f"no prediction for {self.hardware}: {self.refusal}"
        if found is not None:
            latency, energy = show_quantity(found.total.latency_s, "s"), show_quantity(found.total.energy_j, "J")
            predicted = f"on {self.hardware} {latency} and {energy} are predicted"
        ratio = ("predicted / measured", _show_ratio)
        columns = (
            *WORK,
            ("measured", lambda row: show_quantity(row.measured_latency_s, "s") if row.measured_latency_s else ""),
            ("predicted", lambda row: show_quantity(row.predicted_latency_s, "s")),
            *((ratio,) if self.is_here else ()),
            ("energy", lambda row: show_quantity(row.predicted_energy_j, "J")),
            ("of energy", lambda row: show_share(row.predicted_energy_fraction)),
        )
        keep = ("measured", "predicted", "energy", "of energy", "predicted / measured", "MACs")
        drawn = draw_modules(self.rows.rows, depth, self.model, columns, keep)
        notes = (*self.told, SPLIT, *(found.scope.describe() if found else ()))
        return Document(
            title=f"watched: {found.document().title if found else self.model}",
            answer=f"{show_quantity(whole.measured_latency_s, 's')} a call here; {predicted}.",
            sections=(Section("By module, per call", drawn, is_tight=True),),
            sure=found.scope.say_spread() if found else "",
            notes=notes,
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )


def _show_ratio(row: WatchedModule) -> str:
    if not row.measured_latency_s or row.predicted_latency_s is None:
        return ""
    return show(row.predicted_latency_s / row.measured_latency_s, "ratio")


@define
class Watch:
    """A watch over calls of a module, whose answer is there when it ends."""

    _answer: WatchAnswer | None = None

    @property
    def answer(self) -> WatchAnswer:
        """What was measured and predicted; UsageError before the watch ends."""
        if self._answer is None:
            raise UsageError("the watch has not ended: its answer is there after the block")
        return self._answer

    def __repr__(self) -> str:
        return "a watch that has not ended" if self._answer is None else repr(self._answer)


@contextlib.contextmanager
def watch(
    source: Source,
    module: torch.nn.Module,
    settings: Settings = WATCHED,
    *,
    hardware: str | Hardware | None = None,
    quiet: bool = False,
) -> Iterator[Watch]:
    """Time what is called of a module until the end, module by module, and print it beside its prediction.

    `hardware` is what it is predicted for: an id, alias, file or record; None for this machine, as the catalogue or
    the machine itself describes it. The precision is that of autocast or of the weights unless it is given, the
    runtime of what is compiled `fused`. What is printed is the `answer` of the watch, and nothing where it is `quiet`.
    Raises UsageError for what is no module and where it was not called, UnknownNameError for hardware; a module that
    cannot be traced or run there has no prediction, and the answer says why.
    """
    need_torch("watching a module")
    from joulemap.device.call import CallRecorder, check_watched

    recorder = CallRecorder(check_watched(module))
    if recorder.is_compiled:
        settings = attrs.evolve(settings, runtime="fused")
    target = find_here(recorder.device) if hardware is None else hardware
    select_one(target, settings)
    watched = Watch()
    with recorder.record():
        yield watched
    watched._answer = _answer(source.anchor(), module, recorder, settings, target, hardware is None)
    if not quiet:
        print(watched.answer, file=sys.stdout)


def _answer(
    source: Source,
    module: torch.nn.Module,
    recorder: CallRecorder,
    settings: Settings,
    target: str | Hardware,
    is_here: bool,
) -> WatchAnswer:
    calls = recorder.list_calls()
    if not calls:
        raise UsageError(
            f"{type(module).__name__} was not called while it was watched: call it, and no compiled copy of it, inside "
            "the block"
        )
    spent: dict[Any, float] = {}
    for call in calls:
        spent[call.kind] = spent.get(call.kind, 0.0) + call.latency_s
    kind = max(spent, key=lambda one: spent[one])
    mine = sorted((call for call in calls if call.kind == kind), key=lambda call: call.latency_s)
    found, refusal = None, ""
    try:
        found = _predict(source, module, recorder.kinds[kind], settings, target)
    except (ModelError, UnsupportedError, UsageError) as error:
        refusal = str(error)
    rows = make_table("watched modules", WatchedModule, _join(recorder.paths, _middle(mine), found))
    name = target if isinstance(target, str) else target.id
    return WatchAnswer(
        model=found.total.model if found else type(module).__name__,
        hardware=found.scope.mark(found.total.hardware) if found else name,
        is_here=is_here,
        rows=rows,
        prediction=found,
        refusal=refusal,
        told=tuple(_tell(recorder, mine, calls)),
    )


def _middle(calls: Sequence[TimedCall]) -> Sequence[TimedCall]:
    """Return the middle half of calls in the order of their times."""
    return calls[len(calls) // 4 : len(calls) - len(calls) // 4]


def _predict(
    source: Source, module: torch.nn.Module, kind: CallKind, settings: Settings, target: str | Hardware
) -> ModulesAnswer:
    from joulemap.device.call import bind
    from joulemap.plan.workload import hold_module

    held = hold_module(module, bind(module, kind))
    name = held.request.model
    asked = attrs.evolve(
        settings, modules={name: held}, precision=settings.precision or cast("Precision", kind.precision)
    )
    return modules(source, name, target, asked)


def _join(paths: Sequence[str], calls: Sequence[TimedCall], found: ModulesAnswer | None) -> Iterator[WatchedModule]:
    """Yield each module that was called, or runs something as predicted, with what was measured in and below it."""
    own = _average([call.own_s for call in calls])
    counts = _average([call.counts for call in calls])
    within: dict[str, float] = {}
    for path, seconds in own.items():
        parts = path.split(".") if path else []
        for depth in range(len(parts) + 1):
            inside = ".".join(parts[:depth])
            within[inside] = within.get(inside, 0.0) + seconds
    predicted = {row.module: row for row in found.modules} if found else {}
    for path in dict.fromkeys((*paths, *predicted)):
        row = predicted.get(path)
        if row is None and path not in within:
            continue
        yield WatchedModule(
            module=path,
            depth=path.count(".") + 1 if path else 0,
            output_shape=row.output_shape if row else "",
            weight_count=row.weight_count if row else 0,
            mac_count=row.mac_count if row else 0,
            call_count=counts.get(path, 0.0),
            measured_latency_s=within.get(path, 0.0),
            own_measured_latency_s=own.get(path, 0.0),
            predicted_latency_s=row.latency_s if row else (0.0 if found else None),
            predicted_energy_j=row.energy_j if row else (0.0 if found else None),
            predicted_energy_fraction=row.energy_fraction if row else (0.0 if found else None),
            own_energy_fj=row.own_energy_fj if row else (0 if found else None),
        )


def _average(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for one in parts:
        for path, value in one.items():
            sums[path] = sums.get(path, 0.0) + value
    return {path: value / len(parts) for path, value in sums.items()}


def _tell(recorder: CallRecorder, mine: Sequence[TimedCall], calls: Sequence[TimedCall]) -> Iterator[str]:
    """Yield what is to be known of the calls: how many, how far apart, and what is not among them."""
    from joulemap.device.trial import name_device

    kind = recorder.kinds[mine[0].kind]
    first, last = (show_quantity(one.latency_s, "s") for one in (mine[0], mine[-1]))
    count = recorder.counts[mine[0].kind]
    spread = f", which took {first} to {last}: the mean of the middle half" if len(mine) > 1 else ""
    yield f"measured on {name_device(recorder.device)}, of {show_count(count, 'call')}{spread}"
    middle = _middle(mine)
    if middle[-1].latency_s - middle[0].latency_s > LARGEST_SPREAD * middle[0].latency_s:
        yield f"not to be trusted: these are more than {show_share(LARGEST_SPREAD)} apart; watch on an idle machine"
    if count < FEW:
        yield "the first calls also pay for what happens once: call it more often inside the block"
    if others := [call for call in calls if call.kind != mine[0].kind]:
        took = show_quantity(sum(call.latency_s for call in others), "s")
        yield f"{show_count(len(others), 'call')} with other inputs, modes or precisions took {took} and are not in it"
    if not recorder.is_compiled and len(recorder.paths) > 1 and {path for one in mine for path in one.counts} == {""}:
        yield "none of its modules was called: the model, or a fast path of torch, does their work itself"
    if recorder.is_compiled:
        yield "a compiled module is timed as a whole: its kernels hold operators of several modules"
    rest = recorder.window_s - sum(call.latency_s for call in calls)
    if kind.is_training and rest > 0.0:  # calls of several threads can take longer than the block
        yield (
            f"forward passes alone; the block took {show_quantity(rest, 's')} besides, with what backward passes and "
            "optimizer steps it had: `joulemap train` predicts whole steps"
        )
