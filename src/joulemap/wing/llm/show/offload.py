"""Words and table of a language model divided between a processor and a GPU."""

from __future__ import annotations

from typing import Final

from joulemap.physics import split_precision
from joulemap.show import Asked, Document, Page, Template, compose, fill_steps, show_table
from joulemap.wing.llm.ask.offload import OffloadAnswer
from joulemap.wing.llm.capacity.offload import EXPERTS
from joulemap.wing.llm.generated.row import OffloadRow

PLACED: Final = Template("{part} on {device}, the others on {host}")
PLACE: Final = Template(
    "place '{model}(cached={prompt})' {box} --precision {width}[ --weight-precision {weight_width}]"
)
TITLE: Final = Template("{model} on {box}: prompt {prompt:#}, output {output:#}, {precision}, {engine}")
DIVIDED: Final = Template(
    "With {layers} of {layer_count:n layer} on {device}, batch {batch} runs at {tokens_per_s:~} tokens/s and "
    "{output_token_j:J} per token[, {speedup:x} the throughput of {host} alone]; a step spends {device_fraction:%} of "
    "its time on {device} and {host_fraction:%} on {host}."
)
ROUTED: Final = Template(
    "With the experts of {left:n layer} on {host} (--n-cpu-moe {left}) and all else on {device}, batch {batch} runs at "
    "{tokens_per_s:~} tokens/s and {output_token_j:J} per token; a step spends {device_fraction:%} of its time on "
    "{device} and {host_fraction:%} on {host}."
)
WHOLE: Final = Template(
    "With all {layer_count:n layer} on {device}, batch {batch} runs at {tokens_per_s:~} tokens/s and "
    "{output_token_j:J} per token[, {speedup:x} the throughput of {host} alone]."
)
HOST_ALONE: Final = Template(
    "{host} alone is fastest: batch {batch} runs at {tokens_per_s:~} tokens/s and {output_token_j:J} per token."
)


def describe_division(answer: OffloadAnswer) -> str:
    """Return the best split of layers at the first batch, and its speedup over all layers on the host."""
    best, count = answer.best, answer.layer_count
    template = HOST_ALONE if not best.layers else WHOLE if best.layers == count else DIVIDED
    template = ROUTED if answer.part == EXPERTS and best.layers < count else template
    named = {"device": answer.device, "host": answer.host, "layer_count": count, "left": count - best.layers}
    return template(best, **named, speedup=answer.speedup)


def draw_division(answer: OffloadAnswer, asked: Asked) -> Document:
    """Return the document of a model divided between a processor and a GPU."""
    precision, weights = split_precision(answer.precision)
    title, most = PLACED(answer), asked.most(18)
    return compose(
        answer,
        show_table(answer, title, answer.rows, OffloadRow.table, limit=most, noun="divisions"),
        answer.rows,
        title=TITLE(answer),
        headline=describe_division(answer),
        steps=fill_steps([PLACE], answer, asked.repeated, width=precision, weight_width=weights),
    )


PAGES: Final = {OffloadAnswer: Page[OffloadAnswer](draw=draw_division)}
