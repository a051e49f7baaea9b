"""Words and table of a language model divided between a processor and a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.physics import split_precision
from joulemap.show import Part, Sheet, Template
from joulemap.wing.llm.ask.offload import OffloadAnswer
from joulemap.wing.llm.capacity.offload import EXPERTS

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


def choose(answer: OffloadAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the values of slots in the heading and in the follow-up command."""
    precision, weights = split_precision(answer.precision)
    named = {field.name: getattr(answer, field.name) for field in attrs.fields(OffloadAnswer)}
    return {**named, "width": precision, "weight_width": weights}


OFFLOAD: Final = Sheet(
    title=TITLE,
    first=describe_division,
    parts=(
        Part(
            title="{part} on {device}, the others on {host}",
            table="rows",
            columns="*batch | *layers | first_token_s | *between_s | *tokens_per_s | *output_token_j | "
            "device_fraction | host_fraction | copy_fraction | device_bytes | host_bytes | *refusal",
            lay={"noun": "divisions"},
            is_long=True,
        ),
    ),
    steps=("place '{model}(cached={prompt})' {box} --precision {width}[ --weight-precision {weight_width}]",),
    choices=choose,
    limit=18,
)

PAGES: Final = {OffloadAnswer: OFFLOAD}
