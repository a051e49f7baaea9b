"""Commands that measure the rows of a served language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.answer.check import Checks, find_checks
from joulemap.catalog.check import LANGUAGE, CheckedRun
from joulemap.domain.weight import split_precision
from joulemap.wing.llm.decoder.name import find_shipped, load_shipped

if TYPE_CHECKING:
    from joulemap.wing.llm.answer.document import LlmAnswer


def find_checkpoint(model: str) -> str:
    """Return the name of a built-in model in the hub of its publisher; empty if unknown.

    Fine-tuned models of other publishers are aliases too; a publisher's own repository begins with the model's name.
    """
    name = find_shipped(model)
    shipped = load_shipped().get(name)
    listed = [one for one in shipped["aliases"] if "/" in one] if shipped else []

    def rank(one: str) -> tuple[bool, bool, int, str]:
        own = one.partition("/")[2]
        return not own.startswith(model.lower()), not own.startswith(name), len(one), one

    return min(listed, key=rank, default="")


def check_served(answer: LlmAnswer) -> Checks:
    """Return the commands that measure the requests of each served configuration."""
    runs = []
    for row in answer.served:
        precision, weights = split_precision(row.precision)
        run = CheckedRun(
            model=answer.model,
            checkpoint=find_checkpoint(answer.model),
            kind=LANGUAGE,
            precision=precision,
            weights=weights,
            batch=row.batch,
            engine=answer.serving.engine,
            prompt=answer.serving.prompt,
            output=answer.serving.output,
            devices=row.device_count,
        )
        runs.append((row.label, answer.scope.spell(row.hardware), run))
    return find_checks(runs)
