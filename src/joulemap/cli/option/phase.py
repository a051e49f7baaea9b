"""Options of a run of a model, or of one pass of it where a wing knows passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.cli.option.run import WholeRunOptions
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    PassRunOptions = WholeRunOptions
else:
    PassRunOptions = next(find_parts("run_options"), WholeRunOptions)
