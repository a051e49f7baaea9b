"""Answer for a language model divided between a processor and a GPU: layers on each, latency and energy per token."""

from __future__ import annotations

import attrs

from joulemap.ask import Answer
from joulemap.domain import SERVED, Settings, Table, make_table
from joulemap.plan import Source
from joulemap.system import UsageError, frozen
from joulemap.wing.decoder import LOCAL_ENGINE, describe_engine, find_engine, read_decoder
from joulemap.wing.llm.capacity.offload import divide_layers
from joulemap.wing.llm.capacity.question import Question, check_methods
from joulemap.wing.llm.generated.row import OffloadRow
from joulemap.wing.llm.setting import SERVING, Serving
from joulemap.wing.place import find_mixed


@frozen(kw_only=True)
class OffloadAnswer(Answer):
    """Answer for a language model divided between a device and its host."""

    model: str
    box: str
    device: str
    host: str
    layer_count: int
    precision: str
    part: str
    """Part of the model that is divided: `Layers`, or `Experts of layers`."""
    engine: str
    prompt: int
    output: int
    rows: Table[OffloadRow]

    about = ("model", "box", "device", "host", "layer_count", "precision", "part", "engine", "prompt", "output")

    @property
    def best(self) -> OffloadRow:
        """Fastest division at the first batch."""
        return next(row for row in self.rows if row.is_best)

    @property
    def speedup(self) -> float | None:
        """Throughput of the best division over that of the host alone; None if that is the best or does not fit."""
        best = self.best
        host = next((row for row in self.rows if row.batch == best.batch and not row.layers and not row.refusal), None)
        if host is None or host is best or not (host.tokens_per_s and best.tokens_per_s):
            return None
        return best.tokens_per_s / host.tokens_per_s


def offload(source: Source, model: str, settings: Settings = SERVED, *, serving: Serving = SERVING) -> OffloadAnswer:
    """Return how many layers run best on the GPU of a box, with the rest on its processor, at each batch size.

    Raise UsageError for other hardware and for server options, UnsupportedError if no division fits; otherwise raise as
    `llm` does.
    """
    box = find_mixed(settings)
    if box is None:
        raise UsageError(
            "name a box of a GPU and a CPU, e.g. workstation_rtx_4090; see `joulemap hardware list --boxes`"
        )
    kept = attrs.evolve(
        SERVING, prompt=serving.prompt, output=serving.output, cache=serving.cache, engine=serving.engine
    )
    engine = serving.engine or LOCAL_ENGINE
    stack = find_engine(engine)
    if serving != kept or stack.name != LOCAL_ENGINE:
        raise UsageError(
            f"{box.id} combines a GPU and a CPU, and only {LOCAL_ENGINE} divides layers between them: "
            "leave out --engine and the options of loads, caches and speculation"
        )
    decoder = read_decoder(source, model, settings, serving.prompt)
    question = Question(decoder=decoder, stack=stack, serving=serving, asked=settings)
    question.check()
    check_methods(question, settings.weight_precision)
    division = divide_layers(box, question)
    return OffloadAnswer(
        model=decoder.name,
        box=box.id,
        device=division.device,
        host=division.host,
        layer_count=decoder.layer_count,
        precision=division.precision,
        part=division.part,
        engine=describe_engine(engine),
        prompt=serving.prompt,
        output=serving.output,
        rows=make_table("llm offload", OffloadRow, division.rows),
    )
