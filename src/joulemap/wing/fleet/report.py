"""Report chapter on fleets: how many of the same hardware serve a demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask import Answer, ReportPart

if TYPE_CHECKING:
    from joulemap.domain import Settings
    from joulemap.plan import Source
    from joulemap.show import Chapter, Drawn


class FleetPart(ReportPart):
    """Report chapter on fleets, which is included if a demand is given."""

    name = "fleet"
    is_first = True
    label = "Fleet"

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the fleets of this hardware for the demand `wanted`; None without a demand.

        A demand with targets for tokens requires a language model.
        """
        if wanted is None:
            return None
        from joulemap.wing.fleet.ask.fleet import fleet
        from joulemap.wing.llm.serve import find_served

        settings = attrs.evolve(settings, batch=())
        if not wanted.is_of_tokens:
            return fleet(source, model, settings, demand=wanted)
        name, serving = find_served(model)
        return fleet(source, name, settings, demand=wanted, serving=serving)

    def draw(self, drawn: Drawn, answer: Any) -> Chapter:
        """Return the report's chapter on fleets."""
        from joulemap.wing.fleet.show.fleet import SUBJECT

        return drawn.make_whole("fleet", SUBJECT, answer)


FLEET: Final = FleetPart()
