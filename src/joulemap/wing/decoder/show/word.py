"""Names of passes of language models in sentences."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template

COUNTED: Final = Template("prompts of {tokens:#} token")
EVALUATION: Final = "one decode step, nothing cached"
STEP: Final = Template("one decode step after {cached:#} tokens")
INSTEAD: Final = Template(
    "an inference is one output token of one sequence; for whole requests and USD per million tokens: {command}"
)
