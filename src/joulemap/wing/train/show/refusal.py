"""Words for training steps that do not run."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template

NEEDS: Final = Template("needs {needed:B} per device, but has {capacity:B} usable")
UNSUPPORTED: Final = Template(
    "{hardware} does not run this model at {precision}[ on {devices:#} devices]"
    "[ (it has {precisions:list}: --precision)]"
)
UNLINKED: Final = Template("{error} (--tensor-devices x --pipeline-devices)")
NOTHING: Final = Template("{runs:and} {why}[ (it fits with {fits_with})]")
EACH: Final = Template("{runs:and}: each {why}[ (it fits with {fits_with})]")
REFUSED_RUN: Final = Template("{label} at batch {batch:#}")
