"""Watch on a PyTorch module of the running program, whose calls are timed and compared with the prediction."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.ask import UNKNOWN, Answer, Facts, Finding, Quantity, Refusal, Score, Subject, weigh_findings
from joulemap.ask.measure import find_here
from joulemap.ask.model import ModulesAnswer, modules
from joulemap.domain import Settings, Table, make_table
from joulemap.domain.measurement import LARGEST_SPREAD
from joulemap.physics import OPTIMIZER, Hardware, Precision
from joulemap.plan import Source
from joulemap.plan.selection import select_one
from joulemap.system import ModelError, UnsupportedError, UsageError, define, frozen
from joulemap.system.name import PROJECTED
from joulemap.system.resource import need_torch
from joulemap.wing.train import LOSS
from joulemap.wing.verify.generated.row import WatchedModule

if TYPE_CHECKING:
    import torch

    from joulemap.generated.model import ModulePart
    from joulemap.wing.verify.call import CallKind, CallRecorder, TimedCall

WATCHED: Final = Settings(precision=(), runtime="eager")
"""Default settings of a watch: eager execution, at the precision of the calls."""

STEP: Final = "train({},optimizer=sgd)"
"""Name of the training step from which backward times are predicted; answers leave out its optimizer."""

FEW: Final = 3
"""Number of calls below which a note warns about first-call overheads."""


@frozen(kw_only=True)
class WatchAnswer(Answer):
    """Measured time of a module's calls, and the prediction for one call."""

    model: str
    hardware: str
    """Hardware of the prediction; it is marked if it can be neither bought nor rented."""
    is_here: bool
    """True if the prediction is for the machine that ran the calls."""
    rows: Table[WatchedModule]
    """Modules, each followed by its submodules; the model comes first."""
    prediction: ModulesAnswer | None
    """Prediction for each module; None if the model cannot be predicted."""
    refusal: str
    """Reason for a missing prediction; empty if there is a prediction."""
    calls: tuple[Finding, ...]
    """Findings on the timed calls."""

    @property
    def facts(self) -> Facts:
        """Measured time of a call beside the prediction, and findings on the timed calls."""
        whole, predicted, scores = self.rows[0], self.predicted, []
        if whole.measured_latency_s and predicted is not None:
            measured, width, is_inside = whole.measured_latency_s, predicted.half_width, None
            if width is not None:
                is_inside = abs(math.log(measured / predicted.value)) <= width
            both = {"predicted": predicted, "measured": Quantity(measured, "s")}
            scores = [Score(runs=(1,), metric="latency_s", **both, is_inside=is_inside)]
        refusals = [Refusal(runs=(1,), reason=self.refusal)] if self.refusal else []
        caveats = weigh_findings(list(self.calls), ())
        runs = {1: Subject(hardware=self.hardware)}
        return Facts(asked=("latency_s",), runs=runs, facts=(*scores, *refusals, *caveats))

    @property
    def predicted(self) -> Quantity | None:
        """Predicted time of a call, with its interval on the machine that ran the calls; None without one."""
        predicted_s = self.rows[0].predicted_latency_s
        doubts = self.prediction.scope.doubts.values() if self.prediction and self.is_here else ()
        width = next((one["latency"][0] for one in doubts if "latency" in one), None)
        return Quantity(predicted_s, "s", width) if predicted_s else None

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Table of the modules, and the tables behind the prediction."""
        return (self.rows, *(self.prediction.tables if self.prediction else ()))

    def data(self) -> dict[str, Any]:
        """Return the exported data: every module, and the run behind the prediction."""
        own = {"model": self.model, "hardware": self.hardware, "refusal": self.refusal or None}
        predicted = self.prediction.total.record() if self.prediction else None
        return {**own, "modules": self.rows.records(), "prediction": predicted}


@define
class Watch:
    """Running watch on a module's calls; its answer is available after the block."""

    _answer: WatchAnswer | None = None

    @property
    def answer(self) -> WatchAnswer:
        """Answer with measured and predicted times; UsageError while the watch runs."""
        if self._answer is None:
            raise UsageError("the watch has not ended: its answer is available after the block")
        return self._answer

    def __repr__(self) -> str:
        return "a running watch" if self._answer is None else repr(self._answer)


@contextlib.contextmanager
def watch(
    source: Source,
    module: torch.nn.Module,
    settings: Settings = WATCHED,
    *,
    hardware: str | Hardware | None = None,
    quiet: bool = False,
) -> Iterator[Watch]:
    """Time the calls of a module inside the block, module by module, and print them next to the prediction.

    `hardware` is an id, alias, file or record; None means this machine, from the catalogue or as the machine describes
    itself. The default precision is that of autocast or of the weights; a compiled module is timed as a
    whole, at the runtime `fused`. With `quiet` nothing is printed. Raises UsageError for an object that is not a module
    or was not called, and UnknownNameError for unknown hardware. A module that cannot be traced or run has no
    prediction; the answer states the reason.
    """
    need_torch("watching a module")
    from joulemap.wing.verify.call import CallRecorder, check_watched

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
    prediction, step, refusal = None, None, ""
    notes = list(_find_conditions(recorder, mine, calls))
    try:
        prediction = _predict(source, module, recorder.kinds[kind], settings, target)
        if any(call.backward_s for call in mine):
            step = _predict(source, module, recorder.kinds[kind], settings, target, STEP)
    except (ModelError, UnsupportedError, UsageError) as error:
        notes += [Finding(kind="no_backward", values={"reason": str(error)})] if prediction else []
        refusal = "" if prediction else str(error)
    rows = make_table("watched modules", WatchedModule, join_modules(recorder.paths, _middle(mine), prediction, step))
    name = target if isinstance(target, str) else target.id
    if prediction is not None:
        name = prediction.total.hardware
        name = f"{PROJECTED}{name}" if name in prediction.projected else name
    return WatchAnswer(
        model=prediction.total.model if prediction else type(module).__name__,
        hardware=name,
        is_here=is_here,
        rows=rows,
        prediction=prediction,
        refusal=refusal,
        calls=tuple(notes),
    )


def _middle(calls: Sequence[TimedCall]) -> Sequence[TimedCall]:
    """Return the calls without the fastest and the slowest quarter; `calls` is sorted by time."""
    return calls[len(calls) // 4 : len(calls) - len(calls) // 4]


def _predict(
    source: Source,
    module: torch.nn.Module,
    kind: CallKind,
    settings: Settings,
    target: str | Hardware,
    form: str = "{}",
) -> ModulesAnswer:
    from joulemap.plan.workload import trace_user_module
    from joulemap.wing.verify.call import bind

    prepared = trace_user_module(module, bind(module, kind))
    name = prepared.request.model
    asked = attrs.evolve(
        settings, modules={name: prepared}, precision=settings.precision or cast("Precision", kind.precision)
    )
    return modules(source, form.format(name), target, asked)


def _find_conditions(
    recorder: CallRecorder, mine: Sequence[TimedCall], calls: Sequence[TimedCall]
) -> Iterator[Finding]:
    """Yield findings on the timed calls: number, spread, calls that do not count, and other time in the block."""
    from joulemap.device.trial import name_device

    kind, count = recorder.kinds[mine[0].kind], recorder.counts[mine[0].kind]
    first, last = (Quantity(one.latency_s, "s") if len(mine) > 1 else None for one in (mine[0], mine[-1]))
    device = name_device(recorder.device)
    yield Finding(kind="timed", values={"device": device, "count": count, "first": first, "last": last})
    middle = _middle(mine)
    if middle[-1].latency_s - middle[0].latency_s > LARGEST_SPREAD * middle[0].latency_s:
        yield Finding(kind="unsteady", values={"share": LARGEST_SPREAD}, doubt=math.log1p(LARGEST_SPREAD))
    if count < FEW:
        yield Finding(kind="few_calls", doubt=UNKNOWN)
    if others := [call for call in calls if call.kind != mine[0].kind]:
        taken = Quantity(sum(call.latency_s for call in others), "s")
        yield Finding(kind="other_calls", values={"count": len(others), "time": taken})
    if not recorder.is_compiled and len(recorder.paths) > 1 and {path for one in mine for path in one.counts} == {""}:
        yield Finding(kind="no_module")
    gone = sum(call.latency_s + sum(call.backward_s.values()) for call in calls)
    if kind.is_training and recorder.window_s > gone:  # calls of several threads can take longer than the block
        yield Finding(kind="beside", values={"time": Quantity(recorder.window_s - gone, "s")})


def join_modules(
    paths: Sequence[str], calls: Sequence[TimedCall], prediction: ModulesAnswer | None, step: ModulesAnswer | None
) -> Iterator[WatchedModule]:
    """Yield a row for each module that was called or has a predicted run.

    `prediction` is the predicted forward pass and `step` a predicted training step with the same forward pass.
    """
    own = _average([call.own_s for call in calls])
    counts = _average([call.counts for call in calls])
    within, backward = _gather(own), _gather(_average([call.backward_s for call in calls]))
    predicted = {row.module: row for row in prediction.modules} if prediction else {}
    whole = {row.module: row for row in step.modules} if step else {}
    beside = [whole[name] for name in (LOSS, OPTIMIZER) if name in whole and name not in predicted]
    for path in dict.fromkeys((*paths, *predicted)):
        row = predicted.get(path)
        if row is None and path not in within:
            continue
        less = [*([row] if row else []), *(beside if not path else [])]
        yield WatchedModule(
            module=path,
            depth=path.count(".") + 1 if path else 0,
            output_shape=row.output_shape if row else "",
            weight_count=row.weight_count if row else 0,
            mac_count=row.mac_count if row else 0,
            call_count=counts.get(path, 0.0),
            measured_latency_s=within.get(path, 0.0),
            own_measured_latency_s=own.get(path, 0.0),
            predicted_latency_s=row.latency_s if row else (0.0 if prediction else None),
            predicted_energy_j=row.energy_j if row else (0.0 if prediction else None),
            predicted_energy_fraction=row.energy_fraction if row else (0.0 if prediction else None),
            own_energy_fj=row.own_energy_fj if row else (0 if prediction else None),
            measured_backward_s=backward.get(path, 0.0),
            predicted_backward_s=_more(whole.get(path), less, "latency_s") if step else None,
            predicted_backward_j=_more(whole.get(path), less, "energy_j") if step else None,
        )


def _more(whole: ModulePart | None, less: Sequence[ModulePart], name: str) -> float:
    """Return a quantity of a module's training step minus that of `less`, at least 0.

    `less` are its forward pass, the loss and the optimizer.
    """
    return max(0.0, getattr(whole, name) - sum(getattr(one, name) for one in less)) if whole else 0.0


def _gather(own: Mapping[str, float]) -> dict[str, float]:
    """Return module path -> sum over the module and all modules below it."""
    within: dict[str, float] = {}
    for path, seconds in own.items():
        parts = path.split(".") if path else []
        for depth in range(len(parts) + 1):
            inside = ".".join(parts[:depth])
            within[inside] = within.get(inside, 0.0) + seconds
    return within


def _average(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for one in parts:
        for path, value in one.items():
            sums[path] = sums.get(path, 0.0) + value
    return {path: value / len(parts) for path, value in sums.items()}
