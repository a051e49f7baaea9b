"""Watch on a module of the running program: its calls are timed module by module, beside the prediction."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.computed import make_table
from joulemap.answer.measure import find_here
from joulemap.answer.model import SPLIT, WORK, ModulesAnswer, draw_modules, modules
from joulemap.domain.measurement import LARGEST_SPREAD
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_chosen_share, show_count, show_quantity, show_share, show_span
from joulemap.present.document import Document, Section
from joulemap.system.errors import ModelError, UnsupportedError, UsageError
from joulemap.system.record import define, frozen
from joulemap.system.resource import need_torch
from joulemap.wing.verify.watched import WatchedModule, join

if TYPE_CHECKING:
    import torch

    from joulemap.device.call import CallKind, CallRecorder, TimedCall
    from joulemap.domain.configuration import Precision
    from joulemap.domain.hardware import Hardware

WATCHED: Final = Settings(precision=(), runtime="eager")
"""Default settings: uncompiled, at the precision of the calls."""

STEP: Final = "train({},optimizer=sgd)"
"""Training step of a model; the answer leaves out its optimizer."""

FEW: Final = 3
"""Number of calls below which a note warns about first-call overheads."""


@frozen(kw_only=True)
class WatchAnswer(Answer):
    """Measured time of a module's calls and the prediction for one call."""

    model: str
    hardware: str
    """Hardware of the prediction, marked where it can be neither bought nor rented."""
    is_here: bool
    """True where the prediction is for the machine that ran the calls."""
    rows: Table[WatchedModule]
    """Modules, each before those inside it; the model comes first."""
    prediction: ModulesAnswer | None
    """Prediction module by module; None where there is none."""
    refusal: str
    """Reason for a missing prediction; empty where there is one."""
    told: tuple[str, ...]
    """Sentences about the timed calls."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Rows of the modules and the queries behind the prediction."""
        return (self.rows, *(self.prediction.tables if self.prediction else ()))

    def data(self) -> dict[str, Any]:
        """Return the exported data: every module, and the run behind the prediction."""
        own = {"model": self.model, "hardware": self.hardware, "refusal": self.refusal or None}
        predicted = self.prediction.total.record() if self.prediction else None
        return {**own, "modules": self.rows.records(), "prediction": predicted, "notes": list(self.told)}

    def document(self, *, depth: int | None = None) -> Document:
        """Return the document with modules down to a depth; None for as deep as one screen holds.

        Exported data has all modules.
        """
        whole, found = self.rows[0], self.prediction
        predicted = f"no prediction for {self.hardware}: {self.refusal}"
        if found is not None:
            latency, energy = show_quantity(found.total.latency_s, "s"), show_quantity(found.total.energy_j, "J")
            predicted = f"the prediction for {self.hardware} is {latency} and {energy}"
        ratio = ("predicted / measured", _show_ratio)
        gradients = (
            ("backward", lambda row: show_quantity(row.measured_backward_s, "s") if row.measured_backward_s else ""),
            ("backward predicted", lambda row: show_quantity(row.predicted_backward_s, "s")),
        )
        columns = (
            *WORK,
            ("measured", lambda row: show_quantity(row.measured_latency_s, "s") if row.measured_latency_s else ""),
            ("predicted", lambda row: show_quantity(row.predicted_latency_s, "s")),
            *((ratio,) if self.is_here else ()),
            *(gradients if whole.measured_backward_s else ()),
            ("energy", lambda row: show_quantity(row.predicted_energy_j, "J")),
            ("of energy", lambda row: show_share(row.predicted_energy_fraction)),
        )
        keep = (
            "measured",
            "predicted",
            "backward",
            "backward predicted",
            "energy",
            "of energy",
            "predicted / measured",
            "MACs",
        )
        drawn = draw_modules(self.rows.rows, depth, self.model, columns, keep)
        notes = (*self.told, SPLIT, *(found.scope.describe() if found else ()))
        back = f" plus {show_quantity(whole.measured_backward_s, 's')} backward" if whole.measured_backward_s else ""
        if back and whole.predicted_backward_s is not None:
            more = (whole.predicted_backward_s, "s"), (whole.predicted_backward_j, "J")
            predicted += f" plus {' and '.join(show_quantity(*one) for one in more)} for the backward pass"
        return Document(
            title=f"watched: {found.document().title if found else self.model}",
            answer=f"{show_quantity(whole.measured_latency_s, 's')} per call measured here{back}; {predicted}.",
            sections=(Section("By module, per call", drawn, is_tight=True),),
            sure=self._describe_disagreement() or (found.scope.say_spread() if found else ""),
            notes=notes,
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _describe_disagreement(self) -> str:
        """Return by how much the prediction for this machine is off; empty inside its interval."""
        whole, found = self.rows[0], self.prediction
        if not self.is_here or found is None or not whole.measured_latency_s or not whole.predicted_latency_s:
            return ""
        width = next((one["latency"][0] for one in found.scope.doubts.values() if "latency" in one), None)
        ratio = whole.measured_latency_s / whole.predicted_latency_s
        if width is None or abs(math.log(ratio)) <= width:
            return ""
        ends = (whole.predicted_latency_s * math.exp(sign * width) for sign in (-1.0, 1.0))
        span = show_span(*(show_quantity(end, "s") for end in ends))
        times = f"{max(ratio, 1.0 / ratio):.3g}x {'slower' if ratio > 1.0 else 'faster'}"
        return (
            f"measured {times} than predicted, outside the 80 % interval ({span}): the prediction does not "
            "hold for this run, neither its time nor its energy"
        )


def _show_ratio(row: WatchedModule) -> str:
    if not row.measured_latency_s or row.predicted_latency_s is None:
        return ""
    return show(row.predicted_latency_s / row.measured_latency_s, "ratio")


@define
class Watch:
    """Watch over calls of a module; its answer is available after the block."""

    _answer: WatchAnswer | None = None

    @property
    def answer(self) -> WatchAnswer:
        """Measured and predicted times; UsageError before the watch ends."""
        if self._answer is None:
            raise UsageError("the watch has not ended: its answer is available after the block")
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
    """Time the calls of a module inside the block, module by module, and print them beside the prediction.

    `hardware` is an id, alias, file or record; None means this machine, from the catalogue or as the machine describes
    itself. The default precision is that of autocast or of the weights; the runtime of a compiled module is `fused`.
    With `quiet` nothing is printed. Raises UsageError for an object that is no module and where it was not called, and
    UnknownNameError for unknown hardware. A module that cannot be traced or run there has no prediction; the answer
    states the reason.
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
    kind = max(spent, key=lambda one: (recorder.counts[one], spent[one]))
    mine = sorted((call for call in calls if call.kind == kind), key=lambda call: call.latency_s)
    found, step, refusal = None, None, ""
    told = list(_describe_calls(recorder, mine, calls))
    try:
        found = _predict(source, module, recorder.kinds[kind], settings, target)
        if any(call.backward_s for call in mine):
            step = _predict(source, module, recorder.kinds[kind], settings, target, STEP)
    except (ModelError, UnsupportedError, UsageError) as error:
        told += [f"the backward pass is not predicted: {error}"] if found else []
        refusal = "" if found else str(error)
    rows = make_table("watched modules", WatchedModule, join(recorder.paths, _middle(mine), found, step))
    name = target if isinstance(target, str) else target.id
    return WatchAnswer(
        model=found.total.model if found else type(module).__name__,
        hardware=found.scope.mark(found.total.hardware) if found else name,
        is_here=is_here,
        rows=rows,
        prediction=found,
        refusal=refusal,
        told=tuple(told),
    )


def _middle(calls: Sequence[TimedCall]) -> Sequence[TimedCall]:
    """Return the middle half of calls, sorted by time."""
    return calls[len(calls) // 4 : len(calls) - len(calls) // 4]


def _predict(
    source: Source,
    module: torch.nn.Module,
    kind: CallKind,
    settings: Settings,
    target: str | Hardware,
    form: str = "{}",
) -> ModulesAnswer:
    from joulemap.device.call import bind
    from joulemap.plan.workload import hold_module

    held = hold_module(module, bind(module, kind))
    name = held.request.model
    asked = attrs.evolve(
        settings, modules={name: held}, precision=settings.precision or cast("Precision", kind.precision)
    )
    return modules(source, form.format(name), target, asked)


def _describe_calls(recorder: CallRecorder, mine: Sequence[TimedCall], calls: Sequence[TimedCall]) -> Iterator[str]:
    """Yield notes on the timed calls: number, spread, and excluded calls."""
    from joulemap.device.trial import name_device

    kind = recorder.kinds[mine[0].kind]
    first, last = (show_quantity(one.latency_s, "s") for one in (mine[0], mine[-1]))
    count = recorder.counts[mine[0].kind]
    spread = f" between {first} and {last}: mean of the middle half" if len(mine) > 1 else ""
    yield f"measured on {name_device(recorder.device)} over {show_count(count, 'call')}{spread}"
    middle = _middle(mine)
    if middle[-1].latency_s - middle[0].latency_s > LARGEST_SPREAD * middle[0].latency_s:
        most = show_chosen_share(LARGEST_SPREAD)
        yield f"unreliable: these differ by more than {most}; watch on an idle machine"
    if count < FEW:
        yield "the first calls include one-time overheads: call it more often inside the block"
    if others := [call for call in calls if call.kind != mine[0].kind]:
        took = show_quantity(sum(call.latency_s for call in others), "s")
        yield f"{show_count(len(others), 'call')} with other inputs, modes or precisions took {took}, not included"
    if not recorder.is_compiled and len(recorder.paths) > 1 and {path for one in mine for path in one.counts} == {""}:
        yield "none of its modules was called: the model or a fast path of torch bypasses them"
    if recorder.is_compiled:
        yield "a compiled module is timed as a whole: its kernels contain operators of several modules"
    gone = sum(call.latency_s + sum(call.backward_s.values()) for call in calls)
    if kind.is_training and recorder.window_s > gone:  # calls of several threads can take longer than the block
        what = "loss, optimizer steps and other work" if any(one.backward_s for one in mine) else "other work"
        yield f"the block took {show_quantity(recorder.window_s - gone, 's')} more for {what}"
