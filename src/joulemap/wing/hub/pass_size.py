"""Sizes of a decoder's forward pass in tokens and devices. Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import torch

    from joulemap.construct import Inputs, ModelRequest, Run


@attrs.frozen(kw_only=True)
class PassSizes:
    """Sizes of a decoder's forward pass in tokens and devices."""

    tokens: int = 1
    """New tokens per sequence."""
    cached: int = 0
    """Tokens per sequence that are already in the KV cache."""
    has_all_logits: bool = False
    """True to compute logits of all tokens in a model that can omit them."""
    data_devices: int = 1
    """Devices over which sequences are divided."""

    def __str__(self) -> str:
        words = [f"tokens={self.tokens} cached={self.cached}", *["logits=all"] * self.has_all_logits]
        return " ".join([*words, *[f"data_devices={self.data_devices}"] * (self.data_devices > 1)])

    def count_sequences(self, batch: int) -> int:
        """Return the sequences per device of a batch, rounded up."""
        return -(-batch // self.data_devices)

    def choose_arguments(self, taken: Collection[str], batch: int) -> Mapping[str, int]:
        """Return argument name -> size of the pass; empty unless both `tokens` and `cached` are taken."""
        if "tokens" not in taken or "cached" not in taken:
            return {}
        sizes = {"batch": self.count_sequences(batch), "tokens": self.tokens, "cached": self.cached}
        return {name: size for name, size in sizes.items() if name in taken}

    def build_inputs(
        self, module: torch.nn.Module, own: Any, request: ModelRequest, run: Run, *, is_sized: bool
    ) -> tuple[Inputs, tuple[str, ...]]:
        """Return (inputs of the pass, notes); ModelError if inputs cannot be found."""
        from joulemap.wing.hub.past import Pass, build_past

        asked = Pass(
            model=request.model,
            is_transformers=request.kind == "hf",
            sequences=self.count_sequences(request.batch or 1),
            tokens=self.tokens,
            cached=self.cached,
            has_all_logits=self.has_all_logits,
        )
        return build_past(module, own, asked, run, is_sized=is_sized)
