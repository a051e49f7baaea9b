"""Engines that run passes: their releases, and chips under them."""

from typing import Final

ENGINE: Final = "vllm"
"""Inference engine that is used if none is named."""

LOCAL_ENGINE: Final = "llamacpp"
"""Engine that serves on CPUs and GPUs of laptops, boards and phones, for which other engines have no kernels."""
