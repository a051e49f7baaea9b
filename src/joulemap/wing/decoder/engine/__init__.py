"""Engines that run passes: their releases, and chips under them."""

from typing import Final

ENGINE: Final = "vllm"
"""Inference engine that is used if none is named."""
