"""Report chapter on how the hardware serves the language model of a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask import Answer, ReportPart
from joulemap.ask.report import attempt
from joulemap.wing.decoder import is_pass

if TYPE_CHECKING:
    from joulemap.domain import Settings
    from joulemap.plan import Source
    from joulemap.show import Chapter, Drawn


TITLE: Final = "Serving"
ALL_BATCHES: Final = "All batches"


class ServedPart(ReportPart):
    """Report chapter on serving a language model."""

    name = "served"

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the serving answer for the model of a pass; None for another model, or if it cannot be served."""
        from joulemap.wing.llm.ask.llm import serve_pass

        del wanted
        return attempt(lambda: serve_pass(source, model, settings)) if is_pass(model) else None

    def draw(self, drawn: Drawn, answer: Any) -> Chapter:
        """Return the chapter with the frontier of throughput and latency over all batches."""
        from joulemap.show import draw

        document = draw(answer)
        batches = [attrs.evolve(one, title=one.title or ALL_BATCHES) for one in document.sections]
        tables = [((*batches, *document.details), answer.rows)]
        return drawn.make("served", TITLE, drawn.list_blocks("frontier", answer, document, tables))


SERVED: Final = ServedPart()
