"""Options for running a model, or one pass of it if a wing provides passes."""

from typing import TYPE_CHECKING

from joulemap.cli.option.run import WholeRunOptions
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    PassRunOptions = WholeRunOptions
else:
    PassRunOptions = next(find_parts("run_options"), WholeRunOptions)
