"""Report chapter on the placement of a model on a box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.ask import Answer, ReportPart
from joulemap.cli.command import option
from joulemap.system import frozen

if TYPE_CHECKING:
    from joulemap.domain import Settings
    from joulemap.plan import Source
    from joulemap.show import Chapter, Drawn


class PlacePart(ReportPart):
    """Report chapter on a placement, which is included if a box's id or file is given."""

    name = "placed"
    is_first = True
    label = "Placement"

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the placement of the model on the requested box; None if no box is requested."""
        if not wanted:
            return None
        from joulemap.wing.place.ask.place import PLACED, place

        settings = attrs.evolve(settings, hardware=(), runtime=settings.runtime or PLACED.runtime)
        return place(source, model, wanted, settings=settings)

    def draw(self, drawn: Drawn, answer: Any) -> Chapter:
        """Return the chapter, titled with the name of the box."""
        return drawn.make_whole("place", f"Which part where on {answer.box}", answer)


PLACED_PART: Final = PlacePart()


@frozen(kw_only=True)
class BoxOptions:
    """Options of `report` for its chapter on a placement."""

    chapter: ClassVar[str] = PlacePart.name
    box: str = option("", "Add the best placement on a box, by id or file.", "--place", metavar="BOX", is_advanced=True)

    def ask(self) -> str | None:
        """Return the id or file of the box; None if none is named."""
        return self.box or None

    def repeat(self) -> tuple[str, ...]:
        """Return the option as words of a command line."""
        return ("--place", self.box) if self.box else ()
