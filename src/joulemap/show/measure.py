"""Pages of measurements on this machine: of a model next to its prediction, and of kernel launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.measure import HostAnswer, MeasureAnswer
from joulemap.ask.setting import find_calibrations
from joulemap.domain.label import MEASURED_HOST
from joulemap.domain.measurement import LARGEST_SPREAD, Timing
from joulemap.show.caveat import describe_values
from joulemap.show.layout import fill_cells, lay_facts, lay_lines
from joulemap.show.page import Asked, Page, compose, fill_steps
from joulemap.show.present.cell import mark_projected
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template

TITLE: Final = Template("{model} on {hardware}, batch {batch}, {precision}, {runtime}")
COLUMNS: Final = "per batch | measured here | predicted (80 %) | predicted / measured"
LINES: Final = (
    "latency | {measured_latency_s:s} |[{latency:interval s}]|[{latency_ratio:x}]",
    "energy |[{measured_energy_j:J}]|[{energy:interval J}]|[{energy_ratio:x}]",
    "power |[{measured_power_w:W}]|[{power:interval W}]|[{power_ratio:x}]",
    "peak memory |[{measured_peak_memory_bytes:B}]|[{predicted_peak_memory_bytes:B}]|[{memory_ratio:x}]",
)
UNMEASURED: Final = "not measured here"
VERDICTS: Final = {True: "inside", False: "outside", None: None}

HEADLINE: Final = Template(
    "{hardware} takes {measured_latency_s:s} per batch"
    "[, {verdict} the 80 % interval of its prediction, {latency:interval s}]"
    "[. The measurement is unreliable: {reasons:and}]."
)

SPREAD: Final = Template(
    "half of {repetition_count} repetitions took {first_quartile_s:s} to {third_quartile_s:s}, a spread of "
    "{spread_fraction:%}"
)
CROWDED: Final = "other programs used the processor"
CROWDED_NOTE: Final = Template(
    "the model ran {processor_fraction:%} of the time and needed {processor_s:s} of processor time per call"
)
UNSTEADY: Final = Template("repetitions spread by more than {most:set %}")
UNRELIABLE_NOTE: Final = (
    "an unreliable measurement is not used to score predictions; measure on an idle machine, or longer with --seconds"
)
REFUSED: Final = Template("no prediction: {refusal}")
ORIGIN: Final = Template("{source}: {conditions}")
DETECTED: Final = Template(
    "{hardware} is described by the machine itself; to correct its description: joulemap hardware detect --output "
    "this.toml, edit it, then --hardware ./this.toml"
)

HOST_TITLE: Final = Template("this machine launches a kernel in {launch_s:s}")
TIMES: Final = ("timed on {device} | {call_s:s}", "launch on a GPU beside it | {launch_s:s}")
HOST_STEP: Final = Template("compare resnet18 --hardware {chip} --runtime eager --set {chip}:{setting}")
SCALED_NOTE: Final = Template(
    "estimated, because this machine has no GPU: {ratio:x} the time of a call on the CPU itself, the ratio of measured "
    "clocks between {host} with a GPU and a Zen 5 without one; --device cuda measures it"
)
SPREAD_NOTE: Final = Template("not reliable: the spread is {spread_fraction:%}; measure on an idle machine")


def _name(answer: MeasureAnswer) -> str:
    return mark_projected(answer.score.hardware, answer.projected)


def _read_predicted(answer: MeasureAnswer) -> Mapping[str, tuple[float, float | None] | None]:
    """Return metric -> predicted value and half-width of its interval."""
    score = answer.score
    predicted = {
        "latency": (score.predicted_latency_s, score.latency_half_width),
        "energy": (score.predicted_energy_j, score.energy_half_width),
        "power": (score.predicted_power_w, score.power_half_width),
    }
    return {name: None if value is None else (value, width) for name, (value, width) in predicted.items()}


def describe_measurement(answer: MeasureAnswer) -> str:
    """Return the first line: the measured latency, whether its interval holds it, and why it is unreliable."""
    return HEADLINE(
        answer.score,
        hardware=_name(answer),
        verdict=VERDICTS[answer.is_inside],
        latency=_read_predicted(answer)["latency"],
        reasons=list_reasons(answer.timing),
    )


def list_reasons(timing: Timing) -> list[str]:
    """Return the reasons why a measurement is unreliable; empty if it is reliable."""
    spread = [UNSTEADY(most=LARGEST_SPREAD)] if timing.spread_fraction > LARGEST_SPREAD else []
    return [*([CROWDED] if timing.is_crowded else []), *spread]


def lay_scores(answer: MeasureAnswer) -> Grid:
    """Return measured values next to predicted ones."""
    lines = (fill_cells(line, answer.score, **_read_predicted(answer)) for line in LINES)
    return lay_lines(COLUMNS, ((name, here or UNMEASURED, *more) for name, here, *more in lines))


def list_notes(answer: MeasureAnswer) -> Iterator[str]:
    """Yield notes on the spread, the calibration and the origin of the measurement."""
    score, timing = answer.score, answer.timing
    yield SPREAD(timing)
    if timing.is_crowded:
        yield CROWDED_NOTE(timing)
    if not timing.is_trusted:
        yield UNRELIABLE_NOTE
    if score.refusal:
        yield REFUSED(score)
    for finding in find_calibrations(answer.calibrations, [score.hardware]):
        yield describe_values(finding.kind, finding.values)
    yield ORIGIN(score)
    if not answer.is_described:
        yield DETECTED(score)


def list_host_notes(answer: HostAnswer) -> Iterator[str]:
    """Yield notes on the timed calls, and on an estimated or unreliable time."""
    pace = answer.pace
    yield "timed: a hundred calls of PyTorch from Python: convolutions, norms, relus and sums of one pixel"
    if pace.is_scaled:
        yield SCALED_NOTE(ratio=pace.launch_s / pace.call_s, host=MEASURED_HOST)
    if pace.spread_fraction > LARGEST_SPREAD:
        yield SPREAD_NOTE(pace)


def draw_measurement(answer: MeasureAnswer, _asked: Asked) -> Document:
    """Return the document of a measured model beside its prediction."""
    return compose(
        answer,
        [Section("", lay_scores(answer))],
        answer.rows,
        title=TITLE(answer.score, hardware=_name(answer)),
        headline=describe_measurement(answer),
        notes=list_notes(answer),
    )


def draw_host(answer: HostAnswer, asked: Asked) -> Document:
    """Return the document of the time of a kernel launch."""
    return compose(
        answer,
        [Section("", lay_facts("kind of call | time", TIMES, answer.pace))],
        answer.paces,
        title=HOST_TITLE(answer.pace),
        notes=list_host_notes(answer),
        steps=fill_steps([HOST_STEP], answer, asked.repeated),
    )


PAGES: Final = {
    MeasureAnswer: Page[MeasureAnswer](draw=draw_measurement),
    HostAnswer: Page[HostAnswer](draw=draw_host),
}
