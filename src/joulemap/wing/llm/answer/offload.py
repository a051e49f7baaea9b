"""Answer for a language model divided between a processor and a GPU: layers on each, latency and energy per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.domain.computed import make_table
from joulemap.domain.default import SERVED
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.wing.llm.capacity.offload import OffloadRow, divide_layers
from joulemap.wing.llm.capacity.question import SERVING, Question, check_methods
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.source import find_mixed, read_decoder

if TYPE_CHECKING:
    from joulemap.plan.source import Source

TITLE: Final = Template("{model} on {box}: prompt {prompt:#}, output {output:#}, {precision}, {engine}")
DIVIDED: Final = Template(
    "With {layers} of {layer_count:n layer} on {device}, batch {batch} runs at {tokens_per_s:~} tokens/s and "
    "{output_token_j:J} per token[, {speedup:x} the throughput of {host} alone]; a step spends {device_fraction:%} of "
    "its time on {device} and {host_fraction:%} on {host}"
)
WHOLE: Final = Template(
    "With all {layer_count:n layer} on {device}, batch {batch} runs at {tokens_per_s:~} tokens/s and "
    "{output_token_j:J} per token[, {speedup:x} the throughput of {host} alone]"
)
HOST_ALONE: Final = Template(
    "{host} alone is fastest: batch {batch} runs at {tokens_per_s:~} tokens/s and {output_token_j:J} per token"
)
HEADING: Final = Template("Layers on {device}, the others on {host}")
COLUMNS: Final = (
    "*batch | *device layers layers | TTFT first_token_s | *TPOT between_s | *tokens/s ~tokens_per_s | "
    "*decode J/token output_token_j | device time device_fraction | host time host_fraction | "
    "copy time copy_fraction | device memory device_bytes | host memory host_bytes | *refused refusal"
)
NOTES: Final = (
    "layers on the device are the engine's -ngl; all layers are assumed to have equal weights, cache and time",
    "for prompts of 32 tokens and more, the device computes the host's layers where that is faster; their weights are "
    "sent each time",
)
NEXT: Final = Template(
    "joulemap place '{model}(cached={prompt})' {box} --precision {width}[ --weight-precision {weight_width}]"
)

ENGINE: Final = "llamacpp"
"""Engine that divides layers between a device and its host."""


@frozen(kw_only=True)
class OffloadAnswer(Answer):
    """Answer for a language model divided between a device and its host."""

    model: str
    box: str
    device: str
    host: str
    layer_count: int
    precision: str
    engine: str
    prompt: int
    output: int
    rows: Table[OffloadRow]

    about = ("model", "box", "device", "host", "layer_count", "precision", "engine", "prompt", "output")

    def document(self, *, limit: int = 18, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` rows per table."""
        del repeated
        width, _, weight_width = self.precision.partition("/")
        table = self._lay(self.rows, COLUMNS, limit=limit, noun="divisions")
        return Document(
            title=TITLE(self),
            answer=f"{self._find_headline()}.",
            sections=(Section(HEADING(self), table),),
            notes=NOTES,
            steps=(NEXT(self, width=width, weight_width=weight_width),),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _find_headline(self) -> str:
        """Return the best split of layers at the first batch, and its speedup over all layers on the host."""
        best = next(row for row in self.rows if row.is_best)
        host = next((row for row in self.rows if row.batch == best.batch and not row.layers and not row.refusal), None)
        speedup = None
        if host is not None and host is not best and host.tokens_per_s and best.tokens_per_s:
            speedup = best.tokens_per_s / host.tokens_per_s
        template = HOST_ALONE if not best.layers else WHOLE if best.layers == self.layer_count else DIVIDED
        return template(best, layer_count=self.layer_count, device=self.device, host=self.host, speedup=speedup)


def offload(source: Source, model: str, settings: Settings = SERVED, *, serving: Serving = SERVING) -> OffloadAnswer:
    """Return how many layers run best on the GPU of a box, with the rest on its processor, at each batch size.

    Raise UsageError for other hardware and for server options, UnsupportedError if no division fits; otherwise raise as
    `llm` does.
    """
    from joulemap.wing.llm.stack import describe_engine, find_engine

    box = find_mixed(settings)
    if box is None:
        raise UsageError(
            "name a box of a GPU and a CPU, e.g. workstation_rtx_4090; see `joulemap hardware list --boxes`"
        )
    kept = attrs.evolve(
        SERVING, prompt=serving.prompt, output=serving.output, cache=serving.cache, engine=serving.engine
    )
    engine = serving.engine or ENGINE
    stack = find_engine(engine)
    if serving != kept or not stack.id.startswith(ENGINE):
        raise UsageError(
            f"{box.id} combines a GPU and a CPU, and only {ENGINE} divides layers between them: leave out --engine and "
            "the options of loads, caches and speculation"
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
        engine=describe_engine(engine),
        prompt=serving.prompt,
        output=serving.output,
        rows=make_table("llm offload", OffloadRow, division.rows),
    )
