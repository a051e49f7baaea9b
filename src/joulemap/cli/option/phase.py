"""Options of a run of a model, or of one pass of it where a wing knows passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.cli.option.run import RunOptions
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts


@frozen(kw_only=True)
class WholeRunOptions(RunOptions):
    """How a model is run as it is named."""

    def name(self, model: str) -> str:
        """Return the name of what is run: the model, or the pass of it that is asked for."""
        return model

    def of_checkpoint(self, model: str) -> WholeRunOptions:
        """Return the options with the weights of a model as its checkpoint stores them, where none are given."""
        del model
        return self


if TYPE_CHECKING:
    PassRunOptions = WholeRunOptions
else:
    PassRunOptions = next(find_parts("run_options"), WholeRunOptions)
