"""Stages of a pipeline: parsing of its name, and the workload of one frame.

    detector.onnx:30fps + classifier:5/frame
    encoder + unet x 30 + decoder

The first rate is the frame rate. A frame runs every stage in order, each as often as its rate demands, on one chip. If
a stage would run a fractional number of times per frame, several frames are taken together: 30fps with 1.5 runs per
frame is 15fps with two runs of the first stage and three of the other. If the first model appears again directly after
its first stage, both stages are merged.

Without rates, one inference runs every stage once, or the stated number of times.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import dropwhile
from shlex import quote
from typing import Any, Final

import attrs

from joulemap.catalog import DATA
from joulemap.domain import Argument, Settings, read_arguments
from joulemap.physics import Workload
from joulemap.plan import JOIN, Model, Talk
from joulemap.system import UnknownNameError, UsageError, digest_code, fold_name, frozen
from joulemap.wing.pipeline import FRAME, PICTURE, UNITS


@frozen(kw_only=True)
class NamedPipeline:
    """Built-in pipeline, which makes one picture from a text or a text from 30 s of speech."""

    name: str
    runs: str
    """Name of the argument that states how often the repeated stage runs: `steps` or `tokens`."""
    count: int
    stages: str
    """Name of the pipeline when it is written as its stages."""

    def __str__(self) -> str:
        return f"{self.name}({self.runs}={self.count})"

    @property
    def inference(self) -> str:
        """Note on what one inference is."""
        made = "one picture" if self.runs == STEPS else "30 s of speech"
        return f"an inference is {made} in {self.count} {self.runs}"


@cache
def _read_table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((DATA / "model" / "pipeline.toml").read_text(encoding="utf-8"))


def list_named() -> tuple[str, ...]:
    """Return the names of the built-in pipelines."""
    return tuple(_read_table())


@cache
def read_spellings() -> Mapping[str, str]:
    """Return folded name or alias -> name of each built-in pipeline."""
    return {fold_name(one): known for known, row in _read_table().items() for one in (known, *row["aliases"])}


def read_named(name: str) -> NamedPipeline | None:
    """Return the built-in pipeline that a name states; None for any other name.

    Raise UnknownNameError for an unknown text-to-image pipeline, UsageError for wrong arguments.
    """
    match = re.fullmatch(r"\s*([^\s()+]+)\s*(\(.*\))?\s*", name)
    known = read_spellings().get(fold_name(match[1])) if match else None
    if match is None or known is None:
        if match and match[1].lower().endswith(PICTURE):
            raise UnknownNameError("model", match[1], list_named())
        return None
    row = _read_table()[known]
    argument = Argument(row["runs"], row["count"])
    usual = f"{known}({argument.name}={row['count']})"
    given = read_arguments(known, name, match[2], (argument,), usual) if match[2] else {}
    count = int(given.get(argument.name, row["count"]))
    return NamedPipeline(name=known, runs=argument.name, count=count, stages=row["stages"].format(count=count))


STEPS: Final = "steps"
"""Name of the argument for the denoising steps of a text-to-image pipeline."""

ONCE: Final = "an inference is one run of the pipeline"
"""Note on what one inference is, for stages without rates."""

CODE: Final = tuple(f"wing/pipeline/{name}.py" for name in ("__init__", "around", "merge", "stage"))
"""Files that decide the workload of a pipeline, unlike the answers about it."""

KIND: Final = "pipeline"
"""Kind of workload request that stands for a pipeline."""

SPLIT: Final = r"\s+\+\s*|(?<=fps)\+\s*|(?<=/s)\+\s*|(?<=/frame)\+\s*"
"""Pattern of the separator of stages: a + after a space, or after the unit of a rate."""

RUNS: Final = re.compile(r"(.*\S)\s+x\s*(\d+)", re.IGNORECASE)
"""Pattern of a stage that states its runs per inference, such as `unet x 30`."""

MOST_OPERATORS: Final = 50_000
"""Maximum operators per frame; operators of repeated runs count once."""

MOST_RUNS: Final = 1_000
"""Maximum runs of a stage per frame."""

MOST_FRAMES: Final = 60
"""Maximum camera frames that are combined so that every stage runs a whole number of times."""


@frozen(kw_only=True)
class Stage:
    """Model in a pipeline with the number of its runs per frame."""

    model: str
    count: int


@frozen(kw_only=True)
class Pipeline:
    """Frame rate and stages of a pipeline."""

    frames_per_s: float
    """Frame rate; 0 if none is stated."""
    stages: tuple[Stage, ...]
    name: str = ""
    """Name of a built-in pipeline; empty for a pipeline given by its stages."""
    inference: str = FRAME
    """Note on what one inference is."""

    def __str__(self) -> str:
        if self.name:
            return self.name
        if not self.frames_per_s:
            return JOIN.join(f"{one.model} x {one.count}" if one.count > 1 else one.model for one in self.stages)
        first, *rest = self.stages
        again = [Stage(model=first.model, count=first.count - 1)] if first.count > 1 else []
        words = [
            f"{first.model}:{self.frames_per_s:.12g}fps",
            *(f"{one.model}:{one.count}/frame" for one in again + rest),
        ]
        return JOIN.join(words)


@frozen(kw_only=True)
class Frame:
    """Builder of the workload of one frame, from the models of a pipeline's stages."""

    parts: tuple[tuple[Model, int], ...]
    """(Model, runs per frame) of each stage."""
    inference: str
    """Note on what one inference is."""

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of one frame; raise UsageError if it has too many operators."""
        from joulemap.plan import find_workload_of
        from joulemap.wing.pipeline.merge import merge_workloads

        works = [(find_workload_of(part, talk), count) for part, count in self.parts]
        operators = sum(len(work.operators) for work, _ in works)
        if operators > MOST_OPERATORS:
            raise UsageError(
                f"a frame of {quote(model.request.model)} has {operators:,} operators, expected at most "
                f"{MOST_OPERATORS:,}: name fewer stages"
            )
        return merge_workloads(works, model.request.model, model.request.key, self.inference)


@cache
def read_pipeline(name: str) -> Pipeline:
    """Return the pipeline that a name states.

    Raise UsageError if only some stages have a rate, or if a stage cannot be parsed.
    """
    if (named := read_named(name)) is not None:
        return attrs.evolve(read_pipeline(named.stages), name=str(named), inference=named.inference)
    texts = re.split(SPLIT, name.strip())
    if not any(":" in text and text.lower().rstrip().endswith(UNITS) for text in texts):
        return Pipeline(frames_per_s=0.0, stages=tuple(map(_read_repeated, texts)), inference=ONCE)
    first, *rest = map(_read_stage, texts)
    model, rate, unit = first
    if unit == "/frame":
        raise UsageError(f"the first stage of a pipeline states the frame rate: write {quote(model + ':30fps')}")
    runs = [(model, Fraction(1)), *((one, number if unit == "/frame" else number / rate) for one, number, unit in rest)]
    frames = math.lcm(*(ratio.denominator for _, ratio in runs))
    for one, ratio in runs:
        if frames > MOST_FRAMES or ratio * frames > MOST_RUNS:
            raise UsageError(
                f"{quote(one)} runs {float(ratio):.4g} times per frame at {float(rate):g}fps, expected up to "
                f"{MOST_RUNS:,} runs in up to {MOST_FRAMES} frames: round its rate"
            )
    return Pipeline(frames_per_s=float(rate / frames), stages=tuple(_join(runs, frames)))


def _read_repeated(text: str) -> Stage:
    """Return a stage that is written without a rate; it runs once unless it states a number."""
    match = RUNS.fullmatch(text.strip())
    model, count = (match[1], int(match[2])) if match else (text.strip(), 1)
    if not model or model.rpartition(":")[2].strip().replace(".", "").isdigit():
        return Stage(model=_read_stage(text)[0], count=1)  # raises UsageError with the fault
    if not 0 < count <= MOST_RUNS:
        raise UsageError(f"{quote(model)} runs {count:,} times, expected 1 to {MOST_RUNS:,}")
    return Stage(model=model, count=count)


def _read_stage(text: str) -> tuple[str, Fraction, str]:
    """Return (model, rate, unit) of a stage; UsageError for a stage without a valid rate."""
    model, colon, rate = (part.strip() for part in text.rpartition(":"))
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*(\S*)", rate) if colon else None
    if match is None or not model:
        name = text.strip() or "MODEL"
        raise UsageError(
            f"the stage {quote(name)} has no rate: write {quote(name + ':30fps')} or {quote(name + ':5/frame')}"
        )
    number, unit = Fraction(match[1]), match[2].lower()
    if unit not in UNITS:
        raise UsageError(f"the rate {quote(rate)} of {quote(model)} has an unknown unit: write 30fps, 30/s or 5/frame")
    if not 0 < number < 1e300:
        raise UsageError(f"the rate {quote(rate)} of {quote(model)} is {float(number):g}, expected more than 0")
    return model, number, unit


def _join(runs: Sequence[tuple[str, Fraction]], frames: int) -> Iterator[Stage]:
    """Yield the stages of `frames` combined frames; leading stages of the first model become one stage."""
    model = runs[0][0]
    rest = list(dropwhile(lambda run: run[0] == model, runs))
    first = sum(ratio for _, ratio in runs[: len(runs) - len(rest)])
    yield from (Stage(model=one, count=int(ratio * frames)) for one, ratio in [(model, first), *rest])


def find_pipeline(name: str, settings: Settings, batch: int | None) -> Model:
    """Return the model of one frame of a pipeline; raise UsageError if its name cannot be parsed, and otherwise the
    errors of `find_model`.
    """
    from joulemap.construct import ModelRequest
    from joulemap.plan import find_model

    if settings.inputs or settings.arguments or settings.config:
        raise UsageError("a pipeline takes no --input, --model-arg or --config: each stage has its own inputs")
    pipeline = read_pipeline(name)
    parts = tuple((find_model(one.model, settings, batch), one.count) for one in pipeline.stages)
    digest = hashlib.sha256(" ".join(part.workload_keys[-1] for part, _ in parts).encode()).hexdigest()[:16]
    return Model(
        request=ModelRequest(
            model=str(pipeline),
            kind=KIND,
            batch=parts[0][0].request.batch,
            is_default=True,
            content_digest=digest,
            version=pipeline_version(),
        ),
        retrace=settings.retrace,
        may_run=all(part.may_run for part, _ in parts),
        names=Frame(parts=parts, inference=pipeline.inference),
    )


@cache
def pipeline_version() -> str:
    """Return a digest of the code that builds pipelines, as sixteen hexadecimal digits.

    It is part of a pipeline's key, together with the keys of its stages.
    """
    return digest_code(*CODE)
